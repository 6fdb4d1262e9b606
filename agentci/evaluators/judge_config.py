"""The ``judge`` section of configs: model, credentials, number of samples and budget."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct
from pydantic import Field

from agentci._util.text.suggest import join_with_or, quote_name
from agentci.errors import InputError
from agentci.evaluators.fields import Count, StrictModel, Text, VariableName
from agentci.model.judges import (
    DEFAULT_OUTPUT_TOKENS,
    BudgetLimits,
    CacheMode,
    IdentityFederation,
    JudgeConfig,
    ModelSettings,
    SampleAggregation,
    TokenPrices,
)
from agentci.model.problem import Place

# Members of `auth` that are not ids.
NON_ID_FIELDS: Final = frozenset({"type", "audience"})


class AuthSpec(StrictModel):
    """Exchange the identity of a GitHub Actions job for a key. Ids are those of the provider.

    OpenAI requires `identity_provider_id` and `service_account_id`, Anthropic `federation_rule_id`
    and `organization_id`, Azure `tenant_id` and `client_id`.
    """

    type: Literal["github-oidc"] = Field(description="By the id token that GitHub gives to a job.")
    identity_provider_id: Text | None = Field(default=None, description="Of OpenAI.")
    service_account_id: Text | None = Field(
        default=None, description="Of OpenAI; of Anthropic where its rule does not name one."
    )
    federation_rule_id: Text | None = Field(default=None, description="Of Anthropic.")
    organization_id: Text | None = Field(default=None, description="Of Anthropic.")
    workspace_id: Text | None = Field(default=None, description="Of Anthropic, if there are some.")
    tenant_id: Text | None = Field(default=None, description="Of Azure.")
    client_id: Text | None = Field(default=None, description="Of Azure.")
    audience: Text | None = Field(
        default=None, description="Of the id token, where the service expects an unusual one."
    )


def make_federation(auth: dict[str, str] | None) -> IdentityFederation | None:
    """Make the settings for exchanging an identity for a key; None without ``auth``."""
    if auth is None:
        return None
    ids = tuple((name, given) for name, given in auth.items() if name not in NON_ID_FIELDS)
    return IdentityFederation(ids=ids, audience=auth.get("audience", ""))


# Default variables of keys. For security, a `base_url` in a config gets only a key that the config
# names. Azure is exempt, because it has no default address.
KEY_VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
CUSTOM_ADDRESS_PROVIDER: Final = "azure"


def make_model_settings(fields: Mapping[str, Any]) -> ModelSettings:
    """Make model settings from the fields of a ``judge``, which must include a provider."""
    provider, price = fields["provider"], fields.get("price")
    federation = make_federation(fields.get("auth"))
    is_own = "base_url" not in fields or provider == CUSTOM_ADDRESS_PROVIDER
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
        output_tokens=fields.get("max_output_tokens", DEFAULT_OUTPUT_TOKENS),
        command=tuple(fields.get("command", ())),
        prices=None
        if price is None
        else TokenPrices(input_usd=price["input"], output_usd=price["output"]),
    )


ProviderName: TypeAlias = Literal["openai", "azure", "anthropic", "gemini", "command"]
PROVIDER_NAMES: Final[tuple[ProviderName, ...]] = get_args(ProviderName)

MAX_SAMPLES: Final = 99
# agentevals accepts models with this prefix without a provider.
GEMINI_PREFIX: Final = "gemini-"

# Fields that do not apply to another provider.
PROVIDER_FIELDS: Final = frozenset(
    {
        *("provider", "model", "base_url", "api_version", "api_key_env", "effort", "command"),
        *("price", "temperature", "max_output_tokens", "auth", "embedding_model"),
    }
)

Dollars: TypeAlias = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Samples: TypeAlias = Annotated[int, Field(ge=1, le=MAX_SAMPLES)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=10**12)]


class PriceSpec(StrictModel):
    """Token prices in US dollars per million tokens."""

    input: Dollars = Field(description="Of what a model reads.")
    output: Dollars = Field(description="Of what it writes.")


class JudgeSpec(StrictModel):
    """The judge model and its settings; omitted fields are taken from the top-level `judge`."""

    provider: ProviderName | None = Field(
        default=None,
        description="Whose API it has: `openai` also for Ollama, vLLM, LiteLLM and all that speak "
        "its Chat Completions; `command` for a program of your own.",
    )
    model: Text | None = Field(
        default=None, description="Name of the model; of the deployment at Azure. No default."
    )
    embedding_model: Text | None = Field(
        default=None,
        description="Of `openai` and `azure`: the model, or the deployment, by whose vectors "
        "`cosine` compares texts. No default.",
    )
    base_url: Text | None = Field(
        default=None, description="Address of the API; by default the provider's own."
    )
    api_version: Text | None = Field(
        default=None, description="Of Azure's dated API, or of Anthropic's."
    )
    api_key_env: VariableName | None = Field(
        default=None,
        description="Name of the environment variable that holds the key: by default the "
        "provider's usual one (`OPENAI_API_KEY`, ...), and none with a `base_url`.",
    )
    auth: AuthSpec | None = Field(
        default=None, description="In the place of a key, in GitHub Actions: no secret is needed."
    )
    command: Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None,
        description="For `command`: the program and its arguments. It reads the prompt from stdin, "
        "or where an argument holds `{prompt}`, and prints the reply.",
    )
    samples: Samples | None = Field(
        default=None,
        description="How often the model is asked about each case, 1 by default; the majority "
        "counts, of grades their median.",
    )
    combine: SampleAggregation | None = Field(
        default=None, description="What several grades come to: `median` (the default) or `mean`."
    )
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = Field(
        default=None, description="Sent where it is set; many models take none."
    )
    effort: Text | None = Field(
        default=None, description="How long a model that reasons may think, in its service's words."
    )
    max_output_tokens: Count | None = Field(
        default=None,
        description=(
            f"Tokens of one reply, thoughts included: {DEFAULT_OUTPUT_TOKENS:,} by default; "
            "twice as many where one was cut off."
        ),
    )
    price: PriceSpec | None = Field(default=None, description="Of tokens; `max_usd` needs it.")
    cache: bool | None = Field(
        default=None,
        description="Whether a reply of an earlier run will do where the question is the same: yes "
        "by default.",
    )
    replay: Literal["only"] | None = Field(
        default=None,
        description="`only`: no model is asked, and what no reply of an earlier run answers is an "
        "error.",
    )


class SharedJudgeSpec(JudgeSpec):
    """The judge model, its settings, and its budget."""

    max_calls: Count | None = Field(
        default=None, description="Questions that a run may ask, repeated ones included."
    )
    max_tokens: Tokens | None = Field(
        default=None, description="Tokens that a run may use, read and written."
    )
    max_usd: Dollars | None = Field(
        default=None, description="US dollars that a run may spend, by `price`."
    )


class MissingJudgeError(InputError):
    """An evaluator needs a judge model, and none is configured."""


class JudgeSettings(Struct, frozen=True, kw_only=True):
    """The judge settings of one config.

    Attributes:
        shared: the config's top-level ``judge``.
        model: judge model that overrides the config.
        payer: name of the config, whose budget is used.
        folder: absolute path of the config's folder, where judge programs run.
    """

    budget_id: str
    folder: str = ""
    shared: SharedJudgeSpec | None = None
    model: str = ""

    @property
    def is_named(self) -> bool:
        """Whether there is a judge for evaluators that do not name one."""
        return self.shared is not None or bool(self.model)

    def panel(self, own: JudgeSpec | None, place: Place) -> JudgeConfig:
        """Return the judge of an evaluator.

        Args:
            own: the ``judge`` of its entry.

        Raises:
            MissingJudgeError: if no judge is configured.
        """
        fields = _add_command_provider(_dump_set_fields(own))
        shared = _add_named_provider(_add_command_provider(_dump_set_fields(self.shared)))
        if "provider" in fields:
            shared = {key: value for key, value in shared.items() if key not in PROVIDER_FIELDS}
        fields = {**shared, **fields}
        if self.model:
            fields["model"] = self.model
        fields = _add_named_provider(fields)
        if "provider" not in fields:
            raise _make_missing_judge_error(fields.get("model", ""), place)
        return JudgeConfig(
            settings=make_model_settings(fields),
            samples=fields.get("samples", 1),
            aggregation=fields.get("combine", "median"),
            replay=_read_replay_mode(fields, place),
            budget_id=self.budget_id,
            folder=self.folder,
            caps=BudgetLimits(
                max_calls=shared.get("max_calls"),
                max_tokens=shared.get("max_tokens"),
                max_usd=shared.get("max_usd"),
            ),
        )


def _dump_set_fields(spec: JudgeSpec | None) -> dict[str, Any]:
    """Return the fields that are set."""
    return {} if spec is None else spec.model_dump(exclude_none=True)


def _add_command_provider(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the provider ``command`` if the fields have a command."""
    return {"provider": "command", **fields} if "command" in fields else fields


