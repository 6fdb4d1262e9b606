"""The report for programs: ``results.json``, one result a line."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, to_builtins

from agentci._util.text import strict_json
from agentci.model.case import Exchange, Synopsis
from agentci.model.comparison import Comparison
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.policy import Gate
from agentci.model.result import Report, Result
from agentci.model.shard import Portion
from agentci.model.spending import Charge, Spending
from agentci.reports.report_format import Tally, cases, place_fields, problem_fields, tallies
from agentci.reports.stability import flip_rate, record_fields
from agentci.version import __version__

SCHEMA_VERSION = 1


class JsonReport(Struct, frozen=True, kw_only=True):
    """Everything that was found, in the shape of the schema; keys are only ever added to it."""

    tool_version: str = __version__
    name: str = "results"
    file_name: str = "results.json"

    def render(self, report: Report) -> Iterator[str]:
        """Pure ASCII.

        Two runs over the same input differ in ``seconds`` and ``cached`` alone, and in what
        ``judges`` says that they cost.
        """
        members: dict[str, Iterable[str]] = {
            "schema_version": [strict_json.dumps(SCHEMA_VERSION)],
            "tool": [strict_json.dumps({"name": "agentci", "version": self.tool_version})],
            "commit": [strict_json.dumps(report.commit or None)],
            "complete": [strict_json.dumps(report.complete)],
            "decision": [strict_json.dumps(to_builtins(report.decision))],
            "totals": [strict_json.dumps(to_builtins(report.totals))],
            "results": _lines(strict_json.dumps(_result(result)) for result in report.results),
            "evaluators": _lines(
                strict_json.dumps(_evaluator(tally)) for tally in tallies(report.results)
            ),
            "cases": _lines(_case(case) for case in cases(report.results)),
            "problems": _lines(strict_json.dumps(problem_fields(p)) for p in report.problems),
            "provenance": _lines(
                strict_json.dumps(to_builtins(each)) for each in report.provenance
            ),
            "gates": _lines(strict_json.dumps(_gate(gate)) for gate in report.gates),
            "judges": _lines(strict_json.dumps(_spending(each)) for each in report.spending),
            "comparison": [strict_json.dumps(_comparison(report.comparison))],
            "shard": [strict_json.dumps(_shard(report.portion))],
        }
        before = "{"
        for name, pieces in members.items():
            yield f'{before}\n  "{name}": '
            yield from pieces
            before = ","
        yield "\n}\n"


def _lines(items: Iterable[str]) -> Iterator[str]:
    """An array with an item a line: quick to write, and easy to compare."""
    before = "["
    for item in items:
        yield f"{before}\n    {item}"
        before = ","
    yield "[]" if before == "[" else "\n  ]"


_NOTHING = Judgement(score=None, passed=None)


def _result(result: Result) -> JsonObject:
    judgement = result.judgement or _NOTHING
    return {
        "id": result.id,
        "config": result.config,
        "case": result.case.id,
        "trace": result.case.trace,
        "golden": result.case.golden,
        "recording": result.case.recording.file,
        "evaluator": result.evaluator.name,
        "type": result.evaluator.type,
        "status": result.status,
        "score": judgement.score,
        "bar": result.evaluator.bar,
        "threshold": result.evaluator.threshold,
        "required": result.evaluator.required,
        "weight": result.evaluator.weight,
        "turn_scores": judgement.turn_scores,
        "hits": judgement.hits,
        "misses": judgement.misses,
        "reasoning": judgement.reasoning,
        "details": judgement.details,
        "reason": result.reason,
        "warnings": result.case.warnings,
        "seconds": round(result.seconds, 6),
        "cached": result.cached,
        "trials": None if result.trials is None else to_builtins(result.trials),
        "repeats": record_fields(result.repeats),
        "fingerprint": result.fingerprint,
        "place": place_fields(result.evaluator.place),
    }


def _evaluator(tally: Tally) -> JsonObject:
    standing = tally.standing
    rate, score = standing.pass_rate_interval, standing.score_interval
    return {
        "config": tally.any.config,
        "evaluator": tally.any.evaluator.name,
        **to_builtins(tally.totals),
        "score_interval": None if score is None else to_builtins(score),
        "pass_rate": standing.pass_rate,
        "pass_rate_interval": None if rate is None else to_builtins(rate),
        "groups": standing.groups,
        "flip_rate": flip_rate(tally.results),
    }


def _case(case: Synopsis) -> str:
    told = strict_json.dumps(
        {
            "id": case.id,
            "trace": case.trace,
            "group": case.group,
            "golden": case.golden,
            "no_golden_because": case.no_golden_because,
            "recording": case.recording.file,
            "turns": len(case.dialogue),
            "dialogue": [_exchange(each) for each in case.dialogue],
            "warnings": case.warnings,
        }
    )
    return f'{told.removesuffix("}")}, "performance": {case.performance or "null"}}}'


def _exchange(turn: Exchange) -> JsonObject:
    return {"asked": turn.asked, "answered": turn.answered}


def _gate(gate: Gate) -> JsonObject:
    return {
        "config": gate.config,
        "evaluators": gate.evaluators,
        "uncovered": gate.uncovered,
        "policy": to_builtins(gate.policy),
    }


def _spending(spending: Spending) -> JsonObject:
    return {
        "config": spending.config,
        "spent": _charge(spending.spent, priced=spending.priced),
        "saved": _charge(spending.saved, priced=spending.priced),
    }


def _charge(charge: Charge, *, priced: bool) -> JsonObject:
    return {
        "calls": charge.calls,
        "tokens": charge.tokens,
        "usd": round(charge.usd, 9) if priced else None,
    }


def _comparison(comparison: Comparison | None) -> JsonObject | None:
    return None if comparison is None else to_builtins(comparison)


def _shard(portion: Portion | None) -> JsonObject | None:
    if portion is None:
        return None
    told = {"of": portion.of, "checks": portion.checks, "dealt_by": portion.dealt_by}
    return {**to_builtins(portion.shard), **told}
