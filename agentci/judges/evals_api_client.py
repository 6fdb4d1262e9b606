"""Client for the OpenAI Evals API, which grades items with graders of OpenAI."""

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NoReturn, TypeGuard
from urllib.parse import quote, urlsplit

from agentci._util.http import HttpResponse, RetryableError
from agentci._util.text.format import format_number
from agentci._util.text.secrets import HIDDEN
from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError, FetchError
from agentci.judges.transport import (
    OUTAGE_HINT,
    ServiceRequest,
    ServiceState,
    Transport,
    find_retryable_error,
    format_api_error,
    parse_api_error,
)
from agentci.model.requests import EvalsService, GradeWithService, ServiceGrade, ServiceGrades
from agentci.model.values import Json, JsonObject

# Final statuses.
COMPLETED: Final = "completed"
FINAL_STATUSES: Final = frozenset({COMPLETED, "failed", "canceled"})
# Members of a result that are shown.
DETAIL_KEYS: Final = ("label", "reason")


def make_eval_body(request: GradeWithService) -> JsonObject:
    """Build an eval that grades its items as given, without sampling."""
    properties = {name: _make_schema(value) for name, value in request.items[0].items()}
    return {
        "name": request.name,
        "data_source_config": {
            "type": "custom",
            "item_schema": {"type": "object", "properties": properties, "required": [*properties]},
            "include_sample_schema": False,
        },
        "testing_criteria": [request.criterion],
    }


def make_run_body(request: GradeWithService) -> JsonObject:
    """Build a run over all items."""
    content: Json = [{"item": item} for item in request.items]
    source: JsonObject = {"type": "file_content", "content": content}
    return {"name": request.name, "data_source": {"type": "jsonl", "source": source}}


def check_run(run: JsonObject, items: int) -> None:
    """Check that a finished run graded all items.

    Raises:
        EvaluatorError: it did not; the message has the reason.
    """
    if run.get("status") != COMPLETED:
        error = run.get("error")
        message = error.get("message") if isinstance(error, Mapping) else None
        reason = message or "no reason given"
        raise EvaluatorError(f"the service's run {run.get('status')}: {reason}")
    counts = run.get("result_counts")
    errored = counts.get("errored") if isinstance(counts, Mapping) else None
    if errored:
        raise EvaluatorError(f"the service could not grade {errored} of {items} items")


def parse_grades(graded: Sequence[Json], count: int) -> tuple[ServiceGrade, ...]:
    """Parse the grades of all items, sorted by item number.

    Raises:
        EvaluatorError: an item has no grade, or more than one.
    """
    grades = dict(map(_parse_item, graded))
    if len(graded) != count or grades.keys() != set(range(count)):
        raise EvaluatorError(f"the service did not grade each of the {count} items once")
    return tuple(grades[number] for number in range(count))


def _parse_item(item: Json) -> tuple[int, ServiceGrade]:
    if isinstance(item, Mapping) and isinstance(number := item.get("datasource_item_id"), int):
        for result in _find_results(item):
            score, passed = result.get("score"), result.get("passed")
            if isinstance(passed, bool) and _is_number(score):
                details = {key: result[key] for key in DETAIL_KEYS if result.get(key) is not None}
                return number, ServiceGrade(score=float(score), passed=passed, details=details)
    raise EvaluatorError("the service returned no score for an item")


def _find_results(item: JsonObject) -> Iterator[JsonObject]:
    results = item.get("results")
    yield from (
        each for each in (results if isinstance(results, list) else ()) if isinstance(each, Mapping)
    )


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _make_schema(value: Json) -> JsonObject:
    return {"type": "string"} if isinstance(value, str) else {}


POLL_SECONDS: Final = 2.0
PAGE_ITEMS: Final = 100
# Time to delete the eval, in addition to the timeout of the run.
CLEANUP_SECONDS: Final = 10.0
SUCCESSES: Final = range(200, 300)
# Hosts that expect the key in the `api-key` header; others expect bearer tokens.
KEY_HOSTS: Final = (".openai.azure.com", ".cognitiveservices.azure.com")


