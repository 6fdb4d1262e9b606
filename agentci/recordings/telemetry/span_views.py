"""The views of all spans of a trace, with the log records that belong to them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agentci.model.values import replace
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.message_attributes import MAX_MESSAGES_CHARS, is_too_long
from agentci.recordings.telemetry.normalize import View, view
from agentci.recordings.telemetry.span import Event
from agentci.recordings.telemetry.span_kinds import kind_of
from agentci.recordings.telemetry.trace_tree import SpanTree


def views_of(tree: SpanTree) -> tuple[View, ...]:
    """A view of every span, in the order of the trace."""
    kinds = {span.id: kind_of(span) for span in tree.spans}
    calls = [span_id for span_id, kind in kinds.items() if kind == "inference"]
    logs = _logs(tree, calls)
    seen = tuple(view(span, kinds[span.id], logs.get(span.id, ())) for span in tree.spans)
    return seen if calls else tuple(map(_taken_for_a_call, seen))


def unread(tree: SpanTree) -> Iterator[str]:
    """What was too long to be read."""
    for span in tree.spans:
        for name in (semconv.INPUT, semconv.OUTPUT):
            if is_too_long(span.attributes.get(name)):
                size = MAX_MESSAGES_CHARS // 2**20
                yield f"span {span.id}: {name} is longer than {size} MiB and was not read"


def _logs(tree: SpanTree, calls: Sequence[str]) -> dict[str, list[Event]]:
    """The log records of each span; those that name none go to the only model call."""
    only_call = calls[0] if len(calls) == 1 else None
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for log in tree.logs:
        owner = only_call if log.span_id is None else log.span_id
        if owner is not None:
            found[owner].append(log.event)
    return found


def _taken_for_a_call(seen: View) -> View:
    """A span with a model and messages is a model call, in a trace where none says that it is.

    agentevals 0.11.0 wants an operation or a provider as well, and loses the answer.
    """
    has_model = bool(seen.span.attributes.get(semconv.REQUEST_MODEL))
    if seen.kind == "none" and has_model and (seen.input or seen.output):
        return replace(seen, kind="inference")
    return seen
