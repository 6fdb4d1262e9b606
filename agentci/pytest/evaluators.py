"""Build the evaluators that tests configure, and call the agent under test."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct, field
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentci._util.text.json_text import dumps_compact
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.workspace import decode_utf8, is_file, read_file
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.threshold import format_threshold
from agentci.evaluators.evaluator import extract_judgement
from agentci.evaluators.grader_protocol import make_grade_arguments, parse_grade
from agentci.evaluators.judge_config import JudgeSettings, MissingJudgeError, SharedJudgeSpec
from agentci.evaluators.pytest_agent_evals.grader import make_grade_judgement
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import (
    PromptEvaluator,
    check_prompt_template,
    is_prompt_path,
    make_prompt_evaluator,
)
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import (
    make_prompt_threshold as bar_of_prompt,
)
from agentci.execution.child.grading.grade import GraderFunctionError, call_grader
from agentci.model.case import Case, DatasetRow
from agentci.model.json import JsonObject
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.judges import RequiredJudge
from agentci.model.problem import Place, Problem
from agentci.model.requests import ConstantJudgement, Prerequisite, ProgramOutput, Response
from agentci.model.values import replace
from agentci.pytest.configs import (
    CustomCodeEvaluatorConfig,
    EvaluatorConfig,
    GraderFunction,
)
from agentci.recordings.dataset import extract_tool_definitions, extract_turn
from agentci.recordings.trace_format import DocumentFormatError

AGENT_RESPONSE_HINT: Final = (
    'an agent returns text, or {"response": "...", "tool_calls": [...], "tool_definitions": [...]}'
)

# What functions of tests raise to say that something is wrong; skips and interrupts go on.
TEST_EXCEPTIONS: Final = (Exception, pytest.fail.Exception)


def call_agent(row: DatasetRow, agent: object) -> DatasetRow:
    """The row with what ``agent`` did: a function of the row's columns, which may be a coroutine.

    Raises:
        EvaluatorError: it is no such function, or returned something else.
    """
    if not callable(agent):
        kind = type(agent).__name__
        raise EvaluatorError(f"the fixture `agent` is a {kind}, not a function of a row")
    try:
        returned = agent(dict(row.columns))
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
    except SystemExit as error:
        raise EvaluatorError(f"the agent called sys.exit({error.code!r})") from None
    told = {"response": returned} if isinstance(returned, str) else returned
    if not isinstance(told, Mapping):
        raise EvaluatorError(
            f"the agent returned a {type(returned).__name__}; {AGENT_RESPONSE_HINT}"
        )
    try:
        plain = json.loads(json.dumps(told, default=_object_to_json))
    except (TypeError, ValueError, RecursionError) as error:
        raise EvaluatorError(
            f"what the agent returned is no JSON: {error}; {AGENT_RESPONSE_HINT}"
        ) from None
    try:
        turn = extract_turn(plain, row.query)
        definitions = extract_tool_definitions(plain) or row.tool_definitions
    except DocumentFormatError as error:
        raise EvaluatorError(f"of what the agent returned {error}; {AGENT_RESPONSE_HINT}") from None
    if turn is None:
        raise EvaluatorError(f"the agent returned no response; {AGENT_RESPONSE_HINT}")
    return replace(row, turn=turn, tool_definitions=definitions)


def _object_to_json(value: object) -> JsonObject:
    """Those of a mapping that is no dictionary.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value in it is of type {type(value).__name__}")


async def _awaited(returned: Awaitable[Any]) -> Any:
    return await returned


MAX_PROMPT_BYTES: Final = 1024**2
GRADER_KIND: Final = "grader"
NO_JUDGE_MODEL: Final = "a prompt asks a model, and nothing says which one of which provider"
JUDGE_MODEL_HINT: Final = 'put `@evals.judge_model("PROVIDER/MODEL")` at the test or its class'


