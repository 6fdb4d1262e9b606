"""``agentci merge``, ``compare`` and ``comment``: what is made of the reports of earlier runs.

``comment`` is for a workflow that follows one of a pull request from a fork, which has no write
access. The event decides which pull request gets the comment. The report is untrusted: it is parsed
strictly, up to a size limit, and the Markdown is rendered here.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from agentci._util.files import prepare_output_folder
from agentci._util.text.escape import flatten_line, neutralize_commands
from agentci._util.workspace import Workspace, is_file, is_folder, limit_input
from agentci.cli.publish import (
    load_template,
    publish_crash,
    publish_input_problems,
    publish_report,
    publish_to_pull_request,
)
from agentci.cli.session import Session
from agentci.config.discovery import find_matching_paths
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError
from agentci.gate.decision import compute_totals, decide
from agentci.github.baseline.cache import read_baseline_report
from agentci.github.baseline.compare import (
    BaselineResults,
    compare_results,
    compare_with_baseline,
    match_configs,
)
from agentci.model.gate import Gate, PolicyComparison
from agentci.model.result import Report
from agentci.model.values import COMMAND_LINE, Problem, replace
from agentci.reports.console import list_changed_checks, list_comparison
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.groups_and_totals import format_problem
from agentci.reports.merge.merge import merge_reports
from agentci.reports.merge.read import MAX_REPORT_BYTES, REPORT_NAME, ReportFile, read_report_file
from agentci.runner.services import Services

# Five times the size of a report of ten thousand checks.
MAX_COMMENT_REPORT_BYTES: Final = 64 * 1024**2
REPORT_PATHS_HINT: Final = (
    f"name files, folders with {REPORT_NAME}, or globs such as shards/*/{REPORT_NAME}"
)


def merge(given: Sequence[str], settings: Settings, session: Session) -> int:
    """Merge reports and return the exit code of the decision over all of them.

    As in a run, reports are written even if the input is invalid.

    Args:
        given: files, folders and globs of reports.
        settings: where and how the merged report is published.
    """
    try:
        prepare_output_folder(settings.output_dir, session.services.workspace)
        load_template(settings, session)  # an invalid one ends the run before it starts
    except InputError as error:
        return publish_input_problems(error.problems, session)
    try:
        report = _merge_report_files(given, settings, session)
        session.services.interruption.is_immediate_allowed = False
        if settings.baseline == PULL_REQUEST_BASE:
            from agentci.github.baseline.cache import save_baseline  # noqa: PLC0415 (rarely used)

            report = save_baseline(report, settings, session.services, session.workflow.context)
        report = publish_report(report, settings, session)
    except Exception:
        publish_crash(session.workflow.context)
        raise
    return report.decision.exit_code


def _merge_report_files(given: Sequence[str], settings: Settings, session: Session) -> Report:
    try:
        report = merge_reports(
            _read_report_files(given, session.services),
            fail_on=settings.fail_on,
            compare=partial(compare_with_baseline, settings, session.services, session.workflow),
            compare_policy=partial(_compare_policy, settings, session),
        )
        report = replace(
            report,
            contents=StoredContents(
                chunks=session.services.run_contents,
                redact=session.services.variables.redactor.redact_value,
            ),
        )
        return limit_contents(report, settings.content)
    except InputError as error:
        decision = decide((), problems=error.problems, complete=True, fail_on=settings.fail_on)
        return Report(
            complete=True,
            decision=decision,
            totals=compute_totals(()),
            results=(),
            problems=error.problems,
        )


def _compare_policy(
    settings: Settings, session: Session, gates: Sequence[Gate], commit: str
) -> PolicyComparison | None:
    """Compare the policy with that in the results of the base: the runs' options are unknown."""
    if not settings.baseline:
        return None
    from agentci.github.baseline.policy import compare_with_results  # noqa: PLC0415 (rarely used)

    return compare_with_results(gates, commit, settings, session.services, session.workflow)


def _read_report_files(given: Sequence[str], services: Services) -> list[ReportFile]:
    """Read all named reports, each once.

    Raises:
        InputError: some do not exist or are not valid reports; with every problem.
    """
    workspace = services.workspace
    files: dict[str, tuple[Path, bool]] = {}
    problems: list[Problem] = []
    for text in given:
        found = tuple(_find_report_files(text, workspace))
        is_report = is_folder(workspace.cwd / text)
        files.update((workspace.display_path(path), (path, is_report)) for path in found)
        if not found:
            what = "in folder" if is_report else "matches"
            problems.append(Problem(message=f"no report {what} {text}", hint=REPORT_PATHS_HINT))
    parts: list[ReportFile] = []
    for name, (path, is_report) in files.items():
        try:
            with limit_input(name):
                parts.append(_read_file(path, name, services, is_report=is_report))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return parts


