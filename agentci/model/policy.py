"""What a team asks of its agent before the gate opens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentci.model.choices import OnError, OnSkip, OnTurnMismatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The demands on a set of checks.

    Attributes:
        min_pass_rate: passed over passed and failed, 0 to 1.
        min_score: mean over the checks that have a score, 0 to 1; None asks for nothing.
        on_error: whether a check that could not be judged shuts the gate or only warns.
        on_skip: whether a check that had nothing to judge, or a golden case that no recording
            matched, shuts the gate.
        on_turn_mismatch: whether missing or unexpected turns fail a check whatever its score.
    """

    min_pass_rate: float = 1.0
    min_score: float | None = None
    on_error: OnError = "fail"
    on_skip: OnSkip = "allow"
    on_turn_mismatch: OnTurnMismatch = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """The ``gate:`` of one config: a bar for all its checks, and bars for single evaluators.

    Attributes:
        overall: holds over all checks of evaluators that have no bar of their own.
        evaluators: by name; each holds over that evaluator's checks alone, and what it leaves
            unsaid is taken from ``overall``.
    """

    overall: Bar = field(default_factory=Bar)
    evaluators: Mapping[str, Bar] = field(default_factory=dict)
