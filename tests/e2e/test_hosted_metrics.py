"""Metrics that need Vertex AI, from config to result, with a fake of Google's ADK."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentci.evaluators.metrics import HOSTED_METRICS
from tests.helpers.adk import STAND_IN
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import PATH, ROOT, run_agentci

pytestmark = pytest.mark.slow

PROJECT = {"GOOGLE_CLOUD_PROJECT": "p"}


def run(
    folder: Path, *options: str, answer: str = "It is sunny.", **environ: str
) -> tuple[int, dict[str, Any]]:
    """Run agentci with the fake ADK; the exit code and the results by evaluator."""
    (folder / "trace.json").write_text(otlp(answer=answer))
    (folder / "eval_set.json").write_text(eval_set())
    evaluators = [{"name": name, "type": "builtin"} for name in HOSTED_METRICS]
    config = {"traces": "trace.json", "eval_set": "eval_set.json", "evaluators": evaluators}
    (folder / "agentci.yaml").write_text(json.dumps(config, indent=1))
    ran = subprocess.run(
        [sys.executable, "-m", "agentci", "run", *options],
        cwd=folder,
        env={"PATH": PATH, "PYTHONPATH": f"{ROOT}:{STAND_IN}", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads((folder / "agentci-results/results.json").read_text())["results"]
    return ran.returncode, {each["evaluator"]: each for each in found}


def test_hosted_metrics_score_without_caching(tmp_path: Path) -> None:
    for found in (run(tmp_path, **PROJECT)[1] for _ in range(2)):
        scores = {name: each["score"] for name, each in found.items()}
        tools = dict.fromkeys(
            (name for name in HOSTED_METRICS if name.startswith("multi_turn")), 0.0
        )
        assert scores == {"response_evaluation_score": 1.0, "safety_v1": 1.0, **tools}
        assert not any(each["cached"] for each in found.values())
        misses = found["multi_turn_tool_use_quality_v1"]["misses"]
        assert misses == ["get_weather: nothing came back"]


def test_unsafe_answer_fails_safety_metric(tmp_path: Path) -> None:
    code, found = run(tmp_path, "--only", "safety_v1", answer="unsafe", **PROJECT)
    assert (code, found["safety_v1"]["status"]) == (1, "failed")
    assert found["safety_v1"]["misses"] == ["turn 1: it does harm"]


def test_missing_project_is_an_error(tmp_path: Path) -> None:
    code, found = run(tmp_path)
    assert code == 3
    for each in found.values():
        assert each["status"] == "errored"
        assert each["reason"] == "Google's ADK failed: ValueError: there is no project"


def test_credentials_outside_workspace_are_readable(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = tmp_path_factory.mktemp("elsewhere") / "key.json"
    key.write_text("{}")
    key.chmod(0o600)
    settings = {**PROJECT, "GOOGLE_APPLICATION_CREDENTIALS": str(key)}
    code, _ = run(tmp_path, "--only", "safety_v1", **settings)
    assert code == 0


def test_metric_option_needs_no_config(tmp_path: Path) -> None:
    code, found = run(tmp_path, "--traces", "trace.json", "--metric", "safety_v1", **PROJECT)
    assert code == 0
    assert found["safety_v1"]["status"] == "passed"


def test_missing_adk_is_reported_for_each_metric(tmp_path: Path) -> None:
    entries = "".join(f"  - {{name: {name}, type: builtin}}\n" for name in HOSTED_METRICS)
    (tmp_path / "agentci.yaml").write_text(f"traces: t.json\nevaluators:\n{entries}")
    ran = run_agentci(["validate"], cwd=tmp_path)
    install = 'pip install "google-adk[eval]>=2.13"'
    why = f"needs Google's ADK, which is not installed; {install}"
    expected = [
        f"agentci.yaml:{line}:12: error: metric '{n}' {why}"
        for line, n in enumerate(HOSTED_METRICS, 3)
    ]
    assert ran.code == 2
    assert [line for line in expected if line not in ran.out] == []
