"""The program that computes metrics with Google's ADK, run as a child process."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from agentci._util.child_programs import ADK_MEASURE_PATH, is_adk_installed
from agentci._util.text.json_text import dumps_compact
from agentci.evaluators.agentevals.vertex_metric import format_invocations
from agentci.evaluators.metrics import HOSTED_METRICS
from agentci.model.trace import Turn
from agentci.model.values import JsonObject
from tests.helpers.adk import STAND_IN

TURNS = (
    Turn(id="1", user_text="q", answer_parts=("yes",)),
    Turn(id="2", user_text="q", answer_parts=("unsafe",)),
)


def measure(metric: str = "safety_v1", **environ: str) -> tuple[Any, str]:
    """Run the program; return the parsed stdout, and stderr."""
    asked: JsonObject = {
        "metric": metric,
        "threshold": 0.5,
        "actual": format_invocations(TURNS),
        "expected": None,
    }
    process = subprocess.run(
        [sys.executable, ADK_MEASURE_PATH],
        input=dumps_compact(asked),
        capture_output=True,
        text=True,
        check=True,
        env={**{k: v for k, v in os.environ.items() if "GOOGLE" not in k}, **environ},
    )
    return json.loads(process.stdout), process.stderr


def test_scores_and_notes_of_all_turns_are_printed() -> None:
    found, log = measure(PYTHONPATH=STAND_IN, GOOGLE_CLOUD_PROJECT="p")
    note = {"id": "explanation", "score": None, "rationale": "it does harm"}
    assert found == {
        "score": 0.5,
        "status": "PASSED",
        "turns": [
            {"score": 1.0, "status": "PASSED", "notes": []},
            {"score": 0.0, "status": "FAILED", "notes": [note]},
        ],
    }
    assert log == "loading the evaluators\n"


def test_error_of_adk_evaluator_is_reported() -> None:
    found, _ = measure(PYTHONPATH=STAND_IN)
    assert found == {"error": "ValueError: there is no project"}


def test_missing_package_is_reported() -> None:
    found, _ = measure()
    assert found["error"].startswith("ModuleNotFoundError: No module named 'google")


class TestAdkDetection:
    def test_adk_is_detected_without_import(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not is_adk_installed()
        monkeypatch.syspath_prepend(STAND_IN)
        assert is_adk_installed()
        assert not {"vertexai", "google.adk"} & sys.modules.keys()


def test_metric_scales_are_ascending() -> None:
    for metric in HOSTED_METRICS.values():
        assert metric.normalize(metric.lowest) == 0
        assert metric.normalize(metric.highest) == 1
        assert metric.to_scale(metric.normalize(0.75)) == 0.75
