"""``type: prompt``: a language model that judges by a prompt template of the author's own."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from jinja2 import Environment, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from msgspec import Struct

from agentci._util.child_programs import RENDER_PATH
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.grader_protocol import make_item, make_sample
from agentci.evaluators.program_output import format_log_tail, parse_output
from agentci.evaluators.prompts.questions import make_question_from_template
from agentci.evaluators.pytest_agent_evals.entries import PromptEntry
from agentci.model.case import Case
from agentci.model.json import JsonObject
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.judges import AggregateVerdict, AskModel, RequiredJudge, ScoreSchema
from agentci.model.problem import Place
from agentci.model.program import LocalProgram
from agentci.model.requests import Compose, Prerequisite, ProgramOutput, Response, RunProgram
from agentci.model.values import replace

# Far more than a prompt that anybody could pay for.
RENDER_SECONDS: Final = 10
RENDER_MB: Final = 256
# Of the sample, beside the columns of the row.
SAMPLE_FIELDS: Final = ("tool_calls", "tool_definitions")

# What a judge says, and what it has to say.
JudgeValue: TypeAlias = bool | float

RESULT, REASON = "result", "reason"
UNBOUNDED: Final = (float("-inf"), float("inf"))


class PromptThreshold(Struct, frozen=True, kw_only=True):
    """What passes, and on which scale the judge answers.

    Attributes:
        threshold: what the judge has to say, or the number from which on its own passes.
        scale: the lowest and the highest number that it may give; infinite where nobody knows.
    """

    threshold: JudgeValue
    scale: tuple[float, float] = UNBOUNDED

    @property
    def form(self) -> ScoreSchema:
        """What the judge is asked for."""
        if isinstance(self.threshold, bool):
            return ScoreSchema(kind="boolean", value_name=RESULT, reason_name=REASON)
        low, high = self.scale
        return ScoreSchema(value_name=RESULT, reason_name=REASON, low=low, high=high)

    @property
    def description(self) -> str:
        """For reports."""
        if isinstance(self.threshold, bool):
            return "true" if self.threshold else "false"
        return f"at least {format_number(self.threshold)}"

    def is_passed_by(self, value: JudgeValue) -> bool:
        """Whether ``value`` passes."""
        if isinstance(self.threshold, bool):
            return value is self.threshold
        return value >= self.threshold

    def score(self, value: JudgeValue) -> float | None:
        """Where ``value`` is between worst and best, 0 to 1; None where nobody knows these."""
        if isinstance(self.threshold, bool):
            return float(value is self.threshold)
        low, high = self.scale
        return (value - low) / (high - low) if self.form.is_bounded else None


class PromptEvaluator(Struct, frozen=True, kw_only=True):
    """A prompt by which a model judges one case at a time."""

    identity: EvaluatorIdentity
    template: str
    bar: PromptThreshold
    wanted: RequiredJudge

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Who judges."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose:
        """Have the template filled, and the model asked by what comes of it.

        A template is a program of whoever wrote it, and so runs where programs run.
        """
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
        return Compose(parts=((self.identity.name, filled),), then=self._question)

    def read(self, reply: Response) -> Judgement:
        """Judge by what the model said."""
        if not isinstance(reply, AggregateVerdict):
            raise TypeError(f"a model was asked, and {type(reply).__name__} came")
        value = reply.value
        if isinstance(value, str):
            raise TypeError("a label came, and none was asked for")
        return make_prompt_judgement(value, reply.representative_verdict.reason, self.bar)

    def _question(self, replies: Sequence[Response]) -> AskModel:
        [reply] = replies
        if not isinstance(reply, ProgramOutput):
            raise TypeError(f"a template was to be filled, and {type(reply).__name__} came")
        try:
            question = make_question_from_template(*parse_filled_template(reply), self.bar.form)
        except EvaluatorError as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None
        return AskModel(prompt=question, judge=self.wanted.judge)


def make_prompt_variables(case: Case) -> JsonObject:
    """What a template can name: the columns of the row, and what the agent did."""
    sample = make_sample(case)
    return {
        **make_item(case),
        "response": sample["output_text"],
        **{name: sample[name] for name in SAMPLE_FIELDS},
    }


def parse_filled_template(reply: ProgramOutput) -> tuple[str, list[tuple[str, str]]]:
    """A template with places for its values, and these.

    Raises:
        EvaluatorError: it could not be filled.
    """
    if reply.exit_code != 0:
        raise EvaluatorError(f"has a prompt that cannot be filled: {format_log_tail(reply.stderr)}")
    match parse_output(reply.stdout):
        case {"text": str(text), "values": list(values)}:
            return text, [(str(name), str(told)) for name, told in values]
        case other:
            raise TypeError(f"a filled template came as {other}")


def make_prompt_judgement(value: JudgeValue, reason: str, bar: PromptThreshold) -> Judgement:
    """What a judge's answer comes to."""
    passed = bar.is_passed_by(value)
    said = str(value).lower() if isinstance(value, bool) else format_number(value)
    return Judgement(
        score=bar.score(value),
        passed=passed,
        misses=() if passed else (f"the judge said {said}, not {bar.description}",),
        reasoning=reason or None,
        details={RESULT: value},
    )


