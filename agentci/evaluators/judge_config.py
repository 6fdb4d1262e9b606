"""The ``judge`` section of configs: model, credentials, number of samples and budget."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.errors import InputError
from agentci.evaluators.evaluator import Definition, define_command
from agentci.evaluators.fields import Count, StrictModel, Text, VariableName, optional
from agentci.model import judges
from agentci.model.values import Place, Problem

# Members of `auth` that are not ids.
NON_ID_FIELDS: Final = frozenset({"type", "audience"})


class AuthSpec(StrictModel):
    """Exchange the identity of a GitHub Actions job for a key; ids are the provider's."""

    type: Literal["github-oidc"] = Field(description="With the OIDC token of the GitHub job.")
    identity_provider_id: Text | None = optional("Required by OpenAI.")
    service_account_id: Text | None = optional("Required by OpenAI; optional for Anthropic.")
    federation_rule_id: Text | None = optional("Required by Anthropic.")
    organization_id: Text | None = optional("Required by Anthropic.")
    workspace_id: Text | None = optional("Optional, for Anthropic.")
    tenant_id: Text | None = optional("Required by Azure.")
    client_id: Text | None = optional("Required by Azure.")
    audience: Text | None = optional(
        "Audience of the OIDC token; default: the provider's usual one."
    )


def make_federation(auth: dict[str, str] | None) -> judges.IdentityFederation | None:
    """Make the settings for exchanging an identity for a key; None without ``auth``."""
    if auth is None:
        return None
    ids = tuple((name, given) for name, given in auth.items() if name not in NON_ID_FIELDS)
    return judges.IdentityFederation(ids=ids, audience=auth.get("audience", ""))


# Default variables of keys. For security, a `base_url` in a config gets only a key that the config
# names. Azure is exempt, because it has no default address.
KEY_VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
CUSTOM_ADDRESS_PROVIDER: Final = "azure"
# How AgentV's files name a variable: `${{ NAME }}`, and `{{ env.NAME }}` since AgentV 5.
VARIABLE_PLACEHOLDER: Final = re.compile(
    r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}|\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}"
)


def uses_default_key(settings: judges.ModelSettings) -> bool:
    """Whether a provider's usual key goes to the provider's own address, and so nowhere else."""
    usual = KEY_VARIABLES.get(settings.provider)
    return settings.key_variable == usual and not settings.base_url


def make_model_settings(fields: Mapping[str, Any]) -> judges.ModelSettings:
    """Make model settings from the fields of a ``judge``, which must include a provider."""
    provider, price = fields["provider"], fields.get("price")
    federation = make_federation(fields.get("auth"))
    is_own = "base_url" not in fields or provider == CUSTOM_ADDRESS_PROVIDER
    usual = KEY_VARIABLES.get(provider, "") if is_own and federation is None else ""
    return judges.ModelSettings(
        provider=provider,
        model=fields.get("model", ""),
        embedding_model=fields.get("embedding_model", ""),
        base_url=fields.get("base_url", ""),
        api_version=fields.get("api_version", ""),
        key_variable=fields.get("api_key_env", usual),
        federation=federation,
        temperature=fields.get("temperature"),
        effort=fields.get("effort", ""),
        output_tokens=fields.get("max_output_tokens", judges.DEFAULT_OUTPUT_TOKENS),
        command=tuple(fields.get("command", ())),
        prints_agentv_json=fields.get("prints_agentv_json", False),
        unset_variables=tuple(fields.get("unset_variables", ())),
        unavailable=fields.get("unavailable", ""),
        prices=None
        if price is None
        else judges.TokenPrices(input_usd=price["input"], output_usd=price["output"]),
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
        *("unset_variables", "unavailable", "prints_agentv_json"),
    }
)

Dollars: TypeAlias = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Samples: TypeAlias = Annotated[int, Field(ge=1, le=MAX_SAMPLES)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=10**12)]


class PriceSpec(StrictModel):
    """Token prices in US dollars per million tokens."""

    input: Dollars = Field(description="Price of input tokens.")
    output: Dollars = Field(description="Price of output tokens.")


