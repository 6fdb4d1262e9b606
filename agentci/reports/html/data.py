"""JSON for the page's script: each evaluator, case and check once.

Checks refer to evaluators and cases by index and omit empty members, which keeps a page of 10,000
checks fast to write and to open. Programs read ``results.json`` instead.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from msgspec import to_builtins

from agentci._util.text import json_text
from agentci.model.case import CaseSummary
from agentci.model.json import JsonObject
from agentci.model.judgement import NO_JUDGEMENT, EvaluatorIdentity
from agentci.model.result import CheckResult, Report
from agentci.reports.check_text import format_headline
from agentci.reports.html.markup import Markup, tag
from agentci.reports.report_format import case_key, format_path


def render_page_data(report: Report) -> Iterator[str]:
    r"""Yield JSON for a script element: ASCII only, with ``<`` written as ``\u003c``."""
    evaluators, cases = _Numbering(), _Numbering()
    yield '{"checks": '
    yield from _format_array(_checks(report, evaluators, cases))
    yield ',\n"evaluators": '
    yield from _format_array(_evaluator(each.config, each.evaluator) for each in evaluators.firsts)
    yield ',\n"cases": '
    yield from _format_array(_case(each.case) for each in cases.firsts)
    if report.evaluator_calls.kept_in_parts:
        yield ',\n"merged": true'
    yield "}"


def render_transcripts(report: Report) -> Iterator[Markup]:
    """Yield one script element per check that has recorded evaluator calls.

    Separate elements let the page parse only the calls that it shows.
    """
    for id_, number in _number_transcripts(report).items():
        packed = Markup(report.evaluator_calls.json_by_check[id_])
        yield tag("script", packed, type="application/json", id=f"transcript-{number}")


class _Numbering:
    """Assigns indexes from 0 in order of first use and keeps the first result of each item."""

    def __init__(self) -> None:
        self.firsts: list[CheckResult] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, thing: Hashable, result: CheckResult) -> int:
        found = self._numbers.setdefault(thing, len(self.firsts))
        if found == len(self.firsts):
            self.firsts.append(result)
        return found


def _checks(report: Report, evaluators: _Numbering, cases: _Numbering) -> Iterator[JsonObject]:
    before, transcripts = _find_changes(report), _number_transcripts(report)
    for result in report.results:
        yield {
            "evaluator": evaluators.number((result.config, result.evaluator), result),
            "case": cases.number(case_key(result.case), result),
            "id": result.id,
            "status": result.status,
            "headline": format_headline(result),
            "seconds": round(result.seconds, 3),
            **_findings(result),
            **({"transcript": transcripts[result.id]} if result.id in transcripts else {}),
            **({"omitted": True} if result.id in report.evaluator_calls.omitted_checks else {}),
            **before.get((result.config, result.evaluator.name, result.case.id), {}),
        }


def _findings(result: CheckResult) -> JsonObject:
    judgement = result.judgement or NO_JUDGEMENT
    trials = result.trials
    members: JsonObject = {
        "turn_scores": judgement.turn_scores,
        "hits": judgement.hits,
        "misses": judgement.misses,
        "reasoning": judgement.reasoning,
        "details": judgement.details,
        "cached": result.cached,
        "trials": None if trials is None else to_builtins(trials),
        "repeats": None if result.repeats is None else to_builtins(result.repeats),
    }
    counts = result.status in {"passed", "failed"}
    return {"score": judgement.score if counts else None, **_drop_empty(members)}


def _evaluator(config: str, evaluator: EvaluatorIdentity) -> JsonObject:
    return {
        "config": format_path(config),
        "name": evaluator.name,
        "type": evaluator.type,
        "criterion": evaluator.criterion,
        "threshold": evaluator.threshold,
        "required": evaluator.required,
        "weight": evaluator.weight,
        "place": str(evaluator.place),
    }


def _case(case: CaseSummary) -> JsonObject:
    return {
        "id": case.id,
        "trace": case.trace_id,
        "file": str(case.recording),
        "turns": [[turn.question, turn.answer] for turn in case.dialogue],
        **_drop_empty(
            {
                "eval_case": case.eval_case_id,
                "unmatched_reason": case.unmatched_reason,
                "warnings": case.warnings,
                "performance": case.performance,
            }
        ),
    }


def _number_transcripts(report: Report) -> Mapping[str, int]:
    """Return the index of the script element with evaluator calls, by check id."""
    return {id_: number for number, id_ in enumerate(report.evaluator_calls.json_by_check)}


def _find_changes(report: Report) -> Mapping[tuple[str, str, str], JsonObject]:
    """Return baseline scores of regressions and improvements, by config, evaluator and case."""
    comparisons = () if report.comparison is None else report.comparison.evaluators
    return {
        (compared.config, compared.evaluator, each.case): {"before": each.before}
        for compared in comparisons
        for each in (*compared.worse, *compared.better)
    }


def _drop_empty(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value}


def _format_array(items: Iterable[JsonObject]) -> Iterator[str]:
    return json_text.format_array(map(json_text.dumps_for_html, items))
