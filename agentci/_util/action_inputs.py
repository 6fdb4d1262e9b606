"""The token that a job of a workflow is given, as the action gets it."""

from collections.abc import Mapping
from typing import Final

INPUT_NAME: Final = "github-token"
TOKEN_INPUT_VARIABLE: Final = f"INPUT_{INPUT_NAME.upper()}"
# Behind it stands what the step was given, tokens among them: of no concern to configs.
INPUT_PREFIX: Final = "INPUT_"


def read_token_input(environ: Mapping[str, str]) -> str:
    """The token of the input; empty where there is none."""
    return environ.get(TOKEN_INPUT_VARIABLE, "").strip()


def remove_action_inputs(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that configs may name variables of."""
    return {name: value for name, value in environ.items() if not name.startswith(INPUT_PREFIX)}
