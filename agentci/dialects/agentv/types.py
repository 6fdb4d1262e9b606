"""The types of evaluators that an eval file can list: a new one is an entry model and a line here.

AgentV spells types with ``_`` in its first years and with ``-`` since; either is read.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from agentci.dialects.agentv.code_judge import CodeJudge
from agentci.dialects.agentv.entries import (
    CodeJudgeEntry,
    CostEntry,
    ExecutionMetricsEntry,
    ExpectedCall,
    LatencyEntry,
    TokenUsageEntry,
    TrajectoryEntry,
)
from agentci.dialects.agentv.execution_metrics import ExecutionMetrics
from agentci.dialects.agentv.expected_use import ArgsMatch, ExpectedUse
from agentci.dialects.agentv.fields import JudgeEntry
from agentci.dialects.agentv.judge import AnyJudgeType, Judge, JudgeType, Surroundings, identity_of
from agentci.dialects.agentv.judge import line_of as _line
from agentci.dialects.agentv.limits import Cost, Latency, Tokens
from agentci.dialects.agentv.recorded import Rule, RuleJudge
from agentci.dialects.agentv.trajectory import Trajectory
from agentci.errors import InputError
from agentci.model.json import JsonObject

E = TypeVar("E", bound=JudgeEntry)

# What runs a command that is written as one line. AgentV starts a login shell, which would forget
# our PATH and read settings of the machine.
SHELL: Final = ("sh", "-c")


def canonical(name: str) -> str:
    """The name of a type in the table, whichever spelling it is given in."""
    spelt = name.replace("-", "_")
    return next((each for each, kind in TYPES.items() if spelt in kind.also), spelt)


def spellings(name: str) -> tuple[str, ...]:
    """All names of the type ``name`` of the table."""
    names = (name, *TYPES[name].also)
    return tuple(dict.fromkeys(each for n in names for each in (n, n.replace("_", "-"))))


def _build_code_judge(entry: CodeJudgeEntry, surroundings: Surroundings) -> Judge:
    if entry.target is not None:
        raise InputError.of(
            "`target` is not run by this version of agentci: code judges cannot ask a language "
            "model through it",
            place=surroundings.place_of("target"),
            hint="remove it, or leave the evaluator out",
        )
    script = entry.script
    return CodeJudge(
        identity=identity_of(entry, surroundings),
        command=(*SHELL, script) if isinstance(script, str) else tuple(script),
        folder=surroundings.folder(entry.cwd),
        home=surroundings.home,
        line=_line(entry, surroundings),
        config=_own_keys(entry, surroundings),
        wire=entry.wire or surroundings.wire,
        prefers_assertions=surroundings.era == "v4",
        timeout_seconds=entry.timeout,
        network=entry.network,
        variables=tuple(entry.env),
        memory_mb=entry.memory_mb,
        processes=entry.processes,
    )


def _own_keys(entry: CodeJudgeEntry, surroundings: Surroundings) -> JsonObject | None:
    """The author's own keys; since AgentV 4 those under ``config`` are among them."""
    own = dict(entry.model_extra or {})
    if surroundings.era == "v4" and isinstance(own.get("config"), dict):
        own = {**own.pop("config"), **own}
    return own or None


def _rule(build: Callable[[E, Surroundings], Rule]) -> Callable[[E, Surroundings], Judge]:
    """How an evaluator is made that goes by a rule."""

    def build_judge(entry: E, surroundings: Surroundings) -> Judge:
        return RuleJudge(
            identity=identity_of(entry, surroundings),
            rule=build(entry, surroundings),
            line=_line(entry, surroundings),
        )

    return build_judge


def _trajectory(entry: TrajectoryEntry, surroundings: Surroundings) -> Trajectory:
    is_v4 = surroundings.era == "v4"
    timed = is_v4 or entry.strict

    def match_of(call: ExpectedCall) -> ArgsMatch:
        named = call.args_match or entry.args_match or ("exact" if is_v4 else "superset")
        return tuple(named) if isinstance(named, list) else named

    return Trajectory(
        mode=entry.mode,
        minimums=entry.minimums or {},
        expected=tuple(
            ExpectedUse(
                tool=call.tool,
                args=call.args,
                match=match_of(call),
                max_duration_ms=call.max_duration_ms if timed else None,
            )
            for call in entry.expected or ()
        ),
        at_least=">=" if is_v4 else "≥",
        strict=entry.strict,
    )


def _latency(entry: LatencyEntry, _: Surroundings) -> Latency:
    return Latency(threshold=entry.threshold)


def _cost(entry: CostEntry, _: Surroundings) -> Cost:
    return Cost(budget=entry.budget)


def _tokens(entry: TokenUsageEntry, _: Surroundings) -> Tokens:
    return Tokens(**entry.model_dump(include={"max_input", "max_output", "max_total"}))


def _execution_metrics(entry: ExecutionMetricsEntry, _: Surroundings) -> ExecutionMetrics:
    return ExecutionMetrics(**entry.model_dump(exclude=set(JudgeEntry.model_fields)))


TYPES: Final[Mapping[str, AnyJudgeType]] = {
    "code_judge": JudgeType(entry=CodeJudgeEntry, build=_build_code_judge, also=("code_grader",)),
    "tool_trajectory": JudgeType(entry=TrajectoryEntry, build=_rule(_trajectory)),
    "latency": JudgeType(entry=LatencyEntry, build=_rule(_latency)),
    "cost": JudgeType(entry=CostEntry, build=_rule(_cost)),
    "token_usage": JudgeType(entry=TokenUsageEntry, build=_rule(_tokens)),
    "execution_metrics": JudgeType(entry=ExecutionMetricsEntry, build=_rule(_execution_metrics)),
}

_ASKS: Final = "it asks a language model to judge"

# Types of AgentV that this version does not run, in the spelling with `_`, and why.
NOT_YET: Final[Mapping[str, str]] = {
    "llm_judge": _ASKS,
    "llm_grader": _ASKS,
    "rubric": _ASKS,
    "rubrics": _ASKS,
    "agent_judge": "it has an agent judge in a workspace",
    "skill_trigger": "judge it by a program of your own, with `type: code_judge`",
    "inline_assert": "judge it by a program of your own, with `type: code_judge`",
}


def known_types() -> tuple[str, ...]:
    """The names that messages offer."""
    return tuple(TYPES)


def entry_data(entry: JsonObject, name: str, kind: str) -> dict[str, Any]:
    """An entry as its model reads it: with a name, and its type as in the table."""
    return {**entry, "name": name, "type": kind}
