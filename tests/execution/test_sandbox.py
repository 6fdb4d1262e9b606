"""The sandbox that results from a policy on machines with different capabilities."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agentci._util.workspace import trust_path
from agentci.execution.child import seccomp
from agentci.execution.child.apply_sandbox import FIRST_USER, NOBODY_USER, SHARED_MEMORY
from agentci.execution.executor_api import NO_LANDLOCK_WARNING, NOT_LINUX_WARNING, SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.sandbox import (
    ALL_PORTS_WARNING,
    NO_SECCOMP_WARNING,
    ROOT_WARNING,
    SIGNALS_WARNING,
    TRUNCATE_WARNING,
    Sandbox,
    SandboxBuilder,
    list_without_runners,
)
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

FACTS = {
    "system": "Linux",
    "first_user": FIRST_USER,
    "grants_read_search": True,
    "landlock": 7,
    "filters": True,
    "machine": "x86_64",
    "tasks": 1500,
    "root": os.geteuid() == 0,
    "has_read_search": False,
    "private_memory": False,
}
TRUE = "/bin/true"
# Uses a lock and shared memory, then tries to make entries that these do not need.
SHARED_MEMORY_PROGRAM = """
import multiprocessing, os
from multiprocessing.shared_memory import SharedMemory
name = f"/dev/shm/test-{os.getpid()}"
def attempt(what, act):
    try:
        act()
    except OSError:
        return
    print(what)
attempt("lock", multiprocessing.Lock)
def share():
    memory = SharedMemory(create=True, size=10)
    memory.close()
    memory.unlink()
attempt("memory", share)
attempt("folder", lambda: os.mkdir(name))
attempt("link", lambda: os.symlink("/etc/passwd", name))
attempt("pipe", lambda: os.mkfifo(name))
"""


@pytest.fixture
def opened() -> Iterator[Path]:
    """A folder that all users can read."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _build(
    cwd: Path,
    *,
    sandbox_policy: SandboxPolicy | None = None,
    environment: Mapping[str, str] | None = None,
    number: int = 0,
    **facts: Any,
) -> Sandbox:
    return SandboxBuilder(capabilities={**FACTS, **facts}, run=1).build(
        sandbox_policy or SandboxPolicy(),
        command=(TRUE,),
        cwd=cwd,
        environment=environment or {},
        timeout_seconds=2.5,
        number=number,
    )


def _restrictions(sandbox: Sandbox) -> Mapping[str, Any]:
    assert sandbox.restrictions is not None
    return sandbox.restrictions


def _is_within(path: str, paths: Mapping[bytes, int]) -> bool:
    return any(bytes(each) in paths for each in (Path(path), *Path(path).parents))


def _paths(sandbox: Sandbox) -> dict[bytes, int]:
    return dict(_restrictions(sandbox)["rules"])


class TestUser:
    def test_concurrent_programs_run_as_different_users(self, opened: Path) -> None:
        users = [_restrictions(_build(opened, number=number))["user"] for number in range(3)]
        assert users == [FIRST_USER + 1024, FIRST_USER + 1025, FIRST_USER + 1026]
        assert _build(opened).has_own_user

    def test_private_workspace_is_searchable_under_landlock(self, opened: Path) -> None:
        assert not _restrictions(_build(opened))["keeps_read_search"]
        opened.chmod(0o700)
        inside = opened / "inside"
        inside.mkdir()
        assert _restrictions(_build(inside))["keeps_read_search"]
        assert _build(inside).limitations == ()

    @pytest.mark.parametrize("lacking", [{"grants_read_search": False}, {"landlock": 0}])
    @pytest.mark.parametrize("first_user", [FIRST_USER, NOBODY_USER])
    def test_user_is_unchanged_if_workspace_is_private(
        self, opened: Path, first_user: int, lacking: dict[str, Any]
    ) -> None:
        opened.chmod(0o700)
        sandbox = _build(opened, first_user=first_user, **lacking)
        assert _restrictions(sandbox)["user"] is None
        assert not sandbox.has_own_user
        if os.geteuid() == 0:
            assert any(f"no other user can read {opened}" in each for each in sandbox.limitations)

    def test_user_is_nobody_if_few_users_exist(self, opened: Path) -> None:
        sandbox = _build(opened, first_user=NOBODY_USER)
        assert (_restrictions(sandbox)["user"], sandbox.has_own_user, sandbox.limitations) == (
            NOBODY_USER,
            False,
            (),
        )

    def test_user_is_unchanged_if_switching_is_impossible(self, opened: Path) -> None:
        sandbox = _build(opened, first_user=None)
        assert _restrictions(sandbox)["user"] is None
        assert sandbox.limitations == ((ROOT_WARNING,) if os.geteuid() == 0 else ())


