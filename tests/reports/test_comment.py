"""The comment on a pull request: shorter than the summary, and never too long for GitHub."""

import re
from pathlib import Path

import pytest

from agentci.gate.comparison import compare_runs, find_regression_reasons
from agentci.model.case import ChangedResult, ChangedText, DialogueTurn, RunChanges
from agentci.model.gate import (
    CheckClasses,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    GatePolicy,
    PolicyChange,
    PolicyComparison,
    RegressionThresholds,
)
from agentci.model.result import (
    BaselineCheck,
    CheckResult,
    Report,
    RunContent,
    Status,
    TurnContent,
)
from agentci.model.values import Problem, replace
from agentci.reports.cause_sections import (
    Layout,
    make_cause_sections,
    make_changed_runs_section,
)
from agentci.reports.comment import MAX_BYTES, MAX_HEIGHT, MAX_REASONS, CommentReport
from agentci.reports.console import render_console
from agentci.reports.contents import StoredContents
from agentci.reports.job_summary import SummaryReport
from agentci.reports.page_height import FRAME, estimate_height, fit_item, is_one_line
from agentci.reports.run_content import encode_content
from agentci.reports.sections import make_short_reasons_sections
from agentci.reports.workflow_commands import COMMENT_CHARACTERS
from tests.conftest import Golden
from tests.helpers.browser import PROGRAM, browser
from tests.helpers.reports import CONFIG, Chunks, make_report, make_result, mixed_report, text_of
from tests.reports.html.pages import conversation_report, data_of, make_change

RUN = "https://github.example/octo/agent/actions/runs/3"
TREND = EvaluatorComparison(
    config="evals/eval_config.yaml",
    evaluator="response_quality",
    required=True,
    classes=CheckClasses(compared=3, added=3),
    pairs=3,
    before=0.9,
    after=0.8,
    newly_failing=(make_change("cancels", 0.9, 0.6999, "failed"),),
    p_value=0.25,
    outcome="inconclusive",
    reason="mean score 0.95 -> 0.7 (3 cases), not significant (p = 0.25)",
    in_both=3,
    both_before=0.9,
    both_after=0.8,
)
STATUSES: tuple[Status, ...] = ("failed", "errored", "skipped")


def _render(report: Report) -> str:
    return text_of(CommentReport(run_url=RUN, commit="8c1f" * 10), report)


def _unfold(text: str) -> str:
    """The text without what is folded: of that, the summaries."""
    lines, folds = [], 0
    for line in text.split("\n"):
        folds += (line == "<details>") - (line == "</details>")
        if (not folds and line != "</details>") or (folds == 1 and line.startswith("<summary>")):
            lines.append(line)
    return "\n".join(lines)


def _measure(text: str) -> int:
    return FRAME + estimate_height(_unfold(text))


def _compared(comparison: Comparison) -> Report:
    return replace(mixed_report(), comparison=comparison)


def test_comment_matches_snapshot(golden: Golden) -> None:
    compared = Comparison(baseline="base/results.json", evaluators=(TREND,), classes=TREND.classes)
    golden("comment.md", _render(_compared(compared)))


def test_comment_of_passed_gate_matches_snapshot(golden: Golden) -> None:
    golden("comment-passed.md", _render(make_report([make_result("passed", 0.9)])))


def test_score_that_contradicts_the_verdict_is_not_shown() -> None:
    """Nor a mean of such scores; the check says that it failed despite its score."""
    failed = make_result("failed", 1.0, reason="the eval case has 2 turns, the recorded run 1")
    report = make_report([failed, make_result("passed", 1.0, case="b")])
    comment, summary = _render(report), text_of(SummaryReport(), report)
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    for text in (comment, summary, terminal):
        assert "the eval case has 2 turns, the recorded run 1" in text
        assert "mean score 1" not in text
    assert "**failed**: the eval case has 2 turns" in comment
    assert "| 1 of 2 | \N{EN DASH} |" in comment
    assert "| \N{EN DASH} | score" in summary
    assert "recorded run 1; score 1 alone would pass" in " ".join(terminal.split())
    assert re.search(r"response_quality .* \N{EN DASH}  score >= 0.7", terminal)


def test_comment_is_shorter_than_summary() -> None:
    assert len(_render(mixed_report())) < len(text_of(SummaryReport(), mixed_report())) / 1.5


