"""The format of ``results.json``: the types that are written and read, and their JSON Schema.

Keys of results that have a default here are left out if they have that value; all others are
required, and no others are read: reader and writer have the same version. The schema allows
more keys, since later versions may add some.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from msgspec import Meta, Struct, defstruct
from msgspec.json import schema_components

from agentci.gate.statistics import IntervalMethod
from agentci.model.case import RunChanges
from agentci.model.gate import (
    ChangedStatus,
    CheckClass,
    ComparisonOutcome,
    GatePolicy,
    PolicyChangeKind,
    PolicyKey,
)
from agentci.model.result import (
    MAX_SHARDS,
    CaseState,
    ContentLevel,
    CutCharacters,
    Status,
    SubagentContent,
    TrialStrategy,
    TurnContent,
)
from agentci.model.trace import Milliseconds, RunSpan, TokenTotals
from agentci.model.values import (
    BetterScores,
    ContentLimit,
    FailOn,
    JsonObject,
    MatchType,
    OnTurnMismatch,
    RepeatAggregation,
    Severity,
    Share,
    TurnScore,
)

# Larger numbers are rejected: their sum could overflow to infinity.
MAX_MAGNITUDE: Final = 10**9

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Ordinal: TypeAlias = Annotated[int, Meta(ge=1)]
Score: TypeAlias = Annotated[float, Meta(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_MAGNITUDE)]
# Python's "$" alone also matches before a final line break.
CheckId: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}(?!\n)$")]
Commit: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?(?!\n)$")]


def _about(description: str) -> Meta:
    """Describe a member in the JSON Schema."""
    return Meta(description=description)


class _Json(Struct, forbid_unknown_fields=True):
    """A JSON object of ``results.json``."""


class PlaceJson(_Json):
    """A position in a file."""

    file: str
    line: Ordinal
    column: Ordinal | None


class TrialJson(_Json):
    """The score of one run of a case."""

    attempt: Annotated[Count, _about("Counted from 0.")]
    score: float | None
    reason: Annotated[str | None, _about("Why the run has no score.")]


class TrialsJson(_Json):
    """The scores of all runs of a case."""

    strategy: TrialStrategy
    trials: Annotated[tuple[TrialJson, ...], Meta(min_length=1)]
    cost_limited: Annotated[bool, _about("Whether the cost limit prevented further runs.")]


class RepeatJson(_Json):
    """One of several results of an evaluator for the same case."""

    status: Status
    score: float | None
    reason: Annotated[str | None, _about("As `reason` of a result.")]


class RepeatsJson(_Json):
    """All results of an evaluator for the same case."""

    aggregation: Annotated[RepeatAggregation, _about("How the repeats are combined.")]
    flip_rate: Annotated[
        Share | None,
        _about(
            "Share of the repeats whose verdict differs from the majority's; null if one errored."
        ),
    ]
    repeats: Annotated[tuple[RepeatJson, ...], Meta(min_length=1)]


class BaselineResultJson(_Json):
    """The result of the same check in the baseline."""

    status: Status
    score: Score | None


class ResultJson(_Json, kw_only=True, omit_defaults=True):
    """The result of one check: one evaluator, one case."""

    id: Annotated[str, _about("Digest of config, case and evaluator; the same in every run.")]
    config: str
    case: Annotated[
        str, _about("Id of the eval case, else the session, first question or id of the run.")
    ]
    trace: Annotated[str, _about("Id of the trace.")]
    eval_case: Annotated[str | None, _about("Id of the eval case.")]
    file: Annotated[str, _about("The file of the recorded run.")]
    evaluator: str
    type: Annotated[str, _about("`type` of the evaluator in the config.")]
    status: Status
    score: Annotated[Score | None, _about("0 to 1; null if there is none.")]
    criterion: Annotated[str, _about("What the check needs to pass, such as `score >= 0.7`.")]
    threshold: Score | None
    better: Annotated[
        BetterScores,
        _about(
            "Which scores are better; `unknown` for a score of another tool without threshold and "
            "verdict, which is only shown and compared."
        ),
    ] = "higher"
    required: Annotated[
        bool, _about("False for an advisory evaluator, which never fails the gate.")
    ]
    weight: Annotated[Amount, _about("Weight of the score in the score of its case.")]
    turn_scores: tuple[float | None, ...]
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    reasoning: str | None
    details: Annotated[Mapping[str, Any], _about("Further values that the evaluator returned.")]
    reason: Annotated[
        str | None,
        _about(
            "Why the check errored or was skipped, or passed or failed regardless of its score."
        ),
    ]
    warnings: Annotated[tuple[str, ...], _about("Warnings about reading the recorded run.")] = ()
    seconds: float | None
    cached: bool
    unavailable: Annotated[
        bool,
        _about(
            "Skipped because the workflow has no secrets, as pull requests from forks, or because "
            "the run was replayed, so that its times were not measured."
        ),
    ] = False
    trials: Annotated[TrialsJson | None, _about("If the case was run several times.")] = None
    repeats: Annotated[RepeatsJson | None, _about("If the evaluator ran several times.")] = None
    fingerprint: Annotated[str, _about("Digest of what the evaluator reads besides the run.")]
    baseline: Annotated[
        BaselineResultJson | None, _about("The same check in the baseline, if it has it.")
    ] = None
    cut: CutCharacters = {}
    place: Annotated[PlaceJson, _about("The evaluator in the config.")]


Priced: TypeAlias = Annotated[
    bool, _about("Whether the cost is not recorded, but computed from `prices`.")
]


class BaselineRunJson(_Json, omit_defaults=True):
    """The run of the case in the baseline."""

    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None
    priced: Priced = False


class CaseJson(_Json, kw_only=True, omit_defaults=True):
    """A case that was evaluated."""

    id: str
    trace: Annotated[str, _about("Id of the trace.")]
    group: Annotated[
        str,
        _about(
            "Shared by cases that depend on each other, such as those of one "
            "conversation; else the id of the case."
        ),
    ]
    eval_case: Annotated[str | None, _about("Id of the eval case.")]
    unmatched_reason: Annotated[str | None, _about("Why there is no eval case.")]
    file: Annotated[str, _about("The file of the recorded run.")]
    line: Annotated[Ordinal, _about("Of the recorded run in its file, if known; else 1.")] = 1
    eval_case_place: Annotated[
        PlaceJson | None, _about("The eval case, the case of an eval file or the dataset row.")
    ] = None
    state: Annotated[CaseState | None, _about("Against the baseline; absent without one.")] = None
    answer_changed: Annotated[
        bool | None, _about("Whether a final answer differs from the baseline's, if known.")
    ] = None
    changes: Annotated[
        RunChanges | None, _about("Against the baseline; absent if the runs are not compared.")
    ] = None
    content: Annotated[
        ContentLevel,
        _about(
            "How much: `full`, `without_results` of tools, steps and sub-agents; an `excerpt` of "
            "questions and answers; or no text."
        ),
    ] = "full"
    latency_ms: Annotated[Milliseconds | None, _about("Of all turns.")] = None
    tokens: TokenTotals | None = None
    cost_usd: Annotated[Amount | None, _about("Of the agent.")] = None
    priced: Priced = False
    baseline: BaselineRunJson | None = None
    turn_count: Annotated[Count, _about("Number of recorded turns.")]
    turns: tuple[TurnContent, ...]
    subagents: tuple[SubagentContent, ...] = ()
    spans: tuple[RunSpan, ...] = ()
    baseline_spans: Annotated[
        tuple[RunSpan, ...],
        _about("Steps that only the baseline has; `start_ms` places them in this run."),
    ] = ()
    columns: Annotated[
        Mapping[str, Any], _about("Columns of the dataset row, without output of the agent.")
    ] = {}
    tags: Annotated[
        tuple[str, ...], _about("Of the case: `tags` of an eval file or a dataset.")
    ] = ()
    cluster: Annotated[
        Count | None,
        _about("Cases with the same number fail for the same cause; absent if none fails."),
    ] = None
    cut: CutCharacters = {}
    redacted: Annotated[bool, _about("Whether secrets were replaced by `***`.")] = False
    warnings: Annotated[tuple[str, ...], _about("Warnings about reading the recorded run.")]
    performance: Annotated[Mapping[str, Any] | None, _about("Recorded latency, tokens and counts.")]
    printed: Annotated[
        str | None,
        _about(
            "Lines that the recorded command printed to stdout, without logs; `{answer}` stands "
            "for texts of the model."
        ),
    ] = None
    run: Annotated[
        str,
        _about("Digest of what was recorded, or the tool's name; equal texts mean the same run."),
    ]

    def __post_init__(self) -> None:
        if self.turn_count != sum(not turn.missing for turn in self.turns):
            raise ValueError("`turn_count` is not the number of recorded `turns`")


class ContentJson(_Json):
    """How much of the recorded runs the report keeps."""

    limit: Annotated[ContentLimit, _about("The option `content`.")]
    full: Annotated[Count, _about("Number of cases that are kept in full.")]
    without_results: Annotated[
        Count, _about("Without results of tools, steps and sub-agents, as the file has a budget.")
    ]
    excerpt: Annotated[Count, _about("Only the start of questions and answers.")]
    none: Annotated[Count, _about("Without text.")]


class PullRequestJson(_Json):
    """The pull request that the run is for."""

    number: Ordinal
    title: str
    url: str


class RunJson(_Json, omit_defaults=True):
    """The workflow run that wrote the report."""

    repository: Annotated[str, _about("`OWNER/NAME`.")] = ""
    branch: Annotated[str, _about("Branch or tag.")] = ""
    url: Annotated[str, _about("The page of the run.")] = ""
    date: Annotated[str, _about("When its event happened, in ISO 8601.")] = ""
    pull_request: PullRequestJson | None = None


class PercentilesJson(_Json):
    """Percentiles over cases, between the nearest two values in proportion."""

    p50: Milliseconds
    p95: Milliseconds


class RunAmountsJson(_Json, omit_defaults=True):
    """Latency, tokens and cost of the recorded runs, of those that recorded them."""

    cases: Annotated[Count, _about("Number of cases with any of these.")]
    latency_ms: PercentilesJson | None = None
    tokens: TokenTotals | None = None
    cost_usd: Annotated[Amount | None, _about("Of the agent.")] = None
    latency_cases: Annotated[Count, _about("Number of cases with a latency.")] = 0
    token_cases: Count = 0
    cost_cases: Count = 0
    priced_cases: Annotated[Count, _about("Number of cases whose cost is by `prices`.")] = 0


class MetricsJson(_Json, kw_only=True):
    """Latency, tokens and cost of all recorded runs, and their change."""

    run: Annotated[RunAmountsJson, _about("All cases of this run.")]
    common: Annotated[
        RunAmountsJson | None, _about("Only cases that the baseline has too; null without one.")
    ]
    baseline: Annotated[RunAmountsJson | None, _about("The same cases in the baseline.")]
    models: Annotated[tuple[str, ...], _about("Models that the agents called.")]


class TotalsJson(_Json):
    """Counts and mean score of a set of checks."""

    checks: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    score: Annotated[Score | None, _about("Mean over passed and failed checks with a score.")]


class IntervalJson(_Json):
    """A 95% confidence interval."""

    low: float
    high: float
    method: IntervalMethod


class EvaluatorJson(_Json):
    """The results of one evaluator of one config."""

    config: str
    evaluator: str
    checks: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    score: Annotated[Score | None, _about("Mean over passed and failed checks with a score.")]
    score_interval: Annotated[
        IntervalJson | None, _about("Of the mean score; null if too few scores differ.")
    ]
    pass_rate: Annotated[float | None, _about("passed / (passed + failed); null if both are 0.")]
    pass_rate_interval: Annotated[
        IntervalJson | None, _about("Of the pass rate; null for fewer than two groups.")
    ]
    groups: Annotated[Count, _about("Number of independent groups of cases.")]
    flip_rate: Annotated[
        float | None, _about("Mean over its checks; null if it ran once per case.")
    ]


class ProblemJson(_Json):
    """An error, warning or note about the input."""

    severity: Severity
    message: str
    hint: Annotated[str | None, _about("What to do.")]
    place: PlaceJson | None


class ProvenanceJson(_Json):
    """The version of a remote evaluator."""

    config: str
    evaluator: str
    source: str
    repository: str
    revision: Annotated[str, _about("Branch, tag or commit in the config.")]
    ref: str
    commit: Annotated[str, _about("The commit of the revision in this run.")]
    digest: Annotated[str, _about("Of all files; equal digests mean the same evaluator.")]


def _make_json_type(values: type[Struct]) -> type[Struct]:
    """The type with the fields of ``values`` and no others; all are required."""
    fields = [(name, _convert_hint(hint)) for name, hint in values.__annotations__.items()]
    doc = {"__doc__": values.__doc__}
    return defstruct(f"{values.__name__}Json", fields, bases=(_Json,), namespace=doc)


@cache
def _convert_hint(hint: Any) -> Any:
    """Put the types made by ``_make_json_type`` into a type hint."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _make_json_type(hint)
    if get_origin(hint) is Annotated:
        return Annotated[(_convert_hint(hint.__origin__), *hint.__metadata__)]
    parts = tuple(map(_convert_hint, get_args(hint)))
    if get_origin(hint) in {Union, UnionType}:
        return Union[parts]  # noqa: UP007 (of parts that are only known here)
    return get_origin(hint)[parts] if get_origin(hint) is Mapping else hint


