"""Programs that are ready to run, by how requests name them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from agentci.errors import EvaluatorError
from agentci.model.program import LocalProgram, Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unready:
    """A program that cannot be run: why, as the end of a sentence about it."""

    reason: str


Found: TypeAlias = Ready | Unready


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Where programs are looked up when they are to be run."""

    programs: Mapping[Program, Found] = field(default_factory=dict)

    def take(self, program: Program) -> Ready:
        """Say where ``program`` is; a local one needs no preparation.

        Raises:
            EvaluatorError: it could not be made ready.
        """
        found = self.programs.get(program)
        if isinstance(found, Unready):
            raise EvaluatorError(found.reason)
        if found is not None:
            return found
        if isinstance(program, LocalProgram):
            return Ready(path=Path(program.path))
        raise EvaluatorError(f"{program.ref} was not fetched")
