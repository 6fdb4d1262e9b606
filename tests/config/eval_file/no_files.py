"""Files for eval files that are read without a disk: those whose names do not say ``gone``."""

from pathlib import PurePath

from agentci.config.eval_file.files import Attachment
from agentci.errors import InputError
from agentci.model.place import Place


class NoFiles:
    """Every file holds its own name; those called ``guide...`` are guidelines."""

    home: str | None = None

    def read(self, named: str, place: Place) -> Attachment:
        """The file, unless it is called ``gone``."""
        if "gone" in named:
            raise InputError.of(f"there is no file {named}", place=place)
        return Attachment(
            path=f"/w/{named}", shown=named, text=named, is_guideline=named.startswith("guide")
        )

    def has(self, named: str) -> bool:
        """Whether a name is one of a file: it has an ending."""
        return bool(PurePath(named).suffix) and " " not in named and "gone" not in named

    def path(self, named: str, place: Place) -> str:
        """The file, unless it is called ``gone``."""
        return self.read(named, place).path

    def folder(self, named: str | None, place: Place) -> str:
        """The folder, likewise."""
        if named is not None and "gone" in named:
            raise InputError.of(f"there is no folder {named}", place=place)
        return "/w" if named is None else f"/w/{named}"
