"""``type: code`` and ``type: remote``: programs that read EvalInput and print EvalResult.

Fields and spellings are those of agentevals 0.11.0, protocol 1.1, a superset of 1.0. Parsing is
stricter in two points: a boolean is not a score, and another major version is rejected.
"""

import codecs
import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, Self, TypeAlias, get_args

from msgspec import Struct
from pydantic import Field, JsonValue, model_validator

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_criterion
from agentci._util.text.json_text import dumps_compact, dumps_readable, make_strict
from agentci._util.text.suggest import join_with_or
from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import (
    ComparableEvaluator,
    Definition,
    Facts,
    check_response,
    define_entry,
    define_program,
    list_program_needs,
    list_unrecorded,
)
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.fields import (
    CACHE_DIRS,
    Cached,
    Count,
    Entry,
    Image,
    RepeatableEntry,
    Seconds,
    Sha256,
    Share,
    Text,
    VariableName,
    check_cache_dirs,
    optional,
)
from agentci.evaluators.metrics import DEFAULT_THRESHOLD, get_threshold
from agentci.evaluators.program_output import (
    EXAMPLE_RESULT,
    describe_exit,
    describe_missing_output,
    parse_output,
)
from agentci.model.case import Case, EvalCase, Expectation
from agentci.model.program import LocalProgram, Program, RemoteProgram
from agentci.model.requests import (
    DEFAULT_MEMORY_MB,
    DEFAULT_PROCESSES,
    DOCKER_EXECUTOR,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunProgram,
)
from agentci.model.trace import ToolCall, ToolResponse, Turn
from agentci.model.values import (
    IdentityKey,
    IsolationMode,
    Json,
    JsonObject,
    Place,
    RequirementsMode,
    replace,
)

DEFAULT_TIMEOUT_SECONDS: Final = 30


class SandboxedEntry(RepeatableEntry, Entry):
    """Fields of evaluators whose code runs in a sandbox or a container: programs and graders."""

    threshold: Share = optional("Minimum score to pass.", default=DEFAULT_THRESHOLD)
    timeout: Seconds = optional("Time limit in seconds.", default=DEFAULT_TIMEOUT_SECONDS)
    executor: Text = Field(
        default="local",
        description="`local`, `docker`, or an executor of a plugin.",
        examples=["local", "docker"],
    )
    image: Image | None = Field(
        default=None,
        description="Image for `executor: docker`.",
        examples=["python:3.12-slim"],
    )
    requirements: RequirementsMode = optional(
        "Whether its `requirements.txt` is installed.",
        default="auto",
    )
    allow_source: bool = Field(
        default=False,
        description="Whether packages without a wheel are built, in the sandbox.",
    )
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables for the program.",
        examples=[["JUDGE_API_KEY"]],
    )
    cache_dirs: list[VariableName] = Field(
        default=[],
        description=CACHE_DIRS,
        examples=[["HF_HUB_CACHE"]],
    )
    memory_mb: Count = optional("Memory limit per process, in MiB.", default=DEFAULT_MEMORY_MB)
    processes: Count = optional(
        "Limit on concurrent processes and threads.", default=DEFAULT_PROCESSES
    )
    isolation: IsolationMode = optional(
        "Whether Python programs are a fork with preloaded modules or a slower new process.",
        default="fork",
    )
    cache: Cached = False

    @model_validator(mode="after")
    def _check_cache_dirs(self) -> Self:
        check_cache_dirs(self.cache_dirs, executor=self.executor, cached=self.cache)
        return self


class ProgramEntry(SandboxedEntry):
    """Fields of evaluators that are programs."""

    config: dict[str, JsonValue] = optional("Settings in the program's input.", default={})


class CodeEntry(ProgramEntry):
    """A program that reads a recorded run from stdin and writes a score to stdout."""

    type: Literal["code"] = Field(description="A program of your own.")
    path: Text = Field(description="Path of the program.", examples=["evaluators/tone.py"])
    network: bool = optional("Whether it can use the network.", default=True)


