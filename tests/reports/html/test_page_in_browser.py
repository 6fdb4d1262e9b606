"""``report.html`` in a real browser: mouse, keyboard, narrow, dark, and with hostile text."""

import re
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from unittest.mock import ANY

import pytest

from agentci.model.case import DialogueTurn
from agentci.model.gate import CheckClasses, PolicyChange, PolicyComparison
from agentci.model.result import (
    BaselineCheck,
    CallContent,
    CallPayload,
    CheckResult,
    EvaluatorCalls,
    Report,
    RunContent,
    Status,
    TurnContent,
)
from agentci.model.trace import TokenTotals
from agentci.model.values import Place, Problem, replace
from agentci.reports.case_counts import format_case_line
from agentci.reports.comment import CommentReport
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.failures import name_causes
from agentci.reports.run_content import encode_content
from agentci.reports.sections import make_case_url
from tests.helpers.browser import FIREFOX, PROGRAM, Browser, browser, firefox
from tests.helpers.reports import Chunks, make_report, make_result, mixed_report, text_of
from tests.helpers.support import ROOT
from tests.reports.html.pages import (
    HOSTILE,
    calls_of,
    changed_days_report,
    changed_facts_report,
    compared,
    conversation_report,
    failing_tool_report,
    forbidden_call_report,
    full_report,
    hostile_report,
    long_conversation_report,
    long_report,
    long_result_report,
    lost_report,
    make_change,
    make_run,
    make_trend,
    missing_turn_report,
    not_captured_report,
    other_model_report,
    other_result_report,
    other_tool_report,
    page_of,
    passing_report,
    recorded_report,
    removed_report,
    removed_step_report,
    retried_call_report,
    slow_tool_report,
    slower_steps_report,
    still_failing_report,
    transcript_report,
    wide_report,
)

AXE = ROOT / ".venv" / "services" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium"),
]

Show = Callable[..., Browser]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture
def show(window: Browser, tmp_path: Path) -> Iterator[Show]:
    """Show a report's page; any error that the page reports fails the test."""

    def show(report: Report, fragment: str = "", **looks: Any) -> Browser:
        (tmp_path / "report.html").write_text(page_of(report), encoding="utf-8")
        window.look(**looks)
        window.open(tmp_path / "report.html", fragment)
        return window

    window.faults.clear()
    yield show
    assert window.faults == []


def _rows(page: Browser) -> list[str]:
    return [text.split("\n")[0] for text in page.texts("tr.row th a")]


def _focus(page: Browser) -> str:
    text: str = page.run("document.activeElement.innerText")
    return text


def _violations(page: Browser) -> Any:
    page.run(AXE.read_text())
    return page.run(
        "axe.run().then((result) => result.violations.map((each) =>"
        " `${each.id}: ${each.nodes.map((node) => node.target).join(' ')}`))"
    )


def _failing_invoices(tool: str) -> Report:
    """Cases whose tool newly fails, with another answer; one has a long name."""
    chunks = Chunks()
    call = CallContent(name=tool, arguments={}, result={"error": "timed out"})
    runs = [
        RunContent(
            turns=(TurnContent(user="Send me the invoice.", answer=answer, calls=(called,)),),
            latency_ms=latency,
            tokens=TokenTotals(input=tokens, output=30),
            cost_usd=cost,
        )
        for answer, called, latency, tokens, cost in (
            ("Sorry.", call, 4800.0, 11_866, 0.0003),
            ("Sent.", replace(call, result={"total": 1}), 2500.0, 11_266, 0.0002),
        )
    ]
    now, then = (chunks.append(encode_content(run)) for run in runs)
    results = [
        make_result(status, 0.0 if status == "failed" else None, case=case, evaluator=status)
        for case in ("invoice_4708", "invoice_4709", "x" * 200)
        for status in ("failed", "errored")
    ]
    results = [replace(each, case=replace(each.case, content=now)) for each in results]
    report = replace(
        compared(make_report(results), make_trend()),
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline={
            each.id: BaselineCheck(status="passed", score=1.0, content=then) for each in results
        },
    )
    return limit_contents(report, "full")


