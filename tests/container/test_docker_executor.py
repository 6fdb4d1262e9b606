"""The Docker executor on a real engine: what programs can do, and what they leave behind."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.docker import OWNER_LABEL, DockerExecutor, make_owner_label
from agentci.execution.executor_api import SandboxPolicy
from agentci.model.requests import ProgramOutput
from tests.container.engine import BASE_IMAGE, ROOT, RunImage, output_of
from tests.helpers.recordings import otlp
from tests.helpers.waiting import wait_until

pytestmark = [pytest.mark.container, pytest.mark.timeout(180)]

SOCKET = "/var/run/docker.sock"
NARROW = SandboxPolicy(network=False, memory_mb=64, processes=32, image=BASE_IMAGE)


class Ground:
    """A folder with a program, and an executor that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.take(os.environ)
        self._source = ""
        self._writing = Lock()

    def take(self, variables: Mapping[str, str]) -> None:
        """Start another run of agentci, with this environment."""
        self.variables = variables
        self.executor = DockerExecutor(variables)

    def run(
        self,
        source: str,
        *,
        stdin: bytes = b"",
        seconds: float = 60,
        environment: Mapping[str, str] | None = None,
        sandbox_policy: SandboxPolicy = NARROW,
        command: tuple[str, ...] = ("python3",),
        name: str = "ev.py",
    ) -> ProgramOutput:
        path = self.folder / name
        with self._writing:  # no container reads a file that another thread has just emptied
            if not path.exists() or path.read_text() != source:
                path.write_text(source)
                path.chmod(0o755)
            if self._source not in {"", source}:  # programs do not change during a run of agentci
                self.take(self.variables)
            self._source = source
        return self.executor.run(
            (*command, str(path)),
            stdin=stdin,
            timeout_seconds=seconds,
            cwd=self.folder,
            environment=environment or {},
            sandbox_policy=sandbox_policy,
        )

    def run_json(self, source: str, **given: Any) -> Any:
        """Run a program and return the JSON that it printed."""
        response = self.run(source, **given)
        assert response.exit_code == 0, response.stderr
        return json.loads(response.stdout)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    folder = tmp_path / "evaluator"
    folder.mkdir()
    yield Ground(folder)
    assert left_by(make_owner_label()) == []


def left_by(label: str) -> list[str]:
    """The remaining containers of a process."""
    return output_of("docker", "ps", "-aq", "--filter", f"label={OWNER_LABEL}={label}").split()


class TestProgram:
    def test_stdin_output_and_exit_code_are_unchanged(self, ground: Ground) -> None:
        response = ground.run(
            "import sys\ntext = sys.stdin.buffer.read()\nsys.stdout.buffer.write(text[::-1])\n"
            "print('a word', file=sys.stderr)\nsys.exit(7)",
            stdin=b"\xffbc\r\n",
        )
        assert response == ProgramOutput(stdout=b"\n\rcb\xff", stderr="a word\n", exit_code=7)

    def test_stdin_and_stdout_are_transferred_concurrently(self, ground: Ground) -> None:
        text = b"0123456789abcde\n" * 200_000
        assert ground.run("import sys\nsys.stdout.write(sys.stdin.read())", stdin=text) == (
            ProgramOutput(stdout=text, stderr="", exit_code=0)
        )

    def test_unread_stdin_does_not_block_program(self, ground: Ground) -> None:
        assert ground.run("print(1)", stdin=b"x" * 10_000_000).stdout == b"1\n"

    def test_program_finds_files_in_its_folder(self, ground: Ground) -> None:
        (ground.folder / "parts").mkdir()
        (ground.folder / "parts" / "words.py").write_text("WORD = open('data.txt').read()")
        (ground.folder / "data.txt").write_text("here")
        (ground.folder / "data.txt").chmod(0o600)
        source = "import json, os\nfrom parts.words import WORD\n"
        source += "print(json.dumps([WORD, __file__, os.getcwd(), os.listdir('.')]))"
        printed = ground.run_json(source)
        assert printed[:3] == ["here", "/evaluator/ev.py", "/evaluator"]
        assert sorted(printed[3]) == ["data.txt", "ev.py", "parts"]

    def test_executable_file_runs_without_interpreter(self, ground: Ground) -> None:
        response = ground.run(
            '#!/bin/sh\nread line; echo "$line"', stdin=b"yes\n", command=(), name="ev"
        )
        assert response.stdout == b"yes\n"

    def test_entry_point_of_image_is_ignored(self, ground: Ground) -> None:
        tag = f"agentci-test-{secrets.token_hex(4)}"
        dockerfile = f'FROM {BASE_IMAGE}\nENTRYPOINT ["false"]\nENV OF_IMAGE=1\n'
        subprocess.run(
            ["docker", "build", "-q", "-t", tag, "-"], input=dockerfile.encode(), check=True
        )
        try:
            printed = ground.run_json(
                "import json, os\nprint(json.dumps(os.environ['OF_IMAGE']))",
                sandbox_policy=SandboxPolicy(image=tag),
            )
        finally:
            output_of("docker", "rmi", tag)
        assert printed == "1"

    def test_command_missing_in_image_raises_error(self, ground: Ground) -> None:
        with pytest.raises(
            EvaluatorError,
            match=r"could not be started in a container:.*lacking.*contains what the program needs",
        ):
            ground.run("", command=("lacking",))
        if subprocess.run(
            ["docker", "run", "--rm", BASE_IMAGE, "which", "node"], capture_output=True, check=False
        ).returncode:
            with pytest.raises(EvaluatorError, match=r'"node": executable file not found'):
                ground.run("console.log(1)", command=("node",), name="ev.ts")


