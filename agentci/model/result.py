"""Results of checks, reports of runs and shards, and the recorded runs that reports keep.

``results.json`` has the types of that content as they are; keys with their default are left out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from agentci.model.case import CaseSummary
from agentci.model.gate import Comparison, Gate, PolicyComparison
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.trace import Milliseconds, ModelStep, PriceList, RunSpan, TokenTotals
from agentci.model.values import ContentLimit, FailOn, Place, Problem, RepeatAggregation

MAX_SHARDS: Final = 256

# Selects the shard by the job's index in its matrix.
AUTO_SHARD: Final = "auto"

_FRACTION: Final = re.compile("([0-9]{1,3})/([0-9]{1,3})")


class Shard(Struct, frozen=True, kw_only=True):
    """One of ``total`` parts of a run; ``index`` is counted from 1."""

    index: int
    total: int

    def contains(self, check: str) -> bool:
        """Whether the check with this id belongs to the shard.

        The id is a digest: shards are about equal in size, and a new check moves no other check.
        """
        return int(check, 16) % self.total == self.index - 1

    def __str__(self) -> str:
        return f"shard {self.index} of {self.total}"


class ShardInfo(Struct, frozen=True, kw_only=True):
    """Which part of a whole run a report covers.

    Attributes:
        plan_digest: digest of the whole run; only shards with the same digest can be merged.
        checks: ids of all checks of the whole run, in order.
        shard_keys: by check id, the id that selects the shard instead of it; checks that need the
            same run of an agent share one.
    """

    shard: Shard
    plan_digest: str
    checks: tuple[str, ...]
    shard_keys: Mapping[str, str] = field(default_factory=dict)

    def contains(self, check: str) -> bool:
        """Whether the check with this id belongs to the shard."""
        return self.shard.contains(self.shard_keys.get(check, check))


def parse_shard(text: str, *, matrix_job: str = "") -> Shard:
    """Parse ``2/5`` or ``auto``.

    Args:
        text: as given by the user.
        matrix_job: for ``auto``: "index/count" of the job in its matrix, the index from 0.

    Raises:
        ValueError: the text is not a valid shard.
    """
    automatic = text.casefold() == AUTO_SHARD
    fraction = _FRACTION.fullmatch(matrix_job if automatic else text)
    if fraction is None:
        raise ValueError(text)
    index, total = int(fraction[1]) + automatic, int(fraction[2])
    if not 1 <= index <= total <= MAX_SHARDS:
        raise ValueError(text)
    return Shard(index=index, total=total)


# What is kept: all; all but the results of tools; the first words of each text; no text at all.
ContentLevel: TypeAlias = Literal["full", "without_results", "excerpt", "none"]
# Of a case of two runs, which is in exactly one; `removed` if only the baseline has it.
CaseState: TypeAlias = Literal[
    "new_failure",
    "error",
    "unrecorded",
    "lost",
    "still_failing",
    "still_errored",
    "fixed",
    "new_case",
    "newly_evaluated",
    "removed",
    "not_evaluated",
    "same",
]

# By the name of a field, such as `answer` or `calls[0].result`.
CutCharacters: TypeAlias = Annotated[
    Mapping[str, int], Meta(description="By shortened field: number of characters left out.")
]


def _about(description: str) -> Meta:
    """Describe a member in the JSON Schema."""
    return Meta(description=description)


class CallContent(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A tool call and its result."""

    name: str
    arguments: Annotated[Any, _about("As recorded; absent if they were not.")] = None
    result: Annotated[Any | UnsetType, _about("As recorded; absent if there is none.")] = UNSET
    error: Annotated[bool | None, _about("Whether the call failed; absent if unknown.")] = None
    failed: Annotated[bool, _about("By `error`, or by an error as its result.")] = False
    ms: Annotated[Milliseconds | None, _about("Duration.")] = None
    span: Annotated[str | None, _about("Id of its span in `spans`.")] = None
    id: str | None = None
    step: Annotated[int | None, _about("Index in `steps` of the model call that requested it.")] = (
        None
    )
    start: Annotated[int | None, _about("Nanoseconds since 1970.")] = None