def test_comment_without_run_url_has_no_link() -> None:
    assert text_of(CommentReport(), mixed_report()).endswith("; did you mean 'threshold'?\n")


def test_configs_are_named_if_several() -> None:
    results = [make_result(each, config=c) for c in ("a.yaml", "b.yaml") for each in STATUSES]
    text = _render(make_report(results))
    assert (
        "\n| `b.yaml` | \N{CROSS MARK} `response_quality` | 0 of 1 (1 error, 1 skipped) |" in text
    )
    assert "\n- `response_quality` (`b.yaml`): no reason given (1 case:" in text


def test_baseline_that_is_not_comparable_shows_reason() -> None:
    text = _render(_compared(Comparison(baseline="b", no_baseline="baseline not found: gone")))
    assert "\n- baseline not found: gone\n" in text
    assert "| Against the baseline |" not in text


def test_removed_checks_of_one_evaluator_are_one_line() -> None:
    removed = tuple(
        make_change(case, before, None, "removed")
        for case, before in (("a", 0.9), ("b", 1.0), ("c", 0.93))
    )
    trend = replace(TREND, no_longer_evaluated=removed)
    text = _render(_compared(Comparison(baseline="b", evaluators=(trend,))))
    assert " 3 cases removed with 3 checks that passed: `a`, `b`, `c`\n" in text


def test_cases_that_several_evaluators_lost_are_one_line() -> None:
    """Also in the terminal."""
    removed = tuple(make_change(case, 1.0, None, "removed") for case in ("a", "b"))
    other = make_change("c", 1.0, None, "removed")
    trends = (
        replace(TREND, no_longer_evaluated=removed),
        replace(TREND, evaluator="tone", no_longer_evaluated=removed),
        replace(TREND, evaluator="price", no_longer_evaluated=(other,)),
    )
    report = _compared(Comparison(baseline="b", evaluators=trends))
    gone = "3 cases removed with 5 checks that passed: "
    assert f"\n- **no longer evaluated:** {gone}`a`, `b`, `c`\n" in _render(report)
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    assert f"\n  {gone}a, b, c\n" in terminal
    url = "https://pages.example/r.html"
    assert f"{gone}`a`, `b`, `c`\n" in text_of(CommentReport(report_url=url), report)
    kept = tuple(make_result("passed", case=each, evaluator="brevity") for each in "abc")
    report = replace(report, results=(*report.results, *kept))
    assert (
        "\n- **no longer evaluated:** `a`, `b`: 4 checks removed (`response_quality`, `tone`)\n"
        "- **no longer evaluated:** `price` 1 \N{RIGHTWARDS ARROW} removed: `c`\n"
    ) in _render(report)
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    assert "\n  a, b: 4 checks removed (response_quality, tone)\n" in terminal


def test_other_causes_do_not_continue_the_list_of_a_case() -> None:
    results = [
        make_result("failed", 0.1, case=f"c{n}", evaluator=f"e{n}", misses=[f"{'why ' * n}"])
        for n in range(1, 7)
    ]
    text = _render(make_report(results))
    assert re.search(r"\n\nOther causes:\n\n- `c\d`: why .*· e\d\n", text)


def test_equal_errors_with_ids_of_spans_are_one_line_and_many_are_folded() -> None:
    reason = "the turn (span {:016x}) ended with an error"
    results = [
        make_result("errored", case=f"c{n}", evaluator=name, reason=reason.format(n))
        for n in range(3)
        for name in ("tone", "price")
    ]
    results += [make_result("errored", case=f"d{n}", reason=f"exit code {n}") for n in range(6)]
    shown, _, folded = _render(make_report(results)).partition("<details>")
    lines = shown.partition("### Errored checks\n\n")[2].split("\n")
    assert lines[0] == (
        "- `c0`, `c1`, `c2`: the turn (span …) ended with an error (6 checks: `tone`, `price`)"
    )
    assert [line for line in lines if line.startswith("- ")] == [
        lines[0],
        *(f"- `response_quality`: exit code {n} (1 case: `d{n}`)" for n in range(4)),
    ]
    assert folded.startswith("\n<summary>2 more errors</summary>\n")


def test_evaluator_missing_from_baseline_has_no_baseline_score() -> None:
    text = _render(_compared(Comparison(baseline="b", evaluators=(TREND,))))
    assert "| 0 of 1 | 0.95 | score &gt;= 0.7 | not in the baseline |\n" in text


