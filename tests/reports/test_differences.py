"""Expected and actual tool calls, and the first call and sentence that differ."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.model.result import (
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.reports.differences import (
    MAX_CALL_LINES,
    MAX_CALLS,
    WIDTH,
    RunDifference,
    ToolCallRow,
    describe_worst_call,
    find_difference,
    find_unmatched_turns,
    format_diff,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["invocation_id", "expected", "actual", "matched", "name", "args"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)
CALLS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=6)


def _details(expected: list[Any], actual: list[Any], *, matched: object = False) -> dict[str, Any]:
    sides = {"expected": expected, "actual": actual}
    return {"comparisons": [{"invocation_id": "t1", "matched": matched, **sides}]}


def _call_json(name: str, args: Any = None) -> dict[str, Any]:
    return {"name": name, "args": args}


def _rows(expected: list[Any], actual: list[Any]) -> list[tuple[str, str, str]]:
    [turn] = find_unmatched_turns(_details(expected, actual))
    return [(row.mark, row.expected, row.actual) for row in turn.rows]


ROW = {"mark": "", "expected": "a", "actual": "a()", "note": ""}


def _aligned(*rows: Any) -> dict[str, Any]:
    return {"title": "the run", "satisfied": False, "rows": [*rows]}


@pytest.mark.parametrize(
    ("expected", "actual", "rows"),
    [
        pytest.param(
            [_call_json("a"), _call_json("b"), _call_json("c")],
            [_call_json("a"), _call_json("c")],
            [("", "a", "a"), ("missing", "b", ""), ("", "c", "c")],
            id="missing call",
        ),
        pytest.param(
            [_call_json("a")],
            [_call_json("x"), _call_json("a")],
            [("unexpected", "", "x"), ("", "a", "a")],
            id="unexpected call",
        ),
        pytest.param(
            [_call_json("a", {"n": 1, "s": "x"})],
            [_call_json("a", {"n": 2, "s": "x"})],
            [("differs", 'a(n=1, s="x")', 'a(n=2, s="x")')],
            id="arguments differ",
        ),
        pytest.param(
            [_call_json("a", {"n": 1}), _call_json("a", {"n": 2})],
            [_call_json("a", {"n": 2})],
            [("missing", "a(n=1)", ""), ("", "a(n=2)", "a(n=2)")],
            id="equal call is paired first",
        ),
        pytest.param(
            [_call_json("a"), _call_json("b")],
            [_call_json("b"), _call_json("a")],
            [("moved", "a", ""), ("", "b", "b"), ("moved", "", "a")],
            id="the order differs",
        ),
        pytest.param(
            [_call_json("a")],
            [_call_json("a", {})],
            [("differs", "a", "a()")],
            id="no arguments are not {}",
        ),
        pytest.param(
            [_call_json("a", [1])],
            [],
            [("missing", "a([1])", "")],
            id="arguments are not an object",
        ),
        pytest.param([], [], [], id="no calls"),
    ],
)
def test_matching_calls_are_aligned(
    expected: list[Any], actual: list[Any], rows: list[tuple[str, str, str]]
) -> None:
    assert _rows(expected, actual) == rows


@given(CALLS, CALLS)
def test_every_call_is_shown_once_in_order(expected: list[str], actual: list[str]) -> None:
    rows = _rows([_call_json(name) for name in expected], [_call_json(name) for name in actual])
    assert [row[1] for row in rows if row[1]] == expected
    assert [row[2] for row in rows if row[2]] == actual
    for mark, left, right in rows:
        assert (mark == "") == (left == right)


@pytest.mark.parametrize(
    "details",
    [
        pytest.param({}, id="no comparisons"),
        pytest.param({"comparisons": "many"}, id="text"),
        pytest.param({"comparisons": [1, None, {}]}, id="items are not objects"),
        pytest.param(_details([_call_json("a")], [], matched=True), id="a turn that matched"),
        pytest.param(
            _details([_call_json("a")], [], matched=0), id="turn with invalid matched value"
        ),
        pytest.param(_details(["a"], []), id="calls are not objects"),
        pytest.param(_details([{"args": {}}], []), id="calls without a name"),
        pytest.param({"comparisons": [{"matched": False, "actual": []}]}, id="only one side"),
        pytest.param({"trajectories": 5}, id="trajectories are a number"),
        pytest.param({"trajectories": [5, {}, _aligned({}), _aligned()]}, id="no rows"),
        pytest.param({"trajectories": [_aligned({**ROW, "mark": "no"})]}, id="unknown mark"),
        pytest.param({"trajectories": [_aligned(5, ROW)]}, id="row is a number"),
        pytest.param({"trajectories": [{**_aligned(ROW), "satisfied": True}]}, id="satisfied"),
        pytest.param({"trajectories": [{**_aligned(ROW), "title": 1}]}, id="title is a number"),
    ],
)
def test_comparison_of_unknown_shape_is_ignored(details: dict[str, Any]) -> None:
    assert find_unmatched_turns(details) == ()
    assert format_diff(details) == ()


@given(
    st.dictionaries(st.sampled_from(["comparisons", "trajectories"]), st.lists(ANY_JSON) | ANY_JSON)
)
def test_arbitrary_details_do_not_raise(details: dict[str, Any]) -> None:
    assert len(format_diff(details)) >= len(find_unmatched_turns(details))


def test_aligned_calls_keep_their_marks_and_notes() -> None:
    rows = [
        ROW,
        {"mark": "missing", "expected": "b", "actual": "", "note": "expected, not called"},
        {"mark": "forbidden", "expected": "", "actual": "d()", "note": "forbidden by rule 1"},
    ]
    details = {"trajectories": [_aligned(*rows)]}
    [found] = find_unmatched_turns(details)
    assert [row.label for row in found.rows] == [
        "",
        "missing: expected, not called",
        "forbidden: forbidden by rule 1",
    ]
    assert format_diff(details) == (
        "tool calls of the run (~ changed, - missing, + unexpected, > moved, ! forbidden):",
        "= a()",
        "- b   expected, not called",
        "! d()   forbidden by rule 1",
    )


def test_aligned_calls_above_limit_are_counted() -> None:
    [found] = find_unmatched_turns({"trajectories": [_aligned(*[ROW] * (MAX_CALLS + 2))]})
    assert (len(found.rows), found.hidden) == (MAX_CALLS, 2)


def test_calls_above_limit_are_counted() -> None:
    [turn] = find_unmatched_turns(_details([_call_json("a")] * (MAX_CALLS + 7), []))
    assert len(turn.rows) == MAX_CALLS
    assert turn.hidden == 7
    assert turn.rows[0] == ToolCallRow(mark="missing", expected="a", actual="")


def test_deeply_nested_arguments_are_compared() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert _rows([_call_json("a", deep)], [_call_json("a", deep)])[0][0] == ""


def test_diff_marks_expected_and_actual_calls() -> None:
    details = _details(
        [_call_json("a"), _call_json("b", {"n": 1}), _call_json("c")],
        [_call_json("b", {"n": 2}), _call_json("c"), _call_json("a")],
    )
    assert format_diff(details) == (
        "tool calls of turn 1 (- expected, + actual, = both, > moved):",
        "- b(n=1)",
        "+ b(n=2)",
        "= c",
        "> a",
    )


def test_diff_counts_omitted_calls() -> None:
    lines = format_diff(_details([_call_json("a")] * (MAX_CALLS + 7), []))
    assert lines[-1] == "… and 7 more"


def _call(name: str, **arguments: Any) -> CallContent:
    return CallContent(name=name, arguments=arguments)


def _expected(name: str, **arguments: Any) -> ExpectedCall:
    return ExpectedCall(name=name, arguments=arguments or None)


def _turn(**given: Any) -> TurnContent:
    return TurnContent(**{"user": "x", "answer": "Yes.", **given})


@pytest.mark.parametrize(
    ("turns", "lines"),
    [
        pytest.param([_turn()], [], id="nothing is expected"),
        pytest.param([_turn(expected_answer="Yes.", baseline="same")], [], id="as expected"),
        pytest.param([_turn(baseline="same")], [], id="as in the baseline"),
        pytest.param(
            [_turn(expected_answer="Yes. It is free.", answer="Yes. It costs 5 EUR. Bye.")],
            ["- It is free.", "+ It costs 5 EUR. Bye."],
            id="from the first sentence on",
        ),
        pytest.param(
            [_turn(expected_answer="Yes. Bye.", answer="Yes.")], ["- Bye."], id="end is missing"
        ),
        pytest.param(
            [_turn(expected_answer="Yes.", answer=None)],
            ["- Yes.", "+ (no answer)"],
            id="no answer",
        ),
        pytest.param(
            [
                _turn(expected_calls=(_expected("f", a=1),), calls=(_call("f", a=1),)),
                _turn(
                    expected_calls=(_expected("f"), _expected("g", a=1)),
                    calls=(_call("f", b=2), _call("g", a=2)),
                ),
            ],
            ["- g(a=1)", "+ g(a=2)"],
            id="later turn, arguments",
        ),
        pytest.param(
            [_turn(expected_calls=(), calls=(_call("f", a=1),))],
            ["+ f(a=1)"],
            id="unexpected call",
        ),
        pytest.param(
            [
                _turn(
                    expected_calls=(_expected("f", a=1), _expected("g", a=1)),
                    calls=(_call("g", a=1), _call("f", a=1)),
                )
            ],
            ["! f(a=1) was called later than expected"],
            id="moved call",
        ),
        pytest.param(
            [_turn(expected_calls=(_expected("f", a=1),), calls=(_call("open", a=1),))],
            ["- f(a=1)", "+ open(a=1)"],
            id="call of another tool",
        ),
        pytest.param(
            [
                _turn(
                    expected_calls=(_expected("book", seats=[{"row": 1}, {"row": 2}], to="Rome"),),
                    calls=(_call("book", seats=[{"row": 1}, {"row": 3}], to="Rome"),),
                )
            ],
            ["- book(seats[1].row=2, …)", "+ book(seats[1].row=3, …)"],
            id="nested argument",
        ),
        pytest.param(
            [
                _turn(
                    expected_calls=(_expected("f", a={"b": 1, "c": {}}),),
                    calls=(_call("f", a={"b": 1, "d": [2]}),),
                )
            ],
            ["- f(a.c={}, …)", "+ f(a.d[0]=2, …)"],
            id="nested argument on one side",
        ),
        pytest.param(
            [_turn(baseline=BaselineTurn(answer="No.", calls=(_expected("f", a=1),)))],
            ["- f(a=1)", "- No.", "+ Yes."],
            id="baseline without an eval case",
        ),
    ],
)
def test_first_difference_is_a_diff(turns: list[TurnContent], lines: list[str]) -> None:
    found = find_difference(RunContent(turns=tuple(turns)), "baseline")
    shown = [] if found is None else [line for _, part in found.list_parts() for line in part]
    assert shown == lines


def _compare(expected: list[ExpectedCall], actual: list[CallContent]) -> RunDifference:
    turn = _turn(expected_calls=tuple(expected), calls=tuple(actual))
    found = find_difference(RunContent(turns=(turn,)), "expected")
    assert found is not None
    return found


def test_renamed_tool_is_shown_before_changed_arguments() -> None:
    """An earlier call with other arguments does not hide it."""
    found = _compare(
        [_expected("find", id=1), _expected("note", id=1), _expected("refund", id=1)],
        [_call("find", id=2), _call("note", id=2), _call("pay", id=1)],
    )
    [calls] = found.calls
    assert calls.lines == (
        *("- refund(id=1)", "+ pay(id=1)"),
        *("- find(id=1)", "+ find(id=2)", "- note(id=1)", "+ note(id=2)"),
    )
    assert calls.rows == (2, 3, 0, 1)
    assert found.format_more() == ""


def test_call_of_each_kind_is_shown_before_a_second_one() -> None:
    """No kind is only counted: those that do not fit are named."""
    repeated = [_expected("find", id=number) for number in range(9)]
    found = _compare(
        [*repeated, _expected("refund", id=1)],
        [*(_call("find", id=number + 100) for number in range(9)), _call("mail", to="x")],
    )
    [calls] = found.calls
    assert calls.lines[:4] == ("- refund(id=1)", '+ mail(to="x")', "- find(id=0)", "+ find(id=100)")
    assert len(calls.lines) == MAX_CALL_LINES
    assert found.format_more() == "and 6 more differences"
    many = _compare(
        [*(_expected(f"tool_{number}", id=1) for number in range(12)), _expected("g", a=1, b=2)],
        [_call("g", a=2, b=3)],
    )
    assert many.format_more() == (
        "and 5 more differences: missing tool_8, tool_9, tool_10, tool_11; other arguments g (a, b)"
    )
    assert many.format_more(with_calls=False) == ""


def test_equal_calls_are_shown_once() -> None:
    found = _compare([], [_call("refund", amount=99)] * 6)
    [calls] = found.calls
    assert calls.lines == ("+ refund(amount=99)",)
    assert found.format_more() == "and 5 more differences"


def test_call_that_was_repeated_elsewhere_is_not_only_moved() -> None:
    found = _compare(
        [_expected("f", a=1), _expected("g", a=1)],
        [_call("g", a=1), _call("f", a=1), _call("f", a=1)],
    )
    [calls] = found.calls
    assert calls.lines == ("+ f(a=1)", "! f(a=1) was called later than expected")


def test_turn_with_a_missing_tool_comes_before_one_with_other_arguments() -> None:
    turns = (
        _turn(expected_calls=(_expected("f", a=1),), calls=(_call("f", a=2),)),
        _turn(expected_calls=(_expected("g", a=1),)),
    )
    found = find_difference(RunContent(turns=turns), "expected")
    assert found is not None
    assert [each.turn for each in found.calls] == [2, 1]


def test_worst_call_of_a_check_is_described() -> None:
    details = _details([_call_json("a", {"n": 1}), _call_json("b")], [_call_json("a", {"n": 2})])
    assert describe_worst_call(details) == "turn 1: missing `b`"


def test_tool_calls_come_before_the_answer_and_others_are_counted() -> None:
    turns = (
        _turn(expected_answer="Yes."),
        _turn(
            expected_answer="No.",
            expected_calls=(_expected("f", a=1), _expected("g"), _expected("h", a=1)),
            calls=(_call("f", a=2), _call("g"), _call("i", a=2)),
        ),
        _turn(expected_answer="No.", expected_calls=(_expected("f", a=1),)),
    )
    found = find_difference(RunContent(turns=turns), "baseline")
    assert found is not None
    assert list(found.list_parts()) == [
        (
            "tool calls of turn 2 (- expected, + actual)",
            ("- h(a=1)", "+ i(a=2)", "- f(a=1)", "+ f(a=2)"),
        ),
        ("tool calls of turn 3 (- expected, + actual)", ("- f(a=1)",)),
        ("answer of turn 2 (- expected, + actual)", ("- No.", "+ Yes.")),
    ]
    assert (found.more_calls, found.more_answers) == (0, 1)
    assert found.format_more() == "and 1 more difference"


def test_moved_call_counts_once() -> None:
    turn = _turn(
        expected_calls=(_expected("f", a=1), _expected("g", a=1)),
        calls=(_call("g", a=1), _call("f", a=1)),
    )
    found = find_difference(RunContent(turns=(turn,)), "baseline")
    assert found is not None
    assert found.more_calls == 0


def test_baseline_is_named_as_reference() -> None:
    turn = _turn(baseline=BaselineTurn(answer="No.", calls=()))
    found = find_difference(RunContent(turns=(turn,)), "baseline")
    assert found is not None
    [(label, _)] = found.list_parts()
    assert label == "answer of turn 1 (- baseline, + this run)"


def test_long_texts_are_wrapped_and_shortened() -> None:
    turn = _turn(expected_answer="word " * 200, answer="other\n" * 200)
    found = find_difference(RunContent(turns=(turn,)), "baseline")
    assert found is not None
    assert found.answer is not None
    assert len(found.answer.lines) <= 6
    assert max(map(len, found.answer.lines)) <= WIDTH + 2


def test_value_that_differs_late_is_shown() -> None:
    text = "We are sorry that it arrived broken, and take it back at once, " * 4
    turn = _turn(
        expected_answer=f"{text}for 39.90 EUR.",
        answer=f"{text}for 9000.00 EUR.",
        expected_calls=(_expected("refund", note=f"{text}39.90", a=text, b=text),),
        calls=(_call("refund", note=f"{text}9000.00", a=f"{text}.", b=f"{text}!"),),
    )
    found = find_difference(RunContent(turns=(turn,)), "baseline")
    assert found is not None
    shown = ["\n".join(part) for _, part in found.list_parts()]
    assert all("39.90" in part and "9000.00" in part for part in shown)


BEFORE = BaselineTurn(answer="Maybe.", calls=(_expected("f", a=1),))


def test_run_is_compared_with_the_baseline_also_where_answers_are_expected() -> None:
    same = _turn(expected_answer="No.", baseline="same")
    changed = _turn(expected_calls=(), expected_answer="Perhaps.", baseline=BEFORE)
    found = find_difference(RunContent(turns=(same, changed)), "baseline")
    assert found is not None
    assert list(found.list_parts()) == [
        ("tool calls of turn 2 (- baseline, + this run)", ("- f(a=1)",)),
        ("answer of turn 2 (- baseline, + this run)", ("- Maybe.", "+ Yes.")),
    ]
    assert (found.format_head(), found.format_more()) == ("", "")
    expected = find_difference(RunContent(turns=(same, changed)), "expected")
    assert expected is not None
    assert list(expected.list_parts()) == [
        ("answer of turn 1 (- expected, + actual)", ("- No.", "+ Yes.")),
    ]
    assert expected.format_more() == "and 1 more difference"


def test_run_that_is_as_in_the_baseline_is_compared_with_what_is_expected() -> None:
    same = _turn(expected_answer="No.", baseline="same")
    found = find_difference(RunContent(turns=(same,)), "baseline")
    assert found is not None
    assert found.format_head() == "the same calls and answers as in the baseline"
    assert list(found.list_parts()) == [
        ("answer of turn 1 (- expected, + actual)", ("- No.", "+ Yes.")),
    ]


def test_turn_that_the_baseline_lacks_is_compared_with_what_is_expected() -> None:
    turns = (_turn(baseline="same"), _turn(expected_answer="No."))
    found = find_difference(RunContent(turns=turns), "baseline")
    assert found is not None
    assert [label for label, _ in found.list_parts()] == ["answer of turn 2 (- expected, + actual)"]


def test_turn_that_the_baseline_lacks_too_is_not_named_as_missing() -> None:
    missing = _turn(expected_answer="No.", answer=None, missing=True)
    changed = _turn(expected_answer="Yes.", baseline=BEFORE)
    found = find_difference(RunContent(turns=(changed, missing)), "baseline")
    assert found is not None
    assert found.format_head() == ""
    lost = TurnContent(user="x", answer=None, missing=True, baseline=BEFORE)
    found = find_difference(RunContent(turns=(changed, lost)), "baseline")
    assert found is not None
    assert found.format_head() == "turn 2 is missing"


def test_missing_turns_are_named() -> None:
    turns = [_turn(), *(_turn(expected_answer="No.", answer=None, missing=True) for _ in "ab")]
    found = find_difference(RunContent(turns=tuple(turns)), "baseline")
    assert found is not None
    assert found.format_missing_turns() == "turns 2, 3 are missing"
    assert (list(found.list_parts()), found.more_answers) == ([], 0)
