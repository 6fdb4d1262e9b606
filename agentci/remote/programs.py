"""Programs of a run: where each is on disk, or why it cannot run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from agentci.errors import EvaluatorError
from agentci.model.program import LocalProgram, Program


class ReadyProgram(Struct, frozen=True, kw_only=True):
    """A program that can be run.

    Attributes:
        path: absolute path of its file.
        python: interpreter with its packages; None for agentci's own interpreter.
        tree: folder that was fetched with it, named by the digest of its content; None for a
            program in the workspace, whose files may change at any time.
    """

    path: Path
    python: str | None = None
    tree: Path | None = None


class UnavailableProgram(Struct, frozen=True, kw_only=True):
    """A program that cannot be run.

    Attributes:
        reason: predicate of a sentence whose subject is the program.
    """

    reason: str


ProgramAvailability: TypeAlias = ReadyProgram | UnavailableProgram


class ProgramTable(Struct, frozen=True, kw_only=True):
    """Lookup of prepared programs."""

    programs: Mapping[Program, ProgramAvailability] = field(default_factory=dict)

    def locate(self, program: Program) -> ReadyProgram:
        """Return the prepared ``program``; a local one needs no preparation.

        Raises:
            EvaluatorError: if its preparation failed.
        """
        found = self.programs.get(program)
        if isinstance(found, UnavailableProgram):
            raise EvaluatorError(found.reason)
        if found is not None:
            return found
        if isinstance(program, LocalProgram):
            return ReadyProgram(path=Path(program.path))
        raise EvaluatorError(f"{program.ref} was not fetched")
