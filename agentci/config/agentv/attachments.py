"""Finds the files that one eval file refers to, by AgentV's rules, inside the workspace."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from agentci._util.text.suggest import one_of
from agentci._util.workspace import Workspace, is_file, is_folder, read_file, real, workspace_of
from agentci.config.agentv.file_references import Attachment, Source
from agentci.config.discovery import matches
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.values import replace

MAX_ATTACHMENT_BYTES: Final = 16 * 1024**2
MAX_SETTINGS_BYTES: Final = 1024**2
SETTINGS: Final = ".agentv/config.yaml"
TEMPLATES: Final = ".agentv/templates"
# Where programs are that judge by the name of their file.
ASSERTIONS: Final = (".agentv/assertions", ".agentv/graders", ".agentv/judges")
ASSERTION_EXTENSIONS: Final = (".ts", ".js", ".mts", ".mjs")
CASE_FILES: Final = ("case.yaml", "case.yml")
CASE_EXTENSIONS: Final = (".yaml", ".yml", ".json", ".jsonl")


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

    def cases(self, named: str, place: Place) -> tuple[Source, ...]:
        """See ``Files``."""
        found = matches(self._folder, named)
        if not found:
            hint = "it is looked for beside this file"
            raise InputError.of(f"no file of cases matches {named}", place=place, hint=hint)
        return tuple(source for path in found for source in self._cases_at(path, named, place))

    def _cases_at(self, path: Path, named: str, place: Place) -> Iterator[Source]:
        if is_folder(path):
            folder = self._inside(path, named, place)
            files = {
                file.parent: file
                for name in reversed(CASE_FILES)
                for file in matches(folder, f"*/{name}")
            }
            if not files:
                what = f"no folder in {named} has a {CASE_FILES[0]}"
                raise InputError.of(what, place=place, hint="one folder a case")
            for below, file in sorted(files.items()):
                yield replace(self._source(file, named, place), case_id=below.name)
        elif path.suffix in CASE_EXTENSIONS:
            yield self._source(path, named, place)
        else:
            raise InputError.of(
                f"{self._workspace.name_of(path)} is no file of cases",
                place=place,
                hint=f"cases are read from {one_of(CASE_EXTENSIONS)}",
            )

    def template(self, named: str, place: Place, *, beside: str | None) -> Source:
        """See ``Files``."""
        if "/" in named or named.startswith("."):
            bases = () if beside is None else (Path(beside).parent,)
            return self._source(self._found(named, place, test=is_file, bases=bases), named, place)
        path = self._convention(TEMPLATES, named, (".yaml", ".yml"))
        if path is None:
            raise InputError.of(
                f"there is no {TEMPLATES}/{named}.yaml",
                place=place,
                hint="it is looked for beside this file, and in the folders above",
            )
        return self._source(path, named, place)

    def assertion(self, kind: str) -> str | None:
        """See ``Files``."""
        if "/" in kind:
            return None
        found = (self._convention(each, kind, ASSERTION_EXTENSIONS) for each in ASSERTIONS)
        path = next((each for each in found if each is not None), None)
        return None if path is None or not self._holds(path) else str(real(path))

    def _convention(self, folder: str, name: str, endings: Sequence[str]) -> Path | None:
        """The nearest file of that name in a folder that AgentV looks into by itself."""
        paths = (root / folder / f"{name}{end}" for root in self._roots() for end in endings)
        return next((path for path in paths if is_file(path)), None)

    def _source(self, path: Path, named: str, place: Place) -> Source:
        inside = self._inside(path, named, place)
        name = self._workspace.name_of(path)
        data = read_file(inside, name=name, limit_bytes=MAX_ATTACHMENT_BYTES, place=place)
        return Source(file=name, path=str(inside), data=data)

    def _found(
        self,
        named: str,
        place: Place,
        *,
        test: Callable[[Path], bool],
        bases: Sequence[Path] = (),
    ) -> Path:
        path = next(self._places(named, test=test, bases=bases), None)
        if path is not None:
            return self._inside(path, named, place)
        what = "folder" if test is is_folder else "file"
        raise InputError.of(
            f"there is no {what} {named}",
            place=place,
            hint="it is looked for beside this file, and in the folders above",
        )

    def _places(
        self, named: str, *, test: Callable[[Path], bool], bases: Sequence[Path] = ()
    ) -> Iterator[Path]:
        """Where it is that is named, the nearest first."""
        paths = [base / named.lstrip("/") for base in (*bases, *self._roots())]
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
        if not self._holds(path):
            raise InputError.of(
                f"{named} leads out of the workspace",
                place=place,
                hint="a config may only name files inside of it, symbolic links followed",
            )
        return real(path)

    def _holds(self, path: Path) -> bool:
        return self._workspace.holds(path) or self._own.holds(path)

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
