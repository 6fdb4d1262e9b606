"""The report in a terminal or a log."""

import json
import re

import pytest

from agentci._util.text.format import format_number
from agentci.model.gate import (
    ChangedStatus,
    CheckChange,
    Comparison,
    PolicyChange,
    PolicyComparison,
)
from agentci.model.result import BaselineCheck, Report, Status
from agentci.model.values import COMMAND_LINE, Problem, replace
from agentci.reports.changed_checks import LOST_TITLE
from agentci.reports.comment import CommentReport
from agentci.reports.console import (
    MAX_CASES,
    MAX_ITEMS,
    MAX_WIDTH,
    list_changed_checks,
    render_console,
)
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from tests.conftest import Golden
from tests.helpers.reports import (
    CONFIG,
    make_report,
    make_result,
    mixed_report,
    shard_report,
    text_of,
)
from tests.reports.test_comment import TREND

STATUSES: tuple[Status, ...] = ("passed", "failed", "errored", "skipped")
PASSED = make_report([make_result("passed", 0.9)])


def _render(
    report: Report, *, quiet: bool = False, verbose: bool = False, colour: bool = False
) -> str:
    return render_console(report, quiet=quiet, verbose=verbose, colour=colour)


def make_change(case: str, after: float | None, status: ChangedStatus) -> CheckChange:
    """A check with score 1 that passed in the baseline."""
    return CheckChange(case=case, before=1.0, after=after, status_before="passed", status=status)


def test_console_report_matches_snapshot(golden: Golden) -> None:
    golden("console.txt", _render(mixed_report()))


def test_console_report_of_passed_gate_matches_snapshot(golden: Golden) -> None:
    golden("console-passed.txt", _render(PASSED))


def test_empty_console_report_matches_snapshot(golden: Golden) -> None:
    golden("console-empty.txt", _render(make_report([], problems=[Problem(message="no config")])))


def test_cached_checks_are_counted_and_marked() -> None:
    report = make_report([make_result("failed", 0.25, cached=True), make_result("passed", 0.9)])
    text = _render(report, verbose=True)
    assert "; mean score 0.57; 1 cached\n" in text
    outcome = "response_quality: score 0.25, threshold 0.7 (cached)"
    assert f"  failed: books_a_flight > {outcome}\n" in text
    assert f"\n    {outcome} ({CONFIG}:2)\n" in text


def test_quiet_prints_only_verdict() -> None:
    assert _render(PASSED, quiet=True) == (
        "1 case: 1 passed\nQuality gate passed: 1 check passed\n"
    )


def test_shard_verdict_names_its_shard() -> None:
    assert _render(shard_report([make_result("passed", 0.9)]), quiet=True, colour=True) == (
        "1 case: 1 passed\n"
        "\x1b[1;32mShard 2 of 3 passed\x1b[0m: 1 check passed\n"
        "  results of shard 2 of 3 only; `agentci merge` decides for all shards\n"
    )
    failed = _render(shard_report([make_result("failed", 0.1)]))
    verdict = (
        "Quality gate failed in shard 2 of 3: 1 of 1 check failed (pass rate 0%, required 100%)"
    )
    assert f"\n{verdict}\n" in failed


def test_verbose_prints_line_for_every_check() -> None:
    text = _render(mixed_report(), verbose=True)
    assert "\n  passed: books_a_flight > response_quality: score 0.9\n" in text
    assert "\n  skipped: cancels > tool_trajectory_avg_score: no matching eval case\n" in text


@pytest.mark.parametrize(("report", "paint"), [(PASSED, "1;32"), (mixed_report(), "1;31")])
def test_colour_does_not_change_text(report: Report, paint: str) -> None:
    coloured = _render(report, colour=True)
    assert f"\n\x1b[{paint}mQuality gate " in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == _render(report)


def test_table_columns_are_aligned() -> None:
    results = [make_result("passed", 0.9, evaluator=name) for name in ("a", "b" * 30)]
    table = _render(make_report(results)).split("Evaluators\n")[1].partition("\n\n")[0].splitlines()
    assert {line.index("score >=") for line in table[1:-1]} == {table[0].index("threshold")}
    assert table[-1] == "  2 checks: 2 passed; mean score 0.9"


def test_worst_cases_are_shown_and_others_counted() -> None:
    results = [
        make_result(
            "failed", number / 100, case=f"c{number}", misses=[f"lacks {'x' * (number + 4)}"]
        )
        for number in reversed(range(40))
    ]
    text = _render(make_report(results))
    assert text.index("  c0: ") < text.index(f"  c{MAX_CASES - 1}: ")
    assert f"  c{MAX_CASES}: " not in text
    assert "\n  … and 30 more\n" in text


