"""Cases that bring their own question and expectations, as AgentV's eval files list them."""

from collections.abc import Mapping

from msgspec import Struct, field

from agentci.model.json import JsonObject
from agentci.model.place import Place


class Sample(Struct, frozen=True, kw_only=True):
    """What an agent was asked, and what a good answer does.

    Attributes:
        id: unique in its file.
        criteria: what a good answer does, in words; empty where the file does not say.
        input_messages: as they are written, shorthands written out.
        expected_messages: likewise, with the text of each file in the place of its reference.
        guideline_files, input_files: absolute paths of what the input messages refer to.
        input_texts: what those that are no guidelines say, by their names in the messages.
        metadata: the author's own.
        judge_template: how language models are asked about this case, where their entries do not
            say.
        place: the case in its file.
    """

    id: str
    criteria: str
    input_messages: tuple[JsonObject, ...]
    expected_messages: tuple[JsonObject, ...]
    place: Place
    guideline_files: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    input_texts: Mapping[str, str] = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    judge_template: str = ""
