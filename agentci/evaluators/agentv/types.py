"""The types of evaluators in eval files: a new one is a file of ``entries``, and a line here.

AgentV spells types with ``_`` in its first years and with ``-`` since; either is read.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from agentci.evaluators.agentv.agentv_evaluator import (
    AnyJudgeType,
    Judge,
    JudgeType,
    Surroundings,
    identity_of,
    standard_of,
)
from agentci.evaluators.agentv.entries import (
    composite_entry,
    field_accuracy_entry,
    limits_entry,
    text_entry,
    trajectory_entry,
)
from agentci.evaluators.agentv.entries.code_judge_entry import CodeJudgeEntry, build_code_judge
from agentci.evaluators.agentv.entries.llm_judge_entry import LlmJudgeEntry, build_llm_judge
from agentci.evaluators.agentv.entries.rubrics_entry import RubricsEntry, build_rubrics
from agentci.evaluators.agentv.entry_fields import JudgeEntry
from agentci.evaluators.agentv.recorded import Rule, RuleJudge
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
        entry=composite_entry.CompositeEntry,
        build=composite_entry.build_composite,
        has_members=True,
    ),
    "tool_trajectory": _by_rule(trajectory_entry.TrajectoryEntry, trajectory_entry.trajectory),
    "field_accuracy": _by_rule(
        field_accuracy_entry.FieldAccuracyEntry, field_accuracy_entry.field_accuracy
    ),
    "latency": _by_rule(limits_entry.LatencyEntry, limits_entry.latency),
    "cost": _by_rule(limits_entry.CostEntry, limits_entry.cost),
    "token_usage": _by_rule(limits_entry.TokenUsageEntry, limits_entry.tokens),
    "execution_metrics": _by_rule(
        limits_entry.ExecutionMetricsEntry, limits_entry.execution_metrics
    ),
    **dict.fromkeys(
        ("contains", "icontains", "starts_with", "ends_with", "equals"),
        _by_rule(text_entry.OneTextEntry, text_entry.text),
    ),
    **dict.fromkeys(
        ("contains_any", "contains_all", "icontains_any", "icontains_all"),
        _by_rule(text_entry.TextsEntry, text_entry.texts),
    ),
    "regex": _by_rule(text_entry.RegexEntry, text_entry.regex),
    "is_json": _by_rule(text_entry.IsJsonEntry, text_entry.is_json),
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
