"""Interpreters that run a script in the place of one that its command names."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import agentci.shims
from agentci.runtimes import node, python
from agentci.runtimes.base import Runtime

# `node` is looked for among all that are here, since not every one knows TypeScript; the others
# are only replaced where they are not here.
NODE: Final = "node"
# Stand-ins for AgentV's SDKs, where a repository has not installed them.
SDK_FOLDER: Final = Path(agentci.shims.__file__).parent / "agentv"
_SDK: Final = re.compile(rb"""['"]@agentv/(?:eval|sdk)['"]""")

STAND_INS: Final[Mapping[str, Runtime]] = {NODE: node, "bun": node, "uv": python}


def stand_in(command: Sequence[str], folder: Path, search_path: str) -> tuple[str, ...] | None:
    """The command that runs the same script, as ``bun run x.ts`` or ``uv run x.py`` would.

    None where there is no need for it, or no script in ``folder``.

    Raises:
        EvaluatorError: nothing on this machine can run the script.
    """
    program, *arguments = command
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


def _before(script: Path) -> tuple[str, ...]:
    """What has Node.js find AgentV's SDK for a judge that imports it."""
    if script.suffix in python.EXTENSIONS or not _SDK.search(script.read_bytes()):
        return ()
    return ("--import", (SDK_FOLDER / "register.mjs").as_uri())
