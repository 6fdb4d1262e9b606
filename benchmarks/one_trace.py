"""One recording, one metric, the whole process: agentci beside ``agentevals run``."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import Runs, run_in_turns
from benchmarks.recordings import write_eval_set, write_recordings

# The most of agentevals' time that a run may take, by metric.
MAX_RATIO: Final = {"tool_trajectory_avg_score": 0.25, "response_match_score": 0.1}
MAX_BYTES: Final = 60_000_000


def measure(agentevals: Path | None, times: int) -> bool:
    """Print what each metric takes; tell whether that is within the limits.

    Args:
        agentevals: the program of agentevals-cli 0.11.0; None leaves out the ratio.
        times: how often each command is run, in turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_recordings(Path(folder, "traces.jsonl"), 1)
        write_eval_set(Path(folder, "golden.json"), 1)
        within = [_measure(metric, agentevals, Path(folder), times) for metric in MAX_RATIO]
    return all(within)


def _measure(metric: str, agentevals: Path | None, folder: Path, times: int) -> bool:
    print(f"one trace, {metric}")
    if agentevals is None:
        [ours] = run_in_turns([_our_command(metric)], cwd=folder, times=times)
        print("  not compared: --agentevals names no program")
        return _report(ours)
    commands = [_our_command(metric), _their_command(agentevals, metric)]
    ours, theirs = run_in_turns(commands, cwd=folder, times=times)
    print(f"  agentevals {theirs}")
    ratio, limit = ours.seconds / theirs.seconds, MAX_RATIO[metric]
    print(f"  ratio      {ratio:6.3f}  (at most {limit})")
    return _report(ours) and ratio <= limit


def _report(ours: Runs) -> bool:
    print(f"  agentci    {ours}  (at most {MAX_BYTES / 1e6:.0f} MB)")
    return ours.peak_bytes <= MAX_BYTES


def _our_command(metric: str) -> Sequence[str]:
    command = [sys.executable, "-m", "agentci", "run", "--quiet", "--metric", metric]
    return [*command, "--traces", "traces.jsonl", "--eval-set", "golden.json"]


def _their_command(agentevals: Path, metric: str) -> Sequence[str]:
    command = [str(agentevals), "run", "traces.jsonl", "--metric", metric]
    return [*command, "--eval-set", "golden.json", "--output", "json"]
