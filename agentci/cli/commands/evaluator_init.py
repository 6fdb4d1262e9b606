"""``agentci evaluator init``: create a new evaluator from a template."""

import builtins
import keyword
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct

from agentci._util.files import give_to_owner, make_folder
from agentci._util.text.escape import escape_for_log
from agentci._util.text.suggest import join_with_or, quote_name
from agentci._util.workspace import Workspace
from agentci.errors import InputError
from agentci.model.values import COMMAND_LINE, Problem

# Stands for the name of the function in the template in Python.
FUNCTION_PLACEHOLDER: Final = "FUNCTION"
MANIFEST_NAME: Final = "evaluator.yaml"
MAX_NAME_LENGTH: Final = 100


class EvaluatorLanguage(Struct, frozen=True, kw_only=True):
    """A language that has a template."""

    name: str
    short_name: str

    @property
    def extension(self) -> str:
        """The extension of its files, such as ``.py``."""
        return f".{self.short_name}"

    @property
    def template(self) -> str:
        """The program of a new evaluator."""
        name = f"templates/evaluator{self.extension}.txt"
        return resources.files(__package__).joinpath(name).read_text("utf-8")


LANGUAGES: Final = (
    EvaluatorLanguage(name="python", short_name="py"),
    EvaluatorLanguage(name="javascript", short_name="js"),
    EvaluatorLanguage(name="typescript", short_name="ts"),
)

# A file or function with such a name would shadow something that evaluators need.
RESERVED_NAMES: Final = frozenset(
    {
        *(*dir(builtins), *sys.stdlib_module_names, *keyword.kwlist),
        *("agentci", "evaluator", "EvalInput", "EvalResult"),
        *("agentevals_evaluator_sdk", "pydantic"),
    }
)


def init_evaluator(
    name: str, *, runtime: str | None, folder: str, workspace: Workspace, out: TextIO
) -> int:
    """Create ``folder/NAME`` with a program and its manifest, and print the next steps.

    Args:
        name: of the evaluator; an extension selects the language.
        runtime: the language, by name or extension; default: Python.
        folder: relative to the working directory; created if missing.

    Raises:
        InputError: the name is invalid, a file exists, or writing failed.
    """
    stem, language = _parse_name(name, runtime)
    _check_name(stem, language)
    named = Path(folder, stem)
    home = workspace.resolve_given(named, place=COMMAND_LINE).path
    program = f"{stem}{language.extension}"
    text = language.template.replace(FUNCTION_PLACEHOLDER, stem.replace("-", "_"))
    files = {program: text, MANIFEST_NAME: _format_manifest(stem, language)}
    _write_new_files(home, files, workspace)
    shown = Path(os.path.relpath(workspace.cwd / named, workspace.cwd))
    out.write(escape_for_log(_format_next_steps(stem, shown, program)))
    return 0


def _parse_name(name: str, runtime: str | None) -> tuple[str, EvaluatorLanguage]:
    stem, extension = os.path.splitext(name)  # noqa: PTH122 (a path would swallow dots and slashes)
    if not extension:
        return stem, LANGUAGES[0] if runtime is None else _find_language(runtime)
    language = next((each for each in LANGUAGES if each.extension == extension.lower()), None)
    if language is None:
        extensions = join_with_or([each.extension for each in LANGUAGES])
        message = (
            f"{quote_name(name)} has the extension {quote_name(extension)}; known: {extensions}"
        )
        hint = "remove it; for other languages see docs/writing-evaluators.md"
        raise InputError.from_message(message, hint=hint)
    if runtime is not None and _find_language(runtime) is not language:
        message = f"{quote_name(name)} is {language.name}, but --runtime is {quote_name(runtime)}"
        raise InputError.from_message(message, hint="remove one of the two")
    return stem, language


def _find_language(runtime: str) -> EvaluatorLanguage:
    for language in LANGUAGES:
        if runtime.lower() in (language.short_name, language.name):
            return language
    known = join_with_or([each.short_name for each in LANGUAGES])
    raise InputError.from_message(
        f"unknown --runtime {quote_name(runtime)}",
        hint=f"choose {known}; for other languages see docs/writing-evaluators.md",
    )


def _check_name(stem: str, language: EvaluatorLanguage) -> None:
    """Check that the name is valid for a file, a folder, a remote evaluator and a function."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem):
        message = (
            f"invalid evaluator name {quote_name(stem)}: it must start with a letter (a to z) and"
            " contain only letters, digits, _ and -"
        )
        where = ", and set its folder with --dir" if "/" in stem else ""
        raise InputError.from_message(message, hint=f"try {quote_name(_suggest_name(stem))}{where}")
    if len(stem) > MAX_NAME_LENGTH:
        message = f"the name {quote_name(stem)} has {len(stem)} characters"
        raise InputError.from_message(message, hint=f"use at most {MAX_NAME_LENGTH}")
    if language.name == "python" and stem.replace("-", "_") in RESERVED_NAMES:
        message = f"invalid evaluator name {quote_name(stem)}: the name is reserved in Python"
        raise InputError.from_message(message, hint=f"try {quote_name(f'{stem}_check')}")


def _suggest_name(stem: str) -> str:
    letters = unicodedata.normalize("NFKD", stem.rpartition("/")[2]).encode("ascii", "ignore")
    return re.sub(r"[^A-Za-z0-9]+", "_", letters.decode()).strip("_0123456789") or "my_evaluator"


def _format_manifest(stem: str, language: EvaluatorLanguage) -> str:
    return _dump_yaml(
        {
            "name": stem,
            "description": "Every turn has an answer.",
            "language": language.name,
            "entrypoint": f"{stem}{language.extension}",
            "tags": [],
            "author": "",
        }
    )


def _write_new_files(home: Path, files: Mapping[str, str], workspace: Workspace) -> None:
    """Write all files; existing files are never overwritten."""
    try:
        taken = [
            workspace.display_path(path)
            for path in map(home.joinpath, files)
            if os.path.lexists(path)
        ]
        if taken:
            hint = "choose another name"
            raise InputError(
                [Problem(message=f"{path} already exists", hint=hint) for path in taken]
            )
        make_folder(home, workspace.root)
        for name, text in files.items():
            with (home / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            give_to_owner(home / name, workspace.root)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"cannot write to {workspace.display_path(home)}: {reason}"
        raise InputError.from_message(message, hint="choose another folder with --dir") from None


def _format_next_steps(stem: str, home: Path, program: str) -> str:
    path = home / program
    entry = {"name": stem, "type": "code", "path": f"./{path}", "threshold": 1.0}
    run = f"agentci evaluator run {shlex.quote(str(path))} --trace TRACE"
    return f"""\
Created {path} and {home / MANIFEST_NAME}

Next:
1. Write your rule in {program}, and describe it in {MANIFEST_NAME}.
2. Try it on a trace:

   {run}

3. Add it to your config; the path is relative to the config:

{_dump_yaml({"evaluators": [{**entry, "config": {"min_length": 1}}]})}"""


def _dump_yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 (slow to load)

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text
