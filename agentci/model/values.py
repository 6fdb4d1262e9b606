"""Small types that all packages share: JSON, choices of options, places, problems, frozen values.

Values are ``msgspec.Struct``: its classes are created 40 times as fast as dataclasses, and
its instances 10 times. Values with a field that must not be shown (a secret, a whole file) are
dataclasses.
"""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, TypeAlias, TypeVar, get_args

from msgspec import Meta, Struct, structs

# So that external data needs no ``Any``.
Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, "Json"]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


# The fixed choices of options, in configs, on the command line and as action inputs.

# What makes up one case: a trace, or all traces of a conversation.
GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]
GROUP_BY_CHOICES: Final[tuple[GroupBy, ...]] = get_args(GroupBy)

# How tool calls are compared, strictest first.
MatchType: TypeAlias = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MATCH_TYPES: Final[tuple[MatchType, ...]] = get_args(MatchType)

# Which of the scores of turns is the score of a metric, strictest first.
TurnScore: TypeAlias = Literal["min", "mean"]

# Which scores of a metric are better.
BetterScores: TypeAlias = Literal["higher", "lower", "unknown"]

# How the gate treats errored checks, skipped checks, and missing or unexpected turns. Choices of a
# gate start with the strictest: by that, looser ones are found.
OnError: TypeAlias = Literal["fail", "warn"]
OnSkip: TypeAlias = Literal["fail", "allow"]
# How the gate treats a required evaluator that evaluated no case.
OnEmpty: TypeAlias = Literal["fail", "allow"]
# How the gate treats eval cases without a recorded run.
OnMissing: TypeAlias = Literal["fail", "allow"]
OnTurnMismatch: TypeAlias = Literal["fail", "allow"]
# How the gate treats checks that passed in the baseline and are not in this run.
OnRemoved: TypeAlias = Literal["fail", "warn", "allow"]

# Whether the gate fails if the policy is looser than that of the base commit, and which of both
# policies decides.
OnLoosened: TypeAlias = Literal["fail", "warn"]
PolicySource: TypeAlias = Literal["base", "head"]

# Whether the requirements.txt next to a program is installed for it.
RequirementsMode: TypeAlias = Literal["auto", "none"]

# How the process of a program starts: forked from a running interpreter, or as a new process.
IsolationMode: TypeAlias = Literal["fork", "spawn"]

# How the results of an evaluator that runs several times are combined.
RepeatAggregation: TypeAlias = Literal["majority", "mean"]

# Which findings fail the gate: failed checks and errors, only errors, or none.
FailOn: TypeAlias = Literal["never", "error", "failed"]
FAIL_ON_CHOICES: Final[tuple[FailOn, ...]] = get_args(FailOn)

# Whether something is shown where possible, or never.
DisplayMode: TypeAlias = Literal["auto", "none"]
DISPLAY_MODES: Final[tuple[DisplayMode, ...]] = get_args(DisplayMode)

# When the pull request gets a comment.
CommentMode: TypeAlias = Literal["never", "always", "changed", "failed"]
COMMENT_MODES: Final[tuple[CommentMode, ...]] = get_args(CommentMode)

# The checks whose evaluator input and output are included in the report.
CallScope: TypeAlias = Literal["failed", "all", "none"]
CALL_SCOPES: Final[tuple[CallScope, ...]] = get_args(CallScope)

# What reports keep of recorded runs: up to a limit, all, or no text.
ContentLimit: TypeAlias = Literal["budget", "full", "none"]
CONTENT_LIMITS: Final[tuple[ContentLimit, ...]] = get_args(ContentLimit)

JUnitFormat: TypeAlias = Literal["common", "jenkins"]
# Formats of report files that are only written on request, and the names of the files.
OptionalFormat: TypeAlias = Literal["ctrf", "csv", "otel"]
OPTIONAL_FORMATS: Final[Mapping[OptionalFormat, str]] = {
    "ctrf": "ctrf.json",
    "csv": "results.csv",
    "otel": "evaluations.otlp.json",
}
JUNIT_FORMATS: Final[tuple[JUnitFormat, ...]] = get_args(JUnitFormat)

# How problems are printed.
ProblemFormat: TypeAlias = Literal["text", "json", "github", "sarif"]
PROBLEM_FORMATS: Final[tuple[ProblemFormat, ...]] = get_args(ProblemFormat)


class Place(Struct, frozen=True, kw_only=True):
    """A position in a file of the user.

    Attributes:
        file: path with ``/``, relative to the workspace if inside it.
        line: counted from 1.
        column: counted from 1; None if only the line is known.
    """

    file: str
    line: int = 1
    column: int | None = None

    def __str__(self) -> str:
        if self.file == COMMAND_LINE.file:
            return self.file.strip("<>")
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column}"


# Used as the file of values from the command line.
COMMAND_LINE: Final = Place(file="<command line>")


def hint_at_show(file: str) -> str:
    """Return the command that shows what is understood of a recording."""
    return f"run `agentci show {shlex.quote(file)}`"


Severity: TypeAlias = Literal["error", "warning", "note"]


class Problem(Struct, frozen=True, kw_only=True):
    """One error, warning or note about a config, an eval set or a recorded run.

    Attributes:
        severity: an ``error`` makes the input unusable (exit 2); the others are only shown.
        message: one sentence that states what is wrong, without a full stop.
        hint: what the user can do, if known ("did you mean 'threshold'?").
        place: None if it is not about a file (a flag, for example).
    """

    severity: Severity = "error"
    message: str
    hint: str | None = None
    place: Place | None = None

    def __str__(self) -> str:
        where = "" if self.place is None else f"{self.place}: "
        hint = "" if self.hint is None else f" ({self.hint})"
        return f"{where}{self.message}{hint}"


if TYPE_CHECKING:
    # Type checkers check the field names of both kinds with this one.
    from dataclasses import replace as replace  # noqa: PLC0414, TID251
else:

    def replace(value: object, /, **changes: object) -> object:
        """Copy ``value`` with some fields changed."""
        kind = structs if isinstance(value, Struct) else dataclasses
        return kind.replace(value, **changes)


T = TypeVar("T")


class IdentityKey(Generic[T]):
    """A cache key for ``value`` that compares by identity.

    Comparing or hashing large values would take as long as computing what is cached.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def list_field_names(value: object) -> tuple[str, ...]:
    """List the field names of a value in order; empty for other objects."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return (
        tuple(field.name for field in dataclasses.fields(value))
        if dataclasses.is_dataclass(value)
        else ()
    )