if TYPE_CHECKING:
    from agentci.model.gate import GatePolicy as GatePolicyJson
else:
    GatePolicyJson = _make_json_type(GatePolicy)


class EvaluatorSettingsJson(_Json, kw_only=True):
    """What an evaluator requires of a case."""

    name: str
    cases: Annotated[
        tuple[str, ...], _about("Cases of an eval file that it evaluates; empty for all.")
    ]
    threshold: Annotated[Score | None, _about("On the evaluator's own scale.")]
    maximum: Annotated[
        Score | None, _about("Highest score that passes, where lower scores are better.")
    ] = None
    criterion: Annotated[str, _about("What a check needs to pass, such as `score >= 0.7`.")]
    required: bool
    weight: Amount
    match_type: Annotated[MatchType | None, _about("Null for evaluators without it.")]
    turn_score: Annotated[TurnScore | None, _about("Null for evaluators without it.")] = None
    on_turn_mismatch: Annotated[OnTurnMismatch | None, _about("Null for evaluators without it.")]
    repeat: Ordinal
    repeat_by: RepeatAggregation
    definition: Annotated[str, _about("Digest of everything else in the config.")]
    values: Annotated[Mapping[str, str], _about("Of the same, by key, shortened.")] = {}
    code: Annotated[str, _about("Digest of the files of its program; empty without one.")] = ""
    limits: Annotated[Mapping[str, float], _about("Limits of a check, by name.")] = {}


