"""``agentci evaluator run``: run one evaluator on one recorded run, and print everything."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from agentci._util.files import write_to_stream
from agentci._util.text import escape
from agentci._util.text.format import format_count, format_number
from agentci.cli.commands.evaluator.run_options import EvaluatorRunOptions
from agentci.cli.commands.evaluator.run_target import build_target, locate_given
from agentci.cli.session import Session
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.evaluators.definition import Definition, Facts
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.execution.pipes import KEPT_LOG_BYTES
from agentci.gate.decision import compute_totals, decide
from agentci.github.events import find_missing_secrets_reason
from agentci.model.case import Case, CaseSummary, Expectation
from agentci.model.gate import GatePolicy
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.judges import AggregateVerdict, AskModel, JudgePrompt
from agentci.model.problem import COMMAND_LINE
from agentci.model.requests import (
    Compose,
    Prerequisite,
    ProgramOutput,
    Request,
    Response,
    RunProgram,
    Task,
)
from agentci.model.result import CheckResult, Decision, Totals
from agentci.model.values import replace
from agentci.reports.check_text import list_findings
from agentci.reports.report_format import format_problem, format_totals
from agentci.runner.check import run_check
from agentci.runner.load_configs import (
    FileLocator,
    LoadedSuite,
    find_given_eval_sets,
    make_locator,
)
from agentci.runner.plan import Plan, plan_suites
from agentci.runner.prepare_judges import prepare_judges
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
    decision = decide(
        [(loaded.suite.gate, results)], problems=(), uncovered=0, complete=True, fail_on="failed"
    )
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
