"""What the gate requires, how it differs from the base commit, and the comparison of results."""

from collections.abc import Mapping
from operator import add
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import astuple

from agentci.model.values import (
    MatchType,
    OnEmpty,
    OnError,
    OnLoosened,
    OnRemoved,
    OnSkip,
    OnTurnMismatch,
    PolicySource,
    RepeatAggregation,
)

# Starts the name of what an entry of `results:` requires, before its path.
RESULTS_PREFIX: Final = "results "

# An edited definition or expectation may be looser or stricter.
PolicyChangeKind: TypeAlias = Literal["loosened", "removed", "edited"]


class EvaluatorSettings(Struct, frozen=True, kw_only=True):
    """What an evaluator requires of a case.

    Attributes:
        cases: ids of the cases of an eval file that it evaluates; empty for all cases.
        threshold: on the evaluator's own scale; None without one.
        maximum: the highest score that passes, where lower scores are better.
        criterion: the threshold as text.
        match_type, on_turn_mismatch: None for evaluators without it.
        repeat, repeat_by: number of runs per case, and how they are combined.
        limits: of a check, by name; one that starts with ``min`` is a lower limit.
        definition: digest of everything else that the config states about the evaluator.
        code: digest of the files that it names, with the modules that they import; empty if it
            names none.
    """

    name: str
    cases: tuple[str, ...] = ()
    threshold: float | None
    maximum: float | None = None
    criterion: str
    required: bool
    weight: float = 1.0
    match_type: MatchType | None = None
    on_turn_mismatch: OnTurnMismatch | None = None
    repeat: int = 1
    repeat_by: RepeatAggregation = "majority"
    limits: Mapping[str, float] = field(default_factory=dict)
    definition: str = ""
    code: str = ""


class PolicyChange(Struct, frozen=True, kw_only=True):
    """One difference from the policy of the base commit, by which a check may pass more easily.

    Attributes:
        config: the config file, as shown to the user.
        subject: what changed: "threshold of tone", "3 eval cases".
        before, after: its values as text; ``before`` is empty if there is nothing to compare.
        names: the eval cases that it is about; empty for all, and for other subjects.
        fails: whether it fails the gate.
    """

    config: str
    kind: PolicyChangeKind
    subject: str
    before: str = ""
    after: str
    names: tuple[str, ...] = ()
    fails: bool = False


class PolicyComparison(Struct, frozen=True, kw_only=True):
    """The comparison of a run's policy with that of the base commit.

    Attributes:
        base: where the base's policy was found, as shown to the user.
        loosened: the differences that are not only stricter.
        decided_by_base: configs whose checks the base's policy decided.
        missing: what the base's policy requires and this run does not have, one sentence each; each
            fails the gate.
        unavailable: why the base's policy is unknown; empty if it is known.
        required: whether an unknown policy of the base fails the gate.
        notes: which parts were not compared, and why.
    """

    base: str
    loosened: tuple[PolicyChange, ...] = ()
    decided_by_base: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unavailable: str = ""
    required: bool = False
    notes: tuple[str, ...] = ()


ComparisonOutcome: TypeAlias = Literal[
    "pass", "fail", "inconclusive", "insufficient-data", "non-comparable", "stale"
]
# The outcomes that a config may let fail the gate; `no-baseline` is that of a whole comparison.
RegressionOutcome: TypeAlias = Literal[
    "fail", "inconclusive", "insufficient-data", "non-comparable", "no-baseline", "stale"
]
# Whether the gate fails if a larger drop is shown, or unless a larger drop is excluded.
RegressionMode: TypeAlias = Literal["detect", "prove"]
CheckClass: TypeAlias = Literal[
    "compared",
    "changed",
    "newly_skipped",
    "newly_errored",
    "newly_evaluated",
    "not_evaluated",
    "added",
    "removed",
]
StatusBefore: TypeAlias = Literal["passed", "failed", "errored", "skipped"]
# The status of a check in this run; "removed" if only the baseline has it.
ChangedStatus: TypeAlias = Literal["passed", "failed", "errored", "skipped", "removed"]


class RegressionThresholds(Struct, frozen=True, kw_only=True):
    """How much worse than the baseline a run may be.

    Attributes:
        max_drop: allowed drop of an evaluator's mean score over the checks of both runs, 0 to 1.
        confidence: confidence needed to call a larger drop significant, or to exclude it, from 0 to
            below 1.
        mode: ``detect`` fails if the drop is significantly larger than ``max_drop``; ``prove``
            passes only if a larger drop is excluded.
        fail_on: the outcomes that fail the gate.
    """

    max_drop: float = 0.0
    confidence: float = 0.95
    mode: RegressionMode = "detect"
    fail_on: tuple[RegressionOutcome, ...] = ("fail",)


