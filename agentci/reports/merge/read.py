"""Read ``results.json`` back into a report."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from pydantic import ValidationError

from agentci._util.text import json_text
from agentci._util.text.format import format_count
from agentci._util.text.json_document import JsonDocument, read_json
from agentci._util.text.suggest import quote_name
from agentci.errors import InputError
from agentci.model.case import CaseSummary
from agentci.model.gate import (
    CaseThresholds,
    Comparison,
    Gate,
    GatePolicy,
    GateThresholds,
    RegressionThresholds,
)
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place, Problem
from agentci.model.result import (
    CheckResult,
    Decision,
    JudgeSpending,
    ModelCost,
    Provenance,
    Report,
    Totals,
)
from agentci.model.shard import Shard, ShardInfo
from agentci.model.values import replace
from agentci.reports.case_summary import excerpt_turn
from agentci.reports.merge.spec import (
    ChargeSpec,
    PlaceSpec,
    ProblemSpec,
    ReportSpec,
    ResultsCaseSpec,
    ResultsGateSpec,
    ResultSpec,
    ResultsRegressionSpec,
    ShardSpec,
    SpendingSpec,
)
from agentci.version import __version__

MAX_PROBLEMS: Final = 5
# Commits between two releases share a version, although their reports may differ.
OTHER_BUILD: Final = "if another commit of agentci wrote it, judge again with this one"


def read_report(data: bytes, *, file: str) -> Report:
    """Read a report that the same version of agentci wrote.

    Its texts are untrusted. Of traces, it has only what reports show.

    Raises:
        InputError: if the data is not such a report; lists the first problems with their lines.
    """
    document = read_json(data, file=file)
    _check_author(document)
    try:
        spec = ReportSpec.model_validate(document.value)
    except ValidationError as error:
        raise InputError([*_problems(error, document)]) from None
    return Report(
        complete=spec.complete,
        decision=Decision(
            passed=spec.decision.passed,
            exit_code=spec.decision.exit_code,
            reasons=tuple(spec.decision.reasons),
        ),
        totals=Totals(**spec.totals.model_dump()),
        results=tuple(_results(spec, document)),
        problems=tuple(map(_problem, spec.problems)),
        provenance=tuple(Provenance(**each.model_dump()) for each in spec.provenance),
        gates=tuple(map(_gate, spec.gates)),
        shard_info=None if spec.shard is None else _portion(spec.shard),
        spending=tuple(map(_spending, spec.judges)),
        commit=spec.commit or "",
        comparison=_comparison(spec, document),
    )


def _check_author(document: JsonDocument) -> None:
    """Check the tool and its version before all fields, for a clear message in the likeliest case.

    Raises:
        InputError: if another program or another version of agentci wrote the file.
    """
    value = document.value
    tool = value.get("tool") if isinstance(value, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("name") != "agentci":
        message = "the file is no results.json of agentci"
        raise InputError.from_message(message, place=document.find_place(()))
    version = tool.get("version")
    if version != __version__:
        wrote = quote_name(version) if isinstance(version, str) else "another"
        raise InputError.from_message(
            f"the report is of version {wrote} of agentci, and this is {__version__}",
            place=document.find_place(("tool", "version")),
            hint="judge and merge with the same version",
        )


def _problems(error: ValidationError, document: JsonDocument) -> Iterator[Problem]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    for each in found[:MAX_PROBLEMS]:
        where = quote_name(".".join(map(str, each["loc"])))
        yield Problem(
            message=f"{where}: {each['msg']}",
            place=document.find_place(each["loc"]),
            hint=OTHER_BUILD,
        )
    if len(found) > MAX_PROBLEMS:
        message = f"{format_count(len(found) - MAX_PROBLEMS, 'more wrong field')} in the report"
        yield Problem(message=message, place=document.find_place(()))


def _results(spec: ReportSpec, document: JsonDocument) -> Iterator[CheckResult]:
    cases = {
        (each.id, each.trace, each.eval_case, each.file): _case(each)
        for each in reversed(spec.cases)
    }
    for index, each in enumerate(spec.results):
        case = cases.get((each.case, each.trace, each.eval_case, each.file))
        if case is None:
            raise InputError.from_message(
                f"the case {quote_name(each.case)} of a result is not among the `cases`",
                place=document.find_place(("results", index, "case")),
            )
        yield _result(each, case)


def _result(spec: ResultSpec, case: CaseSummary) -> CheckResult:
    return CheckResult(
        id=spec.id,
        config=spec.config,
        # Two configs may read the same trace with different warnings.
        case=replace(case, warnings=tuple(spec.warnings)),
        evaluator=EvaluatorIdentity(
            name=spec.evaluator,
            type=spec.type,
            criterion=spec.criterion,
            threshold=spec.threshold,
            required=spec.required,
            place=_place(spec.place),
            weight=spec.weight,
        ),
        status=spec.status,
        judgement=Judgement(
            score=spec.score,
            passed={"passed": True, "failed": False}.get(spec.status),
            reason=spec.reason,
            turn_scores=tuple(spec.turn_scores),
            hits=tuple(spec.hits),
            misses=tuple(spec.misses),
            reasoning=spec.reasoning,
            details=spec.details,
        ),
        reason=spec.reason,
        seconds=spec.seconds or 0.0,
        cached=spec.cached,
        trials=None if spec.trials is None else spec.trials.record(),
        repeats=None if spec.repeats is None else spec.repeats.record(),
        fingerprint=spec.fingerprint,
    )


def _case(spec: ResultsCaseSpec) -> CaseSummary:
    return CaseSummary(
        id=spec.id,
        trace_id=spec.trace,
        group=spec.group,
        eval_case_id=spec.eval_case,
        unmatched_reason=spec.unmatched_reason,
        recording=Place(file=spec.file),
        dialogue=tuple(excerpt_turn(each.user, each.answer) for each in spec.turns),
        warnings=tuple(spec.warnings),
        performance=None if spec.performance is None else json_text.dumps(spec.performance),
    )


def _problem(spec: ProblemSpec) -> Problem:
    return Problem(
        message=spec.message,
        place=None if spec.place is None else _place(spec.place),
        hint=spec.hint,
        severity=spec.severity,
    )


def _gate(spec: ResultsGateSpec) -> Gate:
    return Gate(
        config=spec.config,
        evaluators=tuple(spec.evaluators),
        uncovered=spec.uncovered,
        policy=GatePolicy(
            overall=GateThresholds(**spec.policy.overall.model_dump()),
            evaluators={
                name: GateThresholds(**bar.model_dump())
                for name, bar in spec.policy.evaluators.items()
            },
            cases=None
            if spec.policy.cases is None
            else CaseThresholds(**spec.policy.cases.model_dump()),
            regression=_regression(spec.policy.regression),
        ),
    )


def _spending(spec: SpendingSpec) -> JudgeSpending:
    return JudgeSpending(
        config=spec.config,
        spent=_charge(spec.spent),
        saved=_charge(spec.saved),
        priced=spec.spent.usd is not None and spec.saved.usd is not None,
    )


def _charge(spec: ChargeSpec) -> ModelCost:
    return ModelCost(calls=spec.calls, tokens=spec.tokens, usd=spec.usd or 0.0)


def _regression(spec: ResultsRegressionSpec | None) -> RegressionThresholds | None:
    if spec is None:
        return None
    return RegressionThresholds(
        max_drop=spec.max_drop, confidence=spec.confidence, fail_on=tuple(spec.fail_on)
    )


def _comparison(spec: ReportSpec, document: JsonDocument) -> Comparison | None:
    try:
        return msgspec.convert(spec.comparison, Comparison | None)
    except msgspec.ValidationError as error:
        place = document.find_place(("comparison",))
        raise InputError.from_message(f"{quote_name('comparison')}: {error}", place=place) from None


def _portion(spec: ShardSpec) -> ShardInfo:
    shard = Shard(index=spec.index, total=spec.total)
    return ShardInfo(
        shard=shard,
        plan_digest=spec.of,
        checks=tuple(spec.checks),
        shard_keys=dict(spec.assigned_by),
    )


def _place(spec: PlaceSpec) -> Place:
    return Place(file=spec.file, line=spec.line, column=spec.column)