class RemoteEntry(ProgramEntry):
    """A program that is fetched, verified and cached; see docs/remote-evaluators.md."""

    type: Literal["remote"] = Field(description="A remote program.")
    source: Text = Field(
        default="github",
        description="`github`, `url`, `local`, or a source of a plugin.",
        examples=["github", "url", "local"],
    )
    ref: Text = Field(
        examples=["evaluators/tone/tone.py"],
        description="Path in the repository; URL; for `local` a path, or a name in the index.",
    )
    repo: Text | None = optional(
        "`owner/name`, or for `local` the folder of an `index.yaml`; default: "
        "`AGENTEVALS_EVALUATOR_REPO`, else the community's."
    )
    branch: Text | None = optional(
        "Branch to follow; default: `AGENTEVALS_EVALUATOR_BRANCH`, else `main`."
    )
    rev: Text | None = optional("Commit or tag instead of a branch.")
    network: bool = optional("Whether it can use the network.", default=False)
    sha256: Sha256 | None = optional("SHA-256 of the file at `ref`; required for `url`.")

    @model_validator(mode="after")
    def _check_one_revision(self) -> Self:
        if self.branch is not None and self.rev is not None:
            raise ValueError("`branch` and `rev` exclude each other; keep one of them")
        return self


PROTOCOL_VERSION: Final = "1.1"
# Keys that are not in the protocol: false if a value was left out because it was not recorded.
CALLS_RECORDED_KEY: Final = "tool_calls_recorded"
ARGS_RECORDED_KEY: Final = "args_recorded"


def make_eval_input(case: Case, *, name: str, threshold: float, config: JsonObject) -> str:
    """Write EvalInput as compact JSON. Fields must also be in ``EvalInput`` of ``agentci.sdk``.

    Every key is present, even without a value. Only tool calls and arguments that were not recorded
    are left out: an empty value would mean that there were none.
    """
    header: JsonObject = {
        "protocol_version": PROTOCOL_VERSION,
        "metric_name": name,
        "threshold": float(threshold),
        "config": config,
    }
    return f"{dumps_compact(header)[:-1]},{_format_case(IdentityKey(case))[1:]}"


@lru_cache(maxsize=4)
def _format_case(same: IdentityKey[Case]) -> str:
    """Format the part of EvalInput that all programs share.

    The programs of a case run one after another, so that a small cache is enough.
    """
    trace, expected = same.value.trace, same.value.expected
    return dumps_compact(
        {
            "invocations": [
                {**_format_invocation(turn), "performance_metrics": trace.performance}
                for turn in trace.turns
            ],
            "expected_invocations": format_expected_invocations(expected),
        }
    )


def format_expected_invocations(expected: EvalCase | None) -> list[Json] | None:
    """Format the expected turns; None without an eval case."""
    if expected is None:
        return None
    return [_format_invocation(turn, is_expected=True) for turn in expected.turns]


def _format_invocation(turn: Turn, *, is_expected: bool = False) -> dict[str, Json]:
    return {
        "invocation_id": turn.id,
        "user_content": turn.user_text,
        "final_response": turn.final_text,
        "intermediate_steps": {
            "tool_calls": [
                _format_tool_call(call, is_expected=is_expected) for call in turn.tool_calls
            ],
            "tool_responses": [_format_tool_response(response) for response in turn.tool_responses],
        }
        if turn.tool_calls_recorded
        else {CALLS_RECORDED_KEY: False},
        "performance_metrics": None,
        "trace_id": turn.trace_id,
        "span_id": turn.span_id,
    }


def _format_tool_call(call: ToolCall, *, is_expected: bool) -> dict[str, Json]:
    if call.args is None and not is_expected:
        return {"name": call.name, "id": call.id, ARGS_RECORDED_KEY: False}
    # Always an object, because evaluators do not check its type.
    return {"name": call.name, "args": call.named_args, "id": call.id}


def _format_tool_response(response: ToolResponse) -> dict[str, Json]:
    return {
        "name": response.name,
        "output": _format_output(response.output),
        "status": "error" if response.failed else None,
        "id": response.id,
        "response": response.output,
    }


def _format_output(output: Json) -> str:
    if output is None:
        return ""
    return output if isinstance(output, str) else json.dumps(make_strict(output), sort_keys=True)


ProgramStatus: TypeAlias = Literal["PASSED", "FAILED", "NOT_EVALUATED"]

PROGRAM_STATUSES: Final[tuple[ProgramStatus, ...]] = get_args(ProgramStatus)
MAX_SHOWN: Final = 60


class ParsedEvalResult(Struct, frozen=True, kw_only=True):
    """The result of one program.

    Attributes:
        score: 0 to 1.
        status: the program's own verdict; None if score and threshold decide.
        turn_scores: as given: any number of scores with any values, None for a turn without one.
    """

    score: float
    status: ProgramStatus | None
    turn_scores: tuple[float | None, ...]
    details: JsonObject


