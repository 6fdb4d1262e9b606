"""No evaluator takes tool calls or arguments that were not recorded for none."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.code import make_eval_input
from agentci.evaluators.agentevals.vertex_metric import make_hosted_evaluator
from agentci.evaluators.agentv.limits import ExecutionMetrics
from agentci.evaluators.agentv.payload import PayloadFormat, make_judge_payload
from agentci.evaluators.agentv.tool_trajectory import Trajectory
from agentci.evaluators.evaluator import NO_TOOL_CALLS, check_reads_recorded, list_unrecorded
from agentci.evaluators.grader_protocol import make_sample
from agentci.evaluators.judged_metrics import JUDGED_METRICS, JudgedTurn, format_steps
from agentci.evaluators.metrics import measure_tool_trajectory
from agentci.evaluators.openai_eval.graders import GraderPrompt, PythonGrader, fill_template
from agentci.model.case import AgentvCase, Case, Rubric
from agentci.model.judges import ScoreSchema
from agentci.model.trace import Message, ToolCall, Trace, Transcript, Turn
from agentci.model.values import Place
from agentci.recordings.agentv_outputs import read_recorded_runs
from agentci.recordings.agentv_run import convert_transcript_to_turn, make_run_row
from agentci.sdk import EvalInput, NotRecordedError

PLACE = Place(file="e")
NO_CALLS = Turn(id="1", user_text="Hi", answer_parts=("Hello",), tool_calls_recorded=False)
NO_ARGS = Turn(id="1", user_text="Hi", tool_calls=(ToolCall(name="refund"),))
ONLY_TEXT = Transcript(
    messages=(Message(role="assistant", content="Done."),), tool_calls_recorded=False
)
AGENTV_CASE = AgentvCase(id="a", criteria="c", input_messages=(), expected_messages=(), place=PLACE)


def make_case(turn: Turn) -> Case:
    return Case(id="c", trace=Trace(id="t", key="t", turns=(turn,), place=PLACE))


def read_input(turn: Turn) -> tuple[Any, EvalInput]:
    text = make_eval_input(make_case(turn), name="n", threshold=1.0, config={})
    return json.loads(text)["invocations"][0]["intermediate_steps"], EvalInput.from_json(text)


def ask_about_tools() -> object:
    metric = JUDGED_METRICS["rubric_based_tool_use_quality_v1"]
    return metric.make_prompt(JudgedTurn(turn=NO_CALLS, rubrics=(Rubric(id="a", text="A"),)))


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda: measure_tool_trajectory([NO_CALLS], [Turn(id="1", user_text="Hi")], {}),
        lambda: make_hosted_evaluator("multi_turn_tool_use_quality_v1", place=PLACE).ask(
            make_case(NO_CALLS)
        ),
        ask_about_tools,
        lambda: Trajectory(mode="subset", minimums={}, expected=()).evaluate(
            AGENTV_CASE, ONLY_TEXT
        ),
    ],
    ids=["tool_trajectory_avg_score", "hosted metric", "tool use quality", "AgentV"],
)
def test_unrecorded_tool_calls_are_an_error(evaluate: Callable[[], object]) -> None:
    with pytest.raises(EvaluatorError, match=NO_TOOL_CALLS):
        evaluate()


def test_judge_is_shown_what_was_not_recorded() -> None:
    assert format_steps(NO_CALLS) == "The recording does not say which tools were used."
    assert '{"step": 0, "tool": "refund", "args_recorded": false}' in format_steps(NO_ARGS)


@pytest.mark.parametrize(
    "path",
    [
        *("sample.output_tools", "item.sample.tool_calls", 'sample["output_items"]'),
        "sample.choices[0].message.tool_calls",
    ],
)
def test_template_with_unrecorded_tool_calls_is_an_error(path: str) -> None:
    sample = make_sample(make_case(NO_CALLS))
    row = {"sample": sample, "item": {"sample": sample}}
    template = f"Calls: {{{{ {path} }}}}"
    with pytest.raises(EvaluatorError, match="was not recorded"):
        fill_template(template, row)
    with pytest.raises(EvaluatorError, match="was not recorded"):
        GraderPrompt(messages=(("user", template),)).question(row, ScoreSchema(value_name="a"))


def test_template_with_unrecorded_arguments_is_an_error() -> None:
    row = {"sample": make_sample(make_case(NO_ARGS))}
    with pytest.raises(EvaluatorError, match="was not recorded"):
        fill_template("{{ sample.output_tools[0].function.arguments }}", row)


def test_answer_that_reads_null_is_no_unrecorded_value() -> None:
    row = {"sample": {"output_text": "null"}}
    assert fill_template("{{ sample.output_text }}", row) == "null"


def test_sample_has_null_for_what_was_not_recorded() -> None:
    sample: Any = make_sample(make_case(NO_CALLS))
    assert sample["tool_calls"] is sample["output_tools"] is sample["output_items"] is None
    assert sample["choices"][0]["message"]["tool_calls"] is None
    called: Any = make_sample(make_case(NO_ARGS))
    assert called["tool_calls"][0]["arguments"] is None
    assert called["output_tools"][0]["function"]["arguments"] is None
    assert called["output_items"][0]["arguments"] is None


def test_programs_get_no_tool_calls_that_were_not_recorded() -> None:
    steps, read = read_input(NO_CALLS)
    assert steps == {"tool_calls_recorded": False}
    found = read.invocations[0].intermediate_steps
    for name in ("tool_calls", "tool_responses"):
        with pytest.raises(NotRecordedError, match=NO_TOOL_CALLS):
            getattr(found, name)
    assert "tool_calls_recorded=False" not in repr(EvalInput(metric_name="n"))


def test_programs_get_no_arguments_that_were_not_recorded() -> None:
    steps, read = read_input(NO_ARGS)
    assert steps["tool_calls"] == [{"name": "refund", "id": None, "args_recorded": False}]
    [call] = read.invocations[0].intermediate_steps.tool_calls
    assert call.name == "refund"
    with pytest.raises(NotRecordedError, match="the arguments of `refund` were not recorded"):
        call.args.get("amount")


@pytest.mark.parametrize("wire", ["camel", "snake", "snake+v4", "union"])
def test_code_judge_gets_no_summary_of_an_output_that_is_only_text(wire: PayloadFormat) -> None:
    payload = make_judge_payload(AGENTV_CASE, ONLY_TEXT, None, wire)
    assert payload.get("trace_summary") is payload.get("traceSummary") is None


def test_summary_with_metrics_says_that_tool_calls_were_not_recorded() -> None:
    paid = Transcript(messages=ONLY_TEXT.messages, cost_usd=1.0, tool_calls_recorded=False)
    summary: Any = make_judge_payload(AGENTV_CASE, paid, None, "snake")["trace_summary"]
    assert (summary["cost_usd"], summary["tool_calls_recorded"]) == (1.0, False)


def test_limits_of_unrecorded_tool_calls_are_not_kept() -> None:
    limits = ExecutionMetrics(
        max_tool_calls=3,
        max_llm_calls=None,
        max_tokens=None,
        max_cost_usd=None,
        max_duration_ms=None,
        target_exploration_ratio=0.5,
        exploration_tolerance=0.5,
    )
    found = limits.evaluate(AGENTV_CASE, ONLY_TEXT)
    assert found.misses == (
        "Tool call data not available",
        f"Exploration ratio not available ({NO_TOOL_CALLS})",
    )


@pytest.mark.parametrize(
    ("content", "is_recorded"),
    [
        ('{"id": "a", "text": "Done."}', False),
        ('{"id": "a", "output": "Done."}', False),
        ('{"id": "a", "output": [{"role": "assistant", "content": "Done."}]}', True),
    ],
)
def test_output_that_is_only_text_has_no_recorded_tool_calls(
    content: str, *, is_recorded: bool
) -> None:
    [run] = read_recorded_runs(content.encode(), file="f", of_one_case=False)
    assert run.transcript.tool_calls_recorded == is_recorded
    turn = convert_transcript_to_turn(run.transcript, question="q", answer="a")
    assert turn.tool_calls_recorded == is_recorded
    written = json.dumps(make_run_row("a", None, run.transcript)).encode()
    [again] = read_recorded_runs(written, file="f", of_one_case=False)
    assert again.transcript == run.transcript


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (NO_CALLS, "calls = turn['intermediate_steps'].get('tool_calls', [])"),
        (NO_CALLS, "turn.intermediateSteps?.toolCalls ?? []"),
        (NO_CALLS, 'Calls []Call `json:"tool_calls"`'),
        (NO_CALLS, "if (input.traceSummary?.toolNames) {}"),
        (NO_CALLS, "sample['output_tools'] or []"),
        (NO_ARGS, "call.get('args', {})"),
        (NO_ARGS, "call.args.amount"),
        (NO_ARGS, 'sample["tool_calls"][0]["arguments"]'),
    ],
)
def test_program_that_reads_what_was_not_recorded_is_an_error(turn: Turn, code: str) -> None:
    with pytest.raises(EvaluatorError, match="the recording does not say"):
        check_reads_recorded(["import json", code], list_unrecorded([turn]))


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (NO_CALLS, "turn['final_response']"),
        (NO_CALLS, "if turn['tool_calls_recorded'] is False: skip()"),
        (NO_CALLS, "from agentci.sdk import evaluator; turn.intermediate_steps.tool_calls"),
        (NO_CALLS, "from agentci import sdk; turn.intermediate_steps.tool_calls"),
        (NO_ARGS, "[call['name'] for call in turn['intermediate_steps']['tool_calls']]"),
        (NO_ARGS, "def main(*args): ..."),
        (NO_ARGS, "call['args'] if call.get('args_recorded', True) else None"),
        (Turn(id="1", user_text="Hi"), "turn['intermediate_steps']['tool_calls'][0]['args']"),
    ],
)
def test_program_that_reads_only_what_was_recorded_runs(turn: Turn, code: str) -> None:
    check_reads_recorded([code], list_unrecorded([turn]))


def test_program_without_readable_code_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="may read tool calls"):
        check_reads_recorded([], list_unrecorded([NO_CALLS]))


def test_python_grader_of_an_entry_is_an_error() -> None:
    source = "def grade(sample, item): return float(not sample['tool_calls'])"
    grader = PythonGrader(source=source, timeout_seconds=1)
    with pytest.raises(EvaluatorError, match=NO_TOOL_CALLS):
        grader.make_tasks({"sample": make_sample(make_case(NO_CALLS)), "item": {}})
    with pytest.raises(EvaluatorError, match="reads `arguments`"):
        PythonGrader(
            source="def grade(sample, item): return sample['tool_calls'][0]['arguments'] is None",
            timeout_seconds=1,
        ).make_tasks({"sample": make_sample(make_case(NO_ARGS)), "item": {}})
