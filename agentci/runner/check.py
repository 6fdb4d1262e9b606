"""A check, which is one evaluator applied to one case, and how it is run.

`run_check` asks the evaluator for its request, has `dispatch.py` execute it, and turns the
evaluator's judgement of the response into a result.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.text.json_text import EncodedObject
from agentci._util.workspace import is_file, resolve_path
from agentci.errors import EvaluatorError, SkippedError, UncachedResponseError
from agentci.evaluators.checks.names import CASE_PREFIX
from agentci.evaluators.evaluator import Evaluator, split_words
from agentci.execution.environment_variables import select_output_variables
from agentci.execution.executor_api import HermeticExecutor, ProgramJob
from agentci.gate.aggregation import aggregate_repeats
from agentci.model.case import Case, CaseSummary
from agentci.model.judges import AggregateVerdict, AskModel, ModelResponse
from agentci.model.requests import (
    LOCAL_EXECUTOR,
    CompareEmbeddings,
    Compose,
    ComputeMetric,
    ConstantJudgement,
    EmbeddingSimilarity,
    EvaluatorIdentity,
    GradeWithService,
    Judgement,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
    Skip,
    Task,
)
from agentci.model.result import CheckResult, Status
from agentci.model.values import Json, JsonObject, replace
from agentci.runner.dispatch import dispatch_request, find_ready_program, make_job, run_program
from agentci.runner.evaluator_calls import CallRequest, ExternalCall
from agentci.runner.response_cache.program_key import CacheableProgram, make_repeat_key
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.runner.load_outputs import CaseTrials

# Keys in a result's `details`: the judge call, or the list of them if there are several.
JUDGE_KEY: Final = "judge"
JUDGES_KEY: Final = "judges"


class JudgeCall(Struct, frozen=True, kw_only=True):
    """One question to a judge and its verdict.

    Attributes:
        name: of the evaluator, or of the part of one, that asked.
    """

    name: str
    request: AskModel
    verdict: AggregateVerdict


class CachedJudgeResponses:
    """The cached responses to one question; a judge asks it once per sample.

    Attributes:
        cached_keys: keys of the cached responses that were used.
        pending_writes: functions that store the new responses; called once they proved valid.

    Args:
        ordinal: index of the repeat of the check, from 0; each repeat has its own responses.
        model_responses: receives all responses, including those without a valid verdict.
        ignore_cached: do not use cached responses.
    """

    def __init__(
        self,
        request: AskModel | CompareEmbeddings,
        services: Services,
        ordinal: int,
        model_responses: list[ModelResponse],
        *,
        ignore_cached: bool,
    ) -> None:
        self.cached_keys: list[bytes] = []
        self.pending_writes: list[Callable[[], None]] = []
        self._ordinal = ordinal
        self._all_responses = model_responses
        self._ignores_cache = ignore_cached
        self._cache = None if request.judge.replay == "never" else services.cached_responses
        self._digest: bytes | None = None
        if self._cache is not None:
            files = _find_command_files(request, services)
            self._digest = self._cache.digest_question(request, files)

    def lock(self, number: int) -> AbstractContextManager[object]:
        """A lock so that other threads with the same question wait for its response."""
        if self._cache is None or self._digest is None:
            return nullcontext()
        return self._cache.lock_judge_response(self._key(self._digest, number))

    def find(self, number: int) -> ModelResponse | None:
        """The response for the sample ``number``, of this run or an earlier one."""
        if self._cache is None or self._digest is None or self._ignores_cache:
            return None
        key = self._key(self._digest, number)
        response = self._cache.find_judge_response(key)
        if response is not None:
            self.cached_keys.append(key)
        return response

    def store(self, number: int, response: ModelResponse) -> None:
        """Share the response within this run, and store it later (see ``pending_writes``)."""
        cache = self._cache
        if cache is not None and self._digest is not None:
            key = self._key(self._digest, number)
            cache.share_judge_response(key, response)
            self.pending_writes.append(lambda: cache.store_judge_response(key, response))

    def record(self, response: ModelResponse) -> None:
        """Record a response, whether or not it has a valid verdict."""
        self._all_responses.append(response)

    def _key(self, digest: bytes, number: int) -> bytes:
        from agentci.runner.response_cache.cache import make_sample_key  # noqa: PLC0415 (most runs do not need it)

        return make_repeat_key(make_sample_key(digest, number), self._ordinal)


def add_judge_details(
    judgement: Judgement, judge_calls: Sequence[JudgeCall], services: Services
) -> Judgement:
    """Add the judges to the judgement's details, and what cached responses saved to the budgets."""
    if not judge_calls:
        return judgement
    from agentci.judges.budget import compute_charge  # noqa: PLC0415 (most runs do not need it)

    for each in judge_calls:
        settings = each.request.judge.settings
        for response in each.verdict.cached_responses:
            saved = compute_charge(each.request.prompt, settings, response)
            services.budgets[each.request.judge.budget_id].add_savings(saved)
    own: JsonObject = (
        {JUDGE_KEY: _describe_judge_call(judge_calls[0])}
        if len(judge_calls) == 1
        else {
            JUDGES_KEY: [{"name": each.name, **_describe_judge_call(each)} for each in judge_calls]
        }
    )
    return replace(judgement, details={**own, **judgement.details})


