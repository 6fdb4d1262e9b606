"""Judges all checks of a plan, several at a time; results stand in the order of the plan."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from agentci.dialects.base import Evaluator
from agentci.engines.answers import answer
from agentci.engines.world import World
from agentci.errors import EvaluatorError
from agentci.model.case import Case
from agentci.model.exchange import Skip
from agentci.model.judgement import Judgement
from agentci.model.result import Result, Status

NO_TURNS = "No invocations extracted from trace."


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One evaluator beside one case of one config."""

    config: str
    evaluator: Evaluator
    case: Case

    @property
    def id(self) -> str:
        """A digest that is the same on every run."""
        parts = (self.config, self.case.id, self.evaluator.identity.name)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to.

    Attributes:
        results: of the checks that were judged, in the plan's order.
        complete: False where some were not.
        bug: an exception of ours that broke the run off, to be raised once all is written.
    """

    results: tuple[Result, ...]
    complete: bool
    bug: Exception | None = None


def judge_all(
    checks: Sequence[Check], *, world: World, jobs: int, tell: Callable[[Result], None]
) -> Outcome:
    """Judge ``checks``, ``jobs`` at a time, until all are done or the world asks to stop.

    Args:
        tell: is called from this thread with every result, in the order in which they come.
    """
    results: dict[int, Result] = {}
    bug: Exception | None = None
    with ThreadPoolExecutor(max_workers=max(1, min(jobs, len(checks)))) as pool:
        futures: dict[Future[Result | None], int] = {
            pool.submit(_judge_unless_stopped, check, world): index
            for index, check in enumerate(checks)
        }
        for future in as_completed(futures):
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 (a bug of ours must not lose what was judged)
                bug = bug or error
                continue
            if result is not None:
                results[futures[future]] = result
                tell(result)
    return Outcome(
        results=tuple(results[index] for index in sorted(results)),
        complete=len(results) == len(checks),
        bug=bug,
    )


def judge(check: Check, world: World) -> Result:
    """Ask, carry out, read: one check from start to end; errors of the evaluator are kept in it."""
    started = world.clock()
    try:
        if not check.case.trace.turns:
            raise EvaluatorError(NO_TURNS)
        request = check.evaluator.ask(check.case)
        if isinstance(request, Skip):
            return _result(check, status="skipped", reason=request.reason)
        name, read = check.evaluator.identity.name, check.evaluator.read
        judgement, cached = answer(request, name=name, read=read, world=world)
    except EvaluatorError as error:
        seconds = world.clock() - started
        return _result(check, status="errored", reason=str(error), seconds=seconds)
    return _judged(check, judgement, seconds=world.clock() - started, cached=cached)


def _judge_unless_stopped(check: Check, world: World) -> Result | None:
    """The result, None where the run was to end before the check had one."""
    if world.interruption.asked():
        return None
    result = judge(check, world)
    return None if result.status == "errored" and world.interruption.asked() else result


def _judged(check: Check, judgement: Judgement, *, seconds: float, cached: bool) -> Result:
    status: Status = "passed" if judgement.passed else "failed"
    reason = judgement.reason
    if judgement.passed is None:
        status, reason = "skipped", judgement.reasoning or "the evaluator declined to judge"
    result = _result(check, status=status, reason=reason, judgement=judgement, seconds=seconds)
    return replace(result, cached=True) if cached else result


def _result(
    check: Check,
    *,
    status: Status,
    reason: str | None = None,
    judgement: Judgement | None = None,
    seconds: float = 0.0,
) -> Result:
    identity = check.evaluator.identity
    return Result(
        id=check.id,
        config=check.config,
        case=check.case,
        evaluator=identity.name,
        type=identity.type,
        status=status,
        bar=identity.bar,
        threshold=identity.threshold,
        required=identity.required,
        place=identity.place,
        judgement=judgement,
        reason=reason,
        seconds=seconds,
    )
