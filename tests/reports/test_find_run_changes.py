"""What a run does otherwise than in the baseline: answers and results of tools."""

from typing import Any

import pytest

from agentci._util.text.secrets import Redactor
from agentci.model.case import ChangedResult, ChangedText, DialogueTurn, ResultChange, RunChanges
from agentci.model.gate import CheckClasses, Comparison, EvaluatorComparison
from agentci.model.result import (
    BaselineCheck,
    CallContent,
    Report,
    RunContent,
    SubagentContent,
    TurnContent,
)
from agentci.model.values import Json, replace
from agentci.reports.case_counts import format_case_line
from agentci.reports.changed_calls import MAX_CALLS
from agentci.reports.changed_runs import list_changed_runs
from agentci.reports.comment import CommentReport
from agentci.reports.compared_runs import read_run
from agentci.reports.console import render_console
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.find_run_changes import MAX_RESULTS, find_run_changes
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import read_report
from agentci.reports.run_content import encode_content
from agentci.reports.verdict import list_verdict_warnings
from tests.helpers.reports import CONFIG, Chunks, make_report, make_result, text_of
from tests.reports.html.pages import make_change, make_trend


def _call(result: Json = "x", **others: Any) -> CallContent:
    return CallContent(**{"name": "find", "arguments": {"id": 7}, "result": result, **others})


def _run(*calls: CallContent, answer: str | None = "y", **others: Any) -> RunContent:
    return RunContent(turns=(TurnContent(user="x", answer=answer, calls=calls),), **others)


def _compare(now: RunContent, before: RunContent) -> RunChanges:
    runs = (read_run(encode_content(each)) for each in (now, before))
    return find_run_changes(*runs, with_lines=True)


def _compare_results(now: Json, before: Json) -> list[ChangedResult]:
    return [*_compare(_run(_call(now)), _run(_call(before))).results]


@pytest.mark.parametrize(
    ("now", "before", "kind", "after", "then"),
    [
        ({"error": "x"}, {"id": 7}, "error", '{"error": "x"}', '{"id": 7}'),
        ("Error: no stock", "3 pieces", "error", "Error: no stock", "3 pieces"),
        ("", "3\npieces", "empty", "", "3 pieces"),
        (None, [1], "empty", "", "[1]"),
    ],
)
def test_kind_of_a_changed_result_is_found(
    now: Json, before: Json, kind: ResultChange, after: str, then: str
) -> None:
    expected = ChangedResult(tool="find", before=then, after=after, kind=kind)
    assert _compare_results(now, before) == [expected]


@pytest.mark.parametrize(
    ("now", "before", "after", "then"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]: 2", "a.b[1]: 3"),
        ('{"n": "1"}', '{"n": 1}', 'n: "1"', "n: 1"),
        ({"n": 1}, {"n": 1, "m": 2}, "m: absent", "m: 2"),
        ("It rains", "It is sunny", "It rains", "It is sunny"),
        ("ok", {"n": 1}, "ok", '{"n": 1}'),
        ("ok", "Error: x", "ok", "Error: x"),
        (
            '{"n": 1, "pri',
            '{"n": 1, "price": 2}',
            'invalid JSON: {"n": 1, "pri',
            '{"n": 1, "price"',
        ),
        ('{"n": 1, "pri', '{"n": 2, "pri', '{"n": 1, "pri', '{"n": 2, "pri'),
        (f"at 2026-01-02T03:04:05Z {'a ' * 40}b", f"{'a ' * 40}b", "at # a", "a a"),
    ],
)
def test_other_result_is_shown_where_it_differs(
    now: Json, before: Json, after: str, then: str
) -> None:
    [found] = _compare_results(now, before)
    assert found.kind == "other"
    assert (found.after[: len(after)], found.before[: len(then)]) == (after, then)


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ({"id": "7f3a9c1e22", "n": 1}, {"n": 1, "id": "8f3a9c1e23"}),
        ({"time": 1795964438.3}, {"time": 1795964441.5}),
        ({"created_at": "5", "n": 1}, {"created_at": "6", "n": 1}),
        ("at 2026-01-02T03:04:05.123Z", "at 2026-02-03T13:14:15Z"),
        ("id call_5kVb81mGqQ2d", "id call_9kVb81mGqQ2x"),
        ("took 12 ms", "took 7 ms"),
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}'),
        ({"error": "x"}, {"error": "x"}),
    ],
)
def test_ids_and_times_are_not_compared(now: Json, before: Json) -> None:
    assert _compare_results(now, before) == []


