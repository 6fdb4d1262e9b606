"""Find the files that an eval file refers to, by AgentV's rules and inside the workspace."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.suggest import join_with_or
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    is_file,
    is_folder,
    read_file,
    resolve_path,
)
from agentci.config.discovery import find_matching_paths
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.values import Place, replace


class AttachedFile(Struct, frozen=True, kw_only=True):
    """A file that a message refers to.

    Attributes:
        path: absolute.
        display_name: as written in the message.
        is_guideline: whether it matches the `guideline_patterns` of AgentV's settings.
    """

    path: str
    display_name: str
    text: str
    is_guideline: bool


class ReferencedFile(Struct, frozen=True, kw_only=True):
    """A file with a part of an eval file's content.

    Attributes:
        file: the file name, as shown to the user.
        path: absolute.
        case_id: the name of its folder if that folder is one case.
    """

    file: str
    path: str
    data: bytes
    case_id: str | None = None


class FileResolver(Protocol):
    """Finds the files of one eval file."""

    @property
    def home(self) -> str | None:
        """Absolute path of the eval file's repository if it is outside the workspace."""

    def read(self, named: str, place: Place) -> AttachedFile:
        """Read the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, is outside the workspace, or is not text.
        """

    def has(self, named: str) -> bool:
        """Whether a file of that name exists, inside the workspace or not."""

    def path(self, named: str, place: Place) -> str:
        """The absolute path of the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or is outside the workspace.
        """

    def folder(self, named: str | None, place: Place) -> str:
        """The absolute path of the folder ``named`` at ``place``; None is the eval file's folder.

        Raises:
            InputError: it does not exist, or is outside the workspace.
        """

    def cases(self, named: str, place: Place) -> Sequence[ReferencedFile]:
        """The case files ``named`` at ``place``: one file, or those of a glob or a folder.

        Raises:
            InputError: there are none, or one is outside the workspace or of an unknown type.
        """

    def template(self, named: str, place: Place, *, beside: str | None) -> ReferencedFile:
        """The file of evaluators that is included at ``place``.

        Args:
            beside: absolute path of the including file if it is not the eval file.

        Raises:
            InputError: it does not exist, or is outside the workspace.
        """

    def settings(self, name: str) -> Sequence[ReferencedFile]:
        """The files ``name`` in folders `.agentv`, nearest first.

        Raises:
            InputError: it is outside the workspace.
        """

    def assertion(self, kind: str) -> str | None:
        """The absolute path of the program for entries of the type ``kind``.

        None if there is none in the folders that AgentV searches by convention.
        """


MAX_ATTACHMENT_BYTES: Final = 16 * 1024**2
MAX_SETTINGS_BYTES: Final = 1024**2
SETTINGS_FOLDER: Final = ".agentv"
SETTINGS_FILE: Final = f"{SETTINGS_FOLDER}/config.yaml"
TEMPLATES_FOLDER: Final = ".agentv/templates"
# Folders of programs that implement an evaluator type named like the file.
ASSERTION_FOLDERS: Final = (".agentv/assertions", ".agentv/graders", ".agentv/judges")
ASSERTION_EXTENSIONS: Final = (".ts", ".js", ".mts", ".mjs")
SEARCH_HINT: Final = "looked in the folder of this file, and in those above"
CASE_FILES: Final = ("case.yaml", "case.yml")
CASE_EXTENSIONS: Final = (".yaml", ".yml", ".json", ".jsonl", ".csv")


