"""However many recordings there are, they are never all in memory."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, run_agentci

# What one trace says; already of few traces it is more than is kept in memory of all.
WORDS = "word " * 40_000
FEW, MANY = 80, 320

RUN = """
import sys
from agentci.cli.main import main
code = main()
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(peak, file=sys.stderr)
sys.exit(code)
"""
ARGUMENTS = ("run", "--metric", "tool_trajectory_avg_score", "--traces")


def _write(folder: Path, count: int, *, lines: bool) -> str:
    """Recordings of ``count`` traces in one file or in as many; how they are named."""
    recordings = [otlp(f"{number} {WORDS}", trace=number + 1) for number in range(count)]
    if lines:
        (folder / f"{count}.jsonl").write_text("\n".join(recordings))
        return f"{count}.jsonl"
    (folder / str(count)).mkdir()
    for number, text in enumerate(recordings):
        (folder / str(count) / f"{number}.json").write_text(text)
    return f"{count}/*.json"


def _peak_bytes(folder: Path, traces: str) -> int:
    """The most memory of a process that judges the recordings."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *ARGUMENTS, traces],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return int(ran.stderr.splitlines()[-1]) * 1024


@pytest.mark.parametrize("lines", [True, False], ids=["in one file", "in many files"])
def test_memory_grows_by_less_than_a_fifth_of_what_is_recorded(tmp_path: Path, lines: bool) -> None:
    few, many = (
        _peak_bytes(tmp_path, _write(tmp_path, count, lines=lines)) for count in (FEW, MANY)
    )
    assert many - few < (MANY - FEW) * len(WORDS) / 5


class TestWithoutAFolderForFiles:
    @pytest.fixture(autouse=True)
    def nowhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    def _run(self, folder: Path, traces: str) -> Ran:
        return run_agentci([*ARGUMENTS, traces], cwd=folder)

    def test_a_few_recordings_are_judged(self, tmp_path: Path) -> None:
        (tmp_path / "trace.json").write_text(otlp())
        assert len(self._run(tmp_path, "trace.json").results["results"]) == 1

    def test_those_that_need_more_room_are_told_with_a_way_out(self, tmp_path: Path) -> None:
        ran = self._run(tmp_path, _write(tmp_path, FEW, lines=True))
        assert ran.code == 2
        [problem] = [each for each in ran.results["problems"] if each["severity"] == "error"]
        assert "not enough disk space" in problem["message"]
        assert "TMPDIR" in problem["hint"]


def test_a_broken_line_far_down_loses_all_of_its_file_and_no_other(tmp_path: Path) -> None:
    whole = "\n".join(otlp(trace=number + 1) for number in range(300))
    (tmp_path / "a.jsonl").write_text(f"{whole}\n{{\n")
    (tmp_path / "b.jsonl").write_text(otlp(trace=999))
    ran = run_agentci([*ARGUMENTS, "*.jsonl"], cwd=tmp_path)
    assert [result["file"] for result in ran.results["results"]] == ["b.jsonl"]
    assert json.dumps(ran.results["problems"]).count("invalid JSON") == 1