def _use(name: str, **arguments: Json) -> CallContent:
    return CallContent(name=name, arguments=arguments, result="ok")


def _list_calls(now: list[CallContent], before: list[CallContent]) -> list[tuple[str, ...]]:
    found = _compare(_run(*now), _run(*before))
    assert found.results == ()
    return [(each.kind, each.tool, each.before, each.after) for each in found.calls]


FIND, REFUND, ASK = _use("find", id="4711"), _use("refund", id="4711"), _use("ask")


@pytest.mark.parametrize(
    ("now", "before", "changes"),
    [
        ([FIND, REFUND], [FIND], [("new_tool", "refund", "", 'refund(id="4711")')]),
        ([FIND], [FIND, ASK], [("lost_tool", "ask", "ask()", "")]),
        ([FIND, REFUND], [FIND, ASK], [
            ("new_tool", "refund", "", 'refund(id="4711")'), ("lost_tool", "ask", "ask()", ""),
        ]),
        ([FIND, ASK, FIND], [FIND, ASK], [("added", "find", "", 'find(id="4711")')]),
        ([FIND], [FIND, FIND], [("removed", "find", 'find(id="4711")', "")]),
        ([_use("find", id="4171")], [FIND], [("arguments", "find", "id: 4711", "id: 4171")]),
        ([_use("find", id=4711)], [FIND], [("arguments", "find", 'id: "4711"', "id: 4711")]),
        ([_use("f", a={"b": [True]})], [_use("f", a={"b": [False]})], [
            ("arguments", "f", "a.b[0]: false", "a.b[0]: true"),
        ]),
        ([_use("f", unit="EUR")], [_use("f")], [("arguments", "f", "unit: absent", 'unit: "EUR"')]),
        ([_use("find", q="the 5 best")], [_use("find", q="the 3 best")], [
            ("arguments", "find", "q: the 3 best", "q: the 5 best"),
        ]),
        ([_use("book", day="2026-03-05")], [_use("book", day="2026-03-04")], [
            ("arguments", "book", "day: 2026-03-04", "day: 2026-03-05"),
        ]),
    ],
)  # fmt: skip
def test_changed_calls_are_named(
    now: list[CallContent], before: list[CallContent], changes: list[tuple[str, ...]]
) -> None:
    assert _list_calls(now, before) == changes


@pytest.mark.parametrize(
    ("now", "before", "reworded"),
    [
        ([REFUND, FIND], [FIND, REFUND], 0),
        ([_use("f", n=n) for n in (3, 2, 1)], [_use("f", n=n) for n in (1, 2, 3)], 0),
        ([_use("f", id="call_5kVb81mGqQ2d")], [_use("f", id="call_9kVb81mGqQ2x")], 0),
        ([_use("f", at="2026-01-02T03:04:05.1Z")], [_use("f", at="2026-02-02T03:04:07.1Z")], 0),
        ([_use("f", n=1)], [_use("f", n=1.0)], 0),
        ([_use("f", at=1795964438)], [_use("f", at=1795964441)], 0),
        ([_use("f", city="Rome, Italy")], [_use("f", city="Rome")], 1),
        ([_use("f", city="rome")], [_use("f", city="Rome")], 1),
        ([_use("f", query="forecast")], [_use("f", query="weather")], 1),
        ([_use("f", reason="It is broken")], [_use("f")], 1),
        ([CallContent(name="f")], [_use("f", a=1)], 0),
    ],
)  # fmt: skip
def test_order_ids_and_words_of_calls_are_not_named(
    now: list[CallContent], before: list[CallContent], reworded: int
) -> None:
    assert _list_calls(now, before) == []
    assert _compare(_run(*now), _run(*before)).reworded_calls == reworded


