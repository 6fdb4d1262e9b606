"""Parsing of options that are given as text."""

import pytest

from agentci.config.options import OPTIONS
from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.model.result import Shard


def test_missing_options_have_defaults() -> None:
    settings = parse_settings([], {})
    assert (settings.group_by, settings.eval_sets, settings.threshold) == (None, (), None)
    assert (settings.output_dir, settings.fail_on) == ("agentci-results", "failed")
    assert settings.annotations
    assert settings.summary


def test_empty_option_counts_as_missing() -> None:
    assert parse_settings(
        [], {"threshold": [""], "metric": ["", " "], "jobs": [" "]}
    ) == parse_settings([], {})


def test_last_value_of_option_is_used() -> None:
    assert parse_settings([], {"threshold": ["0.1", "0.2"]}).threshold == 0.2


def test_repeatable_option_keeps_all_values() -> None:
    assert parse_settings([], {"traces": ["a.json", "b*.json"]}).traces == ("a.json", "b*.json")


@pytest.mark.parametrize("text", ["in_order", "IN_ORDER", "in-order"])
def test_choice_spelling_is_ignored(text: str) -> None:
    assert parse_settings([], {"trajectory-match-type": [text]}).trajectory_match_type == "IN_ORDER"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("threshold", "1.5"),
        ("threshold", "-0.1"),
        ("threshold", "nan"),
        ("threshold", "half"),
        ("jobs", "0"),
        ("jobs", "two"),
        ("jobs", "100000"),
        ("shard", "3/2"),
        ("shard", "auto"),
        ("fail-on", "warning"),
        ("group-by", "session"),
        ("trajectory-match-type", "SOME"),
        ("junit-dialect", "ant"),
        ("comment", "sometimes"),
    ],
)
def test_invalid_value_is_reported_with_its_option(name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings([], {name: [text]})
    assert f"--{name}" in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("80", "write 0.8 for 80 percent"),
        ("95 %", "write 0.95 for 95 percent"),
        ("120%", None),
        ("9" * 5000, None),
        ("1.5", None),
    ],
)
def test_threshold_in_percent_gets_hint(text: str, hint: str | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings([], {"threshold": [text]})
    assert [problem.hint for problem in caught.value.problems] == [hint]


def test_all_invalid_options_are_reported() -> None:
    with pytest.raises(InputError) as caught:
        parse_settings([], {"threshold": ["2"], "jobs": ["-1"], "fail-on": ["x"]})
    assert len(caught.value.problems) == 3


def test_every_option_has_a_help_sentence() -> None:
    assert all(option.help.endswith(".") for option in OPTIONS)


def test_matrix_job_is_used_only_with_auto_shard() -> None:
    assert parse_settings([], {"matrix-job": ["1/4"]}).shard is None
    assert parse_settings([], {"matrix-job": ["1/4"], "shard": ["2/2"]}).shard == Shard(
        index=2, total=2
    )
    assert parse_settings([], {"matrix-job": ["1/4"], "shard": ["auto"]}).shard == Shard(
        index=2, total=4
    )
