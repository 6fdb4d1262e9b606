"""What one line about a cause shows: the fact that differs, on one line of the page."""

import re
from typing import Any

import pytest

from agentci.model.result import BaselineTurn, CallContent, ExpectedCall, TurnContent
from agentci.reports.cause_sections import Layout, make_cause_sections
from agentci.reports.page_height import estimate_height
from agentci.reports.short_facts import Quote, describe_answers, list_named_values
from tests.reports.test_failure_patterns import case_of, report_of, tool_errors

REFUND = {"order_id": "4722", "amount": "129.00", "reason": "damaged"}


def _list_lines(*cases: tuple[Any, ...], name: str = "tone") -> list[str]:
    """The lines about causes of a comment, without the marks of the list."""
    given = [(turns, {"evaluator": name, **more}) for turns, more in cases]
    sections = make_cause_sections(report_of(*given), Layout(causes=0), report_url="")
    found = [*sections][1]
    return [block.removeprefix("- ").rstrip("\n") for block in found.blocks]


def _turn(calls: list[Any], before: list[Any], answer: str = "Done.") -> TurnContent:
    """A turn with calls, and with others in the baseline."""
    return TurnContent(
        user="Please refund it.",
        answer=answer,
        calls=tuple(CallContent(name=name, arguments=given) for name, given in calls),
        baseline=BaselineTurn(
            answer="Done.",
            calls=tuple(ExpectedCall(name=name, arguments=given) for name, given in before),
        ),
    )


@pytest.mark.parametrize(
    ("now", "before", "line"),
    [
        (
            [[("refund", {**REFUND, "amount": "139.00"})]],
            [[("refund", REFUND)]],
            "`refund amount 129.00 → 139.00`",
        ),
        (
            [[("cancel", {"id": 1, "why": "wish", "notify": True})]],
            [[("cancel", {"id": 1, "why": "mail"})]],
            "`cancel notify absent → true`, `why mail → wish`",
        ),
        (
            [[("refund", REFUND)], []],
            [[], [("refund", REFUND)]],
            "calls `refund` in turn 1 instead of 2",
        ),
        ([[("pay", {"id": 1})]], [[("refund", {"id": 1})]], "`refund(id=1) → pay(id=1)`"),
        ([[("refund", {"id": 1})]], [[]], "`+ refund(id=1)`"),
        ([[]], [[("refund", {"id": 1})]], "`- refund(id=1)`"),
        (
            [[("a", {}), ("b", {"x": 1})]],
            [[("b", {"x": 1}), ("a", {})]],
            "`b` was called later than in the baseline",
        ),
    ],
)
def test_calls_that_differ_are_in_the_line(now: Any, before: Any, line: str) -> None:
    turns = (_turn(*sides) for sides in zip(now, before, strict=True))
    misses = ["turn 1: the tool calls differ"]
    assert _list_lines(case_of(*turns, misses=misses)) == [f"`c0`: {line} · tone"]


def test_no_case_is_named_where_only_the_rest_has_room() -> None:
    before, now = {**REFUND, "method": "original_payment"}, {**REFUND, "method": "store_credit"}
    turn = _turn([("refund_order", now)], [("refund_order", before)])
    cases = [case_of(turn, misses=["turn 1: the tool calls differ"])] * 2
    change = "`refund_order method original_payment \N{RIGHTWARDS ARROW} store_credit`"
    name = "tool_trajectory_avg_score_of_all_turns"
    assert _list_lines(*cases, name=name) == [f"2 cases: {change} \N{MIDDLE DOT} {name}"]
    [line] = _list_lines(*cases, name="tone")
    assert line == f"2 cases, e.g. `c0`: {change} \N{MIDDLE DOT} tone"


def test_causes_without_a_line_of_their_own_share_one() -> None:
    cases = [
        *(
            case_of(_turn([(f"pay_{name}", {})], []), evaluator=f"e_{name}", misses=[f"bad {name}"])
            for name in "abcdef"
            for _ in range(2)
        ),
    ]
    sections = [*make_cause_sections(report_of(*cases), Layout(causes=0, further=3), report_url="")]
    *_, line = sections[1].blocks
    assert line == "- 6 more cases: `+ pay_d()`; `+ pay_e()`; `+ pay_f()`\n"
    sections = [*make_cause_sections(report_of(*cases), Layout(causes=0, further=1), report_url="")]
    *_, line = sections[1].blocks
    assert line.startswith("- 10 more cases: `+ pay_b()`; ")
    assert line.endswith("; \N{HORIZONTAL ELLIPSIS} and 1 more\n")


