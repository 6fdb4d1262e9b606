"""Agents that run again without a model, answered from an earlier recording."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agentci.errors import InputError
from agentci.model.values import JsonObject
from agentci.record.apis import openai_chat
from agentci.record.request_file import (
    MAX_NAME,
    SUFFIX,
    RecordedRequest,
    format_requests,
    make_file_name,
    parse_requests,
)
from examples.agents.mock_model import MockModel, mock_model
from tests.conftest import MakeOnce
from tests.helpers.support import ROOT, Ran, run_agentci
from tests.helpers.waiting import wait_until
from tests.record.recorded import (
    AGENT,
    KEY,
    OUT,
    assert_no_key,
    describe,
    drop_progress,
    make_environment,
    read_traces,
    record,
)

REQUESTS = "traces/recorded.requests"
COMMENT = "agentci-results/comment.md"
FAILED = "traces/.failed/recorded.jsonl"
SEE_FAILED = f"run `agentci show {FAILED}`"
QUESTIONS = ("What is the weather in Oslo and Rome?", "Thanks")
SDK_AGENT = """
import sys
from openai import OpenAI
client = OpenAI()
messages = [{"role": "user", "content": "Hi"}]
with client.chat.completions.stream(model="m", messages=messages) as stream:
    print(stream.get_final_completion().choices[0].message.content)
with client.responses.stream(model="m", input="weather in Oslo") as stream:
    print([item.type for item in stream.get_final_response().output])
with client.responses.stream(model="m", input="Hello") as stream:
    print(stream.get_final_response().output_text)
print(client.embeddings.create(model="e", input="x", encoding_format="float").data[0].embedding)
"""


@pytest.fixture
def model() -> Iterator[MockModel]:
    with mock_model() as found:
        yield found


def replay(folder: Path, *words: str, options: tuple[str, ...] = (), program: Path = AGENT) -> Ran:
    """Run an agent again where no service is reachable and no key is set."""
    nowhere = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    }
    command = [sys.executable, str(program), *words]
    with patch.dict(os.environ, {**nowhere, "OPENAI_API_KEY": ""}):
        ran = run_agentci(["record", "--replay", *options, "--", *command], cwd=folder)
    return drop_progress(ran)


@pytest.mark.parametrize(
    "words",
    [
        *([api] for api in ("chat", "responses", "anthropic", "gemini")),
        ["chat", "--stream"],
        ["responses", "--stream"],
        ["gemini", "--stream"],
    ],
    ids=" ".join,
)
def test_agent_runs_again_without_a_model(
    words: list[str], tmp_path: Path, model: MockModel
) -> None:
    record(tmp_path, model, *words, *QUESTIONS)
    asked = len(model.requests)
    before = [describe(turn) for trace in read_traces(tmp_path / OUT) for turn in trace.turns]
    (tmp_path / OUT).unlink()
    ran = replay(tmp_path, *words, *QUESTIONS)
    assert (ran.code, ran.err) == (0, "")
    after = [describe(turn) for trace in read_traces(tmp_path / OUT) for turn in trace.turns]
    assert after == before
    assert len(after) == 2
    assert len(model.requests) == asked
    assert_no_key(tmp_path, ran)


@pytest.mark.slow
def test_streams_and_other_requests_of_the_sdk_are_replayed(
    tmp_path: Path, model: MockModel, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(SDK_AGENT)
    assert record(tmp_path, model, program=program).code == 0
    first = capfd.readouterr().out
    assert replay(tmp_path, program=program).code == 0
    assert capfd.readouterr().out == first
    assert first.splitlines()[0] == "You asked: Hi"
    assert '"embedding": [0.5, -1.25]' in (tmp_path / REQUESTS / "run.json").read_text()


def test_miss_names_a_tool_that_was_added(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    tool = '{"type": "function", "function": {"name": "a"}}'
    agent = AGENT.read_text().replace(KEY, "")
    program.write_text(agent.replace('"m", "messages"', f'"m", "tools": [{tool}], "messages"'))
    assert record(tmp_path, model, "chat", QUESTIONS[0], program=program).code == 0
    program.write_text(program.read_text().replace(tool, f'{tool}, {{"name": "b"}}'))
    ran = replay(tmp_path, "chat", QUESTIONS[0], program=program)
    assert ran.code == 3
    assert 'tools[1] was missing, is `{"name": "b"}`' in ran.err


def test_miss_names_the_first_differing_message(tmp_path: Path, model: MockModel) -> None:
    record(tmp_path, model, "chat", *QUESTIONS)
    ran = replay(tmp_path, "chat", QUESTIONS[0], "Thank you")
    assert ran.code == 3
    assert (
        'error: the request is not in the recording: messages[5].content was `"Thanks"`, '
        'is `"Thank you"`; record again with a key if the change is wanted, '
        "or use --replay=fallback\n" in ran.err
    )


@pytest.mark.slow
def test_miss_is_not_tried_again_by_the_sdk(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    program.write_text(SDK_AGENT)
    record(tmp_path, model, program=program)
    program.write_text(SDK_AGENT.replace('"Hi"', '"Ho"'))
    ran = replay(tmp_path, program=program)
    assert ran.code == 3
    assert ran.err.count("messages[0].content was") == 2  # while it runs, and at the end


def test_fallback_asks_the_model_for_what_is_missing(tmp_path: Path, model: MockModel) -> None:
    record(tmp_path, model, "chat", QUESTIONS[0])
    asked = len(model.requests)
    ran = record(tmp_path, model, "chat", *QUESTIONS, options=["--replay=fallback"])
    assert (ran.code, len(model.requests) - asked) == (0, 1)
    assert "3 model calls (from the proxy); 1 of them went to the model, as the " in ran.out
    [trace] = read_traces(tmp_path / OUT)
    assert len(trace.turns) == 2
    assert trace.replayed


def test_run_that_a_model_answered_is_not_marked_as_replayed(gated: Path, model: MockModel) -> None:
    write_cases(gated / "cases.yaml", [CASES[0], ("b", "Another")])
    ran = record(gated, model, "chat", options=[*OPTIONS, "--replay=fallback"])
    assert (ran.code, ran.err.count("warning")) == (0, 0)
    assert "; 1 of them went to the model, as the recording lacks them" in ran.out
    assert "agentci.case.replayed" not in (gated / OUT).read_text()


def test_replay_without_the_cases_of_the_recording_names_the_option(gated: Path) -> None:
    ran = replay(gated, "chat", "First")
    assert ran.code == 3
    message = "error: the request is not in the recording: it has only requests of named cases "
    assert f"{message}(--cases or --case); record again" in ran.err


def test_replay_of_an_agent_that_calls_no_model_names_the_recorded_calls(gated: Path) -> None:
    command = ["--", sys.executable, "-c", "print('Hello')"]
    ran = run_agentci(["record", "--replay", *OPTIONS, *command], cwd=gated)
    assert ran.code == 3
    assert (
        "error: case a: no complete turn: the recording has 1 model call, and the agent made none; "
        "remove the case if the agent is meant to call no model; otherwise, the agent must read "
    ) in ran.err
    assert ran.err.endswith(
        "b: no complete turn: the recording has 1 model call, and the agent made none\n"
    )
    reason = run_agentci(["run"], cwd=gated).results["results"][0]["reason"]
    assert "the recording has 1 model call, and the agent made none; record it again" in reason


RUNAWAY = """
import sys
import urllib.error
import http_agent

