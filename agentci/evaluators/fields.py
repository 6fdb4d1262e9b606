"""Field types and base models that the evaluator entries of configs share.

Accepted values are defined twice: for pydantic, which reads configs, and as JSON Schema, for
editors. Both agree: neither ``"0.7"`` nor ``true`` is a number.
"""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias, TypeVar, overload

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agentci.errors import InputError
from agentci.model import values
from agentci.model.requests import DOCKER_EXECUTOR, Repetition
from agentci.model.trace import ModelPrice
from agentci.model.values import Place, RepeatAggregation

MAX_SECONDS: Final = 86_400
MAX_COUNT: Final = 1_000_000
MAX_REPEATS: Final = 99
NAME_PATTERN: Final = r"\S"
VARIABLE_PATTERN: Final = "^[A-Za-z_][A-Za-z0-9_]*$"
# US dollars.
COST_PATTERN: Final = r"^\$?[0-9]+(\.[0-9]+)?$"
SHA256_PATTERN: Final = "^[0-9a-fA-F]{64}$"
IMAGE_PATTERN: Final = r"^[A-Za-z0-9]\S*$"
# A file, optionally followed by a colon and the name of a function in it.
GRADER_PATTERN: Final = r"^[^:]+\.py(:[A-Za-z_][A-Za-z0-9_]*)?$"


