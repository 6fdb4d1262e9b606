"""HTML reports shared by the tests of the page text and of the browser."""

import json
from typing import Any

from lxml import html
from msgspec import to_builtins

from agentci._util.text.json_text import dumps_for_html
from agentci.model.case import ChangedText, DialogueTurn, RunChanges
from agentci.model.gate import (
    ChangedStatus,
    CheckChange,
    CheckClasses,
    Comparison,
    EvaluatorComparison,
)
from agentci.model.result import (
    BaselineCheck,
    CallContent,
    CallPayload,
    CheckResult,
    EvaluatorCall,
    EvaluatorCalls,
    ExpectedCall,
    RepeatOutcome,
    RepeatRecord,
    Report,
    RunContent,
    RunInfo,
    Status,
    TrialRecord,
    TrialScore,
    TurnContent,
)
from agentci.model.trace import ModelStep, RunSpan, TokenTotals
from agentci.model.values import replace
from agentci.reports.contents import StoredContents, limit_contents
from agentci.reports.html.page import HtmlReport
from agentci.reports.run_content import encode_content
from tests.helpers.reports import (
    CONFIG,
    Chunks,
    make_report,
    make_result,
    mixed_report,
    text_of,
)

HOSTILE = (
    "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>"
    '<!-- " onclick="window.stolen = 1" \' &amp; \u2028 ]]> {{1+1}} javascript:alert(1)'
)


def page_of(report: Report) -> str:
    """The whole page."""
    return text_of(HtmlReport(tool_version="1.2.3"), report)


def tree_of(report: Report) -> Any:
    """The page, parsed."""
    return html.document_fromstring(page_of(report))


def data_of(report: Report) -> dict[str, Any]:
    """The data of the page's script."""
    data: dict[str, Any] = json.loads(tree_of(report).get_element_by_id("data").text)
    return data


def blocks_of(report: Report) -> list[list[Any]]:
    """The contents of the cases, by block."""
    elements = tree_of(report).xpath("//script[starts-with(@id, 'cases-')]")
    return [json.loads(each.text) for each in elements]


def make_change(
    case: str, before: float, after: float | None, status: ChangedStatus
) -> CheckChange:
    """A check that passed in the baseline."""
    return CheckChange(case=case, before=before, after=after, status_before="passed", status=status)


def make_trend(**others: Any) -> EvaluatorComparison:
    """An evaluator with a regression in one case; both runs evaluated all that was tested."""
    trend = EvaluatorComparison(
        **{
            "config": CONFIG,
            "evaluator": "response_quality",
            "required": True,
            "classes": CheckClasses(compared=2),
            "pairs": 2,
            "before": 0.9,
            "after": 0.6,
            "newly_failing": (make_change("cancels", 0.95, 0.6999, "failed"),),
            "p_value": None,
            "outcome": "fail",
            "reason": "the mean score fell by 0.3",
            **others,
        }
    )
    if "in_both" in others:
        return trend
    return replace(trend, in_both=trend.pairs, both_before=trend.before, both_after=trend.after)


def compared(report: Report, *trends: EvaluatorComparison, **others: Any) -> Report:
    """The report with a comparison with a baseline."""
    present = {each.case.id for each in report.results}
    gone = (each.case for trend in trends for each in trend.no_longer_evaluated)
    removed = tuple(dict.fromkeys(case for case in gone if case not in present))
    found = Comparison(
        baseline="before/results.json", evaluators=trends, removed_cases=removed, **others
    )
    return replace(report, comparison=found)


def full_report() -> Report:
    """A report with every feature of the page."""
    report = compared(mixed_report(), make_trend(), classes=CheckClasses(compared=2, added=1))
    trials = TrialRecord(
        strategy="mean",
        trials=(
            TrialScore(attempt=0, score=0.9),
            TrialScore(attempt=1, score=None, reason="it hung"),
        ),
    )
    repeats = RepeatRecord(
        aggregation="majority",
        flip_rate=0.5,
        repeats=(
            RepeatOutcome(status="passed", score=0.9),
            RepeatOutcome(status="failed", score=None, reason="a turn is missing"),
        ),
    )
    first, *others = report.results
    return replace(report, results=(replace(first, trials=trials, repeats=repeats), *others))


