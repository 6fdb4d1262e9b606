"""Agents that are recorded through the proxy, from the command line to the turns."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from agentci.model.trace import Trace
from agentci.model.values import Place
from agentci.record.agent_process import find_last_line
from examples.agents.mock_model import MockModel, mock_model
from tests._util.http.servers import Answer, script, serve
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
from tests.record.test_proxy import raw_server

WEATHER = "What is the weather in Oslo and Rome?"
WEATHER_TURN = (
    WEATHER,
    [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})],
    "It is sunny in Oslo. It is sunny in Rome.",
)
THANKS_TURN: tuple[str, list[tuple[str, object]], str] = ("Thanks", [], "You asked: Thanks")
APIS = ("chat", "responses", "anthropic", "gemini")

NO_INPUT = "case 2 has no `input`, which the command asks for"
NO_TURNS = "not every turn of case 2 has an `input`"


@pytest.fixture
def model() -> Iterator[MockModel]:
    with mock_model() as found:
        yield found


CRASH_AT_TOOL = """
import os, sys
sys.path.append(sys.argv[1])
import http_agent
tools = [{"type": "function", "function": {"name": sys.argv[2], "parameters": {"name": "x"}}}]
messages = [{"role": "user", "content": "weather in Oslo"}]
body = {"model": "m", "messages": messages, "tools": tools}
http_agent.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, {})
raise LookupError("lost")
"""


@pytest.mark.parametrize(
    ("offered", "called"),
    [
        ("get_weather", "called `get_weather`"),
        ("find_order", "called `get_weather`, which the request does not offer"),
    ],
)
def test_agent_that_crashes_at_a_tool_is_explained_by_the_call(
    offered: str, called: str, tmp_path: Path, model: MockModel
) -> None:
    words = [sys.executable, "-c", CRASH_AT_TOOL, str(AGENT.parent), offered]
    (tmp_path / "cases.yaml").write_text("- {id: a, input: Hello}\n")
    with patch.dict(os.environ, make_environment(model)):
        ran = run_agentci(["record", "--cases", "cases.yaml", "--", *words], cwd=tmp_path)
    assert ran.code == 3
    assert f"error: case a: the command exited with code 1 after the model {called}\n" in ran.err
    assert (
        f"no answer was recorded, and the command exited with code 1 after the model {called}: "
        "LookupError: lost; correct the agent"
    ) in ran.out


@pytest.mark.parametrize(
    "words",
    [
        *([api] for api in APIS),
        ["chat", "--stream"],
        ["responses", "--stream"],
        ["gemini", "--stream"],
    ],
    ids=" ".join,
)
def test_conversation_with_parallel_calls_is_rebuilt(
    words: list[str], tmp_path: Path, model: MockModel
) -> None:
    ran = record(tmp_path, model, *words, WEATHER, "Thanks")
    assert (ran.code, ran.err) == (0, "")
    assert {path.partition("?")[0] for path, _, _ in model.requests} == {
        {
            "chat": "/v1/chat/completions",
            "responses": "/v1/responses",
            "anthropic": "/v1/messages",
            "gemini": f"/v1beta/models/m:{'streamG' if words[1:] else 'g'}enerateContent",
        }[words[0]]
    }
    assert f"Recorded to {OUT}: 2 turns, 2 tool calls, 3 model calls" in ran.out
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [WEATHER_TURN, THANKS_TURN]
    results = [response.output for response in trace.turns[0].tool_responses]
    assert [str(one) for one in results] == [
        str({"result": text}) if words[0] == "gemini" else text
        for text in ("It is sunny in Oslo.", "It is sunny in Rome.")
    ]
    assert trace.warnings == ()
    assert_no_key(tmp_path, ran)


@pytest.mark.parametrize("api", APIS)
def test_subagent_is_part_of_the_tool_call_that_started_it(
    api: str, tmp_path: Path, model: MockModel
) -> None:
    question = "Please ask the expert: what is the weather in Bern"
    ran = record(tmp_path, model, api, question)
    assert ran.code == 0
    [trace] = read_traces(tmp_path / OUT)
    [turn] = trace.turns
    assert describe(turn) == (
        question,
        [
            ("ask_expert", {"question": "what is the weather in Bern"}),
            ("get_weather", {"city": "Bern"}),
        ],
        "It is sunny in Bern.",
    )


def test_own_key_reaches_the_service_and_no_other_header_is_lost(
    tmp_path: Path, model: MockModel
) -> None:
    record(tmp_path, model, "anthropic", "Hello")
    [(path, headers, body)] = model.requests
    assert path == "/v1/messages"
    assert headers["X-Api-Key"] == make_environment(model)["AGENT_KEY"]
    assert headers["Host"] == model.url.removeprefix("http://")
    assert body["messages"] == [{"role": "user", "content": "Hello"}]


def test_failed_call_that_is_retried_is_left_out(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import sys, urllib.error\n"
        f"sys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\n"
        "try:\n    http_agent.answer('chat', 'Hi', [])\n"
        "except urllib.error.HTTPError:\n    http_agent.answer('chat', 'Hi', [])\n"
    )
    model.fail_next.append(503)
    ran = record(tmp_path, model, program=program)
    assert (ran.code, len(model.requests)) == (0, 2)
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "You asked: Hi")]


def test_error_of_the_service_explains_missing_turn(tmp_path: Path, model: MockModel) -> None:
    model.fail_next.append(401)
    ran = record(tmp_path, model, "chat", "Hi")
    assert ran.code == 3
    assert "error: the command exited with code 1" in ran.err
    assert "error: no complete turn: Chat Completions answered 401 failure 401" in ran.err


def answer_with_html(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>")


def answer_with_endless_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    with suppress(OSError):
        while True:
            connection.sendall(b"X-A: b\r\n" * 100)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (answer_with_html, "answered 200 with a response that is cut off or is not one of this"),
        (answer_with_endless_headers, "the response is incomplete"),
    ],
)
def test_response_that_cannot_be_read_is_one_line(
    answer: Callable[[socket.socket], None], message: str, tmp_path: Path, model: MockModel
) -> None:
    with raw_server(answer) as (url, _), patch.object(model, "url", url.removesuffix("/v1")):
        ran = record(tmp_path, model, "chat", "Hi", options=["--case", "x"])
    assert ran.code == 3
    [line] = [each for each in ran.err.splitlines() if "no complete turn" in each]
    assert message in line
    assert [each for each in ran.err.splitlines() if each.startswith("Traceback")] == []


def test_unreachable_service_is_reported(tmp_path: Path, model: MockModel) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        model.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        ran = record(tmp_path, model, "chat", "Hi")
    assert ran.code == 3
    assert "connection refused" in ran.err


def test_command_without_model_calls_is_incomplete(tmp_path: Path) -> None:
    ran = run_agentci(["record", "--", sys.executable, "-c", "0"], cwd=tmp_path)
    assert ran.code == 3
    assert "no model call reached the recorder; add the question to the command" in ran.err
    assert "OPENAI_BASE_URL" in ran.err
    assert ran.out == (
        "Nothing recorded: 0 turns, 0 tool calls, 0 model calls; 1 incomplete run, reported as "
        "errors by `agentci run`; run `agentci show traces/.failed/recorded.jsonl`\n"
    )
    assert not (tmp_path / OUT).exists()
    failed = run_agentci(["record", "--", sys.executable, "-c", "1/0"], cwd=tmp_path)
    assert failed.err.startswith("error: the command exited with code 1 before it called a model; ")
    assert "add the question" not in failed.err


def test_crash_of_all_cases_is_explained_by_exit_code_and_last_line(
    tmp_path: Path, model: MockModel
) -> None:
    write_cases(tmp_path)
    program = tmp_path / "agent.py"
    program.write_text(
        "import os\nprint('-' * 5000)\n"
        "raise RuntimeError('no settings for ' + os.environ['AGENT_KEY'])\n"
    )
    ran = record(tmp_path, model, "{input}", options=OPTIONS, program=program)
    assert ran.code == 3
    crash = "the command exited with code 1 before it called a model: RuntimeError: no settings for"
    first, *output, second = ran.err.splitlines()[2:]
    assert first.startswith(
        f"error: case a: {crash} [key removed]; correct the command; if it did call one, "
        "the agent must read"
    )
    assert output[-1] == "  RuntimeError: no settings for [key removed]"
    assert second == f"error: case b: {crash} [key removed]"


@pytest.mark.parametrize(
    "output",
    [
        "Traceback (most recent call last):\n  File 'a.py'\nError: no\tkey\n\n",
        "a.mjs:1\nthrow x\n^\n\nError: no key\n    at a.mjs:3:1\n\nNode.js v20.1.0\n",
        "Error: no key\n    at f (a.mjs:1:7) {\n  code: 1\n}\n\nNode.js v24.1.0\n",
    ],
)
def test_last_line_of_a_crash_is_its_message(output: str) -> None:
    assert find_last_line(output) == "Error: no key"


@pytest.mark.parametrize(
    ("variable", "module", "message"),
    [
        ("AWS_BEARER_TOKEN_BEDROCK", "", "Amazon Bedrock are not recorded, as they are signed"),
        ("", "botocore", "Amazon Bedrock are not recorded, as they are signed for its address"),
        ("GOOGLE_GENAI_USE_VERTEXAI", "", "Vertex AI are not recorded, as only google-genai"),
        ("AZURE_RESOURCE_NAME", "", "Azure OpenAI are not recorded, as the client makes the"),
        ("", "vertexai", "(`vertexai` is imported)"),
    ],
)
def test_service_that_the_proxy_does_not_record_is_named(
    variable: str, module: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable or "NO_SERVICE", "true")
    program = tmp_path / "agent.py"
    program.write_text(f"import {module or 'sys'}\n")
    (tmp_path / f"{module or 'other'}.py").write_text("")
    ran = run_agentci(["record", "--", sys.executable, str(program)], cwd=tmp_path)
    assert ran.code == 3
    [line] = ran.err.splitlines()
    assert message in line
    assert "install the instrumentation" in line
    assert "otherwise, the agent must read its base URL" in line


@pytest.mark.parametrize("variable", ["AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"])
@pytest.mark.parametrize("streamed", [False, True])
def test_azure_deployments_are_recorded_and_replayed(
    streamed: bool, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/openai/deployments/gpt/chat/completions?api-version=2025-04-01"
    body = {"model": "gpt", "messages": [{"role": "user", "content": "Hi"}], "stream": streamed}
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, urllib.request\n"
        "assert not {'AZURE_OPENAI_ENDPOINT', 'OPENAI_API_BASE'} <= os.environ.keys()\n"
        f"body, path = {json.dumps(body).encode()!r}, {path!r}\n"
        "headers = {'api-key': os.environ['AZURE_OPENAI_API_KEY']}\n"
        f"url = os.environ[{variable!r}] + path\n"
        "urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()\n"
    )
    command = ["--", sys.executable, str(program)]
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    with mock_model() as model:
        monkeypatch.setenv(variable, f"{model.url}/")
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        ran = run_agentci(["record", *command], cwd=tmp_path)
        [(asked, headers, _)] = model.requests
    assert (ran.code, asked, headers["Api-Key"]) == (0, path, KEY)
    assert_no_key(tmp_path, ran)
    monkeypatch.delenv(variable)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    again = run_agentci(["record", "--replay", *command], cwd=tmp_path)
    assert again.code == 0
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "You asked: Hi")]


REQUEST = (
    "import gzip, json, os, urllib.error, urllib.request\n"
    "body = json.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi'}]}).encode()\n"
    "headers = {'Content-Type': 'application/json'}\n"
    "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
)
SEND = "print(urllib.request.urlopen(urllib.request.Request(url, body, headers)).read())\n"


def test_agent_that_only_embeds_is_explained(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    program.write_text(REQUEST + "url = url.replace('chat/completions', 'embeddings')\n" + SEND)
    ran = record(tmp_path, model, program=program)
    message = "error: no complete turn: the agent asked no model, only POST /embeddings\n"
    assert (ran.code, ran.err) == (3, message)


def test_websocket_is_refused_and_reported(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    upgrade = "headers |= {'Upgrade': 'websocket', 'Connection': 'Upgrade'}\n"
    program.write_text(f"{REQUEST}{upgrade}try:\n    {SEND}except urllib.error.HTTPError: pass\n")
    ran = record(tmp_path, model, program=program)
    assert (ran.code, model.requests) == (3, [])
    assert ran.err.startswith("agentci record: websockets are not recorded; use the HTTP transport")


def test_compressed_request_is_passed_on_and_understood(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    packed = "body = gzip.compress(body)\nheaders['Content-Encoding'] = 'gzip'\n"
    program.write_text(REQUEST + packed + SEND)
    message = {"role": "assistant", "content": "Hello"}
    answer = Answer(body=json.dumps({"choices": [{"index": 0, "message": message}]}).encode())
    with serve(script(answer)) as server:
        with patch.dict(os.environ, {"OPENAI_BASE_URL": f"{server.url}/v1"}):
            command = ["--", sys.executable, str(program)]
            ran = run_agentci(["record", *command], cwd=tmp_path)
            again = run_agentci(["record", "--replay", *command], cwd=tmp_path)
        asked = server.asked
    assert (ran.code, again.code, len(asked)) == (0, 0, 1)
    assert gzip.decompress(asked[0].body).startswith(b'{"model"')
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "Hello")]


def test_empty_answer_is_named_and_a_repeated_request_continues_the_turn(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    (tmp_path / "cases.yaml").write_text("- {id: a, input: Hi}\n")

    def record_answers(*texts: str) -> Ran:
        program.write_text(REQUEST + SEND * len(texts))
        messages = ({"role": "assistant", "content": each} for each in texts)
        choices = ({"index": 0, "finish_reason": "length", "message": each} for each in messages)
        answers = [Answer(body=json.dumps({"choices": [each]}).encode()) for each in choices]
        command = ["--cases", "cases.yaml", "--", sys.executable, str(program)]
        with serve(script(*answers)) as server, patch.dict(os.environ) as environ:
            environ["OPENAI_BASE_URL"] = f"{server.url}/v1"
            return run_agentci(["record", *command], cwd=tmp_path)

    ran = record_answers("", "")
    assert ran.code == 3
    message = "no complete turn: the model's last answer is empty (finish reason: length); check"
    assert f"error: case a: {message}" in ran.err
    assert record_answers("", "Hello").code == 0
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "Hello")]
    assert len(trace.turns[0].model_steps) == 2


ASK_TWICE = """
import os, sys
sys.path.append(sys.argv[1])
import http_agent

