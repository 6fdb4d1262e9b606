"""Programs that are ready to run, by how requests name them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from agentci.errors import EvaluatorError
from agentci.model.program import LocalProgram, Program


class ReadyProgram(Struct, frozen=True, kw_only=True):
    """A program that can be run.

    Attributes:
        path: its file, absolute.
        python: the interpreter that has its packages; None for ours.
        tree: the folder that it was fetched with, named by the digest of all that is in it; None
            where it lies in the workspace, and anything may change.
    """

    path: Path
    python: str | None = None
    tree: Path | None = None


class UnavailableProgram(Struct, frozen=True, kw_only=True):
    """A program that cannot be run: why, as the end of a sentence about it."""

    reason: str


ProgramAvailability: TypeAlias = ReadyProgram | UnavailableProgram


class ProgramTable(Struct, frozen=True, kw_only=True):
    """Where programs are looked up when they are to be run."""

    programs: Mapping[Program, ProgramAvailability] = field(default_factory=dict)

    def locate(self, program: Program) -> ReadyProgram:
        """Say where ``program`` is; a local one needs no preparation.

        Raises:
            EvaluatorError: it could not be made ready.
        """
        found = self.programs.get(program)
        if isinstance(found, UnavailableProgram):
            raise EvaluatorError(found.reason)
        if found is not None:
            return found
        if isinstance(program, LocalProgram):
            return ReadyProgram(path=Path(program.path))
        raise EvaluatorError(f"{program.ref} was not fetched")
