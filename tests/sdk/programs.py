"""Runs evaluators under test as separate programs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

OURS = "agentci.sdk"
ORIGINAL = "agentevals_evaluator_sdk"

TURNS: list[dict[str, Any]] = [
    {
        "invocation_id": "1",
        "user_content": "Wo ist mein Päckchen?",
        "final_response": "Unterwegs 📦",
        "intermediate_steps": {
            "tool_calls": [{"name": "find", "args": {"n": [1, 2.5, None]}, "id": "c1"}],
            "tool_responses": [
                {"name": "find", "output": "{}", "status": "error", "id": "c1", "response": {}}
            ],
        },
        "performance_metrics": {"counts": {"tool_calls": 1}},
        "trace_id": "t",
        "span_id": "1",
        "of_a_later_version": True,
    },
    {"final_response": None},
]
CASE: dict[str, Any] = {
    "protocol_version": "1.1",
    "metric_name": "judge",
    "threshold": 1,
    "config": {"words": 2, "nested": {"a": [True]}},
    "invocations": TURNS,
    "expected_invocations": None,
}
STDIN = json.dumps(CASE)

HEAD = """
from {sdk} import EvalInput, EvalResult, EvalStatus, evaluator

@evaluator
"""
TAIL = """
if __name__ == "__main__":
    judge.run()
"""


def run_evaluator(
    folder: Path, source: str, *, stdin: str = STDIN, sdk: str = OURS, tail: str = TAIL
) -> subprocess.CompletedProcess[str]:
    """Run the function ``judge`` that ``source`` defines."""
    program = folder / f"of_{sdk.replace('.', '_')}.py"
    program.write_text(f"{HEAD.format(sdk=sdk)}{source}{tail}", encoding="utf-8")
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, program],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
