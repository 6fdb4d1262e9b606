"""Interpreters that run a script in the place of one that its command names."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import agentci.execution.child
from agentci.execution.runtimes import node, python
from agentci.execution.runtimes.runtime import Runtime

# `node` is looked for among all that are here, since not every one knows TypeScript; the others
# are only replaced where they are not here.
NODE: Final = "node"
# Stand-ins for AgentV's SDKs, where a repository has not installed them.
SDK_FOLDER: Final = Path(agentci.execution.child.__file__).parent / "agentv"
_SDK: Final = re.compile(rb"""['"]@agentv/(?:eval|sdk)['"]""")

# What a script says of itself; `env` takes several words with `-S` alone.
_FIRST_LINE: Final = re.compile(rb"#!\s*/usr/bin/env\s+(?:-S\s+([^\n]+)|(\S+)\s*\n)")
MAX_FIRST_LINE: Final = 200

STAND_INS: Final[Mapping[str, Runtime]] = {NODE: node, "bun": node, "uv": python}


def stand_in(command: Sequence[str], folder: Path, search_path: str) -> tuple[str, ...] | None:
    """The command that runs the same script, as ``bun run x.ts`` or ``uv run x.py`` would.

    A script that is a program of its own is one that is run as its first line says.

    None where there is no need for it, or no script in ``folder``.

    Raises:
        EvaluatorError: nothing on this machine can run the script.
    """
    program, *arguments = (*_interpreter_of(command[0], folder), *command)
    runtime = STAND_INS.get(program)
    if runtime is None or (program != NODE and shutil.which(program, path=search_path)):
        return None
    words = arguments[1:] if arguments[:1] == ["run"] else arguments
    if not words or Path(words[0]).suffix not in runtime.EXTENSIONS:
        return None
    script = folder / words[0]
    if not script.is_file():
        return None
    interpreter, *others = runtime.command_for(script, search_path=search_path)
    return (interpreter, *_before(script), *others, *words[1:])


def _interpreter_of(program: str, folder: Path) -> tuple[str, ...]:
    """The words that run a program of a config, by its first line; none where it is no script."""
    path = folder / program
    if "/" not in program or not path.is_file() or not os.access(path, os.X_OK):
        return ()
    with path.open("rb") as file:
        found = _FIRST_LINE.match(file.read(MAX_FIRST_LINE))
    return () if found is None else tuple(os.fsdecode(found[1] or found[2]).split())


def _before(script: Path) -> tuple[str, ...]:
    """What has Node.js find AgentV's SDK for a judge that imports it."""
    if script.suffix in python.EXTENSIONS or not _SDK.search(script.read_bytes()):
        return ()
    return ("--import", (SDK_FOLDER / "register.mjs").as_uri())
