"""Judges: prompts to language models, their configuration, responses and verdicts."""

import math
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from agentci.model.json import JsonObject
from agentci.model.problem import Place

# What a mark is: a grade, whether something holds, or one of several words.
ScoreKind: TypeAlias = Literal["number", "boolean", "label"]
# What becomes of several grades.
SampleAggregation: TypeAlias = Literal["median", "mean"]
# Whether replies of earlier runs will do: before a model is asked, instead of asking it, or never.
CacheMode: TypeAlias = Literal["first", "only", "never"]
# How a reply ended: at its own end, at a limit, withheld, or in a way that we do not know.
FinishStatus: TypeAlias = Literal["complete", "truncated", "refused", "unknown"]

# Of a reply; models that reason spend it on that, too.
DEFAULT_OUTPUT_TOKENS: Final = 1024


class TokenPrices(Struct, frozen=True, kw_only=True):
    """What tokens cost, in dollars a million of them."""

    input_usd: float
    output_usd: float


class ScoreSchema(Struct, frozen=True, kw_only=True):
    """What a verdict looks like that is one mark.

    Attributes:
        value_name, reason_name: of members of the object that is to be replied.
        low, high: the bounds of a number, both within; infinite where only the author of a prompt
            knows them.
        labels: the words of which a label is one.
        notes: names of further members, lists of short texts; none of them has to be there. What
            AgentV 4 calls ``assertions`` is read as ``hits`` and ``misses``.
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
        """What marks are given to."""
        return (self.value_name,)

    @property
    def is_bounded(self) -> bool:
        """Whether the bounds of a number are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class ChecklistSchema(Struct, frozen=True, kw_only=True):
    """What a verdict looks like that has a mark for each of several criteria.

    Attributes:
        names: of the criteria, each once.
        kind: whether criteria are met, graded or labelled.
        low, high: the bounds of grades, which are whole numbers.
        labels: the words of which a label is one.
    """

    names: tuple[str, ...]
    kind: ScoreKind = "boolean"
    low: int = 0
    high: int = 10
    labels: tuple[str, ...] = ()


VerdictSchema: TypeAlias = ScoreSchema | ChecklistSchema


class JudgePrompt(Struct, frozen=True, kw_only=True):
    """One question to a model.

    Attributes:
        system: our words, and those of whoever wrote the config; empty for none.
        user: what is to be judged, text of strangers between markers.
        schema: of the verdict that is asked for; None where any text will do.
    """

    system: str
    user: str
    schema: VerdictSchema | None


class IdentityFederation(Struct, frozen=True, kw_only=True):
    """How the identity of a workflow is to be taken for a key.

    Attributes:
        ids: by the names that the service has for them.
        audience: whom the identity is for; empty for what the service expects.
    """

    ids: tuple[tuple[str, str], ...]
    audience: str = ""


class ModelSettings(Struct, frozen=True, kw_only=True):
    """Which model is asked, and how.

    Attributes:
        provider: name in the table of providers.
        model: as its service calls it; the deployment at Azure. Empty for a command.
        embedding_model: likewise, the one that makes vectors of texts; empty for none.
        base_url: of the service; empty for the provider's own.
        api_version: of Azure's dated API, or of Anthropic's; empty for what we know best.
        key_variable: name of the environment variable with the key; empty where none is needed.
        federation: where there is no key, and an identity is taken for one.
        temperature, effort: sent only where they are set; most models take no temperature.
        output_tokens: of one reply, at most; twice that where a reply was cut off.
        command: of the provider ``command``; an argument may hold ``{prompt}``, else the prompt
            is its stdin.
        prices: for budgets in dollars.
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
    prices: TokenPrices | None = None


class BudgetLimits(Struct, frozen=True, kw_only=True):
    """The most that may be spent; None for any amount."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


class JudgeConfig(Struct, frozen=True, kw_only=True):
    """Who judges, how often, and for how much: what a config says under ``judge``.

    Attributes:
        samples: how often a model is asked; the majority, the median or the mean counts.
        payer: whose budget it is, shared by all panels of the same payer.
        folder: absolute path of the one that a program of theirs runs in; empty for the working
            directory.
        caps: of that budget.
    """

    settings: ModelSettings
    samples: int = 1
    aggregation: SampleAggregation = "median"
    replay: CacheMode = "first"
    payer: str = ""
    folder: str = ""
    caps: BudgetLimits = field(default_factory=BudgetLimits)


