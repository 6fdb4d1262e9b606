"""Evaluators in pytest: ``from agentci.pytest import evals``.

A pytest plugin with the interface of pytest-agent-evals, whose name tests may import, too. Modules
that are not needed to collect tests are imported by the tests that run evaluators.
"""

import os
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

from agentci.pytest.configs import (
    CheckEvaluatorConfig,
    CustomCodeEvaluatorConfig,
    CustomPromptEvaluatorConfig,
    EvaluatorConfig,
    EvaluatorResult,
    EvaluatorResults,
    ExplainedResult,
)

if TYPE_CHECKING:
    from agentci.model.case import DatasetRow
    from agentci.pytest.session import EvaluationSession

__all__ = [
    "CheckEvaluatorConfig",
    "CustomCodeEvaluatorConfig",
    "CustomPromptEvaluatorConfig",
    "EvaluatorResult",
    "EvaluatorResults",
    "evals",
]

RESULTS_FIXTURE: Final = "evaluator_results"
AGENT_FIXTURE: Final = "agent"
EVALUATOR, DATASET, JUDGE = "agentci_evaluator", "agentci_dataset", "agentci_judge_model"
MARKERS: Final = {
    EVALUATOR: "an evaluator that scores every row; set by evals.evaluator",
    DATASET: "the rows that are evaluated; set by evals.dataset",
    JUDGE: "the judge model of prompt evaluators; set by evals.judge_model",
}
REPORT_KEY: Final = "agentci_report"
SESSION_KEY: "Final[pytest.StashKey[EvaluationSession]]" = pytest.StashKey()
DESCRIPTION_KEY: Final[pytest.StashKey[str]] = pytest.StashKey()
SUMMARY_KEY: Final[pytest.StashKey[str]] = pytest.StashKey()


class evals:  # noqa: N801 (a name of pytest-agent-evals)
    """Decorators for tests, and for classes of tests."""

    @staticmethod
    def evaluator(config: EvaluatorConfig) -> pytest.MarkDecorator:
        """Evaluate every row of the dataset; the test gets the results in ``evaluator_results``."""
        if not isinstance(config, EvaluatorConfig):
            raise TypeError(
                "evals.evaluator takes a CustomCodeEvaluatorConfig, a CustomPromptEvaluatorConfig"
                f" or a CheckEvaluatorConfig, not {type(config).__name__}"
            )
        return getattr(pytest.mark, EVALUATOR).with_args(config)  # type: ignore[no-any-return]

    @staticmethod
    def dataset(path: str | Path) -> pytest.MarkDecorator:
        """Name the dataset, in JSON Lines; relative to the test file or to pytest's rootdir."""
        return getattr(pytest.mark, DATASET).with_args(str(path))  # type: ignore[no-any-return]

    @staticmethod
    def judge_model(model: str = "", **fields: object) -> pytest.MarkDecorator:
        """Name the judge model of prompt evaluators.

        Args:
            model: ``model`` or ``provider/model``.
            fields: other fields of ``judge`` in a config: ``provider``, ``base_url``, ...
        """
        return getattr(pytest.mark, JUDGE).with_args(model, **fields)  # type: ignore[no-any-return]


PACKAGE: Final = "pytest_agent_evals"


