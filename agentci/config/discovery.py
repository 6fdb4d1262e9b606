"""Finds the files that a run is about: configs by name, recordings by glob."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentci._util.workspace import Workspace, is_file, is_folder
from agentci.model.problem import Problem

CONFIG_NAMES = ("agentci.yaml", "eval_config.yaml")
CONFIG_FOLDER = ".agentci"
CONFIG_SUFFIX = ".eval"
LOOKED_FOR = "agentci.yaml, eval_config.yaml, .agentci/*.yaml, **/*.eval.yaml"
VENDORED = frozenset(
    {"node_modules", "vendor", "third_party", "venv", "site-packages", "__pycache__"}
)


def find_configs(
    given: Sequence[str], workspace: Workspace
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Configs by file, folder or glob; without any, those that lie below the working directory.

    With a problem for each that is not there or may not be read, beside which those that were
    found can have problems of their own.
    """
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for text in given or (".",):
        configs: list[Path] = []
        for path in matches(workspace.cwd, text):
            if is_folder(path):
                below = tuple(_configs_in(path))
                configs += below
                problems += _led_out(path, below, workspace)
            else:
                configs.append(path)
        if not configs:
            problems.append(_no_config(text, workspace))
        for config in configs:
            found.setdefault(workspace.name_of(config), config)
    return tuple(found.values()), tuple(problems)


def matches(base: Path, pattern: str) -> tuple[Path, ...]:
    """Paths below ``base`` by literal name or by glob, sorted.

    A name that exists is taken as it is, so that files with ``[`` in their names are found; but a
    file called ``*`` is only the first of those that are found, or it would hide all the others.
    Folders are only found by their literal names. ``**`` goes through any number of folders, but
    through no links, which may lead in circles.
    """
    literal = base / pattern
    if is_folder(literal):
        return (literal,)
    found = {Path("/") if pattern.startswith("/") else base}
    parts = [part for part in pattern.split("/") if part]
    for part in (*parts, "*") if parts[-1:] == ["**"] else parts:
        found = {path for folder in found for path in _step(folder, part)}
    files = (path for path in found if not is_folder(path))
    return tuple(sorted(files, key=lambda path: (path != literal, path)))


def _step(folder: Path, part: str) -> Iterator[Path]:
    """The paths that one part of a pattern leads to."""
    if part == "**":
        yield from _folders(folder)
    elif os.path.lexists(folder / part) and not {"*", "?"} & set(part):
        yield folder / part
    else:
        names = glob.iglob(part, root_dir=folder)  # noqa: PTH207 (skips hidden files, never raises)
        yield from (folder / name for name in names)


def _folders(folder: Path, *, skipped: frozenset[str] = frozenset()) -> Iterator[Path]:
    """``folder`` and all below it, by name; hidden ones and links aside. Of any depth."""
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        yield parent
        with suppress(OSError), os.scandir(parent) as entries:
            names = (each.name for each in entries if each.is_dir(follow_symlinks=False))
            shown = (name for name in names if not name.startswith(".") and name not in skipped)
            waiting += (parent / name for name in sorted(shown, reverse=True))


def _no_config(text: str, workspace: Workspace) -> Problem:
    where = "the working directory" if text == "." else workspace.name_of(workspace.cwd / text)
    if is_folder(workspace.cwd / text):
        misnamed = next(_configs_in(workspace.cwd / text, extension=".yml"), None)
        if misnamed is not None:
            name = workspace.name_of(misnamed)
            return Problem(
                message=f"no config was found below {where}",
                hint=f"rename {name} to {name.removesuffix('.yml')}.yaml, or name it",
            )
        return Problem(
            message=f"no config was found below {where}",
            hint=f"looked for {LOOKED_FOR}; name a config, or have `run` judge by --metric alone",
        )
    return Problem(message=f"{where} does not exist", hint="give the path of a config")


def _led_out(folder: Path, configs: Sequence[Path], workspace: Workspace) -> tuple[Problem, ...]:
    """A link in the repository must not make any file of the machine a config."""
    if not workspace.holds(folder):
        return ()
    return tuple(
        Problem(
            message=f"{workspace.name_of(config)} leads out of the workspace",
            hint="name it on the command line if that is what you want",
        )
        for config in configs
        if not workspace.holds(config)
    )


def _configs_in(folder: Path, extension: str = ".yaml") -> Iterator[Path]:
    for name in CONFIG_NAMES:
        path = (folder / name).with_suffix(extension)
        if is_file(path):
            yield path
    yield from matches(folder, f"{CONFIG_FOLDER}/*{extension}")
    for parent in _folders(folder, skipped=VENDORED):
        yield from matches(parent, f"*{CONFIG_SUFFIX}{extension}")
