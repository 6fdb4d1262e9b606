"""``agentci evaluator run``: run one evaluator on one recorded run, and print everything."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.files import write_to_stream
from agentci._util.text import escape
from agentci._util.text.format import format_count, format_number, parse_seconds
from agentci._util.text.json_text import describe_json_error
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import ResolvedPath, is_file, is_folder
from agentci.cli.session import Session
from agentci.config.settings import Settings, parse_settings
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.evaluators.agentevals.code import DEFAULT_TIMEOUT_SECONDS, CodeEntry, build_code
from agentci.evaluators.evaluator import ComparableEvaluator, Definition, Facts
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.fields import MAX_SECONDS
from agentci.evaluators.judge_config import JudgeSettings, MissingJudgeError, make_judge_settings
from agentci.evaluators.metrics import DEFAULT_THRESHOLD
from agentci.evaluators.pytest_agent_evals import (
    GRADER_SECONDS,
    GraderEntry,
    PromptEntry,
    build_grader,
    build_prompt,
)
from agentci.execution.pipes import KEPT_LOG_BYTES
from agentci.gate.decision import compute_totals, decide
from agentci.github.events import find_missing_secrets_reason
from agentci.model.case import Case, CaseSummary, Expectation
from agentci.model.gate import GatePolicy
from agentci.model.judges import AggregateVerdict, AskModel, JudgePrompt
from agentci.model.requests import (
    Compose,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Request,
    Response,
    RunProgram,
    Task,
)
from agentci.model.result import CheckResult, Decision, Totals
from agentci.model.values import COMMAND_LINE, Json, JsonObject, replace
from agentci.reports.check_text import list_findings
from agentci.reports.groups_and_totals import format_problem, format_totals
from agentci.runner.check import run_check
from agentci.runner.plan import Plan, plan_suites
from agentci.runner.prepare import prepare_judges, prepare_programs
from agentci.runner.services import Services
from agentci.runner.suite_files import FileLocator, LoadedSuite, find_given_eval_sets, make_locator

CONFIG_EXAMPLE: Final = '{"min_length": 5}'
JUDGE_EXAMPLE: Final = '{"provider": "openai", "model": "gpt-6-luna"}'

EvaluatorKind: TypeAlias = Literal["code", "grader", "prompt"]
PROMPT_SUFFIXES: Final = (".md", ".txt", ".j2", ".jinja", ".jinja2", ".prompt")
# The options that only some kinds have.
_KINDS: Final[Mapping[str, tuple[EvaluatorKind, ...]]] = {
    "config": ("code",),
    "timeout": ("code", "grader"),
    "judge": ("prompt",),
    "judge_model": ("prompt",),
}
_NOUNS: Final[Mapping[EvaluatorKind, str]] = {
    "code": "a program",
    "grader": "a grader",
    "prompt": "a prompt",
}


class EvaluatorRunOptions(Struct, frozen=True, kw_only=True):
    """The evaluator to run, and on what.

    Attributes:
        path: of the file, as the user named it.
        function: name of the grader in the file; empty for other kinds.
        settings: trace, eval set and threshold, as for ``agentci run``.
        dataset: path of the dataset; None for none.
        config: the ``config`` that the program receives.
        timeout_seconds: None for the default of the kind.
        passing: the threshold of a prompt.
        judge, judge_model: the judge of a prompt, as in a config.
    """

    path: str
    function: str
    kind: EvaluatorKind
    settings: Settings
    dataset: str | None
    config: JsonObject
    timeout_seconds: int | None
    passing: bool | float
    judge: JsonObject
    judge_model: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "EvaluatorRunOptions":
        """Parse command line options by name, with ``_`` for hyphens.

        Raises:
            InputError: a value is invalid.
        """
        path, function, kind = _parse_path(options["path"])
        for name, kinds in _KINDS.items():
            if name in options and kind not in kinds:
                option = f"--{name.replace('_', '-')}"
                raise InputError.from_message(f"{option} has no effect on {_NOUNS[kind]}")
        traces, dataset = _parse_inputs(options)
        threshold = options.get("threshold", "")
        values = {
            "traces": traces,
            "eval-set": [options.get("eval_set", "")],
            "threshold": ["" if kind == "prompt" else threshold],
        }
        timeout = options.get("timeout")
        return cls(
            path=path,
            function=function,
            kind=kind,
            settings=parse_settings((), values),
            dataset=dataset,
            config=_parse_object("config", options.get("config", "{}"), CONFIG_EXAMPLE),
            timeout_seconds=None if timeout is None else _parse_seconds(timeout),
            passing=_parse_passing(threshold) if kind == "prompt" else 0.0,
            judge=_parse_object("judge", options.get("judge", "{}"), JUDGE_EXAMPLE),
            judge_model=options.get("judge_model", ""),
        )


def _parse_path(named: str) -> tuple[str, str, EvaluatorKind]:
    """Split ``FILE.py:FUNCTION``, and find the kind by the file's name."""
    path, colon, function = named.rpartition(":")
    if colon and path.endswith(".py") and function.isidentifier():
        return path, function, "grader"
    return named, "", "prompt" if named.endswith(PROMPT_SUFFIXES) else "code"