def test_new_failures_show_reason_change_and_first_difference(golden: Golden) -> None:
    report = conversation_report()
    text = _render(report)
    golden("comment-conversations.md", text)
    assert text.index("### New failures") < text.index("| Regressed |")
    assert text.index("### New failures") < text.index(
        "<summary>Still failing, as in the baseline: 1 case"
    )
    assert "- `response_quality` 1 \N{RIGHTWARDS ARROW} **0.25**: turn 1: the wrong city" in text
    assert "- 1 more case fails in the same way: `to_rome_again`" in text
    sides = "@@ tool calls of turn 1 (- baseline, + this run) @@\n"
    assert f'{sides}- find_flight(to="Rome", seats=2)\n+ find_flight(to="Paris"' in text


def test_comment_of_many_failures_is_one_screen() -> None:
    """The least important part is folded first; a case is not listed twice."""
    results = [
        make_result(
            "failed",
            0.1,
            case=f"c{n}",
            evaluator=f"e{n % 4}",
            misses=[f"{n}: {'the price is missing ' * (n % 9 + 1)}"],
        )
        for n in range(60)
    ]
    results += [
        make_result("errored", case=f"d{n}", reason=f"exit code {n} " * 20) for n in range(9)
    ]
    problems = [Problem(message="the file is empty " * 9, severity="warning")] * 3
    text = _render(make_report(results, problems=problems))
    shown, _, folded = text.partition("<details>")
    assert _measure(text) <= MAX_HEIGHT
    assert shown.count("**`c") >= 1
    for evaluator in range(4):
        assert re.search(rf"`e{evaluator}`| · e{evaluator}$", shown, re.MULTILINE)
    assert " more cases fail like this with other values or answers" in shown
    cases = re.findall(r"^(?:- |\*\*)`(c\d+)`", f"{shown}{folded}", re.MULTILINE)
    assert len(cases) == len({*cases})


def _run_of(count: int, *, head: bool) -> list[CheckResult]:
    """Results of ``count`` cases, of which the head has removed, failed, errored and fixed ones."""
    results = []
    parts = ("price", "address", "refund", "greeting")
    for number in range(count):
        kind = number % 12
        if head and kind == 11:
            continue
        for place in range(6 if head else 8):
            status: Status = "passed"
            if kind == (4 if not head else kind if kind < 4 else -1):
                status = "failed"
            if head and kind in (5, 6):
                status = "errored"
            why = [f"turn 1: the answer lacks what was asked for, in part {parts[kind % 4]}"]
            result = make_result(
                status,
                {"passed": 0.9, "failed": 0.2}.get(status),
                case=f"order-{number:04}",
                evaluator=f"a_metric_of_answers_{place}",
                misses=why if status == "failed" else [],
                reason=f"Evaluator exited with code {place}" if status == "errored" else None,
            )
            turn = DialogueTurn(question=f"Where is my order {number}? It is late.", answer="...")
            results.append(replace(result, case=replace(result.case, dialogue=(turn,))))
    return results


def _report_of(count: int) -> Report:
    """A report of ``count`` cases with everything that may happen."""
    before, after = _run_of(count, head=False), _run_of(count, head=True)
    policy = GatePolicy(regression=RegressionThresholds(max_drop=0.05))
    gates = [Gate(config=CONFIG, policy=policy, evaluators=())]
    comparison = compare_runs(before, after, gates, baseline="b")
    report = make_report(after, problems=[Problem(message="empty", severity="warning")] * 4)
    reasons = [each.text for each in find_regression_reasons(comparison, gates)]
    decision = replace(report.decision, reasons=(*report.decision.reasons, *reasons))
    changes = [
        PolicyChange(
            config=CONFIG, kind="loosened", subject=f"threshold {n}", before="1", after="0"
        )
        for n in range(9)
    ]
    baseline = {each.id: BaselineCheck(status=each.status, score=each.score) for each in before}
    return replace(
        report,
        comparison=comparison,
        decision=decision,
        baseline=baseline,
        policy=PolicyComparison(base="main", loosened=tuple(changes)),
    )


