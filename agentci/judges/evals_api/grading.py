"""Has a service grade: an eval is made, run, waited for, read page by page, and deleted."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NoReturn
from urllib.parse import quote, urlsplit

from agentci._util.http.deadline import pause
from agentci._util.http.document import Response
from agentci._util.http.retries import PassingError
from agentci._util.text.format import number
from agentci._util.text.secrets import HIDDEN
from agentci.errors import EvaluatorError, FetchError
from agentci.judges.api_errors import complaint_of
from agentci.judges.error_text import answer_words
from agentci.judges.evals_api.wire import ENDED, check_run, eval_body, grades_of, run_body
from agentci.judges.rate_limit import Account
from agentci.judges.retry import TOO_MANY_REQUESTS, asked_seconds, is_passing
from agentci.judges.transport import Letter, LimitedError, Transport
from agentci.model.grading import EvalsService, GradeRemotely, RemoteGrades
from agentci.model.json import Json, JsonObject

POLL_SECONDS: Final = 2.0
PAGE_ITEMS: Final = 100
# Beyond the time for a run, for what is left to be deleted.
CLEARING_SECONDS: Final = 10.0
SUCCESSES: Final = range(200, 300)
OUTAGE_HINT: Final = "try again later"
# Whose keys stand in a header of their own; others take bearer tokens.
KEY_HOSTS: Final = (".openai.azure.com", ".cognitiveservices.azure.com")


class RemoteGrading:
    """Grades at services, from any number of threads.

    Args:
        variables: the environment, for keys.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        variables: Mapping[str, str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._variables = variables
        self._sleep = sleep
        self._accounts: defaultdict[EvalsService, Account] = defaultdict(Account)

    def grade(self, request: GradeRemotely) -> RemoteGrades:
        """Grade all items of a request.

        Raises:
            EvaluatorError: not all of them have a grade in the end.
        """
        variable = request.service.key_variable
        until = self._transport.clock() + request.timeout_seconds
        session = _Session(
            base_url=request.service.base_url.rstrip("/"),
            key=self._variables.get(variable, "").strip() if variable else "",
            transport=self._transport,
            account=self._accounts[request.service],
            until=until,
        )
        try:
            return self._graded(request, session)
        except FetchError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise EvaluatorError(f"{error}{hint}") from None

    def _graded(self, request: GradeRemotely, session: "_Session") -> RemoteGrades:
        path = f"/evals/{_id(session.post('/evals', eval_body(request)))}"
        try:
            run = session.post(f"{path}/runs", run_body(request))
            at = f"{path}/runs/{_id(run)}"
            while run.get("status") not in ENDED:
                self._wait(request, session)
                run = session.get(at)
            check_run(run, len(request.items))
            # One more than there should be is enough to know: pages may never end.
            items = [*islice(_items(session, f"{at}/output_items"), len(request.items) + 1)]
            return RemoteGrades(grades=grades_of(items, len(request.items)))
        finally:
            self._clear(path, session)

    def _wait(self, request: GradeRemotely, session: "_Session") -> None:
        if self._transport.clock() + POLL_SECONDS >= session.until:
            raise EvaluatorError(f"timed out after {number(request.timeout_seconds)}s")
        pause(POLL_SECONDS, sleep=self._sleep, stopped=self._transport.stopped)

    def _clear(self, path: str, session: "_Session") -> None:
        """Delete the eval; one that stays is told, and changes no grade."""
        session.until = self._transport.clock() + CLEARING_SECONDS
        try:
            session.delete(path)
        except (EvaluatorError, FetchError) as error:
            self._transport.tell(f"{path} stays at {urlsplit(session.base_url).hostname}: {error}")


class NoGrading:
    """Asks no service."""

    def grade(self, _: GradeRemotely) -> NoReturn:
        """Say that nothing is asked.

        Raises:
            EvaluatorError: always.
        """
        raise EvaluatorError("no service grades with --offline")


@dataclass(slots=True, kw_only=True)
class _Session:
    """Requests to one service.

    Attributes:
        until: when nobody waits for an answer any more, by the clock of the transport.
    """

    base_url: str
    key: str = field(repr=False)
    transport: Transport
    account: Account
    until: float

    def get(self, path: str) -> JsonObject:
        return self._send("GET", path)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        return self._send("POST", path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def _send(self, method: str, path: str, content: bytes | None = None) -> JsonObject:
        headers = {} if content is None else {"Content-Type": "application/json"}
        letter = Letter(
            url=f"{self.base_url}{path}",
            headers=headers | key_header(self.base_url, self.key),
            content=content,
            method=method,
            has_key=bool(self.key),
            until=self.until,
        )
        return self.transport.send(letter, self.account, self._read)

    def _read(self, fetch: Callable[[], Response]) -> JsonObject:
        """One try."""
        response = fetch()
        if response.status not in SUCCESSES:
            self._refuse(response)
        try:
            document: Json = json.loads(self._without_key(response.content))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise PassingError("it sent no JSON object", hint=OUTAGE_HINT)
        return document

    def _without_key(self, content: bytes) -> bytes:
        """What a service said, which may be shown."""
        return content.replace(self.key.encode(), HIDDEN.encode()) if self.key else content

    def _refuse(self, response: Response) -> None:
        """Say what an answer means that is no success; never returns."""
        complaint = complaint_of(response.status, response.content)
        said = answer_words(complaint, response, self.key)
        if is_passing(response.status, response.headers) and not complaint.is_spent:
            kind = LimitedError if response.status == TOO_MANY_REQUESTS else PassingError
            seconds = asked_seconds(response.headers, now=time.time())
            raise kind(f"it {said}", hint=OUTAGE_HINT, asked_seconds=seconds)
        raise EvaluatorError(f"the service {said}; see whether base_url and its key are right")


def key_header(base_url: str, key: str) -> dict[str, str]:
    """The header that a key is sent in; none without a key."""
    if not key:
        return {}
    host = urlsplit(base_url).hostname or ""
    if host.endswith(KEY_HOSTS):
        return {"api-key": key}
    return {"Authorization": f"Bearer {key}"}


def _items(session: _Session, path: str) -> Iterator[Json]:
    """All output items, page by page."""
    after = ""
    while True:
        page = session.get(f"{path}?limit={PAGE_ITEMS}{after}")
        data = page.get("data")
        items = data if isinstance(data, list) else []
        yield from items
        if not (page.get("has_more") and items):
            return
        after = f"&after={_id(items[-1])}"


def _id(document: Json) -> str:
    found = document.get("id") if isinstance(document, Mapping) else None
    if not isinstance(found, str):
        raise EvaluatorError("the service answered without an id")
    return quote(found, safe="")