def make_run(answer: str, city: str, **others: Any) -> RunContent:
    """A run of two turns, which asks for a flight to ``city`` and is expected to ask for Rome."""
    call = CallContent(
        name="find_flight",
        arguments={"to": city, "seats": 2},
        result={"flights": []},
        ms=40,
        step=0,
    )
    first = TurnContent(
        user="A flight to Rome, please.",
        answer=answer,
        expected_answer="There is no flight to Rome today.",
        calls=(call,),
        expected_calls=(ExpectedCall(name="find_flight", arguments={"to": "Rome", "seats": 2}),),
        latency_ms=1200,
        tokens=TokenTotals(input=900, output=30),
        steps=(ModelStep(span="b"), ModelStep(span="c")),
        span="a",
    )
    second = TurnContent(user="Thanks.", answer=None, missing=True, expected_answer="Welcome.")
    span = RunSpan(id="a", name="invoke_agent", kind="agent", start_ms=0, ms=1200)
    asked = RunSpan(
        id="b", name="chat", kind="model", start_ms=0, ms=800, parent="a", model="small-1"
    )
    answered = replace(asked, id="c", start_ms=840, ms=360)
    return replace(
        RunContent(
            turns=(first, second),
            spans=(asked, answered, span),
            latency_ms=1200,
            tokens=TokenTotals(input=900, output=30),
            cost_usd=0.002,
            tags=("travel",),
        ),
        **others,
    )


def conversation_report(tone_before: float = 0.9) -> Report:
    """Cases with conversations and a baseline: newly failing, still failing, fixed, unchanged.

    Args:
        tone_before: the score of `tone` in the baseline, which is 0.9 now.
    """
    chunks = Chunks()
    good, bad = make_run("There is no flight to Rome.", "Rome"), make_run("Sorry, no.", "Paris")
    slow = replace(bad, latency_ms=9000.0)
    cases: list[tuple[str, Status, Status | None, RunContent, RunContent | None]] = [
        ("to_rome", "failed", "passed", slow, good),
        ("to_rome_again", "failed", "passed", bad, good),
        ("by_train", "failed", "failed", bad, bad),
        ("on_foot", "passed", "failed", good, bad),
        ("unchanged", "passed", "passed", good, good),
        ("out_of_order", "errored", "passed", good, good),
        ("by_sea", "skipped", None, replace(good, tags=()), None),
    ]
    results: list[CheckResult] = []
    baseline: dict[str, BaselineCheck] = {}
    for name, status, before, run, run_before in cases:
        number = chunks.append(encode_content(run))
        score = {"passed": 1.0, "failed": 0.25}.get(status)
        result = make_result(
            status,
            score,
            case=name,
            misses=["turn 1: the wrong city"] if status == "failed" else [],
            reason={"errored": "exit code 3", "skipped": "no ship"}.get(status),
        )
        tone = make_result("passed", 0.9, case=name, evaluator="tone")
        for each in (result, tone):
            own = replace(each, id=f"{len(results):016x}")
            results.append(replace(own, case=replace(each.case, content=number)))
            if before is not None and run_before is not None:
                score_before = 1.0 if before == "passed" else 0.25
                baseline[own.id] = BaselineCheck(
                    status=before if each is result else "passed",
                    score=score_before if each is result else tone_before,
                    content=chunks.append(encode_content(run_before)),
                )
    trend = make_trend(
        newly_failing=tuple(make_change(f"to_rome{x}", 1, 0.25, "failed") for x in ("", "_again")),
        no_longer_evaluated=(make_change("out_of_order", 1, None, "errored"),),
        fixed=(replace(make_change("on_foot", 0.25, 1, "passed"), status_before="failed"),),
    )
    report = compared(make_report(results), trend, commit="c" * 40)
    return replace(
        report,
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline=baseline,
        run=RunInfo(
            repository="acme/desk",
            pull_request=7,
            pull_request_url="https://github.com/acme/desk/pull/7",
            title="Shorter prompt",
            date="2026-03-11T14:32:10Z",
        ),
    )