@pytest.mark.parametrize("count", [12, 160, 1_000])
def test_comment_is_one_screen_if_everything_happens_at_once(count: int) -> None:
    """All that is folded is counted in a summary, and what loosened is not all folded."""
    text = _render(_report_of(count))
    shown = _unfold(text)
    assert _measure(text) <= MAX_HEIGHT
    top = shown.partition("### New failures")[0]
    lines = [each for each in top.split("\n") if each and "more " not in each]
    assert len(lines) <= 4
    assert len([*filter(None, shown.split("\n"))]) <= 30
    for part in (
        "**looser policy:** threshold 0: 1 → 0; threshold 1: 1 → 0",
        "more policy changes</summary>",
        "more reasons</summary>",
        f"### New failures: {sum(n % 12 < 4 for n in range(count))} cases",
        "removed",
        f"{sum(n % 12 == 4 for n in range(count)):,} fixed, comparison",
        "- **errored:** `a_metric_of_answers_0`: Evaluator exited with code 0 (",
        "4 warnings",
    ):
        assert part in shown
    assert re.search("<summary>(Checks and differences|[0-9]+ more cases with failures)", shown)
    assert "_Not shown" not in text
    first = r"^- (`order-\d+`|\d+ cases(, e\.g\. `order-\d+`)?): "
    assert len(re.findall(first, shown, re.MULTILINE)) >= 2


def test_each_cause_has_a_line_before_one_is_shown_in_detail() -> None:
    report = _report_of(160)
    results = [
        make_result("failed", 0.1, case=f"case-{n}", evaluator=f"e{n % 7}", misses=["why " * 40])
        for n in range(70)
    ]
    why = (
        "9 checks failed",
        *(f"{n} eval cases without a recorded run: {'a' * 300}" for n in "12"),
    )
    decision = replace(report.decision, reasons=why)
    kept = [each for each in report.results if each.status == "errored"]
    shown = _unfold(_render(replace(report, results=(*results, *kept), decision=decision)))
    lines = re.findall(r"^- 10 cases, e\.g\. `case-\d`: why .* · (e\d)$", shown, re.MULTILINE)
    assert sorted(lines) == [f"e{n}" for n in range(7)]
    assert "**`case-" not in shown


@pytest.mark.parametrize("least", [20, 200])
def test_item_is_cut_at_the_end_of_the_line(least: int) -> None:
    def make(length: int) -> str:
        return f"- {'x' * length}\n"

    shown = fit_item(make, 300, least)
    fits = estimate_height(shown.rstrip()) == estimate_height("- x")
    assert fits if least == 20 else shown == make(least)
    assert estimate_height(f"{shown.rstrip()}x") > estimate_height("- x")


LONG_NAME = "_with_a_name_that_is_long" * 4


def test_causes_have_lines_before_names_of_other_cases() -> None:
    """Their number stays; where there is room, the names do, too."""
    shown: dict[int, str] = {}
    for causes in (2, 16):
        results = []
        for number in range(6):
            result = make_result("passed", case=f"passing_case{LONG_NAME}_{number}")
            answer = ChangedText(before="50 EUR", after=f"{75 + number} EUR")
            changes = RunChanges(answer=answer, facts=f"{75 + number}")
            results.append(replace(result, case=replace(result.case, changes=changes)))
        for number in range(2 * causes):
            why = [
                f"the answer lacks what it must have: {'abcdefghijklmnop'[number % causes] * 20}"
            ]
            results.append(make_result("failed", 0.1, case=f"failing_case_{number}", misses=why))
        names = tuple(f"removed_case{LONG_NAME}_{number}" for number in range(5))
        change = PolicyChange(
            config=CONFIG, kind="loosened", subject="5 eval cases", after="removed", names=names
        )
        policy = PolicyComparison(base="main", loosened=(change,))
        report = replace(make_report(results), policy=policy)
        reasons = (*report.decision.reasons, "the case is missing " * 20)
        text = _render(replace(report, decision=replace(report.decision, reasons=reasons)))
        shown[causes] = _unfold(text)
        assert _measure(text) <= MAX_HEIGHT
    assert len(re.findall("^- 2 cases, ", shown[16], re.MULTILINE)) == 16
    assert "\n- **looser policy:** 5 eval cases removed\n" in shown[16]
    assert re.search("<summary>.*[Pp]olicy changes", shown[16])
    assert "; other facts in 5 cases\n" in shown[16]
    assert f"removed_case{LONG_NAME}_4" in shown[2]
    assert f"passing_case{LONG_NAME}_4" in shown[2]