used, messages = int(sys.argv[3]), [{"role": "user", "content": sys.argv[2]}]
while True:
    body = {"model": "m", "messages": messages}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    replies = [http_agent.post(url, {**body, "seed": n}, {})["choices"][0] for n in range(2)]
    messages.append(replies[used]["message"])
    if not messages[-1].get("tool_calls"):
        print(messages[-1]["content"])
        break
    for call in messages[-1]["tool_calls"]:
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "Sunny."})
"""


@pytest.mark.parametrize("used", ["0", "1"])
def test_agent_that_asks_twice_is_recorded_with_the_reply_that_it_uses(
    used: str, tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text("- {id: a, input: weather in Oslo}\n")
    (tmp_path / "agent.py").write_text(ASK_TWICE)
    program = str(tmp_path / "agent.py")
    command = [sys.executable, program, str(AGENT.parent), "{input}", used]
    with patch.dict(os.environ, make_environment(model)):
        for options in ([], ["--replay"]):
            words = ["record", "--cases", "cases.yaml", *options, "--", *command]
            ran = run_agentci(words, cwd=tmp_path)
            assert ran.code == 0, ran.err
            [trace] = read_traces(tmp_path / OUT)
            turn = ("weather in Oslo", [("get_weather", {"city": "Oslo"})], "Sunny.")
            assert [describe(each) for each in trace.turns] == [turn]
            assert len(trace.turns[0].model_steps) == 4
            assert trace.usage is not None
            assert trace.usage.input == 40


def test_failing_command_is_reported_although_its_turns_are_complete(
    tmp_path: Path, model: MockModel
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\nhttp_agent.answer('chat', 'Hi', [])\nsys.exit(7)\n"
    )
    ran = record(tmp_path, model, program=program)
    assert ran.code == 1
    assert ran.err == "error: the command exited with code 7\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["record"], "no command to record"),
        (
            ["record", "--", "--out", "x"],
            "the command begins with the option `--out` (write options",
        ),
        (["record", "--", "no-such-program"], "cannot start `no-such-program`: no such program"),
        (
            ["record", "--", "./nothing"],
            "cannot start `./nothing`: no such program (check the",
        ),
        (["record", "--", "true a b"], "no such program (remove the quotes around the command"),
        (
            ["record", "--timeout", "-1", "--", "true"],
            "the time limit of a case is not a time: '-1'",
        ),
        (["record", "--timeout", "5 min", "--", "true"], "write `30s`, `5m`, a number of seconds"),
        (["record", "--", ""], "cannot start ``: it has no name (check the name"),
        (["record", "--", "."], "cannot start `.`: it is a folder (name a program, as in `python"),
        (
            ["record", "--", "./cases.jsonl"],
            "cannot start `./cases.jsonl`: it is not executable (name what runs it, as in `python",
        ),
        (
            ["record", "--", "run.sh"],
            "`run.sh`: it is not on the PATH (name what runs it, as",
        ),
        (
            ["record", "--", "./run.sh"],
            "`./run.sh`: it has no `#!` line that says what runs it",
        ),
        (["record", "--", "./bad"], "`./bad`: its `#!` line names a program that does not exist ("),
        (["record", "--", "run.sh/x"], "cannot start `run.sh/x`: Not a directory (check the name"),
        (["record", "--requests", "cases.jsonl", "--", "true"], "cases.jsonl is a file (name a"),
        (
            ["record", "--cases", "missing.jsonl", "--", "true"],
            "--cases missing.jsonl does not exi",
        ),
        (["record", "--cases", ".", "--", "true"], "--cases . is a folder (name a file in it)"),
        (["record", "--out", ".", "--", "true"], "--out . is a folder"),
        (["record", "--out", "/proc/x.jsonl", "--", "true"], "--out /proc/x.jsonl cannot be writ"),
        (["record", "--", "true", "a {input}"], "`{input}` in the command needs cases"),
        (["record", "--redact", "(", "--", "true"], "is not a regular expression"),
        (["record", "--case", "a", "--case", "b", "--", "true"], "only with --cases"),
    ],
)
def test_invalid_usage_is_one_problem(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path)
    for name, content in (("run.sh", "true"), ("bad", "#!/no/such/program\n")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    ran = run_agentci(arguments, cwd=tmp_path)
    assert ran.code == 2
    assert message in "\n".join(map(str, ran.problems))
    assert not any(each.place for each in ran.problems)


CASES = [{"id": "a", "input": "Can I return it?"}, {"id": "b", "input": "Where is my order?"}]
OPTIONS = ["--cases", "cases.jsonl"]


def write_cases(folder: Path) -> None:
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)))


def list_requests(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "traces").rglob("*.json")}


@pytest.mark.parametrize(
    "word",
    ["{inptu}", "{Input}", "{ input }", "${input}", "{{input}}", "--q={inputs}", "{question}"],
)
def test_misspelled_placeholder_is_refused_before_anything_runs(
    word: str, tmp_path: Path, model: MockModel
) -> None:
    write_cases(tmp_path)
    assert record(tmp_path, model, "chat", "{input}", options=OPTIONS).code == 0
    before, asked = list_requests(tmp_path), len(model.requests)
    ran = record(tmp_path, model, "chat", word, options=OPTIONS)
    name = word.removeprefix("--q=")
    message = f"unknown placeholder `{name}` in the command (did you mean `{{input}}`?)"
    assert (ran.code, [str(each) for each in ran.problems]) == (2, [message])
    assert (list_requests(tmp_path), len(model.requests)) == (before, asked)


@pytest.mark.parametrize("word", ["{print}", "${inputs}", "{}", '{"q": {"text": "{input}"}}'])
def test_other_braces_are_part_of_the_command(word: str, tmp_path: Path, model: MockModel) -> None:
    write_cases(tmp_path)
    assert record(tmp_path, model, "chat", f"{word} {{input}}", options=OPTIONS).code == 0
    questions = [trace.turns[0].user_text for trace in read_traces(tmp_path / OUT)]
    own = [word.replace("{input}", each["input"]) for each in CASES]
    assert questions == [f"{a} {b['input']}" for a, b in zip(own, CASES, strict=True)]


def test_cases_that_all_ask_the_same_are_incomplete_and_replace_no_requests(
    tmp_path: Path, model: MockModel
) -> None:
    write_cases(tmp_path)
    assert record(tmp_path, model, "chat", "{input}", options=OPTIONS).code == 0
    before = list_requests(tmp_path)
    ran = record(tmp_path, model, "chat", "Hello", options=OPTIONS)
    assert ran.code == 3
    assert ran.err.splitlines()[-1] == (
        "error: 2 cases sent the same question, not their inputs: `Hello`; add `{input}` to the "
        "command, or read the input from stdin or AGENTCI_INPUT"
    )
    assert list_requests(tmp_path) == before
    (tmp_path / "agentci.yaml").write_text(f"traces: {OUT}\nchecks: [{{no_secrets: true}}]\n")
    assert run_agentci(["run"], cwd=tmp_path).code == 3


def test_inputs_that_the_agent_rewrites_are_not_ignored(tmp_path: Path, model: MockModel) -> None:
    write_cases(tmp_path)
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\nhttp_agent.answer('chat', sys.argv[1].upper(), [])\n"
    )
    assert record(tmp_path, model, "{input}", options=OPTIONS, program=program).code == 0
    assert list_requests(tmp_path).keys() == {"a.json", "b.json"}


@pytest.mark.parametrize("code", [0, 1])
def test_command_that_gets_no_input_is_named(code: int, tmp_path: Path, model: MockModel) -> None:
    write_cases(tmp_path)
    program = tmp_path / "agent.py"
    program.write_text(f"raise SystemExit({code})\n")
    ran = record(tmp_path, model, options=OPTIONS, program=program)
    assert ran.code == 3
    assert "the command has no `{input}` and read nothing from stdin: add `{input}`" in ran.err
    assert ("base URL" in ran.err) == (code == 0)
    program.write_text(f"import sys\nsys.stdin.read()\nraise SystemExit({code})\n")
    assert "nothing from stdin" not in record(tmp_path, model, options=OPTIONS, program=program).err


@pytest.mark.parametrize("way", ["argument", "stdin"])
def test_each_case_is_a_process_of_its_own(way: str, tmp_path: Path, model: MockModel) -> None:
    cases = [{"id": "weather", "input": WEATHER}, {"id": "thanks", "input": "Thanks"}]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    words = ["chat", "{input}"] if way == "argument" else ["chat"]
    options = ["--cases", "cases.jsonl", "--jobs", "2"]
    ran = record(tmp_path, model, *words, options=options)
    assert ran.code == 0
    assert "Recorded to traces/recorded.jsonl: 2 cases, 2 turns, 2 tool calls" in ran.out
    traces = {trace.eval_case_id: trace for trace in read_traces(tmp_path / OUT)}
    assert [describe(turn) for turn in traces["weather"].turns] == [WEATHER_TURN]
    assert [describe(turn) for turn in traces["thanks"].turns] == [THANKS_TURN]
    assert "[2/2]" in ran.err


def test_single_case_replaces_only_its_own_recording(tmp_path: Path, model: MockModel) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases:\n- {id: a, input: First}\n- {id: b, input: Second}\n"
    )
    options = ["--cases", "cases.yaml"]
    record(tmp_path, model, "chat", options=options)
    before = read_traces(tmp_path / OUT)
    assert record(tmp_path, model, "chat", options=[*options, "--case", "b"]).code == 0
    after = {trace.eval_case_id: trace for trace in read_traces(tmp_path / OUT)}
    assert after.keys() == {"a", "b"}
    assert after["a"].id == before[0].id
    assert after["b"].id != before[1].id


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("inputs", f"{NO_INPUT}; did you mean `input` instead of `inputs`?"),
        ("question", NO_INPUT),
        ("input", "`input` of case 2 is empty"),
        ("turns", NO_TURNS),
    ],
)
def test_case_without_an_input_is_refused_where_the_command_asks_for_it(
    key: str, message: str, tmp_path: Path, model: MockModel
) -> None:
    cases = [{"id": "first", "input": "Hi"}, {"id": "a", key: " "}]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    ran = record(tmp_path, model, "chat", "{input}", options=("--cases", "cases.jsonl"))
    [problem] = ran.problems
    assert (problem.message, problem.place) == (message, Place(file="cases.jsonl", line=2))
    assert not (tmp_path / OUT).exists()


CONVERSATION = (
    "eval_cases:\n- {id: single, input: Hi}\n- id: talk\n  turns:\n"
    "  - {input: What is the weather in Oslo and Rome?, calls: [get_weather]}\n"
    "  - {input: Thanks}\n"
)
LINES_AGENT = (
    f"import sys\nsys.path.insert(0, {str(AGENT.parent)!r})\nimport http_agent\nhistory = []\n"
    "for line in sys.stdin:\n    print(http_agent.answer('chat', line.strip(), history))\n"
)


@pytest.mark.parametrize("way", ["arguments", "lines"])
def test_turns_of_a_conversation_are_passed_to_the_agent(
    way: str, tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text(CONVERSATION)
    program, words = AGENT, ["chat", "{input}"]
    if way == "lines":
        program, words = tmp_path / "agent.py", []
        program.write_text(LINES_AGENT)
    options = ("--cases", "cases.yaml")
    for mode in ((), ("--replay",)):
        ran = record(tmp_path, model, *words, options=(*options, *mode), program=program)
        assert (ran.code, "error" in ran.err) == (0, False)
        traces = {trace.eval_case_id: trace for trace in read_traces(tmp_path / OUT)}
        assert [describe(turn) for turn in traces["talk"].turns] == [WEATHER_TURN, THANKS_TURN]
        assert len(traces["single"].turns) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["{input}"], "the agent answered 1 turn of 2"),
        (
            ["--question={input}"],
            "it is a conversation, whose 2 turns `{input}` cannot pass within another word",
        ),
    ],
)
def test_conversation_that_the_agent_does_not_take_fails_alone(
    words: list[str], reason: str, tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text(CONVERSATION)
    (tmp_path / "agentci.yaml").write_text(
        "traces: traces/*.jsonl\neval_set: cases.yaml\nchecks: [{no_secrets: true}]\n"
    )
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(AGENT.parent)!r})\nimport http_agent\n"
        "print(http_agent.answer('chat', sys.argv[1], []))\n"
    )
    ran = record(tmp_path, model, *words, options=("--cases", "cases.yaml"), program=program)
    assert ran.code == 3
    assert f"error: case talk: {reason}; let the agent ask each argument of `{{input}}`" in ran.err
    assert "case single" not in ran.err
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 3
    statuses = {(each["case"], each["status"]) for each in ran.results["results"]}
    assert statuses == {("single", "passed"), ("talk", "errored")}
    assert f"not complete: {reason}; " in ran.out


def test_misspelled_input_is_refused_although_the_command_reads_stdin(
    tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text("- {id: a, input: Hi}\n- {id: b, inptu: Hey}\n")
    ran = record(tmp_path, model, "chat", options=("--cases", "cases.yaml"))
    message = "case 2 has no `input`; did you mean `input` instead of `inptu`?"
    assert (ran.code, [each.message for each in ran.problems]) == (2, [message])
    assert not model.requests


def test_cases_without_an_input_that_ask_the_same_are_named(
    tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text("- {id: a, question: Hi}\n- {id: b, question: Hey}\n")
    options = ("--cases", "cases.yaml")
    ran = record(tmp_path, model, "chat", options=options)
    assert ran.code == 3
    assert "question and an answer; the case has no `input`, so stdin is empty and " in ran.err
    program = tmp_path / "agent.py"
    program.write_text(
        f"import os, sys\nsys.path.insert(0, {str(AGENT.parent)!r})\nimport http_agent\n"
        "question = ' '.join(['Be brief:', *sys.argv[1:], sys.stdin.read()]).strip()\n"
        "http_agent.answer('chat', question, [])\n"
    )
    ran = record(tmp_path, model, options=options, program=program)
    assert ran.code == 0
    assert ran.err.splitlines()[-1] == (
        "warning: 2 cases without `input` sent the same question: `Be brief:`; add it to the file "
        "of cases, unless they are runs of one question"
    )
    program.write_text("import os\nos.environ['AGENTCI_INPUT']\n")
    ran = record(tmp_path, model, options=options, program=program)
    assert "model: KeyError: 'AGENTCI_INPUT'; the case has no `input`, so stdin is" in ran.err


def test_recording_names_the_cases_that_it_no_longer_has(tmp_path: Path, model: MockModel) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "Hi"}\n{"id": "b", "input": "Hey"}')
    assert record(tmp_path, model, "chat", "{input}", options=("--cases", "cases.jsonl")).code == 0
    again = record(tmp_path, model, "chat", "Hi", options=("--case", "b"))
    assert (again.code, "no longer" in again.err) == (0, False)
    assert len(read_traces(tmp_path / OUT)) == 2
    replaced = record(tmp_path, model, "chat", "Hi")
    assert replaced.code == 0
    assert replaced.err == (
        f"warning: {OUT} no longer has 2 recorded cases: a, b; with --case ID, a recording keeps "
        "its other cases\n"
    )


def test_output_of_a_failed_case_is_shown(tmp_path: Path, model: MockModel) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "x", "input": "Hi"}')
    model.fail_next.append(500)
    ran = record(tmp_path, model, "chat", options=["--cases", "c.jsonl"])
    assert ran.code == 3
    assert "\nerror: case x: the command exited with code 1\n  " in ran.err
    assert "  urllib.error.HTTPError: HTTP Error 500: Internal Server Error\n" in ran.err


def test_concurrent_conversations_with_equal_words_are_kept_apart(
    tmp_path: Path, model: MockModel
) -> None:
    program = tmp_path / "server.py"
    program.write_text(
        "import sys, threading\n"
        f"sys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\n"
        "def talk(number):\n"
        "    history = []\n"
        "    city = 'Oslo' if number < 8 else f'Town{number}'\n"
        "    for question in (f'weather in {city}', 'Thanks', f'weather in {city} and Rome'):\n"
        "        http_agent.answer('chat', question, history)\n"
        "threads = [threading.Thread(target=talk, args=(n,)) for n in range(12)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
    )
    model.barrier = threading.Barrier(12)  # each step of all cases at the same time
    ran = record(tmp_path, model, program=program)
    assert (ran.code, ran.err) == (0, "")
    traces = read_traces(tmp_path / OUT)
    cities = ["Oslo"] * 8 + ["Town8", "Town9", "Town10", "Town11"]
    assert sorted(tuple(map(str, map(describe, trace.turns))) for trace in traces) == sorted(
        tuple(
            map(
                str,
                (
                    (
                        f"weather in {city}",
                        [("get_weather", {"city": city})],
                        f"It is sunny in {city}.",
                    ),
                    THANKS_TURN,
                    (
                        f"weather in {city} and Rome",
                        [("get_weather", {"city": city}), ("get_weather", {"city": "Rome"})],
                        f"It is sunny in {city}. It is sunny in Rome.",
                    ),
                ),
            )
        )
        for city in cities
    )
    ids = [call.id for trace in traces for turn in trace.turns for call in turn.tool_calls]
    assert len(set(ids)) == len(ids) == 36


# A server that passes on tracing headers, as instrumented ones do, and its load script.
SERVER = """
import http.server, json, os, sys, threading, urllib.request
HEADERS = ("traceparent", "baggage")
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        history = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        passed = {k: self.headers[k] for k in HEADERS if k in self.headers}
        body = json.dumps({"model": "m", "messages": history}).encode()
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        with NO_PROXY.open(urllib.request.Request(url, body, passed)) as response:
            content = response.read()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()

