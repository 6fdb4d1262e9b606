"""``judge`` in configs: which model is asked, how often, and for how much."""

from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct
from pydantic import Field

from agentci._util.text.suggest import one_of, quoted
from agentci.errors import InputError
from agentci.evaluators.auth import AuthSpec
from agentci.evaluators.fields import Count, Strict, Text, VariableName
from agentci.evaluators.model_settings import settings_of
from agentci.model.judging import (
    OUTPUT_TOKENS,
    Caps,
    Combining,
    Panel,
    Replay,
)
from agentci.model.place import Place

ProviderName: TypeAlias = Literal["openai", "azure", "anthropic", "gemini", "command"]
PROVIDER_NAMES: Final[tuple[ProviderName, ...]] = get_args(ProviderName)

MAX_SAMPLES: Final = 99
# Models that agentevals finds without a provider before their name.
GEMINI_PREFIX: Final = "gemini-"

# What is of no use once another service is asked.
OF_SERVICE: Final = frozenset(
    {
        *("provider", "model", "base_url", "api_version", "api_key_env", "effort", "command"),
        *("price", "temperature", "max_output_tokens", "auth", "embedding_model"),
    }
)

Dollars: TypeAlias = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Samples: TypeAlias = Annotated[int, Field(ge=1, le=MAX_SAMPLES)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=10**12)]


class PriceSpec(Strict):
    """What tokens cost, in US dollars a million."""

    input: Dollars = Field(description="Of what a model reads.")
    output: Dollars = Field(description="Of what it writes.")


class JudgeSpec(Strict):
    """Which model judges, and how often it is asked; what is left out is as at the top."""

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
    combine: Combining | None = Field(
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
        description=f"Tokens of one reply, thoughts included: {OUTPUT_TOKENS:,} by default; twice "
        "as many where one was cut off.",
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
    """Which model judges, how often it is asked, and what that may cost."""

    max_calls: Count | None = Field(
        default=None, description="Questions that a run may ask, repeated ones included."
    )
    max_tokens: Tokens | None = Field(
        default=None, description="Tokens that a run may use, read and written."
    )
    max_usd: Dollars | None = Field(
        default=None, description="US dollars that a run may spend, by `price`."
    )


class NobodyJudgesError(InputError):
    """An evaluator asks a model, and nobody said which one."""


class Judges(Struct, frozen=True, kw_only=True):
    """Who judges in one config.

    Attributes:
        shared: what its top level says.
        model: which model judges whatever the config says.
        payer: whose budget it is: the name of the config.
        folder: absolute path of that of the config, where programs that judge are run.
    """

    payer: str
    folder: str = ""
    shared: SharedJudgeSpec | None = None
    model: str = ""

    @property
    def is_named(self) -> bool:
        """Whether somebody said who judges whatever does not say it itself."""
        return self.shared is not None or bool(self.model)

    def panel(self, own: JudgeSpec | None, place: Place) -> Panel:
        """The panel of an evaluator.

        Args:
            own: what its entry says.

        Raises:
            NobodyJudgesError: nobody said who judges.
        """
        fields = _with_command(_given(own))
        shared = _with_provider(_with_command(_given(self.shared)))
        if "provider" in fields:
            shared = {key: value for key, value in shared.items() if key not in OF_SERVICE}
        fields = {**shared, **fields}
        if self.model:
            fields["model"] = self.model
        fields = _with_provider(fields)
        if "provider" not in fields:
            raise _nobody(fields.get("model", ""), place)
        return Panel(
            settings=settings_of(fields),
            samples=fields.get("samples", 1),
            combining=fields.get("combine", "median"),
            replay=_replay(fields, place),
            payer=self.payer,
            folder=self.folder,
            caps=Caps(
                max_calls=shared.get("max_calls"),
                max_tokens=shared.get("max_tokens"),
                max_usd=shared.get("max_usd"),
            ),
        )


def _given(spec: JudgeSpec | None) -> dict[str, Any]:
    """The fields that are set."""
    return {} if spec is None else spec.model_dump(exclude_none=True)


def _with_command(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the provider that a program of one's own is."""
    return {"provider": "command", **fields} if "command" in fields else fields


def _with_provider(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the provider that the name of the model says, as agentevals' names do."""
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


def _nobody(model: str, place: Place) -> InputError:
    """The error of an evaluator that asks nobody, or a model of nobody knows whom."""
    providers = f"providers are {one_of(PROVIDER_NAMES)}"
    if model:
        return NobodyJudgesError.of(
            f"it asks the model {quoted(model)}, and nothing says of which provider",
            place=place,
            hint=f"name both, as PROVIDER/{model}, or `provider` in `judge`; {providers}",
        )
    return NobodyJudgesError.of(
        "it asks a model, and no `judge` says which one",
        place=place,
        hint=f"add `judge: {{provider: ..., model: ...}}`; {providers}",
    )


def _replay(fields: dict[str, Any], place: Place) -> Replay:
    if fields.get("cache", True):
        return "only" if "replay" in fields else "first"
    if "replay" in fields:
        raise InputError.of(
            "`cache: false` and `replay: only` leave nothing to judge by",
            place=place,
            hint="leave one of them out",
        )
    return "never"
