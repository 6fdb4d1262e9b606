"""Exports of tracing platforms: what they leave out is found elsewhere, or is an error."""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import RecordingError
from agentci.model.trace import Trace
from agentci.recordings.otlp import parse_timestamp
from tests.recordings.export_rows import list_exports, list_spans
from tests.recordings.test_frameworks import FOLDER as FRAMEWORKS
from tests.recordings.transcripts.transcript_files import FILES, files_of, read_text

ONLY_OUTERMOST = "The export has only the outermost run of a trace"
QUESTION = "What is the weather in Paris? Then convert it to Fahrenheit."
CALLS = [("get_weather", {"city": "Paris"}), ("convert", {"c": 20})]
ANSWER = "It is 20 C (68 F) and sunny in Paris."


def load(sample: str) -> Any:
    text = files_of(sample)[0].read_text()
    try:
        return json.loads(text)
    except ValueError:
        return list(map(json.loads, text.splitlines()))


def lines(rows: list[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def calls_of(trace: Trace) -> list[Any]:
    return [(call.name, call.args) for turn in trace.turns for call in turn.tool_calls]


def read_one(text: str) -> Trace:
    (trace,) = read_text(text)
    return trace


def check_basic(text: str) -> Trace:
    trace = read_one(text)
    (turn,) = trace.turns
    assert (turn.user_text, turn.final_text) == (QUESTION, ANSWER)
    assert calls_of(trace) == CALLS
    assert [one.output for one in turn.tool_responses] == ["20 C, sunny", 68]
    assert not trace.not_captured
    return trace


def problem_of(content: str) -> str:
    with pytest.raises(RecordingError) as caught:
        read_text(content)
    return str(caught.value.problem)


def describe(traces: list[Trace]) -> Any:
    return sorted(
        (
            trace.key,
            bool(trace.not_captured),
            [
                (
                    turn.user_text,
                    [(call.name, call.args) for call in turn.tool_calls],
                    [one.output for one in turn.tool_responses],
                    turn.final_text,
                )
                for turn in trace.turns
            ],
        )
        for trace in traces
    )


@pytest.mark.parametrize(("framework", "make"), tuple(list_exports()))
def test_export_of_a_framework_reads_as_its_spans(
    framework: str, make: Callable[[list[Any]], str]
) -> None:
    for path in sorted((FRAMEWORKS / framework).glob("*.gz")):
        documents = list(map(json.loads, gzip.decompress(path.read_bytes()).splitlines()))
        expected = read_text(path.read_bytes())
        assert describe(read_text(make(list_spans(documents)))) == describe(expected), path


LANGSMITH = load("langsmith-runs/basic")
LANGFUSE = load("langfuse-blob-observations/basic")
PHOENIX = load("phoenix-spans-api/basic")["data"]
MLFLOW = load("mlflow-trace/basic")


class TestLangSmith:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(lines(LANGSMITH[::-1]), id="newest first"),
            pytest.param(json.dumps(LANGSMITH), id="list"),
            pytest.param(json.dumps({"runs": LANGSMITH, "cursors": {}}), id="page"),
            pytest.param(lines(LANGSMITH), id="lines"),
        ],
    )
    def test_form_of_file_does_not_matter(self, text: str) -> None:
        trace = check_basic(text)
        assert trace.conversation == "t-basic"
        assert trace.performance is not None
        assert trace.performance["models"] == ["gpt-4o-mini"]

    def test_values_as_json_text_are_read(self) -> None:
        keys = {"inputs", "outputs", "extra"}
        rows = [
            {key: json.dumps(value) if key in keys else value for key, value in run.items()}
            for run in LANGSMITH
        ]
        assert check_basic(lines(rows)).conversation == "t-basic"

    def test_child_runs_are_read(self) -> None:
        (root,) = (run for run in LANGSMITH if run["parent_run_id"] is None)
        children = [run for run in LANGSMITH if run["parent_run_id"] is not None]
        check_basic(json.dumps({**root, "child_runs": children}))

    def test_failed_tool_has_the_result_that_the_model_saw(self) -> None:
        rows = copy.deepcopy(LANGSMITH)
        for run in rows:
            if run["name"] == "get_weather":
                run.update(outputs=None, error="Traceback (most recent call last)")
        (turn,) = check_basic(lines(rows)).turns
        assert [one.failed for one in turn.tool_responses] == [True, False]

    def test_arguments_as_python_text_are_taken_from_the_model(self) -> None:
        rows = copy.deepcopy(LANGSMITH)
        for run in rows:
            if run["run_type"] == "tool":
                run["inputs"] = {"input": str(run["inputs"])}
        check_basic(lines(rows))

    @pytest.mark.parametrize("left", [{"tool", "chain"}, {"llm", "chain"}, {"llm"}])
    def test_runs_of_some_types_are_enough(self, left: set[str]) -> None:
        check_basic(lines([run for run in LANGSMITH if run["run_type"] in left]))

    def test_content_that_is_hidden_is_an_error(self) -> None:
        trace = read_one(lines([{**run, "inputs": {}, "outputs": None} for run in LANGSMITH]))
        assert "LANGSMITH_HIDE_INPUTS" in trace.not_captured

    def test_tokens_of_the_row_count(self) -> None:
        rows = [
            {**run, "prompt_tokens": 7, "completion_tokens": 3, "total_cost": 0.5}
            for run in LANGSMITH
        ]
        trace = check_basic(lines(rows))
        assert trace.usage is not None
        assert (trace.usage.input, trace.usage.output) == (21, 9)
        assert trace.cost_usd == 1.5

    def test_agent_of_a_tool_is_apart(self) -> None:
        trace = read_one(lines(load("langsmith-runs/handoff")))
        (run,) = trace.subagents
        assert run.name == "refund_agent"
        assert run.call_id == trace.turns[0].tool_calls[0].id
        assert [call.name for call in run.turns[0].tool_calls] == ["refund_order"]

    def test_deeply_nested_agents_are_read(self) -> None:
        rows = [
            {
                "trace_id": "t",
                "name": kind,
                "run_type": kind,
                "dotted_order": "",
                "id": f"{kind}{depth}",
                "parent_run_id": f"tool{depth - 1}" if depth else None,
                "inputs": {"messages": [{"role": "user", "content": "Hi"}]},
                "outputs": {},
            }
            for depth in range(300)
            for kind in ("llm", "tool")
        ]
        assert len(read_one(lines(rows)).subagents) == 5

    def test_other_document_among_runs_is_an_error(self) -> None:
        assert "run.json:14: not a LangSmith run (every row must be a LangSmith run" in problem_of(
            lines([*LANGSMITH, {"a": 1}])
        )


