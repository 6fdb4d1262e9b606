"""``code_judge`` (``code-grader`` in AgentV 4): a command that reads a run and prints a score."""

import codecs
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import ConfigDict, Field, JsonValue, model_validator

from agentci._util.text import truncate
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv.agentv_evaluator import (
    AgentvContext,
    AgentvEntry,
    define_agentv_entry,
    leave_out_of_required,
    make_agentv_identity,
    make_pass_threshold,
)
from agentci.evaluators.agentv.findings import (
    Finding,
    PassThreshold,
    clamp_score,
    get_agentv_case,
    get_recorded_run,
    make_agentv_judgement,
)
from agentci.evaluators.agentv.payload import (
    NO_RUN,
    PayloadFormat,
    make_judge_input,
    make_judge_payload,
)
from agentci.evaluators.evaluator import (
    TOOL_CALLS,
    Definition,
    Facts,
    FileContents,
    define_command,
    find_required_variables,
)
from agentci.evaluators.fields import (
    CACHE_DIRS,
    MAX_COUNT,
    Cached,
    Count,
    Image,
    RepeatableEntry,
    Seconds,
    StrictModel,
    Text,
    VariableName,
    check_cache_dirs,
    optional,
)
from agentci.evaluators.judge_config import JudgeSpec, define_judge
from agentci.evaluators.program_output import (
    EXAMPLE_RESULT,
    describe_exit,
    describe_missing_output,
    parse_output,
)
from agentci.model.case import Case, Expectation
from agentci.model.judges import ModelAccess, RequiredJudge
from agentci.model.requests import (
    DEFAULT_MEMORY_MB,
    DEFAULT_PROCESSES,
    DOCKER_EXECUTOR,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunCommand,
)
from agentci.model.values import IsolationMode, Json, JsonObject, replace

MAX_KEPT_BYTES: Final = 256 * 1024
MAX_LINES: Final = 100
MAX_LINE_LENGTH: Final = 1_000

NO_SCORE: Final = "the result has no numeric `score`; it counts as 0"


# Whether a verdict is a pass; others are ignored, as in AgentV.
VERDICTS: Final[Mapping[str, bool]] = {"pass": True, "borderline": False, "fail": False}


def parse_finding(
    document: JsonObject, *, size: int, prefers_assertions: bool, reads_verdict: bool = False
) -> Finding:
    """Parse a result as leniently as AgentV does: invalid fields are ignored.

    ``pass``, ``reason`` and ``checks`` are AgentV 5's; ``pass: false`` fails at any score.

    Args:
        size: bytes printed; a result of more than ``MAX_KEPT_BYTES`` is truncated.
        prefers_assertions: whether ``assertions`` win over ``hits`` and ``misses`` when both are
            given, as in AgentV 4.
        reads_verdict: whether ``verdict`` decides, as in AgentV for aggregators only.
    """
    given = document.get("assertions")
    asserted = list(_iterate_assertions(document.get("checks") if given is None else given))
    lists = [*_iterate_texts(document.get("hits"))], [*_iterate_texts(document.get("misses"))]
    if asserted and (prefers_assertions or not any(lists)):
        lists = [t for t, passed in asserted if passed], [t for t, passed in asserted if not passed]
    score, reason = _parse_score(document.get("score"), asserted)
    own_verdict = document.get("pass")
    if isinstance(own_verdict, bool) and document.get("score") is None and not asserted:
        score, reason = float(own_verdict), None
    if own_verdict is False:
        reason = "failed by its `pass: false`"
    reasoning = document.get("reasoning", document.get("reason"))
    details = document.get("details")
    verdict = document.get("verdict") if reads_verdict else None
    kept = size <= MAX_KEPT_BYTES
    hits, misses = (tuple(each) if kept else _truncate_lines(each) for each in lists)
    return Finding(
        score=score,
        hits=hits,
        misses=misses,
        reasoning=reasoning if isinstance(reasoning, str) and reasoning.strip() else None,
        details=details if kept and isinstance(details, dict) else {},
        reason=reason,
        fails=own_verdict is False,
        verdict=VERDICTS.get(verdict) if isinstance(verdict, str) else None,
    )