def talk(number):
    history = []
    for turn, question in enumerate(("Hello", "Thanks")):
        history.append({"role": "user", "content": question})
        headers = make_headers(number, turn)
        url = f"http://127.0.0.1:{server.server_port}"
        request = urllib.request.Request(url, json.dumps(history).encode(), headers)
        with NO_PROXY.open(request) as response:
            history.append(json.loads(response.read())["choices"][0]["message"])

threads = [threading.Thread(target=talk, args=(n,)) for n in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def record_server(folder: Path, model: MockModel, headers: str) -> list[Trace]:
    program = folder / "server.py"
    program.write_text(f"def make_headers(number, turn):\n    return {headers}\n{SERVER}")
    model.barrier = threading.Barrier(6)
    ran = record(folder, model, program=program)
    assert (ran.code, ran.err) == (0, "")
    return read_traces(folder / OUT)


def test_cases_of_a_server_are_named_by_baggage(tmp_path: Path, model: MockModel) -> None:
    headers = '{"baggage": f"other=1, agentci.case=case%20{number};a=b"}'
    traces = record_server(tmp_path, model, headers)
    turns = [[describe(turn) for turn in trace.turns] for trace in traces]
    assert turns == [[("Hello", [], "You asked: Hello"), THANKS_TURN]] * 6
    assert sorted(str(trace.eval_case_id) for trace in traces) == [f"case {n}" for n in range(6)]
    files = sorted(path.name for path in (tmp_path / "traces/recorded.requests").iterdir())
    assert files == [f"case {number}.json" for number in range(6)]


def test_traces_of_a_server_have_the_ids_of_the_client(tmp_path: Path, model: MockModel) -> None:
    headers = '{"traceparent": f"00-{number + 1:031x}{turn}-00f067aa0ba902b7-01"}'
    traces = record_server(tmp_path, model, headers)
    ids = sorted(str(turn.trace_id) for trace in traces for turn in trace.turns)
    assert ids == [f"{number + 1:031x}{turn}" for number in range(6) for turn in range(2)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_recording_is_written(
    number: signal.Signals, tmp_path: Path, model: MockModel
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys, time\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\nhttp_agent.answer('chat', 'Hi', [])\n"
        "open('ready', 'w').close()\ntime.sleep(600)\n"
    )
    command = [sys.executable, "-m", "agentci", "record", "--", sys.executable, str(program)]
    environ = {**os.environ, **make_environment(model), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        wait_until((tmp_path / "ready").exists)
        process.send_signal(number)
        out, _ = process.communicate()
    assert process.returncode == 128 + number
    assert b"1 turn" in out
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "You asked: Hi")]


def test_killed_agent_loses_nothing(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        f"import os, sys\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\nhttp_agent.answer('chat', 'Hi', [])\nos.kill(os.getpid(), 9)\n"
    )
    ran = record(tmp_path, model, program=program)
    assert (ran.code, ran.err) == (1, "error: the command was ended by signal 9\n")
    assert len(read_traces(tmp_path / OUT)) == 1


def list_spans(temporary: Path) -> list[str]:
    """List the files that Node programs wrote, which still contain keys."""
    found = os.walk(temporary)  # unlike Path.glob, it accepts that folders disappear meanwhile
    return [name for folder, _, names in found for name in names if "agentci-spans-" in folder]


def test_killed_recorder_has_written_the_cases_that_ended(tmp_path: Path, model: MockModel) -> None:
    cases = [{"id": name, "input": "Hi"} for name in ("first", "second", "endless")]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    stale = tmp_path / OUT
    stale.parent.mkdir()
    stale.write_text("{}\n")
    program = tmp_path / "agent.py"
    program.write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\nhttp_agent.answer('chat', 'Hi', [])\n"
        "if os.environ['AGENTCI_CASE'] == 'endless':\n"
        "    open(os.environ['AGENTCI_SPANS_DIR'] + '/1.jsonl', 'w').close()\n"
        "    print(os.getpid(), file=open('pid', 'w'), flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "agentci", "record", "--cases", "cases.jsonl", "--"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {**os.environ, **make_environment(model), "PYTHONPATH": str(ROOT)}
    environ["TMPDIR"] = str(temporary)
    pid = tmp_path / "pid"
    with subprocess.Popen(
        [*command, sys.executable, str(program)], cwd=tmp_path, env=environ
    ) as process:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
        assert len(list_spans(temporary)) == 1
        process.kill()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    wait_until(lambda: not list_spans(temporary))
    traces = read_traces(tmp_path / OUT)
    assert [trace.eval_case_id for trace in traces] == ["first", "second"]
    assert [describe(turn) for turn in traces[1].turns] == [("Hi", [], "You asked: Hi")]
    names = sorted(path.name for path in (tmp_path / "traces/recorded.requests").iterdir())
    assert names == ["first.json", "second.json"]


def test_turns_of_a_conversation_are_shown_as_one_case(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent / 'agents')!r})\n"
        "import http_agent\n"
        "for number in range(2):\n"
        "    history = []\n"
        "    http_agent.answer('chat', 'Hello', history)\n"
        "    http_agent.answer('chat', 'Thanks', history)\n"
        "http_agent.answer('chat', 'Bye', [])\n"
    )
    assert record(tmp_path, model, program=program).code == 0
    shown = run_agentci(["show", OUT], cwd=tmp_path).out
    lines = [line for line in shown.splitlines() if line.startswith(("Case", "  turn"))]
    assert lines == [
        "Case Hello",
        "  turn 1  user    Hello",
        "  turn 2  user    Thanks",
        "Case Hello (2)",
        "  turn 1  user    Hello",
        "  turn 2  user    Thanks",
        "Case Bye",
        "  turn 1  user    Bye",
    ]


