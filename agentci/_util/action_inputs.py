"""The ``github-token`` input of the action."""

from collections.abc import Mapping
from typing import Final

INPUT_NAME: Final = "github-token"
TOKEN_INPUT_VARIABLE: Final = f"INPUT_{INPUT_NAME.upper()}"


def read_token_input(environ: Mapping[str, str]) -> str:
    """Return the token from the input; empty if there is none."""
    return environ.get(TOKEN_INPUT_VARIABLE, "").strip()
