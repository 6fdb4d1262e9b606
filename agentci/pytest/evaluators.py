"""Evaluators as tests configure them, made into those that every run judges by."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentci._util.text.strict_json import compact
from agentci._util.text.suggest import did_you_mean, quoted
from agentci._util.text.utf8 import decode
from agentci._util.workspace import is_file, read_file
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentevals.threshold import bar_of
from agentci.evaluators.constant import settled
from agentci.evaluators.grader_payload import graded
from agentci.evaluators.grader_result import grade_in
from agentci.evaluators.judge_config import Judges, NobodyJudgesError, SharedJudgeSpec
from agentci.evaluators.pytest_agent_evals.build import (
    assemble_prompt,
    check_template,
    is_path,
)
from agentci.evaluators.pytest_agent_evals.build import bar_of as bar_of_prompt
from agentci.evaluators.pytest_agent_evals.grader import judgement_of
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import PromptEvaluator
from agentci.execution.child.grading.grade import RefusedError, called
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.judging import WantedPanel
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.requests import Need, ProgramReply, Reply, Settled
from agentci.pytest.answers import RAISED
from agentci.pytest.configs import (
    CustomCodeEvaluatorConfig,
    EvaluatorConfig,
    GraderFunction,
)

MAX_PROMPT_BYTES: Final = 1024**2
GRADER: Final = "grader"
NOBODY_JUDGES: Final = "a prompt asks a model, and nothing says which one of which provider"
NAME_A_MODEL: Final = 'put `@evals.judge_model("PROVIDER/MODEL")` at the test or its class'


class FunctionGrader(Struct, frozen=True, kw_only=True):
    """A function of a test, called in this process, where the test is run, too.

    Attributes:
        source: of the function, by which runs are told apart; empty where there is none.
        raised: what it raised, in this order.
    """

    identity: Identity
    function: GraderFunction
    threshold: float
    source: str
    raised: list[BaseException] = field(default_factory=list)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Nothing."""
        return ()

    def ask(self, case: Case) -> Settled:
        """Call the function, and judge by what it returns.

        Raises:
            EvaluatorError: that is no score.
        """
        asked = json.loads(compact(graded(case)))
        name = getattr(self.function, "__name__", "the grader")
        try:
            returned = json.dumps(called(self.function, asked, name), default=str)
            reply = ProgramReply(stdout=returned.encode(), stderr="", exit_code=0)
            return Settled(judgement=judgement_of(grade_in(reply), threshold=self.threshold))
        except (RefusedError, EvaluatorError) as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None
        except SystemExit as error:  # by which pytest itself would end
            raise EvaluatorError(
                f"Custom evaluator '{self.identity.name}' called sys.exit({error.code!r})"
            ) from None
        except RAISED as error:
            self.raised.append(error)
            told = f"{type(error).__name__}: {error}"
            raise EvaluatorError(
                f"Custom evaluator '{self.identity.name}' raised {told}"
            ) from error

    def read(self, reply: Reply) -> Judgement:
        """What was settled."""
        return settled(reply)


def evaluator_of(
    config: EvaluatorConfig, *, folder: Path, place: Place, judges: Judges
) -> FunctionGrader | PromptEvaluator:
    """Make the evaluator that a test configures.

    Args:
        folder: of the test file.
        place: of the test.

    Raises:
        InputError: there is no such prompt, it is no template, or nobody said who judges.
    """
    if isinstance(config, CustomCodeEvaluatorConfig):
        return FunctionGrader(
            identity=Identity(
                name=config.name,
                type=GRADER,
                bar=bar_of(config.threshold),
                threshold=float(config.threshold),
                required=True,
                place=place,
            ),
            function=config.grader,
            threshold=config.threshold,
            source=_source(config.grader),
        )
    template = _template(config.prompt, folder, place)
    try:
        panel = judges.panel(None, place)
    except NobodyJudgesError:
        raise InputError.of(NOBODY_JUDGES, place=place, hint=NAME_A_MODEL) from None
    wanted = WantedPanel(panel=panel, name=config.name, place=place)
    return assemble_prompt(template, bar_of_prompt(config.threshold), place=place, wanted=wanted)


def judges_of(model: str, fields: Mapping[str, Any], *, place: Place) -> Judges:
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
                Problem(message=f"judge_model: {_said(each)}", place=place)
                for each in error.errors(include_url=False)
            ]
        ) from None
    payer = json.dumps([model, shared.model_dump()], sort_keys=True)
    return Judges(payer=payer, shared=shared, model=model)


def _said(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}"
    meant = did_you_mean(name, tuple(SharedJudgeSpec.model_fields))
    return f"there is no field {quoted(name)}" + (f"; {meant}" if meant else "")


def _source(function: GraderFunction) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _template(prompt: str | Path, folder: Path, place: Place) -> str:
    if isinstance(prompt, str) and not is_path(prompt):
        check_template(prompt, place)
        return prompt
    path = folder / str(prompt).strip()
    if not is_file(path):
        message = f"{prompt} does not exist"
        raise InputError.of(message, place=place, hint=f"it is looked for in {folder}")
    data = read_file(path, name=str(path), limit_bytes=MAX_PROMPT_BYTES, place=place)
    template = decode(data, file=str(path))
    check_template(template, Place(file=str(path)), line_counts=True)
    return template
