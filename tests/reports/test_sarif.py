"""Problems as SARIF for code scanning, checked against its schema and GitHub's limits."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from agentci.model.values import COMMAND_LINE, Place, Problem
from agentci.reports.problems import render_sarif
from agentci.reports.workflow_commands import LEVELS, SARIF_MESSAGE_CHARACTERS, SARIF_RESULTS
from agentci.version import __version__
from tests.helpers.building import values
from tests.helpers.support import run_agentci
from tests.services.servers import MODULES

SCHEMA: Final = MODULES / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
needs_schema = pytest.mark.skipif(not SCHEMA.is_file(), reason="npm did not install the schema")

UNKNOWN_KEY = Problem(
    message="unknown key 'treshold'",
    place=Place(file="evals/eval config.yaml", line=4, column=3),
    hint="did you mean 'threshold'?",
)
HOSTILE_TEXT = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["[x](https://evil.example)", "##[error]x", "::error::x", "\ud800", "../..", "a:b", "//host/x"]
)
PROBLEMS = st.lists(
    values(
        Problem,
        message=HOSTILE_TEXT,
        place=st.none()
        | values(
            Place,
            file=HOSTILE_TEXT | st.just(COMMAND_LINE.file),
            line=st.integers(1),
            column=st.none() | st.integers(1),
        ),
        hint=st.none() | HOSTILE_TEXT,
        severity=st.sampled_from(["error", "warning", "note"]),
    ),
    max_size=3,
)


@cache
def validator() -> Draft4Validator:
    return Draft4Validator(json.loads(SCHEMA.read_text()))


def run_of(problems: list[Problem]) -> Any:
    """The single run of the log."""
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
def test_sarif_schema_accepts_any_problem(problems: list[Problem]) -> None:
    log = json.loads(render_sarif(problems))
    assert [*validator().iter_errors(log)] == []


@needs_schema
def test_no_problems_make_run_without_results(tmp_path: Path) -> None:
    (tmp_path / "ev.py").touch()
    (tmp_path / "agentci.yaml").write_text("evaluators: [{name: a, type: code, path: ev.py}]\n")
    ran = run_agentci(["validate", "--format", "sarif"], cwd=tmp_path)
    log = json.loads(ran.out)
    assert (ran.code, log["runs"][0]["results"]) == (0, [])
    assert [*validator().iter_errors(log)] == []


@needs_schema
def test_problems_of_several_files_share_one_run(tmp_path: Path) -> None:
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


def test_problem_becomes_result_on_its_line() -> None:
    run = run_of([UNKNOWN_KEY])
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


def test_result_refers_to_rule_of_its_severity() -> None:
    run = run_of([Problem(message=each, place=UNKNOWN_KEY.place, severity=each) for each in LEVELS])
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("agentci", __version__)
    followed = [driver["rules"][result["ruleIndex"]] for result in run["results"]]
    assert [rule["id"] for rule in followed] == [result["ruleId"] for result in run["results"]]
    assert [rule["id"] for rule in followed] == ["unusable-input", "input-warning", "input-note"]
    levels = [rule["defaultConfiguration"]["level"] for rule in followed]
    assert levels == [result["level"] for result in run["results"]] == ["error", "warning", "note"]


class TestFingerprint:
    def test_fingerprint_does_not_change_with_line(self) -> None:
        moved = Problem(
            message=UNKNOWN_KEY.message, place=Place(file="evals/eval config.yaml", line=9)
        )
        assert fingerprint(moved) == fingerprint(UNKNOWN_KEY)

    @pytest.mark.parametrize(
        "other",
        [
            Problem(message="unknown key 'x'", place=UNKNOWN_KEY.place),
            Problem(message=UNKNOWN_KEY.message, place=Place(file="b.yaml", line=4)),
            Problem(message=UNKNOWN_KEY.message, place=UNKNOWN_KEY.place, severity="warning"),
        ],
        ids=["message", "file", "rule"],
    )
    def test_fingerprint_differs_between_problems(self, other: Problem) -> None:
        assert fingerprint(other) != fingerprint(UNKNOWN_KEY)

    def test_repeated_problem_has_its_own_fingerprint(self) -> None:
        assert fingerprint(UNKNOWN_KEY, UNKNOWN_KEY) != fingerprint(UNKNOWN_KEY)

    def test_primary_location_hash_is_left_to_upload(self) -> None:
        # The upload computes it, and warns about every result with a different one.
        assert "primaryLocationLineHash" not in render_sarif([UNKNOWN_KEY])

    def test_category_is_left_to_upload(self) -> None:
        # A category in the file overrides the matrix and `category:` of the upload.
        assert "automationDetails" not in run_of([UNKNOWN_KEY])


class TestProblemWithoutFile:
    @pytest.mark.parametrize("place", [None, COMMAND_LINE])
    def test_problem_without_file_is_notification(self, place: Place | None) -> None:
        run = run_of([Problem(message="no config found", place=place)])
        [invocation] = run["invocations"]
        assert run["results"] == []
        assert invocation["executionSuccessful"] is False
        [notification] = invocation["toolConfigurationNotifications"]
        assert notification == {"level": "error", "message": {"text": "no config found"}}

    def test_warning_keeps_execution_successful(self) -> None:
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
def test_path_is_encoded_as_relative_uri(file: str, uri: str) -> None:
    assert place_of(file) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_path_outside_workspace_is_absolute_uri() -> None:
    assert place_of("/etc/my evals.yaml") == {"uri": "file:///etc/my%20evals.yaml"}


def test_markdown_link_in_message_is_escaped() -> None:
    text = render_sarif(
        [Problem(message="no [key](https://evil.example)", place=UNKNOWN_KEY.place)]
    )
    assert re.search(r"\]\(", text) is None


def test_long_message_is_cut() -> None:
    [result] = run_of([Problem(message="x" * 9000, place=UNKNOWN_KEY.place)])["results"]
    assert len(result["message"]["text"]) == SARIF_MESSAGE_CHARACTERS


def test_results_above_limit_are_counted_errors_first() -> None:
    light = Problem(message="is odd", place=UNKNOWN_KEY.place, severity="note")
    run = run_of([*[light] * SARIF_RESULTS, UNKNOWN_KEY, UNKNOWN_KEY])
    [notification] = run["invocations"][0]["toolConfigurationNotifications"]
    assert len(run["results"]) == SARIF_RESULTS
    assert [result["level"] for result in run["results"][:3]] == ["error", "error", "note"]
    assert notification["message"]["text"] == "2 problems omitted; GitHub accepts at most 25,000"
