"""Graders of one turn: text comparison, a Python function, or a formula over other graders."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from agentci._util.child_programs import GRADE_PATH
from agentci._util.text import truncate
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.templates import MissingPlaceholderError, fill_placeholders
from agentci.errors import EvaluatorError
from agentci.evaluators.grader_protocol import parse_grade
from agentci.evaluators.openai_eval.formula import Formula
from agentci.evaluators.similarity.measures import SIMILARITIES
from agentci.model.json import JsonObject
from agentci.model.judges import JudgeConfig
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    CompareEmbeddings,
    EmbeddingSimilarity,
    ProgramOutput,
    Response,
    RunProgram,
    Task,
)

# Of a text that is compared: two of them take seconds, and ten times as long ones minutes.
MAX_CHARACTERS: Final = 200_000
SHOWN_CHARACTERS: Final = 100

METEOR: Final = "meteor"


class TurnGrade(Struct, frozen=True, kw_only=True):
    """What a grader says of one turn.

    Attributes:
        score: 0 to 1.
        told: what was found, in words.
        details: what the reports show beside the score.
        reasoning: in the words of a model.
    """

    score: float
    summary: str
    details: JsonObject = field(default_factory=dict)
    reasoning: str = ""


class TurnGrader(Protocol):
    """How one turn is graded; a frozen value."""

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """What has to be done to grade ``row``.

        Raises:
            EvaluatorError: the row lacks what the grader reads.
        """
        ...

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Grade ``row`` by the replies to what was asked, in that order.

        Raises:
            EvaluatorError: it cannot be graded.
        """
        ...


class ComparisonGrader(Struct, frozen=True, kw_only=True):
    """What graders share that compare two texts, each made by a template."""

    input: str
    reference: str

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Nothing."""
        del row
        return ()

    def texts(self, row: JsonObject) -> tuple[str, str]:
        """Both texts.

        Raises:
            EvaluatorError: a template names what is not there, or a text is too long.
        """
        return fill_template(self.input, row), fill_template(self.reference, row)


class SimilarityGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``text_similarity``; ``metric`` is a name in the table of similarities."""

    metric: str

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Compare."""
        del replies
        mine, its = self.texts(row)
        score = SIMILARITIES[self.metric](mine, its)
        return TurnGrade(
            score=score,
            summary=f"{self.metric} {score:.2f}: expected {_quote(its)}, got {_quote(mine)}",
            details={
                "evaluation_metric": self.metric,
                **({"synonyms": False} if self.metric == METEOR else {}),
            },
        )


class StringCheckGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``string_check``; ``operation`` is one of ``OPERATIONS``."""

    operation: str

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Look whether it holds: 1, or else 0."""
        del replies
        mine, its = self.texts(row)
        holds, wanted = OPERATIONS[self.operation]
        return TurnGrade(
            score=float(holds(mine, its)),
            summary=f"{self.operation}: expected {wanted}{_quote(its)}, got {_quote(mine)}",
            details={"operation": self.operation},
        )


class CosineGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``text_similarity`` by embeddings: what points away counts as 0, and so does no text.

    Attributes:
        panel: whose model makes vectors of texts.
    """

    panel: JudgeConfig

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the embeddings compared; services take no empty text."""
        texts = self.texts(row)
        return (CompareEmbeddings(texts=texts, judge=self.panel),) if all(texts) else ()

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Take the cosine."""
        mine, its = self.texts(row)
        cosine = _read_cosine(replies[0]) if replies else 0.0
        note = " (counts as 0)" if cosine < 0 else "" if replies else " (a text is empty)"
        return TurnGrade(
            score=max(0.0, cosine),
            summary=f"cosine {cosine:.2f}{note}: expected {_quote(its)}, got {_quote(mine)}",
            details={
                "evaluation_metric": "cosine",
                "model": self.panel.settings.model,
                "cosine": cosine,
            },
        )