class GateJson(_Json, kw_only=True):
    """The gate of one config, and what it covers."""

    config: str
    policy: GatePolicyJson
    evaluators: Annotated[tuple[str, ...], _about("In config order.")]
    uncovered: Annotated[
        tuple[str, ...], _about("Ids of the eval cases without a matching recorded run.")
    ]
    missing: Annotated[tuple[str, ...], _about("Those of them that need one.")] = ()
    unmatched: Annotated[
        tuple[str, ...],
        _about("Names of the recorded runs without an eval case, if there are eval cases."),
    ] = ()
    settings: Annotated[tuple[EvaluatorSettingsJson, ...], _about("What each evaluator requires.")]
    eval_cases: Annotated[
        Mapping[str, str], _about("Digest of each eval case or dataset row, by its id.")
    ]
    recorded_runs: Annotated[Count | None, _about("Number of recorded runs; null for eval files.")]
    selection: Annotated[
        Mapping[str, str],
        _about("By entry of `traces`, which traces are selected; empty for all of them."),
    ]
    case_names: Annotated[
        Mapping[str, str],
        _about("By entry of `traces`, its eval case; empty to find it by the question."),
    ] = {}
    trials: Annotated[str, _about("How often each case is run; empty for a single run.")]
    inputs: Annotated[
        Mapping[str, str], _about("Other keys that say what is read, such as `group_by`.")
    ] = {}
    case_values: Annotated[
        Mapping[str, Mapping[str, str]],
        _about("By eval case, its values by key, shortened, up to 256 KiB; empty without content."),
    ] = {}


