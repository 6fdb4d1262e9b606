"""Which failed cases of a refund agent are joined, and that what is worse in one is shown."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from agentci.model.case import ChangedResult, ChangedText, DialogueTurn, RunChanges
from agentci.model.result import (
    BaselineCheck,
    BaselineTurn,
    CallContent,
    ExpectedCall,
    Report,
    RunContent,
    TurnContent,
)
from agentci.model.values import replace
from agentci.reports.changed_runs import list_changed_runs
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.contents import StoredContents, reduce_content
from agentci.reports.failures import list_causes, name_causes
from agentci.reports.groups_and_totals import group_by_reason
from agentci.reports.outcomes import list_case_outcomes
from agentci.reports.run_content import encode_content
from tests.helpers.reports import Chunks, annotated, make_report, make_result, text_of
from tests.reports.html.pages import data_of

FIXED = "the answer is wrong"


def _turn(answer: str | None, expected: str | None = None, **given: Any) -> TurnContent:
    return TurnContent(user="Please refund it.", answer=answer, expected_answer=expected, **given)


def _refund(amount: Any, given: Any = None, **others: Any) -> TurnContent:
    """A turn that should refund ``amount`` and refunds ``given``."""
    arguments = {"order_id": "4720", **others}
    return _turn(
        "Done.",
        expected_calls=(ExpectedCall(name="refund", arguments={**arguments, "amount": amount}),),
        calls=(CallContent(name="refund", arguments={**arguments, "amount": given}),),
    )


def case_of(
    *turns: TurnContent, misses: Sequence[str] = (FIXED,), **result: Any
) -> tuple[Any, ...]:
    return turns, {"misses": misses, **result}


def _slow(limit: str = "time <= 5 s") -> dict[str, Any]:
    misses = [f"turn 1 took 5.{len(limit)} s"]
    return {"evaluator": "limit", "type": "check", "criterion": limit, "misses": misses}


def report_of(*cases: tuple[Any, ...], level: Any = "full") -> Report:
    """A report of failed cases ``c0``, ``c1``, ..., newly failing if a turn has a baseline."""
    chunks, results, baseline = Chunks(), [], {}
    for number, (turns, given) in enumerate(cases):
        result = make_result("failed", 0.0, case=f"c{number}", **given)
        content = chunks.append(encode_content(reduce_content(RunContent(turns=turns), level)))
        result = replace(result, case=replace(result.case, content=content))
        results.append(result)
        if turns[0].baseline is not None:
            before = tuple(_restore(turn) for turn in turns)
            kept = chunks.append(encode_content(RunContent(turns=before)))
            baseline[result.id] = BaselineCheck(status="passed", score=1.0, content=kept)
    contents = StoredContents(chunks=chunks, redact=lambda content: content)
    return replace(make_report(results), contents=contents, baseline=baseline)


def _restore(turn: TurnContent) -> TurnContent:
    """The turn as it was in the baseline."""
    if not isinstance(turn.baseline, BaselineTurn):
        return replace(turn, baseline=None)
    calls = (CallContent(name=each.name, arguments=each.arguments) for each in turn.baseline.calls)
    return replace(turn, answer=turn.baseline.answer, calls=tuple(calls), baseline=None)


def test_terminal_says_that_a_failed_run_is_as_in_the_baseline() -> None:
    turn = _turn("Yes.", "No.", baseline="same")
    text = render_console(report_of(case_of(turn)), quiet=False, verbose=False, colour=False)
    assert (
        "    the same calls and answers as in the baseline\n"
        "    answer of turn 1 (- expected, + actual):\n      - No.\n      + Yes.\n"
    ) in text


def _variants(*cases: tuple[Any, ...], **given: Any) -> list[int | None]:
    return [each.variant for each in list_case_outcomes(report_of(*cases, **given))]


def _others(*cases: tuple[Any, ...], **given: Any) -> list[str]:
    causes = list_causes(report_of(*cases, **given))
    described = [causes.describe(group) for group in chain(causes.new, causes.known)]
    return [cause.format_others(str, str) for cause in described]


PARCEL = "Your parcel arrives today. The return is free."
KETTLE = "The kettle is refunded. The return is free."


@pytest.mark.parametrize(
    ("cases", "clusters"),
    [
        pytest.param(
            [case_of(_turn("I cannot help.", PARCEL)), case_of(_turn("It costs 5 EUR.", KETTLE))],
            [0, 1],
            id="another answer with a fixed reason",
        ),
        pytest.param(
            [case_of(_turn("I cannot help.", PARCEL)), case_of(_turn("I cannot help.", KETTLE))],
            [0, 0],
            id="the same answer in place of others",
        ),
        pytest.param(
            [
                case_of(_turn("Your parcel arrives today.", PARCEL)),
                case_of(_turn("The kettle is refunded.", KETTLE)),
            ],
            [0, 0],
            id="the same sentence is missing",
        ),
        pytest.param(
            [
                case_of(_turn("Take it daily.", "Take it daily. Have a nice day!")),
                case_of(_turn("Take it daily.", "Take it daily. Never with alcohol!")),
            ],
            [0, 1],
            id="other sentences are missing",
        ),
        pytest.param(
            [
                case_of(_turn("I refund 49.90 EUR.", "I refund 39.90 EUR.")),
                case_of(_turn("I refund 9999 EUR.", "I refund 8.50 EUR.")),
            ],
            [0, 0],
            id="other amounts",
        ),
        pytest.param([case_of(_turn("No.")), case_of(_turn("hunter2"))], [0, 1], id="no reference"),
        pytest.param([case_of(_turn("No.")), case_of(_turn(None))], [0, 1], id="no answer"),
        pytest.param(
            [case_of(_turn("No.", "No.")), case_of(_turn("It is secret.", "It is secret."))],
            [0, 1],
            id="as expected, and refused by the evaluator",
        ),
        pytest.param(
            [case_of(_turn("No.", "Yes."), _turn(each, "A")) for each in ("A", "B")],
            [0, 1],
            id="another difference in a later turn",
        ),
        pytest.param(
            [case_of(_turn("No.", "Yes."), misses=(FIXED, *each)) for each in ((), ("leaks",))],
            [0, 1],
            id="a further finding",
        ),
        pytest.param(
            [case_of(_turn("No."), reasoning=f"{'x ' * 400}{end}") for end in ("rude", "a crime")],
            [0, 1],
            id="the end of a long reason",
        ),
        pytest.param(
            [
                case_of(_turn("", expected_calls=(), calls=tuple(
                    CallContent(name=name, arguments={}) for name in (*["find"] * 45, last)
                )))
                for last in ("find", "delete_customer")
            ],
            [0, 1],
            id="the last of many calls",
        ),
        pytest.param(
            [case_of(_turn("", calls=(CallContent(name=name),))) for name in ("find", "delete")],
            [0, 1],
            id="other calls without a reference",
        ),
        pytest.param(
            [case_of(_turn(f"{'a ' * 40_000}{end}", "x")) for end in ("ok", "stolen")],
            [0, 1],
            id="answers that are cut off",
        ),
        pytest.param(
            [
                case_of(_turn("No.", "Yes."), _turn(None, "Yes.", missing=True)),
                case_of(_turn("No.", "Yes."), _turn("Yes.", "Yes.")),
            ],
            [0, 1],
            id="a missing turn",
        ),
        pytest.param(
            [
                case_of(_turn("x", baseline=BaselineTurn(answer="Yes. Bye."), expected="A 1")),
                case_of(_turn("x", baseline=BaselineTurn(answer="No. Bye."), expected="B")),
                case_of(_turn("Yes.", baseline=BaselineTurn(answer="Yes. Bye."), expected="A 1")),
                case_of(_turn("No.", baseline=BaselineTurn(answer="No. Bye."), expected="B")),
            ],
            [0, 1, 2, 2],
            id="compared with the baseline",
        ),
        pytest.param(
            [case_of(_refund("8 EUR", "85.00 EUR")), case_of(_refund("119.00 EUR", "9000.00 EUR"))],
            [0, 0],
            id="other amounts of a call",
        ),
        pytest.param(
            [case_of(_refund("8.50 EUR", "8.50 USD")), case_of(_refund("8.50 EUR", "8.50 KWD"))],
            [0, 1],
            id="other texts of a call",
        ),
        pytest.param(
            [case_of(_refund("8.50 EUR", "-8.50 EUR")), case_of(_refund("8.50 EUR", "85.0 EUR"))],
            [0, 1],
            id="another sign",
        ),
        pytest.param(
            [
                case_of(replace(_refund("8.50", "8.50"), calls=()), misses=["x"]),
                case_of(_refund("8.50", "9.50"), misses=["x"]),
            ],
            [0, 1],
            id="no call",
        ),
    ],
)  # fmt: skip
def test_cases_are_joined_if_only_numbers_differ(
    cases: list[tuple[Any, ...]], clusters: list[int]
) -> None:
    assert _variants(*cases) == clusters


def test_values_that_the_user_gave_may_differ() -> None:
    def ask(city: str, other: str | None = None) -> tuple[Any, ...]:
        call = ExpectedCall(name="hours", arguments={"city": city})
        answer = f"I do not know the shop in {other or city}."
        turn = _turn(answer, "It opens at ten o'clock on each day.", expected_calls=(call,))
        called = CallContent(name="hours", arguments={"city": city})
        return case_of(replace(turn, user=f"When does it open in {city.lower()}?", calls=(called,)))

    assert _variants(ask("Leeds"), ask("York"), ask("Bath", "Moscow")) == [0, 0, 1]


def test_joined_cases_show_their_numbers() -> None:
    amounts = ("49.90", "4.95", "99999.00", "4.95")
    cases = [
        case_of(
            _turn(f"It is {each} EUR.", "It is 39.90 EUR."), misses=[f"no tool returned {each}"]
        )
        for each in amounts
    ]
    [others] = _others(*cases)
    assert others == (
        "3 more cases fail in the same way: c0 (answer 39.90 → 49.90), "
        "c1, c3 (the last 2: answer 39.90 → 4.95)"
    )
    report = report_of(*cases)
    assert list_causes(report).new[0][0].summary.id == "c2"
    comment, terminal = text_of(CommentReport(), report), _render_terminal(report)
    for number in amounts:
        assert number in comment.partition("<details>")[0]
        assert number in terminal


def test_reason_without_a_recorded_run_shows_its_numbers() -> None:
    cases = [
        case_of(_turn("x", "y"), misses=[f"turn {turn}: no tool returned {amount}, as it must"])
        for turn, amount in ((1, "8"), (1, "7.00"), (2, "7.00"))
    ]
    [others] = _others(*cases)
    assert others == (
        "2 more cases fail in the same way: c1 (turn 1: no tool returned 7.00, as it must), "
        "c2 (turn 2: no tool returned 7.00, as it must)"
    )


def test_joined_calls_show_only_the_argument_that_differs() -> None:
    text = "We are sorry, and take it back at once, with our best wishes. " * 4
    cases = [
        case_of(_refund("119.00 EUR", "9000.00 EUR", note=text)),
        case_of(_refund("8.50 EUR", "85.00 EUR", note=text)),
    ]
    [others] = _others(*cases)
    assert others == ("1 more case fails in the same way: c1 (refund: amount 8.50 EUR → 85.00 EUR)")
    nested = [
        case_of(
            _refund({"lines": [{"sum": 1}, {"sum": each}]}, {"lines": [{"sum": 1}, {"sum": 7}]})
        )
        for each in (5, 3)
    ]
    [others] = _others(*nested)
    assert others == ("1 more case fails in the same way: c1 (refund: amount.lines[1].sum 3 → 7)")
    long = [
        case_of(_refund(f"{text} 5 EUR. {text}", f"{text} {each} EUR. {text}")) for each in (7, 66)
    ]
    assert _others(*long) == ["1 more case fails in the same way: c0 (refund: amount 5 → 7)"]


def test_numbers_of_cases_without_a_name_are_ranges() -> None:
    cases = [
        case_of(_turn("x", "x"), misses=[f"turn 1 took {each} s, more than 4 s"], type="latency")
        for each in (5, 4.1, 77.5, 6, 6, 7, 8, 4.5)
    ]
    [others] = _others(*cases)
    assert others == (
        "7 more cases fail in the same way: c6 (turn 1 took 8 s, more than 4 s), "
        "c5 (turn 1 took 7 s, more than 4 s), c3, c4 (the last 2: turn 1 took 6 s, more than 4 s), "
        "c0 (turn 1 took 5 s, more than 4 s), "
        "… and 2 more (turn 1 took 4.1 to 4.5 s, more than 4 s)"
    )


def _refund_unasked(item: str, order: str, price: str, *, paid: str = "") -> tuple[Any, ...]:
    """A case in which an order is refunded without the question that the baseline asks."""
    paid = paid or price
    user = f"My {item} from order {order} is broken."
    start = f"I am sorry that your {item} arrived broken."
    find = CallContent(name="find", arguments={"id": order}, result={"price": price, "id": order})
    pay = CallContent(
        name="pay", arguments={"amount": paid}, result={"id": f"R{order}", "paid": paid}
    )
    turn = TurnContent(
        user=user,
        answer=f"{start} I have refunded {paid} EUR. The reference is R{order}.",
        calls=(find, pay),
        baseline=BaselineTurn(
            answer=f"{start} Shall I refund {price} EUR to your account right now?",
            calls=(ExpectedCall(name="find", arguments={"id": order}),),
        ),
    )
    return case_of(turn)


def test_ids_and_amounts_that_users_and_tools_gave_do_not_tell_cases_apart() -> None:
    """Nor do the words of an equal sentence."""
    orders = [("lamp", "4722", "89.95"), ("pair of new headphones", "4742", "24.50")]
    [others] = _others(*(_refund_unasked(*each) for each in orders))
    assert re.fullmatch("1 more case fails in the same way: c[01]", others)
    [paid] = _others(_refund_unasked(*orders[0], paid="5"), _refund_unasked(*orders[1], paid="900"))
    assert re.search(r'pay\(amount="(5|900)"\)', paid)


def test_ids_have_no_ranges() -> None:
    """Also not where the same number stands alone."""
    cases = [
        case_of(
            _turn("x", "x"),
            misses=[f'parcel GL-{n}-88 to {n}, track(id="no {n}") took {n - 4000} s'],
            type="latency",
        )
        for n in range(4001, 4009)
    ]
    [others] = _others(*cases)
    assert '(parcel GL-4003-88 to 4003, track(id="no 4003") took 3 s)' in others
    assert others.endswith('… and 2 more (parcel GL-…-88 to …, track(id="no …") took 1 to 2 s)')


def test_ids_that_the_user_gave_do_not_change_the_order() -> None:
    cases = []
    for order in ("1", "9"):
        call = ExpectedCall(name="cancel", arguments={"id": order})
        turn = _turn("Done.", "Done.", expected_calls=(call,))
        cases.append(case_of(replace(turn, user=f"Cancel {order}.")))
    report = report_of(*cases)
    results = [
        replace(each, case=replace(each.case, dialogue=(DialogueTurn(question=text, answer=None),)))
        for each, text in zip(report.results, ("Cancel 1.", "Cancel 9."), strict=True)
    ]
    causes = list_causes(replace(report, results=tuple(results)))
    assert [each.summary.id for each in causes.new[0]] == ["c0", "c1"]
    others = causes.describe(causes.new[0]).format_others(str, str)
    assert others == "1 more case fails in the same way: c1"


@pytest.mark.parametrize(
    ("called", "others"),
    [
        pytest.param(
            ("9", "10"), "1 more case fails in the same way: c1", id="the number of the user"
        ),
        pytest.param(
            ("9", "7"),
            '1 more case fails in the same way: c0 (cancel(id="9") is not expected)',
            id="another number",
        ),
    ],
)
def test_only_numbers_that_no_user_gave_are_shown(called: tuple[str, str], others: str) -> None:
    """A missing call with the number of its user is the same finding in each case."""
    numbers = ("9", "10")
    cases = []
    for number, given in zip(numbers, called, strict=True):
        turn = _turn(
            "Done.",
            "Done.",
            expected_calls=(ExpectedCall(name="stop", arguments={"id": number}),),
            calls=(CallContent(name="cancel", arguments={"id": given}),),
        )
        cases.append(case_of(replace(turn, user=f"Cancel {number}.")))
    report = report_of(*cases)
    results = [
        replace(
            each,
            case=replace(
                each.case, dialogue=(DialogueTurn(question=f"Cancel {number}.", answer=None),)
            ),
        )
        for each, number in zip(report.results, numbers, strict=True)
    ]
    causes = list_causes(replace(report, results=tuple(results)))
    [shown] = [causes.describe(group).format_others(str, str) for group in causes.new]
    assert shown == others


def test_ranges_do_not_name_what_another_user_gave() -> None:
    def ask(city: str, days: int) -> tuple[Any, ...]:
        call = ExpectedCall(name="hours", arguments={"city": city})
        turn = _turn(f"In {days} days in {city}.", "Today.", expected_calls=(call,))
        called = CallContent(name="hours", arguments={"city": city})
        return case_of(replace(turn, user=city, calls=(called,)))

    cities = ("Leeds", "York", "Bath", "Ely", "Hull", "Wells", "Ripon", "Truro")
    [others] = _others(*(ask(each, days) for days, each in enumerate(cities, start=1)))
    assert "c6 (answer Today. → In 7 days in Ripon.)" in others
    assert others.endswith("… and 2 more (answer Today. → In 1 to 2 days in ….)")


def test_cases_in_which_many_numbers_differ_are_not_joined() -> None:
    def count(*numbers: int) -> tuple[Any, ...]:
        return case_of(_turn(", ".join(map(str, numbers)), "none"))

    assert _variants(count(1, 2, 3, 4, 5), count(1, 2, 3, 4, 6), count(1, 7, 7, 7, 7)) == [0, 0, 0]
    many = (count(1, 2, 3, 4, 5), count(6, 7, 8, 9, 1), count(1, 2, 3, 4, 5))
    assert _variants(*many) == [0, 1, 0]
    long = [
        case_of(_turn(" ".join(map(str, range(start, start + 50))), "no")) for start in (1, 2, 1)
    ]
    assert _variants(*long) == [0, 1, 0]


def test_limits_on_amounts_do_not_depend_on_answers() -> None:
    for given in ({"type": "cost"}, {"type": "check", "criterion": "time <= 4 s"}):
        slow = [case_of(_turn(each, "x"), misses=["took 5 s"], **given) for each in ("a", "b")]
        assert _variants(*slow) == [0, 0]
    words = {"type": "check", "criterion": "words <= 4"}
    assert _variants(*(case_of(_turn(each, "x"), **words) for each in ("a", "b"))) == [0, 1]


def test_a_slow_case_with_another_fact_or_result_is_named() -> None:
    """Other words are expected of a model: only facts, and results of tools, are no chance."""
    report = report_of(*(case_of(_turn("Ok.", "Ok."), **_slow()) for _ in range(5)))
    words = ChangedText(before="Yes.", after="Sure.")
    found = ChangedResult(tool="find", before="[1]", after="[]")
    changes = [
        None,
        RunChanges(answer=words),
        RunChanges(answer=words, facts="14 days instead of 30 days"),
        RunChanges(results=(found,)),
        None,
    ]
    results = [
        replace(each, case=replace(each.case, changes=own))
        for each, own in zip(report.results, changes, strict=True)
    ]
    report = replace(report, results=tuple(results))
    [group] = list_causes(report).new
    assert list_causes(report).describe(group).format_similar(str) == (
        "2 more cases fail like this with other values or answers: c2, c3"
    )
    assert "with other values or answers: `c2`, `c3`" in text_of(CommentReport(), report)


def test_errors_are_joined_if_they_are_equal() -> None:
    results = [
        make_result("errored", case=f"c{n}", reason=f"exit code {each}")
        for n, each in enumerate((3, 137, 3))
    ]
    assert [each.cluster for each in list_case_outcomes(make_report(results))] == [0, 1, 0]


def test_errors_that_differ_only_in_ids_of_spans_are_joined() -> None:
    """Annotations and report.html join them as the comment does."""
    reason = "the turn (span {:016x}) ended with an error"
    results = [make_result("errored", case=f"c{n}", reason=reason.format(n)) for n in range(2)]
    report = make_report([*results, make_result("errored", case="d", reason="exit code 3")])
    assert [each.cluster for each in list_case_outcomes(report)] == [0, 0, 1]
    groups = group_by_reason(report.results)
    assert {reason: [each.id for each in cases] for (_, _, reason), cases in groups.items()} == {
        "the turn (span \u2026) ended with an error": ["c0", "c1"],
        "exit code 3": ["d"],
    }
    [alone] = group_by_reason(results[:1])
    assert alone[2] == reason.format(0)
    assert "2 cases: c0, c1: the turn (span \u2026) ended with an error" in annotated(report)


def test_errors_that_differ_only_in_uuids_and_temporary_files_are_joined() -> None:
    reason = "no row id_{0}0000000-0000-4000-8000-000000000000 in /tmp/run-{0}.db: exit code 3"
    results = [make_result("errored", case=f"c{n}", reason=reason.format(n)) for n in range(2)]
    [(_, _, joined)] = group_by_reason(results)
    assert joined == "no row \u2026 in \u2026: exit code 3"


def test_crashes_on_the_same_line_are_joined_whatever_they_say_about_the_case() -> None:
    def crash(line: int, exception: str) -> str:
        frames = f'  File "amounts.py", line {line}, in <module>\n    parse(text)\n'
        return f"exited with code 1: Traceback (most recent call last):\n{frames}{exception}"

    reasons = [
        crash(7, "ValueError: cannot parse 'SPRING5'"),
        crash(7, "ValueError: cannot parse 'SPRING45'"),
        crash(8, "ValueError: cannot parse 'SPRING5'"),
        crash(7, "KeyError: 'SPRING5'"),
        crash(7, "ValueError"),
    ]
    results = [
        make_result("errored", case=f"c{n}", reason=reason) for n, reason in enumerate(reasons)
    ]
    assert [each.cluster for each in list_case_outcomes(make_report(results))] == [0, 0, 1, 2, 0]
    groups = group_by_reason(results)
    assert [[each.id for each in cases] for cases in groups.values()] == [
        ["c0", "c1", "c4"],
        ["c2"],
        ["c3"],
    ]
    assert next(iter(groups))[2] == reasons[0]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("Evaluator `asks` sent nothing", "sent nothing (1 case"),
        (
            "The recorded run is not complete: the request is not in the recording: no GET",
            "the request is not in the recording: no GET (1 case",
        ),
    ],
)
def test_error_in_little_room_begins_with_what_happened(reason: str, shown: str) -> None:
    failed = (case_of(_turn(f"{n} {'word ' * 60}", PARCEL), evaluator=n) for n in "abcdefgh")
    report = report_of(*failed)
    errored = make_result("errored", case="e", evaluator="asks", reason=reason)
    text = text_of(CommentReport(), replace(report, results=(*report.results, errored)))
    assert f"- **errored:** `asks`: {shown}" in text


def test_crash_shows_its_exception_in_little_room() -> None:
    reason = (
        "Evaluator `amounts_are_grounded` exited with code 1: Traceback (most recent call last):\n"
        '  File "amounts.py", line 7, in <module>\n    parse(text)\n'
        "ValueError: cannot parse amount in 'SPRING5'"
    )
    crashed = [
        make_result("errored", case="e0", reason=reason),
        make_result("errored", case="e1", evaluator="asks", reason="Evaluator `asks` sent nothing"),
    ]
    report = report_of(
        *(case_of(_turn(f"{n} {'word ' * 60}", PARCEL), evaluator=n) for n in "abcdefgh")
    )
    text = text_of(CommentReport(), replace(report, results=(*report.results, *crashed)))
    assert "- **errored:** `asks`: sent nothing (1 case: `e1`)\n" in text
    assert (
        "- **errored:** `response_quality`: "
        "ValueError: cannot parse amount in 'SPRING5' (1 case: `e0`)\n"
    ) in text


def test_cases_of_one_cause_with_other_answers_are_named() -> None:
    cases = [
        case_of(_turn(answer, PARCEL), evaluator=evaluator)
        for answer, evaluator in (
            ("No.", "tone"),
            ("Never.", "tone"),
            ("Hm.", "tone"),
            ("No.", "x"),
        )
    ]
    report = report_of(*cases)
    causes = list_causes(report)
    described = [causes.describe(group) for group in causes.new]
    assert [cause.format_similar(str) for cause in described] == [
        "2 more cases fail like this with other values or answers: c1, c2",
        "",
    ]
    line = "- 2 more cases fail like this with other values or answers: `c1`, `c2`\n"
    assert line in text_of(CommentReport(), report)


def test_cause_is_represented_by_a_case_with_nothing_else_and_names_what_others_also_fail() -> None:
    baseline = BaselineTurn(answer=PARCEL, calls=())
    known = [case_of(_turn("Gone.", PARCEL, baseline=baseline)) for _ in range(5)]
    cases = [case_of(_turn("Gone.", PARCEL)), *known]
    report = report_of(*cases)
    # c1 and c2 are slower, too; c3 answers otherwise, and has no smaller score than c4 and c5.
    slow = [
        replace(
            make_result("failed", 0.0, case=each.case.id, evaluator="max_latency"), case=each.case
        )
        for each in report.results[1:3]
    ]
    report = replace(report, results=(*report.results, *slow))
    causes = list_causes(report)
    [group] = causes.new
    assert group[0].summary.id == "c3"
    assert causes.describe(group).format_similar(str) == (
        "2 more cases fail like this and also fail max_latency: c1, c2"
    )
    assert "and also fail `max_latency`: `c1`, `c2`" in text_of(CommentReport(), report)
    [cause] = data_of(report)["causes"]
    ranked = sorted(data_of(report)["cases"], key=lambda each: each.get("rank", 0))
    assert [each["id"] for each in ranked] == [each.summary.id for each in group]
    assert cause["cases"][0] == 3


@pytest.mark.parametrize(
    ("slow", "text"),
    [
        ((), "2 more cases fail like this with other values or answers"),
        ((1,), "2 more cases fail like this; 1 also fails max_latency"),
        ((1, 2), "2 more cases fail like this and also fail max_latency"),
    ],
)
def test_what_some_cases_of_a_cause_also_fail_is_named(slow: tuple[int, ...], text: str) -> None:
    report = report_of(*(case_of(_turn(answer, PARCEL)) for answer in ("No.", "Never.", "Hm.")))
    others = (
        replace(make_result("failed", 0.0, evaluator="max_latency"), case=report.results[n].case)
        for n in slow
    )
    causes = list_causes(replace(report, results=(*report.results, *others)))
    [group] = causes.new
    assert causes.describe(group).format_similar() == text


def _refund_product(product: str, number: int, *, calls: str = "refund") -> tuple[Any, ...]:
    """A refund of a product whose amount is wrong, or for which another tool is called."""
    arguments = {"product": product, "amount": f"{number}.90 EUR"}
    actual = {**arguments, "amount": f"{number}0 EUR"} if calls == "refund" else {"id": product}
    turn = TurnContent(
        user=f"Please refund my {product}.",
        answer=f"Your money for the {product} is on its way." if number % 2 else "Done.",
        expected_answer=f"I refund the {product}.",
        calls=(CallContent(name=calls, arguments=actual),),
        expected_calls=(ExpectedCall(name="refund", arguments=arguments),),
        baseline=BaselineTurn(
            answer=f"I refund the {product}.",
            calls=(ExpectedCall(name="refund", arguments=arguments),),
        ),
    )
    return case_of(turn, misses=[f"the amount for the {product} is not that of the order"])


def test_cases_that_differ_in_values_have_one_cause() -> None:
    """Whatever the product; another argument, tool or kind of difference is another cause."""
    products = ("kettle", "oven mitt", "Toaster", "clock", "lamp")
    wrong = [_refund_product(each, number) for number, each in enumerate(products, start=1)]
    replaced = [_refund_product(each, 7, calls="escalate") for each in products[:3]]
    quiet = _refund_product("mirror", 8, calls="pay")
    report = report_of(*replaced, *wrong, quiet)
    clusters = [each.cluster for each in list_case_outcomes(report)]
    assert clusters == [1, 1, 1, 0, 0, 0, 0, 0, 2]
    assert [len(group) for group in list_causes(report).new] == [5, 3, 1]


def test_words_of_a_reason_that_a_user_also_says_are_no_values() -> None:
    """Else 'does not contain' would be another cause where a question has these words."""
    questions = ("Where is it?", "Does it not work?", "What does the package contain?")
    misses = ["the answer does not contain '30 days'"]
    cases = [case_of(_turn("No.", question), misses=misses) for question in questions]
    assert [each.cluster for each in list_case_outcomes(report_of(*cases))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param({"misses": ["leaks a key"]}, {"misses": ["is rude"]}, False, id="findings"),
        pytest.param(
            {"misses": ["names 3 of 4 orders"]}, {"misses": ["names 1 of 9 orders"]}, True,
            id="numbers",
        ),
        pytest.param(
            {"misses": ["does not name `kettle`"]}, {"misses": ["does not name `lamp`"]}, True,
            id="quoted values",
        ),
        pytest.param(
            {"reasoning": "It never says hello."}, {"reasoning": "Quite impolite."}, True,
            id="texts of a judge model",
        ),
        pytest.param({"evaluator": "a"}, {"evaluator": "b"}, False, id="evaluators"),
        pytest.param({}, {"type": "latency"}, False, id="a limit on resources"),
    ],
)  # fmt: skip
def test_cause_is_what_happened_to_the_decisive_check(
    first: dict[str, Any], second: dict[str, Any], same: bool
) -> None:
    turns = [_turn(each, PARCEL) for each in ("No.", "Never.")]
    cases = [case_of(turn, **given) for turn, given in zip(turns, (first, second), strict=True)]
    found = [each.cluster for each in list_case_outcomes(report_of(*cases))]
    assert found == ([0, 0] if same else [0, 1])


def test_advisory_and_known_failures_do_not_decide_the_cause() -> None:
    """The order of the checks is that of what decides: required, then newly failing, then worst."""
    results = [
        make_result("failed", score, case=case, evaluator=name, required=required)
        for case, others in (("c0", ("advisory",)), ("c1", ("known",)))
        for name, score, required in (
            *((each, 0.0, each != "advisory") for each in others),
            ("decisive", 0.5, True),
        )
    ]
    known = {
        each.id: BaselineCheck(status="failed", score=0.0)
        for each in results
        if each.evaluator.name == "known"
    }
    outcomes = list_case_outcomes(replace(make_report(results), baseline=known))
    assert [each.cluster for each in outcomes] == [0, 0]
    assert [each.problems[0].evaluator.name for each in outcomes] == ["decisive"] * 2


def test_largest_cause_comes_first_and_advisory_ones_last() -> None:
    cases = [
        *(case_of(_turn("No.", PARCEL), evaluator="advisory", required=False) for _ in range(5)),
        *(case_of(_turn(each, PARCEL), evaluator="consent") for each in ("A.", "B.", "C.")),
        case_of(_turn("No.", PARCEL), evaluator="rare"),
    ]
    causes = list_causes(report_of(*cases))
    found = [(group[0].problems[0].evaluator.name, len(group)) for group in causes.new]
    assert found == [("consent", 3), ("rare", 1), ("advisory", 5)]


def test_without_content_only_the_reason_is_the_same() -> None:
    cases = [case_of(_turn("No.", "Yes.")), case_of(_turn("hunter2", "Yes."))]
    report = replace(report_of(*cases), content_limit="none")
    causes = list_causes(report)
    others = causes.describe(causes.new[0]).format_others(str, str)
    assert others == "1 more case fails for the same reason: c1"


def test_cases_of_another_evaluator_are_not_hidden_by_many_of_one() -> None:
    cases = [case_of(_turn(f"{chr(97 + n % 26) * (n + 2)}", PARCEL)) for n in range(300)]
    cases.append(case_of(_turn("Ok.", "Ok."), evaluator="no_secrets", misses=["contains a key"]))
    report = report_of(*cases)
    comment = text_of(CommentReport(), report)
    shown = comment.partition("<details>")[0]
    assert len(re.findall(r"^\*\*`c", shown, re.MULTILINE)) == 2
    assert "no_secrets" in shown
    assert "### Failures: 301 cases\n" in shown
    assert "299 more cases fail like this with other values or answers" in shown
    terminal = _render_terminal(report)
    assert "no_secrets" in terminal.partition("Evaluators\n")[0]
    assert "299 more cases fail like this with other values or answers" in terminal


def test_largest_folded_causes_are_one_line_each() -> None:
    answers = ["a"] * 9 + ["b"] * 8 + ["c"] * 7 + ["d"] * 6 + ["e"] * 5
    shown, _, _ = text_of(
        CommentReport(report_url="https://pages.example/r.html"),
        report_of(*(case_of(_turn(each, PARCEL), evaluator=each) for each in answers)),
    ).partition("<details>")
    lines = [line for line in shown.splitlines() if " cases, " in line]
    assert lines == [
        f"- {cases} cases, e.g. [`{case}`](https://pages.example/r.html#/case/{case}): "
        f"{FIXED} · {answer}"
        for cases, case, answer in ((7, "c17", "c"), (6, "c24", "d"), (5, "c30", "e"))
    ]


def test_replaced_tool_is_shown_behind_many_changed_calls() -> None:
    """In the comment, and in the terminal also where a check lists more calls than it shows."""
    names = [*(f"find_{n}" for n in range(12)), "refund"]
    expected = [(name, {"id": 1}) for name in names]
    actual = [*((name, {"id": 2}) for name in names[:-1]), ("pay", {"id": 1})]
    turn = _turn(
        "Done.",
        expected_calls=tuple(ExpectedCall(name=name, arguments=args) for name, args in expected),
        calls=tuple(CallContent(name=name, arguments=args) for name, args in actual),
    )
    sides = {
        side: [{"name": name, "args": args} for name, args in calls]
        for side, calls in (("expected", expected), ("actual", actual))
    }
    details = {"comparisons": [{"matched": False, **sides}]}
    report = report_of(case_of(turn, misses=[], details=details))
    for text in (text_of(CommentReport(), report), _render_terminal(report)):
        shown = text.partition("Evaluators")[0]
        assert "- refund(id=1)" in shown
        assert "+ pay(id=1)" in shown
        assert "and 9 more differences: other arguments find_3 (id), " in shown


def _render_terminal(report: Report) -> str:
    return render_console(report, quiet=False, verbose=False, colour=False)


def test_causes_have_different_names() -> None:
    """By tool, argument and kind; with a reason of their own, only if others have the same."""
    refunds = [_refund_product("kettle", 1, calls=tool) for tool in ("refund", "escalate", "pay")]
    named = name_causes(report_of(*refunds))
    reason = "response_quality: the amount for the kettle is not that of the order"
    assert [*named.values()] == [
        f"{reason} (refund called with another amount)",
        f"{reason} (refund not called; unexpected call of escalate)",
        f"{reason} (refund not called; unexpected call of pay)",
    ]
    assert name_causes(report_of(*refunds[:1])) == {}
    silent = [case_of(_turn(answer, PARCEL), misses=[]) for answer in ("No.", None)]
    name = "response_quality"
    kinds = [f"{name}: the answer differs", f"{name}: no answer"]
    assert [*name_causes(report_of(*silent)).values()] == kinds
    findings = [
        case_of(_turn("No.", PARCEL), misses=["is rude", *more]) for more in ([], ["is late"])
    ]
    assert [*name_causes(report_of(*findings)).values()] == [f"{name}: is rude (is late)"]


def test_causes_are_named_by_plain_phrases() -> None:
    phrases = {
        "missing": "refund not called",
        "unexpected": "unexpected call of refund",
        "differs": "refund called with other arguments",
        "moved": "refund called in another order",
        "forbidden": "forbidden call of refund",
        "allowed": "additional call of refund",
    }
    cases = []
    for mark in phrases:
        row = {"mark": mark, "expected": "refund(id=1)", "actual": "refund(id=1)", "note": ""}
        turn = {"satisfied": False, "title": "turn 1", "rows": [row]}
        details = {"trajectories": [turn]}
        cases.append(case_of(_turn("No.", PARCEL), misses=["is wrong"], details=details))
    named = name_causes(report_of(*cases)).values()
    assert {*named} == {f"response_quality: is wrong ({each})" for each in phrases.values()}


def test_forbidden_calls_come_first_then_the_most_frequent_causes() -> None:
    """Required before advisory, and of as many cases the most serious ones."""
    forbidden: dict[str, Any] = {"type": "check", "details": {"forbidden": ["refund"]}}
    cases = [
        *(case_of(_turn("No.", PARCEL), evaluator="polite", required=False) for _ in range(9)),
        *(case_of(_turn("Ok.", "Ok."), **_slow()) for _ in range(5)),
        *(case_of(_turn("Ok.", "Ok."), **_slow("tool calls <= 4")) for _ in range(4)),
        *(case_of(_turn("No.", PARCEL), evaluator="consent") for _ in range(3)),
        *(case_of(_turn("Ok.", "Ok."), **_required("send_mail")) for _ in range(2)),
        case_of(_turn("Ok.", "Ok."), **tool_errors("`pay` failed")),
        case_of(_turn("Ok.", "Ok."), evaluator="forbidden", **forbidden),
        case_of(_turn("Ok.", "Ok."), **{**_required("pay"), "evaluator": "pays"}),
    ]
    report = report_of(*cases)
    causes = list_causes(report)
    found = [(group[0].problems[0].evaluator.name, len(group)) for group in causes.new]
    assert found == [
        *(("forbidden", 1), ("limit", 5), ("limit", 4), ("consent", 3)),
        *(("required_tools", 2), ("no_tool_errors", 1), ("pays", 1), ("polite", 9)),
    ]
    assert [group[0].cluster for group in causes.new] == [*range(8)]
    comment = text_of(CommentReport(), report)
    assert comment.index("`c24`") < comment.index("`c9`") < comment.index("`c18`")


def test_cases_with_the_same_forbidden_call_have_one_cause() -> None:
    """Whatever else differs in them."""
    cases = [
        case_of(
            _turn(answer, PARCEL),
            evaluator="forbidden",
            type="check",
            misses=[f"`{tool}` was called"],
            details={"forbidden": [tool]},
        )
        for tool, answer in (("refund", PARCEL), ("refund", "Done."), ("remove", PARCEL))
    ]
    outcomes = list_case_outcomes(report_of(*cases))
    assert [each.cluster for each in outcomes] == [0, 0, 1]


def _required(tool: str) -> dict[str, Any]:
    return {"evaluator": "required_tools", "type": "check", "misses": [f"`{tool}` was not called"]}


def tool_errors(*misses: str) -> dict[str, Any]:
    limit = {"type": "check", "criterion": "tool errors <= 0"}
    return {"evaluator": "no_tool_errors", "misses": misses, **limit}


def _list_tracked(*tracked: tuple[str, RunChanges | None]) -> Report:
    """Cases whose answers differ, of parcels whose tracking failed, by error and changes."""
    cases = []
    for number, (error, changes) in enumerate(tracked):
        call = CallContent(name="track", arguments={"id": f"GL-{number}"}, result={"error": error})
        answer = "Please try again later." if changes else "It is lost."
        turn = _turn(answer, PARCEL, calls=(replace(call, error=bool(changes)),))
        cases.append((case_of(turn), changes))
    report = report_of(*(case for case, _ in cases))
    results = tuple(
        replace(each, case=replace(each.case, changes=changes))
        for each, (_, changes) in zip(report.results, cases, strict=True)
    )
    return replace(report, results=results)


def _newly_failing(after: str) -> RunChanges:
    result = ChangedResult(tool="track", before="in transit", after=after, kind="error")
    return RunChanges(results=(result,))


def test_cases_in_which_a_tool_newly_fails_with_the_same_error_have_one_cause() -> None:
    """Whatever else differs in them, as their answers follow from it; not with another error."""
    report = _list_tracked(
        ("TimeoutError: no answer for GL-6750195", _newly_failing("TimeoutError: no answ…")),
        ("TimeoutError: no answer for GL-1234567", _newly_failing("TimeoutError: no …")),
        ("not found", _newly_failing("not found")),
        ("", None),
    )
    outcomes = list_case_outcomes(report)
    assert [each.cluster for each in outcomes] == [0, 0, 1, 2]
    assert list(name_causes(report).values()) == [
        "track failed: TimeoutError: no answer for GL-…",
        "track failed: not found",
    ]


@pytest.mark.parametrize(("before", "lines"), [("failed", 1), ("passed", 0)])
def test_tool_that_a_cause_names_has_no_line_of_its_own(before: Any, lines: int) -> None:
    """It is not the cause of a case that failed before."""
    report = _list_tracked(("timeout", _newly_failing("timeout")))
    known = {each.id: BaselineCheck(status=before, score=1.0) for each in report.results}
    found = [*list_changed_runs(replace(report, baseline=known), 3, str, str)]
    assert len(found) == lines


def test_a_tool_that_succeeds_later_is_not_the_cause() -> None:
    report = _list_tracked(("timeout", _newly_failing("timeout")))
    turn = _turn(
        "It is lost.",
        PARCEL,
        calls=(
            CallContent(name="track", result="timeout", error=True),
            CallContent(name="track", result="in transit", error=False),
        ),
    )
    [result] = report_of(case_of(turn)).results
    report = replace(
        report_of(case_of(turn)),
        results=(replace(result, case=replace(result.case, changes=_newly_failing("timeout"))),),
    )
    [outcome] = list_case_outcomes(report)
    assert outcome.tool_error is None


def test_failed_checks_of_a_case_begin_with_the_cause() -> None:
    """In all reports: the answer differs because a tool fails."""
    answers = make_result("failed", 0.1, case="a", evaluator="answers", misses=["differs"])
    errors = make_result("failed", 0.5, case="a", **tool_errors("`track` failed: timeout"))
    slow = make_result("failed", 0.0, case="a", **_slow())
    report = make_report([slow, answers, errors])
    expected = ["no_tool_errors", "answers", "limit"]
    [outcome] = list_case_outcomes(report)
    assert [each.evaluator.name for each in outcome.problems] == expected
    data = data_of(report)
    names = [data["evaluators"][each["evaluator"]]["name"] for each in data["cases"][0]["checks"]]
    assert names == expected
    assert [each["name"] for each in data["evaluators"]] == ["limit", "answers", "no_tool_errors"]
    for text in (text_of(CommentReport(), report), _render_terminal(report)):
        assert sorted(expected, key=text.index) == expected


def test_a_rule_about_answers_decides_before_a_score_and_a_limit_on_their_length() -> None:
    others = [
        make_result("failed", 0.4, case="a", evaluator="similarity", type="builtin"),
        make_result(
            "failed", 0.0, case="a", evaluator="short", type="check", criterion="words <= 9"
        ),
    ]
    rule: dict[str, Any] = {"evaluator": "contains", "type": "check", "misses": ["not `30 days`"]}
    results = [make_result("failed", 0.0, case="b", **rule), *others]
    results.append(make_result("failed", 0.0, case="a", **rule))
    cases = list_case_outcomes(make_report(results))
    names = [[each.evaluator.name for each in case.problems] for case in cases]
    assert names == [["contains"], ["contains", "similarity", "short"]]
    assert [case.cluster for case in cases] == [0, 0]


def test_a_limit_does_not_decide_where_something_else_fails() -> None:
    results = [
        make_result("failed", 0.0, case="a", **_slow()),
        make_result("failed", 0.4, case="a", evaluator="contains"),
        make_result("failed", 0.0, case="b", **_slow()),
    ]
    [both, slow] = list_case_outcomes(make_report(results))
    assert both.cluster != slow.cluster
    assert [each.evaluator.name for each in both.problems] == ["contains", "limit"]
