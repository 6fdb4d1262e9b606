"""``results.json``, the machine-readable report, with one result per line."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, to_builtins

from agentci._util.text import json_text
from agentci.model.case import CaseSummary, DialogueTurn
from agentci.model.gate import Comparison, Gate
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.result import CheckResult, JudgeSpending, ModelCost, Report
from agentci.model.shard import ShardInfo
from agentci.reports.report_format import (
    EvaluatorChecks,
    group_by_evaluator,
    list_cases,
    place_to_json,
    problem_to_json,
)
from agentci.reports.stability import mean_flip_rate, repeats_to_json
from agentci.version import __version__

SCHEMA_VERSION = 1


class JsonReport(Struct, frozen=True, kw_only=True):
    """The complete report in the shape of its JSON Schema; later versions only add keys."""

    tool_version: str = __version__
    name: str = "results"
    file_name: str = "results.json"

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON.

        Two runs over the same input differ only in ``seconds``, ``cached`` and the costs in
        ``judges``.
        """
        members: dict[str, Iterable[str]] = {
            "schema_version": [json_text.dumps(SCHEMA_VERSION)],
            "tool": [json_text.dumps({"name": "agentci", "version": self.tool_version})],
            "commit": [json_text.dumps(report.commit or None)],
            "complete": [json_text.dumps(report.complete)],
            "decision": [json_text.dumps(to_builtins(report.decision))],
            "totals": [json_text.dumps(to_builtins(report.totals))],
            "results": _format_array(json_text.dumps(_result(result)) for result in report.results),
            "evaluators": _format_array(
                json_text.dumps(_evaluator(tally)) for tally in group_by_evaluator(report.results)
            ),
            "cases": _format_array(_case(case) for case in list_cases(report.results)),
            "problems": _format_array(json_text.dumps(problem_to_json(p)) for p in report.problems),
            "provenance": _format_array(
                json_text.dumps(to_builtins(each)) for each in report.provenance
            ),
            "gates": _format_array(json_text.dumps(_gate(gate)) for gate in report.gates),
            "judges": _format_array(json_text.dumps(_spending(each)) for each in report.spending),
            "comparison": [json_text.dumps(_comparison(report.comparison))],
            "shard": [json_text.dumps(_shard(report.shard_info))],
        }
        before = "{"
        for name, pieces in members.items():
            yield f'{before}\n  "{name}": '
            yield from pieces
            before = ","
        yield "\n}\n"


def _format_array(items: Iterable[str]) -> Iterator[str]:
    """Yield a JSON array with one item per line, which is fast to write and easy to diff."""
    before = "["
    for item in items:
        yield f"{before}\n    {item}"
        before = ","
    yield "[]" if before == "[" else "\n  ]"


_NO_JUDGEMENT = Judgement(score=None, passed=None)


def _result(result: CheckResult) -> JsonObject:
    judgement = result.judgement or _NO_JUDGEMENT
    return {
        "id": result.id,
        "config": result.config,
        "case": result.case.id,
        "trace": result.case.trace_id,
        "eval_case": result.case.eval_case_id,
        "file": result.case.recording.file,
        "evaluator": result.evaluator.name,
        "type": result.evaluator.type,
        "status": result.status,
        "score": judgement.score,
        "criterion": result.evaluator.criterion,
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
        "repeats": repeats_to_json(result.repeats),
        "fingerprint": result.fingerprint,
        "place": place_to_json(result.evaluator.place),
    }


def _evaluator(tally: EvaluatorChecks) -> JsonObject:
    standing = tally.stats
    rate, score = standing.pass_rate_interval, standing.score_interval
    return {
        "config": tally.representative.config,
        "evaluator": tally.representative.evaluator.name,
        **to_builtins(tally.totals),
        "score_interval": None if score is None else to_builtins(score),
        "pass_rate": standing.pass_rate,
        "pass_rate_interval": None if rate is None else to_builtins(rate),
        "groups": standing.groups,
        "flip_rate": mean_flip_rate(tally.results),
    }


def _case(case: CaseSummary) -> str:
    told = json_text.dumps(
        {
            "id": case.id,
            "trace": case.trace_id,
            "group": case.group,
            "eval_case": case.eval_case_id,
            "unmatched_reason": case.unmatched_reason,
            "file": case.recording.file,
            "turn_count": len(case.dialogue),
            "turns": [_exchange(each) for each in case.dialogue],
            "warnings": case.warnings,
        }
    )
    return f'{told.removesuffix("}")}, "performance": {case.performance or "null"}}}'


def _exchange(turn: DialogueTurn) -> JsonObject:
    return {"user": turn.question, "answer": turn.answer}


def _gate(gate: Gate) -> JsonObject:
    return {
        "config": gate.config,
        "evaluators": gate.evaluators,
        "uncovered": gate.uncovered,
        "policy": to_builtins(gate.policy),
    }


def _spending(spending: JudgeSpending) -> JsonObject:
    return {
        "config": spending.config,
        "spent": _charge(spending.spent, priced=spending.priced),
        "saved": _charge(spending.saved, priced=spending.priced),
    }


def _charge(charge: ModelCost, *, priced: bool) -> JsonObject:
    return {
        "calls": charge.calls,
        "tokens": charge.tokens,
        "usd": round(charge.usd, 9) if priced else None,
    }


def _comparison(comparison: Comparison | None) -> JsonObject | None:
    return None if comparison is None else to_builtins(comparison)


def _shard(portion: ShardInfo | None) -> JsonObject | None:
    if portion is None:
        return None
    told = {"of": portion.plan_digest, "checks": portion.checks, "assigned_by": portion.shard_keys}
    return {**to_builtins(portion.shard), **told}
