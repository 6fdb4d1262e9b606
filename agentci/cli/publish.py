"""Publish a report: files, log, job summary, outputs of the step, annotations and comment."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from agentci._util import files
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line, replace_surrogates
from agentci._util.text.format import format_count, format_number
from agentci._util.workspace import Workspace
from agentci.cli.session import OTLP_HEADERS_VARIABLE, Session
from agentci.config.settings import Settings
from agentci.errors import FetchError, InputError, PermanentFetchError
from agentci.github.events import GitHubContext, make_run_info, read_event
from agentci.github.post import print_annotations
from agentci.model.result import EXIT_INVALID_INPUT, Report
from agentci.model.values import Problem, replace
from agentci.reports import workflow_commands
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.groups_and_totals import Verdict, get_verdict
from agentci.reports.job_summary import MAX_BYTES, SummaryReport
from agentci.reports.junit import JUnitReport, sum_seconds
from agentci.reports.problems import render_problems
from agentci.reports.registry import REPORT_WRITERS, ReportWriter, make_report_writers
from agentci.reports.sections import BlockName, join_blocks

if TYPE_CHECKING:
    from agentci.runner.page_templates import PageTemplate


LOGS_PATH: Final = "/v1/logs"
MILLISECONDS: Final = 1000
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_OK: Final = 200


def publish_report(
    report: Report, settings: Settings, session: Session, *, started: float | None = None
) -> Report:
    """Write, print and post the report without the secrets of the run, files first.

    Args:
        started: when the run began, in seconds since 1970; None if only the time of its checks is
            known.

    Returns:
        The published report, with an error for each file that could not be written.
    """
    workspace, github = session.services.workspace, session.workflow.context
    report = replace(report, run=make_run_info(github))
    report = session.services.variables.redactor.redact_value(report)
    template = load_template(settings, session)
    summary = SummaryReport(report_url=settings.report_url, arrange=template.arrange)
    comment = CommentReport(
        run_url=github.run_url,
        commit=read_event(github).head_sha,
        report_url=settings.report_url,
        arrange=template.arrange,
    )
    junit = JUnitReport(
        dialect=settings.junit_dialect,
        attachment="" if github.active else _find_attachment(settings, workspace),
    )
    stop = time.time()
    start = stop - sum_seconds(report.results) if started is None else started
    writers = make_report_writers(
        junit=junit,
        summary=summary,
        comment=comment,
        formats=settings.formats,
        start=round(start * MILLISECONDS),
        stop=round(stop * MILLISECONDS),
    )
    if errors := _write_reports(report, writers, settings, workspace):
        report = _add_write_problems(report, errors)
        errors |= _write_reports(report, writers, settings, workspace)
    paths = {
        each.name: workspace.display_path(Path(settings.output_dir, each.file_name))
        for each in writers
        if each.file_name not in errors
    }
    problems = (
        *(_add_summary(report, summary, github) if settings.summary else ()),
        *_write_outputs(make_outputs(report, paths), github),
        *(_send_events(report, settings.emit_otel, session) if settings.emit_otel else ()),
    )
    files.write_to_stream(
        render_console(
            report,
            quiet=settings.quiet,
            verbose=settings.verbose,
            colour=session.colour,
            page=paths.get("report", ""),
            folds=github.active,
        ),
        session.out,
    )
    if github.active and settings.annotations:
        print_annotations(report, settings, session.workflow, session.out)
    if problems:
        _print_problems(problems, session)
    if settings.commenting != "never" or settings.check_run:
        publish_to_pull_request(report, settings, session, template)
    if template.problems:
        _print_problems(tuple(dict.fromkeys(template.problems)), session)
    if settings.opens_report:
        _open_report(settings, session)
    return report


def _find_attachment(settings: Settings, workspace: Workspace) -> str:
    """Return the path of ``report.html`` as CI servers resolve it.

    GitLab resolves it against the checkout, Jenkins needs an absolute one, and GitHub has none.
    """
    path = Path(settings.output_dir, "report.html")
    if settings.junit_dialect == "jenkins":
        return str(workspace.cwd / path)
    return workspace.display_path(path)


def _open_report(settings: Settings, session: Session) -> None:
    """Open the report in the user's browser; without one, print a warning."""
    import webbrowser  # noqa: PLC0415 (rarely used)

    path = session.services.workspace.cwd / settings.output_dir / "report.html"
    if not webbrowser.open(path.as_uri()):
        message = "no browser found to open report.html"
        _print_problems((Problem(message=message, severity="warning"),), session)


