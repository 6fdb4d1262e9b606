"""All evaluations of one pytest session, their judges, and the report."""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct, field

from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_number
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import trust_path
from agentci.cli.publish import publish_report
from agentci.cli.session import allow_variables, make_session
from agentci.config.settings import parse_settings
from agentci.config.variables import ANY_NAME
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.match_eval_case import make_row_trace
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.judge_config import make_judge_settings
from agentci.evaluators.pytest_agent_evals import RESULT
from agentci.gate.decision import compute_totals, decide
from agentci.gate.rules import group_results_by_policy
from agentci.github.events import find_checked_out_commit, find_missing_secrets_reason
from agentci.model.case import Case, CaseSummary, DatasetRow
from agentci.model.gate import Gate, GatePolicy
from agentci.model.judges import RequiredJudge
from agentci.model.result import CheckResult, JudgeSpending, Report, sum_by_config
from agentci.model.trace import Turn
from agentci.model.values import Place, Problem, replace
from agentci.pytest.configs import (
    CheckEvaluatorConfig,
    CustomPromptEvaluatorConfig,
    EvaluatorConfig,
    EvaluatorResult,
    EvaluatorResults,
    ExplainedResult,
)
from agentci.pytest.evaluators import (
    TEST_EXCEPTIONS,
    InProcessEvaluator,
    call_agent,
    make_evaluator,
)
from agentci.reports.contents import StoredContents
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import read_report
from agentci.reports.run_content import make_case_summary
from agentci.reports.tool_calls import format_call
from agentci.runner.check import Check, run_check
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_inputs import load_dataset
from agentci.runner.plan import Plan, PlannedSuite
from agentci.runner.prepare import collect_spending, prepare_judges
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.services import Services

MAX_TEXT: Final = 2_000
MAX_REASON: Final = 300
NOT_RECORDED: Final = "not recorded"


def format_outcome_line(name: str, result: EvaluatorResult) -> str:
    """Format the verdict, score, threshold and reason of an evaluator on one line."""
    reason = "" if result.reason is None else f": {_line(result.reason, MAX_REASON)}"
    return f"{_format_verdict(name, result)}{reason}"


def describe_evaluation(row: DatasetRow, results: Mapping[str, EvaluatorResult]) -> str:
    """Describe a row, the agent's response and the results, one line each."""
    lines = [*_list_steps(row, row.turn)]
    for name, result in results.items():
        lines.append(_format_verdict(name, result))
        lines.append(f"  reason: {_line(result.reason or '') or 'none given'}")
    return "\n".join(lines)


def _format_verdict(name: str, result: EvaluatorResult) -> str:
    score, threshold = (_format_value(each) for each in (result.score, result.threshold))
    return f"evaluator {_line(name)}: {result.result}, score {score}, threshold {threshold}"


def _list_steps(row: DatasetRow, turn: Turn | None) -> Iterator[str]:
    yield f"question: {_line(row.query) or NOT_RECORDED}"
    if turn is None:
        return
    yield f"answer: {_line(turn.final_text or '') or NOT_RECORDED}"
    calls = ", ".join(format_call(each.name, each.args) for each in turn.tool_calls)
    none = "none" if turn.tool_calls_recorded else NOT_RECORDED
    yield f"tool calls: {_line(calls) or none}"


def _format_value(value: bool | float) -> str:  # noqa: FBT001 (a threshold may be either)
    return str(value).lower() if isinstance(value, bool) else format_number(value)


def _line(text: str, limit: int = MAX_TEXT) -> str:
    return truncate.short(escape_for_log_line(text), limit)


class SessionJudges:
    """Prepares judges when a check first needs them; equal settings share one budget.

    Args:
        missing_secrets_reason: why this run cannot have API keys; empty if it should have them.
    """

    def __init__(self, services: Services, *, missing_secrets_reason: str) -> None:
        self._services = services
        self._missing_secrets_reason = missing_secrets_reason
        self._prepared: dict[str, tuple[Plan, Services]] = {}

    def prepare_for(self, check: Check) -> Services:
        """The services with the judges of a check.

        Raises:
            InputError: a judge has invalid settings or a missing key.
        """
        needs = check.evaluator.needs
        key = "".join(need.judge.budget_id for need in needs if isinstance(need, RequiredJudge))
        if key not in self._prepared:
            self._prepared[key] = self._prepare(check)
        return self._prepared[key][1]

    def close(self) -> Iterator[Problem]:
        """Close the response cache; yields warnings about the judges and the cache."""
        for plan, _ in self._prepared.values():
            yield from plan.problems
        yield from close_response_cache(self._services.cached_responses)

    def spending(self) -> Iterator[JudgeSpending]:
        """The calls, tokens and costs of the judges, under the first test file that uses them."""
        for plan, services in self._prepared.values():
            for each in collect_spending(plan, services):
                yield replace(each, config=plan.gates[0].config)

    def _prepare(self, check: Check) -> tuple[Plan, Services]:
        settings = parse_settings((), {})
        gate = Gate(config=check.config, policy=GatePolicy(), evaluators=())
        plan = Plan(suites=(PlannedSuite(gate=gate, checks=(check,)),), problems=())
        plan, services = prepare_judges(
            plan, settings, self._services, missing_secrets_reason=self._missing_secrets_reason
        )
        if services.judges and self._services.cached_responses is None:
            cache, problems = open_response_cache(plan, settings, services)
            self._services = replace(self._services, cached_responses=cache)
            plan = replace(plan, problems=(*plan.problems, *problems))
        return plan, replace(services, cached_responses=self._services.cached_responses)


