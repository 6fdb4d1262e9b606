"""HTML reports shared by the tests of the page text and of the browser."""

import json
from typing import Any

from lxml import html
from msgspec import to_builtins

from agentci._util.text.json_text import dumps_for_html
from agentci.model.case import DialogueTurn
from agentci.model.gate import CheckChange, CheckClasses, Comparison, EvaluatorComparison
from agentci.model.result import (
    CallPayload,
    CheckResult,
    EvaluatorCall,
    EvaluatorCalls,
    RepeatOutcome,
    RepeatRecord,
    Report,
    TrialRecord,
    TrialScore,
)
from agentci.model.values import replace
from agentci.reports.html.page import HtmlReport
from tests.helpers.reports import CONFIG, make_report, make_result, mixed_report, text_of

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


def make_trend(**others: Any) -> EvaluatorComparison:
    """An evaluator with a regression in one case."""
    return EvaluatorComparison(
        **{
            "config": CONFIG,
            "evaluator": "response_quality",
            "required": True,
            "classes": CheckClasses(compared=2),
            "pairs": 2,
            "before": 0.9,
            "after": 0.6,
            "worse": (CheckChange(case="cancels", before=0.95, after=0.6999, status="failed"),),
            "better": (),
            "p_value": None,
            "outcome": "fail",
            "reason": "the mean score fell by 0.3",
            **others,
        }
    )


def compared(report: Report, *trends: EvaluatorComparison, **others: Any) -> Report:
    """The report with a comparison with a baseline."""
    found = Comparison(baseline="before/results.json", evaluators=trends, **others)
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
    """A report with so many checks, of which every seventh passed."""
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
