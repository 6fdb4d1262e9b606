"""Rows of recorded runs are equal after writing and reading."""

import json

from hypothesis import given
from hypothesis import strategies as st

from agentci.model.trace import Message, TokenUsage, ToolUse, Transcript
from agentci.recordings.agentv_outputs import read_recorded_runs
from agentci.recordings.agentv_run import make_run_row
from tests.helpers.building import values

NUMBERS = st.floats(0, 1e6) | st.integers(0, 10**6)
TEXTS = st.text(max_size=9)
# Null members are omitted, and an empty list is not a message.
JSON = st.recursive(
    TEXTS | st.booleans() | NUMBERS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
USES = values(
    ToolUse,
    tool=TEXTS,
    input=JSON | st.none(),
    output=JSON | st.none(),
    id=TEXTS | st.none(),
    duration_ms=NUMBERS | st.none(),
)
MESSAGES = values(
    Message,
    role=TEXTS,
    content=JSON | st.none(),
    name=TEXTS | st.none(),
    tool_calls=st.lists(USES, max_size=2).map(tuple),
    start_time=TEXTS | st.none(),
    metadata=st.none() | st.dictionaries(TEXTS, JSON, min_size=1, max_size=2),
)
TRANSCRIPTS = values(
    Transcript,
    messages=st.lists(MESSAGES, max_size=3).map(tuple),
    token_usage=st.none()
    | values(TokenUsage, input=NUMBERS, output=NUMBERS, cached=NUMBERS | st.none()),
    cost_usd=NUMBERS | st.none(),
    duration_ms=NUMBERS | st.none(),
    end_time=TEXTS | st.none(),
)


@given(transcript=TRANSCRIPTS, attempt=st.none() | st.integers(0, 9))
def test_run_is_equal_after_round_trip(transcript: Transcript, attempt: int | None) -> None:
    content = json.dumps(make_run_row("a", attempt, transcript)).encode()
    [run] = read_recorded_runs(content, file="o.jsonl", of_one_case=False)
    assert (run.case_id, run.attempt, run.transcript) == ("a", attempt, transcript)
