"""What the gate requires, how it differs from the base commit, and the comparison of results."""

from collections.abc import Mapping
from operator import add
from types import UnionType
from typing import Annotated, Final, Literal, TypeAlias, Union, get_args, get_origin

from msgspec import Meta, Struct, field
from msgspec.structs import astuple

from agentci.model.values import (
    MatchType,
    OnEmpty,
    OnError,
    OnLoosened,
    OnMissing,
    OnRemoved,
    OnSkip,
    OnTurnMismatch,
    PolicySource,
    RepeatAggregation,
    Share,
    TurnScore,
)

# Starts the name of what an entry of `results:` requires, before its path.
RESULTS_PREFIX: Final = "results "
# Limits of checks in milliseconds and US dollars; names of others are "max" or "max TOOL".
MAX_MS: Final = "max_ms"
MAX_USD: Final = "max_usd"

# An edited definition or expectation may be looser or stricter.
PolicyChangeKind: TypeAlias = Literal["loosened", "removed", "edited"]
# What of it reports look up in the results; empty for others.
PolicyKey: TypeAlias = Literal[
    "", "threshold", "maximum", "required", "min_pass_rate", "eval_cases"
]


class Comparability(Struct, frozen=True):
    """How a value of a policy is compared with that of the base commit; None is the loosest.

    A choice (``Literal``) needs no mark: its values start with the strictest.

    Attributes:
        stricter: which values are stricter: "higher" or "lower" numbers; "more" for a set with more
            members; "by mode" for lower numbers if the mode is to detect a drop and higher ones
            otherwise; "by part" for a value whose parts are compared; "neither" if it is not
            compared; "first" for a choice, which ``list_compared`` sets.
        pooled: whether it is a limit on a share, mean or number of a whole group: evaluators that
            set the value have a group of their own, and all others share one.
        choices: the values of a choice, strictest first; empty for other values.
    """

    stricter: Literal["higher", "lower", "more", "by mode", "by part", "neither", "first"]
    pooled: bool = False
    choices: tuple[str, ...] = ()

    @property
    def strictest_share(self) -> float:
        """The strictest value of a share: no check of a group may fail it."""
        return 0.0 if self.stricter == "lower" else 1.0


def list_compared(values: type[Struct]) -> Mapping[str, Comparability]:
    """List the fields of a policy that are compared, with how they are."""
    return {
        name: compared
        for name, hint in values.__annotations__.items()
        if (compared := _find_compared(hint))
    }


def _find_compared(hint: object) -> Comparability | None:
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return Comparability("first", choices=parts)
    if get_origin(hint) is Annotated:
        stated = next((each for each in parts[1:] if isinstance(each, Comparability)), None)
        return stated or _find_compared(parts[0])
    if get_origin(hint) in {Union, UnionType}:
        return next(filter(None, map(_find_compared, parts)), None)
    return None


def _about(description: str) -> Meta:
    """Describe a member of ``results.json``."""
    return Meta(description=description)


class EvaluatorSettings(Struct, frozen=True, kw_only=True):
    """What an evaluator requires of a case.

    Attributes:
        cases: ids of the cases of an eval file that it evaluates; empty for all cases.
        threshold: on the evaluator's own scale; None without one.
        maximum: the highest score that passes, where lower scores are better.
        criterion: the threshold as text.
        match_type, turn_score, on_turn_mismatch: None for evaluators without it.
        repeat, repeat_by: number of runs per case, and how they are combined.
        limits: of a check, by name; one that starts with ``min`` is a lower limit. ``MAX_MS`` and
            ``MAX_USD`` have a unit.
        definition: digest of everything else that the config states about the evaluator.
        values: of the same, as short texts by key, to show what was edited.
        code: digest of the files that it names, with the modules that they import; empty if it
            names none.
    """

    name: str
    cases: tuple[str, ...] = ()
    threshold: Annotated[float | None, Comparability("higher")]
    maximum: Annotated[float | None, Comparability("lower")] = None
    criterion: str
    required: bool
    weight: float = 1.0
    match_type: MatchType | None = None
    turn_score: TurnScore | None = None
    on_turn_mismatch: OnTurnMismatch | None = None
    repeat: Annotated[int, Comparability("higher")] = 1
    repeat_by: Annotated[RepeatAggregation, Comparability("neither")] = "majority"
    limits: Mapping[str, float] = field(default_factory=dict)
    definition: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    code: str = ""


