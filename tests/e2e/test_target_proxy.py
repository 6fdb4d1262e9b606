"""Code judges that call a language model through the `target` proxy."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.model.judges import JudgeConfig, ModelAccess, ModelSettings
from agentci.model.requests import RunCommand
from agentci.model.values import replace
from agentci.runner.dispatch import dispatch_request
from tests._util.http.servers import Answer, Asked, Raw, script, serve
from tests.helpers.support import ROOT, Ran, make_services, run_agentci
from tests.judges.bench import Bench, refused, said

KEY = "sk-secret-0123456789"

PYTHON = """\
import json, os, sys, urllib.error, urllib.request

def ask(path, body=None):
    url, token = (os.environ.get(f"AGENTV_{KIND}_PROXY_{name}") for name in ("URL", "TOKEN"))
    if not url:
        return "no proxy"
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]

KIND = "TARGET"
case = json.load(sys.stdin)
details = {"said": ask("/invoke", {"question": case["candidate_answer"], "systemPrompt": "S"})}
KIND = "PROVIDER"
details["info"] = ask("/info")
print(json.dumps({"score": 1, "details": details}))
"""
TYPESCRIPT = """\
import { createTargetClient, defineCodeJudge } from '@agentv/eval';

defineCodeJudge(async ({ candidateAnswer }) => {
  const target = createTargetClient();
  if (!target) return { score: 0, misses: ['no target'] };
  const one = await target.invoke({ question: candidateAnswer, systemPrompt: 'S' });
  const many = await target.invokeBatch([{ question: 'a' }, { question: '' }]);
  const fails = { question: 'x', target: 'nope' } as const;
  const { name, statusCode, message } = await target.invoke(fails).catch((error) => error);
  const { maxCalls, callCount } = await target.getInfo();
  const details = { one, many, failure: { name, statusCode, message }, maxCalls, callCount };
  return { score: 1, hits: [one.rawText as string], details };
});
"""


def run(
    folder: Path,
    entry: dict[str, Any],
    judge: dict[str, Any] | None,
    program: str = PYTHON,
    cases: int = 1,
) -> Ran:
    """Run a code judge on ``cases`` cases with access to a model."""
    write(folder, entry, judge, program=program, cases=cases)
    return run_agentci(["run", "e.yaml"], cwd=folder, environ={"KEY": KEY})


def write(
    folder: Path,
    entry: dict[str, Any],
    judge: dict[str, Any] | None,
    *,
    program: str = PYTHON,
    cases: int = 1,
) -> None:
    """Write an eval file, its recorded outputs and the code judge."""
    name, interpreter = ("judge.ts", "bun") if program is TYPESCRIPT else ("judge.py", "python3")
    (folder / name).write_text(program)
    command = [interpreter, name]
    evaluators = [{"name": "j", "type": "code_judge", "script": command, **entry}]
    listed = [
        {"id": f"c{i}", "criteria": "x", "input": "Hi", "evaluators": evaluators}
        for i in range(cases)
    ]
    outputs = [
        {"id": f"c{i}", "output_messages": [{"role": "assistant", "content": f"Paris {i}"}]}
        for i in range(cases)
    ]
    file = {"outputs": "out.jsonl", "cases": listed, **({"judge": judge} if judge else {})}
    (folder / "e.yaml").write_text(json.dumps(file))
    (folder / "out.jsonl").write_text("\n".join(map(json.dumps, outputs)))


def at(url: str, **others: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "m", "base_url": url, "api_key_env": "KEY", **others}


def details(ran: Ran) -> Any:
    [result] = ran.results["results"]
    assert result["details"], result
    return result["details"]


with_and_without_network = pytest.mark.parametrize("network", [True, False])


@with_and_without_network
@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_python_judge_calls_model_through_proxy(
    tmp_path: Path, isolation: str, *, network: bool
) -> None:
    entry = {"target": {"max_calls": 3}, "network": network, "isolation": isolation}
    with serve(
        script(said("It is.", usage={"prompt_tokens": 7, "completion_tokens": 2}))
    ) as server:
        ran = run(tmp_path, entry, at(server.url))
    reported = details(ran)
    assert reported["said"]["rawText"] == "It is."
    assert reported["said"]["tokenUsage"] == {"input": 7, "output": 2}
    assert (reported["info"]["targetName"], reported["info"]["maxCalls"]) == ("m", 3)
    assert reported["info"]["callCount"] == 1
    [asked] = server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(asked.body)["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Paris 0"},
    ]


@with_and_without_network
def test_typescript_judge_calls_model_through_proxy(tmp_path: Path, *, network: bool) -> None:
    def respond(asked: Asked) -> Answer:
        return said(json.loads(asked.body)["messages"][-1]["content"].upper())

    with serve(respond) as server:
        ran = run(tmp_path, {"target": {}, "network": network}, at(server.url), program=TYPESCRIPT)
    reported = details(ran)
    assert ran.results["results"][0]["hits"] == ["PARIS 0"]
    assert reported["one"]["outputMessages"] == [{"role": "assistant", "content": "PARIS 0"}]
    assert [each["rawText"] for each in reported["many"]] == [
        "A",
        "Error: Missing required field: question",
    ]
    assert reported["failure"] == {
        "name": "TargetInvocationError",
        "statusCode": 400,
        "message": "Unknown target 'nope'. Available: m",
    }
    assert (reported["maxCalls"], reported["callCount"]) == (50, 2)


def test_judge_without_target_has_no_proxy(tmp_path: Path) -> None:
    with serve(script(said("It is."))) as server:
        ran = run(tmp_path, {"target": False}, at(server.url))
        assert details(ran) == {"said": "no proxy", "info": "no proxy"}
        ran = run(tmp_path, {}, at(server.url), program=TYPESCRIPT)
    assert ran.results["results"][0]["misses"] == ["no target"]
    assert server.asked == []


def test_entry_overrides_model(tmp_path: Path) -> None:
    with serve(script(said("It is."))) as server:
        entry = {"target": True, "judge": {"model": "other"}}
        ran = run(tmp_path, entry, at(server.url))
    assert details(ran)["info"]["targetName"] == "other"
    assert json.loads(server.asked[0].body)["model"] == "other"


def test_judge_command_answers_proxy_calls(tmp_path: Path) -> None:
    judge = {"command": [sys.executable, "-c", "print(input() + '!')"]}
    ran = run(tmp_path, {"target": {}, "network": False}, judge)
    assert details(ran)["said"]["rawText"] == "S!\n"
    assert details(ran)["info"]["targetName"] == "command"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (said("It", "length"), "the judge's response was truncated"),
        (said("", "content_filter"), "refused to respond"),
        (refused(401, message="bad key"), "check the key in KEY"),
    ],
)
def test_model_error_is_passed_to_code_judge(tmp_path: Path, answer: Answer, why: str) -> None:
    with serve(script(answer)) as server:
        ran = run(tmp_path, {"target": {}}, at(server.url))
    assert why in details(ran)["said"]


def test_proxy_calls_count_towards_max_calls_of_run(tmp_path: Path) -> None:
    with serve(script(said("It is."))) as server:
        ran = run(tmp_path, {"target": {}}, at(server.url, max_calls=2), cases=3)
    replies = [result["details"]["said"] for result in ran.results["results"]]
    assert len(server.asked) == 2
    assert sum("`max_calls` (2)" in each for each in replies if isinstance(each, str)) == 1


def test_target_max_calls_applies_per_check(tmp_path: Path) -> None:
    with serve(script(said("It is."))) as server:
        ran = run(tmp_path, {"target": {"max_calls": 1}}, at(server.url), cases=3)
    assert [r["details"]["info"]["callCount"] for r in ran.results["results"]] == [1, 1, 1]
    assert len(server.asked) == 3


def test_cache_true_cannot_be_combined_with_target(tmp_path: Path) -> None:
    ran = run(tmp_path, {"target": {}, "cache": True}, at("http://localhost:1"))
    assert ran.code == 2
    assert "`cache: true` cannot be combined with `target`" in ran.out


def test_judge_with_target_is_not_cached(tmp_path: Path) -> None:
    with serve(script(said("one"), said("two"))) as server:
        for text in ("one", "two"):
            ran = run(tmp_path, {"target": {}}, at(server.url))
            assert ran.results["results"][0]["cached"] is False
            assert details(ran)["said"]["rawText"] == text


def test_http_proxy_variable_does_not_affect_model_proxy(tmp_path: Path) -> None:
    program = f"import os\nos.environ['http_proxy'] = 'http://192.0.2.1:9'\n{PYTHON}"
    with serve(script(said("It is."))) as server:
        ran = run(tmp_path, {"target": {}, "network": False}, at(server.url), program=program)
    assert details(ran)["said"]["rawText"] == "It is."


def test_hanging_model_does_not_block_timeout(tmp_path: Path) -> None:
    silent = Raw(pieces=(), endlessly=b" ", pause_seconds=0.1)
    with serve(lambda _: silent) as server:
        write(tmp_path, {"target": {}, "timeout": 1}, at(server.url))
        done = subprocess.run(
            [sys.executable, "-m", "agentci", "run", "e.yaml"],
            cwd=tmp_path,
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "KEY": KEY},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    assert "timed out after 1 s" in done.stdout
    assert "Traceback" not in done.stderr


def test_missing_port_is_reported(tmp_path: Path) -> None:
    panel = JudgeConfig(settings=ModelSettings(provider="openai"))
    command = RunCommand(
        command=("true",),
        folder=str(tmp_path),
        stdin="",
        timeout_seconds=20,
        model_access=ModelAccess(judge=panel, max_calls=1),
    )
    services = replace(make_services(tmp_path, {}), judges={"": Bench().judge})
    dispatch_request(command, name="j", services=services)
    _, most = usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
    try:
        with pytest.raises(EvaluatorError, match=r"could not be given a port .* Too many open"):
            dispatch_request(command, name="j", services=services)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


@pytest.mark.parametrize(
    ("entry", "judge", "why"),
    [
        ({"target": {}}, None, "`j` needs a judge model"),
        ({"target": True}, {"provider": "openai"}, "evaluator `j`: `model` is missing"),
        (
            {"judge": {"model": "m"}},
            None,
            "`judge` sets the model for `target`, but `target` is missing",
        ),
        ({"target": {"max_calls": -1}}, None, "max_calls"),
        (
            {"target": {}, "executor": "docker", "image": "python:3.12"},
            {"command": ["true"]},
            "`target` is not available with `executor: docker`",
        ),
        ({"target": {"max_call": 1}}, None, "did you mean 'max_calls'?"),
        ({"target": "gpt"}, None, "`target` must be"),
    ],
)
def test_invalid_target_is_rejected_before_any_run(
    tmp_path: Path, entry: dict[str, Any], judge: dict[str, Any] | None, why: str
) -> None:
    ran = run(tmp_path, entry, judge)
    assert ran.code == 2
    assert why in "\n".join(str(each) for each in ran.results["problems"]), ran.results["problems"]
