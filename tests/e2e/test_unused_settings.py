"""Warnings of settings without effect: answers that nothing compares, names of unknown tools."""

from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

ANSWER = "no evaluator compares the answers of 1 eval case"
CASE = """eval_cases:
  - id: weather
    input: What is the weather in Paris?
    calls: [get_weather]
    answer: It is sunny in Paris.
"""


def list_problems(
    folder: Path, checks: str, *, cases: str = CASE, more: str = ""
) -> list[tuple[str, str]]:
    """Run a config with the checks over a run that calls `get_weather` once."""
    (folder / "weather.json").write_text(otlp())
    (folder / "cases.yaml").write_text(cases)
    (folder / "agentci.yaml").write_text(
        "traces: weather.json\neval_set: cases.yaml\n"
        f"checks: [{{no_secrets: true}}{checks}]\n{more}"
    )
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code in (0, 1), ran.out
    problems = [
        (each["severity"], f"{each['message']}; {each['hint']}") for each in ran.results["problems"]
    ]
    for _, text in problems:
        assert text in ran.out
    return problems


def test_answers_that_no_evaluator_reads_are_a_warning(tmp_path: Path) -> None:
    [(severity, message)] = list_problems(tmp_path, "")
    assert (severity, message.split(";")[0]) == ("warning", ANSWER)
    assert "response_match_score" in message


@pytest.mark.parametrize(
    ("cases", "more"),
    [
        pytest.param(
            CASE,
            "evaluators: [{name: response_match_score, type: builtin, threshold: 0.1}]",
            id="metric",
        ),
        pytest.param(f"{CASE}    checks: [contains: sunny]\n", "", id="own check"),
        pytest.param(CASE.replace("    answer: It is sunny in Paris.\n", ""), "", id="no answer"),
    ],
)
def test_answers_that_are_compared_are_no_warning(cases: str, more: str, tmp_path: Path) -> None:
    assert list_problems(tmp_path, "", cases=cases, more=more) == []


def test_checks_of_other_things_do_not_compare_answers(tmp_path: Path) -> None:
    cases = f"{CASE}    checks: [max_tool_calls: 3]\n"
    assert [ANSWER in each for _, each in list_problems(tmp_path, "", cases=cases)] == [True]


NO_ANSWER = CASE.replace("    answer: It is sunny in Paris.\n", "")


@pytest.mark.parametrize(
    "check",
    [
        "max_tool_calls: {get_wether: 3}",
        "max_tool_calls: {getWeather: 0}",
        "check: max_repeats, value: 2, tools: [get_wether]",
        "check: no_tool_errors, value: true, tools: [get_wether]",
        "forbidden_tools: [get_wether]",
        "forbidden_tools: [{tool: refund, before: get_wether}]",
        "check: required_tools, value: [get_wether], required: false",
        "check: trajectory, value: [get_wether], required: false",
        "trajectory: {forbidden: [get_wether], extra: allow}",
        "trajectory: {calls: [get_weather], tools: {get_wether: {ignore: [city]}}}",
    ],
)
def test_misspelled_tool_of_a_check_is_a_warning(check: str, tmp_path: Path) -> None:
    [(severity, message)] = list_problems(tmp_path, f", {{{check}}}", cases=NO_ANSWER)
    assert severity == "warning"
    assert "no recorded run calls 'get" in message
    assert message.endswith("; did you mean 'get_weather'?")


@pytest.mark.parametrize(
    ("check", "level"),
    [
        ("forbidden_tools: [{tool: get_weather, args: {CITY: Rome}}]", "warning"),
        ("forbidden_tools: [{tool: 'get_*', args: {City: {$regex: '.*'}}}]", "warning"),
        (
            "forbidden_tools: [{tool: refund, after: {tool: get_weather, args: {City: Rome}}}]",
            "warning",
        ),
        (
            "trajectory: {forbidden: [{tool: get_weather, args: {City: Rome}}], extra: allow}",
            "warning",
        ),
        ("forbidden_tools: [{tool: get_weather, args: {citty: Rome}}]", "note"),
    ],
)
def test_misspelled_argument_of_a_forbidden_call_is_reported(
    check: str, level: str, tmp_path: Path
) -> None:
    [(severity, message)] = list_problems(tmp_path, f", {{{check}}}", cases=NO_ANSWER)
    assert severity == level
    assert "no recorded call of 'get_weather' has the argument 'cit" in message.lower()
    assert message.endswith("; did you mean 'city'?")


