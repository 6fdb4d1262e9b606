"""A hidden marker identifies the comment of a workflow step."""

import pytest

from agentci.github.post import CommentMarker, digest_json, make_comment_key, parse_marker

PLACE = {"workflow": "o/r/.github/workflows/a.yml", "job": "eval", "step": "__o_action"}


def _key(matrix: str = "null", *configs: str, **place: str) -> str:
    return make_comment_key(**{**PLACE, **place}, configs=configs, matrix=matrix)


def test_marker_is_read_from_first_line() -> None:
    mark = CommentMarker(key=_key(), result=digest_json(["open"]))
    assert parse_marker(mark.prepend_to("text\n")) == mark
    assert parse_marker(mark.prepend_to("text").replace("\n", "\r\n")) == mark


@pytest.mark.parametrize("before", ["x", "\n", " ", "> "])
def test_marker_after_other_text_is_ignored(before: str) -> None:
    assert (
        parse_marker(f"{before}{CommentMarker(key=_key(), result=_key()).prepend_to('text')}")
        is None
    )


@pytest.mark.parametrize(
    "other",
    [
        _key('{"model": "small"}'),
        _key('{"model": "large"}'),
        _key("[" * 100_000),
        _key("null", "evals"),
        _key(workflow="b"),
        _key(job="b"),
        _key(step="b"),
    ],
)
def test_different_step_has_different_key(other: str) -> None:
    assert other != _key()


def test_key_ignores_order_of_matrix_and_configs() -> None:
    assert _key('{"a": 1, "b": [2]}') == _key('{"b":[2],"a":1}\n')
    assert _key("null", "a", "b") == _key("null", "b", "a")