class RequiredJudge(Struct, frozen=True, kw_only=True):
    """A panel that has to be able to judge before anything is judged.

    Attributes:
        name: of the evaluator, for messages.
        place: where a config names the panel.
    """

    judge: JudgeConfig
    name: str
    place: Place


class ModelAccess(Struct, frozen=True, kw_only=True):
    """What a program may ask while it runs.

    Attributes:
        judge: its model answers, once a question.
        max_calls: questions of one run of the program, those that failed included.
    """

    judge: JudgeConfig
    max_calls: int


class AskModel(Struct, frozen=True, kw_only=True):
    """Have a model judge."""

    prompt: JudgePrompt
    judge: JudgeConfig


class ModelResponse(Struct, frozen=True, kw_only=True):
    """What a model answered.

    Attributes:
        finish_reason: why it ended, in the words of its service.
        tokens_in, tokens_out: as its service counted them; None where it did not say.
    """

    text: str
    ending: FinishStatus
    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


ScoreValue: TypeAlias = bool | float | str


class JudgeScore(Struct, frozen=True, kw_only=True):
    """What one reply says of one thing.

    Attributes:
        reason: in the words of the model, which strangers may have put into its mouth.
    """

    value: ScoreValue
    reason: str = ""


class Verdict(Struct, frozen=True, kw_only=True):
    """What one reply says.

    Attributes:
        scores: by the names of its form; of a checklist the model may have left some out.
        reason, notes, details: as that of a mark; details are whatever else it wants to be shown.
    """

    scores: Mapping[str, JudgeScore]
    reason: str = ""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    details: JsonObject = field(default_factory=dict)

    @property
    def values(self) -> dict[str, ScoreValue]:
        """The marks without their reasons."""
        return {name: mark.value for name, mark in self.scores.items()}

    @property
    def value(self) -> ScoreValue:
        """The mark of a form that has one."""
        return get_single_value(self.values)


class AggregateVerdict(Struct, frozen=True, kw_only=True):
    """What all samples say together.

    Attributes:
        values: by the names of the form, what the samples come to.
        verdicts: in the order of asking.
        failures: why samples gave none.
        responses: what gave the verdicts, in their order.
        cached_responses: those of them that are of earlier runs.
    """

    values: Mapping[str, ScoreValue]
    verdicts: tuple[Verdict, ...]
    failures: tuple[str, ...] = ()
    responses: tuple[ModelResponse, ...] = ()
    cached_responses: tuple[ModelResponse, ...] = ()

    @property
    def value(self) -> ScoreValue:
        """The mark of a form that has one."""
        return get_single_value(self.values)

    @property
    def is_split(self) -> bool:
        """Whether not all verdicts are the same."""
        return any(each.values != self.verdicts[0].values for each in self.verdicts)

    @property
    def is_cached(self) -> bool:
        """Whether no model was asked for it."""
        return len(self.cached_responses) == len(self.verdicts) and not self.failures

    @property
    def representative_verdict(self) -> Verdict:
        """The verdict that is nearest to what all say together, for its reasons."""
        return min(self.verdicts, key=self._distance)

    def find_score(self, name: str) -> JudgeScore:
        """The mark of one thing that is nearest to what all say of it, for its reason."""
        given = (verdict.scores[name] for verdict in self.verdicts if name in verdict.scores)
        return min(given, key=lambda mark: _score_distance(self.values[name], mark.value))

    def _distance(self, verdict: Verdict) -> float:
        return sum(
            _score_distance(value, verdict.values.get(name)) for name, value in self.values.items()
        )


def get_single_value(values: Mapping[str, ScoreValue]) -> ScoreValue:
    """The value, where there is one."""
    [value] = values.values()
    return value


def _score_distance(value: ScoreValue, other: ScoreValue | None) -> float:
    if isinstance(value, str) or isinstance(other, str) or other is None:
        return float(value != other)
    return abs(float(value) - float(other))
