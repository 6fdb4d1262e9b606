"""Helpers for tests with one remote evaluator on a fake GitHub server."""

from pathlib import Path

from tests.helpers.support import Ran, run_agentci
from tests.remote.sources.fake_github import FakeGitHub, Kept

REPOSITORY = "agentevals-dev/evaluators"
REF = "evaluators/fixed/fixed.py"
PROGRAM = """\
import json, pathlib, sys
json.load(sys.stdin)
score = float((pathlib.Path(__file__).parent / "score.txt").read_text())
print(json.dumps({"score": score}))
"""


def files(score: str = "0.75", **more: str) -> dict[str, str | bytes | Kept]:
    """Return the files of a repository whose evaluator always returns ``score``."""
    return {
        REF: PROGRAM,
        "evaluators/fixed/score.txt": score,
        "evaluators/fixed/evaluator.yaml": "name: fixed\n",
        "evaluators/other/other.py": "raise SystemExit(1)\n",
        **more,
    }


def agentci(folder: Path, github: FakeGitHub, *arguments: str, **environ: str) -> Ran:
    """Run the command line with the URLs of the fake GitHub server."""
    hosts = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
    return run_agentci(arguments, cwd=folder, environ={**hosts, **environ})


def configure(folder: Path, *more: str) -> None:
    """Write a config with the remote evaluator; ``more`` lines extend its entry."""
    (folder / "agentci.yaml").write_text(
        "traces: trace.json\n"
        "evaluators:\n"
        "  - name: fixed\n"
        "    type: remote\n"
        f"    ref: {REF}\n" + "".join(f"    {line}\n" for line in more)
    )


def scores(ran: Ran) -> list[float | None]:
    assert not ran.problems, ran.problems
    return [result["score"] for result in ran.results["results"]]