def test_second_error_has_a_line_where_there_is_little_room() -> None:
    results = [
        make_result("failed", 0.1, case=f"case-{n}", evaluator=f"e{n}", misses=["why " * 40])
        for n in range(40)
    ]
    results += [
        make_result("errored", case=f"broken-{n}", evaluator=f"x{n}", reason=f"{n} is broken. " * 9)
        for n in range(2)
    ]
    shown = _unfold(_render(make_report(results)))
    assert re.findall("^- \\*\\*errored:\\*\\* `(x.)`.*$", shown, re.MULTILINE) == ["x0", "x1"]


@pytest.mark.parametrize(("tool", "is_cut"), [("find", True), ("find_orders_of_them", False)])
def test_changed_texts_are_cut_where_that_saves_a_line(tool: str, *, is_cut: bool) -> None:
    other = ChangedResult(tool=tool, before="was " * 9, after="is " * 12, kind="other")
    result = make_result("passed", case="c")
    case = replace(result.case, changes=RunChanges(results=(other,)))
    [block] = make_changed_runs_section(make_report([replace(result, case=case)]), "", 0).blocks
    assert is_one_line(block) == is_cut
    assert ("was was was was was was was" not in block) == is_cut


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
def test_estimated_height_is_that_in_a_browser(tmp_path: Path) -> None:
    pictures = pytest.importorskip("scripts.pictures", reason="GitHub's Markdown is not installed")
    reports = [mixed_report(), conversation_report(), *map(_report_of, (12, 160))]
    with browser(tmp_path / "profile") as opened:
        opened.look(width=WIDTH)
        for number, report in enumerate(reports):
            text, page = _render(report), tmp_path / f"{number}.html"
            page.write_text(pictures.render_comment(text))
            opened.open(page)
            height = opened.run("document.querySelector('main').clientHeight")
            assert height <= MAX_ON_SCREEN
            assert abs(height - _measure(text)) <= 0.1 * height, number


# In pixels: of the page, in which the text has about the width that it has on GitHub, and the most
# that a comment may take.
WIDTH = 800
MAX_ON_SCREEN = 900


def test_reasons_are_one_line_where_there_is_little_room() -> None:
    report = make_report([make_result("failed", 0.1)])
    reasons = ("1 check failed", "1 eval case without a recorded run: a", "1 check errored (`x`)")
    report = replace(report, decision=replace(report.decision, reasons=reasons))
    line = "- 1 eval case without a recorded run: a; 1 check errored (`x`)\n"
    assert _list_short(report, joined=True) == [line]
    errored = {reasons[2]: "1 check errored"}
    report = replace(report, decision=replace(report.decision, errored=errored))
    # No case has an error: that of a failed one would not be counted.
    assert _list_short(report, joined=True) == ["- 1 eval case without a recorded run: a\n"]
    more = (*reasons[:2], "b: c is missing")
    report = replace(report, decision=replace(report.decision, reasons=more))
    assert _list_short(report, joined=True) == [
        "- 1 eval case without a recorded run: a; b: c is missing\n"
    ]
    report = replace(report, decision=replace(report.decision, reasons=reasons[:1]))
    assert not _list_short(report, joined=True)


def test_regressions_are_one_short_reason() -> None:
    """How they were tested is in a fold, and what errored is in none with what was fixed."""
    report = make_report(
        [make_result("errored", case=f"c{n}", reason=f"exit code {n}") for n in range(9)]
    )
    means = "mean score 0.98 → 0.83 in both runs, tested 0.98 → 0.8"
    test = "(59 cases, 2 removed, max_regression 0.02, Holm-adjusted p = 0.039)"
    whys = (f"case:calls regressed: {means} {test}", "b: c is missing", "d is, too")
    reasons = ("9 checks errored", *whys, *(f"e{n} regressed: mean score 1 → 0.5 ()" for n in "12"))
    report = replace(report, decision=replace(report.decision, reasons=reasons))
    regressed = "Regressed: `e1` 1 → 0.5, `e2` 1 → 0.5, `case:calls` 0.98 → 0.83"
    lines = [regressed, "b: c is missing", "d is, too"]
    assert _list_short(report, joined=False) == [f"- {each}\n" for each in lines]
    assert _list_short(report, joined=True) == [f"- {'; '.join(lines)}\n"]
    text = _render(report)
    assert "p = 0.039" not in _unfold(text)
    assert re.search(r"^<summary>\d more errors</summary>$", text, re.MULTILINE)


