"""Makes evaluators of entries of agentevals' own types: builtin, code and remote."""

from agentci.evaluators.agentevals.builtin import assemble_builtin
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.evaluators.agentevals.entries import (
    BuiltinEntry,
    CodeEntry,
    ProcessEntry,
    RemoteEntry,
)
from agentci.evaluators.agentevals.threshold import bar_of
from agentci.evaluators.context import Surroundings
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.metrics.registry import ASKING, HOSTED
from agentci.evaluators.repeat import refuse_repeat
from agentci.model.identity import Identity
from agentci.model.program import Program, RemoteProgram
from agentci.model.requests import DOCKER, RunProgram
from agentci.model.values import replace


def build_builtin(entry: BuiltinEntry, surroundings: Surroundings) -> Evaluator:
    """Make the evaluator; raises InputError where its surroundings do."""
    turn_mismatch_fails = (
        surroundings.turn_mismatch_fails
        if entry.on_turn_mismatch is None
        else entry.on_turn_mismatch == "fail"
    )
    if entry.name in ASKING:
        from agentci.evaluators.agentevals.judged_entries import (  # noqa: PLC0415 (slow to load)
            assemble_judged,
        )

        return assemble_judged(
            entry,
            surroundings.judges,
            place=surroundings.place,
            place_of=surroundings.place_of,
            turn_mismatch_fails=turn_mismatch_fails,
        )
    if entry.name in HOSTED:
        from agentci.evaluators.agentevals.vertex_metric import (  # noqa: PLC0415 (seldom of use)
            assemble_hosted,
        )

        hosted = assemble_hosted(
            entry.name,
            place=surroundings.place,
            threshold=entry.threshold,
            required=entry.required,
            turn_mismatch_fails=turn_mismatch_fails,
        )
        identity = replace(hosted.identity, repetition=entry.repetition)
        return replace(hosted, identity=identity)
    refuse_repeat(entry, of=surroundings.place, at=surroundings.place_of("repeat"))
    return assemble_builtin(
        entry.name,
        place=surroundings.place,
        threshold=entry.threshold,
        match_type=entry.trajectory_match_type,
        required=entry.required,
        turn_mismatch_fails=turn_mismatch_fails,
    )


def build_code(entry: CodeEntry, surroundings: Surroundings) -> Evaluator:
    """Make the evaluator; raises InputError where its surroundings do."""
    program = surroundings.locate(entry.path)
    if not installs(entry):
        program = replace(program, requirements=None)
    return _program(entry, program, "path", surroundings)


def build_remote(entry: RemoteEntry, surroundings: Surroundings) -> Evaluator:
    """Make the evaluator; raises InputError where its surroundings do."""
    program = RemoteProgram(
        source=entry.source,
        repository=entry.repo or "",
        revision=entry.rev or entry.branch or "",
        ref=entry.ref,
        sha256=(entry.sha256 or "").lower(),
        installs=installs(entry),
    )
    named = next(field for field in ("rev", "branch", "ref") if getattr(entry, field) is not None)
    return _program(entry, surroundings.complete(program), named, surroundings)


def _program(
    entry: CodeEntry | RemoteEntry, program: Program, field: str, surroundings: Surroundings
) -> CodeEvaluator:
    return CodeEvaluator(
        identity=identity_of(entry, surroundings),
        config=entry.config,
        run=run_of(entry, program, network=entry.network),
        program_place=surroundings.place_of(field),
    )


def run_of(entry: ProcessEntry, program: Program, *, network: bool) -> RunProgram:
    """How its processes run, before it is known what they read."""
    return RunProgram(
        program=program,
        timeout_seconds=entry.timeout,
        executor=entry.executor,
        network=network,
        variables=tuple(entry.env),
        memory_mb=entry.memory_mb,
        processes=entry.processes,
        isolation=entry.isolation,
        image=_image(entry) or "",
        cached=entry.cache,
    )


def identity_of(entry: ProcessEntry, surroundings: Surroundings) -> Identity:
    """What reports show of it."""
    return Identity(
        name=entry.name,
        type=entry.type,
        bar=bar_of(entry.threshold),
        threshold=entry.threshold,
        required=entry.required,
        place=surroundings.place,
        repetition=entry.repetition,
    )


def installs(entry: ProcessEntry) -> bool:
    """Whether packages are installed for it: not where an image has them."""
    return entry.requirements == "auto" and _image(entry) is None


def _image(entry: ProcessEntry) -> str | None:
    return entry.image if entry.executor == DOCKER else None
