"""How an alignment is shown, call by call."""

import pytest

from agentci.evaluators.checks.trajectory import (
    describe_branches,
    describe_first_row,
    describe_numbers,
    find_hints,
    make_rows,
)
from agentci.evaluators.trajectory.expectation import read_trajectory
from agentci.evaluators.trajectory.match import RecordedCall, match_calls
from agentci.model.values import Json


def show(written: Json, *calls: RecordedCall) -> list[str]:
    return [row.line for row in make_rows(match_calls(read_trajectory(written), calls), calls)]


def call(tool: str, **args: Json) -> RecordedCall:
    return RecordedCall(name=tool, args=args)


def test_every_kind_of_row() -> None:
    written: Json = {
        "calls": [
            {"find": {"id": "4711"}},
            {"refund": {"amount": {"$approx": 19.99, "abs": 0.01}, "id": "4711"}},
            "notify",
            "mail",
            "close",
        ],
        "forbidden": ["delete_*"],
    }
    assert show(
        written,
        call("find", id="4711"),
        call("refund", amount=199.9, id="4711"),
        call("get_time"),
        call("close"),
        call("mail"),
        call("delete_account"),
    ) == [
        '=  1  find(id="4711")',
        "~  2  refund(amount: $approx 19.99 abs 0.01 → 199.9)   expected $approx 19.99 abs 0.01",
        "-  .  notify   expected, not called",
        "+  3  get_time()   not expected",
        "=  4  close()",
        ">  5  mail()   called too late: expected before close",
        "!  6  delete_account()   forbidden by rule 1",
    ]


def test_early_call() -> None:
    written: Json = ["find", "verify", "refund"]
    assert show(written, call("refund"), call("find"), call("verify")) == [
        ">  1  refund()   called too early: expected after verify",
        "=  2  find()",
        "=  3  verify()",
    ]


def test_late_call_and_allowed_call() -> None:
    written: Json = {"calls": ["verify", "refund"], "extra": ["log"]}
    assert show(written, call("refund"), call("log"), call("verify")) == [
        "=  1  refund()",
        ".  2  log()   allowed",
        ">  3  verify()   called too late: expected before refund",
    ]


def test_changed_arguments_say_what_is_absent_unexpected_or_of_another_type() -> None:
    written: Json = [{"f": {"a": 5, "b": 1}}]
    [line] = show(written, call("f", a="5", c=2))
    assert line == (
        '~  1  f(a: 5 → "5", b: 1 → absent, c: absent → 2)   '
        "'5' is text, 5 was expected; c is not expected"
    )
    assert show([{"f": {"a": "5"}}], call("f", a=5)) == [
        "~  1  f(a: \"5\" → 5)   5 is a number, the text '5' was expected"
    ]


def test_missing_calls_stand_in_the_written_order() -> None:
    assert show(["a", {"tool": ["b", "c"], "args": {"$any": True}}, "d"], call("d")) == [
        "-  .  a   expected, not called",
        "-  .  b|c(the arguments: $any true)   expected, not called",
        "=  1  d()",
    ]


def test_calls_without_recorded_arguments_have_no_brackets() -> None:
    assert show(["a"], RecordedCall(name="a")) == ["=  1  a"]


def test_changed_status() -> None:
    written: Json = [{"tool": "a", "status": "ok"}]
    failed = RecordedCall(name="a", args={}, status="error")
    assert show(written, failed) == ["~  1  a()   expected status ok"]


def test_numbers_and_branches() -> None:
    written: Json = {
        "calls": ["a", {"any_of": ["b", ["c", "d"]]}, {"in_order": ["e"], "optional": True}],
        "forbidden": ["x"],
    }
    calls = [call("a"), call("c"), call("x"), call("y")]
    match = match_calls(read_trajectory(written), calls)
    assert describe_numbers(match, "strict") == "2 of 3 expected calls, 1 extra, 1 forbidden"
    assert describe_numbers(match, "f1") == (
        "2 of 3 expected calls, 1 extra, 1 forbidden (precision 0.5, recall 0.67, F1 0.57)"
    )
    assert list(describe_branches(match)) == ["any_of 1: path 2 of 2", "group 2: left out"]


