"""Helpers for tests of the response cache: programs that report when they ran."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

PYTHON = """\
import json, os, pathlib, sys, time
import helper
json.load(sys.stdin)
seen = [helper.WORD, pathlib.Path("data/words.txt").read_text(), os.environ.get("MOOD")]
print(json.dumps({"score": 1, "details": {"at": time.time_ns(), "seen": seen}}))
"""
BASH = """\
#!/bin/bash
. "$(dirname "$0")/helper.sh"
seen="$WORD $(cat data/words.txt) $MOOD"
echo "{\\"score\\": 1, \\"details\\": {\\"at\\": $(date +%s%N), \\"seen\\": \\"$seen\\"}}"
"""
NODE = """\
const fs = require("fs"), helper = require("./helper.js")
const seen = [helper.WORD, fs.readFileSync("data/words.txt", "utf8"), process.env.MOOD || null]
const at = String(process.hrtime.bigint())
console.log(JSON.stringify({score: 1, details: {at, seen}}))
"""
PROGRAMS = {"check.py": PYTHON, "check.sh": BASH, "check.js": NODE}
HELPERS = {
    "check.py": ("helper.py", "WORD = {!r}\n"),
    "check.sh": ("helper.sh", "WORD={}\n"),
    "check.js": ("helper.js", "exports.WORD = {!r}\n"),
}


def write_program(folder: Path, name: str = "check.py", *entry: str) -> None:
    """Write a workspace with a program, a module beside it and a data file in another folder."""
    own, data = folder / "evals" / "check", folder / "data"
    own.mkdir(parents=True)
    data.mkdir()
    (own / name).write_text(PROGRAMS[name])
    (own / name).chmod(0o755)
    write_helper(folder, "one", name=name)
    (data / "words.txt").write_text("kind")
    (folder / "trace.json").write_text(otlp())
    configure(folder, *entry, name=name)


def write_helper(folder: Path, word: str, *, name: str = "check.py") -> None:
    """Write the module beside the program."""
    helper, text = HELPERS[name]
    (folder / "evals" / "check" / helper).write_text(text.format(word))


def configure(folder: Path, *entry: str, name: str = "check.py", cache: str = "true") -> None:
    """Write a config with one cached evaluator; ``entry`` adds fields to it."""
    own = ("name: check", "type: code", f"path: evals/check/{name}")
    fields = ", ".join((*own, *([f"cache: {cache}"] if cache else []), *entry))
    config = f"traces: trace*.json\nevaluators:\n- {{{fields}}}\n"
    (folder / "eval_config.yaml").write_text(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of one run, read before a later run overwrites its reports.

    Attributes:
        results: the results of results.json.
        times: when the programs ran whose responses were used.
        cached: for each check, whether its response came from the cache.
    """

    code: int
    out: str
    results: list[dict[str, Any]]

    @property
    def times(self) -> list[int]:
        return [int(result["details"]["at"]) for result in self.results]

    @property
    def cached(self) -> list[bool]:
        return [result["cached"] for result in self.results]

    @property
    def seen(self) -> list[str]:
        """The content that the program read."""
        [result] = self.results
        found: list[str] = result["details"]["seen"]
        return found


def run(folder: Path, *options: str, environ: Mapping[str, str] | None = None) -> Judged:
    """Run the evaluation in this process."""
    ran = run_agentci(["run", *options], cwd=folder, environ=environ)
    assert not ran.problems, ran.problems
    return Judged(code=ran.code, out=ran.out, results=ran.results["results"])