def test_id_that_the_question_gives_is_compared() -> None:
    now, before = (
        RunContent(turns=(TurnContent(user="Ship 1795964438", answer="y", calls=(call,)),))
        for call in (_use("ship", id="1795964483"), _use("ship", id="1795964438"))
    )
    [found] = _compare(now, before).calls
    assert (found.before, found.after) == ("id: 1795964438", "id: 1795964483")


def test_equal_calls_are_counted_and_others_limited() -> None:
    found = _compare(_run(*[FIND] * 300), _run(FIND, ASK))
    assert [(each.kind, each.count) for each in found.calls] == [("lost_tool", 1), ("added", 299)]
    many = _compare(_run(*(_use("f", n=index) for index in range(300))), _run())
    assert (len(many.calls), many.more_calls) == (MAX_CALLS, 300 - MAX_CALLS)


def test_calls_of_other_sub_agents_are_compared() -> None:
    now, before = (
        _run(subagents=(SubagentContent(turns=_run(*calls).turns, name=name),))
        for name, calls in (("s", [FIND, REFUND]), ("t", [FIND]))
    )
    [found] = _compare(now, before).calls
    assert (found.kind, found.tool) == ("new_tool", "refund")


def test_changed_calls_are_listed_by_case_and_new_tools_are_a_warning() -> None:
    pairs = [
        (_run(FIND, REFUND), _run(FIND)),
        (_run(*[FIND] * 8), _run(FIND, ASK)),
        (_run(_use("find", id="4171")), _run(FIND)),
        (_run(_use("find", q="good shoes")), _run(_use("find", q="nice shoes"))),
    ]
    report = limit_contents(_report(*pairs), "full")
    [line] = _list_lines(report)
    assert line.startswith(
        "changed tool calls: 3 passing cases, other words of arguments in 1 passing case ["
    )
    assert 'c0: + refund(id="4711")' in line
    assert 'c1: \N{MINUS SIGN} ask(), + find(id="4711") (7 times)' in line
    assert "1 more" in line
    warnings = (
        "1 case with a newly called tool", "1 case in which a tool is no longer called",
    )  # fmt: skip
    assert list_verdict_warnings(report) == warnings
    assert format_case_line(report, "b").endswith("(3 with changed tool calls)")
    failed = limit_contents(_report(*pairs, status="failed"), "full")
    assert (_list_lines(failed), list_verdict_warnings(failed)) == ([], ())
    comment = text_of(CommentReport(), report)
    assert "- **changed tool calls:** 3 passing cases" in comment
    assert '+ `refund(id="4711")`' in comment


@pytest.mark.parametrize(("status", "type_"), [("failed", "latency"), ("errored", "x")])
def test_what_changed_is_shown_of_cases_that_only_exceed_limits_or_errored(
    status: Any, type_: str
) -> None:
    pairs = [
        (_run(answer="in 14 days"), _run(answer="in 30 days")),
        (_run(answer="Hello, how are you?"), _run(answer="Good morning to you!")),
        (_run(FIND, REFUND), _run(FIND)),
    ]
    report = _report(*pairs, status=status)
    results = tuple(
        replace(each, evaluator=replace(each.evaluator, type=type_)) for each in report.results
    )
    lines = _list_lines(limit_contents(replace(report, results=results), "full"))
    assert [line.partition(" [")[0] for line in lines] == [
        "changed tool calls: 1 case", "changed answers: 1 case",
    ]  # fmt: skip
    assert "14 days" in lines[1]


