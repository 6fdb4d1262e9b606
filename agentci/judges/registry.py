"""The providers that a config can name; a new one needs a module and an entry here."""

from collections.abc import Mapping
from typing import Final

from agentci.judges import anthropic, azure, gemini, openai
from agentci.judges.provider import Provider

# Its responses come from a program instead of a service.
COMMAND_PROVIDER: Final = "command"

PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": openai,
    "azure": azure,
    "anthropic": anthropic,
    "gemini": gemini,
}
