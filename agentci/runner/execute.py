"""Execute the requests of evaluators, or find the cached responses to them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import is_file, resolve_path
from agentci.errors import EvaluatorError, SkippedError, UncachedResponseError
from agentci.execution.executor_api import HermeticExecutor, ProgramJob
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judges import AggregateVerdict, AskModel, ModelResponse
from agentci.model.requests import (
    LOCAL_EXECUTOR,
    CompareEmbeddings,
    Compose,
    ComputeMetric,
    ConstantJudgement,
    EmbeddingSimilarity,
    GradeWithService,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
    Task,
)
from agentci.model.values import replace
from agentci.runner.dispatch import (
    dispatch_request,
    find_ready_program,
    get_executor_name,
    make_job,
    run_program,
)
from agentci.runner.response_cache.program_key import CacheableProgram, nth_key, words_of
from agentci.runner.services import Services
from agentci.runner.transcripts import CallRequest, ExternalCall

# Members of the details of a check: who judged it, and where those were several, all of them.
JUDGE_KEY: Final = "judge"
JUDGES_KEY: Final = "judges"


class NamedRuling(Struct, frozen=True, kw_only=True):
    """A ruling, by whom it was asked for, and what was asked."""

    name: str
    request: AskModel
    ruling: AggregateVerdict


class CachedJudgeResponses:
    """The replies to one question that are kept in the cache.

    Attributes:
        cached_keys: the keys of those that were taken.
        pending_writes: what keeps those that were made, once they turn out to be of use.

    Args:
        ordinal: how often the question was answered before, where several answers are wanted.
        said: is given all replies, also those that are of no use.
        anew: nothing is looked for.
    """

    def __init__(
        self,
        request: AskModel | CompareEmbeddings,
        services: Services,
        ordinal: int,
        said: list[ModelResponse],
        *,
        anew: bool,
    ) -> None:
        self.cached_keys: list[bytes] = []
        self.pending_writes: list[Callable[[], None]] = []
        self._ordinal = ordinal
        self._all_responses = said
        self._ignores_cache = anew
        self._cache = None if request.judge.replay == "never" else services.cached_responses
        self._digest: bytes | None = None
        if self._cache is not None:
            self._digest = self._cache.digest_question(
                request, _find_command_files(request, services)
            )

    def lock(self, number: int) -> AbstractContextManager[object]:
        """Have nobody else look for the same one until it is kept."""
        if self._cache is None or self._digest is None:
            return nullcontext()
        return self._cache.lock_judge_response(self._key(self._digest, number))

    def find(self, number: int) -> ModelResponse | None:
        """One of an earlier run or this one; None where there is none."""
        if self._cache is None or self._digest is None or self._ignores_cache:
            return None
        key = self._key(self._digest, number)
        response = self._cache.find_judge_response(key)
        if response is not None:
            self.cached_keys.append(key)
        return response

    def store(self, number: int, response: ModelResponse) -> None:
        """Take one for later runs."""
        replies = self._cache
        if replies is not None and self._digest is not None:
            key = self._key(self._digest, number)
            replies.share_judge_response(key, response)
            self.pending_writes.append(lambda: replies.store_judge_response(key, response))

    def record(self, response: ModelResponse) -> None:
        """Take note of any reply, whether it gives a verdict or not."""
        self._all_responses.append(response)

    def _key(self, digest: bytes, number: int) -> bytes:
        from agentci.runner.response_cache.cache import make_sample_key  # noqa: PLC0415 (of no use to most runs)

        return nth_key(make_sample_key(digest, number), self._ordinal)


def add_judge_details(
    judgement: Judgement, rulings: Sequence[NamedRuling], services: Services
) -> Judgement:
    """The judgement with what models had to do with it; what recorded replies saved is counted."""
    if not rulings:
        return judgement
    from agentci.judges.budget import compute_charge  # noqa: PLC0415 (of no use to most runs)

    for each in rulings:
        settings = each.request.judge.settings
        for response in each.ruling.cached_responses:
            saved = compute_charge(each.request.prompt, settings, response)
            services.budgets[each.request.judge.budget_id].add_savings(saved)
    own: JsonObject = (
        {JUDGE_KEY: _describe_ruling(rulings[0])}
        if len(rulings) == 1
        else {JUDGES_KEY: [{"name": each.name, **_describe_ruling(each)} for each in rulings]}
    )
    return replace(judgement, details={**own, **judgement.details})


def _describe_ruling(ruled: NamedRuling) -> JsonObject:
    """The same where replies are found again: of those alone that gave verdicts."""
    panel, ruling = ruled.request.judge, ruled.ruling
    return {
        "model": panel.settings.model or " ".join(panel.settings.command),
        "samples": panel.samples,
        "verdicts": len(ruling.verdicts),
        "split": ruling.is_split,
        "tokens": {
            "read": _sum_tokens([each.tokens_in for each in ruling.responses]),
            "written": _sum_tokens([each.tokens_out for each in ruling.responses]),
        },
    }


def _sum_tokens(counted: Sequence[int | None]) -> Json:
    """Of tokens; None where a service did not count."""
    known = [each for each in counted if each is not None]
    return sum(known) if len(known) == len(counted) else None


def _find_command_files(
    request: AskModel | CompareEmbeddings, services: Services
) -> tuple[Path, ...]:
    """The files of the workspace that a judge's command names."""
    panel = request.judge
    folder = Path(panel.folder) if panel.folder else services.workspace.cwd
    paths = (folder / word for word in words_of(panel.settings.command))
    return tuple(
        path
        for path in paths
        if is_file(path) and resolve_path(path).is_relative_to(services.workspace.root)
    )


