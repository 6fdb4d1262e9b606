"""The workflows, jobs for other services and command lines in the documents."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from agentci.cli.arguments import make_parser
from tests.helpers.documents import DOCUMENTS, name_of, snippets
from tests.helpers.support import ROOT

RECIPES: Final = ROOT / "docs" / "recipes.md"
ACTION: Final = "org/agent-eval-action@v1"
PINNED: Final = f"org/agent-eval-action@{'0123456789' * 4} # v1.0.0"
AROUND: Final[Mapping[str, Any]] = {
    "name": "around",
    "on": {"pull_request": None},
    "permissions": {},
    "concurrency": {"group": "${{ github.ref }}"},
    "jobs": {},
}
JOB: Final[Mapping[str, Any]] = {
    "name": "Judge",
    "runs-on": "ubuntu-latest",
    "permissions": {"contents": "read"},
}


def workflows() -> dict[str, str]:
    """Every workflow in documents and examples by location; partial ones are completed."""
    found = {
        f"examples-{path.name}": path.read_text().replace(ACTION, PINNED)
        for path in sorted(ROOT.glob("examples/workflows/*.yml"))
    }
    for document in DOCUMENTS:
        for number, snippet in enumerate(snippets(document, "yaml"), 1):
            whole = _whole(yaml.safe_load(snippet), snippet)
            if whole is not None:
                name = f"{name_of(document).replace('/', '-')}-{number}.yml"
                found[name] = whole.replace(ACTION, PINNED)
    return found


def _whole(content: Any, text: str) -> str | None:
    """The complete workflow for a snippet, or None if it is not part of a workflow."""
    match content:
        case {"jobs": _}:
            return text
        case [{"uses": _} | {"run": _} | {"id": _} | {"if": _}, *_]:
            return _dumped(jobs={"job": {**JOB, "steps": content}})
        case {"steps": _}:
            return _dumped(jobs={"job": {**JOB, **content}})
        case {True: events}:  # what YAML 1.1 reads for `on`
            return _dumped(on=events, jobs={"job": {**JOB, "steps": [{"run": "true"}]}})
        case _:
            return None


def _dumped(**content: Any) -> str:
    return yaml.safe_dump({**AROUND, **content}, sort_keys=False, width=10_000)


def step_of(workflow: str, job: str) -> Mapping[str, Any]:
    """The step of a job that runs a script."""
    steps = yaml.safe_load(workflow)["jobs"][job]["steps"]
    (found,) = (step for step in steps if "run" in step)
    step: Mapping[str, Any] = found
    return step


def gitlab() -> str:
    """The example for GitLab."""
    return (ROOT / "examples/ci/gitlab-ci.yml").read_text()


def jenkins() -> str:
    """The example for Jenkins."""
    return (ROOT / "examples/ci/Jenkinsfile").read_text()


def commands_of_jenkins() -> list[str]:
    """The commands of the ``sh`` steps."""
    return re.findall(r"\bsh '([^']+)'", jenkins())


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """The document and arguments of each call of ``agentci`` in a code block."""
    names = "|".join(_commands())
    for document in DOCUMENTS:
        for snippet in snippets(document):
            for words in re.findall(rf"\bagentci ((?:{names})\b[^#`\n]*)", snippet):
                yield name_of(document), shlex.split(words.rstrip("' \\"))


def _commands() -> list[str]:
    (listed,) = (each for each in make_parser()._actions if each.dest == "command")
    assert isinstance(listed.choices, Mapping)
    return list(listed.choices)
