"""Puts a run beside an earlier one."""

from collections.abc import Sequence

from agentci._util.text.suggest import short_commit
from agentci._util.workspace import Workspace
from agentci.config.settings import BASE, Settings
from agentci.errors import InputError
from agentci.gate.comparison import compare
from agentci.gate.regression import bars_of
from agentci.github.baseline.read import lack_of, read_earlier
from agentci.model.comparison import Comparison
from agentci.model.policy import Gate
from agentci.model.result import Result
from agentci.model.values import replace
from agentci.runner.services import World


def beside(
    settings: Settings,
    world: World,
    results: Sequence[Result],
    gates: Sequence[Gate],
    commit: str,
) -> Comparison | None:
    """Compare ``results`` with those of the baseline; None where none is named.

    A baseline that is not there or cannot be read is no reason to judge nothing: the comparison
    says what is wrong with it.

    Args:
        commit: that the results are of; empty where it is not known.
    """
    if not settings.baseline:
        return None
    if settings.baseline != BASE:
        return _with_file(settings.baseline, results, gates, world.workspace)
    # It asks GitHub, and looks into archives.
    from agentci.github.baseline.find import NoBaselineError, find_base  # noqa: PLC0415 (see above)

    try:
        earlier = find_base(commit, settings, world)
    except NoBaselineError as error:
        return Comparison(baseline=BASE, refused=f"there is nothing to compare with: {error}")
    found = earlier.found
    name = f"{short_commit(found.commit)}, {found.where}"
    compared = compare(found.report.results, results, bars_of(gates), baseline=name)
    return replace(compared, commit=found.commit, stale=earlier.stale)


def _with_file(
    named: str, results: Sequence[Result], gates: Sequence[Gate], workspace: Workspace
) -> Comparison:
    try:
        report = read_earlier(named, workspace)
    except InputError as error:
        return Comparison(baseline=named, refused=f"the baseline is of no use: {error.problems[0]}")
    if lack := lack_of(report):
        return Comparison(baseline=named, refused=f"the baseline is of no use: it {lack}")
    compared = compare(report.results, results, bars_of(gates), baseline=named)
    return replace(compared, commit=report.commit)