def _compare_runs(
    name: str, result: CheckResult, now: RunContent, before: RunContent, trend: EvaluatorComparison
) -> Report:
    """One check that passed in the baseline."""
    chunks = Chunks()
    number = chunks.append(encode_content(now))
    own = replace(result, id="0" * 16, case=replace(result.case, id=name, content=number))
    old = BaselineCheck(status="passed", score=1.0, content=chunks.append(encode_content(before)))
    return replace(
        compared(make_report([own]), trend),
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline={own.id: old},
    )


def recorded_report(now: int, before: int) -> Report:
    """A run that was recorded at a time, and a baseline at another, in nanoseconds since 1970."""
    run = make_run("There is no flight to Rome.", "Rome")
    first, *others = run.turns
    runs = [replace(run, turns=(replace(first, start=at), *others)) for at in (now, before)]
    result = make_result("failed", 0.0, case="by_plane")
    return _compare_runs("by_plane", result, runs[0], runs[1], make_trend())


def lost_report() -> Report:
    """A check that passed in the baseline and is skipped now, where the agent answers otherwise."""
    change = make_change("by_plane", 1.0, None, "skipped")
    trend = make_trend(newly_failing=(), in_both=0, no_longer_evaluated=(change,))
    result = make_result("skipped", None, case="by_plane", reason="no flights")
    good, bad = make_run("There is no flight to Rome.", "Rome"), make_run("Sorry, no.", "Rome")
    return _compare_runs("by_plane", result, bad, good, trend)


def slower_steps_report() -> Report:
    """A case of which the baseline has one model call less, and the others took half the time."""
    now = make_run("There is no flight to Rome.", "Rome")
    spans = tuple(replace(each, ms=each.ms / 2) for each in now.spans[1:])
    result = make_result("passed", 1.0, case="by_air")
    return _compare_runs("by_air", result, now, replace(now, spans=spans), make_trend())


def slow_tool_report(chat_before: float = 450) -> Report:
    """A case that took 3 s longer than in the baseline, 2.9 s of them in a tool that failed."""

    def run(chat_ms: float, tool_ms: float, tokens: int, **tool: Any) -> RunContent:
        whole = make_run("There is no flight to Rome.", "Rome", latency_ms=2 * chat_ms + tool_ms)
        chat, _, agent = whole.spans
        counted = TokenTotals(input=tokens, output=10)
        chat = replace(chat, ms=chat_ms, tokens=counted, first_token_ms=tokens / 10)
        track = RunSpan(
            id="t", name="execute_tool track", kind="tool", start_ms=chat_ms, ms=tool_ms,
            parent="a", **tool,
        )  # fmt: skip
        last = replace(chat, id="c", start_ms=chat_ms + tool_ms)
        spans = (replace(agent, ms=2 * chat_ms + tool_ms), chat, track, last)
        return replace(whole, spans=spans)

    result = make_result("passed", 1.0, case="by_air")
    now, before = run(500, 3000, 1200, error=True), run(chat_before, 100, 1100)
    return _compare_runs("by_air", result, now, before, make_trend())


def forbidden_call_report() -> Report:
    """A case that calls a tool twice as in the baseline, the second time in a forbidden way."""
    run = make_run("There is no flight to Rome.", "Rome")
    first = run.turns[0]
    other = replace(first.calls[0], arguments={"to": "Paris", "seats": 2})
    run = replace(run, turns=(replace(first, calls=(first.calls[0], other), expected_calls=()),))
    misses = ['turn 1: `find_flight(to="Paris")` is forbidden']
    result = make_result("failed", 0.0, case="by_air", evaluator="forbidden_tools", misses=misses)
    return _compare_runs("by_air", result, run, run, make_trend())


def not_captured_report() -> Report:
    """A case of which only the names of the tools were recorded, with an error of two checks."""
    good = make_run("There is no flight to Rome.", "Rome")
    first = good.turns[0]
    call = CallContent(name="find_flight")
    bare = replace(first, user="", user_recorded=False, answer=None, calls=(call,))
    reason = "the content of the messages was not captured"
    result = make_result("errored", None, case="by_air", reason=reason)
    report = _compare_runs("by_air", result, replace(good, turns=(bare,)), good, make_trend())
    [own] = report.results
    other = replace(own, id="1" * 16, evaluator=replace(own.evaluator, name="tone"))
    return replace(report, results=(own, other))