def test_recorded_turn_is_shown(tmp_path: Path, model: MockModel) -> None:
    ran = record(tmp_path, model, "chat", WEATHER)
    shown = run_agentci(["show", OUT], cwd=tmp_path).out
    assert "  turn 1  user    What is the weather in Oslo and Rome?\n" in shown
    assert (
        ran.out
        == f"{shown}\nRecorded to {OUT}: 1 turn, 2 tool calls, 2 model calls (from the proxy)\n"
    )


PYTEST_RUN = """
import sys
sys.path.insert(0, {agents!r})
import http_agent, pytest

ADDRESS = http_agent.os.environ["OPENAI_BASE_URL"]  # read once, as by a client of the session

@pytest.mark.parametrize("city", ["Oslo", "Bern"])
def test_weather(city):
    http_agent.os.environ["OPENAI_BASE_URL"] = ADDRESS
    assert city in http_agent.answer("chat", f"weather in {{city}}", [])

def test_thanks():
    http_agent.os.environ["OPENAI_BASE_URL"] = ADDRESS
    http_agent.answer("chat", "Thanks", [])

def test_without_model():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_each_test_of_a_pytest_run_is_a_case(
    workers: list[str], tmp_path: Path, model: MockModel
) -> None:
    file = tmp_path / "test_agent.py"
    file.write_text(PYTEST_RUN.format(agents=str(Path(__file__).parent / "agents")))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, f"--rootdir={tmp_path}"]
    words = [*words, "-c", os.devnull, str(file)]
    with patch.dict(os.environ, make_environment(model)):
        ran = run_agentci(["record", "--", sys.executable, *words], cwd=tmp_path)
        assert (ran.code, drop_progress(ran).err) == (0, "")
        names = [
            *("test_agent.py::test_weather[Oslo]", "test_agent.py::test_weather[Bern]"),
            "test_agent.py::test_thanks",
        ]
        cases = {trace.key: trace for trace in read_traces(tmp_path / OUT)}
        assert cases.keys() == set(names)
        assert [describe(turn)[1] for turn in cases[names[1]].turns] == [
            [("get_weather", {"city": "Bern"})]
        ]
        assert f"Recorded to {OUT}: 3 cases, 3 turns, 2 tool calls, 5 model calls" in ran.out
        asked = len(model.requests)
        again = run_agentci(["record", "--replay", "--", sys.executable, *words], cwd=tmp_path)
        assert (again.code, drop_progress(again).err) == (0, "")
        assert len(model.requests) == asked


def test_failed_tool_of_an_agent_is_recorded_as_failed(tmp_path: Path, model: MockModel) -> None:
    program = tmp_path / "agent.py"
    agent = AGENT.read_text(encoding="utf-8").replace(KEY, "")
    assert '"type": "tool_result"' in agent
    program.write_text(
        agent.replace('"type": "tool_result"', '"is_error": True, "type": "tool_result"')
    )
    assert record(tmp_path, model, "anthropic", "weather in Oslo", program=program).code == 0
    [trace] = read_traces(tmp_path / OUT)
    assert [call.failed for call in trace.turns[0].tool_calls] == [True]


# As the frameworks send them: OpenAI Agents SDK 0.24 and before, Pydantic AI 1 and 2.68,
# LangGraph 1.2.
@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("An error occurred while running the tool. Please try again.", True),
        ("An error occurred while running the tool. Please try again. Error: no\nroute", True),
        ("Tool 'get_weather' timed out after 0.5 seconds.", True),
        ("Unknown tool name: 'x'. No tools available.\n\nFix the errors and try again.", True),
        ("1 validation error:\n```json\n[]\n```\n\nFix the errors and try again.", True),
        (
            (
                '{"error":[{"type":"string_type","loc":["city"],'
                '"msg":"Input should be a valid string","input":5}]}'
            ),
            True,
        ),
        (
            (
                '{"error":[{"type":"missing","loc":["city"],'
                '"msg":"Field required","input":{"t":"x"}},'
                '{"type":"extra_forbidden","loc":["t"],"msg":"Extra inputs are not permitted",'
                '"input":"x"}]}'
            ),
            True,
        ),
        ("{\"error\":\"Unknown tool name: 'x'. Available tools: 'a', 'b'\"}", True),
        ("Error: get_wether is not a valid tool, try one of [get_weather].", True),
        ("Error: ValueError('no')\n Please fix your mistakes.", True),
        (
            "Error invoking tool 'get_weather' with kwargs {'c': 1} with error:\n c: missing\n",
            True,
        ),
        ("An error occurred while running the tool in 1999, as the report says.", False),
        ("Error: the last build failed", False),
        ('{"error":"no route"}', False),
        ('{"error":[{"type":"delay","line":"S1"}]}', False),
        ("Fix the errors and try again.", False),
    ],
)
def test_text_of_a_framework_about_a_failed_tool_is_a_tool_error(
    text: str, is_error: object, tmp_path: Path, model: MockModel
) -> None:
    program = tmp_path / "agent.py"
    agent = AGENT.read_text(encoding="utf-8").replace(KEY, "")
    sunny = """f"It is sunny in {arguments['city']}.\""""
    assert sunny in agent
    program.write_text(agent.replace(sunny, repr(text)))
    assert record(tmp_path, model, "chat", "weather in Oslo", program=program).code == 0
    [trace] = read_traces(tmp_path / OUT)
    assert [call.failed for call in trace.turns[0].tool_calls] == [is_error or None]
    (tmp_path / "agentci.yaml").write_text(f"traces: {OUT}\nchecks:\n- no_tool_errors: true\n")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == (1 if is_error else 3)
    assert ("whether `get_weather` failed" in ran.out) != is_error


