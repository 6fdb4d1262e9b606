"""The Docker executor with a fake `docker` command that records its calls."""

import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.docker import (
    MAX_ARCHIVE_BYTES,
    MAX_ARCHIVE_FILES,
    DockerClient,
    DockerExecutor,
    FolderArchives,
    has_owner_ended,
    make_owner_label,
    make_sandbox_options,
    select_variables,
    translate_command,
)
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.registry import Executors
from agentci.model.requests import ProgramOutput
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, wait_until

NARROW = SandboxPolicy(network=False, memory_mb=64, processes=7, image="some/image:1")
# Runs one script per Docker command; records arguments, environment and stdin.
DOCKER = """\
#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
env > "$here/seen-by-$1"
if [ "$1" = cp ]; then cat > "$here/copied"; fi
if [ -f "$here/answer-to-$1" ]; then . "$here/answer-to-$1"; fi
"""
ANSWERS = {"image": "echo sha256:abc", "start": "cat", "inspect": "echo '{}'"}


class Engine:
    """A fake `docker` with one script per command, and a program to run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        program = self.folder / "docker"
        program.write_text(DOCKER)
        program.chmod(0o755)
        for command, script in ANSWERS.items():
            self.answer(command, script)
        self.path = folder / "evaluator" / "ev.py"
        self.path.parent.mkdir()
        self.path.write_text("print(1)")
        self.variables = {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "DOCKER_HOST": "tcp://h:1",
            "K": "no",
        }
        self.executor = DockerExecutor(self.variables)

    def answer(self, command: str, script: str) -> None:
        (self.folder / f"answer-to-{command}").write_text(script)

    def run(
        self,
        *,
        stdin: bytes = b"",
        seconds: float = NO_TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
        sandbox_policy: SandboxPolicy | None = NARROW,
    ) -> ProgramOutput:
        return self.executor.run(
            ("python3", str(self.path)),
            stdin=stdin,
            timeout_seconds=seconds,
            cwd=self.path.parent,
            environment=environment or {},
            sandbox_policy=sandbox_policy,
        )

    def refused(self, **given: Any) -> str:
        with pytest.raises(EvaluatorError) as error:
            self.run(**given)
        return str(error.value)

    def asked(self, command: str = "") -> list[str]:
        """Return the recorded calls, or only those that begin with ``command``."""
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(command)]

    def seen_by(self, command: str) -> Mapping[str, str]:
        lines = (self.folder / f"seen-by-{command}").read_text().splitlines()
        return dict(line.partition("=")[::2] for line in lines)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


class TestRun:
    def test_run_creates_fills_starts_and_removes_container(self, engine: Engine) -> None:
        response = engine.run(stdin=b"word")
        assert response == ProgramOutput(stdout=b"word", stderr="", exit_code=0)
        words = [line.split()[0] for line in engine.asked()]
        assert words == ["image", "ps", "create", "cp", "start", "rm"]
        (made,) = engine.asked("create")
        name = made.split()[1].removeprefix("--name=")
        assert name.startswith("agentci-")
        assert made.endswith(" --entrypoint=python3 sha256:abc /evaluator/ev.py")
        assert engine.asked("cp") == [f"cp --quiet - {name}:/evaluator"]
        assert engine.asked("start") == [f"start --attach --interactive {name}"]
        assert engine.asked("rm") == [f"rm --force --volumes {name}"]
        with tarfile.open(engine.folder / "copied") as archive:
            assert archive.getnames() == ["ev.py"]

    def test_image_and_leftover_containers_are_checked_once(self, engine: Engine) -> None:
        engine.run()
        engine.run()
        assert (len(engine.asked("image")), len(engine.asked("ps"))) == (1, 1)
        first, second = engine.asked("create")
        assert first.split()[1] != second.split()[1]

    def test_program_and_docker_variables_do_not_mix(self, engine: Engine) -> None:
        engine.run(environment={"K": "value", "PATH": "/theirs", "HOME": "/root"})
        (made,) = engine.asked("create")
        assert "value" not in made
        assert " --env=K " in made
        assert "DOCKER_HOST" not in made
        assert (engine.seen_by("create")["K"], engine.seen_by("create")["DOCKER_HOST"]) == (
            "value",
            "tcp://h:1",
        )
        assert engine.seen_by("create")["PATH"].startswith(str(engine.folder))
        assert "K" not in engine.seen_by("start")
        assert engine.seen_by("start")["DOCKER_HOST"] == "tcp://h:1"

    def test_engine_warning_is_listed_once_as_limitation(self, engine: Engine) -> None:
        engine.answer("create", "echo 'WARNING: no swap limit' >&2; echo other >&2")
        executors = Executors({"docker": lambda: engine.executor})
        assert executors["docker"].limitations() == ()
        engine.run()
        engine.run()
        assert list(executors.limitations()) == ["container engine: no swap limit"]

    def test_exit_code_of_program_is_returned(self, engine: Engine) -> None:
        engine.answer("start", "echo words >&2; exit 7")
        assert engine.run() == ProgramOutput(stdout=b"", stderr="words\n", exit_code=7)

    def test_policy_without_image_raises_error(self, engine: Engine) -> None:
        for sandbox_policy in (None, SandboxPolicy()):
            assert "has no container image" in engine.refused(sandbox_policy=sandbox_policy)
        assert engine.asked() == []


class TestErrors:
    @pytest.mark.parametrize(
        ("state", "complaint"),
        [
            ('{"OOMKilled": true}', "used more than its 64 MiB of memory and was killed; raise"),
            ('{"Running": true}', "lost the connection to the engine: no such thing"),
            (
                '{"Status": "created"}',
                "in a container: no such thing; check that the image `some/image:1` contains",
            ),
            ('{"Error": "x"}', "could not be started in a container: no such thing"),
        ],
    )
    def test_container_failure_is_not_reported_as_exit_code(
        self, engine: Engine, state: str, complaint: str
    ) -> None:
        engine.answer("start", "echo 'Error response from daemon: no such thing' >&2; exit 1")
        engine.answer("inspect", f"echo '{state}'")
        assert complaint in engine.refused()
        assert len(engine.asked("rm")) == 1

    def test_vanished_container_raises_lost_connection_error(self, engine: Engine) -> None:
        engine.answer("start", "exit 137")
        engine.answer("inspect", "exit 1")
        assert engine.refused().endswith("to the engine: `docker` exited with code 137")

    def test_timeout_removes_container(self, engine: Engine) -> None:
        engine.answer("start", "exec sleep 300")
        assert engine.refused(seconds=0.3).startswith("timed out after 0.3 s")
        assert len(engine.asked("rm")) == 1

    @pytest.mark.parametrize("command", ["create", "cp", "ps"])
    def test_engine_error_message_is_reported(self, engine: Engine, command: str) -> None:
        engine.answer(command, "echo 'Error response from daemon: no space left.' >&2; exit 1")
        assert engine.refused() == "could not be run in a container: no space left"
        assert len(engine.asked("rm")) == (command != "ps")

    def test_missing_docker_command_raises_error_with_hint(self, engine: Engine) -> None:
        engine.executor = DockerExecutor({"PATH": "/nonexistent"})
        message = engine.refused()
        assert "`docker` not found on PATH outside the workspace; install" in message
        assert "the image of the action does not" in message

    def test_unreachable_engine_is_called_only_once(self, engine: Engine) -> None:
        daemon_error = (
            "Cannot connect to the Docker daemon at tcp://h:1. Is the docker daemon running?"
        )
        engine.answer("image", f"echo '{daemon_error}' >&2; exit 1")
        message = engine.refused()
        assert message == engine.refused()
        assert message == (
            f"could not be run in a container: {daemon_error};"
            " start the engine, or check DOCKER_HOST and the Docker context"
        )
        assert len(engine.asked()) == 1

    def test_unresponsive_engine_raises_error(self, engine: Engine) -> None:
        engine.answer("ps", "exec sleep 300")
        with pytest.raises(EvaluatorError, match="the engine did not respond"):
            DockerClient(engine.variables).run("ps", seconds=0.2)

    def test_endless_engine_output_raises_error(self, engine: Engine) -> None:
        engine.answer("ps", "exec yes")
        with pytest.raises(EvaluatorError, match=r"in a container: printed more than 10 MiB"):
            DockerClient(engine.variables).run("ps")


MISSING = "echo 'Error response from daemon: No such image: x' >&2; exit 1"


class TestImage:
    def test_missing_image_is_pulled(self, engine: Engine) -> None:
        engine.answer("image", f'[ -f "$here/pulled" ] || {{ {MISSING}; }}; echo sha256:new')
        engine.answer("pull", ': > "$here/pulled"')
        engine.run()
        assert engine.asked("pull") == ["pull --quiet -- some/image:1"]
        assert " sha256:new " in engine.asked("create")[0]

    def test_failed_pull_is_not_repeated(self, engine: Engine) -> None:
        engine.answer("image", MISSING)
        engine.answer("pull", "echo 'Error response from daemon: no such host' >&2; exit 1")
        message = engine.refused()
        assert message == engine.refused()
        assert message == (
            "could not be run in a container: the image `some/image:1` was not found and could not"
            " be pulled: no such host;"
            " check its name, or build it, pull it or log in in an earlier step"
        )
        assert len(engine.asked("pull")) == 1

    def test_image_missing_after_pull_raises_error(self, engine: Engine) -> None:
        engine.answer("image", MISSING)
        assert "was not found and could not be pulled" in engine.refused()

    def test_endless_pull_output_raises_error(self, engine: Engine) -> None:
        engine.answer("image", MISSING)
        engine.answer("pull", "exec yes")
        assert "`docker pull some/image:1` printed more than" in engine.refused()


STARTED = ': > "$here/started"'
UNTIL_STOPPED = 'while ! [ -e "$here/stopped" ]; do sleep 0.05; done'


class TestStop:
    def test_stop_kills_program_and_removes_container(self, engine: Engine) -> None:
        engine.answer("start", f"{STARTED}; exec sleep 300")
        assert self.stopped_at("started", engine) == "was interrupted"
        assert engine.asked("rm")
        asked = engine.asked()
        assert engine.refused() == "was interrupted"
        engine.executor.stop()
        assert engine.asked() == asked

    def test_stop_during_creation_removes_container(self, engine: Engine) -> None:
        engine.answer("create", f"{STARTED}; {UNTIL_STOPPED}")
        assert self.stopped_at("started", engine) == "was interrupted"
        assert engine.asked("start") == []
        assert engine.asked("rm")

    @pytest.mark.parametrize("command", ["create", "cp"])
    def test_failed_command_after_stop_is_reported_as_interrupted(
        self, engine: Engine, command: str
    ) -> None:
        engine.answer(command, f"{STARTED}; {UNTIL_STOPPED}; echo gone >&2; exit 1")
        assert self.stopped_at("started", engine) == "was interrupted"

    def test_stop_interrupts_image_pull(self, engine: Engine) -> None:
        engine.answer("image", MISSING)
        engine.answer("pull", f"{STARTED}; exec sleep 300")
        assert self.stopped_at("started", engine) == "was interrupted"
        assert engine.asked("rm") == []

    def test_stop_retries_failed_container_removal(self, engine: Engine) -> None:
        engine.answer("rm", "exit 1")
        engine.run()
        engine.answer("rm", "")
        engine.executor.stop()
        engine.executor.stop()
        first, second = engine.asked("rm")
        assert first == second

    def stopped_at(self, file: str, engine: Engine) -> str:
        """Stop a run as soon as ``file`` exists; return the error of the run."""
        messages: list[str] = []
        thread = threading.Thread(target=lambda: messages.append(engine.refused()))
        thread.start()
        wait_until((engine.folder / file).exists)
        engine.executor.stop()
        (engine.folder / "stopped").touch()
        thread.join()
        return messages[0]


class TestLeftoverContainers:
    def test_container_of_ended_process_is_removed(self, engine: Engine) -> None:
        label = dead()
        engine.answer("ps", f"echo 'abc {label}'; echo 'def {make_owner_label()}'; echo 'ghi what'")
        engine.run()
        assert engine.asked("rm")[0] == "rm --force --volumes abc"
        assert engine.asked("ps")[0].startswith("ps --all --no-trunc --filter label=agentci.owner")

    def test_unclear_owner_label_counts_as_running(self) -> None:
        place, process, start = make_owner_label().rsplit(" ", 2)
        assert has_owner_ended(dead())
        assert has_owner_ended(f"{place} {process} 1{start}")
        alive = [
            make_owner_label(),
            f"{place} {2**70} 1",
            f"{place} x 1",
            f"else {process} 1",
            "",
            "a b",
        ]
        assert [label for label in alive if has_owner_ended(label)] == []


def dead() -> str:
    """The label of a process that has ended."""
    place, _, start = make_owner_label().rsplit(" ", 2)
    process = subprocess.Popen(["true"])
    process.wait()
    return f"{place} {process.pid} {start}"


class TestIsolation:
    def test_default_options_isolate_container(self) -> None:
        options = make_sandbox_options(
            NARROW, variables=["K"], docker_variables=["HTTP_PROXY", "K"]
        )
        assert {
            "--network=none", "--read-only", "--cap-drop=ALL", "--user=65534:65534",
            "--security-opt=no-new-privileges", "--memory=64m", "--memory-swap=64m",
            "--pids-limit=7", "--log-driver=none", "--pull=never", "--interactive",
        } <= set(options)  # fmt: skip
        assert not [option for option in options if option.startswith(("-v", "--volume"))]

    def test_network_policy_selects_bridge_network(self) -> None:
        wide = SandboxPolicy(network=True, image="x")
        assert "--network=bridge" in make_sandbox_options(wide, variables=[], docker_variables=[])

    def test_proxy_variables_added_by_docker_are_cleared(self) -> None:
        given = make_sandbox_options(
            NARROW, variables=["NO_PROXY"], docker_variables=["HTTP_PROXY", "NO_PROXY"]
        )
        assert {"--env=NO_PROXY", "--env=HTTP_PROXY=", "--env=https_proxy"} <= set(given)
        assert not {"--env=HTTP_PROXY", "--env=NO_PROXY="} & set(given)

    def test_variables_with_host_paths_are_not_passed(self) -> None:
        given = {
            "LANG": "C",
            "HOME": "/root",
            "PYTHONPATH": "/x",
            "SSL_CERT_FILE": "/y",
            "KEY": "1",
        }
        assert select_variables(given) == {"LANG": "C", "KEY": "1"}

    def test_paths_in_command_are_translated(self) -> None:
        command = ("node", "--flag", "/here/ev.js", "/elsewhere/x", "here/x")
        assert translate_command(command, Path("/here")) == (
            "node", "--flag", "/evaluator/ev.js", "/elsewhere/x", "here/x",
        )  # fmt: skip


class TestFolderArchives:
    def test_archive_omits_hidden_files_and_caches(self, tmp_path: Path) -> None:
        for name in (".git/config", "b/__pycache__/x.pyc", "b/data.txt", "a.sh", ".env", "B.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name).write_text(name)
        (tmp_path / "a.sh").chmod(0o700)
        (tmp_path / "b/data.txt").chmod(0o600)
        (tmp_path / "out").symlink_to("/etc/passwd")
        os.mkfifo(tmp_path / "pipe")
        with opened(FolderArchives().pack(tmp_path)) as archive:
            found = {each.name: (each.mode, each.uid, each.mtime) for each in archive}
            assert list(found) == ["B.py", "a.sh", "b", "b/data.txt", "out"]
            assert archive.getmember("out").linkname == "/etc/passwd"
            data = archive.extractfile("b/data.txt")
            assert data is not None
            assert data.read() == b"b/data.txt"
        assert (found["a.sh"], found["b/data.txt"]) == ((0o755, 0, 0), (0o644, 0, 0))
        assert found["b"] == (0o755, 0, 0)

    def test_archive_is_same_for_same_files(self, tmp_path: Path) -> None:
        for folder, names in (("x", "abc"), ("y", "cba")):
            (tmp_path / folder).mkdir()
            for name in names:
                (tmp_path / folder / name).write_text(name)
        os.utime(tmp_path / "x" / "a", (1, 1))
        assert FolderArchives().pack(tmp_path / "x") == FolderArchives().pack(tmp_path / "y")

    def test_folder_is_packed_once(self, tmp_path: Path) -> None:
        archives = FolderArchives()
        assert archives.pack(tmp_path) is archives.pack(tmp_path)

    @pytest.mark.slow
    def test_oversized_folder_raises_error(self, tmp_path: Path) -> None:
        for folder in ("big", "many"):
            (tmp_path / folder).mkdir()
        with (tmp_path / "big/x").open("wb") as file:
            file.truncate(MAX_ARCHIVE_BYTES + 1)
        for number in range(MAX_ARCHIVE_FILES + 1):
            (tmp_path / f"many/{number}").touch()
        for folder in ("big", "many"):
            with pytest.raises(EvaluatorError, match=r"exceeds 64 MiB or 10,000 files; move"):
                FolderArchives().pack(tmp_path / folder)

    def test_missing_folder_raises_error(self, tmp_path: Path) -> None:
        with pytest.raises(
            EvaluatorError, match=r"could not be copied into a container: .*No such"
        ):
            FolderArchives().pack(tmp_path / "gone")


def opened(archive: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(archive))