def _parse_inputs(options: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The traces and the dataset.

    Raises:
        InputError: one is empty, or both are missing.
    """
    for name in ("trace", "dataset"):
        if not options.get(name, "given").strip():
            raise InputError.from_message(f"--{name} is empty", hint=f"name a {name} file")
    if not options.keys() & {"trace", "dataset"}:
        raise InputError.from_message("--trace and --dataset are missing", hint="pass one of them")
    return [options.get("trace", "")], options.get("dataset")


def _parse_object(name: str, text: str, example: str) -> JsonObject:
    hint = f"write a JSON object in shell quotes: '{example}'"
    try:
        value: Json = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError) as error:
        raise InputError.from_message(
            f"--{name} {quote_name(text)} is not valid JSON: {describe_json_error(error)}",
            hint=hint,
        ) from None
    if not isinstance(value, dict):
        raise InputError.from_message(f"--{name} {quote_name(text)} is not an object", hint=hint)
    return value


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def _parse_passing(text: str) -> bool | float:
    """Parse the threshold of a prompt; a whole number stays one, since its scale differs."""
    try:
        value: Json = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, int | float):
        found = f"found {quote_name(text)}" if text else "and is required"
        raise InputError.from_message(
            f"--threshold of a prompt is a number, `true` or `false`, {found}"
        )
    return value


def _parse_seconds(text: str) -> int:
    seconds = parse_seconds(text) or 0.0
    if not (1 <= seconds <= MAX_SECONDS and seconds.is_integer()):
        expected = f"whole seconds from 1 to {MAX_SECONDS:,}, such as `30s`, `5m` or `120`"
        raise InputError.from_message(f"--timeout must be {expected}, found {quote_name(text)}")
    return int(seconds)


def build_target(
    options: EvaluatorRunOptions, services: Services
) -> tuple[FileLocator, ComparableEvaluator]:
    """Build the evaluator as if a config in its file's folder named it.

    Raises:
        InputError: its file or its judge is missing or cannot be used.
    """
    hint = "name the program of an evaluator, FILE.py:FUNCTION, or the file of a prompt"
    locator, found = locate_given(options.path, services, hint=hint)
    try:
        return locator, _build_from_entry(options, found, locator, services)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False)
        raise InputError.from_message(
            f"{options.path}: {first['msg']}", place=COMMAND_LINE
        ) from None


def locate_given(named: str, services: Services, *, hint: str) -> tuple[FileLocator, ResolvedPath]:
    """Locate a file of the command line, which may be outside the workspace.

    Returns:
        The locator of a config in the file's folder, and the file.

    Raises:
        InputError: it does not exist, or such a config could not name it.
    """
    path = services.workspace.cwd / named
    if not is_file(path):
        what = "is a folder" if is_folder(path) else "is not an existing file"
        raise InputError.from_message(f"{named} {what}", place=COMMAND_LINE, hint=hint)
    found = services.workspace.resolve_given(path, named=named, place=COMMAND_LINE)
    locator = make_locator(found.path.parent, services)
    if locator.matches(found.path.name, COMMAND_LINE)[:1] != (found,):
        message = f"{named} contains glob characters, which a config would expand"
        raise InputError.from_message(message, place=COMMAND_LINE, hint="rename it without * ? [ ]")
    return locator, found


def _find_threshold(options: EvaluatorRunOptions) -> float:
    requested = options.settings.threshold
    return DEFAULT_THRESHOLD if requested is None else requested


def _build_from_entry(
    options: EvaluatorRunOptions, found: ResolvedPath, locator: FileLocator, services: Services
) -> ComparableEvaluator:
    """Build the evaluator from the entry that a config would have."""
    judges = make_judge_settings(
        options.judge_model,
        options.judge,
        name="--judge",
        place=COMMAND_LINE,
        folder=str(services.workspace.cwd),
    )
    context = _make_context(locator, judges)
    name, timeout = Path(options.path).stem, options.timeout_seconds
    cache_dirs = [*services.evaluator_caches]
    if options.kind == "code":
        fields = {
            "name": name,
            "type": "code",
            "path": found.path.name,
            "threshold": _find_threshold(options),
            "timeout": DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout,
            "config": options.config,
            "cache_dirs": cache_dirs,
        }
        return build_code(CodeEntry.model_validate(fields), context)
    if options.kind == "grader":
        grader = GraderEntry(
            name=options.function,
            type="grader",
            grader=f"{found.path.name}:{options.function}",
            threshold=_find_threshold(options),
            timeout=GRADER_SECONDS if timeout is None else timeout,
            cache_dirs=cache_dirs,
        )
        return build_grader(grader, context)
    prompt = PromptEntry(
        name=name,
        type="prompt",
        prompt=found.path.name,
        threshold=options.passing,
    )
    try:
        return build_prompt(prompt, context)
    except MissingJudgeError:
        raise InputError.from_message(
            "a prompt needs a judge model",
            place=COMMAND_LINE,
            hint="pass --judge-model PROVIDER/MODEL, or --judge JSON",
        ) from None


def _make_context(locator: FileLocator, judges: JudgeSettings) -> EvaluatorContext:
    return EvaluatorContext(
        place=COMMAND_LINE,
        find_place=lambda _: COMMAND_LINE,
        locate=lambda named, field="path": locator.find(named, COMMAND_LINE),  # noqa: ARG005 (one place)
        read=lambda named, _: locator.read(named, COMMAND_LINE),
        complete=lambda program: locator.complete(program, lambda _: COMMAND_LINE),
        judges=judges,
        turn_mismatch_fails=True,
    )


ESCAPED_NOTE: Final = "; control characters are escaped"
TRUNCATED_NOTE: Final = "; only the end is shown"


class EvaluatorRunPrinter:
    """Writes to the session's ``out`` without buffering.

    Input and output of programs are written byte for byte if they are UTF-8. On a terminal and in
    a workflow's log control sequences and workflow commands are escaped.
    """

    def __init__(self, session: Session) -> None:
        self._out = session.out
        self._in_workflow = session.workflow.context.active
        self._needs_escaping = session.workflow.context.active or session.out.isatty()

    def print_case(self, case: CaseSummary, *, position: int, total: int) -> None:
        """Print which case is evaluated."""
        none = f"none ({case.unmatched_reason})"
        eval_case = none if case.eval_case_id is None else case.eval_case_id
        self._print_section(
            f"case {case.id} ({position} of {total})",
            f"trace file: {case.recording.file}",
            f"eval case: {eval_case}",
            *(f"warning: {each}" for each in case.warnings),
        )

    def print_stdin(self, document: str) -> None:
        """Print the program's input before it runs."""
        self._print_stream("stdin", document.encode("utf-8"))

    def print_response(self, response: Response | None, *, seconds: float) -> None:
        """Print the program's output; ``response`` is None if it did not exit by itself."""
        after = f"after {format_number(seconds)} seconds"
        if not isinstance(response, ProgramOutput):
            self._print_section(f"no exit code {after}: the program did not exit by itself")
            return
        self._print_stream("stdout", response.stdout)
        stderr = response.stderr.encode("utf-8")
        is_truncated = len(stderr) >= KEPT_LOG_BYTES
        self._print_stream("stderr", stderr, TRUNCATED_NOTE if is_truncated else "")
        self._print_section(f"exit code {response.exit_code} {after}")

    def print_prompt(self, prompt: JudgePrompt) -> None:
        """Print the prompt before a model is asked."""
        if prompt.system:
            self._print_stream("system prompt", prompt.system.encode("utf-8"))
        self._print_stream("prompt", prompt.user.encode("utf-8"))

    def print_model_responses(self, response: Response | None) -> None:
        """Print what a model responded; nothing if it gave no verdict."""
        if isinstance(response, AggregateVerdict):
            for each in response.responses:
                self._print_stream("response", each.text.encode("utf-8"))

    def print_result(self, result: CheckResult) -> None:
        """Print the result of the check."""
        self._print_section(f"status: {result.status}", *_format_result(result))

    def print_decision(self, decision: Decision, totals: Totals) -> None:
        """Print the decision of a gate over only this evaluator."""
        word = "passed" if decision.passed else "failed"
        self._print_section(
            f"gate: {word}", *decision.reasons, *decision.notes, format_totals(totals)
        )

    def _print_section(self, title: str, *lines: str) -> None:
        body = "".join(f"{escape.escape_for_log(line)}\n" for line in lines)
        self._write(f"=== {escape.escape_for_log_line(title)} ===\n{body}\n")

    def _print_stream(self, stream: str, content: bytes, note: str = "") -> None:
        """Print all of ``content``, ending with a newline."""
        text = content.decode("utf-8", "backslashreplace")
        shown = self._escape(text)
        changed = ESCAPED_NOTE if shown.encode("utf-8") != content else ""
        end = "" if not shown or shown.endswith("\n") else "\n"
        title = f"=== {stream}: {format_count(len(content), 'byte')}{note}{changed} ==="
        self._write(f"{title}\n{shown}{end}\n")

    def _escape(self, text: str) -> str:
        if not self._needs_escaping:
            return text
        visible = _NOT_PRINTABLE_ASCII.sub(_escape_character, text)
        return escape.neutralize_commands(visible) if self._in_workflow else visible

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


# Other characters are escaped one by one if they are not printable.
_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^\n\t -~]")


