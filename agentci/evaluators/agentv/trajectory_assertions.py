"""Assertions of AgentV 5 about tool calls, and the skills that a run used; each scores 0 or 1."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import Field, JsonValue, model_validator

from agentci._util.text.format import format_count
from agentci._util.text.javascript import equal_json, stringify_json
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.agentv_evaluator import AgentvContext, AgentvEntry
from agentci.evaluators.agentv.findings import ASSISTANT, Finding
from agentci.evaluators.evaluator import list_recorded_uses
from agentci.evaluators.fields import StrictModel, Text, optional
from agentci.model.case import AgentvCase
from agentci.model.trace import ToolUse, Transcript
from agentci.model.values import Json, JsonObject, replace

Least: TypeAlias = Annotated[int, Field(ge=0)]


class CallCount(Struct, frozen=True, kw_only=True):
    """How often a tool must be called.

    Attributes:
        tool: its name, or a pattern with ``*``.
    """

    tool: str
    least: int = 1
    most: int | None = None

    def check(self, count: int) -> tuple[bool, str]:
        """Whether ``count`` is allowed, and a line about it."""
        fits = count >= self.least and (self.most is None or count <= self.most)
        limit = "" if self.most is None else f", at most {self.most}"
        times = format_count(count, "time")
        return fits, f"{self.tool}: called {times} (required at least {self.least}{limit})"


class ToolsUsed(Struct, frozen=True, kw_only=True):
    """The ``trajectory:tool-used`` rule: all tools are called as often as required."""

    counts: tuple[CallCount, ...]

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        tools = _list_tools(transcript)
        return _make_finding(
            each.check(sum(_matches(tool, each.tool) for tool in tools)) for each in self.counts
        )


class ToolSequence(Struct, frozen=True, kw_only=True):
    """The ``trajectory:tool-sequence`` rule.

    Attributes:
        is_exact: whether no other calls are allowed.
    """

    steps: tuple[str, ...]
    is_exact: bool

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        tools = _list_tools(transcript)
        called = f"called: {', '.join(tools) or 'no tools'}"
        if self.is_exact:
            same = len(tools) == len(self.steps) and all(map(_matches, tools, self.steps))
            return _make_finding([(same, f"exactly {', '.join(self.steps)}; {called}")])
        rest = iter(tools)
        for step in self.steps:
            if not any(_matches(tool, step) for tool in rest):
                return _make_finding([(False, f"{step} not found in order; {called}")])
        return _make_finding([(True, f"in order: {', '.join(self.steps)}")])


class ToolArguments(Struct, frozen=True, kw_only=True):
    """The ``trajectory:tool-args-match`` rule: one call of the tool has the arguments.

    Attributes:
        args: in nested mappings, too, only these keys count unless ``is_exact``.
        defaults: values of arguments that a call does not have, in exact comparisons.
        ignored: arguments that exact comparisons leave out.
    """

    tool: str
    args: JsonObject
    is_exact: bool
    defaults: JsonObject
    ignored: tuple[str, ...]

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        calls = [use for use in list_recorded_uses(transcript) if _matches(use.tool, self.tool)]
        expected = stringify_json(self.args)
        if any(isinstance(use.input, Mapping) and self._fits(use.input) for use in calls):
            return _make_finding([(True, f"{self.tool} called with {expected}")])
        times = format_count(len(calls), "time")
        return _make_finding([(False, f"{self.tool} called {times}, never with {expected}")])

    def _fits(self, actual: JsonObject) -> bool:
        if not self.is_exact:
            return _contains(actual, self.args)
        completed = {**self.defaults, **actual}
        left = {key: each for key, each in completed.items() if not self._ignores(key)}
        wanted = {**self.defaults, **self.args}
        return equal_json(left, {k: v for k, v in wanted.items() if not self._ignores(k)})

    def _ignores(self, argument: str) -> bool:
        return any(
            _matches(argument, each) if set(each) & {"*", "?"} else argument == each
            for each in self.ignored
        )


StepKind: TypeAlias = Literal["tool", "command", "message", "reasoning", "search", "span"]
# What recordings do not tell apart from messages.
UNKNOWN_STEPS: Final = ("reasoning", "search", "span")
# Tools whose calls count as commands, and where their command is.
COMMAND_TOOLS: Final = ("exec_command", "local_shell", "shell")
COMMAND_ARGUMENTS: Final = ("cmd", "command", "commands")


def _list_tools(transcript: Transcript) -> list[str]:
    """The names of all called tools, in order; AgentV leaves out those of commands."""
    return [use.tool for use in list_recorded_uses(transcript)]


def _read_command(use: ToolUse) -> str | None:
    """The command of a shell's call; None if it is the call of another tool."""
    given = use.input if isinstance(use.input, Mapping) else {}
    if use.tool.lower() not in COMMAND_TOOLS:
        return None
    found = next((given[key] for key in COMMAND_ARGUMENTS if given.get(key)), None)
    if isinstance(found, list):
        return " ".join(map(str, found))
    return found if isinstance(found, str) and found.strip() else None