def test_what_changed_is_listed_in_the_terminal() -> None:
    pairs = [
        (_run(FIND, REFUND), _run(FIND)),
        (_run(answer="Hello, how are you?"), _run(answer="Good morning to you!")),
    ]
    report = limit_contents(_report(*pairs), "full")
    assert _list_lines(report)[1] == (
        "changed answers: 1 passing case ['c1: Good morning to you! → Hello, how are you?']"
    )
    assert (
        "Changed since the baseline\n"
        "  changed tool calls: 1 passing case\n"
        '    c0: + refund(id="4711")\n'
        "  changed answers: 1 passing case\n"
        "    c1: Good morning to you! → Hello, how are you?\n"
    ) in render_console(report, quiet=False, verbose=False, colour=False)


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        pytest.param(
            ["In 14 days", "In 30 days", "In 30 days"],
            "1 of these cases has a changed answer: c0",
            id="one",
        ),
        pytest.param(
            ["In 14 days", "In 9 days", "In 30 days"],
            "2 of these cases have a changed answer: c0, c1",
            id="several",
        ),
        pytest.param(["In 14 days"] * 3, "all of these cases have a changed answer", id="all"),
        pytest.param(["In 30 days"] * 3, "", id="none"),
    ],
)
def test_skipped_checks_show_which_answers_changed(answers: list[str], line: str) -> None:
    """No check sees it, so that the first one is shown."""
    pairs = [(_run(answer=answer), _run(answer="In 30 days")) for answer in answers]
    report = limit_contents(_report(*pairs, status="skipped"), "full")
    gone = tuple(make_change(each.case.id, 1.0, None, "skipped") for each in report.results)
    trend = make_trend(newly_failing=(), no_longer_evaluated=gone)
    report = replace(report, comparison=Comparison(baseline="b", evaluators=(trend,)))
    lost = "response_quality 1 → skipped: c0, c1, c2 (no reason given)\n"
    label = "answer of turn 1 (- baseline, + this run)"
    changed = f"    {line}\n    {label}:\n      - In 30 days\n      + In 14 days\n" if line else ""
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    assert f"No longer evaluated\n  {lost}{changed}\n" in terminal
    comment = text_of(CommentReport(), report).replace("`", "")
    diff = f"- {line}\n\ndiff\n@@ {label} @@\n- In 30 days\n+ In 14 days\n" if line else "\n"
    assert f"- {lost}{diff}" in comment


def test_cases_that_are_fixed_are_not_listed() -> None:
    report = limit_contents(_report((_run(FIND, REFUND), _run(FIND))), "full")
    [result] = report.results
    compared = EvaluatorComparison(
        config=CONFIG,
        evaluator=result.evaluator.name,
        required=True,
        classes=CheckClasses(compared=1),
        pairs=1,
        before=0.0,
        after=1.0,
        fixed=(make_change(result.case.id, 0.0, 1.0, "passed"),),
        p_value=None,
        outcome="pass",
        reason="",
    )
    report = replace(report, comparison=Comparison(baseline="b", evaluators=(compared,)))
    assert (_list_lines(report), list_verdict_warnings(report)) == ([], ())


@pytest.mark.parametrize("text", ["a-", "a", "1", "a1", "1795964438 ", "not "])
def test_many_calls_with_huge_arguments_are_compared_in_little_time(text: str) -> None:
    now, before = (
        _run(*(_use("f", a=f"{index} {text * 5_000} {end}") for index in range(220)))
        for end in ("x", "y")
    )
    assert _compare(now, before).results == ()


@pytest.mark.parametrize("text", ["a-", "a", "1", "Error ", "2026-01-02T03:04:05."])
def test_huge_results_are_compared_in_little_time(text: str) -> None:
    assert len(_compare_results(f"{text * 50_000} x", f"{text * 50_000} y")) == 1


def test_result_that_was_not_recorded_is_not_compared() -> None:
    unknown = CallContent(name="find", arguments={"id": 7})
    for pair in ((_run(unknown), _run(_call())), (_run(_call()), _run(unknown))):
        assert _compare(*pair) == RunChanges()
    [found] = _compare(_run(replace(unknown, error=True)), _run(_call(error=False))).results
    assert (found.kind, found.before, found.after) == ("error", "x", "")


