"""The registry of executors, with executors from plugin packages, working and broken."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.execution.docker import DockerExecutor
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import EXECUTOR_GROUP, Executors, PluginExecutor
from agentci.model.requests import ProgramOutput
from tests.helpers.packages import install

PACKAGE = """\
from agentci.execution.local import LocalExecutor


class Elsewhere(LocalExecutor):
    pass


def broken():
    raise OSError("no daemon")


NOTHING = 7
"""
REPLY = ProgramOutput(stdout=b"1", stderr="", exit_code=0)


class Scripted:
    """An executor with a fixed response that counts how often it is created and stopped."""

    def __init__(self, response: object = REPLY) -> None:
        self.response = response
        self.made = 0
        self.stops = 0

    def __call__(self) -> Any:
        self.made += 1
        return self

    def run(self, *_given: object, **_named: object) -> object:
        if isinstance(self.response, Exception):
            raise self.response
        return self.response

    def stop(self) -> None:
        self.stops += 1
        raise OSError("no daemon")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the module search path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def bring(site: Path, points: Mapping[str, str]) -> str:
    return install(site, EXECUTOR_GROUP, points, module=PACKAGE)


def run(executor: Any) -> ProgramOutput:
    response = executor.run(
        ("printenv", "WORD"),
        stdin=b"",
        timeout_seconds=5,
        cwd=Path.cwd(),
        environment={"WORD": "yes", "PATH": os.environ["PATH"]},
    )
    assert isinstance(response, ProgramOutput)
    return response


class TestExecutors:
    def test_executor_is_created_once_on_first_use(self) -> None:
        scripted = Scripted()
        executors = Executors({"local": scripted})
        assert (list(executors), len(executors), scripted.made) == (["local"], 1, 0)
        assert executors["local"] is executors["local"]
        assert scripted.made == 1

    def test_builtin_executors_are_registered(self) -> None:
        executors = Executors()
        assert isinstance(executors["local"], LocalExecutor)
        assert isinstance(executors["docker"], DockerExecutor)
        assert "podman" not in executors
        assert executors.get("podman") is None

    def test_stop_reaches_only_created_executors(self) -> None:
        made, left_out = Scripted(), Scripted()
        executors = Executors({"a": lambda: Quiet(made), "b": left_out})
        assert "a" in executors
        executors.stop()
        assert (made.stops, left_out.made) == (1, 0)

    def test_executor_created_after_stop_is_stopped(self) -> None:
        executors = Executors()
        executors.stop()
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executors["local"])


class Quiet(LocalExecutor):
    """A local executor that counts its stops in a scripted one."""

    def __init__(self, scripted: Scripted) -> None:
        super().__init__()
        self._scripted = scripted

    def stop(self) -> None:
        self._scripted.stops += 1


class TestPluginRegistration:
    def test_plugin_is_found_by_entry_point(self, site: Path) -> None:
        bring(site, {"elsewhere": "Elsewhere"})
        executors = Executors()
        assert "elsewhere" in executors
        assert list(executors) == ["local", "docker", "elsewhere"]
        assert len(executors) == 3
        assert run(executors["elsewhere"]).stdout == b"yes\n"
        executors.stop()
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executors["elsewhere"])

    def test_plugin_cannot_replace_builtin_executor(self, site: Path) -> None:
        bring(site, {"local": "Elsewhere"})
        executors = Executors()
        assert type(executors["local"]) is LocalExecutor
        assert list(executors) == ["local", "docker"]

    def test_invalid_entry_point_is_rejected(self, site: Path) -> None:
        package = bring(site, {"elsewhere": "NOTHING", "gone": "GONE"})
        complaints = {
            "elsewhere": "which is not a function that returns an executor",
            "gone": "which cannot be loaded: AttributeError",
        }
        for name, complaint in complaints.items():
            with pytest.raises(InputError) as refusal:
                _ = name in Executors()
            start = f"the package {package} provides {name!r} for agentci.executors, {complaint}"
            assert str(refusal.value).startswith(start)

    def test_failing_plugin_factory_raises_evaluator_error(self, site: Path) -> None:
        package = bring(site, {"elsewhere": "broken"})
        with pytest.raises(EvaluatorError) as error:
            run(Executors()["elsewhere"])
        assert str(error.value) == (
            f"could not be run: the executor `elsewhere` of the package {package} failed:"
            " OSError: no daemon; report this to the authors of that package"
        )


class TestPluginExecutor:
    def test_plugin_is_created_on_first_run(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        assert scripted.made == 0
        assert (run(executor), run(executor)) == (REPLY, REPLY)
        assert scripted.made == 1

    def test_evaluator_error_of_plugin_is_passed_through(self) -> None:
        executor = PluginExecutor(Scripted(EvaluatorError("timed out")), title="it")
        with pytest.raises(EvaluatorError, match=r"^timed out$"):
            run(executor)

    @pytest.mark.parametrize(
        ("response", "complaint"),
        [
            (KeyError("x"), "KeyError: 'x'"),
            (None, "`run` returned NoneType; expected a complete ProgramOutput"),
            (ProgramOutput(stdout="1", stderr="", exit_code=0), "a complete ProgramOutput"),  # type: ignore[arg-type]  # (as others may)
            (ProgramOutput(stdout=b"", stderr=b"", exit_code=0), "a complete ProgramOutput"),  # type: ignore[arg-type]  # (likewise)
            (ProgramOutput(stdout=b"", stderr="", exit_code=None), "a complete ProgramOutput"),  # type: ignore[arg-type]  # (likewise)
        ],
    )
    def test_invalid_plugin_response_raises_evaluator_error(
        self, response: object, complaint: str
    ) -> None:
        with pytest.raises(EvaluatorError) as error:
            run(PluginExecutor(Scripted(response), title="the executor `x`"))
        assert str(error.value).startswith("could not be run: the executor `x` failed: ")
        assert complaint in str(error.value)

    def test_plugin_counts_as_stopped_if_its_stop_fails(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        run(executor)
        executor.stop()
        assert scripted.stops == 1
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executor)

    def test_stop_does_not_create_plugin(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        executor.stop()
        assert scripted.made == 0
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executor)

    def test_stop_during_creation_interrupts_run(self) -> None:
        making, may_go_on = threading.Event(), threading.Event()
        scripted = Scripted()

        def make() -> Any:
            making.set()
            may_go_on.wait()
            return scripted()

        executor = PluginExecutor(make, title="it")
        messages: list[str] = []

        def attempt() -> None:
            with pytest.raises(EvaluatorError) as error:
                run(executor)
            messages.append(str(error.value))

        thread = threading.Thread(target=attempt)
        thread.start()
        making.wait()
        executor.stop()
        may_go_on.set()
        thread.join()
        assert messages == ["was interrupted"]


class Old:
    """An executor without the parameter ``sandbox_policy``."""

    def run(
        self,
        _command: object,
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> ProgramOutput:
        del stdin, timeout_seconds, cwd, environment
        return REPLY

    def stop(self) -> None:
        """Nothing runs."""


class TestSandboxPolicies:
    def test_policy_reaches_executor_that_supports_it(self) -> None:
        asked: list[object] = []

        class New(Old):
            def run(self, _command: object, **given: Any) -> ProgramOutput:
                asked.append(given["sandbox_policy"])
                return REPLY

            def limitations(self) -> list[str]:
                return ["it has no walls"]

        made: Any = New
        executor = PluginExecutor(made, title="the executor 'new' of p")
        assert _run_sandboxed(executor) == REPLY
        assert asked == [SandboxPolicy(network=False)]
        assert list(executor.limitations()) == ["it has no walls"]

    def test_executor_without_sandbox_support_has_limitation(self) -> None:
        made: Any = Old
        executor = PluginExecutor(made, title="the executor 'old' of p")
        assert list(executor.limitations()) == []
        assert _run_sandboxed(executor) == REPLY
        assert list(executor.limitations()) == [
            "the executor 'old' of p runs evaluator programs without agentci's sandbox"
        ]

    def test_failure_to_list_limitations_is_a_limitation(self) -> None:
        class Broken(Scripted):
            def limitations(self) -> object:
                return 7

        executor = PluginExecutor(Broken(), title="the executor 'broken' of p")
        assert _run_sandboxed(executor) == REPLY
        assert "failed to list its limitations" in "".join(executor.limitations())


def _run_sandboxed(executor: PluginExecutor) -> ProgramOutput:
    return executor.run(
        ("true",),
        stdin=b"",
        timeout_seconds=5,
        cwd=Path.cwd(),
        environment={},
        sandbox_policy=SandboxPolicy(network=False),
    )
