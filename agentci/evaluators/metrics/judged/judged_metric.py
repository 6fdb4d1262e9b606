"""The interface of a metric that a judge model scores, and functions that such metrics share.

Rubrics are scored as in ADK 2.13: each is fulfilled or not, by the majority of samples; the score
is the mean over all rubrics of all turns.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.json_text import dumps_readable
from agentci.errors import EvaluatorError
from agentci.evaluators.prompts.questions import make_question
from agentci.model.case import Rubric
from agentci.model.json import Json, JsonObject
from agentci.model.judges import AggregateVerdict, ChecklistSchema, JudgePrompt
from agentci.model.trace import Turn

NO_STEPS: Final = "No tools were used."


class JudgedTurn(Struct, frozen=True, kw_only=True):
    """A turn that a judge model scores.

    Attributes:
        golden: the expected turn; None for metrics that compare nothing.
        rubrics: the rubrics of the turn, for metrics that use them.
    """

    turn: Turn
    golden: Turn | None = None
    rubrics: tuple[Rubric, ...] = ()


class JudgedTurnScore(Struct, frozen=True, kw_only=True):
    """The score of a turn.

    Attributes:
        score: 0 to 1.
        weight: weight of the score in the mean over turns.
        misses: descriptions of failures, one line each.
    """

    score: float
    weight: int = 1
    misses: tuple[str, ...] = ()


class JudgedMetric(Protocol):
    """A score by a judge model; implemented by a module."""

    @property
    def name(self) -> str:
        """The name in configs."""
        ...

    @property
    def needs_expected(self) -> bool:
        """Whether it compares with expected turns, and so cannot run without them."""
        ...

    @property
    def rubric_type(self) -> str:
        """ADK's type of the eval cases' rubrics that it uses; empty if it needs none."""
        ...

    def question(self, matter: JudgedTurn, /) -> JudgePrompt | None:
        """Return the prompt about a turn; None if the metric does not apply to it."""
        ...

    def grade(self, ruling: AggregateVerdict, matter: JudgedTurn, /) -> JudgedTurnScore:
        """Score a turn by its verdict.

        Raises:
            EvaluatorError: if the verdict is incomplete.
        """
        ...


def format_steps(turn: Turn) -> str:
    """Format a turn's tool calls and responses as JSON."""
    answers = {
        each.call_index: each
        for each in reversed(turn.tool_responses)
        if each.call_index is not None
    }
    steps: list[Json] = []
    for number, call in enumerate(turn.tool_calls):
        step: dict[str, Json] = {"step": number, "tool": call.name, "args": call.args}
        if number in answers:
            step["answer"] = answers[number].output
            step["failed"] = answers[number].failed
        steps.append(step)
    loose: list[Json] = [
        {"tool": each.name, "answer": each.output, "failed": each.failed}
        for each in turn.tool_responses
        if each.call_index is None
    ]
    found: JsonObject = {"steps": [*steps, *loose]}
    return dumps_readable(found) if turn.tool_calls or loose else NO_STEPS


def check_all_marked(ruling: AggregateVerdict, names: Sequence[str], noun: str) -> None:
    """Check that a checklist's verdict covers every item.

    Raises:
        EvaluatorError: if an item is missing.
    """
    for name in names:
        if name not in ruling.values:
            raise EvaluatorError(f"the judge said nothing of {noun} {name}")


def final_text(turn: Turn) -> str:
    """Return the response of a turn as ADK joins it: one part per line."""
    return "\n".join(turn.answer_parts)


RUBRIC_INSTRUCTIONS: Final = """\
For every property say true where it is fulfilled, or where its condition does not apply; false \
where it applies and is not fulfilled, or where that cannot be told for sure.

The properties:
"""


def make_rubric_question(
    instructions: str, template: str, values: Mapping[str, str], matter: JudgedTurn
) -> JudgePrompt:
    """Make the prompt that asks which rubrics are fulfilled."""
    listed = "\n".join(f"- [{each.id}] {each.text}" for each in matter.rubrics)
    form = ChecklistSchema(names=tuple(each.id for each in matter.rubrics))
    return make_question(
        f"{instructions}\n{RUBRIC_INSTRUCTIONS}{listed}", template, dict(values), form
    )


def grade_rubrics(ruling: AggregateVerdict, matter: JudgedTurn) -> JudgedTurnScore:
    """Score a turn by the share of rubrics that are fulfilled; its weight is their number."""
    ids = [each.id for each in matter.rubrics]
    check_all_marked(ruling, ids, "the rubric")
    missed = [each for each in matter.rubrics if ruling.values[each.id] is not True]
    return JudgedTurnScore(
        score=1 - len(missed) / len(ids),
        weight=len(ids),
        misses=tuple(
            f"[{each.id}] {each.text}: {_find_rubric_reason(each, ruling)}" for each in missed
        ),
    )


def _find_rubric_reason(rubric: Rubric, ruling: AggregateVerdict) -> str:
    mark = ruling.representative_verdict.scores.get(rubric.id)
    return "not fulfilled" if mark is None or not mark.reason else mark.reason
