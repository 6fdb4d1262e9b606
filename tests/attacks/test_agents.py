"""Agents that are recorded and replayed: hostile recordings, services of models, and paths."""

import json
import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from tests._util.http.servers import Answer, Asked, serve
from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.hostile_text import ALL
from tests.attacks.job import FILE_SECRET, KEY_SECRET, TOKEN_SECRET, VARIABLE_SECRET, Job, Link
from tests.attacks.test_reports import CONTROLS, find_forged_commands

CPU_SECONDS = 90
CHAT = "/v1/chat/completions"
REQUESTS = "traces/recorded.requests/run.json"
ASKS = """\
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]}).encode()
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request) as response:
        while response.read(2**20):
            pass
except OSError as error:
    print(error)
"""


def make_requests(*exchanges: str) -> str:
    listed = ",".join(exchanges)
    return f'{{"format": "agentci-requests", "version": 1, "exchanges": [{listed}]}}'


def make_exchange(body: str, extra: str = "") -> str:
    return f'{{"method": "POST", "path": "{CHAT}", {extra}"request": {body}, "response": {{}}}}'


def continue_exchange(number: int) -> str:
    return make_exchange('{"messages": [1]}', f'"continues": {number}, ')


LONG = f'{{"messages": ["{"x" * 8_000_000}"]}}'
RECORDED: Mapping[str, str] = {
    "each repeats all before it": make_requests(
        make_exchange('{"messages": [1]}'), *map(continue_exchange, range(40_000))
    ),
    "long message again and again": make_requests(
        make_exchange(LONG), *(continue_exchange(0) for _ in range(2_000))
    ),
    "deep": make_requests(make_exchange('{"messages": ' + "[" * 50_000 + "]" * 50_000 + "}")),
    "continues itself": make_requests(continue_exchange(0)),
    "continues one before the first": make_requests(continue_exchange(-1)),
    "long number": make_requests(make_exchange(f'{{"messages": [{"9" * 50_000}]}}')),
    "other types": make_requests('{"method": {}, "path": [], "without": {"a": []}, "request": 3}'),
    "no list": '{"format": "agentci-requests", "version": 1, "exchanges": {"a": 1}}',
}


@attack("N1", "user")
def test_recorded_requests_are_read_in_bounded_time_and_memory(make_job: MakeJob) -> None:
    wrong = {}
    for name, content in RECORDED.items():
        job = make_job()
        job.write({REQUESTS: content, "agent.py": ASKS})
        command = ("record", "--replay", "--", "python3", "agent.py")
        ran = job.execute(*command, cpu_seconds=CPU_SECONDS)
        text = ran.out + ran.err
        if ran.code not in (2, 3) or "Traceback" in text or "not enough memory" in text:
            wrong[name] = (ran.code, text[-500:])
        job.remove()
    assert wrong == {}


def make_bomb(start: bytes, count: int) -> bytes:
    """Compress ``start`` and ``count`` MiB of zeros, without the end of the archive."""
    archive = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = archive.compress(start) + archive.flush(zlib.Z_FULL_FLUSH)
    return begin + (archive.compress(bytes(2**20)) + archive.flush(zlib.Z_FULL_FLUSH)) * count


JSON_TYPE = {"Content-Type": "application/json"}
STREAM_TYPE = {"Content-Type": "text/event-stream"}
TEXT_ERROR = json.dumps({"error": {"message": ALL.replace("\ud800", "")}}).encode()
DELTA = b'data: {"choices":[{"index":99999999999,"delta":{"content":"x"}}]}\n\n'
RESPONSES: Mapping[str, Answer] = {
    "bomb of 6 GiB": Answer(
        body=make_bomb(b'{"id": "', 6_000), headers={**JSON_TYPE, "Content-Encoding": "gzip"}
    ),
    "stream of 80 MiB": Answer(body=b"data: x\n\n" * 9_000_000, headers=STREAM_TYPE),
    "many events": Answer(body=DELTA * 100_000, headers=STREAM_TYPE),
    "deep": Answer(body=b"[" * 2_000_000, headers=JSON_TYPE),
    "elsewhere": Answer(status=307, headers={"Location": "http://127.0.0.1:9/"}),
    "text of an error": Answer(status=400, body=TEXT_ERROR, headers=JSON_TYPE),
}


def get_answer(answer: Answer, _: Asked) -> Answer:
    return answer


@attack("N2", "user")
def test_responses_of_model_do_not_overload_recording(make_job: MakeJob) -> None:
    wrong = {}
    for name, answer in RESPONSES.items():
        job = make_job()
        job.write({"agent.py": ASKS})
        with serve(partial(get_answer, answer)) as model:
            environ = {"OPENAI_BASE_URL": f"{model.url}/v1"}
            command = ("record", "--", "python3", "agent.py")
            ran = job.execute(*command, environ=environ, cpu_seconds=CPU_SECONDS)
        text = ran.out + ran.err
        controls = [each for each in CONTROLS if each in text]
        if ran.code not in (0, 3) or "Traceback" in text or find_forged_commands(text) or controls:
            wrong[name] = (ran.code, text[-500:])
        job.remove()
    assert wrong == {}


# Calls as text, as smolagents writes them, with values that JSON cannot hold.
LITERALS = ("{1, 2}", "b'x'", "1j", "...", "1e999", "9" * 400, "{(1, 2): 3}", "[" * 90 + "]" * 90)
REPEATS_ANSWER = """\
import json, os, urllib.request
messages = [{"role": "user", "content": "q"}]
for _ in range(2):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        messages.append(json.load(response)["choices"][0]["message"])
    messages.append({"role": "user", "content": "Observation:\\n1"})
"""