def _accept_integral_float(value: object) -> object:
    """Accept 30.0 as 30, as agentevals and JSON Schema do."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _normalize_match_type(value: object) -> object:
    """Convert a match type in any case to its canonical name."""
    if not isinstance(value, str):
        return value
    return {name.lower(): name for name in values.MATCH_TYPES}.get(value.lower(), value)


Cached: TypeAlias = Annotated[
    bool,
    Field(
        description="Whether to cache the program's response; see agentci's docs/response-cache.md."
    ),
]


def _ignore_case(word: str) -> str:
    return "".join(f"[{char}{char.lower()}]" if char.isalpha() else char for char in word)


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Name: TypeAlias = Annotated[str, Field(min_length=1, pattern=NAME_PATTERN)]
Sha256: TypeAlias = Annotated[str, Field(pattern=SHA256_PATTERN)]
# Excludes what `docker` could read as an option or as several arguments.
Image: TypeAlias = Annotated[str, Field(pattern=IMAGE_PATTERN)]
GraderReference: TypeAlias = Annotated[str, Field(pattern=GRADER_PATTERN)]
# One variable by its full name; wildcards could pass secrets by accident.
VariableName: TypeAlias = Annotated[str, Field(pattern=VARIABLE_PATTERN)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Below 1, because no number of checks gives full confidence.
AnyConfidence: TypeAlias = Annotated[float, Field(ge=0, le=0.999, allow_inf_nan=False)]
Confidence: TypeAlias = Annotated[float, Field(ge=0.5, le=0.999, allow_inf_nan=False)]
Count: TypeAlias = Annotated[
    int,
    BeforeValidator(_accept_integral_float),
    Field(ge=1, le=MAX_COUNT),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_COUNT}),
]
Repeats: TypeAlias = Annotated[
    int,
    BeforeValidator(_accept_integral_float),
    Field(ge=1, le=MAX_REPEATS),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_REPEATS}),
]
Seconds: TypeAlias = Annotated[
    int,
    BeforeValidator(_accept_integral_float),
    Field(ge=1, le=MAX_SECONDS),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_SECONDS}),
]
ConfigVersion: TypeAlias = Annotated[
    int,
    BeforeValidator(_accept_integral_float),
    Field(ge=1, le=1),
    WithJsonSchema({"type": "integer", "const": 1}),
]
# Editors offer the names in the enum; the pattern allows them in any case. `(?!\n)` rejects a
# trailing line break, which `$` alone allows in some languages.
MatchType: TypeAlias = Annotated[
    values.MatchType,
    BeforeValidator(_normalize_match_type),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(values.MATCH_TYPES)},
                {
                    "type": "string",
                    "pattern": f"^({'|'.join(map(_ignore_case, values.MATCH_TYPES))})$(?!\\n)",
                },
            ]
        }
    ),
]


D = TypeVar("D")


CACHE_DIRS: Final = (
    "Names of folders in `evaluator-cache` that it may read; a variable of that name has the path."
)


def check_cache_dirs(cache_dirs: Sequence[str], *, executor: str, cached: bool) -> None:
    """Check that ``cache_dirs`` has an effect, and that no response outlives a change to a model.

    Raises:
        ValueError: it does not.
    """
    if cache_dirs and executor == DOCKER_EXECUTOR:
        raise ValueError(
            "`cache_dirs` has no effect with `executor: docker`; put the models into the image"
        )
    if cache_dirs and cached:
        raise ValueError(
            "`cache_dirs` excludes `cache: true`: the models may change unnoticed; remove one"
        )


@overload
def optional(description: str) -> None: ...


@overload
def optional(description: str, *, default: D) -> D: ...


def optional(description: str, *, default: object = None) -> object:
    """Describe a field that a config may omit."""
    return Field(default=default, description=description)


class StrictModel(BaseModel):
    """A mapping that rejects unknown keys."""

    # Deferred, because most configs use few of the models.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Entry(StrictModel):
    """Fields that the entries of all evaluators share."""

    name: Name = Field(description="Name in reports; unique in its config.")
    type: str
    required: bool = optional("Whether it can fail the gate, or only warns.", default=True)


REPEAT_HAS_NO_EFFECT: Final = (
    "`repeat` has no effect here: the result for a recorded run never varies"
)
REPEAT_HINT: Final = "remove it; it is for judge models and for programs with random results"
REPEAT_BY_HAS_NO_EFFECT: Final = "`repeat_by` has no effect without `repeat`"
REPEAT_BY_HINT: Final = "add `repeat`, such as `repeat: 5`, or remove it"


class RepeatableEntry(StrictModel):
    """Fields of evaluators whose result may vary between runs."""

    repeat: Repeats = optional("Runs per case.", default=1)
    repeat_by: RepeatAggregation = optional(
        "Whether the `majority` of the runs decides, or their `mean` score.",
        default="majority",
    )

    @property
    def repetition(self) -> Repetition:
        """How often the evaluator runs, and how the results are aggregated."""
        return Repetition(times=self.repeat, aggregation=self.repeat_by)


def check_repeat_by(entry: StrictModel, *, of: Place, at: Place) -> None:
    """Reject an entry's ``repeat_by`` without ``repeat``.

    Args:
        entry: the evaluator's entry.
        of: place of the entry.
        at: place of the entry's own ``repeat_by``, or ``of`` if it has none; the value from
            ``defaults`` may be meant for other entries.

    Raises:
        InputError: if the entry has ``repeat_by`` and no ``repeat``.
    """
    given = entry.model_fields_set
    if (
        isinstance(entry, RepeatableEntry)
        and "repeat_by" in given
        and "repeat" not in given
        and at != of
    ):
        raise InputError.from_message(REPEAT_BY_HAS_NO_EFFECT, place=at, hint=REPEAT_BY_HINT)


def reject_repeat(entry: RepeatableEntry, *, of: Place, at: Place) -> None:
    """Reject ``repeat`` for an evaluator whose result never varies.

    A value from ``defaults`` is ignored.

    Args:
        entry: the evaluator's entry.
        of: place of the entry.
        at: place of the entry's own ``repeat``, or ``of`` if it has none.

    Raises:
        InputError: if the entry has a ``repeat`` above 1.
    """
    if entry.repeat > 1 and at != of:
        raise InputError.from_message(REPEAT_HAS_NO_EFFECT, place=at, hint=REPEAT_HINT)


Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TokenPriceSpec(StrictModel):
    """Prices of a model in US dollars per million tokens."""

    input: Dollars = Field(description="Input tokens that are not read from a cache.")
    output: Dollars = Field(description="Output tokens.")
    cache_read: Dollars | None = optional(
        "Input tokens read from a cache; default: the price of `input`."
    )
    cache_write: Dollars | None = optional(
        "Input tokens written to a cache; default: the price of `input`."
    )

    def make_price(self) -> ModelPrice:
        """Fill in the defaults."""
        return ModelPrice(
            input=self.input,
            output=self.output,
            cache_read=self.input if self.cache_read is None else self.cache_read,
            cache_write=self.input if self.cache_write is None else self.cache_write,
        )


Prices: TypeAlias = dict[Text, TokenPriceSpec]