def test_regressions_are_named_once_and_the_largest_drop_first() -> None:
    """Of more than three, the reasons are cut before names are left out."""
    scores = {
        "asks": "1 → 0.73",
        "window": "1 → 0.6",
        "calls": "0.9 → 0.8",
        "words": "0.996 → 0.91",
        "tone": "1 → 0.95",
        "price": "1 → 0.96",
        "stock": "1 → 0.97",
    }
    own = (
        "asks: 9 of 33 checks failed (pass rate 73%, required 100%)",
        "calls: 2 checks newly failing, 3 no longer evaluated (removed)",
    )

    def shown(count: int) -> list[str]:
        report = make_report([make_result("failed", 0.1)])
        means = [f"{name} regressed: mean score {each} ()" for name, each in scores.items()]
        decision = replace(report.decision, reasons=("4 checks failed", *means[:count], *own))
        return _list_short(replace(report, decision=decision), joined=True)

    asks = "9 of 33 checks failed, pass rate 73%, required 100%"
    calls = own[1].removeprefix("calls: ")
    few = f"`window` 1 → 0.6, `asks` 1 → 0.73 ({asks}), `calls` 0.9 → 0.8 ({calls})"
    assert shown(3) == [f"- Regressed: {few}\n"]
    rate, changed = "pass rate 73%, required 100%", "2 checks newly failing, 3 no longer evaluated"
    many = (
        f"`window` 1 → 0.6, `asks` 1 → 0.73 ({rate}), `calls` 0.9 → 0.8 ({changed}), "
        "`words` 0.996 → 0.91"
    )
    assert shown(4) == [f"- Regressed: {many}\n"]
    six = f"{many}, `tone` 1 → 0.95, `price` 1 → 0.96"
    assert shown(6) == [f"- Regressed: {six}\n"]
    assert shown(7) == [f"- Regressed: {six}, … and 1 more\n"]


def _list_short(report: Report, *, joined: bool) -> list[str]:
    found = make_short_reasons_sections(report, MAX_REASONS, joined=joined)
    return [block for each in found for block in each.blocks]


def test_table_of_regressed_evaluators_counts_the_others() -> None:
    results = [make_result("failed", 0.1, evaluator=f"e{n}") for n in range(7)]
    trends = tuple(replace(TREND, evaluator=f"e{n}", outcome="fail") for n in range(7))
    text = _render(
        replace(make_report(results), comparison=Comparison(baseline="b", evaluators=trends))
    )
    assert "| Regressed (5 of 7) |" in text


def test_causes_beyond_one_screen_are_folded() -> None:
    def render(count: int, length: int) -> str:
        chunks, results = Chunks(), []
        for number in range(count):
            turn = TurnContent(user="x", answer="no " * length, expected_answer="yes " * length)
            stored = chunks.append(encode_content(RunContent(turns=(turn,))))
            result = make_result("failed", 0.1, case=f"c{number}", evaluator=f"e{number}")
            results.append(replace(result, case=replace(result.case, content=stored)))
        contents = StoredContents(chunks=chunks, redact=lambda content: content)
        return _render(replace(make_report(results), contents=contents))

    assert render(3, 1).count("**`c") == 3
    shown = render(3, 50)
    assert shown.count("**`c") == 3
    assert len(re.findall(r"^- (…)?yes yes", shown, re.MULTILINE)) == 6
    shown, _, folded = render(5, 50).partition("<details>")
    assert shown.count("**`c") == 2
    assert folded.startswith("\n<summary>3 more cases with failures</summary>")
    # Where not every cause has a line, the fold says how many have none.
    shown, _, folded = render(20, 50).partition("<details>")
    lines = shown.count("- `c")
    assert lines in range(3, 19)
    others = f"{19 - lines} more causes in {19 - lines} cases"
    assert folded.startswith(f"\n<summary>19 more cases with failures, {others}</summary>")


def test_line_of_another_cause_shows_the_first_words_that_differ() -> None:
    """A single one with the next word."""
    start = "It takes about five working days until you see the amount on your statement"
    end = "Goodbye, and thank you for flying."
    answers = {
        "first": ("Yes.", "No."),
        "second": (f"{start}. {end}", f"{start}, see the INT-8814. {end}"),
        "third": (f"{start}. {end}", f"{start.replace('about', '')}. {end}"),
    }
    chunks, results = Chunks(), []
    for number, (case, (expected, answer)) in enumerate(answers.items()):
        turn = TurnContent(user="x", answer=answer, expected_answer=expected)
        stored = chunks.append(encode_content(RunContent(turns=(turn,))))
        result = make_result("failed", 0.1 * number, case=case, evaluator=case)
        results.append(replace(result, case=replace(result.case, content=stored)))
    contents = StoredContents(chunks=chunks, redact=lambda content: content)
    report = replace(make_report(results), contents=contents)
    sections = make_cause_sections(report, Layout(causes=1), report_url="")
    lines = "".join(block for each in sections for block in each.blocks)
    assert "- `second`: `+ INT-8814` · second\n" in lines
    assert "- `third`: `about five → five` · third\n" in lines


