"""Eval cases in the JSON of an ADK eval set: what changes, and what stays."""

import json

from agentci.model.trace import ToolCall, Turn
from agentci.recordings.adk_eval_set import add_case, replace_case

CALL = ToolCall(name="find", args={"id": 1})


def conversation(text: str) -> list[dict[str, object]]:
    turns: list[dict[str, object]] = json.loads(text)["eval_cases"][0]["conversation"]
    return turns


def test_turn_that_stays_the_same_is_not_rewritten() -> None:
    turn = Turn(id="", user_text="Hi", answer_parts=("Ho",), tool_calls=(CALL,))
    text = add_case("", "a", [turn], set_id="s")
    written = json.loads(text)
    [former] = written["eval_cases"][0]["conversation"]
    former["intermediate_data"]["tool_responses"] = [{"name": "find", "response": {}}]
    former["final_response"]["parts"] = [{"text": "H"}, {"text": "o"}]
    text = json.dumps(written, indent=1)
    assert json.loads(replace_case(text, 0, [turn])) == written
    assert '\n "eval_set_id"' in replace_case(text, 0, [turn])


def test_answer_that_is_not_kept_is_removed_and_turns_are_added() -> None:
    first = Turn(id="", user_text="Hi", answer_parts=("Ho",))
    text = add_case("", "a", [first], set_id="s")
    silent = Turn(id="", user_text="Hi", tool_calls=(CALL,))
    changed, added = conversation(replace_case(text, 0, [silent, first]))
    assert "final_response" not in changed
    assert changed["intermediate_data"] == {"tool_uses": [{"name": "find", "args": {"id": 1}}]}
    assert added["user_content"] == {"role": "user", "parts": [{"text": "Hi"}]}