def changed_days_report(*evaluators: str) -> Report:
    """Newly failing cases, one of each evaluator, whose answer has another number of days."""
    chunks, results, before = Chunks(), list[CheckResult](), dict[str, BaselineCheck]()
    good, bad = (make_run(f"Within {days} days of delivery.", "Rome") for days in (30, 14))
    numbers = [chunks.append(encode_content(each)) for each in (bad, good)]
    answer = ChangedText(before="30 days", after="14 days")
    changes = RunChanges(answer=answer, facts='expected "30 days", got "14 days"')
    for number, evaluator in enumerate(evaluators):
        result = make_result("failed", 0.0, case=f"c{number}", evaluator=evaluator)
        case = replace(result.case, content=numbers[0], changes=changes)
        results.append(replace(result, id=f"{number:016x}", case=case))
        before[results[-1].id] = BaselineCheck(status="passed", score=1.0, content=numbers[1])
    return replace(
        compared(make_report(results), make_trend()),
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline=before,
    )


def passing_report(*runs: tuple[RunContent, RunContent]) -> Report:
    """Cases ``c0``, ``c1``, ... that pass as in the baseline, each with its run now and there."""
    chunks, results, before = Chunks(), list[CheckResult](), dict[str, BaselineCheck]()
    for number, each in enumerate(runs):
        now, old = (chunks.append(encode_content(run)) for run in each)
        result = make_result("passed", 1.0, case=f"c{number}")
        result = replace(result, id=f"{number:016x}", case=replace(result.case, content=now))
        results.append(result)
        before[result.id] = BaselineCheck(status="passed", score=1.0, content=old)
    report = replace(
        compared(make_report(results), make_trend(newly_failing=(), outcome="pass")),
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline=before,
    )
    return limit_contents(report, "full")


def changed_facts_report(*days: int) -> Report:
    """Cases that pass, each with another number of days in its answer than 30 in the baseline."""
    runs = [make_run(f"Within {each} days of delivery.", "Rome") for each in (30, *days)]
    return passing_report(*((run, runs[0]) for run in runs[1:]))


def removed_step_report() -> Report:
    """A case of which only the baseline has the first model call, in which a tool ran."""
    before = make_run("There is no flight to Rome.", "Rome")
    tool = RunSpan(id="t", name="find_flight", kind="tool", start_ms=810, ms=20, parent="a")
    first, second, agent = before.spans
    first = replace(first, first_token_ms=300)
    before = replace(before, spans=(agent, first, tool, second))
    now = replace(before, spans=(replace(agent, ms=400), replace(second, start_ms=10)))
    result = make_result("passed", 1.0, case="by_air")
    return _compare_runs("by_air", result, now, before, make_trend())


def other_model_report() -> Report:
    """A case that passes with another model than in the baseline, which cost less."""
    before = make_run("There is no flight to Rome.", "Rome", cost_usd=0.1)
    turns = (
        replace(turn, steps=tuple(replace(step, model="large-1") for step in turn.steps))
        for turn in before.turns
    )
    spans = (
        replace(each, model="large-1", name=each.name.replace("small-1", "large-1"))
        if each.kind == "model"
        else each
        for each in before.spans
    )
    now = replace(before, turns=tuple(turns), spans=tuple(spans), cost_usd=0.9)
    return _compare_runs(
        "by_air", make_result("passed", 1.0, case="by_air"), now, before, make_trend()
    )


def other_result_report(
    status: Status = "errored", result: Any = None, tokens: int = 905, **given: Any
) -> Report:
    """A case with the calls and answers of the baseline, whose tool returned something else.

    Args:
        status: of its check.
        result: of the tool.
        tokens: of the run, whose baseline has 900.
        given: of the result of its check.
    """
    before = make_run("There is no flight to Rome today.", "Rome")
    [first, second] = before.turns
    call = replace(first.calls[0], result=result)
    now = replace(
        before,
        turns=(replace(first, calls=(call,)), second),
        tokens=TokenTotals(input=tokens, output=30),
    )
    score = None if status == "errored" else 0.0
    own = make_result(status, score, case="by_air", **given)
    return _compare_runs("by_air", own, now, before, make_trend())