def _read_cosine(reply: Response) -> float:
    if not isinstance(reply, EmbeddingSimilarity):
        raise TypeError(f"embeddings were asked for, and {type(reply).__name__} came")
    return reply.cosine


def fill_template(template: str, row: JsonObject) -> str:
    """A template with the parts of ``row`` in it.

    Raises:
        EvaluatorError: it names what is not there, or comes to too long a text.
    """
    try:
        text = fill_placeholders(template, row)
    except MissingPlaceholderError as error:
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


def _quote(text: str) -> str:
    return truncate.quote_truncated(text, SHOWN_CHARACTERS)


FUNCTION_NAME: Final = "grade"
# As OpenAI runs them.
MEMORY_MB: Final = 2048
NETWORK: Final = False

# What calls the function.
GRADE_PROGRAM: Final = LocalProgram(path=GRADE_PATH)


class PythonGrader(Struct, frozen=True, kw_only=True):
    """The grader; ``source`` defines the function."""

    source: str
    timeout_seconds: float
    cached: bool = False

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the function called."""
        call = RunProgram(
            program=GRADE_PROGRAM,
            stdin=dumps_compact({"function": FUNCTION_NAME, "source": self.source, **row}),
            timeout_seconds=self.timeout_seconds,
            network=NETWORK,
            memory_mb=MEMORY_MB,
            cached=self.cached,
        )
        return (call,)

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Take what it returned.

        Raises:
            EvaluatorError: that is no score from 0 to 1, or nothing.
        """
        del row
        [reply] = replies
        if not isinstance(reply, ProgramOutput):
            raise TypeError(f"a function was called, and {type(reply).__name__} came")
        try:
            score = parse_grade(reply, network=NETWORK).score
        except EvaluatorError as error:
            raise EvaluatorError(f"{FUNCTION_NAME} {error}") from None
        if not 0 <= score <= 1:
            raise EvaluatorError(
                f"{FUNCTION_NAME} returned {format_number(score)}, not a score from 0 to 1"
            )
        return TurnGrade(score=score, summary=f"{FUNCTION_NAME} returned {score:.2f}")


# What sums of shares may miss their bounds by, as floats are no exact numbers.
TOLERANCE: Final = 1e-9


class MultiGrader(Struct, frozen=True, kw_only=True):
    """The grader; ``members`` has all the names of its formula."""

    members: Mapping[str, TurnGrader]
    formula: Formula

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """What its members ask, one after the other."""
        return tuple(task for each in self.members.values() for task in each.make_tasks(row))

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Compute the formula.

        Raises:
            EvaluatorError: a member cannot grade, or there is no score from 0 to 1.
        """
        grades = dict(self._grades(row, iter(replies)))
        scores = {name: each.score for name, each in grades.items()}
        score = self._value(scores)
        listed = ", ".join(f"{name} {each:.2f}" for name, each in scores.items())
        return TurnGrade(
            score=score,
            summary=f"{score:.2f} of {listed}",
            details={
                "scores": scores,
                "graders": {name: each.details for name, each in grades.items()},
            },
            reasoning="; ".join(
                f"{name}: {each.reasoning}" for name, each in grades.items() if each.reasoning
            ),
        )

    def _grades(
        self, row: JsonObject, replies: Iterator[Response]
    ) -> Iterator[tuple[str, TurnGrade]]:
        for name, member in self.members.items():
            own = [next(replies) for _ in member.make_tasks(row)]
            try:
                yield name, member.grade(row, own)
            except EvaluatorError as error:
                raise EvaluatorError(f"{name}: {error}") from None

    def _value(self, scores: Mapping[str, float]) -> float:
        try:
            value = self.formula.value(scores)
        except ValueError as error:
            raise EvaluatorError(f"no score comes of `{self.formula.text}`: {error}") from None
        if not -TOLERANCE <= value <= 1 + TOLERANCE:
            raise EvaluatorError(
                f"`{self.formula.text}` comes to {format_number(value)}, not to a score from 0 to 1"
            )
        return min(1.0, max(0.0, value))
