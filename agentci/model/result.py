"""Results of checks, and the report that all of them make."""

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci.model.call import Exchanges
from agentci.model.case import Synopsis
from agentci.model.choices import RepeatBy
from agentci.model.comparison import Comparison
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.policy import Gate
from agentci.model.problem import Problem
from agentci.model.shard import Portion
from agentci.model.spending import Spending
from agentci.model.trials import TrialRecord

Status: TypeAlias = Literal["passed", "failed", "errored", "skipped"]

# Exit codes of the process, by what shut the gate.
EXIT_SHUT: Final = 1
EXIT_INVALID: Final = 2
EXIT_UNJUDGED: Final = 3


class Repeat(Struct, frozen=True, kw_only=True):
    """What one of several answers of an evaluator about the same case was.

    Attributes:
        score: None where there is none.
        reason: as in ``Result``.
    """

    status: Status
    score: float | None
    reason: str | None = None


class RepeatRecord(Struct, frozen=True, kw_only=True):
    """All answers that a result was made of.

    Attributes:
        flip_rate: the share of them whose verdict is another than that of most, 0 to 1; None where
            one could not be judged.
        repeats: in the order of asking.
    """

    by: RepeatBy
    flip_rate: float | None
    repeats: tuple[Repeat, ...]


class Result(Struct, frozen=True, kw_only=True):
    """One evaluator beside one case.

    Attributes:
        id: digest of config path, case id and evaluator name; the same on every run.
        config: the config file, as shown to the user.
        reason: why it errored or was skipped, or passed or failed in spite of its score; else None.
        trials: what it was made of, where the case was run several times.
        repeats: what it was made of, where the evaluator was asked several times; of several runs
            of a case those of the one that is shown.
        fingerprint: digest of what it was judged by: the evaluator and the golden case.
    """

    id: str
    config: str
    case: Synopsis
    evaluator: Identity
    status: Status
    judgement: Judgement | None = None
    reason: str | None = None
    seconds: float = 0.0
    cached: bool = False
    trials: TrialRecord | None = None
    repeats: RepeatRecord | None = None
    fingerprint: str = ""


class Totals(Struct, frozen=True, kw_only=True):
    """Counts over all results; ``score`` is the mean of what passed or failed, or None."""

    checks: int
    passed: int
    failed: int
    errored: int
    skipped: int
    score: float | None


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the gate is open, the process's exit code, and why, the weightiest reason first.

    A shard never opens it: where nothing keeps it shut (exit code 0), other shards still may.
    """

    open: bool
    exit_code: int
    why: tuple[str, ...]

    @property
    def shuts(self) -> bool:
        """Whether something was found that keeps the gate shut."""
        return self.exit_code != 0


class Provenance(Struct, frozen=True, kw_only=True):
    """What an evaluator from elsewhere was when it judged.

    Attributes:
        config, evaluator: whose program it is.
        source, repository, revision, ref: as the config names it, completed by its source.
        commit: what the revision meant.
        digest: of all its files; two that have the same one are the same evaluator.
    """

    config: str
    evaluator: str
    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    digest: str


class Report(Struct, frozen=True, kw_only=True):
    """Everything that is said about one run.

    Attributes:
        complete: False where the run was broken off; ``results`` then holds what was judged.
        results: config order, then case, then evaluator.
        problems: broken recordings (errors), and warnings and notices about the input.
        provenance: of the evaluators that are kept elsewhere.
        gates: of all configs, in their order.
        portion: what of a whole it is about; None for a whole run.
        spending: of the judges of all configs that have some, in their order.
        comparison: with a baseline, where one was named.
        commit: that was checked out while it was judged; empty where nobody knows one.
        exchanges: what evaluators were sent and what came back, for ``report.html`` alone.
    """

    complete: bool
    decision: Decision
    totals: Totals
    results: tuple[Result, ...]
    problems: tuple[Problem, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    gates: tuple[Gate, ...] = ()
    portion: Portion | None = None
    spending: tuple[Spending, ...] = ()
    comparison: Comparison | None = None
    commit: str = ""
    exchanges: Exchanges = Exchanges()
