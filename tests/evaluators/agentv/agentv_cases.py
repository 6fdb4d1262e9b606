"""Builds cases and runs of eval files for tests of AgentV evaluators."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agentci._util.child_programs import SEARCH_PATH
from agentci._util.text import json_text
from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.model.case import AgentvCase, Case
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    Judgement,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
)
from agentci.model.trace import Message, ToolUse, Trace, Transcript
from agentci.model.values import Place
from tests.config.agentv.no_files import NoFiles

PLACE = Place(file="a.eval.yaml")


def make_agentv_case(**fields: Any) -> AgentvCase:
    """A case that asks the agent to say a word."""
    given: dict[str, Any] = {
        "id": "a",
        "criteria": "says it",
        "input_messages": ({"role": "user", "content": "Say it"},),
        "expected_messages": (),
        "place": PLACE,
    }
    return AgentvCase(**{**given, **fields})


def run_with_answer(text: str, **fields: Any) -> Transcript:
    """A run that ends in ``text``."""
    return Transcript(messages=(Message(role="assistant", content=text),), **fields)


def run_with_tools(*tools: str | tuple[str, Mapping[str, Any]] | ToolUse) -> Transcript:
    """A run that uses ``tools``, optionally with their input."""
    uses = tuple(
        each
        if isinstance(each, ToolUse)
        else ToolUse(tool=each)
        if isinstance(each, str)
        else ToolUse(tool=each[0], input=each[1])
        for each in tools
    )
    return Transcript(messages=(Message(role="assistant", tool_calls=uses),))


def case(transcript: Transcript, **fields: Any) -> Case:
    """A case with its run."""
    trace = Trace(id="a", key="a", turns=(), place=PLACE)
    return Case(id="a", trace=trace, agentv_case=make_agentv_case(**fields), transcript=transcript)


def suite_of(*entries: Mapping[str, Any], key: str = "cases") -> Suite:
    """An eval file with one case and ``entries`` as its evaluators."""
    written: dict[str, Any] = {
        key: [{"id": "a", "input": "Say it", "criteria": "says it"}],
        "execution": {"evaluators": [dict(each) for each in entries]},
    }
    document = read_yaml(json_text.dumps(written).encode(), file="a.eval.yaml")
    return read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))


def evaluate(
    entry: Mapping[str, Any], transcript: Transcript, *, key: str = "cases", **fields: Any
) -> Judgement:
    """The judgement of an evaluator that asks no model; the search of a pattern is run."""
    [evaluator] = suite_of({"name": "e", **entry}, key=key).evaluators
    request = evaluator.ask(case(transcript, **fields))
    response: Response
    if isinstance(request, RunProgram):
        assert request.program == LocalProgram(path=SEARCH_PATH)
        response = run_search(request.stdin)
    else:
        assert isinstance(request, ConstantJudgement)
        response = request
    return evaluator.read(response)


def judge_run(evaluator: ComparableEvaluator, transcript: Transcript) -> Judgement:
    """The judgement of a rule, or of a composite of rules."""
    return evaluator.read(_settle(evaluator.ask(case(transcript))))


def _settle(task: object) -> ConstantJudgement:
    if isinstance(task, Compose):
        return _settle(task.then(tuple(_settle(part) for _, part in task.parts)))
    assert isinstance(task, ConstantJudgement)
    return task


def run_search(stdin: str) -> ProgramOutput:
    """The output of the program that searches patterns."""
    ran = subprocess.run(
        [sys.executable, SEARCH_PATH], input=stdin.encode(), capture_output=True, check=False
    )
    return ProgramOutput(stdout=ran.stdout, stderr=ran.stderr.decode(), exit_code=ran.returncode)


def program_output(text: str, *, exit_code: int = 0, stderr: str = "") -> ProgramOutput:
    """The output of a command."""
    return ProgramOutput(stdout=text.encode(), stderr=stderr, exit_code=exit_code)


def commands(requests: Sequence[object]) -> list[RunCommand]:
    """The commands among ``requests``."""
    return [each for each in requests if isinstance(each, RunCommand)]