SECRETS = """
import glob, json, os, socket
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        return type(error).__name__
print(json.dumps({
    "environment": dict(os.environ),
    "environments": [read(path) for path in glob.glob("/proc/*/environ")],
    "uids": os.getresuid() + os.getresgid(), "groups": os.getgroups(),
    "status": read("/proc/self/status"), "mounts": read("/proc/self/mounts"),
    "socket": os.path.exists("/var/run/docker.sock"), "shadow": read("/etc/shadow"),
    "link": read("/evaluator/outside"), "git": os.path.exists("/evaluator/.git"),
    "processes": len(glob.glob("/proc/[0-9]*")), "host": read(HOST), "name": socket.gethostname(),
    "addresses": [name for _, name in socket.if_nameindex()],
}))
"""


class TestIsolation:
    @pytest.fixture
    def seen(self, ground: Ground, tmp_path: Path) -> Any:
        (tmp_path / "host.txt").write_text("of the host")
        (ground.folder / "outside").symlink_to(tmp_path / "host.txt")
        (ground.folder / ".git").mkdir()
        (ground.folder / ".git" / "config").write_text("token")
        ground.take(
            {
                **os.environ,
                "DOCKER_SECRET": "hush",
                "HTTPS_PROXY": "http://u:hush@h:1",
                "NO_PROXY": "*",
            }
        )
        environment = {"LANG": "de_DE.UTF-8", "KEY": "wanted", "PATH": "/nowhere", "HOME": "/root"}
        return ground.run_json(
            f"HOST = {str(tmp_path / 'host.txt')!r}\n{SECRETS}", environment=environment
        )

    def test_secrets_are_not_visible_to_program(self, seen: Any) -> None:
        assert "hush" not in json.dumps(seen)
        environment = seen["environment"]
        assert (environment["KEY"], environment["LANG"]) == ("wanted", "de_DE.UTF-8")
        assert (environment["HOME"], environment["TMPDIR"]) == ("/tmp", "/tmp")
        assert "/usr/bin" in environment["PATH"]
        assert not [
            name for name in environment if name.startswith(("DOCKER", "GITHUB", "AGENTCI"))
        ]

    def test_program_runs_as_nobody_without_privileges(self, seen: Any) -> None:
        assert (seen["uids"], seen["groups"]) == ([65534] * 6, [65534])
        assert "CapBnd:\t0000000000000000" in seen["status"]
        assert "NoNewPrivs:\t1" in seen["status"]
        assert seen["shadow"] == "PermissionError"

    def test_host_is_not_visible_to_program(self, seen: Any) -> None:
        assert (seen["host"], seen["link"]) == ("FileNotFoundError", "FileNotFoundError")
        assert (seen["socket"], seen["git"]) == (False, False)
        assert (seen["processes"], seen["name"]) == (1, "evaluator")

    def test_network_is_off_unless_allowed(self, seen: Any, ground: Ground) -> None:
        assert seen["addresses"] == ["lo"]
        with_network = SandboxPolicy(network=True, image=BASE_IMAGE)
        names = ground.run_json(
            "import json, socket\nprint(json.dumps([name for _, name in socket.if_nameindex()]))",
            sandbox_policy=with_network,
        )
        assert any(name.startswith("eth") for name in names)

    def test_only_tmp_is_writable(self, ground: Ground) -> None:
        source = """
import json
def write(path):
    try:
        with open(path, "w") as file:
            file.write("x")
        return ""
    except OSError as error:
        return error.strerror
print(json.dumps([write(path + "/x") for path in ("/tmp", "/evaluator", "/", "/var/tmp", "/root")]))
"""
        own, *others = ground.run_json(source)
        assert own == ""
        assert all(others)

    def test_files_of_one_check_are_invisible_to_next(self, ground: Ground) -> None:
        source = (
            "import os\nprint(os.listdir('/tmp'))\nopen('/tmp/x', 'w')\nopen('/dev/shm/x', 'w')"
        )
        assert [ground.run(source).stdout for _ in range(2)] == [b"[]\n", b"[]\n"]