def test_comment_has_at_most_three_causes_unfolded() -> None:
    results = [
        make_result("failed", 0.1, case=f"c{number}", evaluator=f"e{number}") for number in range(5)
    ]
    results += [make_result("failed", None, case="c0", evaluator=f"x{n}") for n in range(3)]
    text = _render(make_report(results))
    shown, _, rest = text.partition("<details>")
    assert shown.count("**`c") == 3
    assert "<summary>2 more cases with failures</summary>" in rest
    assert "- and 1 more check: `e0`\n" in shown
    assert "`x0` **failed**: " in shown


def test_evaluators_that_regressed_are_not_folded() -> None:
    """Those with the largest drops; required ones come first."""
    results = [make_result("failed", 0.1, evaluator=f"e{n}", required=n > 0) for n in range(9)]
    outcomes: list[ComparisonOutcome] = ["fail"] * 7
    outcomes += ["pass", "inconclusive"]
    trends = tuple(
        replace(
            TREND,
            evaluator=f"e{n}",
            required=n > 0,
            after=n / 10,
            both_after=n / 10,
            outcome=outcome,
        )
        for n, outcome in enumerate(outcomes)
    )
    comparison = Comparison(baseline="b", evaluators=trends)
    text = _render(replace(make_report(results), comparison=comparison))
    shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert re.findall(r"^\| \S+ `(e\d)`", shown, re.MULTILINE) == [f"e{n}" for n in range(1, 6)]
    title = "<summary>Evaluators, of which 1 more regressed, 1 more advisory regressed</summary>"
    assert title in text
    assert "`e1` | 0 of 1 | 0.9 \N{RIGHTWARDS ARROW} 0.1 (\N{MINUS SIGN}0.8) |\n" in shown
    assert _measure(text) <= MAX_HEIGHT


def test_errors_that_differ_by_values_of_their_cases_are_one_cause() -> None:
    """In the comment, the terminal, the annotations and the page."""
    results = [
        make_result(
            "errored",
            case=f"case_{n}",
            reason=f"case_{n}: no order R-471{n} in /tmp/{n}/a.json (span {n:016x}); exit {code}",
        )
        for n, code in enumerate((1, 1, 1, 2))
    ]
    report = make_report(results)
    for text in (_render(report), render_console(report, quiet=False, verbose=False, colour=False)):
        assert re.search(r"3 cases: `?case_0`?, `?case_1`?, `?case_2`?\)", text)
        assert "\N{HORIZONTAL ELLIPSIS}: no order \N{HORIZONTAL ELLIPSIS} in" in text
        assert "R-4713" in text
    data = data_of(report)
    assert [each["cluster"] for each in data["cases"]] == [0, 0, 0, 1]


def test_many_reasons_are_folded() -> None:
    results = [
        make_result("skipped", case=f"c{number}", evaluator=f"e{number}", reason=f"no {number}")
        for number in range(6)
    ]
    text = _render(make_report([*results, make_result("failed", 0.1)]))
    assert re.search(r"<summary>\d+ more reasons</summary>", text)