def test_failed_checks_of_a_case_stand_together_with_the_baselines_result() -> None:
    failed = [
        make_result("failed", 0.5, case="b", evaluator="tone", misses=["rude"]),
        make_result("failed", 0.1, case="a", misses=["wrong"]),
        make_result("failed", 0.2, case="b", misses=["longer"]),
    ]
    before = {failed[2].id: BaselineCheck(status="passed", score=0.9)}
    text = _render(replace(make_report(failed), baseline=before))
    section = text.partition("Failed checks\n")[2].partition("\n\n")[0]
    assert section.splitlines() == [
        '  b: new failure, "Hello", trace evals/recordings/b.json',
        f"    response_quality: score 0.2, threshold 0.7, was 0.9 ({CONFIG}:2)",
        "      - longer",
        f"    tone: score 0.5, threshold 0.7 ({CONFIG}:11)",
        "      - rude",
        '  a: new failure, "Hello", trace evals/recordings/a.json',
        f"    response_quality: score 0.1, threshold 0.7 ({CONFIG}:2)",
        "      - wrong",
    ]


def test_new_failures_come_before_known_ones() -> None:
    results = [make_result("failed", 0.1, case=f"old{n}", misses=["wrong"]) for n in range(7)]
    results.append(make_result("failed", 0.6, case="new", misses=["wrong"]))
    before = {each.id: BaselineCheck(status="failed", score=0.1) for each in results[:-1]}
    before[results[-1].id] = BaselineCheck(status="skipped", score=None)
    text = _render(replace(make_report(results), baseline=before))
    assert text.index("  new: new failure, ") < text.index("  old0: still failing, ")
    assert f"score 0.6, threshold 0.7, was skipped ({CONFIG}:2)" in text
    assert "\n    6 more cases fail for the same reason: old1, " in text


def test_cases_that_fail_for_the_same_reasons_are_shown_once() -> None:
    results = [make_result("failed", 0.1, case=f"c{n}", misses=["no answer"]) for n in range(7)]
    text = _render(make_report(results))
    assert text.count("- no answer") == 1
    assert "\n    6 more cases fail for the same reason: c1, c2, c3, c4, c5, … and 1 more\n" in text
    two = _render(make_report(results[:2]))
    assert "\n    1 more case fails for the same reason: c1\n" in two


def test_cases_with_same_error_are_grouped() -> None:
    results = [make_result("errored", case=f"c{number}", reason="no key") for number in range(7)]
    expected = "\n  response_quality (7 cases: c0, c1, c2, c3, c4, … and 2 more): no key\n"
    assert expected in _render(make_report(results))


def test_case_with_errors_of_several_evaluators_is_one_finding() -> None:
    """In every format; an evaluator with another reason stays apart."""
    names = [f"e{n}" for n in range(7)]
    reason = "the agent failed before it answered"
    results = [make_result("errored", case="a", evaluator=each, reason=reason) for each in names]
    results += [make_result("errored", case="b", evaluator="e0", reason=reason)]
    results += [make_result("errored", case="b", evaluator="e1", reason="exit code 3")]
    report = make_report([*results, make_result("passed", 1.0, case="c")])
    lines = _render(report).partition("Errored checks\n")[2].partition("\n\n")[0].splitlines()
    shown = "e0, e1, e2, e3, e4, … and 2 more"
    assert lines == [
        f"  a (7 checks: {shown}): {reason}",
        f"  e0 (1 case: b): {reason}",
        "  e1 (1 case: b): exit code 3",
    ]
    url = "https://pages.example/report.html"
    comment = text_of(CommentReport(report_url=url), report)
    section = comment.partition("### Errored checks\n\n")[2].partition("\n\n")[0]
    marked = "`e0`, `e1`, `e2`, `e3`, `e4`, … and 2 more"
    links = [f"[`{case}`]({url}#/case/{case})" for case in "ab"]
    assert section.splitlines() == [
        f"- {links[0]}: {reason} (7 checks: {marked})",
        f"- `e0`: {reason} (1 case: {links[1]})",
        f"- `e1`: exit code 3 (1 case: {links[1]})",
    ]
    assert f"`a`: 7 checks: {marked}\n\n```\n{reason}" in text_of(SummaryReport(), report)