def test_status_of_a_tool_that_the_agent_does_not_send_is_unknown(
    tmp_path: Path, model: MockModel
) -> None:
    assert record(tmp_path, model, "chat", "weather in Oslo").code == 0
    [trace] = read_traces(tmp_path / OUT)
    assert [call.failed for call in trace.turns[0].tool_calls] == [None]
    (tmp_path / "agentci.yaml").write_text(f"traces: {OUT}\nchecks:\n- no_tool_errors: true\n")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 3
    assert "the recording does not say whether `get_weather` failed" in ran.out
    assert "; send `is_error` with each tool result (Anthropic's API), or record the" in ran.out
    (tmp_path / "agentci.yaml").write_text(
        f"traces: {OUT}\nchecks:\n- {{check: no_tool_errors, allow_unknown: true}}\n"
    )
    assert run_agentci(["run"], cwd=tmp_path).code == 0


def test_changed_question_of_a_named_conversation_reaches_the_gate(
    tmp_path: Path, model: MockModel
) -> None:
    turns = "[{input: Good morning}, {input: Thanks}]"
    (tmp_path / "evals.yaml").write_text(f"eval_cases:\n- {{id: talk, turns: {turns}}}\n")
    (tmp_path / "agentci.yaml").write_text(
        f"traces: {OUT}\neval_set: evals.yaml\nchecks:\n- no_secrets\n"
    )
    warning = "the recorded run asks something else than its eval case in turn 1; record it again"
    for question, is_other in (("Good evening", True), ("Good  morning", False)):
        record(tmp_path, model, "chat", question, "Thanks", options=["--case", "talk"])
        ran = run_agentci(["run"], cwd=tmp_path)
        assert ran.code == 0
        comment = (tmp_path / "agentci-results" / "comment.md").read_text()
        assert (warning in ran.out, warning in comment) == (is_other, is_other)