class CheckClasses(Struct, frozen=True):
    """The number of checks of two runs, by class; each check is in exactly one.

    Attributes:
        compared: passed or failed in both runs, evaluated by the same.
        changed: in both runs, but what it is evaluated by changed (its fingerprint differs).
        newly_skipped, newly_errored: skipped or errored now, but not in the baseline.
        newly_evaluated: passed or failed now, but skipped or errored in the baseline.
        not_evaluated: skipped in both runs, or errored in both.
        added, removed: only in this run, or only in the baseline.
    """

    compared: int = 0
    changed: int = 0
    newly_skipped: int = 0
    newly_errored: int = 0
    newly_evaluated: int = 0
    not_evaluated: int = 0
    added: int = 0
    removed: int = 0

    def __add__(self, other: "CheckClasses") -> "CheckClasses":
        return CheckClasses(*map(add, astuple(self), astuple(other)))

    @property
    def total(self) -> int:
        """The number of checks of all classes."""
        return sum(astuple(self))


class CheckChange(Struct, frozen=True, kw_only=True):
    """A check that is not as in the baseline.

    Attributes:
        before, after: its scores; None for a run without one.
        status_before: in the baseline; None if only this run has it.
        status: in this run.
        check_class: its class in ``CheckClasses``.
        fails_before: whether it passed in the baseline, but not when that was evaluated again.
    """

    case: str
    before: float | None
    after: float | None
    status_before: StatusBefore | None
    status: ChangedStatus
    check_class: CheckClass = "compared"
    fails_before: bool = False


class EvaluatorComparison(Struct, frozen=True, kw_only=True):
    """The checks of one evaluator in both runs.

    Checks of other classes than ``compared`` take part in the test if any of them passed in only
    one run; each then has the score 1 if it passed and 0 otherwise.

    Attributes:
        config: the config file, as shown to the user.
        classes: the number of its checks by class.
        pairs: the number of checks that take part in the test.
        before, after: their mean scores; None without any, or if this run evaluated none of the
            evaluator's checks.
        newly_failing: checks that fail now and did not in the baseline, or that only this run has.
        no_longer_evaluated: checks that passed in the baseline, and errored, were skipped or are
            removed now.
        score_fell: checks that pass in both runs with a lower score now.
        fixed: compared checks that failed and now pass.
        p_value: of the drop beyond the allowed one; for required evaluators, adjusted for their
            number in the config by Holm's method; None if no test was made.
        adjusted_for: that number; 1 if it was not adjusted.
        reason: the outcome as text.
        groups: the number of independent groups of their cases.
        change_low, change_high: 95% confidence interval of the mean change of the score, within
            what ``before`` leaves possible; None for fewer than ten groups.
        detectable_drop: the drop that this comparison finds significant with a probability of 80%,
            0 to 1; None if no test was made.
        only_errors: whether only errors are a drop, which do not show that the agent got worse.
    """

    config: str
    evaluator: str
    required: bool
    classes: CheckClasses
    pairs: int
    before: float | None
    after: float | None
    p_value: float | None
    outcome: ComparisonOutcome
    reason: str
    newly_failing: tuple[CheckChange, ...] = ()
    no_longer_evaluated: tuple[CheckChange, ...] = ()
    score_fell: tuple[CheckChange, ...] = ()
    fixed: tuple[CheckChange, ...] = ()
    groups: int = 0
    change_low: float | None = None
    change_high: float | None = None
    detectable_drop: float | None = None
    adjusted_for: int = 1
    only_errors: bool = False

    @property
    def worse(self) -> tuple[CheckChange, ...]:
        """The checks that passed in the baseline and do not pass now, whatever their class."""
        passed = (each for each in self.newly_failing if each.status_before == "passed")
        return (*passed, *self.no_longer_evaluated)


class Comparison(Struct, frozen=True, kw_only=True):
    """The comparison of a run with a baseline.

    Attributes:
        baseline: where it was found, as shown to the user.
        evaluators: those of this run in its order, then those that only the baseline has.
        classes: the number of all checks of both runs by class.
        no_baseline: why there are no results to compare with; empty if there are.
        commit: commit of the baseline; empty if unknown.
        url: the page of the workflow run that made it; empty if unknown.
        stale: why the baseline may be of another commit than required; empty if it is not. Only a
            whole comparison is stale, never that of a single evaluator.
        rescored: number of checks of the baseline that were evaluated again, with the evaluators
            and eval cases of this run.
        rescored_from_results: of these, those whose recorded runs were kept in the results of the
            baseline, as its commit lacks them.
        not_rescored: why others were not, though they changed; empty if none is left.
        same_run: the run of another tool that both results are of; empty if they are of two.
        renamed_configs: by name of a config in the baseline, its name in this run.
    """

    baseline: str
    evaluators: tuple[EvaluatorComparison, ...] = ()
    classes: CheckClasses = CheckClasses()
    no_baseline: str = ""
    commit: str = ""
    url: str = ""
    stale: str = ""
    rescored: int = 0
    rescored_from_results: int = 0
    not_rescored: str = ""
    same_run: str = ""
    renamed_configs: Mapping[str, str] = field(default_factory=dict)


class GateThresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of a set of checks.

    Attributes:
        min_pass_rate: passed / (passed + failed), 0 to 1; None for an evaluator whose checks count
            toward the overall pass rate.
        pass_rate_confidence: confidence with which the pass rate of all cases like these must reach
            ``min_pass_rate``, 0 to 1; None compares only the rate of this run. Has no effect on a
            rate of 0 or 1.
        min_score: mean over the checks that have a score, 0 to 1; None for no threshold, or for an
            evaluator whose checks count toward the overall mean.
        on_error: whether an errored check fails the gate or only warns.
        on_skip: whether a skipped check, an eval case without a matching recorded run, or a
            recorded run without an eval case, fails the gate.
        on_empty: whether a required evaluator that evaluated no case fails the gate.
        on_turn_mismatch: whether missing or unexpected turns fail a check regardless of its score.
    """

    min_pass_rate: float | None = 1.0
    pass_rate_confidence: float | None = None
    min_score: float | None = None
    on_error: OnError = "fail"
    on_skip: OnSkip = "allow"
    on_empty: OnEmpty = "fail"
    on_turn_mismatch: OnTurnMismatch = "fail"


class CaseThresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of whole cases, each scored with the weighted mean of its checks' scores.

    Attributes:
        threshold: score that a case needs to pass, 0 to 1.
        min_pass_rate: share of cases that must pass.
        pass_rate_confidence: as in ``GateThresholds``.
        own: the thresholds of single cases, by case id.
        errors_score: score of an errored check in the mean; None to leave it out.
    """

    threshold: float
    min_pass_rate: float = 1.0
    pass_rate_confidence: float | None = None
    own: Mapping[str, float] = field(default_factory=dict)
    errors_score: float | None = None

    def find_threshold(self, case_id: str) -> float:
        """The score that a case needs to pass."""
        return self.own.get(case_id, self.threshold)


class GatePolicy(Struct, frozen=True, kw_only=True):
    """The ``gate:`` section of one config: overall thresholds and thresholds of single evaluators.

    Attributes:
        overall: each threshold applies to the checks of all evaluators together, except those of
            evaluators that set this threshold themselves.
        evaluators: by name; thresholds of that evaluator's checks only.
        cases: None if whole cases are not scored.
        regression: how much worse than a baseline a run may be; None if a comparison is only shown.
        on_loosened: whether a policy that is looser than the base commit's fails the gate.
        source: whose policy decides. As for ``on_loosened``, the base commit's value counts.
        on_removed: whether checks that passed in the baseline and are not in this run fail the
            gate, are reported as worse, or may be missing if their cases were removed too.
    """

    overall: GateThresholds = field(default_factory=GateThresholds)
    evaluators: Mapping[str, GateThresholds] = field(default_factory=dict)
    cases: CaseThresholds | None = None
    regression: RegressionThresholds | None = None
    on_loosened: OnLoosened = "warn"
    source: PolicySource = "head"
    on_removed: OnRemoved = "warn"


class Gate(Struct, frozen=True, kw_only=True):
    """The gate of one config, and what it covers.

    Attributes:
        config: the config file, as shown to the user.
        evaluators: names of the evaluators, in config order.
        uncovered: ids of the eval cases without a matching recorded run.
        unmatched: names of the recorded runs without an eval case, if there are eval cases.
        settings: what each evaluator requires.
        eval_cases: digest of each eval case or dataset row, by its id.
        recorded_runs: number of recorded runs; None for an eval file, whose cases count instead,
            and if the files are not known.
        selection: by path or glob of ``traces``, which traces are selected, as text; empty for all.
        case_names: by path or glob of ``traces``, the eval case of its files, as text; empty to
            find it by the question.
        trials: how often each case is run, and how the scores are combined, as text; empty for a
            single run.
    """

    config: str
    policy: GatePolicy
    evaluators: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    settings: tuple[EvaluatorSettings, ...] = ()
    eval_cases: Mapping[str, str] = field(default_factory=dict)
    recorded_runs: int | None = None
    selection: Mapping[str, str] = field(default_factory=dict)
    case_names: Mapping[str, str] = field(default_factory=dict)
    trials: str = ""
