"""The action records or replays an agent, and evaluates the recorded runs."""

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci.cli.action import run_action
from agentci.config.options import OPTIONS
from examples.agents.mock_model import MockModel, mock_model
from tests.e2e.steps import Step, run_step
from tests.helpers.runner import commands_in
from tests.helpers.support import make_session
from tests.record.recorded import AGENT, KEY, OUT, make_environment

pytestmark = pytest.mark.slow

CASES = [{"id": "weather", "input": "weather in Oslo"}, {"id": "thanks", "input": "Thanks"}]
RECORD = f"{sys.executable} '{AGENT}' chat {{input}}"
CONFIG = """
traces: missing/*.jsonl
eval_set: eval_set.json
evaluators: [{name: tool_trajectory_avg_score, type: builtin, threshold: 1}]
"""
TRAP = """
import os
print("::error::forged by the agent")
print(sorted(name for name in os.environ if name.startswith(("INPUT_", "GITHUB_"))))
raise SystemExit(os.environ.get("GITHUB_TOKEN", "no token"))
"""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockModel]:
    with mock_model() as found:
        for name, value in make_environment(found).items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A checkout with two cases; in the first one, the agent has to call a tool."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    (folder / "agentci.yaml").write_text(CONFIG)
    calls = {"weather": [{"name": "get_weather", "args": {"city": "Oslo"}}], "thanks": []}
    cases = [
        {
            "eval_id": each["id"],
            "conversation": [
                {
                    "user_content": {"parts": [{"text": each["input"]}]},
                    "intermediate_data": {"tool_uses": calls[each["id"]]},
                }
            ],
        }
        for each in CASES
    ]
    content = {"eval_set_id": "s", "eval_cases": cases}
    (folder / "eval_set.json").write_text(json.dumps(content))
    return folder


def find_statuses(step: Step) -> dict[str, str]:
    report = json.loads((step.workspace / step.outputs["results"]).read_text())
    return {each["case"]: each["status"] for each in report["results"]}


def test_agent_is_recorded_and_then_replayed_without_a_model(
    workspace: Path, model: MockModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = run_step(workspace, record=RECORD, cases="cases.jsonl")
    assert step.code == 0, step.log
    assert step.outputs["verdict"] == "passed"
    assert find_statuses(step) == {"weather": "passed", "thanks": "passed"}
    (workspace / OUT).unlink()
    asked = len(model.requests)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_API_KEY")
    again = run_step(
        workspace, record=RECORD, cases="cases.jsonl", replay="true", offline="true", jobs="2"
    )
    assert again.code == 0, again.log
    assert find_statuses(again) == find_statuses(step)
    assert len(model.requests) == asked
    assert "checks the recorded times" not in step.log + again.log
    held = [path for path in workspace.rglob("*") if path.is_file() and KEY in path.read_text()]
    assert (held, KEY in step.log + again.log) == ([], False)


@pytest.mark.usefixtures("model")
def test_limit_of_latency_is_not_measured_by_a_replay(workspace: Path) -> None:
    (workspace / "agentci.yaml").write_text(f"{CONFIG}checks:\n- max_latency: 5m\n")
    step = run_step(workspace, record=RECORD, cases="cases.jsonl")
    warning = "max_latency checks the recorded times: a replay does not measure the agent's"
    assert (step.code, warning in step.log) == (0, False)
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", replay="true")
    assert (step.code, warning in step.log, warning in step.summary) == (0, True, True)


@pytest.mark.usefixtures("model")
def test_input_redact_keeps_text_out_of_the_recording(workspace: Path) -> None:
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", redact="Os+lo\n\nThanks\n")
    assert step.code in (0, 1, 2), step.log
    written = "".join(path.read_text() for path in (workspace / "traces").rglob("*.json*"))
    assert "weather in ***" in written
    assert [each for each in ("Oslo", "Thanks") if each in written] == []
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", redact="(")
    assert step.code == 2
    assert "`(` is not a regular expression" in step.log


@pytest.mark.usefixtures("model")
def test_changed_request_fails_the_replay_by_name(workspace: Path) -> None:
    run_step(workspace, record=RECORD, cases="cases.jsonl")
    changed = [CASES[0], {**CASES[1], "input": "Thank you"}]
    (workspace / "cases.jsonl").write_text("\n".join(map(json.dumps, changed)))
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", replay="strict")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    assert find_statuses(step) == {"weather": "passed", "thanks": "errored"}
    message = (
        "case thanks: the request is not in the recording: "
        'messages[0].content was `"Thanks"`, is `"Thank you"`'
    )
    errors = [each for each in commands_in(step.log) if each.name == "error"]
    assert any(message in each.data for each in errors)
    assert "case thanks: the request is not in the recording" in step.summary
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", replay="fallback")
    assert (step.code, step.outputs["verdict"]) == (3, "error")
    assert "recorded with another input than its eval case has" in step.summary
    (workspace / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))
    step = run_step(workspace, record=RECORD, cases="cases.jsonl", replay="fallback")
    assert (step.code, step.outputs["verdict"]) == (0, "passed")


@pytest.mark.usefixtures("model")
def test_failing_agent_fails_the_gate_although_its_turn_is_complete(workspace: Path) -> None:
    command = f"sh -c '{sys.executable} {AGENT} chat \"$AGENTCI_INPUT\"; exit 7'"
    step = run_step(workspace, record=command, cases="cases.jsonl")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    assert (step.outputs["passed-count"], step.outputs["errored-count"]) == ("0", "2")
    assert "case weather: the command exited with code 7" in step.summary


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("has_recording", "record", "message"),
    [
        (True, f"{sys.executable} -c 'import no_such_module'", "No module named 'no_such_module'"),
        (False, f"{sys.executable} -c 'import no_such_module'", "No module named 'no_such_module'"),
        (True, "no-such-program", "no such program"),
        (False, "no-such-program", "no such program"),
    ],
)
def test_failure_of_all_cases_is_reported(
    workspace: Path, has_recording: bool, record: str, message: str
) -> None:
    if has_recording:
        assert run_step(workspace, record=RECORD, cases="cases.jsonl").code == 0
    replay = "true" if has_recording else "false"
    step = run_step(workspace, record=record, cases="cases.jsonl", replay=replay)
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    assert find_statuses(step) == {"weather": "errored", "thanks": "errored"}
    for report in ("summary", "junit", "comment", "report"):
        assert message in (workspace / step.outputs[report]).read_text()
    assert message in step.summary


