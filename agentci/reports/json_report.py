"""``results.json``, the machine-readable report, with one result per line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct, convert, json
from msgspec.structs import asdict

from agentci._util.text import json_text
from agentci.model.requests import NO_JUDGEMENT
from agentci.model.result import (
    BaselineCheck,
    CheckResult,
    ContentLevel,
    JudgeSpending,
    ModelCost,
    Report,
    RunInfo,
    ShardInfo,
)
from agentci.model.values import ContentLimit, Place
from agentci.reports import results_schema
from agentci.reports.contents import (
    MAX_FIELD_CHARACTERS,
    FieldCutter,
    ReportedRun,
    count_turns,
    load_run,
)
from agentci.reports.groups_and_totals import EvaluatorChecks, group_by_evaluator
from agentci.reports.outcomes import (
    CaseOutcome,
    ReportMetrics,
    list_case_outcomes,
    mean_flip_rate,
    summarize_metrics,
)
from agentci.reports.policy_effects import explain_policy
from agentci.version import __version__

SCHEMA_VERSION = 1
# Characters; the runs that they explain are in `cases`.
MAX_PASSED_DETAILS: Final = 4 * 1024**2


class JsonReport(Struct, frozen=True, kw_only=True):
    """The complete report in the shape of ``ResultsJson``; later versions only add keys.

    Types of the model that have the keys of their counterparts there are written as they are.
    """

    tool_version: str = __version__
    name: str = "results"
    file_name: str = "results.json"

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON.

        Two runs over the same input differ only in ``seconds``, ``cached`` and the costs in
        ``judges``.
        """
        dumps = json_text.dumps
        levels: Counter[ContentLevel] = Counter()
        members: dict[str, Iterable[str]] = {
            "schema_version": [dumps(SCHEMA_VERSION)],
            "tool": [dumps(results_schema.ToolJson(name="agentci", version=self.tool_version))],
            "commit": [dumps(report.commit or None)],
            "complete": [dumps(report.complete)],
            "decision": [dumps(report.decision)],
            "totals": [dumps(report.totals)],
            "results": _format_array(_list_results(report)),
            "evaluators": _format_array(map(_evaluator, group_by_evaluator(report.results))),
            "cases": _format_array(_list_cases(report, levels)),
            "content": _format_content(report.content_limit, levels),
            "run": [dumps(_run(report.run))],
            "metrics": [dumps(_metrics(summarize_metrics(report)))],
            "problems": _format_array(report.problems),
            "provenance": _format_array(report.provenance),
            "gates": _format_array(report.gates),
            "judges": _format_array(map(_spending, report.spending)),
            "comparison": [dumps(report.comparison)],
            "policy": [dumps(explain_policy(report))],
            "shard": [dumps(None if report.shard_info is None else _shard(report.shard_info))],
        }
        before = "{"
        for name, pieces in members.items():
            yield f'{before}\n  "{name}": '
            yield from pieces
            before = ","
        yield "\n}\n"


def _format_array(items: Iterable[Struct]) -> Iterator[str]:
    return json_text.format_array(map(json_text.dumps, items), indent="  ")


def _list_cases(report: Report, levels: Counter[ContentLevel]) -> Iterator[results_schema.CaseJson]:
    """Yield the cases, and count them by how much is kept."""
    for outcome in list_case_outcomes(report):
        run = load_run(report, outcome.results)
        levels[run.content.level] += 1
        yield _case(outcome, run)


def _format_content(limit: ContentLimit, levels: Counter[ContentLevel]) -> Iterator[str]:
    """Yield the counts, once all cases are written."""
    yield json_text.dumps(
        results_schema.ContentJson(
            limit=limit,
            full=levels["full"],
            without_results=levels["without_results"],
            excerpt=levels["excerpt"],
            none=levels["none"],
        )
    )


def _list_results(report: Report) -> Iterator[results_schema.ResultJson]:
    """Yield the results; details of passed checks are kept up to a limit for all of them."""
    left = MAX_PASSED_DETAILS
    for result in report.results:
        written = _result(result, report.baseline)
        if written.details:
            size = len(json_text.dumps_compact(written.details))
            is_passed = result.status == "passed"
            if size > (min(left, MAX_FIELD_CHARACTERS) if is_passed else MAX_FIELD_CHARACTERS):
                written.details, written.cut = {}, {**written.cut, "details": size}
            elif is_passed:
                left -= size
        yield written


