"""Find the files that a config names: evaluators, prompts, traces and eval sets."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    decode_utf8,
    is_file,
    is_folder,
    read_file,
    resolve_path,
)
from agentci.config.discovery import find_matching_paths
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.errors import InputError, PermanentFetchError
from agentci.execution.runtimes import find_unsupported_reason
from agentci.model.case import EvalSet
from agentci.model.program import REQUIREMENTS_NAME, LocalProgram, RemoteProgram
from agentci.model.values import COMMAND_LINE, Place, Problem, replace
from agentci.remote.programs import Sources
from agentci.runner.load_eval_sets import NamedEvalSet
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.evaluators.evaluator_type import EvaluatorType, TextFile

MAX_TEXT_BYTES = 1024**2
# A folder with one of these is a project; its requirements.txt is not for evaluators only.
PROJECT_NAMES = ("pyproject.toml", "setup.py", ".git")


class FileLocator:
    """Finds the files that one config names.

    Attributes:
        executors: names of the executors that evaluators can use.
        folder: the config's folder.
        located: the files that it found.
        notices: notes about files found so far.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        *,
        sources: Sources,
        executors: Collection[str],
        variables: ConfigVariables,
    ) -> None:
        self.executors = executors
        self.folder = str(resolve_path(folder))
        self._folder = folder
        # A config from elsewhere was named on the command line: its own repository is trusted.
        self._workspace = workspace.extend(folder)
        self._sources = sources
        self._variables = variables
        self._has_fallen_back = False
        self.located: dict[Path, None] = {}
        self.notices: list[Problem] = []

    def type_named(self, name: str) -> "EvaluatorType[Any] | None":
        """See ``ProgramResolver``."""
        from agentci._util import plugins  # noqa: PLC0415 (most runs do not need it)
        from agentci.evaluators import evaluator_type  # noqa: PLC0415 (loads pydantic)
        from agentci.evaluators.registry import ENTRY_POINT_GROUP  # noqa: PLC0415 (likewise)

        found = plugins.load_plugin(ENTRY_POINT_GROUP, name)
        if found is None:
            return None
        if not evaluator_type.is_evaluator_type(found):
            raise plugins.make_plugin_error(ENTRY_POINT_GROUP, name, expected="an EvaluatorType")
        package = plugins.find_plugin_package(ENTRY_POINT_GROUP, name)
        return evaluator_type.wrap_plugin_type(found, title=f"the type `{name}` of {package}")

    def find(self, named: str, place: Place) -> LocalProgram:
        """See ``ProgramResolver``."""
        path = self.locate(named, place).path
        if reason := find_unsupported_reason(path):
            raise InputError.from_message(reason, place=place)
        home = None if self._workspace.home is None else str(self._workspace.home)
        if path.suffix != ".py" or not is_file(path.parent / REQUIREMENTS_NAME):
            return LocalProgram(path=str(path), home=home)
        if self._is_project(path.parent):
            self.notices.append(
                Problem(
                    message=f"the {REQUIREMENTS_NAME} next to {named} is not installed:"
                    " it belongs to the whole project",
                    place=place,
                    hint="move evaluators that need packages into a folder of their own",
                    severity="note",
                )
            )
            return LocalProgram(path=str(path), home=home)
        requirements = self._workspace.resolve(path.parent / REQUIREMENTS_NAME, place=place)
        return LocalProgram(path=str(path), requirements=str(requirements), home=home)

    def read(self, named: str, place: Place) -> "TextFile":
        """See ``ProgramResolver``."""
        from agentci.evaluators.evaluator_type import TextFile  # noqa: PLC0415 (loads pydantic)

        path = self.locate(named, place)
        name = self._workspace.display_path(path.path)
        data = read_file(path, name=name, limit_bytes=MAX_TEXT_BYTES, place=place)
        return TextFile(name=name, text=decode_utf8(data, file=name))

    def read_variable(self, named: str, place: Place) -> str:
        """See ``ProgramResolver``."""
        if refusal := self._variables.explain_refusal(named):
            message, hint = refusal
            raise InputError.from_message(message, place=place, hint=hint)
        return self._variables.get(named)

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """See ``ProgramResolver``."""
        if program.is_local and program.repository:
            place = place_of("repo")
            paths = self.matches(program.repository, place)
            if not paths or not is_folder(paths[0].path):
                message = f"folder {program.repository} not found"
                raise InputError.from_message(
                    message, place=place, hint="`repo` is relative to this config"
                )
            folder = paths[0].path
            program = replace(program, repository=self._workspace.display_path(folder))
        field = "source"
        try:
            source = self._sources.get(program.source)
            field = "ref"
            return source.complete(program)
        except PermanentFetchError as error:
            message, place = str(error), place_of(field)
            raise InputError.from_message(message, place=place, hint=error.hint) from None

    def _is_project(self, folder: Path) -> bool:
        """Whether ``folder`` is the root of a project, whose requirements are not evaluators'."""
        is_root = folder in (self._workspace.root, self._workspace.home)
        return is_root or any((folder / name).exists() for name in PROJECT_NAMES)

    def locate(self, named: str, place: Place) -> ResolvedPath:
        """The file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or is outside the workspace.
        """
        paths = self.matches(named, place)
        if not paths:
            raise InputError.from_message(
                f"{named} does not exist",
                place=place,
                hint="paths are relative to the config's folder or the working directory",
            )
        if is_folder(paths[0].path):
            message = f"{named} is a folder"
            raise InputError.from_message(message, place=place, hint="name the file")
        if not is_file(paths[0].path):
            message = f"{named} is not a regular file, or is a broken link"
            raise InputError.from_message(message, place=place)
        self.located[paths[0].path] = None
        return paths[0]

    def matches(
        self, pattern: str, place: Place, *, folders: list[Path] | None = None
    ) -> tuple[ResolvedPath, ...]:
        """The paths that match ``pattern``, relative to the config or the working directory.

        The latter is for configs written for agentevals, which resolves paths there.

        Args:
            folders: as for ``find_matching_paths``.

        Raises:
            InputError: one of them is outside the workspace.
        """
        paths = find_matching_paths(self._folder, pattern, folders=folders)
        if not paths and (paths := find_matching_paths(self._workspace.cwd, pattern)):
            self._note_fallback(pattern, place)
        return tuple(self._workspace.resolve(path, named=pattern, place=place) for path in paths)

    def _note_fallback(self, named: str, place: Place) -> None:
        """Note, once per config, that it depends on the working directory."""
        if not self._has_fallen_back:
            self._has_fallen_back = True
            self.notices.append(
                Problem(
                    message=f"{named} was found in the working directory, not next to the config",
                    place=place,
                    hint="paths in a config are relative to its folder",
                    severity="note",
                )
            )


