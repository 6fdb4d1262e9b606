"""Stands in for Google's ADK, which is too large for the tests: a folder on the search path."""

from typing import Final

from tests.helpers.support import EVALUATORS

STAND_IN: Final = str(EVALUATORS / "adk")