def removed_report() -> Report:
    """Two cases that pass, of which the baseline has another evaluator that is removed now."""
    results = [make_result("passed", 1.0, case=name) for name in ("by_sea", "on_foot")]
    results = [replace(each, id=f"{number:016x}") for number, each in enumerate(results)]
    gone = tuple(make_change(each.case.id, 1.0, None, "removed") for each in results)
    trend = make_trend(
        evaluator="grounded",
        classes=CheckClasses(removed=2),
        pairs=0,
        before=None,
        after=None,
        newly_failing=(),
        no_longer_evaluated=gone,
        outcome="non-comparable",
        reason="2 checks that passed were removed",
    )
    kept = make_trend(newly_failing=())
    before = {each.id: BaselineCheck(status="passed", score=1.0) for each in results}
    return replace(compared(make_report(results), kept, trend), baseline=before)


def still_failing_report() -> Report:
    """Three cases that still fail for one reason, and one that also has a new failure."""
    names = ("new", "still", "still_2", "still_3")
    results = [make_result("failed", 0.0, case=name, evaluator="tone") for name in names]
    before = {each.id: BaselineCheck(status="failed", score=0.0) for each in results}
    newly = make_result("failed", 0.2, case="new")
    before[newly.id] = BaselineCheck(status="passed", score=1.0)
    trend = make_trend(newly_failing=(make_change("new", 1.0, 0.2, "failed"),))
    return replace(compared(make_report([*results, newly]), trend), baseline=before)


def other_tool_report() -> Report:
    """A case of one turn that fails, as the agent calls another tool than before."""
    good = make_run("There is no flight to Rome today.", "Rome")
    good = replace(good, turns=good.turns[:1])
    call = replace(good.turns[0].calls[0], name="find_train", arguments={"station": "Rome"})
    bad = replace(good, turns=(replace(good.turns[0], calls=(call,)),))
    result = make_result("failed", 0.0, case="by_rail", misses=["turn 1: the wrong tool"])
    return _compare_runs("by_rail", result, bad, good, make_trend())


def retried_call_report() -> Report:
    """A case whose first call fails and is repeated, unlike in the baseline; a turn follows later.

    The second turn lacks the expected call, as does the baseline.
    """
    good = make_run("There is no flight to Rome today.", "Rome")
    first = good.turns[0]
    failed = replace(first.calls[0], result={"error": "timed out"})
    second = replace(first, user="Ask again.", calls=(), steps=(), span="d")
    later = RunSpan(id="d", name="invoke_agent", kind="agent", start_ms=61_200, ms=1200)
    before = replace(good, turns=(first, second), spans=(*good.spans, later))
    now = replace(before, turns=(replace(first, calls=(failed, *first.calls)), second))
    called = 'find_flight(to="Rome", seats=2)'
    misses = [f"turn 1: {called} is not expected; 1 extra", f"turn 2: {called} is missing"]
    result = make_result("failed", 0.5, case="by_air", evaluator="calls", misses=misses)
    return _compare_runs("by_air", result, now, before, make_trend())


def failing_tool_report(result: Any = None) -> Report:
    """A case whose tool fails, unlike in the baseline; the agent calls it twice, then another one.

    Args:
        result: of the first call in the baseline.
    """
    before = make_run("There is no flight to Rome today.", "Rome")
    [old, *_] = before.turns
    found = {"flights": [], "day": "Monday"} if result is None else result
    call = replace(old.calls[0], span="t", result=found)
    failed = replace(call, result={"error": "timed out"})
    again = replace(failed, span="u", step=1)
    train = replace(call, name="find_train", span="v", step=2, result={"trains": 1})
    chat = before.spans[0]
    tool = RunSpan(id="t", name="execute_tool", kind="tool", start_ms=800, ms=40, parent="a")
    spans = tuple(
        replace(kind, id=name, start_ms=start, ms=ms)
        for kind, name, start, ms in (
            (before.spans[2], "a", 0, 1200),
            (chat, "b", 0, 100),
            (tool, "t", 100, 200),
            (chat, "x", 300, 100),
            (tool, "u", 400, 200),
            (chat, "y", 600, 100),
            (tool, "v", 700, 100),
            (chat, "c", 800, 400),
        )
    )
    kept = [replace(spans[0], ms=600), replace(spans[1], ms=50), replace(spans[2], ms=10)]
    kept.append(replace(spans[7], start_ms=160, ms=300))
    turn = replace(
        old,
        answer="There is a train to Rome.",
        calls=(failed, again, train),
        steps=tuple(ModelStep(span=name) for name in "bxyc"),
    )
    result_now = make_result("failed", 0.0, case="by_air", misses=["turn 1: it takes a train"])
    return _compare_runs(
        "by_air",
        result_now,
        replace(before, turns=(turn,), spans=spans),
        replace(before, turns=(replace(old, calls=(call,)),), spans=tuple(kept)),
        make_trend(),
    )


