"""What readers of transcripts share: their interface, and values of fields of any type.

It checks, too, that no tool call of a message was left out, in whatever form it is.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from agentci._util.text.json_text import is_shallow
from agentci.model.trace import ModelStep, SubagentRun, TokenUsage, Turn
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import (
    MAX_DEPTH,
    iterate_objects,
    parse_finite_float,
    parse_int64,
    parse_nested_json,
)
from agentci.recordings.telemetry.messages import (
    TOOL_CALL,
    UNKNOWN,
    is_tool_call_reason,
    normalize_part,
    normalize_tool_calls,
)


class TranscriptRun(Struct, frozen=True, kw_only=True):
    """One run of an agent; None stands for what was not recorded.

    Attributes:
        id: the id of the session.
        line: number of the line where the run starts.
        eval_case_id: the eval case that the recording names.
        parent_id: the run that started this one as a sub-agent.
        child_ids: runs that this one started as sub-agents, with the ids of the tool calls.
        agent: name of the agent, to tell sub-agents apart.
        usage: tokens of the main agent.
        models: of the main agent, sorted.
        cost_usd: of the run with its sub-agents, in US dollars.
        failures: why the run did not end normally; empty if it did, or if the format does not
            record it.
        lost: signs that a tool call of the run was not recorded or not understood.
    """

    turns: tuple[Turn, ...]
    line: int
    id: str | None = None
    eval_case_id: str | None = None
    parent_id: str | None = None
    child_ids: Mapping[str, str | None] = {}
    agent: str | None = None
    subagents: tuple[SubagentRun, ...] = ()
    usage: TokenUsage | None = None
    models: tuple[str, ...] = ()
    cost_usd: float | None = None
    duration_ms: float | None = None
    failures: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class TranscriptReader(Struct, frozen=True, kw_only=True):
    """Reads one format.

    Attributes:
        recognises: whether a recording with this document, one of its first, has the format.
        read: reads the runs of a recording. Raises ``DocumentFormatError`` if its documents do not
            have the format.
    """

    recognises: Callable[[Json], bool]
    read: Callable[[Iterator[Document]], Iterator[TranscriptRun]]


Record: TypeAlias = tuple[JsonObject, int]


class RecordCollector(Protocol):
    """Collects the run of a file from its records."""

    def add(self, record: JsonObject) -> None:
        """Add a record, in the order of the file.

        Raises:
            DocumentFormatError: if it is invalid.
        """


C = TypeVar("C", bound=RecordCollector)

NO_FIELDS: Final[JsonObject] = {}
_TEXT_TYPES: Final = frozenset(
    {"text", "input_text", "output_text", "summary_text", "refusal", "Text", None}
)


def as_object(value: Json) -> JsonObject:
    """Return an object; other values become an empty one."""
    return value if isinstance(value, dict) else NO_FIELDS


def as_text(value: Json) -> str | None:
    """Return text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def find_text(fields: JsonObject, *names: str) -> str | None:
    """Return the first field that is text and not empty."""
    return next((text for name in names if (text := as_text(fields.get(name)))), None)


def join_text(content: Json) -> str | None:
    """Return the text of a content, parts joined by a line feed; None if it has no text.

    Args:
        content: text, or parts that are text or ``{"text": ...}``.
    """
    if isinstance(content, str):
        return content
    texts = list(iterate_texts(content))
    return "\n".join(texts) if texts else None