def is_outermost(row: dict[str, Any]) -> bool:
    parents = ("parent_run_id", "parent_observation_id", "parent_id")
    return all(row.get(name) is None for name in parents)


class TestOutermostRunOnly:
    @pytest.mark.parametrize("rows", [LANGSMITH, LANGFUSE, PHOENIX])
    def test_calls_are_those_of_the_messages(self, rows: list[Any]) -> None:
        check_basic(lines(list(filter(is_outermost, rows))))

    def test_calls_of_mlflow_are_those_of_the_messages(self) -> None:
        trace = copy.deepcopy(MLFLOW)
        trace["data"]["spans"] = trace["data"]["spans"][:1]
        check_basic(json.dumps(trace))

    @pytest.mark.parametrize(
        "outputs", [{"output": ANSWER}, {"messages": [{"type": "ai", "content": ANSWER}]}, None]
    )
    def test_without_messages_is_an_error(self, outputs: Any) -> None:
        (root,) = filter(is_outermost, LANGSMITH)
        trace = read_one(json.dumps({**root, "outputs": outputs}))
        assert ONLY_OUTERMOST in trace.not_captured


class TestLangfuse:
    def test_trace_with_observations_is_read(self) -> None:
        trace = {"id": "t1", "projectId": "p", "sessionId": "s", "observations": LANGFUSE}
        assert check_basic(json.dumps(trace)).conversation == "s"
        check_basic(json.dumps({"trace": {"id": "t1"}, "observations": LANGFUSE}))
        check_basic(json.dumps([{"trace": {"id": "t1"}, "observations": LANGFUSE}]))

    def test_values_as_objects_are_read(self) -> None:
        rows = [
            {**row, "input": json.loads(row["input"]), "output": json.loads(row["output"])}
            for row in LANGFUSE
        ]
        check_basic(json.dumps({"data": rows[::-1]}))

    def test_observations_without_content_are_an_error(self) -> None:
        keys = ("input", "output")
        rows = [{key: row[key] for key in row if key not in keys} for row in LANGFUSE]
        assert "not captured" in read_one(lines(rows)).not_captured

    @pytest.mark.parametrize(
        "trace",
        [
            {"id": "t", "projectId": "p", "timestamp": "x", "input": "a", "output": "b"},
            {
                "id": "t",
                "userId": None,
                "timestamp": "x",
                "input": "a",
                "output": "b",
                "observations": ["o1"],
            },
        ],
    )
    def test_trace_without_observations_is_refused(self, trace: Any) -> None:
        for document in (trace, [trace], {"data": [trace], "meta": {}}):
            assert "Langfuse traces without their observations" in problem_of(json.dumps(document))


class TestMlflow:
    def test_list_of_traces_is_read(self) -> None:
        check_basic(json.dumps([MLFLOW]))

    def test_session_joins_traces(self) -> None:
        trace = copy.deepcopy(MLFLOW)
        trace["info"]["trace_metadata"]["mlflow.trace.session"] = "s"
        assert check_basic(json.dumps(trace)).conversation == "s"

    def test_trace_without_spans_is_refused(self) -> None:
        trace = {**MLFLOW, "data": {"spans": []}}
        assert "the file has no spans" in problem_of(json.dumps(trace))


class TestPhoenix:
    def test_rows_and_nested_attributes_are_read(self) -> None:
        check_basic(lines(PHOENIX))
        check_basic(json.dumps({"spans": PHOENIX}))

    def test_rows_without_their_ids_are_refused(self) -> None:
        rows = load("phoenix-dataframe-jsonl/basic")
        del rows[0]["context.span_id"]
        assert "without its index" in problem_of(lines(rows))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-23T08:05:43.350Z", 1_795_421_143_350_000_000),
        ("2026-11-23T10:05:43.350+02:00", 1_795_421_143_350_000_000),
        ("2026-11-23 08:05:43.350000", 1_795_421_143_350_000_000),
        (1_795_421_143, 1_795_421_143_000_000_000),
        (1_795_421_143_350, 1_795_421_143_350_000_000),
        (1_795_421_143_350_000, 1_795_421_143_350_000_000),
        ("1795421143350000000", 1_795_421_143_350_000_000),
        ("yesterday", 0),
        (None, 0),
        ({}, 0),
    ],
)
def test_timestamp_is_nanoseconds(value: Any, expected: int) -> None:
    assert parse_timestamp(value) == expected


def test_samples_of_all_platforms_are_in_the_suite() -> None:
    platforms = ("langsmith", "langfuse", "mlflow", "phoenix")
    assert all(list(Path(FILES).glob(f"{name}*/*/expected.json")) for name in platforms)