def test_tool_is_left_out_before_values_are_cut() -> None:
    quote = Quote("refund_order method", "original_payment", "store_credit")
    values = "original_payment \N{RIGHTWARDS ARROW} store_credit"
    assert quote.write(51) == f"refund_order method {values}"
    assert quote.write(50) == f"method {values}"
    assert "\N{HORIZONTAL ELLIPSIS}" in quote.write(36)


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        pytest.param(
            "You can return it within 30 days of delivery. The return is free.",
            "You can return it within 14 days of delivery. The return costs 4.99 EUR.",
            "`30 days → 14 days`, `+ 4.99 EUR`",
            id="facts",
        ),
        pytest.param(
            "It has a warranty of 24 months, until 2 March 2028.",
            "It has a warranty of 12 months, until 2 March 2027.",
            "`24 months → 12 months`, `2028 → 2027`",
            id="several facts",
        ),
        pytest.param(
            "Normal wear is covered by it.",
            "Normal wear is not covered by it.",
            "`covered → not covered`",
            id="negation",
        ),
        pytest.param(
            "Your flight to Berlin is booked.",
            "Your flight to Paris is booked.",
            "`Berlin → Paris`",
            id="a word",
        ),
        pytest.param(
            '{"amount": 5, "ok": true}', '{"amount": "5", "ok": true}',
            '`amount: 5 → amount: "5"`', id="JSON",
        ),
        pytest.param(
            "It weighs 5 kg in total.", "It weighs 11 lb in total.", "`5 kg → 11 lb`",
            id="another unit",
        ),
        pytest.param(
            "The red car and the blue bike stand in the old yard near the big house.",
            "The green car and the white bike stand in the new yard near the small house.",
            "answers `The green car and the white bike stand in the…`",
            id="too many words",
        ),
        pytest.param(
            f"It is red. {'So it is. ' * 700}", f"It is blue. {'So it is. ' * 700}",
            "answers `It is blue. So it is. So it is. So it is. So it…`",
            id="too long to compare words",
        ),
        pytest.param("B", "A", "answer `B → A`", id="values"),
        pytest.param("Yes.", None, "no answer", id="none"),
        pytest.param("Yes.", " ", "an empty answer", id="empty"),
        pytest.param(
            "Your lamp is in transit and should arrive on 5 March.",
            "I could not reach the carrier just now. Please try again later.",
            "answers `I could not reach the carrier just now. Please…`",
            id="another answer begins where it begins",
        ),
        pytest.param(
            "I am sorry. Your lamp is in transit and should arrive on 5 March.",
            "I am sorry. The carrier does not say where it is.",
            "answers `The carrier does not say where it is.`",
            id="the sentences before are the same",
        ),
    ],
)  # fmt: skip
def test_answers_are_shown_by_what_differs(expected: str, actual: str, shown: str) -> None:
    assert describe_answers(expected, actual).write(66, str, lambda text: f"`{text}`") == shown


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("the answer does not contain '30 days'", ("30 days",)),
        ('contains "14 days", not `30 days` or “a month”', ("14 days", "30 days", "a month")),
        ("the customer's order isn't the shop's", ()),
        (f"expected '{'long ' * 9}', got 'b'", ("b",)),
    ],
)
def test_values_that_a_reason_quotes_are_listed(reason: str, values: tuple[str, ...]) -> None:
    assert list_named_values([reason]) == values


def test_value_that_a_check_names_is_the_first_fact() -> None:
    old = "It costs 50 EUR, is repaired for 24 months, and can be sent back within 30 days."
    new = "It costs 75 EUR, is repaired for 24 months, and can be sent back within 14 days."
    facts = [describe_answers(old, new, named).quotes[0] for named in ((), ("30 days",))]
    assert [each.before.split()[0] for each in facts] == ["50", "30"]