@attack("N14", "user")
def test_calls_that_model_writes_as_text_end_no_recording_as_bug(make_job: MakeJob) -> None:
    wrong = {}
    for value in LITERALS:
        call = f"[{{'id': 'c', 'function': {{'name': 'f', 'arguments': {value}}}}}]"
        message = {"role": "assistant", "content": f"Calling tools:\n{call}"}
        choice = {"message": message, "finish_reason": "stop"}
        answer = Answer(body=json.dumps({"choices": [choice]}).encode(), headers=JSON_TYPE)
        job = make_job()
        job.write({"agent.py": REPEATS_ANSWER})
        with serve(partial(get_answer, answer)) as model:
            environ = {"OPENAI_BASE_URL": f"{model.url}/v1"}
            ran = job.execute("record", "--", "python3", "agent.py", environ=environ)
        if ran.code not in (0, 3) or "Traceback" in ran.err:
            wrong[value] = (ran.code, ran.err[-500:])
        job.remove()
    assert wrong == {}


PRINTS_VARIABLES = """\
import json, os
with open("seen.json", "w") as file:
    json.dump(dict(os.environ), file)
print("::error::forged")
raise SystemExit(3)
"""


@attack("N3", "container")
def test_recorded_agent_gets_no_tokens_and_prints_no_commands(job: Job) -> None:
    job.write({"agent.py": PRINTS_VARIABLES})
    job.configure()
    inputs = {"record": "python3 agent.py", "annotations": "none"}
    ran = job.run(inputs=inputs, environ={"GITHUB_TOKEN": TOKEN_SECRET})
    seen = json.loads((job.workspace / "seen.json").read_text())
    assert TOKEN_SECRET not in seen.values()
    assert seen.keys().isdisjoint({"GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT"})
    assert find_forged_commands(ran.out + ran.err) == []


# Inputs of the workflow, and a link of the pull request that they lead through.
PLACES: Mapping[str, tuple[Mapping[str, str], str]] = {
    "traces": ({"record-to": "traces/recorded.jsonl"}, "traces"),
    "requests": ({}, "traces/recorded.requests"),
    "one request": ({"replay": "true"}, REQUESTS),
    "cases": ({"cases": "cases.jsonl"}, "cases.jsonl"),
}


@attack("N4", "container")
def test_links_lead_no_recording_out_of_workspace(make_job: MakeJob) -> None:
    codes = {}
    for name, (inputs, link) in PLACES.items():
        job = make_job()
        outside = job.add_credentials().parent
        target = outside if "." not in link.rpartition("/")[2] else outside / "credentials"
        job.write({"agent.py": "open('started', 'w')\n", link: Link(str(target))})
        job.configure()
        before = sorted(each.name for each in outside.iterdir())
        ran = job.run(inputs={"record": "python3 agent.py", "annotations": "none", **inputs})
        codes[name] = ran.code
        assert sorted(each.name for each in outside.iterdir()) == before
        assert not (job.workspace / "started").exists()
        for secret in (FILE_SECRET, KEY_SECRET, VARIABLE_SECRET):
            assert secret not in job.read_all_output(ran)
        job.remove()
    assert codes == dict.fromkeys(PLACES, 2)


STARTS = "touch ../started; echo hi"
# Each way in which an eval file can name a command as its agent.
AGENTS: Mapping[str, Mapping[str, Any]] = {
    "target": {"target": {"command": STARTS}},
    "execution": {"execution": {"target": {"provider": "cli", "command_template": STARTS}}},
    "asks for no sandbox": {"target": {"command": STARTS, "sandbox": False}},
    "provider": {"providers": [{"id": "cli", "command": STARTS}], "prompts": ["{{ input }}"]},
    "list": {"execution": {"target": "own"}},
    "list by a case": {"target": "own"},
}
LIST = json.dumps({"targets": [{"name": "own", "provider": "cli", "command": STARTS}]})


def read_start(job: Job, agent: Mapping[str, Any], inputs: Mapping[str, str]) -> tuple[int, bool]:
    """The exit code of a step whose eval file has this agent, and whether the agent ran."""
    job.write({".agentv/targets.yaml": LIST})
    job.write_eval({"name": "has", "type": "contains", "value": "hi"}, **agent)
    (job.workspace / "a.outputs.jsonl").unlink()
    ran = job.run("a.eval.yaml", inputs={"annotations": "none", **inputs})
    return ran.code, (job.top / "started").exists()


@attack("N9", "container")
def test_agent_of_eval_file_does_not_run_without_consent_of_workflow(make_job: MakeJob) -> None:
    found = {name: read_start(make_job(), agent, {}) for name, agent in AGENTS.items()}
    assert found == dict.fromkeys(AGENTS, (3, False))
    allowed = {"allow-agents": "true"}
    assert read_start(make_job(), AGENTS["target"], allowed) == (0, True)


@attack("N10", "container")
def test_agent_of_fork_runs_only_in_sandbox(make_job: MakeJob) -> None:
    fork = {"head": {"repo": {"full_name": "me/r"}}, "base": {"repo": {"full_name": "o/r"}}}
    found = []
    for sandbox in (False, True):
        job = make_job()
        job.write_event(fork)
        agent = {"target": {"command": STARTS, "sandbox": sandbox}}
        found.append(read_start(job, agent, {"allow-agents": "true"}))
    assert found == [(3, False), (0, False)]
