"""``agentci evaluator run``: run one evaluator on one recorded run, and print everything."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import write_to_stream
from agentci._util.text import escape
from agentci._util.text.format import format_count, format_criterion, format_number
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import is_file, is_folder
from agentci.cli.session import Session
from agentci.config.settings import Settings, parse_settings
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.evaluators.agentevals.entries import DEFAULT_TIMEOUT_SECONDS
from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD
from agentci.evaluators.definition import Definition, Facts
from agentci.evaluators.fields import MAX_SECONDS
from agentci.execution.child_process.pipes import KEPT_LOG_BYTES
from agentci.gate.decision import compute_totals, decide
from agentci.model.case import Case, CaseSummary, Expectation
from agentci.model.gate import GatePolicy
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import COMMAND_LINE
from agentci.model.requests import Prerequisite, ProgramOutput, Response, RunProgram
from agentci.model.result import CheckResult, Decision, Totals
from agentci.reports.check_text import list_findings
from agentci.reports.report_format import format_problem, format_totals
from agentci.runner.check import run_check
from agentci.runner.load_configs import FileLocator, LoadedSuite
from agentci.runner.plan import Plan, plan_suites
from agentci.runner.prepare_programs import prepare_programs
from agentci.runner.services import Services

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

    def print_result(self, result: CheckResult) -> None:
        """Print the result of the check."""
        self._print_section(f"status: {result.status}", *_format_result(result))

    def print_decision(self, decision: Decision, totals: Totals) -> None:
        """Print the decision of a gate over only this evaluator."""
        word = "passed" if decision.passed else "failed"
        self._print_section(f"gate: {word}", *decision.reasons, format_totals(totals))

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


CONFIG_EXAMPLE: Final = '{"min_length": 5}'


class EvaluatorRunOptions(Struct, frozen=True, kw_only=True):
    """The evaluator to run, and on what.

    Attributes:
        path: of the program, as the user named it.
        settings: trace, eval set and threshold, as for ``agentci run``.
        config: the ``config`` that the program receives.
    """

    path: str
    settings: Settings
    config: JsonObject
    timeout_seconds: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "EvaluatorRunOptions":
        """Parse command line options by name, with ``_`` for hyphens.

        Raises:
            InputError: a value is invalid.
        """
        trace = options["trace"]
        if not trace.strip():
            raise InputError.from_message("--trace is empty", hint="name a trace file")
        values = {
            "traces": [trace],
            "eval-set": [options.get("eval_set", "")],
            "threshold": [options.get("threshold", "")],
        }
        return cls(
            path=options["path"],
            settings=parse_settings((), values),
            config=_parse_config(options.get("config", "{}")),
            timeout_seconds=_parse_seconds(options.get("timeout", str(DEFAULT_TIMEOUT_SECONDS))),
        )


def run_evaluator(options: EvaluatorRunOptions, session: Session) -> int:
    """Run the evaluator on every case of the trace file and print its input and output.

    Returns:
        The exit code of a gate over only this evaluator.

    Raises:
        InputError: the program, the trace or the eval set is invalid.
    """
    printer = EvaluatorRunPrinter(session)
    locator, code_evaluator = _find_evaluator(options, session.services)
    evaluator = PrintingEvaluator(evaluator=code_evaluator, printer=printer)
    loaded = LoadedSuite(suite=_make_suite(evaluator), locator=locator)
    plan, services = prepare_programs(
        plan_suites([loaded], options.settings, session.services),
        options.settings,
        session.services,
    )
    _print_problems(plan, options, session.services)
    results: list[CheckResult] = []
    for check in plan.checks:
        printer.print_case(check.case, position=len(results) + 1, total=len(plan.checks))
        evaluator.response = None
        result = run_check(check, services)
        printer.print_response(evaluator.response, seconds=result.seconds)
        printer.print_result(result)
        results.append(result)
    decision = decide(
        [(loaded.suite.gate, results)], problems=(), uncovered=0, complete=True, fail_on="failed"
    )
    printer.print_decision(decision, compute_totals(results))
    return decision.exit_code


class PrintingEvaluator(Struct, kw_only=True):
    """An evaluator that prints its request and keeps the response."""

    evaluator: CodeEvaluator
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

    def ask(self, case: Case) -> RunProgram:
        """See :class:`Evaluator`."""
        request = self.evaluator.ask(case)
        self.printer.print_stdin(request.stdin)
        return request

    def read(self, response: Response) -> Judgement:
        """See :class:`Evaluator`."""
        self.response = response
        return self.evaluator.read(response)


def _find_evaluator(
    options: EvaluatorRunOptions, services: Services
) -> tuple[FileLocator, CodeEvaluator]:
    """Make the evaluator as if a config in the program's folder named it."""
    path = services.workspace.cwd / options.path
    if not is_file(path):
        what = "is a folder" if is_folder(path) else "is not an existing file"
        hint = "name the program of an evaluator"
        raise InputError.from_message(f"{options.path} {what}", place=COMMAND_LINE, hint=hint)
    found = services.workspace.resolve_given(path, named=options.path, place=COMMAND_LINE)
    path = found.path
    locator = FileLocator(
        path.parent, services.workspace, sources=services.sources, executors=services.executors
    )
    if locator.matches(path.name, COMMAND_LINE)[:1] != (found,):
        message = f"{options.path} contains glob characters, which a config would expand"
        raise InputError.from_message(message, place=COMMAND_LINE, hint="rename it without * ? [ ]")
    requested = options.settings.threshold
    threshold = DEFAULT_THRESHOLD if requested is None else requested
    evaluator = CodeEvaluator(
        identity=EvaluatorIdentity(
            name=Path(options.path).stem,
            type="code",
            criterion=format_criterion(threshold),
            threshold=threshold,
            required=True,
            place=COMMAND_LINE,
        ),
        definition={},  # the result is not compared
        config=options.config,
        run=RunProgram(
            program=locator.find(path.name, COMMAND_LINE),
            stdin="",
            timeout_seconds=options.timeout_seconds,
        ),
        program_place=COMMAND_LINE,
    )
    return locator, evaluator


