"""A second run over unchanged input: a thousand checks by programs, and no program is run."""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import run, run_in_turns
from benchmarks.recordings import write_recordings

# Traces and evaluators, a thousand checks each, and what they may take. Of a thousand traces most
# of the time goes into reading them, which is measured by itself (``many_traces``).
SHAPES: Final = ((100, 10, 0.4), (1_000, 1, None))

# As quick as programs are that a system can start, so that the first run takes not too long.
PROGRAM: Final = """\
#!/bin/sh
read -r line
echo '{"score": 1}'
"""


def measure(times: int) -> bool:
    """Print what first and further runs take; tell whether the latter are within the limit."""
    print("a thousand checks by programs, all of them judged before")
    within = [_measure(*shape, times=times) for shape in SHAPES]
    return all(within)


def _measure(traces: int, evaluators: int, most: float | None, *, times: int) -> bool:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "workspace"
        folder.mkdir()
        write_recordings(folder / "traces.jsonl", traces)
        _write_evaluators(folder, evaluators)
        first = run(_command(), cwd=folder)
        [again] = run_in_turns([_command()], cwd=folder, times=times)
        results = json.loads((folder / "agentci-results" / "results.json").read_text())["results"]
    cached = sum(result["cached"] for result in results)
    print(f"  {traces:5,} traces, {evaluators:2} evaluators: first {first.seconds:6.2f} s")
    limit = "" if most is None else f" (at most {most} s)"
    print(f"    again    {again}  {cached:,} of {len(results):,} cached{limit}")
    return (most is None or again.seconds <= most) and cached == len(results)


def _write_evaluators(folder: Path, count: int) -> None:
    entries = []
    for number in range(count):
        path = folder / "evaluators" / f"ev{number}.sh"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM)
        path.chmod(0o755)
        entries.append(
            f"- {{name: ev{number}, type: code, path: evaluators/{path.name}, cache: true}}"
        )
    config = ["evaluators:", *entries, "traces: traces.jsonl", ""]
    (folder / "eval_config.yaml").write_text("\n".join(config))


def _command() -> Sequence[str]:
    return [sys.executable, "-m", "agentci", "run", "--quiet", "--cache-dir", "../cache"]
