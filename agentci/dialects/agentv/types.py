"""The types of evaluators in eval files: a new one is a file of ``entries``, and a line here.

AgentV spells types with ``_`` in its first years and with ``-`` since; either is read.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from agentci.dialects.agentv.entries import composite, fields, limits, text, trajectory
from agentci.dialects.agentv.entries.code_judge import CodeJudgeEntry, build_code_judge
from agentci.dialects.agentv.entries.llm_judge import LlmJudgeEntry, build_llm_judge
from agentci.dialects.agentv.entries.rubrics import RubricsEntry, build_rubrics
from agentci.dialects.agentv.fields import JudgeEntry
from agentci.dialects.agentv.judge import (
    AnyJudgeType,
    Judge,
    JudgeType,
    Surroundings,
    identity_of,
    standard_of,
)
from agentci.dialects.agentv.recorded import Rule, RuleJudge
from agentci.model.json import Json, JsonObject

E = TypeVar("E", bound=JudgeEntry)


def canonical(name: str) -> str:
    """The name of a type in the table, whichever spelling it is given in."""
    spelt = name.replace("-", "_")
    return next((each for each, kind in TYPES.items() if spelt in kind.also), spelt)


def spellings(name: str) -> tuple[str, ...]:
    """All names of the type ``name`` of the table."""
    names = (name, *TYPES[name].also)
    return tuple(dict.fromkeys(each for n in names for each in (n, n.replace("_", "-"))))


def _by_rule(entry: type[E], rule: Callable[[E, Surroundings], Rule]) -> JudgeType[E]:
    """A type whose evaluators judge what is recorded."""

    def build(read: E, surroundings: Surroundings) -> Judge:
        return RuleJudge(
            identity=identity_of(read, surroundings),
            rule=rule(read, surroundings),
            standard=standard_of(read, surroundings),
        )

    return JudgeType(entry=entry, build=build)


TYPES: Final[Mapping[str, AnyJudgeType]] = {
    "code_judge": JudgeType(entry=CodeJudgeEntry, build=build_code_judge, also=("code_grader",)),
    "llm_judge": JudgeType(entry=LlmJudgeEntry, build=build_llm_judge, also=("llm_grader",)),
    "rubrics": JudgeType(entry=RubricsEntry, build=build_rubrics, also=("rubric", "rubric_grader")),
    "composite": JudgeType(
        entry=composite.CompositeEntry, build=composite.build_composite, has_members=True
    ),
    "tool_trajectory": _by_rule(trajectory.TrajectoryEntry, trajectory.trajectory),
    "field_accuracy": _by_rule(fields.FieldAccuracyEntry, fields.field_accuracy),
    "latency": _by_rule(limits.LatencyEntry, limits.latency),
    "cost": _by_rule(limits.CostEntry, limits.cost),
    "token_usage": _by_rule(limits.TokenUsageEntry, limits.tokens),
    "execution_metrics": _by_rule(limits.ExecutionMetricsEntry, limits.execution_metrics),
    **dict.fromkeys(
        ("contains", "icontains", "starts_with", "ends_with", "equals"),
        _by_rule(text.OneTextEntry, text.text),
    ),
    **dict.fromkeys(
        ("contains_any", "contains_all", "icontains_any", "icontains_all"),
        _by_rule(text.TextsEntry, text.texts),
    ),
    "regex": _by_rule(text.RegexEntry, text.regex),
    "is_json": _by_rule(text.IsJsonEntry, text.is_json),
}

# Types of AgentV that this version does not run, in the spelling with `_`, and why.
NOT_YET: Final[Mapping[str, str]] = {
    "agent_judge": "it has an agent judge in a workspace",
    "skill_trigger": "judge it by a program of your own, with `type: code_judge`",
    "inline_assert": "judge it by a program of your own, with `type: code_judge`",
}


def known_types() -> tuple[str, ...]:
    """The names that messages offer."""
    return tuple(TYPES)


def entry_data(entry: JsonObject, name: Json, kind: str) -> dict[str, Any]:
    """An entry as its model reads it: with a name, and its type as in the table."""
    return {**entry, "name": name, "type": kind}
