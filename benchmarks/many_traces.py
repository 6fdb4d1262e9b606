"""Thousands of recordings in one file, one metric: time grows with them, memory stays bounded."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import run_in_turns
from benchmarks.recordings import write_eval_set, write_recordings

COUNTS: Final = (2_500, 5_000, 10_000)
MAX_BYTES: Final = 300_000_000
# How much longer a trace of the largest file may take than one of the smallest.
MAX_GROWTH: Final = 1.25


def measure(times: int) -> bool:
    """Print what files of several sizes take; tell whether that is within the limits.

    Args:
        times: how often each file is judged, in turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_eval_set(Path(folder, "golden.json"))
        for count in COUNTS:
            write_recordings(Path(folder, f"{count}.jsonl"), count)
        taken = run_in_turns([_command(count) for count in COUNTS], cwd=Path(folder), times=times)
    print("many traces, tool_trajectory_avg_score")
    for count, runs in zip(COUNTS, taken, strict=True):
        print(f"  {count:6,}     {runs}  {count / runs.seconds:,.0f} a second")
    least, *_, most = (runs.cpu_seconds / count for count, runs in zip(COUNTS, taken, strict=True))
    print(f"  CPU time a trace, most to fewest traces: {most / least:.2f}  (at most {MAX_GROWTH})")
    print(f"  memory: at most {MAX_BYTES / 1e6:.0f} MB")
    return most / least <= MAX_GROWTH and taken[-1].peak_bytes <= MAX_BYTES


def _command(count: int) -> Sequence[str]:
    command = [sys.executable, "-m", "agentci", "run", "--quiet", "--eval-set", "golden.json"]
    return [*command, "--metric", "tool_trajectory_avg_score", "--traces", f"{count}.jsonl"]
