"""The fixed choices of options, in configs, on the command line and as action inputs."""

from typing import Final, Literal, TypeAlias, get_args

# What makes up one case: a trace, or all traces of a conversation.
GroupBy: TypeAlias = Literal["auto", "trace", "conversation"]
GROUP_BY_CHOICES: Final[tuple[GroupBy, ...]] = get_args(GroupBy)

# How tool calls are compared.
MatchType: TypeAlias = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MATCH_TYPES: Final[tuple[MatchType, ...]] = get_args(MatchType)

# Which scores of a metric are better.
BetterScores: TypeAlias = Literal["higher", "lower", "unknown"]

# How the gate treats errored checks, skipped checks, and missing or unexpected turns.
OnError: TypeAlias = Literal["fail", "warn"]
OnSkip: TypeAlias = Literal["fail", "allow"]
# How the gate treats a required evaluator that evaluated no case.
OnEmpty: TypeAlias = Literal["fail", "allow"]
OnTurnMismatch: TypeAlias = Literal["fail", "allow"]
# How the gate treats checks that passed in the baseline and are not in this run.
OnRemoved: TypeAlias = Literal["fail", "warn", "allow"]

# Whether the gate fails if the policy is looser than that of the base commit, and which of both
# policies decides.
OnLoosened: TypeAlias = Literal["warn", "fail"]
PolicySource: TypeAlias = Literal["head", "base"]

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
# Formats of report files that are only written on request.
FurtherFormat: TypeAlias = Literal["ctrf", "csv", "otel"]
FURTHER_FORMATS: Final[tuple[FurtherFormat, ...]] = get_args(FurtherFormat)
JUNIT_FORMATS: Final[tuple[JUnitFormat, ...]] = get_args(JUnitFormat)

# How problems are printed.
ProblemFormat: TypeAlias = Literal["text", "json", "github", "sarif"]
PROBLEM_FORMATS: Final[tuple[ProblemFormat, ...]] = get_args(ProblemFormat)
