"""Paths of the programs in ``agentci/execution/child`` that evaluators ask to run."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

CHILD: Final = Path(__file__).resolve().parents[1] / "execution" / "child"
MEASURE: Final = str(CHILD / "adk" / "measure.py")
GRADE: Final = str(CHILD / "grading" / "grade.py")
RENDER: Final = str(CHILD / "rendering" / "render.py")

# ADK itself, and what only its extra for evaluation brings.
ADK_PACKAGES: Final = ("google.adk", "vertexai")


def is_adk_installed() -> bool:
    """Whether ADK and its evaluation extra are installed; importing them would take seconds."""
    return all(_is_there(name) for name in ADK_PACKAGES)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even what it lies in
        return False
