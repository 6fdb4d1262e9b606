"""Read ``results.json`` back into a report."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import ValidationError, convert

from agentci._util.text import json_text, truncate
from agentci._util.text.json_document import JsonDocument, read_json
from agentci._util.text.suggest import quote_name
from agentci.errors import InputError
from agentci.model.case import CaseSummary
from agentci.model.gate import Comparison, Gate
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.policy import PolicyComparison
from agentci.model.problem import Place, Problem
from agentci.model.result import (
    CheckResult,
    Decision,
    JudgeSpending,
    ModelCost,
    Provenance,
    RepeatRecord,
    Report,
    Totals,
    TrialRecord,
)
from agentci.model.shard import Shard, ShardInfo
from agentci.model.values import replace
from agentci.reports import results_json
from agentci.reports.case_summary import excerpt_turn
from agentci.version import __version__

MAX_MESSAGE_CHARACTERS: Final = 300
# Commits between two releases share a version, although their reports may differ.
OTHER_BUILD_HINT: Final = (
    "if another commit of agentci wrote the report, evaluate again with this one"
)

_ERROR: Final = re.compile(
    r"(?P<message>.*) - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`", re.DOTALL
)
_STEP: Final = re.compile(r"\[([0-9]+)\]|([a-z_]+)")


def read_report(data: bytes, *, file: str) -> Report:
    """Read a report that the same version of agentci wrote.

    Its texts are untrusted. Of traces, it has only what reports show.

    Raises:
        InputError: the data is not such a report; names the first wrong value and its line.
    """
    document = read_json(data, file=file)
    _check_author(document)
    try:
        read = convert(document.value, results_json.ResultsJson)
    except ValidationError as error:
        raise InputError([_make_problem(str(error), document)]) from None
    return Report(
        complete=read.complete,
        decision=convert(read.decision, Decision, from_attributes=True),
        totals=convert(read.totals, Totals, from_attributes=True),
        results=tuple(_results(read, document)),
        problems=convert(read.problems, tuple[Problem, ...], from_attributes=True),
        provenance=convert(read.provenance, tuple[Provenance, ...], from_attributes=True),
        gates=convert(read.gates, tuple[Gate, ...], from_attributes=True),
        shard_info=None if read.shard is None else _shard_info(read.shard),
        spending=tuple(map(_spending, read.judges)),
        comparison=convert(read.comparison, Comparison | None, from_attributes=True),
        policy=convert(read.policy, PolicyComparison | None, from_attributes=True),
        commit=read.commit or "",
    )


def _check_author(document: JsonDocument) -> None:
    """Check the tool and its version before all fields, for a clear message in the likeliest case.

    Raises:
        InputError: another program or another version of agentci wrote the file.
    """
    value = document.value
    tool = value.get("tool") if isinstance(value, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("name") != "agentci":
        message = "the file is not a results.json of agentci"
        raise InputError.from_message(message, place=document.find_place(()))
    version = tool.get("version")
    if version != __version__:
        found = (
            f"agentci {quote_name(version)}"
            if isinstance(version, str)
            else "an unknown version of agentci"
        )
        raise InputError.from_message(
            f"{found} wrote the report, but this is agentci {__version__}",
            place=document.find_place(("tool", "version")),
            hint="use the same version for both",
        )


def _make_problem(error: str, document: JsonDocument) -> Problem:
    """Make a problem of msgspec's message, which ends with the path of the wrong value."""
    found = _ERROR.fullmatch(error)
    path, message = (found["path"].removeprefix("."), found["message"]) if found else ("", error)
    steps = [int(index) if index else name for index, name in _STEP.findall(path)]
    at = f"`{path}`: " if path else ""
    return Problem(
        message=truncate.short(f"{at}{message[:1].lower()}{message[1:]}", MAX_MESSAGE_CHARACTERS),
        place=document.find_place(steps),
        hint=OTHER_BUILD_HINT,
    )


def _results(read: results_json.ResultsJson, document: JsonDocument) -> Iterator[CheckResult]:
    cases = {
        (each.id, each.trace, each.eval_case, each.file): _case(each)
        for each in reversed(read.cases)
    }
    for index, each in enumerate(read.results):
        case = cases.get((each.case, each.trace, each.eval_case, each.file))
        if case is None:
            raise InputError.from_message(
                f"the case {quote_name(each.case)} of a result is not in `cases`",
                place=document.find_place(("results", index, "case")),
            )
        yield _result(each, case)


def _result(read: results_json.ResultJson, case: CaseSummary) -> CheckResult:
    return CheckResult(
        id=read.id,
        config=read.config,
        # Two configs may read the same trace with different warnings.
        case=replace(case, warnings=read.warnings),
        evaluator=EvaluatorIdentity(
            name=read.evaluator,
            type=read.type,
            criterion=read.criterion,
            threshold=read.threshold,
            required=read.required,
            place=Place(file=read.place.file, line=read.place.line, column=read.place.column),
            weight=read.weight,
        ),
        status=read.status,
        judgement=Judgement(
            score=read.score,
            passed={"passed": True, "failed": False}.get(read.status),
            reason=read.reason,
            turn_scores=read.turn_scores,
            hits=read.hits,
            misses=read.misses,
            reasoning=read.reasoning,
            details=read.details,
        ),
        reason=read.reason,
        seconds=read.seconds or 0.0,
        cached=read.cached,
        trials=convert(read.trials, TrialRecord | None, from_attributes=True),
        repeats=convert(read.repeats, RepeatRecord | None, from_attributes=True),
        fingerprint=read.fingerprint,
    )


def _case(read: results_json.CaseJson) -> CaseSummary:
    return CaseSummary(
        id=read.id,
        trace_id=read.trace,
        group=read.group,
        eval_case_id=read.eval_case,
        unmatched_reason=read.unmatched_reason,
        recording=Place(file=read.file),
        dialogue=tuple(excerpt_turn(each.user, each.answer) for each in read.turns),
        warnings=read.warnings,
        performance=None if read.performance is None else json_text.dumps(read.performance),
    )


def _spending(read: results_json.SpendingJson) -> JudgeSpending:
    return JudgeSpending(
        config=read.config,
        spent=_cost(read.spent),
        saved=_cost(read.saved),
        priced=read.spent.usd is not None and read.saved.usd is not None,
    )


def _cost(read: results_json.CostJson) -> ModelCost:
    return ModelCost(calls=read.calls, tokens=read.tokens, usd=read.usd or 0.0)


def _shard_info(read: results_json.ShardJson) -> ShardInfo:
    return ShardInfo(
        shard=Shard(index=read.index, total=read.total),
        plan_digest=read.plan_digest,
        checks=read.checks,
        shard_keys=read.shard_keys,
    )