class StepCount(Struct, frozen=True, kw_only=True):
    """The ``trajectory:step-count`` rule: limits on the number of tool calls or answers."""

    kind: StepKind
    pattern: str
    least: int
    most: int | None

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        uses = list_recorded_uses(transcript)
        if self.kind in UNKNOWN_STEPS:
            raise EvaluatorError(f"the recording does not tell {self.kind} steps apart")
        if self.kind == "tool":
            count = sum(_matches(use.tool, self.pattern) for use in uses)
        elif self.kind == "command":
            count = sum(map(self._is_command, uses))
        else:
            count = sum(each.role == ASSISTANT for each in transcript.messages)
        fits = count >= self.least and (self.most is None or count <= self.most)
        limit = "no limit" if self.most is None else str(self.most)
        line = f"{format_count(count, f'{self.kind} step')} (from {self.least} to {limit})"
        return _make_finding([(fits, line)])

    def _is_command(self, use: ToolUse) -> bool:
        command = _read_command(use)
        names = () if command is None else (command, command.split()[0], use.tool)
        return any(_matches(each, self.pattern) for each in names)


SKILL_TOOL: Final = "skill"
READ_TOOL: Final = "read"
SKILL_FOLDER: Final = re.compile(r"skills/([^/\s\"]+)/")


class SkillUse(Struct, frozen=True, kw_only=True):
    """The ``skill-trigger`` rule: how often skills were loaded, by a tool or by their files.

    Attributes:
        counts: names of skills, or patterns of them, with the numbers allowed.
    """

    counts: tuple[CallCount, ...]

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        uses = [*list_recorded_uses(transcript)]
        return _make_finding(
            _check_skill(each, sum(_loads_skill(use, each.tool) for use in uses))
            for each in self.counts
        )


def _check_skill(limits: CallCount, count: int) -> tuple[bool, str]:
    """Whether the number of uses of a skill is allowed, and a line about it."""
    fits, _ = limits.check(count)
    state = "was used" if count else "was not used"
    times = f" {format_count(count, 'time')}" if limits.most else ""
    return fits, f"skill {limits.tool} {state}{times}"


def _loads_skill(use: ToolUse, skill: str) -> bool:
    given = use.input if isinstance(use.input, Mapping) else {}
    tool, is_pattern = use.tool.lower(), not {"*", "?"}.isdisjoint(skill)
    if tool == SKILL_TOOL:
        named = str(given.get("skill") or "")
        if _matches(named, skill) if is_pattern else skill in named:
            return True
    texts = [str(given.get("file_path") or given.get("path") or "")] if tool == READ_TOOL else []
    if use.output is not None:
        texts.append(use.output if isinstance(use.output, str) else stringify_json(use.output))
    if not is_pattern:
        return any(f"skills/{skill}/" in each for each in texts)
    return any(_matches(name, skill) for each in texts for name in SKILL_FOLDER.findall(each))