class TestLimitations:
    @pytest.mark.parametrize(
        ("facts", "warning"),
        [
            ({"landlock": 0}, NO_LANDLOCK_WARNING),
            ({"filters": False}, NO_SECCOMP_WARNING),
            ({"first_user": NOBODY_USER, "landlock": 5}, SIGNALS_WARNING),
            ({"first_user": NOBODY_USER, "landlock": 2}, TRUNCATE_WARNING),
            ({"first_user": None, "landlock": 1}, TRUNCATE_WARNING),
        ],
    )
    def test_missing_kernel_feature_is_a_limitation(
        self, opened: Path, facts: dict[str, Any], warning: str
    ) -> None:
        assert warning in _build(opened, **facts).limitations

    def test_own_user_removes_limitations_of_old_landlock(self, opened: Path) -> None:
        assert _build(opened, landlock=1).limitations == ()
        assert TRUNCATE_WARNING not in _build(opened, first_user=None, landlock=3).limitations

    def test_port_without_landlock_port_rules_is_a_limitation(self, opened: Path) -> None:
        def limitations(**policy: Any) -> tuple[str, ...]:
            return _build(opened, sandbox_policy=SandboxPolicy(**policy), landlock=3).limitations

        assert limitations(network=False, port=80) == (ALL_PORTS_WARNING,)
        assert limitations(network=True, port=80) == limitations(network=False) == ()

    def test_system_other_than_linux_is_only_limitation(self, opened: Path) -> None:
        sandbox = _build(opened, system="Darwin", first_user=None, landlock=0, filters=False)
        assert sandbox.limitations == (NOT_LINUX_WARNING,)

    def test_unsupported_rules_are_omitted(self, opened: Path) -> None:
        restrictions = _restrictions(_build(opened, landlock=0, filters=False))
        assert (restrictions["rules"], restrictions["filter"]) == (None, None)


class TestPort:
    def test_port_without_network_is_restricted(self, opened: Path) -> None:
        held = _restrictions(_build(opened, sandbox_policy=SandboxPolicy(network=False, port=80)))
        assert (held["port"], held["filter"]) == (
            80,
            seccomp.make_filter("x86_64", network=False, local=True, notify=True),
        )

    def test_port_with_network_is_not_restricted(self, opened: Path) -> None:
        free = _restrictions(_build(opened, sandbox_policy=SandboxPolicy(port=80)))
        assert (free["port"], free["filter"]) == (
            None,
            seccomp.make_filter("x86_64", network=True, local=True),
        )


