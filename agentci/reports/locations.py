"""Places as readers see them; what was given on the command line lies in no file."""

from agentci.model.place import COMMAND_LINE, Place
from agentci.model.problem import Problem


def file_name(file: str) -> str:
    """A file in words."""
    return "command line" if file == COMMAND_LINE.file else file


def in_a_file(place: Place | None) -> Place | None:
    """The place, if it is one that an editor could go to."""
    return None if place is None or place.file == COMMAND_LINE.file else place


def problem_line(problem: Problem, *, severity: bool = False) -> str:
    """A problem as ``FILE:LINE:COLUMN: SEVERITY: MESSAGE (HINT)``."""
    place = "" if problem.place is None else f"{problem.place}: "
    weight = f"{problem.severity}: " if severity else ""
    hint = "" if problem.hint is None else f" ({problem.hint})"
    return f"{place}{weight}{problem.message}{hint}"