def _describe_judge_call(call: JudgeCall) -> JsonObject:
    """The member of the details; equal for new and cached responses. Counts valid verdicts only."""
    judge, verdict = call.request.judge, call.verdict
    return {
        "model": judge.settings.model or " ".join(judge.settings.command),
        "samples": judge.samples,
        "verdicts": len(verdict.verdicts),
        "split": verdict.is_split,
        "tokens": {
            "read": _sum_tokens([each.tokens_in for each in verdict.responses]),
            "written": _sum_tokens([each.tokens_out for each in verdict.responses]),
        },
    }


def _sum_tokens(counts: Sequence[int | None]) -> Json:
    """The total; None if the service did not report every count."""
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def _find_command_files(task: AskModel | CompareEmbeddings, services: Services) -> tuple[Path, ...]:
    """The workspace files among the words of a judge's command."""
    judge = task.judge
    folder = Path(judge.folder) if judge.folder else services.workspace.cwd
    paths = (folder / word for word in split_words(judge.settings.command))
    return tuple(
        path
        for path in paths
        if is_file(path) and resolve_path(path).is_relative_to(services.workspace.root)
    )


def execute_request(
    request: Task,
    calls: list[ExternalCall],
    *,
    name: str,
    read: Callable[[Response], Judgement],
    services: Services,
    ordinal: int = 0,
) -> tuple[Judgement, bool]:
    """Execute ``request`` and read the response; the judgement, and whether it is cached.

    If ``read`` rejects a cached response, the response is dropped and the request executed once
    more. A new response is stored only if ``read`` accepts it.

    Args:
        calls: receives all calls and their responses, even if an error is raised.
        name: of the evaluator, for messages.
        ordinal: index of the repeat of the check, from 0; each repeat has its own responses.

    Raises:
        EvaluatorError: the request failed, or ``read`` rejected the response.
        SkippedError: it cannot be executed in this run, e.g. without API keys.
    """
    execution = _RequestExecution(services, ordinal, calls)
    try:
        judgement = read(execution.get_response(request, name))
    except EvaluatorError as error:
        if services.cached_responses is None or not (found := execution.cached_keys):
            raise
        failed_calls = [*calls]
        calls.clear()
        execution = _RequestExecution(services, ordinal, calls, ignore_cached=True)
        try:
            judgement = read(execution.get_response(request, name))
        except (UncachedResponseError, SkippedError):
            found = []  # keep what this run cannot replace
            calls[:] = failed_calls
            raise error from None
        finally:
            for key in found:
                services.cached_responses.drop(key)
    if not services.interruption.is_requested():
        for write in execution.pending_writes:
            write()
    is_cached = bool(execution.cached_keys) and not execution.has_run
    return add_judge_details(judgement, execution.judge_calls, services), is_cached