def test_cause_shows_the_value_that_its_check_names() -> None:
    start = "The blue bike in the window of our shop in Rome costs {} EUR with its lamp. "
    middle = "Our workshop is open from Monday to Friday and repairs every bike that we sold. " * 9
    end = "You can send it back within {} if you do not like it. "
    old, new = (
        start.format(price) + middle + end.format(days) + middle
        for price, days in ((50, "30 days"), (75, "14 days"))
    )
    turn = TurnContent(
        user="Can I return it?", answer=new, baseline=BaselineTurn(answer=old, calls=())
    )
    turns, given = case_of(turn, misses=("the answer does not contain '30 days'",))
    assert _list_lines((turns, given))[0].startswith("`c0`: `30 days → 14 days`")
    report = report_of((turns, given))
    shown = "".join(
        block
        for section in make_cause_sections(report, Layout(causes=1, whole=0), report_url="")
        for block in section.blocks
    )
    assert re.search(r"^- .*30 days.*\n\+ .*14 days", shown, re.MULTILINE)


def test_reason_stands_beside_facts_where_there_is_room_and_replaces_other_words() -> None:
    facts = TurnContent(
        user="When?",
        answer="You can return it within 14 days of delivery, for 4.99 EUR.",
        expected_answer="You can return it within 30 days of delivery.",
    )
    words = TurnContent(user="When?", answer="Soon, you fool.", expected_answer="In spring.")
    reasons = ["no tool returned 4.99"], ["it is rude"]
    cases = [case_of(turn, misses=why) for turn, why in zip((facts, words), reasons, strict=True)]
    assert _list_lines(*cases) == [
        "`c0`: `30 days → 14 days`, `+ 4.99 EUR` (no tool returned 4.99) · tone",
        "`c1`: it is rude · tone",
    ]


def test_failed_tool_and_missing_turn_are_named() -> None:
    missing = TurnContent(user="And?", answer=None, expected_answer="Done.", missing=True)
    asked = TurnContent(user="Hello", answer="Yes?", expected_answer="Yes?")
    failed = TurnContent(
        user="Where?",
        answer="Try again.",
        expected_answer="It arrives on 5 March.",
        calls=(CallContent(name="track", result={"error": "TimeoutError"}, error=True),),
    )
    lines = _list_lines(
        case_of(failed, **tool_errors("`track` failed: TimeoutError")), case_of(asked, missing)
    )
    assert lines == [
        "`c0`: `track` failed: TimeoutError · no_tool_errors",
        "`c1`: turn 2 is missing · tone",
    ]


@pytest.mark.parametrize("name", ["tone", "tool_trajectory_avg_score"])
@pytest.mark.parametrize("words", [1, 9, 60])
def test_line_is_one_line_of_the_page(words: int, name: str) -> None:
    """Also with long values, which are cut on both sides."""
    values = [" ".join(f"{each}{n}" for n in range(words)) for each in ("customer", "supplier")]
    sides: list[Any] = [
        [("cancel_order", {"id": n, "why": value})] for n, value in enumerate(values)
    ]
    [line] = _list_lines(
        case_of(_turn(*sides), misses=["turn 1: the tool calls differ"]), name=name
    )
    assert estimate_height(f"- {line}") == estimate_height("- x")
    assert " → " in line


def test_name_of_an_evaluator_is_cut_at_the_end_of_the_line() -> None:
    calls: list[Any] = [
        [("cancel_order", {"notify": each, "reason": each})] for each in ("it is late", "it is not")
    ]
    name = "a_very_long_name_of_an_evaluator_that_takes_the_whole_line_and_more"
    [line] = _list_lines(
        case_of(_turn(*calls), misses=["turn 1: the tool calls differ"]), name=name
    )
    assert line.endswith("…")
    assert estimate_height(f"- {line}") == estimate_height("- x")


def test_hostile_names_stay_code() -> None:
    [line] = _list_lines(case_of(_turn([("a`b|<b>", {"x`": "`\n# y"})], [])))
    assert "<b>" not in line
    assert "\n" not in line