def test_calls_are_paired_by_their_arguments() -> None:
    others = (_call("a", arguments={"id": 1}), _call("b", arguments={"id": 2}))
    added = _call("c", arguments={"id": 3})
    assert _compare(_run(*others[::-1], added), _run(*others)).results == ()
    changed = replace(others[0], result="z")
    [found] = _compare(_run(others[1], changed), _run(*others)).results
    assert (found.before, found.after) == ("a", "z")
    assert _compare(_run(_call("a", name="other")), _run(_call("b"))).results == ()


def test_call_that_the_baseline_lacks_newly_fails() -> None:
    before = _call(arguments={"id": 1})
    for now in (_call("Error: x", arguments={"id": 2}), _call(error=True, arguments={"id": 2})):
        for calls in ((before,), ()):
            [found] = _compare(_run(now), _run(*calls)).results
            assert (found.kind, found.before) == ("error", "")
        # The tool failed as often, or that is not known.
        for other in (replace(now, arguments=3), CallContent(name="find", arguments=3)):
            assert _compare(_run(now), _run(other)).results == ()
    assert _compare(_run(_call(arguments={"id": 2})), _run(before)).results == ()


def test_results_of_sub_agents_are_compared() -> None:
    now, before = (
        _run(subagents=(SubagentContent(turns=_run(_call(result)).turns, name="s"),))
        for result in ("Error: x", "y")
    )
    [found] = _compare(now, before).results
    assert found.kind == "error"


def test_errors_come_first_and_others_are_counted() -> None:
    calls = [_call(f"a {index}", arguments=index) for index in range(MAX_RESULTS + 2)]
    now = [replace(each, result=f"b {each.arguments}") for each in calls]
    now[-1] = replace(now[-1], result={"error": "x"})
    found = _compare(_run(*now), _run(*calls))
    assert [each.kind for each in found.results] == ["error", *["other"] * (MAX_RESULTS - 1)]
    assert found.more_results == 2


def test_shortened_arguments_are_not_compared() -> None:
    now, before = (_run(_use("find", size=size)) for size in (8, 7))
    assert len(_compare(now, before).calls) == 1
    turn = replace(before.turns[0], cut={"calls[0].arguments": 3})
    assert _compare(now, RunContent(turns=(turn,))) == RunChanges()


def test_sub_agents_that_were_not_kept_are_not_compared() -> None:
    now, before = (
        _run(FIND, subagents=(SubagentContent(turns=_run(*calls).turns, name="s"),))
        for calls in ((FIND, REFUND), (FIND,))
    )
    assert [each.kind for each in _compare(now, before).calls] == ["new_tool"]
    kept = replace(before, subagents=(), level="without_results")
    assert _compare(now, kept) == RunChanges()


def test_only_the_start_of_a_shortened_result_is_compared() -> None:
    turn = replace(_run(_call("abc")).turns[0], cut={"calls[0].result": 3})
    before = RunContent(turns=(turn,))
    assert _compare(_run(_call("abcdef")), before) == RunChanges()
    [found] = _compare(_run(_call("abdef")), before).results
    assert (found.before, found.after) == ("abc", "abd")


LONG = "The word is here, and then there are many other words before the end. "


@pytest.mark.parametrize(
    ("now", "before", "shown", "facts"),
    [
        ("Buy if x > 5.", "Buy if x < 5.", ("Buy if x < 5.", "Buy if x > 5."), True),
        ('{"id": 1}', '{"id": "1"}', ('id: "1"', "id: 1"), True),
        ('{"id": 1', '{"id": 1}', ('{"id": 1}', '{"id": 1'), True),
        ("Hi \N{PARTY POPPER}", "Hi \N{BUG}", ("Hi \N{BUG}", "Hi \N{PARTY POPPER}"), False),
        (None, "Hi", ("Hi", ""), True),
        (
            f"A{LONG} It costs 6 EUR.",
            f"Some{LONG} It costs 5 EUR.",
            ("5 EUR", "6 EUR"),
            True,
        ),
        (
            f"{LONG}It costs 5 EUR.",
            LONG.strip(),
            ("…the end.", "…end. It costs 5 EUR."),
            True,
        ),
        (
            LONG.strip(),
            f"{LONG}It costs 5 EUR.",
            ("…end. It costs 5 EUR.", "…the end."),
            True,
        ),
        (
            f"{LONG}It costs 5 EUR, or 6 EUR.",
            "It costs 5 EUR.",
            ("It costs 5 EUR.", "…5 EUR, or 6 EUR."),
            True,
        ),
    ],
)
def test_changed_answer_is_shown_with_its_fact(
    now: str | None, before: str, shown: tuple[str, str], *, facts: bool
) -> None:
    found = _compare(_run(answer=now), _run(answer=before))
    assert found.answer is not None
    assert bool(found.facts) == facts
    assert found.answer == ChangedText(before=shown[0], after=shown[1])


