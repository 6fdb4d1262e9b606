"""Assembling traces from spans with duplicates, missing parents and parent cycles."""

from agentci.recordings.telemetry.spans import RejectedSpan
from agentci.recordings.telemetry.stored_trace import load_tree
from tests.recordings.telemetry.recorder import SPOOL, log, read, span, trees


def parents(*spans: tuple[str, str | None]) -> dict[str, str | None]:
    (tree,) = trees(*(span(name, under=parent) for name, parent in spans))
    return {one.id: one.parent_id for one in tree.spans}


def test_traces_stand_in_the_order_in_which_they_are_first_seen() -> None:
    found = trees(span("1", trace="b"), span("2", trace="a"), span("3", trace="b"))
    assert [(tree.id, len(tree.spans)) for tree in found] == [("b", 2), ("a", 1)]


def test_spans_stand_by_start_then_id() -> None:
    (tree,) = trees(span("b"), span("a"), span("0", at=(5, 9)))
    assert [one.id for one in tree.spans] == ["a", "b", "0"]


def test_the_first_copy_of_a_span_wins() -> None:
    (tree,) = trees(span("a", name="first"), span("a", name="second"))
    assert [one.name for one in tree.spans] == ["first"]
    assert tree.warnings == ("duplicate span a ignored",)


def test_logs_of_a_trace_without_spans_are_left_out() -> None:
    (tree,) = trees(span("a", trace="another"), log(None, "e", {}))
    assert tree.logs == ()


def test_a_span_that_is_its_own_parent_is_a_root() -> None:
    (tree,) = trees(span("a", under="a"))
    assert tree.spans[0].parent_id is None
    assert tree.warnings == ("span a names itself as parent; treated as a root",)


def test_a_cycle_is_broken_at_its_earliest_span() -> None:
    (tree,) = trees(
        span("c", under="a", at=(5, 9)),
        span("a", under="b", at=(5, 9)),
        span("b", under="c", at=(3, 9)),
        span("child", under="a", at=(6, 9)),
    )
    assert {one.id: one.parent_id for one in tree.spans} == {
        "b": None,
        "c": "a",
        "a": "b",
        "child": "a",
    }
    assert tree.warnings == ("parent cycle through 3 spans broken at b",)


def test_every_cycle_is_broken() -> None:
    assert parents(("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "e")) == {
        "a": None,
        "b": "a",
        "c": None,
        "d": "c",
        "e": None,
    }


def test_logs_of_known_traces_are_kept() -> None:
    (tree,) = trees(log("a", "gen_ai.choice", {}), log("gone", "gen_ai.choice", {}), span("a"))
    assert [record.span_id for record in tree.logs] == ["a", "gone"]


def test_rejections_are_said_of_every_trace() -> None:
    rejections = [
        RejectedSpan(reason="no id"),
        RejectedSpan(reason="no id"),
        RejectedSpan(reason="bad id"),
    ]
    found = read(*rejections, span("1", trace="a"), span("2", trace="b"), file="x")
    complaints = ("1 span rejected: bad id", "2 spans rejected: no id")
    assert [one.warnings for one in found] == [complaints, complaints]
    assert [load_tree(one, SPOOL).warnings for one in found] == [complaints, complaints]