class TestLimits:
    def test_timeout_kills_program(self, ground: Ground) -> None:
        source = (
            "import signal, sys, time\n"
            "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
            "print('still here', file=sys.stderr, flush=True)\ntime.sleep(600)"
        )
        for seconds in (2, 8, 32):  # a busy machine takes long to start a container
            with pytest.raises(EvaluatorError, match=rf"^timed out after {seconds} s") as caught:
                ground.run(source, seconds=seconds)
            if "still here" in str(caught.value):
                return
        pytest.fail("the error of a program that timed out does not show what it printed")

    def test_memory_limit_kills_program(self, ground: Ground) -> None:
        with pytest.raises(EvaluatorError, match=r"used more than its 64 MiB.*memory_mb"):
            ground.run("hoard = [bytearray(b'x' * 1_000_000) for _ in range(1000)]")

    def test_memory_limit_includes_files_in_tmp(self, ground: Ground) -> None:
        source = "file = open('/tmp/x', 'wb')\nwhile True: file.write(b'x' * 1_000_000)"
        try:
            response = ground.run(source)
        except EvaluatorError as error:
            assert "used more than its 64 MiB" in str(error)  # noqa: PT017 (either is fine)
        else:
            assert "No space left" in response.stderr

    def test_process_limit_stops_forks(self, ground: Ground) -> None:
        source = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        count += 1
except OSError as error:
    print(count, error.strerror)
