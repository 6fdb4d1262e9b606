"""``type: prompt``: a judge model that grades with the author's prompt template."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.child_programs import RENDER_PATH
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError
from agentci.evaluators.definition import Definition, Facts, define_repeat
from agentci.evaluators.evaluator import check_response
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.grader_protocol import make_item, make_sample, read_item_columns
from agentci.evaluators.judge_config import define_judge
from agentci.evaluators.program_output import format_log_tail, parse_output
from agentci.evaluators.prompts import make_question_from_template
from agentci.evaluators.pytest_agent_evals.entries import PromptEntry
from agentci.evaluators.pytest_agent_evals.prompt_template import (
    check_prompt_template,
    find_prompt_variables,
)
from agentci.evaluators.recorded_calls import check_tool_calls_recorded
from agentci.model.case import Case, Expectation
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.judges import AggregateVerdict, AskModel, RequiredJudge, ScoreSchema
from agentci.model.problem import Place
from agentci.model.program import LocalProgram
from agentci.model.requests import Compose, Prerequisite, ProgramOutput, Response, RunProgram
from agentci.model.values import replace

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
        names = find_prompt_variables(self.template) - RUN_VARIABLES
        return read_item_columns(expectation, names, expected=expected)

    def ask(self, case: Case) -> Compose:
        """Fill in the template, then send the prompt to the model.

        A Jinja2 template is code of its author, so a child program without network access renders
        it.

        Raises:
            EvaluatorError: the template reads tool calls, which were not recorded.
        """
        if TOOL_CALLS in find_prompt_variables(self.template):
            check_tool_calls_recorded(case.trace.turns)
        filled = RunProgram(
            program=LocalProgram(path=RENDER_PATH),
            stdin=dumps_compact(
                {"template": self.template, "variables": make_prompt_variables(case)}
            ),
            timeout_seconds=RENDER_SECONDS,
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
