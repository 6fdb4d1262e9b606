"""The types of evaluators that a config can list: a new one is an entry model and a line here.

Packages of others add theirs as entry points of the group ``agentci.dialects``: the name is the
type, the object an :class:`EvaluatorType`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeGuard, TypeVar

from msgspec import Struct

from agentci.dialects.agentevals.builtin import assemble_builtin
from agentci.dialects.agentevals.code import CodeEvaluator
from agentci.dialects.agentevals.entries import (
    BuiltinEntry,
    CodeEntry,
    ProcessEntry,
    RemoteEntry,
)
from agentci.dialects.agentevals.threshold import bar_of
from agentci.dialects.base import Evaluator
from agentci.dialects.fields import Entry
from agentci.dialects.foreign import ForeignEvaluator
from agentci.dialects.openai_eval.entries import OpenAIEvalEntry
from agentci.dialects.pytest_agent_evals.entries import GraderEntry, PromptEntry
from agentci.dialects.pytest_agent_evals.functions import check_function
from agentci.dialects.pytest_agent_evals.grader import Grader
from agentci.dialects.repeating import refuse_repeat
from agentci.dialects.surroundings import Surroundings
from agentci.errors import InputError
from agentci.metrics.registry import ASKING, HOSTED
from agentci.model.exchange import DOCKER, RunProgram
from agentci.model.identity import Identity
from agentci.model.program import Program, RemoteProgram
from agentci.model.values import replace

E = TypeVar("E", bound=Entry)

GROUP: Final = "agentci.dialects"


class EvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and what becomes of them.

    Attributes:
        entry: its fields; from it come the JSON Schema, the messages and the documents.
        build: makes the evaluator; raises InputError where its surroundings do.
    """

    entry: type[E]
    build: Callable[[E, Surroundings], Evaluator]


def is_type(found: object) -> TypeGuard[EvaluatorType[Any]]:
    """Whether what a package brings can be held to what it should be."""
    return isinstance(found, EvaluatorType) and _is_entry(found.entry) and callable(found.build)


def foreign_type(found: EvaluatorType[E], *, title: str) -> EvaluatorType[E]:
    """A type that another package brings, whose faults are told as those of ``title``."""

    def build(entry: E, surroundings: Surroundings) -> Evaluator:
        try:
            return ForeignEvaluator(found.build(entry, surroundings), title=title)
        except InputError:
            raise
        except Exception as error:
            raise InputError.of(
                f"{title} does not work: {type(error).__name__}: {error}",
                hint="tell the authors of that package",
            ) from error

    return replace(found, build=build)


def _is_entry(model: object) -> bool:
    return isinstance(model, type) and issubclass(model, Entry)


def _build_builtin(entry: BuiltinEntry, surroundings: Surroundings) -> Evaluator:
    turn_mismatch_fails = (
        surroundings.turn_mismatch_fails
        if entry.on_turn_mismatch is None
        else entry.on_turn_mismatch == "fail"
    )
    if entry.name in ASKING:
        from agentci.dialects.agentevals.judged_entry import (  # noqa: PLC0415 (slow to load)
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
        from agentci.dialects.agentevals.hosted import (  # noqa: PLC0415 (seldom of use)
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


def _build_code(entry: CodeEntry, surroundings: Surroundings) -> Evaluator:
    program = surroundings.locate(entry.path)
    if not _installs(entry):
        program = replace(program, requirements=None)
    return _program(entry, program, "path", surroundings)


def _build_grader(entry: GraderEntry, surroundings: Surroundings) -> Evaluator:
    program = surroundings.locate(entry.file, "grader")
    if not _installs(entry):
        program = replace(program, requirements=None)
    file = surroundings.read(entry.file, "grader")
    check_function(file, entry.function, surroundings.place_of("grader"))
    return Grader(
        identity=_identity(entry, surroundings),
        function=entry.function,
        run=replace(_run(entry, program), grades=True),
        program_place=surroundings.place_of("grader"),
    )


def _build_prompt(entry: PromptEntry, surroundings: Surroundings) -> Evaluator:
    # Most configs have none.
    from agentci.dialects.pytest_agent_evals.building import build_prompt  # noqa: PLC0415

    return build_prompt(entry, surroundings)


def _build_remote(entry: RemoteEntry, surroundings: Surroundings) -> Evaluator:
    program = RemoteProgram(
        source=entry.source,
        repository=entry.repo or "",
        revision=entry.rev or entry.branch or "",
        ref=entry.ref,
        sha256=(entry.sha256 or "").lower(),
        installs=_installs(entry),
    )
    named = next(field for field in ("rev", "branch", "ref") if getattr(entry, field) is not None)
    return _program(entry, surroundings.complete(program), named, surroundings)


def _build_openai_eval(entry: OpenAIEvalEntry, surroundings: Surroundings) -> Evaluator:
    # Most configs have none, and it is a score of modules.
    from agentci.dialects.openai_eval.building import build_openai_eval  # noqa: PLC0415

    return build_openai_eval(entry, surroundings)


def _program(
    entry: CodeEntry | RemoteEntry, program: Program, field: str, surroundings: Surroundings
) -> CodeEvaluator:
    return CodeEvaluator(
        identity=_identity(entry, surroundings),
        config=entry.config,
        run=_run(entry, program),
        program_place=surroundings.place_of(field),
    )


def _run(entry: CodeEntry | RemoteEntry | GraderEntry, program: Program) -> RunProgram:
    """How its processes run, before it is known what they read."""
    return RunProgram(
        program=program,
        stdin="",
        timeout_seconds=entry.timeout,
        executor=entry.executor,
        network=entry.network,
        variables=tuple(entry.env),
        memory_mb=entry.memory_mb,
        processes=entry.processes,
        isolation=entry.isolation,
        image=_image(entry) or "",
        cached=entry.cache,
    )


def _identity(entry: ProcessEntry, surroundings: Surroundings) -> Identity:
    return Identity(
        name=entry.name,
        type=entry.type,
        bar=bar_of(entry.threshold),
        threshold=entry.threshold,
        required=entry.required,
        place=surroundings.place,
        repetition=entry.repetition,
    )


def _installs(entry: ProcessEntry) -> bool:
    """Whether packages are installed for it: not where an image has them."""
    return entry.requirements == "auto" and _image(entry) is None


def _image(entry: ProcessEntry) -> str | None:
    return entry.image if entry.executor == DOCKER else None


EVALUATOR_TYPES: Final[Mapping[str, EvaluatorType[Any]]] = {
    "builtin": EvaluatorType(entry=BuiltinEntry, build=_build_builtin),
    "code": EvaluatorType(entry=CodeEntry, build=_build_code),
    "remote": EvaluatorType(entry=RemoteEntry, build=_build_remote),
    "openai_eval": EvaluatorType(entry=OpenAIEvalEntry, build=_build_openai_eval),
    "grader": EvaluatorType(entry=GraderEntry, build=_build_grader),
    "prompt": EvaluatorType(entry=PromptEntry, build=_build_prompt),
}

# Types of AgentV's eval files, and which ones do the same in configs.
OF_EVAL_FILES: Final[Mapping[str, str]] = {
    "code_judge": "in configs `type: code` runs a program of your own",
    "llm_judge": "in configs `type: prompt` asks a language model",
}
