"""Assembling traces from spans with duplicates, missing parents and parent cycles."""

from agentci.recordings.telemetry.spans import RejectedSpan
from agentci.recordings.telemetry.stored_trace import load_tree
from tests.recordings.telemetry.recorder import SPOOL, log, read, span, trees


def parents(*spans: tuple[str, str | None]) -> dict[str, str | None]:
    (tree,) = trees(*(span(name, under=parent) for name, parent in spans))
    return {one.id: one.parent_id for one in tree.spans}


def test_traces_are_in_order_of_first_appearance() -> None:
    found = trees(span("1", trace="b"), span("2", trace="a"), span("3", trace="b"))
    assert [(tree.id, len(tree.spans)) for tree in found] == [("b", 2), ("a", 1)]


def test_spans_are_sorted_by_start_and_id() -> None:
    (tree,) = trees(span("b"), span("a"), span("0", at=(5, 9)))
    assert [one.id for one in tree.spans] == ["a", "b", "0"]


def test_first_duplicate_span_is_kept() -> None:
    (tree,) = trees(span("a", name="first"), span("a", name="second"))
    assert [one.name for one in tree.spans] == ["first"]
    assert tree.warnings == ("duplicate span a ignored",)


def test_log_that_was_exported_again_counts_once() -> None:
    records = [log("a", "e", {"content": content}, at=at) for content, at in (("x", 1), ("y", 1))]
    untimed = log("a", "e", {"content": "x"})
    (tree,) = trees(span("a"), *records, *records, log("a", "e", {"content": "x"}, at=2))
    assert [record.event.payload["content"] for record in tree.logs] == ["x", "y", "x"]
    assert tree.warnings == ("2 repeated log records ignored",)
    (tree,) = trees(span("a"), untimed, untimed)
    assert len(tree.logs) == 2


def test_logs_of_trace_without_spans_are_dropped() -> None:
    (tree,) = trees(span("a", trace="another"), log(None, "e", {}))
    assert tree.logs == ()


def test_span_naming_itself_as_parent_is_a_root() -> None:
    (tree,) = trees(span("a", under="a"))
    assert tree.spans[0].parent_id is None
    assert tree.warnings == ("span a names itself as parent; treated as a root",)


def test_parent_cycle_is_broken_at_earliest_span() -> None:
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


def test_every_parent_cycle_is_broken() -> None:
    assert parents(("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "e")) == {
        "a": None,
        "b": "a",
        "c": None,
        "d": "c",
        "e": None,
    }


def test_logs_of_known_trace_are_kept() -> None:
    (tree,) = trees(log("a", "gen_ai.choice", {}), log("gone", "gen_ai.choice", {}), span("a"))
    assert [record.span_id for record in tree.logs] == ["a", "gone"]


def test_rejected_spans_are_reported_for_every_trace() -> None:
    rejections = [
        RejectedSpan(reason="no id"),
        RejectedSpan(reason="no id"),
        RejectedSpan(reason="bad id"),
    ]
    found = read(*rejections, span("1", trace="a"), span("2", trace="b"), file="x")
    warnings = ("1 span rejected: bad id", "2 spans rejected: no id")
    assert [one.warnings for one in found] == [warnings, warnings]
    assert [load_tree(one, SPOOL).warnings for one in found] == [warnings, warnings]