NO_RESPONSE_REASON: Final = (
    "the row has no `response`, and there is no fixture `agent` to generate one"
)


class RowTest(Struct, frozen=True, kw_only=True):
    """A test of one row.

    Attributes:
        file: absolute path of its file.
        line: line of the test in the file, from 1.
        name: unique in the file.
        model, judge: the judge of its prompts; see ``make_judge_settings``.
    """

    file: Path
    line: int
    name: str
    configs: tuple[EvaluatorConfig, ...]
    model: str = ""
    judge: Mapping[str, Any] = field(default_factory=dict)


class RowEvaluation(Struct, frozen=True, kw_only=True):
    """The results of a test's evaluators for a row, and a text about them."""

    results: EvaluatorResults
    description: str


class EvaluationSession:
    """Evaluates rows for tests, and collects the results for the report."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._out = io.StringIO()
        # The tests are code that sees the whole environment.
        session = allow_variables(make_session(environ), (ANY_NAME,))
        self._session = replace(session, out=self._out)
        self._services = self._session.services
        self._datasets: dict[Path, tuple[DatasetRow, ...]] = {}
        self._fingerprints = Fingerprints(self._services.workspace)
        self._session_judges = SessionJudges(
            self._services,
            missing_secrets_reason=find_missing_secrets_reason(self._session.workflow.context),
        )
        self._spending: list[JudgeSpending] = []
        self._agent_responses: dict[tuple[int, str], tuple[object, DatasetRow]] = {}
        self._results: dict[str, tuple[CheckResult, ...]] = {}
        self._worker_results: list[CheckResult] = []
        self._problems: dict[Problem, None] = {}

    def rows(self, path: Path) -> tuple[DatasetRow, ...]:
        """The rows of a dataset.

        Raises:
            InputError: with the errors of all rows.
        """
        if path not in self._datasets:
            dataset = load_dataset(trust_path(path), self._services.workspace, carries_runs=True)
            self._datasets[path] = dataset.rows
        return self._datasets[path]

    def evaluate(self, test: RowTest, row: DatasetRow, agent: object | None) -> RowEvaluation:
        """Evaluate a row with the evaluators of a test.

        Args:
            agent: generates the response; None if the row holds it.

        Raises:
            InputError: an evaluator has an invalid config.
            EvaluatorError: an evaluator failed.
            Exception: raised by the agent or a grader.
        """
        try:
            return self._evaluate(test, row, agent)
        except InputError as error:
            self._problems |= dict.fromkeys(error.problems)
            raise

    def export(self) -> str:
        """The results as JSON, for another process of the same run."""
        self._close()
        return "".join(JsonReport().render(self._report(complete=True)))

    def add(self, exported: str) -> None:
        """Add the results that another process exported."""
        report = read_report(
            exported.encode(),
            file="results of a worker",
            contents=self._services.run_contents,
        )
        self._worker_results += report.results
        self._spending += report.spending
        self._problems |= dict.fromkeys(report.problems)

    def publish(self, folder: str, *, complete: bool) -> str:
        """Write the reports if there are results; returns the summary.

        Args:
            folder: for the reports, relative to the working directory.
            complete: whether all tests were run.
        """
        self._close()
        report = self._report(complete=complete)
        if report.results or report.problems:
            publish_report(report, parse_settings((), {"output-dir": [folder]}), self._session)
        return self._out.getvalue()

    def _close(self) -> None:
        self._services.executors.stop()
        self._problems |= dict.fromkeys(self._session_judges.close())

    def _evaluate(self, test: RowTest, row: DatasetRow, agent: object | None) -> RowEvaluation:
        place = Place(file=self._services.workspace.display_path(test.file), line=test.line)
        _check_names(test.configs, place)
        judges = make_judge_settings(test.model, test.judge, name="judge_model", place=place)
        evaluators = [
            make_evaluator(
                each,
                folder=test.file.parent,
                place=place,
                judges=judges,
                variables=self._services.variables,
            )
            for each in test.configs
        ]
        raised: BaseException | None = None
        missing_reason = NO_RESPONSE_REASON
        try:
            row = row if agent is None else self._call_agent(row, agent)
        except TEST_EXCEPTIONS as error:  # reported as an error of each check, then raised again
            row, raised = replace(row, turn=None), error
            missing_reason = f"the agent failed: {type(error).__name__}: {error}"
        case = Case(
            id=test.name,
            trace=make_row_trace(row),
            dataset_row=row,
            missing_run_reason=None if row.turn else missing_reason,
        )
        summary = make_case_summary(case, self._services.run_contents)
        results = tuple(self._run_check(each, case, summary, place) for each in evaluators)
        self._results[f"{place.file}::{test.name}"] = results
        for evaluator, result in zip(evaluators, results, strict=True):
            if result.status == "errored":
                if isinstance(evaluator, InProcessEvaluator) and evaluator.raised:
                    raised = evaluator.raised[-1]
                raise raised or EvaluatorError(str(result.reason))
        pairs = zip(test.configs, results, strict=True)
        named = {each.name: _make_evaluator_result(result, each) for each, result in pairs}
        shown = self._services.variables.redactor.redact_value(row)
        return RowEvaluation(
            results=EvaluatorResults(named), description=describe_evaluation(shown, named)
        )

    def _call_agent(self, row: DatasetRow, agent: object) -> DatasetRow:
        """The row with the agent's response; each agent is called once per row."""
        key = (id(agent), f"{row.place}")
        if key not in self._agent_responses:
            # The agent is stored, too, so that its id stays unique.
            self._agent_responses[key] = (agent, call_agent(row, agent))
        return self._agent_responses[key][1]

    def _run_check(
        self, evaluator: ComparableEvaluator, case: Case, summary: CaseSummary, place: Place
    ) -> CheckResult:
        check = Check(
            config=place.file,
            evaluator=evaluator,
            case=summary,
            load=lambda: case,
            fingerprint=self._fingerprints.compute(evaluator, case.expectation),
        )
        result = run_check(check, self._session_judges.prepare_for(check))
        return self._services.variables.redactor.redact_value(result)

    def _report(self, *, complete: bool) -> Report:
        own = [result for each in self._results.values() for result in each]
        results = sorted([*own, *self._worker_results], key=_result_sort_key)
        gates = tuple(_make_gates(results))
        return Report(
            complete=complete,
            decision=decide(
                group_results_by_policy(gates, results),
                problems=tuple(self._problems),
                complete=complete,
                fail_on="failed",
            ),
            totals=compute_totals(results),
            results=tuple(results),
            problems=tuple(self._problems),
            gates=gates,
            spending=sum_by_config([*self._spending, *self._session_judges.spending()]),
            commit=find_checked_out_commit(
                self._services.workspace, self._session.workflow.context
            ),
            contents=StoredContents(
                chunks=self._services.run_contents,
                redact=self._services.variables.redactor.redact_value,
            ),
        )


