"""One evaluator beside one case: asked, answered, read."""

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci.errors import EvaluatorError, SkippedError
from agentci.evaluators.evaluator import Evaluator
from agentci.gate.aggregation import aggregate_repeats
from agentci.model.case import Case, CaseSummary
from agentci.model.judgement import Judgement
from agentci.model.requests import Skip, Task
from agentci.model.result import CheckResult, Status
from agentci.runner.execute import execute_request
from agentci.runner.services import Services
from agentci.runner.transcripts import ExternalCall, find_call_secrets, redact_result

if TYPE_CHECKING:
    from agentci.runner.load_outputs import CaseTrials

STOPPED_EARLY: Final = "the run was to end before all repeats were judged"


class Check(Struct, frozen=True, kw_only=True):
    """One evaluator beside one case of one config.

    Attributes:
        case: what is known of it all the time.
        load: brings all that was recorded of it.
        case_trials: the runs of the case, where an agent makes them or there are several.
        fingerprint: as in ``CheckResult``.
    """

    config: str
    evaluator: Evaluator
    case: CaseSummary
    load: Callable[[], Case]
    case_trials: "CaseTrials | None" = None
    fingerprint: str = ""

    @property
    def id(self) -> str:
        """A digest that is the same on every run."""
        return _digest(self.config, self.case.id, self.evaluator.identity.name)

    @property
    def shard_key(self) -> str:
        """What says to which shard it belongs: checks that share a run of an agent go together."""
        return self.id if self.case_trials is None else _digest(self.config, self.case.id)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def run_check(check: Check, services: Services) -> CheckResult:
    """Ask, carry out, read: one check from start to end; errors of the evaluator are kept in it."""
    dealings: list[ExternalCall] = []
    result = _evaluate(check, services, dealings)
    secrets = find_call_secrets(dealings, services.variables)
    result = redact_result(result, secrets)
    if services.transcript_log is not None and dealings:
        services.transcript_log.add(result, dealings, secrets)
    return result


def _evaluate(check: Check, services: Services, dealings: list[ExternalCall]) -> CheckResult:
    started = services.clock()
    repetition = check.evaluator.identity.repetition
    try:
        if not check.case.dialogue:
            raise EvaluatorError(check.case.no_turns_reason)
        request = check.evaluator.ask(check.load())
        if isinstance(request, Skip):
            return _make_result(check, status="skipped", reason=request.reason)
        if repetition.times == 1:
            return _run_once(check, request, services, dealings)
        answers = list(_run_repeats(check, request, repetition.times, services, dealings))
        return aggregate_repeats(answers, repetition)
    except SkippedError as error:
        return _make_result(check, status="skipped", reason=str(error))
    except EvaluatorError as error:
        seconds = services.clock() - started
        return _make_result(check, status="errored", reason=str(error), seconds=seconds)


def _run_repeats(
    check: Check, request: Task, times: int, services: Services, dealings: list[ExternalCall]
) -> Iterator[CheckResult]:
    """What comes of each time that an evaluator is asked, up to the first that is no judgement."""
    for ordinal in range(times):
        if ordinal and services.interruption.is_requested():
            raise EvaluatorError(STOPPED_EARLY)
        started = services.clock()
        try:
            result = _run_once(check, request, services, dealings, ordinal=ordinal)
        except EvaluatorError as error:
            seconds = services.clock() - started
            yield _make_result(check, status="errored", reason=str(error), seconds=seconds)
            return
        yield result


def _run_once(
    check: Check,
    request: Task,
    services: Services,
    dealings: list[ExternalCall],
    *,
    ordinal: int = 0,
) -> CheckResult:
    """One answer, judged; what was asked and what came back is added to ``dealings``.

    Raises:
        EvaluatorError: there is none that could be.
        SkippedError: nobody is there who could give one.
    """
    started = services.clock()
    name, read = check.evaluator.identity.name, check.evaluator.read
    own: list[ExternalCall] = []
    try:
        judgement, cached = execute_request(
            request, own, name=name, read=read, services=services, ordinal=ordinal
        )
    finally:
        dealings += own
    return _make_judged_result(check, judgement, seconds=services.clock() - started, cached=cached)


def _make_judged_result(
    check: Check, judgement: Judgement, *, seconds: float, cached: bool
) -> CheckResult:
    status: Status = "passed" if judgement.passed else "failed"
    reason = judgement.reason
    if judgement.passed is None:
        status, reason = "skipped", judgement.reasoning or "the evaluator declined to judge"
    return _make_result(
        check, status=status, reason=reason, judgement=judgement, seconds=seconds, cached=cached
    )


def _make_result(
    check: Check,
    *,
    status: Status,
    reason: str | None = None,
    judgement: Judgement | None = None,
    seconds: float = 0.0,
    cached: bool = False,
) -> CheckResult:
    return CheckResult(
        id=check.id,
        config=check.config,
        case=check.case,
        evaluator=check.evaluator.identity,
        status=status,
        judgement=judgement,
        reason=reason,
        seconds=seconds,
        cached=cached,
        fingerprint=check.fingerprint,
    )