class ExpectedCall(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A tool call of an eval case."""

    name: str
    arguments: Annotated[Any, _about("Absent if the eval case leaves them out.")] = None


class BaselineResult(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The result of a tool call in the baseline."""

    start: Annotated[str | None, _about("Its first characters; absent if there is none.")] = None
    left: Annotated[int, _about("Number of characters left out.")] = 0
    failed: Annotated[bool, _about("As of the calls of this run.")] = False


class BaselineTurn(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The same turn in the baseline; `baseline_results` has the results of its tools."""

    answer: str | None = None
    calls: tuple[ExpectedCall, ...] = ()
    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cut: CutCharacters = {}


class TurnContent(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One turn: what user and agent wrote, and the tool calls."""

    user: str
    answer: str | None
    expected_answer: str | None = None
    calls: tuple[CallContent, ...] = ()
    expected_calls: Annotated[
        tuple[ExpectedCall, ...] | None, _about("Absent without an eval case.")
    ] = None
    texts: Annotated[tuple[str, ...], _about("What the agent wrote before its final answer.")] = ()
    steps: Annotated[tuple[ModelStep, ...], _about("Its model calls.")] = ()
    latency_ms: Milliseconds | None = None
    tokens: Annotated[
        TokenTotals | None, _about("Of all its model calls; absent if unknown for one.")
    ] = None
    missing: Annotated[
        bool, _about("The run lacks the turn, which the eval case or the baseline has.")
    ] = False
    user_recorded: Annotated[bool, _about("False if the recording leaves out `user`.")] = True
    calls_recorded: Annotated[bool, _about("False if the recording leaves out calls.")] = True
    id: str = ""
    trace: Annotated[str | None, _about("Id of its trace, and of its `span` there.")] = None
    span: str | None = None
    start: Annotated[int | None, _about("Nanoseconds since 1970.")] = None
    cut: CutCharacters = {}
    baseline: Annotated[
        BaselineTurn | Literal["same"] | None,
        _about("`same` if answer and calls are; absent if the baseline lacks the turn."),
    ] = None
    baseline_results: Annotated[
        tuple[BaselineResult | Literal["same"], ...],
        _about("Of the calls of the baseline's turn; empty if they are not kept."),
    ] = ()
    baseline_latency_ms: Annotated[
        Milliseconds | None, _about("In the baseline, of a turn that is the `same`.")
    ] = None


class SubagentContent(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What an agent did that a tool call of another agent started."""

    turns: tuple[TurnContent, ...]
    name: str | None = None
    call_id: str | None = None


class RunContent(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of one case.

    Attributes:
        baseline_spans: steps that only the baseline has; ``start_ms`` places them in this run.
        level: how much of it is kept.
        columns: of the dataset row, without output of the agent.
        tags: labels of the case in its eval file or dataset.
        latency_ms, tokens, cost_usd: of the whole run; None if not recorded.
        priced: whether the cost is not recorded, but computed from ``prices``.
        cut: as in ``TurnContent``, of the other fields; of ``spans``, their number.
        redacted: whether secrets were removed.
        performance: as JSON; only of a content from a report, else the summary has it.
        printed: as in ``Trace``.
    """

    turns: tuple[TurnContent, ...] = ()
    spans: tuple[RunSpan, ...] = ()
    baseline_spans: tuple[RunSpan, ...] = ()
    subagents: tuple[SubagentContent, ...] = ()
    columns: Mapping[str, Any] = {}
    tags: tuple[str, ...] = ()
    level: ContentLevel = "full"
    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cost_usd: Annotated[float, Meta(ge=0)] | None = None
    priced: bool = False
    cut: CutCharacters = {}
    redacted: bool = False
    performance: str | None = None
    printed: str | None = None


TrialStrategy: TypeAlias = Literal["pass_at_k", "mean", "confidence_interval"]


class TrialSettings(Struct, frozen=True, kw_only=True):
    """How often a case is run, and how the scores are combined.

    Attributes:
        count: maximum number of runs per case.
        strategy: use the best run, the mean of all, or the lower end of the 95% confidence
            interval.
        cost_limit_usd: stop running a case once its runs have cost this much.
    """

    count: int
    strategy: TrialStrategy
    place: Place
    cost_limit_usd: float | None = None


class TrialScore(Struct, frozen=True, kw_only=True):
    """The score of one run by one evaluator.

    Attributes:
        attempt: counted from 0.
        score: None if the run has no score.
        reason: why it has none.
    """

    attempt: int
    score: float | None
    reason: str | None = None


class TrialRecord(Struct, frozen=True, kw_only=True):
    """The runs that a result combines.

    Attributes:
        cost_limited: whether the cost limit prevented further runs.
    """

    strategy: TrialStrategy
    trials: tuple[TrialScore, ...]
    cost_limited: bool = False


class ModelCost(Struct, frozen=True, kw_only=True):
    """An actual cost, or an upper bound."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "ModelCost") -> "ModelCost":
        return ModelCost(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
        )

    def __sub__(self, other: "ModelCost") -> "ModelCost":
        return self + ModelCost(calls=-other.calls, tokens=-other.tokens, usd=-other.usd)


class JudgeSpending(Struct, frozen=True, kw_only=True):
    """The cost of the judges of one config.

    Attributes:
        config: as shown to the user.
        spent: in this run, including calls that failed.
        saved: by cached responses.
        priced: whether the dollars are known, because all its models have prices.
    """

    config: str
    spent: ModelCost
    saved: ModelCost
    priced: bool

    def __add__(self, other: "JudgeSpending") -> "JudgeSpending":
        """Add two parts of a run with the same config."""
        return JudgeSpending(
            config=self.config,
            spent=self.spent + other.spent,
            saved=self.saved + other.saved,
            priced=self.priced and other.priced,
        )


def sum_by_config(parts: Iterable[JudgeSpending]) -> tuple[JudgeSpending, ...]:
    """Sum the judge spending of all parts of a run per config."""
    whole: dict[str, JudgeSpending] = {}
    for each in parts:
        known = whole.get(each.config)
        whole[each.config] = each if known is None else known + each
    return tuple(whole.values())


class CallPayload(Struct, frozen=True, kw_only=True):
    """One text that an evaluator received or returned.

    Attributes:
        name: e.g. "stdin" or "response".
        content: the part that is shown.
        size: size of the whole text in bytes.
        notes: how ``content`` differs from the whole text.
    """

    name: str
    content: str
    size: int
    notes: tuple[str, ...] = ()


class EvaluatorCall(Struct, frozen=True, kw_only=True):
    """One call of a program, a model or a service.

    Attributes:
        name: the evaluator, or the part of one, that made the call.
        outcome: what was called, and how it ended.
        texts: what was sent, then what was received.
    """

    name: str
    outcome: str
    texts: tuple[CallPayload, ...]


class EvaluatorCalls(Struct, frozen=True, kw_only=True):
    """The evaluator calls of a run's checks, up to a size limit.

    Attributes:
        json_by_check: a list of ``EvaluatorCall`` by check id, as JSON that a page can embed.
        omitted_checks: ids of checks beyond the size limit.
        kept_in_parts: this report is merged, and the calls are in the reports of its parts.
    """

    json_by_check: Mapping[str, str] = field(default_factory=dict)
    omitted_checks: frozenset[str] = frozenset()
    kept_in_parts: bool = False


Status: TypeAlias = Literal["passed", "failed", "errored", "skipped"]
# Of checks with a verdict.
SCORED_STATUSES: Final[tuple[Status, ...]] = ("passed", "failed")

# In results of other tools: the metric of the tool's own verdict on a whole case.
CASE_METRIC: Final = "(case)"

# Exit codes of the process, by the cause of the failure.
EXIT_GATE_FAILED: Final = 1
EXIT_INVALID_INPUT: Final = 2
EXIT_ERRORED: Final = 3


class RepeatOutcome(Struct, frozen=True, kw_only=True):
    """One of several results of an evaluator for the same case.

    Attributes:
        score: None if there is none.
        reason: as in ``CheckResult``.
    """

    status: Status
    score: float | None
    reason: str | None = None


class RepeatRecord(Struct, frozen=True, kw_only=True):
    """All results that a repeated check combines.

    Attributes:
        flip_rate: share of repeats whose pass/fail result differs from the majority, 0 to 1; None
            if one has no result.
        repeats: in execution order.
    """

    aggregation: RepeatAggregation
    flip_rate: float | None
    repeats: tuple[RepeatOutcome, ...]


class CheckResult(Struct, frozen=True, kw_only=True):
    """The result of one evaluator for one case.

    Attributes:
        id: digest of config path, case id and evaluator name; the same in every run.
        config: the config file, as shown to the user.
        reason: why it errored or was skipped, or passed or failed regardless of its score; else
            None.
        unavailable: skipped as it needs a secret, in a workflow that has none, or the times of a
            run that was replayed.
        trials: the trials that it combines, if the case was run several times.
        repeats: the repeats that it combines, if the evaluator ran several times; with trials,
            those of the trial that is shown.
        fingerprint: digest of what the evaluator reads besides the recorded run.
        cut: by field that ``results.json`` shortened, the number of characters left out.
    """

    id: str
    config: str
    case: CaseSummary
    evaluator: EvaluatorIdentity
    status: Status
    judgement: Judgement | None = None
    reason: str | None = None
    seconds: float = 0.0
    cached: bool = False
    unavailable: bool = False
    trials: TrialRecord | None = None
    repeats: RepeatRecord | None = None
    fingerprint: str = ""
    cut: Mapping[str, int] | None = None

    @property
    def score(self) -> float | None:
        """The score of its judgement; None without one, and where nothing was evaluated.

        Evaluators of agentevals give the score 0 with the status "not evaluated".
        """
        is_skipped = self.status == "skipped" and self.evaluator.better != "unknown"
        return None if self.judgement is None or is_skipped else self.judgement.score

    @property
    def is_measurement(self) -> bool:
        """Whether it has a score that decides nothing: there is no threshold and no verdict."""
        unknown = self.evaluator.better == "unknown"
        return unknown and self.status == "skipped" and self.score is not None


def has_only_errors(results: Iterable[CheckResult]) -> bool:
    """Whether no check has a verdict, and an error is why: a run could not be recorded or read."""
    statuses = {each.status for each in results}
    return "errored" in statuses and statuses.isdisjoint(SCORED_STATUSES)


class BaselineCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of the same check in the baseline.

    Attributes:
        case: id of its case; empty if that is not known.
        content: number of the content of its case; None if that is not known.
        early_ends: warnings of its case about answers that ended early.
    """

    status: Status
    score: float | None
    case: str = ""
    content: int | None = None
    early_ends: tuple[str, ...] = ()


class Totals(Struct, frozen=True, kw_only=True):
    """Counts over all results; ``score`` is the mean over passed and failed checks, or None."""

    checks: int
    passed: int
    failed: int
    errored: int
    skipped: int
    score: float | None


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the gate passed, the exit code, and the reasons, most important first.

    A single shard never passes the gate: exit code 0 means that this shard does not fail it, but
    other shards still may.

    Attributes:
        fail_on: which reasons may fail the run.
        reported_only: the last of the reasons, which fail the gate with another ``fail_on``.
        errored: by each of the reasons that counts errored checks, its text without their names.
        notes: facts that do not decide, such as the number of skipped checks.
        unlisted_notes: those that no list or table of a report has.
    """

    passed: bool
    exit_code: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unlisted_notes: tuple[str, ...] = ()
    fail_on: FailOn = "failed"
    reported_only: tuple[str, ...] = ()
    errored: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_failure(self) -> bool:
        """Whether a finding fails the gate."""
        return self.exit_code != 0


class Provenance(Struct, frozen=True, kw_only=True):
    """The version of a remote evaluator in a run.

    Attributes:
        config, evaluator: which evaluator of which config.
        source, repository, revision, ref: as in the config, completed by the source.
        commit: the commit of the revision.
        digest: of all its files; equal digests mean the same evaluator.
    """

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class RunInfo(Struct, frozen=True, kw_only=True):
    """The workflow run that a report is from; empty outside a workflow.

    Attributes:
        repository: ``OWNER/NAME``.
        url: the page of the run.
        branch: the branch or tag that the workflow runs on.
        pull_request: its number; its page is ``pull_request_url``.
        title: of the pull request.
        date: when the event happened, in ISO 8601; the same for all attempts of the run.
    """

    repository: str = ""
    url: str = ""
    branch: str = ""
    pull_request: int | None = None
    pull_request_url: str = ""
    title: str = ""
    date: str = ""


class RunContents(Protocol):
    """The contents of cases by number, with only one at a time in memory."""

    def load(self, number: int, prices: PriceList) -> RunContent:
        """Return the content with this number, as far as it is kept, with its cost."""


class Report(Struct, frozen=True, kw_only=True):
    """The full report of one run.

    Attributes:
        complete: False if the run was interrupted; ``results`` then holds what was finished.
        results: in the order of config, case, evaluator.
        problems: unreadable recorded runs (errors), and warnings and notes about the input.
        provenance: of remote evaluators.
        gates: of all configs, in config order.
        shard_info: which part of a whole run it covers; None for a whole run.
        spending: of the judges of all configs that have one, in config order.
        comparison: with a baseline, if one was given.
        policy: the comparison of the policy with the base commit's, if that is known.
        commit: the commit that was checked out; empty if unknown.
        run: the workflow run.
        evaluator_calls: input and output of evaluators, only for ``report.html``.
        contents: of the cases; None if only their summaries are known.
        content_limit: how much of the contents is kept.
        baseline: by check id, the results of the baseline.
        prices: by config, for runs whose cost was not recorded.
    """

    complete: bool
    decision: Decision
    totals: Totals
    results: tuple[CheckResult, ...]
    problems: tuple[Problem, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    gates: tuple[Gate, ...] = ()
    shard_info: ShardInfo | None = None
    spending: tuple[JudgeSpending, ...] = ()
    comparison: Comparison | None = None
    policy: PolicyComparison | None = None
    commit: str = ""
    run: RunInfo = RunInfo()
    evaluator_calls: EvaluatorCalls = EvaluatorCalls()
    contents: RunContents | None = None
    content_limit: ContentLimit = "budget"
    baseline: Mapping[str, BaselineCheck] = field(default_factory=dict)
    prices: Mapping[str, PriceList] = field(default_factory=dict)
