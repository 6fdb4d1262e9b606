"""Finds the files that a run is about: configs by name, recordings by glob."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentci.errors import InputError
from agentci.model.problem import Problem
from agentci.workspace import Workspace

CONFIG_NAMES = ("agentci.yaml", "eval_config.yaml")
CONFIG_FOLDER = ".agentci"
CONFIG_SUFFIX = ".eval.yaml"
LOOKED_FOR = "agentci.yaml, eval_config.yaml, .agentci/*.yaml, **/*.eval.yaml"
VENDORED = frozenset(
    {"node_modules", "vendor", "third_party", "venv", "site-packages", "__pycache__"}
)


def find_configs(given: Sequence[str], workspace: Workspace) -> tuple[Path, ...]:
    """Configs by file, folder or glob; without any, those that lie below the working directory.

    Raises:
        InputError: something that was given is not there, or nothing was found.
    """
    found: dict[Path, None] = {}
    problems: list[Problem] = []
    for text in given or (".",):
        configs = [
            config
            for path in matches(workspace.cwd, text)
            for config in (_configs_in(path) if path.is_dir() else (path,))
        ]
        if not configs:
            problems.append(_no_config(text, workspace))
        found.update(dict.fromkeys(configs))
    if problems:
        raise InputError(problems)
    return tuple(found)


def matches(base: Path, pattern: str) -> tuple[Path, ...]:
    """Paths below ``base`` by literal name or by glob, sorted.

    A name that exists is taken as it is, so that files with ``[`` in their names are found.
    Folders are only found by their literal names.
    """
    literal = base / pattern
    if os.path.lexists(literal):
        return (literal,)
    found = glob.iglob(pattern, root_dir=base, recursive=True)  # noqa: PTH207 (follows links)
    return tuple(sorted(path for name in found if not (path := base / name).is_dir()))


def _no_config(text: str, workspace: Workspace) -> Problem:
    where = "the working directory" if text == "." else workspace.name_of(workspace.cwd / text)
    if (workspace.cwd / text).is_dir():
        return Problem(
            message=f"no config was found below {where}",
            hint=f"looked for {LOOKED_FOR}; name a config, or a metric with --metric",
        )
    return Problem(message=f"{where} does not exist", hint="give the path of a config")


def _configs_in(folder: Path) -> Iterator[Path]:
    for name in CONFIG_NAMES:
        if (folder / name).is_file():
            yield folder / name
    yield from sorted((folder / CONFIG_FOLDER).glob("*.yaml"))
    yield from _eval_files(folder)


def _eval_files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in VENDORED
        )
        for name in sorted(files):
            if name.endswith(CONFIG_SUFFIX) and not name.startswith("."):
                yield Path(parent, name)