class PolicyChangeJson(_Json):
    """A difference from the policy of the base commit by which a check may pass more easily."""

    config: str
    kind: Annotated[
        PolicyChangeKind, _about("What is `edited` may have become looser or stricter.")
    ]
    subject: Annotated[str, _about("What changed, such as `threshold of tone`.")]
    before: Annotated[str, _about("In the base commit; empty if there is no value.")]
    after: str
    names: Annotated[
        tuple[str, ...], _about("The eval cases, at most 100; empty for all or other subjects.")
    ]
    fails: Annotated[bool, _about("Whether it fails the gate.")]
    key: Annotated[PolicyKey, _about("The setting, where results show what its change hides.")] = ""
    evaluator: Annotated[str, _about("That has it; empty without a `key`.")] = ""
    value: Annotated[float | None, _about("The threshold in the base commit.")] = None
    effect: Annotated[
        str, _about("What changed in eval cases, or the checks that pass or count only by it.")
    ] = ""


class PolicyJson(_Json):
    """The comparison of the policy with that of the base commit."""

    base: Annotated[str, _about("Where the policy of the base was found.")]
    loosened: tuple[PolicyChangeJson, ...]
    decided_by_base: Annotated[
        tuple[str, ...], _about("Configs whose checks the policy of the base decided.")
    ]
    missing: Annotated[
        tuple[str, ...], _about("What the policy of the base requires and this run lacks.")
    ]
    unavailable: Annotated[
        str, _about("Why the policy of the base is unknown; empty if it is known.")
    ]
    required: Annotated[bool, _about("Whether an unknown policy of the base fails the gate.")]
    notes: Annotated[tuple[str, ...], _about("Which parts were not compared, and why.")]