def build_prompt(entry: PromptEntry, surroundings: EvaluatorContext) -> PromptEvaluator:
    """Make the evaluator.

    Raises:
        InputError: there is no such prompt, it is no template, or nobody said who judges.
    """
    bar = make_prompt_threshold(entry.threshold, entry.scale)
    place = surroundings.find_place("prompt")
    template = entry.prompt
    if is_prompt_path(template):
        file = surroundings.read(template, "prompt")
        template, place = file.text, Place(file=file.name)
        check_prompt_template(template, place, line_counts=True)
    else:
        check_prompt_template(template, place)
    judge_place = surroundings.find_place("judge" if entry.judge is not None else "type")
    evaluator = make_prompt_evaluator(
        template,
        bar,
        place=surroundings.place,
        wanted=RequiredJudge(
            judge=surroundings.judges.panel(entry.judge, judge_place),
            name=entry.name,
            place=judge_place,
        ),
    )
    identity = replace(evaluator.identity, required=entry.required, repetition=entry.repetition)
    return replace(evaluator, identity=identity)


def make_prompt_evaluator(
    template: str, bar: PromptThreshold, *, place: Place, wanted: RequiredJudge
) -> PromptEvaluator:
    """The evaluator that judges by ``template``, and has the name of the panel that it wants."""
    return PromptEvaluator(
        identity=EvaluatorIdentity(
            name=wanted.name,
            type="prompt",
            requirement=bar.description,
            threshold=None if isinstance(bar.threshold, bool) else bar.score(bar.threshold),
            required=True,
            place=place,
        ),
        template=template,
        bar=bar,
        wanted=wanted,
    )


def make_prompt_threshold(
    threshold: JudgeValue, scale: Sequence[float] | None = None
) -> PromptThreshold:
    """What has to be reached; a fraction is on a scale from 0 to 1 unless another is named."""
    if scale is not None:
        low, high = scale
        return PromptThreshold(threshold=threshold, scale=(low, high))
    is_share = isinstance(threshold, float) and 0 <= threshold <= 1
    return PromptThreshold(threshold=threshold, scale=(0.0, 1.0) if is_share else UNBOUNDED)


def is_prompt_path(prompt: str) -> bool:
    """Whether a prompt is named rather than written: one line that puts nothing in."""
    return "\n" not in prompt.strip() and "{{" not in prompt and "{%" not in prompt


def check_prompt_template(template: str, place: Place, *, line_counts: bool = False) -> None:
    """See whether a judge is shown anything by it.

    Args:
        place: where it stands.
        line_counts: whether that is all of a file.

    Raises:
        InputError: it is no template, or names no variable.
    """
    try:
        tree = Environment().parse(template)  # noqa: S701 (which escapes nothing: none is filled)
    except TemplateSyntaxError as error:
        at = Place(file=place.file, line=error.lineno) if line_counts else place
        where = "" if line_counts else f" on its line {error.lineno}"
        raise InputError.from_message(
            f"the prompt is no template{where}: {error.message}", place=at
        ) from None
    except RecursionError:
        raise InputError.from_message("the prompt is nested too deeply", place=place) from None
    if not find_undeclared_variables(tree):
        raise InputError.from_message(
            "the prompt names no variable: the judge would see nothing of the answer",
            place=place,
            hint="name what is judged, such as {{response}}",
        )