def execute_request(
    request: Task,
    dealings: list[ExternalCall],
    *,
    name: str,
    read: Callable[[Response], Judgement],
    services: Services,
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
    answering = _RequestExecution(services, ordinal, dealings)
    try:
        judgement = read(answering.get_response(request, name))
    except EvaluatorError as refusal:
        if services.cached_responses is None or not (found := answering.cached_keys):
            raise
        refused = [*dealings]
        dealings.clear()
        answering = _RequestExecution(services, ordinal, dealings, anew=True)
        try:
            judgement = read(answering.get_response(request, name))
        except (UncachedResponseError, SkippedError):
            found = []  # what nobody can replace stays
            dealings[:] = refused
            raise refusal from None
        finally:
            for key in found:
                services.cached_responses.drop(key)
    if not services.interruption.is_requested():
        for keep in answering.pending_writes:
            keep()
    is_cached = bool(answering.cached_keys) and not answering.has_run
    return add_judge_details(judgement, answering.rulings, services), is_cached


class _RequestExecution:
    """The replies to one request, each found or made.

    Attributes:
        cached_keys: the keys of those of earlier runs.
        pending_writes: what keeps those that were made, once they turn out to be of use.
        has_run: whether a program was run, or a model asked.
        rulings: what models said, each with the name of who asked.

    Args:
        ordinal: as in ``execute_request``.
        dealings: is given all that was asked, in that order.
        anew: nothing is looked for.
    """

    def __init__(
        self, services: Services, ordinal: int, dealings: list[ExternalCall], *, anew: bool = False
    ) -> None:
        self.cached_keys: list[bytes] = []
        self.pending_writes: list[Callable[[], None]] = []
        self.has_run = False
        self.rulings: list[NamedRuling] = []
        self._services = services
        self._ordinal = ordinal
        self._calls = dealings
        self._ignores_cache = anew

    def get_response(self, request: Task, name: str) -> Response:
        """The reply to ``request``; as ``dispatch_request``."""
        match request:
            case Compose():
                replies = tuple(self.get_response(part, each) for each, part in request.parts)
                return self.get_response(request.then(replies), name)
            case ComputeMetric() | ConstantJudgement():
                return dispatch_request(request, name=name, services=self._services)
            case _:
                return self._execute_call(request, name)

    def _execute_call(self, request: CallRequest, name: str) -> Response:
        """The reply of somebody else, taken down."""
        started, before, said = self._services.clock(), len(self.cached_keys), list[ModelResponse]()
        note = partial(ExternalCall, name=name, request=request)
        try:
            match request:
                case AskModel():
                    response = self._ask_model(request, name, said)
                case CompareEmbeddings():
                    response = self._compare_embeddings(request)
                case GradeWithService():
                    self.has_run = True
                    response = dispatch_request(request, name=name, services=self._services)
                case _:
                    response = self._run_with_cache(request, name)
        except (EvaluatorError, SkippedError) as error:
            self._calls.append(note(error=str(error), model_responses=tuple(said)))
            if isinstance(error, EvaluatorError):
                self.cached_keys.clear()  # it is not their fault
            raise
        is_cached = len(self.cached_keys) > before
        if isinstance(response, AggregateVerdict | EmbeddingSimilarity):
            is_cached = response.is_cached
        seconds = self._services.clock() - started
        self._calls.append(
            note(response=response, model_responses=tuple(said), seconds=seconds, cached=is_cached)
        )
        return response

    def _ask_model(self, request: AskModel, name: str, said: list[ModelResponse]) -> Response:
        records = CachedJudgeResponses(
            request, self._services, self._ordinal, said, anew=self._ignores_cache
        )
        ruling = self._services.judges[request.judge.budget_id].evaluate(request, records)
        self.cached_keys += records.cached_keys
        self.pending_writes += records.pending_writes
        self.has_run |= not ruling.is_cached
        self.rulings.append(NamedRuling(name=name, request=request, ruling=ruling))
        return ruling

    def _compare_embeddings(self, request: CompareEmbeddings) -> Response:
        from agentci.judges.budget import compute_charge  # noqa: PLC0415 (of no use to most runs)

        records = CachedJudgeResponses(
            request, self._services, self._ordinal, [], anew=self._ignores_cache
        )
        budget_id, settings = request.judge.budget_id, request.judge.settings
        likeness = self._services.embedding_clients[budget_id].compare(request, records)
        self.cached_keys += records.cached_keys
        self.pending_writes += records.pending_writes
        self.has_run |= not likeness.is_cached
        if likeness.is_cached:
            saved = compute_charge(request.prompt, settings, likeness.response)
            self._services.budgets[budget_id].add_savings(saved)
        return likeness

    def _run_with_cache(self, request: RunProgram | RunCommand, name: str) -> Response:
        cache = self._services.cached_responses
        slot = None
        if cache is not None and request.cached:
            slot = cache.find_slot(
                request, lambda: _describe_program(request, name, self._services)
            )
        if cache is None or slot is None:
            return self._run_uncached(request, name)
        key = nth_key(slot.make_key(request.stdin), self._ordinal)
        if not self._ignores_cache and (found := cache.find(key)):
            self.cached_keys.append(key)
            return found
        response = self._run_uncached(request, name)
        self.pending_writes.append(partial(cache.store_response, key, response, slot))
        return response

    def _run_uncached(self, request: RunProgram | RunCommand, name: str) -> ProgramOutput:
        self.has_run = True
        return run_program(request, name=name, services=self._services)


def _describe_program(
    request: RunProgram | RunCommand, name: str, services: Services
) -> CacheableProgram:
    job = make_job(request, name=name, services=services)
    executor = get_executor_name(request)
    line: tuple[str, ...] = ()
    tree: Path | None = None
    if isinstance(request, RunCommand):
        files, line = _find_named_files(request, job), request.command
    else:
        ready = find_ready_program(request.program, name, services)
        files, tree = (ready.path,), ready.tree
    return CacheableProgram(
        name=name,
        job=job,
        executor=executor,
        variables={k: v for k, v in services.variables.items() if k in request.variables},
        files=files,
        line=line,
        tree=tree,
        sealed=_find_seal(job, executor, name, services),
    )


def _find_named_files(request: RunCommand, job: ProgramJob) -> tuple[Path, ...]:
    """The files that a command line names, apart from those of the system."""
    roots = [resolve_path(each) for each in job.sandbox_policy.readable]
    found = dict.fromkeys(Path(request.folder) / word for word in words_of(request.command))
    return tuple(
        path
        for path in found
        if is_file(path) and any(resolve_path(path).is_relative_to(root) for root in roots)
    )


def _find_seal(job: ProgramJob, executor: str, name: str, services: Services) -> str | None:
    """A digest of all that the program can read; None where that may be anything."""
    if executor == LOCAL_EXECUTOR:  # which need not be made where no program is run
        return None
    found: object = services.executors.get(executor)
    try:
        return (
            found.compute_input_digest(job.cwd, job.sandbox_policy)
            if isinstance(found, HermeticExecutor)
            else None
        )
    except EvaluatorError as error:
        raise EvaluatorError(f"Evaluator `{name}` {error}") from None
