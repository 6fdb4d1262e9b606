"""Progress output in logs and terminals."""

import io
from collections.abc import Iterator
from pathlib import Path

from agentci.model.result import Status
from agentci.model.values import replace
from agentci.runner.run_checks import ProgressDisplay
from tests.helpers.reports import make_result
from tests.helpers.support import make_services

STATUSES: tuple[Status, ...] = ("passed", "failed", "errored", "passed")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(folder: Path, err: io.StringIO, *, quiet: bool = False) -> str:
    """Progress output for four results, after 1, 4, 6 and 6.05 seconds."""
    times: Iterator[float] = iter([0.0, 1.0, 4.0, 6.0, 6.05])
    services = replace(make_services(folder, {}), err=err, clock=lambda: next(times))
    progress = ProgressDisplay(4, services, quiet=quiet)
    for status in STATUSES:
        progress.count(make_result(status))
    progress.finish()
    return err.getvalue()


def test_log_prints_progress_every_few_seconds(tmp_path: Path) -> None:
    assert _shown(tmp_path, io.StringIO()) == "3 of 4 checks, 1 failed, 1 errored\n"


def test_terminal_progress_bar_is_erased(tmp_path: Path) -> None:
    shown = _shown(tmp_path, Terminal())
    assert "\r██████░░░░░░░░░░░░░░░░░░ 1 of 4 checks" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


def test_quiet_prints_no_progress(tmp_path: Path) -> None:
    assert _shown(tmp_path, Terminal(), quiet=True) == ""
