"""Remote evaluators out of a warm cache, locked, beside the same programs as files."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import compute_added_seconds, run_in_turns
from benchmarks.recordings import write_recordings

EVALUATORS: Final = 20
# What fetching nothing and verifying everything may add to a run, in CPU seconds.
MAX_MORE_SECONDS: Final = 0.05

REVISION: Final = "0123456789abcdef0123456789abcdef01234567"
PROGRAM: Final = "import sys; sys.stdin.read(); print('{\"score\": 1}')\n"


def measure(times: int) -> bool:
    """Print what twenty evaluators take either way; tell whether that is within the limit."""
    print(f"{EVALUATORS} evaluators, remote and locked in a warm cache, and as files")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "workspace"
        folder.mkdir()
        write_recordings(folder / "traces.jsonl", 1)
        _write_evaluators(folder)
        files, remote = run_in_turns(
            [_command("files.yaml"), _command("remote.yaml", "--locked", "--offline")],
            cwd=folder,
            times=times,
        )
    more = compute_added_seconds(files, remote)
    print(f"  as files   {files}")
    print(f"  remote     {remote}")
    print(f"  more       {more:6.3f} s of CPU time  (at most {MAX_MORE_SECONDS})")
    return more <= MAX_MORE_SECONDS


def _write_evaluators(folder: Path) -> None:
    """The programs as files, and the same ones in the cache with their lock."""
    # Not at the top: what is measured before counts the memory of this process.
    from agentci.model.program import Lock, LockedProgram, ProgramFile, ProgramSnapshot
    from agentci.remote.cache_index import EvaluatorKey
    from agentci.remote.evaluator_cache import EvaluatorCache
    from agentci.remote.lock_file import render_lock

    store = EvaluatorCache(folder.parent / "cache")
    locked: list[LockedProgram] = []
    entries: dict[str, list[str]] = {"files": [], "remote": []}
    for number in range(EVALUATORS):
        name, ref = f"ev{number}", f"evaluators/ev{number}/ev{number}.py"
        content = f"# {number}\n{PROGRAM}"
        path = folder / ref
        path.parent.mkdir(parents=True)
        path.write_text(content)
        entries["files"].append(f"- {{name: {name}, type: code, path: {ref}}}")
        pin = f"repo: a/b, rev: {REVISION}"
        entries["remote"].append(f"- {{name: {name}, type: remote, ref: {ref}, {pin}}}")
        stored = store.put(
            EvaluatorKey(source="github", repository="a/b", commit=REVISION, ref=ref),
            ProgramSnapshot(
                entry=f"{name}.py",
                files={
                    f"{name}.py": ProgramFile(content=content.encode()),
                    "evaluator.yaml": ProgramFile(content=f"name: {name}\n".encode()),
                    "helpers.py": ProgramFile(content=b"HELP = True\n"),
                },
            ),
        )
        locked.append(
            LockedProgram(
                source="github",
                repository="a/b",
                revision=REVISION,
                ref=ref,
                commit=REVISION,
                files=stored.digests,
            )
        )
    (folder / "agentci.lock").write_text(render_lock(Lock(programs=tuple(locked))))
    for name, lines in entries.items():
        header = ["defaults: {cache: false}", "traces: traces.jsonl"]
        text = "\n".join([*header, "evaluators:", *lines, ""])
        (folder / f"{name}.yaml").write_text(text)


def _command(config: str, *options: str) -> Sequence[str]:
    command = [sys.executable, "-m", "agentci", "run", config, "--quiet"]
    return [*command, "--cache-dir", "../cache", *options]
