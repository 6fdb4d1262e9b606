"""What a team asks of its agent before the gate opens."""

from collections.abc import Mapping

from msgspec import Struct, field

from agentci.model.choices import OnError, OnSkip, OnTurnMismatch
from agentci.model.comparison import RegressionBar


class Bar(Struct, frozen=True, kw_only=True):
    """The demands on a set of checks.

    Attributes:
        min_pass_rate: passed over passed and failed, 0 to 1; None for an evaluator whose checks
            count among those of all others.
        pass_rate_confidence: how sure it has to be that the pass rate of all cases like these is as
            high, 0 to 1; None asks it of this run alone. Of no effect on a rate of 0 or 1.
        min_score: mean over the checks that have a score, 0 to 1; None asks for nothing, or for
            an evaluator, counts it among the others.
        on_error: whether a check that could not be judged shuts the gate or only warns.
        on_skip: whether a check that had nothing to judge, or a golden case that no recording
            matched, shuts the gate.
        on_turn_mismatch: whether missing or unexpected turns fail a check whatever its score.
    """

    min_pass_rate: float | None = 1.0
    pass_rate_confidence: float | None = None
    min_score: float | None = None
    on_error: OnError = "fail"
    on_skip: OnSkip = "allow"
    on_turn_mismatch: OnTurnMismatch = "fail"


class CaseBar(Struct, frozen=True, kw_only=True):
    """The demands on whole cases, each with the weighted mean of its checks' scores.

    Attributes:
        threshold: score that a case has to reach to pass, 0 to 1.
        min_pass_rate: share of cases that have to pass.
        pass_rate_confidence: as in ``Bar``.
    """

    threshold: float
    min_pass_rate: float = 1.0
    pass_rate_confidence: float | None = None


class GatePolicy(Struct, frozen=True, kw_only=True):
    """The ``gate:`` of one config: a bar for all its checks, and bars for single evaluators.

    Attributes:
        overall: each of its demands holds over the checks of all evaluators together, save those
            that have such a demand of their own.
        evaluators: by name; what they say holds over that evaluator's checks alone.
        cases: None where cases are not looked at as a whole.
        regression: how much worse than a baseline it may be; None where a comparison only informs.
    """

    overall: Bar = field(default_factory=Bar)
    evaluators: Mapping[str, Bar] = field(default_factory=dict)
    cases: CaseBar | None = None
    regression: RegressionBar | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """The gate of one config, and what it is over.

    Attributes:
        config: the config file, as shown to the user.
        evaluators: names of those that judge, in the config's order.
        uncovered: how many golden cases no recording matched.
    """

    config: str
    policy: GatePolicy
    evaluators: tuple[str, ...]
    uncovered: int = 0
