"""Compare a run with its baseline."""

from collections.abc import Sequence

from agentci._util.text.suggest import shorten_commit
from agentci._util.workspace import Workspace
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError
from agentci.gate.comparison import compare_runs
from agentci.github.baseline.read import explain_incomplete, read_baseline_report
from agentci.github.workflow import Workflow
from agentci.model.gate import Comparison, Gate
from agentci.model.result import CheckResult
from agentci.model.values import replace
from agentci.runner.services import Services


def compare_with_baseline(
    settings: Settings,
    services: Services,
    workflow: Workflow,
    results: Sequence[CheckResult],
    gates: Sequence[Gate],
    commit: str,
) -> Comparison | None:
    """Compare ``results`` with those of the baseline; None if no baseline is configured.

    If the baseline cannot be found or read, the comparison says why.

    Args:
        commit: the commit of the results; empty if unknown.
    """
    if not settings.baseline:
        return None
    if settings.baseline != PULL_REQUEST_BASE:
        return _compare_with_file(settings.baseline, results, gates, services.workspace)
    # Imports the GitHub client and archives.
    from agentci.github.baseline.find import NoBaselineError, find_baseline  # noqa: PLC0415 (see above)

    try:
        earlier = find_baseline(commit, settings, services, workflow)
    except NoBaselineError as error:
        return Comparison(baseline=PULL_REQUEST_BASE, not_comparable=f"baseline not found: {error}")
    found = earlier.found
    name = f"{shorten_commit(found.commit)}, {found.where}"
    compared = compare_runs(found.report.results, results, gates, baseline=name)
    return replace(compared, commit=found.commit, stale=earlier.stale)


def _compare_with_file(
    named: str, results: Sequence[CheckResult], gates: Sequence[Gate], workspace: Workspace
) -> Comparison:
    try:
        report = read_baseline_report(named, workspace, outcomes_only=True)
    except InputError as error:
        return Comparison(
            baseline=named, not_comparable=f"baseline not readable: {error.problems[0]}"
        )
    if reason := explain_incomplete(report):
        return Comparison(baseline=named, not_comparable=f"baseline not comparable: it {reason}")
    compared = compare_runs(report.results, results, gates, baseline=named)
    return replace(compared, commit=report.commit)
