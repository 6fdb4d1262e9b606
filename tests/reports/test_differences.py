"""The first call and sentence of a run that differ."""

from typing import Any

import pytest

from agentci._util.text.change import ABSENT, ArgumentChange
from agentci.model.result import BaselineTurn, CallContent, ExpectedCall, RunContent, TurnContent
from agentci.model.values import replace
from agentci.reports.differences import (
    MAX_CALL_LINES,
    RunDifference,
    find_difference,
    shorten_answers,
)
from agentci.reports.short_facts import describe_changes
from agentci.reports.tool_calls import WIDTH


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
        pytest.param(
            [
                _turn(
                    expected_calls=(_expected("f", a=1),),
                    calls=(
                        replace(_call("f", a=2), result={"error": "no 2"}, failed=True),
                        replace(_call("f", a=1), result={"error": "busy"}, failed=True),
                    ),
                )
            ],
            ["+ f(a=2)", "! f failed: no 2"],
            id="a tool fails",
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


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    name = "lookup_order_status_with_all_details_of_the_customer"
    expected = [_expected(f"{name}_{number}", id=1) for number in range(MAX_CALL_LINES + 2)]
    assert _compare(expected, []).format_more() == (
        "and 2 more differences: missing lookup_order_status_…s_of_the_customer_8, "
        "lookup_order_status_…s_of_the_customer_9"
    )


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
    assert found.format_head() == "turns 2, 3 are missing"
    assert (list(found.list_parts()), found.more_answers) == ([], 0)


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        (
            f"Yes, opened headphones can be returned {'and we pay for it. ' * 6}",
            f"Yes. Opened headphones can be returned {'and we pay for it. ' * 6}It is 4.95 EUR.",
            ("pay for it", "4.95 EUR"),
        ),
        (
            f"Yes, {'we will send the parcel to you. ' * 5}It is blue.",
            f"yes! {'We will send the parcel to you. ' * 5}It is red.",
            ("blue", "red"),
        ),
        (f"Yes, {'we will send it ' * 9}", f"Yes. {'We will send it ' * 9}", ("Yes,", "Yes.")),
        (f"It costs 4 EUR. {'Thanks. ' * 20}", f"It costs 5 EUR. {'Bye. ' * 20}", ("4", "5")),
    ],
)
def test_answers_are_cut_around_a_fact_or_word(
    expected: str, actual: str, shown: tuple[str, str]
) -> None:
    """Punctuation and case come first, and say nothing."""
    for text, part in zip(shorten_answers(expected, actual, 60), shown, strict=True):
        assert part in text
        assert len(text) <= 61


def test_answers_are_cut_around_the_value_that_a_check_names() -> None:
    """Where only one of them has it; beside it is the most similar sentence of the other one."""
    old, new = (
        f"It costs {price} EUR. {'Our shop is open. ' * 9}Return it within {days}. {'Bye. ' * 20}"
        for price, days in ((50, "30 days"), (75, "14 days"))
    )
    for named in (["30 days"], ["no such value", "14 DAYS"]):
        shown = shorten_answers(old, new, 60, named)
        assert ["30 days" in shown[0], "14 days" in shown[1]] == [True, True]
    assert all("EUR" in each for each in shorten_answers(old, new, 60, ["EUR", "no such value"]))


def test_argument_that_only_one_run_has_is_named_before_changed_ones() -> None:
    changes = [ArgumentChange("reason", "a", "b"), ArgumentChange("notify", ABSENT, "true")]
    names = [each.name for each in describe_changes("cancel_order", changes).quotes]
    assert names == ["cancel_order notify", "reason"]
