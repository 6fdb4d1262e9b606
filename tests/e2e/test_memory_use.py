"""Memory use does not grow with the number of traces."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import ROOT, Ran, run_agentci

pytestmark = pytest.mark.slow

# The question of one trace; few traces already exceed the limit for traces in memory. That buffer
# may be empty or full at the peak: many traces are so many that this does not decide.
WORDS = "word " * 40_000
FEW, MANY = 80, 640

RUN = """
import sys
from agentci.cli.main import main
code = main()
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(peak, file=sys.stderr)
sys.exit(code)
"""
METRIC = ("--metric", "tool_trajectory_avg_score", "--eval-set", "eval_set.json")
ARGUMENTS = ("run", *METRIC, "--traces")


@pytest.fixture(autouse=True)
def expected_turns(tmp_path: Path) -> None:
    (tmp_path / "eval_set.json").write_text(eval_set())


def _write(folder: Path, count: int, *, lines: bool) -> str:
    """Write ``count`` traces to one file or to one file each, and return their glob."""
    texts = [otlp(f"{number} {WORDS}", trace=number + 1) for number in range(count)]
    if lines:
        (folder / f"{count}.jsonl").write_text("\n".join(texts))
        return f"{count}.jsonl"
    (folder / str(count)).mkdir()
    for number, text in enumerate(texts):
        (folder / str(count) / f"{number}.json").write_text(text)
    return f"{count}/*.json"


def _peak_bytes(folder: Path, traces: str) -> int:
    """Return the peak memory of a process that evaluates the traces."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *ARGUMENTS, traces],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    # No run finds the question in a call: the gate fails, and nothing else does.
    assert ran.returncode == 1, ran.stderr
    results = json.loads((folder / "agentci-results" / "results.json").read_text())
    assert results["totals"]["checks"] > 0
    return int(ran.stderr.splitlines()[-1]) * 1024


@pytest.mark.parametrize("lines", [True, False], ids=["one file", "many files"])
def test_memory_grows_by_less_than_fifth_of_trace_size(tmp_path: Path, lines: bool) -> None:
    few, many = (
        _peak_bytes(tmp_path, _write(tmp_path, count, lines=lines)) for count in (FEW, MANY)
    )
    assert many - few < (MANY - FEW) * len(WORDS) / 5


class TestWithoutTemporaryFolder:
    @pytest.fixture(autouse=True)
    def nowhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    def _run(self, folder: Path, traces: str) -> Ran:
        return run_agentci([*ARGUMENTS, traces], cwd=folder)

    def test_few_traces_are_evaluated(self, tmp_path: Path) -> None:
        (tmp_path / "trace.json").write_text(otlp())
        assert len(self._run(tmp_path, "trace.json").results["results"]) == 1

    def test_lack_of_disk_space_is_reported_with_hint(self, tmp_path: Path) -> None:
        ran = self._run(tmp_path, _write(tmp_path, FEW, lines=True))
        assert ran.code == 2
        [problem] = [each for each in ran.results["problems"] if each["severity"] == "error"]
        assert "not enough disk space" in problem["message"]
        assert "TMPDIR" in problem["hint"]


def test_invalid_line_rejects_its_whole_file_only(tmp_path: Path) -> None:
    whole = "\n".join(otlp(trace=number + 1) for number in range(300))
    (tmp_path / "a.jsonl").write_text(f"{whole}\n{{\n")
    (tmp_path / "b.jsonl").write_text(otlp(trace=999))
    ran = run_agentci([*ARGUMENTS, "*.jsonl"], cwd=tmp_path)
    assert [result["file"] for result in ran.results["results"]] == ["b.jsonl"]
    assert json.dumps(ran.results["problems"]).count("invalid JSON") == 1
