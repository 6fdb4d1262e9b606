"""The folders with models that the workflow opens to evaluators, read-only."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentci._util.workspace import ResolvedPath, is_folder
from agentci.config.variables import RESERVED_HINT, is_reserved
from agentci.errors import InputError
from agentci.execution.environment_variables import is_harmless
from agentci.execution.sandbox import BROAD_FOLDERS, TMP_FOLDERS
from agentci.model.values import Problem
from agentci.runner.services import Services


def open_evaluator_caches(
    folders: Mapping[str, str], services: Services
) -> Mapping[str, ResolvedPath]:
    """Resolve the folders, by the variables in which programs find them.

    Raises:
        InputError: a program could read more there than models, a pull request can change the
            folder, or it does not exist.
    """
    problems = [
        Problem(message=f"evaluator-cache: {message}", hint=hint)
        for name, folder in folders.items()
        for message, hint in _find_objections(name, folder, services)
    ]
    if problems:
        raise InputError(problems)
    return {
        name: services.workspace.resolve_given(Path(folder)) for name, folder in folders.items()
    }


def _find_objections(name: str, folder: str, services: Services) -> Iterator[tuple[str, str]]:
    """What is wrong with a variable and its folder, and what to do."""
    if is_reserved(name):
        yield f"{name} cannot be set", RESERVED_HINT
    elif is_harmless(name, ""):
        yield f"{name} has another meaning for every program", "choose another variable"
    path = Path(folder)
    if not path.is_absolute():
        yield f"{folder} is not an absolute path", f"write {name}=/PATH/OF/THE/FOLDER"
    elif not is_folder(path):
        yield f"{folder} is not a folder", "create and fill it in an earlier step"
    elif not _is_outside(folder, services):
        yield (
            f"{folder} is in the checkout, which a pull request can change",
            "name a folder outside of it",
        )
    elif kept := _find_other_content(path, services):
        hint = "name a folder that holds only models"
        yield f"{folder} holds more than models: {kept} is in it", hint


def _is_outside(folder: str, services: Services) -> bool:
    workspace = services.workspace
    checkout, real = workspace.checkout, Path(folder).resolve()
    in_checkout = checkout is not None and real.is_relative_to(checkout)
    return workspace.is_outside(folder) and not in_checkout


def _find_other_content(folder: Path, services: Services) -> Path | None:
    """A folder with files of agentci, of other programs or of the user that is in ``folder``."""
    home = services.child_environment.get("HOME", "")
    kept = (
        *(services.workspace.root, services.workspace.cwd, services.cache_folder),
        *([Path(home)] if home else ()),
        *(Path(each) for each in (tempfile.gettempdir(), *TMP_FOLDERS, *sorted(BROAD_FOLDERS))),
    )
    real = folder.resolve()
    return next((each for each in kept if each.resolve().is_relative_to(real)), None)
