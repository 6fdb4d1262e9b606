"""Executors that other packages bring, also those that do not work."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.execution.docker.executor import DockerExecutor
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
    """An executor that answers as a test wants, and counts its makers and its ends."""

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
    """A folder of the module search path."""
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


class TestTheExecutorsOfARun:
    def test_are_made_once_and_when_they_are_needed(self) -> None:
        scripted = Scripted()
        executors = Executors({"local": scripted})
        assert (list(executors), len(executors), scripted.made) == (["local"], 1, 0)
        assert executors["local"] is executors["local"]
        assert scripted.made == 1

    def test_are_ours(self) -> None:
        executors = Executors()
        assert isinstance(executors["local"], LocalExecutor)
        assert isinstance(executors["docker"], DockerExecutor)
        assert "podman" not in executors
        assert executors.get("podman") is None

    def test_are_stopped_where_they_were_made(self) -> None:
        made, left_out = Scripted(), Scripted()
        executors = Executors({"a": lambda: Quiet(made), "b": left_out})
        assert "a" in executors
        executors.stop()
        assert (made.stops, left_out.made) == (1, 0)

    def test_are_stopped_as_soon_as_they_are_made_where_the_end_came_first(self) -> None:
        executors = Executors()
        executors.stop()
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executors["local"])


class Quiet(LocalExecutor):
    """One of ours that tells a scripted one of its end."""

    def __init__(self, scripted: Scripted) -> None:
        super().__init__()
        self._scripted = scripted

    def stop(self) -> None:
        self._scripted.stops += 1


class TestAnExecutorOfAnotherPackage:
    def test_is_found_by_its_entry_point(self, site: Path) -> None:
        bring(site, {"elsewhere": "Elsewhere"})
        executors = Executors()
        assert "elsewhere" in executors
        assert list(executors) == ["local", "docker", "elsewhere"]
        assert len(executors) == 3
        assert run(executors["elsewhere"]).stdout == b"yes\n"
        executors.stop()
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executors["elsewhere"])

    def test_does_not_take_the_place_of_ours(self, site: Path) -> None:
        bring(site, {"local": "Elsewhere"})
        executors = Executors()
        assert type(executors["local"]) is LocalExecutor
        assert list(executors) == ["local", "docker"]

    def test_is_refused_where_it_is_none(self, site: Path) -> None:
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

    def test_that_cannot_be_made_costs_its_checks_alone(self, site: Path) -> None:
        package = bring(site, {"elsewhere": "broken"})
        with pytest.raises(EvaluatorError) as error:
            run(Executors()["elsewhere"])
        assert str(error.value) == (
            f"could not be run: the executor `elsewhere` of the package {package} failed:"
            " OSError: no daemon; report this to the authors of that package"
        )


class TestAForeignExecutor:
    def test_is_made_when_the_first_program_is_to_run(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        assert scripted.made == 0
        assert (run(executor), run(executor)) == (REPLY, REPLY)
        assert scripted.made == 1

    def test_says_by_itself_what_went_wrong(self) -> None:
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
    def test_is_held_to_what_an_executor_is(self, response: object, complaint: str) -> None:
        with pytest.raises(EvaluatorError) as error:
            run(PluginExecutor(Scripted(response), title="the executor `x`"))
        assert str(error.value).startswith("could not be run: the executor `x` failed: ")
        assert complaint in str(error.value)

    def test_is_stopped_whatever_it_says_to_that(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        run(executor)
        executor.stop()
        assert scripted.stops == 1
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executor)

    def test_need_not_be_made_to_be_stopped(self) -> None:
        scripted = Scripted()
        executor = PluginExecutor(scripted, title="it")
        executor.stop()
        assert scripted.made == 0
        with pytest.raises(EvaluatorError, match="was interrupted"):
            run(executor)

    def test_can_be_stopped_while_it_is_being_made(self) -> None:
        making, may_go_on = threading.Event(), threading.Event()
        scripted = Scripted()

        def make() -> Any:
            making.set()
            may_go_on.wait()
            return scripted()

        executor = PluginExecutor(make, title="it")
        said: list[str] = []

        def attempt() -> None:
            with pytest.raises(EvaluatorError) as error:
                run(executor)
            said.append(str(error.value))

        thread = threading.Thread(target=attempt)
        thread.start()
        making.wait()
        executor.stop()
        may_go_on.set()
        thread.join()
        assert said == ["was interrupted"]


class Old:
    """An executor from before there were confinements."""

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


class TestConfinements:
    def test_reach_an_executor_that_knows_them(self) -> None:
        asked: list[object] = []

        class New(Old):
            def run(self, _command: object, **given: Any) -> ProgramOutput:
                asked.append(given["sandbox_policy"])
                return REPLY

            def limitations(self) -> list[str]:
                return ["it has no walls"]

        made: Any = New
        executor = PluginExecutor(made, title="the executor 'new' of p")
        assert _run_confined(executor) == REPLY
        assert asked == [SandboxPolicy(network=False)]
        assert list(executor.limitations()) == ["it has no walls"]

    def test_are_kept_from_one_that_does_not_and_it_is_told(self) -> None:
        made: Any = Old
        executor = PluginExecutor(made, title="the executor 'old' of p")
        assert list(executor.limitations()) == []
        assert _run_confined(executor) == REPLY
        assert list(executor.limitations()) == [
            "the executor 'old' of p runs evaluator programs without agentci's sandbox"
        ]

    def test_that_it_cannot_tell_of_are_told_as_that(self) -> None:
        class Broken(Scripted):
            def limitations(self) -> object:
                return 7

        executor = PluginExecutor(Broken(), title="the executor 'broken' of p")
        assert _run_confined(executor) == REPLY
        assert "failed to list its limitations" in "".join(executor.limitations())


def _run_confined(executor: PluginExecutor) -> ProgramOutput:
    return executor.run(
        ("true",),
        stdin=b"",
        timeout_seconds=5,
        cwd=Path.cwd(),
        environment={},
        sandbox_policy=SandboxPolicy(network=False),
    )
