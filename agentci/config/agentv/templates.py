"""The templates of an eval file on disk."""

from msgspec import Struct

from agentci.config.agentv.file_references import Files
from agentci.model.place import Place
from agentci.model.problem import Problem


class FilesOfTemplates(Struct, frozen=True, kw_only=True):
    """See ``TemplateFiles``.

    Attributes:
        problems: where warnings go.
    """

    files: Files
    problems: list[Problem]

    def text(self, named: str, place: Place) -> str | None:
        """See ``TemplateFiles``."""
        return self.files.read(named, place).text if self.files.has(named) else None

    def path(self, named: str, place: Place) -> str:
        """See ``TemplateFiles``."""
        return self.files.path(named, place)

    def warn(self, problem: Problem) -> None:
        """See ``TemplateFiles``."""
        self.problems.append(problem)
