"""What one convention says about a span."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from agentci.model.json import Json
from agentci.recordings.telemetry.messages import SpanMessages
from agentci.recordings.telemetry.spans import OperationKind, make_no_attributes


class SpanReading(Struct, frozen=True, kw_only=True):
    """What one source says about a span.

    Attributes:
        kind: None if the source does not say what the span is.
        values: by current names of the GenAI conventions.
        input, output: messages to and from the model or agent; empty if the source has none.
        failed: whether the source says that the tool failed.
    """

    kind: OperationKind | None = None
    values: Mapping[str, Json] = field(default_factory=make_no_attributes)
    input: SpanMessages = ()
    output: SpanMessages = ()
    failed: bool = False


def select_values(
    attributes: Mapping[str, Json], sources: Mapping[str, Sequence[str]]
) -> dict[str, Json]:
    """Return values by GenAI name, each from the first of its ``sources`` that is recorded."""
    return {
        name: attributes[source]
        for name, own in sources.items()
        for source in reversed(own)
        if attributes.get(source) is not None
    }