def test_two_recordings_of_a_case_are_two_runs(tmp_path: Path, model: MockModel) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": "oslo", "input": "weather in Oslo"}\n')
    for out in ("traces/a.jsonl", "traces/b.jsonl"):
        options = ["--cases", "cases.jsonl", "--out", out]
        assert record(tmp_path, model, "chat", "{input}", options=options).code == 0
    (tmp_path / "agentci.yaml").write_text("traces: traces/*.jsonl\nchecks:\n- contains: sunny\n")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert [each["case"] for each in ran.results["results"]] == ["oslo", "oslo#2"]
    assert [len(each["turns"]) for each in ran.results["cases"]] == [1, 1]


@pytest.mark.parametrize(
    "leak",
    ['"sunny, ghp_" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"', 'os.environ["OPENAI_API_KEY"]'],
)
def test_key_that_the_model_repeats_fails_the_gate(
    tmp_path: Path, model: MockModel, leak: str
) -> None:
    """The recording does not have the key, but says that there was one."""
    program = tmp_path / "agent.py"
    agent = AGENT.read_text(encoding="utf-8").replace(KEY, "")
    sunny = """f"It is sunny in {arguments['city']}.\""""
    assert sunny in agent
    leaking = agent.replace(sunny, leak)
    program.write_text(f"import os\n{leaking}")
    assert record(tmp_path, model, "chat", "weather in Oslo", program=program).code == 0
    assert "[key removed]" in (tmp_path / OUT).read_text()
    (tmp_path / "agentci.yaml").write_text(f"traces: {OUT}\nchecks:\n- no_secrets\n")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 1
    assert "has an API key, which the recording does not keep (rule removed-key)" in ran.out


