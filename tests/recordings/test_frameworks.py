"""Recordings of real frameworks, each with the turns that a person would say happened."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentci._util.files import SpooledChunks
from agentci.model.trace import Trace, Turn
from agentci.recordings.registry import read_recording
from agentci.recordings.runs import convert_run, group_runs

FOLDER = Path(__file__).parent / "frameworks"
# The agent crashed in its first turn, and made no second one.
CRASHED = {("openai-agents-mlflow", "twoturn")}


def list_cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*/expected.json")):
        for case, turns in json.loads(path.read_text()).items():
            framework = path.parent.name
            if (framework, case) not in CRASHED:
                recording = path.with_name(f"{case}.jsonl.gz")
                yield pytest.param(recording, turns, id=f"{framework}-{case}")


def read(path: Path) -> list[Trace]:
    return read_content(path.read_bytes(), path.name)


def read_content(content: bytes, file: str = "run.jsonl") -> list[Trace]:
    spool = SpooledChunks()
    stored = read_recording([content], file=file, spool=spool)
    groups = group_runs(stored, spool, group_by="auto", multi_turn_eval_cases=True)
    return [convert_run(group, spool) for group in groups]


def list_turns(traces: Sequence[Trace]) -> list[Turn]:
    return [turn for trace in traces for turn in trace.turns]


def list_calls(turn: Turn, expected: Sequence[Any]) -> list[tuple[str, Any]]:
    """The calls of a turn without those that either reading counts, sorted if in parallel."""
    calls = [(call.name, call.args) for call in turn.tool_calls]
    for name in (call["name"] for call in expected if call.get("optional")):
        given = next((call for call in calls if call[0] == name), None)
        if given is not None:
            calls.remove(given)
    parallel = any(call.get("parallel") for call in expected)
    return sorted(calls, key=repr) if parallel else calls


@pytest.mark.parametrize(("path", "expected"), tuple(list_cases()))
def test_recording_reads_as_the_turns_that_happened(path: Path, expected: list[Any]) -> None:
    traces = read(path)
    turns = list_turns(traces)
    if any(turn.get("expect") == "refusal" for turn in expected):
        assert all(trace.not_captured for trace in traces if trace.turns)
        return
    assert not any(trace.not_captured for trace in traces)
    required = [
        [(call["name"], call["args"]) for call in turn["tool_calls"] if not call.get("optional")]
        for turn in expected
    ]
    assert [
        (turn.user_text, list_calls(turn, want["tool_calls"]), turn.final_text)
        for turn, want in zip(turns, expected, strict=True)
    ] == [
        (want["user"], calls, want["final"]) for want, calls in zip(expected, required, strict=True)
    ]


def test_crashed_agent_is_reported() -> None:
    (trace,) = read(FOLDER / "openai-agents-mlflow" / "twoturn.jsonl.gz")
    (turn,) = trace.turns
    assert (turn.tool_calls, turn.final_text) == ((), None)
    assert trace.not_captured == (
        f"The agent failed before it answered: the turn (span {turn.id}) ended with an error"
    )


def test_type_of_an_output_is_not_an_answer() -> None:
    content = gzip.decompress((FOLDER / "openai-agents-mlflow/twoturn.jsonl.gz").read_bytes())
    documents = [json.loads(line) for line in content.splitlines()]
    for scope in (
        scope
        for document in documents
        for batch in document.get("resourceSpans", ())
        for scope in batch["scopeSpans"]
    ):
        scope["spans"] = [one for one in scope["spans"] if one.get("parentSpanId")]
    (trace,) = read_content("\n".join(map(json.dumps, documents)).encode())
    assert [turn.final_text for turn in trace.turns] == [None]
    assert trace.not_captured


@pytest.mark.parametrize("framework", ["openai-chat-v2.1-logs", "semantic-kernel"])
def test_log_records_that_were_exported_twice_count_once(framework: str) -> None:
    content = gzip.decompress((FOLDER / framework / "parallel.jsonl.gz").read_bytes())
    assert list_turns(read_content(content * 2)) == list_turns(read_content(content))


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("adk2-nocontent", "Google ADK: gcp.vertex.agent 2.13.0"),
        ("adk2-nocontent", "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1"),
        ("openai-chat-v2-nocontent", "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"),
        ("autogen", "AutoGen core: autogen-core"),
    ],
)
def test_missing_content_names_framework_and_switch(framework: str, said: str) -> None:
    reasons = [trace.not_captured for trace in read(FOLDER / framework / "basic.jsonl.gz")]
    assert said in "".join(reasons)


def test_own_spans_of_anthropic_sdk_name_their_switch() -> None:
    content = gzip.decompress((FOLDER / "anthropic-traceloop/basic.jsonl.gz").read_bytes())
    kept = [json.loads(line) for line in content.splitlines()]
    for document in kept:
        for batch in document.get("resourceSpans", ()):
            batch["scopeSpans"] = [
                each
                for each in batch["scopeSpans"]
                if "instrumentation" not in each["scope"]["name"]
            ]
    spool = SpooledChunks()
    data = "\n".join(map(json.dumps, kept)).encode()
    stored = read_recording([data], file="run.jsonl", spool=spool)
    (group,) = group_runs(stored, spool, group_by="auto", multi_turn_eval_cases=False)
    reason = convert_run(group, spool).not_captured
    assert "Anthropic SDK: app, com.anthropic.sdk.python 2.12.0" in reason
    assert reason.endswith("; set ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content")


@pytest.mark.parametrize("framework", ["openai-chat-v2-span", "openai-chat-v2-span-unwrapped"])
def test_conversation_without_a_session_is_joined_by_history(framework: str) -> None:
    (trace,) = read(FOLDER / framework / "twoturn.jsonl.gz")
    assert [turn.user_text for turn in trace.turns][1:] == ["And in Rome?"]
    (warning,) = trace.warnings
    assert "set gen_ai.conversation.id" in warning


def test_genkit_run_that_a_tool_ended_has_its_call() -> None:
    (trace,) = read(FOLDER / "genkit" / "error.jsonl.gz")
    (turn,) = trace.turns
    assert [(call.name, call.args, call.failed) for call in turn.tool_calls] == [
        ("find_order", {"order_id": "9"}, True)
    ]
    assert trace.not_captured.startswith("The agent failed before it answered")


def test_error_of_a_mastra_tool_is_its_result() -> None:
    results = [
        (response.output, response.failed)
        for turn in list_turns(read(FOLDER / "mastra" / "twoturn.jsonl.gz"))
        for response in turn.tool_responses
    ]
    assert results[-1] == ("order 9 not found", True)


def test_haystack_without_content_names_its_switch() -> None:
    traces = read(FOLDER / "haystack-nocontent" / "twoturn.jsonl.gz")
    assert all("set HAYSTACK_CONTENT_TRACING_ENABLED=true" in one.not_captured for one in traces)


def test_content_of_langtrace_is_refused_by_name() -> None:
    traces = read(FOLDER / "langtrace" / "twoturn.jsonl.gz")
    assert all("(Langtrace: " in one.not_captured for one in traces)
    assert all("its events are not read; record with" in one.not_captured for one in traces)