class CostJson(_Json):
    """The cost of model calls."""

    calls: Count
    tokens: Annotated[
        Count, _about("Input and output; estimated if the service does not report them.")
    ]
    usd: Annotated[Amount | None, _about("By the prices in the config; null if one is missing.")]


class SpendingJson(_Json):
    """The cost of the judges of one config."""

    config: str
    spent: Annotated[CostJson, _about("In this run, including failed calls.")]
    saved: Annotated[CostJson, _about("What cached responses would have cost.")]


class CheckClassesJson(_Json):
    """The number of checks of both runs, by class; each check is in exactly one."""

    compared: Annotated[Count, _about("Passed or failed in both runs, evaluated by the same.")]
    changed: Annotated[
        Count, _about("In both runs, but what it is evaluated by changed (`fingerprint`).")
    ]
    newly_skipped: Annotated[Count, _about("Skipped now, but not in the baseline.")]
    newly_errored: Annotated[Count, _about("Errored now, but not in the baseline.")]
    newly_evaluated: Annotated[
        Count, _about("Passed or failed now, but skipped or errored in the baseline.")
    ]
    not_evaluated: Annotated[Count, _about("Skipped in both runs, or errored in both.")]
    added: Annotated[Count, _about("Only in this run.")]
    removed: Annotated[Count, _about("Only in the baseline.")]


class ChangeJson(_Json):
    """A check that is not as in the baseline, with its scores."""

    case: str
    before: float | None
    after: float | None
    status_before: Annotated[Status | None, _about("In the baseline; null if it lacks the check.")]
    status: Annotated[ChangedStatus, _about("In this run.")]
    check_class: Annotated[CheckClass, _about("Its class in `classes`.")]
    fails_before: Annotated[
        bool,
        _about("Whether it passed in the baseline, but not when that was evaluated again."),
    ]