def missing_turn_report() -> Report:
    """A case whose first turn is as in the baseline, and passes; the run lacks the second one."""
    now = make_run("There is no flight to Rome.", "Rome")
    first, second = now.turns
    answered = replace(second, missing=False, answer="Welcome.", calls=first.calls)
    misses = ["turn 1: the answer differs (0.96)"]
    result = make_result("failed", 0.96, case="by_air", misses=misses)
    if result.judgement:
        result = replace(result, judgement=replace(result.judgement, turn_scores=(0.96, 0.0)))
    before = replace(now, turns=(first, answered))
    return limit_contents(_compare_runs("by_air", result, now, before, make_trend()), "full")


def long_result_report(before: dict[str, Any], now: dict[str, Any]) -> Report:
    """A case with another answer after a tool result; of a long one only the start is stored."""
    run = make_run("There is no flight to Rome today.", "Rome")
    first, second = run.turns
    tool = RunSpan(id="t", name="execute_tool", kind="tool", start_ms=800, ms=40, parent="a")
    runs = [
        replace(
            run,
            turns=(
                replace(
                    first,
                    answer=answer,
                    calls=(replace(first.calls[0], span="t", result={"flights": [], **result}),),
                ),
                second,
            ),
            spans=(*run.spans, tool),
        )
        for answer, result in (("Sorry, no.", now), ("No flight.", before))
    ]
    result = make_result("failed", 0.0, case="by_air")
    report = _compare_runs("by_air", result, runs[0], runs[1], make_trend())
    return limit_contents(report, "full")


FILLER = "It is on its way with the carrier that you chose. " * 12


def long_conversation_report() -> Report:
    """One failed case of nine turns, of which the fifth differs from the baseline in every way."""
    chunks = Chunks()
    results: list[CheckResult] = []
    baseline: dict[str, BaselineCheck] = {}
    now, before = (
        RunContent(turns=tuple(_make_long_turn(number, is_now) for number in range(9)))
        for is_now in (True, False)
    )
    content, old = (chunks.append(encode_content(each)) for each in (now, before))
    scores = (1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0)
    for index, (evaluator, status) in enumerate((("calls", "failed"), ("tone", "passed"))):
        misses = ["turn 5: the wrong zip"] if status == "failed" else ["turn 5: a bit short"]
        result = make_result(
            "failed" if status == "failed" else "passed",
            0.5 if status == "failed" else 0.9,
            case="parcel",
            evaluator=evaluator,
            misses=misses,
        )
        if result.judgement and status == "failed":
            result = replace(result, judgement=replace(result.judgement, turn_scores=scores))
        result = replace(result, id=f"{index:016x}", case=replace(result.case, content=content))
        results.append(result)
        baseline[result.id] = BaselineCheck(status="passed", score=1.0, content=old)
    trend = make_trend(evaluator="calls", change_low=-0.6, change_high=-0.1, max_regression=0.02)
    return replace(
        compared(make_report(results), trend),
        contents=StoredContents(chunks=chunks, redact=lambda content: content),
        baseline=baseline,
    )


