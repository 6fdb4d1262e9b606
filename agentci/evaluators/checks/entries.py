"""The items of ``checks:`` in a config: one model per check, in the long form with ``check:``."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, JsonValue, WithJsonSchema

from agentci._util.text.format import DURATION_PATTERN
from agentci.evaluators.fields import (
    COST_PATTERN,
    Name,
    Prices,
    Share,
    StrictModel,
    Text,
    VariableName,
    optional,
)

# Description of a key.
CHECK: Final = "Name of the check."

Duration: TypeAlias = Annotated[str, Field(pattern=DURATION_PATTERN)]
Amount: TypeAlias = Annotated[int, Field(ge=0, le=10**12)]
Cost: TypeAlias = Annotated[
    Annotated[float, Field(ge=0, allow_inf_nan=False)]
    | Annotated[str, Field(pattern=COST_PATTERN)],
    Field(description="US dollars."),
]
Texts: TypeAlias = Text | Annotated[list[Text], Field(min_length=1)]
Names: TypeAlias = Annotated[list[Text], Field(min_length=1)]
On: TypeAlias = Annotated[Literal[True], WithJsonSchema({"const": True})]
TextSource: TypeAlias = Literal["answer", "answers", "arguments", "results", "all"]
SecretSource: TypeAlias = Literal["answers", "arguments", "results"]


def parse_cost(value: float | str) -> float:
    """Parse US dollars: ``0.05`` or ``$0.05``."""
    return float(value.removeprefix("$")) if isinstance(value, str) else value


class CheckEntry(StrictModel):
    """Fields that all checks share."""

    check: str = Field(description=CHECK)
    name: Name | None = optional("Name in reports; default: that of the check.")
    required: bool = optional("Whether it can fail the gate, or only warns.", default=True)
    cases: Names = optional(
        "Ids of the cases that it evaluates, with `*` and `?`; default: all.", default=[]
    )


class MaxLatencyEntry(CheckEntry):
    """Longest time from question to answer."""

    check: Literal["max_latency"] = Field(description=CHECK)
    value: Duration = Field(description="Such as `800ms` or `1m30s`.")
    scope: Literal["turn", "run"] = optional(
        "Whether it limits each turn or their sum.", default="turn"
    )


class MaxDurationEntry(CheckEntry):
    """Longest time from the first turn's start to the last one's end."""

    check: Literal["max_duration"] = Field(description=CHECK)
    value: Duration = Field(description="Such as `800ms` or `1m30s`.")


class TokenLimitsSpec(StrictModel):
    """Limits on tokens."""

    total: Amount | None = optional("Input and output tokens.")
    input: Amount | None = optional("Input tokens, with those from a cache.")
    output: Amount | None = optional("Output tokens.")
    per: Literal["run", "turn", "call"] = optional("What the limits are for.", default="run")


class MaxTokensEntry(CheckEntry):
    """Maximum number of tokens of the model calls."""

    check: Literal["max_tokens"] = Field(description=CHECK)
    value: Amount | TokenLimitsSpec = Field(
        examples=[5000], description="Number, or `{total, input, output, per: run/turn/call}`."
    )


class MaxCostEntry(CheckEntry):
    """Highest cost in US dollars: as recorded, else by `prices`."""

    check: Literal["max_cost"] = Field(description=CHECK)
    value: Cost = Field(examples=[0.05], description="Such as `0.05` or `$0.05`.")
    prices: Prices = optional(
        "Prices by model, added to the config's (reports: if all agree).", default={}
    )


class MaxToolCallsEntry(CheckEntry):
    """Maximum number of tool calls, including failed ones."""

    check: Literal["max_tool_calls"] = Field(description=CHECK)
    value: Amount | Annotated[dict[Text, Amount], Field(min_length=1)] = Field(
        examples=[10], description="Number, or `{TOOL: number}`."
    )


class MaxModelCallsEntry(CheckEntry):
    """Maximum number of model calls."""

    check: Literal["max_model_calls"] = Field(description=CHECK)
    value: Amount = Field(description="Number.")


class MaxRepeatsEntry(CheckEntry):
    """Maximum number of calls of a tool with equal arguments."""

    check: Literal["max_repeats"] = Field(description=CHECK)
    value: Annotated[int, Field(ge=1, le=10**6)] = Field(description="Number.")
    tools: Names | None = optional("The only tools that count, with `*` and `?`.")


class NoToolErrorsEntry(CheckEntry):
    """No tool fails."""

    check: Literal["no_tool_errors"] = Field(description=CHECK)
    value: On = Field(default=True, description="`true`.")
    allow: Amount = optional("Allowed errors.", default=0)
    tools: Names | None = optional("The only tools that count, with `*` and `?`.")
    recovered: bool = optional(
        "Whether an error is allowed if the tool later succeeds.", default=False
    )
    allow_unknown: bool = optional(
        "Whether calls without a recorded status are allowed.", default=False
    )


class RequiredToolsEntry(CheckEntry):
    """Tools that must be called; the score is the share that were."""

    check: Literal["required_tools"] = Field(description=CHECK)
    value: (
        Names | Annotated[dict[Text, Annotated[int, Field(ge=1, le=10**6)]], Field(min_length=1)]
    ) = Field(examples=[["find_order"]], description="List, or `{TOOL: minimum}`.")
    threshold: Share = optional("Share of the tools that must be called.", default=1.0)


class ForbiddenToolsEntry(CheckEntry):
    """Tools that must not be called."""

    check: Literal["forbidden_tools"] = Field(description=CHECK)
    value: Annotated[list[JsonValue], Field(min_length=1)] = Field(
        examples=[["delete_order"]],
        description="Names, or calls as in `forbidden` of a trajectory.",
    )


class AllowedToolsEntry(CheckEntry):
    """The only tools that may be called."""

    check: Literal["allowed_tools"] = Field(description=CHECK)
    value: list[Text] = Field(examples=[["find_order"]], description="Names.")


class TextCheckEntry(CheckEntry):
    """Fields of the checks that look for texts."""

    value: Texts = Field(examples=["invoice"], description="Texts.")
    ignore_case: bool = optional("Whether upper and lower case are equal.", default=False)


OF_ANSWER: Final = "What is searched; `answer` is the last turn's."
OF_ANSWERS: Final = "What is searched; `answers` are those of all turns."


class ContainsEntry(TextCheckEntry):
    """All texts are in the answer; `icontains` ignores case."""

    check: Literal["contains", "icontains"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWER, default="answer")


class ContainsAnyEntry(TextCheckEntry):
    """At least one text is in the answer."""

    check: Literal["contains_any"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWER, default="answer")


class ContainsAllEntry(TextCheckEntry):
    """The texts are in the answer; the score is the share found."""

    check: Literal["contains_all"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWER, default="answer")
    threshold: Share = optional("Share of the texts that must be found.", default=1.0)


class NotContainsEntry(TextCheckEntry):
    """None of the texts is in any answer."""

    check: Literal["not_contains"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWERS, default="answers")


class StartsWithEntry(TextCheckEntry):
    """The answer starts with one of the texts."""

    check: Literal["starts_with"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWER, default="answer")


class EqualsEntry(TextCheckEntry):
    """The answer is one of the texts."""

    check: Literal["equals"] = Field(description=CHECK)
    of: TextSource = optional(OF_ANSWER, default="answer")


class MatchesEntry(CheckEntry):
    """All patterns match in the answer."""

    check: Literal["matches"] = Field(description=CHECK)
    value: Texts = Field(examples=["INV-[0-9]+"], description="RE2 patterns.")
    full: bool = optional("Whether it must match the whole text.", default=False)
    of: TextSource = optional(OF_ANSWER, default="answer")


class NotMatchesEntry(CheckEntry):
    """None of the patterns matches in any answer."""

    check: Literal["not_matches"] = Field(description=CHECK)
    value: Texts = Field(examples=["INV-[0-9]+"], description="RE2 patterns.")
    full: bool = optional("Whether it must match the whole text.", default=False)
    of: TextSource = optional(OF_ANSWERS, default="answers")


class JsonSchemaEntry(CheckEntry):
    """The answer is JSON that is valid against a JSON Schema."""

    check: Literal["json_schema"] = Field(description=CHECK)
    value: On | Text | dict[str, JsonValue] = Field(
        examples=[True], description="Schema, file, or `true` for any JSON."
    )
    fence: Literal["allow", "refuse", "require"] = optional(
        "Whether JSON may or must be in a code block.", default="allow"
    )


class LengthSpec(StrictModel):
    """Limits on a length."""

    min: Amount | None = optional("The lowest length.")
    max: Amount | None = optional("The highest length.")


class MaxWordsEntry(CheckEntry):
    """Words of the answer."""

    check: Literal["max_words"] = Field(description=CHECK)
    value: Amount | LengthSpec = Field(description="Number, or `{min, max}`.")


class MaxCharsEntry(CheckEntry):
    """Characters of the answer."""

    check: Literal["max_chars"] = Field(description=CHECK)
    value: Amount | LengthSpec = Field(description="Number, or `{min, max}`.")


class SecretsSpec(StrictModel):
    """What counts as a secret, and where it is looked for."""

    rules: Names | None = optional("Names of the only rules, with `*` and `?`.")
    ignore: list[Text] = optional("Names of rules that are left out.", default=[])
    of: Annotated[list[SecretSource], Field(min_length=1)] = optional(
        "What is searched; `results` are those of tools.", default=["answers", "arguments"]
    )
    env: list[VariableName] = optional(
        "Environment variables whose values are secrets, too.", default=[]
    )


class NoSecretsEntry(CheckEntry):
    """No key, token or password is in answers or tool arguments."""

    check: Literal["no_secrets"] = Field(description=CHECK)
    value: On | SecretsSpec = Field(
        examples=[True], description="`true`, or `{rules, ignore, of, env}`."
    )


class TrajectoryCheckEntry(CheckEntry):
    """The tool calls are the expected ones; see agentci's docs/checks.md."""

    check: Literal["trajectory"] = Field(description=CHECK)
    value: list[JsonValue] | dict[str, JsonValue] = Field(
        examples=[["find_order", "refund"]],
        description="Calls, or a mapping with `calls` and options.",
    )
