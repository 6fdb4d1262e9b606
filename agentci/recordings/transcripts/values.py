"""Reads values of transcripts, which may have any type."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from agentci._util.text.json_text import is_shallow
from agentci.model.trace import ModelStep, TokenUsage
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document
from agentci.recordings.telemetry.json_input import (
    MAX_DEPTH,
    iterate_objects,
    parse_finite_float,
    parse_int64,
    parse_nested_json,
)
from agentci.recordings.trace_format import DocumentFormatError
from agentci.recordings.transcripts.transcript_run import Record, RecordCollector

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
