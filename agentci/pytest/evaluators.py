"""Build the evaluators that tests configure, and call the agent under test."""

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeGuard

import pytest
from msgspec import Struct, field

from agentci._util.text.format import format_criterion
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.python_code import find_read_keys
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import decode_utf8, is_file, read_file, trust_path
from agentci.config.check_entries import build_check_evaluator, read_check_entry
from agentci.config.checks import CHECKS_KEY, find_check_item_problems, list_check_items
from agentci.config.validate import read_part
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.checks.entries import CheckEntry
from agentci.evaluators.evaluator import (
    ComparableEvaluator,
    Definition,
    Facts,
    FileContents,
    check_reads_recorded,
    extract_judgement,
    list_unrecorded,
)
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.grader_protocol import (
    ITEM_POSITION,
    make_grade_arguments,
    parse_grade,
    read_item_columns,
)
from agentci.evaluators.judge_config import JudgeSettings, MissingJudgeError
from agentci.evaluators.prompt_template import check_prompt_template
from agentci.evaluators.pytest_agent_evals import (
    is_prompt_path,
    make_grade_judgement,
    make_prompt_evaluator,
    make_prompt_threshold,
)
from agentci.execution.child.programs.call_grader import GraderFunctionError, call_grader
from agentci.model.case import Case, DatasetRow, Expectation
from agentci.model.requests import (
    ConstantJudgement,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
)
from agentci.model.values import JsonObject, Place, replace
from agentci.pytest.configs import (
    CheckEvaluatorConfig,
    CustomCodeEvaluatorConfig,
    EvaluatorConfig,
    GraderFunction,
)
from agentci.recordings.dataset import extract_tool_definitions, extract_turn
from agentci.recordings.json_documents import DocumentFormatError

AGENT_RESPONSE_HINT: Final = (
    'an agent returns text, or {"response": "...", "tool_calls": [...], "tool_definitions": [...]}'
)

# What functions of tests raise to fail; skips and interrupts are passed on to pytest.
TEST_EXCEPTIONS: Final = (Exception, pytest.fail.Exception)


def call_agent(row: DatasetRow, agent: object) -> DatasetRow:
    """The row with the response of ``agent``, a function or coroutine of the row's columns.

    Raises:
        EvaluatorError: it is not callable, or returned no valid response.
    """
    if not callable(agent):
        kind = type(agent).__name__
        raise EvaluatorError(
            f"the fixture `agent` is of type `{kind}`; it must be a function that takes a row"
        )
    try:
        returned = agent(dict(row.columns))
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
    except SystemExit as error:
        raise EvaluatorError(f"the agent called `sys.exit({error.code!r})`") from None
    value = {"response": returned} if isinstance(returned, str) else returned
    if not isinstance(value, Mapping):
        raise EvaluatorError(
            f"the agent returned a value of type `{type(returned).__name__}`; {AGENT_RESPONSE_HINT}"
        )
    try:
        plain = json.loads(json.dumps(value, default=_object_to_json))
    except (TypeError, ValueError, RecursionError) as error:
        raise EvaluatorError(
            f"the agent's response cannot be written as JSON: {error}; {AGENT_RESPONSE_HINT}"
        ) from None
    try:
        turn = extract_turn(plain, row.query)
        definitions = extract_tool_definitions(plain) or row.tool_definitions
    except DocumentFormatError as error:
        raise EvaluatorError(
            f"the agent's response is invalid: {error}; {AGENT_RESPONSE_HINT}"
        ) from None
    if turn is None:
        raise EvaluatorError(f"the agent returned no response; {AGENT_RESPONSE_HINT}")
    return replace(row, turn=turn, tool_definitions=definitions)


