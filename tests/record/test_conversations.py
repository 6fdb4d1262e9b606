"""Which model calls belong together if their histories do not show it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agentci.model.values import Json, replace
from agentci.record.apis import gemini, openai_chat, openai_responses
from agentci.record.apis.model_api import ModelApi
from agentci.record.conversations import RebuiltTurn, rebuild_turns
from agentci.record.exchanges import (
    MAX_LITERAL_CHARACTERS,
    Exchange,
    RawExchange,
    convert_reply,
    convert_request,
    parse_exchanges,
)
from agentci.recordings.telemetry.messages import extract_text


class Clock:
    """Numbers calls one after the other, each with a start and an end."""

    def __init__(self) -> None:
        self.now = 0

    def call(
        self, api: ModelApi, body: Mapping[str, Any], response: Mapping[str, Any] | None
    ) -> Exchange:
        self.now += 10
        answered: dict[str, Json] = dict(response or {})
        return Exchange(
            api=api,
            method="POST",
            path="/x",
            body=body,
            response=answered,
            request=convert_request(api.read_request(body, "/models/m:generateContent")),
            reply=convert_reply(api.read_reply(answered)),
            started=self.now,
            answered=self.now + 5,
            ended=self.now + 6,
            status=200 if response else 500,
            failed=response is None,
        )


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: Any) -> Any:
    listed = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {})}


def chat(clock: Clock, messages: list[Any], reply: Any) -> Exchange:
    response = None if reply is None else {"choices": [{"index": 0, "message": reply}]}
    return clock.call(openai_chat, {"messages": messages}, response)


def result(id_: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def outline(turns: tuple[RebuiltTurn, ...]) -> list[tuple[int, str, int]]:
    """Conversation, question and number of calls of each turn."""
    return [(turn.conversation, turn.question, len(turn.steps)) for turn in turns]


def test_server_side_history_is_resolved() -> None:
    clock = Clock()

    def ask(text: str, id_: str, previous: str | None) -> Exchange:
        body = {"input": text, "previous_response_id": previous}
        part = {"type": "output_text", "text": "ok"}
        item = {"type": "message", "role": "assistant", "content": [part]}
        return clock.call(openai_responses, body, {"id": id_, "output": [item]})

    turns = rebuild_turns(
        [ask("A", "r1", None), ask("B", "r2", None), ask("C", "r3", "r1"), ask("D", "r4", "gone")]
    )
    assert outline(turns) == [(0, "A", 1), (1, "B", 1), (0, "C", 1), (2, "D", 1)]


def test_conversation_of_the_service_is_resolved() -> None:
    clock = Clock()

    def ask(text: str, conversation: Any) -> Exchange:
        body = {"input": text, "conversation": conversation}
        return clock.call(openai_responses, body, {"output": []})

    turns = rebuild_turns([ask("A", "c1"), ask("B", "c2"), ask("C", {"id": "c1"})])
    assert outline(turns) == [(0, "A", 1), (1, "B", 1), (0, "C", 1)]


def test_ids_decide_between_equal_conversations() -> None:
    clock = Clock()
    asked = [user("Hi")]
    first = assistant(None, ("c1", "f", "{}"))
    second = assistant(None, ("c2", "f", "{}"))
    calls = [
        chat(clock, asked, first),
        chat(clock, asked, second),
        chat(clock, [*asked, second, result("c2", "two")], assistant("done 2")),
        chat(clock, [*asked, first, result("c1", "one")], assistant("done 1")),
    ]
    turns = rebuild_turns(calls)
    assert outline(turns) == [(0, "Hi", 2), (1, "Hi", 2)]
    assert [turn.steps[0].results[0].value for turn in turns] == ["one", "two"]


def test_traces_decide_between_equal_conversations() -> None:
    clock = Clock()

    def ask(trace: str, *asked: Any) -> Exchange:
        return replace(chat(clock, list(asked), assistant("Hello")), trace=trace)

    again = (user("Hi"), assistant("Hello"), user("Bye"))
    turns = rebuild_turns(
        [ask("one", user("Hi")), ask("two", user("Hi")), ask("two", *again), ask("one", *again)]
    )
    found = [(turn.conversation, turn.steps[0].exchange.trace) for turn in turns]
    assert found == [(0, "one"), (1, "two"), (1, "two"), (0, "one")]


def test_result_is_matched_by_id_after_the_history_was_shortened() -> None:
    clock = Clock()
    call = assistant(None, ("c1", "f", "{}"))
    calls = [
        chat(clock, [user("A long question")], call),
        chat(clock, [user("(summary)"), call, result("c1", "x")], assistant("done")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A long question", 2)]


def test_rewritten_answer_does_not_begin_a_conversation() -> None:
    clock = Clock()
    calls = [
        chat(clock, [user("A")], assistant("one")),
        chat(clock, [user("A"), assistant("<think></think>one"), user("B")], assistant("two")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 1), (0, "B", 1)]


def test_split_answer_does_not_begin_a_conversation() -> None:
    clock = Clock()
    calls = [
        chat(clock, [user("A")], assistant("one two")),
        chat(clock, [user("A"), assistant("one"), assistant(" two"), user("B")], assistant("3")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 1), (0, "B", 1)]


def test_results_without_ids_are_matched_by_name() -> None:
    clock = Clock()

    def content(role: str, *parts: Any) -> Any:
        return {"role": role, "parts": list(parts)}

    asked = content("user", {"text": "Hi"})
    calls = content(
        "model",
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "g", "args": {}}},
    )
    results = content(
        "user",
        {"functionResponse": {"name": "g", "response": {"r": 2}}},
        {"functionResponse": {"name": "f", "response": {"r": 1}}},
    )
    done = content("model", {"text": "done"})
    [turn] = rebuild_turns(
        [
            clock.call(gemini, {"contents": [asked]}, {"candidates": [{"content": calls}]}),
            clock.call(
                gemini, {"contents": [asked, calls, results]}, {"candidates": [{"content": done}]}
            ),
        ]
    )
    assert {index: one.value for index, one in turn.steps[0].results.items()} == {
        0: {"r": 1},
        1: {"r": 2},
    }


def test_agent_that_takes_over_continues_the_turn() -> None:
    clock = Clock()
    moved = user("For context: [triage] called tool `transfer`")
    calls = [
        chat(clock, [user("Refund me")], assistant(None, ("c1", "transfer", "{}"))),
        chat(clock, [user("Refund me"), moved], assistant(None, ("c2", "refund", "{}"))),
        chat(
            clock,
            [user("Refund me"), moved, assistant(None, ("c2", "refund", "{}")), result("c2", "ok")],
            assistant("Done"),
        ),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "Refund me", 3)]


def test_equal_question_without_open_call_begins_a_conversation() -> None:
    clock = Clock()
    calls = [
        chat(clock, [user("A")], assistant("one")),
        chat(clock, [user("A"), user("B")], assistant("two")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 1), (1, "A\nB", 1)]


@pytest.mark.parametrize(
    ("replies", "joined", "separate"),
    [
        (["", "Hi", "Hi"], [(0, "Q", 1), (2, "Q", 1)], [(0, "Q", 1), (1, "Q", 1), (2, "Q", 1)]),
        ([None, "", ""], [(0, "Q", 1)], [(0, "Q", 1), (1, "Q", 1)]),
    ],
)
def test_request_that_is_repeated_after_an_empty_answer_is_of_the_same_turn(
    replies: list[str | None], joined: Any, separate: Any
) -> None:
    clock = Clock()
    answers = (None if each is None else assistant(each) for each in replies)
    calls = [chat(clock, [user("Q")], each) for each in answers]
    assert outline(rebuild_turns(calls, joins_unanswered=True)) == joined
    assert outline(rebuild_turns(calls)) == separate


def sample(exchanges: list[Exchange], **options: Any) -> list[list[tuple[int, list[int]]]]:
    """Rebuild turns with all repeated requests: start of the call and of the unused ones."""
    turns = rebuild_turns(exchanges, joins_unanswered=True, joins_answered=True, **options)
    return [
        [(step.exchange.started, [each.started for each in step.unused]) for step in turn.steps]
        for turn in turns
    ]


@pytest.mark.parametrize("ids", [("c1", "c2"), ("same", "same")])
@pytest.mark.parametrize("used", [0, 1])
def test_reply_with_which_the_agent_goes_on_counts(ids: tuple[str, str], used: int) -> None:
    clock = Clock()
    asked = [user("Q")]
    both = [assistant(None, (id_, "f", f'{{"n": {number}}}')) for number, id_ in enumerate(ids)]
    answered = [*asked, both[used], result(ids[used], "x")]
    calls = [
        *(chat(clock, asked, each) for each in both),
        *(chat(clock, answered, assistant(text)) for text in ("one", "two")),
        chat(clock, [*answered, assistant("one"), user("More")], assistant("three")),
    ]
    first = [(10, [20]), (20, [10])][used]
    assert sample(calls[:3]) == [[first, (30, [])]]
    assert sample(calls[:4]) == [[first, (40, [30])]]
    assert sample(calls) == [[first, (30, [40])], [(50, [])]]
    turns = rebuild_turns(calls, joins_unanswered=True, joins_answered=True)
    assert [turn.conversation for turn in turns] == [0, 0]
    assert turns[0].steps[0].results[0].value == "x"
    assert turns[0].ended == 46


def test_equal_replies_without_ids_are_samples_of_one_call() -> None:
    clock = Clock()

    def ask(*contents: Any, **reply: Any) -> Exchange:
        body = {"contents": list(contents), "generationConfig": {"seed": clock.now}}
        return clock.call(
            gemini, body, {"candidates": [{"content": {"role": "model", "parts": [reply]}}]}
        )

    question = {"role": "user", "parts": [{"text": "Q"}]}
    call = {"functionCall": {"name": "f", "args": {}}}
    answered = [
        question,
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]},
    ]
    calls = [ask(question, **call), ask(question, **call)]
    calls += [ask(*answered, text="one"), ask(*answered, text="two")]
    assert sample(calls) == [[(10, [20]), (40, [30])]]


def test_printed_answer_of_several_counts_else_the_last_one() -> None:
    clock = Clock()
    replies = [assistant(each) for each in ("red", "blue", "green", "")]
    calls = [chat(clock, [user("Q")], each) for each in (*replies, assistant(None, ("c", "f", "")))]
    assert sample(calls, printed="Color: Blue\n") == [[(20, [10, 30, 40, 50])]]
    assert sample(calls, printed="none") == [[(30, [10, 20, 40, 50])]]


def test_complete_runs_of_one_question_are_turns() -> None:
    clock = Clock()
    calls = []
    for id_ in ("c1", "c2"):
        call = assistant(None, (id_, "f", "{}"))
        calls.append(chat(clock, [user("Q")], call))
        calls.append(chat(clock, [user("Q"), call, result(id_, "x")], assistant("done")))
    assert sample(calls) == [[(10, []), (20, [])], [(30, []), (40, [])]]
    interleaved = [replace(each, started=at) for each, at in zip(calls, (1, 3, 2, 4), strict=True)]
    assert sample(interleaved) == [[(1, []), (3, [])], [(2, []), (4, [])]]


def test_requests_with_other_instructions_are_turns() -> None:
    clock = Clock()
    texts = ("Route it", "Answer it")
    calls = [
        chat(clock, [{"role": "system", "content": each}, user("Q")], assistant(each))
        for each in texts
    ]
    assert sample(calls) == [[(10, [])], [(20, [])]]


def test_calls_of_a_repeated_request_with_subagents_stay() -> None:
    clock = Clock()
    call = assistant(None, *((f"c{n}", "ask", '{"q": "the same question"}') for n in (1, 2)))
    calls = [
        chat(clock, [user("Q")], call),
        *(chat(clock, [user("the same question")], assistant(each)) for each in ("a", "b")),
        chat(clock, [user("Q"), call, result("c1", "a"), result("c2", "b")], assistant("done")),
    ]
    assert sample(calls) == [[(10, []), (40, [])]]
    [turn] = rebuild_turns(calls, joins_unanswered=True, joins_answered=True)
    [started] = turn.steps[0].subagents.values()
    assert [len(each.steps[0].unused) for each in started] == [1]


def test_new_question_during_open_call_stays_in_the_turn() -> None:
    clock = Clock()
    call = assistant(None, ("c1", "f", "{}"))
    calls = [
        chat(clock, [user("A")], call),
        chat(clock, [user("A"), call, result("c1", "x"), user("hurry")], assistant("done")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 2)]


def test_failure_of_the_last_call_is_part_of_the_turn() -> None:
    clock = Clock()
    call = assistant(None, ("c1", "f", "{}"))
    calls = [
        chat(clock, [user("A")], call),
        chat(clock, [user("A"), call, result("c1", "x")], None),
        chat(clock, [user("A"), call, result("c1", "x")], None),
    ]
    [turn] = rebuild_turns(calls)
    assert [step.exchange.failed for step in turn.steps] == [False, True]


def test_question_of_another_conversation_is_not_of_a_subagent() -> None:
    clock = Clock()
    call = assistant(None, ("c1", "f", '{"question": "something else entirely"}'))
    calls = [
        chat(clock, [user("A")], call),
        chat(clock, [user("B")], assistant("b")),
        chat(clock, [user("A"), call, result("c1", "x")], assistant("done")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 2), (1, "B", 1)]


def test_subagent_must_end_before_its_result_is_sent() -> None:
    clock = Clock()
    call = assistant(None, ("c1", "f", '{"q": "the same question"}'))
    calls = [
        chat(clock, [user("A")], call),
        chat(clock, [user("A"), call, result("c1", "x")], assistant("done")),
        chat(clock, [user("the same question")], assistant("later")),
    ]
    assert outline(rebuild_turns(calls)) == [(0, "A", 2), (1, "the same question", 1)]


def test_calls_of_hosted_tools_need_no_answer() -> None:
    clock = Clock()
    search = {"type": "web_search_call", "id": "ws1", "action": {"query": "q"}, "status": "x"}
    part = {"type": "output_text", "text": "found"}
    message = {"type": "message", "role": "assistant", "content": [part]}
    asked: list[Any] = [{"role": "user", "content": "A"}]
    output = {"output": [search, message]}
    again = [*asked, search, message, {"role": "user", "content": "B"}]
    turns = rebuild_turns(
        [
            clock.call(openai_responses, {"input": asked}, output),
            clock.call(openai_responses, {"input": again}, {"output": [message]}),
        ]
    )
    assert outline(turns) == [(0, "A", 1), (0, "B", 1)]
    reply = turns[0].steps[0].exchange.reply
    assert [call.name for one in reply.messages for call in one.content.calls] == ["web_search"]
    assert reply.calls == ()


def test_index_of_a_streamed_call_only_orders_the_calls() -> None:
    def chunk(**part: Any) -> Any:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}

    events = [
        chunk(index=10**20, id="b", function={"name": "g", "arguments": "{"}),
        chunk(index=1, id="a", function={"name": "f", "arguments": "{}"}),
        chunk(index=10**20, function={"arguments": "}"}),
        chunk(id="c", function={"name": "h"}),
        chunk(function={"arguments": "{}"}),
    ]
    reply = openai_chat.read_reply(openai_chat.merge_events(events))
    named = [(call.id, call.name, call.arguments) for call in reply.calls]
    assert sorted(named) == [("a", "f", {}), ("b", "g", {}), ("c", "h", {})]
    assert named.index(("a", "f", {})) < named.index(("b", "g", {}))


def describe_steps(turns: tuple[RebuiltTurn, ...]) -> list[tuple[str, list[Any], str | None]]:
    """Question, tool calls with their results, and answer of each turn."""
    return [
        (
            turn.question,
            [
                (call.name, call.arguments, step.results[index].value)
                for step in turn.steps
                for index, call in enumerate(step.exchange.reply.calls)
            ],
            extract_text(turn.steps[-1].exchange.reply.messages),
        )
        for turn in turns
    ]


def test_answers_of_output_tools_are_answers() -> None:
    clock = Clock()
    asked = [user("A")]
    call = assistant(None, ("c1", "f", '{"x": 1}'))
    answer = assistant(None, ("c2", "final_result", '{"city": "Oslo"}'))
    calls = [
        chat(clock, asked, call),
        chat(clock, [*asked, call, result("c1", "one")], answer),
    ]
    asked = [*asked, call, result("c1", "one"), answer, result("c2", "Final result processed.")]
    other = assistant(None, ("c3", "final_result_Other", "[]"))
    calls.append(chat(clock, [*asked, user("B")], other))
    turns = rebuild_turns(calls)
    assert describe_steps(turns) == [
        ("A", [("f", {"x": 1}, "one")], '{"city": "Oslo"}'),
        ("B", [], "[]"),
    ]
    assert {turn.conversation for turn in turns} == {0}
    assert turns[1].steps[0].exchange.reply.finish_reasons == ("stop",)


def test_calls_and_results_that_are_text_are_read() -> None:
    clock = Clock()
    listed = (
        "Calling tools:\n[{'id': 'c1', 'type': 'function', 'function': {'name': 'f', 'arguments': "
        "{'x': 1}}}, {'id': 'c2', 'type': 'function', 'function': {'name': 'g', 'arguments': {}}}]"
    )
    failed = listed.replace("c1", "c3").replace("c2", "c4")
    done = (
        "Calling tools:\n[{'id': 'c5', 'type': 'function', 'function': "
        "{'name': 'final_answer', 'arguments': {'answer': 'Done'}}}]"
    )
    asked = [user("New task:\nA")]
    calls = [
        chat(clock, asked, assistant("Thought", ("c1", "f", '{"x": 1}'), ("c2", "g", "{}"))),
    ]
    asked = [*asked, assistant(f"Thought\n{listed}"), user("Observation:\none\ntwo")]
    calls.append(chat(clock, asked, assistant(None, ("c3", "f", '{"x": 1}'), ("c4", "g", "{}"))))
    asked = [*asked, assistant(failed), user("Call id: c3\nError:\nno\nNow let's retry")]
    calls.append(chat(clock, asked, assistant(None, ("c5", "final_answer", '{"answer": "Done"}'))))
    asked = [*asked, assistant(done), user("Observation:\nDone\nNew task:\nB")]
    calls.append(chat(clock, asked, assistant("Calling tools:\n[broken")))
    asked = [*asked, assistant("Calling tools:\n[broken"), user("Observation:\nC")]
    calls.append(chat(clock, asked, assistant("Bye")))
    turns = rebuild_turns(calls)
    error = "Call id: c3\nError:\nno\nNow let's retry"
    assert describe_steps(turns) == [
        (
            "A",
            [("f", {"x": 1}, "one"), ("g", {}, "two"), ("f", {"x": 1}, error), ("g", {}, error)],
            "Done",
        ),
        ("B", [], "Calling tools:\n[broken"),
        ("Observation:\nC", [], "Bye"),
    ]
    assert {turn.conversation for turn in turns} == {0}


@pytest.mark.parametrize(
    "value",
    [
        *("{1, 2}", "b'x'", "1j", "...", "1e999", "9" * 400, "{(1, 2): 3}", "[" * 90 + "]" * 90),
        f"'{'x' * MAX_LITERAL_CHARACTERS}'",
    ],
    ids=["set", "bytes", "complex", "ellipsis", "infinite", "digits", "key", "deep", "long"],
)
def test_calls_that_are_text_with_values_beyond_json_stay_text(value: str) -> None:
    clock = Clock()
    listed = f"Calling tools:\n[{{'id': 'c', 'function': {{'name': 'f', 'arguments': {value}}}}}]"
    first = chat(clock, [user("New task:\nA")], assistant(listed))
    asked = [user("New task:\nA"), assistant(listed), user("B")]
    turns = rebuild_turns([first, chat(clock, asked, assistant("Bye"))])
    assert describe_steps(turns) == [("A", [], listed), ("B", [], "Bye")]


def make_raw(number: int, body: Mapping[str, Any], response: Mapping[str, Any]) -> RawExchange:
    return RawExchange(
        case="",
        api=openai_responses,
        method="POST",
        path="/responses",
        request=json.dumps(body).encode(),
        response=json.dumps(response).encode(),
        status=200,
        content_type="application/json",
        encoding="",
        started=10 * number,
        answered=10 * number + 1,
        ended=10 * number + 2,
        finished=True,
    )


def test_items_that_a_request_names_by_id_are_found_in_earlier_responses() -> None:
    part = {"type": "output_text", "text": "ok"}
    answer = {"type": "message", "id": "m1", "role": "assistant", "content": [part]}
    call = {"type": "function_call", "id": "f2", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "function_call_output", "call_id": "c", "output": "one"}
    known = [user("A"), {"type": "item_reference", "id": "m1"}, user("B")]
    exchanges = parse_exchanges(
        [
            make_raw(1, {"input": [user("A")]}, {"output": [answer]}),
            make_raw(2, {"input": known}, {"output": [call]}),
            make_raw(3, {"input": [*known, {"id": "f2"}, done]}, {"output": [answer]}),
            make_raw(4, {"input": [user("A"), {"id": "gone"}, user("C")]}, {"output": []}),
        ]
    )
    turns = rebuild_turns(exchanges)
    assert outline(turns) == [(0, "A", 1), (0, "B", 2), (1, "A\nC", 1)]
    assert turns[1].steps[0].results[0].value == "one"
