"""Compare a run with its baseline."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from agentci._util.text.format import format_count
from agentci._util.text.suggest import shorten_commit
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError
from agentci.gate.check_classes import find_renamed_configs, rename_configs
from agentci.gate.comparison import compare_runs, select_known
from agentci.github.baseline.cache import explain_incomplete, read_baseline_report
from agentci.github.events import Workflow
from agentci.model.gate import Comparison, Gate
from agentci.model.result import SCORED_STATUSES, BaselineCheck, CheckResult, has_only_errors
from agentci.model.trace import EARLY_END
from agentci.model.values import FailOn, replace
from agentci.runner.rescore import Rescorer
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.github.baseline.base_files import BaseFilesFetcher

UNKNOWN_COMMIT: Final = "the commit of the baseline is unknown"
NO_RUN: Final = "their recorded runs are not those of the baseline"


class BaselineResults(Struct, frozen=True, kw_only=True):
    """What a run is compared with.

    Attributes:
        name: where it was found, as shown to the user.
        gates: the gates of the baseline.
        fail_on: the option of its run.
        stored: the baseline's own results of checks that were evaluated again.
        no_baseline, commit, url, branch, stale, rescored, rescored_from_results, not_rescored,
            renamed_configs: as in ``Comparison``.
    """

    name: str
    results: tuple[CheckResult, ...] = ()
    gates: tuple[Gate, ...] = ()
    fail_on: FailOn = "failed"
    stored: tuple[CheckResult, ...] = ()
    no_baseline: str = ""
    commit: str = ""
    url: str = ""
    branch: str = ""
    stale: str = ""
    rescored: int = 0
    rescored_from_results: int = 0
    not_rescored: str = ""
    renamed_configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> Mapping[str, BaselineCheck]:
        """Return what reports show of the results, by check id.

        A run of which only errors came, such as one whose recording failed, has no content: what
        it did before it failed is nothing to compare with.
        """
        by_run: dict[int | None, list[CheckResult]] = {}
        for each in self.results:
            by_run.setdefault(each.case.content, []).append(each)
        failed = {run for run, results in by_run.items() if has_only_errors(results)}
        return {
            each.id: BaselineCheck(
                status=each.status,
                # A program may print a score although it skips a check; a skipped check has none.
                score=each.score if each.status in SCORED_STATUSES else None,
                case=each.case.id,
                content=None if each.case.content in failed else each.case.content,
                early_ends=tuple(w for w in each.case.warnings if w.startswith(EARLY_END)),
            )
            for each in self.results
        }


def compare_with_baseline(
    settings: Settings,
    services: Services,
    workflow: Workflow,
    results: Sequence[CheckResult],
    gates: Sequence[Gate],
    commit: str,
) -> tuple[Comparison, Mapping[str, BaselineCheck]] | None:
    """Compare ``results`` with those of the baseline, which are also returned, by check id.

    None if no baseline is configured.

    Args:
        commit: the commit of the results; empty if unknown.

    Raises:
        InputError: as ``read_named_baseline``.
    """
    baseline = load_baseline(settings, services, workflow, commit)
    if baseline is None:
        return None
    baseline = match_configs(baseline, results)
    return compare_results(baseline, results, gates), baseline.checks


def load_baseline(
    settings: Settings, services: Services, workflow: Workflow, commit: str
) -> BaselineResults | None:
    """Find and read the results of the baseline; None if no baseline is configured.

    If the base has none, the value says why.

    Args:
        commit: the commit of this run; empty if unknown.

    Raises:
        InputError: as ``read_named_baseline``.
    """
    if not settings.baseline:
        return None
    if settings.baseline != PULL_REQUEST_BASE:
        return read_named_baseline(settings.baseline, services)
    # Imports the GitHub client and archives.
    from agentci.github.baseline.find import NoBaselineError, find_baseline  # noqa: PLC0415 (see above)

    try:
        earlier = find_baseline(commit, settings, services, workflow)
    except NoBaselineError as error:
        return BaselineResults(name=PULL_REQUEST_BASE, no_baseline=f"baseline not found: {error}")
    found = earlier.found
    return BaselineResults(
        name=f"{shorten_commit(found.commit)}, {found.where}",
        results=found.report.results,
        gates=found.report.gates,
        fail_on=found.report.decision.fail_on,
        commit=found.commit,
        url=found.report.run.url,
        branch=found.report.run.branch,
        stale=earlier.stale,
    )


def read_named_baseline(named: str, services: Services) -> BaselineResults:
    """Read the baseline at the path ``named``.

    Raises:
        InputError: it is missing or not readable, or not the report of a whole run.
    """
    report = read_baseline_report(
        named, services.workspace, outcomes_only=True, contents=services.run_contents
    )
    if reason := explain_incomplete(report):
        raise InputError.from_message(
            f"the baseline {named} {reason}", hint="name the report of a whole run"
        )
    return BaselineResults(
        name=named,
        results=report.results,
        gates=report.gates,
        fail_on=report.decision.fail_on,
        commit=report.commit,
        url=report.run.url,
        branch=report.run.branch,
    )


def match_configs(baseline: BaselineResults, results: Sequence[CheckResult]) -> BaselineResults:
    """Name the configs of the baseline as in ``results`` where only their name changed.

    Their gates keep the old name: the policy is compared by it.
    """
    names = find_renamed_configs(baseline.results, results)
    if not names:
        return baseline
    return replace(
        baseline,
        results=rename_configs(baseline.results, results, names),
        renamed_configs=names,
    )


def rescore_outdated(
    baseline: BaselineResults, rescorer: Rescorer, base_files: "BaseFilesFetcher"
) -> BaselineResults:
    """Evaluate checks of the baseline again that it evaluated differently, on its recorded runs.

    The runs are those in its commit, else those in its results. If neither has them, the value
    says why.
    """
    outdated = rescorer.find_outdated(baseline.results)
    if not outdated:
        return baseline
    from agentci.github.baseline.base_files import NoBaseFilesError  # noqa: PLC0415 (as above)

    changed = {check.id for check in outdated} & {each.id for each in baseline.results}
    runs_workspace, why = None, UNKNOWN_COMMIT
    if baseline.commit:
        try:
            runs_workspace = base_files.fetch(baseline.commit).workspace
        except NoBaseFilesError as error:
            why = str(error)
    again = rescorer.rescore(outdated, baseline.results, runs_workspace, why)
    baseline = replace(
        baseline,
        results=again.results,
        stored=again.stored,
        rescored=len(again.rescored),
        rescored_from_results=len(again.from_results),
    )
    return _explain_left(baseline, len(changed - again.rescored), again.reasons or [NO_RUN])


def _explain_left(baseline: BaselineResults, left: int, reasons: Sequence[str]) -> BaselineResults:
    """Add why ``left`` changed checks keep their results."""
    if not left:
        return baseline
    what = f"{format_count(left, 'changed check')} of the baseline could not be evaluated again"
    return replace(baseline, not_rescored=f"{what}: {'; '.join(reasons)}")


def compare_results(
    baseline: BaselineResults,
    results: Sequence[CheckResult],
    gates: Sequence[Gate],
    *,
    complete: bool = True,
) -> Comparison:
    """Compare ``results`` with those of the baseline; without any, the comparison says why.

    Args:
        complete: False if the run ended early.
    """
    if baseline.no_baseline:
        return Comparison(baseline=baseline.name, no_baseline=baseline.no_baseline)
    names = baseline.renamed_configs
    compared = compare_runs(
        baseline.results if complete else select_known(baseline.results, results),
        results,
        gates,
        gates_before=[
            replace(each, config=names.get(each.config, each.config)) for each in baseline.gates
        ],
        baseline=baseline.name,
        stored=baseline.stored,
    )
    return replace(
        compared,
        commit=baseline.commit,
        url=baseline.url,
        branch=baseline.branch,
        stale=baseline.stale,
        rescored=baseline.rescored,
        rescored_from_results=baseline.rescored_from_results,
        not_rescored=baseline.not_rescored,
        renamed_configs=names,
    )