@pytest.mark.parametrize(
    ("reason", "first", "rest"),
    [
        (
            "1 of 30 checks failed (pass rate 97%, required 100%); reported only (fail-on: never)",
            "1 of 30 checks failed",
            "pass rate 97%, required 100%; reported only (fail-on: never)",
        ),
        (
            "24 checks passed, tone no longer evaluated (6 checks removed)",
            "24 checks passed, tone no longer evaluated",
            "6 checks removed",
        ),
        (
            "24 checks passed, tone no longer evaluated (6 errored, 1 removed), 12 other (removed)",
            "24 checks passed, tone no longer evaluated, 12 other (removed)",
            "6 errored, 1 removed",
        ),
        (
            "24 checks passed, tone no longer evaluated (6 errored, 1 removed), 12 other (2 left)",
            "24 checks passed, tone no longer evaluated, 12 other",
            "tone no longer evaluated (6 errored, 1 removed), 12 other (2 left)",
        ),
        (
            f"24 checks passed, {'very ' * 20}long (1), 12 other (removed)",
            "24 checks passed",
            f"{'very ' * 20}long (1), 12 other (removed)",
        ),
        ("no check of the nightly config (evals/a.yaml) passed in one of the 3 runs", "", ""),
    ],
)
def test_long_verdict_continues_on_the_next_line(reason: str, first: str, rest: str) -> None:
    report = make_report([make_result("passed")])
    problem = Problem(message="unknown key", severity="warning")
    decision = replace(report.decision, reasons=(reason,))
    text = _render(replace(report, decision=decision, problems=(problem,)))
    start = f"## \u26a0\ufe0f Quality gate passed with 1 warning: {first or reason}, 1 problem\n\n"
    assert text.startswith(f"{start}{rest} \N{MIDDLE DOT} 1 case: " if rest else f"{start}1 case: ")


def test_unchanged_cases_are_reported() -> None:
    report = _pass_again()
    text = _render(replace(report, comparison=Comparison(baseline="base")))
    assert "\nCases against `base`: 1 passed in both\n" in text


def _pass_again() -> Report:
    result = make_result("passed", 1.0)
    before = {result.id: BaselineCheck(status="passed", score=1.0)}
    return replace(make_report([result]), baseline=before)


RUN_2 = RUN.replace("runs/3", "runs/2")


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        (RUN_2, True),
        ("", False),
        (RUN_2.replace("octo", "evil"), False),
        (f"{RUN_2}) [x](https://evil.example", False),
        ("javascript:alert(1)//actions/runs/2", False),
    ],
)
def test_baseline_is_linked_to_its_run_in_the_same_repository(url: str, is_linked: bool) -> None:
    comparison = Comparison(baseline="b", commit="c0de" * 10, url=url)
    name = f"[`c0dec0dec0de`]({url})" if is_linked else "`c0dec0dec0de`"
    text = _render(replace(_pass_again(), comparison=comparison))
    assert f"\nCases against {name}: 1 passed in both\n" in text


def test_comment_creates_no_mentions_or_references() -> None:
    result = make_result("failed", 0.1, misses=["@octocat fixes #12, see GH-3 and o/r#4 <b>"])
    text = _render(make_report([result]))
    for name in ("@octocat", "#12", "GH-3", "#4", "<b>"):
        assert name not in text


@pytest.mark.parametrize("character", ["x", "\N{CROSS MARK}", "|", "&", "\x00"])
def test_comment_fits_size_limit(character: str) -> None:
    long = character * 1_500
    results = [
        make_result(
            status,
            0.1 if status == "failed" else None,
            case=f"{number}{long}",
            evaluator=f"{number % 150}{long}",
            reason=None if status == "failed" else f"{number}{long}",
            criterion=long,
            misses=[long] * 9,
        )
        for number in range(200)
        for status in STATUSES
    ]
    problems = [Problem(message=long, hint=long)] * 200
    text = _render(make_report(results, problems=problems))
    assert len(text.encode()) <= MAX_BYTES < COMMENT_CHARACTERS
    assert text.startswith("## \N{CROSS MARK} Quality gate failed: ")
    assert "_Not shown: " in text
    links = f"[Workflow run]({RUN}) \N{MIDDLE DOT} [Artifacts]({RUN}#artifacts)"
    assert text.endswith(f"\n{links} \N{MIDDLE DOT} commit 8c1f8c1f8c1f\n")


@pytest.mark.parametrize(("cases", "others"), [(6, ""), (7, ", … and 1 more")])
def test_five_names_are_shown_before_a_number(cases: int, others: str) -> None:
    """Also where a case is short: then without the numbers in which they differ."""
    report = make_report(
        [make_result("failed", 0.1, case=f"c{n}", misses=[f"lacks {n} EUR"]) for n in range(cases)]
    )
    for whole, shown in ((1, r"`c\d` \(`lacks \d EUR`\)"), (0, r"`c\d`")):
        sections = make_cause_sections(report, Layout(causes=1, whole=whole), report_url="")
        text = "".join(block for each in sections for block in each.blocks)
        names = ", ".join([shown] * 5)
        assert re.search(rf"- \d more cases fail for the same reason: {names}{others}", text)