def _escape_character(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else ascii(character)[1:-1]


def _format_result(result: CheckResult) -> Iterator[str]:
    judgement = result.judgement
    if judgement is not None:
        yield f"score: {judgement.score}"
    yield f"criterion: {result.evaluator.criterion}"
    if result.reason is not None:
        yield f"reason: {result.reason}"
    yield from map(escape.flatten_line, list_findings(result))


def run_evaluator(options: EvaluatorRunOptions, session: Session) -> int:
    """Run the evaluator on every case and print its input and output.

    Returns:
        The exit code of a gate over only this evaluator.

    Raises:
        InputError: the evaluator, the trace, the dataset or the eval set is invalid.
    """
    printer = EvaluatorRunPrinter(session)
    locator, target = build_target(options, session.services)
    evaluator = PrintingEvaluator(evaluator=target, printer=printer)
    loaded = _load_suite(evaluator, options, locator, session.services)
    plan, services = prepare_programs(
        plan_suites([loaded], options.settings, session.services),
        options.settings,
        session.services,
    )
    plan, services = prepare_judges(
        plan,
        options.settings,
        services,
        missing_secrets_reason=find_missing_secrets_reason(session.workflow.context),
    )
    _print_problems(plan, options, session.services)
    results: list[CheckResult] = []
    for check in plan.checks:
        printer.print_case(check.case, position=len(results) + 1, total=len(plan.checks))
        evaluator.response = None
        result = run_check(check, services)
        if options.kind == "prompt":
            printer.print_model_responses(evaluator.response)
        else:
            printer.print_response(evaluator.response, seconds=result.seconds)
        printer.print_result(result)
        results.append(result)
    decision = decide([(loaded.suite.gate, results)], problems=(), complete=True, fail_on="failed")
    printer.print_decision(decision, compute_totals(results))
    return decision.exit_code


class PrintingEvaluator(Struct, kw_only=True):
    """An evaluator that prints its request and keeps the response."""

    evaluator: ComparableEvaluator
    printer: EvaluatorRunPrinter
    response: Response | None = None

    @property
    def identity(self) -> EvaluatorIdentity:
        """See :class:`Evaluator`."""
        return self.evaluator.identity

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """See :class:`Evaluator`."""
        return self.evaluator.needs

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        return self.evaluator.definition

    def read_expectation(self, expectation: Expectation) -> Facts:
        """See :class:`Evaluator`."""
        return self.evaluator.read_expectation(expectation)

    def ask(self, case: Case) -> Request:
        """See :class:`Evaluator`."""
        request = self.evaluator.ask(case)
        if isinstance(request, RunProgram):
            self.printer.print_stdin(request.stdin)
        if isinstance(request, Compose):
            return replace(request, then=partial(self._print_next, request))
        return request

    def _print_next(self, request: Compose, responses: tuple[Response, ...]) -> Task:
        task = request.then(responses)
        if isinstance(task, AskModel):
            self.printer.print_prompt(task.prompt)
        return task

    def read(self, response: Response) -> Judgement:
        """See :class:`Evaluator`."""
        self.response = response
        return self.evaluator.read(response)


def _load_suite(
    evaluator: PrintingEvaluator,
    options: EvaluatorRunOptions,
    locator: FileLocator,
    services: Services,
) -> LoadedSuite:
    """The evaluator as if a config in the dataset's folder named both.

    Raises:
        InputError: the dataset does not exist.
    """
    inputs, dataset = make_locator(services.workspace.cwd, services), None
    if options.dataset is not None:
        inputs, found = locate_given(options.dataset, services, hint="name a file in JSON Lines")
        dataset = found.path.name
    suite = Suite(
        file=COMMAND_LINE.file,
        evaluators=(evaluator,),
        gate=GatePolicy(),
        names=(evaluator.identity.name,),
        dataset=dataset,
        places={"dataset": COMMAND_LINE},
        notices=tuple(locator.notices),
    )
    return LoadedSuite(suite=suite, locator=inputs)


def _print_problems(plan: Plan, options: EvaluatorRunOptions, services: Services) -> None:
    """Print the warnings of a run, except those about eval cases without a trace.

    Raises:
        InputError: the trace is invalid.
    """
    errors = [each for each in plan.problems if each.severity == "error"]
    if errors:
        raise InputError(errors)
    workspace = services.workspace
    eval_sets = {
        workspace.display_path(each.path.path)
        for each in find_given_eval_sets(options.settings.eval_sets, workspace)
    }
    for problem in plan.problems:
        if problem.place is None or problem.place.file not in eval_sets:
            write_to_stream(
                f"{escape.escape_for_log_line(format_problem(problem))}\n", services.err
            )
