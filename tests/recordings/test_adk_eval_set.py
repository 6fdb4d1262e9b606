"""Eval sets of ADK become eval cases; errors name their line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import InputError
from agentci.model.case import EvalCase, EvalSet, Rubric
from agentci.model.trace import ToolCall, ToolResponse, Turn
from agentci.model.values import JsonObject, Place
from agentci.recordings.adk_eval_set import SET_HINT, read_eval_set

FILE = "evals/golden.json"


def read(value: object) -> EvalSet:
    return read_eval_set(json.dumps(value).encode(), file=FILE)


def a_set(*cases: object) -> dict[str, object]:
    return {"eval_set_id": "s", "eval_cases": cases}


def a_case(*invocations: object) -> dict[str, object]:
    return {"eval_id": "c", "conversation": invocations}


def content(*texts: str) -> dict[str, object]:
    return {"parts": [{"text": text} for text in texts]}


def turn_of(invocation: dict[str, object]) -> Turn:
    [case] = read(a_set(a_case({"user_content": content("q"), **invocation}))).cases
    [turn] = case.turns
    return turn


def errors_of(value: object) -> list[str]:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(InputError) as caught:
        read_eval_set(text, file=FILE)
    return [str(problem) for problem in caught.value.problems]


def test_snake_case_eval_set_is_read() -> None:
    text = """{
  "eval_set_id": "demo", "name": "Demo", "creation_timestamp": 1.5,
  "eval_cases": [
    {"eval_id": "paris",
     "session_input": {"app_name": "a", "user_id": "u"},
     "conversation": [
       {"invocation_id": "e1",
        "user_content": {"role": "user", "parts": [{"text": "Weather "}, {"text": "in Paris?"}]},
        "final_response": {"role": "model", "parts": [{"text": "It is"}, {"text": "sunny."}]},
        "intermediate_data": {
          "tool_uses": [{"id": "x", "name": "get_weather", "args": {"city": "Paris"}}],
          "tool_responses": [{"id": "x", "name": "get_weather", "response": {"sky": "blue"}}]}}]}
  ]
}"""
    assert read_eval_set(text.encode(), file=FILE) == EvalSet(
        id="demo",
        cases=(
            EvalCase(
                id="paris",
                turns=(
                    Turn(
                        id="e1",
                        user_text="Weather in Paris?",
                        answer_parts=("It is", "sunny."),
                        tool_calls=(ToolCall(id="x", name="get_weather", args={"city": "Paris"}),),
                        tool_responses=(
                            ToolResponse(
                                id="x", name="get_weather", output={"sky": "blue"}, call_index=0
                            ),
                        ),
                    ),
                ),
                place=Place(file=FILE, line=4, column=5),
                rubrics=((),),
            ),
        ),
        place=Place(file=FILE, line=1, column=1),
    )


def test_case_rubrics_apply_to_every_turn() -> None:
    def rubric(name: str) -> dict[str, object]:
        return {"rubric_id": name, "rubric_content": {"text_property": f"is {name}"}, "type": "T"}

    turns = [
        {"user_content": content("q"), "rubrics": [rubric("b")]},
        {"user_content": content("q")},
    ]
    case = {"eval_id": "c", "rubrics": [rubric("a")], "conversation": turns}
    text = json.dumps({"eval_set_id": "s", "eval_cases": [case]})
    [eval_case] = read_eval_set(text.encode(), file=FILE).cases
    a, b = (Rubric(id=name, text=f"is {name}", type="T") for name in "ab")
    assert eval_case.rubrics == ((a, b), (a,))


def test_camel_case_eval_set_is_equivalent() -> None:
    snake = {
        "eval_set_id": "s",
        "creation_timestamp": 0,
        "eval_cases": [
            {
                "eval_id": "c",
                "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "polite"}}],
                "conversation": [
                    {
                        "invocation_id": "i",
                        "user_content": content("q"),
                        "final_response": content("a"),
                        "intermediate_data": {
                            "tool_uses": [{"name": "my_tool", "args": {"snake_key": 1}}],
                            "tool_responses": [{"name": "my_tool", "response": {"a_b": 2}}],
                            "intermediate_responses": [["agent", [{"text": "hm"}]]],
                        },
                    },
                    {
                        "user_content": content("q"),
                        "intermediate_data": {
                            "invocation_events": [
                                {"author": "a", "content": {"parts": [{"function_call": {}}]}}
                            ]
                        },
                    },
                ],
            }
        ],
    }
    free_keys = {"my_tool", "snake_key", "a_b"}
    cases = read(_camel(snake, free_keys)).cases
    assert [case.turns for case in cases] == [case.turns for case in read(snake).cases]
    assert cases[0].turns[0].tool_calls == (ToolCall(name="my_tool", args={"snake_key": 1}),)


def _camel(value: Any, free_keys: set[str]) -> Any:
    if isinstance(value, list):
        return [_camel(each, free_keys) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key if key in free_keys else _camel_key(key): _camel(inner, free_keys)
        for key, inner in value.items()
    }


def _camel_key(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.title, rest))


@pytest.mark.parametrize(
    ("invocation", "expected"),
    [
        pytest.param({}, None, id="no final response"),
        pytest.param({"final_response": None}, None, id="null"),
        pytest.param({"final_response": {"role": "model"}}, None, id="no parts"),
        pytest.param({"final_response": content("")}, None, id="empty text"),
        pytest.param({"final_response": content("a", "", "b")}, "ab", id="two texts"),
        pytest.param(
            {"final_response": {"parts": [{"text": "hm", "thought": True}, {"inline_data": {}}]}},
            "hm",
            id="thoughts count, other parts do not",
        ),
    ],
)
def test_final_text_joins_text_parts(invocation: dict[str, object], expected: str | None) -> None:
    assert turn_of(invocation).final_text == expected


@pytest.mark.parametrize(
    ("use", "args"),
    [
        pytest.param({"name": "f"}, None, id="missing"),
        pytest.param({"name": "f", "args": None}, None, id="null"),
        pytest.param({"name": "f", "args": {}}, {}, id="empty"),
    ],
)
def test_missing_arguments_are_not_empty_arguments(
    use: dict[str, object], args: JsonObject | None
) -> None:
    assert turn_of({"intermediate_data": {"tool_uses": [use]}}).tool_calls == (
        ToolCall(name="f", args=args),
    )


def test_trajectory_is_read_from_events() -> None:
    events = [
        {"author": "agent", "content": {"parts": [{"function_call": {"name": "f", "args": {}}}]}},
        {"author": "agent", "usage_metadata": {}, "content": content("working on it")},
        {"author": "tool", "content": {"parts": [{"function_response": {"name": "f"}}]}},
        {"author": "agent", "content": {"parts": [{"function_call": {"name": "g"}}]}},
    ]
    turn = turn_of({"intermediate_data": {"invocation_events": events}})
    assert turn.tool_calls == (ToolCall(name="f", args={}), ToolCall(name="g"))
    assert turn.tool_responses == (ToolResponse(name="f", call_index=0),)


@pytest.mark.parametrize(
    ("calls", "responses", "answered"),
    [
        pytest.param(["f:1", "f:2"], ["f:2", "f:1"], [1, 0], id="by id"),
        pytest.param(["f", "g", "f"], ["g", "f", "f"], [1, 0, 2], id="by name, in order"),
        pytest.param(["f", "f:2"], ["f", "f:2"], [0, 1], id="id precedes name"),
        pytest.param(["f:1", "f:2"], ["f:9"], [0], id="unknown id falls back to name"),
        pytest.param(["f"], ["g"], [None], id="another name"),
        pytest.param(["f"], ["f", "f"], [0, None], id="more responses than calls"),
    ],
)
def test_response_is_matched_to_its_call(
    calls: list[str], responses: list[str], answered: list[int | None]
) -> None:
    turn = turn_of(
        {
            "intermediate_data": {
                "tool_uses": [_tool(call) for call in calls],
                "tool_responses": [_tool(response) for response in responses],
            }
        }
    )
    assert [response.call_index for response in turn.tool_responses] == answered


def _tool(written: str) -> dict[str, object]:
    name, _, tool_id = written.partition(":")
    return {"name": name, "id": tool_id} if tool_id else {"name": name}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"eval_id": "c", "conversation": []}, id="empty conversation"),
        pytest.param(
            {"eval_id": "c", "conversation_scenario": {"starting_prompt": "hi"}}, id="scenario"
        ),
    ],
)
def test_case_without_turns_is_kept(case: dict[str, object]) -> None:
    assert [each.turns for each in read(a_set(case)).cases] == [()]


def test_unknown_keys_are_allowed_in_set_and_case() -> None:
    value = {**a_set({**a_case(), "owner": "me"}), "$schema": "x"}
    assert read(value).id == "s"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            [],
            [f"the file is not an eval set: found a list ({SET_HINT})"],
            id="list",
        ),
        pytest.param(
            {"resourceSpans": []},
            ["an eval set needs 'eval_set_id'", "an eval set needs 'eval_cases'"],
            id="trace file",
        ),
        pytest.param(
            {"eval_set_id": 5, "eval_case": []},
            [
                "an eval set needs 'eval_cases' (it has 'eval_case')",
                "'eval_set_id' is a number, not a string",
            ],
            id="wrong type and misspelled key",
        ),
        pytest.param(a_set("c"), ["a case is a string, not an object"], id="a case is a string"),
        pytest.param(
            a_set({"eval_id": "c"}),
            ["a case needs either 'conversation' or 'conversation_scenario'"],
            id="neither conversation nor scenario",
        ),
        pytest.param(
            a_set({**a_case(), "conversation_scenario": {}}),
            ["a case needs either 'conversation' or 'conversation_scenario'"],
            id="both conversation and scenario",
        ),
        pytest.param(a_set(a_case(), a_case()), ["duplicate eval_id 'c'"], id="duplicate ids"),
        pytest.param(
            a_set(a_case({})), ["an invocation needs 'user_content'"], id="no user content"
        ),
        pytest.param(
            a_set(a_case({"user_content": "hi"})),
            ['\'user_content\' is a string, not an object (write {"parts": [{"text": "..."}]})'],
            id="text instead of content",
        ),
        pytest.param(
            a_set(a_case({"user_content": content(), "final_respons": content()})),
            ["an invocation has no key 'final_respons' (did you mean 'final_response'?)"],
            id="misspelled key in an invocation",
        ),
        pytest.param(
            a_set(a_case({"user_content": {"parts": [{"txt": "a"}], "rol": "user"}})),
            [
                "a part has no key 'txt' (did you mean 'text'?)",
                "a content has no key 'rol' (did you mean 'role'?)",
            ],
            id="misspelled keys in a content",
        ),
        pytest.param(
            a_set(a_case({"user_content": content(), "intermediate_data": {"tool_use": []}})),
            ["intermediate data has no key 'tool_use' (did you mean 'tool_uses'?)"],
            id="misspelled key in intermediate data",
        ),
        pytest.param(
            a_set(
                a_case(
                    {
                        "user_content": content(),
                        "intermediate_data": {"tool_uses": [{"name": "f", "args": "{}"}]},
                    }
                )
            ),
            ["'args' is a string, not an object"],
            id="text instead of arguments",
        ),
        pytest.param(
            a_set(
                a_case(
                    {
                        "user_content": content(),
                        "intermediate_data": {"tool_uses": [], "invocation_events": [{}]},
                    }
                )
            ),
            [
                "'invocation_events' cannot be combined with 'tool_uses' or 'tool_responses'",
                "an event needs 'author'",
            ],
            id="both kinds of trajectory, and an event without author",
        ),
        pytest.param(
            a_set({**a_case(), "rubrics": [{"rubric_id": "r", "rubric_content": {"text": "x"}}]}),
            ["a rubric's content has no key 'text'"],
            id="unknown key in a rubric",
        ),
        pytest.param(
            a_set({**a_case(), "rubrics": [{"rubric_content": None}]}),
            ["a rubric needs 'rubric_id'", "a rubric needs 'rubric_content'"],
            id="incomplete rubric",
        ),
    ],
)
def test_invalid_eval_set_is_rejected(value: object, expected: list[str]) -> None:
    assert [error.split(": ", 1)[1] for error in errors_of(value)] == expected


LIKE_SET = "an eval set is one JSON document of ADK"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        pytest.param(b"", "1: the file is empty", LIKE_SET, id="empty"),
        pytest.param(
            b'{"eval_set_id": "s"',
            "1:20: the file is not JSON: expecting ',' delimiter",
            LIKE_SET,
            id="cut off",
        ),
        pytest.param(
            b"eval_set_id: s\neval_cases: []",
            "1:1: the file is not JSON: expecting value",
            LIKE_SET,
            id="YAML",
        ),
        pytest.param(
            b'{"a": 1}\n{"a": 2}',
            "1: the file is JSON Lines, not an eval set",
            LIKE_SET,
            id="lines",
        ),
        pytest.param(
            b'{"a": 1, "a": 2}',
            "1:10: the key 'a' appears twice in one object",
            "only the last one would be used",
            id="a hint of its own",
        ),
    ],
)
def test_other_text_than_json_is_rejected_with_what_an_eval_set_is(
    data: bytes, message: str, hint: str
) -> None:
    [error] = errors_of(data)
    assert error.startswith(f"{FILE}:{message} ({hint}")


def test_errors_have_lines_and_are_sorted() -> None:
    text = b"""{
  "eval_set_id": "s",
  "evalCases": [
    {"evalId": "a", "conversation": [
      {"userContent": {"parts": [{"text": 1}]},
       "bogus": 1}
    ]},
    {"evalId": "a",
     "conversation": []}
  ]
}"""
    assert errors_of(text) == [
        f"{FILE}:5:35: 'text' is a number, not a string",
        f"{FILE}:6:8: an invocation has no key 'bogus'",
        f"{FILE}:8:6: duplicate eval_id 'a'",
    ]


def test_thousand_invalid_cases_are_all_reported() -> None:
    case = a_case(*[{"user_content": content("q"), "bogus": {"a": [1, 2, 3]}}] * 3)
    data = json.dumps(a_set(*[case] * 1_000), indent=2).encode()
    with pytest.raises(InputError) as caught:
        read_eval_set(data, file=FILE)
    # Three invalid turns per case, and a duplicate id in all but the first.
    assert len(caught.value.problems) == 3 * 1_000 + 999


KEYS = """
eval_set_id eval_cases evalCases eval_id conversation user_content parts intermediate_data tool_uses
invocation_events rubrics text args author
"""
NAMES = st.sampled_from(KEYS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)


@given(JSON)
def test_arbitrary_json_is_read_or_rejected(value: object) -> None:
    try:
        eval_set = read(value)
    except InputError:
        assert errors_of(value)
    else:
        assert eval_set.place.file == FILE


def test_test_file_in_its_old_form_is_one_case() -> None:
    turns = [
        {"query": "Hi", "reference": "Hello"},
        {"query": "Roll", "expected_tool_use": [{"tool_name": "roll", "tool_input": {"n": 6}}]},
    ]
    [case] = read_eval_set(json.dumps(turns).encode(), file="evals/dice.test.json").cases
    assert case.id == "dice"
    assert [(turn.user_text, turn.final_text) for turn in case.turns] == [
        ("Hi", "Hello"),
        ("Roll", None),
    ]
    assert case.turns[1].tool_calls == (ToolCall(name="roll", args={"n": 6}),)


def test_list_of_named_cases_is_read() -> None:
    cases = [{"name": name, "data": [{"query": "Hi"}], "initial_session": {}} for name in "ab"]
    assert [case.id for case in read(cases).cases] == ["a", "b"]
    cases[1]["name"] = "a"
    with pytest.raises(InputError, match="duplicate name 'a'"):
        read(cases)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"query": "Hi"}, 5], "a turn must be an object"),
        ([{"query": 5}], "'query' is a number, not a string"),
        ([{"query": "Hi", "expected_tool_use": [{"name": "f"}]}], "a tool use needs 'tool_name'"),
        ([{"name": "a", "data": [{}]}], "a turn needs 'query'"),
    ],
)
def test_problem_in_an_old_test_file_has_its_place(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(value)