def _make_finding(checks: "Sequence[tuple[bool, str]] | Iterator[tuple[bool, str]]") -> Finding:
    """Score 1 if all checks pass, else 0."""
    listed = [*checks]
    return Finding(
        score=float(all(fits for fits, _ in listed)),
        hits=tuple(line for fits, line in listed if fits),
        misses=tuple(line for fits, line in listed if not fits),
    )


def _matches(tool: str, pattern: str) -> bool:
    """Whether a name fits a pattern with ``*`` and ``?``, whatever the case of the letters."""
    return fnmatchcase(tool.lower(), pattern.lower().replace("[", "[[]"))


def _contains(actual: Json, expected: Json) -> bool:
    """Whether ``actual`` has all that ``expected`` has; lists must be equal."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return all(key in actual and _contains(actual[key], expected[key]) for key in expected)
    return equal_json(actual, expected)


class NamedToolSpec(StrictModel):
    """A tool, by name or by pattern."""

    name: Text | None = optional("Name of the tool.")
    tool: Text | None = optional("Alias of `name`.")
    pattern: Text | None = optional("Pattern of names, with `*`.")

    @property
    def named(self) -> str:
        """The name or the pattern."""
        return self.name or self.tool or self.pattern or ""

    @model_validator(mode="after")
    def _check_one_name(self) -> Self:
        if sum(each is not None for each in (self.name, self.tool, self.pattern)) != 1:
            raise ValueError("set one of `name` and `pattern`")
        return self


class CallCountSpec(NamedToolSpec):
    """A tool and how often it must be called."""

    min: Least | None = optional("Minimum number of calls; by default 1, with `max: 0` 0.")
    max: Least | None = optional("Maximum number of calls.")


class SequenceSpec(StrictModel):
    """Tools in order."""

    mode: Literal["in_order", "exact"] = optional(
        "Whether other calls may be in between.", default="in_order"
    )
    steps: Annotated[list[Text | NamedToolSpec], Field(min_length=1)] = Field(
        description="The tools in order."
    )


class ArgumentsSpec(NamedToolSpec):
    """A tool and its arguments."""

    args: dict[str, JsonValue] | None = optional("The arguments.")
    arguments: dict[str, JsonValue] | None = optional("Alias of `args`.")
    mode: Literal["partial", "exact"] = optional(
        "Whether a call may have other arguments.", default="partial"
    )
    defaults: dict[str, JsonValue] = optional(
        "Values of missing arguments, for `exact`.", default={}
    )
    ignore: Text | list[Text] = optional(
        "Arguments that are not compared, for `exact`; with `*`, patterns.", default=[]
    )

    @model_validator(mode="after")
    def _check_arguments(self) -> Self:
        if (self.args is None) == (self.arguments is None):
            raise ValueError("set `args`, the expected arguments")
        return self


class StepCountSpec(StrictModel):
    """A kind of steps and their number."""

    type: StepKind = optional(
        "`tool` calls, `command`s of a shell or `message`s of the agent; others are not recorded.",
        default="tool",
    )
    pattern: Text = optional("Pattern of tools or commands, with `*`.", default="*")
    min: Least | None = optional("Minimum number.")
    max: Least | None = optional("Maximum number.")

    @model_validator(mode="after")
    def _check_any_limit(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("set `min` or `max`")
        return self


class ToolsUsedEntry(AgentvEntry):
    """Requires tool calls."""

    type: Literal["trajectory:tool_used"] = Field(description="Requires calls of tools.")
    value: Text | CallCountSpec | Annotated[list[Text | CallCountSpec], Field(min_length=1)] = (
        Field(description="Name of a tool, or a name with numbers of calls, or a list of them.")
    )


class ToolSequenceEntry(AgentvEntry):
    """Requires tool calls in order."""

    type: Literal["trajectory:tool_sequence"] = Field(description="Requires tool calls in order.")
    value: SequenceSpec | Annotated[list[Text], Field(min_length=1)] = Field(
        description="The tools in order."
    )


class ToolArgumentsEntry(AgentvEntry):
    """Requires a tool call with certain arguments."""

    type: Literal["trajectory:tool_args_match"] = Field(
        description="Requires a tool call with certain arguments."
    )
    value: ArgumentsSpec = Field(description="The tool and its arguments.")


class StepCountEntry(AgentvEntry):
    """Limits the number of steps."""

    type: Literal["trajectory:step_count"] = Field(description="Limits the number of steps.")
    value: StepCountSpec = Field(description="The limits.")


class SkillUseEntry(AgentvEntry):
    """Requires that a skill is used, or is not used."""

    type: Literal["skill_trigger"] = Field(description="Requires that a skill is used.")
    skill: Text | None = optional("Name of the skill.")
    value: (
        Text | CallCountSpec | Annotated[list[Text | CallCountSpec], Field(min_length=1)] | None
    ) = optional("Name of the skill, names of several, or a name or pattern with numbers of uses.")
    should_trigger: bool = optional("Whether the skill must be used.", default=True)

    @model_validator(mode="after")
    def _check_one_skill(self) -> Self:
        if (self.skill is None) == (self.value is None):
            raise ValueError("set `skill`, the name of the skill")
        return self


def make_tools_used(entry: ToolsUsedEntry, _: AgentvContext) -> ToolsUsed:
    """Make the rule."""
    listed = entry.value if isinstance(entry.value, list) else [entry.value]
    return ToolsUsed(counts=tuple(map(_make_call_count, listed)))


def _make_call_count(given: str | CallCountSpec) -> CallCount:
    if isinstance(given, str):
        return CallCount(tool=given)
    default = 0 if given.max == 0 else 1
    least = default if given.min is None else given.min
    return CallCount(tool=given.named, least=least, most=given.max)


def make_tool_sequence(entry: ToolSequenceEntry, _: AgentvContext) -> ToolSequence:
    """Make the rule."""
    spec = entry.value
    steps = spec if isinstance(spec, list) else spec.steps
    return ToolSequence(
        steps=tuple(each if isinstance(each, str) else each.named for each in steps),
        is_exact=isinstance(spec, SequenceSpec) and spec.mode == "exact",
    )


def make_tool_arguments(entry: ToolArgumentsEntry, _: AgentvContext) -> ToolArguments:
    """Make the rule."""
    spec = entry.value
    return ToolArguments(
        tool=spec.named,
        args=spec.args or spec.arguments or {},
        is_exact=spec.mode == "exact",
        defaults=spec.defaults,
        ignored=(spec.ignore,) if isinstance(spec.ignore, str) else tuple(spec.ignore),
    )


def make_step_count(entry: StepCountEntry, _: AgentvContext) -> StepCount:
    """Make the rule."""
    spec = entry.value
    return StepCount(kind=spec.type, pattern=spec.pattern, least=spec.min or 0, most=spec.max)


def make_skill_use(entry: SkillUseEntry, _: AgentvContext) -> SkillUse:
    """Make the rule."""
    given = entry.skill if entry.value is None else entry.value
    listed = given if isinstance(given, list) else [given or ""]
    counts = [
        replace(count, least=0)
        if isinstance(each, CallCountSpec) and _has_only_most(each)
        else count
        for each, count in zip(listed, map(_make_call_count, listed), strict=True)
    ]
    if not entry.should_trigger:
        counts = [replace(each, least=0, most=0) for each in counts]
    return SkillUse(counts=tuple(counts))


def _has_only_most(spec: CallCountSpec) -> bool:
    """Whether only the maximum is set; then AgentV requires no use of a skill."""
    return spec.min is None and spec.max is not None