class _RequestExecution:
    """One attempt to execute a request and the requests that it consists of.

    Attributes:
        cached_keys: keys of the cached responses that were used.
        pending_writes: functions that store the new responses; called once they proved valid.
        has_run: a program was run, or a model or service was called.
        judge_calls: the calls of judges and their verdicts.

    Args:
        ordinal: as in ``execute_request``.
        calls: receives the calls in their order.
        ignore_cached: do not use cached responses.
    """

    def __init__(
        self,
        services: Services,
        ordinal: int,
        calls: list[ExternalCall],
        *,
        ignore_cached: bool = False,
    ) -> None:
        self.cached_keys: list[bytes] = []
        self.pending_writes: list[Callable[[], None]] = []
        self.has_run = False
        self.judge_calls: list[JudgeCall] = []
        self._services = services
        self._ordinal = ordinal
        self._calls = calls
        self._ignores_cache = ignore_cached

    def get_response(self, request: Task, name: str) -> Response:
        """The response to ``request``; errors as in ``execute_request``."""
        match request:
            case Compose():
                responses = tuple(self.get_response(part, each) for each, part in request.parts)
                return self.get_response(request.then(responses), name)
            case ComputeMetric() | ConstantJudgement():
                return dispatch_request(request, name=name, services=self._services)
            case _:
                return self._execute_call(request, name)

    def _execute_call(self, request: CallRequest, name: str) -> Response:
        """The response to a program, judge or service call, which is added to the calls."""
        started, before = self._services.clock(), len(self.cached_keys)
        model_responses: list[ModelResponse] = []
        make_call = partial(ExternalCall, name=name, request=request)
        try:
            match request:
                case AskModel():
                    response = self._ask_model(request, name, model_responses)
                case CompareEmbeddings():
                    response = self._compare_embeddings(request)
                case GradeWithService():
                    self.has_run = True
                    response = dispatch_request(request, name=name, services=self._services)
                case _:
                    response = self._run_with_cache(request, name)
        except (EvaluatorError, SkippedError) as error:
            self._calls.append(make_call(error=str(error), model_responses=tuple(model_responses)))
            if isinstance(error, EvaluatorError):
                self.cached_keys.clear()  # the cached responses are not the cause
            raise
        is_cached = len(self.cached_keys) > before
        if isinstance(response, AggregateVerdict | EmbeddingSimilarity):
            is_cached = response.is_cached
        seconds = self._services.clock() - started
        self._calls.append(
            make_call(
                response=response,
                model_responses=tuple(model_responses),
                seconds=seconds,
                cached=is_cached,
            )
        )
        return response

    def _ask_model(
        self, request: AskModel, name: str, model_responses: list[ModelResponse]
    ) -> Response:
        records = CachedJudgeResponses(
            request,
            self._services,
            self._ordinal,
            model_responses,
            ignore_cached=self._ignores_cache,
        )
        verdict = self._services.judges[request.judge.budget_id].evaluate(request, records)
        self.cached_keys += records.cached_keys
        self.pending_writes += records.pending_writes
        self.has_run |= not verdict.is_cached
        self.judge_calls.append(JudgeCall(name=name, request=request, verdict=verdict))
        return verdict

    def _compare_embeddings(self, request: CompareEmbeddings) -> Response:
        from agentci.judges.budget import compute_charge  # noqa: PLC0415 (most runs do not need it)

        records = CachedJudgeResponses(
            request, self._services, self._ordinal, [], ignore_cached=self._ignores_cache
        )
        budget_id, settings = request.judge.budget_id, request.judge.settings
        similarity = self._services.embedding_clients[budget_id].compare(request, records)
        self.cached_keys += records.cached_keys
        self.pending_writes += records.pending_writes
        self.has_run |= not similarity.is_cached
        if similarity.is_cached:
            saved = compute_charge(request.prompt, settings, similarity.response)
            self._services.budgets[budget_id].add_savings(saved)
        return similarity

    def _run_with_cache(self, request: RunProgram | RunCommand, name: str) -> Response:
        cache = self._services.cached_responses
        slot = None
        if cache is not None and request.cached:
            slot = cache.find_slot(
                request, lambda: _describe_program(request, name, self._services)
            )
        if cache is None or slot is None:
            return self._run_uncached(request, name)
        key = make_repeat_key(slot.make_key(request.stdin), self._ordinal)
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
    """What the cache key of a program's responses is made from.

    Raises:
        EvaluatorError: the program does not exist, or cannot be run on this machine.
    """
    job = make_job(request, name=name, services=services)
    executor = request.executor
    command_line: tuple[str, ...] = ()
    tree: Path | None = None
    if isinstance(request, RunCommand):
        files, command_line = _find_named_files(request, job), request.command
    else:
        ready = find_ready_program(request.program, name, services)
        files, tree = (ready.path,), ready.tree
    return CacheableProgram(
        name=name,
        job=job,
        executor=executor,
        variables={
            **select_output_variables(job.environment),
            **services.variables.select(request.variables),
        },
        files=files,
        command_line=command_line,
        tree=tree,
        input_digest=_find_input_digest(job, executor, name, services),
    )


def _find_named_files(request: RunCommand, job: ProgramJob) -> tuple[Path, ...]:
    """The files that a command line names below the folders that it can read."""
    roots = [each.path for each in job.sandbox_policy.readable]
    found = dict.fromkeys(Path(request.folder) / word for word in split_words(request.command))
    return tuple(
        path
        for path in found
        if is_file(path) and any(resolve_path(path).is_relative_to(root) for root in roots)
    )


def _find_input_digest(job: ProgramJob, executor: str, name: str, services: Services) -> str | None:
    """A digest of everything that the program can read; None if its executor cannot compute it."""
    if executor == LOCAL_EXECUTOR:  # it cannot; a look-up in `executors` would start it
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


NO_MEMORY: Final = "there is not enough memory to evaluate this case"
TOO_DEEP: Final = "the case or a response is nested too deeply to be evaluated"
SKIPPED_BY_EVALUATOR: Final = "skipped by the evaluator, no reason given"
STOPPED_EARLY: Final = "interrupted before all repeats were run"