class InProcessEvaluator(Struct, frozen=True, kw_only=True):
    """A function of a test, called in this process, where the test is run, too.

    Attributes:
        source: of the function, by which runs are told apart; empty where there is none.
        raised: what it raised, in this order.
    """

    identity: EvaluatorIdentity
    function: GraderFunction
    threshold: float
    source: str
    raised: list[BaseException] = field(default_factory=list)

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Nothing."""
        return ()

    def ask(self, case: Case) -> ConstantJudgement:
        """Call the function, and judge by what it returns.

        Raises:
            EvaluatorError: that is no score.
        """
        asked = json.loads(dumps_compact(make_grade_arguments(case)))
        name = getattr(self.function, "__name__", "the grader")
        try:
            returned = json.dumps(call_grader(self.function, asked, name), default=str)
            response = ProgramOutput(stdout=returned.encode(), stderr="", exit_code=0)
            return ConstantJudgement(
                judgement=make_grade_judgement(parse_grade(response), threshold=self.threshold)
            )
        except (GraderFunctionError, EvaluatorError) as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None
        except SystemExit as error:  # by which pytest itself would end
            raise EvaluatorError(
                f"Custom evaluator '{self.identity.name}' called sys.exit({error.code!r})"
            ) from None
        except TEST_EXCEPTIONS as error:
            self.raised.append(error)
            told = f"{type(error).__name__}: {error}"
            raise EvaluatorError(
                f"Custom evaluator '{self.identity.name}' raised {told}"
            ) from error

    def read(self, response: Response) -> Judgement:
        """What was settled."""
        return extract_judgement(response)


def make_evaluator(
    config: EvaluatorConfig, *, folder: Path, place: Place, judges: JudgeSettings
) -> InProcessEvaluator | PromptEvaluator:
    """Make the evaluator that a test configures.

    Args:
        folder: of the test file.
        place: of the test.

    Raises:
        InputError: there is no such prompt, it is no template, or nobody said who judges.
    """
    if isinstance(config, CustomCodeEvaluatorConfig):
        return InProcessEvaluator(
            identity=EvaluatorIdentity(
                name=config.name,
                type=GRADER_KIND,
                criterion=format_threshold(config.threshold),
                threshold=float(config.threshold),
                required=True,
                place=place,
            ),
            function=config.grader,
            threshold=config.threshold,
            source=_read_source(config.grader),
        )
    template = _read_template(config.prompt, folder, place)
    try:
        panel = judges.panel(None, place)
    except MissingJudgeError:
        raise InputError.from_message(NO_JUDGE_MODEL, place=place, hint=JUDGE_MODEL_HINT) from None
    wanted = RequiredJudge(judge=panel, name=config.name, place=place)
    return make_prompt_evaluator(
        template, bar_of_prompt(config.threshold), place=place, wanted=wanted
    )


def make_judge_settings(model: str, fields: Mapping[str, Any], *, place: Place) -> JudgeSettings:
    """Who judges, as a test says it.

    Args:
        model: also ``provider/model``; empty where ``fields`` say all.
        fields: as under ``judge`` in a config.

    Raises:
        InputError: one of them is wrong.
    """
    try:
        shared = SharedJudgeSpec.model_validate(dict(fields))
    except ValidationError as error:
        raise InputError(
            [
                Problem(message=f"judge_model: {_format_field_error(each)}", place=place)
                for each in error.errors(include_url=False)
            ]
        ) from None
    budget_id = json.dumps([model, shared.model_dump()], sort_keys=True)
    return JudgeSettings(budget_id=budget_id, shared=shared, model=model)


def _format_field_error(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}"
    meant = suggest_name(name, tuple(SharedJudgeSpec.model_fields))
    return f"there is no field {quote_name(name)}" + (f"; {meant}" if meant else "")


def _read_source(function: GraderFunction) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _read_template(prompt: str | Path, folder: Path, place: Place) -> str:
    if isinstance(prompt, str) and not is_prompt_path(prompt):
        check_prompt_template(prompt, place)
        return prompt
    path = folder / str(prompt).strip()
    if not is_file(path):
        message = f"{prompt} does not exist"
        raise InputError.from_message(message, place=place, hint=f"it is looked for in {folder}")
    data = read_file(path, name=str(path), limit_bytes=MAX_PROMPT_BYTES, place=place)
    template = decode_utf8(data, file=str(path))
    check_prompt_template(template, Place(file=str(path)), line_counts=True)
    return template