"""
        count, _, why = ground.run(source).stdout.decode().partition(" ")
        assert int(count) < 32
        assert "temporarily unavailable" in why

    def test_output_limit_kills_program(self, ground: Ground) -> None:
        for stream in ("stdout", "stderr"):
            with pytest.raises(EvaluatorError, match=f"MiB to {stream} and was killed"):
                ground.run(f"import sys\nwhile True: sys.{stream}.write('x' * 100_000)")


class TestMissingResources:
    def test_missing_image_raises_error(self, ground: Ground) -> None:
        nowhere = SandboxPolicy(image="localhost:1/nobody/nothing:1")
        for _ in range(3):
            with pytest.raises(
                EvaluatorError, match=r"image `localhost:1/nobody/nothing:1` was not found.*pull"
            ) as error:
                ground.run("", sandbox_policy=nowhere)
            assert "\n" not in str(error.value)

    def test_unreachable_engine_raises_error(self, ground: Ground) -> None:
        ground.take({**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:1"})
        with pytest.raises(
            EvaluatorError, match=r"could not be run in a container: Cannot connect.*DOCKER_HOST"
        ):
            ground.run("")


class TestContainers:
    def test_many_containers_run_concurrently(self, ground: Ground) -> None:
        with ThreadPoolExecutor(max_workers=8) as pool:
            replies = [
                pool.submit(ground.run, "print(input())", stdin=b"%d\n" % each)
                for each in range(24)
            ]
            assert [int(response.result().stdout) for response in replies] == list(range(24))

    def test_stop_interrupts_all_containers(self, ground: Ground) -> None:
        with ThreadPoolExecutor(max_workers=4) as pool:
            runs = [pool.submit(ground.run, "import time\ntime.sleep(600)") for _ in range(4)]
            wait_until(lambda: len(left_by(make_owner_label())) == 4)
            ground.executor.stop()
            for each in runs:
                with pytest.raises(EvaluatorError, match=r"^was interrupted$"):
                    each.result()
        with pytest.raises(EvaluatorError, match=r"^was interrupted$"):
            ground.run("import time\ntime.sleep(600)")

    def test_removed_container_ends_its_run(self, ground: Ground) -> None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            run = pool.submit(ground.run, "import time\ntime.sleep(600)")
            wait_until(lambda: bool(left_by(make_owner_label())))
            wait_until(lambda: bool(running_for(os.getpid())))
            output_of("docker", "rm", "--force", "--volumes", *left_by(make_owner_label()))
            try:
                code = run.result().exit_code
            except EvaluatorError as error:
                assert "lost the connection" in str(error)  # noqa: PT017 (the container may be removed already)
            else:
                assert code == 128 + signal.SIGKILL

    def test_only_containers_of_ended_processes_are_removed(self, ground: Ground) -> None:
        place, process, start = make_owner_label().rsplit(" ", 2)
        gone = subprocess.Popen(["true"])
        gone.wait()
        labels = {
            "dead": f"{place} {gone.pid} {start}",
            "reused": f"{place} {process} 1",
            "elsewhere": f"other{place} {gone.pid} {start}",
            "odd": "nonsense",
            "init": f"{place} 1 {start_of_init()}",
        }
        names = {key: f"agentci-test-{secrets.token_hex(4)}" for key in labels}
        try:
            for key, label in labels.items():
                output_of(
                    "docker",
                    "create",
                    "--name",
                    names[key],
                    "--label",
                    f"{OWNER_LABEL}={label}",
                    BASE_IMAGE,
                    "true",
                )
            ground.run("")
            there = output_of("docker", "ps", "-a", "--format", "{{.Names}}").split()
            assert [key for key in labels if names[key] in there] == ["elsewhere", "odd", "init"]
        finally:
            subprocess.run(
                ["docker", "rm", "--force", "--volumes", *names.values()],
                capture_output=True,
                check=True,
            )

    def test_run_leaves_no_volume(self, ground: Ground) -> None:
        before = list_unused_volumes()
        ground.run("")
        # Another worker may be about to remove the volume of a container that has ended.
        wait_until(lambda: list_unused_volumes() <= before)


def list_unused_volumes() -> set[str]:
    return set(output_of("docker", "volume", "ls", "-q", "--filter", "dangling=true").split())


CONFIG = """\
defaults: {{executor: docker, image: "{image}", timeout: 600}}
evaluators:
- {{name: slow, type: code, path: evaluators/slow.py}}
traces: trace.json
"""


class TestCommandLine:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        (tmp_path / "evaluators").mkdir()
        (tmp_path / "eval_config.yaml").write_text(CONFIG.format(image=BASE_IMAGE))
        (tmp_path / "trace.json").write_text(otlp())
        return tmp_path

    def started(self, workspace: Path, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "agentci", "run"],
            cwd=workspace,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_run_with_docker_executor_passes(self, workspace: Path) -> None:
        (workspace / "evaluators/slow.py").write_text(
            "import json, os\nprint(json.dumps({'score': 1, 'details': dict(os.environ)}))"
        )
        process = self.started(workspace, GITHUB_TOKEN="hush", INPUT_KEY="hush")
        out, _ = process.communicate()
        assert process.returncode == 0, out
        report = (workspace / "agentci-results/results.json").read_text()
        assert "hush" not in report
        assert json.loads(report)["results"][0]["details"]["HOSTNAME"] == "evaluator"

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_cancelled_run_leaves_no_container(
        self, workspace: Path, number: int, code: int
    ) -> None:
        process = self.waiting(workspace)
        process.send_signal(number)
        out, _ = process.communicate()
        assert process.returncode == code, out
        assert running_for(process.pid) == []

    def test_container_of_killed_run_is_removed_by_next(
        self, workspace: Path, ground: Ground
    ) -> None:
        process = self.waiting(workspace)
        process.kill()
        process.communicate()
        assert len(running_for(process.pid)) == 1
        ground.run("")
        assert running_for(process.pid) == []

    def waiting(self, workspace: Path) -> subprocess.Popen[str]:
        """Start a run whose program does not end."""
        (workspace / "evaluators/slow.py").write_text("import time\ntime.sleep(600)")
        process = self.started(workspace)
        wait_until(lambda: bool(running_for(process.pid)))
        return process


def test_run_inside_container_needs_only_docker_socket(
    run_image: RunImage, workspace: Path
) -> None:
    folder = workspace / "evaluators"
    folder.mkdir()
    (folder / "slow.py").write_text("print('{\"score\": 1}')")
    (workspace / "eval_config.yaml").write_text(
        CONFIG.format(image=BASE_IMAGE).replace("trace.json", "agentevals/recordings/*")
    )
    program = shutil.which("docker")
    assert program is not None
    mounts = [f"{program}:/usr/local/bin/docker:ro", f"{SOCKET}:{SOCKET}"]
    options = [word for mount in mounts for word in ("--volume", mount)]
    done = run_image(workspace, "run", options=options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_docker_in_action_image_is_reported(run_image: RunImage, workspace: Path) -> None:
    (workspace / "ev.py").touch()
    config = CONFIG.format(image=BASE_IMAGE).replace("evaluators/slow.py", "ev.py")
    config = config.replace("trace.json", "agentevals/recordings/*")
    (workspace / "eval_config.yaml").write_text(config)
    done = run_image(workspace, "run")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "`docker` not found on PATH outside the workspace; install the Docker CLI" in done.stdout


def running_for(process: int) -> list[str]:
    """The running containers of a process on this machine."""
    form = f'{{{{.ID}}}} {{{{.Label "{OWNER_LABEL}"}}}}'
    listed = output_of("docker", "ps", "--filter", f"label={OWNER_LABEL}", "--format", form)
    return [line for line in listed.splitlines() if f" {process} " in line]


def start_of_init() -> str:
    return Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
