"""Closed streams, full disks and other lack of resources do not change the result."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentci.cli.main import run_command
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import Executors
from agentci.model.requests import ProgramOutput
from agentci.reports.workflow_commands import SUMMARY_BYTES
from tests.helpers.recordings import otlp
from tests.helpers.runner import commands_in, read_output_file
from tests.helpers.support import ROOT, make_session, run_agentci

pytestmark = pytest.mark.slow

CONFIG = "evaluators:\n- {name: ev, type: code, path: ev.py}\ntraces: trace.json\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace whose one check passes."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "eval_config.yaml").write_text(CONFIG)
    (folder / "trace.json").write_text(otlp())
    (folder / "ev.py").write_text("print('{\"score\": 1}')")
    return folder


def _shell(
    folder: Path, script: str, *, command: str = "run", environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``script``, in which ``"$@"`` is agentci."""
    return subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "agentci", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def _results(folder: Path) -> Any:
    return json.loads((folder / "agentci-results" / "results.json").read_text())


@pytest.mark.parametrize(
    "streams",
    [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>&1"],
)
def test_unwritable_streams_do_not_change_result(folder: Path, streams: str) -> None:
    ran = _shell(folder, f'"$@" {streams}')
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert _results(folder)["totals"]["passed"] == 1


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_closed_pipe_does_not_change_result(folder: Path, unbuffered: str) -> None:
    (folder / "ev.py").write_text("print('{\"score\": 0}')")
    ran = _shell(
        folder,
        'sleep 0 | true; "$@" 2>&1 | true; exit ${PIPESTATUS[0]}',
        environ={"PYTHONUNBUFFERED": unbuffered},
    )
    assert ran.returncode == 1
    assert ran.stderr == ""
    assert _results(folder)["totals"]["failed"] == 1


@pytest.mark.parametrize(
    ("command", "unbuffered"), [("plan", "1"), ("validate", "1"), ("schema", "1"), ("schema", "")]
)
def test_printing_command_fails_if_stdout_is_unwritable(
    folder: Path, command: str, unbuffered: str
) -> None:
    environ = {"PYTHONUNBUFFERED": unbuffered}
    full = _shell(folder, '"$@" >/dev/full', command=command, environ=environ)
    assert (full.returncode, "Traceback" in full.stderr) == (2, False)
    assert "No space left on device" in full.stderr
    gone = _shell(
        folder,
        'exec 3> >(true); wait $!; "$@" >&3',
        command=command,
        environ=environ,
    )
    assert (gone.returncode, gone.stderr) == (128 + signal.SIGPIPE, "")


def test_ignored_sigchld_does_not_hide_child_processes(folder: Path) -> None:
    ran = _shell(folder, "trap '' CHLD; \"$@\"")
    assert ran.returncode == 0, ran.stderr


def test_deleted_working_directory_is_reported(folder: Path) -> None:
    ran = _shell(folder, 'mkdir gone; cd gone; rmdir ../gone; "$@"')
    assert ran.returncode == 2
    assert "the working directory is not accessible" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_unwritable_reports_fail_gate(folder: Path) -> None:
    # Coverage would also write files.
    ran = _shell(folder, 'unset COVERAGE_PROCESS_CONFIG; ulimit -f 0; "$@"')
    assert ran.returncode == 2
    assert "cannot write results.json: File too large" in ran.stdout
    assert "Quality gate failed" in ran.stdout
    assert "Traceback" not in ran.stderr
    assert list((folder / "agentci-results").iterdir()) == []


def test_older_report_is_removed_if_writing_fails(
    folder: Path,
) -> None:
    assert run_agentci(["run"], cwd=folder).code == 0
    assert _shell(folder, 'ulimit -f 0; "$@"').returncode == 2
    assert list((folder / "agentci-results").iterdir()) == []


# Ends the process as a signal would, while it gives the second report its name.
KILLED_WHILE_WRITING = """
import os, sys
from agentci.cli.main import main

renamed = []

def end_at_second_report(event, arguments):
    if event == "os.rename" and "agentci-results" in str(arguments[1]):
        renamed.append(arguments[1])
        if len(renamed) == 2:
            os._exit(9)

sys.addaudithook(end_at_second_report)
sys.exit(main())
"""


def test_reports_of_two_runs_never_stand_beside_each_other(folder: Path) -> None:
    assert run_agentci(["run"], cwd=folder).code == 0
    reports = folder / "agentci-results"
    before = {path.name: path.stat().st_ino for path in reports.iterdir()}
    ran = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING, "run"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == 9
    after = {path.name: path.stat().st_ino for path in reports.glob("[!.]*")}
    assert [name for name in after if after[name] == before[name]] == []
    assert [*after] == ["results.json"]


def test_other_reports_are_written_if_one_fails(folder: Path) -> None:
    (folder / "agentci-results" / "junit.xml" / "x").mkdir(parents=True)
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code == 2
    assert "cannot write junit.xml: Is a directory" in ran.out
    assert "cannot write junit.xml" in (folder / "agentci-results/summary.md").read_text()
    assert ran.results["totals"]["passed"] == 1
    assert ran.results["decision"]["exit_code"] == 2
    assert "junit.xml" in ran.results["problems"][0]["message"]
    left = sorted(path.name for path in (folder / "agentci-results").iterdir())
    assert left == ["comment.md", "junit.xml", "report.html", "results.json", "summary.md"]


def test_outputs_omit_unwritten_report(folder: Path) -> None:
    (folder / "agentci-results" / "junit.xml" / "x").mkdir(parents=True)
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(folder.parent / "output")}
    run_agentci(["run"], cwd=folder, environ=environ)
    outputs = read_output_file((folder.parent / "output").read_text())
    assert (outputs["passed"], outputs["verdict"]) == ("false", "invalid")
    assert (outputs["junit"], outputs["results"]) == ("", "agentci-results/results.json")