def test_turn_with_other_facts_is_before_one_with_other_words() -> None:
    now, before = (
        RunContent(turns=tuple(TurnContent(user="x", answer=each) for each in answers))
        for answers in (("Hello, how are you?", "9 EUR"), ("Good morning to you!", "5 EUR"))
    )
    assert _compare(now, before).answer == ChangedText(before="5 EUR", after="9 EUR")


@pytest.mark.parametrize(("old", "new"), [("Berlin", "Paris"), ("return", "meal"), ("and", "or")])
def test_single_other_word_is_a_fact(old: str, new: str) -> None:
    before = "You can fly to Berlin and to Rome. The return is free."
    found = _compare(_run(answer=before.replace(old, new)), _run(answer=before))
    assert found.facts == f'expected "{old}", got "{new}"'


def test_all_cases_with_other_facts_are_named_before_other_words_are_counted() -> None:
    text = "It has a warranty of {} months. Wear is {} covered."
    reworded = "Sure! For 24 months you are safe with us, my friend, though we seldom pay for wear."
    answers = [*(text.format(months, "seldom") for months in (24, 12, 6)), reworded]
    pairs = [(_run(answer=now), _run(answer=text.format(24, "seldom"))) for now in answers]
    report = limit_contents(_report(*pairs), "full")
    [line] = _list_lines(report, 1)
    others = "other facts in c2 (24 months → 6 months)"
    shown = ["c1: 24 months → 12 months", others, "other words in 1 passing case"]
    assert line == f"changed answers: 3 passing cases {shown}"


def test_same_facts_of_several_cases_are_one_change_and_the_most_frequent_one_is_first() -> None:
    text = "The repair of your {}, which you can book at any time in your account, costs {} EUR."
    numbers = [(f"lamp {n}", 5, 6 + n) for n in range(8)]
    same = [("lamp 3", 9, 10), ("desk 7", 9, 10), ("desk 8", 9, 10)]
    pairs = [
        (_run(answer=text.format(name, now)), _run(answer=text.format(name, before)))
        for name, before, now in (*numbers, *same)
    ]
    report = limit_contents(_report(*pairs), "full")
    [line] = list_changed_runs(report, 1, str, str)
    assert line.items == (
        "3 cases, e.g. c8: 9 EUR \N{RIGHTWARDS ARROW} 10 EUR",
        "other facts in "
        + ", ".join(f"c{n} (5 EUR \N{RIGHTWARDS ARROW} {6 + n} EUR)" for n in range(5))
        + ", \N{HORIZONTAL ELLIPSIS} and 3 more",
    )


def test_cases_with_another_date_besides_have_the_same_fact() -> None:
    text = "You can return it within {} days, that is until May {}."
    pairs = [
        (_run(answer=text.format(14, day)), _run(answer=text.format(30, day + 16)))
        for day in (4, 5)
    ]
    report = limit_contents(_report(*pairs), "full")
    [line] = list_changed_runs(report, 1, str, str)
    assert line.items == ("2 cases, e.g. c0: 30 days \N{RIGHTWARDS ARROW} 14 days",)


