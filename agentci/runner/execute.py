"""Answers what evaluators ask: by replies of earlier runs, else by carrying it out."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from agentci._util.workspace import is_file, real
from agentci.errors import EvaluatorError, SkippedError, UnrecordedError
from agentci.execution.executor import Sealing
from agentci.execution.job import Job
from agentci.execution.limits import ELSEWHERE, NO_LANDLOCK
from agentci.model.embedding import CompareEmbeddings, Likeness
from agentci.model.grading import GradeRemotely
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, ModelReply
from agentci.model.requests import (
    DOCKER,
    LOCAL,
    Compose,
    Measure,
    ProgramReply,
    Reply,
    RunCommand,
    RunProgram,
    Settled,
    Task,
)
from agentci.model.ruling import Ruling
from agentci.runner.dispatch import carry_out, executor_of, job_of, ready_for, run
from agentci.runner.judge_responses import RecordedReplies, Ruled, with_rulings
from agentci.runner.response_cache.circumstances import Circumstances, nth_key, words_of
from agentci.runner.services import World
from agentci.runner.transcript import Dealing, Dealt

# Of executors of others it is not known what their programs can read.
KNOWN: Final = frozenset({LOCAL, DOCKER})
OPEN: Final = frozenset({ELSEWHERE, NO_LANDLOCK})
UNCONFINED: Final = "programs that are not confined can read what is not watched"


def answer(
    request: Task,
    dealings: list[Dealing],
    *,
    name: str,
    read: Callable[[Reply], Judgement],
    world: World,
    ordinal: int = 0,
) -> tuple[Judgement, bool]:
    """What ``read`` makes of the reply to ``request``, and whether nothing was run for it.

    Args:
        dealings: is given what was asked and what came back, also where an error is raised.
        name: the evaluator's, for messages.
        ordinal: how often it was answered before, for who wants several replies: each has its own.

    Raises:
        EvaluatorError: it could not be done, or ``read`` refuses the reply: that is not kept.
        SkippedError: nobody is there who could.
    """
    answering = _Answering(world, ordinal, dealings)
    try:
        judgement = read(answering.reply(request, name))
    except EvaluatorError as refusal:
        if world.replies is None or not (found := answering.found):
            raise
        refused = [*dealings]
        dealings.clear()
        answering = _Answering(world, ordinal, dealings, anew=True)
        try:
            judgement = read(answering.reply(request, name))
        except (UnrecordedError, SkippedError):
            found = []  # what nobody can replace stays
            dealings[:] = refused
            raise refusal from None
        finally:
            for key in found:
                world.replies.drop(key)
    if not world.interruption.asked():
        for keep in answering.kept:
            keep()
    is_cached = bool(answering.found) and not answering.has_run
    return with_rulings(judgement, answering.rulings, world), is_cached


class _Answering:
    """The replies to one request, each found or made.

    Attributes:
        found: the keys of those of earlier runs.
        kept: what keeps those that were made, once they turn out to be of use.
        has_run: whether a program was run, or a model asked.
        rulings: what models said, each with the name of who asked.

    Args:
        ordinal: as in ``answer``.
        dealings: is given all that was asked, in that order.
        anew: nothing is looked for.
    """

    def __init__(
        self, world: World, ordinal: int, dealings: list[Dealing], *, anew: bool = False
    ) -> None:
        self.found: list[bytes] = []
        self.kept: list[Callable[[], None]] = []
        self.has_run = False
        self.rulings: list[Ruled] = []
        self._world = world
        self._ordinal = ordinal
        self._dealings = dealings
        self._anew = anew

    def reply(self, request: Task, name: str) -> Reply:
        """The reply to ``request``; as ``carry_out``."""
        match request:
            case Compose():
                replies = tuple(self.reply(part, each) for each, part in request.parts)
                return self.reply(request.then(replies), name)
            case Measure() | Settled():
                return carry_out(request, name=name, world=self._world)
            case _:
                return self._dealt(request, name)

    def _dealt(self, request: Dealt, name: str) -> Reply:
        """The reply of somebody else, taken down."""
        started, before, said = self._world.clock(), len(self.found), list[ModelReply]()
        note = partial(Dealing, name=name, request=request)
        try:
            match request:
                case AskModel():
                    reply = self._of_model(request, name, said)
                case CompareEmbeddings():
                    reply = self._of_embeddings(request)
                case GradeRemotely():
                    self.has_run = True
                    reply = carry_out(request, name=name, world=self._world)
                case _:
                    reply = self._of_program(request, name)
        except (EvaluatorError, SkippedError) as error:
            self._dealings.append(note(failure=str(error), said=tuple(said)))
            if isinstance(error, EvaluatorError):
                self.found.clear()  # it is not their fault
            raise
        is_cached = len(self.found) > before
        if isinstance(reply, Ruling | Likeness):
            is_cached = reply.is_recorded
        seconds = self._world.clock() - started
        self._dealings.append(
            note(reply=reply, said=tuple(said), seconds=seconds, cached=is_cached)
        )
        return reply

    def _of_model(self, request: AskModel, name: str, said: list[ModelReply]) -> Reply:
        records = RecordedReplies(request, self._world, self._ordinal, said, anew=self._anew)
        ruling = self._world.judges[request.panel.payer].rule(request, records)
        self.found += records.found
        self.kept += records.kept
        self.has_run |= not ruling.is_recorded
        self.rulings.append(Ruled(name=name, request=request, ruling=ruling))
        return ruling

    def _of_embeddings(self, request: CompareEmbeddings) -> Reply:
        from agentci.judges.budget import charge_of  # noqa: PLC0415 (of no use to most runs)

        records = RecordedReplies(request, self._world, self._ordinal, [], anew=self._anew)
        payer, settings = request.panel.payer, request.panel.settings
        likeness = self._world.comparers[payer].compare(request, records)
        self.found += records.found
        self.kept += records.kept
        self.has_run |= not likeness.is_recorded
        if likeness.is_recorded:
            saved = charge_of(request.question, settings, likeness.reply)
            self._world.budgets[payer].save(saved)
        return likeness

    def _of_program(self, request: RunProgram | RunCommand, name: str) -> Reply:
        replies = self._world.replies
        if replies is None or not request.cached or executor_of(request) not in KNOWN:
            return self._made(request, name)
        place = replies.place_of(request, lambda: _circumstances(request, name, self._world))
        first = place.key(request.stdin)
        if first is None:
            return self._made(request, name)
        key = nth_key(first, self._ordinal)
        if not self._anew and (kept := replies.find(key)):
            self.found.append(key)
            return kept
        with replies.watching(place.given) as observation:
            reply = self._made(request, name)

        def keep() -> None:
            executor = self._world.executors[executor_of(request)]
            if OPEN.isdisjoint(executor.shortcomings()):
                replies.keep(key, reply, observation, place.given)
            else:
                replies.refuse(UNCONFINED)

        self.kept.append(keep)
        return reply

    def _made(self, request: RunProgram | RunCommand, name: str) -> ProgramReply:
        self.has_run = True
        return run(request, name=name, world=self._world)


def _circumstances(request: RunProgram | RunCommand, name: str, world: World) -> Circumstances:
    job = job_of(request, name=name, world=world)
    executor = executor_of(request)
    if isinstance(request, RunCommand):
        programs = _named(request, job)
        return Circumstances(
            job=job,
            executor=executor,
            programs=programs,
            line=request.command,
            sealed=_sealed(job, executor, name, world),
        )
    ready = ready_for(request.program, name, world)
    return Circumstances(
        job=job,
        executor=executor,
        programs=(ready.path,),
        tree=ready.tree,
        sealed=_sealed(job, executor, name, world),
    )


def _named(request: RunCommand, job: Job) -> tuple[Path, ...]:
    """The files that a command line names, of those that are watched."""
    roots = [real(each) for each in job.confinement.readable]
    found = dict.fromkeys(Path(request.folder) / word for word in words_of(request.command))
    return tuple(
        path
        for path in found
        if is_file(path) and any(real(path).is_relative_to(root) for root in roots)
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
