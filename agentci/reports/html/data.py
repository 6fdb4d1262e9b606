"""What the page's script reads: evaluators, cases and checks as JSON, each of them once.

A check says by number which evaluator and which case it is of, and leaves out what is empty: it is
what makes a page of 10,000 checks quick to write and to open. ``results.json`` is for programs.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from msgspec import to_builtins

from agentci._util.text import strict_json
from agentci.model.case import Synopsis
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.result import Report, Result
from agentci.reports.check_text import headline
from agentci.reports.html.markup import Markup, tag
from agentci.reports.locations import file_name
from agentci.reports.report_format import case_key
from agentci.reports.stability import record_fields


def page_data(report: Report) -> Iterator[str]:
    r"""JSON in pieces, for an element ``script``: pure ASCII, ``<`` written as ``\u003c``."""
    evaluators, cases = _Numbered(), _Numbered()
    yield '{"checks": '
    yield from _lines(_checks(report, evaluators, cases))
    yield ',\n"evaluators": '
    yield from _lines(_evaluator(each.config, each.evaluator) for each in evaluators.firsts)
    yield ',\n"cases": '
    yield from _lines(_case(each.case) for each in cases.firsts)
    if report.exchanges.elsewhere:
        yield ',\n"elsewhere": true'
    yield "}"


def exchanges(report: Report) -> Iterator[Markup]:
    """An element for each check of which there are some, so that only those shown are read."""
    for id_, number in _exchange_numbers(report).items():
        packed = Markup(report.exchanges.packed[id_])
        yield tag("script", packed, type="application/json", id=f"exchanges-{number}")


class _Numbered:
    """Numbers things from 0 in the order in which they come up, with the first result of each."""

    def __init__(self) -> None:
        self.firsts: list[Result] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, thing: Hashable, result: Result) -> int:
        found = self._numbers.setdefault(thing, len(self.firsts))
        if found == len(self.firsts):
            self.firsts.append(result)
        return found


def _checks(report: Report, evaluators: _Numbered, cases: _Numbered) -> Iterator[JsonObject]:
    before, told = _changed(report), _exchange_numbers(report)
    for result in report.results:
        yield {
            "evaluator": evaluators.number((result.config, result.evaluator), result),
            "case": cases.number(case_key(result.case), result),
            "id": result.id,
            "status": result.status,
            "headline": headline(result),
            "seconds": round(result.seconds, 3),
            **_findings(result),
            **({"exchanges": told[result.id]} if result.id in told else {}),
            **({"left_out": True} if result.id in report.exchanges.left_out else {}),
            **before.get((result.config, result.evaluator.name, result.case.id), {}),
        }


def _findings(result: Result) -> JsonObject:
    judgement = result.judgement or _NOTHING
    trials = result.trials
    members: JsonObject = {
        "turn_scores": judgement.turn_scores,
        "hits": judgement.hits,
        "misses": judgement.misses,
        "reasoning": judgement.reasoning,
        "details": judgement.details,
        "cached": result.cached,
        "trials": None if trials is None else to_builtins(trials),
        "repeats": record_fields(result.repeats),
    }
    counts = result.status in {"passed", "failed"}
    return {"score": judgement.score if counts else None, **_filled(members)}


def _evaluator(config: str, evaluator: Identity) -> JsonObject:
    return {
        "config": file_name(config),
        "name": evaluator.name,
        "type": evaluator.type,
        "bar": evaluator.bar,
        "threshold": evaluator.threshold,
        "required": evaluator.required,
        "weight": evaluator.weight,
        "place": str(evaluator.place),
    }


def _case(case: Synopsis) -> JsonObject:
    return {
        "id": case.id,
        "trace": case.trace,
        "recording": str(case.recording),
        "dialogue": [[turn.asked, turn.answered] for turn in case.dialogue],
        **_filled(
            {
                "golden": case.golden,
                "no_golden_because": case.no_golden_because,
                "warnings": case.warnings,
                "performance": case.performance,
            }
        ),
    }


def _exchange_numbers(report: Report) -> Mapping[str, int]:
    """Of the elements with the exchanges of checks, by the ids of these."""
    return {id_: number for number, id_ in enumerate(report.exchanges.packed)}


def _changed(report: Report) -> Mapping[tuple[str, str, str], JsonObject]:
    """Scores in the baseline of the checks that passed in one run and failed in the other."""
    trends = () if report.comparison is None else report.comparison.trends
    return {
        (trend.config, trend.evaluator, each.case): {"before": each.before}
        for trend in trends
        for each in (*trend.regressions, *trend.improvements)
    }


def _filled(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value}


def _lines(items: Iterable[JsonObject]) -> Iterator[str]:
    before = "["
    for item in items:
        yield f"{before}\n{strict_json.in_a_page(item)}"
        before = ","
    yield "[]" if before == "[" else "\n]"


_NOTHING = Judgement(score=None, passed=None)