def test_redaction_rule_is_applied(tmp_path: Path, model: MockModel) -> None:
    record(tmp_path, model, "chat", "My number is 555-123", options=["--redact", r"\d{3}-\d{3}"])
    content = (tmp_path / OUT).read_text()
    assert "555-123" not in content
    assert "My number is ***" in content


@pytest.mark.parametrize(
    ("program", "keys", "message"),
    [
        pytest.param(
            "raise SystemExit('set OPENAI_API_KEY')",
            {"GEMINI_API_KEY": KEY},
            "model: set OPENAI_API_KEY; OPENAI_API_KEY is not set: set the key of the model, or",
            id="named by the agent",
        ),
        pytest.param(
            "raise SystemExit(1)",
            {},
            "OPENAI_API_KEY or ANTHROPIC_API_KEY or GOOGLE_API_KEY is not set",
            id="none",
        ),
        pytest.param(
            "raise SystemExit(1 if input() else 0)",
            {"OPENAI_API_KEY": KEY},
            "correct the command; if it did call one, the agent must read its base URL from",
            id="set",
        ),
    ],
)
def test_missing_key_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    keys: dict[str, str],
    message: str,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, keys.get(name, ""))
    (tmp_path / "cases.yaml").write_text("- {id: a, input: Hi}\n")
    command = ["record", "--cases", "cases.yaml", "--", sys.executable, "-c", program]
    ran = run_agentci(command, cwd=tmp_path)
    assert ran.code == 3
    assert message in ran.err
    assert ("must read its base URL" in ran.err) != ("is not set" in ran.err)
    assert ran.err.splitlines()[1].startswith(
        "error: case a: the command exited with code 1 before"
    )
