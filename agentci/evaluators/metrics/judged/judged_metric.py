"""What every metric is that asks a model: a question a turn, and what its answer is worth."""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.strict_json import readable
from agentci.errors import EvaluatorError
from agentci.model.json import Json, JsonObject
from agentci.model.judging import Question
from agentci.model.rubric import Rubric
from agentci.model.ruling import Ruling
from agentci.model.trace import Turn

NO_STEPS: Final = "No tools were used."


class Matter(Struct, frozen=True, kw_only=True):
    """What is judged of a turn.

    Attributes:
        golden: None for metrics that compare nothing.
        rubrics: what it has to fulfil, for metrics that go by that.
    """

    turn: Turn
    golden: Turn | None = None
    rubrics: tuple[Rubric, ...] = ()


class Grade(Struct, frozen=True, kw_only=True):
    """What a turn is worth.

    Attributes:
        score: 0 to 1.
        weight: how much it counts beside those of other turns.
        misses: what fell short, in words, one line each.
    """

    score: float
    weight: int = 1
    misses: tuple[str, ...] = ()


class JudgedMetric(Protocol):
    """A measure of what an agent did, taken by a model; a module is one."""

    @property
    def name(self) -> str:
        """What configs call it."""
        ...

    @property
    def needs_golden(self) -> bool:
        """Whether it compares, and so has nothing to say without golden turns."""
        ...

    @property
    def rubric_type(self) -> str:
        """ADK's type of the rubrics of golden cases that it goes by; empty where it needs none."""
        ...

    def question(self, matter: Matter, /) -> Question | None:
        """What is asked of a turn; None where there is nothing to judge."""
        ...

    def grade(self, ruling: Ruling, matter: Matter, /) -> Grade:
        """What the answer is worth.

        Raises:
            EvaluatorError: it leaves something out.
        """
        ...


def steps_of(turn: Turn) -> str:
    """The tools that a turn used and what they answered, as JSON."""
    answers = {each.call: each for each in reversed(turn.tool_responses) if each.call is not None}
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
        if each.call is None
    ]
    found: JsonObject = {"steps": [*steps, *loose]}
    return readable(found) if turn.tool_calls or loose else NO_STEPS


def require_all(ruling: Ruling, names: Sequence[str], noun: str) -> None:
    """See that a checklist has a mark for everything.

    Raises:
        EvaluatorError: it has not.
    """
    for name in names:
        if name not in ruling.values:
            raise EvaluatorError(f"the judge said nothing of {noun} {name}")


def final_text(turn: Turn) -> str:
    """The answer of a turn as ADK joins it: its parts, a line each."""
    return "\n".join(turn.answer_parts)
