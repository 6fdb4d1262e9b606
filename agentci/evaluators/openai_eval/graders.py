"""Graders of one turn: text comparison, a Python function, or a formula over other graders."""

import ast
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from agentci._util.child_programs import GRADE_PATH
from agentci._util.text import truncate
from agentci._util.text.change import quote_pair
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.suggest import join_with_or
from agentci._util.text.templates import MissingPlaceholderError, fill_placeholders
from agentci.errors import EvaluatorError
from agentci.evaluators.changed_facts import describe_changed_facts
from agentci.evaluators.evaluator import check_reads_recorded, check_response
from agentci.evaluators.grader_protocol import ITEM, SAMPLE, list_unrecorded_in_sample, parse_grade
from agentci.evaluators.prompts import make_question
from agentci.evaluators.similarity import SIMILARITIES
from agentci.model.judges import AggregateVerdict, AskModel, JudgeConfig, JudgePrompt, ScoreSchema
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    CHANGED_FACTS,
    CompareEmbeddings,
    EmbeddingSimilarity,
    ProgramOutput,
    Response,
    RunProgram,
    Task,
)
from agentci.model.values import JsonObject

MAX_FORMULA_CHARACTERS: Final = 2_000
MAX_DEPTH: Final = 50
MAX_SHOWN: Final = 40

_BINARY: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: math.pow,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[float], float]]] = {
    ast.UAdd: lambda a: a,
    ast.USub: lambda a: -a,
}
_UNARY_FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}
_VARIADIC_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {"min": min, "max": max}

# A number, a name, or a function with its operands.
_Term: TypeAlias = "float | str | tuple[Callable[..., float], tuple[_Term, ...]]"