def _parse_score(given: Json, asserted: list[tuple[str, bool]]) -> tuple[float, str | None]:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return clamp_score(given), None
    if asserted and given is None:
        return sum(passed for _, passed in asserted) / len(asserted), None
    return 0.0, NO_SCORE


def _iterate_texts(given: Json) -> Iterator[str]:
    for each in given if isinstance(given, list) else ():
        if isinstance(each, str) and each.strip():
            yield each


def _iterate_assertions(given: Json) -> Iterator[tuple[str, bool]]:
    for each in given if isinstance(given, list) else ():
        text = each.get("text") if isinstance(each, dict) else None
        if isinstance(text, str):
            yield text, bool(each.get("passed", each.get("pass")))


def _truncate_lines(lines: list[str]) -> tuple[str, ...]:
    return truncate.truncate_list(
        [truncate.characters(line, MAX_LINE_LENGTH) for line in lines], MAX_LINES
    )


MAX_SHOWN_LINES: Final = 10
NO_MODULE: Final = "No module named "
UV_HINT: Final = (
    "\nWithout uv, the packages that a script declares are not installed: install uv in an earlier"
    " step, or set `executor: docker` and an `image` that contains them."
)


class CodeJudge(Struct, frozen=True, kw_only=True):
    """A command that scores one case per run.

    Attributes:
        definition: see ``ComparableEvaluator``; empty if it is a part of another evaluator.
        run: how the command is run, without its stdin; a shell line is run by a shell.
        config: the input's ``config``; None if the entry has no keys of its own.
        wire: the payload format of the input.
        prefers_assertions, reads_verdict: see ``parse_finding``.
        required_judge: the judge model that the command may call; None if it calls none.
    """

    identity: EvaluatorIdentity
    run: RunCommand
    threshold: PassThreshold
    definition: Definition = {}
    config: JsonObject | None = None
    wire: PayloadFormat = "union"
    prefers_assertions: bool = False
    reads_verdict: bool = False
    required_judge: RequiredJudge | None = None

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The judge model and the variables; the command can be anything, and is not prepared."""
        judges = () if self.required_judge is None else (self.required_judge,)
        return (*judges, *find_required_variables(self.identity, self.run))

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the case as it is sent, and the contents of the files that it names."""
        agentv_case = get_agentv_case(expectation)
        files = (*agentv_case.guideline_files, *agentv_case.input_files)
        return [make_judge_payload(agentv_case, NO_RUN, None, self.wire), FileContents(*files)]

    def ask(self, case: Case) -> RunCommand:
        """Run the command on the case and its run."""
        agentv_case, transcript = get_recorded_run(case)
        command = self.make_command(
            make_judge_input(agentv_case, transcript, self.config, self.wire)
        )
        if transcript.tool_calls_recorded:
            return command
        return replace(command, unrecorded=(TOOL_CALLS,))

    def make_command(self, stdin: str) -> RunCommand:
        """Make the request that runs the command with ``stdin``."""
        return replace(self.run, stdin=stdin)

    def read(self, response: Response) -> Judgement:
        """Make a judgement from the printed score.

        Raises:
            EvaluatorError: the command failed or printed no result. AgentV scores this as 0, and as
                a pass since 4.0.
        """
        return make_agentv_judgement(self.read_finding(response), self.threshold)

    def read_finding(self, response: Response) -> Finding:
        """Parse the printed result; raises the same errors as ``read``."""
        if not isinstance(response, ProgramOutput):
            raise TypeError(f"expected the output of a command, got {type(response).__name__}")
        try:
            return self._read_finding(response)
        except EvaluatorError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}` {error}") from None

    def _read_finding(self, response: ProgramOutput) -> Finding:
        if response.exit_code != 0:
            ended = describe_exit(response, network=self.run.network, in_image=bool(self.run.image))
            raise EvaluatorError(f"{ended}{self._hint(response)}{self._format_printed(response)}")
        if not response.stdout.removeprefix(codecs.BOM_UTF8).strip():
            raise EvaluatorError(describe_missing_output(response, EXAMPLE_RESULT))
        try:
            return self._parse_printed(response)
        except EvaluatorError as error:
            raise EvaluatorError(f"printed an invalid result: {error}") from None

    def _parse_printed(self, response: ProgramOutput) -> Finding:
        return parse_finding(
            parse_output(response.stdout),
            size=len(response.stdout),
            prefers_assertions=self.prefers_assertions,
            reads_verdict=self.reads_verdict,
        )

    def _hint(self, response: ProgramOutput) -> str:
        """Explain how to provide packages that uv would have installed."""
        return UV_HINT if self.run.command[0] == "uv" and NO_MODULE in response.stderr else ""

    def _format_printed(self, response: ProgramOutput) -> str:
        """List the findings that a failed command printed; AgentV's templates put errors there."""
        try:
            found = self._parse_printed(response)
        except EvaluatorError:
            return ""
        texts = [*found.misses, *([found.reasoning] if found.reasoning else [])]
        lines = truncate.truncate_list(
            [f"\n- {each}" for each in dict.fromkeys(texts)], MAX_SHOWN_LINES
        )
        return f"\nPrinted result:{''.join(lines)}" if lines else ""


DEFAULT_TIMEOUT_SECONDS: Final = 120
# Model calls per case; AgentV's default.
MAX_CALLS: Final = 50
# Runs a command that is written as one line. AgentV starts a login shell, which would discard our
# PATH and read the machine's settings.
SHELL: Final = ("sh", "-c")

SIMPLE_COMMAND: Final = re.compile(
    r"\s*(?:(?:uv|bun|node|python3?)\s+[\w./-]+|[\w.-]*/[\w./-]+)(?:\s+[\w./-]+)*\s*"
)

CallCount: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Command: TypeAlias = Text | Annotated[list[Text], Field(min_length=1)]


class AccessSpec(StrictModel):
    """Access to a language model."""

    max_calls: CallCount = optional("Limit on model calls per case.", default=MAX_CALLS)


class CodeJudgeEntry(RepeatableEntry, AgentvEntry):
    """A command that reads a case and its run from stdin and writes a score to stdout."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra=leave_out_of_required("name", "script")
    )

    type: Literal["code_judge"] = Field(description="A command of your own that scores a run.")
    script: Command = Field(
        description="The command: a list of words, or one line for the shell. Alias: `command`."
    )
    cwd: Text | None = optional("Working directory; by default the folder of this file.")
    wire: PayloadFormat | None = optional(
        "Format of its input: of one generation of AgentV (`camel`, `snake`, `v4`), or "
        "of several combined (`snake+v4`, the default with `tests`, or all: `union`)."
    )
    timeout: Seconds = optional("Time limit in seconds.", default=DEFAULT_TIMEOUT_SECONDS)
    executor: Literal["local", "docker"] = optional(
        "Where it runs: on this machine or in a container.", default="local"
    )
    image: Image | None = optional(
        "Container image with the interpreter and the packages; required by "
        "`executor: docker`. The command's folder is copied into the container."
    )
    network: bool = optional("Whether it can use the network.", default=True)
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables to pass to it, besides the default ones.",
    )
    cache_dirs: list[VariableName] = Field(default=[], description=CACHE_DIRS)
    memory_mb: Count = optional(
        "Memory limit of each of its processes, in MiB.", default=DEFAULT_MEMORY_MB
    )
    processes: Count = optional(
        "Limit on processes at a time, including threads.", default=DEFAULT_PROCESSES
    )
    isolation: IsolationMode = optional(
        "How agentci starts a Python script: as a `fork` of a running interpreter, or "
        "as a new process (`spawn`), which is slower.",
        default="fork",
    )
    cache: Cached = False
    target: AccessSpec | bool | None = optional(
        "Whether it can call the judge model, with the URL and the token in "
        "`AGENTV_TARGET_PROXY_URL` and `AGENTV_TARGET_PROXY_TOKEN`."
    )
    judge: JudgeSpec | None = optional(
        "The model that it calls; by default the judge model of the file."
    )

    @model_validator(mode="after")
    def _check_cache_dirs(self) -> Self:
        check_cache_dirs(self.cache_dirs, executor=self.executor, cached=self.cache)
        return self

    @model_validator(mode="before")
    @classmethod
    def _rename_command(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if "command" in data and "script" in data:
            raise ValueError("`script` and `command` are the same field; keep one of them")
        if "command" not in data and "script" not in data:
            raise ValueError("code_judge needs `script`, such as [python3, judge.py]")
        return {"script" if key == "command" else key: value for key, value in data.items()}


def build_code_judge(entry: CodeJudgeEntry, context: AgentvContext) -> CodeJudge:
    """Make the evaluator; raises InputError if its folder or its judge model is missing."""
    _check_image(entry, context)
    required_judge = _make_target_judge(entry, context)
    command, folder = _split_command(entry.script), context.folder(entry.cwd)
    wire = entry.wire or context.wire
    return CodeJudge(
        identity=make_agentv_identity(entry, context),
        definition=define_agentv_entry(
            entry,
            context,
            script=define_command(command, folder=folder, home=context.home),
            wire=wire,
            version=context.version,
            judge=None if required_judge is None else define_judge(required_judge.judge),
        ),
        run=RunCommand(
            command=command,
            folder=folder,
            home=context.home,
            model_access=_make_model_access(entry, required_judge),
            timeout_seconds=entry.timeout,
            executor=entry.executor,
            network=entry.network,
            variables=tuple(entry.env),
            cache_dirs=tuple(entry.cache_dirs),
            memory_mb=entry.memory_mb,
            processes=entry.processes,
            isolation=entry.isolation,
            image=entry.image or "",
            cached=entry.cache,
        ),
        threshold=make_pass_threshold(entry, context),
        config=_extract_own_keys(entry, context),
        wire=wire,
        prefers_assertions=context.version == "v4",
        required_judge=required_judge,
    )


def _make_model_access(
    entry: CodeJudgeEntry, required_judge: RequiredJudge | None
) -> ModelAccess | None:
    if required_judge is None:
        return None
    spec = entry.target if isinstance(entry.target, AccessSpec) else AccessSpec()
    return ModelAccess(judge=required_judge.judge, max_calls=spec.max_calls)


def _make_target_judge(entry: CodeJudgeEntry, context: AgentvContext) -> RequiredJudge | None:
    """Return the judge model that answers the command's calls, or None without ``target``."""
    if not entry.target:
        if entry.judge is not None:
            raise InputError.from_message(
                "`judge` sets the model for `target`, but `target` is missing",
                place=context.find_place("judge"),
                hint="add `target: {}`, or rename `judge` if it is a setting of your own",
            )
        return None
    if entry.executor == DOCKER_EXECUTOR:
        raise InputError.from_message(
            f"`target` is not available with `executor: {DOCKER_EXECUTOR}`",
            place=context.find_place("target"),
            hint="remove `executor` and `image`; `network: false` limits the command to its model",
        )
    if entry.cache:
        raise InputError.from_message(
            "`cache: true` cannot be combined with `target`: the model may answer differently",
            place=context.find_place("cache"),
            hint="remove `cache`",
        )
    place = context.find_place("target" if entry.judge is None else "judge")
    return context.judges.require(entry.judge, name=entry.name, place=place)


def _check_image(entry: CodeJudgeEntry, context: AgentvContext) -> None:
    in_image = entry.executor == DOCKER_EXECUTOR
    if in_image and entry.image is None:
        raise InputError.from_message(
            f"`executor: {DOCKER_EXECUTOR}` needs an `image`",
            place=context.find_place("executor"),
            hint="add `image:`, such as `image: python:3.12-slim`",
        )
    if not in_image and entry.image is not None:
        raise InputError.from_message(
            f"`image` needs `executor: {DOCKER_EXECUTOR}`",
            place=context.find_place("image"),
            hint=f"add `executor: {DOCKER_EXECUTOR}`, or remove `image`",
        )


def _split_command(script: Command) -> tuple[str, ...]:
    """Split a command into words; a line goes to the shell unless it only runs a script.

    agentci may substitute the interpreter of such a script, or start the script as a fork, which is
    not possible through a shell.
    """
    if not isinstance(script, str):
        return tuple(script)
    return tuple(script.split()) if SIMPLE_COMMAND.fullmatch(script) else (*SHELL, script)


def _extract_own_keys(entry: CodeJudgeEntry, context: AgentvContext) -> JsonObject | None:
    """Return the author's own keys, which include those under ``config`` since AgentV 4."""
    own = dict(entry.model_extra or {})
    if context.version == "v4" and isinstance(own.get("config"), dict):
        own = {**own.pop("config"), **own}
    return own or None