@pytest.mark.parametrize("variable", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
@pytest.mark.parametrize("file", ["/nonexistent/file", "/tmp", "/dev/full"])
def test_unwritable_github_file_is_warning(folder: Path, variable: str, file: str) -> None:
    ran = run_agentci(["run"], cwd=folder, environ={"GITHUB_ACTIONS": "true", variable: file})
    assert ran.code == 0
    assert f"::warning title=agentci warning::cannot write {variable}" in ran.out


def test_unwritable_outputs_do_not_hide_invalid_input(folder: Path) -> None:
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": "/nonexistent/file"}
    ran = run_agentci(["run", "--output-dir", "trace.json"], cwd=folder, environ=environ)
    assert ran.code == 2
    assert "--output-dir trace.json" in ran.out
    assert "cannot write GITHUB_OUTPUT" in ran.out


def test_hostile_name_on_stderr_runs_no_workflow_command(folder: Path) -> None:
    name = "x\n::error::forged\r##[error]forged"
    (folder / "eval_config.yaml").write_text(CONFIG.replace("ev.py", json.dumps(name)))
    ran = _shell(folder, '"$@"', command="plan")
    assert ran.returncode == 2
    assert "forged" in ran.stderr
    assert commands_in(ran.stderr) == []


class Unconfined(LocalExecutor):
    """Runs programs without a sandbox, as on a machine that supports none."""

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        del sandbox_policy
        return super().run(
            command,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=cwd,
            environment=environment,
        )


def _run_unconfined(folder: Path) -> tuple[int, str]:
    session = make_session(folder, {}, executors=Executors({"local": Unconfined}))
    code = run_command(["run"], session)
    assert isinstance(session.out, io.StringIO)
    return code, session.out.getvalue()


@pytest.mark.parametrize("does", ["rmtree('agentci-results')", "rmtree(os.getcwd())"])
def test_removed_results_folder_is_recreated(folder: Path, does: str) -> None:
    (folder / "ev.py").write_text(
        f"import os\nfrom shutil import rmtree\n{does}\nprint('{{\"score\": 1}}')"
    )
    assert _run_unconfined(folder)[0] == 0
    assert _results(folder)["totals"]["passed"] == 1


def test_results_folder_replaced_by_symlink_is_rejected(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "ev.py").write_text(
        "import os\nos.rmdir('agentci-results')\nos.symlink('../outside', 'agentci-results')\n"
        "print('{\"score\": 1}')"
    )
    code, out = _run_unconfined(folder)
    assert code == 2
    assert "--output-dir agentci-results is outside the workspace" in out
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "shortage",
    [
        "OSError(28, 'No space left on device')",
        "MemoryError()",
        'RuntimeError("can\'t start new thread")',
    ],
)
def test_resource_shortage_is_one_line_error(folder: Path, shortage: str) -> None:
    program = f"""
import os, sys
from agentci.cli.session import run_in_process

def command(session):
    raise {shortage}

sys.exit(run_in_process(command, os.environ))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ")
    assert len(ran.stderr.splitlines()) == 1


LONG = "print(json.dumps({'score': 0, 'details': {'reasoning': 'x' * 9000, 'issues': ['y'] * 20}}))"


@pytest.mark.parametrize(("room", "kept"), [(30_000, True), (3_000, True), (100, False)])
def test_nearly_full_job_summary_is_truncated(folder: Path, room: int, kept: bool) -> None:
    (folder / "ev.py").write_text(f"import json\n{LONG}\n")
    lines = (otlp(trace=number + 1) for number in range(40))
    (folder / "trace.json").write_text("\n".join(lines))
    page = folder.parent / "page"
    page.write_text("z" * (SUMMARY_BYTES - room))
    done = _shell(
        folder, '"$@"', environ={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(page)}
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert page.stat().st_size <= SUMMARY_BYTES
    assert ("Quality gate failed" in page.read_text()) is kept
    assert ("the job summary would exceed" in done.stdout) is not kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_without_chown_capability_writes_results(folder: Path) -> None:
    os.chown(folder, 1234, 1235)
    without = "setpriv --bounding-set=-chown --inh-caps=-chown"
    done = _shell(folder, f'{without} "$@" --cache-dir ../cache')
    assert done.returncode == 0, done.stdout + done.stderr
    assert _results(folder)["decision"]["passed"]
    assert (folder / "agentci-results").stat().st_uid == 0
    assert "not cached" not in done.stdout
