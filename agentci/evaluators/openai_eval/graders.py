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

# Longest text to compare: two of this length take seconds, two of ten times the length minutes.
MAX_CHARACTERS: Final = 200_000
SHOWN_CHARACTERS: Final = 100

METEOR: Final = "meteor"


class TurnGrade(Struct, frozen=True, kw_only=True):
    """The grade of one turn.

    Attributes:
        score: 0 to 1.
        summary: the result in one line.
        details: values that reports show with the score.
        reasoning: a model's reasoning.
    """

    score: float
    summary: str
    details: JsonObject = field(default_factory=dict)
    reasoning: str = ""


class TurnGrader(Protocol):
    """How one turn is graded; a frozen value."""

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Return the tasks needed to grade ``row``.

        Raises:
            EvaluatorError: the row lacks a value that the grader reads.
        """
        ...

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Grade ``row`` with the responses to its tasks, in the same order.

        Raises:
            EvaluatorError: the row cannot be graded.
        """
        ...


class ComparisonGrader(Struct, frozen=True, kw_only=True):
    """The base of graders that compare two texts, each made from a template."""

    input: str
    reference: str

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Return no tasks."""
        del row
        return ()

    def texts(self, row: JsonObject) -> tuple[str, str]:
        """Return both texts.

        Raises:
            EvaluatorError: a template names a value that does not exist, or a text is too long.
        """
        return fill_template(self.input, row), fill_template(self.reference, row)


class SimilarityGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``text_similarity``; ``metric`` is a key of ``SIMILARITIES``."""

    metric: str

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Compute the similarity."""
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
    """``string_check``; ``operation`` is a key of ``OPERATIONS``."""

    operation: str

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Score 1 if the operation holds, else 0."""
        del replies
        mine, its = self.texts(row)
        holds, wanted = OPERATIONS[self.operation]
        return TurnGrade(
            score=float(holds(mine, its)),
            summary=f"{self.operation}: expected {wanted}{_quote(its)}, got {_quote(mine)}",
            details={"operation": self.operation},
        )


class CosineGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``text_similarity`` by embeddings; a negative cosine or an empty text scores 0.

    Attributes:
        panel: the model that makes embeddings.
    """

    panel: JudgeConfig

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the embeddings compared, unless a text is empty, which services reject."""
        texts = self.texts(row)
        return (CompareEmbeddings(texts=texts, judge=self.panel),) if all(texts) else ()

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Score the cosine."""
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


def _read_cosine(response: Response) -> float:
    if not isinstance(response, EmbeddingSimilarity):
        raise TypeError(f"embeddings were asked for, and {type(response).__name__} came")
    return response.cosine


def fill_template(template: str, row: JsonObject) -> str:
    """Fill in a template with the values of ``row``.

    Raises:
        EvaluatorError: the template names a value that does not exist, or the text is too long.
    """
    try:
        text = fill_placeholders(template, row)
    except MissingPlaceholderError as error:
        raise EvaluatorError(str(error)) from None
    if len(text) > MAX_CHARACTERS:
        raise EvaluatorError(f"texts of more than {MAX_CHARACTERS:,} characters are not compared")
    return text


# The test of input and reference, and a description of what is expected of the input.
OPERATIONS: Final[Mapping[str, tuple[Callable[[str, str], bool], str]]] = {
    "eq": (lambda mine, its: mine == its, ""),
    "ne": (lambda mine, its: mine != its, "anything but "),
    "like": (lambda mine, its: its in mine, "a text with "),
    "ilike": (lambda mine, its: its.lower() in mine.lower(), "a text with, in any case, "),
}


def _quote(text: str) -> str:
    return truncate.quote_truncated(text, SHOWN_CHARACTERS)


FUNCTION_NAME: Final = "grade"
# OpenAI's settings.
MEMORY_MB: Final = 2048
NETWORK: Final = False

# Calls the function.
GRADE_PROGRAM: Final = LocalProgram(path=GRADE_PATH)


class PythonGrader(Struct, frozen=True, kw_only=True):
    """``python``; ``source`` defines the function."""

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
        """Read the returned score.

        Raises:
            EvaluatorError: the function failed or did not return a score from 0 to 1.
        """
        del row
        [response] = replies
        if not isinstance(response, ProgramOutput):
            raise TypeError(f"a function was called, and {type(response).__name__} came")
        try:
            score = parse_grade(response, network=NETWORK).score
        except EvaluatorError as error:
            raise EvaluatorError(f"{FUNCTION_NAME} {error}") from None
        if not 0 <= score <= 1:
            raise EvaluatorError(
                f"{FUNCTION_NAME} returned {format_number(score)}, not a score from 0 to 1"
            )
        return TurnGrade(score=score, summary=f"{FUNCTION_NAME} returned {score:.2f}")


# Rounding error by which sums of shares may exceed 0 to 1.
TOLERANCE: Final = 1e-9


class MultiGrader(Struct, frozen=True, kw_only=True):
    """``multi``; ``members`` has all names of the formula."""

    members: Mapping[str, TurnGrader]
    formula: Formula

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Return the tasks of all members, in order."""
        return tuple(task for each in self.members.values() for task in each.make_tasks(row))

    def grade(self, row: JsonObject, replies: Sequence[Response]) -> TurnGrade:
        """Compute the formula.

        Raises:
            EvaluatorError: a member cannot grade, or the result is not a score from 0 to 1.
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