def test_hints_name_single_changes_that_suffice() -> None:
    expected = read_trajectory(["a", "b"])
    assert list(find_hints(expected, [call("a"), call("x"), call("b")])) == [
        "with `extra: allow` it would pass"
    ]
    assert list(find_hints(expected, [call("b"), call("a")])) == [
        "with `order: any_order` it would pass"
    ]
    assert list(find_hints(expected, [call("b")])) == []


def test_move_is_explained_by_a_call_of_the_same_lane() -> None:
    written: Json = ["a", {"any_order": [{"in_order": ["b", "c"]}, "d"]}]
    lines = show(written, call("a"), call("d"), call("c"), call("b"))
    assert lines[-1] == ">  4  b()   called too late: expected before c"


def test_two_missing_calls_do_not_move_one_call_twice() -> None:
    expected = read_trajectory(["x", "x", "y"])
    match = match_calls(expected, [call("y"), call("x"), call("z")])
    assert match.as_json["missing"] == ["0", "1"]
    assert match.as_json["moved"] == [["0", 1]]


LONG = "We are sorry that your order arrived broken, and take it back at once, " * 3


@pytest.mark.parametrize(
    ("written", "calls", "text"),
    [
        ([{"refund": {"amount": "8.50 EUR"}}], [call("refund", amount="85.00 EUR")],
         "refund: amount 8.50 EUR → 85.00 EUR"),
        ([{"refund": {"amount": 5}}], [call("refund", amount="5")],
         "refund: amount 5 → \"5\" ('5' is text, 5 was expected)"),
        ([{"f": {"a": {"b": [1, 2], "c": LONG}}}], [call("f", a={"b": [1, 3], "c": LONG})],
         "f: a.b[1] 2 → 3"),
        ([{"f": {"text": f"{LONG}8"}}], [call("f", text=f"{LONG}9")],
         "f: text …back at once, 8 → …back at once, 9"),
        ([{"f": {**dict.fromkeys("abcd", LONG), "e": 8}}],
         [call("f", **dict.fromkeys("abcd", LONG.upper()), e=9000)],
         "f: e 8 → 9000, a We are"),
        ([{"f": {"a": 1, "b": 2}}], [call("f", a=1, c=3)],
         "f: b 2 → absent, c absent → 3 (c is not expected)"),
        ([{"f": {"a": {"$gt": 5}}}], [call("f", a=3)], "f: a $gt 5 → 3 (expected $gt 5)"),
        ([{"f": {"a": [{"x": {"$gt": 5}}]}}], [call("f", a=[{"x": 3}])],
         'f: a [{"x": {"$gt": 5}}] → [{"x": 3}]'),
        (["find", {"cancel": {"id": "1"}}], [call("find")], 'cancel(id="1") is missing'),
        (["find"], [call("find"), call("drop", id=7)], "drop(id=7) is not expected"),
        ([{"refund": {"id": 1}}], [call("drop", id=7)], "drop(id=7) instead of refund(id=1)"),
        (["a", "b"], [call("b"), call("a")], "a() called too late: expected before b"),
        ({"calls": ["a", "b"], "forbidden": ["drop"]}, [call("b"), call("drop", id=7)],
         "drop(id=7) is forbidden by rule 1"),
        ([{"tool": "a", "status": "ok"}], [RecordedCall(name="a", args={}, status="error")],
         "a (expected status ok)"),
        (["a"], [call("a")], ""),
    ],
)  # fmt: skip
def test_first_row_is_described_on_one_line(
    written: Json, calls: list[RecordedCall], text: str
) -> None:
    rows = make_rows(match_calls(read_trajectory(written), calls), calls)
    assert describe_first_row(rows).startswith(text)
    assert bool(text) == bool(describe_first_row(rows))
    assert len(describe_first_row(rows)) < 300
