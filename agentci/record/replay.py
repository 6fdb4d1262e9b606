"""Answers requests from an earlier recording, so that an agent runs again without a model."""

import hashlib
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from agentci._util.text.format import format_count
from agentci._util.text.truncate import short
from agentci._util.workspace import ResolvedPath, Workspace, is_file, limit_input, read_file
from agentci.errors import InputError
from agentci.model.values import Json, JsonObject, replace
from agentci.record.apis import gemini, other_requests
from agentci.record.apis.model_api import ModelApi, parse_body
from agentci.record.apis.registry import (
    AZURE_PATH,
    AZURE_VARIABLE,
    LITELLM_AZURE_VARIABLE,
    SUFFIXES,
    find_api_or_other,
)
from agentci.record.exchanges import ExchangeLog, decompress
from agentci.record.http_server import (
    RequestHandler,
    ServerRequest,
    ServerResponse,
    make_json_response,
)
from agentci.record.redaction import RecordingRedactor
from agentci.record.request_file import (
    LIST_FIELDS,
    RecordedRequest,
    RecordedRequests,
    list_request_files,
    make_file_name,
    parse_requests,
)
from agentci.recordings.json_documents import MAX_RECORDING_BYTES

ReplayMode: TypeAlias = Literal["strict", "fallback"]
_ENCODING: Final = "content-encoding"
REPLAY_MODES: Final[tuple[ReplayMode, ...]] = ("strict", "fallback")
# Clients do not start without a key, and a replay needs none.
KEY_VARIABLES: Final = (
    ("OPENAI_API_KEY",),
    ("ANTHROPIC_API_KEY",),
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
)
AZURE_VARIABLES: Final = (AZURE_VARIABLE, LITELLM_AZURE_VARIABLE)
AZURE_KEYS: Final = (("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),)
PLACEHOLDER_KEY: Final = "replay"
PLACEHOLDER_ENDPOINT: Final = "https://replay.invalid"
MAX_SHOWN: Final = 80
# How often a request may be sent again after its last recorded response.
MAX_REPEATS: Final = 20
REPEATED: Final = "the agent repeats a request"
# Of one case whose agent goes on all the same, and of a command with many cases.
MAX_REFUSED: Final = 20
MAX_REFUSED_BY_ALL: Final = 1_000
NAMED_ONLY: Final = "it has only requests of named cases (--cases or --case)"
_PROJECT: Final = re.compile(r"/projects/[^/]+/locations/[^/]+(?=/publishers/)")
# Fields with ids, which clients and services generate for each run.
_ID_FIELDS: Final = frozenset(
    {
        *("id", "call_id", "tool_call_id", "tool_use_id", "previous_response_id", "item_id"),
        *("conversation", "toolCallId", "response_id"),
    }
)
# Fields that do not change a model's answer.
_IGNORED_FIELDS: Final = frozenset(
    {
        *("stream", "stream_options", "user", "metadata", "safety_identifier"),
        *("prompt_cache_key", "service_tier"),
    }
)


class ReplayingProxy:
    """Answers requests that are in a recording; thread-safe.

    Args:
        recorded: by file name of the case.
        fallback: forwards the other requests; None refuses them.
        log: records the exchanges, as if a model had answered.
        report: prints why a request is refused, each reason of a case once.

    Attributes:
        misses: these reasons, one per refused request, by case.
        answered: number of model calls that were answered from the recording, by case.
        forwarded: number of those that were forwarded, by case.
    """

    def __init__(
        self,
        recorded: Mapping[str, "ReplayedCase"],
        fallback: RequestHandler | None,
        log: ExchangeLog,
        redactor: RecordingRedactor,
        report: Callable[[str], None],
    ) -> None:
        self._cases = recorded
        self._fallback = fallback
        self._log = log
        self._redactor = redactor
        self._report = report
        self._lock = threading.Lock()
        self.misses: defaultdict[str, list[str]] = defaultdict(list)
        self.answered: Counter[str] = Counter()
        self.forwarded: Counter[str] = Counter()

    def respond(self, request: ServerRequest) -> ServerResponse:
        """Answer a request from the recording."""
        self._redactor.learn_headers(request.headers)
        suffix = SUFFIXES.get(request.route, "")
        path = request.path.removeprefix(suffix)
        api = find_api_or_other(request.method, path)
        unpacked = _unpack(request)
        body = self._redactor.redact(parse_body(unpacked.body) or {})
        asked = RecordedRequest(method=request.method, path=path, body=body, response={})
        with self._lock:
            case = self._cases.get(make_file_name(request.case))
            found = case.take(asked) if case is not None else None
            if api is not other_requests:
                self.answered[request.case] += isinstance(found, RecordedRequest)
                self.forwarded[request.case] += found is None and self._fallback is not None
        if isinstance(found, RepeatedRequest):
            return self._refuse(request.case, api, found.describe())
        if found is not None:
            return self._answer(unpacked, api, path, found)
        if self._fallback is not None:
            return self._fallback.respond(request)
        why = _explain_miss(asked, case) if case or request.case else NAMED_ONLY
        reason = f"the request is not in the recording: {why}"
        return self._refuse(request.case, api, reason)

    def find_end(self, case: str) -> str:
        """Return why the command of a case is to be stopped; empty if it is not.

        Args:
            case: empty for a command whose requests may have several cases.
        """
        with self._lock:
            refused = [self.misses[case]] if case else self.misses.values()
            number = max(map(len, refused), default=0)
        limit = MAX_REFUSED if case else MAX_REFUSED_BY_ALL
        return f"was stopped after {limit:,} refused requests" if number >= limit else ""

    def _answer(
        self, request: ServerRequest, api: ModelApi, path: str, found: RecordedRequest
    ) -> ServerResponse:
        exchange = self._log.begin(replace(request, path=path), api)
        response = _make_response(request, api, path, found.response)
        headers = {name.lower(): value for name, value in response.headers.items()}
        exchange.begin_response(response.status, headers)
        exchange.add_content(b"".join(response.chunks))
        self._log.end(exchange, finished=True)
        return response

    def _refuse(self, case: str, api: ModelApi, message: str) -> ServerResponse:
        with self._lock:
            is_known = message in self.misses[case]
            self.misses[case].append(message)
        if not is_known:
            self._report(f"{case}: {message}" if case else message)
        error = api.make_error(f"agentci replay: {message}")
        return make_json_response(HTTPStatus.BAD_REQUEST, error)


class RepeatedRequest(NamedTuple):
    """A request that is sent far more often than it was recorded."""

    recorded: int

    def describe(self) -> str:
        """Describe it, equally for each further one."""
        recorded = format_count(self.recorded, "time")
        sent = f"more than {self.recorded + MAX_REPEATS} times"
        return f"{REPEATED} without end: it was recorded {recorded}, and sent {sent}"


class ReplayedCase:
    """The recorded requests of a case, found by their content.

    Attributes:
        printed: see ``RecordedRequests``.
    """

    def __init__(self, recorded: RecordedRequests) -> None:
        self.requests = recorded.requests
        self.printed = recorded.printed
        self._by_key: defaultdict[str, list[RecordedRequest]] = defaultdict(list)
        for each in self.requests:
            self._by_key[make_request_key(each)].append(each)
        self._sent: Counter[str] = Counter()

    def take(self, asked: RecordedRequest) -> RecordedRequest | RepeatedRequest | None:
        """Return the next equal recorded request; after the last one, a few times that one."""
        key = make_request_key(asked)
        recorded = self._by_key.get(key)
        if not recorded:
            return None
        number = self._sent[key]
        self._sent[key] += 1
        if number >= len(recorded) + MAX_REPEATS:
            return RepeatedRequest(len(recorded))
        return recorded[min(number, len(recorded) - 1)]

    @property
    def model_calls(self) -> int:
        """Number of the requests that call a model."""
        found = (find_api_or_other(each.method, each.path) for each in self.requests)
        return sum(api is not other_requests for api in found)

    def find_closest(self, asked: RecordedRequest) -> RecordedRequest | None:
        """Return the recorded request of the same path that differs last."""
        same = [each for each in self.requests if _name_path(each) == _name_path(asked)]
        return max(same, key=lambda each: _count_equal_messages(each, asked), default=None)


def read_requests(folder: ResolvedPath, workspace: Workspace) -> dict[str, ReplayedCase]:
    """Read all files of a folder, by name.

    Raises:
        InputError: there are none, or one is invalid or takes too long to read.
    """
    found: dict[str, ReplayedCase] = {}
    for path in list_request_files(folder):
        own = workspace.resolve_given(path)
        name = workspace.display_path(path)
        if is_file(own.path):
            with limit_input(name):
                data = read_file(own, name=name, limit_bytes=MAX_RECORDING_BYTES)
                found[path.name] = ReplayedCase(parse_requests(data, file=name))
    if not found:
        message = f"no recorded requests in {workspace.display_path(folder.path)}"
        raise InputError.from_message(message, hint="record first, without --replay")
    return found


def make_key_variables(
    environ: Mapping[str, str], recorded: Mapping[str, ReplayedCase]
) -> dict[str, str]:
    """Make placeholders for the keys that are not set, and for the endpoint of Azure OpenAI.

    Args:
        recorded: what is replayed; Azure's variables are only added if it was called.
    """
    paths = (request.path for case in recorded.values() for request in case.requests)
    is_azure = any(path.startswith(AZURE_PATH) for path in paths)
    found = dict.fromkeys(_list_unset_keys(environ, AZURE_KEYS * is_azure), PLACEHOLDER_KEY)
    unset = (each for each in AZURE_VARIABLES * is_azure if not environ.get(each))
    return found | dict.fromkeys(unset, PLACEHOLDER_ENDPOINT)


def _list_unset_keys(
    environ: Mapping[str, str], more: tuple[tuple[str, ...], ...] = ()
) -> list[str]:
    return [
        names[0]
        for names in (*KEY_VARIABLES, *more)
        if not any(environ.get(name) for name in names)
    ]


def find_unset_keys(environ: Mapping[str, str], output: str) -> tuple[str, ...]:
    """Find the keys that a command may lack: those that it names, or all if none is set.

    Args:
        output: what the command printed.
    """
    unset = tuple(_list_unset_keys(environ))
    named = tuple(name for name in unset if name in output)
    return named or (unset if len(unset) == len(KEY_VARIABLES) else ())


def _unpack(request: ServerRequest) -> ServerRequest:
    encoding = request.get_header(_ENCODING)
    headers = {name: value for name, value in request.headers.items() if name.lower() != _ENCODING}
    return replace(request, body=decompress(request.body, encoding), headers=headers)


def _make_response(
    request: ServerRequest, api: ModelApi, path: str, body: JsonObject
) -> ServerResponse:
    asked = api.read_request(parse_body(request.body) or {}, path)
    if not asked.streamed:
        return make_json_response(HTTPStatus.OK, body)
    events = list(api.make_events(body))
    if api is gemini and "alt=sse" not in request.query:
        text, kind = json.dumps(events), "application/json"
    else:
        text, kind = api.format_events(events), "text/event-stream"
    content = text.encode()
    headers = {"Content-Type": kind}
    return ServerResponse(status=200, headers=headers, chunks=[content], length=len(content))


def _name_path(request: RecordedRequest) -> str:
    """Return method and path, equal with and without streaming and in all Vertex AI projects."""
    path = request.path.replace(":streamGenerateContent", ":generateContent")
    path = _PROJECT.sub("", path)
    return f"{request.method} {path}"


def make_request_key(request: RecordedRequest) -> str:
    """Return a key that is equal for equivalent requests."""
    neutral = json.dumps(_make_neutral(request.body), sort_keys=True)
    # A digest: a request repeats all messages of the one that it continues.
    return hashlib.sha256(f"{_name_path(request)} {neutral}".encode()).hexdigest()


def _make_neutral(body: JsonObject) -> JsonObject:
    """Return a body with ids numbered, and without fields that do not matter."""
    ids: dict[str, str] = {}
    content = {name: value for name, value in body.items() if name not in _IGNORED_FIELDS}
    if isinstance(contents := content.get("contents"), list):
        content["contents"] = gemini.join_contents(contents)
    neutral = _number_ids(content, ids)
    return neutral if isinstance(neutral, dict) else {}


def _number_ids(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, list):
        return [_number_ids(each, ids) for each in value]
    if not isinstance(value, Mapping):
        return value
    numbered: dict[str, Json] = {}
    for name, each in sorted(value.items()):
        if each is None:
            continue
        if name in _ID_FIELDS and isinstance(each, str):
            numbered[name] = ids.setdefault(each, f"#{len(ids) + 1}")
        else:
            numbered[name] = _number_ids(each, ids)
    return numbered


def _list_messages(request: RecordedRequest) -> tuple[str, list[Json]]:
    """Return the name of the field with messages, and the messages with ids numbered."""
    body = _make_neutral(request.body)
    for name in LIST_FIELDS:
        value = body.get(name)
        if value is not None:
            return name, value if isinstance(value, list) else [value]
    return "", []


def _count_equal_messages(one: RecordedRequest, other: RecordedRequest) -> tuple[int, int]:
    first, second = _list_messages(one)[1], _list_messages(other)[1]
    equal = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        equal += 1
    return equal, -abs(len(first) - len(second))


def _explain_miss(asked: RecordedRequest, case: ReplayedCase | None) -> str:
    if case is None:
        return "nothing was recorded for this case"
    closest = case.find_closest(asked)
    if closest is None:
        return f"no {_name_path(asked)} was recorded"
    name, old = _list_messages(closest)
    own_name, new = _list_messages(asked)
    differing = next(
        (i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None
    )
    if differing is not None and name == own_name:
        return _explain_difference(f"{name}[{differing}]", old[differing], new[differing])
    if len(old) != len(new):
        return f"it has {len(new)} {own_name}, recorded were {len(old)}"
    first, second = _make_neutral(closest.body), _make_neutral(asked.body)
    changed = [key for key in sorted({*first, *second}) if first.get(key) != second.get(key)]
    key = changed[0] if changed else "body"
    return _explain_difference(key, first.get(key), second.get(key))


def _explain_difference(place: str, old: Json, new: Json) -> str:
    """Describe the first difference of two values that differ."""
    for key, left, right in _list_differing(old, new):
        return _explain_difference(f"{place}{key}", left, right)
    start = _count_equal_characters(old, new)
    return f"{place} was {_show(old, start)}, is {_show(new, start)}"


def _list_differing(old: Json, new: Json) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                yield f".{key}", old.get(key), new.get(key)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (left, right) in enumerate(zip_longest(old, new)):
            if left != right:
                yield f"[{index}]", left, right


def _count_equal_characters(old: Json, new: Json) -> int:
    """Return where two long texts differ; 0 for other values."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return 0
    pairs = enumerate(zip(old, new, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))
    return max(0, first - MAX_SHOWN // 2)


def _show(value: Json, start: int) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str) and start:
        value = f"…{value[start:]}"
    return f"`{short(json.dumps(value, ensure_ascii=False), MAX_SHOWN)}`"
