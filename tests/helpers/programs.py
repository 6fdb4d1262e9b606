"""Programs for configs that are read without files: every named program exists."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentci.errors import InputError
from agentci.evaluators.evaluator_type import EvaluatorType, TextFile
from agentci.model.program import LocalProgram, RemoteProgram
from agentci.model.values import Place, Problem


class AnyPrograms:
    """Finds all programs in ``folder``, except those that are called ``gone``."""

    executors = ("local", "docker")

    def __init__(self, folder: Path = Path("/w")) -> None:
        self.folder = str(folder)

    def type_named(self, name: str) -> EvaluatorType[Any] | None:
        """None: there are no plugin types."""
        del name
        return None

    def find(self, named: str, place: Place) -> LocalProgram:
        """The program, with any name."""
        if "gone" in named:
            raise InputError([Problem(message=f"{named} does not exist", place=place)])
        return LocalProgram(path=str(Path(self.folder, named)))

    def read(self, named: str, place: Place) -> TextFile:
        """A prompt, with any name."""
        del place
        return TextFile(name=named, text="{{ response }}")

    def read_variable(self, named: str, place: Place) -> str:
        """A value for each variable."""
        del place
        return f"value of {named}"

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """The unchanged program, unless it is called ``gone``."""
        if "gone" in program.ref:
            raise InputError(
                [Problem(message=f"{program.ref} is not there", place=place_of("ref"))]
            )
        return program
