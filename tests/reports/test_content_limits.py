"""Limits of contents: long fields, and what of a run is kept."""

from typing import Any

import pytest

from agentci.model.result import (
    CallContent,
    ContentLevel,
    ExpectedCall,
    RunContent,
    SubagentContent,
    TurnContent,
)
from agentci.model.trace import RunSpan, TokenTotals
from agentci.reports.contents import (
    MAX_FIELD_CHARACTERS,
    MAX_SPANS,
    cut_content,
    reduce_content,
)

LONG = "x" * (MAX_FIELD_CHARACTERS + 7)
SPAN = RunSpan(id="s", name="chat", kind="model", start_ms=0, ms=1)
TOKENS = TokenTotals(input=3, output=1)


def _cut(**fields: Any) -> TurnContent:
    turn = TurnContent(**{"user": "u", "answer": None, **fields})
    [found] = cut_content(RunContent(turns=(turn,))).turns
    return found


@pytest.mark.parametrize("name", ["user", "answer", "expected_answer"])
def test_long_text_is_cut_and_counted(name: str) -> None:
    found = _cut(**{name: LONG})
    assert getattr(found, name) == LONG[:MAX_FIELD_CHARACTERS]
    assert found.cut == {name: 7}


def test_text_of_the_limit_is_kept() -> None:
    text = LONG[:MAX_FIELD_CHARACTERS]
    assert (_cut(user=text).user, _cut(user=text).cut) == (text, {})


def test_long_values_of_calls_are_cut_to_the_start_of_their_json() -> None:
    calls = (
        CallContent(name="a", arguments={"q": LONG}, result="short"),
        CallContent(name="b", arguments={"q": 1}, result=LONG),
        CallContent(name="c", result=[1, None]),
    )
    found = _cut(calls=calls, texts=("t", LONG), expected_calls=(ExpectedCall(name="a"),))
    assert found.calls[0].arguments == ('{"q":"' + LONG)[:MAX_FIELD_CHARACTERS]
    assert found.calls[1].result == LONG[:MAX_FIELD_CHARACTERS]
    assert found.calls[2] == calls[2]
    assert found.cut == {"texts[1]": 7, "calls[0].arguments": 15, "calls[1].result": 7}


def test_what_was_cut_before_stays_counted() -> None:
    assert _cut(answer=LONG, cut={"answer": 3, "user": 1}).cut == {"answer": 10, "user": 1}


def test_steps_columns_and_sub_agents_are_limited() -> None:
    sub_agent = SubagentContent(turns=(TurnContent(user=LONG, answer=None),))
    content = RunContent(
        spans=(SPAN,) * (MAX_SPANS + 2), columns={"a": LONG, "b": 1}, subagents=(sub_agent,)
    )
    found = cut_content(content)
    assert (len(found.spans), found.columns["b"]) == (MAX_SPANS, 1)
    assert found.cut == {"spans": 2, "columns.a": 7}
    assert found.subagents[0].turns[0].cut == {"user": 7}


FULL = RunContent(
    turns=(
        TurnContent(
            user="a\n" * 200,
            answer="b" * 150,
            expected_answer="c",
            calls=(CallContent(name="d", arguments={"e": 1}, result=2),),
            texts=("f",),
            latency_ms=1,
            tokens=TOKENS,
            cut={"answer": 5, "calls[0].result": 6},
        ),
        TurnContent(user="", answer=None, missing=True),
    ),
    spans=(SPAN,),
    subagents=(SubagentContent(turns=()),),
    columns={"g": 1},
    latency_ms=1,
    tokens=TOKENS,
    cost_usd=0.5,
    cut={"spans": 2},
)


def test_full_content_stays_as_it_is() -> None:
    assert reduce_content(FULL, "full") is FULL


def test_without_results_keeps_calls() -> None:
    found = reduce_content(FULL, "without_results")
    assert found.turns[0].calls == (CallContent(name="d", arguments={"e": 1}),)
    assert (found.spans, found.subagents, found.columns) == ((), (), {"g": 1})


def test_excerpt_keeps_the_start_of_texts_and_counts_the_rest() -> None:
    found = reduce_content(FULL, "excerpt")
    first, second = found.turns
    assert first.user == ("a " * 50)[:99] + "…"
    assert first.cut == {"user": 300, "answer": 55}
    assert (first.calls, first.expected_answer, first.texts) == ((), None, ())
    assert (first.latency_ms, first.tokens, second.missing) == (1, TOKENS, True)
    assert (found.columns, found.cut, found.cost_usd) == ({}, {}, 0.5)


def test_no_text_is_left_at_level_none() -> None:
    found = reduce_content(FULL, "none")
    assert found.turns[0] == TurnContent(user="", answer=None, latency_ms=1, tokens=TOKENS)
    assert (found.level, found.latency_ms) == ("none", 1)


@pytest.mark.parametrize("level", ["full", "without_results", "excerpt"])
def test_less_is_never_made_more(level: ContentLevel) -> None:
    excerpt = reduce_content(FULL, "excerpt")
    assert reduce_content(excerpt, level) is excerpt
