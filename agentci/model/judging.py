"""What a language model is asked, and what it answered: values, to be compared and cached."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

# What a verdict is: a grade, or whether something holds.
VerdictKind: TypeAlias = Literal["number", "boolean"]
# What becomes of several grades.
Combining: TypeAlias = Literal["median", "mean"]
# How a reply ended: at its own end, at a limit, withheld, or in a way that we do not know.
Ending: TypeAlias = Literal["complete", "truncated", "refused", "unknown"]

# Of a reply; models that reason spend it on that, too.
OUTPUT_TOKENS: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What tokens cost, in dollars a million of them."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a verdict looks like.

    Attributes:
        value_name, reason_name: of the two members of the object that is to be replied.
        low, high: the bounds of a number, both within.
    """

    kind: VerdictKind = "number"
    value_name: str = "score"
    reason_name: str = "reasoning"
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to a model.

    Attributes:
        system: our words, and those of whoever wrote the config.
        user: what is to be judged, text of strangers between markers.
    """

    system: str
    user: str
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which model is asked, and how.

    Attributes:
        provider: name in the table of providers.
        model: as its service calls it; the deployment at Azure. Empty for a command.
        base_url: of the service; empty for the provider's own.
        api_version: of Azure's dated API, or of Anthropic's; empty for what we know best.
        key_variable: name of the environment variable with the key; empty where none is needed.
        temperature, effort: sent only where they are set; most models take no temperature.
        output_tokens: of one reply, at most; twice that where a reply was cut off.
        command: of the provider ``command``; an argument may hold ``{prompt}``, else the prompt
            is its stdin.
        prices: for budgets in dollars.
    """

    provider: str
    model: str = ""
    base_url: str = ""
    api_version: str = ""
    key_variable: str = ""
    temperature: float | None = None
    effort: str = ""
    output_tokens: int = OUTPUT_TOKENS
    command: tuple[str, ...] = ()
    prices: Prices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskModel:
    """Have a model judge.

    Attributes:
        samples: how often it is asked; the majority, the median or the mean counts.
    """

    question: Question
    settings: ModelSettings
    samples: int = 1
    combining: Combining = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered.

    Attributes:
        finish_reason: why it ended, in the words of its service.
        tokens_in, tokens_out: as its service counted them; None where it did not say.
    """

    text: str
    ending: Ending
    finish_reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one reply says.

    Attributes:
        reason: in the words of the model, which strangers may have put into its mouth.
    """

    value: bool | float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What all samples say together.

    Attributes:
        verdicts: in the order of asking.
        failures: why samples gave none.
    """

    value: bool | float
    verdicts: tuple[Verdict, ...]
    failures: tuple[str, ...] = ()

    @property
    def is_split(self) -> bool:
        """Whether not all verdicts are the same."""
        return len({verdict.value for verdict in self.verdicts}) > 1