def _result(
    result: CheckResult, baseline: Mapping[str, BaselineCheck]
) -> results_schema.ResultJson:
    judgement, evaluator = result.judgement or NO_JUDGEMENT, result.evaluator
    before = baseline.get(result.id)
    fields = FieldCutter(result.cut or {})
    return results_schema.ResultJson(
        id=result.id,
        config=result.config,
        case=result.case.id,
        trace=result.case.trace_id,
        eval_case=result.case.eval_case_id,
        file=result.case.recording.file,
        evaluator=evaluator.name,
        type=evaluator.type,
        status=result.status,
        score=result.score,
        criterion=evaluator.criterion,
        threshold=evaluator.threshold,
        better=evaluator.better,
        required=evaluator.required,
        weight=evaluator.weight,
        turn_scores=judgement.turn_scores,
        hits=fields.cut_texts("hits", judgement.hits),
        misses=fields.cut_texts("misses", judgement.misses),
        reasoning=fields.cut_value("reasoning", judgement.reasoning),
        details=judgement.details,
        reason=fields.cut_value("reason", result.reason),
        warnings=result.case.warnings,
        seconds=round(result.seconds, 6),
        cached=result.cached,
        unavailable=result.unavailable,
        trials=None
        if result.trials is None
        else convert(result.trials, results_schema.TrialsJson, from_attributes=True),
        repeats=None
        if result.repeats is None
        else convert(result.repeats, results_schema.RepeatsJson, from_attributes=True),
        fingerprint=result.fingerprint,
        baseline=None
        if before is None
        else results_schema.BaselineResultJson(status=before.status, score=before.score),
        cut=fields.cut,
        place=_place(evaluator.place),
    )


# An evaluator's is written with each of its checks.
@lru_cache(maxsize=1024)
def _place(place: Place) -> results_schema.PlaceJson:
    return results_schema.PlaceJson(file=place.file, line=place.line, column=place.column)


def _evaluator(checks: EvaluatorChecks) -> results_schema.EvaluatorJson:
    stats = checks.stats
    return results_schema.EvaluatorJson(
        config=checks.representative.config,
        evaluator=checks.representative.evaluator.name,
        **asdict(checks.totals),
        score_interval=convert(
            stats.score_interval, results_schema.IntervalJson | None, from_attributes=True
        ),
        pass_rate=stats.pass_rate,
        pass_rate_interval=convert(
            stats.pass_rate_interval, results_schema.IntervalJson | None, from_attributes=True
        ),
        groups=stats.groups,
        flip_rate=mean_flip_rate(checks.results),
    )


def _case(outcome: CaseOutcome, run: ReportedRun) -> results_schema.CaseJson:
    case, content, before = outcome.summary, run.content, run.before
    return results_schema.CaseJson(
        id=case.id,
        trace=case.trace_id,
        group=case.group,
        eval_case=case.eval_case_id,
        unmatched_reason=case.unmatched_reason,
        file=case.recording.file,
        line=case.recording.line,
        eval_case_place=None if case.eval_case_place is None else _place(case.eval_case_place),
        state=outcome.state,
        answer_changed=outcome.answer_changed,
        content=content.level,
        latency_ms=content.latency_ms,
        tokens=content.tokens,
        cost_usd=content.cost_usd,
        priced=content.priced,
        baseline=None
        if before is None
        else results_schema.BaselineRunJson(
            latency_ms=before.latency_ms,
            tokens=before.tokens,
            cost_usd=before.cost_usd,
            priced=before.priced,
        ),
        turn_count=count_turns(content),
        turns=content.turns,
        subagents=content.subagents,
        spans=content.spans,
        baseline_spans=content.baseline_spans,
        columns=content.columns,
        tags=content.tags,
        cluster=outcome.cluster,
        cut=content.cut,
        redacted=content.redacted,
        changes=case.changes,
        warnings=case.warnings,
        performance=None if case.performance is None else json.decode(case.performance),
        printed=content.printed,
        run=case.run,
    )


def _run(run: RunInfo) -> results_schema.RunJson:
    number = run.pull_request
    return results_schema.RunJson(
        repository=run.repository,
        branch=run.branch,
        url=run.url,
        date=run.date,
        pull_request=None
        if number is None
        else results_schema.PullRequestJson(
            number=number, title=run.title, url=run.pull_request_url
        ),
    )


def _metrics(metrics: ReportMetrics) -> results_schema.MetricsJson:
    return convert(metrics, results_schema.MetricsJson, from_attributes=True)


def _spending(spending: JudgeSpending) -> results_schema.SpendingJson:
    def make_cost(cost: ModelCost) -> results_schema.CostJson:
        usd = round(cost.usd, 9) if spending.priced else None
        return results_schema.CostJson(calls=cost.calls, tokens=cost.tokens, usd=usd)

    return results_schema.SpendingJson(
        config=spending.config, spent=make_cost(spending.spent), saved=make_cost(spending.saved)
    )


def _shard(info: ShardInfo) -> results_schema.ShardJson:
    return results_schema.ShardJson(
        index=info.shard.index,
        total=info.shard.total,
        plan_digest=info.plan_digest,
        checks=info.checks,
        shard_keys=info.shard_keys,
    )
