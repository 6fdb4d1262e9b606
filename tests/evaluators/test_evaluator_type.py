"""Evaluators from plugins, including ones that break the evaluator interface."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import Evaluator, FileContents, is_comparable
from agentci.evaluators.evaluator_type import (
    EvaluatorContext,
    EvaluatorType,
    PluginEvaluator,
    TextFile,
    wrap_plugin_type,
)
from agentci.evaluators.fields import Entry
from agentci.evaluators.judge_config import JudgeSettings
from agentci.model.case import Case, EvalCase, Expectation
from agentci.model.judges import JudgeConfig, ModelSettings, RequiredJudge
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import EvaluatorIdentity, Judgement, ProgramOutput, Skip
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import Place, replace

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


class FileEntry(Entry):
    file: str


def build(entry: FileEntry, context: EvaluatorContext) -> Evaluator:
    context.read(entry.file, "file")
    return Scripted()


def test_plugin_evaluator_is_defined_by_entry_needs_and_files() -> None:
    def define(text: str, **own: str) -> object:
        context = EvaluatorContext(
            place=PLACE,
            find_place=lambda _: PLACE,
            locate=lambda named, _="path": LocalProgram(path=named),
            read=lambda named, _: TextFile(name=named, text=text),
            complete=lambda program: program,
            judges=JudgeSettings(budget_id=""),
            turn_mismatch_fails=True,
        )
        kind = wrap_plugin_type(EvaluatorType(entry=FileEntry, build=build), title="the type 'x'")
        entry = FileEntry.model_validate({"name": "own", "type": "x", "file": "a", **own})
        evaluator = kind.build(entry, context)
        assert is_comparable(evaluator)
        needs = evaluator.definition["needs"]
        assert isinstance(needs, list)
        assert isinstance(needs[0], FileContents)
        assert needs[0].paths == ("/p",)
        return {**evaluator.definition, "needs": None}

    assert define("text") == define("text") != define("other")
    assert define("text", file="b") != define("text")


def test_plugin_evaluator_reads_the_whole_expectation() -> None:
    turn = Turn(id="t", user_text="q", tool_calls=(ToolCall(name="a"),))
    eval_case = EvalCase(id="c", turns=(turn,), place=PLACE)
    evaluator = foreign()
    read = [
        str(evaluator.read_expectation(each))
        for each in (
            Expectation(),
            Expectation(eval_case=eval_case),
            Expectation(eval_case=replace(eval_case, turns=(replace(turn, user_text="r"),))),
            Expectation(eval_case=eval_case, columns={"a": 1}),
        )
    ]
    assert len({*read}) == 4


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


def test_plugin_evaluator_is_defined_by_its_judge() -> None:
    def define(model: str) -> Any:
        settings = ModelSettings(provider="openai", model=model, base_url="https://x/v1")
        judge = RequiredJudge(judge=JudgeConfig(settings=settings), name="a", place=PLACE)
        return foreign(needs=(judge,)).definition["needs"]

    assert define("m") == define("m")
    assert define("m") != define("n")
