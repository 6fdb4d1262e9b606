"""``type: grader``: a Python function, ``grade(sample, item)``, that returns a score."""

import re
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.python_code import find_read_keys
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.build import (
    make_program_identity,
    make_program_run,
    with_requirements,
)
from agentci.evaluators.agentevals.code import ParsedEvalResult, truncate_result
from agentci.evaluators.definition import Definition, Facts, define_entry, define_program
from agentci.evaluators.evaluator import check_response, find_required_variables
from agentci.evaluators.evaluator_type import EvaluatorContext, TextFile
from agentci.evaluators.grader_protocol import (
    ITEM_POSITION,
    FunctionGrade,
    make_grade_arguments,
    parse_grade,
    read_item_columns,
)
from agentci.evaluators.metrics.metric import get_threshold
from agentci.evaluators.pytest_agent_evals.entries import GraderEntry
from agentci.evaluators.recorded_calls import list_unrecorded
from agentci.model.case import Case, Expectation
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.program import RequiredProgram
from agentci.model.requests import Prerequisite, ProgramOutput, Response, RunProgram
from agentci.model.values import replace

_FUNCTION_DEFINITION: Final = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_STAR_IMPORT: Final = re.compile(r"^[ \t]*from\b.*\bimport[ \t]*\*", re.MULTILINE)


def check_function_exists(file: TextFile, name: str, place: Place) -> None:
    """Check that ``file`` mentions ``name`` or has a star import.

    A mention is enough, since the function may be imported or created dynamically.

    Raises:
        InputError: the file cannot have the function.
    """
    if re.search(rf"\b{name}\b", file.text) or _STAR_IMPORT.search(file.text):
        return
    known = _FUNCTION_DEFINITION.findall(file.text)
    raise InputError.from_message(
        f"no function {quote_name(name)} in {file.name}",
        place=place,
        hint=suggest_name(name, known)
        or (f"its functions are {', '.join(known)}" if known else None),
    )


REASON_FIELDS: Final = ("reason", "reasoning")


class GraderEvaluator(Struct, frozen=True, kw_only=True):
    """A function that grades one case per call, in its own process.

    Attributes:
        definition: see ``ComparableEvaluator``.
        function: the function's name in the file.
        columns: the keys of ``item`` that the function reads; None if it may read any.
        run: how the program is run, without its stdin.
        program_place: where the config names the program.
    """

    identity: EvaluatorIdentity
    definition: Definition
    function: str
    columns: frozenset[str] | None = None
    run: RunProgram
    program_place: Place

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The file with the function, and the variables that it may see."""
        name = self.identity.name
        program = RequiredProgram(program=self.run.program, name=name, place=self.program_place)
        return (program, *find_required_variables(self.identity, self.run))

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the columns that the function reads, or the expected response."""
        expected = expectation.turns[-1] if expectation.turns else None
        return read_item_columns(expectation, self.columns, expected=expected)

    def ask(self, case: Case) -> RunProgram:
        """Have the function called with the recorded run and the row of the case."""
        return replace(
            self.run,
            stdin=dumps_compact({"function": self.function, **make_grade_arguments(case)}),
            function=self.function,
            unrecorded=list_unrecorded(case.trace.turns),
        )

    def read(self, response: Response) -> Judgement:
        """Make a judgement from the returned score.

        Raises:
            EvaluatorError: the function failed or returned no score from 0 to 1; this does not
                count as 0.
        """
        output = check_response(response, ProgramOutput)
        try:
            grade = parse_grade(output, network=self.run.network, in_image=bool(self.run.image))
            return make_grade_judgement(grade, threshold=get_threshold(self.identity))
        except EvaluatorError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}` {error}") from None


def make_grade_judgement(grade: FunctionGrade, *, threshold: float) -> Judgement:
    """Make a judgement from a grade.

    Raises:
        EvaluatorError: the score is not from 0 to 1.
    """
    if not 0 <= grade.score <= 1:
        shown = format_number(grade.score)
        raise EvaluatorError(f"returned score {shown}; it must be between 0 and 1")
    result = ParsedEvalResult(score=grade.score, status=None, turn_scores=(), details=grade.details)
    details = truncate_result(result, size=grade.size, shown=REASON_FIELDS).details
    reasons = (details.get(name) for name in REASON_FIELDS)
    return Judgement(
        score=grade.score,
        passed=grade.score >= threshold,
        reasoning=next((each for each in reasons if isinstance(each, str) and each.strip()), None),
        details=details,
    )


def build_grader(entry: GraderEntry, context: EvaluatorContext) -> GraderEvaluator:
    """Make the evaluator; raises InputError if the function's file cannot be used."""
    program = with_requirements(context.locate(entry.file, "grader"), entry)
    file = context.read(entry.file, "grader")
    check_function_exists(file, entry.function, context.find_place("grader"))
    return GraderEvaluator(
        identity=make_program_identity(entry, context),
        definition=define_entry(entry, grader=define_program(program, function=entry.function)),
        function=entry.function,
        columns=find_read_keys(file.text, entry.function, ITEM_POSITION),
        run=make_program_run(entry, program, network=entry.network),
        program_place=context.find_place("grader"),
    )
