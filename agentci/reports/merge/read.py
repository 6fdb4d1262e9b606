"""A ``results.json`` as the report that it was written from."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from pydantic import ValidationError

from agentci._util.text import strict_json
from agentci._util.text.format import count
from agentci._util.text.json_document import JsonDocument, read_json
from agentci._util.text.suggest import quoted
from agentci.errors import InputError
from agentci.model.case import Synopsis
from agentci.model.comparison import Comparison, RegressionBar
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.policy import Bar, CaseBar, Gate, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import Decision, Provenance, Report, Result, Totals
from agentci.model.shard import Portion, Shard
from agentci.model.spending import Charge, Spending
from agentci.model.values import replace
from agentci.reports.case_summary import exchange
from agentci.reports.merge.spec import (
    CaseSpec,
    ChargeSpec,
    GateSpec,
    PlaceSpec,
    ProblemSpec,
    RegressionBarSpec,
    ReportSpec,
    ResultSpec,
    ShardSpec,
    SpendingSpec,
)
from agentci.version import __version__

MAX_PROBLEMS: Final = 5
# Between two releases the version says nothing of what a report has.
OTHER_BUILD: Final = "if another commit of agentci wrote it, judge again with this one"


def read_report(data: bytes, *, file: str) -> Report:
    """Read what this very version of agentci wrote.

    Its texts are as little to be trusted as they were; of recordings it has what reports show.

    Raises:
        InputError: it is something else, with the first problems and their lines.
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
            open=spec.decision.open,
            exit_code=spec.decision.exit_code,
            why=tuple(spec.decision.why),
        ),
        totals=Totals(**spec.totals.model_dump()),
        results=tuple(_results(spec, document)),
        problems=tuple(map(_problem, spec.problems)),
        provenance=tuple(Provenance(**each.model_dump()) for each in spec.provenance),
        gates=tuple(map(_gate, spec.gates)),
        portion=None if spec.shard is None else _portion(spec.shard),
        spending=tuple(map(_spending, spec.judges)),
        commit=spec.commit or "",
        comparison=_comparison(spec, document),
    )


def _check_author(document: JsonDocument) -> None:
    """Say the likeliest mistake in a word, before every field that is another is told.

    Raises:
        InputError: another program wrote it, or another version of this one.
    """
    value = document.value
    tool = value.get("tool") if isinstance(value, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("name") != "agentci":
        message = "the file is no results.json of agentci"
        raise InputError.of(message, place=document.place_of(()))
    version = tool.get("version")
    if version != __version__:
        wrote = quoted(version) if isinstance(version, str) else "another"
        raise InputError.of(
            f"the report is of version {wrote} of agentci, and this is {__version__}",
            place=document.place_of(("tool", "version")),
            hint="judge and merge with the same version",
        )


def _problems(error: ValidationError, document: JsonDocument) -> Iterator[Problem]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    for each in found[:MAX_PROBLEMS]:
        where = quoted(".".join(map(str, each["loc"])))
        yield Problem(
            message=f"{where}: {each['msg']}",
            place=document.place_of(each["loc"]),
            hint=OTHER_BUILD,
        )
    if len(found) > MAX_PROBLEMS:
        message = f"{count(len(found) - MAX_PROBLEMS, 'more wrong field')} in the report"
        yield Problem(message=message, place=document.place_of(()))


def _results(spec: ReportSpec, document: JsonDocument) -> Iterator[Result]:
    cases = {
        (each.id, each.trace, each.golden, each.recording): _case(each)
        for each in reversed(spec.cases)
    }
    for index, each in enumerate(spec.results):
        case = cases.get((each.case, each.trace, each.golden, each.recording))
        if case is None:
            raise InputError.of(
                f"the case {quoted(each.case)} of a result is not among the `cases`",
                place=document.place_of(("results", index, "case")),
            )
        yield _result(each, case)


def _result(spec: ResultSpec, case: Synopsis) -> Result:
    return Result(
        id=spec.id,
        config=spec.config,
        # Of one recording, two configs may make cases that were read with different warnings.
        case=replace(case, warnings=tuple(spec.warnings)),
        evaluator=Identity(
            name=spec.evaluator,
            type=spec.type,
            bar=spec.bar,
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


def _case(spec: CaseSpec) -> Synopsis:
    return Synopsis(
        id=spec.id,
        trace=spec.trace,
        group=spec.group,
        golden=spec.golden,
        no_golden_because=spec.no_golden_because,
        recording=Place(file=spec.recording),
        dialogue=tuple(exchange(each.asked, each.answered) for each in spec.dialogue),
        warnings=tuple(spec.warnings),
        performance=None if spec.performance is None else strict_json.dumps(spec.performance),
    )


def _problem(spec: ProblemSpec) -> Problem:
    return Problem(
        message=spec.message,
        place=None if spec.place is None else _place(spec.place),
        hint=spec.hint,
        severity=spec.severity,
    )


def _gate(spec: GateSpec) -> Gate:
    return Gate(
        config=spec.config,
        evaluators=tuple(spec.evaluators),
        uncovered=spec.uncovered,
        policy=GatePolicy(
            overall=Bar(**spec.policy.overall.model_dump()),
            evaluators={
                name: Bar(**bar.model_dump()) for name, bar in spec.policy.evaluators.items()
            },
            cases=None if spec.policy.cases is None else CaseBar(**spec.policy.cases.model_dump()),
            regression=_regression(spec.policy.regression),
        ),
    )


def _spending(spec: SpendingSpec) -> Spending:
    return Spending(
        config=spec.config,
        spent=_charge(spec.spent),
        saved=_charge(spec.saved),
        priced=spec.spent.usd is not None and spec.saved.usd is not None,
    )


def _charge(spec: ChargeSpec) -> Charge:
    return Charge(calls=spec.calls, tokens=spec.tokens, usd=spec.usd or 0.0)


def _regression(spec: RegressionBarSpec | None) -> RegressionBar | None:
    if spec is None:
        return None
    return RegressionBar(
        max_drop=spec.max_drop, confidence=spec.confidence, shuts=tuple(spec.shuts)
    )


def _comparison(spec: ReportSpec, document: JsonDocument) -> Comparison | None:
    try:
        return msgspec.convert(spec.comparison, Comparison | None)
    except msgspec.ValidationError as error:
        place = document.place_of(("comparison",))
        raise InputError.of(f"{quoted('comparison')}: {error}", place=place) from None


def _portion(spec: ShardSpec) -> Portion:
    shard = Shard(index=spec.index, total=spec.total)
    return Portion(shard=shard, of=spec.of, checks=tuple(spec.checks), dealt_by=dict(spec.dealt_by))


def _place(spec: PlaceSpec) -> Place:
    return Place(file=spec.file, line=spec.line, column=spec.column)