def test_long_traceback_keeps_first_and_last_lines() -> None:
    frames = [f'  File "tone.py", line {line}' for line in range(40)]
    reason = "\n".join(["exited with code 1: Traceback:", *frames, "KeyError: 'x'"])
    text = _render(make_report([make_result("errored", reason=reason)]))
    table = text.partition("Errored checks\n")[2].partition("\n\nEvaluators")[0]
    first, gap, *last = table.splitlines()
    assert first == "  response_quality (1 case: books_a_flight): exited with code 1: Traceback:"
    assert gap == "    … (30 lines left out) …"
    assert last[0] == '      File "tone.py", line 30'
    assert last[-1] == "    KeyError: 'x'"


def test_long_line_keeps_its_end() -> None:
    reason = f"{'long ' * 1_000}KeyError: 'x'"
    text = _render(make_report([make_result("errored", reason=reason)]), verbose=True)
    assert text.count("long KeyError: 'x'\n") == 2
    assert max(map(len, text.splitlines())) < 2 * MAX_WIDTH


def test_reasons_above_limit_are_counted() -> None:
    results = [make_result("errored", reason=f"reason {n}") for n in range(MAX_ITEMS + 3)]
    text = _render(make_report(results))
    assert f"reason {MAX_ITEMS - 1}\n" in text
    assert f"reason {MAX_ITEMS}\n" not in text
    assert "\n  … and 3 more\n" in text


def test_failed_check_shows_config_line_and_trace() -> None:
    text = _render(make_report([make_result("failed", 0.1)]))
    assert ", trace evals/recordings/books_a_flight.json\n" in text
    assert f" ({CONFIG}:2)\n" in text


def test_evaluators_name_their_config_if_several() -> None:
    results = [
        make_result(status, config=config)
        for config in ("a.yaml", "evals/b.yaml")
        for status in STATUSES
    ]
    text = _render(make_report(results))
    head, *rows = text.split("Evaluators\n")[1].splitlines()[:3]
    assert head.split()[:2] == ["config", "evaluator"]
    assert [row.split()[:2] for row in rows] == [
        ["a.yaml", "response_quality"],
        ["evals/b.yaml", "response_quality"],
    ]
    assert {row.index("response_quality") for row in rows} == {head.index("evaluator")}
    for config in ("a.yaml", "evals/b.yaml"):
        assert text.count(f"  response_quality of {config} (1 case: books_a_flight): ") == 2


def test_failures_come_first_and_path_of_report_last() -> None:
    text = render_console(
        mixed_report(), quiet=False, verbose=False, colour=False, page="out/report.html"
    )
    headings = ("\nErrored checks\n", "\nEvaluators\n", "\nSkipped checks\n", "\nQuality gate ")
    places = [text.index(each) for each in headings]
    assert places == sorted(places)
    assert text.startswith("Failed checks\n")
    *_, verdict, reason, report = text.splitlines()
    assert verdict == (
        "Quality gate failed: 2 of 3 evaluated required checks failed "
        "(pass rate 33%, required 100%)"
    )
    assert (reason, report) == (
        "  1 required check errored (response_quality)",
        "Report: out/report.html",
    )
    quiet = render_console(mixed_report(), quiet=True, verbose=False, colour=False, page="x")
    assert "Report:" not in quiet


def test_log_of_a_workflow_folds_what_is_not_about_failures() -> None:
    hostile = make_result("failed", 0.1, misses=("::endgroup::",))
    skipped = make_result("skipped", reason="x\n::error::y")
    report = make_report([hostile, skipped, make_result("passed", 1.0)])
    text = render_console(report, quiet=False, verbose=True, colour=False, folds=True)
    commands = [line for line in text.splitlines() if line.startswith("::")]
    titles = ("Checks", "Evaluators", "Skipped checks")
    expected = [each for title in titles for each in (f"::group::{title}", "::endgroup::")]
    assert commands == expected
    assert "\nFailed checks\n" in f"\n{text}"
    unfolded = [line for line in text.splitlines() if line != "::endgroup::"]
    plain = _render(report, verbose=True).splitlines()
    assert [line.removeprefix("::group::") for line in unfolded] == plain


def test_command_line_is_not_shown_as_file() -> None:
    results = [make_result("failed", 0.1, place=COMMAND_LINE, config=COMMAND_LINE.file)]
    results += [make_result("passed", 1.0)]
    problem = Problem(message="is odd", place=COMMAND_LINE, severity="note")
    text = _render(make_report(results, problems=[problem]))
    assert " (command line)\n" in text
    assert "\n  command line  " in text
    assert "\n  note: is odd\n" in text


