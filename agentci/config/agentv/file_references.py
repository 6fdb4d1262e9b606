"""What an eval file refers to on disk."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agentci.model.place import Place


class Attachment(Struct, frozen=True, kw_only=True):
    """A file that a message refers to.

    Attributes:
        path: absolute.
        shown: as it is written in the message.
        is_guideline: matched by the `guideline_patterns` of AgentV's own settings.
    """

    path: str
    shown: str
    text: str
    is_guideline: bool


class Source(Struct, frozen=True, kw_only=True):
    """A file that says a part of what an eval file says.

    Attributes:
        file: as shown to the user.
        path: absolute.
        case_id: the name of its folder, where it holds the one case of that.
    """

    file: str
    path: str
    data: bytes
    case_id: str | None = None


class Files(Protocol):
    """Finds the files of one eval file."""

    @property
    def home(self) -> str | None:
        """Absolute path of the repository that it is from, where that is not the workspace."""
        ...

    def read(self, named: str, place: Place) -> Attachment:
        """Read what is named at ``place``.

        Raises:
            InputError: it is missing, out of bounds, or no text.
        """
        ...

    def has(self, named: str) -> bool:
        """Whether there is a file of that name, wherever it leads."""
        ...

    def path(self, named: str, place: Place) -> str:
        """The absolute path of the file that is named at ``place``.

        Raises:
            InputError: it is missing, or out of bounds.
        """
        ...

    def folder(self, named: str | None, place: Place) -> str:
        """The absolute path of the folder that is named at ``place``; None is that of the file.

        Raises:
            InputError: it is missing, or out of bounds.
        """
        ...

    def cases(self, named: str, place: Place) -> Sequence[Source]:
        """The files of cases that are named at ``place``: one, those of a glob or of a folder.

        Raises:
            InputError: there are none, or one is out of bounds or of an unknown kind.
        """
        ...

    def template(self, named: str, place: Place, *, beside: str | None) -> Source:
        """The file of evaluators that is included at ``place``.

        Args:
            beside: absolute path of the file that includes it, where that is not the eval file.

        Raises:
            InputError: it is missing, or out of bounds.
        """
        ...

    def assertion(self, kind: str) -> str | None:
        """The absolute path of the program that judges where an entry has the type ``kind``.

        None where there is none in the folders that AgentV looks into by itself.
        """
        ...