def _make_suite(evaluator: PrintingEvaluator) -> Suite:
    return Suite(
        file=COMMAND_LINE.file,
        evaluators=(evaluator,),
        gate=GatePolicy(),
        names=(evaluator.identity.name,),
    )


def _print_problems(plan: Plan, options: EvaluatorRunOptions, services: Services) -> None:
    """Print the warnings of a run, except those about eval cases without a trace.

    Raises:
        InputError: the trace is invalid.
    """
    errors = [each for each in plan.problems if each.severity == "error"]
    if errors:
        raise InputError(errors)
    path = options.settings.eval_set
    eval_set = (
        None if path is None else services.workspace.display_path(services.workspace.cwd / path)
    )
    for problem in plan.problems:
        if problem.place is None or problem.place.file != eval_set:
            write_to_stream(
                f"{escape.escape_for_log_line(format_problem(problem))}\n", services.err
            )


def _parse_config(text: str) -> JsonObject:
    hint = f"write a JSON object in shell quotes: '{CONFIG_EXAMPLE}'"
    try:
        value: Json = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError) as error:
        raise InputError.from_message(
            f"--config {quote_name(text)} is not valid JSON: {error}", hint=hint
        ) from None
    if not isinstance(value, dict):
        raise InputError.from_message(f"--config {quote_name(text)} is not an object", hint=hint)
    return value


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def _parse_seconds(text: str) -> int:
    try:
        seconds = int(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= MAX_SECONDS:
        expected = f"a whole number of seconds from 1 to {MAX_SECONDS:,}"
        raise InputError.from_message(f"--timeout must be {expected}, found {quote_name(text)}")
    return seconds