class NoTemplate(Struct, frozen=True):
    """Pages without a template."""

    problems: tuple[Problem, ...] = ()

    def arrange(self, page: str, blocks: Mapping[BlockName, str], report: Report) -> str:
        """Join the blocks."""
        return join_blocks(page, blocks, report)


def load_template(settings: Settings, session: Session) -> "PageTemplate | NoTemplate":
    """Load the template of the comment and the summary, if there is one.

    Raises:
        InputError: it is invalid.
    """
    if not settings.comment_template:
        return NoTemplate()
    from agentci.runner.page_templates import load_page_template  # noqa: PLC0415 (rarely used)

    return load_page_template(
        settings.comment_template, report_url=settings.report_url, services=session.services
    )


def publish_to_pull_request(
    report: Report, settings: Settings, session: Session, template: "PageTemplate | NoTemplate"
) -> None:
    """Post the report on GitHub; a failure is printed and changes nothing else."""
    from agentci.github.post import post_results  # noqa: PLC0415 (most runs do not need it)

    for each in post_results(report, settings, session.workflow, template.arrange):
        if each.severity != "note":
            _print_problems((each,), session)
        elif not settings.quiet:
            files.write_to_stream(f"{escape_for_log_line(each.message)}\n", session.out)


def publish_input_problems(problems: Sequence[Problem], session: Session) -> int:
    """Print problems that keep reports from being written, and set the outputs of the step."""
    warnings = _write_outputs(make_outputs_without_report("invalid"), session.workflow.context)
    _print_problems((*problems, *warnings), session)
    return EXIT_INVALID_INPUT


def publish_crash(github: GitHubContext) -> None:
    """Set the outputs of a run that ended with a bug of agentci."""
    _write_outputs(make_outputs_without_report("error"), github)


def _write_reports(
    report: Report, writers: Sequence[ReportWriter], settings: Settings, workspace: Workspace
) -> dict[str, str]:
    """Write all files; the folder is prepared again, as an evaluator may have removed it.

    Returns:
        The errors, by file name.
    """
    try:
        folder = files.prepare_output_folder(settings.output_dir, workspace)
    except InputError as error:
        return {each.file_name: error.problems[0].message for each in writers}
    rendered = {each.file_name: each.render(report) for each in writers}
    return files.write_output_files(folder, rendered, workspace)


def _add_write_problems(report: Report, errors: Mapping[str, str]) -> Report:
    """Add errors of report files to the report; the gate fails."""
    problems = [Problem(message=f"cannot write {name}: {error}") for name, error in errors.items()]
    reason = f"{format_count(len(problems), 'report file')} could not be written"
    code = report.decision.exit_code or EXIT_INVALID_INPUT
    reasons = (reason, *report.decision.reasons)
    return replace(
        report,
        problems=(*report.problems, *problems),
        decision=replace(report.decision, passed=False, exit_code=code, reasons=reasons),
    )


def _add_summary(
    report: Report, summary: SummaryReport, github: GitHubContext
) -> tuple[Problem, ...]:
    """Append to the job summary, unless GitHub would drop it for its size."""
    file = github.summary_file
    room = workflow_commands.SUMMARY_BYTES - (0 if file is None else files.get_file_size(file))
    summary = replace(summary, max_bytes=min(MAX_BYTES, room))
    text = "".join(summary.render(report))
    if truncate.count_utf8_bytes(text) > room:
        limit = f"{workflow_commands.SUMMARY_BYTES // 1024**2} MiB"
        message = f"the job summary would exceed GitHub's limit of {limit} per step"
        hint = "run agentci in a step of its own"
        return (Problem(message=message, hint=hint, severity="warning"),)
    return _append_to_runner_file("GITHUB_STEP_SUMMARY", file, text)


def _write_outputs(values: Mapping[str, str], github: GitHubContext) -> tuple[Problem, ...]:
    text = render_outputs(values, f"agentci-{secrets.token_hex(16)}")
    return _append_to_runner_file("GITHUB_OUTPUT", github.output_file, text)


def _append_to_runner_file(variable: str, file: Path | None, text: str) -> tuple[Problem, ...]:
    """Append ``text`` to a file of the runner, if there is one."""
    error = None if file is None else files.append_text(file, text)
    if error is None:
        return ()
    message = f"cannot write {variable}: {error}"
    hint = "the outputs or the summary of this step are missing"
    return (Problem(message=message, hint=hint, severity="warning"),)


def _print_problems(problems: Sequence[Problem], session: Session) -> None:
    files.write_to_stream(
        render_problems(problems, "github" if session.workflow.context.active else "text"),
        session.out,
    )


