"""Thousands of recordings in one file, one metric: time grows with them, memory with results."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import run_in_turns
from benchmarks.recordings import write_eval_set, write_recordings

COUNTS: Final = (2_500, 10_000, 40_000)
MAX_BYTES: Final = 300_000_000
# What a trace more may cost: its result, and what reports show of it. It is recorded in 4,400.
MAX_BYTES_A_TRACE: Final = 5_000
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
    more = (taken[-1].peak_bytes - taken[0].peak_bytes) / (COUNTS[-1] - COUNTS[0])
    print(f"  memory: at most {MAX_BYTES / 1e6:.0f} MB")
    print(f"  memory a trace: {more:,.0f} bytes  (at most {MAX_BYTES_A_TRACE:,})")
    small = taken[-1].peak_bytes <= MAX_BYTES and more <= MAX_BYTES_A_TRACE
    return most / least <= MAX_GROWTH and small


def _command(count: int) -> Sequence[str]:
    command = [sys.executable, "-m", "agentci", "run", "--quiet", "--eval-set", "golden.json"]
    return [*command, "--metric", "tool_trajectory_avg_score", "--traces", f"{count}.jsonl"]
