"""What a model that makes vectors of texts is asked, and what came of it."""

from msgspec import Struct

from agentci.model.judging import ModelReply, Panel, Question


class CompareEmbeddings(Struct, frozen=True, kw_only=True):
    """Have a model make a vector of each of two texts, and compare these.

    Attributes:
        texts: neither is empty.
        panel: its model is the one that makes vectors.
    """

    texts: tuple[str, str]
    panel: Panel

    @property
    def question(self) -> Question:
        """What is sent, as far as tokens are counted by it."""
        return Question(system="", user="".join(self.texts), form=None)


class Likeness(Struct, frozen=True, kw_only=True):
    """How alike the vectors are.

    Attributes:
        cosine: of the angle between them, -1 to 1.
        reply: it again, as it is kept for later runs, with the tokens that it took.
        is_recorded: whether it is of an earlier run.
    """

    cosine: float
    reply: ModelReply
    is_recorded: bool = False
