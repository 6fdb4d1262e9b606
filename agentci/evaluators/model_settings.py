"""Which model is asked, and with whose key, out of the fields of a ``judge``."""

from collections.abc import Mapping
from typing import Any, Final

from agentci.evaluators.auth import federation_of
from agentci.model.judging import OUTPUT_TOKENS, ModelSettings, Prices

# Where keys are by convention. To an address of a config none is sent that the config does not
# name; Azure has no other addresses.
KEY_VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
ALWAYS_ELSEWHERE: Final = "azure"


def settings_of(fields: Mapping[str, Any]) -> ModelSettings:
    """The settings that the fields of a ``judge`` come to; its provider is one of them."""
    provider, price = fields["provider"], fields.get("price")
    federation = federation_of(fields.get("auth"))
    is_own = "base_url" not in fields or provider == ALWAYS_ELSEWHERE
    usual = KEY_VARIABLES.get(provider, "") if is_own and federation is None else ""
    return ModelSettings(
        provider=provider,
        model=fields.get("model", ""),
        embedding_model=fields.get("embedding_model", ""),
        base_url=fields.get("base_url", ""),
        api_version=fields.get("api_version", ""),
        key_variable=fields.get("api_key_env", usual),
        federation=federation,
        temperature=fields.get("temperature"),
        effort=fields.get("effort", ""),
        output_tokens=fields.get("max_output_tokens", OUTPUT_TOKENS),
        command=tuple(fields.get("command", ())),
        prices=None
        if price is None
        else Prices(input_usd=price["input"], output_usd=price["output"]),
    )
