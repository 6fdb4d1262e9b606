"""Definitions by which checks of two runs are compared, where no entry or metric makes them."""

from typing import Any

import pytest

from agentci.evaluators.evaluator import define_expectation, define_repeat
from agentci.evaluators.openai_eval.build import find_item_fields
from agentci.evaluators.openai_eval.entries import StringCheckSpec
from agentci.model.case import AgentvCase, Expectation
from agentci.model.requests import EvaluatorIdentity, Repetition
from agentci.model.values import Place, replace

PLACE = Place(file="c.yaml")
CASE = AgentvCase(
    id="a", criteria="Is brief.", input_messages=(), expected_messages=(), place=PLACE
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("criteria", "Is polite."),
        ("input_messages", ({"role": "user", "content": "Hi"},)),
        ("expected_messages", ({"role": "assistant", "content": "Ho"},)),
        ("guideline_files", ("/evals/rules.md",)),
        ("input_texts", {"input.md": "text"}),
        ("metadata", {"level": "hard"}),
        ("judge_template", "Rate {{ output }}"),
    ],
)
def test_evaluator_of_anything_is_compared_by_the_whole_case(field: str, value: Any) -> None:
    changed = replace(CASE, **{field: value})
    before, after = (define_expectation(Expectation(agentv_case=each)) for each in (CASE, changed))
    assert before != after


def test_repeats_are_part_of_a_definition() -> None:
    once = EvaluatorIdentity(
        name="a", type="x", criterion="any", threshold=None, required=True, place=PLACE
    )
    thrice = replace(once, repetition=Repetition(times=3))
    assert define_repeat(once) == {}
    assert define_repeat(thrice)["repeat"] == 3


def test_template_of_a_whole_item_may_read_any_column() -> None:
    def spec(template: str) -> StringCheckSpec:
        return StringCheckSpec(
            type="string_check",
            operation="eq",
            input="{{ sample.output_text }}",
            reference=template,
        )

    assert find_item_fields([spec("{{ item.answer }}")]) == frozenset({"answer"})
    assert find_item_fields([spec("{{ item }}")]) is None
