"""Builds evaluators from entries of agentevals' types: builtin, code and remote."""

from agentci._util.text.format import format_criterion
from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.evaluators.agentevals.entries import (
    BuiltinEntry,
    CodeEntry,
    RemoteEntry,
    SandboxedEntry,
)
from agentci.evaluators.definition import define_entry, define_program
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.fields import reject_repeat
from agentci.evaluators.metrics.registry import HOSTED_METRICS, JUDGED_METRIC_PURPOSES
from agentci.model.judgement import EvaluatorIdentity
from agentci.model.program import LocalProgram, Program, RemoteProgram
from agentci.model.requests import DOCKER_EXECUTOR, RunProgram
from agentci.model.values import replace


def build_builtin(entry: BuiltinEntry, context: EvaluatorContext) -> ComparableEvaluator:
    """Build the evaluator of a built-in metric.

    Raises:
        InputError: if the context does not allow it, for example without a judge.
    """
    turn_mismatch_fails = (
        context.turn_mismatch_fails
        if entry.on_turn_mismatch is None
        else entry.on_turn_mismatch == "fail"
    )
    if entry.name in JUDGED_METRIC_PURPOSES:
        from agentci.evaluators.agentevals.judged_builtin import (  # noqa: PLC0415 (slow to load)
            make_judged_evaluator,
        )

        return make_judged_evaluator(
            entry,
            context.judges,
            place=context.place,
            place_of=context.find_place,
            turn_mismatch_fails=turn_mismatch_fails,
        )
    if entry.name in HOSTED_METRICS:
        from agentci.evaluators.agentevals.vertex_metric import (  # noqa: PLC0415 (seldom of use)
            make_hosted_evaluator,
        )

        hosted = make_hosted_evaluator(
            entry.name,
            place=context.place,
            threshold=entry.threshold,
            required=entry.required,
            turn_mismatch_fails=turn_mismatch_fails,
        )
        identity = replace(hosted.identity, repetition=entry.repetition)
        return replace(hosted, identity=identity)
    reject_repeat(entry, of=context.place, at=context.find_place("repeat"))
    evaluator = make_builtin_evaluator(
        entry.name,
        place=context.place,
        threshold=entry.threshold,
        match_type=entry.trajectory_match_type,
        required=entry.required,
        turn_mismatch_fails=turn_mismatch_fails,
    )
    return replace(evaluator, subagents=entry.subagents, ignore_args=entry.ignore_args)


def build_code(entry: CodeEntry, context: EvaluatorContext) -> ComparableEvaluator:
    """Build the evaluator of a local program.

    Raises:
        InputError: if the program cannot be used.
    """
    program = with_requirements(context.locate(entry.path), entry)
    return _build_program_evaluator(entry, program, "path", context)


def build_remote(entry: RemoteEntry, context: EvaluatorContext) -> ComparableEvaluator:
    """Build the evaluator of a remote program.

    Raises:
        InputError: if its source or the program in it does not exist.
    """
    program = RemoteProgram(
        source=entry.source,
        repository=entry.repo or "",
        revision=entry.rev or entry.branch or "",
        ref=entry.ref,
        sha256=(entry.sha256 or "").lower(),
        installs_requirements=installs_requirements(entry),
        allow_source=entry.allow_source,
    )
    named = next(field for field in ("rev", "branch", "ref") if getattr(entry, field) is not None)
    return _build_program_evaluator(entry, context.complete(program), named, context)


def _build_program_evaluator(
    entry: CodeEntry | RemoteEntry, program: Program, field: str, context: EvaluatorContext
) -> CodeEvaluator:
    return CodeEvaluator(
        identity=make_program_identity(entry, context),
        definition=define_entry(entry, program=define_program(program)),
        config=entry.config,
        run=make_program_run(entry, program, network=entry.network),
        program_place=context.find_place(field),
    )


def make_program_run(entry: SandboxedEntry, program: Program, *, network: bool) -> RunProgram:
    """Make the request to run the program, without its input."""
    return RunProgram(
        program=program,
        timeout_seconds=entry.timeout,
        executor=entry.executor,
        network=network,
        variables=tuple(entry.env),
        cache_dirs=tuple(entry.cache_dirs),
        memory_mb=entry.memory_mb,
        processes=entry.processes,
        isolation=entry.isolation,
        image=_get_image(entry) or "",
        cached=entry.cache,
    )


def make_program_identity(entry: SandboxedEntry, context: EvaluatorContext) -> EvaluatorIdentity:
    """Make the identity that reports show."""
    return EvaluatorIdentity(
        name=entry.name,
        type=entry.type,
        criterion=format_criterion(entry.threshold),
        threshold=entry.threshold,
        required=entry.required,
        place=context.place,
        repetition=entry.repetition,
    )


def installs_requirements(entry: SandboxedEntry) -> bool:
    """Return whether packages are installed for it; an image already contains them."""
    return entry.requirements == "auto" and _get_image(entry) is None


def with_requirements(program: LocalProgram, entry: SandboxedEntry) -> LocalProgram:
    """Return the program with the requirements that its entry allows."""
    requirements = program.requirements if installs_requirements(entry) else None
    return replace(program, requirements=requirements, allow_source=entry.allow_source)


def _get_image(entry: SandboxedEntry) -> str | None:
    return entry.image if entry.executor == DOCKER_EXECUTOR else None
