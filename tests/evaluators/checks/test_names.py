"""Names of checks in reports, and what other tools call them."""

import pytest

from agentci.evaluators.checks.names import ALIASES, CHECK_NAMES, find_alias, name_checks
from agentci.model.values import Json


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ([{"max_latency": "5s"}], ["max_latency"]),
        ([{"contains": "a"}, {"icontains": "b"}], ["contains:a", "contains:b"]),
        ([{"contains": ["a", "b"]}, {"contains": "c\nd"}], ["contains:a b", "contains:c d"]),
        ([{"max_tokens": 5}, {"max_tokens": {"input": 5}}], ["max_tokens", "max_tokens:input"]),
        ([{"max_latency": "5s"}, {"max_latency": "6s"}], ["max_latency", "max_latency"]),
        (
            [{"check": "matches", "value": "a", "name": "mine"}, {"matches": "b"}],
            ["mine", "matches:b"],
        ),
        (
            [
                {"forbidden_tools": ["a", {"tool": "b", "before": "c"}]},
                {"forbidden_tools": [{"d": {}}]},
            ],
            ["forbidden_tools:a b", "forbidden_tools:d"],
        ),
        (["contains", {}, {"a": 1, "b": 2}, {"check": 1}], [None, None, None, None]),
    ],
)
def test_name(items: list[Json], names: list[str | None]) -> None:
    assert list(name_checks(items)) == names


def test_long_subjects_are_cut() -> None:
    names = name_checks([{"contains": "x" * 100}, {"contains": "y"}])
    assert len(names[0] or "") == len("contains:") + 40


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("latency", "max_latency: 5s"),
        ("is-json", "json_schema: true"),
        ("RegexMatch", "matches: PATTERN"),
        ("not-trajectory:tool-used", "forbidden_tools: [NAME]"),
        ("nothing", None),
    ],
)
def test_alias(name: str, written: str | None) -> None:
    assert find_alias(name) == written


def test_aliases_are_no_names_of_ours() -> None:
    assert ALIASES.keys() & {*CHECK_NAMES} == set()