class EvaluatorComparisonJson(_Json, kw_only=True):
    """The checks of one evaluator in both runs."""

    config: str
    evaluator: str
    required: bool
    classes: CheckClassesJson
    pairs: Annotated[Count, _about("Number of checks that take part in the test.")]
    before: Annotated[float | None, _about("Their mean score in the baseline.")]
    after: Annotated[
        float | None, _about("Their mean score in this run; null if it evaluated none of them.")
    ]
    newly_failing: Annotated[
        tuple[ChangeJson, ...], _about("Checks that fail now, and did not in the baseline.")
    ]
    no_longer_evaluated: Annotated[
        tuple[ChangeJson, ...],
        _about("Checks that passed in the baseline, and errored, were skipped or are missing now."),
    ]
    lower_score: Annotated[
        tuple[ChangeJson, ...],
        _about("Checks that pass in both runs, with a score that is at least 0.05 lower now."),
    ]
    fixed: Annotated[tuple[ChangeJson, ...], _about("Compared checks that failed and now pass.")]
    p_value: Annotated[
        float | None,
        _about(
            "Of the drop beyond the allowed one, adjusted for the number of required "
            "evaluators by Holm's method; null if not tested."
        ),
    ]
    outcome: ComparisonOutcome
    reason: Annotated[str, _about("The outcome as text.")]
    groups: Annotated[Count, _about("Number of independent groups of cases.")]
    change_low: Annotated[
        float | None,
        _about("Lower end of the 95% interval of the mean change; null below ten groups."),
    ]
    change_high: Annotated[float | None, _about("Upper end of the interval.")]
    detectable_drop: Annotated[
        float | None,
        _about("Drop found significant with 80% probability; null if not tested."),
    ]
    adjusted_for: Annotated[Count, _about("Number of evaluators that `p_value` is adjusted for.")]
    only_errors: Annotated[bool, _about("Whether only errors are a drop, not what the agent did.")]
    max_regression: Annotated[
        float | None, _about("Allowed drop of the mean score; null if the config sets none.")
    ] = None
    in_both: Annotated[Count, _about("Number of checks that both runs evaluated.")] = 0
    both_before: Annotated[
        float | None, _about("Their mean score in the baseline, which reports show.")
    ] = None
    both_after: Annotated[float | None, _about("Their mean score in this run.")] = None


class ComparisonJson(_Json, kw_only=True):
    """The comparison with a baseline."""

    baseline: Annotated[str, _about("Where the baseline was found.")]
    evaluators: tuple[EvaluatorComparisonJson, ...]
    classes: Annotated[CheckClassesJson, _about("Of all evaluators.")]
    removed_cases: Annotated[
        tuple[str, ...], _about("Cases that only the baseline has, and the eval set not any more.")
    ] = ()
    unrecorded_cases: Annotated[
        tuple[str, ...], _about("Eval cases with a recorded run in the baseline only.")
    ] = ()
    no_baseline: Annotated[
        str, _about("Why there are no results to compare with; empty if there are.")
    ]
    commit: Annotated[str, _about("Commit of the baseline; empty if unknown.")]
    url: Annotated[str, _about("Page of the workflow run that made it; empty if unknown.")]
    branch: Annotated[str, _about("Branch or tag of that run; empty if unknown.")] = ""
    stale: Annotated[
        str,
        _about("Why the baseline may be of another commit than required; else empty."),
    ]
    rescored: Annotated[
        Count,
        _about("Number of checks of the baseline evaluated again with this run's evaluators."),
    ]
    rescored_from_results: Annotated[
        Count, _about("Of `rescored`, those whose runs were kept in the baseline's `results.json`.")
    ]
    not_rescored: Annotated[str, _about("Why other changed checks were not; else empty.")]
    same_run: Annotated[
        str, _about("The run of another tool that both results are of; else empty.")
    ]
    renamed_configs: Annotated[
        Mapping[str, str],
        _about("By name of a config in the baseline, its name in this run, if that is another."),
    ]
    removed_policies: Annotated[
        Mapping[str, GatePolicyJson],
        _about("By config that only the baseline has, its `gate` there."),
    ] = {}


