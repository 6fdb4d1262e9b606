"""Finds the files that one config names, and keeps them inside the workspace."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentci._util.text.utf8 import decode
from agentci._util.workspace import Workspace, is_file, is_folder, read_file, real, workspace_of
from agentci.config.discovery import matches
from agentci.errors import InputError, RefusedError
from agentci.execution.runtimes.registry import why_unsupported
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.program import REQUIREMENTS_NAME, LocalProgram, RemoteProgram
from agentci.model.values import replace
from agentci.remote.run_sources import Sources

if TYPE_CHECKING:
    from agentci.evaluators.context import TextFile
    from agentci.evaluators.evaluator_type import EvaluatorType

MAX_TEXT_BYTES = 1024**2
# Where one of these lies, the requirements beside it are those of a project.
PROJECT_NAMES = ("pyproject.toml", "setup.py", ".git")


class Locator:
    """Finds what one config names; remembers what the user should know about that."""

    def __init__(
        self, folder: Path, workspace: Workspace, *, sources: Sources, executors: Collection[str]
    ) -> None:
        self.executors = executors
        self.folder = str(real(folder))
        self._folder = folder
        self._workspace = workspace
        self._sources = sources
        # A config from elsewhere was named on the command line: its own repository is trusted.
        self._home = workspace if workspace.holds(folder) else workspace_of(folder)
        self._has_fallen_back = False
        self.notices: list[Problem] = []

    def type_named(self, name: str) -> "EvaluatorType[Any] | None":
        """The type of evaluators that another package brings under ``name``.

        Raises:
            InputError: it is broken.
        """
        from agentci._util.plugins import (  # noqa: PLC0415 (of no use to most runs)
            misfit,
            named,
            package_of,
        )
        from agentci.evaluators.evaluator_type import (  # noqa: PLC0415 (loads pydantic)
            foreign_type,
            is_type,
        )
        from agentci.evaluators.registry import GROUP  # noqa: PLC0415 (likewise)

        found = named(GROUP, name)
        if found is None:
            return None
        if not is_type(found):
            raise misfit(GROUP, name, wanted="an EvaluatorType")
        return foreign_type(found, title=f"the type {name!r} of {package_of(GROUP, name)}")

    def find(self, named: str, place: Place) -> LocalProgram:
        """The evaluator's program ``named`` at ``place``.

        Raises:
            InputError: it does not exist, lies outside of the workspace, or cannot be run.
        """
        path = self.locate(named, place)
        if reason := why_unsupported(path):
            raise InputError.of(reason, place=place)
        home = None if self._home is self._workspace else str(self._home.root)
        requirements = path.parent / REQUIREMENTS_NAME
        if path.suffix != ".py" or not is_file(requirements):
            return LocalProgram(path=str(path), home=home)
        if self._is_project(path.parent):
            self.notices.append(
                Problem(
                    message=f"the {REQUIREMENTS_NAME} beside {named} is not installed for it:"
                    " it is the whole project's",
                    place=place,
                    hint="give evaluators that need packages a folder of their own",
                    severity="notice",
                )
            )
            return LocalProgram(path=str(path), home=home)
        return LocalProgram(path=str(path), requirements=str(requirements), home=home)

    def read(self, named: str, place: Place) -> "TextFile":
        """The text of the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, lies outside of the workspace, or is no text.
        """
        from agentci.evaluators.context import TextFile  # noqa: PLC0415 (loads pydantic)

        path = self.locate(named, place)
        name = self._workspace.name_of(path)
        data = read_file(path, name=name, limit_bytes=MAX_TEXT_BYTES, place=place)
        return TextFile(name=name, text=decode(data, file=name))

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """Fill in what an entry, whose fields are at ``place_of``, leaves to the program's source.

        Raises:
            InputError: there is no such source, or no such place in it.
        """
        if program.is_own and program.repository:
            folder = self._folder_of(program.repository, place_of("repo"))
            program = replace(program, repository=self._workspace.name_of(folder))
        field = "source"
        try:
            source = self._sources.named(program.source)
            field = "ref"
            return source.complete(program)
        except RefusedError as error:
            raise InputError.of(str(error), place=place_of(field), hint=error.hint) from None

    def _folder_of(self, named: str, place: Place) -> Path:
        paths = self.matches(named, place)
        if not paths or not is_folder(paths[0]):
            message = f"there is no folder {named}"
            raise InputError.of(message, place=place, hint="`repo` is relative to this config")
        return paths[0]

    def _is_project(self, folder: Path) -> bool:
        """Whether ``folder`` holds more than evaluators, so that what it requires is not theirs."""
        is_root = folder in (self._workspace.root, self._home.root)
        return is_root or any((folder / name).exists() for name in PROJECT_NAMES)

    def locate(self, named: str, place: Place) -> Path:
        """The real path of the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or lies outside of the workspace.
        """
        paths = self.matches(named, place)
        if not paths:
            raise InputError.of(
                f"{named} does not exist",
                place=place,
                hint="paths are relative to the config's folder, else to the working directory",
            )
        if is_folder(paths[0]):
            message = f"{named} is a folder, not a file"
            raise InputError.of(message, place=place, hint="name the file")
        if not is_file(paths[0]):
            message = f"{named} is not a regular file, or is a link that leads nowhere"
            raise InputError.of(message, place=place)
        return paths[0]

    def matches(self, pattern: str, place: Place) -> tuple[Path, ...]:
        """The real paths that ``pattern`` matches beside the config, else from where we run.

        Configs written for agentevals name paths from the directory it was started in.

        Raises:
            InputError: one of them lies outside of the workspace.
        """
        paths = matches(self._folder, pattern)
        if not paths and (paths := matches(self._workspace.cwd, pattern)):
            self._note_fallback(pattern, place)
        return tuple(self._inside(path, pattern, place) for path in paths)

    def _note_fallback(self, named: str, place: Place) -> None:
        """Say once a config that it depends on the working directory."""
        if not self._has_fallen_back:
            self._has_fallen_back = True
            self.notices.append(
                Problem(
                    message=f"{named} was found from the working directory, not beside the config",
                    place=place,
                    hint="paths in a config are relative to its folder",
                    severity="notice",
                )
            )

    def _inside(self, path: Path, named: str, place: Place) -> Path:
        if not self._workspace.holds(path) and not self._home.holds(path):
            raise InputError.of(
                f"{named} leads out of the workspace",
                place=place,
                hint="a config may only name files inside of it, symbolic links followed",
            )
        return real(path)
