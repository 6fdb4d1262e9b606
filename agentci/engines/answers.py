"""Answers what evaluators ask: by a reply of an earlier run, else by carrying it out."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentci.engines.dispatch import carry_out, job_of, ready_for
from agentci.engines.world import World
from agentci.errors import EvaluatorError
from agentci.executors.base import Sealing
from agentci.executors.confinement import ELSEWHERE, NO_LANDLOCK
from agentci.executors.job import Job
from agentci.model.exchange import DOCKER, LOCAL, Measure, ProgramReply, Reply, RunProgram
from agentci.model.judgement import Judgement
from agentci.replies.circumstances import Circumstances

if TYPE_CHECKING:
    from agentci.replies.cache import ReplyCache

# Of executors of others it is not known what their programs can read.
KNOWN: Final = frozenset({LOCAL, DOCKER})
OPEN: Final = frozenset({ELSEWHERE, NO_LANDLOCK})
UNCONFINED: Final = "programs that are not confined can read what is not watched"


def answer(
    request: RunProgram | Measure, *, name: str, read: Callable[[Reply], Judgement], world: World
) -> tuple[Judgement, bool]:
    """What ``read`` makes of the reply to ``request``, and whether that is of an earlier run.

    Args:
        name: the evaluator's, for messages.

    Raises:
        EvaluatorError: it could not be done, or ``read`` refuses the reply: that is not kept.
    """
    if (
        world.replies is None
        or not isinstance(request, RunProgram)
        or not request.cached
        or request.executor not in KNOWN
    ):
        return read(carry_out(request, name=name, world=world)), False
    return _answer(request, name, read, world, world.replies)


def _answer(
    request: RunProgram,
    name: str,
    read: Callable[[Reply], Judgement],
    world: World,
    replies: "ReplyCache",
) -> tuple[Judgement, bool]:
    place = replies.place_of(request, lambda: _circumstances(request, name, world))
    key = place.key(request.stdin)
    if key is None:
        return read(carry_out(request, name=name, world=world)), False
    if kept := replies.find(key):
        with suppress(EvaluatorError):
            return read(kept), True
        replies.drop(key)
    with replies.watching(place.given) as observation:
        reply = carry_out(request, name=name, world=world)
    judgement = read(reply)
    if world.interruption.asked() or not isinstance(reply, ProgramReply):
        return judgement, False
    if OPEN.isdisjoint(world.executors[request.executor].shortcomings()):
        replies.keep(key, reply, observation, place.given)
    else:
        replies.refuse(UNCONFINED)
    return judgement, False


def _circumstances(request: RunProgram, name: str, world: World) -> Circumstances:
    ready = ready_for(request.program, name, world)
    job = job_of(request, name=name, world=world)
    return Circumstances(
        job=job,
        executor=request.executor,
        program=ready.path,
        tree=ready.tree,
        sealed=_sealed(job, request.executor, name, world),
    )


def _sealed(job: Job, executor: str, name: str, world: World) -> str | None:
    """A digest of all that the program can read; None where that may be anything."""
    if executor == LOCAL:  # which need not be made where no program is run
        return None
    found: object = world.executors.get(executor)
    try:
        return found.seal(job.cwd, job.confinement) if isinstance(found, Sealing) else None
    except EvaluatorError as error:
        raise EvaluatorError(f"Custom evaluator '{name}' {error}") from None
