"""Where a config takes recorded runs and the results of other tools from."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci.model.problem import Place


class RunSource(Struct, frozen=True, kw_only=True):
    """One entry of ``traces``.

    Attributes:
        path: path or glob as written.
        case: the eval case of its files, which may hold ``{stem}`` and ``{folder}``, or the eval
            cases by file name; None to find it by the question.
        where: patterns of the values of attributes that a trace must have; empty for all traces.
    """

    path: str
    case: str | Mapping[str, str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)


GateOn: TypeAlias = Literal["case", "metrics"]
DEFAULT_GATE_ON: Final[GateOn] = "case"


class MetricThreshold(Struct, frozen=True, kw_only=True):
    """What a score needs to pass, on the tool's own scale; exactly one of both is set.

    Attributes:
        threshold: the lowest score that passes.
        maximum: the highest score that passes, where lower scores are better.
    """

    threshold: float | None = None
    maximum: float | None = None

    @property
    def criterion(self) -> str:
        """The requirement as text."""
        if self.threshold is not None:
            return f"score >= {self.threshold:g}"
        return f"score <= {self.maximum:g}"

    def is_reached(self, score: float, tolerance: float = 1e-9) -> bool:
        """Whether a score passes; the tolerance allows for floating-point error."""
        if self.threshold is not None:
            return score >= self.threshold - tolerance
        return self.maximum is not None and score <= self.maximum + tolerance


class ResultsSource(Struct, frozen=True, kw_only=True):
    """One entry of ``results:``.

    Attributes:
        path: path or glob, as written.
        tool: the tool that wrote the files, or ``auto``.
        name: put before the names of metrics; may hold ``{stem}`` and ``{folder}``.
        gate_on: what fails the gate where a tool states verdicts on whole cases and on metrics.
        metrics: thresholds by the tool's name of the metric.
        expected_count: how many cases there must be at least; None for any number.
        expected_cases: the cases that there must be.
    """

    path: str
    tool: str = "auto"
    name: str = ""
    gate_on: GateOn = DEFAULT_GATE_ON
    metrics: Mapping[str, MetricThreshold] = field(default_factory=dict)
    expected_count: int | None = None
    expected_cases: tuple[str, ...] = ()
    place: Place