for _ in range(int(sys.argv[1])):
    try:
        print(http_agent.answer("chat", sys.argv[2], []))
    except urllib.error.HTTPError:
        pass
"""


@pytest.mark.parametrize("mode", ["", "=fallback"])
def test_agent_that_repeats_a_request_is_stopped(
    mode: str, tmp_path: Path, model: MockModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(AGENT.parent))
    program = tmp_path / "agent.py"
    program.write_text(RUNAWAY)
    write_cases(tmp_path / "cases.yaml", CASES)
    assert record(tmp_path, model, "2", "{input}", options=OPTIONS, program=program).code == 0
    options = (*OPTIONS, f"--replay{mode}")
    # Some repeats are answered: a changed agent may ask more often.
    assert record(tmp_path, model, "9", "{input}", options=options, program=program).code == 0
    asked = len(model.requests)
    words = ("1000000", "{input}")
    ran = record(tmp_path, model, *words, options=options, program=program)
    assert (ran.code, len(model.requests)) == (3, asked)
    reason = (
        "the agent repeats a request without end: it was recorded 2 times, and sent more than 22 "
        "times"
    )
    assert ran.err.count(f"a: {reason}\n") == 1
    assert f"error: case a: {reason}; check why the agent does not end\n" in ran.err
    assert "error: case b: the command was stopped after 20 refused requests\n" in ran.err


def test_command_without_cases_may_have_many_refused_requests(
    tmp_path: Path, model: MockModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(AGENT.parent))
    program = tmp_path / "agent.py"
    program.write_text(RUNAWAY)
    assert record(tmp_path, model, "1", "Hi", program=program).code == 0
    ran = replay(tmp_path, "90", "Ho", program=program)
    assert (ran.code, "was stopped" in ran.err) == (3, False)
    ran = replay(tmp_path, "1000000", "Ho", program=program)
    assert ran.code == 3
    assert "error: the command was stopped after 1,000 refused requests\n" in ran.err


def test_each_case_has_a_file_and_answers_of_its_own(tmp_path: Path, model: MockModel) -> None:
    cases = [{"id": "a/b", "input": "Hi"}, {"id": "c", "input": "weather in Oslo"}]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    options = ("--cases", "cases.jsonl", "--jobs", "2")
    stale = tmp_path / REQUESTS / "stale.json"
    stale.parent.mkdir(parents=True)
    stale.write_text(format_requests([]))
    (stale.parent / "other.json").write_text("{}")
    record(tmp_path, model, "chat", options=options)
    names = sorted(path.name for path in (tmp_path / REQUESTS).iterdir())
    assert names == ["a%2Fb.json", "c.json", "other.json"]
    (stale.parent / "other.json").unlink()
    assert replay(tmp_path, "chat", options=options).code == 0
    (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "new", "input": "Hi"}))
    ran = replay(tmp_path, "chat", options=options)
    assert ran.code == 3
    assert "error: case new: the request is not in the recording: nothing was recorded" in ran.err


def test_replay_without_a_recording_is_invalid(tmp_path: Path) -> None:
    ran = replay(tmp_path, "chat", "Hi")
    assert ran.code == 2
    assert str(ran.problems[0]) == (
        f"no recorded requests in {REQUESTS} (record first, without --replay)"
    )


def make_request(body: JsonObject) -> RecordedRequest:
    return RecordedRequest(method="POST", path="/p", body=body, response={"n": [1, 2.5]})


def test_file_has_only_the_new_part_of_each_request() -> None:
    first: Any = {"model": "a", "tools": [1, 2], "messages": [{"c": "[1, 2]\n"}], "n": None}
    second = {"model": "b", "messages": [*first["messages"], {"c": 2}], "n": None, "new": 1}
    third = {"model": "b", "messages": [{"c": 3}]}
    requests = tuple(map(make_request, (first, second, third, {})))
    text = format_requests(requests)
    assert parse_requests(text.encode(), file="f").requests == requests
    listed = json.loads(text)["exchanges"][1]
    assert listed["continues"] == 0
    assert listed["request"] == {"model": "b", "messages": [{"c": 2}], "new": 1}
    assert listed["without"] == ["tools"]
    assert '"tools": [1, 2]' in text


REQUESTS_HEAD = {"format": "agentci-requests", "version": 1}
EXCHANGE = {"method": "POST", "path": "/x", "request": {}, "response": {"id": "r"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "`format` is not `agentci-requests`"),
        ([], "`format` is not `agentci-requests`"),
        ({"format": "agentci-requests", "version": 2}, "`version` is not 1"),
        (
            {**REQUESTS_HEAD, "exchanges": [{**EXCHANGE, "continues": 0}]},
            "`continues` is not the number of an earlier exchange",
        ),
        (
            {**REQUESTS_HEAD, "exchanges": [EXCHANGE, {**EXCHANGE, "continues": "0"}]},
            "`continues` is not the number of an earlier exchange",
        ),
        (REQUESTS_HEAD, "`exchanges` is not an array"),
        ({**REQUESTS_HEAD, "exchanges": {}}, "`exchanges` is not an array"),
        ({**REQUESTS_HEAD, "exchanges": [EXCHANGE, "x"]}, "exchange 1 has no valid `method`"),
        ({**REQUESTS_HEAD, "exchanges": [{**EXCHANGE, "path": ""}]}, "0 has no valid `path`"),
        ({**REQUESTS_HEAD, "exchanges": [{**EXCHANGE, "request": 1}]}, "0 has no valid `request`"),
        ({**REQUESTS_HEAD, "exchanges": [{**EXCHANGE, "response": {}}]}, "no valid `response`"),
    ],
)
def test_invalid_file_of_requests_is_a_problem(content: Any, message: str) -> None:
    with pytest.raises(InputError, match="f:1") as caught:
        parse_requests(json.dumps(content).encode(), file="f")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", '{"format": ', "\x00"])
def test_damaged_file_of_requests_is_named_with_what_to_do(text: str) -> None:
    with pytest.raises(InputError, match="f:1") as caught:
        parse_requests(text.encode(), file="f")
    assert caught.value.problems[0].hint == "restore the file, or record it again"


def test_file_names_of_cases_are_safe() -> None:
    assert make_file_name("") == "run.json"
    assert make_file_name("../x") == "..%2Fx.json"
    assert make_file_name("Ünïcode 1") == "%C3%9Cn%C3%AFcode 1.json"
    assert make_file_name("con") == "%63on.json"
    assert make_file_name("LPT1.x") == "%4CPT1.x.json"
    assert make_file_name("console") == "console.json"


def test_long_names_of_cases_are_distinct() -> None:
    names = {make_file_name(f"{'质' * 100}{number}") for number in range(3)}
    assert len(names) == 3
    assert {len(name) for name in names} == {MAX_NAME + len(SUFFIX)}


def test_replayed_stream_has_one_tool_call_in_a_chunk() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name}} for name in "ab"]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    body: Any = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    events: list[Any] = list(openai_chat.make_events(body))
    deltas = [each["choices"][0]["delta"] for each in events]
    assert [[call["id"] for call in each.get("tool_calls", [])] for each in deltas] == [
        *([], ["a"], ["b"], []),
    ]
    merged: Any = openai_chat.merge_events(events)
    assert [call["id"] for call in merged["choices"][0]["message"]["tool_calls"]] == ["a", "b"]


CASES = (("a", "First"), ("b", "Second"))
OPTIONS = ("--cases", "cases.yaml")


@pytest.fixture
def gated(tmp_path: Path, model: MockModel, make_once: MakeOnce) -> Path:
    """A folder with a recording of all its cases, whose gate passes."""

    def make_gated(folder: Path) -> None:
        write_cases(folder / "cases.yaml", CASES)
        (folder / "agentci.yaml").write_text(
            "traces: traces/*.jsonl\neval_set: cases.yaml\nchecks: [{no_secrets: true}]\n"
        )
        assert record(folder, model, "chat", options=OPTIONS).code == 0
        assert find_statuses(folder) == (0, {"a": "passed", "b": "passed"})

    make_once(tmp_path, make_gated)
    return tmp_path


def write_cases(path: Path, cases: Sequence[tuple[str, str]]) -> None:
    lines = [f"  - id: {name}\n    input: {json.dumps(text)}\n" for name, text in cases]
    path.write_text("".join(["eval_cases:\n", *lines]))


def find_statuses(folder: Path) -> tuple[int, dict[str, str]]:
    """Return the exit code of `agentci run`, and the status of each case."""
    ran = run_agentci(["run"], cwd=folder)
    return ran.code, {each["case"]: each["status"] for each in ran.results["results"]}


def test_failed_replay_fails_the_gate_until_it_succeeds(gated: Path) -> None:
    write_cases(gated / "cases.yaml", [CASES[0], ("b", "Another")])
    ran = replay(gated, "chat", options=OPTIONS)
    assert ran.code == 3
    assert f"; 1 incomplete run, reported as errors by `agentci run`; {SEE_FAILED}\n" in ran.out
    assert f"{FAILED}: " in ran.out
    # Entries of `traces` still name the file whose recording failed.
    config = (gated / "agentci.yaml").read_text()
    named = "traces: [{path: traces/*.jsonl, where: {agentevals.session_name: '*'}}]\n"
    (gated / "agentci.yaml").write_text(config.replace("traces: traces/*.jsonl\n", named))
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored"})
    (gated / "agentci.yaml").write_text(config)
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored"})
    reason = run_agentci(["run"], cwd=gated).results["results"][1]["reason"]
    assert reason.startswith(
        "The recorded run is not complete: the request is not in the recording: "
        'messages[0].content was `"Second"`, is `"Another"`; record it again; '
        f"{SEE_FAILED}"
    )
    assert run_agentci(["accept", "b"], cwd=gated).code == 1
    write_cases(gated / "cases.yaml", CASES)
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


def test_recording_without_a_complete_run_keeps_the_earlier_one(
    gated: Path, model: MockModel
) -> None:
    commit_all(gated)
    run_agentci(["run", "--output-dir", "old"], cwd=gated)
    for program in ("missing.py", "crash.py"):
        (gated / "crash.py").write_text("raise RuntimeError('no settings')\n")
        ran = record(gated, model, "chat", options=OPTIONS, program=gated / program)
        assert ran.code == 3
        assert ran.out.endswith(
            f"Recording failed, {OUT} is unchanged: 2 cases, 0 turns, 0 tool calls, 0 model calls; "
            f"2 incomplete runs, reported as errors by `agentci run`; run `agentci show {FAILED}`\n"
        )
        assert git(gated, "status", "--porcelain", "traces") == ""
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})
    warning = (
        f"{OUT}:1: warning: the last recording of this file failed: `agentci run` reports its "
        f"errors from {FAILED}, and does not evaluate the earlier recording; correct them and "
        f"record again, or delete {FAILED} to evaluate the earlier one\n"
    )
    ran = run_agentci(["run", "--baseline", "old"], cwd=gated)
    assert warning in ran.out
    assert "no longer evaluated (errored)" in ran.out
    assert "a changed answer" not in ran.out
    reason = "The recorded run is not complete: the command exited with code 1 before it called a"
    reason += " model: RuntimeError: no settings; correct the agent, and record it again; "
    assert ran.results["results"][0]["reason"] == f"{reason}{SEE_FAILED}"
    assert run_agentci(["show", OUT], cwd=gated).err == warning
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})
    assert not (gated / FAILED).parent.exists()
    assert git(gated, "status", "--porcelain", "traces") == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--replay", "--cases", "x.yaml", "--", "true"), "--cases x.yaml does not exist"),
        (("--replay", "--requests", "x", *OPTIONS, "--", "true"), "no recorded requests in x"),
        (("--redact", "(", *OPTIONS, "--", "true"), "--redact `(` is not a regular expression"),
        ((*OPTIONS, "--case", "c", "--", "true"), "cases.yaml has no case 'c'"),
        ((*OPTIONS, "--"), "no command to record"),
    ],
)
@pytest.mark.parametrize("is_failed", [False, True])
def test_invalid_input_leaves_the_recording_and_an_earlier_failure(
    gated: Path, arguments: Sequence[str], reason: str, is_failed: bool
) -> None:
    if is_failed:
        cases = (gated / "cases.yaml").read_text()
        write_cases(gated / "cases.yaml", [CASES[0], ("b", "Another")])
        assert replay(gated, "chat", options=OPTIONS).code == 3
        (gated / "cases.yaml").write_text(cases)
    before = {path: path.read_bytes() for path in gated.rglob("*") if path.is_file()}
    ran = run_agentci(["record", *arguments], cwd=gated)
    assert ran.code == 2
    assert ran.problems[0].message.startswith(reason)
    assert {path: path.read_bytes() for path in gated.rglob("*") if path.is_file()} == before
    assert find_statuses(gated)[1]["a"] == "passed"


def test_replay_of_a_case_whose_last_recording_failed_is_a_warning(
    gated: Path, model: MockModel
) -> None:
    failing = gated / "failing.py"
    failing.write_text(
        "import os, runpy, sys\n"
        "if os.environ['AGENTCI_INPUT'] == 'First': sys.exit('no settings')\n"
        f"runpy.run_path({str(AGENT)!r}, run_name='__main__')\n"
    )
    assert record(gated, model, "chat", options=OPTIONS, program=failing).code == 3
    assert find_statuses(gated) == (3, {"a": "errored", "b": "passed"})
    message = "the recording of 1 case (a) failed; the replay has an earlier one's responses"
    for warned in (True, False):
        ran = replay(gated, "chat", options=OPTIONS)
        assert (ran.code, message in ran.err) == (0, warned)
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


@pytest.mark.parametrize("options", [(), ("--replay",)])
def test_command_that_cannot_be_started_fails_the_gate_until_a_recording_succeeds(
    gated: Path, options: tuple[str, ...]
) -> None:
    before = (gated / OUT).read_text()
    ran = run_agentci(["record", *options, *OPTIONS, "--", "no-such-program"], cwd=gated)
    assert (ran.code, (gated / OUT).read_text()) == (2, before)
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


def test_recording_that_ends_after_its_first_case_fails_the_gate_until_one_succeeds(
    gated: Path, model: MockModel
) -> None:
    # The arguments of `b` are too long for the system, so that its command cannot be started.
    write_cases(gated / "cases.yaml", [CASES[0], ("b", "x" * 90_000)])
    ran = record(gated, model, "chat", "{input}{input}", options=OPTIONS)
    assert (ran.code, ran.problems[0].message.partition(" `")[0]) == (2, "cannot start")
    write_cases(gated / "cases.yaml", CASES)
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})
    found = run_agentci(["run"], cwd=gated).results["results"][0]["reason"]
    assert found.startswith("The last recording failed: cannot start `")
    assert found.endswith(f"; record again; {SEE_FAILED}")
    assert record(gated, model, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})
    assert not (gated / FAILED).parent.exists()


@pytest.mark.parametrize(
    ("command", "options", "statuses"),
    [
        (("no-such-program",), OPTIONS, {"a": "errored", "b": "errored"}),
        (("no-such-program",), (), {"run": "errored"}),
        ((sys.executable, "missing.py"), OPTIONS, {"a": "errored", "b": "errored"}),
        ((sys.executable, "missing.py"), (), {"run": "errored"}),
    ],
)
def test_first_recording_that_fails_is_reported(
    tmp_path: Path, command: Sequence[str], options: Sequence[str], statuses: dict[str, str]
) -> None:
    write_cases(tmp_path / "cases.yaml", CASES)
    config = "traces: traces/*.jsonl\nchecks: [{no_secrets: true}]\n"
    (tmp_path / "agentci.yaml").write_text(config)
    assert run_agentci(["record", *options, "--", *command], cwd=tmp_path).code in (2, 3)
    assert find_statuses(tmp_path) == (3, statuses)
    assert not (tmp_path / OUT).exists()


def test_command_without_cases_that_fails_is_the_error_of_all_cases(
    gated: Path, model: MockModel
) -> None:
    before = (gated / OUT).read_text()
    assert record(gated, model, program=gated / "missing.py").code == 3
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})
    reason = "exited with code 2 before it called a model; correct the agent"
    assert reason in run_agentci(["run"], cwd=gated).out
    assert (gated / OUT).read_text() == before
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


def test_failed_recording_is_ended_case_by_case(gated: Path, model: MockModel) -> None:
    before = (gated / OUT).read_text().splitlines()
    model.fail_next += [500, 500]
    assert record(gated, model, "chat", options=OPTIONS).code == 3
    assert record(gated, model, "chat", options=(*OPTIONS, "--case", "b")).code == 0
    assert find_statuses(gated) == (3, {"a": "errored", "b": "passed"})
    after = (gated / OUT).read_text().splitlines()
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False]
    assert replay(gated, "chat", options=(*OPTIONS, "--case", "a")).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})
    assert (gated / OUT).read_text().splitlines() == after


def test_single_case_that_fails_keeps_its_earlier_run(gated: Path, model: MockModel) -> None:
    before = (gated / OUT).read_text()
    model.fail_next.append(500)
    assert record(gated, model, "chat", options=(*OPTIONS, "--case", "b")).code == 3
    assert (gated / OUT).read_text() == before
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored"})


def test_recording_without_a_complete_run_replaces_one_that_has_none(
    gated: Path, model: MockModel
) -> None:
    (gated / OUT).unlink()
    for file in (gated / REQUESTS).iterdir():
        file.unlink()
    assert record(gated, model, "chat", options=OPTIONS, program=gated / "missing.py").code == 3
    assert not (gated / OUT).exists()
    (gated / OUT).write_text("{}\n")
    assert record(gated, model, "chat", options=OPTIONS, program=gated / "missing.py").code == 3
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})
    assert not (gated / FAILED).exists()


def test_case_that_fails_to_record_fails_the_gate_and_can_be_replayed(
    gated: Path, model: MockModel
) -> None:
    model.fail_next.append(500)
    assert record(gated, model, "chat", options=OPTIONS).code == 3
    assert find_statuses(gated) == (3, {"a": "errored", "b": "passed"})
    assert (
        "not complete: Chat Completions answered 500 failure" in run_agentci(["run"], cwd=gated).out
    )
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


def test_command_that_fails_after_its_answer_fails_the_gate(gated: Path, model: MockModel) -> None:
    program = gated / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(AGENT.parent)!r})\n"
        "import http_agent\nhttp_agent.main(['chat'])\nsys.exit(7)\n"
    )
    assert record(gated, model, options=OPTIONS, program=program).code == 3
    assert find_statuses(gated) == (3, {"a": "errored", "b": "errored"})


def test_run_without_cases_that_fails_is_an_error(tmp_path: Path, model: MockModel) -> None:
    (tmp_path / "agentci.yaml").write_text("traces: traces/*\nchecks: [{no_secrets: true}]\n")
    record(tmp_path, model, "chat", "Hi")
    assert find_statuses(tmp_path) == (0, {"Hi": "passed"})
    assert replay(tmp_path, "chat", "Ho").code == 3
    code, statuses = find_statuses(tmp_path)
    assert (code, list(statuses.values())) == (3, ["errored"])


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        pytest.param([*CASES, ("c", "New")], "No run of this eval case was recorded", id="added"),
        pytest.param(
            [CASES[0], ("c", "Second")], "eval case 'b', whose id is now 'c'", id="renamed"
        ),
        pytest.param([("c", "First"), ("d", "Second")], "whose id is now 'd'", id="all renamed"),
        pytest.param([CASES[0], ("b", "Edited")], "recorded with another input", id="edited"),
        pytest.param([CASES[0]], "recorded for eval case 'b', which does not exist", id="removed"),
        pytest.param([CASES[0], ("bb", "Other")], "(did you mean 'bb'?)", id="another id"),
    ],
)
def test_cases_that_changed_since_they_were_recorded_fail_the_gate(
    gated: Path, cases: list[tuple[str, str]], reason: str
) -> None:
    write_cases(gated / "cases.yaml", cases)
    ran = run_agentci(["run"], cwd=gated)
    assert ran.code == 3
    errored = [each for each in ran.results["results"] if each["status"] == "errored"]
    assert reason in "".join(each["reason"] for each in errored)
    is_first_left = cases[0] == CASES[0]
    assert run_agentci(["run", "--case", "a"], cwd=gated).code == (0 if is_first_left else 2)


def test_renamed_eval_case_is_one_error(gated: Path, model: MockModel) -> None:
    config = (gated / "agentci.yaml").read_text()
    (gated / "agentci.yaml").write_text(config.replace("[{no_", "[{max_words: 99}, {no_"))
    write_cases(gated / "cases.yaml", [CASES[0], ("c", "Second")])
    ran = run_agentci(["run"], cwd=gated)
    assert (ran.code, len(ran.results["results"])) == (3, 4)
    errors = ran.out.partition("Errored checks\n")[2].partition("\n\n")[0].splitlines()
    reason = "The run was recorded as eval case 'b', whose id is now 'c'; record it again"
    shown = f"  c (2 checks: max_words, no_secrets): {reason}; run `agentci show {OUT}`"
    assert errors == [shown]
    assert "(2 checks: `max_words`, `no_secrets`)" in (gated / COMMENT).read_text()
    # The run of the case's new id is evaluated, and the earlier one has no eval case.
    assert record(gated, model, "chat", options=(*OPTIONS, "--case", "c")).code == 0
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored", "c": "passed"})


def test_case_that_takes_too_long_is_stopped(
    gated: Path, model: MockModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = gated / "agent.py"
    program.write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr("agentci.cli.commands.record.CASE_SECONDS", 0.5)
    ran = record(gated, model, options=(*OPTIONS, "--case", "b"), program=program)
    message = "the command was stopped after 0.5 s (--timeout) before it called a model"
    assert (ran.code, message in ran.err, "raise --timeout" in ran.err) == (3, True, True)
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored"})
    ran = run_agentci(["run"], cwd=gated)
    assert f"(1 case: b): The recorded run is not complete: {message}; correct the" in ran.out
    options = (*OPTIONS, "--timeout", "none")
    assert record(gated, model, "chat", options=options).code == 0
    monkeypatch.setattr("agentci.cli.commands.record.COMMAND_SECONDS", 0.5)
    ran = record(gated, model, options=("--out", "one.jsonl"), program=program)
    assert (ran.code, "was stopped after 0.5 s (--timeout)" in ran.err) == (3, True)


def test_recording_may_be_for_the_cases_of_several_configs(gated: Path) -> None:
    for name, case in (("one", CASES[0]), ("two", CASES[1])):
        write_cases(gated / f"{name}.yaml", [case])
        config = f"traces: traces/*.jsonl\neval_set: {name}.yaml\nchecks: [{{no_secrets: true}}]\n"
        (gated / f"{name}.eval.yaml").write_text(config)
    assert run_agentci(["run", "one.eval.yaml", "two.eval.yaml"], cwd=gated).code == 0
    assert run_agentci(["run", "one.eval.yaml"], cwd=gated).code == 3


def test_recording_for_cases_without_an_eval_set_is_a_warning(gated: Path) -> None:
    config = "traces: traces/*\nchecks: [{no_secrets: true}]\n"
    lost = "2 recorded runs were recorded for eval cases, but no `eval_set` is configured"
    (gated / "one.eval.yaml").write_text(config)
    ran = run_agentci(["run", "one.eval.yaml"], cwd=gated)
    assert ran.code == 0
    assert f"one.eval.yaml:1: warning: {lost}" in ran.out
    (gated / "one.eval.yaml").write_text(f"{config}gate: {{on_skip: fail}}\n")
    strict = run_agentci(["run", "one.eval.yaml"], cwd=gated)
    assert strict.code == 1
    assert "Quality gate failed: 2 recorded runs without an eval case" in strict.out
    (gated / "two.eval.yaml").write_text(f"{config}eval_set: cases.yaml\n")
    both = run_agentci(["run", "one.eval.yaml", "two.eval.yaml"], cwd=gated)
    assert lost not in both.out


def test_run_whose_eval_case_was_removed_is_errored_although_others_are_evaluated(
    gated: Path,
) -> None:
    (gated / "agentci.yaml").write_text("traces: traces/*.jsonl\neval_set: cases.yaml\n")
    (gated / "cases.yaml").write_text("eval_cases: [{id: a, input: First, calls: []}]\n")
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored"})


def test_redacted_case_is_still_the_one_that_was_recorded(gated: Path, model: MockModel) -> None:
    options = (*OPTIONS, "--redact", "Sec")
    assert record(gated, model, "chat", options=options).code == 0
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})
    write_cases(gated / "cases.yaml", [CASES[0], ("b", "***ond")])
    assert find_statuses(gated) == (0, {"a": "passed", "b": "passed"})


def test_cases_of_several_files_are_one_recording(tmp_path: Path, model: MockModel) -> None:
    write_cases(tmp_path / "one.yaml", CASES[:1])
    write_cases(tmp_path / "two.yaml", CASES[1:])
    options = ("--cases", "one.yaml", "--cases", "two.yaml")
    assert record(tmp_path, model, "chat", options=options).code == 0
    assert [trace.eval_case_id for trace in read_traces(tmp_path / OUT)] == ["a", "b"]
    write_cases(tmp_path / "two.yaml", CASES)
    ran = record(tmp_path, model, "chat", options=options)
    assert [str(each) for each in ran.problems] == [
        "two.yaml: another file has a case 'a', too (give each case an id of its own)"
    ]


def interrupt(folder: Path, model: MockModel, case: str, *options: str) -> str:
    """Record, interrupt it in a case, and return what it printed to stderr."""
    program = folder / "agent.py"
    program.write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(AGENT.parent)!r})\n"
        "import http_agent\nhttp_agent.main(['chat'])\n"
        f"if os.environ['AGENTCI_CASE'] == {case!r}:\n"
        "    open('ready', 'w').close()\n    time.sleep(600)\n"
    )
    words = [sys.executable, "-m", "agentci", "record", *OPTIONS, *options, "--", sys.executable]
    environ = {**os.environ, **make_environment(model), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*words, str(program)], cwd=folder, env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until((folder / "ready").exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    return errors


def test_interrupted_cases_fail_the_gate(gated: Path, model: MockModel) -> None:
    write_cases(gated / "cases.yaml", [*CASES, ("c", "Third")])
    assert "did not start" not in interrupt(gated, model, "b")
    assert find_statuses(gated) == (3, {"a": "passed", "b": "errored", "c": "errored"})
    shown = run_agentci(["show", OUT], cwd=gated).out
    not_started = shown.partition("Case c\n")[2]
    assert "model call" not in not_started
    assert "user    Third\n" in not_started
    assert "error: The recorded run is not complete: it was not started" in not_started


@pytest.mark.parametrize(("interrupted", "options"), [("b", ()), ("a", ()), ("b", ("--replay",))])
def test_cases_that_did_not_start_keep_their_earlier_run(
    interrupted: str, options: Sequence[str], gated: Path, model: MockModel
) -> None:
    write_cases(gated / "cases.yaml", [*CASES, ("c", "Third"), ("d", "Fourth")])
    assert record(gated, model, "chat", options=OPTIONS).code == 0
    before = (gated / OUT).read_text().splitlines()
    requests = sorted((gated / REQUESTS).iterdir())
    write_cases(gated / "cases.yaml", [*CASES, ("c", "Third")])
    errors = interrupt(gated, model, interrupted, *options)
    names = "1 case (c)" if interrupted == "b" else "2 cases (b, c)"
    assert f"note: {names} did not start: {OUT} keeps the earlier recording" in errors
    is_written = interrupted == "b" and not options
    assert (gated / FAILED).exists() is not is_written
    after = (gated / (OUT if is_written else FAILED)).read_text().splitlines()
    changed = 2 if is_written else 1
    assert len(after) == len(before)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == changed
    assert sorted((gated / REQUESTS).iterdir()) == requests
    statuses = {**dict.fromkeys("abc", "passed"), interrupted: "errored"}
    found = find_statuses(gated)[1]
    assert {case: found[case] for case in "abc"} == statuses


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def commit_all(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Record")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_replay_of_equal_runs_changes_no_file(gated: Path, jobs: str) -> None:
    commit_all(gated)
    assert replay(gated, "chat", options=(*OPTIONS, "--jobs", jobs)).code == 0
    assert replay(gated, "chat", options=(*OPTIONS, "--case", "b")).code == 0
    assert git(gated, "status", "--porcelain", "traces") == ""
    program = gated / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(AGENT.parent)!r})\nimport http_agent\n"
        "history = []\nprint(http_agent.answer('chat', sys.stdin.read(), history))\n"
        "if http_agent.os.environ['AGENTCI_CASE'] == 'b': "
        "http_agent.answer('chat', 'Second', history)\n"
    )
    ran = replay(gated, program=program, options=(*OPTIONS, "--replay=strict"))
    assert ran.code == 3
    assert f"Recording failed, {OUT} is unchanged: 2 cases" in ran.out
    assert git(gated, "status", "--porcelain", "traces") == ""
    before = (gated / OUT).read_text().splitlines()
    failed = (gated / FAILED).read_text().splitlines()
    assert [a == b for a, b in zip(before, failed, strict=True)] == [True, False]


def test_replay_of_an_equal_run_without_cases_changes_no_file(
    tmp_path: Path, model: MockModel
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys, threading\nsys.path.insert(0, {str(AGENT.parent)!r})\nimport http_agent\n"
        "def talk(number):\n    history = []\n"
        "    for question in (f'weather in Town{number}\\u2028', 'Thanks'):\n"
        "        http_agent.answer('responses', question, history)\n"
        "threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]\n"
        "[thread.start() for thread in threads]\n[thread.join() for thread in threads]\n"
    )
    assert record(tmp_path, model, program=program).code == 0
    commit_all(tmp_path)
    ran = replay(tmp_path, program=program)
    assert (ran.code, ran.err) == (0, "")
    assert git(tmp_path, "status", "--porcelain", "traces") == ""


def test_replay_with_other_arguments_of_a_tool_is_written(tmp_path: Path, model: MockModel) -> None:
    record(tmp_path, model, "chat", "weather in Oslo")
    file = tmp_path / OUT
    file.write_text(file.read_text().replace("Oslo", "Rome"))
    assert replay(tmp_path, "chat", "weather in Oslo").code == 0
    assert "Rome" not in file.read_text()


def test_latency_of_a_replay_is_not_evaluated(gated: Path) -> None:
    config = gated / "agentci.yaml"
    config.write_text(f"{config.read_text()}  - max_latency: 60s\n  - max_duration: 60s\n")
    config.write_text(config.read_text().replace("[{no_secrets: true}]", "\n  - no_secrets: true"))
    assert replay(gated, "chat", options=OPTIONS).code == 0  # the run stays as it was recorded
    run = run_agentci(["run"], cwd=gated)
    assert (run.code, run.results["totals"]["passed"]) == (0, 6)
    assert "latency_ms" in json.dumps(run.results["cases"])
    file = gated / OUT
    file.write_text(file.read_text().replace("First", "Other").replace("Second", "Other"))
    assert replay(gated, "chat", options=OPTIONS).code == 0
    lines = file.read_text()
    assert lines.count("agentci.case.replayed") == 2
    run = run_agentci(["run"], cwd=gated)
    assert run.code == 0
    skipped = [each for each in run.results["results"] if each["status"] == "skipped"]
    assert {(each["evaluator"], each["reason"]) for each in skipped} == {
        ("max_latency", "replayed: latency was not measured"),
        ("max_duration", "replayed: latency was not measured"),
    }
    assert "latency" not in json.dumps(run.results["cases"])
    assert run_agentci(["run", "--plan"], cwd=gated).code == 0
    assert replay(gated, "chat", options=OPTIONS).code == 0
    assert file.read_text() == lines


def test_requests_of_a_removed_case_are_a_warning(gated: Path) -> None:
    write_cases(gated / "cases.yaml", CASES[:1])
    assert replay(gated, "chat", options=OPTIONS).code == 0
    ran = run_agentci(["run"], cwd=gated)
    assert ran.code == 0
    warning = (
        f"{REQUESTS}/b.json:1: warning: 1 file of recorded requests without an eval case: b.json; "
        "restore the eval case, or delete the file if it was removed on purpose"
    )
    assert warning in ran.out
    assert "1 file of recorded requests without an eval case" in (gated / COMMENT).read_text()
    (gated / REQUESTS / "b.json").unlink()
    assert "recorded requests" not in run_agentci(["run"], cwd=gated).out


def test_other_cases_are_kept_whatever_they_contain(tmp_path: Path, model: MockModel) -> None:
    write_cases(tmp_path / "cases.yaml", [("a", "First\u2028\u0085line"), ("b", "Second")])
    assert record(tmp_path, model, "chat", options=OPTIONS).code == 0
    before = (tmp_path / OUT).read_text().split("\n")
    assert record(tmp_path, model, "chat", options=(*OPTIONS, "--case", "b")).code == 0
    after = (tmp_path / OUT).read_text().split("\n")
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