class PolicyChange(Struct, frozen=True, kw_only=True):
    """One difference from the policy of the base commit, by which a check may pass more easily.

    Attributes:
        config: the config file, as shown to the user.
        subject: what changed: "threshold of tone", "3 eval cases".
        before, after: its values as text; ``before`` is empty if there is nothing to compare.
        names: the eval cases that it is about; empty for all, and for other subjects.
        fails: whether it fails the gate.
        key, evaluator: the setting and the evaluator, where the results show what it hides.
        value: of a threshold, the base's as a number.
        effect: what changed in eval cases; of other changes, what the results of the run show,
            which reports add.
    """

    config: str
    kind: PolicyChangeKind
    subject: str
    before: str = ""
    after: str
    names: tuple[str, ...] = ()
    fails: bool = False
    key: PolicyKey = ""
    evaluator: str = ""
    value: float | None = None
    effect: str = ""


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
# Whether the gate fails unless a larger drop is excluded, or if a larger drop is significant.
RegressionMode: TypeAlias = Literal["prove", "detect"]
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
# The status of a check in this run. If only the baseline has it, it is "unrecorded" where its eval
# case is only without a recorded run, else "removed".
ChangedStatus: TypeAlias = Literal[
    "passed", "failed", "errored", "skipped", "removed", "unrecorded"
]


class RegressionThresholds(Struct, frozen=True, kw_only=True):
    """How much worse than the baseline the run may be."""

    max_drop: Annotated[
        Share, Comparability("lower"), _about("Of the mean score of an evaluator.")
    ] = 0.0
    # That a larger drop is significant, or excluded.
    confidence: Annotated[float, Comparability("by mode"), Meta(ge=0, le=0.999)] = 0.95
    mode: RegressionMode = "detect"
    fail_on: Annotated[
        tuple[RegressionOutcome, ...], Comparability("more"), _about("Outcomes that fail the gate.")
    ] = ("fail",)


class CheckClasses(Struct, frozen=True):
    """The number of checks of two runs, by class; each check is in exactly one.

    Attributes:
        compared: passed or failed in both runs, evaluated in the same way.
        changed: in both runs, but evaluated in different ways (the fingerprints differ).
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
            evaluator's checks. If only the baseline has the evaluator, of its checks there.
        newly_failing: checks that fail now and did not in the baseline, or that only this run has.
        no_longer_evaluated: checks that passed in the baseline, and errored, were skipped, or are
            not in this run.
        lower_score: checks that pass in both runs with a lower score now.
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
        max_regression: the allowed drop; None if the config sets none.
        in_both: the number of checks that both runs evaluated, which reports show.
        both_before, both_after: their mean scores; None without any.
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
    lower_score: tuple[CheckChange, ...] = ()
    fixed: tuple[CheckChange, ...] = ()
    groups: int = 0
    change_low: float | None = None
    change_high: float | None = None
    detectable_drop: float | None = None
    adjusted_for: int = 1
    only_errors: bool = False
    max_regression: float | None = None
    in_both: int = 0
    both_before: float | None = None
    both_after: float | None = None

    @property
    def worse(self) -> tuple[CheckChange, ...]:
        """The checks that passed in the baseline and do not pass now, whatever their class."""
        passed = (each for each in self.newly_failing if each.status_before == "passed")
        return (*passed, *self.no_longer_evaluated)


class GateThresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of a set of checks."""

    min_pass_rate: Annotated[
        Share | None,
        Comparability("higher", pooled=True),
        _about("Null counts the checks toward the overall pass rate."),
    ] = 1.0
    # Has no effect on a rate of 0 or 1.
    pass_rate_confidence: Annotated[
        Share | None,
        Comparability("higher"),
        _about("Null compares only the pass rate of this run."),
    ] = None
    min_score: Annotated[Share | None, Comparability("higher", pooled=True)] = None
    on_error: OnError = "fail"
    # Also about recorded runs without an eval case.
    on_skip: OnSkip = "allow"
    on_empty: OnEmpty = "fail"
    on_turn_mismatch: OnTurnMismatch = "fail"


class CaseThresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of whole cases, each scored with the weighted mean of its checks' scores."""

    threshold: Annotated[Share, Comparability("higher")]
    min_pass_rate: Annotated[Share, Comparability("higher")] = 1.0
    pass_rate_confidence: Annotated[Share | None, Comparability("higher")] = None
    own: Annotated[
        Mapping[str, Share], Comparability("by part"), _about("Thresholds of single cases, by id.")
    ] = field(default_factory=dict)
    # `on_error` says whether an error fails the gate.
    errors_score: Annotated[
        Share | None,
        Comparability("neither"),
        _about("Score of an errored check in the mean; null if it is left out."),
    ] = None

    def find_threshold(self, case_id: str) -> float:
        """The score that a case needs to pass."""
        return self.own.get(case_id, self.threshold)