class PackageFinder:
    """Finds ``pytest_agent_evals`` in agentci if the package of that name is not installed.

    It is the last import finder: an installed package, or one in a folder of ``sys.path``, wins.
    """

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See ``importlib.abc.MetaPathFinder``."""
        del path, target
        if fullname != PACKAGE:
            return None
        return spec_from_file_location(fullname, Path(__file__).with_name(f"{PACKAGE}.py"))


def install_finder() -> None:
    """Make the package importable in this process, once."""
    if PackageFinder not in sys.meta_path:
        sys.meta_path.append(PackageFinder)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of the reports, and the package that tests may import.

    This is the only hook that is called before any `conftest.py` is imported.
    """
    install_finder()
    parser.getgroup("agentci").addoption(
        "--agentci-output-dir",
        metavar="DIR",
        default="agentci-results",
        help="Folder for the reports of evaluators (default: agentci-results).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and the fixture."""
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.pluginmanager.register(ResultsFixture(), "agentci_results_fixture")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each row of the dataset."""
    node = metafunc.definition
    if not _has_own_marker(node):
        return
    if RESULTS_FIXTURE not in metafunc.fixturenames:
        if any(mark.name == EVALUATOR for mark in node.own_markers):
            pytest.fail(
                f"{node.nodeid} has `@evals.evaluator(...)` but does not use the fixture"
                f" `{RESULTS_FIXTURE}`; add it, or no evaluator runs",
                pytrace=False,
            )
        return
    dataset = node.get_closest_marker(DATASET)
    if dataset is None or node.get_closest_marker(EVALUATOR) is None:
        missing = "@evals.dataset(...)" if dataset is None else "@evals.evaluator(...)"
        pytest.fail(
            f"{node.nodeid} uses the fixture `{RESULTS_FIXTURE}` but has no `{missing}`",
            pytrace=False,
        )
    rows = _read_rows(dataset.args[0], node.path, metafunc.config)
    metafunc.parametrize(RESULTS_FIXTURE, rows, ids=[row.id for row in rows], indirect=True)


class ResultsFixture:
    """The fixture of the results, as a plugin that is registered after those of other packages.

    So it overrides the fixture of pytest-agent-evals, and leaves that package's tests to it.
    """

    @pytest.fixture
    def evaluator_results(self, request: pytest.FixtureRequest) -> Any:
        """The results of a test's evaluators for a row."""
        __tracebackhide__ = True
        if _has_own_marker(request.node):
            return _evaluate(request)
        try:
            return request.getfixturevalue(RESULTS_FIXTURE)
        except pytest.FixtureLookupError as error:
            if error.argname != RESULTS_FIXTURE:
                raise
        pytest.fail(
            f"{request.node.nodeid} uses the fixture `{RESULTS_FIXTURE}` but has neither"
            " `@evals.dataset(...)` nor `@evals.evaluator(...)`",
            pytrace=False,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_assertrepr_compare(left: object, right: object) -> list[str] | None:
    """Explain a failed comparison of an evaluator's result."""
    verdicts = [each for each in (left, right) if isinstance(each, ExplainedResult)]
    return [each.explanation for each in verdicts] or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the question, the agent's response and the results to the report of a failed test."""
    report = yield
    if call.when == "call" and report.failed and DESCRIPTION_KEY in item.stash:
        report.sections.append(("evaluated row", item.stash[DESCRIPTION_KEY]))
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the reports; a worker of pytest-xdist passes its results on instead."""
    evaluation = session.config.stash.get(SESSION_KEY, None)
    if evaluation is None:
        return
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[REPORT_KEY] = evaluation.export()
        return
    complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    folder = session.config.getoption("--agentci-output-dir")
    stopped = session.shouldstop or session.shouldfail
    session.config.stash[SUMMARY_KEY] = evaluation.publish(
        folder, complete=complete and not stopped
    )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the results of a worker of pytest-xdist."""
    exported = getattr(node, "workeroutput", {}).get(REPORT_KEY)
    if exported is not None:
        _get_session(node.config).add(exported)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the summary of the evaluators."""
    summary = config.stash.get(SUMMARY_KEY, "")
    if summary:
        terminalreporter.section("agentci")
        terminalreporter.write(summary)


def _has_own_marker(node: pytest.Item) -> bool:
    return any(node.get_closest_marker(name) for name in (EVALUATOR, DATASET))


def _evaluate(request: pytest.FixtureRequest) -> EvaluatorResults:
    __tracebackhide__ = True
    from agentci.errors import AgentciError
    from agentci.pytest.session import RowTest

    node = request.node
    judge = node.get_closest_marker(JUDGE)
    test = RowTest(
        file=node.path,
        line=node.reportinfo()[1] + 1,
        name=node.nodeid.partition("::")[2],
        configs=tuple(each.args[0] for each in node.iter_markers(EVALUATOR))[::-1],
        model=judge.args[0] if judge else "",
        judge=judge.kwargs if judge else {},
    )
    agent = _find_agent(request)
    try:
        evaluation = _get_session(request.config).evaluate(test, request.param, agent)
    except AgentciError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    node.stash[DESCRIPTION_KEY] = evaluation.description
    return evaluation.results


def _get_session(config: pytest.Config) -> "EvaluationSession":
    from agentci.pytest.session import EvaluationSession

    if SESSION_KEY not in config.stash:
        config.stash[SESSION_KEY] = EvaluationSession(os.environ)
    return config.stash[SESSION_KEY]


def _read_rows(named: str, test: Path, config: pytest.Config) -> "tuple[DatasetRow, ...]":
    from agentci.errors import InputError

    path = next(
        (each for each in (test.parent / named, config.rootpath / named) if each.is_file()), None
    )
    if path is None:
        pytest.fail(
            f"dataset {named} not found, neither next to {test.name} nor in {config.rootpath}",
            pytrace=False,
        )
    try:
        return _get_session(config).rows(path)
    except InputError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _find_agent(request: pytest.FixtureRequest) -> object | None:
    """The value of the fixture `agent`; None if there is no such fixture."""
    try:
        found: object = request.getfixturevalue(AGENT_FIXTURE)
    except pytest.FixtureLookupError as error:
        if error.argname != AGENT_FIXTURE:
            raise
        return None
    return found