class EvalsApiClient:
    """Grades items with services; thread-safe.

    Args:
        variables: the environment, for keys.
    """

    def __init__(self, transport: Transport, *, variables: ConfigVariables) -> None:
        self._transport = transport
        self._variables = variables
        self._service_states: defaultdict[EvalsService, ServiceState] = defaultdict(ServiceState)

    def grade(self, request: GradeWithService) -> ServiceGrades:
        """Grade all items of a request.

        Raises:
            EvaluatorError: not all items were graded.
        """
        variable = request.service.key_variable
        until = self._transport.clock() + request.timeout_seconds
        session = _EvalsSession(
            base_url=request.service.base_url.rstrip("/"),
            key=self._variables.get(variable).strip() if variable else "",
            transport=self._transport,
            service_state=self._service_states[request.service],
            until=until,
        )
        try:
            return self._run_eval(request, session)
        except FetchError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise EvaluatorError(f"{error}{hint}") from None

    def _run_eval(self, request: GradeWithService, session: "_EvalsSession") -> ServiceGrades:
        path = f"/evals/{_parse_id(session.post('/evals', make_eval_body(request)))}"
        try:
            run = session.post(f"{path}/runs", make_run_body(request))
            at = f"{path}/runs/{_parse_id(run)}"
            while run.get("status") not in FINAL_STATUSES:
                self._wait(request, session)
                run = session.get(at)
            check_run(run, len(request.items))
            # One item too many is enough to detect an error: the pages may never end.
            items = [*islice(_fetch_items(session, f"{at}/output_items"), len(request.items) + 1)]
            return ServiceGrades(grades=parse_grades(items, len(request.items)))
        finally:
            self._delete_eval(path, session)

    def _wait(self, request: GradeWithService, session: "_EvalsSession") -> None:
        if self._transport.clock() + POLL_SECONDS >= session.until:
            raise EvaluatorError(f"timed out after {format_number(request.timeout_seconds)} s")
        self._transport.sleep(POLL_SECONDS)

    def _delete_eval(self, path: str, session: "_EvalsSession") -> None:
        """Delete the eval; a failure is reported but does not change the grades."""
        session.until = self._transport.clock() + CLEANUP_SECONDS
        try:
            session.delete(path)
        except (EvaluatorError, FetchError) as error:
            self._transport.report(
                f"could not delete {path} at {urlsplit(session.base_url).hostname}: {error}"
            )


class OfflineEvalsApiClient:
    """Client for offline runs: calls no service."""

    def grade(self, _: GradeWithService) -> NoReturn:
        """Refuse to grade.

        Raises:
            EvaluatorError: always.
        """
        raise EvaluatorError("`--offline` calls no grading service")


@dataclass(slots=True, kw_only=True)
class _EvalsSession:
    """A session with one service.

    Attributes:
        until: deadline, by the clock of the transport.
    """

    base_url: str
    key: str = field(repr=False)
    transport: Transport
    service_state: ServiceState
    until: float

    def get(self, path: str) -> JsonObject:
        return self._send("GET", path)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        return self._send("POST", path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def _send(self, method: str, path: str, content: bytes | None = None) -> JsonObject:
        headers = {} if content is None else {"Content-Type": "application/json"}
        request = ServiceRequest(
            url=f"{self.base_url}{path}",
            headers=headers | make_key_header(self.base_url, self.key),
            content=content,
            method=method,
            has_key=bool(self.key),
            until=self.until,
        )
        return self.transport.send(request, self.service_state, self._read)

    def _read(self, fetch: Callable[[], HttpResponse]) -> JsonObject:
        """Make one attempt."""
        response = fetch()
        if response.status not in SUCCESSES:
            self._raise_for_error(response)
        try:
            document: Json = json.loads(self._redact_key(response.content))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise RetryableError("the response is not a JSON object", hint=OUTAGE_HINT)
        return document

    def _redact_key(self, content: bytes) -> bytes:
        """Remove the key from a response, which may be shown."""
        return content.replace(self.key.encode(), HIDDEN.encode()) if self.key else content

    def _raise_for_error(self, response: HttpResponse) -> None:
        """Raise the error that an unsuccessful response means; never returns."""
        details = parse_api_error(response.status, response.content)
        message = format_api_error(details, response, self.key)
        failure = find_retryable_error(response, message, now=time.time())
        if failure and not details.is_out_of_credit:
            raise failure
        raise EvaluatorError(f"the service returned {message}; check `base_url` and the key")


def make_key_header(base_url: str, key: str) -> dict[str, str]:
    """Return the header for a key; empty without a key."""
    if not key:
        return {}
    host = urlsplit(base_url).hostname or ""
    if host.endswith(KEY_HOSTS):
        return {"api-key": key}
    return {"Authorization": f"Bearer {key}"}


def _fetch_items(session: _EvalsSession, path: str) -> Iterator[Json]:
    """Fetch all output items, page by page."""
    after = ""
    while True:
        page = session.get(f"{path}?limit={PAGE_ITEMS}{after}")
        data = page.get("data")
        items = data if isinstance(data, list) else []
        yield from items
        if not (page.get("has_more") and items):
            return
        after = f"&after={_parse_id(items[-1])}"


def _parse_id(document: Json) -> str:
    items = document.get("id") if isinstance(document, Mapping) else None
    if not isinstance(items, str):
        raise EvaluatorError("the service's response has no id")
    return quote(items, safe="")
