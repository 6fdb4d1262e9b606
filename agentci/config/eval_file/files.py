"""What an eval file refers to on disk."""

from dataclasses import dataclass
from typing import Protocol

from agentci.model.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
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
