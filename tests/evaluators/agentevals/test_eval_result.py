"""Results are parsed as in agentevals 0.11.0, except if that would mislead."""

import json
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.code import parse_eval_result
from agentci.model.values import Json

SDK: Any = import_module("agentevals_evaluator_sdk")


@pytest.mark.parametrize(
    ("score", "read"),
    [
        pytest.param(0, 0.0, id="zero"),
        pytest.param(1, 1.0, id="one"),
        pytest.param(0.31, 0.31, id="between"),
        pytest.param("0.75", 0.75, id="string"),
        pytest.param(" 1e-1 ", 0.1, id="string with blanks and an exponent"),
    ],
)
def test_score_from_zero_to_one_is_accepted(score: Json, read: float) -> None:
    assert parse_eval_result({"score": score}).score == read


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        pytest.param(1.2, "1.2", id="above"),
        pytest.param(-0.1, "-0.1", id="below"),
        pytest.param(True, "true", id="true"),
        pytest.param(False, "false", id="false"),
        pytest.param(None, "null", id="null"),
        pytest.param("high", '"high"', id="a word"),
        pytest.param("", '""', id="empty string"),
        pytest.param("nan", '"nan"', id="nan as a string"),
        pytest.param("Infinity", '"Infinity"', id="infinity as a string"),
        pytest.param([1], "[1]", id="a list"),
        pytest.param({"a": 1}, '{"a": 1}', id="an object"),
        pytest.param(10**400, "1" + "0" * 58 + "…", id="integer too large for a float"),
    ],
)
def test_invalid_score_is_rejected(score: Json, shown: str) -> None:
    kind = "" if shown in ("1.2", "-0.1") else "a number "
    assert _complaint({"score": score}) == (
        f"returned score {shown}; it must be {kind}between 0 and 1"
    )


def test_missing_score_is_rejected_even_with_status() -> None:
    assert _complaint({"status": "NOT_EVALUATED"}) == (
        "returned no `score`; a number between 0 and 1 is required, even with a `status`"
    )


@pytest.mark.parametrize("status", ["PASSED", "FAILED", "NOT_EVALUATED", None])
def test_known_status_or_null_is_accepted(status: str | None) -> None:
    assert parse_eval_result({"score": 1, "status": status}).status == status


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        pytest.param("passed", 'returned status "passed"; write it as PASSED', id="lowercase"),
        pytest.param("Failed", 'returned status "Failed"; write it as FAILED', id="capitalised"),
        pytest.param(
            "OK",
            'returned status "OK"; it must be PASSED, FAILED, NOT_EVALUATED or null',
            id="another word",
        ),
        pytest.param(
            "", 'returned status ""; it must be PASSED, FAILED, NOT_EVALUATED or null', id="empty"
        ),
        pytest.param(
            True,
            "returned status true; it must be PASSED, FAILED, NOT_EVALUATED or null",
            id="true",
        ),
    ],
)
def test_unknown_status_is_rejected(status: Json, complaint: str) -> None:
    assert _complaint({"score": 1, "status": status}) == complaint


def test_turn_scores_are_kept_as_given() -> None:
    given = [0.2, None, 7, -3, True, "0.5"]
    read = parse_eval_result({"score": 1, "per_invocation_scores": given}).turn_scores
    assert read == (0.2, None, 7.0, -3.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (None, "returned per_invocation_scores null; it must be a list of numbers"),
        ({}, "returned per_invocation_scores {}; it must be a list of numbers"),
        ("0.5", 'returned per_invocation_scores "0.5"; it must be a list of numbers'),
        ([1, "x"], 'returned per_invocation_scores[1] "x"; it must be a number or null'),
        ([[]], "returned per_invocation_scores[0] []; it must be a number or null"),
        (["nan"], 'returned per_invocation_scores[0] "nan"; it must be a number or null'),
    ],
)
def test_invalid_turn_scores_are_rejected(given: Json, complaint: str) -> None:
    assert _complaint({"score": 1, "per_invocation_scores": given}) == complaint


def test_details_must_be_object_or_null() -> None:
    assert parse_eval_result({"score": 1, "details": {"a": [1]}}).details == {"a": [1]}
    assert parse_eval_result({"score": 1, "details": None}).details == {}
    assert _complaint({"score": 1, "details": []}) == (
        "returned details []; it must be an object or null"
    )


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.99", "1", 1, 1.5, None])
def test_protocol_version_1_is_accepted(version: Json) -> None:
    assert parse_eval_result({"score": 1, "protocol_version": version}).score == 1


@pytest.mark.parametrize("version", ["2.0", "0.9", "11.0", 2, "", "next"])
def test_other_major_protocol_version_is_rejected(version: Json) -> None:
    complaint = _complaint({"score": 1, "protocol_version": version})
    assert complaint == f"uses protocol `{version}`; agentci supports 1.x"


def test_long_protocol_version_is_truncated_in_error() -> None:
    assert len(_complaint({"score": 1, "protocol_version": "2" * 1_000_000})) < 100


def test_unknown_fields_are_ignored() -> None:
    assert parse_eval_result({"score": 1, "confidence": "high", "Status": "x"}).score == 1


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "score": st.floats(-0.1, 1.1) | st.sampled_from([0, 1, 2, None, "0.5", "x", ""]),
            "status": st.sampled_from(["PASSED", "FAILED", "NOT_EVALUATED", "passed", "", None, 1]),
            "per_invocation_scores": st.none()
            | st.lists(st.none() | st.booleans() | st.floats(0, 1) | st.just("0.5") | st.just("x")),
            "details": st.none() | st.just({"a": 1}) | st.just([]),
            "other": st.text(),
        },
    )
)
def test_sdk_accepts_and_rejects_same_results(document: dict[str, Any]) -> None:
    try:
        theirs = SDK.EvalResult.model_validate_json(json.dumps(document))
    except ValueError:
        with pytest.raises(EvaluatorError):
            parse_eval_result(document)
        return
    ours = parse_eval_result(document)
    assert ours.score == theirs.score
    assert ours.status == (None if theirs.status is None else theirs.status.value)
    assert ours.turn_scores == tuple(theirs.per_invocation_scores)
    assert ours.details == (theirs.details or {})


@given(
    st.dictionaries(
        st.sampled_from(
            ["score", "status", "per_invocation_scores", "details", "protocol_version"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
    )
)
def test_any_document_is_result_or_evaluator_error(
    document: dict[str, Json],
) -> None:
    try:
        assert 0 <= parse_eval_result(document).score <= 1
    except EvaluatorError as error:
        assert str(error)  # noqa: PT017 (most documents are refused, some are not)


def _complaint(document: dict[str, Json]) -> str:
    with pytest.raises(EvaluatorError) as caught:
        parse_eval_result(document)
    return str(caught.value)