def test_common_facts_are_named_if_there_is_little_room() -> None:
    pairs = [
        (_run(answer=f"It costs {n} {unit}"), _run(answer=f"It costs 9 {unit}"))
        for n, unit in ((1, "EUR"), (1, "EUR"), (1, "kg"), (1, "kg"), (1, "kg"), (7, "km"))
    ]
    report = limit_contents(_report(*pairs), "full")
    [line] = list_changed_runs(report, 1, str, str, names=False)
    assert [each.partition(":")[0] for each in line.items] == [
        *("3 cases, e.g. c2", "2 cases, e.g. c0", "other facts in 1 case"),
    ]


def test_numbers_of_questions_do_not_make_other_facts() -> None:
    report = _report(*((_run(answer="Yes"), _run(answer=f"Yes, {n}")) for n in range(2)))
    dialogues = [(DialogueTurn(question=f"Is order {n} here?", answer="Yes"),) for n in range(2)]
    results = [
        replace(each, case=replace(each.case, dialogue=dialogue))
        for each, dialogue in zip(report.results, dialogues, strict=True)
    ]
    report = limit_contents(replace(report, results=tuple(results)), "full")
    [line] = list_changed_runs(report, 1, str, str)
    assert line.items == ("2 cases, e.g. c0: Yes, 0 \N{RIGHTWARDS ARROW} Yes",)


def test_other_numbers_are_shown_before_negations_and_words() -> None:
    text = "The {} lamp, which you ordered from us for your new kitchen, is {} and costs {} EUR."
    old = text.format("desk", "free", 5)
    answers = [
        text.format("floor", "free", 5),
        text.format("desk", "not free", 5),
        text.format("desk", "free", 7),
        f"Done, that should not happen. {old}",
    ]
    report = limit_contents(
        _report(*((_run(answer=each), _run(answer=old)) for each in answers)), "full"
    )
    [line] = list_changed_runs(report, 4, str, str)
    assert [each.partition(":")[0] for each in line.items] == [
        *("c2", "c1", "c0"),
        "other words in 1 passing case",
    ]


def test_other_word_is_shown_where_it_is() -> None:
    old = f"{LONG}Your desk lamp is here. {LONG}"
    for prefix in ("", "Done. "):
        found = _compare(_run(answer=prefix + old.replace("desk", "floor")), _run(answer=old))
        assert found.answer is not None
        assert ("desk lamp" in found.answer.before, "floor lamp" in found.answer.after) == (
            True,
            True,
        )
    found = _compare(_run(answer=old.replace("desk ", "")), _run(answer=old))
    assert found.answer is not None
    assert found.answer.before.startswith("…the end. Your desk lamp")
    assert found.answer.after.startswith("…the end. Your lamp")
    # The word is in several places.
    found = _compare(_run(answer=old.replace("desk", "word")), _run(answer=old))
    assert found.answer is not None
    assert "Your desk lamp" in found.answer.before


def test_shortened_answer_is_not_another_one() -> None:
    turn = replace(_run(answer="abc").turns[0], cut={"answer": 3})
    assert _compare(_run(answer="abcdef"), RunContent(turns=(turn,))) == RunChanges()
    assert _compare(_run(answer="abcde"), RunContent(turns=(turn,))).answer is not None
    excerpt = _run(answer="other", level="excerpt")
    assert _compare(_run(answer="abc"), excerpt) == RunChanges()


def _report(*pairs: tuple[RunContent, RunContent], status: Any = "passed") -> Report:
    chunks, results, baseline = Chunks(), [], {}
    for number, (now, before) in enumerate(pairs):
        result = make_result(status, 1.0, case=f"c{number}")
        content, kept = (chunks.append(encode_content(each)) for each in (now, before))
        results.append(replace(result, case=replace(result.case, content=content)))
        baseline[result.id] = BaselineCheck(status="passed", score=1.0, content=kept)
    contents = StoredContents(chunks=chunks, redact=lambda value: value)
    report = replace(make_report(results), contents=contents, baseline=baseline)
    return replace(report, comparison=Comparison(baseline="b", evaluators=()))