class ShardJson(_Json):
    """The part of a whole run that the report covers."""

    index: Annotated[int, Meta(ge=1, le=MAX_SHARDS, description="Counted from 1.")]
    total: Annotated[int, Meta(ge=1, le=MAX_SHARDS)]
    plan_digest: Annotated[
        str,
        Meta(
            pattern=r"^[0-9a-f]{64}(?!\n)$",
            description="Of the whole run; shards of one run share it.",
        ),
    ]
    checks: Annotated[tuple[CheckId, ...], _about("Ids of all checks of the whole run, in order.")]
    shard_keys: Annotated[
        Mapping[CheckId, CheckId],
        _about("By check id, the id that selects the shard in its place."),
    ]

    def __post_init__(self) -> None:
        if self.index > self.total:
            raise ValueError("`index` is greater than `total`")


class DecisionJson(_Json):
    """The decision of the gate."""

    passed: bool
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    reasons: Annotated[tuple[str, ...], _about("Most important first.")]
    notes: Annotated[
        tuple[str, ...], _about("What does not decide, such as the number of skipped checks.")
    ]
    unlisted_notes: Annotated[
        tuple[str, ...], _about("Those notes that no other list or table of a report has.")
    ]
    fail_on: Annotated[FailOn, _about("Which reasons may fail the run: the option `fail-on`.")]
    reported_only: Annotated[
        tuple[str, ...], _about("The last `reasons`, which fail the gate with another `fail_on`.")
    ] = ()
    errored: Annotated[
        Mapping[str, str],
        _about("By each of `reasons` that counts errored checks, its text without their names."),
    ] = {}


class ToolJson(_Json):
    """The program that wrote the report."""

    name: Literal["agentci"]
    version: str


class ResultsJson(_Json):
    """Results of a run and the decision of its gate."""

    schema_version: Literal[1]
    tool: ToolJson
    commit: Annotated[Commit | None, _about("The commit that was checked out; null if unknown.")]
    complete: Annotated[bool, _about("False if the run was interrupted.")]
    decision: DecisionJson
    totals: TotalsJson
    results: tuple[ResultJson, ...]
    evaluators: tuple[EvaluatorJson, ...]
    cases: tuple[CaseJson, ...]
    content: ContentJson
    run: RunJson
    metrics: MetricsJson
    problems: tuple[ProblemJson, ...]
    provenance: tuple[ProvenanceJson, ...]
    gates: tuple[GateJson, ...]
    judges: tuple[SpendingJson, ...]
    comparison: Annotated[ComparisonJson | None, _about("Null if no baseline was given.")]
    policy: Annotated[PolicyJson | None, _about("Null if it was not compared with a base commit.")]
    shard: Annotated[ShardJson | None, _about("Null for a whole run.")]


def make_results_schema() -> JsonObject:
    """Make the JSON Schema of ``results.json`` (draft 2020-12)."""
    _, definitions = schema_components([ResultsJson])
    parts = {_definition_name(name): _simplify(part) for name, part in definitions.items()}
    root = parts.pop("results")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "results.schema.json",
        "title": "results.json of agentci",
        **root,
        "$defs": parts,
    }


def _definition_name(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Json")).lower()


def _simplify(part: Any) -> Any:
    """Remove titles and the ban on additional keys, and rename references."""
    if isinstance(part, dict):
        return {
            key: "#/$defs/" + _definition_name(value.rpartition("/")[2])
            if key == "$ref"
            else _simplify(value)
            for key, value in part.items()
            if key != "title" and not (key == "additionalProperties" and value is False)
        }
    return [_simplify(each) for each in part] if isinstance(part, list) else part
