"""Assertions of AgentV 5 about tool calls, and the use of skills."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.model.trace import Message, ToolUse, Transcript
from tests.evaluators.agentv.agentv_cases import evaluate, run_with_answer, run_with_tools, suite_of

SEARCH = ("search", {"city": "Paris", "page": {"size": 1, "from": 2}})


def passes(kind: str, value: Any, *tools: Any) -> bool:
    found = evaluate({"type": kind, "value": value}, run_with_tools(*tools), key="tests")
    assert found.score == float(found.passed is True)
    assert bool(found.misses) is (found.passed is False)
    return found.passed is True


@pytest.mark.parametrize(
    ("value", "tools", "expected"),
    [
        ("a", ["a"], True),
        ("a", ["b"], False),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["b"], False),
        ({"name": "a", "min": 2}, ["a"], False),
        ({"name": "a", "min": 2}, ["a", "a"], True),
        ({"name": "a", "max": 1}, [], False),
        ({"name": "a", "max": 0}, [], True),
        ("READ_*", ["read_file"], True),
        ("a?", ["ab"], True),
        ("shell", [("shell", {"command": "ls"})], True),
        ({"name": "a", "max": 1}, ["a", "a"], False),
        ({"pattern": "read_*", "min": 1}, ["read_file"], True),
        ({"pattern": "read_*"}, ["write_file"], False),
        ("a[1]", ["a[1]"], True),
        ([{"tool": "a", "min": 0}], [], True),
    ],
)
def test_tool_used(value: Any, tools: list[str], expected: bool) -> None:
    assert passes("trajectory:tool-used", value, *tools) is expected


SKILLS = ("csv", "pdf-tools")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("skill-used", ["csv", "pdf-tools"], True),
        ("skill-used", ["csv", "docx"], False),
        ("skill-used", {"pattern": "pdf*"}, True),
        ("skill-used", {"pattern": "doc*"}, False),
        ("skill-used", {"name": "csv", "min": 2}, False),
        ("skill-used", {"name": "csv", "max": 1}, True),
        ("skill-used", {"name": "docx", "max": 1}, True),
        ("skill-used", {"name": "csv", "max": 0}, False),
        ("not-skill-used", ["docx", "csv"], False),
        ("not-skill-used", ["docx", "pptx"], True),
        ("not-skill-used", {"pattern": "*-tools"}, False),
        ("not-trajectory:tool-used", ["delete", "Skill"], False),
        ("not-trajectory:tool-used", ["delete", "write"], True),
    ],
)
def test_several_skills_or_tools_are_required_or_forbidden(
    kind: str, value: Any, expected: bool
) -> None:
    uses = [("Skill", {"skill": SKILLS[0]}), ("Read", {"path": f"skills/{SKILLS[1]}/SKILL.md"})]
    assert passes(kind, value, *uses) is expected


@pytest.mark.parametrize(
    ("value", "tools", "expected"),
    [
        (["a", "b"], ["a", "x", "b"], True),
        (["a", "b"], ["b", "a"], False),
        (["a", "a"], ["a"], False),
        (["a"], [], False),
        ({"mode": "in_order", "steps": ["a", {"pattern": "b*"}]}, ["a", "bc"], True),
        ({"mode": "exact", "steps": ["a", "b"]}, ["a", "b"], True),
        ({"mode": "exact", "steps": ["a", "b"]}, ["a", "b", "c"], False),
        ({"mode": "exact", "steps": ["a", "b"]}, ["b", "a"], False),
    ],
)
def test_tool_sequence(value: Any, tools: list[str], expected: bool) -> None:
    assert passes("trajectory:tool-sequence", value, *tools) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"args": {"city": "Paris"}}, True),
        ({"arguments": {"page": {"size": 1}}}, True),
        ({"args": {"page": {"size": 2}}}, False),
        ({"args": {"town": "Paris"}}, False),
        ({"args": {"city": "Paris"}, "mode": "exact"}, False),
        ({"args": {"city": "Paris"}, "mode": "exact", "ignore": ["page"]}, True),
        ({"args": {"city": "Paris"}, "mode": "exact", "ignore": "pa*"}, True),
        ({"args": {"city": "Paris"}, "mode": "exact", "ignore": "pa"}, False),
        ({"args": SEARCH[1], "mode": "exact", "defaults": {"lang": "en"}}, True),
        ({"args": {**SEARCH[1], "lang": "en"}, "mode": "exact", "defaults": {"lang": "en"}}, True),
        ({"args": {**SEARCH[1], "lang": "de"}, "mode": "exact", "defaults": {"lang": "en"}}, False),
    ],
)
def test_tool_arguments(fields: dict[str, Any], expected: bool) -> None:
    value = {"name": "search", **fields}
    assert passes("trajectory:tool-args-match", value, "search", SEARCH) is expected
    assert not passes("trajectory:tool-args-match", value, ("other", SEARCH[1]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"max": 2}, True),
        ({"max": 1}, False),
        ({"min": 3}, False),
        ({"type": "tool", "pattern": "a*", "min": 1, "max": 1}, True),
        ({"type": "message", "max": 0}, False),
        ({"type": "message", "min": 1, "max": 1}, True),
    ],
)
def test_step_count(value: Any, expected: bool) -> None:
    assert passes("trajectory:step-count", value, "ab", "b") is expected


@pytest.mark.parametrize(
    ("pattern", "count"), [("*", 3), ("git", 2), ("git push*", 1), ("shell", 3), ("open", 0)]
)
def test_commands_are_counted_by_name_and_text(pattern: str, count: int) -> None:
    calls = [("shell", {"command": "git add ."}), ("Shell", {"cmd": ["git", "push", "-f"]})]
    calls += [("shell", {"commands": ["ls"]}), ("shell", {}), ("open", {"command": "x"})]
    value = {"type": "command", "pattern": pattern, "min": count, "max": count}
    assert passes("trajectory:step-count", value, *calls)


def test_steps_that_are_not_recorded_are_errored() -> None:
    with pytest.raises(EvaluatorError, match="does not tell reasoning steps apart"):
        passes("trajectory:step-count", {"type": "reasoning", "max": 1}, "a")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("tool-used", {"min": 1}, "set one of `name` and `pattern`"),
        ("tool-used", {"name": "a", "pattern": "b"}, "set one of `name` and `pattern`"),
        ("tool-args-match", {"name": "a"}, "set `args`"),
        ("step-count", {"type": "tool"}, "set `min` or `max`"),
        ("step-count", {"type": "thought", "max": 1}, "thought"),
    ],
)
def test_value_without_effect_is_an_error(kind: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        suite_of({"name": "e", "type": f"trajectory:{kind}", "value": value}, key="tests")


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (ToolUse(tool="Skill", input={"skill": "team:csv"}), True),
        (ToolUse(tool="Skill", input={"skill": "pdf"}), False),
        (ToolUse(tool="Skill"), False),
        (ToolUse(tool="Read", input={"file_path": "/x/skills/csv/SKILL.md"}), True),
        (ToolUse(tool="read", input={"path": "skills/csvs/SKILL.md"}), False),
        (ToolUse(tool="bash", input={"command": "cat skills/csv/x"}), False),
        (ToolUse(tool="bash", output="skills/csv/SKILL.md"), True),
        (ToolUse(tool="bash", output={"files": ["skills/csv/a"]}), True),
    ],
)
def test_skill_use_is_found_as_in_agentv(use: ToolUse, expected: bool) -> None:
    run = Transcript(messages=(Message(role="assistant", tool_calls=(use,)),))
    for entry, passed in (
        ({"type": "skill-trigger", "skill": "csv"}, expected),
        ({"type": "skill-trigger", "skill": "csv", "should_trigger": False}, not expected),
        ({"type": "skill-used", "value": "csv"}, expected),
        ({"type": "not-skill-used", "value": "csv"}, not expected),
    ):
        assert evaluate(entry, run, key="tests").passed is passed


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "not-trajectory:tool-used", "value": "search"},
        {"type": "trajectory:tool-used", "value": {"name": "search", "max": 0}},
        {"type": "not-trajectory:tool-sequence", "value": ["search"]},
        {"type": "not-trajectory:tool-args-match", "value": {"name": "search", "args": {}}},
        {"type": "trajectory:step-count", "value": {"max": 1}},
        {"type": "trajectory:step-count", "value": {"type": "message", "max": 1}},
        {"type": "not-skill-used", "value": "csv"},
    ],
)
def test_tool_calls_that_were_not_recorded_are_an_error(entry: dict[str, Any]) -> None:
    run = run_with_answer("x", tool_calls_recorded=False)
    with pytest.raises(EvaluatorError, match="does not say which tools were called"):
        evaluate(entry, run, key="tests")


def test_skill_needs_a_name() -> None:
    with pytest.raises(InputError, match="set `skill`, the name of the skill"):
        suite_of({"name": "e", "type": "skill-trigger"}, key="tests")
