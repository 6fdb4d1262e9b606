"""All evaluations of one pytest session, and the report over them."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from agentci._util.text.suggest import quoted
from agentci.cli.process import world_of
from agentci.cli.publish import publish
from agentci.config.settings import settings_of
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.pytest_agent_evals.match_row import run_of
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import RESULT
from agentci.gate.decision import decide, judged_by, totals
from agentci.github.checkout import commit_at
from agentci.model.case import Case
from agentci.model.dataset import Row
from agentci.model.place import Place
from agentci.model.policy import Gate, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import Report, Result
from agentci.model.spending import Spending, by_config
from agentci.model.values import replace
from agentci.pytest.answers import RAISED, answered
from agentci.pytest.configs import (
    CustomPromptEvaluatorConfig,
    EvaluatorConfig,
    EvaluatorResult,
    EvaluatorResults,
)
from agentci.pytest.evaluators import FunctionGrader, evaluator_of, judges_of
from agentci.pytest.judges import Seats
from agentci.reports.case_summary import synopsis_of
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import read_report
from agentci.runner.check import Check, judge
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_datasets import dataset_in

NO_RESPONSE: Final = "the row has no `response`, and there is no fixture `agent` to ask for one"


class Test(Struct, frozen=True, kw_only=True):
    """A test over one row.

    Attributes:
        file: absolute path of its file.
        line: where it stands there.
        name: its own, in its file.
        model, judge: who judges its prompts; see ``judges_of``.
    """

    file: Path
    line: int
    name: str
    configs: tuple[EvaluatorConfig, ...]
    model: str = ""
    judge: Mapping[str, Any] = field(default_factory=dict)


class Session:
    """Judges rows for tests, and keeps what came of it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._out = io.StringIO()
        self._world = replace(world_of(environ), out=self._out)
        self._datasets: dict[Path, tuple[Row, ...]] = {}
        self._prints = Fingerprints(self._world.workspace)
        self._seats = Seats(self._world)
        self._spending: list[Spending] = []
        self._asked: dict[tuple[int, str], tuple[object, Row]] = {}
        self._results: dict[str, tuple[Result, ...]] = {}
        self._others: list[Result] = []
        self._problems: dict[Problem, None] = {}

    def rows(self, path: Path) -> tuple[Row, ...]:
        """The rows of a dataset.

        Raises:
            InputError: with every row that is wrong.
        """
        if path not in self._datasets:
            workspace = self._world.workspace
            self._datasets[path] = dataset_in(path, workspace, carries_runs=True).rows
        return self._datasets[path]

    def evaluate(self, test: Test, row: Row, agent: object | None) -> EvaluatorResults:
        """Judge a row by the evaluators of a test.

        Args:
            agent: what answers the row; None where the row does itself.

        Raises:
            InputError: an evaluator cannot be made.
            EvaluatorError: one of them could not judge.
            Exception: what the agent or a grader raised.
        """
        try:
            return self._evaluate(test, row, agent)
        except InputError as error:
            self._problems |= dict.fromkeys(error.problems)
            raise

    def export(self) -> str:
        """The results as text, for another process of the same run."""
        self._close()
        return "".join(JsonReport().render(self._report(complete=True)))

    def add(self, exported: str) -> None:
        """Take over what another process exported."""
        report = read_report(exported.encode(), file="of a worker")
        self._others += report.results
        self._spending += report.spending
        self._problems |= dict.fromkeys(report.problems)

    def publish(self, folder: str, *, complete: bool) -> str:
        """Write the reports, where anything was judged; what there is to say about them.

        Args:
            folder: for reports, from the working directory.
            complete: all tests were run.
        """
        self._close()
        report = self._report(complete=complete)
        if report.results or report.problems:
            publish(report, settings_of((), {"output-dir": [folder]}), self._world)
        return self._out.getvalue()

    def _close(self) -> None:
        self._world.executors.stop()
        self._problems |= dict.fromkeys(self._seats.close())

    def _evaluate(self, test: Test, row: Row, agent: object | None) -> EvaluatorResults:
        place = Place(file=self._world.workspace.name_of(test.file), line=test.line)
        _check_names(test.configs, place)
        judges = judges_of(test.model, test.judge, place=place)
        evaluators = [
            evaluator_of(each, folder=test.file.parent, place=place, judges=judges)
            for each in test.configs
        ]
        raised: BaseException | None = None
        why = NO_RESPONSE
        try:
            row = row if agent is None else self._answered(row, agent)
        except RAISED as error:  # told in the report, and raised again
            row, raised = replace(row, turn=None), error
            why = f"the agent did not answer: {type(error).__name__}: {error}"
        case = Case(
            id=test.name,
            trace=run_of(row),
            row=row,
            no_run_because=None if row.turn else why,
        )
        results = tuple(self._judged(each, case, place) for each in evaluators)
        self._results[f"{place.file}::{test.name}"] = results
        for evaluator, result in zip(evaluators, results, strict=True):
            if result.status == "errored":
                if isinstance(evaluator, FunctionGrader) and evaluator.raised:
                    raised = evaluator.raised[-1]
                raise raised or EvaluatorError(str(result.reason))
        pairs = zip(test.configs, results, strict=True)
        return EvaluatorResults({each.name: _told(result, each) for each, result in pairs})

    def _answered(self, row: Row, agent: object) -> Row:
        """The row with its answer: each agent is asked once for each row, as long as it is one."""
        key = (id(agent), f"{row.place}")
        if key not in self._asked:
            self._asked[key] = (agent, answered(row, agent))  # kept, so that no other has its id
        return self._asked[key][1]

    def _judged(self, evaluator: Evaluator, case: Case, place: Place) -> Result:
        check = Check(
            config=place.file,
            evaluator=evaluator,
            case=synopsis_of(case),
            load=lambda: case,
            fingerprint=self._prints.of(evaluator, None if case.row is None else case.row.asked),
        )
        return judge(check, self._seats.world_for(check))

    def _report(self, *, complete: bool) -> Report:
        own = [result for each in self._results.values() for result in each]
        results = sorted([*own, *self._others], key=_position)
        gates = tuple(_gates(results))
        return Report(
            complete=complete,
            decision=decide(
                judged_by(gates, results),
                problems=tuple(self._problems),
                uncovered=0,
                complete=complete,
                fail_on="failed",
            ),
            totals=totals(results),
            results=tuple(results),
            problems=tuple(self._problems),
            gates=gates,
            spending=by_config([*self._spending, *self._seats.spending()]),
            commit=commit_at(self._world.workspace, self._world.github),
        )


