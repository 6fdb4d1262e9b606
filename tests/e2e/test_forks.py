"""Pull requests without secrets: judges that need a key are skipped with the reason."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import script, serve
from tests.e2e.judged import JUDGE, KEY, Judged, at, judge, scored

CONTAINS = {"name": "has", "type": "contains", "value": "Paris"}


def environ(folder: Path, head: str = "me/agent", **others: str) -> dict[str, str]:
    """The environment of a workflow step of a pull request."""
    event = folder / "event.json"
    repos = {"head": {"repo": {"full_name": head}}, "base": {"repo": {"full_name": "org/agent"}}}
    event.write_text(json.dumps({"pull_request": repos}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_ACTOR": "me",
        **others,
    }


def on_fork(folder: Path, given: Mapping[str, Any], *options: str, **others: Any) -> Judged:
    return judge(folder, given, *options, environ=environ(folder), **others)


WHY = (
    "the environment variable KEY with the judge's key is not set: pull requests from forks have"
    " no access to secrets"
)


IN_WARNING = WHY.replace("set: pull", "set (pull") + ")"


def test_judge_without_key_is_skipped(tmp_path: Path) -> None:
    with serve(script()) as server:
        found = on_fork(tmp_path, at(server.url), evaluators=[CONTAINS, JUDGE], cases=2)
    assert (found.ran.code, found.statuses) == (0, ["passed", "skipped"] * 2)
    assert found.reasons == [None, WHY] * 2
    why = " ".join(found.report["decision"]["notes"])
    assert f"2 checks skipped (j): {WHY}" in why
    [warning] = [each for each in found.report["problems"] if each["severity"] == "warning"]
    assert warning["message"] == f"checks without a cached response are skipped: {IN_WARNING}"
    assert WHY in (tmp_path / "agentci-results" / "summary.md").read_text().replace("\\", "")
    assert server.asked == []


def test_repeated_judge_is_skipped_despite_cached_response(
    tmp_path: Path,
) -> None:
    with serve(script(scored(0.9))) as server:
        judge(tmp_path, at(server.url))
        found = on_fork(tmp_path, at(server.url), evaluators=[{**JUDGE, "repeat": 3}])
    assert (found.statuses, found.reasons) == (["skipped"], [WHY])
    assert "repeats" not in found.report["results"][0]


def test_code_judge_calling_model_is_skipped(tmp_path: Path) -> None:
    program = (
        "import json, os, urllib.request\n"
        "try:\n"
        "    urllib.request.urlopen(urllib.request.Request(\n"
        "        os.environ['AGENTV_TARGET_PROXY_URL'] + '/invoke', b'{\"question\": \"?\"}',\n"
        "        {'Authorization': 'Bearer ' + os.environ['AGENTV_TARGET_PROXY_TOKEN']}))\n"
        "except OSError:\n"
        "    print('{\"score\": 1}')\n"
    )
    (tmp_path / "asks.py").write_text(program)
    asks = {"name": "asks", "type": "code_judge", "script": ["python3", "asks.py"], "target": {}}
    found = on_fork(tmp_path, at("http://localhost:1"), evaluators=[CONTAINS, asks])
    assert (found.statuses, found.reasons) == (["passed", "skipped"], [None, WHY])


def test_skipped_judge_fails_gate_if_configured(tmp_path: Path) -> None:
    gate = {"on_skip": "fail"}
    found = on_fork(tmp_path, at("http://localhost:1"), evaluators=[CONTAINS, JUDGE], gate=gate)
    assert (found.ran.code, found.report["decision"]["passed"]) == (1, False)


def test_gate_with_only_skipped_judges_fails(tmp_path: Path) -> None:
    found = on_fork(tmp_path, at("http://localhost:1"))
    assert (found.ran.code, found.statuses) == (1, ["skipped"])
    assert "no check was evaluated" in found.report["decision"]["reasons"][0]


def test_cached_responses_are_evaluated_without_key(tmp_path: Path) -> None:
    with serve(script(scored(0.9), scored(0.1))) as server:
        judge(tmp_path, at(server.url), cases=2)
        found = on_fork(tmp_path, at(server.url), cases=3)
    assert len(server.asked) == 2
    assert sorted(found.statuses) == ["failed", "passed", "skipped"]
    assert found.cached == [True, True, False]


def test_available_key_is_used(tmp_path: Path) -> None:
    with serve(script(scored(0.9))) as server:
        found = judge(tmp_path, at(server.url), environ=environ(tmp_path, KEY=KEY))
    assert (found.statuses, len(server.asked)) == (["passed"], 1)


def test_command_judge_without_key_is_skipped(tmp_path: Path) -> None:
    found = on_fork(tmp_path, {"command": ["cat"], "api_key_env": "KEY"})
    assert found.statuses == ["skipped"]


@pytest.mark.parametrize(
    "others",
    [
        {"head": "org/agent"},
        {"GITHUB_EVENT_NAME": "push"},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
        {"GITHUB_EVENT_PATH": "/nowhere"},
        {"GITHUB_ACTIONS": ""},
    ],
    ids=str,
)
def test_missing_key_outside_forks_is_config_error(
    tmp_path: Path, others: Mapping[str, str]
) -> None:
    found = judge(tmp_path, at("http://localhost:1"), environ=environ(tmp_path, **others))
    assert found.ran.code == 2
    assert "evaluator `j`: the environment variable KEY" in found.ran.out


def test_dependabot_pull_request_skips_judge(tmp_path: Path) -> None:
    given = environ(tmp_path, "org/agent", GITHUB_ACTOR="dependabot[bot]")
    found = judge(tmp_path, at("http://localhost:1"), environ=given)
    assert found.statuses == ["skipped"]
    assert "Dependabot" in found.reasons[0]