def _object_to_json(value: object) -> JsonObject:
    """A mapping that is not a ``dict`` as one, for ``json.dumps``.

    Raises:
        TypeError: the value is not a mapping.
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it has a value of type `{type(value).__name__}`")


async def _awaited(returned: Awaitable[Any]) -> Any:
    return await returned


MAX_FILE_BYTES: Final = 1024**2
GRADER_KIND: Final = "grader"
NO_JUDGE_MODEL: Final = "a prompt evaluator needs a judge model"
JUDGE_MODEL_HINT: Final = 'add `@evals.judge_model("PROVIDER/MODEL")` to the test or its class'


class InProcessEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator that calls a function of a test in the process of the test.

    Attributes:
        definition: see ``ComparableEvaluator``.
        columns: the keys of ``item`` that the function reads; None if it may read any.
        raised: the exceptions that it raised, in this order.
    """

    identity: EvaluatorIdentity
    function: GraderFunction
    threshold: float
    definition: Definition
    columns: frozenset[str] | None
    raised: list[BaseException] = field(default_factory=list)

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Nothing."""
        return ()

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the columns that the function reads."""
        return read_item_columns(expectation, self.columns, expected=None)

    def ask(self, case: Case) -> ConstantJudgement:
        """Call the function, and turn the score that it returns into a judgement.

        Raises:
            EvaluatorError: it raised an exception, or returned no valid score.
        """
        arguments = json.loads(dumps_compact(make_grade_arguments(case)))
        name = getattr(self.function, "__name__", "the grader")
        try:
            check_reads_recorded(_read_source(self.function), list_unrecorded(case.trace.turns))
            returned = json.dumps(call_grader(self.function, arguments, name), default=str)
            response = ProgramOutput(stdout=returned.encode(), stderr="", exit_code=0)
            return ConstantJudgement(
                judgement=make_grade_judgement(parse_grade(response), threshold=self.threshold)
            )
        except GraderFunctionError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}`: {error}") from None
        except EvaluatorError as error:
            raise EvaluatorError(f"Evaluator `{self.identity.name}` {error}") from None
        except SystemExit as error:  # it would end pytest
            raise EvaluatorError(
                f"Evaluator `{self.identity.name}` called `sys.exit({error.code!r})`"
            ) from None
        except TEST_EXCEPTIONS as error:
            self.raised.append(error)
            raise EvaluatorError(
                f"Evaluator `{self.identity.name}` raised {type(error).__name__}: {error}"
            ) from error

    def read(self, response: Response) -> Judgement:
        """The judgement that ``ask`` made."""
        return extract_judgement(response)


def make_evaluator(
    config: EvaluatorConfig,
    *,
    folder: Path,
    place: Place,
    judges: JudgeSettings,
    variables: ConfigVariables,
) -> ComparableEvaluator:
    """Make the evaluator that a test configures.

    Args:
        folder: folder of the test file.
        place: place of the test.

    Raises:
        InputError: the prompt was not found or is not a valid template, no judge is named, or a
            check is invalid.
    """
    if isinstance(config, CheckEvaluatorConfig):
        return _make_check(config, folder, place, variables)
    if isinstance(config, CustomCodeEvaluatorConfig):
        return InProcessEvaluator(
            identity=EvaluatorIdentity(
                name=config.name,
                type=GRADER_KIND,
                criterion=format_criterion(config.threshold),
                threshold=float(config.threshold),
                required=True,
                place=place,
            ),
            function=config.grader,
            threshold=config.threshold,
            definition={
                "type": GRADER_KIND,
                "threshold": config.threshold,
                "grader": define_function(config.grader),
            },
            columns=find_columns(config.grader),
        )
    template = _read_template(config.prompt, folder, place)
    try:
        judge = judges.require(None, name=config.name, place=place)
    except MissingJudgeError:
        raise InputError.from_message(NO_JUDGE_MODEL, place=place, hint=JUDGE_MODEL_HINT) from None
    return make_prompt_evaluator(
        template, make_prompt_threshold(config.threshold), place=place, judge=judge
    )


def _make_check(
    config: CheckEvaluatorConfig, folder: Path, place: Place, variables: ConfigVariables
) -> ComparableEvaluator:
    """Make a check, which is read like an item of a config."""
    try:
        written = json.dumps(
            {CHECKS_KEY: [config.check]}, ensure_ascii=False, default=_object_to_json
        )
    except (TypeError, ValueError) as error:
        message = f"the check {quote_name(config.name)} cannot be written as JSON: {error}"
        raise InputError.from_message(message, place=place) from None

    def read(named: str, at: Place) -> TextFile:
        return TextFile(name=named, text=_read_file_of_test(named, folder, at))

    try:
        document = read_yaml(written.encode(), file=place.file)
        problems = [*find_check_item_problems(document)]
        for item in list_check_items(document):
            entry, found = read_check_entry(item, document, read_part)
            problems += found
            if entry is not None and not problems:
                _refuse_shared_options(entry, place)
                check = build_check_evaluator(
                    item, entry, document, read, lambda name, _: variables.get(name), {}
                )
                return replace(check, identity=replace(check.identity, place=place))
    except InputError as error:
        problems = [*error.problems]
    raise InputError([replace(each, place=place) for each in problems])


def _refuse_shared_options(entry: CheckEntry, place: Place) -> None:
    for key in ("required", "cases"):
        if key in entry.model_fields_set:
            hint = "remove it: the assertions of the test decide"
            raise InputError.from_message(
                f"a check of a test has no `{key}`", place=place, hint=hint
            )


def _read_file_of_test(named: str | Path, folder: Path, place: Place) -> str:
    path = folder / str(named).strip()
    if not is_file(path):
        message = f"{named} does not exist"
        raise InputError.from_message(message, place=place, hint=f"paths are relative to {folder}")
    data = read_file(trust_path(path), name=str(path), limit_bytes=MAX_FILE_BYTES, place=place)
    return decode_utf8(data, file=str(path))


def _find_called(function: GraderFunction) -> Any:
    """Find what has source code: the function, or the class of an object that is called."""
    called: Any = function
    while isinstance(called, partial):
        called = called.func
    return called if inspect.isroutine(called) or inspect.isclass(called) else type(called)


def _read_source(function: GraderFunction) -> tuple[str, ...]:
    """Read the source code of a function; empty if it is not available."""
    try:
        return (inspect.getsource(_find_called(function)),)
    except (OSError, TypeError):
        return ()


def define_function(function: GraderFunction) -> Facts:
    """Define a function by its source code, or by its file if it is not a plain function."""
    called = _find_called(function)
    try:
        file = inspect.getsourcefile(called)
    except TypeError:
        file = None
    name = function.__name__ if is_module_function(function) else ""
    return repr(called) if file is None else FileContents(file, function=name, search_path=sys.path)


def find_columns(function: GraderFunction) -> frozenset[str] | None:
    """Find the keys of ``item`` that a function reads; None if it may read any."""
    if not is_module_function(function):
        return None
    try:
        source = inspect.getsource(sys.modules[function.__module__])
    except (OSError, TypeError):
        return None
    return find_read_keys(source, function.__name__, ITEM_POSITION)


def is_module_function(function: object) -> TypeGuard[FunctionType]:
    """Return whether a function is defined under its name in its module."""
    if not isinstance(function, FunctionType):
        return False
    module = sys.modules.get(function.__module__)
    return getattr(module, function.__name__, None) is function


def _read_template(prompt: str | Path, folder: Path, place: Place) -> str:
    if isinstance(prompt, str) and not is_prompt_path(prompt):
        check_prompt_template(prompt, place)
        return prompt
    template = _read_file_of_test(prompt, folder, place)
    file = str(folder / str(prompt).strip())
    check_prompt_template(template, Place(file=file), line_counts=True)
    return template
