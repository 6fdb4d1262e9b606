"""The content of cases: all that was recorded and expected, decoded again, beside the baseline."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentci.model.case import AgentvCase, Case, DatasetRow, EvalCase
from agentci.model.result import BaselineResult, CallContent, RunContent, TurnContent
from agentci.model.trace import (
    Message,
    ModelStep,
    RunSpan,
    SpanKind,
    SubagentRun,
    TokenUsage,
    ToolCall,
    ToolResponse,
    ToolUse,
    Trace,
    Transcript,
    Turn,
)
from agentci.model.values import Place, replace
from agentci.recordings.agentv_run import convert_transcript_to_turn
from agentci.reports.contents import reduce_content
from agentci.reports.run_content import (
    add_baseline,
    add_baseline_durations,
    decode_content,
    encode_content,
    make_case_summary,
    make_run_content,
    mark_failed_calls,
    restore_baseline,
)

PLACE = Place(file="t.json")
ASKS = Turn(
    id="a1",
    user_text="Where is order 4711?",
    answer_parts=("It is ", "on its way."),
    intermediate_texts=("Let me look.",),
    tool_calls=(
        ToolCall(name="find_order", args={"order": 4711}, id="c1"),
        ToolCall(name="track"),
        ToolCall(name="notify", args=None),
    ),
    tool_responses=(
        ToolResponse(name="find_order", output={"state": "sent"}, id="c1", call_index=0),
        ToolResponse(name="track", output=None, failed=True, call_index=1),
    ),
    trace_id="t1",
    span_id="a1",
)


def _content(case: Case) -> dict[str, Any]:
    encoded = encode_content(make_run_content(case))
    assert encode_content(decode_content(encoded)) == encoded
    value: dict[str, Any] = json.loads(encoded)
    return value


def _case(*turns: Turn, expected: tuple[Turn, ...] | None = None, **trace: Any) -> Case:
    golden = None if expected is None else EvalCase(id="e", turns=expected, place=PLACE)
    recorded = Trace(id="t1", key="t1", turns=turns, place=PLACE, **trace)
    return Case(id="e", trace=recorded, expected=golden)


def test_question_that_was_not_captured_is_not_an_empty_one() -> None:
    turns = (replace(ASKS, user_text=""), ASKS)
    found = _content(_case(*turns, not_captured="the content was not captured"))["turns"]
    assert [each.get("user_recorded", True) for each in found] == [False, True]
    assert "user_recorded" not in _content(_case(*turns))["turns"][0]


def test_early_end_of_an_answer_is_a_warning_unless_it_is_expected() -> None:
    """Also where the eval case has fewer turns."""
    turns = tuple(
        Turn(id=text, user_text="Hi", answer_parts=(text,), early_end="length")
        for text in ("Ho", "Bye")
    )

    def warnings(*expected: str) -> tuple[str, ...]:
        own = tuple(Turn(id=text, user_text="Hi", answer_parts=(text,)) for text in expected)
        trace = Trace(id="t", key="t", turns=turns, place=PLACE)
        case = Case(id="c", trace=trace, expected=EvalCase(id="c", turns=own, place=PLACE))
        return make_case_summary(case).warnings

    early = "the model ended its answer early in turn {}, with the finish reason length"
    assert warnings("Ho", "Bye") == ()
    assert warnings("Ho", "Good bye") == warnings("Ho") == (early.format(2),)
    assert warnings() == (early.format(1), early.format(2))


def test_turn_has_texts_calls_and_results() -> None:
    assert _content(_case(ASKS))["turns"] == [
        {
            "user": "Where is order 4711?",
            "answer": "It is on its way.",
            "texts": ["Let me look."],
            "calls": [
                {
                    "name": "find_order",
                    "arguments": {"order": 4711},
                    "result": {"state": "sent"},
                    "id": "c1",
                },
                {"name": "track", "error": True},
                {"name": "notify"},
            ],
            "id": "a1",
            "trace": "t1",
            "span": "a1",
        }
    ]


def test_null_result_is_kept() -> None:
    call = ToolCall(name="track")
    response = ToolResponse(name="track", call_index=0)
    turn = Turn(id="", user_text="", tool_calls=(call,), tool_responses=(response,))
    [written] = _content(_case(turn))["turns"]
    assert written["calls"] == [{"name": "track", "result": None}]


def test_expected_turns_are_beside_recorded_ones_and_missing_ones_follow() -> None:
    expected = (
        Turn(id="", user_text="Where?", answer_parts=("Soon.",)),
        Turn(id="", user_text="Thanks", tool_calls=(ToolCall(name="close", args={}),)),
    )
    first, second = _content(_case(ASKS, expected=expected))["turns"]
    assert (first["expected_answer"], first["expected_calls"]) == ("Soon.", [])
    assert second == {
        "user": "Thanks",
        "answer": None,
        "missing": True,
        "expected_calls": [{"name": "close", "arguments": {}}],
    }


def test_recorded_turn_beyond_the_expected_ones_has_no_expectation() -> None:
    first, second = _content(_case(ASKS, ASKS, expected=(ASKS,)))["turns"]
    assert "expected_calls" in first
    assert "expected_calls" not in second


def test_turns_and_calls_have_their_measures() -> None:
    steps = (
        ModelStep(model="m", input_tokens=10, output_tokens=2, duration_ms=5.5),
        ModelStep(input_tokens=20, output_tokens=3, cost_usd=0.5),
    )
    call = ToolCall(name="f", failed=False, step=0, start=7, duration_ms=30.25, span_id="s1")
    turn = Turn(id="", user_text="", tool_calls=(call,), model_steps=steps, duration_ms=90)
    [written] = _content(_case(turn))["turns"]
    assert (written["latency_ms"], written["tokens"]) == (90.0, {"input": 30, "output": 5})
    assert written["steps"][1] == {"input_tokens": 20, "output_tokens": 3, "cost_usd": 0.5}
    assert written["calls"] == [
        {"name": "f", "error": False, "ms": 30.25, "span": "s1", "step": 0, "start": 7}
    ]


def test_tokens_of_a_turn_are_unknown_if_those_of_a_step_are() -> None:
    steps = (ModelStep(input_tokens=1, output_tokens=2), ModelStep(input_tokens=1))
    [written] = _content(_case(Turn(id="", user_text="", model_steps=steps)))["turns"]
    assert "tokens" not in written


def test_latency_of_a_case_is_that_of_its_turns_without_pauses() -> None:
    turns = [replace(ASKS, duration_ms=each) for each in (1500.5, 100)]
    assert _content(_case(*turns))["latency_ms"] == 1600.5
    assert "latency_ms" not in _content(_case(*turns, ASKS))


def test_spans_are_kept() -> None:
    span = RunSpan(id="s", name="chat", kind="model", start_ms=0.5, ms=2.0, parent="r")
    [written] = _content(_case(ASKS, spans=(span,)))["spans"]
    assert written == {
        "id": "s",
        "name": "chat",
        "kind": "model",
        "start_ms": 0.5,
        "ms": 2.0,
        "parent": "r",
    }


def test_measures_of_a_transcript_are_those_of_the_case() -> None:
    performance = {"latency": {"overall": {"max": 12.5, "count": 1}}}
    usage = TokenUsage(input=7, output=3)
    written = _content(_case(ASKS, performance=performance, usage=usage, cost_usd=0.25))
    assert (written["latency_ms"], written["cost_usd"]) == (12.5, 0.25)
    assert written["tokens"] == {"input": 7, "output": 3}


@pytest.mark.parametrize(
    "performance",
    [
        None,
        {"latency": {"overall": {"max": 12.5, "count": 2}}},
        {"latency": {"overall": {"max": -1, "count": 1}}},
        {"latency": {"overall": {"max": True, "count": 1}}},
        {"latency": 3},
    ],
)
def test_unusable_latency_is_left_out(performance: Any) -> None:
    written = _content(_case(ASKS, performance=performance, cost_usd=float("nan")))
    assert {"latency_ms", "tokens", "cost_usd"} & {*written} == set()


def test_sub_agents_are_kept_with_their_turns() -> None:
    run = SubagentRun(turns=(Turn(id="1", user_text="Look it up"),), name="finder", call_id="c1")
    [written] = _content(_case(ASKS, subagents=(run,)))["subagents"]
    assert (written["name"], written["call_id"]) == ("finder", "c1")
    assert written["turns"] == [{"user": "Look it up", "answer": None, "id": "1"}]


def test_columns_of_a_dataset_row_are_kept_without_output_of_the_agent() -> None:
    row = DatasetRow(
        id="r", query="q", columns={"query": "q", "context": "c", "response": "r"}, place=PLACE
    )
    case = Case(id="r", trace=Trace(id="r", key="r", turns=(ASKS,), place=PLACE), dataset_row=row)
    assert _content(case)["columns"] == {"query": "q", "context": "c"}


class TestEvalFiles:
    def _make(self, *expected: Any, usage: TokenUsage | None = None) -> dict[str, Any]:
        use = ToolUse(tool="find_order", input={"order": 4711}, output="sent", duration_ms=20)
        transcript = Transcript(
            messages=(Message(role="assistant", tool_calls=(use,)),),
            duration_ms=900,
            cost_usd=0.01,
            token_usage=usage,
        )
        agentv_case = AgentvCase(
            id="c", criteria="", input_messages=(), expected_messages=expected, place=PLACE
        )
        turn = convert_transcript_to_turn(transcript, question="q", answer="")
        trace = Trace(id="c", key="c", turns=(turn,), place=PLACE)
        return _content(Case(id="c", trace=trace, agentv_case=agentv_case, transcript=transcript))

    def test_measures_are_those_of_the_transcript(self) -> None:
        written = self._make(usage=TokenUsage(input=5.0, output=2.5))
        assert (written["latency_ms"], written["cost_usd"]) == (900.0, 0.01)
        assert written["tokens"] == {"input": 5, "output": 2}
        assert written["turns"][0]["calls"][0]["ms"] == 20.0
        assert "tokens" not in self._make()

    def test_expected_messages_are_the_expected_turn(self) -> None:
        calls = [{"tool": "find_order", "input": {"order": 1}}, {"input": 2}, 3]
        [turn] = self._make(
            {"role": "assistant", "tool_calls": calls}, {"role": "assistant", "content": "Sent."}
        )["turns"]
        assert turn["expected_answer"] == "Sent."
        assert turn["expected_calls"] == [{"name": "find_order", "arguments": {"order": 1}}]

    def test_case_without_expected_messages_has_no_expectation(self) -> None:
        [turn] = self._make()["turns"]
        assert {"expected_answer", "expected_calls"} & {*turn} == set()

    def test_expected_message_without_content_has_no_expected_answer(self) -> None:
        [turn] = self._make({"role": "assistant", "content": ""})["turns"]
        assert "expected_answer" not in turn


def test_lone_surrogates_and_deep_values_are_encoded() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    call = ToolCall(name="\ud800", args={"deep": deep, "long": 10**40})
    written = _content(_case(Turn(id="", user_text="\udfff", tool_calls=(call,))))
    [turn] = written["turns"]
    assert (turn["user"], turn["calls"][0]["name"]) == ("\ufffd", "\ufffd")
    assert turn["calls"][0]["arguments"]["long"] == 10**40


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (["refunds", 7, "refunds", "slow"], ["refunds", "slow"]),
        ("refunds slow", ["refunds", "slow"]),
        ({"a": 1}, None),
        ([f"t{n}" for n in range(30)], [f"t{n}" for n in range(20)]),
    ],
)
@pytest.mark.parametrize("origin", ["eval file", "dataset"])
def test_tags_of_a_case_are_kept(tags: Any, found: Any, origin: str) -> None:
    case = _case(ASKS)
    if origin == "dataset":
        row = DatasetRow(id="r", query="q", columns={"tags": tags}, place=PLACE)
        case = replace(case, dataset_row=row)
    else:
        own = AgentvCase(
            id="e", criteria="", input_messages=(), expected_messages=(), place=PLACE,
            metadata={"tags": tags},
        )  # fmt: skip
        case = replace(case, agentv_case=own)
    assert _content(case).get("tags") == found


def _run(*turns: TurnContent) -> RunContent:
    return RunContent(turns=turns)


def _turn(answer: str | None, **given: Any) -> TurnContent:
    return TurnContent(user="x", answer=answer, **given)


CALL = CallContent(name="f", arguments={"a": 1}, result="r", ms=3.0)
OTHER = CallContent(name="f", arguments={"a": 2})


@pytest.mark.parametrize(
    ("now", "before"),
    [
        pytest.param(_run(_turn("a", calls=(CALL,))), _run(_turn("a", calls=(CALL,))), id="same"),
        pytest.param(_run(_turn("a")), _run(_turn("b", latency_ms=9.0)), id="answer"),
        pytest.param(_run(_turn("a", calls=(CALL,))), _run(_turn("a", calls=(OTHER,))), id="call"),
        pytest.param(
            _run(_turn("a", calls=(CALL, CALL))),
            _run(_turn("a", calls=(CALL, replace(CALL, result={"x": "y" * 500})))),
            id="result",
        ),
        pytest.param(
            _run(_turn("a", calls=(CALL,))),
            _run(_turn("b", calls=(replace(CALL, result={"error": "no"}, failed=True),))),
            id="failed",
        ),
        pytest.param(_run(_turn("a"), _turn("b")), _run(_turn("a")), id="more turns"),
        pytest.param(_run(_turn("a")), _run(_turn("a"), _turn("b")), id="fewer turns"),
        pytest.param(_run(_turn("a")), _run(_turn("b", cut={"answer": 7})), id="shortened"),
        pytest.param(
            _run(_turn("a"), _turn(None, missing=True)), _run(_turn("a"), _turn("b")), id="missing"
        ),
        pytest.param(_run(_turn("a")), _run(), id="no turns"),
    ],
)
def test_restored_baseline_compares_as_the_original(now: RunContent, before: RunContent) -> None:
    shown = add_baseline(now, before)
    restored = restore_baseline(shown)
    assert [turn.answer for turn in restored.turns] == [turn.answer for turn in before.turns]
    assert add_baseline(now, restored) == shown


def _timed_run(*spans: tuple[SpanKind, str, float], anchors: Sequence[int] = ()) -> RunContent:
    """A run whose turns begin with the spans of the given indexes, which have no parents."""
    return RunContent(
        turns=tuple(_turn("Hi", span=f"{index}") for index in anchors),
        spans=tuple(
            RunSpan(id=f"{index}", name=name, kind=kind, start_ms=index, ms=ms)
            for index, (kind, name, ms) in enumerate(spans)
        ),
    )


def test_spans_have_durations_of_the_same_steps_in_the_baseline() -> None:
    chat: tuple[SpanKind, str] = ("model", "chat")
    now = _timed_run((*chat, 5), ("tool", "chat", 6), (*chat, 7), (*chat, 8))
    before = _timed_run(("agent", "all", 1), (*chat, 2), (*chat, 3))
    shown = add_baseline_durations(now, before)
    assert [span.before_ms for span in shown.spans] == [2, None, 3, None]
    assert add_baseline_durations(now, _timed_run()) == now


def test_spans_are_not_compared_with_those_of_another_turn() -> None:
    chat: tuple[SpanKind, str] = ("model", "chat")
    now = _timed_run((*chat, 5), (*chat, 6), (*chat, 7), anchors=(0, 2))
    before = _timed_run((*chat, 1), (*chat, 2), (*chat, 3), anchors=(0, 1))
    shown = add_baseline_durations(now, before)
    assert [span.before_ms for span in shown.spans] == [1, None, 2]
    first, second, third = now.spans
    nested = replace(now, spans=(first, replace(second, parent="2"), third))
    shown = add_baseline_durations(nested, before)
    assert [span.before_ms for span in shown.spans] == [1, 2, 3]


def test_inserted_step_does_not_shift_the_steps_after_it() -> None:
    chat: tuple[SpanKind, str] = ("model", "chat")
    tool: tuple[SpanKind, str] = ("tool", "execute")
    before = _timed_run((*chat, 1), (*tool, 2), (*chat, 3), anchors=(0,))
    now = _timed_run((*chat, 9), (*tool, 9), (*chat, 9), (*tool, 9), (*chat, 9), anchors=(0,))

    def with_calls(run: RunContent, *names: str) -> RunContent:
        calls = (
            CallContent(name=name, arguments={}, span=f"{2 * place + 1}", step=place)
            for place, name in enumerate(names)
        )
        steps = (ModelStep(span=f"{2 * place}") for place in range(len(names) + 1))
        return replace(run, turns=(replace(run.turns[0], calls=tuple(calls), steps=tuple(steps)),))

    shown = add_baseline_durations(with_calls(now, "a", "b"), with_calls(before, "a"))
    assert [span.before_ms for span in shown.spans] == [1, 2, None, None, 3]
    # Two steps in another order are compared all the same.
    swapped = _timed_run((*tool, 8), (*chat, 9), anchors=(0,))
    shown = add_baseline_durations(swapped, _timed_run((*chat, 1), (*tool, 2), anchors=(0,)))
    assert [span.before_ms for span in shown.spans] == [2, 1]


def test_steps_that_only_the_baseline_has_are_placed_after_the_step_before() -> None:
    def step(id_: str, start: float, ms: float, parent: str | None = None) -> RunSpan:
        kind: SpanKind = "model" if id_.startswith("chat") else "tool"
        name = id_.rstrip("12")
        return RunSpan(id=id_, name=name, kind=kind, start_ms=start, ms=ms, parent=parent)

    before = RunContent(
        turns=(_turn("Hi", span="chat1"), _turn("Bye", span="chat2")),
        spans=(
            step("chat1", 0, 10), step("find", 12, 5), step("http", 13, 2, "find"),
            step("pay", 20, 5), step("chat2", 50, 10), step("log", 70, 1, "chat2"),
        ),
    )  # fmt: skip
    now = RunContent(
        turns=(_turn("Hi", span="chat1"),), spans=(step("chat1", 0, 100), step("pay", 110, 5))
    )
    shown = add_baseline_durations(now, before)
    assert [(span.before_start_ms, span.before_ms) for span in shown.spans] == [(0, 10), (20, 5)]
    gone = [
        (each.id, each.start_ms, each.before_start_ms, each.ms, each.parent)
        for each in shown.baseline_spans
    ]
    assert gone == [
        ("baseline find", 100, 12, 5, None),
        ("baseline http", 101, 13, 2, "baseline find"),
        ("baseline chat2", 115, 50, 10, None),
        ("baseline log", 125, 70, 1, "baseline chat2"),
    ]
    now = replace(now, spans=(step("chat1", 0, 100), step("pay", 40, 5)))
    shown = add_baseline_durations(now, before)
    assert [each.start_ms for each in shown.baseline_spans] == [40, 40, 45, 55]
    assert add_baseline_durations(before, before).baseline_spans == ()


def test_calls_of_another_model_are_compared() -> None:
    def with_model(run: RunContent, model: str) -> RunContent:
        spans = (replace(each, model=model if each.kind == "model" else None) for each in run.spans)
        return replace(run, spans=tuple(spans))

    tool: tuple[SpanKind, str] = ("tool", "execute")
    before = with_model(_timed_run(("model", "chat s-1", 1), (*tool, 2), anchors=(0,)), "s-1")
    now = _timed_run(("model", "chat l-1", 9), (*tool, 9), ("model", "chat l-1", 9), anchors=(0,))
    shown = add_baseline_durations(with_model(now, "l-1"), before)
    assert [span.before_ms for span in shown.spans] == [1, 2, None]
    # A client of another provider has a name of its own; other steps with one are different.
    now = _timed_run(("model", "messages", 9), ("tool", "other", 9), anchors=(0,))
    shown = add_baseline_durations(with_model(now, "l-1"), before)
    assert [span.before_ms for span in shown.spans] == [1, None]


def test_steps_of_a_very_long_turn_are_paired_by_their_order() -> None:
    spans: list[tuple[SpanKind, str, float]] = [("model", "chat", n) for n in range(300)]
    now, before = _timed_run(*spans, anchors=(0,)), _timed_run(*spans[:200], anchors=(0,))
    shown = add_baseline_durations(now, before)
    assert [span.before_ms for span in shown.spans] == [*range(200), *[None] * 100]


def test_start_of_results_is_kept_of_the_baseline() -> None:
    long = replace(CALL, result={"text": "x" * 300})
    failed = replace(CALL, result={"error": "no"})
    [turn] = add_baseline(_run(_turn("a", calls=(failed,))), _run(_turn("a", calls=(long,)))).turns
    [found] = turn.baseline_results
    assert turn.baseline == "same"
    assert isinstance(found, BaselineResult)
    assert (found.start or "").startswith('{"text": "xxx')
    assert (len(found.start or ""), found.left, found.failed) == (200, 112, False)
    kept = _run(_turn("a", calls=(long,)))
    assert add_baseline(kept, kept).turns[0].baseline_results == ("same",)
    dropped = reduce_content(kept, "without_results")
    assert add_baseline(dropped, dropped).turns[0].baseline_results == ()


def test_failed_call_is_marked_before_its_result_is_left_out() -> None:
    failed = replace(CALL, result={"error": "no"})
    content = mark_failed_calls(_run(_turn("a", calls=(failed, CALL)), _turn("b", calls=(CALL,))))
    turns = reduce_content(content, "without_results").turns
    assert [[call.failed for call in turn.calls] for turn in turns] == [[True, False], [False]]


def test_turn_like_that_of_the_baseline_has_its_latency() -> None:
    now, before = _run(_turn("a", latency_ms=9.0)), _run(_turn("a", latency_ms=4.0))
    [turn] = add_baseline(now, before).turns
    assert (turn.baseline, turn.baseline_latency_ms) == ("same", 4.0)