class TestOverview:
    def test_failures_come_first_with_their_first_difference(self, show: Show) -> None:
        page = show(conversation_report())
        assert page.texts(".change .name") == ["to_rome"]
        assert page.texts(".change .same") == ["1 more case fails in the same way: to_rome_again"]
        marked = page.texts(".change del, .change ins")[:2]
        assert [text.split("\n")[-1] for text in marked] == ['"Rome"', '"Paris"']
        assert [text.split("\n")[0] for text in page.texts(".rest .pill")] == [
            "Newly errored",
            "Still failing",
            "Fixed",
        ]
        top = page.run("document.querySelector('.change').getBoundingClientRect().top")
        assert top < 600

    def test_tiles_show_amounts_and_their_change(self, show: Show) -> None:
        page = show(conversation_report())
        labels = dict(zip(page.texts(".tile dt"), page.texts(".tile"), strict=True))
        rate, latency = labels["Pass rate of checks"], labels["Latency of a case, p95"]
        assert "required" not in rate
        assert "(pass rate 75%" in page.texts("h1")[0]
        assert rate.split("\n")[1].strip() == "75%"
        assert " ".join(rate.split()).split(" from ")[1].startswith("83% 9 passed")
        assert latency.endswith("3\u00d7 or more in 1 case")
        page.run("document.querySelector('.tile a').click()")
        page.wait("location.hash === '#/compare?f=large_ms&sort=slower'")
        assert page.texts(".beside header b:first-child") == ["to_rome"]
        rescored = compared(conversation_report(), make_trend(), rescored=2)
        page = show(rescored)
        assert "from 83%" in page.texts(".tile")[0]
        assert page.texts(".tile [title='with these evaluators'] .delta") != []
        # Of the comparable cases, as in the comment.
        assert latency.split("\n")[1] == "7.0 s"
        comment = text_of(CommentReport(), conversation_report())
        assert "1.2 \N{RIGHTWARDS ARROW} 7.05 s" in comment
        assert "\u25b2" in latency
        assert "unchanged in 6 cases" in labels["Input + output tokens"]
        assert "$0.0120" in labels["Agent cost"]
        assert "Highest agent cost" in page.texts("#choose-sort")[0]
        assert "Highest agent cost" not in show(mixed_report()).texts("#choose-sort")[0]

    def test_change_of_less_than_half_a_percent_is_none(self, show: Show) -> None:
        report = other_result_report("passed", tokens=902)
        [tile] = [each for each in show(report).texts(".tile") if "tokens" in each]
        assert tile.split("\n")[1:] == ["932", "about the same"]
        assert "; 932 tokens (about the same)" in text_of(CommentReport(), report)

    @pytest.mark.parametrize("width", [800, 390])
    def test_tiles_fill_their_rows_and_the_name_is_one_line(self, show: Show, width: int) -> None:
        """Without a cost, there are three amounts."""
        report = conversation_report()
        chunks = Chunks()
        content = chunks.append(encode_content(make_run("No.", "Rome", cost_usd=None)))
        results = [
            replace(each, case=replace(each.case, content=content)) for each in report.results
        ]
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        page = show(replace(make_report(results), contents=contents), width=width)
        ends = page.run(
            "['.tiles', '.tile:last-child'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect().right)"
        )
        assert len(page.texts(".tile")) == 4
        assert ends[0] == ends[1]
        assert page.run("document.querySelector('.brand').offsetHeight") < 44

    def test_tile_of_required_checks_counts_only_these(self, show: Show) -> None:
        report = conversation_report()
        results = [
            replace(each, evaluator=replace(each.evaluator, required=False))
            if each.evaluator.name == "tone"
            else each
            for each in report.results
        ]
        page = show(replace(report, results=tuple(results)))
        [legend] = page.texts(".tile .legend")
        counts = [text.strip() for text in legend.split("\n") if text.strip()]
        assert counts == ["2 passed", "3 failed", "1 errored", "1 skipped", "7 advisory"]

    def test_header_names_run_and_pull_request(self, show: Show) -> None:
        page = show(conversation_report())
        [meta] = page.texts(".meta")
        for text in ("acme/desk", "#7 Shorter prompt", "c" * 12, "2026-03-11 14:32 UTC", "small-1"):
            assert text in meta
        assert page.run("document.querySelector('.meta a').href").endswith("/acme/desk/pull/7")
        commit = page.run("document.querySelector('.meta a code').parentNode.href")
        assert commit.endswith("/acme/desk/commit/" + "c" * 40)

    def test_header_says_when_runs_were_recorded_and_names_the_baseline(self, show: Show) -> None:
        start = 1_773_238_330 * 10**9  # 2026-03-11 14:12:10 UTC
        report = recorded_report(start, start - 2 * 3600 * 10**9)
        branch = compared(report, make_trend(), commit="b" * 40, branch="main")
        [meta] = show(branch).texts(".meta")
        assert "recorded 2026-03-11 14:12 UTC" in meta
        assert f"baseline main@{'b' * 12}, 2 h older" in meta
        # A clock that starts at 0 does not show the time of day.
        assert "recorded" not in show(recorded_report(5 * 10**9, 10**9)).texts(".meta")[0]

    def test_costs_by_prices_are_marked_and_have_a_column_in_view(self, show: Show) -> None:
        now, before = (
            replace(make_run("No.", "Rome"), cost_usd=usd, priced=True) for usd in (0.0008, 0.0004)
        )
        results = [make_result("failed", 0.67, case="a", evaluator=f"check_{n}") for n in range(7)]
        chunks = Chunks()
        number, old = (chunks.append(encode_content(each)) for each in (now, before))
        results = [
            replace(each, id=f"{n:016x}", case=replace(each.case, content=number))
            for n, each in enumerate(results)
        ]
        report = replace(
            compared(make_report(results)),
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            baseline={
                each.id: BaselineCheck(status="passed", score=1.0, content=old) for each in results
            },
        )
        page = show(report, width=1400)
        [tile] = [each for each in page.texts(".tile") if "$0.0008" in each]
        assert tile.startswith("Agent cost (from prices)")
        assert "from $0.0004" in " ".join(tile.split())
        assert page.texts("td.amount")[-1].startswith("$0.0008")
        assert page.run(
            "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)"
            "(document.querySelector('.scroll'))"
        )
        cut = page.run(
            "[...document.querySelectorAll('.cell, td.amount')]"
            ".filter((each) => each.scrollWidth > each.clientWidth).length"
        )
        assert cut == 0
        assert any("Higher cost" in each for each in page.texts(".chip"))

    @pytest.mark.parametrize(
        ("evaluators", "cards", "lines_shown"), [(2, 4, 0), (3, 6, 0), (5, 6, 4), (6, 6, 4)]
    )
    def test_each_of_ten_causes_has_a_card_or_a_line(
        self, show: Show, evaluators: int, cards: int, lines_shown: int
    ) -> None:
        """Those beyond are counted, with a link to all."""
        results = [
            make_result("failed", 0.0, case=f"{name} {reason}", evaluator=name, misses=[reason])
            for name in (f"evaluator_{n}" for n in range(evaluators))
            for reason in ("impolite", "wrong")
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        page = show(make_report(results))
        assert len(page.texts(".change")) == cards
        lines = [each.split("\n") for each in page.texts(".rest a")]
        carded = page.texts(".change .name")
        listed = [each[1] for each in lines[:lines_shown]]
        assert len({*carded, *listed}) == cards + lines_shown
        left = 2 * evaluators - cards - lines_shown
        assert lines[lines_shown:] == ([["Failed", f"{left} more causes"]] if left else [])
        if left:
            page.run("[...document.querySelectorAll('.rest a')].at(-1).click()")
            page.wait(f"document.querySelectorAll('tr.group').length === {2 * evaluators}")

    @pytest.mark.parametrize(("width", "columns"), [(1400, 2), (390, 1)])
    def test_cards_have_their_own_height(self, show: Show, width: int, columns: int) -> None:
        """A card with more text does not stretch the one beside it."""
        results = [
            make_result("failed", 0.0, case=case, evaluator=name, misses=[f"{case} {name}"])
            for case, names in (("long", "abc"), ("b", "d"), ("c", "e"), ("d", "f"))
            for name in names
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        page = show(make_report(results), width=width)
        boxes = page.run(
            "[...document.querySelectorAll('.change')].map((each) => {"
            " const { left, bottom } = each.getBoundingClientRect();"
            " return [left, bottom - each.lastElementChild.getBoundingClientRect().bottom]; })"
        )
        assert len({left for left, _ in boxes}) == columns
        assert max(space for _, space in boxes) < 20

    def test_decisive_check_is_first(self, show: Show) -> None:
        """Required and failed, then newly failing, then the worst; also where it is one line."""
        rows: list[tuple[str, str, float, bool, Status]] = [
            ("a", "advisory", 0.0, False, "passed"),
            ("a", "known", 0.1, True, "failed"),
            ("a", "new", 0.5, True, "passed"),
            ("b", "advisory", 0.0, False, "failed"),
            ("b", "known", 0.1, True, "failed"),
        ]
        results = [
            make_result("failed", score, case=case, evaluator=name, required=required)
            for case, name, score, required, _ in rows
        ]
        before = {
            each.id: BaselineCheck(status=status, score=0.9 if status == "passed" else 0.0)
            for each, (*_, status) in zip(results, rows, strict=True)
        }
        page = show(replace(compared(make_report(results)), baseline=before))
        assert page.texts(".change li > span > b:first-child:not(.num b)") == [
            "new",
            "known",
            "advisory",
        ]
        assert page.texts(".rest a > b, .rest a > span > b")[:2] == ["b", "known"]
        page = show(replace(compared(make_report(results)), baseline=before), "#/compare")
        assert page.texts(".beside:first-child .scores li")[0].split()[:5] == [
            *("\u2715", "new", "0.9", "\u2192", "0.5")
        ]

    def test_cases_in_which_a_tool_newly_fails_are_filtered(self, show: Show) -> None:
        """The comment counts the same cases, by the name of the tool."""
        chunks, results, baseline = Chunks(), [], {}
        for number, errors in enumerate([(True, False), (True, False), (True, True), (False,) * 2]):
            now, before = (
                chunks.append(
                    encode_content(
                        RunContent(
                            turns=(
                                TurnContent(
                                    user="x",
                                    answer="y",
                                    calls=(CallContent(name="pay", result="z", error=error),),
                                ),
                            )
                        )
                    )
                )
                for error in errors
            )
            result = make_result("passed", 1.0, case=f"c{number}")
            result = replace(result, case=replace(result.case, content=now))
            results.append(result)
            baseline[result.id] = BaselineCheck(status="passed", score=1.0, content=before)
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        report = compared(make_report(results), make_trend(outcome="pass", newly_failing=()))
        report = replace(report, contents=contents, baseline=baseline)
        report = limit_contents(report, "full")
        assert "2 in which a tool newly fails (`pay`)" in text_of(CommentReport(), report)
        page = show(report)
        assert "2 in which a tool newly fails (pay)" in page.texts(".why")[0]
        assert "A tool newly fails 2" in page.texts(".chip")
        page.run("document.querySelector('[data-filter=tools]').click()")
        page.wait("location.hash === '#/?f=tools'")
        assert _rows(page) == ["c0", "c1"]
        assert page.texts("tr.row .pill") == ["pay newly fails"] * 2
        page.run("location.hash = '#/compare'")
        page.wait("document.querySelector('.beside') !== null")
        assert "Worse 2" in page.texts(".chip")
        assert page.texts(".beside .pill") == ["pay newly fails", "2 cases"]

    def test_cases_that_are_much_slower_or_dearer_are_worse(self, show: Show) -> None:
        run = make_run("There is no flight to Rome today.", "Rome", latency_ms=3000.0)
        more = [
            replace(run, latency_ms=17_000.0),
            replace(run, cost_usd=0.0122, tokens=TokenTotals(input=9000, output=30)),
            replace(run, latency_ms=4500.0),
            run,
        ]
        page = show(passing_report(*((each, run) for each in more[::-1])))
        assert _rows(page) == ["c2", "c3", "c0", "c1"]
        assert page.texts("tr.row .pill") == ["6.1\u00d7 the cost", "5.7\u00d7 slower"]
        assert [" ".join(line.split()) for line in page.texts(".rest a")] == [
            "Large increase c2 6.1\u00d7 the cost",
            "Large increase c3 5.7\u00d7 slower",
        ]
        assert page.texts(".tile a") == ["3\u00d7 or more in 1 case"] * 3
        page.run("document.querySelector('.tile a').click()")
        page.wait("document.querySelector('.beside') !== null")
        assert page.texts(".beside header b:first-child") == ["c3"]
        assert page.texts("[aria-pressed=true]") == ["Much slower 1"]
        page.run("location.hash = '#/compare'")
        page.wait("document.querySelectorAll('.beside').length === 2")
        assert "Worse 2" in page.texts(".chip")
        page.run("location.hash = '#/case/c3'")
        page.wait(_shows("c3"))
        assert page.texts(".casehead .pill") == ["Passed", "5.7\u00d7 slower"]

    def test_amounts_of_a_case_that_newly_fails_are_not_green(self, show: Show) -> None:
        now = make_run("No.", "Rome", latency_ms=3000.0)
        report = passing_report((now, replace(now, latency_ms=9000.0)))
        [result] = report.results
        failed = make_result("failed", 0.0, case="c0")
        failed = replace(failed, id=result.id, case=result.case)
        for each, is_green in ((report, True), (replace(report, results=(failed,)), False)):
            for view in ("#/compare?f=all", "#/case/c0"):
                page = show(each, view)
                found = page.run("getComputedStyle(document.querySelector('.better')).color")
                assert (found == "rgb(11, 102, 54)") is is_green

    def test_each_kind_of_large_increase_has_a_line_with_its_cases(self, show: Show) -> None:
        run = make_run("There is no flight to Rome today.", "Rome", latency_ms=3000.0)
        slower = [replace(run, latency_ms=ms) for ms in (17_000.0, 15_000.0)]
        dearer = replace(run, cost_usd=0.0122, tokens=TokenTotals(input=9000, output=30))
        page = show(passing_report(*((each, run) for each in (*slower, dearer, run))))
        assert [" ".join(line.split()) for line in page.texts(".rest a")] == [
            "Large increase c2 6.1\u00d7 the cost",
            "Large increase c0 and 1 more largest: 5.7\u00d7 slower",
        ]

    def test_change_within_the_noise_has_no_colour(self, show: Show) -> None:
        """The comment and the page have the same limits."""
        for factor, colours in ((1.03, ["", ""]), (1.2, ["worse", ""]), (0.7, ["better", ""])):
            chunks = Chunks()
            run = make_run("No.", "Rome", latency_ms=9000)
            before = replace(run, latency_ms=9000 / factor)
            numbers = [chunks.append(encode_content(each)) for each in (run, before)]
            result = make_result("passed", 1.0, case="c")
            result = replace(result, case=replace(result.case, content=numbers[0]))
            kept = BaselineCheck(status="passed", score=1.0, content=numbers[1])
            report = replace(
                compared(make_report([result])),
                contents=StoredContents(chunks=chunks, redact=lambda content: content),
                baseline={result.id: kept},
            )
            page = show(report)
            found = page.run(
                "[...document.querySelectorAll('.tile .under .delta')]"
                ".map((each) => each.className.replace('delta', '').trim())"
            )
            assert found == colours
            comment = text_of(CommentReport(), report)
            assert ("p50 **7.5 \u2192 9 s (+20%)**" in comment) == (colours[0] == "worse")
            assert "p95 **" not in comment

    def test_change_of_a_score_has_the_colour_of_its_outcome(self, show: Show) -> None:
        """Whether or not its interval includes 0."""
        for outcome, low, colour in (
            ("fail", -0.4, "worse"),
            ("fail", None, "worse"),
            ("inconclusive", -0.4, ""),
            ("inconclusive", None, ""),
        ):
            high = None if low is None else -0.2
            trend = make_trend(change_low=low, change_high=high, outcome=outcome)
            for view in ("#/evaluators", "#/compare"):
                page = show(compared(conversation_report(), trend), view)
                assert colour == page.run(
                    "document.querySelector('table .delta').className.replace('delta', '').trim()"
                )

    def test_phone_shows_the_first_failed_case_without_scrolling(self, show: Show) -> None:
        """Also below what was lost, and a loosened policy."""
        height = 844
        lost = make_trend(no_longer_evaluated=(make_change("by_plane", 1.0, None, "skipped"),))
        loosened = tuple(
            PolicyChange(config="a.yaml", kind="loosened", subject=name, before="1", after="0.5")
            for name in ("min_pass_rate", "max_regression", "threshold of response_quality")
        )
        worst = replace(
            compared(conversation_report(), lost),
            policy=PolicyComparison(base="main", loosened=loosened),
        )
        for report in (worst, conversation_report(), mixed_report(), wide_report(7)):
            page = show(report, width=390, height=height)
            verdict, failure = page.run(
                "['.verdict', '.change .name, .rest a'].map((each) =>"
                " document.querySelector(each).getBoundingClientRect())"
                ".map((each) => ({ height: each.height, bottom: each.bottom }))"
            )
            assert verdict["height"] <= height / 3
            assert failure["bottom"] < height / 2

    def test_laptop_shows_two_causes_with_their_difference(self, show: Show) -> None:
        """Below the verdict and the amounts, on the first screen."""
        runs = {city: make_run("Sorry, no.", city) for city in ("Paris", "Oslo")}
        good = make_run("There is no flight to Rome.", "Rome")
        chunks = Chunks()
        before = chunks.append(encode_content(good))
        results = [
            make_result("failed", 0.2, case=city, evaluator=f"in_{city}", misses=[f"it is {city}"])
            for city in runs
        ]
        results = [
            replace(
                each,
                id=f"{n:016x}",
                case=replace(each.case, content=chunks.append(encode_content(run))),
            )
            for n, (each, run) in enumerate(zip(results, runs.values(), strict=True))
        ]
        loosened = tuple(
            PolicyChange(config="a.yaml", kind="loosened", subject=name, before="1", after="0.5")
            for name in ("min_pass_rate", "max_regression", "threshold of response_quality")
        )
        report = make_report(results)
        reasons = (
            *report.decision.reasons,
            "2 eval cases without a recorded run",
            "1 check errored",
        )
        decision = replace(report.decision, reasons=reasons, unlisted_notes=("one", "two"))
        report = replace(
            compared(replace(report, decision=decision), make_trend()),
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            baseline={
                each.id: BaselineCheck(status="passed", score=1.0, content=before)
                for each in results
            },
            policy=PolicyComparison(base="main", loosened=loosened),
        )
        page = show(report, width=1265)
        bottoms = page.run(
            "[...document.querySelectorAll('.change .first')].map((each) =>"
            " each.getBoundingClientRect().bottom)"
        )
        assert len(bottoms) == 2
        assert max(bottoms) < 900

    def test_phone_has_a_column_with_errors(self, show: Show) -> None:
        report = wide_report(7)
        errored = make_result("errored", case="case 0", evaluator="crashes", reason="exit code 3")
        passed = make_result("passed", 1.0, case="case 1", evaluator="crashes")
        page = show(replace(report, results=(*report.results, errored, passed)), width=390)
        names = page.texts(".matrix thead button")
        assert len(names) == 5
        assert names[-1] == "crashes"

    def test_cases_that_need_attention_are_listed_first(self, show: Show) -> None:
        assert _rows(show(conversation_report())) == [
            "to_rome",
            "to_rome_again",
            "out_of_order",
            "by_train",
            "on_foot",
            "by_sea",
            "unchanged",
        ]

    def test_search_works_from_keyboard_and_finds_answers(self, show: Show) -> None:
        page = show(conversation_report())
        page.press("/")
        page.write("SORRY rome")
        page.wait("location.hash === '#/?q=SORRY+rome'")
        page.wait("document.querySelectorAll('tr.row').length === 3")
        assert page.run("document.activeElement.id") == "search"
        assert page.run("document.activeElement.selectionStart") == 10
        page.press("Escape")
        assert page.run("document.activeElement.tagName") == "BODY"

    def test_text_that_is_not_yet_searched_for_is_kept(self, show: Show) -> None:
        """Another part of the page may be read meanwhile, which shows the view again."""
        page = show(conversation_report())
        page.press("/")
        typed = (
            "const field = document.getElementById('search'); field.value = 'sorry';"
            " field.dispatchEvent(new Event('input'));"
            " dispatchEvent(new HashChangeEvent('hashchange'));"
        )
        shown = "(({ value, selectionStart }) => [value, selectionStart])(document.activeElement)"
        assert page.run(f"(() => {{ {typed} return {shown}; }})()") == ["sorry", 5]
        page.wait("location.hash === '#/?q=sorry'")

    def test_filter_chosen_right_after_a_search_is_kept(self, show: Show) -> None:
        page = show(conversation_report())
        page.press("/")
        page.write("sorry")
        page.run("document.querySelector('[data-filter=new]').click()")
        page.wait("location.hash.includes('q=sorry')")
        assert page.run("location.hash") == "#/?f=new&q=sorry"

    def test_filter_is_applied_and_cleared(self, show: Show) -> None:
        page = show(conversation_report())
        page.run("document.querySelector('[data-filter=new]').click()")
        page.wait("location.hash === '#/?f=new'")
        assert _rows(page) == ["to_rome", "to_rome_again"]
        assert page.run("document.activeElement.dataset.filter ?? ''") in {"", "new"}
        page.run("document.querySelector('[data-filter=all]').click()")
        page.wait("document.querySelectorAll('tr.row').length === 7")

    def test_cards_link_to_cases_with_same_failures(self, show: Show) -> None:
        """A case that already failed in the baseline is none of the new failures."""
        page = show(conversation_report())
        page.run("document.querySelector('.same a').click()")
        page.wait("document.querySelectorAll('tr.row').length === 2")
        assert page.run("location.hash") == "#/?f=new&like=0"
        assert _rows(page) == ["to_rome", "to_rome_again"]
        assert page.run("scrollY") > 0

    def test_column_header_sorts_cases_by_score(self, show: Show) -> None:
        page = show(conversation_report())
        page.run("document.getElementById('by-e0').click()")
        page.wait("location.hash === '#/?sort=e0'")
        assert _rows(page)[0] == "out_of_order"
        assert page.run("document.getElementById('by-e0').parentNode.ariaSort") == "ascending"
        page.run("document.getElementById('by-slow').click()")
        page.wait("location.hash === '#/?sort=slow'")
        assert _rows(page)[0] == "to_rome"

    def test_cases_are_grouped_by_tag(self, show: Show) -> None:
        page = show(conversation_report())
        page.run(
            "const list = document.getElementById('choose-group');"
            "list.value = 'tag'; list.dispatchEvent(new Event('change'))"
        )
        page.wait("document.querySelectorAll('tr.group').length === 2")
        assert page.texts("tr.group th") == ["travel\n6 cases \u00b7 3 failed", "no tag\n1 case"]

    def test_cells_show_score_change_and_status(self, show: Show) -> None:
        page = show(conversation_report())
        first = page.run(
            "[...document.querySelector('tr.row').querySelectorAll('.cell')]"
            ".map((each) => [each.className, each.querySelector('b').textContent,"
            " each.querySelector('small')?.textContent ?? ''])"
        )
        assert first[0] == ["cell failed new_failure", "0.25", "\u25bc0.75"]
        assert first[1][1] == "0.9"

    def test_no_match_offers_all_cases(self, show: Show) -> None:
        page = show(conversation_report(), "#/?q=nothing+like+it")
        assert page.texts(".none p") == ["No case matches \u201cnothing like it\u201d."]
        page.run("document.querySelector('.none button').click()")
        page.wait("document.querySelectorAll('tr.row').length === 7")

    def test_report_without_baseline_lists_failures(self, show: Show) -> None:
        page = show(mixed_report())
        assert page.texts("#changes") == ["Failures"]
        assert "Failed" in page.texts(".change .pill")
        assert page.texts("[data-filter=new]") == []

    def test_problems_of_invalid_input_are_shown(self, show: Show) -> None:
        place = Place(file="a.yaml", line=3, column=5)
        problem = Problem(message="`x` is not a key", hint="remove it", place=place)
        page = show(make_report([], problems=[problem]))
        assert page.texts("h1") == ["Invalid input"]
        assert page.texts(".message code") == ["a.yaml:3:5", "x"]

    def test_many_cases_are_drawn_only_in_view(self, show: Show) -> None:
        """Also times nothing: the number of rows in the page is what keeps it fast."""
        report = long_report(10_000)
        payload = CallPayload(name="stdin", content="x" * 40_000, size=40_000)
        packed = {
            id_: text
            for result in report.results[:200]
            for id_, text in calls_of(result, payload).json_by_check.items()
        }
        page = show(replace(report, evaluator_calls=EvaluatorCalls(json_by_check=packed)))
        assert page.run("document.querySelectorAll('tr.row').length") < 100
        page.run("scrollTo(0, document.body.scrollHeight)")
        page.wait("[...document.querySelectorAll('tr.row th a')].at(-1).innerText === 'case 9999'")
        page.run("scrollTo(0, 0)")
        page.press("/")
        page.write("999")
        page.wait("document.querySelectorAll('tr.row').length === 19")
        assert page.texts(".search b") == ["19 cases"]

    def test_card_has_first_differences_and_number_of_others(self, show: Show) -> None:
        page = show(long_conversation_report())
        [card] = page.texts(".first")
        assert "find_parcel to.address.zip:" in card
        assert page.texts(".first dd:not(.more-differences)")[1:] == [
            "\u2026 You get 5 EUR.",
            "\u2026 You get 50 EUR.",
        ]

    def test_card_counts_differences_as_the_comment_does(self, show: Show) -> None:
        report = long_conversation_report()
        comment = text_of(CommentReport(), report)
        page = show(report)
        assert page.texts(".first .more-differences") == []
        assert "more difference" not in comment
        assert page.texts(".first dt")[:2] == ["Tool call (turn 5)", "Baseline (turn 5)"]
        calls = [re.split(r"\W", text)[0] for text in page.texts(".first .mono")]
        assert calls == re.findall(r"^[!+] (\w+)\(", comment, re.MULTILINE)
        assert len(calls) == 2

    def test_changes_are_counted_as_in_the_comment(self, show: Show) -> None:
        report = conversation_report()
        line = format_case_line(report, "cccccccccccc", bold="**")
        page = show(report)
        assert page_line(page) == line.replace("**", "")
        assert line.replace("**", "`").count("`") == 2 * 2
        for link in page.run(
            "[...document.querySelectorAll('.verdict .why a')].map((each) => each.hash)"
        ):
            amount = page.run(f"document.querySelector('.verdict a[href=\"{link}\"]').textContent")
            listed = show(report, link)
            assert listed.texts(".search b")[0].split()[0] == amount.split()[0]

    def test_cases_without_a_baseline_are_counted_as_in_the_comment(self, show: Show) -> None:
        page = show(mixed_report())
        assert page_line(page) == format_case_line(mixed_report(), "") == "3 cases: 3 failed"

    def test_reasons_of_the_gate_are_in_view_and_notes_of_the_comparison_are_there(
        self, show: Show
    ) -> None:
        report = compared(conversation_report(), make_trend(outcome="inconclusive"))
        reasons = tuple(f"{n} reason" for n in range(6))
        notes = (
            "tone is inconclusive: mean score 1 \u2192 0.9 (9 cases)",
            "tone: 1 check newly failing",
            "the run has another model",
        )
        decision = replace(report.decision, reasons=reasons, notes=notes, unlisted_notes=notes[-1:])
        for width in (1280, 390):
            page = show(replace(report, decision=decision), width=width)
            folded = ["1 note"] if width > 400 else ["5 more reasons \u00b7 1 note \u00b7 this run"]
            assert page.texts(".verdict summary") == folded
            shown = "\n".join(page.texts(".verdict"))
            in_view = reasons if width > 400 else reasons[:1]
            assert [each for each in in_view if each not in shown] == []
            assert "Cases against" in shown
            assert "the run has another model" not in shown
            page.run("document.querySelector('.verdict summary').click()")
            shown = "\n".join(page.texts(".verdict"))
            assert [each for each in (*reasons, notes[-1]) if each not in shown] == []
            assert "inconclusive" not in shown

    def test_phone_draws_only_cases_in_view_and_amounts_before_them(self, show: Show) -> None:
        page = show(wide_report(2, cases=130), width=390)
        assert len(page.texts("tr.row")) < 100
        tiles, table = page.run(
            "['.tiles', '.matrix'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect().top)"
        )
        assert tiles < table
        page.run("scrollTo(0, document.body.scrollHeight)")
        page.wait("document.querySelector('tr.row:last-of-type')?.ariaRowIndex === '131'")

    def test_regressions_are_on_one_line(self, show: Show) -> None:
        """Their statistics are folded, as the cards with the failures come next."""
        reasons = (
            "7 of 21 checks failed (pass rate 67%, required 100%)",
            "tone regressed: mean score 0.95 \u2192 0.9 (40 cases, p = 0.01)",
            (
                "grounded regressed: mean score 1 \u2192 0.65 in both runs, tested 1 \u2192 0.6 "
                "(40 cases, p < 0.001)"
            ),
        )
        report = conversation_report()
        decision = replace(report.decision, reasons=reasons)
        page = show(replace(report, decision=decision))
        assert page.texts(".verdict .why")[1] == (
            "tone regressed 0.95 \u2192 0.9 \u00b7 grounded regressed 1 \u2192 0.65"
        )
        assert page.texts(".verdict summary")[0].startswith("2 regressions")
        page.run("document.querySelector('.verdict summary').click()")
        assert [each for each in page.texts(".verdict li") if "p < 0.001" in each]

    def test_number_of_removed_cases_leads_to_their_names(self, show: Show) -> None:
        """Their evaluators are not removed: other cases have them."""
        trends = [
            make_trend(
                evaluator=name,
                newly_failing=(),
                no_longer_evaluated=tuple(
                    make_change(case, 1, None, "removed") for case in ("by_bus", "by_sledge")
                ),
            )
            for name in ("response_quality", "tone")
        ]
        report = compared(conversation_report(), *trends)
        chunks = Chunks()
        run = make_run("Line 4 goes there.", "Rome")
        before = BaselineCheck(
            status="passed", score=1.0, case="by_bus", content=chunks.append(encode_content(run))
        )
        report = replace(
            report,
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            results=tuple(
                replace(each, case=replace(each.case, content=None)) for each in report.results
            ),
            baseline={"removed": before},
        )
        page = show(report)
        assert page.texts(".verdict .note") == []
        assert "2 removed" in page_line(page)
        page.run(
            "[...document.querySelectorAll('.verdict .why a')]"
            ".find((each) => each.textContent === '2 removed').click()"
        )
        page.wait("document.querySelector('.remarks') !== null")
        assert page.texts(".remarks li") == [
            f"{case} removed, 2 checks that passed" for case in ("by_bus", "by_sledge")
        ]
        page.run("document.querySelector('.remarks li a').click()")
        page.wait(_shows("by_bus"))
        passed = "it passed 2 checks: response_quality 1, tone 1"
        assert page.texts("main > p") == [f"Only the baseline has a run of this case; {passed}."]
        assert page.texts(".step")[:3] == [
            "User\nA flight to Rome, please.",
            'Tool calls\nfind_flight(to: "Rome", seats: 2)\n40 ms',
            "Answer\nLine 4 goes there.",
        ]
        assert page.texts("del, ins, .result") == []
        page.run("location.hash = '#/case/by_sledge'")
        page.wait(_shows("by_sledge"))
        assert page.texts("main > p")[0].endswith("tone 1. Its content is not stored.")

    def test_numbers_of_still_failing_cases_lead_to_as_many(self, show: Show) -> None:
        page = show(still_failing_report())
        assert page.texts(".verdict .why a") == ["1 newly failing", "3 still failing"]
        assert page.texts("[data-filter=still]") == ["Still failing 3"]
        [row] = page.texts(".rest a")
        assert row.split("\n")[:2] == ["Still failing", "still and 2 more"]
        page.run("document.querySelector('.rest a').click()")
        page.wait("document.querySelectorAll('.matrix tr.row').length === 3")

    def test_card_shows_both_sides_of_another_tools_call(self, show: Show) -> None:
        page = show(other_tool_report())
        calls = page.texts(".first .mono")
        assert [text.split("(")[0] for text in calls] == ["find_flight", "find_train"]
        assert calls[0].endswith("Not called")
        assert calls[1].endswith("Not in the baseline")

    def test_check_that_is_skipped_now_is_listed_with_its_case(self, show: Show) -> None:
        """What the agent answers otherwise there is one click away, as no check looks at it."""
        page = show(lost_report())
        [lost] = page.texts(".verdict .note")
        assert " ".join(lost.split()) == (
            "No longer evaluated response_quality 1 \u2192 skipped (1 check): no flights; "
            "1 case with a changed answer"
        )
        assert page.texts("[data-filter=lost]") == ["No longer fully evaluated 1"]
        assert page.texts(".cell.lost") == ["response_quality: Skipped\nskip\nwas 1"]
        page.run("document.querySelector('.verdict .note a').click()")
        page.wait("location.hash === '#/compare?f=lost&e=response_quality'")
        assert page.texts(".pane.now") == ["This run\nSorry, no."]
        assert page.texts(".scores li") == ["! response_quality 1 \u2192 skipped"]
        page.run("document.querySelector('.beside a').click()")
        page.wait("location.hash === '#/case/by_plane?with=base'")
        assert page.texts(".head .pill")[0] == "No longer fully evaluated"
        assert page.texts(".check h3 code")[0] == "response_quality"
        assert page.texts(".check h3 .pill") == ["No longer evaluated"]

    def test_gate_that_passes_shows_removed_evaluator_above_the_fold(self, show: Show) -> None:
        """It is not all green: the verdict, the column and the cases say what is missing."""
        page = show(removed_report(), height=600)
        note = "document.querySelector('.verdict .note')"
        assert page.run(f"{note}.getBoundingClientRect().bottom") < 600
        assert " ".join(page.texts(".verdict .note")[0].split()) == (
            "No longer evaluated grounded 1 \u2192 removed (2 checks)"
        )
        assert page.run(
            "getComputedStyle(document.querySelector('.verdict')).borderLeftColor =="
            " getComputedStyle(document.querySelector('.legend i.errored')).backgroundColor"
        )
        assert "2 no longer evaluated" in page.texts(".tile .legend")[0]
        assert page.texts(".matrix thead .pill") == ["removed"]
        assert page.texts(".cell.removed") == ["grounded: Removed\nremoved"] * 2
        assert page.texts("[data-filter=lost]") == ["No longer fully evaluated 2"]
        page.run("document.querySelector('.cell.removed').click()")
        page.wait("document.querySelector('.check') !== null")
        assert page.texts(".check")[0].split("\n")[1:3] == ["grounded", "No longer evaluated"]

    def test_evaluator_that_evaluates_nothing_is_named_above_the_fold(self, show: Show) -> None:
        results = [
            make_result("passed", 1.0, case="a"),
            make_result("skipped", None, case="a", evaluator="empty", reason="no amount"),
        ]
        page = show(make_report(results), height=600)
        [note] = page.texts(".verdict .note")
        assert note.split("\n") == ["Nothing evaluated", "empty 1 skipped: no amount"]
        page.run("location.hash = '#/evaluators'")
        page.wait("document.querySelector('table.wide') !== null")
        assert page.texts("td b")[0] == "empty"
        assert page.texts("td .dot")[0] == "\u2715"

    def test_scores_and_labels_of_columns_fit_their_cells(self, show: Show) -> None:
        """With six evaluators, columns are narrow: no score breaks, no label is cut."""
        scores = [0.1877, None, 0.75, *[0.1877] * 3]
        results = [
            make_result("skipped" if score is None else "failed", score, case="a",
                        evaluator=f"amounts_are_grounded_{n}")
            for n, score in enumerate(scores)
        ]  # fmt: skip
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        page = show(replace(compared(make_report(results)), baseline=before))
        heights = page.run(
            "[...document.querySelectorAll('.cell b')].map((each) => each.offsetHeight)"
        )
        assert max(heights) < 30
        assert page.texts(".cell.failed")[0].split("\n")[1:] == ["0.19", "\u25bc0.81"]
        assert page.texts(".cell.failed")[1].split("\n")[1:] == ["failed"]
        cut = "[...document.querySelectorAll('.cell')].filter((e) => e.scrollWidth > e.clientWidth)"
        assert page.run(f"{cut}.length") == 0
        assert page.run(
            "(({ scrollWidth, clientWidth, parentElement }) => scrollWidth <= clientWidth"
            " && clientWidth <= parentElement.clientWidth)"
            "(document.querySelector('.matrix thead .pill'))"
        )

    def test_phone_says_how_many_evaluators_it_shows(self, show: Show) -> None:
        page = show(wide_report(7, cases=61), width=390)
        names = page.texts(".matrix thead button")
        assert names == [f"evaluator_{number}" for number in (1, 3, 5, 0, 2)]
        assert page.texts(".hint") == ["5 of 7 evaluators, those with failures first."]
        assert show(wide_report(7), width=1280).texts(".hint") == []

    @pytest.mark.parametrize("evaluators", [3, 12])
    def test_evaluators_with_failures_come_first(self, show: Show, evaluators: int) -> None:
        page = show(wide_report(evaluators, cases=3))
        assert page.texts(".matrix thead th button") == [
            f"evaluator_{n}" for n in (*range(1, evaluators, 2), *range(0, evaluators, 2))
        ]

    def test_required_evaluator_with_a_failure_comes_before_advisory_ones(self, show: Show) -> None:
        failed = [("a", 3), ("b", 3), ("c", 2), ("d", 2), ("e", 2), ("required", 1)]
        results = [
            make_result(
                "failed" if case < failures else "passed",
                0.0 if case < failures else 1.0,
                case=f"c{case}",
                evaluator=name,
                required=name == "required",
            )
            for name, failures in failed
            for case in range(3)
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        page = show(make_report(results), width=390)
        assert page.texts(".matrix thead button") == ["required", "a", "b", "c", "d"]

    def test_columns_in_which_nothing_changed_are_joined_until_opened(self, show: Show) -> None:
        """By mouse or keyboard; what is open is in the address, and has the focus."""
        results = [
            make_result(
                "failed" if (case, number) == ("a", 6) else "passed",
                0.0 if (case, number) == ("a", 6) else 0.8 if number == 5 else 1.0,
                case=case,
                evaluator=f"check_{number}",
            )
            for case in "ab"
            for number in range(7)
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        page = show(replace(compared(make_report(results)), baseline=before))
        heads = [*("check_6", "check_5"), "5 more, all 1 \u00bb"]
        assert page.texts(".matrix thead th > :first-child") == heads
        assert page.texts("tr.row:first-child .cell")[-1].split() == ["\u2713", "5", "passed"]
        titles = page.run("document.querySelector('.joined button').title")
        assert titles.split("\n") == [f"check_{number}" for number in range(5)]
        page.run("document.getElementById('joined').focus()")
        page.press("Enter")
        page.wait("location.hash === '#/?columns=all'")
        page.wait("document.querySelectorAll('tr.row:first-child .cell').length === 7")
        assert page.run("document.activeElement.ariaExpanded") == "true"
        page.press("Enter")
        page.wait("document.querySelectorAll('tr.row:first-child .cell').length === 3")
        assert page.run("location.hash") == "#/"
        # Where cases are chosen, of their cells: here those with a problem are all in one column.
        _choose(page, "sort", "name")
        page.run("document.querySelector('[data-filter=passed]').click()")
        page.wait("document.querySelectorAll('tr.row').length === 1")
        assert page.texts(".matrix thead th > :first-child") == ["check_5", "6 more, all 1 \u00bb"]

    @pytest.mark.parametrize("width", [1280, 1440, 390])
    @pytest.mark.parametrize("evaluators", [1, 3, 8, 10, 15, 30])
    def test_columns_fit_or_scroll_visibly(self, show: Show, evaluators: int, width: int) -> None:
        """With many evaluators, the table scrolls in its own region, also by keyboard."""
        chunks = Chunks()
        content = chunks.append(encode_content(make_run("No.", "Paris")))
        results = [
            replace(each, case=replace(each.case, content=content))
            for each in wide_report(evaluators, cases=4, score=0.63).results
        ]
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        report = replace(compared(make_report(results)), baseline=before, contents=contents)
        # A scroll bar takes 15 pixels.
        page = show(report, width=width - 15 if width > 400 else width)
        cut = page.run(
            "[...document.querySelectorAll('.cell, .cell *, td.amount, th > button, .piece')]"
            ".filter((each) => each.checkVisibility() && !each.matches('.unseen')"
            " && each.scrollWidth > each.clientWidth && each.clientWidth)"
            ".map((each) => each.innerText)"
        )
        assert cut == []
        assert page.run("document.documentElement.scrollWidth") <= width
        is_wider = width > 400 and evaluators > 10
        assert page.run("document.querySelector('.wider') !== null") == is_wider
        if not is_wider:
            return
        page.run("document.querySelector('.scroll').focus()")
        page.run("new Promise(requestAnimationFrame)")
        # A browser that is still drawing drops the first keys.
        for _ in range(50):
            page.press("ArrowRight")
            if page.run("document.querySelector('.scroll').scrollLeft") > 0:
                break
        page.wait("document.querySelector('.scroll').scrollLeft > 0")
        name = page.run("document.querySelector('tr.row th').getBoundingClientRect().left")
        assert name < 50
        page.run("document.querySelector('.scroll').scrollTo(99999, 0)")
        page.wait("document.querySelector('.wider') === null")

    def test_names_of_evaluators_break_at_punctuation_only(self, show: Show) -> None:
        names = ["case:contains", "toolTrajectoryScore", "a" * 60, "must.mention-it/all", "b", "c"]
        results = [
            make_result("failed", 0.5, case=case, evaluator=name) for name in names for case in "de"
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        for width in (1280, 390):
            page = show(make_report(results), width=width)
            assert page.texts(".matrix thead th:nth-child(2) button") == ["case:contains"]
            rows = "[...document.querySelectorAll('.piece')].map((each) => each.getClientRects())"
            assert page.run(f"{rows}.every(({{ length }}) => length === 1)")
            assert page.texts(".matrix thead th:nth-child(3) .piece") == [
                *("tool", "Trajectory", "Score")
            ]
            assert page.run(
                "(({ scrollWidth, clientWidth, parentElement }) => scrollWidth > clientWidth &&"
                " getComputedStyle(document.querySelector('.piece')).textOverflow === 'ellipsis' &&"
                " parentElement.title.startsWith('aaa'))"
                "(document.querySelector('.matrix thead th:nth-child(4) .piece'))"
            )

    def test_icon_says_the_state_and_labels_what_it_does_not(self, show: Show) -> None:
        page = show(conversation_report())
        rows = page.run(
            "[...document.querySelectorAll('tr.row .case')].map((each) =>"
            " [each.querySelector('.dot').title, each.querySelector('.pill')?.innerText ?? ''])"
        )
        assert rows == [
            ["Newly failing", "7.5\u00d7 slower"],
            ["Newly failing", ""],
            ["Newly errored", ""],
            ["Still failing", "Still failing"],
            ["Fixed", "Fixed"],
            ["New", "New"],
            ["Passed in both", ""],
        ]
        filled, outlined = page.run(
            "['New', 'Still'].map((each) => getComputedStyle("
            "document.querySelector(`tr.row .dot[title^=${each}]`)).backgroundColor)"
        )
        # An icon has no other look by a state: its sign stays in the middle.
        displays = "[...document.querySelectorAll('.dot')].map((each) => getComputedStyle(each))"
        assert page.run(f"{displays}.every(({{ display }}) => display.endsWith('grid'))")
        assert filled != outlined == "rgba(0, 0, 0, 0)"

    def test_filters_are_grouped_by_their_subject(self, show: Show) -> None:
        page = show(conversation_report(tone_before=1.0))
        names = "[...document.querySelectorAll('.chips > div')].map((each) => each.ariaLabel)"
        assert page.run(names) == ["Changes", "Status", "Calls and answers", "Amounts"]
        groups = [" ".join(each.split()) for each in page.texts(".chips > div")]
        assert groups[0].startswith("All cases 7 Newly failing 2 Newly errored 1 Still failing 1")
        assert groups[2] == "Answer changed 3 Calls changed 3"
        assert page.run("document.querySelector('.controls').offsetHeight") < 90
        page = show(conversation_report(), width=390)
        chips = "[...document.querySelectorAll('.chip')]"
        assert page.run(f"new Set({chips}.map((each) => each.offsetTop)).size") == 1

    def test_table_that_scrolls_says_how_many_cases_it_has(self, show: Show) -> None:
        page = show(wide_report(12, cases=59), height=800)
        box = "document.querySelector('.scroll.own')"
        [shown] = page.texts(".foot")
        amount = int(shown.split()[0])
        assert shown == f"{amount} of 59 cases, scroll for more"
        assert amount == page.run(
            "[...document.querySelectorAll('tr.row')].map((each) => each.getBoundingClientRect())"
            f".filter(({{ bottom }}) => bottom <= {box}.getBoundingClientRect().bottom).length"
        )
        page.run(f"{box}.scrollTo(0, 9999)")
        page.wait("document.querySelector('.foot').innerText === '59 of 59 cases'")
        assert "of 3 cases" not in " ".join(show(wide_report(12, cases=3)).texts(".foot"))

    def test_tool_that_newly_fails_is_named_beside_the_scores(self, show: Show) -> None:
        page = show(_failing_invoices("get_invoice_of_the_order"), width=800)
        pills = page.texts("tr.row .pill")
        assert "get_invoice_of_the_order newly fails" in pills
        beyond = page.run(
            "Math.max(...[...document.querySelectorAll('.case .pill')].map((each) =>"
            " each.getBoundingClientRect().right"
            " - each.closest('th').getBoundingClientRect().right))"
        )
        assert beyond <= 0

    def test_cases_are_grouped_by_their_class(self, show: Show) -> None:
        page = show(conversation_report(tone_before=1.0), "#/?group=state")
        groups = [" ".join(each.split()) for each in page.texts("tr.group th")]
        assert "Newly failing 2 cases \u00b7 2 failed" in groups
        assert "Still failing 1 case \u00b7 1 failed" in groups

    def test_notes_are_not_called_reasons(self, show: Show) -> None:
        report = conversation_report()
        notes = ("4 checks skipped", "1 check got worse")
        decision = replace(report.decision, notes=notes, unlisted_notes=notes)
        page = show(replace(report, decision=decision))
        assert page.texts(".verdict summary") == ["2 notes"]

    def test_edited_evaluator_is_not_called_a_looser_policy(self, show: Show) -> None:
        edited = PolicyChange(
            config="a.yaml", kind="edited", subject="code of tone", after="edited"
        )
        policy = PolicyComparison(base="main", loosened=(edited,))
        page = show(replace(conversation_report(), policy=policy))
        assert page.texts(".verdict .note") == ["Edited\ncode of tone"]
        page.press("m")
        page.wait("document.querySelector('.remarks td') !== null")
        assert page.texts(".remarks td") == ["code of tone", "\u2013", "edited"]
        assert "No messages." not in page.texts("main")[0]

    def test_effect_of_a_policy_change_follows_its_values(self, show: Show) -> None:
        edited = PolicyChange(
            config="a.yaml",
            kind="edited",
            subject="1 eval case",
            after="edited",
            names=("a",),
            key="eval_cases",
            effect="answer by 6; pm \u2192 by 8",
        )
        looser = PolicyChange(
            config="a.yaml", kind="loosened", subject="x", before="1", after="0", effect="a passes"
        )
        policy = PolicyComparison(base="main", loosened=(edited, looser))
        page = show(replace(conversation_report(), policy=policy))
        assert page.texts(".verdict .note") == [
            "Edited\n1 eval case: a: answer by 6; pm \u2192 by 8",
            "Policy loosened\nx 1 \u2192 0: a passes",
        ]

    def test_cards_show_the_baseline_or_without_one_what_is_expected(self, show: Show) -> None:
        report = conversation_report()
        page = show(report)
        call, expected = "Tool call (turn 1)", "Expected (turn 1)"
        assert page.texts(".change .first dt") == [call, "Baseline (turn 1)", "This run"]
        assert page.texts(".change .first dd")[1] == "There is no flight to Rome."
        page = show(replace(report, baseline={}, comparison=None))
        labels = page.texts(".change:first-of-type .first dt")
        assert labels == ["Turns", call, expected, "This run"]

    def test_card_of_an_unchanged_run_shows_what_is_expected(self, show: Show) -> None:
        """Its check fails for another reason than what the agent did."""
        report = conversation_report()
        first = report.results[0]
        before = replace(report.baseline[first.id], content=first.case.content)
        page = show(replace(report, results=(first,), baseline={first.id: before}))
        rows = dict(zip(page.texts(".first dt"), page.texts(".first dd"), strict=False))
        assert rows["Baseline"] == "the same calls and answers"
        assert rows["Expected (turn 1)"] == "There is no flight to Rome today."

    def test_card_says_what_differs_and_what_a_failed_tool_answered(self, show: Show) -> None:
        report = conversation_report()
        first = report.results[0]
        chunks = Chunks()
        now, before = make_run("Sorry, no.", "Paris"), make_run("Sorry, no.", "Rome")
        call = replace(now.turns[0].calls[0], result={"error": "unknown city"})
        turn = replace(now.turns[0], calls=(call,))
        numbers = [
            chunks.append(encode_content(each))
            for each in (replace(now, turns=(turn, *now.turns[1:])), before)
        ]
        miss = "turn 1: expected 'There is no flight to Rome today.', got 'Sorry, no.' (0.25)"
        judged = first.judgement and replace(first.judgement, misses=(miss,))
        evaluator = replace(first.evaluator, type="builtin")
        case = replace(first.case, content=numbers[0])
        result = replace(first, judgement=judged, evaluator=evaluator, case=case)
        old = replace(report.baseline[first.id], content=numbers[1])
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        page = show(replace(report, results=(result,), contents=contents, baseline={first.id: old}))
        assert 'find_flight: {"error": "unknown city"}' in page.texts(".first dd")
        [reason] = page.texts(".change li .quiet")
        assert reason.startswith("turn 1: the answer differs: ")
        assert "Sorry" in reason
        page.run("document.querySelector('.change a.name').click()")
        page.wait("document.querySelector('.call .mark') !== null")
        assert "The tool failed" in page.texts(".call .mark")[0]

    def test_error_of_a_tool_that_is_called_as_before_is_shown(self, show: Show) -> None:
        answered = 'send: {"error": "timed out"}'
        page = show(_failing_invoices("send"))
        assert answered in page.texts(".first dd")
        page = show(_failing_invoices("send"), "#/compare")
        assert page.texts(".first-call") == [f"Tool error {answered}"]
        assert page.texts(".members .line") == [answered]

    def test_cause_of_one_case_is_headed_by_what_happened(self, show: Show) -> None:
        page = show(changed_days_report("tone", "style"), "#/?group=cause")
        assert [each.split("\n")[0] for each in page.texts("tr.group th")] == [
            "tone: 30 days \u2192 14 days",
            "style: 30 days \u2192 14 days",
        ]

    def test_lower_score_that_passes_is_listed_and_filtered(self, show: Show) -> None:
        report = conversation_report(tone_before=1.0)
        before = report.comparison
        assert before is not None
        fell = (make_change("unchanged", 1.0, 0.9, "passed"),)
        tone = make_trend(evaluator="tone", newly_failing=(), lower_score=fell)
        comparison = replace(before, evaluators=(*before.evaluators, tone))
        page = show(replace(report, comparison=comparison))
        assert page_line(page).endswith("1 passed in both (1 with a lower score)")
        assert "Lower score\nunchanged\ntone requires score >= 0.7\n1 \u2192 0.9" in page.texts(
            ".rest a"
        )
        page.run(
            "[...document.querySelectorAll('.rest a')]"
            ".find((each) => each.innerText.startsWith('Lower')).click()"
        )
        page.wait("location.hash.startsWith('#/case/unchanged')")
        page.run("location.hash = '#/?f=lower'")
        page.wait("document.querySelector('.matrix') !== null")
        assert len(_rows(page)) == 1

    def test_cases_are_filtered_by_evaluator(self, show: Show) -> None:
        page = show(conversation_report())
        _choose(page, "e", "tone")
        page.wait("location.hash === '#/?e=tone'")
        assert page.texts("[data-filter=new]") == []
        _choose(page, "e", "response_quality")
        page.run("document.querySelector('[data-filter=new]').click()")
        page.wait("location.hash === '#/?e=response_quality&f=new'")
        assert _rows(page) == ["to_rome", "to_rome_again"]

    def test_cases_are_grouped_by_cause(self, show: Show) -> None:
        """Cases that fail alike are one group, as they are one card; the keys step through them."""
        page = show(wide_report(3, cases=9))
        _choose(page, "group", "cause")
        page.wait("document.querySelectorAll('tr.group').length === 2")
        assert page.run("location.hash") == "#/?group=cause"
        assert page.texts("tr.group th")[0] == ("evaluator_1: reason a\n5 cases \u00b7 5 failed")
        assert len(_rows(page)) == 9
        for _ in range(3):
            page.press("j")
        page.press("Enter")
        page.wait("document.querySelector('.crumb .quiet') !== null")
        assert page.texts(".crumb .quiet")[0].endswith(" of 9")

    def test_cases_that_fail_alike_are_shown_with_their_numbers(self, show: Show) -> None:
        amounts = ("49.90", "99999.00", "4.95", "4.95", "7", "8", "12")
        misses = [f"no tool returned {each}" for each in amounts]
        results = [
            make_result("failed", 0.0, case=f"c{at}", evaluator="amounts", misses=[each])
            for at, each in enumerate(misses)
        ]
        page = show(make_report(results))
        assert page.texts(".change .name") == ["c1"]
        [same] = page.texts(".change .same")
        assert same == (
            "6 more cases fail for the same reason: c0 (no tool returned 49.90), "
            "c6 (no tool returned 12), c5 (no tool returned 8), c4 (no tool returned 7), "
            "c2 (no tool returned 4.95), \u2026 and 1 more (no tool returned 4.95)"
        )
        page.run("document.querySelectorAll('.same a')[1].click()")
        page.wait("location.hash === '#/case/c0'")
        page = show(make_report(results), "#/?group=cause")
        [heading] = page.texts("tr.group th")
        assert heading.startswith("amounts: no tool returned 4.95 to 99999.00\n7 cases")

    @pytest.mark.parametrize("evaluators", [4, 20])
    def test_column_heads_stay_in_view(self, show: Show, evaluators: int) -> None:
        """A table that is wider than the page scrolls in its own region, others with the page."""
        page = show(wide_report(evaluators))
        region = "document.querySelector('.scroll')"
        page.run(f"{region}.scrollIntoView()")
        is_own = evaluators > 4
        page.run(f"{region}.scrollTo(300, 1200)" if is_own else "scrollBy(0, 1200)")
        page.run("new Promise(requestAnimationFrame)")
        [head, search, row] = page.run(
            "['.matrix thead th', '.search', 'tr.row:nth-of-type(30) th'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect())"
            ".map(({top, bottom, left}) => ({top, bottom, left}))"
        )
        assert 40 < head["top"] < 120
        assert row["top"] < 900
        assert search["left"] == row["left"] > 0
        assert page.run("document.documentElement.scrollWidth") <= 1280

    def test_phone_shows_what_got_worse_and_why_first(self, show: Show) -> None:
        page = show(conversation_report(), width=390, height=844)
        [why, tiles] = page.run(
            "['.change .first', '.tiles'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect().top)"
        )
        assert why < 600
        assert tiles > why

    def test_phone_cuts_no_control_and_no_column_head(self, show: Show) -> None:
        page = show(wide_report(5, cases=9), width=360, height=800)
        for selector in (".tabs", ".chips", ".matrix thead button"):
            cut = page.run(
                f"[...document.querySelectorAll('{selector}')].filter((each) =>"
                " each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight + 1)"
                ".map((each) => each.innerText)"
            )
            assert cut == [], selector
        widths = page.run(
            "[...document.querySelectorAll('.find select')].map((each) => each.offsetWidth)"
        )
        assert len(widths) == 3
        assert min(widths) >= 140

    @pytest.mark.parametrize("width", [360, 1280])
    def test_name_and_labels_of_a_case_are_not_cut(self, show: Show, width: int) -> None:
        page = show(conversation_report(), width=width)
        cut = page.run("""[...document.querySelectorAll('.case')].filter((box) => {
          const name = box.querySelector('a'), line = box.querySelector('.line');
          name.textContent = 'warranty_drill_two';
          for (const text of ['No longer fully evaluated', 'Answer changed']) {
            const label = document.createElement('span');
            label.className = 'pill';
            label.textContent = text;
            line.prepend(label);
          }
          const isCut = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth;
          return [name, ...line.querySelectorAll('.pill')].some(isCut);
        }).length""")
        assert cut == 0

    def test_phone_shows_the_column_of_the_chosen_evaluator(self, show: Show) -> None:
        page = show(wide_report(9, cases=9), "#/?e=evaluator_8", width=360, height=800)
        heads = page.texts(".matrix thead th button")
        assert len(heads) == 5
        assert heads[0] == "evaluator_8"

    def test_long_question_does_not_widen_its_card(self, show: Show) -> None:
        report = conversation_report()
        turn = DialogueTurn(question="Where is my parcel? " * 20, answer="Here.")
        results = [
            replace(each, case=replace(each.case, dialogue=(turn,))) for each in report.results
        ]
        page = show(replace(report, results=tuple(results)), width=800)
        wider = "(each) => each.scrollWidth > each.clientWidth"
        assert page.run(f"[...document.querySelectorAll('.change')].filter({wider}).length") == 0

    def test_heads_stay_in_view_on_a_phone_without_the_search(self, show: Show) -> None:
        page = show(wide_report(5), width=360, height=800)
        page.run("document.querySelector('tr.row:nth-of-type(30)').scrollIntoView()")
        bar, head = page.run(
            "['.bar', '.matrix thead th'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect().bottom)"
        )
        assert bar < 60
        assert bar < head < bar + 90
        field = page.run("document.getElementById('search').getBoundingClientRect().bottom")
        assert field <= bar

    def test_chosen_rows_are_printed_in_light_colours(self, show: Show) -> None:
        page = show(long_report(300), dark=True)
        page.run("localStorage.clear()")
        page = show(long_report(300), "#/?f=passed", dark=True)
        assert len(_rows(page)) < 100
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert len(_rows(page)) == 257
        assert page.run("document.documentElement.dataset.theme") == "light"
        page.run("dispatchEvent(new Event('afterprint'))")
        assert len(_rows(page)) < 100
        assert page.run("document.documentElement.dataset.theme") == "dark"

    def test_printed_reason_is_apart_from_the_name_of_its_evaluator(self, show: Show) -> None:
        page = show(conversation_report())
        page.look(media="print")
        reason = page.texts(".change li > span:nth-child(2)")[0]
        assert reason == "response_quality turn 1: the wrong city"

    def test_without_a_choice_cases_that_passed_are_not_printed(self, show: Show) -> None:
        page = show(long_report(300))
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert len(_rows(page)) == 43
        hint = "257 cases that passed or were skipped as before: not printed."
        assert page.texts(".hint") == [hint]


def _sees_rows(page: Browser) -> bool:
    found: bool = page.run(
        "[...document.querySelectorAll('tr.row')].every((each) =>"
        " each.getBoundingClientRect().bottom < innerHeight)"
    )
    return found


def page_line(page: Browser) -> str:
    """The line of the verdict that says what changed."""
    return page.texts(".verdict .why")[0]


def _unfold(page: Browser) -> None:
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def _shows(case: str) -> str:
    """The condition that the page shows a case."""
    return f"document.querySelector('h1').textContent === '{case}'"


def _open_span(page: Browser, index: int) -> dict[str, str]:
    """Open a span by the keyboard and return what it shows."""
    span = f"document.querySelectorAll('.timeline details')[{index}]"
    page.run(f"{span}.querySelector('summary').focus()")
    page.press("Enter")
    page.wait(f"{span}.open")
    parts = page.run(f"[...{span}.querySelectorAll('dt, dd')].map((each) => each.innerText)")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _bars(page: Browser, selector: str) -> list[list[str]]:
    """Where the bars of the timeline start, and how wide they are."""
    found: list[list[str]] = page.run(
        f"[...document.querySelectorAll('.track:has({selector}) > *')]"
        f".filter((each) => each.matches('{selector}'))"
        ".map((each) => [each.style.left, each.style.width])"
    )
    return found


# Elements whose text does not fit, and that neither end with an ellipsis nor can be scrolled, or
# that have no title when the pointer is over them.
CUT_TEXTS = """[...document.querySelectorAll('main *')].filter((each) => {
    const { overflowX, textOverflow, webkitLineClamp, display } = getComputedStyle(each);
    if (each.closest('.unseen, .histogram, .meter') || display === 'inline') return false;
    const isWide = each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1;
    const isLong = webkitLineClamp !== 'none' && each.scrollHeight > each.clientHeight;
    if (!isWide && !isLong) return false;
    if (isWide && textOverflow !== 'ellipsis') return !['auto', 'scroll'].includes(overflowX);
    each.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
    return !each.closest('[title]');
}).map((each) => `${each.className}: ${each.innerText}`)"""


def _choose(page: Browser, key: str, value: str) -> None:
    page.run(
        f"(() => {{ const list = document.getElementById('choose-{key}');"
        f"list.value = '{value}'; list.dispatchEvent(new Event('change')); }})()"
    )


class TestCase:
    def test_calls_and_answers_are_shown_beside_expected_ones(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome?with=expected")
        assert page.texts("h1") == ["to_rome"]
        assert page.texts(".call .mark") == ["Arguments differ \u00b7 40 ms"]
        marked = ['reference\n"Rome"', 'this run\n"Paris"']
        assert page.texts(".call del, .call ins") == marked
        assert page.texts(".result") == ['result\n\u2192 {"flights": []}']
        assert page.texts(".pane h3") == ["Expected", "This run", "Expected", "This run"]
        assert page.texts(".turn .pill") == ["Missing in this run"]

    @pytest.mark.parametrize("reference", ["expected", "base", "both", "off"])
    def test_calls_that_fail_a_check_are_marked_beside_each_reference(
        self, show: Show, reference: str
    ) -> None:
        page = show(retried_call_report(), f"#/case/by_air?with={reference}")
        failed, repeated, missing = page.texts(".call:has(.mark)")
        finding = 'calls find_flight(to="Rome", seats=2) is'
        assert "! The tool failed" in failed
        assert ("Unexpected" in repeated) == (reference != "base")
        assert f"{finding} not expected" in repeated
        assert "Not called" in missing
        assert (f"{finding} missing" in missing) == (reference != "both")
        assert len(page.texts(".call.bad")) == 2
        assert page.texts(".call.error") == [failed]

    def test_pauses_between_turns_take_no_width(self, show: Show) -> None:
        page = show(retried_call_report(), "#/case/by_air")
        pause = "after a pause of 60.0 s, which is not drawn"
        assert page.texts(".part") == ["Turn 1", f"Turn 2 {pause}"]
        assert page.texts(".axis .track span") == ["0 s", "0.6 s", "1.2 s", "1.8 s", "2.4 s"]
        for kind in ("agent", "ghost"):
            bars = _bars(page, f"i.{kind}:is(.agent, .agent + *)")
            assert bars == [["0%", "50%"], ["50%", "50%"]]

    @pytest.mark.parametrize("width", [1280, 390])
    def test_ticks_of_the_timeline_are_above_its_lines(self, show: Show, width: int) -> None:
        page = show(failing_tool_report(), "#/case/by_air", width=width)
        left, right, ticks = page.run(
            "(() => { const track = document.querySelector('.axis .track').getBoundingClientRect();"
            " const ticks = [...document.querySelectorAll('.axis .track span')]"
            ".map((each) => each.getBoundingClientRect()).filter(({ width }) => width);"
            " return [track.left, track.right, ticks.map(({ left, right }) => [left, right])]; })()"
        )
        assert [ticks[0][0], ticks[-1][1]] == pytest.approx([left, right], abs=1.5)
        centers = [sum(each) / 2 for each in ticks[1:-1]]
        step = (right - left) / (len(ticks) - 1)
        assert centers == pytest.approx([left + step * (n + 1) for n in range(len(centers))], abs=1)

    def test_bars_of_the_baseline_start_at_its_own_times(self, show: Show) -> None:
        page = show(failing_tool_report(), "#/case/by_air")
        assert _bars(page, "i.ghost") == [
            ["0%", "50%"], ["0%", "4.17%"], ["8.33%", "0.83%"], ["13.33%", "25%"]
        ]  # fmt: skip
        assert _bars(page, "i.model")[-1] == ["66.67%", "33.33%"]
        # Above the baseline's, which are lines with ends.
        tops = page.run(
            "[...document.querySelectorAll('.track:has(.ghost)')].map((each) => [...each.children]"
            ".map((bar) => bar.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom]))"
        )
        assert all(now[1] <= then[0] for now, then in tops)

    def test_part_that_is_larger_than_the_whole_is_not_a_share_of_it(self, show: Show) -> None:
        page = show(slow_tool_report(chat_before=700), "#/case/by_air")
        [row] = page.texts(".slowest")
        assert " ".join(row.split()) == "track failed ✕ 3.0 s up ▲ 2.9 s"

    def test_forbidden_call_is_marked_by_its_arguments(self, show: Show) -> None:
        page = show(forbidden_call_report(), "#/case/by_air?with=base")
        marked = page.texts(".call:has(.misses) > div > code")
        assert marked == ['find_flight(to: "Paris", seats: 2)']

    @pytest.mark.parametrize("reference", ["expected", "base"])
    def test_content_that_was_not_captured_does_not_differ(
        self, show: Show, reference: str
    ) -> None:
        page = show(not_captured_report(), f"#/case/by_air?with={reference}")
        assert page.texts(".call > div:first-child > code") == ["find_flight"]
        assert page.texts(".call .mark") == ["Arguments not recorded"]
        assert page.texts(".turn .step:first-of-type > div:last-child") == ["not recorded"]
        assert page.texts(".check h3 code") == ["response_quality", "tone"]
        assert page.texts(".check > .headline, .check > details:not([open]) code") == [
            "the content of the messages was not captured",
            "tone",
        ]

    def test_step_that_made_the_run_slower_is_marked_and_named(self, show: Show) -> None:
        page = show(slow_tool_report(), "#/case/by_air")
        heads = [" ".join(each.split()) for each in page.texts(".timeline .head > .quiet, .most")]
        assert heads == ["1.0 s → 4.0 s up ▲ 3.0 s", "mostly track up ▲ 2.9 s"]
        rows = [" ".join(each.split()) for each in page.texts(".timeline .span:not(.axis)")]
        assert rows[1:] == [
            "chat small-1 1,210 tokens up ▲ 100 500 ms up ▲ 50 ms",
            "track failed ✕ 3.0 s up ▲ 2.9 s of 3.0 s",
            "chat small-1 1,210 tokens up ▲ 100 500 ms up ▲ 50 ms",
        ]
        [row] = page.texts(".slowest")
        assert row.startswith("track")
        assert page.texts(".track i.error") == ["✕"]
        assert page.texts(".timeline .legend > *")[-2:] == ["until the first token", "baseline"]
        share, whole = page.run(
            "['i.model u', 'i.model'].map((each) =>"
            " document.querySelector(`.track ${each}`).getBoundingClientRect().width)"
        )
        assert share / whole == pytest.approx(0.24, abs=0.02)
        known = _open_span(page, 1)
        assert known["First token"] == "after 120 ms"
        assert known["Tokens"] == "1,200 in, 10 out"
        page = show(slower_steps_report(), "#/case/by_air?with=off")
        assert page.texts(".slowest") == []

    def test_case_is_printed_without_controls_and_without_cut_boxes(self, show: Show) -> None:
        page = show(retried_call_report(), "#/case/by_air")
        page.look(media="print")
        for selector in ("button:not(.link)", ".btn", ".crumb > a", ".check > details"):
            assert page.texts(selector) == []
        assert page.texts(".legend ins") == ["this run only"]
        assert len(page.texts(".call")) == 3
        breaks = page.run(
            "['.call', '.check', '.step:last-child', '.turn > header', '.timeline .head']"
            ".map((each) => getComputedStyle(document.querySelector(each)))"
            ".map((style) => style.breakInside + ' ' + style.breakAfter)"
        )
        assert breaks == [*["avoid auto"] * 3, *["auto avoid"] * 2]

    def test_next_case_that_got_worse_is_a_key_and_a_link_away(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/by_sea")
        page.run("location.hash = '#/?sort=name'")
        page.wait("document.querySelector('.matrix') !== null")
        page.run("location.hash = '#/case/by_sea'")
        page.wait(_shows("by_sea"))
        for key, name in (("j", "out_of_order"), ("j", "to_rome"), ("k", "out_of_order")):
            page.press(key)
            page.wait(_shows(name))
        assert "Next regression" not in " ".join(page.texts(".tools"))
        page.press("k")
        page.run("location.hash = '#/case/by_train'")
        page.wait(_shows("by_train"))
        page.run(
            "[...document.querySelectorAll('.tools a')]"
            ".find((each) => each.textContent.startsWith('Next regression')).click()"
        )
        page.wait(_shows("out_of_order"))

    def test_link_of_a_case_is_copied(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome?with=off")
        copy = "document.querySelector('.crumb button').click()"
        page.run(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };" + copy
        )
        page.wait("document.querySelector('.crumb [role=status]').textContent === 'Copied'")
        assert page.run("copied").endswith("/report.html#/case/to_rome?with=off")
        page.run("navigator.clipboard.writeText = async () => { throw new Error(); };" + copy)
        page.wait(
            "document.querySelector('.crumb [role=status]').textContent.startsWith('Copy it')"
        )

    def test_spans_open_to_show_their_input_and_output(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome")
        asked = {"User": "A flight to Rome, please."}
        answered = {"Baseline": "There is no flight to Rome."}
        call = '{\n  "to": "Paris",\n  "seats": 2\n}'
        result = '{\n  "flights": []\n}\nas in the baseline'
        names = page.texts(".timeline summary .name")
        assert names == ["invoke_agent", "chat small-1", "chat small-1"]
        assert [_open_span(page, index) for index in range(3)] == [
            {**asked, "Answer": "Sorry, no.", **answered},
            {**asked, "Call of find_flight": call, "Baseline": call.replace("Paris", "Rome")},
            {
                "Earlier": "2 earlier messages",
                "Result of find_flight": result,
                "Answer": "Sorry, no.",
                **answered,
            },
        ]
        step = ".timeline details:nth-of-type(3)"
        assert page.texts(f"{step} h3") == ["Input", "Output"]
        page.run(f"document.querySelector('{step} details summary').click()")
        page.wait(f"document.querySelector('{step} details dd') !== null")
        assert page.texts(f"{step} details dl > *") == [
            "User", "A flight to Rome, please.", "Call of find_flight", call,
        ]  # fmt: skip

    def test_duration_of_each_span_is_compared_with_the_baseline(self, show: Show) -> None:
        page = show(slower_steps_report(), "#/case/by_air")
        changes = [" ".join(each.split()) for each in page.texts(".span:not(.axis) .amounts")]
        assert changes == [
            "1.2 s up \u25b2 600 ms",
            "800 ms this run only",
            "360 ms up \u25b2 180 ms",
        ]
        assert page.run("document.querySelectorAll('.timeline summary i.ghost').length") == 2

    @pytest.mark.parametrize("width", [1280, 390])
    def test_steps_that_only_the_baseline_has_are_drawn_as_outlines(
        self, show: Show, width: int
    ) -> None:
        page = show(removed_step_report(), "#/case/by_air", width=width)
        rows = [" ".join(each.split()) for each in page.texts(".timeline .span:not(.axis)")]
        assert [each for each in rows if "baseline only" in each] == [
            "chat small-1 800 ms baseline only",
            "find_flight 20 ms baseline only",
        ]
        assert [each.split()[0] for each in rows] == ["invoke_agent", "chat", "find_flight", "chat"]
        outlines = page.run(
            "[...document.querySelectorAll('.span.gone i')].map((each) =>"
            " [getComputedStyle(each).backgroundColor, each.getBoundingClientRect().width > 1])"
        )
        assert outlines == [["rgba(0, 0, 0, 0)", True]] * 2

    def test_another_model_is_beside_the_cost_and_its_calls_are_compared(self, show: Show) -> None:
        page = show(other_model_report())
        assert page.texts(".tile dd.under")[-1].split("\n")[-1] == "model small-1 \u2192 large-1"
        assert page.texts(".meta span")[-1] == "agent model small-1 \u2192 large-1"
        page = show(other_model_report(), "#/case/by_air")
        assert page.texts(".span .name")[-2:] == ["chat large-1"] * 2
        assert "not in the baseline" not in " ".join(page.texts(".span .amounts"))

    def test_other_result_of_a_tool_is_no_unchanged_call(self, show: Show) -> None:
        report = other_result_report(reason="exit code 3")
        page = show(report, "#/compare?f=all")
        [header] = page.texts(".beside header")
        assert "same answer and calls as in the baseline; other tool results" in header
        page = show(report, "#/case/by_air")
        assert page.texts(".chip[aria-pressed=true]") == ["Baseline"]
        assert page.texts(".call .mark") == ["Tool result differs \u00b7 40 ms"]
        assert page.texts(".result.old") == ['Baseline \u2192 {"flights": []}']

    def test_small_changes_of_amounts_have_no_colour_and_are_compared(self, show: Show) -> None:
        page = show(other_result_report(), "#/case/by_air")
        facts = [" ".join(each.split()) for each in page.texts(".facts dd")]
        assert "935 up \u25b2 5" in facts
        # The baseline lacks the same turn, so that the totals are of the same turns.
        assert "1 of 2" in facts
        assert page.texts(".facts .worse") == []
        page = show(other_result_report(tokens=1800), "#/case/by_air")
        assert page.texts(".facts .worse") != []

    def test_expected_call_is_as_expected_although_the_tool_failed(self, show: Show) -> None:
        report = other_result_report(
            "failed", {"error": "timed out"}, misses=["turn 1: `find_flight` failed"]
        )
        page = show(report, "#/case/by_air?with=both")
        looks = page.run("[...document.querySelectorAll('.call')].map((each) => each.className)")
        assert looks == ["call equal good", "call equal bad error", "call equal"]
        assert page.texts(".call .mark") == ["! The tool failed \u00b7 40 ms"]
        assert page.texts(".call .misses code")[-1] == "find_flight"
        page = show(report, "#/case/by_air?with=expected")
        assert page.texts(".call .mark")[0].startswith("! The tool failed")
        assert "Matches" not in page.texts(".call .mark")[0]

    def test_failed_tool_is_beside_its_result_in_the_baseline(self, show: Show) -> None:
        for reference in ("base", "both"):
            report = limit_contents(failing_tool_report(), "full")
            page = show(report, f"#/case/by_air?with={reference}")
            assert page.texts(".result.old") == ['Baseline \u2192 {"flights": [], "day": "Monday"}']
            assert len(page.texts(".call.error")) == 2
        report = limit_contents(failing_tool_report("x" * 1000), "full")
        page = show(report, "#/case/by_air?with=base")
        [shown] = page.texts(".result.old")
        assert shown.endswith(f"{'x' * 200}\u2026 (800 more characters not stored)")
        assert page.texts(".call .mark")[1].startswith(
            "! The tool failed \u00b7 Called 2 times, 1 in the baseline"
        )
        assert page.texts(".call .mark")[0].startswith("! The tool failed, unlike in the baseline")
        assert "Not in the baseline" in page.texts(".call .mark")[2]

    @pytest.mark.parametrize("before", [(False,), (True,), (True, False)])
    def test_tool_newly_fails_as_in_the_other_reports(
        self, show: Show, before: tuple[bool, ...]
    ) -> None:
        """Not if it fails as often in the baseline, for another one of equal calls."""
        failed = CallContent(name="pay", arguments={}, result={"error": "timed out"})
        results = (failed, replace(failed, result={"paid": 1}))
        chunks = Chunks()
        now, then = (
            chunks.append(
                encode_content(
                    RunContent(
                        turns=(
                            TurnContent(
                                user="x",
                                answer="y",
                                calls=tuple(results[not each] for each in flags),
                            ),
                        )
                    )
                )
            )
            for flags in (before[::-1] if len(before) > 1 else (True,), before)
        )
        result = make_result("failed", 0.0, case="c")
        result = replace(result, case=replace(result.case, content=now))
        kept = BaselineCheck(status="passed", score=1.0, content=then)
        report = replace(
            compared(make_report([result]), make_trend()),
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            baseline={result.id: kept},
        )
        report = limit_contents(report, "full")
        is_newly = before == (False,)
        marks = show(report, "#/case/c?with=base").texts(".call .mark")
        assert "! The tool failed" in " ".join(marks)
        assert ("unlike in the baseline" in " ".join(marks)) == is_newly
        assert (name_causes(report) == {0: "pay failed: timed out"}) == is_newly
        assert bool(show(report).texts("[data-filter=tools]")) == is_newly

    def test_result_that_is_the_same_is_not_repeated(self, show: Show) -> None:
        page = show(failing_tool_report({"error": "timed out"}), "#/case/by_air?with=base")
        assert page.texts(".result.old") == []
        assert "As in the baseline" in page.texts(".call .mark")[0]

    def test_failed_tools_and_added_steps_are_marked_in_the_timeline(self, show: Show) -> None:
        page = show(failing_tool_report(), "#/case/by_air?with=base")
        names = [" ".join(each.split()) for each in page.texts(".timeline summary .name")]
        assert [place for place, name in enumerate(names) if name.endswith("failed")] == [2, 4]
        amounts = [" ".join(each.split()) for each in page.texts(".timeline summary .amounts")]
        added = [place for place, each in enumerate(amounts) if each.endswith("this run only")]
        assert added == [3, 4, 5, 6]
        assert amounts[-1] == "400 ms up \u25b2 100 ms"

    def test_stored_start_of_a_result_is_compared_in_the_same_format(self, show: Show) -> None:
        def open_tool(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, list[str]]:
            page = show(long_result_report(before, now), "#/case/by_air?with=base")
            shown = _open_span(page, 2)
            tool = "document.querySelector('.timeline details[open]')"
            marks = page.run(f"[...{tool}.querySelectorAll('del, ins')].map((e) => e.textContent)")
            return "\n".join(shown.values()), marks

        note = " ".join(f"word {number}" for number in range(60))
        same, marks = open_tool({"day": "Monday", "note": note}, {"day": "Monday", "note": note})
        assert marks == []
        assert "as in the baseline\u2026 (" in same
        assert "more characters not stored)" in same
        _, marks = open_tool({"day": "Monday", "note": note}, {"day": "Sunday", "note": note})
        assert marks == ["Sunday", "Monday"]
        _, marks = open_tool({"day": "Monday", "note": note}, {"day": "Wednesday", "note": note})
        assert marks == ["Wednesday", "Monday"]
        _, marks = open_tool({"day": "Monday"}, {"day": "Sunday"})
        assert marks == ["Sunday", "Monday"]

    def test_step_shows_what_went_in_and_out_in_the_baseline(self, show: Show) -> None:
        page = show(failing_tool_report(), "#/case/by_air?with=base")
        page.run("document.querySelectorAll('.timeline details').forEach((e) => (e.open = true))")
        steps = page.texts(".timeline > details")
        assert "as in the baseline" in steps[2]
        assert [line for line in steps[2].split("\n") if "Monday" in line]
        assert "timed out" in steps[2]
        assert "There is no flight to Rome today." in steps[-1]
        assert page.texts(".timeline details:last-of-type ins") != []
        before = slower_steps_report()
        page = show(before, "#/case/by_air")
        page.run("document.querySelectorAll('.timeline details').forEach((e) => (e.open = true))")
        assert "as in the baseline" in page.texts(".timeline > details")[-1]

    def test_phone_shows_the_difference_of_the_first_verdict_above_the_conversation(
        self, show: Show
    ) -> None:
        miss = (
            "turn 1: expected find_order(order_id='4712'), got find_order(order_id='4712'), "
            "create_refund(order_id='4712', amount='49.90 EUR')"
        )
        result = make_result("failed", 0.0, case="kettle", misses=[miss])
        page = show(make_report([result]), "#/case/kettle", width=390, height=844)
        whole, bottom = page.run(
            "(({ scrollHeight, clientHeight }, { bottom }) =>"
            " [scrollHeight <= clientHeight, bottom])("
            "...['li', 'li'].map((name) => document.querySelector(`.check .misses ${name}`))"
            ".map((each, at) => (at ? each.getBoundingClientRect() : each)))"
        )
        assert whole
        assert bottom < 844

    def test_pills_of_a_case_lead_to_cases_like_it(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome")
        links = page.run(
            "[...document.querySelectorAll('.casehead a:has(.pill)')]"
            ".map((each) => [each.innerText, each.hash])"
        )
        assert links == [
            ["Newly failing", "#/?f=new"],
            ["Answer changed", "#/?f=answer"],
            ["7.5\u00d7 slower", "#/?f=large"],
        ]
        page.run("location.hash = '#/compare'")
        page.wait("document.querySelector('a.pill') !== null")
        page.run("document.querySelector('a.pill').click()")
        page.wait("document.querySelector('.matrix') !== null")
        assert _rows(page) == ["to_rome", "to_rome_again"]

    @pytest.mark.parametrize(
        ("reference", "shown"), [("", "expected"), ("?with=both", "expected or baseline")]
    )
    def test_unchanged_case_says_what_its_marked_words_differ_from(
        self, show: Show, reference: str, shown: str
    ) -> None:
        page = show(conversation_report(), f"#/case/unchanged{reference}")
        assert "same answer and calls as in the baseline" in page.texts(".casehead .head")[0]
        assert page.texts(".casehead .legend span")[0] == f"Differs from {shown}:"
        now = ["This run", "as in the baseline"]
        assert now in [each.split("\n") for each in page.texts(".pane h3")]
        page = show(conversation_report(), "#/case/to_rome?with=expected")
        assert "This run" in page.texts(".pane h3")
        assert "as in the baseline" not in page.texts(".casehead .head")[0]

    def test_changed_fact_is_beside_the_name_of_a_case(self, show: Show) -> None:
        page = show(changed_facts_report(14), "#/case/c0")
        assert page.texts(".casehead .pill") == ["Passed", "Changed fact"]
        assert "30 days" in page.texts(".casehead .head del")[0]
        assert "14 days" in page.texts(".casehead .head ins")[0]

    @pytest.mark.parametrize(
        ("reference", "width", "is_beside"),
        [("expected", 1280, True), ("both", 1280, True), ("base", 1280, False),
         ("off", 1280, False), ("expected", 390, False)],
    )  # fmt: skip
    def test_verdict_does_not_quote_what_the_conversation_beside_it_shows(
        self, show: Show, reference: str, width: int, is_beside: bool
    ) -> None:
        """The baseline's answer is not the expected one, and a phone has nothing beside it."""
        quoted = "turn 1: expected 'There is no flight to Rome today.', got 'Sorry, no.' (0.2)"
        report = conversation_report()
        results = [
            replace(
                each,
                evaluator=replace(each.evaluator, type="builtin"),
                judgement=each.judgement and replace(each.judgement, misses=(quoted,)),
            )
            if each.case.id == "to_rome"
            else each
            for each in report.results
        ]
        report = replace(report, results=tuple(results))
        page = show(report, f"#/case/to_rome?with={reference}", width=width)
        shown = "turn 1: the answer differs (0.2)" if is_beside else quoted
        assert page.texts(".check .misses li")[:1] == [shown]

    def test_phone_folds_further_failed_checks(self, show: Show) -> None:
        """Their names and scores are in view, and the conversation is on the second screen."""
        report = conversation_report()
        [first] = [each for each in report.results if each.case.id == "by_train"][:1]
        others = [
            replace(
                make_result(
                    "failed", 0.1 * number, case="by_train", evaluator=f"tone_{number}",
                    misses=["turn 1: " + "too rude " * 20],
                ),
                id=f"{100 + number:016x}",
                case=first.case,
            )
            for number in range(6)
        ]  # fmt: skip
        report = replace(report, results=(*report.results, *others))
        page = show(report, "#/case/by_train", width=390, height=844)
        assert [text.split("\n")[1] for text in page.texts(".check.failed h3")] == [
            *(f"tone_{number}" for number in range(6)),
            "response_quality",
        ]
        assert len(page.texts(".check .misses")) == 1
        assert page.run("document.querySelector('.turn').getBoundingClientRect().top") < 1200
        page.run("document.querySelector('[data-check=tone_3] summary').click()")
        assert len(page.texts(".check .misses")) == 2
        page = show(report, "#/case/by_train?check=tone_5", width=390, height=844)
        assert len(page.texts("[data-check=tone_5] .misses")) == 1
        page = show(report, "#/case/by_train")
        assert len(page.texts(".check .misses")) == 7

    def test_references_are_cycled_by_key_and_kept_in_address(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/by_train")
        for name, panes in (("base", "This run"), ("both", "Expected"), ("off", "")):
            page.press("x")
            page.wait(f"document.querySelector('[data-with={name}]').ariaPressed === 'true'")
            assert page.run("location.hash") == f"#/case/by_train?with={name}"
            assert " ".join(page.texts(".pane h3")).startswith(panes)
            assert bool(page.texts(".pane")) == bool(panes)
        page.press("x")
        page.wait("document.querySelector('.pane') !== null")
        page.run("document.querySelector('[data-with=base]').click()")
        page.wait("location.hash.endsWith('with=base')")
        assert page.texts(".turn header .delta") == []

    @pytest.mark.parametrize(
        ("case", "reference"), [("to_rome", "Baseline"), ("by_train", "Expected")]
    )
    def test_new_failure_is_compared_with_the_baseline(
        self, show: Show, case: str, reference: str
    ) -> None:
        page = show(conversation_report(), f"#/case/{case}")
        assert page.texts(".chip[aria-pressed=true]") == [reference]
        page.press("x")
        page.wait("location.hash.includes('with=')")
        following = {"Baseline": "both", "Expected": "base"}[reference]
        assert page.run("location.hash") == f"#/case/{case}?with={following}"

    def test_only_changed_arguments_of_an_aligned_call_are_marked(self, show: Show) -> None:
        actual = 'refund(amount: "8.50 EUR" \u2192 "85.00 EUR", to.iban: 1 \u2192 2)'
        whole = {"mark": "missing", "expected": "mail(to=1)", "actual": "", "note": ""}
        differs = {**whole, "mark": "differs", "expected": "refund(order=1)", "actual": actual}
        turn = {"title": "turn 1", "satisfied": False, "rows": [differs, whole]}
        result = make_result("failed", 0.0, case="a", details={"trajectories": [turn]})
        page = show(make_report([result]), "#/case/a")
        lines = [" ".join(each.split()) for each in page.texts(".aligned li")]
        assert lines[1] == "not called mail(to=1)"
        assert lines[0] == (
            'differs refund(amount: expected "8.50 EUR" this run "85.00 EUR", '
            "to.iban: expected 1 this run 2)"
        )
        assert len(page.texts(".aligned del")) == 3

    def test_only_changed_leaves_of_an_aligned_argument_are_marked(self, show: Show) -> None:
        before, after = (f'{{"street": "Hauptstr. 3", "zip": "{code}"}}' for code in (10115, 10155))
        differs = {
            "mark": "differs",
            "expected": "move(order=1)",
            "actual": f"move(to: {before} \u2192 {after})",
            "note": "",
        }
        turn = {"title": "turn 1", "satisfied": False, "rows": [differs]}
        result = make_result("failed", 0.0, case="a", details={"trajectories": [turn]})
        page = show(make_report([result]), "#/case/a")
        assert page.texts(".aligned del, .aligned ins") == ["10115", "10155"]

    def test_checks_are_listed_worst_first_with_reasons(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome?check=tone")
        assert page.texts(".check h3 code") == ["response_quality", "tone"]
        assert page.texts(".misses li") == ["turn 1: the wrong city"]
        [details] = page.run(
            "[...document.querySelectorAll('.check.passed details')]"
            ".map((each) => each.textContent)"
        )
        assert "0.9code" in details
        assert "--only tone --case to_rome" in details
        assert page.run("document.querySelector('.check.chosen').dataset.check") == "tone"

    def test_leaves_of_arguments_are_marked(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/case/parcel")
        assert page.texts(".call del, .call ins") == [
            'reference\n"20095"',
            'this run\n"20097"',
        ]

    @pytest.mark.parametrize("reference", ["expected", "base"])
    def test_moved_call_is_shown_once(self, show: Show, reference: str) -> None:
        page = show(long_conversation_report(), f"#/case/parcel?with={reference}")
        assert page.texts(".call .mark") == [
            "Arguments differ",
            "Matches" if reference == "expected" else "As in the baseline",
            "Moved from place 2 to 3",
        ]

    def test_both_references_are_beside_calls_and_answers(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/case/parcel?with=both")
        heads = ["Expected", "This run", "Baseline"]
        assert page.texts(".calls h3") == heads
        assert [text.split("\n")[0] for text in page.texts(".pane h3")] == heads
        assert page.texts(".call")[0].startswith("find_parcel(to: ")
        assert page.texts(".call del, .call ins") == ['"20095"', '"20097"', '"20095"']
        assert len(page.texts(".call")) == 9

    def test_every_difference_of_a_long_answer_is_in_view(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/case/parcel?with=base")
        assert page.texts(".pane del, .pane ins") == ["Monday", "5", "Sunday", "50"]
        assert page.texts(".clamp") == []
        folds = page.texts(".pane:last-child .equal")
        assert [text[2:4] + text[5:] for text in folds] == ["60 unchanged characters \u22ef"] * 2
        before = page.texts(".pane:last-child .text")[0]
        assert len(before) < 120
        page.run("document.querySelector('.pane:last-child .equal').click()")
        assert len(page.texts(".pane:last-child .equal")) == 1
        assert len(page.texts(".pane:last-child .text")[0]) > 600

    def test_turns_without_change_are_folded_with_their_number(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/case/parcel")
        assert page.texts(".turn h2") == ["Turn 5"]
        assert [text.split(" turns 1")[0].split(" turns 6")[0] for text in
                page.texts(".alike summary")] == ["4 turns as in the baseline"] * 2  # fmt: skip
        page.run("document.querySelector('.alike summary').click()")
        page.wait("document.querySelectorAll('.alike .turn').length === 4")
        assert page.texts(".turn h2") == [f"Turn {n}" for n in range(1, 6)]

    def test_only_failed_checks_have_crosses(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/case/parcel")
        signs = page.run(
            "[...document.querySelectorAll('.misses li')]"
            ".map((each) => getComputedStyle(each, '::before').content)"
        )
        assert [sign[1] for sign in signs] == ["\u2715", "\u2022"]

    def test_only_a_missing_turn_is_marked_if_the_others_are_as_before(self, show: Show) -> None:
        page = show(missing_turn_report(), "#/case/by_air?with=base")
        assert page.texts(".casehead .pill") == ["Newly failing"]
        sign = "getComputedStyle(document.querySelector('.misses li'), '::before').content[1]"
        assert page.run(sign) == "\u2022"
        calls = page.run("[...document.querySelectorAll('.missing .call')].map((e) => e.className)")
        assert calls == ["call missing bad"]
        assert page.texts(".missing .call .mark") == ["Not called"]

    @pytest.mark.parametrize("width", [390, 844])
    def test_phone_shows_failed_checks_then_conversation(self, show: Show, width: int) -> None:
        """Also on its side."""
        page = show(long_conversation_report(), "#/case/parcel", width=width, height=844)
        tops = page.run(
            "['[data-check=calls]', '.turn', '[data-check=tone]'].map((each) =>"
            " document.querySelector(each).getBoundingClientRect().top)"
        )
        assert tops == sorted(tops)
        assert tops[1] < 844

    def test_way_back_is_named_after_the_list(self, show: Show) -> None:
        page = show(conversation_report(), "#/?f=new")
        for address, name in (
            ("#/?f=new", "Newly failing"),
            ("#/?q=rome", "Selected cases"),
            ("#/", "All cases"),
            ("#/compare", "Comparison"),
        ):
            page.run(f"location.hash = '{address}'")
            page.wait("document.querySelector('.controls') !== null")
            page.run("location.hash = '#/case/to_rome'")
            page.wait(_shows("to_rome"))
            assert page.texts(".crumb > a") == [f"\u2190 {name}"]

    def test_answer_that_equals_its_reference_is_shown_once(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/unchanged?with=base")
        assert page.texts(".pane h3")[0].split("\n") == ["This run", "as in the baseline"]
        page = show(conversation_report(), "#/case/unchanged?with=expected")
        assert page.texts(".pane h3")[:2] == ["Expected", "This run\nas in the baseline"]

    @pytest.mark.parametrize("width", [1400, 390])
    def test_turn_of_a_finding_leads_there(self, show: Show, width: int) -> None:
        page = show(long_conversation_report(), "#/case/parcel", width=width, height=500)
        assert set(page.texts(".misses .link")) == {"turn 5"}
        page.run("document.querySelector('.misses .link').click()")
        page.wait("scrollY > 0")
        below = page.run(
            "document.querySelector('[aria-label=\\'Turn 5\\']').getBoundingClientRect().top"
            " - document.querySelector('.bar').getBoundingClientRect().bottom"
        )
        assert 0 <= below < 60

    def test_command_that_runs_a_check_again_is_copied(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome")
        _unfold(page)
        page.run(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
            "document.querySelector('.check .facts button').click()"
        )
        page.wait("window.copied !== undefined")
        assert page.run("copied").endswith("--only response_quality --case to_rome")

    def test_phone_shows_the_reason_of_an_error(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/out_of_order", width=390)
        assert page.texts(".check.errored .headline") == ["exit code 3"]

    def test_traceback_of_an_error_is_folded_below_its_last_line(self, show: Show) -> None:
        stack = "exit code 1: Traceback (most recent call last):\n  File x\nValueError: no 4711"
        page = show(make_report([make_result("errored", case="c", reason=stack)]), "#/case/c")
        assert page.texts(".check > .headline") == ["ValueError: no 4711"]
        assert page.texts(".check > details > summary")[0] == "Traceback"
        page.run("document.querySelector('.check > details').open = true")
        assert page.texts(".check > details .headline") == [stack]

    def test_check_that_passed_as_before_is_a_line_that_opens(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/to_rome")
        assert page.texts(".check.passed") == ["\u2713\ntone\n0.9"]
        page.run("document.querySelector('.check.passed summary').click()")
        page.wait("document.querySelector('.check.passed details').open")
        assert "baseline 0.9" in page.texts(".check.passed")[0]

    def test_next_case_follows_filter_by_key_and_link(self, show: Show) -> None:
        page = show(conversation_report(), "#/?f=new")
        page.press("j")
        assert _focus(page) == "to_rome"
        page.press("Enter")
        page.wait("document.querySelector('.crumb .quiet') !== null")
        assert page.texts(".crumb .quiet")[0] == "1 of 2"
        page.press("x")
        page.wait("document.querySelector('[data-with=both]').ariaPressed === 'true'")
        page.press("]")
        page.wait("document.activeElement.innerText === 'to_rome_again'")
        assert page.run("location.hash") == "#/case/to_rome_again?with=both"
        page.run("document.querySelector('[aria-label=\"Previous case\"]').click()")
        page.wait("location.hash === '#/case/to_rome?with=both'")

    def test_way_back_restores_list_and_focus(self, show: Show) -> None:
        page = show(conversation_report(), "#/?f=new")
        page.run("document.querySelectorAll('tr.row a')[0].focus()")
        page.press("Enter")
        page.wait("document.querySelector('.check') !== null")
        page.press("Escape")
        page.wait("document.querySelector('tr.row') !== null")
        page.wait("document.activeElement.innerText === 'to_rome'")
        assert page.run("location.hash") == "#/?f=new"

    def test_trials_and_repeats_are_shown(self, show: Show) -> None:
        page = show(full_report(), "#/case/books_a_flight")
        assert page.texts(".trials tbody tr") == ["1\t0.9\t", "2\t-\tit hung"]
        assert page.texts(".repeats tbody tr") == [
            "1\t\u2713 Passed\t0.9\t",
            "2\t\u2715 Failed\t-\ta turn is missing",
        ]

    def test_unknown_case_is_reported(self, show: Show) -> None:
        page = show(conversation_report(), "#/case/nowhere")
        assert page.texts(".none p") == ["There is no case \u201cnowhere\u201d in this report."]

    def test_long_text_is_folded_with_its_length(self, show: Show) -> None:
        report = conversation_report()
        chunks = Chunks()
        number = chunks.append(encode_content(make_run("word " * 2000, "Rome")))
        first = report.results[0]
        long = replace(first, case=replace(first.case, content=number))
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        page = show(
            replace(report, results=(long,), contents=contents, baseline={}), "#/case/to_rome"
        )
        assert page.texts(".more") == ["Show all 10,000 characters"]
        page.run("document.querySelector('.more').click()")
        assert page.texts(".more") == ["Show less"]


def _many_changed(cases: int) -> Report:
    """Cases that fail now."""
    results = [make_result("failed", 0.5, case=f"case {number:03}") for number in range(cases)]
    results = [replace(each, id=f"{number:016x}") for number, each in enumerate(results)]
    before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
    return replace(compared(make_report(results), make_trend()), baseline=before)


class TestOtherViews:
    def test_evaluators_have_histogram_and_intervals(self, show: Show) -> None:
        page = show(conversation_report(), "#/evaluators")
        assert page.texts("td a b") == ["response_quality", "tone"]
        label = page.run("document.querySelector('.histogram').ariaLabel")
        assert label == "Scores: 3 from 0.2 to 0.3, 2 from 0.9 to 1; threshold 0.7"
        assert page.texts("td[data-label=Passed]") == ["2 of 5", "7 of 7"]
        known = [
            " ".join(each.split())
            for each in page.texts("td[data-label='Passed of common checks']")
        ]
        assert known == ["3 \u2192 2 of 5 mean score 0.9 \u2192 0.6 down \u25bc 0.3", "\u2013"]

    def test_mean_of_an_evaluator_is_shown_once_with_what_it_counts(self, show: Show) -> None:
        """The means that are compared are of the checks that both runs evaluated."""
        errored = (make_change("out_of_order", 1.0, None, "errored"),)
        trend = make_trend(pairs=3, no_longer_evaluated=errored)
        page = show(compared(conversation_report(), trend), "#/evaluators")
        assert page.texts("td[data-label='Mean score']") == ["0.55", "0.9"]
        [hint] = page.texts(".hint")
        assert hint == (
            "Mean scores are of checks that passed or failed, compared ones of the checks that both"
            " runs evaluated."
        )
        page = show(mixed_report(), "#/evaluators")
        assert page.texts(".hint") == ["Mean scores are of checks that passed or failed."]

    @pytest.mark.parametrize("make", [conversation_report, mixed_report, removed_report])
    def test_numbers_of_evaluators_lead_to_the_cases_they_count(
        self, show: Show, make: Callable[[], Report]
    ) -> None:
        page = show(make(), "#/evaluators")
        links = page.run(
            "[...document.querySelectorAll('td:not(:first-child) a')]"
            ".map((each) => [each.textContent, each.hash])"
        )
        numbers = [
            text
            for text in page.texts("td:nth-child(n+3):nth-child(-n+6)")
            if text[0] in "123456789"
        ]
        assert [text for text, _ in links] == [text.split()[0] for text in numbers]
        for text, address in links:
            page.run(f"location.hash = '{address}'")
            page.wait("document.querySelector('.matrix') !== null")
            page.wait(f"location.hash === '{address}'")
            assert page.texts(".search b") == [f"{text} case{'' if text == '1' else 's'}"]
            assert len(_rows(page)) == int(text)
            assert page.texts(".chip[aria-pressed=true] b") == [text]

    @pytest.mark.parametrize("width", [1400, 1280, 1100, 390])
    def test_ids_in_the_comparison_are_not_broken(self, show: Show, width: int) -> None:
        """Amounts that have no room beside them are below them."""
        page = show(_failing_invoices("get_invoice"), "#/compare", width=width)
        assert page.texts(".beside .pill")[:2] == ["Newly failing", "get_invoice newly fails"]
        page.run("document.querySelector('.beside .btn').click()")
        heights = page.run(
            "[...document.querySelectorAll('.beside > header > [data-case]')]"
            ".map((each) => each.getBoundingClientRect().height)"
        )
        assert len(heights) == 3
        assert max(heights) < 30
        cut = page.run(
            "['.beside > header > [data-case]', '.beside > header .end > *'].map((each) =>"
            " [...document.querySelectorAll(each)].filter(({ scrollWidth, clientWidth }) =>"
            " scrollWidth > clientWidth).length)"
        )
        assert cut == [1, 0]
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0

    def test_comparison_shows_each_case_beside_its_baseline(self, show: Show) -> None:
        """Scores, the first call that differs, both answers, latency and tokens."""
        page = show(conversation_report(), "#/compare?f=all")
        assert page.texts(".beside header b:first-child")[:2] == ["to_rome", "out_of_order"]
        first = [" ".join(each.split()) for each in page.texts(".beside:first-child > *")]
        head, scores, call, question, *_ = first
        assert "Newly failing" in head
        assert "Latency 1.2 s \u2192 9.0 s up \u25b2 7.8 s" in head
        assert "Input + output tokens 930" in head
        assert scores == "\u2715 response_quality 1 \u2192 0.25 down \u25bc 0.75 \u2713 tone 0.9"
        assert call == 'Tool call (turn 1) find_flight to: reference "Rome" this run "Paris"'
        assert question == "Turn 1: A flight to Rome, please."
        assert page.texts(".beside:first-child .pane")[:3] == [
            "Expected\nThere is no flight to Rome today.",
            "This run\nSorry, no.",
            "Baseline\nThere is no flight to Rome.",
        ]
        assert page.run("document.querySelector('.folds details').open")
        [more] = page.texts(".beside .btn")
        assert more == "Show it in full"
        page.run("document.querySelector('.beside .btn').click()")
        assert page.texts(".beside header b:first-child")[:2] == ["to_rome", "to_rome_again"]
        [same] = [each for each in page.texts(".beside") if "unchanged" in each]
        assert "same answer and calls" in same

    def test_answers_are_listed_without_a_baseline(self, show: Show) -> None:
        """Question, calls on one line, and the answer beside another expected one."""
        page = show(replace(conversation_report(), baseline={}, comparison=None), "#/compare")
        assert page.texts(".tabs a")[2] == "Answers"
        assert page.texts(".hint") == ["7 cases"]
        assert page.texts(".ask")[0] == "Turn 1: A flight to Rome, please."
        assert page.texts(".calls-line")[0] == 'Tool call find_flight(to: "Paris", seats: 2)'
        assert page.texts(".beside:first-child .pane")[:2] == [
            "Expected\nThere is no flight to Rome today.",
            "This run\nSorry, no.",
        ]
        page.press("/")
        page.write("foot")
        page.wait("document.querySelectorAll('.beside').length === 1")

    def test_further_cases_of_the_list_follow_when_it_is_scrolled(self, show: Show) -> None:
        report = long_report(2000)
        page = show(report, "#/compare?f=all&sort=name")
        assert len(page.texts(".beside")) == 50
        page.run(
            "(function jump() { scrollTo(0, document.body.scrollHeight);"
            " requestAnimationFrame(jump); })()"
        )
        page.wait("document.querySelectorAll('.beside').length >= 250")

    def _refunds(self, amounts: Sequence[int]) -> Report:
        """Cases that fail for as many causes as there are amounts of cases."""
        causes = ("names no price", "leaks a password", "promises a voucher")
        results = [
            make_result(
                "failed", 0.2, case=f"{cause} {number}", misses=[f"{cause} of the `{number}`"]
            )
            for cause, amount in zip(causes, amounts, strict=False)
            for number in range(amount)
        ]
        results = [replace(each, id=f"{n:016x}") for n, each in enumerate(results)]
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        return replace(compared(make_report(results)), baseline=before)

    def test_compared_cases_are_grouped_by_cause(self, show: Show) -> None:
        """Each regression is in one group, the most serious first, and their sizes add up."""
        page = show(self._refunds((2, 12, 3)), "#/compare")
        assert "17 newly failing" in page.texts(".why")[0]
        assert page.texts(".hint") == ["17 cases in 3 groups by cause"]
        sizes = [each for each in page.texts(".beside .pill") if each.endswith(" cases")]
        assert sizes == ["12 cases", "3 cases", "2 cases"]
        page.run("for (const each of document.querySelectorAll('.beside .btn')) each.click()")
        names = page.run(
            "[...document.querySelectorAll('.beside header > [data-case]')]"
            ".map((each) => each.textContent)"
        )
        assert len(names) == len({*names}) == 17

    def test_cases_of_a_cause_show_the_facts_that_changed(self, show: Show) -> None:
        page = show(changed_days_report("tone", "tone", "tone"), "#/compare")
        assert [" ".join(each.split()) for each in page.texts(".members li")] == [
            "✕ c1, c2 baseline 30 days → this run 14 days"
        ]

    def test_each_case_of_a_group_shows_its_own_large_increase(self, show: Show) -> None:
        before = make_run("Within 30 days of delivery.", "Rome")
        now = make_run("Within 14 days of delivery.", "Rome")
        runs = [replace(now, latency_ms=latency) for latency in (4800, 12_000, 1200)]
        page = show(passing_report(*((run, before) for run in runs)), "#/compare")
        assert page.texts(".beside header b:first-child") == ["c1"]
        assert page.texts(".beside header .pill")[1:] == ["10\u00d7 slower", "3 cases"]
        assert page.texts(".members a") == ["c0", "c2"]
        assert page.texts(".members li:has(.pill)") == [ANY]
        assert page.texts(".members .pill") == ["4\u00d7 slower"]

    def test_cases_with_a_large_increase_are_grouped_by_its_kind_and_their_tools(
        self, show: Show
    ) -> None:
        before = make_run("There is no flight to Rome.", "Rome")
        turn = before.turns[0]
        other = replace(before, turns=(replace(turn, calls=()), before.turns[1]))
        tokens = TokenTotals(input=9000, output=30)
        runs = [
            (replace(before, latency_ms=4800), before),
            (replace(before, latency_ms=4800, cost_usd=0.02), before),
            (replace(before, latency_ms=9600), before),
            (replace(other, latency_ms=9600), other),
            (replace(before, latency_ms=7200, tokens=tokens), before),
            (before, before),
        ]
        page = show(passing_report(*runs), "#/compare?f=worse")
        assert page.texts(".beside header b:first-child") == ["c2", "c3", "c4", "c1"]
        assert page.texts(".beside > .answer > .quiet") == [
            "1 more case with the same tools and kind of increase:"
        ]
        assert page.texts(".members a") == ["c0"]
        assert page.texts(".members .pill") == ["4\u00d7 slower"]

    def test_causes_without_a_card_say_what_happened(self, show: Show) -> None:
        page = show(changed_days_report(*(f"rule {number}" for number in range(7))))
        [line] = page.texts(".rest a")
        assert " ".join(line.split()) == "Newly failing c6 rule 6 30 days → 14 days 1 → 0"

    def test_group_shows_only_what_all_of_its_cases_share(self, show: Show) -> None:
        rows: list[tuple[str, Status, float, float | None]] = [
            ("price", "failed", 0.2, 1.0), ("tone", "passed", 0.8, 1.0),
            ("price", "failed", 0.2, None), ("style", "passed", 1.0, 1.0),
        ]  # fmt: skip
        results, before = list[CheckResult](), dict[str, BaselineCheck]()
        for number, (name, status, score, old) in enumerate(rows):
            result = make_result(status, score, case=f"c{number // 2}", evaluator=name)
            results.append(replace(result, id=f"{number:016x}"))
            if old is not None:
                before[results[-1].id] = BaselineCheck(status="passed", score=old)
        page = show(replace(compared(make_report(results)), baseline=before), "#/compare")
        assert page.texts(".beside .pill") == ["Newly failing", "2 cases"]
        assert len(page.texts(".beside .scores li")) == 2
        assert page.texts(".members a") == ["c1"]

    @pytest.mark.parametrize("width", [1280, 390])
    def test_cases_of_a_group_say_what_they_differ_in(self, show: Show, width: int) -> None:
        """A group of which the first case has its old answer claims nothing of the others."""
        chunks, results, before = Chunks(), list[CheckResult](), dict[str, BaselineCheck]()
        good = make_run("The fee is 4.99 EUR.", "Rome")
        dearer = make_run("The fee is 5.99 EUR.", "Rome")
        slow = replace(dearer, latency_ms=3000)
        other = make_run("Sorry, no.", "Paris")
        long = {f"argument_{number}": "a city far away " * 9 for number in range(3)}
        call = replace(other.turns[0].calls[0], arguments={"to": "Paris", "seats": 2, **long})
        wide = replace(other, turns=(replace(other.turns[0], calls=(call,)), other.turns[1]))
        for number, run in enumerate((good, dearer, other, slow, wide)):
            result = make_result("passed", 0.8, case=f"c{number}", evaluator="tone")
            content, old = (chunks.append(encode_content(each)) for each in (run, good))
            case = replace(result.case, content=content)
            results.append(replace(result, id=f"{number:016x}", case=case))
            before[results[-1].id] = BaselineCheck(status="passed", score=1.0, content=old)
        lower = tuple(make_change(f"c{number}", 1.0, 0.8, "passed") for number in range(5))
        report = replace(
            compared(
                make_report(results),
                make_trend(evaluator="tone", newly_failing=(), lower_score=lower),
            ),
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            baseline=before,
        )
        page = show(report, "#/compare", width=width)
        assert "same answer and calls" in page.texts(".beside header")[0]
        assert [" ".join(each.split()) for each in page.texts(".members .line")] == [
            "reference 4.99 this run 5.99",
            'Tool call (turn 1) find_flight to: reference "Rome" this run "Paris"',
            ANY,
        ]
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
        names = [" ".join(each.split()) for each in page.texts(".members li > :nth-child(2)")]
        assert names == ["c1, c3", "c2", "c4"]
        assert page.texts(".members + .btn") == ["Show all 4 in full"]
        page.press("j")
        page.press("j")
        assert _focus(page) == "c1"
        page.run("document.querySelector('.members + .btn').click()")
        assert page.texts(".members") == []
        assert page.texts(".beside header b:first-child") == ["c0", "c1", "c2", "c3", "c4"]

    def test_changed_fact_of_passing_cases_is_shown_apart_from_other_words(
        self, show: Show
    ) -> None:
        chunks, results, before = Chunks(), list[CheckResult](), dict[str, BaselineCheck]()
        good = "The warranty lasts {}, until March {}. Wear is {} covered."
        reworded = "For {} until March {} you are safe with us, my friend, though {} if worn."
        known = ("24 months", 2028, "seldom")
        answers = (
            reworded.format(*known),
            # Another number is shown before another word.
            good.format("24 months", 2028, "not"),
            good.format("12 months", 2027, "seldom"),
        )
        for number, answer in enumerate(answers):
            run, old = (
                chunks.append(encode_content(make_run(each, "Rome")))
                for each in (answer, good.format(*known))
            )
            result = make_result("passed", 0.8, case=f"c{number}", evaluator="tone")
            case = replace(result.case, content=run)
            results.append(replace(result, id=f"{number:016x}", case=case))
            before[results[-1].id] = BaselineCheck(status="passed", score=1.0, content=old)
        lower = tuple(make_change(f"c{number}", 1.0, 0.8, "passed") for number in range(2))
        trend = make_trend(evaluator="tone", newly_failing=(), lower_score=lower)
        report = replace(
            compared(make_report(results), trend),
            contents=StoredContents(chunks=chunks, redact=lambda content: content),
            baseline=before,
        )
        page = show(limit_contents(report, "full"))
        lines = [" ".join(each.split()) for each in page.texts(".rest a")]
        assert lines == [
            "Changed fact c2 baseline 24 months, 2028 \u2192 this run 12 months, 2027",
            ANY,
            "Lower score c0 and 1 more tone requires score >= 0.7 1 \u2192 0.8",
        ]
        page.run("document.querySelector('.rest a').click()")
        page.wait("location.hash.startsWith('#/case/c2')")
        page.run("location.hash = '#/compare?f=facts'")
        page.wait("document.querySelectorAll('.beside').length === 2")
        assert page.texts(".beside header") == [ANY, ANY]
        assert page.texts(".beside header b:first-child") == ["c2", "c1"]
        page.run("location.hash = '#/compare'")
        page.wait("document.querySelectorAll('.beside').length === 3")
        assert page.texts(".beside .pill") == ["Changed fact", "Changed fact", "Lower score"]

    def test_cases_are_grouped_by_the_fact_that_changed(self, show: Show) -> None:
        """Later facts, such as a date, may differ; other words come after numbers."""
        period, fee = "Within {} days of delivery, until May {}.", "The fee is {} EUR."
        words = "The voucher is {} used."
        answers = (
            (words.format("seldom"), words.format("not")),
            (words.format("seldom"), words.format("not")),
            (period.format(30, 20), period.format(14, 4)),
            (fee.format(50), fee.format(75)),
            (period.format(30, 21), period.format(14, 5)),
            (fee.format(50), fee.format(75)),
            (fee.format(50), fee.format(75)),
            (
                "It is in Bonn and arrives on Monday between 10:00 and 14:00.",
                "It arrives on Monday.",
            ),
            (
                "It is in Jena and arrives on Friday between 10:00 and 14:00.",
                "It arrives on Friday.",
            ),
        )
        runs = [[make_run(each, "Rome") for each in (now, old)] for old, now in answers]
        report = limit_contents(passing_report(*((now, old) for now, old in runs)), "full")
        page = show(report, "#/compare")
        assert page.texts(".beside header b:first-child") == ["c3", "c2", "c7", "c0"]
        assert page.texts(".beside > .answer > .quiet") == [
            "2 more cases with the same changed fact:",
            *["1 more case with the same changed fact:"] * 3,
        ]
        assert page.texts(".members a") == ["c5", "c6", "c4", "c8", "c1"]
        page.run("location.hash = '#/'")
        page.wait("document.querySelector('.rest') !== null")
        lines = [" ".join(each.split()) for each in page.texts(".rest a")]
        assert [line.partition(" baseline")[0] for line in lines] == [
            "Changed fact c3 and 2 more",
            "Changed fact c2 and 1 more",
            "Changed fact c7 and 1 more",
            "Changed fact 1 more changed fact",
        ]
        assert lines[1].endswith("baseline 30 days \u2192 this run 14 days")

    def test_cases_of_a_group_beyond_its_lines_are_counted(self, show: Show) -> None:
        answer = "Within {} days of delivery, for {} EUR."
        before = make_run(answer.format(30, 99), "Rome")
        runs = [make_run(answer.format(14, fee), "Rome") for fee in range(1, 14)]
        report = limit_contents(passing_report(*((run, before) for run in runs)), "full")
        page = show(report, "#/compare")
        assert page.texts(".beside .pill") == ["Changed fact", "13 cases"]
        assert len(page.texts(".members a")) == 10
        assert page.texts(".members li")[10:] == ["\u2026 and 2 more"]

    def test_card_shows_a_lost_turn_and_arguments_of_one_run_first(self, show: Show) -> None:
        good = make_run("There is no flight to Rome.", "Rome")
        first, second = good.turns
        answered = replace(second, missing=False, answer="Welcome back.", expected_answer=None)
        call = replace(first.calls[0], arguments={"to": "Paris", "seats": 2, "notify": True})
        runs = (replace(good, turns=(replace(first, calls=(call,)), second)), good)
        old = replace(good, turns=(first, answered))
        chunks = Chunks()
        results, before = list[CheckResult](), dict[str, BaselineCheck]()
        for number, (run, then) in enumerate(((runs[0], good), (runs[1], old))):
            result = make_result("failed", 0.0, case=f"c{number}", misses=[f"wrong {'ab'[number]}"])
            case = replace(result.case, content=chunks.append(encode_content(run)))
            results.append(replace(result, id=f"{number:016x}", case=case))
            content = chunks.append(encode_content(then))
            check = BaselineCheck(status="passed", score=1.0, content=content)
            before[results[-1].id] = check
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        report = compared(make_report(results), make_trend())
        page = show(replace(report, contents=contents, baseline=before))
        shown = " ".join(" ".join(page.texts(".first")).split())
        assert 'find_flight notify: this run true, to: reference "Rome" this run "Paris"' in shown
        assert "Baseline (turn 2) Welcome back." in shown
        assert "the same calls and answers" not in shown

    def test_groups_by_cause_are_only_those_of_several_cases(self, show: Show) -> None:
        page = show(self._refunds((1, 12, 1)), "#/compare")
        assert page.texts(".hint") == ["14 cases, 12 of them in 1 group by cause"]

    def test_all_compared_cases_are_printed(self, show: Show) -> None:
        page = show(self._refunds((2, 12, 3)), "#/compare")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert len(page.texts(".beside")) == 17
        assert page.run("[...document.querySelectorAll('details')].every((each) => each.open)")
        page.run("dispatchEvent(new Event('afterprint'))")
        assert len(page.texts(".beside")) == 3

    def test_turns_beyond_the_first_of_a_listed_case_are_folded_and_printed(
        self, show: Show
    ) -> None:
        page = show(long_conversation_report(), "#/compare?f=all")
        shown = len(page.texts(".ask"))
        assert page.texts(".beside details")[0].endswith("more turns")
        page.run("document.querySelector('.beside summary').click()")
        page.wait(f"document.querySelectorAll('.ask').length > {shown}")
        whole = len(page.texts(".ask"))
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert len(page.texts(".ask")) == whole

    def test_cases_that_are_not_printed_are_counted(self, show: Show) -> None:
        report = _many_changed(600)
        page = show(report, "#/compare?f=all&sort=name")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert len(page.texts(".beside")) == 500
        assert "100 more cases: not printed." in page.texts("main > p")

    def test_compared_cases_are_filtered_and_sorted(self, show: Show) -> None:
        page = show(conversation_report(tone_before=0.8), "#/compare")
        chips = dict(each.rsplit(" ", 1) for each in page.texts(".chip"))
        assert chips == {
            "All cases": "7", "Worse": "3", "Better": "3", "Newly errored": "1",
            "Newly failing": "2", "Still failing": "1", "Fixed": "1", "Passed in both": "1",
            "Answer changed": "3", "Calls changed": "3", "Slower": "1", "New": "1",
            "Large increase": "1",
        }  # fmt: skip
        assert page.texts(".chip[aria-pressed=true]") == ["Worse 3"]
        assert "25% and 50 ms" in page.run("document.querySelector('[data-filter=slow]').title")
        for key, names in (
            ("worse", ["to_rome", "out_of_order"]),
            ("newly_errored", ["out_of_order"]),
            ("calls", ["to_rome", "on_foot"]),
            ("answer", ["to_rome", "on_foot"]),
        ):
            page.run(f"document.querySelector('[data-filter={key}]').focus()")
            page.press("Enter")
            page.wait(
                f"document.querySelector('.chip[aria-pressed=true]').dataset.filter === '{key}'"
            )
            assert page.run("location.hash") == f"#/compare?f={key}"
            assert page.texts(".beside header b:first-child") == names
            assert _focus(page).startswith(page.texts(".chip[aria-pressed=true]")[0])
        page.run(
            "((field) => { field.value = 'slower';"
            " field.dispatchEvent(new Event('change')); })(document.querySelector('#choose-sort'))"
        )
        page.wait("location.hash === '#/compare?f=answer&sort=slower'")
        assert page.texts(".beside header b:first-child")[0] == "to_rome"
        page.run("document.querySelector('.beside a').click()")
        page.wait("document.querySelector('.crumb') !== null")
        assert page.texts(".crumb > a") == ["\u2190 Comparison"]
        page.press("]")
        page.wait("document.querySelector('h1').innerText === 'to_rome_again'")
        page.press("Escape")
        page.wait("document.querySelector('.beside') !== null")
        assert page.run("location.hash") == "#/compare?f=answer&sort=slower"
        assert _focus(page) == "to_rome_again"
        page.press("k")
        assert _focus(page) == "to_rome"
        page.press("j")
        page.press("j")
        assert _focus(page) == "on_foot"
        page.press("Escape")
        page.wait("document.querySelector('.verdict') !== null")

    def test_many_compared_cases_are_shown_in_steps(self, show: Show) -> None:
        page = show(_many_changed(120), "#/compare?sort=name")
        assert len(page.texts(".beside")) == 50
        more = "[...document.querySelectorAll('main > .btn')].at(-1)"
        assert page.run(f"{more}.innerText") == "Show 50 of 70 more"
        page.run(f"{more}.click()")
        assert len(page.texts(".beside")) == 100
        page.run("document.querySelectorAll('.beside a')[99].click()")
        page.wait("document.querySelector('.crumb') !== null")
        page.press("Escape")
        page.wait("document.querySelectorAll('.beside').length === 100")
        page.run(f"{more}.click()")
        assert page.run(f"{more}.hidden")

    def test_cases_that_fail_the_same_checks_are_shown_once(self, show: Show) -> None:
        page = show(_many_changed(20), "#/compare")
        assert len(page.texts(".beside")) == 1
        page.run("document.querySelector('.beside .btn').click()")
        assert len(page.texts(".beside")) == 20

    def test_compared_cases_are_searched_and_filters_count_what_is_found(self, show: Show) -> None:
        page = show(conversation_report(), "#/compare")
        page.press("/")
        page.write("foot")
        page.wait("location.hash === '#/compare?q=foot'")
        page.wait("document.querySelector('[data-filter=all] b').innerText === '1'")
        page.run("document.querySelector('[data-filter=all]').click()")
        page.wait("document.querySelector('.beside b')?.innerText === 'on_foot'")
        assert page.run("location.hash") == "#/compare?q=foot&f=all"

    def test_case_that_the_baseline_lacks_is_named_so(self, show: Show) -> None:
        """Also if it fails; its content is not missing, as nothing is compared."""
        results = [make_result("failed", 0.5, case="new"), make_result("failed", 0.5, case="old")]
        results = [replace(each, id=f"{number:016x}") for number, each in enumerate(results)]
        report = compared(make_report(results), make_trend())
        before = {results[1].id: BaselineCheck(status="passed", score=1.0)}
        page = show(replace(report, baseline=before), "#/compare?sort=name")
        assert ["not in the baseline" in each for each in page.texts(".beside")] == [True, False]

    def test_compared_cases_use_the_width_of_a_phone(self, show: Show) -> None:
        page = show(conversation_report(), "#/compare", width=390)
        _unfold(page)
        widths = page.run(
            "[...document.querySelectorAll('.compared td:last-child, .beside')]"
            ".map((each) => each.offsetWidth)"
        )
        assert min(widths) > 300

    def test_link_to_some_cases_leads_to_the_table(self, show: Show) -> None:
        """On the way back from a case, the list stays where it was."""
        page = show(conversation_report(), "#/?f=new", height=500)
        assert _sees_rows(page)
        page.run("scrollTo(0, 0)")
        page.run("new Promise(requestAnimationFrame)")
        page.run("document.querySelector('.change .name').click()")
        page.wait("document.querySelector('.turn') !== null")
        page.press("Escape")
        page.wait("document.querySelector('.controls') !== null")
        assert page.run("scrollY") == 0

    def test_comparison_of_many_evaluators_shows_its_first_case(self, show: Show) -> None:
        """Their table is folded; that of a few evaluators is not."""
        given = wide_report(10, cases=4)
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in given.results}
        trends = [make_trend(evaluator=f"evaluator_{number}") for number in range(10)]
        report = replace(compared(given, *trends), baseline=before)
        page = show(report, "#/compare", width=1280, height=800)
        top = page.run("document.querySelector('.beside').getBoundingClientRect().top")
        assert top < 500
        page.run("document.querySelector('.folds summary').click()")
        assert len(page.texts(".compared tbody tr")) == 10
        page = show(
            replace(report, comparison=compared(given, *trends[:3]).comparison), "#/compare"
        )
        assert len(page.texts(".compared tbody tr")) == 3

    def test_comparison_without_changes_says_so(self, show: Show) -> None:
        report = conversation_report()
        same = [each for each in report.results if each.case.id == "unchanged"]
        trend = make_trend(newly_failing=())
        page = show(compared(replace(report, results=tuple(same)), trend), "#/compare")
        assert page.texts(".head .why") == ["Cases against before/results.json: 1 passed in both"]
        assert page.texts(".chip") == ["Passed in both 1", "All cases 1"]
        assert "same answer and calls" in page.texts(".beside")[0]

    def test_compared_evaluator_links_to_its_cases_and_means_are_distinct(self, show: Show) -> None:
        trend = make_trend(before=0.9812, after=0.9836, evaluator="tone")
        page = show(compared(conversation_report(), trend), "#/compare?f=all")
        _unfold(page)
        assert page.texts(".compared td")[1:3] == ["0.981 \u2192 0.984", "up\n\u25b2 0.003"]
        page.run("document.querySelector('.compared a').click()")
        page.wait("location.hash === '#/?e=tone'")

    def test_comparison_has_change_with_its_interval(self, show: Show) -> None:
        page = show(long_conversation_report(), "#/compare")
        _unfold(page)
        assert page.texts(".compared th")[-1] == "Outcome (max_regression 0.02)"
        change = page.texts("table td:nth-child(3)")[0].split("\n")[-1]
        assert change == "\u25bc 0.3 (\u22120.6 to \u22120.1)"

    def test_comparison_has_row_and_number_of_removed_evaluator(self, show: Show) -> None:
        report = conversation_report()
        change = make_change("to_rome", 1, None, "removed")
        gone = make_trend(
            evaluator="grounded",
            classes=CheckClasses(removed=3),
            pairs=0,
            before=None,
            after=None,
            newly_failing=(),
            no_longer_evaluated=(change,) * 3,
            outcome="non-comparable",
            reason="3 checks that passed were removed",
        )
        tested = make_trend(p_value=0.012, outcome="inconclusive", reason="not significant")
        classes = CheckClasses(compared=12, removed=3)
        page = show(compared(report, tested, gone, classes=classes), "#/compare")
        assert page.texts(".folds summary")[0].startswith("Scores by evaluator: ")
        _unfold(page)
        assert page.texts(".classes summary") == [
            "15 checks: 12 compared \u00b7 3 only in the baseline"
        ]
        assert page.texts(".classes dd")[-1].startswith("not in this run, whatever their result")
        [first, last] = [" ".join(text.split()) for text in page.texts(".compared tbody tr")]
        assert "p = 0.012" in first
        assert last.startswith("grounded removed")
        assert " 0 of 3 removed: 3 checks that passed were removed" in last
        assert page.texts(".compared th")[-1] == "Outcome (adjusted p)"
        assert page.run("((each) => each.scrollWidth - each.clientWidth)"
                        "(document.querySelector('.compared').parentNode)") == 0  # fmt: skip

    def test_evaluator_that_is_skipped_now_is_in_no_check_of_both_runs(self, show: Show) -> None:
        page = show(lost_report(), "#/compare")
        _unfold(page)
        assert page.texts(".compared td")[4] == "0 of 2"

    def test_case_that_only_the_baseline_has_is_named(self, show: Show) -> None:
        change = make_change("by_bus", 1, None, "removed")
        trend = make_trend(newly_failing=(), no_longer_evaluated=(change,))
        page = show(compared(conversation_report(), trend), "#/compare")
        assert page.texts(".remarks summary") == ["1 case only in the baseline"]
        page.run("document.querySelector('.remarks summary').click()")
        assert page.texts(".remarks li") == ["by_bus removed, 1 check that passed"]

    def test_advisory_evaluators_are_marked_wherever_they_are_named(self, show: Show) -> None:
        report = conversation_report()
        results = tuple(
            replace(each, evaluator=replace(each.evaluator, required=False))
            if each.evaluator.name == "response_quality"
            else each
            for each in report.results
        )
        [trend] = report.comparison.evaluators if report.comparison else ()
        report = compared(replace(report, results=results), replace(trend, required=False))
        page = show(report)
        assert "response_quality advisory" in " ".join(page.texts(".change li")[0].split())
        assert "response_quality advisory" in " ".join(page.texts(".rest a")[0].split())
        page = show(report, "#/compare")
        assert page.texts(".compared td .pill") == ["advisory"]
        assert "response_quality advisory" in " ".join(page.texts(".scores li")[0].split())
        assert page.texts(".folds summary")[0].endswith(": 1 regressed (advisory)")

    def test_icon_of_a_case_that_fails_an_advisory_check_does_not_say_that_it_passed(
        self, show: Show
    ) -> None:
        results = [make_result("passed", 1.0, case="a", evaluator="tone")]
        results.append(make_result("failed", 0.0, case="a", evaluator="brief", required=False))
        before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
        page = show(replace(compared(make_report(results)), baseline=before))
        assert page.run("document.querySelector('tr.row .dot').title") == "Failed"

    def test_case_without_a_recorded_run_is_listed_found_and_explained(self, show: Show) -> None:
        change = make_change("by_bus", 1, None, "unrecorded")
        trend = make_trend(newly_failing=(), no_longer_evaluated=(change,))
        hint = "no recorded run matches eval case `by_bus`; record the case"
        report = compared(conversation_report(), trend, unrecorded_cases=("by_bus",))
        page = show(replace(report, problems=(Problem(message=hint, severity="warning"),)))
        assert page.texts(".rest a")[1].split("\n")[:2] == ["Without a recorded run", "by_bus"]
        assert page.run(
            "[...document.querySelectorAll('.rest .pill')].every((each) =>"
            " each.getBoundingClientRect().right < each.nextSibling.getBoundingClientRect().left)"
        )
        page.run(
            "[...document.querySelectorAll('.verdict .why a')]"
            ".find((each) => each.textContent === '1 without a recorded run').click()"
        )
        page.wait("location.hash === '#/?f=unrecorded'")
        assert _rows(page) == ["by_bus"]
        assert page.texts(".joined") == []
        page.run("location.hash = '#/?q=by_bus'")
        page.wait("location.hash === '#/?q=by_bus'")
        assert _rows(page) == ["by_bus"]
        page.run("location.hash = '#/compare'")
        page.wait("document.querySelector('.beside') !== null")
        assert "only the baseline has a run" in " ".join(page.texts(".beside header"))
        page.run("location.hash = '#/'")
        page.wait("document.querySelector('.matrix') !== null")
        page.run("location.hash = '#/case/by_bus'")
        page.wait(_shows("by_bus"))
        assert page.texts(".message") == [f"warning\n{hint.replace('`', '')}"]
        assert [" ".join(each.split()) for each in page.texts(".crumb .btn")] == [
            "Copy link", "\u2039 Previous", "Next \u203a"
        ]  # fmt: skip

    def test_messages_list_problems_and_policy(self, show: Show) -> None:
        change = PolicyChange(
            config="a.yaml", kind="loosened", subject="threshold of tone", before="1", after="0.5"
        )
        gone = replace(change, subject="1 eval case", before="", after="removed")
        policy = PolicyComparison(base="main", loosened=(change, gone))
        page = show(replace(mixed_report(), policy=policy), "#/messages")
        assert page.texts(".remarks td") == [
            *("threshold of tone", "1", "0.5"),
            *("1 eval case", "present", "removed"),
        ]
        assert page.texts(".message")
        assert page.texts("h1") == ["Errors, warnings, notes and policy"]
        page.press("Escape")
        page.wait("document.querySelector('.verdict') !== null")
        assert page.texts(".verdict .note del") == ["1"]

    def test_views_and_colours_are_chosen_by_key(self, show: Show) -> None:
        page = show(conversation_report())
        for key, view in (("e", "evaluators"), ("c", "compare"), ("m", "messages")):
            page.press(key)
            page.wait(f"location.hash === '#/{view}'")
        page.press("n")
        page.wait("location.hash === '#/?f=new'")
        before = page.run("document.documentElement.dataset.theme")
        page.press("t")
        assert page.run("document.documentElement.dataset.theme") != before
        page.press("t")
        page.press("?")
        assert page.run("document.querySelector('dialog').open") is True
        page.press("Escape")
        page.wait("!document.querySelector('dialog').open")


STDIN = CallPayload(
    name="stdin", content='{"threshold": 0.5, "invocations": [{"id": "\\u00e9"}]}', size=54
)
STDOUT = CallPayload(name="stdout", content="caf\\xe9\x1b", size=6, notes=("not UTF-8",))
TRANSCRIPT = "#/case/books_a_flight"


@pytest.fixture
def expanded(show: Show) -> Browser:
    """A check whose transcript is shown."""
    page = show(
        transcript_report(STDIN, STDOUT, CallPayload(name="stderr", content="", size=0)), TRANSCRIPT
    )
    page.run("document.querySelector('.transcript summary').click()")
    page.wait("document.querySelector('.transcript pre') !== null")
    return page


class TestTranscript:
    def test_transcript_is_rendered_on_demand(self, show: Show) -> None:
        page = show(transcript_report(STDIN), TRANSCRIPT)
        assert page.texts(".transcript pre") == []
        page.run("document.querySelector('.transcript summary').focus()")
        page.press("Enter")
        page.wait("document.querySelector('.transcript pre') !== null")
        page.press("Enter")
        page.press("Enter")
        assert len(page.texts(".transcript pre")) == 1

    def test_transcript_shows_streams_and_notes(self, expanded: Browser) -> None:
        assert expanded.texts(".transcript h3") == ["response_quality"]
        assert expanded.texts(".transcript .text") == ["program: exit code 0"]
        assert expanded.texts(".transcript h4") == ["stdin", "stdout", "stderr"]
        assert expanded.texts(".transcript .remarks-of") == [
            "54 bytes",
            "6 bytes; not UTF-8",
            "0 bytes",
        ]

    def test_json_is_indented_until_raw_is_requested(self, expanded: Browser) -> None:
        pretty, stdout = expanded.texts(".transcript pre")
        assert pretty.split("\n")[:2] == ["{", '  "threshold": 0.5,']
        assert stdout == "caf\\xe9\\u001b"
        expanded.run("document.querySelector('.transcript [aria-pressed]').focus()")
        expanded.press(" ")
        assert expanded.texts(".transcript pre")[0] == STDIN.content
        assert expanded.run("document.activeElement.ariaPressed") == "true"
        expanded.press(" ")
        assert expanded.texts(".transcript pre")[0] == pretty

    def test_copy_button_copies_or_selects_original_text(self, expanded: Browser) -> None:
        copy = "[...document.querySelectorAll('.transcript button')].at(-1).click()"
        expanded.run(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };" + copy
        )
        expanded.wait("document.querySelector('.transcript [role=status]:not(:empty)') !== null")
        assert expanded.run("window.copied") == STDOUT.content
        expanded.run("navigator.clipboard.writeText = async () => { throw new Error(); };" + copy)
        expanded.wait("String(getSelection()).startsWith('caf')")
        assert expanded.texts(".transcript [role=status]")[-1] == "Selected; press Ctrl+C to copy"

    def test_omitted_transcript_shows_commands_to_get_it(self, show: Show) -> None:
        result = replace(make_result("failed", 0.1), id="0" * 16)
        left_out = EvaluatorCalls(omitted_checks=frozenset([result.id]))
        page = show(replace(make_report([result]), evaluator_calls=left_out), TRANSCRIPT)
        assert page.texts(".omitted code") == [
            "agentci run evals/eval_config.yaml --only response_quality",
            "agentci evaluator run PROGRAM --trace evals/recordings/books_a_flight.json",
        ]

    def test_transcript_of_merged_run_refers_to_its_report(self, show: Show) -> None:
        result = replace(make_result("failed", 0.1), id="0" * 16)
        elsewhere = replace(
            make_report([result]), evaluator_calls=EvaluatorCalls(kept_in_parts=True)
        )
        page = show(elsewhere, TRANSCRIPT)
        assert page.texts(".omitted")[0].endswith(
            "is in the report.html of the run that this check comes from."
        )

    @pytest.mark.skipif(not AXE.is_file(), reason="npm could not install axe-core")
    @pytest.mark.parametrize("looks", [{}, {"dark": True}, {"width": 360, "height": 700}])
    def test_transcript_is_accessible_and_fits_width(
        self, expanded: Browser, looks: dict[str, Any]
    ) -> None:
        expanded.look(**looks)
        assert _violations(expanded) == []
        assert expanded.run("document.documentElement.scrollWidth") <= looks.get("width", 1280)


class TestHostileText:
    @pytest.mark.parametrize("fragment", ["", "#/?q=script", "#/evaluators", "#/messages"])
    def test_hostile_text_is_inert_in_lists(self, show: Show, fragment: str) -> None:
        page = show(hostile_report(), fragment)
        assert page.run("window.stolen") is None
        assert page.run("document.querySelectorAll('img, iframe, object, [onclick]').length") == 0
        assert "</script><script>window.stolen = 1</script>" in page.run("document.body.innerText")

    def test_hostile_text_is_inert_in_case(self, show: Show) -> None:
        page = show(hostile_report())
        page.run("document.querySelector('tr.row th a').click()")
        page.wait("document.querySelector('.check') !== null")
        page.run("document.querySelectorAll('summary').forEach((each) => each.click())")
        page.wait("document.querySelector('.transcript pre') !== null")
        assert HOSTILE.split("<!")[0] in page.texts(".transcript pre")[0]
        assert page.run("window.stolen") is None
        assert page.run("document.querySelectorAll('img, iframe, object, [onclick]').length") == 0

    def test_content_security_policy_blocks_injected_script(self, show: Show) -> None:
        page = show(full_report())
        page.run(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"stolen=1\">')"
        )
        page.run(
            "const script = document.createElement('script');"
            "script.text = 'stolen=1';"
            "document.body.append(script)"
        )
        page.run("new Promise((done) => setTimeout(done, 100))")
        assert page.run("window.stolen") is None
        assert all("Content Security Policy" in fault for fault in page.faults)
        page.faults.clear()


VIEWS = {
    "overview": "",
    "case": "#/case/to_rome",
    "both references": "#/case/to_rome?with=both",
    "evaluators": "#/evaluators",
    "comparison": "#/compare",
    "messages": "#/messages",
}


@pytest.mark.parametrize("fragment", VIEWS.values(), ids=VIEWS)
class TestEveryView:
    @pytest.mark.parametrize("width", [320, 390])
    def test_page_fits_phone_width(self, show: Show, fragment: str, width: int) -> None:
        page = show(conversation_report(), fragment, width=width, height=700)
        assert page.run("document.documentElement.scrollWidth") <= width

    @pytest.mark.parametrize("width", [390, 1280])
    def test_text_that_is_cut_ends_with_an_ellipsis_and_has_a_title(
        self, show: Show, fragment: str, width: int
    ) -> None:
        view = fragment.replace("to_rome", "invoice_4708")
        page = show(_failing_invoices("get_invoice_" * 8), view, width=width)
        _unfold(page)
        assert page.run(CUT_TEXTS) == []

    @pytest.mark.skipif(not AXE.is_file(), reason="npm could not install axe-core")
    @pytest.mark.parametrize(
        "looks",
        [{}, {"dark": True}, {"width": 360}, {"width": 360, "dark": True}],
        ids=["light", "dark", "phone", "dark phone"],
    )
    def test_page_is_accessible(self, show: Show, fragment: str, looks: dict[str, Any]) -> None:
        page = show(conversation_report(), fragment, **looks)
        assert _violations(page) == []


@pytest.mark.skipif(not AXE.is_file(), reason="npm could not install axe-core")
@pytest.mark.parametrize("fragment", ["", "#/compare", "#/messages", "#/evaluators"])
@pytest.mark.parametrize("make", [lost_report, removed_report], ids=["skipped", "removed"])
def test_lost_checks_and_policy_are_accessible(
    show: Show, make: Callable[[], Report], fragment: str
) -> None:
    edited = PolicyChange(config="a.yaml", kind="edited", subject="code of tone", after="edited")
    policy = PolicyComparison(base="main", loosened=(edited,))
    page = show(replace(make(), policy=policy), fragment)
    assert _violations(page) == []


def test_long_word_does_not_widen_page(show: Show) -> None:
    word = "x" * 500
    result = make_result(
        "failed", 0.1, case=word, evaluator=word, misses=[word], details={word: word}
    )
    page = show(make_report([result]), width=360)
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.run("document.querySelector('tr.row th a').click()")
    page.wait("document.querySelector('.check') !== null")
    assert page.run("document.documentElement.scrollWidth") <= 360


def test_verdict_and_failures_are_shown_without_scripts(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page_of(full_report()), encoding="utf-8")
    with browser(tmp_path / "browser") as window:
        window.without_scripts()
        window.open(tmp_path / "report.html")
        assert window.texts("h1") == ["Quality gate failed"]
        assert window.texts("h2")[0] == "books_a_flight > tool_trajectory_avg_score"


FIREFOX_STEPS = (
    (("/", *"sorry"), "document.querySelectorAll('tr.row').length === 3"),
    (("Escape", "n"), "location.hash === '#/?f=new'"),
    (("j", "Enter"), "document.querySelector('.turn del')?.innerText.endsWith('Rome\"')"),
    (("x",), "location.hash.endsWith('with=base')"),
    (("]",), "document.querySelector('h1').innerText === 'to_rome_again'"),
    (("c",), "document.querySelector('.compared') !== null"),
    (("t",), "document.documentElement.dataset.theme === 'dark'"),
    (("?",), "document.querySelector('dialog').open"),
)


@pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox")
def test_page_works_in_firefox(tmp_path: Path) -> None:
    """Views, search, filters, keys, differences, folds and colours."""
    file = tmp_path / "report.html"
    with firefox(tmp_path / "firefox") as page:
        file.write_text(page_of(conversation_report()), encoding="utf-8")
        page.open(file)
        assert page.texts(".change .first dt") == ["Tool call", "Baseline", "This run"]
        for keys, condition in FIREFOX_STEPS:
            for key in keys:
                page.press(key)
            page.wait(condition)
        file.write_text(page_of(transcript_report(STDIN)), encoding="utf-8")
        page.open(file, TRANSCRIPT)
        page.run("document.querySelector('.transcript summary').click()")
        page.wait("document.querySelector('.transcript pre') !== null")
        assert page.texts(".transcript pre")[0].startswith("{")


class _Artifact(BaseHTTPRequestHandler):
    """Redirects to storage, as GitHub does for artifacts."""

    page: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        """Answer a request."""
        is_stored = self.path.startswith("/storage/")
        self.send_response(200 if is_stored else 302)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if not is_stored:
            self.send_header("Location", "/storage/report.html?sig=a%2Fb&se=2026")
        self.end_headers()
        self.wfile.write(self.page if is_stored else b"")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize("case", ["to rome/100% #2", "Où est-ce? \N{PACKAGE}", "a&b=c;d"])
def test_link_of_a_case_opens_it_also_after_a_redirect(window: Browser, case: str) -> None:
    report = make_report([make_result("failed", 0.1, case=each) for each in ("other", case)])
    _Artifact.page = page_of(report).encode()
    window.faults.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Artifact) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        artifact = f"http://127.0.0.1:{server.server_port}/actions/runs/1/artifacts/2"
        comment = text_of(CommentReport(report_url=artifact), report)
        assert f"]({make_case_url(artifact, case)})" in comment
        window.go(make_case_url(artifact, case))
        window.wait("document.querySelector('h1') !== null")
        assert case in window.run("document.querySelector('h1').textContent")
        assert "/storage/report.html" in window.run("location.href")
        server.shutdown()
    assert window.faults == []