def _add_named_provider(fields: dict[str, Any]) -> dict[str, Any]:
    """Add the provider that the model's name includes, as in agentevals."""
    model = fields.get("model", "")
    provider, slash, name = model.partition("/")
    if "provider" in fields:
        return fields
    if model.startswith(GEMINI_PREFIX):
        return {**fields, "provider": "gemini"}
    if slash and provider in PROVIDER_NAMES:
        return {**fields, "provider": provider, "model": name}
    if "embedding_model" in fields and not model:
        return {**fields, "provider": "openai"}
    return fields


def _make_missing_judge_error(model: str, place: Place) -> InputError:
    """Make the error for an evaluator without a judge, or with a model of unknown provider."""
    providers = f"providers are {join_with_or(PROVIDER_NAMES)}"
    if model:
        return MissingJudgeError.from_message(
            f"it asks the model {quote_name(model)}, and nothing says of which provider",
            place=place,
            hint=f"name both, as PROVIDER/{model}, or `provider` in `judge`; {providers}",
        )
    return MissingJudgeError.from_message(
        "it asks a model, and no `judge` says which one",
        place=place,
        hint=f"add `judge: {{provider: ..., model: ...}}`; {providers}",
    )


def _read_replay_mode(fields: dict[str, Any], place: Place) -> CacheMode:
    if fields.get("cache", True):
        return "only" if "replay" in fields else "first"
    if "replay" in fields:
        raise InputError.from_message(
            "`cache: false` and `replay: only` leave nothing to judge by",
            place=place,
            hint="leave one of them out",
        )
    return "never"
