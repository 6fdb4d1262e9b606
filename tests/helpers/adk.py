"""A replacement for Google's ADK, which is too large for tests: a folder for the search path."""

from typing import Final

from tests.helpers.support import EVALUATORS

STAND_IN: Final = str(EVALUATORS / "adk")