def test_colour_tells_expected_calls_from_actual_ones() -> None:
    calls = {"expected": [{"name": "f", "args": {"n": 1}}], "actual": []}
    details = {"comparisons": [{**calls, "matched": False}]}
    result = make_result("failed", 0.1, misses=["- f is missing"], details=details)
    text = _render(make_report([result]), colour=True)
    assert "\x1b[36m- f(n=1)\x1b[0m\n" in text
    assert "\n      - - f is missing\n" in text


def test_checks_that_are_gone_are_listed_once_and_failures_not_again() -> None:
    failing = make_change("a", 0.1, "failed")
    removed = tuple(make_change(f"b{n}", None, "removed") for n in range(7))
    compared = replace(TREND, newly_failing=(failing,), no_longer_evaluated=removed)
    comparison = Comparison(baseline="base", evaluators=(compared,))
    report = replace(make_report([make_result("failed", 0.1, case="a")]), comparison=comparison)
    section = _render(report).partition(f"{LOST_TITLE}\n")[2].partition("\n\n")[0]
    arrow = "\N{RIGHTWARDS ARROW}"
    names = "b0, b1, b2, b3, b4, … and 2 more"
    assert section == f"  7 cases removed with 7 checks that passed: {names}"
    assert list(list_changed_checks(comparison)) == [
        f"newly failing: response_quality 1 {arrow} 0.1: a",
        f"no longer evaluated: response_quality 1 {arrow} removed: {names}",
    ]


def test_lost_checks_above_limit_are_counted() -> None:
    results = [
        make_result("skipped", case=f"c{n}", reason=f"no ship {n}") for n in range(MAX_ITEMS + 2)
    ]
    gone = tuple(make_change(each.case.id, None, "skipped") for each in results)
    trend = replace(TREND, newly_failing=(), no_longer_evaluated=gone)
    comparison = Comparison(baseline="base", evaluators=(trend,))
    text = _render(replace(make_report(results), comparison=comparison))
    lines = text.partition(f"{LOST_TITLE}\n")[2].partition("\n\n")[0].splitlines()
    assert len(lines) == MAX_ITEMS + 1
    arrow = "\N{RIGHTWARDS ARROW}"
    assert lines[0] == f"  response_quality 1 {arrow} skipped: c0 (no ship 0)"
    assert lines[-1] == "  \N{HORIZONTAL ELLIPSIS} and 2 more"


def test_changed_checks_have_the_same_names_and_counts_in_every_format() -> None:
    failing = tuple(make_change(case, 0.1, "failed") for case in "ab")
    fell = make_change("c", 0.9, "passed")
    gone = (make_change("d", None, "removed"), make_change("e", None, "skipped"))
    evaluators = (
        replace(TREND, newly_failing=failing, lower_score=(fell,), outcome="pass"),
        replace(TREND, evaluator="tone", newly_failing=failing[:1], no_longer_evaluated=gone),
    )
    comparison = Comparison(baseline="base", evaluators=evaluators)
    report = replace(make_report([make_result("passed", 1.0)]), comparison=comparison)
    more = "no longer evaluated (1 removed, 1 skipped)"
    text = _render(report)
    assert "  2 newly failing, 1 with a lower score\n" in text
    assert f"  1 newly failing, 2 {more}\n" in text
    for format_ in (CommentReport(), SummaryReport()):
        assert f" 1 newly failing, 2 {more}" in text_of(format_, report)
    found = json.loads(text_of(JsonReport(), report))["comparison"]["evaluators"][0]
    counts = {key: len(found[key]) for key in ("newly_failing", "lower_score", "fixed")}
    assert counts == {"newly_failing": 2, "lower_score": 1, "fixed": 0}


def test_skipped_checks_that_passed_before_are_listed_once_with_their_reason() -> None:
    results = [make_result("skipped", case=case, reason="no ship") for case in "ab"]
    gone = (make_change("a", None, "skipped"),)
    trend = replace(TREND, newly_failing=(), no_longer_evaluated=gone)
    comparison = Comparison(baseline="base", evaluators=(trend,))
    report = replace(make_report(results), comparison=comparison)
    text = _render(report)
    lost = "  response_quality 1 \N{RIGHTWARDS ARROW} skipped: a (no ship)\n"
    assert f"{LOST_TITLE}\n{lost}" in text
    skips = "Skipped checks, and 1 that passed in the baseline"
    assert f"{skips}\n  response_quality (1 case: b): no ship\n" in text
    assert "checks skipped" not in text
    for format_ in (CommentReport(), SummaryReport()):
        page = text_of(format_, report)
        assert "- `response_quality` 1 \N{RIGHTWARDS ARROW} skipped: `a` (no ship)\n" in page
        skips = "- `response_quality`: no ship (1 case: `b`)\n"
        title = "Skipped: 1 check, and 1 that passed in the baseline"
        assert f"<summary>{title}</summary>\n\n{skips}" in page


