"""The closed choices of a user, wherever they are made: in configs, as options, as inputs."""

from typing import Final, Literal, TypeAlias, get_args

# What is one case: a trace, or all traces of a conversation.
GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]
GROUP_BY_CHOICES: Final[tuple[GroupBy, ...]] = get_args(GroupBy)

# How tool calls are compared.
MatchType: TypeAlias = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MATCH_TYPES: Final[tuple[MatchType, ...]] = get_args(MatchType)

# What the gate makes of errors, of skips, and of turns that are missing or unexpected.
OnError: TypeAlias = Literal["fail", "warn"]
OnSkip: TypeAlias = Literal["fail", "allow"]
OnTurnMismatch: TypeAlias = Literal["fail", "allow"]

# Whether the packages of a requirements.txt beside a program are installed for it.
RequirementsMode: TypeAlias = Literal["auto", "none"]

# How the process of a program begins: as a fork of one that has started already, or by itself.
IsolationMode: TypeAlias = Literal["fork", "spawn"]

# What the answers of an evaluator come to that is asked several times.
RepeatAggregation: TypeAlias = Literal["majority", "mean"]

# Which findings may shut the gate.
FailOn: TypeAlias = Literal["never", "error", "failed"]
FAIL_ON_CHOICES: Final[tuple[FailOn, ...]] = get_args(FailOn)

# Whether something is shown where that is possible, or nowhere.
DisplayMode: TypeAlias = Literal["auto", "none"]
DISPLAY_MODES: Final[tuple[DisplayMode, ...]] = get_args(DisplayMode)

# When the pull request gets a comment.
CommentMode: TypeAlias = Literal["never", "always", "changed", "failed"]
COMMENT_MODES: Final[tuple[CommentMode, ...]] = get_args(CommentMode)

# Of which checks it is shown what their evaluators were sent and what came back.
CallScope: TypeAlias = Literal["failed", "all", "none"]
CALL_SCOPES: Final[tuple[CallScope, ...]] = get_args(CallScope)

JUnitFormat: TypeAlias = Literal["common", "jenkins"]
JUNIT_FORMATS: Final[tuple[JUnitFormat, ...]] = get_args(JUnitFormat)

# How problems are printed.
ProblemFormat: TypeAlias = Literal["text", "json", "github", "sarif"]
PROBLEM_FORMATS: Final[tuple[ProblemFormat, ...]] = get_args(ProblemFormat)
