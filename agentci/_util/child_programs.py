"""Paths of the programs in ``agentci/execution/child/programs`` that evaluators ask to run."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).resolve().parents[1] / "execution" / "child" / "programs"
ADK_MEASURE_PATH: Final = str(_FOLDER / "measure_adk.py")
GRADE_PATH: Final = str(_FOLDER / "call_grader.py")
RENDER_PATH: Final = str(_FOLDER / "render_template.py")
SEARCH_PATH: Final = str(_FOLDER / "search_text.py")

# ADK, and a package that only its evaluation extra installs.
ADK_PACKAGES: Final = ("google.adk", "vertexai")


def is_adk_installed() -> bool:
    """Whether ADK and its evaluation extra are installed; importing them would take seconds."""
    return all(_is_importable(name) for name in ADK_PACKAGES)


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