def _check_names(configs: Sequence[EvaluatorConfig], place: Place) -> None:
    names = [each.name for each in configs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"a test has two evaluators named {quote_name(twice)}"
        hint = "give each evaluator a unique name; results are accessed by it"
        raise InputError.from_message(message, place=place, hint=hint)


def _result_sort_key(result: CheckResult) -> tuple[str, int, str, str]:
    """The order of results in the report: that of the tests in their files."""
    return result.config, result.evaluator.place.line, result.case.id, result.evaluator.name


def _make_gates(results: Sequence[CheckResult]) -> list[Gate]:
    """One gate per test file, which requires every check to pass."""
    names: dict[str, dict[str, None]] = {}
    for each in results:
        names.setdefault(each.config, {})[each.evaluator.name] = None
    return [
        Gate(config=file, policy=GatePolicy(), evaluators=tuple(found))
        for file, found in names.items()
    ]


def _make_evaluator_result(result: CheckResult, config: EvaluatorConfig) -> EvaluatorResult:
    judgement = result.judgement
    if judgement is None:
        raise TypeError(f"{result.id} has no judgement")
    judge_score = (
        judgement.details.get(RESULT) if isinstance(config, CustomPromptEvaluatorConfig) else None
    )
    verdict = ExplainedResult("pass" if judgement.passed else "fail")
    if isinstance(config, CheckEvaluatorConfig):
        reason, threshold = "; ".join(judgement.misses) or None, result.evaluator.threshold or 0.0
    else:
        reason, threshold = judgement.reasoning, config.threshold
    made = EvaluatorResult(
        result=cast("Literal['pass', 'fail']", verdict),
        score=judge_score if isinstance(judge_score, int | float) else judgement.score or 0.0,
        reason=reason,
        threshold=threshold,
    )
    verdict.explanation = format_outcome_line(config.name, made)
    return made
