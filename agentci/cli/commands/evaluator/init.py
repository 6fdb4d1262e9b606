"""``agentci evaluator init``: an evaluator to start from, which runs as it stands."""

import builtins
import keyword
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.ownership import give_to_owner, make_folder
from agentci._util.text.escape import log
from agentci._util.text.suggest import one_of, quoted
from agentci._util.workspace import Workspace
from agentci.cli.commands.evaluator.templates import FUNCTION, JAVASCRIPT, PYTHON, TYPESCRIPT
from agentci.errors import InputError
from agentci.model.problem import Problem
from agentci.runner.services import World

MANIFEST: Final = "evaluator.yaml"
MAX_NAME: Final = 100


class Language(Struct, frozen=True, kw_only=True):
    """One that evaluators can be started in."""

    name: str
    short: str
    template: str

    @property
    def extension(self) -> str:
        """Of its files: ``.py``."""
        return f".{self.short}"


LANGUAGES: Final = (
    Language(name="python", short="py", template=PYTHON),
    Language(name="javascript", short="js", template=JAVASCRIPT),
    Language(name="typescript", short="ts", template=TYPESCRIPT),
)

# A file or a function of such a name would stand before what evaluators need themselves.
TAKEN: Final = frozenset(
    {
        *(*dir(builtins), *sys.stdlib_module_names, *keyword.kwlist),
        *("agentci", "evaluator", "EvalInput", "EvalResult"),
        *("agentevals_evaluator_sdk", "pydantic"),
    }
)


def init(name: str, *, runtime: str | None, folder: str, world: World) -> int:
    """Make ``folder/NAME`` with a program and its manifest, and say how to go on.

    Args:
        name: of the evaluator; an extension says the language.
        runtime: the language, by its name or extension; Python where neither says it.
        folder: from the working directory; made where it is missing.

    Raises:
        InputError: the name will not do, a file is in the way, or the disk refuses.
    """
    stem, language = _choice(name, runtime)
    _check(stem, language)
    home = world.workspace.cwd / folder / stem
    program = f"{stem}{language.extension}"
    text = language.template.replace(FUNCTION, stem.replace("-", "_"))
    _write(home, {program: text, MANIFEST: _manifest(stem, language)}, world.workspace)
    shown = Path(os.path.relpath(home, world.workspace.cwd))
    world.out.write(log(_next_steps(stem, shown, program)))
    return 0


def _choice(name: str, runtime: str | None) -> tuple[str, Language]:
    """The name without its extension, and the language that either says."""
    stem, extension = os.path.splitext(name)  # noqa: PTH122 (a path would swallow dots and slashes)
    if not extension:
        return stem, LANGUAGES[0] if runtime is None else _language(runtime)
    language = next((each for each in LANGUAGES if each.extension == extension.lower()), None)
    if language is None:
        extensions = one_of([each.extension for each in LANGUAGES])
        message = f"{quoted(name)} ends in {quoted(extension)}, not in {extensions}"
        hint = "leave that off; programs in other languages: docs/writing-evaluators.md"
        raise InputError.of(message, hint=hint)
    if runtime is not None and _language(runtime) is not language:
        message = f"{quoted(name)} is {language.name}, --runtime says {quoted(runtime)}"
        raise InputError.of(message, hint="leave one of the two off")
    return stem, language


def _language(runtime: str) -> Language:
    for language in LANGUAGES:
        if runtime.lower() in (language.short, language.name):
            return language
    known = one_of([each.short for each in LANGUAGES])
    raise InputError.of(
        f"there is no --runtime {quoted(runtime)} to start from",
        hint=f"choose {known}; programs in other languages: docs/writing-evaluators.md",
    )


def _check(stem: str, language: Language) -> None:
    """See that the name can be that of a file, a folder, a remote evaluator and a function."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem):
        message = (
            f"an evaluator cannot be named {quoted(stem)}:"
            " a letter (a to z) comes first, then letters, digits, _ and -"
        )
        where = ", and say with --dir where it goes" if "/" in stem else ""
        raise InputError.of(message, hint=f"try {quoted(_near(stem))}{where}")
    if len(stem) > MAX_NAME:
        message = f"the name {quoted(stem)} has {len(stem)} characters"
        raise InputError.of(message, hint=f"take {MAX_NAME} at most")
    if language.template is PYTHON and stem.replace("-", "_") in TAKEN:
        message = f"an evaluator cannot be named {quoted(stem)}: Python has another use for that"
        raise InputError.of(message, hint=f"try {quoted(f'{stem}_check')}")


def _near(stem: str) -> str:
    """A name that will do, as like ``stem`` as can be."""
    letters = unicodedata.normalize("NFKD", stem.rpartition("/")[2]).encode("ascii", "ignore")
    return re.sub(r"[^A-Za-z0-9]+", "_", letters.decode()).strip("_0123456789") or "my_evaluator"


def _manifest(stem: str, language: Language) -> str:
    return _yaml(
        {
            "name": stem,
            "description": "Every turn is answered.",
            "language": language.name,
            "entrypoint": f"{stem}{language.extension}",
            "tags": [],
            "author": "",
        }
    )


def _write(home: Path, files: Mapping[str, str], workspace: Workspace) -> None:
    """Write all files, never over another one."""
    try:
        _refuse_to_replace([home / name for name in files], workspace)
        make_folder(home, workspace.root)
        for name, text in files.items():
            with (home / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            give_to_owner(home / name, workspace.root)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"{workspace.name_of(home)} cannot be written to: {reason}"
        raise InputError.of(message, hint="choose another folder with --dir") from None


def _refuse_to_replace(paths: list[Path], workspace: Workspace) -> None:
    problems = [
        Problem(message=f"{workspace.name_of(path)} is there already", hint="take another name")
        for path in paths
        if os.path.lexists(path)
    ]
    if problems:
        raise InputError(problems)


def _next_steps(stem: str, home: Path, program: str) -> str:
    path = home / program
    entry = {"name": stem, "type": "code", "path": f"./{path}", "threshold": 1.0}
    run = f"agentci evaluator run {shlex.quote(str(path))} --trace RECORDING"
    return f"""\
Created {path} and {home / MANIFEST}

Next:
1. Put your own rule into {program}, and what it is for into {MANIFEST}.
2. Try it on a recording:

   {run}

3. Add it to your config; its path is seen from there:

{_yaml({"evaluators": [{**entry, "config": {"min_length": 1}}]})}"""


def _yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 (slow to load)

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text
