"""The evaluator types of eval files.

To add a type, write its entry model and its build function and list them in ``AGENTV_TYPES``. Early
AgentV versions spell types with ``_``, later ones with ``-``; both are read.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from agentci.evaluators.agentv import (
    composite,
    inline_assertions,
    limits,
    response_checks,
    tool_trajectory,
    trajectory_assertions,
)
from agentci.evaluators.agentv.agentv_evaluator import (
    AgentvContext,
    AgentvEntry,
    AgentvEvaluator,
    AgentvEvaluatorType,
    AnyAgentvEvaluatorType,
    define_agentv_entry,
    make_agentv_identity,
    make_pass_threshold,
)
from agentci.evaluators.agentv.code_judge import CodeJudgeEntry, build_code_judge
from agentci.evaluators.agentv.findings import RuleEvaluator, ScoringRule
from agentci.evaluators.agentv.llm_judge import (
    LlmJudgeEntry,
    RubricsEntry,
    build_llm_judge,
    build_rubrics,
)
from agentci.model.values import Json, JsonObject

E = TypeVar("E", bound=AgentvEntry)


def normalize_type_name(name: str) -> str:
    """Return a type's name in ``AGENTV_TYPES``, given any spelling or alias."""
    normalized = name.replace("-", "_")
    return next(
        (each for each, kind in AGENTV_TYPES.items() if normalized in kind.aliases), normalized
    )


def list_type_names(name: str) -> tuple[str, ...]:
    """List all spellings and aliases of the type ``name``."""
    names = (name, *AGENTV_TYPES[name].aliases)
    return tuple(dict.fromkeys(each for n in names for each in (n, n.replace("_", "-"))))


def _make_rule_type(
    entry: type[E],
    rule: Callable[[E, AgentvContext], ScoringRule],
    *,
    by_version: bool = False,
    aliases: tuple[str, ...] = (),
) -> AgentvEvaluatorType[E]:
    """Make a type whose evaluators apply a rule to the recorded run.

    Args:
        by_version: whether the rule depends on the AgentV version of the file.
        aliases: other names of the type.
    """

    def build(read: E, context: AgentvContext) -> AgentvEvaluator:
        version = {"version": context.version} if by_version else {}
        return RuleEvaluator(
            identity=make_agentv_identity(read, context),
            definition=define_agentv_entry(read, context, **version),
            rule=rule(read, context),
            threshold=make_pass_threshold(read, context),
        )

    return AgentvEvaluatorType(entry=entry, build=build, aliases=aliases)


AGENTV_TYPES: Final[Mapping[str, AnyAgentvEvaluatorType]] = {
    "code_judge": AgentvEvaluatorType(
        entry=CodeJudgeEntry, build=build_code_judge, aliases=("code_grader", "script")
    ),
    "llm_judge": AgentvEvaluatorType(
        entry=LlmJudgeEntry, build=build_llm_judge, aliases=("llm_grader",)
    ),
    "rubrics": AgentvEvaluatorType(
        entry=RubricsEntry, build=build_rubrics, aliases=("rubric", "rubric_grader")
    ),
    "composite": AgentvEvaluatorType(
        entry=composite.CompositeEntry, build=composite.build_composite, has_members=True
    ),
    "assert_set": AgentvEvaluatorType(
        entry=composite.AssertSetEntry, build=composite.build_assert_set, has_members=True
    ),
    "tool_trajectory": _make_rule_type(
        tool_trajectory.TrajectoryEntry, tool_trajectory.make_trajectory, by_version=True
    ),
    "field_accuracy": _make_rule_type(
        response_checks.FieldAccuracyEntry, response_checks.make_field_accuracy, by_version=True
    ),
    "trajectory:tool_used": _make_rule_type(
        trajectory_assertions.ToolsUsedEntry, trajectory_assertions.make_tools_used
    ),
    "trajectory:tool_sequence": _make_rule_type(
        trajectory_assertions.ToolSequenceEntry, trajectory_assertions.make_tool_sequence
    ),
    "trajectory:tool_args_match": _make_rule_type(
        trajectory_assertions.ToolArgumentsEntry, trajectory_assertions.make_tool_arguments
    ),
    "trajectory:step_count": _make_rule_type(
        trajectory_assertions.StepCountEntry, trajectory_assertions.make_step_count
    ),
    "skill_trigger": _make_rule_type(
        trajectory_assertions.SkillUseEntry,
        trajectory_assertions.make_skill_use,
        aliases=("skill_used",),
    ),
    "latency": _make_rule_type(
        limits.LatencyEntry, lambda entry, _: limits.LatencyLimit(threshold=entry.threshold)
    ),
    "cost": _make_rule_type(
        limits.CostEntry, lambda entry, _: limits.CostLimit(budget=entry.budget)
    ),
    "token_usage": _make_rule_type(limits.TokenUsageEntry, limits.make_token_limits),
    "execution_metrics": _make_rule_type(
        limits.ExecutionMetricsEntry, limits.make_execution_metrics
    ),
    **dict.fromkeys(
        ("contains", "icontains", "starts_with", "ends_with", "equals"),
        _make_rule_type(response_checks.TextEntry, response_checks.make_text_match),
    ),
    **dict.fromkeys(
        ("contains_any", "contains_all", "icontains_any", "icontains_all"),
        _make_rule_type(response_checks.TextsEntry, response_checks.make_text_match),
    ),
    "regex": AgentvEvaluatorType(
        entry=response_checks.RegexEntry, build=response_checks.build_regex
    ),
    "is_json": _make_rule_type(response_checks.IsJsonEntry, response_checks.make_text_match),
    **dict.fromkeys(
        ("python", "javascript", "webhook"),
        AgentvEvaluatorType(
            entry=inline_assertions.InlineEntry, build=inline_assertions.build_inline
        ),
    ),
    "similar": AgentvEvaluatorType(
        entry=inline_assertions.SimilarEntry, build=inline_assertions.build_similar
    ),
}

# AgentV types that agentci does not support, spelled with `_`, with the reason or advice.
UNSUPPORTED_TYPES: Final[Mapping[str, str]] = {
    "agent_judge": "it runs an agent as judge in a workspace",
    "inline_assert": "use a program of your own, with `type: code_judge`",
}


def list_known_types() -> tuple[str, ...]:
    """List the type names that messages suggest."""
    return tuple(AGENTV_TYPES)


def make_entry_data(entry: JsonObject, name: Json, kind: str) -> dict[str, Any]:
    """Return the data of an entry with its name and its normalized type."""
    return {**entry, "name": name, "type": kind}
