"""Judges: prompts to language models, their configuration, responses and verdicts."""

import math
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci.model.values import JsonObject, Place

# The type of a score: a number, true or false, or one of several labels.
ScoreKind: TypeAlias = Literal["number", "boolean", "label"]
# How several scores are combined.
SampleAggregation: TypeAlias = Literal["median", "mean"]
# Whether cached responses are used: before calling a model, instead of calling it, or never.
CacheMode: TypeAlias = Literal["first", "only", "never"]
# How a response ended: by itself, at a token limit, withheld by the model, or in an unknown way.
FinishStatus: TypeAlias = Literal["complete", "truncated", "refused", "unknown"]

# Limit for one response; reasoning models spend reasoning tokens from it, too.
DEFAULT_OUTPUT_TOKENS: Final = 1024


class TokenPrices(Struct, frozen=True, kw_only=True):
    """Token prices in US dollars per million tokens."""

    input_usd: float
    output_usd: float


class ScoreSchema(Struct, frozen=True, kw_only=True):
    """The shape of a verdict with one score.

    Attributes:
        value_name, reason_name: names of the members of the response object.
        low, high: inclusive bounds of a number; infinite if only the author of the prompt knows
            them.
        labels: the allowed labels.
        notes: names of further optional members, lists of short texts. ``assertions``, as in AgentV
            4, is read as ``hits`` and ``misses``.
    """

    kind: ScoreKind = "number"
    value_name: str = "score"
    reason_name: str = "reasoning"
    low: float = 0.0
    high: float = 1.0
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the scores."""
        return (self.value_name,)

    @property
    def is_bounded(self) -> bool:
        """Whether the bounds of a number are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class ChecklistSchema(Struct, frozen=True, kw_only=True):
    """The shape of a verdict with one score for each of several criteria.

    Attributes:
        names: of the criteria, each once.
        kind: whether criteria are met, graded or labelled.
        low, high: bounds of the grades, which are whole numbers.
        labels: the allowed labels.
    """

    names: tuple[str, ...]
    kind: ScoreKind = "boolean"
    low: int = 0
    high: int = 10
    labels: tuple[str, ...] = ()


VerdictSchema: TypeAlias = ScoreSchema | ChecklistSchema


class JudgePrompt(Struct, frozen=True, kw_only=True):
    """One prompt to a model.

    Attributes:
        system: instructions of agentci and of the config's author; empty for none.
        user: the content to grade, with untrusted text between markers.
        schema: of the requested verdict; None if any text is accepted.
    """

    system: str
    user: str
    schema: VerdictSchema | None


class IdentityFederation(Struct, frozen=True, kw_only=True):
    """How to exchange the identity token of a workflow for an access token.

    Attributes:
        ids: by the names that the service uses for them.
        audience: audience of the identity token; empty for the default of the service.
    """

    ids: tuple[tuple[str, str], ...]
    audience: str = ""


class ModelSettings(Struct, frozen=True, kw_only=True):
    """Which model is called, and how.

    Attributes:
        provider: name in the table of providers.
        model: its name at the service; the deployment at Azure. Empty for a command.
        embedding_model: likewise, for embeddings; empty for none.
        base_url: of the service; empty for the provider's default.
        api_version: of Azure's dated API or of Anthropic's API; empty for the default version.
        key_variable: name of the environment variable with the key; empty if none is needed.
        federation: used instead of a key.
        temperature, effort: sent only if set; most models accept no temperature.
        output_tokens: limit for one response; doubled after a truncated response.
        command: of the provider ``command``; an argument may contain ``{prompt}``, else the prompt
            is passed on stdin.
        prints_agentv_json: whether the command may print AgentV's JSON for a response.
        prices: for budgets in dollars.
        unset_variables: environment variables that the settings need and that are not set.
        unavailable: why there is no such model; empty if there is.
    """

    provider: str
    model: str = ""
    embedding_model: str = ""
    base_url: str = ""
    api_version: str = ""
    key_variable: str = ""
    federation: IdentityFederation | None = None
    temperature: float | None = None
    effort: str = ""
    output_tokens: int = DEFAULT_OUTPUT_TOKENS
    command: tuple[str, ...] = ()
    prints_agentv_json: bool = False
    prices: TokenPrices | None = None
    unset_variables: tuple[str, ...] = ()
    unavailable: str = ""


