"""The providers that a config can name: a new one is a file and a line here."""

from collections.abc import Mapping
from typing import Final

from agentci.judges import anthropic, azure, gemini, openai
from agentci.judges.provider import Provider

# Its replies come from a program, not from a service.
COMMAND_PROVIDER: Final = "command"

PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": openai,
    "azure": azure,
    "anthropic": anthropic,
    "gemini": gemini,
}
