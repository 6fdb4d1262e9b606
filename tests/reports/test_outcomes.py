"""Outcomes of cases and of repeats, and what runs took, as all report formats show them."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentci.gate.aggregation import aggregate_repeats
from agentci.model.gate import Comparison
from agentci.model.requests import Repetition
from agentci.model.result import (
    BaselineCheck,
    CallContent,
    CheckResult,
    Report,
    RunContent,
    RunInfo,
    TurnContent,
)
from agentci.model.trace import ModelPrice, ModelStep, RunSpan, TokenTotals
from agentci.model.values import Json, replace
from agentci.reports.case_counts import format_case_line
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.outcomes import (
    format_metrics,
    has_notable_change,
    list_case_outcomes,
    list_large_increases,
    make_repeat_properties,
    summarize_metrics,
    summarize_repeats,
)
from agentci.reports.registry import ReportWriter
from agentci.reports.run_content import encode_content
from agentci.reports.sections import render_amounts
from agentci.reports.verdict import list_verdict_warnings
from tests.helpers.reports import Chunks, make_report, make_result, mixed_report, text_of


def _result(votes: str, **others: Any) -> CheckResult:
    """A check with one repeat per letter of ``votes``: Passed, Failed, Errored."""
    statuses: dict[str, Any] = {"P": "passed", "F": "failed", "E": "errored"}
    results = [make_result(statuses[each], **others) for each in votes]
    return aggregate_repeats(results, Repetition(times=len(votes)))


def _lines(*results: CheckResult) -> list[str]:
    return [each.line for each in summarize_repeats(results)]


def test_single_run_has_no_stability_line() -> None:
    assert _lines(make_result("passed", 0.9)) == []


def test_stable_evaluator_has_flip_rate_0() -> None:
    results = [_result("PPP", case="a"), _result("FFF", case="b")]
    assert _lines(*results) == ["response_quality: 0 of 2 checks flaky (flip rate 0)"]


def test_flakiest_checks_come_first() -> None:
    results = [_result("PPPPF", case="a"), _result("PPFFP", case="b"), _result("PPPPP", case="c")]
    [line] = _lines(*results)
    summary, flaky = "2 of 3 checks flaky (flip rate 0.2)", "b (3 of 5 passed), a (4 of 5 passed)"
    assert line == f"response_quality: {summary}: {flaky}"


def test_errored_repeats_do_not_count_as_flaky() -> None:
    assert _lines(_result("PE", case="a")) == []
    assert _lines(_result("PE", case="a"), _result("PF", case="b")) == [
        "response_quality: 1 of 1 check flaky (flip rate 0.5): b (1 of 2 passed)"
    ]


def test_evaluators_name_their_config_if_several() -> None:
    results = [_result("PP", config=config) for config in ("a.yaml", "b.yaml")]
    assert [line.partition(":")[0] for line in _lines(*results)] == [
        "response_quality of a.yaml",
        "response_quality of b.yaml",
    ]


def test_flaky_checks_above_limit_are_counted() -> None:
    [line] = _lines(*(_result("PF", case=f"case{number}") for number in range(12)))
    assert line.endswith("case9 (1 of 2 passed), \N{HORIZONTAL ELLIPSIS} and 2 more")


def test_repeated_check_has_properties() -> None:
    assert make_repeat_properties(_result("PPF").repeats) == {
        "repeats": "3",
        "flip_rate": "0.333333",
    }
    assert make_repeat_properties(_result("PE").repeats) == {"repeats": "2", "flip_rate": ""}
    assert make_repeat_properties(None) == {}


def _run(ms: float | None, tokens: int | None = None, *, turns: int = 1) -> RunContent:
    return RunContent(
        turns=tuple(
            TurnContent(user="x", answer="y", steps=(ModelStep(model="small"),))
            for _ in range(turns)
        ),
        spans=(RunSpan(id="a", name="chat", kind="model", start_ms=0, ms=1, model="large"),),
        latency_ms=ms,
        tokens=None if tokens is None else TokenTotals(input=tokens, output=1),
    )


def _report(*pairs: tuple[RunContent, RunContent | None], reason: str = "") -> Report:
    """A report of these runs and their baselines; with a reason, its checks fail."""
    chunks, results, baseline = Chunks(), [], {}
    for number, (now, before) in enumerate(pairs):
        result = make_result("passed", 1.0, case=f"c{number}")
        if reason:
            result = make_result("failed", 0.0, case=f"c{number}", misses=[reason])
        content = chunks.append(encode_content(now))
        results.append(replace(result, case=replace(result.case, content=content)))
        if before is not None:
            kept = chunks.append(encode_content(before))
            baseline[result.id] = BaselineCheck(status="passed", score=1.0, content=kept)
    contents = StoredContents(chunks=chunks, redact=lambda content: content)
    return replace(make_report(results), contents=contents, baseline=baseline)


def test_tools_that_newly_fail_are_counted_although_all_checks_pass() -> None:
    def run(*errors: bool | None, result: Json = "done") -> RunContent:
        calls = tuple(CallContent(name="pay", result=result, error=each) for each in errors)
        return RunContent(turns=(TurnContent(user="x", answer="y", calls=calls),))

    pairs = [
        (run(True, True), run(True, False)),
        (run(False, result={"error": "declined"}), run(False)),
        (run(True), run(None)),
        (run(True, False), run(False, True)),
        (run(True), None),
    ]
    report = replace(_report(*pairs), comparison=Comparison(baseline="b", evaluators=()))
    report = limit_contents(report, "full")
    text = "2 in which a tool newly fails (pay)"
    assert text in format_case_line(report, "b")
    assert f"**{text.replace('pay', '`pay`')}**" in text_of(CommentReport(), report)


def test_percentiles_and_sums_are_of_all_cases() -> None:
    report = _report((_run(100, 10), None), (_run(300, 20), None), (_run(None), None))
    metrics = summarize_metrics(report)
    assert metrics.run.cases == 2
    assert metrics.run.latency_ms is not None
    assert (metrics.run.latency_ms.p50, metrics.run.latency_ms.p95) == (200, 290)
    assert metrics.run.tokens == TokenTotals(input=30, output=2)
    assert (metrics.run.cost_usd, metrics.common, metrics.baseline) == (None, None, None)
    assert metrics.models == ("small", "large")


def test_models_are_named_if_the_baseline_has_others() -> None:
    def run(model: str, spans: tuple[RunSpan, ...] = ()) -> RunContent:
        step = ModelStep(model=model)
        turn = TurnContent(user="x", answer="y", steps=(step,))
        return RunContent(turns=(turn,), spans=spans, cost_usd=0.5)

    own = _run(None).spans
    same = _report((run("small"), run("small")), (run("new"), None))
    # Spans of the baseline that were not kept are no other models.
    unknown = _report((run("small", own), run("small")))
    for report in (same, unknown):
        assert format_metrics(summarize_metrics(report)).startswith("agent cost $")
        assert "model" not in format_metrics(summarize_metrics(report))
    changed = _report((run("large_`1`"), run("small")), (run("large_`1`"), run("tiny")))
    changed = replace(changed, comparison=Comparison(baseline="b", evaluators=()))
    metrics = summarize_metrics(changed)
    assert format_metrics(metrics) == "agent cost $1 (unchanged); model small, tiny → large_`1`"
    comment = text_of(CommentReport(), changed)
    assert "**model `small`, `tiny` → <code>large&#95;&#96;1&#96;</code>**" in comment
    assert "model `small`" in text_of(SummaryReport(), changed)


def test_change_is_over_amounts_that_both_runs_recorded() -> None:
    report = _report(
        (_run(100, 10), _run(50)),
        (_run(300, 20), None),
        (_run(700, 5), _run(9, 9, turns=2)),
        (_run(None), _run(80)),
    )
    metrics = summarize_metrics(report)
    assert metrics.common is not None
    assert metrics.baseline is not None
    assert (metrics.common.cases, metrics.common.tokens) == (1, None)
    assert metrics.common.latency_ms is not None
    assert metrics.baseline.latency_ms is not None
    assert (metrics.common.latency_ms.p50, metrics.baseline.latency_ms.p50) == (100, 50)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([(_run(None), None)], ""),
        ([(_run(2030, 100), None)], "latency p50 2.03 s, p95 2.03 s; 101 tokens"),
        (
            [(_run(3000, 100), _run(2000, 100))],
            "latency p50 2 → 3 s (+50%), p95 2 → 3 s (+50%); 101 tokens (unchanged)",
        ),
        (
            [(_run(120_000, 100), _run(75_000, 100))],
            (
                "latency p50 1 min 15 s → 2 min (+60%), p95 1 min 15 s → 2 min (+60%); "
                "101 tokens (unchanged)"
            ),
        ),
        (
            [(_run(2000, 9999), _run(2000, 10_001))],
            ("latency p50 2 s (unchanged), p95 2 s (unchanged); 10,000 tokens (about the same)"),
        ),
        (
            [(_run(2001, 100), _run(2000, 99))],
            "latency p50 2 s (about the same), p95 2 s (about the same); 100 → 101 tokens (+1%)",
        ),
        (
            [(_run(3000, 100), _run(2000)), (_run(9000, 100), None), (_run(None, 9), _run(1))],
            "latency p50 2 → 3 s (+50%), p95 2 → 3 s (+50%) (1 comparable case); 212 tokens",
        ),
        (
            [(_run(5000, 5), _run(4000, 4)), (_run(9000, 9), None)],
            (
                "latency p50 4 → 5 s (+25%), p95 4 → 5 s (+25%); 5 → 6 tokens (+20%) "
                "(1 comparable case)"
            ),
        ),
        (
            [(_run(None, 199), _run(None, 99)), (_run(None, 899), None)],
            "100 → 200 tokens (+100%) (1 comparable case)",
        ),
        (
            [(replace(_run(None), cost_usd=0.02), replace(_run(None), cost_usd=0.04))],
            "agent cost $0.04 → $0.02 (\u221250%)",
        ),
    ],
)
def test_metrics_are_one_line(pairs: list[tuple[RunContent, RunContent | None]], text: str) -> None:
    assert format_metrics(summarize_metrics(_report(*pairs))) == text


@pytest.mark.parametrize(
    ("before", "tokens", "is_beside_the_verdict"),
    [(1000, 10, False), (1080, 10, False), (800, 10, True), (1300, 10, True), (1000, 20, True)],
)
@pytest.mark.parametrize("writer", [CommentReport(), SummaryReport()], ids=["comment", "summary"])
def test_notable_change_of_amounts_is_beside_the_verdict(
    before: float, tokens: int, *, is_beside_the_verdict: bool, writer: ReportWriter
) -> None:
    report = _report((_run(1000, tokens), _run(before, 10)))
    text = text_of(writer, replace(report, comparison=Comparison(baseline="base")))
    head, found, _ = text.partition("latency p50")
    assert found
    assert head.endswith("<br>\n") == is_beside_the_verdict


@pytest.mark.parametrize(("before", "is_shown"), [(1000, True), (1490, False)])
def test_terminal_shows_notable_changes_of_amounts(before: float, *, is_shown: bool) -> None:
    report = replace(
        _report((_run(1500, 10), _run(before, 10))), comparison=Comparison(baseline="base")
    )
    text = render_console(report, quiet=False, verbose=False, colour=False)
    assert ("\nlatency p50 1 → 1.5 s (+50%), p95 1 → 1.5 s (+50%); 11 tokens" in text) is is_shown


@pytest.mark.parametrize(
    ("now", "before", "warnings"),
    [
        pytest.param(_run(1000, 19), _run(1000, 9), ("2 times the tokens",), id="tokens"),
        pytest.param(_run(1000, 18), _run(1000, 9), (), id="less than twice"),
        pytest.param(_run(5000, 9), _run(2000, 9), ("2.5 times the latency p50",), id="latency"),
        pytest.param(_run(500, 9), _run(100, 9), (), id="short times"),
        pytest.param(
            replace(_run(1000), cost_usd=0.09),
            replace(_run(1000), cost_usd=0.03),
            ("3 times the agent cost",),
            id="cost",
        ),
    ],
)
def test_large_increases_are_warnings(
    now: RunContent, before: RunContent, warnings: tuple[str, ...]
) -> None:
    report = replace(_report((now, before)), comparison=Comparison(baseline="base"))
    assert tuple(list_large_increases(summarize_metrics(report))) == warnings
    assert list_verdict_warnings(report) == warnings


def test_amounts_that_grew_are_bold() -> None:
    pair = (replace(_run(1500, 10), cost_usd=0.02), replace(_run(1000, 10), cost_usd=0.04))
    comment = text_of(
        CommentReport(), replace(_report(pair), comparison=Comparison(baseline="base"))
    )
    assert (
        "latency p50 **1 → 1.5 s (+50%)**, p95 **1 → 1.5 s (+50%)**; 11 tokens (unchanged); "
        "agent cost \\$0.04 → \\$0.02 (\u221250%)\n" in comment
    )


def test_slow_cases_are_beside_the_verdict() -> None:
    """Also if the median is the same."""
    pairs = [(_run(1000), _run(1000))] * 9
    for slowest, is_beside in ((1200, False), (4000, True)):
        metrics = summarize_metrics(_report(*pairs, (_run(slowest), _run(1000))))
        assert metrics.run.latency_ms is not None
        assert metrics.run.latency_ms.p50 == 1000
        assert has_notable_change(metrics) == is_beside


@pytest.mark.parametrize(
    ("slow", "text"),
    [
        ([2999], ""),
        ([3000], ", **at least 3x in 1 case (`c0`: 3x)**"),
        ([3500, 6120], ", **at least 3x in 2 cases (`c1`: 6.1x)**"),
    ],
)
def test_cases_that_took_much_more_are_counted(slow: Sequence[float], text: str) -> None:
    """One slow case changes neither the median nor the sums."""
    pairs = [(_run(each), _run(1000)) for each in (*slow, *[1000] * 99)]
    report = replace(_report(*pairs), comparison=Comparison(baseline="base"))
    shown = render_amounts(report).replace("\N{MULTIPLICATION SIGN}", "x")
    assert f"p95 1 s (unchanged){text}" in shown


def test_case_that_took_many_tokens_is_counted_once() -> None:
    same = _run(None, 1000)
    dear, cheap = replace(_run(None, 9000), cost_usd=0.9), replace(same, cost_usd=0.1)
    for now, before in ((dear, cheap), (replace(dear, cost_usd=None), same)):
        text = format_metrics(summarize_metrics(_report((now, before), (before, before))))
        assert text.count("in 1 case (c0: ") == 1


def test_single_case_has_no_amounts_beside_those_of_the_run() -> None:
    report = _report((_run(4000, 9000), _run(1000, 20)))
    assert format_metrics(summarize_metrics(report)) == (
        "latency p50 1 → 4 s (+300%), p95 1 → 4 s (+300%); 21 → 9,001 tokens (+42,762%)"
    )


def test_small_amounts_may_be_a_multiple() -> None:
    """Short times vary with the machine."""
    pairs = [(replace(_run(900, 400), cost_usd=0.0009), replace(_run(9, 4), cost_usd=0.0001))] * 2
    assert "case" not in format_metrics(summarize_metrics(_report(*pairs)))


def test_run_that_crashed_is_not_compared() -> None:
    """A run that ended early is not a faster one."""
    report = _report((_run(100), _run(1000)), (_run(1000), _run(1000)))
    results = [
        replace(each, status="errored", judgement=None, reason="no answer")
        if each.case.id == "c0"
        else each
        for each in report.results
    ]
    metrics = summarize_metrics(replace(report, results=tuple(results)))
    assert format_metrics(metrics) == (
        "latency p50 1 s (unchanged), p95 1 s (unchanged) (1 comparable case)"
    )


def test_calls_of_other_tools_are_another_cause() -> None:
    expected = "turn 1: expected find(id='1'), track(id='{0}'), got find(id='1')"
    results = [
        make_result("failed", 0.1, case="a", misses=[f"{expected.format(1)}, track(id='2')"]),
        make_result("failed", 0.1, case="b", misses=[f"{expected.format(3)}, track(id='4')"]),
        make_result("failed", 0.1, case="c", misses=[f"{expected.format(1)}, refund(id='1')"]),
    ]
    clusters = [each.cluster for each in list_case_outcomes(make_report(results))]
    assert clusters == [0, 0, 1]


def test_other_answers_of_a_cause_do_not_fail_in_the_same_way() -> None:
    reasons = ("expected 'Yes', got 'No'", "expected 'Yes', got 'Our password is 123'")
    results = [
        make_result("failed", 0.1, case=f"c{number}", misses=[reason])
        for number, reason in enumerate(reasons)
    ]
    found = [(each.cluster, each.variant) for each in list_case_outcomes(make_report(results))]
    assert found == [(0, 0), (0, 1)]


def test_cases_that_differ_only_in_values_share_a_cluster() -> None:
    reasons = ("no tool returned 4.95", "no tool returned `x`", "no tool returned 7", "other")
    results = [
        make_result("failed", 0.1, case=f"c{number}", misses=[reason])
        for number, reason in enumerate(reasons)
    ]
    results += [make_result("passed", 1.0, case="ok"), make_result("errored", case="odd")]
    clusters = [each.cluster for each in list_case_outcomes(make_report(results))]
    assert clusters == [0, 0, 0, 1, None, 2]


def test_problems_of_a_case_are_worst_first() -> None:
    results = [
        make_result("errored", evaluator="a"),
        make_result("failed", 0.5, evaluator="b", required=False),
        make_result("failed", 0.5, evaluator="c"),
        make_result("failed", 0.1, evaluator="d"),
        make_result("passed", 1.0, evaluator="e"),
    ]
    [outcome] = list_case_outcomes(make_report(results))
    assert [each.evaluator.name for each in outcome.problems] == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("run", "written"),
    [
        (RunInfo(), '"run": {},'),
        (RunInfo(repository="a/b", date="2026-01-01T00:00:00Z"), '"run": {"repository": "a/b", "d'),
        (
            RunInfo(pull_request=7, title="T", pull_request_url="https://x/7"),
            '"run": {"pull_request": {"number": 7, "title": "T", "url": "https://x/7"}},',
        ),
    ],
)
def test_results_json_names_run_of_workflow(run: RunInfo, written: str) -> None:
    assert written in text_of(JsonReport(), replace(mixed_report(), run=run))


_PRICES = {"small*": ModelPrice(input=2, output=10, cache_read=1, cache_write=2)}


def _priced_report(now: RunContent, before: RunContent) -> Report:
    report = _report((now, before))
    config = report.results[0].config
    return replace(report, prices={config: _PRICES})


def test_unrecorded_cost_is_computed_from_prices_in_both_runs() -> None:
    step = ModelStep(model="small-1", input_tokens=1000, output_tokens=100)
    run = RunContent(turns=(TurnContent(user="", answer="", steps=(step,)),))
    dearer = replace(step, output_tokens=300)
    # Its cost was computed from other prices.
    before = replace(run, cost_usd=9, priced=True)
    now = replace(run, turns=(replace(run.turns[0], steps=(dearer,)),))
    metrics = summarize_metrics(_priced_report(now, before))
    assert metrics.common is not None
    assert metrics.baseline is not None
    assert (metrics.common.cost_usd, metrics.baseline.cost_usd) == pytest.approx((0.005, 0.003))
    assert (metrics.run.cost_cases, metrics.run.priced_cases) == (1, 1)
    assert format_metrics(metrics) == "agent cost $0.003 → $0.005 (+67%) by `prices`"


@pytest.mark.parametrize(
    "steps", [(), (ModelStep(model="large", input_tokens=1, output_tokens=1),), (ModelStep(),)]
)
def test_cost_is_unknown_if_a_model_call_has_no_price(steps: tuple[ModelStep, ...]) -> None:
    known = ModelStep(model="small-1", input_tokens=1000, output_tokens=100)
    turns = [TurnContent(user="", answer="", steps=each) for each in ((known,), steps)]
    run = RunContent(turns=tuple(turns))
    assert summarize_metrics(_priced_report(run, run)).run.cost_usd is None


def test_cost_of_a_run_whose_sub_agents_were_not_kept_is_unknown() -> None:
    step = ModelStep(model="small-1", input_tokens=1000, output_tokens=100)
    run = RunContent(turns=(TurnContent(user="", answer="", steps=(step,)),))
    assert summarize_metrics(_priced_report(run, run)).run.priced_cases == 1
    cut = replace(run, level="excerpt")
    metrics = summarize_metrics(_priced_report(cut, cut))
    assert (metrics.run.cost_usd, metrics.run.priced_cases) == (None, 0)


def test_recorded_cost_counts_before_prices() -> None:
    step = ModelStep(model="small-1", input_tokens=1000, output_tokens=100)
    run = RunContent(turns=(TurnContent(user="", answer="", steps=(step,)),), cost_usd=0.5)
    metrics = summarize_metrics(_priced_report(run, run))
    assert (metrics.run.cost_usd, metrics.run.priced_cases) == (0.5, 0)