class BudgetLimits(Struct, frozen=True, kw_only=True):
    """Spending limits; None for no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


class JudgeConfig(Struct, frozen=True, kw_only=True):
    """The ``judge`` section of a config: the model, the number of samples and the budget.

    Attributes:
        samples: number of responses per prompt; they are combined by majority, median or mean.
        budget_id: id of the budget, which all judges with this id share.
        folder: absolute path of the folder in which the judge command runs; empty for the working
            directory.
        caps: limits of that budget.
    """

    settings: ModelSettings
    samples: int = 1
    aggregation: SampleAggregation = "median"
    replay: CacheMode = "first"
    budget_id: str = ""
    folder: str = ""
    caps: BudgetLimits = field(default_factory=BudgetLimits)


class RequiredJudge(Struct, frozen=True, kw_only=True):
    """A judge that has to be usable before any evaluation starts.

    Attributes:
        name: of the evaluator, for messages.
        place: where the config names the judge.
    """

    judge: JudgeConfig
    name: str
    place: Place


class ModelAccess(Struct, frozen=True, kw_only=True):
    """The model that a program may call while it runs.

    Attributes:
        judge: its model is called, once per request.
        max_calls: limit for one run of the program, including failed calls.
    """

    judge: JudgeConfig
    max_calls: int


class AskModel(Struct, frozen=True, kw_only=True):
    """Request a verdict from a judge."""

    prompt: JudgePrompt
    judge: JudgeConfig


class ModelResponse(Struct, frozen=True, kw_only=True):
    """The response of a model.

    Attributes:
        finish_reason: why it ended, as named by its service.
        tokens_in, tokens_out: as counted by its service; None if not reported.
    """

    text: str
    ending: FinishStatus
    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


ScoreValue: TypeAlias = bool | float | str


class JudgeScore(Struct, frozen=True, kw_only=True):
    """One score in a response.

    Attributes:
        reason: text of the model; untrusted, as content that it graded may have influenced it.
    """

    value: ScoreValue
    reason: str = ""


class Verdict(Struct, frozen=True, kw_only=True):
    """The parsed content of one response.

    Attributes:
        scores: by the names in the schema; a model may leave out some criteria of a checklist.
        reason, notes, details: untrusted like the reason of a score; details are further data for
            the reports.
    """

    scores: Mapping[str, JudgeScore]
    reason: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    details: JsonObject = field(default_factory=dict)

    @property
    def values(self) -> dict[str, ScoreValue]:
        """The scores without their reasons."""
        return {name: mark.value for name, mark in self.scores.items()}

    @property
    def value(self) -> ScoreValue:
        """The only score, for a schema that has one."""
        return get_single_value(self.values)


class AggregateVerdict(Struct, frozen=True, kw_only=True):
    """The combined verdict of all samples.

    Attributes:
        values: the combined scores, by the names in the schema.
        verdicts: in request order.
        failures: why samples have no verdict.
        responses: the responses of the verdicts, in the same order.
        cached_responses: those of ``responses`` that are from the cache.
    """

    values: Mapping[str, ScoreValue]
    verdicts: tuple[Verdict, ...]
    failures: tuple[str, ...] = ()
    responses: tuple[ModelResponse, ...] = ()
    cached_responses: tuple[ModelResponse, ...] = ()

    @property
    def value(self) -> ScoreValue:
        """The only score, for a schema that has one."""
        return get_single_value(self.values)

    @property
    def is_split(self) -> bool:
        """Whether the verdicts differ."""
        return any(each.values != self.verdicts[0].values for each in self.verdicts)

    @property
    def is_cached(self) -> bool:
        """Whether all verdicts come from cached responses."""
        return len(self.cached_responses) == len(self.verdicts) and not self.failures

    @property
    def representative_verdict(self) -> Verdict:
        """The verdict closest to the combined one; its reasons are shown."""
        return min(self.verdicts, key=self._distance)

    def find_score(self, name: str) -> JudgeScore:
        """Return the sample score of ``name`` closest to the combined one; its reason is shown."""
        given = (verdict.scores[name] for verdict in self.verdicts if name in verdict.scores)
        return min(given, key=lambda mark: _score_distance(self.values[name], mark.value))

    def _distance(self, verdict: Verdict) -> float:
        return sum(
            _score_distance(value, verdict.values.get(name)) for name, value in self.values.items()
        )


def get_single_value(values: Mapping[str, ScoreValue]) -> ScoreValue:
    """Return the only value."""
    [value] = values.values()
    return value


def _score_distance(value: ScoreValue, other: ScoreValue | None) -> float:
    if isinstance(value, str) or isinstance(other, str) or other is None:
        return float(value != other)
    return abs(float(value) - float(other))
