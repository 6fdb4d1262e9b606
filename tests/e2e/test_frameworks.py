"""Verdicts over recordings of real frameworks."""

import shutil
from pathlib import Path

import pytest

from tests.helpers.support import run_agentci

RECORDINGS = Path(__file__).parent.parent / "recordings/frameworks"
CONFIG = """\
evaluators:
- name: no_refund
  type: code
  path: no_refund.py
traces: run.jsonl.gz
"""
NO_REFUND = """\
import json, sys
turns = json.load(sys.stdin)["invocations"]
calls = [call["name"] for turn in turns for call in turn["intermediate_steps"]["tool_calls"]]
print(json.dumps({"score": 0.0 if "refund_order" in calls else 1.0}))
"""


def judge(folder: Path, recording: str) -> str:
    (folder / "agentci.yaml").write_text(CONFIG)
    (folder / "no_refund.py").write_text(NO_REFUND)
    shutil.copy(RECORDINGS / recording, folder / "run.jsonl.gz")
    (result,) = run_agentci(["run"], cwd=folder).results["results"]
    status: str = result["status"]
    return status


@pytest.mark.parametrize(
    "recording", sorted(RECORDINGS.glob("*/handoff.jsonl.gz")), ids=lambda path: path.parent.name
)
def test_refund_by_another_agent_is_noticed(recording: Path, tmp_path: Path) -> None:
    assert judge(tmp_path, str(recording.relative_to(RECORDINGS))) == "failed"


@pytest.mark.parametrize("framework", ["adk2-nocontent", "openai-chat-v2-nocontent", "autogen"])
def test_recording_without_content_is_not_evaluated(framework: str, tmp_path: Path) -> None:
    assert judge(tmp_path, f"{framework}/basic.jsonl.gz") == "errored"


def test_agent_without_a_refund_passes(tmp_path: Path) -> None:
    assert judge(tmp_path, "vercel-ai/basic.jsonl.gz") == "passed"
