"""Where the program is that has Google's ADK measure, and whether there is an ADK to do so."""

import os
from importlib.util import find_spec
from typing import Final

MEASURE: Final = os.path.join(os.path.dirname(os.path.realpath(__file__)), "measure.py")

# ADK itself, and what only its extra for evaluation brings.
PACKAGES: Final = ("google.adk", "vertexai")


def is_installed() -> bool:
    """Whether ADK is beside us, with its extra; neither is imported, which takes seconds."""
    return all(_is_there(name) for name in PACKAGES)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even what it lies in
        return False
