"""The criteria of rubrics, and what a judge said of each."""

from typing import Final

from msgspec import Struct

from agentci._util.text.format import number
from agentci.model.json import JsonObject
from agentci.model.ruling import Value

MOST: Final = 10
# From this share of the highest grade on a criterion is a hit.
GOOD: Final = 0.7


class Range(Struct, frozen=True, kw_only=True):
    """What grades from ``low`` to ``high`` mean, both included."""

    low: int
    high: int
    meaning: str


class Criterion(Struct, frozen=True, kw_only=True):
    """One item of rubrics.

    Attributes:
        required: whether the evaluator fails without it; None where its author does not say.
        least: share of the highest grade that it has to reach, where it is graded.
    """

    id: str
    text: str
    weight: float = 1.0
    required: bool | None = None
    least: float | None = None
    ranges: tuple[Range, ...] = ()

    @property
    def name(self) -> str:
        """How lines begin that are about it."""
        return f"[{self.id}]"

    def wanted(self, *, graded: bool) -> float | None:
        """The share that the evaluator fails without: by default, of one that is met or not, 1."""
        if not graded:
            return None if self.required is False else 1.0
        return self.least if self.least is not None else 1.0 if self.required else None

    def meaning(self, grade: float) -> str:
        """What a grade means; that of a mean, the one below."""
        found = (each.meaning for each in self.ranges if each.low <= int(grade) <= each.high)
        return next(found, "")


class Marked(Struct, frozen=True, kw_only=True):
    """A criterion with its mark.

    Attributes:
        value: whether it is met, or its grade.
        votes: how several samples judged.
    """

    criterion: Criterion
    value: Value
    reason: str
    votes: str | None

    @property
    def share(self) -> float:
        """How much of it is reached."""
        return float(self.value) / (1 if isinstance(self.value, bool) else MOST)

    @property
    def fails(self) -> bool:
        """Whether the evaluator fails for it."""
        wanted = self.criterion.wanted(graded=not isinstance(self.value, bool))
        return wanted is not None and self.share < wanted

    @property
    def is_hit(self) -> bool:
        """Whether it is well done."""
        return not self.fails and self.share >= GOOD

    @property
    def line(self) -> str:
        """What is said of it, as AgentV says it."""
        said = f"{self.criterion.name} {self.criterion.text}"
        if not isinstance(self.value, bool):
            grade = float(self.value)
            meaning = self.criterion.meaning(grade)
            said += f" - Score: {number(grade)}/{MOST}{f' ({meaning})' if meaning else ''}"
        return f"{said}: {self.reason}" if self.reason else said

    @property
    def details(self) -> JsonObject:
        """The same as data."""
        split: JsonObject = {} if self.votes is None else {"samples": self.votes}
        return {"satisfied" if isinstance(self.value, bool) else "score": self.value, **split}
