"""The ``github-token`` input of the action."""

from collections.abc import Mapping
from typing import Final

INPUT_NAME: Final = "github-token"
TOKEN_INPUT_VARIABLE: Final = f"INPUT_{INPUT_NAME.upper()}"
# Variables with this prefix hold the inputs of the step, including tokens; configs must not see
# them.
INPUT_PREFIX: Final = "INPUT_"


def read_token_input(environ: Mapping[str, str]) -> str:
    """Return the token from the input; empty if there is none."""
    return environ.get(TOKEN_INPUT_VARIABLE, "").strip()


def remove_action_inputs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment whose variables configs may name."""
    return {name: value for name, value in environ.items() if not name.startswith(INPUT_PREFIX)}