def _make_long_turn(number: int, is_now: bool) -> TurnContent:
    is_other = is_now and number == 4
    day, amount = ("Sunday", 50) if is_other else ("Monday", 5)
    zip_code = "20097" if is_other else "20095"
    address = {"city": "Hamburg", "zip": zip_code, "tags": ["home", "door"]}
    find: tuple[str, dict[str, Any]] = ("find_parcel", {"to": {"name": "Ada", "address": address}})
    calls: list[tuple[str, dict[str, Any]]] = [
        find,
        ("ask_carrier", {"id": 1}),
        ("write_mail", {"to": "ada"}),
    ]
    if is_other:
        calls = [find, calls[2], calls[1]]
    wanted = {"name": "Ada", "address": {**address, "zip": "20095"}}
    expected: list[tuple[str, dict[str, Any]]] = [("find_parcel", {"to": wanted})]
    expected += [("ask_carrier", {"id": 1}), ("write_mail", {"to": "ada"})]
    answer = f"It left on {day}. {FILLER}You get {amount} EUR. {FILLER}"
    return TurnContent(
        user=f"Question {number}",
        answer=answer,
        expected_answer=answer.replace("Sunday", "Monday").replace("50", "5"),
        calls=tuple(CallContent(name=name, arguments=given) for name, given in calls),
        expected_calls=tuple(ExpectedCall(name=name, arguments=given) for name, given in expected),
    )


def wide_report(evaluators: int, cases: int = 60, score: float = 0.5) -> Report:
    """A report with many evaluators, of which every other one fails with one of three reasons."""
    results = [
        make_result(
            "failed" if (case + number) % 2 else "passed",
            score,
            case=f"case {case}",
            evaluator=f"evaluator_{number}",
            misses=[f"reason {'abc'[case % 3]}"],
        )
        for case in range(cases)
        for number in range(evaluators)
    ]
    return make_report([replace(each, id=f"{i:016x}") for i, each in enumerate(results)])


def hostile_report() -> Report:
    """A report in which every text tries to run a script."""
    result = make_result(
        "failed",
        0.1,
        case=HOSTILE,
        evaluator=HOSTILE,
        config=HOSTILE,
        criterion=HOSTILE,
        type=HOSTILE,
        misses=[HOSTILE],
        hits=[HOSTILE],
        reasoning=HOSTILE,
        warnings=[HOSTILE],
        details={
            HOSTILE: HOSTILE,
            "comparisons": [
                {
                    "expected": [{"name": HOSTILE, "args": {HOSTILE: HOSTILE}}],
                    "actual": [{"name": HOSTILE, "args": HOSTILE}],
                    "matched": False,
                }
            ],
        },
    )
    turn = DialogueTurn(question=HOSTILE, answer=HOSTILE)
    case = replace(result.case, trace_id=HOSTILE, dialogue=(turn,), performance=json.dumps(HOSTILE))
    report = make_report([replace(result, case=case), make_result("errored", reason=HOSTILE)])
    payload = CallPayload(name=HOSTILE, content=HOSTILE, size=1, notes=(HOSTILE,))
    quoted = CallPayload(name="stdout", content=json.dumps({HOSTILE: HOSTILE}), size=1)
    return replace(report, evaluator_calls=calls_of(result, payload, quoted, outcome=HOSTILE))


def calls_of(
    result: CheckResult, *texts: CallPayload, outcome: str = "program: exit code 0"
) -> EvaluatorCalls:
    """Input and output of one evaluator."""
    found = EvaluatorCall(name=result.evaluator.name, outcome=outcome, texts=texts)
    return EvaluatorCalls(json_by_check={result.id: dumps_for_html([to_builtins(found)])})


def transcript_report(*texts: CallPayload) -> Report:
    """A failed check with the input and output of its evaluator."""
    result = replace(make_result("failed", 0.1), id="0" * 16)
    return replace(make_report([result]), evaluator_calls=calls_of(result, *texts))


def long_report(checks: int) -> Report:
    """A report with so many checks, of which every seventh failed."""
    results = [
        make_result(
            "passed" if number % 7 else "failed",
            number % 7 / 7,
            case=f"case {number}",
            misses=["it never says sorry"],
        )
        for number in range(checks)
    ]
    return make_report([replace(each, id=f"{i:016x}") for i, each in enumerate(results)])
