"""Checks run concurrently, and finished results are never lost."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Condition
from typing import Any

import pytest

from agentci.cli.commands.run import run
from agentci.config.settings import parse_settings
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import Executors
from agentci.model.requests import ProgramOutput
from tests.helpers.recordings import otlp
from tests.helpers.support import make_session

CONFIG = """\
evaluators:
- {name: good, type: code, path: good.py}
- {name: unlucky, type: code, path: unlucky.py}
- {name: better, type: code, path: good.py}
traces: trace.json
"""


class ExecutorWithABug(LocalExecutor):
    """Raises an internal error for one program."""

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        if command[-1].endswith("unlucky.py"):
            raise KeyError("a bug")
        return super().run(
            command,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=cwd,
            environment=environment,
            sandbox_policy=sandbox_policy,
        )


def test_internal_error_keeps_finished_results(tmp_path: Path) -> None:
    (tmp_path / "eval_config.yaml").write_text(CONFIG)
    (tmp_path / "trace.json").write_text(otlp())
    for name in ("good.py", "unlucky.py"):
        (tmp_path / name).write_text("print('{\"score\": 1}')")
    session = make_session(tmp_path, {}, executors=Executors({"local": ExecutorWithABug}))
    with pytest.raises(KeyError, match="a bug"):
        run(parse_settings([], {}), session)
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert [result["evaluator"] for result in report["results"]] == ["good", "better"]
    assert not report["complete"]
    assert not report["decision"]["passed"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "there is not enough memory to evaluate this case"),
        (RecursionError(), "the case or a response is nested too deeply to be evaluated"),
    ],
)
def test_case_beyond_the_limits_of_python_errors_only_its_check(
    tmp_path: Path, error: Exception, reason: str
) -> None:
    class ExecutorBeyondLimits(LocalExecutor):
        def run(self, command: Sequence[str], **others: Any) -> ProgramOutput:
            if command[-1].endswith("unlucky.py"):
                raise error
            return super().run(command, **others)

    (tmp_path / "eval_config.yaml").write_text(CONFIG)
    (tmp_path / "trace.json").write_text(otlp())
    for name in ("good.py", "unlucky.py"):
        (tmp_path / name).write_text("print('{\"score\": 1}')")
    session = make_session(tmp_path, {}, executors=Executors({"local": ExecutorBeyondLimits}))
    assert run(parse_settings([], {}), session) == 3
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert [result["status"] for result in report["results"]] == ["passed", "errored", "passed"]
    assert report["results"][1]["reason"] == reason


class PatientExecutor(LocalExecutor):
    """Delays the programs of one evaluator until all programs of the other have ended."""

    def __init__(self, quick: int) -> None:
        super().__init__()
        self._quick_left = quick
        self._ended = Condition()

    def run(self, command: Sequence[str], **_: object) -> ProgramOutput:
        with self._ended:
            if command[-1].endswith("slow.py"):
                in_time = self._ended.wait_for(lambda: self._quick_left == 0, timeout=10)
                return ProgramOutput(stdout=b'{"score": %d}' % in_time, stderr="", exit_code=0)
            self._quick_left -= 1
            self._ended.notify_all()
            return ProgramOutput(stdout=b'{"score": 1}', stderr="", exit_code=0)


def test_slow_evaluator_does_not_delay_others(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text("\n".join(otlp(trace=number) for number in range(1, 6)))
    for name in ("slow", "quick"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "eval_config.yaml").write_text(
        "evaluators:\n"
        "- {name: slow, type: code, path: slow.py}\n"
        "- {name: quick, type: code, path: quick.py}\n"
        "traces: traces.jsonl\n"
    )
    executors = Executors({"local": lambda: PatientExecutor(quick=5)})
    session = make_session(tmp_path, {}, executors=executors)
    assert run(parse_settings([], {"jobs": ["2"]}), session) == 0
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    assert [result["evaluator"] for result in report["results"]] == ["slow", "quick"] * 5
    assert {result["score"] for result in report["results"]} == {1}