def _list_lines(report: Report, most: int = 2) -> list[str]:
    return [
        f"{each.label}: {each.head} {each.lines}"
        for each in list_changed_runs(report, most, str, str)
    ]


def test_number_of_lines_is_limited_and_the_rest_counted() -> None:
    errors = [
        (_run(_call(f"Error: e{index}", name=f"t{index}")), _run(_call("fine", name=f"t{index}")))
        for index in range(4)
    ]
    answers = [(_run(answer=f"new {index}"), _run(answer="old")) for index in range(3)]
    lines = _list_lines(limit_contents(_report(*errors, *answers, errors[0]), "full"))
    shown = ["c4: old → new 0", "c5: old → new 1", "other facts in c6 (old → new 2)"]
    assert lines == [
        "tool newly fails: t0 returns Error: e0 in 2 cases (c0, c7); in the baseline fine []",
        "tool newly fails: t1 returns Error: e1 in 1 case (c1); in the baseline fine []",
        "tool newly fails: t2, t3 with other results in 2 cases (c2, c3) []",
        f"changed answers: 3 passing cases {shown}",
    ]
    # A line about the others would be as long as that of the last one.
    lines = _list_lines(limit_contents(_report(*errors[:3]), "full"))
    assert (
        lines[-1]
        == "tool newly fails: t2 returns Error: e2 in 1 case (c2); in the baseline fine []"
    )


def test_changed_facts_of_cases_that_pass_are_first() -> None:
    pairs = [(_run(answer=f"It costs {n} EUR"), _run(answer="It costs 9 EUR")) for n in range(3)]
    report = _report(*pairs)
    limit = replace(make_result("failed", 9.0).evaluator, type="latency", name="max_latency")
    first = replace(report.results[0], id="limit", evaluator=limit, status="failed")
    report = replace(report, results=(*report.results, first))
    [found] = list_changed_runs(limit_contents(report, "full"), 4, str, str)
    assert [each.partition(":")[0] for each in found.items] == ["c1", "c2", "c0"]


def test_case_with_a_new_check_is_compared() -> None:
    report = _report((_run(answer="new"), _run(answer="old")))
    [known] = report.results
    report = replace(report, results=(known, replace(known, id="new")))
    assert len(_list_lines(limit_contents(report, "full"))) == 1


def test_answer_of_a_failed_case_is_not_listed_twice() -> None:
    pair = _run(_call("b"), answer="new"), _run(_call("a"), answer="old")
    assert _list_lines(limit_contents(_report(pair, status="failed"), "full")) == []


def test_changes_are_found_before_contents_are_left_out_and_kept_in_results() -> None:
    pair = _run(_call("Error: x"), answer="new"), _run(_call("fine"), answer="old")
    report = limit_contents(_report(pair), "budget", max_bytes=10)
    assert len(_list_lines(report)) == 2
    assert "1 with a changed answer" in format_case_line(report, "b")
    text = text_of(JsonReport(), report)
    read = read_report(text.encode(), file="results.json", contents=Chunks())
    assert _list_lines(read) == _list_lines(report)
    assert "- **tool newly fails:** `find` returns `Error: x`" in text_of(CommentReport(), read)
    # Compared with another baseline, or none, they are found again.
    again = limit_contents(replace(read, baseline={}), "budget")
    assert again.results[0].case.changes is None


def test_changes_are_not_kept_without_content() -> None:
    pair = _run(_call("secret"), answer="secret"), _run(_call("a"), answer="b")
    report = limit_contents(_report(pair), "none")
    assert report.results[0].case.changes is None


def test_secrets_are_removed_before_runs_are_compared() -> None:
    pair = _run(_call("is secret"), answer="secret"), _run(_call("is ***"), answer="***")
    report = _report(pair)
    assert isinstance(report.contents, StoredContents)
    redact = Redactor(["secret"]).redact_value
    report = replace(report, contents=replace(report.contents, redact=redact))
    [result] = limit_contents(report, "full").results
    assert result.case.changes == RunChanges()