def parse_eval_result(document: JsonObject) -> ParsedEvalResult:
    """Parse a result; unknown fields are ignored.

    Raises:
        EvaluatorError: if a field is missing or invalid. The message lacks a subject, which is the
            program.
    """
    version = document.get("protocol_version")
    ours = PROTOCOL_VERSION.partition(".")[0]
    if version is not None and str(version).partition(".")[0] != ours:
        raise EvaluatorError(
            f"uses protocol `{truncate.short(str(version), MAX_SHOWN)}`; agentci supports {ours}.x"
        )
    return ParsedEvalResult(
        score=_parse_score(document),
        status=_parse_status(document.get("status")),
        turn_scores=_parse_turn_scores(document.get("per_invocation_scores", [])),
        details=_parse_details(document.get("details")),
    )


def _parse_score(document: JsonObject) -> float:
    if "score" not in document:
        raise EvaluatorError(
            "returned no `score`; a number between 0 and 1 is required, even with a `status`"
        )
    given = document["score"]
    number = None if isinstance(given, bool) else _parse_number(given)
    if number is None or not 0 <= number <= 1:
        kind = "a number " if number is None else ""
        raise EvaluatorError(
            f"returned score {_format_value(given)}; it must be {kind}between 0 and 1"
        )
    return number


def _parse_status(given: Json) -> ProgramStatus | None:
    if given is None:
        return None
    for status in PROGRAM_STATUSES:
        if given == status:
            return status
        if isinstance(given, str) and given.upper() == status:
            raise EvaluatorError(f"returned status {_format_value(given)}; write it as {status}")
    raise EvaluatorError(
        f"returned status {_format_value(given)}; it must be"
        f" {join_with_or((*PROGRAM_STATUSES, 'null'))}"
    )


def _parse_turn_scores(given: Json) -> tuple[float | None, ...]:
    if not isinstance(given, list):
        raise EvaluatorError(
            f"returned per_invocation_scores {_format_value(given)}; it must be a list of numbers"
        )
    return tuple(_parse_turn_score(score, index) for index, score in enumerate(given))


def _parse_turn_score(raw: Json, index: int) -> float | None:
    number = _parse_number(raw)
    if number is None and raw is not None:
        where = f"per_invocation_scores[{index}]"
        raise EvaluatorError(f"returned {where} {_format_value(raw)}; it must be a number or null")
    return number


def _parse_details(raw: Json) -> JsonObject:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise EvaluatorError(f"returned details {_format_value(raw)}; it must be an object or null")
    return raw


def _parse_number(given: Json) -> float | None:
    """Parse a number or its text; true and false are 1 and 0."""
    if not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _format_value(given: Json) -> str:
    return truncate.short(dumps_readable(given), MAX_SHOWN)


MAX_KEPT_BYTES: Final = 256 * 1024
MAX_LINES: Final = 100
MAX_LINE_LENGTH: Final = 1_000
MAX_TURN_SCORES: Final = 10_000

LEFT_OUT_KEY: Final = "left_out"


def truncate_result(full: ParsedEvalResult, *, size: int, shown: Sequence[str]) -> ParsedEvalResult:
    """Return a small result unchanged, and a large one with its verdict and shortened details.

    Args:
        full: a program's result.
        size: size of the printed result in bytes.
        shown: names of the details that reports show.
    """
    if size <= MAX_KEPT_BYTES:
        return full
    note = (
        f"the result has {format_count(size, 'byte')}; its details are truncated because the limit "
        f"is {MAX_KEPT_BYTES:,}"
    )
    details = {name: _truncate_value(value) for name in shown if (value := full.details.get(name))}
    return replace(
        full,
        turn_scores=full.turn_scores[:MAX_TURN_SCORES],
        details={**details, LEFT_OUT_KEY: note},
    )


def _truncate_value(value: Json) -> Json:
    if isinstance(value, list):
        lines = [_truncate_line(item) for item in value[:MAX_LINES]]
        more = len(value) - len(lines)
        return [*lines, f"\N{HORIZONTAL ELLIPSIS} and {more:,} more"] if more else [*lines]
    return _truncate_line(value)


def _truncate_line(value: Json) -> str:
    return truncate.characters(
        value if isinstance(value, str) else dumps_readable(value), MAX_LINE_LENGTH
    )


