"""The writers of all report files: those of every run, and those on request."""

from collections.abc import Iterator, Sequence
from typing import Protocol, assert_never

from agentci.model.result import Report
from agentci.model.values import OptionalFormat
from agentci.reports.comment import CommentReport
from agentci.reports.html.page import HtmlReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnitReport


class ReportWriter(Protocol):
    """Writes one report file."""

    @property
    def name(self) -> str:
        """Name of the report in messages."""

    @property
    def file_name(self) -> str:
        """Name of the file in the output folder."""

    def render(self, report: Report) -> Iterator[str]:
        """Yield the file as pieces of text that UTF-8 can encode.

        The caller need not keep more than one piece in memory.
        """


# In order of importance: if the disk fills up, later files are lost. The names are also those of
# the outputs of the action.
REPORT_WRITERS: dict[str, ReportWriter] = {
    "results": JsonReport(),
    "junit": JUnitReport(),
    "summary": SummaryReport(),
    "report": HtmlReport(),
    "comment": CommentReport(),
}


def make_report_writers(
    *,
    junit: JUnitReport,
    summary: SummaryReport,
    comment: CommentReport,
    formats: Sequence[OptionalFormat] = (),
    start: int = 0,
    stop: int = 0,
) -> tuple[ReportWriter, ...]:
    """Return the writers of every run, with the user's settings, and those of optional formats.

    Args:
        start, stop: of the run, in milliseconds since 1970.
    """
    made = {**REPORT_WRITERS, "junit": junit, "summary": summary, "comment": comment}
    optional = (make_optional_writer(each, start=start, stop=stop) for each in formats)
    return (*made.values(), *optional)


def make_optional_writer(name: OptionalFormat, *, start: int = 0, stop: int = 0) -> ReportWriter:
    """Return the writer of a format that is only written on request.

    Each is imported here, as few runs need it.

    Args:
        start, stop: as in ``make_report_writers``.
    """
    from agentci.reports import optional_formats  # noqa: PLC0415 (rarely used)

    match name:
        case "ctrf":
            return optional_formats.CtrfReport(start=start, stop=stop)
        case "csv":
            return optional_formats.CsvReport()
        case "otel":
            return optional_formats.OtelReport()
        case _:
            assert_never(name)