class Formula(Struct, frozen=True, kw_only=True):
    """A parsed formula.

    Attributes:
        text: the formula as written.
        names: the names of the scores that it uses.
    """

    text: str
    names: frozenset[str]
    _term: _Term

    def value(self, scores: Mapping[str, float]) -> float:
        """Compute the formula with ``scores``, which must have all of ``names``.

        Raises:
            ValueError: the result is not a finite number; the message has the reason.
        """
        try:
            value = _evaluate_term(self._term, scores)
        except ZeroDivisionError:
            raise ValueError("division by zero") from None
        except (ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError("the result is not a finite number")
        return value


def parse_formula(text: str) -> Formula:
    """Parse a formula of numbers, names, ``+ - * / ^`` and eight functions.

    Raises:
        ValueError: the formula is invalid; the message has the reason.
    """
    if len(text) > MAX_FORMULA_CHARACTERS:
        raise ValueError(
            f"the formula has {len(text):,} characters; the limit is {MAX_FORMULA_CHARACTERS:,}"
        )
    source = text.strip().replace("^", "**")
    names: set[str] = set()
    try:
        term = _parse_term(_parse_expression(source), names, MAX_DEPTH)
    except _UnsupportedSyntaxError as error:
        part = truncate.short(ast.get_source_segment(source, error.node) or source, MAX_SHOWN)
        raise ValueError(f"unsupported expression `{part}` in the formula") from None
    return Formula(text=text, names=frozenset(names), _term=term)


class _UnsupportedSyntaxError(Exception):
    """Python syntax that formulas do not support."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node
        super().__init__()


def _parse_expression(source: str) -> ast.expr:
    try:
        with warnings.catch_warnings(action="ignore"):  # such as Python's style warnings
            return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            "invalid formula; write for example `0.5 * first + 0.5 * second`"
        ) from None


def _parse_term(node: ast.expr, names: set[str], levels: int) -> _Term:
    function: Callable[..., float]
    if not levels:
        raise ValueError(f"the formula is nested more than {MAX_DEPTH} levels deep")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _parse_number(value)
        case ast.Name(id=name):
            names.add(name)
            return name
        case ast.UnaryOp(op=sign) if type(sign) in _UNARY:
            operands, function = [node.operand], _UNARY[type(sign)]
        case ast.BinOp(op=operator) if type(operator) in _BINARY:
            operands, function = [node.left, node.right], _BINARY[type(operator)]
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]):
            function = _find_function(name, len(operands))
        case _:
            raise _UnsupportedSyntaxError(node)
    return function, tuple(_parse_term(each, names, levels - 1) for each in operands)


def _parse_number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number in the formula is too large") from None


def _find_function(name: str, arguments: int) -> Callable[..., float]:
    if name in _UNARY_FUNCTIONS and arguments == 1:
        return _UNARY_FUNCTIONS[name]
    if name in _VARIADIC_FUNCTIONS and arguments:
        return _VARIADIC_FUNCTIONS[name] if arguments > 1 else float
    if name in _UNARY_FUNCTIONS or name in _VARIADIC_FUNCTIONS:
        count = "one number" if name in _UNARY_FUNCTIONS else "at least one number"
        raise ValueError(f"`{name}` takes {count}")
    raise ValueError(
        f"unknown function `{name}` in the formula; the functions are "
        f"{', '.join((*_VARIADIC_FUNCTIONS, *_UNARY_FUNCTIONS))}"
    )


def _evaluate_term(term: _Term, scores: Mapping[str, float]) -> float:
    if isinstance(term, str):
        return scores[term]
    if isinstance(term, float):
        return term
    function, terms = term
    return float(function(*(_evaluate_term(each, scores) for each in terms)))


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

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Grade ``row`` with the responses to its tasks, in the same order.

        Raises:
            EvaluatorError: the row cannot be graded.
        """


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

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Compute the similarity."""
        del responses
        text, reference = self.texts(row)
        score = SIMILARITIES[self.metric](text, reference)
        return TurnGrade(
            score=score,
            summary=f"{self.metric} {score:.2f}: {_quote_sides(reference, text)}",
            details={
                "evaluation_metric": self.metric,
                **({"synonyms": False} if self.metric == METEOR else {}),
                **_compare_facts(text, reference),
            },
        )


class StringCheckGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``string_check``; ``operation`` is a key of ``OPERATIONS``."""

    operation: str

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Score 1 if the operation holds, else 0."""
        del responses
        text, reference = self.texts(row)
        holds, expected = OPERATIONS[self.operation]
        return TurnGrade(
            score=float(holds(text, reference)),
            summary=f"{self.operation}: {_quote_sides(reference, text, expected)}",
            details={"operation": self.operation},
        )


class CosineGrader(ComparisonGrader, frozen=True, kw_only=True):
    """``text_similarity`` by embeddings; a negative cosine or an empty text scores 0.

    Attributes:
        model: the model that makes embeddings.
    """

    model: JudgeConfig

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the embeddings compared, unless a text is empty, which services reject."""
        texts = self.texts(row)
        return (CompareEmbeddings(texts=texts, judge=self.model),) if all(texts) else ()

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Score the cosine."""
        text, reference = self.texts(row)
        cosine = check_response(responses[0], EmbeddingSimilarity).cosine if responses else 0.0
        note = " (counts as 0)" if cosine < 0 else "" if responses else " (a text is empty)"
        return TurnGrade(
            score=max(0.0, cosine),
            summary=f"cosine {cosine:.2f}{note}: {_quote_sides(reference, text)}",
            details={
                "evaluation_metric": "cosine",
                "model": self.model.settings.model,
                "cosine": cosine,
                **_compare_facts(text, reference),
            },
        )


def _compare_facts(text: str, reference: str) -> JsonObject:
    changed = describe_changed_facts(text, reference)
    return {CHANGED_FACTS: changed} if changed else {}


def fill_template(template: str, row: JsonObject) -> str:
    """Fill in a template with the values of ``row``.

    Raises:
        EvaluatorError: the template names a value that does not exist or was not recorded, or the
            text is too long.
    """
    try:
        text = fill_placeholders(template, row, show=_require_recorded)
    except MissingPlaceholderError as error:
        raise EvaluatorError(str(error)) from None
    if len(text) > MAX_CHARACTERS:
        raise EvaluatorError(
            f"the text has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}"
        )
    return text


# Parts of the sample that are null if they were not recorded.
_CALL_PARTS: Final = ("tool_calls", "output_tools", "output_items", "arguments")


def _require_recorded(path: str, text: str) -> str:
    """Return the text of a placeholder.

    Raises:
        EvaluatorError: it is of tool calls that were not recorded.
    """
    is_of_sample = path.startswith((SAMPLE, f"{ITEM}.{SAMPLE}"))
    if text == "null" and is_of_sample and path.rstrip('"]').endswith(_CALL_PARTS):
        raise EvaluatorError(f"the template uses `{path}`, which was not recorded")
    return text


# The test of input and reference, and a description of what is expected of the input.
OPERATIONS: Final[Mapping[str, tuple[Callable[[str, str], bool], str]]] = {
    "eq": (lambda text, reference: text == reference, ""),
    "ne": (lambda text, reference: text != reference, "any text except "),
    "like": (lambda text, reference: reference in text, "a text that contains "),
    "ilike": (
        lambda text, reference: reference.lower() in text.lower(),
        "a text that contains (ignoring case) ",
    ),
}


def _quote_sides(reference: str, text: str, relation: str = "") -> str:
    expected, got = quote_pair(reference, text, SHOWN_CHARACTERS)
    return f"expected {relation}{expected}, got {got}"


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
        """Have the function called.

        Raises:
            EvaluatorError: it reads what was not recorded.
        """
        try:
            check_reads_recorded((self.source,), list_unrecorded_in_sample(row[SAMPLE]))
        except EvaluatorError as error:
            raise EvaluatorError(f"`{FUNCTION_NAME}` {error}") from None
        call = RunProgram(
            program=GRADE_PROGRAM,
            stdin=dumps_compact({"function": FUNCTION_NAME, "source": self.source, **row}),
            timeout_seconds=self.timeout_seconds,
            network=NETWORK,
            memory_mb=MEMORY_MB,
            cached=self.cached,
        )
        return (call,)

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Read the returned score.

        Raises:
            EvaluatorError: the function failed or did not return a score from 0 to 1.
        """
        del row
        [response] = responses
        output = check_response(response, ProgramOutput)
        try:
            score = parse_grade(output, network=NETWORK).score
        except EvaluatorError as error:
            raise EvaluatorError(f"`{FUNCTION_NAME}` {error}") from None
        if not 0 <= score <= 1:
            raise EvaluatorError(
                f"`{FUNCTION_NAME}` returned score {format_number(score)}; it must be between 0"
                " and 1"
            )
        return TurnGrade(score=score, summary=f"`{FUNCTION_NAME}` returned score {score:.2f}")


# Rounding error by which sums of shares may exceed 0 to 1.
TOLERANCE: Final = 1e-9


class MultiGrader(Struct, frozen=True, kw_only=True):
    """``multi``; ``members`` has all names of the formula."""

    members: Mapping[str, TurnGrader]
    formula: Formula

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Return the tasks of all members, in order."""
        return tuple(task for each in self.members.values() for task in each.make_tasks(row))

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Compute the formula.

        Raises:
            EvaluatorError: a member cannot grade, or the result is not a score from 0 to 1.
        """
        grades = dict(self._grades(row, iter(responses)))
        scores = {name: each.score for name, each in grades.items()}
        score = self._value(scores)
        listed = ", ".join(f"{name} {each:.2f}" for name, each in scores.items())
        return TurnGrade(
            score=score,
            summary=f"score {score:.2f} from {listed}",
            details={
                "scores": scores,
                "graders": {name: each.details for name, each in grades.items()},
            },
            reasoning="; ".join(
                f"{name}: {each.reasoning}" for name, each in grades.items() if each.reasoning
            ),
        )

    def _grades(
        self, row: JsonObject, responses: Iterator[Response]
    ) -> Iterator[tuple[str, TurnGrade]]:
        for name, member in self.members.items():
            own = [next(responses) for _ in member.make_tasks(row)]
            try:
                yield name, member.grade(row, own)
            except EvaluatorError as error:
                raise EvaluatorError(f"{name}: {error}") from None

    def _value(self, scores: Mapping[str, float]) -> float:
        try:
            value = self.formula.value(scores)
        except ValueError as error:
            raise EvaluatorError(f"cannot compute `{self.formula.text}`: {error}") from None
        if not -TOLERANCE <= value <= 1 + TOLERANCE:
            raise EvaluatorError(
                f"the result of `{self.formula.text}` is {format_number(value)}; it must be between"
                " 0 and 1"
            )
        return min(1.0, max(0.0, value))


INSTRUCTIONS: Final = (
    "Grade the work of an AI agent as instructed in the messages below. [name] in a message refers"
    " to the text of that name, which is provided as data."
)


class GraderPrompt(Struct, frozen=True, kw_only=True):
    """The prompt of a model that grades.

    Attributes:
        messages: pairs of role and template.
    """

    messages: tuple[tuple[str, str], ...]

    def question(self, row: JsonObject, form: ScoreSchema) -> JudgePrompt:
        """Make the judge prompt: the config's text is instructions, placeholder values are data.

        Raises:
            EvaluatorError: a template names a value that does not exist or was not recorded.
        """
        names: dict[str, None] = {}

        def name(path: str, text: str) -> str:
            _require_recorded(path, text)
            names[path] = None
            return f"[{path}]"

        try:
            messages = [
                f"{role}: {fill_placeholders(text, row, show=name)}" for role, text in self.messages
            ]
        except MissingPlaceholderError as error:
            raise EvaluatorError(str(error)) from None
        template = "\n\n".join(f"{{{{ {path} }}}}" for path in names)
        return make_question("\n\n".join((INSTRUCTIONS, *messages)), template, row, form)


class LabelModelGrader(Struct, frozen=True, kw_only=True):
    """``label_model``: scores 1 for one of the ``passing`` labels, else 0."""

    prompt: GraderPrompt
    labels: tuple[str, ...]
    passing: tuple[str, ...]
    judge: JudgeConfig

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have a model choose a label."""
        form = ScoreSchema(kind="label", value_name="label", labels=self.labels)
        return (AskModel(prompt=self.prompt.question(row, form), judge=self.judge),)

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Score whether the label is a passing one."""
        del row
        verdict = _read_verdict(responses)
        label = str(verdict.value)
        return TurnGrade(
            score=float(label in self.passing),
            summary=f"label `{label}`; expected {join_with_or(self.passing)}",
            details={"label": label, **_format_votes(verdict)},
            reasoning=verdict.representative_verdict.reason,
        )


class ScoreModelGrader(Struct, frozen=True, kw_only=True):
    """``score_model``: a number from ``low`` to ``high``, scaled to 0 to 1."""

    prompt: GraderPrompt
    low: float
    high: float
    judge: JudgeConfig

    def make_tasks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have a model choose a number."""
        form = ScoreSchema(value_name="result", low=self.low, high=self.high)
        return (AskModel(prompt=self.prompt.question(row, form), judge=self.judge),)

    def grade(self, row: JsonObject, responses: Sequence[Response]) -> TurnGrade:
        """Scale the number to a score."""
        del row
        verdict = _read_verdict(responses)
        value = float(verdict.value)
        return TurnGrade(
            score=(value - self.low) / (self.high - self.low),
            summary=(
                f"{format_number(value)} on a scale of {format_number(self.low)} to"
                f" {format_number(self.high)}"
            ),
            details={"result": value, **_format_votes(verdict)},
            reasoning=verdict.representative_verdict.reason,
        )


def _read_verdict(responses: Sequence[Response]) -> AggregateVerdict:
    [response] = responses
    return check_response(response, AggregateVerdict)


def _format_votes(verdict: AggregateVerdict) -> JsonObject:
    """Return the value of every sample if they differ."""
    return {"votes": [each.value for each in verdict.verdicts]} if verdict.is_split else {}