def test_agent_without_model_calls_is_an_error_that_names_what_to_add(workspace: Path) -> None:
    step = run_step(workspace, record="true")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    first, *_ = [each for each in commands_in(step.log) if each.name == "error"]
    assert 'OpenAI(base_url=os.environ["OPENAI_BASE_URL"])' in first.data


def test_placeholder_for_the_command_is_an_error_at_its_line(workspace: Path) -> None:
    file = ".github/workflows/agent-eval.yml"
    (workspace / file).parent.mkdir(parents=True)
    (workspace / file).write_text(
        "# AGENT_COMMAND\njobs:\n  with:\n    record: AGENT_COMMAND {input} # replace it\n"
    )
    event = {"GITHUB_WORKFLOW_REF": f"octo/agent/{file}@refs/pull/1/merge"}
    step = run_step(workspace, event, record="AGENT_COMMAND {input}", cases="cases.jsonl")
    assert (step.code, step.outputs["verdict"]) == (2, "invalid")
    first, *_ = [each for each in commands_in(step.log) if each.name == "error"]
    assert (first.properties["file"], first.properties["line"]) == (file, "4")
    assert first.data.endswith("replace AGENT_COMMAND by the command that runs your agent")
    assert f"{file}:4" in (workspace / step.outputs["comment"]).read_text()


@pytest.mark.usefixtures("model")
def test_input_answer_records_what_the_command_prints(workspace: Path) -> None:
    command = f"sh -c '{sys.executable} {AGENT} chat \"$AGENTCI_INPUT\" > /dev/null; echo Printed'"
    step = run_step(workspace, record=command, cases="cases.jsonl")
    assert "is evaluated" in step.summary
    step = run_step(workspace, record=command, cases="cases.jsonl", answer="stdout")
    assert "is evaluated" not in step.summary
    cases = json.loads((workspace / step.outputs["results"]).read_text())["cases"]
    assert [each["turns"][-1]["answer"] for each in cases] == ["Printed", "Printed"]


def test_agent_sees_no_credential_of_the_job_and_writes_no_command(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken-of-the-job")
    (workspace / "trap.py").write_text(TRAP)
    step = run_step(workspace, record=f"{sys.executable} trap.py", github_token="t0ken-of-the-job")
    assert "forged by the agent" in step.log
    assert not any("forged" in each.data for each in commands_in(step.log))
    assert "['GITHUB_ACTIONS', 'GITHUB_WORKSPACE']" in step.log
    assert "no token" in step.log


def test_input_no_injection_leaves_the_environment_of_the_agent_alone(workspace: Path) -> None:
    (workspace / "trap.py").write_text(
        "import os\nnames = 'AGENTCI_RECORD_URL', 'NODE_OPTIONS'\n"
        "print([name in os.environ for name in names])\nraise SystemExit(1)\n"
    )
    command = f"{sys.executable} trap.py"
    assert "[True, True]" in run_step(workspace, record=command).log
    assert "[False, False]" in run_step(workspace, record=command, no_injection="true").log


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"no-injection": "true"}, "input no-injection has no effect without record"),
        ({"record": "true", "no-injection": "no"}, "input no-injection must be true or false, not"),
        ({"replay": "true"}, "input replay has no effect without record; add `record`"),
        ({"answer": "stdout"}, "input answer has no effect without record; add `record`"),
        ({"record": "true", "answer": "both"}, "input answer must be model or stdout, not 'both'"),
        ({"cases": "c.jsonl"}, "input cases has no effect without record"),
        ({"record": "a 'b"}, "input record cannot be split into words: No closing quotation"),
        ({"record": "true", "replay": "yes"}, "input replay must be true, false, strict or"),
        ({"record": "true", "shard": "1/2"}, "each shard would run the agent; record in an"),
        ({"record": "true", "offline": "true"}, "`offline` runs no agent that asks a model"),
        ({"record": "true", "merge": "x.json"}, "input record has no effect with merge"),
        ({"record": "true", "cases": "missing.jsonl"}, "missing.jsonl"),
        ({"record": "no-such-program"}, "cannot start `no-such-program`"),
        ({"record": "true", "replay": "true"}, "no recorded requests in traces/recorded.requests"),
    ],
)
def test_invalid_inputs_are_reported(inputs: dict[str, str], message: str, workspace: Path) -> None:
    output = workspace / "output"
    session = make_session(workspace, {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)})
    unset = {option.name: "" for option in OPTIONS if not option.cli_only}
    assert run_action({"config": "", **unset, **inputs}, session, os.environ) == 2
    assert "verdict<<" in output.read_text()
    assert isinstance(session.out, io.StringIO)
    assert message in session.out.getvalue()