def test_case_that_the_baselines_own_evaluators_passed_is_a_new_failure() -> None:
    result = make_result("failed", 0.1, case="a")
    change = replace(make_change("a", 0.1, "failed"), fails_before=True)
    comparison = Comparison(baseline="base", evaluators=(replace(TREND, newly_failing=(change,)),))
    report = replace(
        make_report([result]),
        comparison=comparison,
        baseline={result.id: BaselineCheck(status="failed", score=0.1)},
    )
    note = "; the baseline also fails with the current evaluators"
    arrow = "\N{RIGHTWARDS ARROW}"
    assert f"score 0.1, threshold 0.7, 1 {arrow} 0.1{note} (" in _render(report)
    assert "\n  a: new failure, " in f"\n{_render(report)}"
    for format_ in (CommentReport(), SummaryReport()):
        page = text_of(format_, report)
        assert f"1 \N{RIGHTWARDS ARROW} **0.1**, threshold 0.7{note}\n" in page
        assert "**1 newly failing**" in page


def test_change_has_its_interval_in_every_format() -> None:
    compared = replace(
        TREND,
        in_both=TREND.pairs,
        both_before=0.95,
        both_after=0.91,
        change_low=-0.07,
        change_high=-0.01,
    )
    comparison = Comparison(baseline="base", evaluators=(compared,))
    report = replace(make_report([make_result("failed", 0.91)]), comparison=comparison)
    change = "0.91 (\u22120.04, \u22120.07 to \u22120.01)"
    assert f"  {change}  " in _render(report)
    comment = text_of(CommentReport(), report)
    assert f"| 0.95 \N{RIGHTWARDS ARROW} {change} |" in comment
    assert "those that both runs evaluated (" in comment
    # Of other checks than these, which are tested, too, there is no interval.
    others = Comparison(baseline="base", evaluators=(replace(compared, pairs=9),))
    comment = text_of(CommentReport(), replace(report, comparison=others))
    assert "| 0.95 \N{RIGHTWARDS ARROW} 0.91 (\u22120.04) |" in comment
    assert " (\u22120.04, \u22120.07 to \u22120.01) |" in text_of(SummaryReport(), report)


def test_scores_that_fell_are_listed() -> None:
    fell = tuple(make_change(f"c{n}", 0.8 + n / 100, "passed") for n in range(7))
    comparison = Comparison(baseline="base", evaluators=(replace(TREND, lower_score=fell),))
    report = replace(make_report([make_result("passed", 0.8)]), comparison=comparison)
    text = _render(report).partition("Lower score, still passing\n")[2].partition("\n\n")[0]
    arrow = "\N{RIGHTWARDS ARROW}"
    assert text.splitlines() == [
        *(f"  c{n} > response_quality: 1 {arrow} {format_number(0.8 + n / 100)}" for n in range(5)),
        "  … and 2 more",
    ]
    title = "<summary>Lower score, still passing: 7 checks, the 5 largest drops</summary>"
    for format_ in (CommentReport(), SummaryReport()):
        page = text_of(format_, report)
        assert title in page
        assert f"- `c0` > `response_quality`: 1 {arrow} 0.8\n" in page
        assert "`c5`" not in page.partition("Lower score")[2].partition("</details>")[0]


def test_last_lines_name_what_the_policy_loosens() -> None:
    """Readers of a log see its end first."""
    changes = [
        PolicyChange(config="a", kind="loosened", subject=f"threshold {n}", before="1", after="0")
        for n in range(5)
    ]
    policy = PolicyComparison(base="main", loosened=tuple(changes))
    report = replace(make_report([make_result("failed", 0.1)]), policy=policy)
    last = render_console(report, quiet=True, verbose=False, colour=False).splitlines()[-1]
    assert last == (
        "  looser policy: threshold 0: 1 → 0; threshold 1: 1 → 0; threshold 2: 1 → 0; … and 2 more"
    )