class GatePolicy(Struct, frozen=True, kw_only=True):
    """The `gate` of a config."""

    # Each applies to the checks of all evaluators together, except those that set it themselves.
    overall: Annotated[GateThresholds, Comparability("by part")] = field(
        default_factory=GateThresholds
    )
    evaluators: Annotated[Mapping[str, GateThresholds], Comparability("by part")] = field(
        default_factory=dict
    )
    cases: Annotated[
        CaseThresholds | None, Comparability("by part"), _about("Null if cases have no score.")
    ] = None
    regression: Annotated[
        RegressionThresholds | None,
        Comparability("by part"),
        _about("Null if the comparison with a baseline is only shown."),
    ] = None
    on_missing: Annotated[
        OnMissing, _about("Whether an eval case without a recorded run fails the gate.")
    ] = "fail"
    on_loosened: Annotated[
        OnLoosened, _about("Whether a policy looser than the base commit's fails the gate.")
    ] = "warn"
    source: Annotated[PolicySource, _about("Whose policy decides: `gate.policy`.")] = "head"
    on_removed: Annotated[
        OnRemoved, _about("Treatment of checks that passed in the baseline and are not in the run.")
    ] = "warn"


class Comparison(Struct, frozen=True, kw_only=True):
    """The comparison of a run with a baseline.

    Attributes:
        baseline: where it was found, as shown to the user.
        evaluators: those of this run in its order, then those that only the baseline has.
        classes: the number of all checks of both runs by class.
        removed_cases, unrecorded_cases: ids of the cases that only the baseline has; of eval cases
            that this run has, too, the latter.
        no_baseline: why there are no results to compare with; empty if there are.
        commit: commit of the baseline; empty if unknown.
        url: the page of the workflow run that made it; empty if unknown.
        branch: the branch or tag of that run; empty if unknown.
        stale: why the baseline may be of another commit than required; empty if it is not. Only a
            whole comparison is stale, never that of a single evaluator.
        rescored: number of checks of the baseline that were evaluated again, with the evaluators
            and eval cases of this run.
        rescored_from_results: of these, those whose recorded runs were kept in the results of the
            baseline, as its commit lacks them.
        not_rescored: why others were not, though they changed; empty if none is left.
        same_run: the run of another tool, if both results are from the same one; else empty.
        renamed_configs: by name of a config in the baseline, its name in this run.
        removed_policies: by config that only the baseline has, its policy there, which decides
            whether it may be removed.
    """

    baseline: str
    evaluators: tuple[EvaluatorComparison, ...] = ()
    classes: CheckClasses = CheckClasses()
    removed_cases: tuple[str, ...] = ()
    unrecorded_cases: tuple[str, ...] = ()
    no_baseline: str = ""
    commit: str = ""
    url: str = ""
    branch: str = ""
    stale: str = ""
    rescored: int = 0
    rescored_from_results: int = 0
    not_rescored: str = ""
    same_run: str = ""
    renamed_configs: Mapping[str, str] = field(default_factory=dict)
    removed_policies: Mapping[str, GatePolicy] = field(default_factory=dict)


def list_pooled(thresholds: type[Struct]) -> Mapping[str, Comparability]:
    """List the fields that are pooled, with how they are compared."""
    return {key: each for key, each in list_compared(thresholds).items() if each.pooled}


POOLED: Final = list_pooled(GateThresholds)


class Gate(Struct, frozen=True, kw_only=True):
    """The gate of one config, and what it covers.

    Attributes:
        config: the config file, as shown to the user.
        evaluators: names of the evaluators, in config order.
        uncovered: ids of the eval cases without a matching recorded run.
        missing: those of them that need one. An eval set that only options name may have others
            than the recorded runs, unless these have no eval case.
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
        inputs: other keys of the config that say what is read, and how, as text.
        case_values: of eval cases and dataset rows by id, their values as short texts by key, as
            far as there is room.
    """

    config: str
    policy: GatePolicy
    evaluators: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    settings: tuple[EvaluatorSettings, ...] = ()
    eval_cases: Mapping[str, str] = field(default_factory=dict)
    recorded_runs: int | None = None
    selection: Mapping[str, str] = field(default_factory=dict)
    case_names: Mapping[str, str] = field(default_factory=dict)
    trials: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    case_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