def _read_file(path: Path, name: str, services: Services, *, is_report: bool) -> ReportFile:
    """Read a report, or the result file of another tool, which counts as a config of its own.

    Args:
        is_report: the file was found in a folder of reports, by its name.

    Raises:
        InputError: it is neither, or it is invalid.
    """
    from agentci.runner.recorded_results import (  # noqa: PLC0415 (loads the readers)
        is_agentci_report,
        make_results_report,
    )

    resolved = services.workspace.resolve_given(path)
    if is_report or not is_file(path) or is_agentci_report(resolved):
        report = read_report_file(
            resolved, file=name, limit_bytes=MAX_REPORT_BYTES, contents=services.run_contents
        )
    else:
        report = make_results_report(resolved, services.workspace, config=name)
    return ReportFile(file=name, report=report)


def _find_report_files(text: str, workspace: Workspace) -> Iterator[Path]:
    for path in find_matching_paths(workspace.cwd, text):
        yield from find_matching_paths(path, f"**/{REPORT_NAME}") if is_folder(path) else (path,)


def show_comparison(base: str, head: str, workspace: Workspace, out: TextIO) -> int:
    """Print the comparison of each evaluator's checks.

    Raises:
        InputError: one of the reports is invalid, or is of a run without results.
    """
    before, after = (_read_report(named, workspace) for named in (base, head))
    reports = {base: before, head: after}
    if problems := [
        _make_empty_problem(named, report)
        for named, report in reports.items()
        if not report.results
    ]:
        raise InputError(problems)
    baseline = BaselineResults(name=base, results=before.results, gates=before.gates)
    comparison = compare_results(
        match_configs(baseline, after.results), after.results, after.gates, complete=after.complete
    )
    lines = [
        *list_comparison(comparison),
        *list_changed_checks(comparison),
        *_list_warnings(before),
        *_list_warnings(after),
        *_find_incomplete_warnings(base, before),
        *_find_incomplete_warnings(head, after),
    ]
    out.write(neutralize_commands("".join(f"{line}\n" for line in lines)))
    return 0


def _read_report(named: str, workspace: Workspace) -> Report:
    """Read a report, or the result file of another tool.

    Raises:
        InputError: it is neither, or it is invalid.
    """
    path = workspace.cwd / named
    if is_file(path):
        from agentci.runner.recorded_results import (  # noqa: PLC0415 (other files do not need it)
            is_agentci_report,
            make_results_report,
        )

        resolved = workspace.resolve_given(path)
        if not is_agentci_report(resolved):
            return make_results_report(resolved, workspace)
    return read_baseline_report(named, workspace, outcomes_only=True)


def _make_empty_problem(named: str, report: Report) -> Problem:
    errors = [f"{each}" for each in report.problems if each.severity == "error"]
    why = f": its input was invalid ({errors[0]})" if errors else ""
    return Problem(
        message=f"{flatten_line(named)} has no results{why}", hint="compare runs with results"
    )


def _list_warnings(report: Report) -> Iterator[str]:
    """List the warnings about a result file of another tool; those of reports were shown before."""
    if any(gate.config == COMMAND_LINE.file for gate in report.gates):
        yield from (format_problem(each) for each in report.problems if each.severity == "warning")


def _find_incomplete_warnings(named: str, report: Report) -> Iterator[str]:
    if not report.complete:
        run = f"the run of {flatten_line(named)}"
        yield f"warning: {run} was interrupted; checks that did not run are not compared"


def post_report_comment(named: str, settings: Settings, session: Session) -> int:
    """Post a report on GitHub; returns 0 whether or not its gate passed.

    Args:
        named: path of ``results.json`` or of its folder.
    """
    try:
        template = load_template(settings, session)
        _check_report_path(named, settings, session.services.workspace)
        report = read_baseline_report(
            named,
            session.services.workspace,
            limit_bytes=MAX_COMMENT_REPORT_BYTES,
            contents=session.services.run_contents,
        )
    except InputError as error:
        return publish_input_problems(error.problems, session)
    contents = StoredContents(
        chunks=session.services.run_contents,
        redact=session.services.variables.redactor.redact_value,
    )
    report = replace(report, contents=contents)
    publish_to_pull_request(report, settings, session, template)
    return 0


def _check_report_path(named: str, settings: Settings, workspace: Workspace) -> None:
    """Check that there is something to post, and that the path stays in the workspace.

    Raises:
        InputError: one of them does not hold.
    """
    if settings.commenting == "never" and not settings.check_run:
        message = "nothing to post: `comment` is `never` and `check-run` is empty"
        raise InputError.from_message(message, hint="set `comment: always`, or name a check run")
    path: Path = workspace.cwd / named
    path = path / REPORT_NAME if is_folder(path) else path
    if not workspace.contains(path):
        raise InputError.from_message(
            f"{named} is outside the workspace", hint="name a file inside it"
        )