def _check_names(configs: Sequence[EvaluatorConfig], place: Place) -> None:
    names = [each.name for each in configs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"two evaluators of a test are called {quoted(twice)}"
        hint = "every evaluator needs a name of its own: results are found under it"
        raise InputError.of(message, place=place, hint=hint)


def _position(result: Result) -> tuple[str, int, str, str]:
    """Where a result stands: the order of tests, whatever the order in which they were run."""
    return (
        result.config,
        result.evaluator.place.line,
        result.case.id,
        result.evaluator.name,
    )


def _gates(results: Sequence[Result]) -> list[Gate]:
    """A gate over each test file, which wants every check to pass."""
    names: dict[str, dict[str, None]] = {}
    for each in results:
        names.setdefault(each.config, {})[each.evaluator.name] = None
    return [
        Gate(config=file, policy=GatePolicy(), evaluators=tuple(found))
        for file, found in names.items()
    ]


def _told(result: Result, config: EvaluatorConfig) -> EvaluatorResult:
    judgement = result.judgement
    if judgement is None:
        raise TypeError(f"{result.id} was not judged")
    said = (
        judgement.details.get(RESULT) if isinstance(config, CustomPromptEvaluatorConfig) else None
    )
    return EvaluatorResult(
        result="pass" if judgement.passed else "fail",
        score=said if isinstance(said, int | float) else judgement.score or 0.0,
        reason=judgement.reasoning,
        threshold=config.threshold,
    )