class TestFiles:
    def test_workspace_is_readable_and_scratch_folder_writable(self, opened: Path) -> None:
        sandbox = _build(
            opened, sandbox_policy=SandboxPolicy(readable=(trust_path(opened / "evals"),))
        )
        paths = _paths(sandbox)
        assert sandbox.scratch is not None
        assert paths[bytes(opened)] == paths[bytes(opened / "evals")] == paths[b"/usr"]
        assert paths[sandbox.scratch.encode()] > paths[b"/usr"]

    def test_root_folder_as_workspace_is_not_readable(self) -> None:
        assert b"/" not in _paths(_build(Path("/")))

    def test_shared_memory_needs_own_user_or_policy(self, opened: Path) -> None:
        assert SHARED_MEMORY in _paths(_build(opened))
        assert SHARED_MEMORY not in _paths(_build(opened, first_user=None))
        shares = SandboxPolicy(shares_memory=True)
        assert SHARED_MEMORY in _paths(_build(opened, sandbox_policy=shares, first_user=None))

    def test_shared_memory_is_private_where_it_could_not_be_cleared(self, opened: Path) -> None:
        shares = SandboxPolicy(shares_memory=True)
        for policy, facts, is_private in (
            (shares, {"first_user": None, "private_memory": True}, True),
            (shares, {"first_user": None, "private_memory": False}, False),
            (shares, {"first_user": None, "private_memory": True, "has_read_search": True}, False),
            (shares, {"private_memory": True}, False),  # its own user's files are removed
            (SandboxPolicy(), {"first_user": None, "private_memory": True}, False),
        ):
            sandbox = _build(opened, sandbox_policy=policy, **facts)
            assert _restrictions(sandbox)["private_memory"] is is_private, facts

    def test_shared_memory_has_only_files(self, opened: Path) -> None:
        executor = LocalExecutor()
        ran = executor.run(
            (sys.executable, "-P", "-c", SHARED_MEMORY_PROGRAM),
            stdin=b"",
            timeout_seconds=NO_TIMEOUT_SECONDS,
            cwd=opened,
            environment={},
            sandbox_policy=SandboxPolicy(shares_memory=True),
        )
        executor.stop()
        if NO_LANDLOCK_WARNING in executor.limitations():
            pytest.skip(NO_LANDLOCK_WARNING)
        assert ran.stdout.decode().split() == ["lock", "memory"], ran.stderr

    def test_only_writable_folder_of_policy_is_writable(self, opened: Path) -> None:
        folder = opened / "environment"
        folder.mkdir()
        policy = SandboxPolicy(writable=folder, home_files=((".config/x", b"setting"),))
        sandbox = _build(opened, sandbox_policy=policy)
        assert _paths(sandbox)[bytes(folder)] > _paths(sandbox)[bytes(opened)]
        start_request = sandbox.make_start_request((TRUE,), opened)
        assert start_request["writable"] == bytes(folder)
        assert start_request["home_files"] == [(b".config/x", b"setting")]

    def test_only_tool_folders_in_home_are_readable(self, opened: Path) -> None:
        home = "/home/somebody"
        folders = (".nvm/versions/node/v22/bin", ".local/bin", "tools/bin", ".cargo/bin")
        path = ":".join(f"{home}/{folder}" for folder in folders)
        environment = {"HOME": home, "PATH": path, "SSL_CERT_FILE": "/corp/ca.pem"}
        paths = {each.decode() for each in _paths(_build(opened, environment=environment))}
        assert {f"{home}/.nvm", f"{home}/.local/bin", f"{home}/tools/lib"} <= paths
        assert {f"{home}/.cargo/bin", "/corp/ca.pem"} <= paths
        assert not paths & {home, f"{home}/.local", f"{home}/.cargo", f"{home}/tools"}

    def test_virtual_environment_of_interpreter_is_readable(self, opened: Path) -> None:
        for folder in ("venv/bin", "files"):
            (opened / folder).mkdir(parents=True)
            (opened / folder / "python").write_text("")
            (opened / folder / "python").chmod(0o755)
        environment, files = opened / "venv", opened / "files"

        def readable(folder: Path) -> set[bytes]:
            sandbox_policy = SandboxPolicy(interpreter=str(folder / "python"))
            return set(_paths(_build(Path("/usr"), sandbox_policy=sandbox_policy)))

        beside = {"bin", "lib", "pyvenv.cfg"}
        assert {bytes(environment / name) for name in beside} <= readable(environment / "bin")
        assert bytes(files / "python") in readable(files)
        assert bytes(files) not in readable(files)

    def test_broad_search_path_entries_are_not_readable(self, opened: Path) -> None:
        home = "/home/me"
        environment = {"PATH": "/:relative::/opt/tools", "PYTHONPATH": home, "HOME": home}
        paths = _paths(_build(opened, environment=environment))
        assert not {b"/", b"relative", b"/home/me"} & set(paths)

    def test_settings_of_system_interpreters_are_readable(self, opened: Path) -> None:
        paths = set(_paths(_build(opened)))
        settings = {bytes(path) for path in Path("/etc").glob("java-*-openjdk")}
        assert {b"/etc/perl", b"/etc/magic", *settings} <= paths
        assert not {b"/etc", b"/etc/shadow", b"/etc/gitconfig"} & paths

    @pytest.mark.parametrize(
        ("path", "readable"),
        [
            ("/etc/ssl/certs", True),
            ("/etc/ssl/openssl.cnf", True),
            ("/etc/pki/tls/certs", True),
            ("/sys/fs/cgroup", True),
            ("/sys/devices/system/cpu/online", True),
            ("/etc/ssl/private", False),
            ("/etc/pki/tls/private", False),
            ("/etc/pki/consumer", False),
            ("/sys/kernel/tracing", False),
            ("/sys/kernel/debug", False),
            ("/sys/firmware", False),
        ],
    )
    def test_only_public_system_folders_are_readable(
        self, opened: Path, path: str, *, readable: bool
    ) -> None:
        assert _is_within(os.path.realpath(path), _paths(_build(opened))) is readable

    def test_github_runner_folders_are_not_readable(self, tmp_path: Path) -> None:
        for name in ("tools", "actions-runner/bin", "runners/one", "runners/two"):
            (tmp_path / name).mkdir(parents=True)
        assert list_without_runners(tmp_path) == [str(tmp_path)]
        (tmp_path / "actions-runner" / ".runner").write_text("{}")
        (tmp_path / "runners" / "two" / ".runner").write_text("{}")
        assert list_without_runners(tmp_path) == [str(tmp_path / "tools")]
        assert list_without_runners(tmp_path / "nothing") == [str(tmp_path / "nothing")]

    @pytest.mark.parametrize("command", [(sys.executable,), ("/usr/bin/nice", sys.executable, "x")])
    def test_our_packages_are_readable_only_by_our_python(
        self, opened: Path, command: tuple[str, ...]
    ) -> None:
        facts = SandboxBuilder(capabilities=FACTS).build(
            SandboxPolicy(),
            command=command,
            cwd=opened,
            environment={},
            timeout_seconds=1,
            number=0,
        )
        packages = next(each for each in sys.path if each.endswith("site-packages"))
        assert _is_within(packages, _paths(facts))
        assert not _is_within(packages, _paths(_build(opened)))


