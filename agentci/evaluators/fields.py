"""Types that the fields of configs share, whatever the dialect.

What they accept is told twice: to pydantic, which reads configs, and to editors as JSON Schema.
Both say the same, so numbers stay numbers: neither ``"0.7"`` nor ``true`` is one.
"""

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agentci.model import choices

MAX_SECONDS: Final = 86_400
MAX_COUNT: Final = 1_000_000
MAX_REPEATS: Final = 99
NAME_PATTERN: Final = r"\S"
SHA256_PATTERN: Final = "^[0-9a-fA-F]{64}$"
IMAGE_PATTERN: Final = r"^[A-Za-z0-9]\S*$"
# A file, and after the colon the name of a function in it.
GRADER_PATTERN: Final = r"^[^:]+\.py(:[A-Za-z_][A-Za-z0-9_]*)?$"


def _integral(value: object) -> object:
    """Take 30.0 for 30, as agentevals and JSON Schema do."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _canonical(value: object) -> object:
    """Find the match type that is meant, in upper or lower case."""
    if not isinstance(value, str):
        return value
    return {name.lower(): name for name in choices.MATCH_TYPES}.get(value.lower(), value)


def _in_any_case(word: str) -> str:
    return "".join(f"[{char}{char.lower()}]" if char.isalpha() else char for char in word)


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Name: TypeAlias = Annotated[str, Field(min_length=1, pattern=NAME_PATTERN)]
Sha256: TypeAlias = Annotated[str, Field(pattern=SHA256_PATTERN)]
# What `docker` would take for neither an option nor several words.
Image: TypeAlias = Annotated[str, Field(pattern=IMAGE_PATTERN)]
Grader: TypeAlias = Annotated[str, Field(pattern=GRADER_PATTERN)]
# One variable, by its full name: a pattern would let through what nobody thought of.
VariableName: TypeAlias = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Of 1 there is none: no number of checks leaves nothing to chance.
AnyConfidence: TypeAlias = Annotated[float, Field(ge=0, le=0.999, allow_inf_nan=False)]
Confidence: TypeAlias = Annotated[float, Field(ge=0.5, le=0.999, allow_inf_nan=False)]
Count: TypeAlias = Annotated[
    int,
    BeforeValidator(_integral),
    Field(ge=1, le=MAX_COUNT),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_COUNT}),
]
Repeats: TypeAlias = Annotated[
    int,
    BeforeValidator(_integral),
    Field(ge=1, le=MAX_REPEATS),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_REPEATS}),
]
Seconds: TypeAlias = Annotated[
    int,
    BeforeValidator(_integral),
    Field(ge=1, le=MAX_SECONDS),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_SECONDS}),
]
Version: TypeAlias = Annotated[
    int,
    BeforeValidator(_integral),
    Field(ge=1, le=1),
    WithJsonSchema({"type": "integer", "const": 1}),
]
# Editors offer the names of the first form; the second is there to allow them in any case. After
# the last letter there may be no line break, which `$` alone allows in some languages.
MatchType: TypeAlias = Annotated[
    choices.MatchType,
    BeforeValidator(_canonical),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(choices.MATCH_TYPES)},
                {
                    "type": "string",
                    "pattern": f"^({'|'.join(map(_in_any_case, choices.MATCH_TYPES))})$(?!\\n)",
                },
            ]
        }
    ),
]


class Strict(BaseModel):
    """A mapping with known keys and no others."""

    # Built where it is used: most configs use few of all models.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Entry(Strict):
    """What the entries of all evaluators share."""

    name: Name = Field(description="Name of the evaluator in reports; unique in its config.")
    type: str
    required: bool = Field(
        default=True,
        description="Whether it can shut the gate; with `false` it is advisory and only warns.",
    )