class JudgeSpec(StrictModel):
    """The judge model and its settings; omitted fields are taken from the top-level `judge`."""

    provider: ProviderName | None = optional("API of the model; `openai` for any Chat Completions.")
    model: Text | None = optional("Model, or Azure deployment.")
    embedding_model: Text | None = optional("Embedding model, or Azure deployment, of `cosine`.")
    base_url: Text | None = optional("URL of the API; default: the provider's.")
    api_version: Text | None = optional("Version of Azure's dated API or Anthropic's.")
    api_key_env: VariableName | None = Field(
        default=None,
        description=("Variable with the API key; default: the usual one, none with `base_url`."),
    )
    auth: AuthSpec | None = optional("Authentication in GitHub Actions without a key.")
    command: Annotated[list[Text], Field(min_length=1)] | None = optional(
        "Program and arguments; the prompt is stdin, or replaces `{prompt}`."
    )
    samples: Samples | None = optional("Responses per case, default 1; the majority counts.")
    combine: judges.SampleAggregation | None = optional(
        "Combination of numbers; default: `median`."
    )
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = optional(
        "Sampling temperature; not sent by default."
    )
    effort: Text | None = optional("Reasoning effort, such as `low`.")
    max_output_tokens: Count | None = optional(
        "Token limit of one response, reasoning included; default "
        f"{judges.DEFAULT_OUTPUT_TOKENS:,}, doubled after a truncated response."
    )
    price: PriceSpec | None = optional("Token prices; required by `max_usd`.")
    cache: bool | None = optional("Whether responses are cached; default `true`.")
    replay: Literal["only"] | None = optional(
        "`only`: never call the model; a prompt that is not cached is an error."
    )


class SharedJudgeSpec(JudgeSpec):
    """The judge model, its settings, and its budget."""

    max_calls: Count | None = optional("Limit on calls per run, with retries.")
    max_tokens: Tokens | None = optional("Limit on tokens per run.")
    max_usd: Dollars | None = optional("Limit on US dollars per run, by `price`.")


class TargetJudgeSpec(SharedJudgeSpec):
    """The judge model of a target in AgentV's list.

    Attributes:
        unset_variables: names of the variables in its settings that are not set; without them the
            model is not known, and cannot be called.
        unavailable: why it is not a model that can be called; empty if it is one.
        prints_agentv_json: whether its command may print AgentV's JSON for a response.
    """

    unset_variables: tuple[str, ...] = ()
    unavailable: str | None = None
    prints_agentv_json: bool | None = None


def define_judge(judge: judges.JudgeConfig) -> Definition:
    """Define a judge by the settings that affect its verdicts, without keys, prices and limits."""
    settings = judge.settings
    given: Definition = {
        "provider": settings.provider,
        "model": settings.model,
        "base_url": settings.base_url,
        "api_version": settings.api_version,
        "temperature": settings.temperature,
        "effort": settings.effort,
        "max_output_tokens": settings.output_tokens,
        "samples": judge.samples,
    }
    combine: Definition = {"combine": judge.aggregation} if judge.samples > 1 else {}
    if not settings.command:
        return {**given, **combine}
    command = define_command(settings.command, folder=judge.folder)
    return {**given, **combine, "command": command}


class MissingJudgeError(InputError):
    """An evaluator needs a judge model, and none is configured."""


