"""One source of what is known of a span; a later one fills what the earlier ones leave open."""

from collections.abc import Mapping

from msgspec import Struct, field

from agentci.model.json import Json
from agentci.recordings.telemetry.message import Messages
from agentci.recordings.telemetry.span import nothing


class Layer(Struct, frozen=True, kw_only=True):
    """What one source says.

    Attributes:
        values: by current names of the conventions.
        input, output: messages to and from the model; empty where the source has none.
    """

    values: Mapping[str, Json] = field(default_factory=nothing)
    input: Messages = ()
    output: Messages = ()
