"""The report for programs: ``results.json``, one result a line."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agentci.model.case import Case
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.policy import Gate
from agentci.model.result import Report, Result
from agentci.model.shard import Portion
from agentci.model.trace import Turn
from agentci.reporters.base import cases, problem_fields
from agentci.reporters.one_check import excerpt
from agentci.text import strict_json
from agentci.version import __version__

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReport:
    """Everything that was found, in the shape of the schema; keys are only ever added to it."""

    tool_version: str = __version__
    name: str = "results"
    file_name: str = "results.json"

    def render(self, report: Report) -> str:
        """Pure ASCII; two runs over the same input differ in ``seconds`` and ``cached`` alone."""
        members = {
            "schema_version": strict_json.dumps(SCHEMA_VERSION),
            "tool": strict_json.dumps({"name": "agentci", "version": self.tool_version}),
            "complete": strict_json.dumps(report.complete),
            "decision": strict_json.dumps(asdict(report.decision)),
            "totals": strict_json.dumps(asdict(report.totals)),
            "results": _lines([_result(result) for result in report.results]),
            "cases": _lines([_case(case) for case in cases(report.results)]),
            "problems": _lines([problem_fields(problem) for problem in report.problems]),
            "provenance": _lines([asdict(each) for each in report.provenance]),
            "gates": _lines([_gate(gate) for gate in report.gates]),
            "shard": strict_json.dumps(_shard(report.portion)),
        }
        written = ",\n".join(f'  "{name}": {value}' for name, value in members.items())
        return f"{{\n{written}\n}}\n"


def _lines(items: Sequence[Json]) -> str:
    """An array with an item a line: quick to write, and easy to compare."""
    if not items:
        return "[]"
    return "[\n" + ",\n".join(f"    {strict_json.dumps(item)}" for item in items) + "\n  ]"


_NOTHING = Judgement(score=None, passed=None)


def _result(result: Result) -> JsonObject:
    judgement = result.judgement or _NOTHING
    return {
        "id": result.id,
        "config": result.config,
        "case": result.case.id,
        "trace": result.case.trace.id,
        "golden": _golden(result.case),
        "recording": result.case.trace.place.file,
        "evaluator": result.evaluator.name,
        "type": result.evaluator.type,
        "status": result.status,
        "score": judgement.score,
        "bar": result.evaluator.bar,
        "threshold": result.evaluator.threshold,
        "required": result.evaluator.required,
        "turn_scores": judgement.turn_scores,
        "hits": judgement.hits,
        "misses": judgement.misses,
        "reasoning": judgement.reasoning,
        "details": judgement.details,
        "reason": result.reason,
        "warnings": result.case.trace.warnings,
        "seconds": round(result.seconds, 6),
        "cached": result.cached,
        "place": asdict(result.evaluator.place),
    }


def _case(case: Case) -> JsonObject:
    return {
        "id": case.id,
        "trace": case.trace.id,
        "golden": _golden(case),
        "no_golden_because": case.no_golden_because,
        "recording": case.trace.place.file,
        "turns": len(case.trace.turns),
        "dialogue": [_exchange(turn) for turn in case.trace.turns],
        "warnings": case.trace.warnings,
        "performance": case.trace.performance,
    }


def _golden(case: Case) -> str | None:
    return None if case.golden is None else case.golden.id


def _exchange(turn: Turn) -> JsonObject:
    """What reports may quote of a turn."""
    answer = turn.final_text
    return {
        "asked": excerpt(turn.user_text),
        "answered": None if answer is None else excerpt(answer),
    }


def _gate(gate: Gate) -> JsonObject:
    return {
        "config": gate.config,
        "evaluators": gate.evaluators,
        "uncovered": gate.uncovered,
        "policy": asdict(gate.policy),
    }


def _shard(portion: Portion | None) -> JsonObject | None:
    if portion is None:
        return None
    return {**asdict(portion.shard), "of": portion.of, "checks": portion.checks}