class JudgeSettings(Struct, frozen=True, kw_only=True):
    """The judge settings of one config.

    Attributes:
        shared: the config's top-level ``judge``.
        model: judge model that overrides the config.
        missing_hint: what to do if there is no judge; empty for the usual hint.
        budget_id: name of the config, whose budget is used.
        folder: absolute path of the config's folder, where judge programs run.
    """

    budget_id: str
    folder: str = ""
    shared: SharedJudgeSpec | None = None
    model: str = ""
    missing_hint: str = ""

    @property
    def is_named(self) -> bool:
        """Whether there is a judge for evaluators that do not name one."""
        return self.shared is not None or bool(self.model)

    def require(self, own: JudgeSpec | None, *, name: str, place: Place) -> judges.RequiredJudge:
        """Return the judge model that an evaluator needs.

        Args:
            own: the ``judge`` of its entry.
            name: the evaluator's name.
            place: where the config names the judge, for messages.

        Raises:
            MissingJudgeError: if no judge is configured.
        """
        return judges.RequiredJudge(judge=self._resolve(own, name, place), name=name, place=place)

    def _resolve(self, own: JudgeSpec | None, name: str, place: Place) -> judges.JudgeConfig:
        fields = _add_command_provider(_dump_set_fields(own))
        shared = _add_named_provider(_add_command_provider(_dump_set_fields(self.shared)))
        if "provider" in fields:
            shared = {key: value for key, value in shared.items() if key not in PROVIDER_FIELDS}
        fields = {**shared, **fields}
        if self.model:
            fields["model"] = self.model
        fields = _add_named_provider(fields)
        if "provider" not in fields:
            raise _make_missing_judge_error(
                name, fields.get("model", ""), place, hint=self.missing_hint
            )
        return judges.JudgeConfig(
            settings=make_model_settings(fields),
            samples=fields.get("samples", 1),
            aggregation=fields.get("combine", "median"),
            replay=_read_replay_mode(fields, place),
            budget_id=self.budget_id,
            folder=self.folder,
            caps=judges.BudgetLimits(
                max_calls=shared.get("max_calls"),
                max_tokens=shared.get("max_tokens"),
                max_usd=shared.get("max_usd"),
            ),
        )


def _dump_set_fields(spec: JudgeSpec | None) -> dict[str, Any]:
    return {} if spec is None else spec.model_dump(exclude_none=True)


def _add_command_provider(fields: dict[str, Any]) -> dict[str, Any]:
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


def _make_missing_judge_error(name: str, model: str, place: Place, *, hint: str) -> InputError:
    """Make the error for an evaluator without a judge, or with a model of unknown provider."""
    providers = f"providers are {join_with_or(PROVIDER_NAMES)}"
    if model:
        return MissingJudgeError.from_message(
            f"the judge model {quote_name(model)} of `{name}` has no provider",
            place=place,
            hint=f"write PROVIDER/{model}, or set `provider` in `judge`; {providers}",
        )
    return MissingJudgeError.from_message(
        f"`{name}` needs a judge model",
        place=place,
        hint=hint or f"add `judge: {{provider: ..., model: ...}}`; {providers}",
    )


def _read_replay_mode(fields: dict[str, Any], place: Place) -> judges.CacheMode:
    if fields.get("cache", True):
        return "only" if "replay" in fields else "first"
    if "replay" in fields:
        raise InputError.from_message(
            "`cache: false` and `replay: only` exclude each other",
            place=place,
            hint="remove one of them",
        )
    return "never"


def make_judge_settings(
    model: str, fields: Mapping[str, Any], *, name: str, place: Place, folder: str = ""
) -> JudgeSettings:
    """Make the settings of a judge.

    Args:
        model: ``model`` or ``provider/model``; empty if ``fields`` name it.
        fields: as under ``judge`` in a config.
        name: of what gives the fields, for messages.
        folder: as in ``JudgeSettings``.

    Raises:
        InputError: a field is unknown or invalid.
    """
    try:
        shared = SharedJudgeSpec.model_validate(dict(fields))
    except ValidationError as error:
        raise InputError(
            [
                Problem(message=f"{name}: {_format_field_error(each)}", place=place)
                for each in error.errors(include_url=False)
            ]
        ) from None
    budget_id = json.dumps([model, shared.model_dump()], sort_keys=True)
    return JudgeSettings(budget_id=budget_id, folder=folder, shared=shared, model=model)


def _format_field_error(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}"
    meant = suggest_name(name, tuple(SharedJudgeSpec.model_fields))
    return f"unknown field {quote_name(name)}" + (f"; {meant}" if meant else "")
