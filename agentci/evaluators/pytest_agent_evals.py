"""Graders and prompts of pytest-agent-evals over the rows of a dataset.

``type: grader`` is a Python function, ``grade(sample, item)``, that returns a score;
``type: prompt`` is a judge model that grades with the author's prompt template.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import Field, WithJsonSchema, model_validator

from agentci._util.child_programs import RENDER_PATH
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.python_code import find_read_keys
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.code import (
    ParsedEvalResult,
    SandboxedEntry,
    make_program_identity,
    make_run_request,
    truncate_result,
    with_requirements,
)
from agentci.evaluators.evaluator import (
    Definition,
    Facts,
    check_response,
    check_tool_calls_recorded,
    define_entry,
    define_program,
    define_repeat,
    list_program_needs,
    list_unrecorded,
)
from agentci.evaluators.evaluator_type import EvaluatorContext, TextFile
from agentci.evaluators.fields import (
    Entry,
    GraderReference,
    RepeatableEntry,
    Seconds,
    Text,
    optional,
)
from agentci.evaluators.grader_protocol import (
    ITEM_POSITION,
    FunctionGrade,
    make_grade_arguments,
    make_item,
    make_sample,
    parse_grade,
    read_item_columns,
)
from agentci.evaluators.judge_config import JudgeSpec, define_judge
from agentci.evaluators.metrics import get_threshold
from agentci.evaluators.program_output import format_log_tail, parse_output
from agentci.evaluators.prompts import make_question_from_template
from agentci.model.case import Case, Expectation
from agentci.model.judges import AggregateVerdict, AskModel, RequiredJudge, ScoreSchema
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    Compose,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunProgram,
)
from agentci.model.values import Json, JsonObject, Place, replace

# The function name of OpenAI's graders and Foundry's evaluators.
DEFAULT_FUNCTION: Final = "grade"
# The timeout of OpenAI's graders.
GRADER_SECONDS: Final = 120


class GraderEntry(SandboxedEntry):
    """A Python function, `grade(sample, item)`, that returns a score."""

    type: Literal["grader"] = Field(description="A Python function that returns a score.")
    grader: GraderReference = Field(
        description="`FILE.py:FUNCTION`; default function: `grade`.",
        examples=["graders.py:is_short"],
    )
    timeout: Seconds = optional("Time limit in seconds.", default=GRADER_SECONDS)
    network: bool = optional("Whether it can use the network.", default=True)

    @property
    def file(self) -> str:
        """The part of ``grader`` before the colon."""
        return self.grader.partition(":")[0]

    @property
    def function(self) -> str:
        """The part of ``grader`` after the colon, or ``grade``."""
        return self.grader.partition(":")[2] or DEFAULT_FUNCTION


Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
# An integer stays an integer, since its default scale differs.
Threshold: TypeAlias = Annotated[
    bool | int | Number, WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "number"}]})
]


class PromptEntry(RepeatableEntry, Entry):
    """A prompt template with which a language model grades."""

    type: Literal["prompt"] = Field(description="A prompt for a language model.")
    prompt: Text = Field(
        description="The prompt, a Jinja2 template, or its file; see agentci's docs/graders.md.",
        examples=["relevance.md"],
    )
    threshold: Threshold = Field(
        examples=[3], description="Lowest passing number, or the passing value, `true` or `false`."
    )
    scale: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description=(
            "Lowest and highest number; default: `[0, 1]` if `threshold` is a decimal, else "
            "no scores."
        ),
        examples=[[1, 5]],
    )
    judge: JudgeSpec | None = optional("The judge model; default: the config's.")

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if self.scale is None:
            return self
        low, high = self.scale
        if isinstance(self.threshold, bool):
            raise ValueError("`scale` requires a numeric `threshold`")  # noqa: TRY004
        if not low < high or not low <= self.threshold <= high:
            raise ValueError("`scale` must be [lowest, highest] and include the `threshold`")
        return self


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
        return list_program_needs(self.identity, self.run, place=self.program_place)

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
        run=make_run_request(entry, program, network=entry.network),
        program_place=context.find_place("grader"),
    )


# Limits far above what a realistic prompt needs.
RENDER_SECONDS: Final = 10
RENDER_MB: Final = 256
# Fields of the sample that templates can use besides the columns of the row.
TOOL_CALLS: Final = "tool_calls"
SAMPLE_FIELDS: Final = (TOOL_CALLS, "tool_definitions")

RUN_VARIABLES: Final = frozenset({"response", *SAMPLE_FIELDS})

# A judge model's value, or the threshold for it.
JudgeValue: TypeAlias = bool | float

RESULT, REASON = "result", "reason"
UNBOUNDED: Final = (float("-inf"), float("inf"))


class PromptThreshold(Struct, frozen=True, kw_only=True):
    """What passes, and the scale of the judge model's values.

    Attributes:
        threshold: the passing boolean, or the lowest passing number.
        scale: the lowest and the highest allowed number; infinite if unknown.
    """

    threshold: JudgeValue
    scale: tuple[float, float] = UNBOUNDED

    @property
    def form(self) -> ScoreSchema:
        """The schema of the verdict."""
        if isinstance(self.threshold, bool):
            return ScoreSchema(kind="boolean", value_name=RESULT, reason_name=REASON)
        low, high = self.scale
        return ScoreSchema(value_name=RESULT, reason_name=REASON, low=low, high=high)

    @property
    def description(self) -> str:
        """The threshold in reports."""
        if isinstance(self.threshold, bool):
            return f"{RESULT} is {'true' if self.threshold else 'false'}"
        return f"{RESULT} >= {format_number(self.threshold)}"

    def is_passed_by(self, value: JudgeValue) -> bool:
        """Return whether ``value`` passes."""
        if isinstance(self.threshold, bool):
            return value is self.threshold
        return value >= self.threshold

    def score(self, value: JudgeValue) -> float | None:
        """Scale ``value`` to 0 to 1; None if the scale is unknown."""
        if isinstance(self.threshold, bool):
            return float(value is self.threshold)
        low, high = self.scale
        return (value - low) / (high - low) if self.form.is_bounded else None


def _find_variables(template: str) -> frozenset[str]:
    from agentci.evaluators.prompt_template import (  # noqa: PLC0415 (loads Jinja)
        find_prompt_variables,
    )

    return find_prompt_variables(template)


class PromptEvaluator(Struct, frozen=True, kw_only=True):
    """A prompt with which a judge model grades one case at a time."""

    identity: EvaluatorIdentity
    template: str
    prompt_threshold: PromptThreshold
    judge: RequiredJudge

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The judge model."""
        return (self.judge,)

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        unbounded = self.prompt_threshold.scale == UNBOUNDED
        return {
            "type": self.identity.type,
            "prompt": self.template,
            "threshold": self.prompt_threshold.threshold,
            "scale": None if unbounded else self.prompt_threshold.scale,
            "judge": define_judge(self.judge.judge),
            **define_repeat(self.identity),
        }

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the columns that the template reads, or the expected response."""
        expected = expectation.turns[-1] if expectation.turns else None
        names = _find_variables(self.template) - RUN_VARIABLES
        return read_item_columns(expectation, names, expected=expected)

    def ask(self, case: Case) -> Compose:
        """Fill in the template, then send the prompt to the model.

        A Jinja2 template is code of its author, so a child program without network access renders
        it.

        Raises:
            EvaluatorError: the template reads tool calls, which were not recorded.
        """
        if TOOL_CALLS in _find_variables(self.template):
            check_tool_calls_recorded(case.trace.turns)
        filled = RunProgram(
            program=LocalProgram(path=RENDER_PATH),
            stdin=dumps_compact(
                {"template": self.template, "variables": make_prompt_variables(case)}
            ),
            timeout_seconds=RENDER_SECONDS,
            timeout_hint="simplify the prompt template",
            network=False,
            memory_mb=RENDER_MB,
            # It is ours, and its response depends only on stdin.
            cached=True,
        )
        return Compose(parts=((self.identity.name, filled),), then=self._make_request)

    def read(self, response: Response) -> Judgement:
        """Make a judgement from the model's verdict."""
        verdict = check_response(response, AggregateVerdict)
        value = verdict.value
        if isinstance(value, str):
            raise TypeError(f"expected a number or a boolean, got the label {value}")
        return make_prompt_judgement(
            value, verdict.representative_verdict.reason, self.prompt_threshold
        )

    def _make_request(self, responses: Sequence[Response]) -> AskModel:
        [response] = responses
        try:
            template = parse_filled_template(check_response(response, ProgramOutput))
            prompt = make_question_from_template(*template, self.prompt_threshold.form)
        except EvaluatorError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}`: {error}") from None
        return AskModel(prompt=prompt, judge=self.judge.judge)


def make_prompt_variables(case: Case) -> JsonObject:
    """Return the template variables: the columns of the row and the recorded run."""
    sample = make_sample(case)
    return {
        **make_item(case),
        "response": sample["output_text"],
        **{name: sample[name] for name in SAMPLE_FIELDS},
    }


def parse_filled_template(response: ProgramOutput) -> tuple[str, list[tuple[str, str]]]:
    """Return a template with placeholders, and their names and values.

    Raises:
        EvaluatorError: the template could not be filled in.
    """
    if response.exit_code != 0:
        raise EvaluatorError(f"cannot fill the prompt template: {format_log_tail(response.stderr)}")
    match parse_output(response.stdout):
        case {"text": str(text), "values": list(values)} if all(map(_is_named_value, values)):
            return text, [(name, value) for name, value in values]
        case _:
            raise EvaluatorError("cannot fill the prompt template: it printed another result")


def _is_named_value(value: Json) -> bool:
    match value:
        case [str(), str()]:
            return True
        case _:
            return False


def make_prompt_judgement(
    value: JudgeValue, reason: str, prompt_threshold: PromptThreshold
) -> Judgement:
    """Make a judgement from a judge model's value."""
    passed = prompt_threshold.is_passed_by(value)
    said = str(value).lower() if isinstance(value, bool) else format_number(value)
    return Judgement(
        score=prompt_threshold.score(value),
        passed=passed,
        misses=()
        if passed
        else (f"the judge returned {said}, required: {prompt_threshold.description}",),
        reasoning=reason or None,
        details={RESULT: value},
    )


def build_prompt(entry: PromptEntry, context: EvaluatorContext) -> PromptEvaluator:
    """Make the evaluator.

    Raises:
        InputError: the prompt's file is missing, the template is invalid, or no judge model is
            configured.
    """
    from agentci.evaluators.prompt_template import (  # noqa: PLC0415 (loads Jinja)
        check_prompt_template,
    )

    prompt_threshold = make_prompt_threshold(entry.threshold, entry.scale)
    place = context.find_place("prompt")
    template = entry.prompt
    if is_prompt_path(template):
        file = context.read(template, "prompt")
        template, place = file.text, Place(file=file.name)
        check_prompt_template(template, place, line_counts=True)
    else:
        check_prompt_template(template, place)
    judge_place = context.find_place("judge" if entry.judge is not None else "type")
    evaluator = make_prompt_evaluator(
        template,
        prompt_threshold,
        place=context.place,
        judge=context.judges.require(entry.judge, name=entry.name, place=judge_place),
    )
    identity = replace(evaluator.identity, required=entry.required, repetition=entry.repetition)
    return replace(evaluator, identity=identity)


def make_prompt_evaluator(
    template: str, prompt_threshold: PromptThreshold, *, place: Place, judge: RequiredJudge
) -> PromptEvaluator:
    """Make the evaluator for ``template``, with the name in ``judge``."""
    return PromptEvaluator(
        identity=EvaluatorIdentity(
            name=judge.name,
            type="prompt",
            criterion=prompt_threshold.description,
            threshold=None
            if isinstance(prompt_threshold.threshold, bool)
            else prompt_threshold.score(prompt_threshold.threshold),
            required=True,
            place=place,
        ),
        template=template,
        prompt_threshold=prompt_threshold,
        judge=judge,
    )


def make_prompt_threshold(
    threshold: JudgeValue, scale: Sequence[float] | None = None
) -> PromptThreshold:
    """Make the threshold; the default scale is 0 to 1 for a fraction, else unknown."""
    if scale is not None:
        low, high = scale
        return PromptThreshold(threshold=threshold, scale=(low, high))
    is_share = isinstance(threshold, float) and 0 <= threshold <= 1
    return PromptThreshold(threshold=threshold, scale=(0.0, 1.0) if is_share else UNBOUNDED)


def is_prompt_path(prompt: str) -> bool:
    """Return whether a prompt is a path: one line without template syntax."""
    return "\n" not in prompt.strip() and "{{" not in prompt and "{%" not in prompt