# Lists in which evaluators, including the community's, report what is wrong.
PROBLEM_FIELDS: Final = {"issues": "", "missing_tools": "missing tools: "}
REASON_FIELDS: Final = ("reasoning", "reason")

PASSED_BY_STATUS: Final = {"PASSED": True, "FAILED": False, "NOT_EVALUATED": None}


class CodeEvaluator(Struct, frozen=True, kw_only=True):
    """A program that evaluates one case at a time.

    Attributes:
        definition: see ``ComparableEvaluator``.
        config: the input's ``config``.
        run: the request to run its program, without the input.
        program_place: where the config names the program.
    """

    identity: EvaluatorIdentity
    definition: Definition
    config: JsonObject
    run: RunProgram
    program_place: Place

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The program, and the variables that it may see."""
        return list_program_needs(self.identity, self.run, place=self.program_place)

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the expected turns as they are sent."""
        return format_expected_invocations(expectation.eval_case)

    def ask(self, case: Case) -> RunProgram:
        """Request a run of the program over all turns of the trace and of its eval case."""
        given = make_eval_input(
            case,
            name=self.identity.name,
            threshold=get_threshold(self.identity),
            config=self.config,
        )
        return replace(self.run, stdin=given, unrecorded=list_unrecorded(case.trace.turns))

    def read(self, response: Response) -> Judgement:
        """Return the judgement: by the status that the program returned, else by its score.

        Raises:
            EvaluatorError: if the program failed or printed no result.
        """
        output = check_response(response, ProgramOutput)
        try:
            return self._make_judgement(self._parse(output))
        except EvaluatorError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}` {error}") from None

    def _parse(self, output: ProgramOutput) -> ParsedEvalResult:
        if output.exit_code == 0:
            if not output.stdout.removeprefix(codecs.BOM_UTF8).strip():
                raise EvaluatorError(describe_missing_output(output, EXAMPLE_RESULT))
            try:
                document = parse_output(output.stdout)
            except EvaluatorError as error:
                raise EvaluatorError(f"printed an invalid result: {error}") from None
            return truncate_result(
                parse_eval_result(document),
                size=len(output.stdout),
                shown=(*PROBLEM_FIELDS, *REASON_FIELDS),
            )
        raise EvaluatorError(
            describe_exit(output, network=self.run.network, in_image=bool(self.run.image))
        )

    def _make_judgement(self, result: ParsedEvalResult) -> Judgement:
        by_score = result.score >= get_threshold(self.identity)
        passed = by_score if result.status is None else PASSED_BY_STATUS[result.status]
        overruled = passed is not None and passed != by_score
        problems = tuple(_extract_problems(result.details))
        reasoning = _extract_reasoning(result.details)
        if passed is None and reasoning is None:
            reasoning = "; ".join(problems) or None
        return Judgement(
            score=result.score,
            passed=passed,
            reason=f"the evaluator returned status {result.status}" if overruled else None,
            turn_scores=result.turn_scores,
            misses=problems if passed is False else (),
            reasoning=reasoning,
            details=result.details,
        )


def _extract_problems(details: JsonObject) -> list[str]:
    return [
        f"{prefix}{_format_problem(problem)}"
        for key, prefix in PROBLEM_FIELDS.items()
        for problem in _as_list(details.get(key))
    ]


def _as_list(given: Json) -> list[Json]:
    if isinstance(given, list):
        return given
    return [given] if given else []


def _format_problem(problem: Json) -> str:
    return problem if isinstance(problem, str) else dumps_readable(problem)


def _extract_reasoning(details: JsonObject) -> str | None:
    for key in REASON_FIELDS:
        reason = details.get(key)
        if isinstance(reason, str) and reason.strip():
            return reason
    return None


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
        run=make_run_request(entry, program, network=entry.network),
        program_place=context.find_place(field),
    )


def make_run_request(entry: SandboxedEntry, program: Program, *, network: bool) -> RunProgram:
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
    """Return whether packages are installed for the program; an image already contains them."""
    return entry.requirements == "auto" and _get_image(entry) is None


def with_requirements(program: LocalProgram, entry: SandboxedEntry) -> LocalProgram:
    """Return the program with the requirements that its entry allows."""
    requirements = program.requirements if installs_requirements(entry) else None
    return replace(program, requirements=requirements, allow_source=entry.allow_source)


def _get_image(entry: SandboxedEntry) -> str | None:
    return entry.image if entry.executor == DOCKER_EXECUTOR else None
