"""Recorded runs that are restored from the contents of a report."""

from typing import Any

import pytest

from agentci.model.case import Case, EvalCase
from agentci.model.result import RunContent, SubagentContent, TurnContent
from agentci.model.trace import (
    ModelStep,
    RunSpan,
    SubagentRun,
    TokenUsage,
    ToolCall,
    ToolResponse,
    Trace,
    Turn,
)
from agentci.model.values import replace
from agentci.reports.run_content import (
    HAS_SECRETS,
    NO_TURNS,
    NOT_KEPT,
    decode_content,
    encode_content,
    explain_incomplete_content,
    list_dialogue,
    make_case_summary,
    make_run_content,
    restore_trace,
)
from tests.helpers.reports import PLACE

TURN = Turn(
    id="a1",
    user_text="Where is order 4711?",
    answer_parts=("On its way.",),
    tool_calls=(
        ToolCall(
            name="find",
            args={"order": 4711},
            id="c1",
            step=0,
            failed=False,
            start=7,
            duration_ms=3.5,
            span_id="s1",
        ),
        ToolCall(name="track", failed=True),
        ToolCall(name="notify", args=[1]),
        ToolCall(name="close"),
    ),
    tool_responses=(
        ToolResponse(name="find", output={"state": "sent"}, id="c1", call_index=0),
        ToolResponse(name="track", failed=True, call_index=1),
        ToolResponse(name="notify", call_index=2),
    ),
    intermediate_texts=("Let me look.",),
    model_steps=(ModelStep(model="m", input_tokens=1, output_tokens=2, duration_ms=4.0),),
    trace_id="t1",
    span_id="a1",
    start=5,
    duration_ms=10.5,
)
SILENT = Turn(id="2", user_text="", user_text_recorded=False, tool_calls_recorded=False)


def _case(*turns: Turn, **trace: Any) -> Case:
    recorded = Trace(id="t1", key="t1", turns=turns, place=PLACE, **trace)
    golden = EvalCase(id="e", turns=(TURN,) * 3, place=PLACE)
    return Case(id="e", trace=recorded, expected=golden)


def _restore(case: Case, **performance: Any) -> Trace:
    content = decode_content(encode_content(make_run_content(case)))
    return restore_trace(make_case_summary(case), replace(content, **performance))


def test_restored_trace_equals_the_recorded_one() -> None:
    case = _case(
        TURN,
        SILENT,
        usage=TokenUsage(input=1, output=2),
        cost_usd=0.5,
        subagents=(SubagentRun(turns=(SILENT,), name="finder", call_id="c1"),),
        performance={"counts": {"llm_calls": 1}},
    )
    assert _restore(case, performance='{"counts": {"llm_calls": 1}}') == case.trace


def test_trace_without_measures_is_restored() -> None:
    case = _case(SILENT)
    assert _restore(case) == case.trace


def test_summary_has_the_recorded_turns() -> None:
    case = _case(TURN)
    assert list_dialogue(make_run_content(case)) == make_case_summary(case).dialogue


SPAN = RunSpan(id="s", name="chat", kind="model", start_ms=0, ms=1)
ASKED = TurnContent(user="u", answer="a")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (RunContent(turns=(ASKED,), spans=(SPAN,), cut={"spans": 3}), ""),
        (RunContent(turns=(ASKED,), level="without_results"), NOT_KEPT),
        (RunContent(turns=(replace(ASKED, cut={"answer": 1}),)), NOT_KEPT),
        (
            RunContent(
                turns=(ASKED,),
                subagents=(SubagentContent(turns=(replace(ASKED, cut={"user": 1}),)),),
            ),
            NOT_KEPT,
        ),
        (RunContent(turns=(ASKED,), cut={"columns.a": 1}), NOT_KEPT),
        (RunContent(turns=(ASKED,), redacted=True), HAS_SECRETS),
        (RunContent(turns=(replace(ASKED, missing=True),)), NO_TURNS),
    ],
)
def test_incomplete_content_is_explained(content: RunContent, why: str) -> None:
    assert explain_incomplete_content(content) == why