def make_locator(folder: Path, services: Services) -> FileLocator:
    """Make the locator of a config in ``folder``."""
    return FileLocator(
        folder,
        services.workspace,
        sources=services.sources,
        executors=services.executors,
        variables=services.variables,
    )


class LoadedSuite(Struct, frozen=True, kw_only=True):
    """A suite, and the locator of the files that its config names.

    Attributes:
        eval_set: the eval set, if it was read with the config because it may have checks.
    """

    suite: Suite
    locator: FileLocator
    eval_set: EvalSet | None = None

    @property
    def notices(self) -> tuple[Problem, ...]:
        """Warnings and notes about the config, from what was loaded so far."""
        return (*self.suite.notices, *self.locator.notices)


def move_suite(loaded: LoadedSuite, workspace: Workspace, services: Services) -> LoadedSuite:
    """The suite, with its files at the same paths of another workspace.

    Raises:
        InputError: the config is outside the run's workspace.
    """
    folder = Path(loaded.locator.folder)
    if not folder.is_relative_to(services.workspace.root):
        message = f"{loaded.suite.file} is outside the workspace"
        raise InputError.from_message(message, place=loaded.suite.place)
    moved = workspace.root / folder.relative_to(services.workspace.root)
    locator = FileLocator(
        moved,
        workspace,
        sources=services.sources,
        executors=services.executors,
        variables=services.variables,
    )
    return replace(loaded, locator=locator)


def find_eval_sets(
    loaded: LoadedSuite, workspace: Workspace, *, given: Sequence[str] = ()
) -> tuple[NamedEvalSet, ...]:
    """Find the eval sets of a config.

    Args:
        given: paths and globs of ``--eval-set``, which replace those of the config.

    Raises:
        InputError: one does not exist, or is outside the workspace.
    """
    if given:
        return find_given_eval_sets(given, workspace)
    place = loaded.suite.place_of("eval_set")
    return tuple(
        NamedEvalSet(path=path, place=place)
        for named in loaded.suite.eval_sets
        for path in loaded.locator.matches(named, place) or (loaded.locator.locate(named, place),)
    )


def find_eval_set_readers(suites: Iterable[LoadedSuite], workspace: Workspace) -> dict[Path, str]:
    """Return the first config that reads each eval set, by the path of the eval set."""
    readers: dict[Path, str] = {}
    for loaded in suites:
        with suppress(InputError):
            for each in find_eval_sets(loaded, workspace):
                readers.setdefault(each.path.path, loaded.suite.file)
    return readers


def find_given_eval_sets(given: Sequence[str], workspace: Workspace) -> tuple[NamedEvalSet, ...]:
    """Find the eval sets of ``--eval-set``; errors as for ``find_eval_sets``."""
    found = {named: find_matching_paths(workspace.cwd, named) for named in given}
    for named, paths in found.items():
        if not paths and "*" in named:
            raise InputError.from_message(
                f"no eval set matches {named}", place=COMMAND_LINE, hint="check the glob"
            )
    return tuple(
        NamedEvalSet(
            path=workspace.resolve_given(path, named=named, place=COMMAND_LINE),
            place=COMMAND_LINE,
        )
        for named, paths in found.items()
        for path in paths or (Path(named),)
    )