def iterate_texts(content: Json) -> Iterator[str]:
    """Iterate over the texts in a list of parts, or in one part."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and is_text_part(part):
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str):
                yield text


def is_text_part(part: JsonObject) -> bool:
    """Return whether a part of a content is text that its author wrote; thoughts are not."""
    kind = part.get("type")
    return (kind is None or isinstance(kind, str)) and kind in _TEXT_TYPES


def read_output(content: Json) -> Json:
    """Return the text of a tool result where it has text, else its JSON value."""
    if isinstance(content, list):
        text = join_text(content)
        return limit_depth(content) if text is None else text
    return limit_depth(content)


def parse_arguments(raw: Json) -> Json:
    """Return the arguments of a tool call: an object in a string is parsed, other text is kept."""
    if not isinstance(raw, str):
        return limit_depth(raw)
    if raw.strip() in ("", "null"):
        return {}
    try:
        value = parse_nested_json(raw)
    except ValueError:
        return raw
    return value if isinstance(value, dict | list) else raw


def limit_depth(value: Json) -> Json:
    """Return the value; None if it is nested too deeply to be used."""
    return value if isinstance(value, str) or is_shallow(value, MAX_DEPTH) else None


def iterate_records(documents: Iterable[Document]) -> Iterator[Record]:
    """Iterate over the objects of a file, one per line or in one list, with their lines."""
    for document in documents:
        if isinstance(document.value, dict):
            yield document.value, document.line
        else:
            for record in iterate_objects(document.value):
                yield record, document.line


def collect_records(documents: Iterable[Document], collector: RecordCollector) -> int:
    """Add the objects of a file to ``collector``, and return the line of the first.

    Raises:
        DocumentFormatError: if one is invalid, with its line.
    """
    [(_, first_line)] = collect_runs(documents, lambda: collector, lambda _: None) or [
        (collector, 1)
    ]
    return first_line


def collect_runs(
    documents: Iterable[Document],
    make_collector: Callable[[], C],
    find_start: Callable[[JsonObject], str | None],
) -> list[tuple[C, int]]:
    """Add the objects of a file to collectors, one for each run, with the lines of their starts.

    Args:
        find_start: the id of the run that a record starts; None for other records.

    Raises:
        DocumentFormatError: if one is invalid, with its line.
    """
    found: list[tuple[C, int]] = []
    current: str | None = None
    for record, line in iterate_records(documents):
        started = find_start(record)
        if not found or (started is not None and current not in (None, started)):
            found.append((make_collector(), line))
        current = started or current
        try:
            found[-1][0].add(record)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=line) from None
    return found


def iterate_first_objects(document: Json) -> Iterator[JsonObject]:
    """Iterate over what tells the format: the object itself, or the first ones of a list."""
    if isinstance(document, dict):
        yield document
    elif isinstance(document, list):
        yield from iterate_objects(document[:MAX_FIRST_OBJECTS])


MAX_FIRST_OBJECTS: Final = 100


class UsageSum:
    """Adds up tokens; replies that several records repeat count once."""

    def __init__(self) -> None:
        self._counts: dict[str | int, TokenUsage | None] = {}

    def add(self, key: str | None, given: Json, produced: Json, cached: Json = None) -> None:
        """Add the tokens of one reply, or replace those of the reply with this key."""
        counts = parse_finite_float(given), parse_finite_float(produced)
        own = len(self._counts) if key is None else key
        if counts[0] is not None and counts[1] is not None:
            self._counts[own] = TokenUsage(
                input=counts[0], output=counts[1], cached=parse_finite_float(cached)
            )
        else:
            self._counts.setdefault(own, None)

    @property
    def total(self) -> TokenUsage | None:
        """The sum; None if the tokens of a reply were not recorded."""
        known = [usage for usage in self._counts.values() if usage is not None]
        if not known or len(known) < len(self._counts):
            return None
        cached = [usage.cached for usage in known if usage.cached is not None]
        return TokenUsage(
            input=sum(usage.input for usage in known),
            output=sum(usage.output for usage in known),
            cached=sum(cached) if cached else None,
        )


def make_usage(given: Json, produced: Json, cached: Json = None) -> TokenUsage | None:
    """Return the tokens of a run; None if they were not recorded."""
    usage = UsageSum()
    usage.add(None, given, produced, cached)
    return usage.total


def make_step(
    model: Json = None,
    given: Json = None,
    produced: Json = None,
    cached: Json = None,
    cost: Json = None,
    *,
    cache_write: Json = None,
) -> ModelStep:
    """Return what is recorded of one reply of a model."""
    return ModelStep(
        model=as_text(model),
        input_tokens=parse_int64(given),
        output_tokens=parse_int64(produced),
        cached_tokens=parse_int64(cached),
        cache_write_tokens=parse_int64(cache_write),
        cost_usd=parse_cost(cost),
    )


def sum_costs(costs: Sequence[float | None]) -> float | None:
    """Add up the costs of replies; None if there are none, or one was not recorded."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def parse_cost(value: Json) -> float | None:
    """Return a cost, which may be written as text; None if it was not recorded."""
    cost = parse_finite_float(value)
    return cost if cost is not None and cost >= 0 else None


_CALL_LIST_KEYS: Final = ("tool_calls", "toolCalls", "invalid_tool_calls", "toolInvocations")
_CALL_KEYS: Final = ("function_call", "functionCall")
_CONTENT_KEYS: Final = ("content", "parts")
_USER_ROLES: Final = ("user", "human", "system", "developer", "tool")
_SPEAKERS: Final = ("user", "assistant")
_CALL_WORDS: Final = ("call", "tool", "function", "command", "exec", "invocation", "action")


def looks_like_call(kind: Json) -> bool:
    """Return whether the type of a record or part that is not known may be that of a tool call."""
    return isinstance(kind, str) and any(word in kind.lower() for word in _CALL_WORDS)


def check_message(message: JsonObject, names: Collection[str]) -> None:
    """Check that a message has no call that was not read, and no unknown part of the agent.

    Args:
        names: of the tool calls that were read.

    Raises:
        DocumentFormatError: it has one.
    """
    role = message.get("role", message.get("type"))
    by_user = role in _USER_ROLES
    if role in _SPEAKERS:
        _check_text(message.get("content"))
    for part in _list_parts(message):
        name = str(part.get("name"))
        if part["type"] == UNKNOWN and not by_user:
            raise DocumentFormatError(f"a {name}, which may be a tool call, is not read")
        if part["type"] == TOOL_CALL and name not in names:
            raise DocumentFormatError(f"the tool call `{name[:80]}` is in a form that is not read")
    if not names:
        check_finish_reason(message)


def _check_text(content: Json) -> None:
    """Check that the text of a message is where it is read.

    Raises:
        DocumentFormatError: it is not.
    """
    if isinstance(content, dict):
        keys = ", ".join(f"`{key[:40]}`" for key in [*content][:4])
        raise DocumentFormatError(f"a content that is an object with {keys} is not read")
    for part in iterate_objects(content):
        if part.get("type") == "text" and not isinstance(part.get("text", ""), str | None):
            message = "a part of type `text` whose `text` is not a string is not read"
            raise DocumentFormatError(message)


def check_finish_reason(ended: JsonObject) -> None:
    """Check that an answer without tool calls was not ended by one.

    Raises:
        DocumentFormatError: it was.
    """
    if is_tool_call_reason(reason := ended.get("finish_reason")):
        raise DocumentFormatError(f"the message ended with `{reason}` and holds no tool call")


def _list_parts(message: JsonObject) -> Iterator[JsonObject]:
    """List the parts of a message, and of the message inside the forms of LangChain."""
    for fields in (message, message.get("kwargs"), message.get("data")):
        if not isinstance(fields, dict):
            continue
        for key in _CONTENT_KEYS:
            content = fields.get(key)
            for part in content if isinstance(content, list) else ():
                yield from normalize_part(part)
        for key in _CALL_LIST_KEYS:
            yield from normalize_tool_calls(fields.get(key))
        for key in _CALL_KEYS:
            yield from normalize_tool_calls(list(iterate_objects([fields.get(key)])))
