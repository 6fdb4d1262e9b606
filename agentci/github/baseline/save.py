"""Save the results of a commit in the cache, as the baseline of later runs."""

from agentci._util.cache_folder import find_cache_owner
from agentci.config.settings import FetchSettings, Settings
from agentci.errors import FetchError, InputError
from agentci.github.baseline.cache import BaselineStore
from agentci.github.baseline.git import open_git_repository
from agentci.github.baseline.read import explain_incomplete
from agentci.github.context import GitHubContext
from agentci.github.events import TRUSTED_EVENTS
from agentci.model.problem import Problem
from agentci.model.result import EXIT_INVALID_INPUT, Report
from agentci.model.values import replace
from agentci.reports.json_report import JsonReport
from agentci.runner.prepare_programs import find_cache_folder
from agentci.runner.services import Services


def save_baseline(
    report: Report, settings: Settings, services: Services, github: GitHubContext
) -> Report:
    """Save a complete report of a commit; returns it with a note if saving failed."""
    try:
        if _is_complete(report) and _matches_commit(report, services, github):
            shown = services.variables.redactor.redact_value(report)
            content = "".join(JsonReport().render(shown)).encode()
            store = open_baseline_store(settings.fetch_settings, services)
            store.put(report.commit, settings.baseline_artifact, content)
    except (FetchError, InputError) as error:
        message = f"the results are not saved as a baseline for later runs: {error}"
        problem = Problem(message=message, severity="note")
        return replace(report, problems=(*report.problems, problem))
    return report


def open_baseline_store(access: FetchSettings, services: Services) -> BaselineStore:
    """Open the results in the cache.

    Raises:
        InputError: a pull request or another user may have written to the cache.
    """
    folder = find_cache_folder(access, services)
    return BaselineStore(folder, repository=services.repository, owner=find_cache_owner(folder))


def _is_complete(report: Report) -> bool:
    return report.decision.exit_code != EXIT_INVALID_INPUT and not explain_incomplete(report)


def _matches_commit(report: Report, services: Services, github: GitHubContext) -> bool:
    """Whether the evaluated files are those of the commit in the repository.

    Those of a pull request are not: they are a merge commit that is on no branch, of changes that
    may be unreviewed. Nor are those of another commit that a workflow checks out.
    """
    if github.active:
        return github.event in TRUSTED_EVENTS and report.commit == github.sha
    return report.commit != "" and not open_git_repository(services).has_changes()