class Check(Struct, frozen=True, kw_only=True):
    """One evaluator and one case of one config.

    Attributes:
        case: the summary, which stays in memory.
        load: reads the whole case.
        case_trials: the runs of the case, if an agent makes them or there are several.
        fingerprint: as in ``CheckResult``.
        read_result: makes the result that another tool has found; None if the evaluator runs.
    """

    config: str
    evaluator: Evaluator
    case: CaseSummary
    load: Callable[[], Case]
    case_trials: "CaseTrials | None" = None
    fingerprint: str = ""
    read_result: Callable[["Check"], CheckResult] | None = None

    @property
    def id(self) -> str:
        """A digest that is the same in every run."""
        return _digest(self.config, self.case.id, self.evaluator.identity.name)

    @property
    def identity(self) -> EvaluatorIdentity:
        """The evaluator as the result shows it: a check of eval cases is at the case's own line."""
        identity = self.evaluator.identity
        if not identity.name.startswith(CASE_PREFIX):
            return identity
        from agentci.evaluators.checks.check import CaseCheckEvaluator  # noqa: PLC0415 (slow)

        if isinstance(self.evaluator, CaseCheckEvaluator):
            return self.evaluator.identify(self.case.eval_case_id)
        return identity

    @property
    def shard_key(self) -> str:
        """What decides the shard; equal for checks that share a run of an agent."""
        return self.id if self.case_trials is None else _digest(self.config, self.case.id)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def run_check(check: Check, services: Services) -> CheckResult:
    """Run a check; an error of the evaluator becomes a result with the status ``errored``."""
    if check.read_result is not None:
        return check.read_result(check)
    calls: list[ExternalCall] = []
    result = _evaluate(check, services, calls)
    if services.call_log is not None and calls:
        services.call_log.add(result, calls, services.variables.redactor)
    return result


def _evaluate(check: Check, services: Services, calls: list[ExternalCall]) -> CheckResult:
    started = services.clock()
    repetition = check.evaluator.identity.repetition
    try:
        if reason := check.case.unusable_reason:
            raise EvaluatorError(reason)
        request = check.evaluator.ask(check.load())
        if isinstance(request, Skip):
            skipped = _make_result(check, status="skipped", reason=request.reason)
            return replace(skipped, unavailable=request.expected)
        if repetition.times == 1:
            return _run_once(check, request, services, calls)
        results = list(_run_repeats(check, request, repetition.times, services, calls))
        return aggregate_repeats(results, repetition)
    except SkippedError as error:
        skipped = _make_result(check, status="skipped", reason=str(error))
        return replace(skipped, unavailable=True)
    except EvaluatorError as error:
        reason = str(error)
    except MemoryError:
        reason = NO_MEMORY
    except RecursionError:
        reason = TOO_DEEP
    seconds = services.clock() - started
    return _make_result(check, status="errored", reason=reason, seconds=seconds)


def _run_repeats(
    check: Check, request: Task, times: int, services: Services, calls: list[ExternalCall]
) -> Iterator[CheckResult]:
    """The result of each repeat, up to the first error."""
    for ordinal in range(times):
        if ordinal and services.interruption.is_requested():
            raise EvaluatorError(STOPPED_EARLY)
        started = services.clock()
        try:
            result = _run_once(check, request, services, calls, ordinal=ordinal)
        except EvaluatorError as error:
            seconds = services.clock() - started
            yield _make_result(check, status="errored", reason=str(error), seconds=seconds)
            return
        yield result


def _run_once(
    check: Check, request: Task, services: Services, calls: list[ExternalCall], *, ordinal: int = 0
) -> CheckResult:
    """Execute the request once; its calls are added to ``calls``.

    Raises:
        EvaluatorError, SkippedError: as ``execute_request``.
    """
    started = services.clock()
    name, read = check.evaluator.identity.name, check.evaluator.read
    own_calls: list[ExternalCall] = []
    try:
        judgement, cached = execute_request(
            request, own_calls, name=name, read=read, services=services, ordinal=ordinal
        )
    finally:
        calls += own_calls
    seconds = services.clock() - started
    status: Status = "passed" if judgement.passed else "failed"
    reason = judgement.reason
    if judgement.passed is None:
        status, reason = "skipped", judgement.reasoning or SKIPPED_BY_EVALUATOR
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
    if judgement is not None and judgement.details:  # kept until the last report is written
        judgement = replace(judgement, details=EncodedObject(judgement.details))
    return CheckResult(
        id=check.id,
        config=check.config,
        case=check.case,
        evaluator=check.identity,
        status=status,
        judgement=judgement,
        reason=reason,
        seconds=seconds,
        cached=cached,
        fingerprint=check.fingerprint,
    )