def make_outputs(report: Report, paths: Mapping[str, str]) -> dict[str, str]:
    """Make the outputs that later steps of a workflow read.

    Args:
        paths: report files by name, relative to the workspace; a file that was not written
            is "" or absent.
    """
    totals = report.totals
    return {
        "passed": "true" if report.decision.passed else "false",
        "verdict": get_verdict(report.decision),
        "score": "" if totals.score is None else format_number(totals.score, digits=6),
        "checks": str(totals.checks),
        "passed-count": str(totals.passed),
        "failed-count": str(totals.failed),
        "errored-count": str(totals.errored),
        "skipped-count": str(totals.skipped),
        **{name: paths.get(name, "") for name in REPORT_WRITERS},
    }


def make_outputs_without_report(reason: Verdict) -> dict[str, str]:
    """Make the outputs of a run without a report: invalid input or an internal error."""
    counts = ("checks", "passed-count", "failed-count", "errored-count", "skipped-count")
    return {
        "passed": "false",
        "verdict": reason,
        "score": "",
        **dict.fromkeys(counts, "0"),
        **dict.fromkeys(REPORT_WRITERS, ""),
    }


def render_outputs(values: Mapping[str, str], delimiter: str) -> str:
    """Render the lines to append to the file named in ``GITHUB_OUTPUT``.

    Every value uses the form with a delimiter: in the form ``name=value`` a line break in a value
    would start another output.

    Args:
        values: by name.
        delimiter: random, so that no value contains it.

    Raises:
        ValueError: if a name or a value contains the delimiter.
    """
    if any(delimiter in text for item in values.items() for text in item):
        raise ValueError("an output contains the delimiter")
    return "".join(
        f"{name}<<{delimiter}\n{replace_surrogates(value)}\n{delimiter}\n"
        for name, value in values.items()
    )


def _send_events(report: Report, url: str, session: Session) -> tuple[Problem, ...]:
    """Send an OpenTelemetry event per check in one or more requests; stops at the first that fails.

    Protocol: https://opentelemetry.io/docs/specs/otlp/#otlphttp, with JSON.

    Args:
        url: the endpoint as the user gave it; ``/v1/logs`` is appended unless it ends so.

    Returns:
        A warning if not all were sent.
    """
    from agentci.reports.optional_formats import OtelReport  # noqa: PLC0415 (rarely used)

    sent = 0
    try:
        address, headers = _format_logs_url(url), dict(_parse_headers(session.otlp_headers))
        for request, size in OtelReport().render_requests(report, time=time.time_ns()):
            response = session.http.ask(
                address,
                limit_bytes=_MAX_RESPONSE_BYTES,
                headers={**headers, "Content-Type": "application/json"},
                method="POST",
                content=request.encode(),
            )
            if response.status != _OK:
                raise PermanentFetchError(f"it answered with status {response.status}")
            rejected = _count_rejected(response.content)
            sent += size - rejected
            if rejected:
                raise PermanentFetchError(f"it rejected {rejected}", hint="read its log")
    except FetchError as error:
        count = f"{sent} of {format_count(len(report.results), 'event')}"
        message = f"only {count} were sent to the OTLP endpoint: {error}"
        hint = error.hint or f"check the address and {OTLP_HEADERS_VARIABLE}"
        return (Problem(message=message, hint=hint, severity="warning"),)
    return ()


def _format_logs_url(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(LOGS_PATH) else f"{path}{LOGS_PATH}").geturl()


class _PartialSuccess(Struct, frozen=True, rename="camel"):
    rejected_log_records: int | str = 0  # ProtoJSON writes int64 as text


class _Response(Struct, frozen=True, rename="camel"):
    partial_success: _PartialSuccess = _PartialSuccess()


def _count_rejected(content: bytes) -> int:
    """Return the number of rejected records; 0 if the response does not say."""
    try:
        return int(
            msgspec.json.decode(content, type=_Response).partial_success.rejected_log_records
        )
    except (ValueError, RecursionError):  # invalid JSON is one
        return 0


def _parse_headers(text: str) -> Iterator[tuple[str, str]]:
    """Parse ``name=value,name=value`` with percent-encoding, as OpenTelemetry's exporters do.

    Raises:
        PermanentFetchError: an item has no ``=``.
    """
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            # The item is not shown: it may be a token.
            raise PermanentFetchError(
                f"{OTLP_HEADERS_VARIABLE} has an item without `=`",
                hint="write it as name=value,name=value",
            )
        yield unquote(name.strip()), unquote(value.strip())