class WorkspaceFileResolver:
    """Finds the files of one eval file, in its folder and the folders above."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        # An eval file outside the workspace was named on the command line: trust its repository.
        self._workspace = workspace.extend(folder)
        self._folder = resolve_path(folder)
        self._guidelines: frozenset[Path] | None = None
        # Cases that refer to the same file share one text.
        self._texts: dict[ResolvedPath, str] = {}
        home = self._workspace.home
        self.home = None if home is None else str(home)

    def read(self, named: str, place: Place) -> AttachedFile:
        """See ``FileResolver``."""
        path = self._find_path(named, place, test=is_file)
        if path not in self._texts:
            self._texts[path] = _read_text_file(path, named, place)
        return AttachedFile(
            path=str(path),
            display_name=named,
            text=self._texts[path],
            is_guideline=path.path in self._find_guidelines(),
        )

    def has(self, named: str) -> bool:
        """See ``FileResolver``."""
        return next(self._find_candidates(named, test=is_file), None) is not None

    def path(self, named: str, place: Place) -> str:
        """See ``FileResolver``."""
        return str(self._find_path(named, place, test=is_file))

    def folder(self, named: str | None, place: Place) -> str:
        """See ``FileResolver``."""
        if named is None:
            return str(self._folder)
        return str(self._find_path(named, place, test=is_folder))

    def cases(self, named: str, place: Place) -> tuple[ReferencedFile, ...]:
        """See ``FileResolver``."""
        found = find_matching_paths(self._folder, named)
        if not found:
            hint = "looked in the folder of this file"
            raise InputError.from_message(f"no case file matches {named}", place=place, hint=hint)
        return tuple(file for path in found for file in self._find_case_files(path, named, place))

    def _find_case_files(self, path: Path, named: str, place: Place) -> Iterator[ReferencedFile]:
        if is_folder(path):
            folder = self._workspace.resolve(path, named=named, place=place).path
            files = {
                file.parent: file
                for name in reversed(CASE_FILES)
                for file in find_matching_paths(folder, f"*/{name}")
            }
            if not files:
                what = f"no folder in {named} has a {CASE_FILES[0]}"
                raise InputError.from_message(what, place=place, hint="use one folder per case")
            for below, file in sorted(files.items()):
                yield replace(self._read_referenced(file, named, place), case_id=below.name)
        elif path.suffix in CASE_EXTENSIONS:
            yield self._read_referenced(path, named, place)
        else:
            raise InputError.from_message(
                f"{self._workspace.display_path(path)} is not a file of cases",
                place=place,
                hint=f"cases are read from {join_with_or(CASE_EXTENSIONS)}",
            )

    def template(self, named: str, place: Place, *, beside: str | None) -> ReferencedFile:
        """See ``FileResolver``."""
        if "/" in named or named.startswith("."):
            bases = () if beside is None else (Path(beside).parent,)
            found = self._find_path(named, place, test=is_file, bases=bases)
            return self._read_referenced(found.path, named, place)
        path = self._find_by_convention(TEMPLATES_FOLDER, named, (".yaml", ".yml"))
        if path is None:
            raise InputError.from_message(
                f"file {TEMPLATES_FOLDER}/{named}.yaml not found", place=place, hint=SEARCH_HINT
            )
        return self._read_referenced(path, named, place)

    def settings(self, name: str) -> tuple[ReferencedFile, ...]:
        """See ``FileResolver``."""
        paths = (root / SETTINGS_FOLDER / name for root in self._iter_search_folders())
        named = f"{SETTINGS_FOLDER}/{name}"
        found = dict.fromkeys(filter(is_file, paths))
        return tuple(self._read_referenced(each, named, Place(file=named)) for each in found)

    def assertion(self, kind: str) -> str | None:
        """See ``FileResolver``."""
        if "/" in kind:
            return None
        found = (
            self._find_by_convention(each, kind, ASSERTION_EXTENSIONS) for each in ASSERTION_FOLDERS
        )
        path = next((each for each in found if each is not None), None)
        inside = None if path is None else self._workspace.find(path)
        return None if inside is None else str(inside)

    def _find_by_convention(self, folder: str, name: str, endings: Sequence[str]) -> Path | None:
        """The nearest file of that name in a folder that AgentV searches by convention."""
        paths = (
            root / folder / f"{name}{end}"
            for root in self._iter_search_folders()
            for end in endings
        )
        return next((path for path in paths if is_file(path)), None)

    def _read_referenced(self, path: Path, named: str, place: Place) -> ReferencedFile:
        inside = self._workspace.resolve(path, named=named, place=place)
        name = self._workspace.display_path(path)
        data = read_file(inside, name=name, limit_bytes=MAX_ATTACHMENT_BYTES, place=place)
        return ReferencedFile(file=name, path=str(inside), data=data)

    def _find_path(
        self, named: str, place: Place, *, test: Callable[[Path], bool], bases: Sequence[Path] = ()
    ) -> ResolvedPath:
        path = next(self._find_candidates(named, test=test, bases=bases), None)
        if path is not None:
            return self._workspace.resolve(path, named=named, place=place)
        what = "folder" if test is is_folder else "file"
        raise InputError.from_message(f"{what} {named} not found", place=place, hint=SEARCH_HINT)

    def _find_candidates(
        self, named: str, *, test: Callable[[Path], bool], bases: Sequence[Path] = ()
    ) -> Iterator[Path]:
        """All paths that match the name, nearest first."""
        paths = [base / named.lstrip("/") for base in (*bases, *self._iter_search_folders())]
        if named.startswith("/"):
            paths.append(Path(named))
        yield from (path for path in paths if test(path))

    def _iter_search_folders(self) -> Iterator[Path]:
        """The folders that AgentV searches, in its order."""
        yield self._folder
        for parent in self._folder.parents:
            if not parent.is_relative_to(self._root):
                break
            yield parent
        yield self._workspace.cwd

    @property
    def _root(self) -> Path:
        """The root of the eval file's repository."""
        return self._workspace.home or self._workspace.root

    def _find_guidelines(self) -> frozenset[Path]:
        """The files that match ``guideline_patterns`` of the nearest settings, from the root."""
        if self._guidelines is None:
            found = (
                resolve_path(path)
                for each in self._read_guideline_patterns()
                for path in find_matching_paths(self._root, each)
            )
            self._guidelines = frozenset(found)
        return self._guidelines

    def _read_guideline_patterns(self) -> Iterator[str]:
        for folder in self._iter_search_folders():
            path = folder / SETTINGS_FILE
            if is_file(path):
                name = self._workspace.display_path(path)
                inside = self._workspace.resolve(path)
                data = read_file(inside, name=name, limit_bytes=MAX_SETTINGS_BYTES)
                patterns = read_yaml(data, file=name).data.get("guideline_patterns")
                listed = patterns if isinstance(patterns, list) else []
                yield from (each for each in listed if isinstance(each, str) and each)
                return


def _read_text_file(path: ResolvedPath, named: str, place: Place) -> str:
    data = read_file(path, name=named, limit_bytes=MAX_ATTACHMENT_BYTES, place=place)
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        hint = "save it as UTF-8"
        raise InputError.from_message(f"{named} is not UTF-8", place=place, hint=hint) from None


def find_sidecar(path: Path) -> Path | None:
    """The YAML file with settings for all cases of a JSON Lines eval file, if it exists."""
    found = (path.with_suffix(suffix) for suffix in (".yaml", ".yml"))
    return next((each for each in found if is_file(each)), None)
