"""Evaluators from plugins, including ones that break the evaluator interface."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator_type import PluginEvaluator
from agentci.evaluators.fields import Entry
from agentci.model.case import Case
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import ProgramOutput, Skip
from agentci.model.trace import Trace

PLACE = Place(file="c.yaml")
IDENTITY = EvaluatorIdentity(
    name="a", type="x", criterion="any", threshold=None, required=True, place=PLACE
)
NEEDED = RequiredProgram(program=LocalProgram(path="/p"), name="a", place=PLACE)
CASE = Case(id="1", trace=Trace(id="1", key="1", turns=(), place=PLACE))
REPLY = ProgramOutput(stdout=b"", stderr="", exit_code=0)
JUDGEMENT = Judgement(score=1.0, passed=True)
SKIP = Skip(reason="nothing to judge")


class Scripted:
    """An evaluator whose responses are set by the test."""

    def __init__(self, **answers: object) -> None:
        given = {"identity": IDENTITY, "needs": (NEEDED,), "ask": SKIP, "read": JUDGEMENT}
        self._answers: dict[str, Any] = {**given, **answers}
        self.identity = self._answers["identity"]
        self.needs = self._answers["needs"]

    def ask(self, _: Case) -> Any:
        return self._answer("ask")

    def read(self, _: object) -> Any:
        return self._answer("read")

    def _answer(self, method: str) -> Any:
        answer = self._answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer


def foreign(**answers: object) -> PluginEvaluator:
    entry = Entry(name="own", type="x")
    return PluginEvaluator(Scripted(**answers), entry, title="the type 'x' of the package y")


def test_plugin_evaluator_delegates_to_wrapped_evaluator() -> None:
    evaluator = foreign()
    assert (evaluator.identity, evaluator.needs) == (IDENTITY, (NEEDED,))
    assert evaluator.ask(CASE) == SKIP
    assert evaluator.read(REPLY) == JUDGEMENT


@pytest.mark.parametrize("method", ["ask", "read"])
def test_evaluator_error_of_plugin_is_passed_through(method: str) -> None:
    evaluator = foreign(**{method: EvaluatorError("no verdict")})
    with pytest.raises(EvaluatorError, match=r"^no verdict$"):
        evaluator.ask(CASE) if method == "ask" else evaluator.read(REPLY)


@pytest.mark.parametrize("method", ["ask", "read"])
@pytest.mark.parametrize(
    ("answer", "complaint"),
    [(KeyError("x"), "KeyError: 'x'"), ("yes", "TypeError: `{}` returned a str")],
)
def test_plugin_failure_names_the_plugin(method: str, answer: object, complaint: str) -> None:
    evaluator = foreign(**{method: answer})
    with pytest.raises(EvaluatorError) as error:
        evaluator.ask(CASE) if method == "ask" else evaluator.read(REPLY)
    assert str(error.value) == (
        f"the type 'x' of the package y failed: {complaint.format(method)};"
        " report this to the authors of the plugin"
    )


@pytest.mark.parametrize(
    "answers", [{"identity": "a"}, {"needs": None}, {"needs": [NEEDED]}, {"needs": ("/p",)}]
)
def test_plugin_with_invalid_attributes_is_rejected(answers: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="returned a"):
        foreign(**answers)
