"""What grades one turn: graders that compare two texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from agentci._util.text import truncate
from agentci._util.text.templates import MissingError, fill
from agentci.errors import EvaluatorError
from agentci.evaluators.similarity.registry import SIMILARITIES
from agentci.model.embedding import CompareEmbeddings, Likeness
from agentci.model.json import JsonObject
from agentci.model.judging import Panel
from agentci.model.requests import Reply, Task

# Of a text that is compared: two of them take seconds, and ten times as long ones minutes.
MAX_CHARACTERS: Final = 200_000
SHOWN_CHARACTERS: Final = 100

METEOR: Final = "meteor"


class Grade(Struct, frozen=True, kw_only=True):
    """What a grader says of one turn.

    Attributes:
        score: 0 to 1.
        told: what was found, in words.
        details: what the reports show beside the score.
        reasoning: in the words of a model.
    """

    score: float
    told: str
    details: JsonObject = field(default_factory=dict)
    reasoning: str = ""


class Grader(Protocol):
    """How one turn is graded; a frozen value."""

    def asks(self, row: JsonObject) -> tuple[Task, ...]:
        """What has to be done to grade ``row``.

        Raises:
            EvaluatorError: the row lacks what the grader reads.
        """
        ...

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Grade ``row`` by the replies to what was asked, in that order.

        Raises:
            EvaluatorError: it cannot be graded.
        """
        ...


class Comparing(Struct, frozen=True, kw_only=True):
    """What graders share that compare two texts, each made by a template."""

    input: str
    reference: str

    def asks(self, row: JsonObject) -> tuple[Task, ...]:
        """Nothing."""
        del row
        return ()

    def texts(self, row: JsonObject) -> tuple[str, str]:
        """Both texts.

        Raises:
            EvaluatorError: a template names what is not there, or a text is too long.
        """
        return filled(self.input, row), filled(self.reference, row)


class SimilarityGrader(Comparing, frozen=True, kw_only=True):
    """``text_similarity``; ``metric`` is a name in the table of similarities."""

    metric: str

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Compare."""
        del replies
        mine, its = self.texts(row)
        score = SIMILARITIES[self.metric](mine, its)
        return Grade(
            score=score,
            told=f"{self.metric} {score:.2f}: expected {_shown(its)}, got {_shown(mine)}",
            details={
                "evaluation_metric": self.metric,
                **({"synonyms": False} if self.metric == METEOR else {}),
            },
        )


class StringGrader(Comparing, frozen=True, kw_only=True):
    """``string_check``; ``operation`` is one of ``OPERATIONS``."""

    operation: str

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Look whether it holds: 1, or else 0."""
        del replies
        mine, its = self.texts(row)
        holds, wanted = OPERATIONS[self.operation]
        return Grade(
            score=float(holds(mine, its)),
            told=f"{self.operation}: expected {wanted}{_shown(its)}, got {_shown(mine)}",
            details={"operation": self.operation},
        )


class CosineGrader(Comparing, frozen=True, kw_only=True):
    """``text_similarity`` by embeddings: what points away counts as 0, and so does no text.

    Attributes:
        panel: whose model makes vectors of texts.
    """

    panel: Panel

    def asks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the embeddings compared; services take no empty text."""
        texts = self.texts(row)
        return (CompareEmbeddings(texts=texts, panel=self.panel),) if all(texts) else ()

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Take the cosine."""
        mine, its = self.texts(row)
        cosine = _cosine(replies[0]) if replies else 0.0
        note = " (counts as 0)" if cosine < 0 else "" if replies else " (a text is empty)"
        return Grade(
            score=max(0.0, cosine),
            told=f"cosine {cosine:.2f}{note}: expected {_shown(its)}, got {_shown(mine)}",
            details={
                "evaluation_metric": "cosine",
                "model": self.panel.settings.model,
                "cosine": cosine,
            },
        )


def _cosine(reply: Reply) -> float:
    if not isinstance(reply, Likeness):
        raise TypeError(f"embeddings were asked for, and {type(reply).__name__} came")
    return reply.cosine


def filled(template: str, row: JsonObject) -> str:
    """A template with the parts of ``row`` in it.

    Raises:
        EvaluatorError: it names what is not there, or comes to too long a text.
    """
    try:
        text = fill(template, row)
    except MissingError as error:
        raise EvaluatorError(str(error)) from None
    if len(text) > MAX_CHARACTERS:
        raise EvaluatorError(f"texts of more than {MAX_CHARACTERS:,} characters are not compared")
    return text


# Whether the input holds beside the reference, and what that makes of the reference in words.
OPERATIONS: Final[Mapping[str, tuple[Callable[[str, str], bool], str]]] = {
    "eq": (lambda mine, its: mine == its, ""),
    "ne": (lambda mine, its: mine != its, "anything but "),
    "like": (lambda mine, its: its in mine, "a text with "),
    "ilike": (lambda mine, its: its.lower() in mine.lower(), "a text with, in any case, "),
}


def _shown(text: str) -> str:
    return truncate.shown(text, SHOWN_CHARACTERS)
