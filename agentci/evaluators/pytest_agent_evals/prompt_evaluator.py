"""``type: prompt``: a language model that judges by a template of the author's own."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.child_programs import RENDER
from agentci._util.text.format import number
from agentci._util.text.strict_json import compact
from agentci.errors import EvaluatorError
from agentci.evaluators.grader_payload import item_of, sample_of
from agentci.evaluators.process_errors import last_lines
from agentci.evaluators.program_output import parse_output
from agentci.evaluators.prompts.prompts import pose_filled
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, Form, WantedPanel
from agentci.model.program import LocalProgram
from agentci.model.requests import Compose, Need, ProgramReply, Reply, RunProgram
from agentci.model.ruling import Ruling

# Far more than a prompt that anybody could pay for.
RENDER_SECONDS: Final = 10
RENDER_MB: Final = 256
# Of the sample, beside the columns of the row.
OF_SAMPLE: Final = ("tool_calls", "tool_definitions")

# What a judge says, and what it has to say.
Answer: TypeAlias = bool | float

RESULT, REASON = "result", "reason"
UNBOUNDED: Final = (float("-inf"), float("inf"))


class Bar(Struct, frozen=True, kw_only=True):
    """What passes, and on which scale the judge answers.

    Attributes:
        threshold: what the judge has to say, or the number from which on its own passes.
        scale: the lowest and the highest number that it may give; infinite where nobody knows.
    """

    threshold: Answer
    scale: tuple[float, float] = UNBOUNDED

    @property
    def form(self) -> Form:
        """What the judge is asked for."""
        if isinstance(self.threshold, bool):
            return Form(kind="boolean", value_name=RESULT, reason_name=REASON)
        low, high = self.scale
        return Form(value_name=RESULT, reason_name=REASON, low=low, high=high)

    @property
    def in_words(self) -> str:
        """For reports."""
        if isinstance(self.threshold, bool):
            return "true" if self.threshold else "false"
        return f"at least {number(self.threshold)}"

    def is_reached(self, value: Answer) -> bool:
        """Whether ``value`` passes."""
        if isinstance(self.threshold, bool):
            return value is self.threshold
        return value >= self.threshold

    def score(self, value: Answer) -> float | None:
        """Where ``value`` is between worst and best, 0 to 1; None where nobody knows these."""
        if isinstance(self.threshold, bool):
            return float(value is self.threshold)
        low, high = self.scale
        return (value - low) / (high - low) if self.form.is_bounded else None


class PromptEvaluator(Struct, frozen=True, kw_only=True):
    """A prompt by which a model judges one case at a time."""

    identity: Identity
    template: str
    bar: Bar
    wanted: WantedPanel

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who judges."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose:
        """Have the template filled, and the model asked by what comes of it.

        A template is a program of whoever wrote it, and so runs where programs run.
        """
        filled = RunProgram(
            program=LocalProgram(path=RENDER),
            stdin=compact({"template": self.template, "variables": variables_of(case)}),
            timeout_seconds=RENDER_SECONDS,
            network=False,
            memory_mb=RENDER_MB,
        )
        return Compose(parts=((self.identity.name, filled),), then=self._question)

    def read(self, reply: Reply) -> Judgement:
        """Judge by what the model said."""
        if not isinstance(reply, Ruling):
            raise TypeError(f"a model was asked, and {type(reply).__name__} came")
        value = reply.value
        if isinstance(value, str):
            raise TypeError("a label came, and none was asked for")
        return judgement_of(value, reply.spokesman.reason, self.bar)

    def _question(self, replies: Sequence[Reply]) -> AskModel:
        [reply] = replies
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a template was to be filled, and {type(reply).__name__} came")
        try:
            question = pose_filled(*filled(reply), self.bar.form)
        except EvaluatorError as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None
        return AskModel(question=question, panel=self.wanted.panel)


def variables_of(case: Case) -> JsonObject:
    """What a template can name: the columns of the row, and what the agent did."""
    sample = sample_of(case)
    return {
        **item_of(case),
        "response": sample["output_text"],
        **{name: sample[name] for name in OF_SAMPLE},
    }


def filled(reply: ProgramReply) -> tuple[str, list[tuple[str, str]]]:
    """A template with places for its values, and these.

    Raises:
        EvaluatorError: it could not be filled.
    """
    if reply.exit_code != 0:
        raise EvaluatorError(f"has a prompt that cannot be filled: {last_lines(reply.stderr)}")
    match parse_output(reply.stdout):
        case {"text": str(text), "values": list(values)}:
            return text, [(str(name), str(told)) for name, told in values]
        case other:
            raise TypeError(f"a filled template came as {other}")


def judgement_of(value: Answer, reason: str, bar: Bar) -> Judgement:
    """What a judge's answer comes to."""
    passed = bar.is_reached(value)
    said = str(value).lower() if isinstance(value, bool) else number(value)
    return Judgement(
        score=bar.score(value),
        passed=passed,
        misses=() if passed else (f"the judge said {said}, not {bar.in_words}",),
        reasoning=reason or None,
        details={RESULT: value},
    )