class TestEnvironment:
    def test_home_is_in_scratch_folder(self, opened: Path) -> None:
        environment = {"HOME": "/home/me", "XDG_CACHE_HOME": "/home/me/.cache", "LANG": "C"}
        sandbox = _build(opened, environment=environment)
        assert sandbox.environment == {
            "LANG": "C",
            "HOME": f"{sandbox.scratch}/home",
            "TMPDIR": f"{sandbox.scratch}/tmp",
            "TEMP": f"{sandbox.scratch}/tmp",
            "TMP": f"{sandbox.scratch}/tmp",
            "PYTHONUSERBASE": "/home/me/.local",
            "USER": "agentci",
            "LOGNAME": "agentci",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }

    def test_missing_user_variable_is_filled(self, opened: Path) -> None:
        sandbox = _build(opened, environment={"USER": "me"})
        assert (sandbox.environment["USER"], sandbox.environment["LOGNAME"]) == ("me", "agentci")

    def test_scratch_folder_is_in_tmpdir(self, opened: Path) -> None:
        sandbox = _build(opened, environment={"TMPDIR": str(opened)})
        assert sandbox.scratch is not None
        assert Path(sandbox.scratch).parent == opened
        elsewhere = _build(opened, environment={"TMPDIR": "/nonexistent"})
        assert elsewhere.scratch is not None
        assert elsewhere.scratch.startswith("/tmp/agentci-")


class TestLimits:
    def test_resource_limits_match_policy(self, opened: Path) -> None:
        sandbox_policy = SandboxPolicy(memory_mb=100, processes=7, file_mb=2)
        limits = _restrictions(_build(opened, sandbox_policy=sandbox_policy))["limits"]
        assert limits["RLIMIT_DATA"] == 100 * 1024**2
        assert limits["RLIMIT_NPROC"] == 7
        assert limits["RLIMIT_FSIZE"] == 2 * 1024**2
        assert limits["RLIMIT_CORE"] == 1
        assert limits["RLIMIT_CPU"] == int(2.5 * (os.cpu_count() or 1)) + 1

    def test_process_limit_includes_existing_processes(self, opened: Path) -> None:
        limits = _restrictions(_build(opened, first_user=None))["limits"]
        assert limits["RLIMIT_NPROC"] == 512 + 1500 + 128 * (os.cpu_count() or 1)
