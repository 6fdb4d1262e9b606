"""Builders of `openai_eval` evaluators and of cases for them."""

from pathlib import Path
from typing import Any

import yaml

from agentci.config.overrides import Overrides
from agentci.config.suite import read_suite
from agentci.config.yaml_document import read_yaml
from agentci.evaluators.evaluator import Evaluator
from agentci.model.case import Case, EvalCase
from agentci.model.requests import Compose, ConstantJudgement, Judgement, Response, Task
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import Place
from tests.helpers.programs import AnyPrograms

PLACE = Place(file="recording.json", line=1)


def turn(answer: str | None, *calls: ToolCall) -> Turn:
    parts = () if answer is None else (answer,)
    return Turn(id="t", user_text="Which city?", answer_parts=parts, tool_calls=calls)


def a_case(*answers: str | None, expected: tuple[str, ...] = ("Paris",), calls: Any = ()) -> Case:
    turns = tuple(turn(answer, *calls) for answer in answers)
    return Case(
        id="c",
        trace=Trace(id="x", key="x", turns=turns, place=PLACE),
        expected=EvalCase(id="c", turns=tuple(map(turn, expected)), place=PLACE)
        if expected
        else None,
        unmatched_reason=None if expected else "no matching eval case",
    )


def evaluator(
    grader: object,
    gate: object = None,
    shared: object = None,
    overrides: Overrides | None = None,
    **fields: object,
) -> Evaluator:
    """The evaluator of one config entry; ``shared`` is the config's top-level `judge`."""
    entry = {"name": "e", "type": "openai_eval", "grader": grader, **fields}
    config = {"evaluators": [entry], "gate": gate or {}, **({"judge": shared} if shared else {})}
    document = read_yaml(yaml.safe_dump(config, sort_keys=False).encode(), file="c.yaml")
    suite = read_suite(document, overrides or Overrides(), AnyPrograms(Path("/nowhere")))
    return suite.evaluators[0]


def asked(one: Evaluator, case: Case) -> tuple[Task, ...]:
    """The tasks that an evaluator requests."""
    request = one.ask(case)
    assert isinstance(request, Compose)
    return tuple(task for _, task in request.parts)


def read(one: Evaluator, case: Case, *replies: Response) -> Judgement:
    """The judgement for the responses to an evaluator's tasks."""
    request = one.ask(case)
    assert isinstance(request, Compose)
    assert len(request.parts) == len(replies)
    settled = request.then(replies)
    assert isinstance(settled, ConstantJudgement)
    return one.read(settled)


def judged(case: Case, grader: object, **fields: Any) -> Judgement:
    """The judgement of a grader that requests no task."""
    return read(evaluator(grader, **fields), case)