def test_misspelled_argument_of_an_eval_case_is_a_warning(tmp_path: Path) -> None:
    calls = "{calls: [get_weather], forbidden: [{tool: get_weather, args: {City: Rome}}]}"
    cases = NO_ANSWER.replace("[get_weather]", calls)
    assert [each for each, _ in list_problems(tmp_path, "", cases=cases)] == ["warning"]


def test_misspelled_tool_of_an_eval_case_is_a_warning(tmp_path: Path) -> None:
    cases = f"{NO_ANSWER}    checks: [forbidden_tools: [get_wether]]\n"
    assert [each for each, _ in list_problems(tmp_path, "", cases=cases)] == ["warning"]


@pytest.mark.parametrize(
    "check",
    [
        "max_tool_calls: {search: 3}",
        "max_tool_calls: {'search*': 3}",
        "check: max_repeats, value: 2, tools: [search]",
        "check: no_tool_errors, value: true, tools: [get_weather, search], allow: 9",
    ],
)
def test_check_of_a_tool_that_no_run_calls_is_a_note(check: str, tmp_path: Path) -> None:
    [(severity, message)] = list_problems(tmp_path, f", {{{check}}}", cases=NO_ANSWER)
    assert severity == "note"
    assert "no recorded run calls 'search" in message


@pytest.mark.parametrize(
    "check",
    [
        "max_tool_calls: {search: 0, get_weather: 2, '*': 3}",
        "check: max_repeats, value: 2, tools: ['get_*']",
        "forbidden_tools: [refund_order, set_weather, get_weather_v2, {tool: buy, before: find}]",
        "allowed_tools: [get_weather, get_weathers]",
        "forbidden_tools: [{tool: get_weather, args: {units: metric, city: Rome}}]",
        "forbidden_tools: [{tool: refund, args: {citty: Rome}}]",
        "trajectory: {calls: [get_weather], extra: [get_wether], forbidden: [refund]}",
    ],
)
def test_tools_of_correct_checks_are_no_warning(check: str, tmp_path: Path) -> None:
    assert list_problems(tmp_path, f", {{{check}}}", cases=NO_ANSWER) == []


@pytest.mark.parametrize("pattern", ["traces/*", "./t*/*.jsonl"])
def test_folder_in_the_place_of_the_traces_is_an_error(pattern: str, tmp_path: Path) -> None:
    for folder in ("traces/run.jsonl", "traces/a.requests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "agentci.yaml").write_text(f"traces: {pattern}\nchecks: [no_secrets: true]\n")
    for options in ([], ["--traces", pattern]):
        ran = run_agentci(["run", *options], cwd=tmp_path)
        assert [each["message"] for each in ran.results["problems"]] == [
            "traces/run.jsonl is a folder"
        ]


@pytest.mark.parametrize("pattern", ["traces/*", "traces/*.jsonl", "traces/**/*"])
def test_folder_among_the_traces_is_a_warning(pattern: str, tmp_path: Path) -> None:
    for folder in ("traces/run.jsonl", "traces/a.requests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "b.jsonl").write_text(otlp(trace=2))
    (tmp_path / "traces/a.jsonl").write_text(otlp())
    (tmp_path / "agentci.yaml").write_text(f"traces: {pattern}\nchecks: [no_secrets: true]\n")
    expected = [] if "**" in pattern else ["traces/run.jsonl is a folder, whose files are not read"]
    for options in ([], ["--traces", pattern]):
        ran = run_agentci(["run", *options], cwd=tmp_path)
        assert [each["message"] for each in ran.results["problems"]] == expected
