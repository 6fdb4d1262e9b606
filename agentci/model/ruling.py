"""What a model's replies say: marks, verdicts, and what several of them come to."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from agentci.model.json import JsonObject
from agentci.model.judging import ModelReply

Value: TypeAlias = bool | float | str


class Mark(Struct, frozen=True, kw_only=True):
    """What one reply says of one thing.

    Attributes:
        reason: in the words of the model, which strangers may have put into its mouth.
    """

    value: Value
    reason: str = ""


class Verdict(Struct, frozen=True, kw_only=True):
    """What one reply says.

    Attributes:
        marks: by the names of its form; of a checklist the model may have left some out.
        reason, notes, details: as that of a mark; details are whatever else it wants to be shown.
    """

    marks: Mapping[str, Mark]
    reason: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    details: JsonObject = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Value]:
        """The marks without their reasons."""
        return {name: mark.value for name, mark in self.marks.items()}

    @property
    def value(self) -> Value:
        """The mark of a form that has one."""
        return only(self.values)


class Ruling(Struct, frozen=True, kw_only=True):
    """What all samples say together.

    Attributes:
        values: by the names of the form, what the samples come to.
        verdicts: in the order of asking.
        failures: why samples gave none.
        replies: what gave the verdicts, in their order.
        recorded: those of them that are of earlier runs.
    """

    values: Mapping[str, Value]
    verdicts: tuple[Verdict, ...]
    failures: tuple[str, ...] = ()
    replies: tuple[ModelReply, ...] = ()
    recorded: tuple[ModelReply, ...] = ()

    @property
    def value(self) -> Value:
        """The mark of a form that has one."""
        return only(self.values)

    @property
    def is_split(self) -> bool:
        """Whether not all verdicts are the same."""
        return any(each.values != self.verdicts[0].values for each in self.verdicts)

    @property
    def is_recorded(self) -> bool:
        """Whether no model was asked for it."""
        return len(self.recorded) == len(self.verdicts) and not self.failures

    @property
    def spokesman(self) -> Verdict:
        """The verdict that is nearest to what all say together, for its reasons."""
        return min(self.verdicts, key=self._distance)

    def mark(self, name: str) -> Mark:
        """The mark of one thing that is nearest to what all say of it, for its reason."""
        given = (verdict.marks[name] for verdict in self.verdicts if name in verdict.marks)
        return min(given, key=lambda mark: _distance(self.values[name], mark.value))

    def _distance(self, verdict: Verdict) -> float:
        return sum(
            _distance(value, verdict.values.get(name)) for name, value in self.values.items()
        )


def only(values: Mapping[str, Value]) -> Value:
    """The value, where there is one."""
    [value] = values.values()
    return value


def _distance(value: Value, other: Value | None) -> float:
    if isinstance(value, str) or isinstance(other, str) or other is None:
        return float(value != other)
    return abs(float(value) - float(other))
