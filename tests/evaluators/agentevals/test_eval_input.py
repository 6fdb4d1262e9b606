"""The stdin of program evaluators (protocol 1.1), field by field."""

import json
import math
from dataclasses import asdict
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci import sdk
from agentci.evaluators.agentevals.code import PROTOCOL_VERSION, make_eval_input
from agentci.model.case import Case, EvalCase
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import Json, JsonObject, Place

SDK: Any = import_module("agentevals_evaluator_sdk")
PLACE = Place(file="trace.json")
TURN = Turn(
    id="aa01",
    user_text="Weather in Paris?",
    answer_parts=("It is ", "21 degrees."),
    tool_calls=(ToolCall(name="get_weather", args={"city": "Paris"}, id="call-1"),),
    tool_responses=(ToolResponse(name="get_weather", output={"temp": 21}, id="call-1"),),
    intermediate_texts=("Let me look.",),
    trace_id="0af7",
    span_id="aa01",
)
EXPECTED = EvalCase(
    id="paris",
    turns=(Turn(id="", user_text="Weather?", tool_calls=(ToolCall(name="get_weather"),)),),
    place=PLACE,
)
KEYS = {
    "invocation_id",
    "user_content",
    "final_response",
    "intermediate_steps",
    "performance_metrics",
    "trace_id",
    "span_id",
}


def test_input_contains_every_field_of_turn() -> None:
    asked = _asked(_case(TURN, performance={"counts": {"llm_calls": 2}}))
    assert asked == {
        "protocol_version": "1.1",
        "metric_name": "ev",
        "threshold": 0.7,
        "config": {},
        "invocations": [
            {
                "invocation_id": "aa01",
                "user_content": "Weather in Paris?",
                "final_response": "It is 21 degrees.",
                "intermediate_steps": {
                    "tool_calls": [
                        {"name": "get_weather", "args": {"city": "Paris"}, "id": "call-1"}
                    ],
                    "tool_responses": [
                        {
                            "name": "get_weather",
                            "output": '{"temp": 21}',
                            "status": None,
                            "id": "call-1",
                            "response": {"temp": 21},
                        }
                    ],
                },
                "performance_metrics": {"counts": {"llm_calls": 2}},
                "trace_id": "0af7",
                "span_id": "aa01",
            }
        ],
        "expected_invocations": None,
    }


def test_empty_turn_has_every_key() -> None:
    [turn] = _asked(_case(Turn(id="aa01", user_text="")))["invocations"]
    assert turn.keys() == KEYS
    assert turn["final_response"] is None
    assert turn["performance_metrics"] is None
    assert turn["intermediate_steps"] == {"tool_calls": [], "tool_responses": []}


def test_expected_turns_have_same_shape() -> None:
    [turn] = _asked(_case(TURN, expected=EXPECTED, performance={"a": 1}))["expected_invocations"]
    assert turn.keys() == KEYS
    assert turn["invocation_id"] == ""
    assert turn["performance_metrics"] is turn["trace_id"] is turn["span_id"] is None
    assert turn["intermediate_steps"]["tool_calls"] == [
        {"name": "get_weather", "args": {}, "id": None}
    ]


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        pytest.param({"n": 1}, {"n": 1}, id="object is unchanged"),
        pytest.param([1, 2], {"value": [1, 2]}, id="list is wrapped in value"),
        pytest.param("x", {"value": "x"}, id="string is wrapped in value"),
        pytest.param(False, {"value": False}, id="false is wrapped in value"),
    ],
)
def test_tool_arguments_are_always_an_object(args: Json, sent: JsonObject) -> None:
    [turn] = _asked(_case(_calling(ToolCall(name="f", args=args))))["invocations"]
    assert turn["intermediate_steps"]["tool_calls"][0]["args"] == sent


@pytest.mark.parametrize(
    ("output", "text"),
    [
        pytest.param(None, "", id="null becomes an empty string"),
        pytest.param("sunny", "sunny", id="string is unchanged"),
        pytest.param({"b": 1, "a": [True, None]}, '{"a": [true, null], "b": 1}', id="sorted keys"),
        pytest.param(["é"], '["\\u00e9"]', id="ASCII JSON"),
        pytest.param(0, "0", id="zero"),
    ],
)
def test_tool_output_is_given_as_text_and_value(output: Json, text: str) -> None:
    turn = Turn(id="1", user_text="", tool_responses=(ToolResponse(name="f", output=output),))
    [asked] = _asked(_case(turn))["invocations"]
    [response] = asked["intermediate_steps"]["tool_responses"]
    assert (response["output"], response["response"]) == (text, output)


def test_failed_tool_has_error_status() -> None:
    turn = Turn(id="1", user_text="", tool_responses=(ToolResponse(name="f", failed=True),))
    [asked] = _asked(_case(turn))["invocations"]
    assert asked["intermediate_steps"]["tool_responses"][0]["status"] == "error"


def test_input_is_compact_json_with_unescaped_unicode() -> None:
    text = make_eval_input(
        _case(Turn(id="1", user_text="Où?")), name="ev", threshold=1, config={"k": [1, 2]}
    )
    assert '"threshold":1.0,"config":{"k":[1,2]},"invocations":[' in text
    assert '"user_content":"Où?"' in text


def test_values_without_json_form_are_replaced() -> None:
    config: JsonObject = {"nan": math.nan, "half": "\ud83d", "fine": 0.1}
    sent = _asked(_case(TURN), config=config)["config"]
    assert sent == {"nan": None, "half": "\ufffd", "fine": 0.1}


def test_sdk_reads_every_field_of_the_input() -> None:
    case = _case(TURN, expected=EXPECTED)
    make_eval_input(case, name="another", threshold=0.1, config={})
    text = make_eval_input(case, name="ev", threshold=0.7, config={"a": 1})
    given = json.loads(text)
    assert asdict(sdk.EvalInput.from_json(text)) == given
    theirs = json.loads(SDK.EvalInput.model_validate_json(text).model_dump_json())
    assert theirs == {key: given[key] for key in theirs}
    assert sdk.VERSION == PROTOCOL_VERSION


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
        max_leaves=10,
    )
)
def test_any_recorded_value_gives_valid_utf8_json(value: Json) -> None:
    turn = Turn(
        id="1",
        user_text="",
        tool_calls=(ToolCall(name="f", args=value),),
        tool_responses=(ToolResponse(name="f", output=value),),
    )
    text = make_eval_input(_case(turn), name="ev", threshold=0.5, config={"value": value})
    assert json.loads(text.encode(), parse_constant=pytest.fail)


def _calling(call: ToolCall) -> Turn:
    return Turn(id="1", user_text="", tool_calls=(call,))


def _case(
    turn: Turn, *, expected: EvalCase | None = None, performance: JsonObject | None = None
) -> Case:
    trace = Trace(id="0af7", key="0af7", turns=(turn,), place=PLACE, performance=performance)
    return Case(id="0af7", trace=trace, expected=expected)


def _asked(case: Case, config: JsonObject | None = None) -> Any:
    return json.loads(make_eval_input(case, name="ev", threshold=0.7, config=config or {}))
