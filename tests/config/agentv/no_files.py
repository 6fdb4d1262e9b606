"""Files for tests of eval files, without a disk; names with ``gone`` do not exist."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from agentci.config.agentv.files import AttachedFile, ReferencedFile
from agentci.errors import InputError
from agentci.model.values import Place, replace


@dataclass
class NoFiles:
    """Every file contains its own name; names with ``guide`` at the start are guidelines.

    Attributes:
        texts: of files of cases and of evaluators, by their names.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    home: str | None = None

    def read(self, named: str, place: Place) -> AttachedFile:
        """Returns the file, unless its name contains ``gone``."""
        if "gone" in named:
            raise InputError.from_message(f"there is no file {named}", place=place)
        return AttachedFile(
            path=f"/w/{named}",
            display_name=named,
            text=named,
            is_guideline=named.startswith("guide"),
        )

    def has(self, named: str) -> bool:
        """Whether a name is that of a file: it has an extension."""
        return bool(PurePath(named).suffix) and " " not in named and "gone" not in named

    def path(self, named: str, place: Place) -> str:
        """Returns the file, unless its name contains ``gone``."""
        return self.read(named, place).path

    def folder(self, named: str | None, place: Place) -> str:
        """Returns the folder, unless its name contains ``gone``."""
        if named is not None and "gone" in named:
            raise InputError.from_message(f"there is no folder {named}", place=place)
        return "/w" if named is None else f"/w/{named}"

    def cases(self, named: str, place: Place) -> tuple[ReferencedFile, ...]:
        """Returns the file; for ``folder/``, all files as cases in folders."""
        if named == "folder/":
            return tuple(
                ReferencedFile(
                    file=name, path=f"/w/{name}", data=text.encode(), case_id=name.split("/")[1]
                )
                for name, text in self.texts.items()
            )
        return (self._source(named, place),)

    def template(self, named: str, place: Place, *, beside: str | None) -> ReferencedFile:
        """Returns a file that the eval file or another included file includes."""
        assert beside is None or beside.removeprefix("/w/") in self.texts
        return self._source(named, place)

    def _source(self, named: str, place: Place) -> ReferencedFile:
        if named not in self.texts:
            raise InputError.from_message(f"there is no file {named}", place=place)
        return ReferencedFile(file=named, path=f"/w/{named}", data=self.texts[named].encode())

    def settings(self, name: str) -> tuple[ReferencedFile, ...]:
        """Returns the text with the name ``.agentv/NAME``, then the one in the folder above."""
        named = {f".agentv/{name}": "/w/", f"../.agentv/{name}": "/"}
        return tuple(
            replace(self._source(each, Place(file=each)), path=f"{folder}.agentv/{name}")
            for each, folder in named.items()
            if each in self.texts
        )

    def assertion(self, kind: str) -> str | None:
        """Returns the program of types that start with ``own``."""
        return f"/w/.agentv/assertions/{kind}.ts" if kind.startswith("own") else None
