"""``agentci run --watch``: what is watched, and that a change is evaluated."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.workspace import Workspace
from agentci.cli.watch import WatchedFiles
from agentci.config.settings import parse_settings
from agentci.record.recording_file import EarlierRecording, RecordingWriter, is_being_recorded
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, make_session
from tests.helpers.waiting import wait_until

CONFIG = """\
traces: traces/*.jsonl
eval_set: cases.json
evaluators:
- {name: short, type: code, path: evaluators/short.py, required: true}
"""
EVALUATOR = "from helper import SCORE\nprint('{\"score\": %s}' % SCORE)\n"
FILES = {
    "agentci.yaml": CONFIG,
    "traces/a.jsonl": otlp("Hi", "Hello", calls=()),
    "cases.json": '{"eval_set_id": "s", "eval_cases": []}',
    "evaluators/short.py": EVALUATOR,
    "evaluators/helper.py": "SCORE = 1\n",
    "README.md": "",
    "agentci-results/results.json": "{}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def watch(folder: Path, **options: str) -> WatchedFiles:
    given = {name.replace("_", "-"): [value] for name, value in options.items()}
    return WatchedFiles(parse_settings((), given), make_session(folder, {}))


@pytest.mark.parametrize(
    ("name", "is_watched"),
    [
        ("agentci.yaml", True),
        ("traces/a.jsonl", True),
        ("traces/new.jsonl", True),
        ("cases.json", True),
        ("evaluators/short.py", True),
        ("evaluators/helper.py", True),
        ("README.md", False),
        ("agentci-results/results.json", False),
        ("agentci-results/new.json", False),
        ("evaluators/.cache/x", False),
    ],
)
def test_files_that_decide_the_result_are_watched(
    folder: Path, name: str, *, is_watched: bool
) -> None:
    watched = watch(folder)
    before = watched.take_snapshot()
    (folder / name).parent.mkdir(exist_ok=True)
    with (folder / name).open("a") as file:
        file.write("\n")
    assert (watched.take_snapshot() != before) == is_watched


def test_imported_modules_outside_of_the_folder_are_watched(folder: Path) -> None:
    config = CONFIG + "- {name: polite, type: code, path: evaluators/polite.mjs}\n"
    (folder / "agentci.yaml").write_text(config)
    script = folder / "evaluators/polite.mjs"
    script.write_text("import { score } from '../shared/score.mjs';\nprint(score);\n")
    shared = folder / "shared"
    shared.mkdir()
    (shared / "score.mjs").write_text("export { one as score } from './one.mjs';\n")
    for name in ("one.mjs", "two.mjs"):
        (shared / name).write_text("export const one = 1;\n")
    watched = watch(folder)
    found = watched.take_snapshot()
    assert {shared / "score.mjs", shared / "one.mjs"} <= found.keys()
    assert shared / "two.mjs" not in found
    (shared / "score.mjs").write_text("export { one as score } from './two.mjs';\n")
    watched.read_configs_again()
    assert shared / "two.mjs" in watched.take_snapshot()


def test_files_of_the_command_line_are_watched(folder: Path) -> None:
    watched = watch(folder, traces="README.md", eval_set="agentci-results")
    assert folder / "README.md" in watched.take_snapshot()


def test_files_of_a_config_count_while_it_is_invalid(folder: Path) -> None:
    watched = watch(folder)
    watched.take_snapshot()
    (folder / "agentci.yaml").write_text("traces: [")
    before = watched.take_snapshot()
    assert folder / "evaluators/helper.py" in before
    (folder / "agentci.yaml").write_text(CONFIG.replace("cases.json", "README.md"))
    assert folder / "README.md" in watched.take_snapshot()


def test_config_that_does_not_exist_yet_is_found(folder: Path) -> None:
    (folder / "agentci.yaml").unlink()
    watched = watch(folder)
    assert not watched.take_snapshot()
    (folder / "agentci.yaml").write_text(CONFIG)
    assert folder / "traces/a.jsonl" in watched.take_snapshot()


class _Watching:
    """A process that watches a folder."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agentci", "run", "--watch", "--quiet"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for_run(self, number: int) -> str:
        """Wait until a run has ended; return what it printed."""
        wait_until(lambda: self._log.read_text().count("Watching for changes") == number)
        return self._log.read_text().split("Watching for changes")[number - 1]


@pytest.fixture
def watching(folder: Path) -> Iterator[_Watching]:
    started = _Watching(folder)
    yield started
    started.process.kill()
    started.process.wait()


def open_recording(path: Path, workspace: Workspace) -> RecordingWriter:
    found, earlier = workspace.resolve_given(path), EarlierRecording()
    return RecordingWriter(found, workspace, part=None, needs_all=False, earlier=earlier)


def test_recording_is_locked_until_it_is_complete(folder: Path) -> None:
    path = folder / "traces/a.jsonl"
    workspace = make_session(folder, {}).services.workspace
    writer = open_recording(path, workspace)
    assert not is_being_recorded(path)
    writer.add(["{}"], has_runs=True, is_complete=True)
    writer.add(["{}"], has_runs=True, is_complete=True)
    assert is_being_recorded(path)
    writer.finish(["{}", "{}"], has_runs=True, is_complete=[True, True])
    writer.close()
    assert not is_being_recorded(path)
    assert not is_being_recorded(folder / "missing")


@pytest.mark.slow
def test_recording_is_evaluated_once_it_is_complete(folder: Path, watching: _Watching) -> None:
    assert "Quality gate passed with 1 warning: 1 check passed" in watching.wait_for_run(1)
    workspace = make_session(folder, {}).services.workspace
    writer = open_recording(folder / "traces/a.jsonl", workspace)
    first, second = otlp("Hi", "Hello", calls=()), otlp("Bye", "Bye", calls=(), trace=2)
    writer.add([first], has_runs=True, is_complete=True)
    # A change of another file, which would be evaluated if the recording were complete.
    (folder / "evaluators/helper.py").write_text("SCORE = 0.75\n")
    writer.add([second], has_runs=True, is_complete=True)
    writer.finish([first, second], has_runs=True, is_complete=[True, True])
    writer.close()
    assert "Quality gate passed with 1 warning: 2 checks passed" in watching.wait_for_run(2)


@pytest.mark.slow
def test_each_change_is_evaluated(folder: Path, watching: _Watching) -> None:
    assert "Quality gate passed with 1 warning: 1 check passed" in watching.wait_for_run(1)
    (folder / "evaluators/helper.py").write_text("SCORE = 0\n")
    out = watching.wait_for_run(2)
    assert "the agent is not run: after a change of it, use `agentci record`" in out
    assert "Changed: evaluators/helper.py\n" in out
    assert "Quality gate failed: 1 of 1 check failed" in out
    (folder / "agentci.yaml").write_text(CONFIG + "evaluatrs: []\n")
    assert "did you mean" in watching.wait_for_run(3)
    (folder / "agentci.yaml").write_text(CONFIG.replace("required: true", "threshold: 0.0"))
    assert "Quality gate passed with 1 warning: 1 check passed" in watching.wait_for_run(4)
    (folder / "traces/b.jsonl").write_text(otlp("Bye", "Bye", calls=(), trace=2))
    assert "Quality gate passed with 1 warning: 2 checks passed" in watching.wait_for_run(5)
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(30) == 130
