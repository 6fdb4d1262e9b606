"""Eval files of AgentV: commands that they name, variables and paths in files beside them."""

import json
import os
from collections.abc import Mapping
from typing import Any

from tests._util.http.servers import Answer, Asked, serve
from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.job import FILE_SECRET, KEY_SECRET, TOKEN_SECRET, VARIABLE_SECRET, Job
from tests.helpers.support import Ran

SECRETS = (FILE_SECRET, KEY_SECRET, TOKEN_SECRET, VARIABLE_SECRET)
# Prints all that it can read as the reason of a grade, and writes where it must not.
GRADE = """\
import json, os, pathlib
seen = [str(dict(os.environ))]
top = pathlib.Path(__file__).resolve().parents[1]
places = [top / "home/actions-runner/credentials", f"/proc/{os.getppid()}/environ"]
for place in places:
    try:
        seen.append(pathlib.Path(place).read_text())
    except OSError:
        pass
for place in (top / "pwned", top / "workspace" / "pwned"):
    try:
        place.write_text("x")
    except OSError:
        pass
print(json.dumps({"score": 0.1, "verdict": "fail", "reasoning": " ".join(seen)}))
"""
COMMAND = "python3 grade.py"
GRADER = {"name": "own", "provider": "cli", "command": COMMAND, "cwd": "."}
# Evaluators that run `grade.py`, other than `code_judge`.
GRADERS: Mapping[str, Mapping[str, Any]] = {
    "target": {"type": "llm-grader", "target": "own"},
    "prompt": {
        "type": "llm-grader",
        "target": "own",
        "prompt": {"script": ["python3", "grade.py"]},
    },
    "composite": {
        "type": "composite",
        "assertions": [{"name": "has", "type": "contains", "value": "hi"}],
        "aggregator": {"type": "code_judge", "path": COMMAND},
    },
}


def run_evaluator(
    job: Job, evaluator: Mapping[str, Any], target: Mapping[str, Any] = GRADER
) -> Ran:
    """Run an eval file with an evaluator, and with ``target`` in AgentV's list."""
    job.write({".agentv/targets.yaml": json.dumps({"targets": [target]}), "grade.py": GRADE})
    job.write_eval({"name": "g", **evaluator})
    return job.run("a.eval.yaml")


@attack("N11", "container", "user")
def test_commands_that_grade_stay_in_sandbox(make_job: MakeJob) -> None:
    for name, evaluator in GRADERS.items():
        job = make_job()
        job.add_credentials()
        ran = run_evaluator(job, evaluator)
        shown = job.read_all_output(ran)
        assert (name, [each for each in SECRETS if each in shown]) == (name, [])
        assert "'TMPDIR'" in shown, f"{name} did not run: {shown[-500:]}"
        assert not [*job.top.glob("pwned"), *job.workspace.glob("pwned")]
        job.remove()


def get_nothing(_: Asked) -> Answer:
    return Answer(body=b"{}", headers={"Content-Type": "application/json"})


@attack("N12", "container")
def test_targets_of_list_send_no_variable_anywhere(make_job: MakeJob) -> None:
    codes = {}
    with serve(get_nothing) as server:
        openai = {"name": "own", "provider": "openai", "base_url": server.url, "model": "m"}
        targets: Mapping[str, Mapping[str, str]] = {
            "key": {**openai, "api_key": "${{ MY_SECRET }}"},
            "usual key": {**openai, "api_key": "${{ OPENAI_API_KEY }}"},
            "address": {**openai, "base_url": f"{server.url}/${{{{ MY_SECRET }}}}"},
            "model": {**openai, "api_key": "${{ GITHUB_SHA }}", "model": "${{ MY_SECRET }}"},
            "token": {**openai, "api_key": "${{ ACTIONS_RUNTIME_TOKEN }}"},
            "command": {**GRADER, "command": "echo ${{ MY_SECRET }}"},
            "azure": {
                **openai,
                "provider": "azure",
                "endpoint": server.url,
                "api_key": "${{ OPENAI_API_KEY }}",
            },
        }
        for name, target in targets.items():
            job = make_job()
            ran = run_evaluator(job, GRADERS["target"], target)
            codes[name] = ran.code
            assert [each for each in SECRETS if each in job.read_all_output(ran)] == []
            job.remove()
        assert server.asked == []
    assert codes == dict.fromkeys(targets, 2)


PATHS = (
    *("../../home/actions-runner/credentials", "/etc/passwd", "/proc/self/environ", "//etc/passwd"),
    *("a\0b", "x" * 5_000, "\ud800", "/dev/zero", "link", "pipe", ".", ""),
)


@attack("N13", "container")
def test_index_of_run_leads_to_no_file_outside(make_job: MakeJob) -> None:
    wrong = {}
    for path in PATHS:
        job = make_job()
        job.add_credentials()
        job.write_eval({"name": "has", "type": "contains", "value": "hi"})
        row = {"test_id": "one", "suite": "a", "target": "t", "execution_status": "ok"}
        row |= {"transcript_path": path, "answer_path": path}
        job.write({"runs/index.jsonl": json.dumps(row)})
        (job.workspace / "runs" / "link").symlink_to("../../home/actions-runner/credentials")
        os.mkfifo(job.workspace / "runs" / "pipe")
        ran = job.run("a.eval.yaml", inputs={"traces": "runs"}, cpu_seconds=30)
        shown = job.read_all_output(ran)
        if ran.code not in (2, 3) or FILE_SECRET in shown or "root:" in shown:
            wrong[path] = (ran.code, shown[-500:])
        job.remove()
    assert wrong == {}
