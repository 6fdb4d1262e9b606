"""One evaluator beside one case: asked, answered, read."""

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci.errors import EvaluatorError, SkippedError
from agentci.evaluators.evaluator import Evaluator
from agentci.gate.repeats import repeated
from agentci.model.case import Case, Synopsis
from agentci.model.judgement import Judgement
from agentci.model.requests import Skip, Task
from agentci.model.result import Result, Status
from agentci.runner.execute import answer
from agentci.runner.services import World
from agentci.runner.transcript import Dealing, discreet, secrets_of

if TYPE_CHECKING:
    from agentci.runner.trial_runs import Attempts

NO_TURNS: Final = (
    "No invocations extracted from trace: nothing in it was said in the words of the GenAI semantic"
    " conventions or of Google's ADK"
)
ENDED: Final = "the run was to end before all repeats were judged"


class Check(Struct, frozen=True, kw_only=True):
    """One evaluator beside one case of one config.

    Attributes:
        case: what is known of it all the time.
        load: brings all that was recorded of it.
        attempts: the runs of the case, where an agent makes them or there are several.
        fingerprint: as in ``Result``.
    """

    config: str
    evaluator: Evaluator
    case: Synopsis
    load: Callable[[], Case]
    attempts: "Attempts | None" = None
    fingerprint: str = ""

    @property
    def id(self) -> str:
        """A digest that is the same on every run."""
        return _digest(self.config, self.case.id, self.evaluator.identity.name)

    @property
    def dealt_by(self) -> str:
        """What says to which shard it belongs: checks that share a run of an agent go together."""
        return self.id if self.attempts is None else _digest(self.config, self.case.id)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def judge(check: Check, world: World) -> Result:
    """Ask, carry out, read: one check from start to end; errors of the evaluator are kept in it."""
    dealings: list[Dealing] = []
    result = _outcome(check, world, dealings)
    secrets = secrets_of(dealings, world.variables)
    result = discreet(result, secrets)
    if world.exchanges is not None and dealings:
        world.exchanges.keep(result, dealings, secrets)
    return result


def _outcome(check: Check, world: World, dealings: list[Dealing]) -> Result:
    started = world.clock()
    repetition = check.evaluator.identity.repetition
    try:
        if not check.case.dialogue:
            raise EvaluatorError(check.case.no_run_because or NO_TURNS)
        request = check.evaluator.ask(check.load())
        if isinstance(request, Skip):
            return _result(check, status="skipped", reason=request.reason)
        if repetition.times == 1:
            return _answered(check, request, world, dealings)
        answers = list(_answers(check, request, repetition.times, world, dealings))
        return repeated(answers, repetition)
    except SkippedError as error:
        return _result(check, status="skipped", reason=str(error))
    except EvaluatorError as error:
        seconds = world.clock() - started
        return _result(check, status="errored", reason=str(error), seconds=seconds)


def _answers(
    check: Check, request: Task, times: int, world: World, dealings: list[Dealing]
) -> Iterator[Result]:
    """What comes of each time that an evaluator is asked, up to the first that is no judgement."""
    for ordinal in range(times):
        if ordinal and world.interruption.asked():
            raise EvaluatorError(ENDED)
        started = world.clock()
        try:
            result = _answered(check, request, world, dealings, ordinal=ordinal)
        except EvaluatorError as error:
            seconds = world.clock() - started
            yield _result(check, status="errored", reason=str(error), seconds=seconds)
            return
        yield result


def _answered(
    check: Check, request: Task, world: World, dealings: list[Dealing], *, ordinal: int = 0
) -> Result:
    """One answer, judged; what was asked and what came back is added to ``dealings``.

    Raises:
        EvaluatorError: there is none that could be.
        SkippedError: nobody is there who could give one.
    """
    started = world.clock()
    name, read = check.evaluator.identity.name, check.evaluator.read
    own: list[Dealing] = []
    try:
        judgement, cached = answer(request, own, name=name, read=read, world=world, ordinal=ordinal)
    finally:
        dealings += own
    return _judged(check, judgement, seconds=world.clock() - started, cached=cached)


def _judged(check: Check, judgement: Judgement, *, seconds: float, cached: bool) -> Result:
    status: Status = "passed" if judgement.passed else "failed"
    reason = judgement.reason
    if judgement.passed is None:
        status, reason = "skipped", judgement.reasoning or "the evaluator declined to judge"
    return _result(
        check, status=status, reason=reason, judgement=judgement, seconds=seconds, cached=cached
    )


def _result(
    check: Check,
    *,
    status: Status,
    reason: str | None = None,
    judgement: Judgement | None = None,
    seconds: float = 0.0,
    cached: bool = False,
) -> Result:
    return Result(
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
