"""Problems for code scanning: SARIF that its own schema accepts and GitHub can use."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.reports.github_limits import SARIF_MESSAGE_CHARACTERS, SARIF_RESULTS
from agentci.reports.sarif import render_sarif
from agentci.reports.workflow_commands import LEVELS
from agentci.version import __version__
from tests.helpers.building import values
from tests.helpers.support import run_agentci
from tests.services.servers import MODULES

SCHEMA: Final = MODULES / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
needs_schema = pytest.mark.skipif(not SCHEMA.is_file(), reason="npm did not install the schema")

UNKNOWN = Problem(
    message="unknown key 'treshold'",
    place=Place(file="evals/eval config.yaml", line=4, column=3),
    hint="did you mean 'threshold'?",
)
FOREIGN = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["[x](https://evil.example)", "##[error]x", "::error::x", "\ud800", "../..", "a:b", "//host/x"]
)
PROBLEMS = st.lists(
    values(
        Problem,
        message=FOREIGN,
        place=st.none()
        | values(
            Place,
            file=FOREIGN | st.just(COMMAND_LINE.file),
            line=st.integers(1),
            column=st.none() | st.integers(1),
        ),
        hint=st.none() | FOREIGN,
        severity=st.sampled_from(["error", "warning", "note"]),
    ),
    max_size=3,
)


@cache
def validator() -> Draft4Validator:
    return Draft4Validator(json.loads(SCHEMA.read_text()))


def run_of(problems: list[Problem]) -> Any:
    """The only run of the log."""
    [run] = json.loads(render_sarif(problems))["runs"]
    return run


def fingerprint(problem: Problem, *before: Problem) -> str:
    result = run_of([*before, problem])["results"][-1]
    [mark] = result["partialFingerprints"].values()
    return str(mark)


def place_of(file: str) -> Any:
    [result] = run_of([Problem(message="is odd", place=Place(file=file))])["results"]
    [location] = result["locations"]
    return location["physicalLocation"]["artifactLocation"]


@needs_schema
@given(problems=PROBLEMS)
def test_the_schema_accepts_whatever_is_wrong(problems: list[Problem]) -> None:
    log = json.loads(render_sarif(problems))
    assert [*validator().iter_errors(log)] == []


@needs_schema
def test_nothing_wrong_is_a_run_without_results(tmp_path: Path) -> None:
    (tmp_path / "ev.py").touch()
    (tmp_path / "agentci.yaml").write_text("evaluators: [{name: a, type: code, path: ev.py}]\n")
    ran = run_agentci(["validate", "--format", "sarif"], cwd=tmp_path)
    log = json.loads(ran.out)
    assert (ran.code, log["runs"][0]["results"]) == (0, [])
    assert [*validator().iter_errors(log)] == []


@needs_schema
def test_the_problems_of_several_files_are_results_of_one_run(tmp_path: Path) -> None:
    for name in ("a.eval.yaml", "b.eval.yaml"):
        (tmp_path / name).write_text("evaluators:\n- name: a\n  typ: builtin\noutput: x\n")
    ran = run_agentci(["validate", "--format", "sarif"], cwd=tmp_path)
    log = json.loads(ran.out)
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
    ]
    assert (ran.code, len(log["runs"])) == (2, 1)
    assert places == ["a.eval.yaml", "a.eval.yaml", "b.eval.yaml", "b.eval.yaml"]
    assert [*validator().iter_errors(log)] == []


def test_a_problem_is_a_result_on_its_line() -> None:
    run = run_of([UNKNOWN])
    [result] = run["results"]
    [location] = result["locations"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert (result["level"], result["message"]["text"]) == (
        "error",
        "unknown key 'treshold'; did you mean 'threshold'?",
    )
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "evals/eval%20config.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 4, "startColumn": 3},
    }


def test_each_result_follows_a_rule_of_its_weight() -> None:
    run = run_of([Problem(message=each, place=UNKNOWN.place, severity=each) for each in LEVELS])
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("agentci", __version__)
    followed = [driver["rules"][result["ruleIndex"]] for result in run["results"]]
    assert [rule["id"] for rule in followed] == [result["ruleId"] for result in run["results"]]
    assert [rule["id"] for rule in followed] == ["unusable-input", "input-warning", "input-note"]
    levels = [rule["defaultConfiguration"]["level"] for rule in followed]
    assert levels == [result["level"] for result in run["results"]] == ["error", "warning", "note"]


class TestTheFingerprint:
    def test_stays_where_lines_move(self) -> None:
        moved = Problem(message=UNKNOWN.message, place=Place(file="evals/eval config.yaml", line=9))
        assert fingerprint(moved) == fingerprint(UNKNOWN)

    @pytest.mark.parametrize(
        "other",
        [
            Problem(message="unknown key 'x'", place=UNKNOWN.place),
            Problem(message=UNKNOWN.message, place=Place(file="b.yaml", line=4)),
            Problem(message=UNKNOWN.message, place=UNKNOWN.place, severity="warning"),
        ],
        ids=["message", "file", "rule"],
    )
    def test_is_another_for_another_problem(self, other: Problem) -> None:
        assert fingerprint(other) != fingerprint(UNKNOWN)

    def test_tells_apart_what_is_wrong_twice(self) -> None:
        assert fingerprint(UNKNOWN, UNKNOWN) != fingerprint(UNKNOWN)

    def test_leaves_the_one_of_github_to_its_upload(self) -> None:
        # Which computes it itself, and warns of every result that brings another one.
        assert "primaryLocationLineHash" not in render_sarif([UNKNOWN])

    def test_leaves_the_category_to_the_upload(self) -> None:
        # Where the file has one, neither the matrix nor `category:` of the upload counts.
        assert "automationDetails" not in run_of([UNKNOWN])


class TestWhatLiesInNoFile:
    @pytest.mark.parametrize("place", [None, COMMAND_LINE])
    def test_is_a_notification(self, place: Place | None) -> None:
        run = run_of([Problem(message="there is no config", place=place)])
        [invocation] = run["invocations"]
        assert run["results"] == []
        assert invocation["executionSuccessful"] is False
        [told] = invocation["toolConfigurationNotifications"]
        assert told == {"level": "error", "message": {"text": "there is no config"}}

    def test_is_no_failure_where_it_is_no_error(self) -> None:
        run = run_of([Problem(message="is odd", severity="warning")])
        assert run["invocations"][0]["executionSuccessful"] is True


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/ü#?.yaml", "a%20b/%C3%BC%23%3F.yaml"),
        ("a:b.yaml", "a%3Ab.yaml"),
        ("100%.yaml", "100%25.yaml"),
        ("not-\udcff-utf8.yaml", "not-%EF%BF%BD-utf8.yaml"),
    ],
)
def test_a_path_is_a_relative_address_whatever_is_in_it(file: str, uri: str) -> None:
    assert place_of(file) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_what_lies_outside_of_the_workspace_has_an_address_of_its_own() -> None:
    assert place_of("/etc/my evals.yaml") == {"uri": "file:///etc/my%20evals.yaml"}


def test_text_of_a_config_is_no_link() -> None:
    text = render_sarif([Problem(message="no [key](https://evil.example)", place=UNKNOWN.place)])
    assert re.search(r"\]\(", text) is None


def test_a_long_message_is_cut() -> None:
    [result] = run_of([Problem(message="x" * 9000, place=UNKNOWN.place)])["results"]
    assert len(result["message"]["text"]) == SARIF_MESSAGE_CHARACTERS


def test_what_github_does_not_take_is_counted_and_the_weightiest_is_kept() -> None:
    light = Problem(message="is odd", place=UNKNOWN.place, severity="note")
    run = run_of([*[light] * SARIF_RESULTS, UNKNOWN, UNKNOWN])
    [told] = run["invocations"][0]["toolConfigurationNotifications"]
    assert len(run["results"]) == SARIF_RESULTS
    assert [result["level"] for result in run["results"][:3]] == ["error", "error", "note"]
    assert told["message"]["text"] == "2 problems omitted; GitHub accepts at most 25,000"
