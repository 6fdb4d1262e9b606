"""Runs of `agentci record` on an agent whose model is the mock, and what was recorded."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from agentci._util.files import SpooledChunks
from agentci.model.trace import Trace, Turn
from agentci.recordings.registry import read_recording
from agentci.recordings.telemetry.conversion import convert_to_trace
from agentci.recordings.telemetry.grouping import group_traces
from agentci.recordings.telemetry.stored_trace import StoredTrace
from examples.agents.mock_model import MockModel
from tests.helpers.support import Ran, run_agentci

AGENT = Path(__file__).parent / "agents" / "http_agent.py"
KEY = "sk-agent-0123456789abcdef"
OUT = "traces/recorded.jsonl"


def make_environment(model: MockModel) -> dict[str, str]:
    """Return the variables that direct an agent to the mock, with keys."""
    return {
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "ANTHROPIC_BASE_URL": model.url,
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "AGENT_KEY": KEY,
        "OPENAI_API_KEY": KEY,
    }


def record(
    folder: Path, model: MockModel, *words: str, options: Sequence[str] = (), program: Path = AGENT
) -> Ran:
    """Run ``agentci record OPTIONS -- python PROGRAM WORDS`` in a folder; no key may be left."""
    with patch.dict(os.environ, make_environment(model)):
        ran = run_agentci(
            ["record", *options, "--", sys.executable, str(program), *words], cwd=folder
        )
    assert_no_key(folder, ran)
    return drop_progress(ran)


def drop_progress(ran: Ran) -> Ran:
    """Drop the lines that long recordings print while they run: how many depends on the machine."""
    lines = ran.err.splitlines(keepends=True)
    return replace(ran, err="".join(line for line in lines if not line.endswith(" so far\n")))


def read_traces(file: Path) -> list[Trace]:
    """Read a recording as `agentci run` does, conversation by conversation."""
    spool = SpooledChunks()
    stored = read_recording([file.read_bytes()], file=file.name, spool=spool)
    groups = group_traces(
        [one for one in stored if isinstance(one, StoredTrace)],
        spool,
        group_by="conversation",
        multi_turn_eval_cases=True,
    )
    return [convert_to_trace(group, spool) for group in groups]


def describe(turn: Turn) -> tuple[str, list[tuple[str, object]], str | None]:
    """Return question, tool calls with arguments, and answer of a turn."""
    return turn.user_text, [(call.name, call.args) for call in turn.tool_calls], turn.final_text


def assert_no_key(folder: Path, ran: Ran) -> None:
    """Assert that neither a file below the folder nor the output contains the key."""
    assert KEY not in ran.out + ran.err
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
