"""What a user gives as text is checked once, all of it."""

import pytest

from agentci.config.options import OPTIONS
from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.model.shard import Shard


def test_without_options_the_config_decides() -> None:
    settings = parse_settings([], {})
    assert (settings.group_by, settings.eval_set, settings.threshold) == (None, None, None)
    assert (settings.output_dir, settings.fail_on) == ("agentci-results", "failed")
    assert settings.annotations
    assert settings.summary


def test_empty_texts_are_not_given_as_inputs_of_an_action_come() -> None:
    assert parse_settings(
        [], {"threshold": [""], "metric": ["", " "], "jobs": [" "]}
    ) == parse_settings([], {})


def test_the_last_of_several_values_counts() -> None:
    assert parse_settings([], {"threshold": ["0.1", "0.2"]}).threshold == 0.2


def test_options_that_repeat_keep_all_values() -> None:
    assert parse_settings([], {"traces": ["a.json", "b*.json"]}).traces == ("a.json", "b*.json")


@pytest.mark.parametrize("text", ["in_order", "IN_ORDER", "in-order"])
def test_choices_are_found_in_any_spelling(text: str) -> None:
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
def test_a_value_that_cannot_be_is_a_problem_that_names_option_and_value(
    name: str, text: str
) -> None:
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
def test_a_threshold_in_percents_is_told_as_a_share(text: str, hint: str | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings([], {"threshold": [text]})
    assert [problem.hint for problem in caught.value.problems] == [hint]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_settings([], {"threshold": ["2"], "jobs": ["-1"], "fail-on": ["x"]})
    assert len(caught.value.problems) == 3


def test_every_option_says_what_it_is_for() -> None:
    assert all(option.help.endswith(".") for option in OPTIONS)


def test_the_shard_of_a_matrix_is_read_only_where_it_is_asked_for() -> None:
    assert parse_settings([], {"matrix-job": ["1/4"]}).shard is None
    assert parse_settings([], {"matrix-job": ["1/4"], "shard": ["2/2"]}).shard == Shard(
        index=2, total=2
    )
    assert parse_settings([], {"matrix-job": ["1/4"], "shard": ["auto"]}).shard == Shard(
        index=2, total=4
    )
