"""Finds the files that one eval file refers to, by AgentV's rules, inside the workspace."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from agentci.config.eval_file.files import Attachment
from agentci.config.yaml_document import read_yaml
from agentci.discovery import matches
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.workspace import Workspace, is_file, is_folder, read_file, real, workspace_of

MAX_ATTACHMENT_BYTES: Final = 16 * 1024**2
MAX_SETTINGS_BYTES: Final = 1024**2
SETTINGS: Final = ".agentv/config.yaml"


class Attachments:
    """The files of one eval file; what it names is looked for in its folder and those above."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self._workspace = workspace
        # A file from elsewhere was named on the command line: its own repository is trusted.
        self._own = workspace if workspace.holds(folder) else workspace_of(folder)
        self._folder = real(folder)
        self._guidelines: frozenset[Path] | None = None
        # One text for all cases that refer to the same file.
        self._texts: dict[Path, str] = {}
        self.home = None if self._own is workspace else str(self._own.root)

    def read(self, named: str, place: Place) -> Attachment:
        """See ``Files``."""
        path = self._found(named, place, test=is_file)
        if path not in self._texts:
            self._texts[path] = _text_at(path, named, place)
        return Attachment(
            path=str(path),
            shown=named,
            text=self._texts[path],
            is_guideline=path in self._all_guidelines(),
        )

    def has(self, named: str) -> bool:
        """See ``Files``."""
        return next(self._places(named, test=is_file), None) is not None

    def path(self, named: str, place: Place) -> str:
        """See ``Files``."""
        return str(self._found(named, place, test=is_file))

    def folder(self, named: str | None, place: Place) -> str:
        """See ``Files``."""
        if named is None:
            return str(self._folder)
        return str(self._found(named, place, test=is_folder))

    def _found(self, named: str, place: Place, *, test: Callable[[Path], bool]) -> Path:
        path = next(self._places(named, test=test), None)
        if path is not None:
            return self._inside(path, named, place)
        what = "folder" if test is is_folder else "file"
        raise InputError.of(
            f"there is no {what} {named}",
            place=place,
            hint="it is looked for beside this file, and in the folders above",
        )

    def _places(self, named: str, *, test: Callable[[Path], bool]) -> Iterator[Path]:
        """Where it is that is named, the nearest first."""
        paths = [base / named.lstrip("/") for base in self._roots()]
        if named.startswith("/"):
            paths.append(Path(named))
        yield from (path for path in paths if test(path))

    def _roots(self) -> Iterator[Path]:
        """Folders in which AgentV looks for what is named, in its order."""
        yield self._folder
        for parent in self._folder.parents:
            if not parent.is_relative_to(self._own.root):
                break
            yield parent
        yield self._workspace.cwd

    def _inside(self, path: Path, named: str, place: Place) -> Path:
        if not self._workspace.holds(path) and not self._own.holds(path):
            raise InputError.of(
                f"{named} leads out of the workspace",
                place=place,
                hint="a config may only name files inside of it, symbolic links followed",
            )
        return real(path)

    def _all_guidelines(self) -> frozenset[Path]:
        """What the ``guideline_patterns`` of the nearest settings match, from the root on."""
        if self._guidelines is None:
            root = self._own.root
            found = (real(path) for each in self._patterns() for path in matches(root, each))
            self._guidelines = frozenset(found)
        return self._guidelines

    def _patterns(self) -> Iterator[str]:
        for folder in self._roots():
            path = folder / SETTINGS
            if is_file(path):
                name = self._workspace.name_of(path)
                data = read_file(path, name=name, limit_bytes=MAX_SETTINGS_BYTES)
                patterns = read_yaml(data, file=name).data.get("guideline_patterns")
                listed = patterns if isinstance(patterns, list) else []
                yield from (each for each in listed if isinstance(each, str) and each)
                return


def _text_at(path: Path, named: str, place: Place) -> str:
    data = read_file(path, name=named, limit_bytes=MAX_ATTACHMENT_BYTES, place=place)
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        hint = "save it as UTF-8"
        raise InputError.of(f"{named} is not UTF-8", place=place, hint=hint) from None


def sidecar_of(path: Path) -> Path | None:
    """The YAML file that speaks for all cases of an eval file of JSON Lines, if there is one."""
    found = (path.with_suffix(suffix) for suffix in (".yaml", ".yml"))
    return next((each for each in found if is_file(each)), None)
