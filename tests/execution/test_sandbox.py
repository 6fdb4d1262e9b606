"""What a confinement comes to on machines of all kinds."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agentci.execution.allowed_paths import list_without_runners
from agentci.execution.child import seccomp
from agentci.execution.child.apply_sandbox import FIRST_USER, NOBODY_USER
from agentci.execution.executor_api import NO_LANDLOCK_WARNING, NOT_LINUX_WARNING, SandboxPolicy
from agentci.execution.sandbox import (
    ALL_PORTS_WARNING,
    NO_SECCOMP_WARNING,
    ROOT_WARNING,
    SHARED_MEMORY,
    SIGNALS_WARNING,
    TRUNCATE_WARNING,
    Sandbox,
    SandboxBuilder,
)

FACTS = {
    "system": "Linux",
    "users": FIRST_USER,
    "searches": True,
    "landlock": 7,
    "filters": True,
    "machine": "x86_64",
    "tasks": 1500,
    "root": os.geteuid() == 0,
    "searching": False,
}
TRUE = "/bin/true"


@pytest.fixture
def opened() -> Iterator[Path]:
    """A folder that everybody can read."""
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _cell(
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


def _jail(cell: Sandbox) -> Mapping[str, Any]:
    assert cell.restrictions is not None
    return cell.restrictions


def _is_within(path: str, paths: Mapping[bytes, int]) -> bool:
    return any(bytes(each) in paths for each in (Path(path), *Path(path).parents))


def _paths(cell: Sandbox) -> dict[bytes, int]:
    return dict(_jail(cell)["rules"])


class TestTheUser:
    def test_is_another_one_for_each_program_that_runs_at_a_time(self, opened: Path) -> None:
        users = [_jail(_cell(opened, number=number))["user"] for number in range(3)]
        assert users == [FIRST_USER + 1024, FIRST_USER + 1025, FIRST_USER + 1026]
        assert _cell(opened).has_own_user

    def test_may_search_closed_folders_where_landlock_says_what_can_be_read(
        self, opened: Path
    ) -> None:
        assert not _jail(_cell(opened))["searches"]
        opened.chmod(0o700)
        inside = opened / "inside"
        inside.mkdir()
        assert _jail(_cell(inside))["searches"]
        assert _cell(inside).limitations == ()

    @pytest.mark.parametrize("lacking", [{"searches": False}, {"landlock": 0}])
    @pytest.mark.parametrize("users", [FIRST_USER, NOBODY_USER])
    def test_is_ours_where_another_could_not_read(
        self, opened: Path, users: int, lacking: dict[str, Any]
    ) -> None:
        opened.chmod(0o700)
        cell = _cell(opened, users=users, **lacking)
        assert _jail(cell)["user"] is None
        assert not cell.has_own_user
        if os.geteuid() == 0:
            assert any(f"no other user can read {opened}" in each for each in cell.limitations)

    def test_is_nobody_where_there_are_few(self, opened: Path) -> None:
        cell = _cell(opened, users=NOBODY_USER)
        assert (_jail(cell)["user"], cell.has_own_user, cell.limitations) == (
            NOBODY_USER,
            False,
            (),
        )

    def test_is_ours_where_we_may_choose_none(self, opened: Path) -> None:
        cell = _cell(opened, users=None)
        assert _jail(cell)["user"] is None
        assert cell.limitations == ((ROOT_WARNING,) if os.geteuid() == 0 else ())


class TestShortcomings:
    @pytest.mark.parametrize(
        ("facts", "told"),
        [
            ({"landlock": 0}, NO_LANDLOCK_WARNING),
            ({"filters": False}, NO_SECCOMP_WARNING),
            ({"users": NOBODY_USER, "landlock": 5}, SIGNALS_WARNING),
            ({"users": NOBODY_USER, "landlock": 2}, TRUNCATE_WARNING),
            ({"users": None, "landlock": 1}, TRUNCATE_WARNING),
        ],
    )
    def test_are_told(self, opened: Path, facts: dict[str, Any], told: str) -> None:
        assert told in _cell(opened, **facts).limitations

    def test_are_none_that_an_own_user_makes_good(self, opened: Path) -> None:
        assert _cell(opened, landlock=1).limitations == ()
        assert TRUNCATE_WARNING not in _cell(opened, users=None, landlock=3).limitations

    def test_of_ports_are_told_where_a_program_may_reach_one(self, opened: Path) -> None:
        def told(**walls: Any) -> tuple[str, ...]:
            return _cell(opened, sandbox_policy=SandboxPolicy(**walls), landlock=3).limitations

        assert told(network=False, port=80) == (ALL_PORTS_WARNING,)
        assert told(network=True, port=80) == told(network=False) == ()

    def test_are_everything_on_other_systems(self, opened: Path) -> None:
        cell = _cell(opened, system="Darwin", users=None, landlock=0, filters=False)
        assert cell.limitations == (NOT_LINUX_WARNING,)

    def test_leave_out_what_cannot_be_had(self, opened: Path) -> None:
        jail = _jail(_cell(opened, landlock=0, filters=False))
        assert (jail["rules"], jail["filter"]) == (None, None)


class TestThePort:
    def test_is_the_only_one_where_there_is_no_network(self, opened: Path) -> None:
        held = _jail(_cell(opened, sandbox_policy=SandboxPolicy(network=False, port=80)))
        assert (held["port"], held["filter"]) == (
            80,
            seccomp.make_filter("x86_64", network=False, local=True, notify=True),
        )

    def test_is_one_of_many_where_there_is_a_network(self, opened: Path) -> None:
        free = _jail(_cell(opened, sandbox_policy=SandboxPolicy(port=80)))
        assert (free["port"], free["filter"]) == (
            None,
            seccomp.make_filter("x86_64", network=True, local=True),
        )


class TestFiles:
    def test_of_the_workspace_can_be_read_and_those_of_its_own_folder_written(
        self, opened: Path
    ) -> None:
        cell = _cell(opened, sandbox_policy=SandboxPolicy(readable=(opened / "evals",)))
        paths = _paths(cell)
        assert cell.scratch is not None
        assert paths[bytes(opened)] == paths[bytes(opened / "evals")] == paths[b"/usr"]
        assert paths[cell.scratch.encode()] > paths[b"/usr"]

    def test_of_a_workspace_that_is_everything_cannot(self) -> None:
        assert b"/" not in _paths(_cell(Path("/")))

    def test_in_shared_memory_are_for_who_can_be_cleared_up_after(self, opened: Path) -> None:
        assert SHARED_MEMORY in _paths(_cell(opened))
        assert SHARED_MEMORY not in _paths(_cell(opened, users=None))
        shares = SandboxPolicy(shares_memory=True)
        assert SHARED_MEMORY in _paths(_cell(opened, sandbox_policy=shares, users=None))

    def test_of_tools_below_a_home_are_those_of_version_managers(self, opened: Path) -> None:
        home = "/home/somebody"
        folders = (".nvm/versions/node/v22/bin", ".local/bin", "tools/bin", ".cargo/bin")
        path = ":".join(f"{home}/{folder}" for folder in folders)
        environment = {"HOME": home, "PATH": path, "SSL_CERT_FILE": "/corp/ca.pem"}
        paths = {each.decode() for each in _paths(_cell(opened, environment=environment))}
        assert {f"{home}/.nvm", f"{home}/.local/bin", f"{home}/tools/lib"} <= paths
        assert {f"{home}/.cargo/bin", "/corp/ca.pem"} <= paths
        assert not paths & {home, f"{home}/.local", f"{home}/.cargo", f"{home}/tools"}

    def test_of_an_interpreter_are_those_of_its_environment(self, opened: Path) -> None:
        for folder in ("venv/bin", "files"):
            (opened / folder).mkdir(parents=True)
            (opened / folder / "python").write_text("")
            (opened / folder / "python").chmod(0o755)
        environment, files = opened / "venv", opened / "files"

        def readable(folder: Path) -> set[bytes]:
            sandbox_policy = SandboxPolicy(interpreter=str(folder / "python"))
            return set(_paths(_cell(Path("/usr"), sandbox_policy=sandbox_policy)))

        beside = {"bin", "lib", "pyvenv.cfg"}
        assert {bytes(environment / name) for name in beside} <= readable(environment / "bin")
        assert bytes(files / "python") in readable(files)
        assert bytes(files) not in readable(files)

    def test_of_the_whole_system_are_not_meant_by_a_search_path(self, opened: Path) -> None:
        home = "/home/me"
        environment = {"PATH": "/:relative::/opt/tools", "PYTHONPATH": home, "HOME": home}
        paths = _paths(_cell(opened, environment=environment))
        assert not {b"/", b"relative", b"/home/me"} & set(paths)

    def test_of_the_system_include_the_settings_of_its_interpreters(self, opened: Path) -> None:
        paths = set(_paths(_cell(opened)))
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
    def test_of_the_system_are_none_that_are_root_s_alone(
        self, opened: Path, path: str, *, readable: bool
    ) -> None:
        assert _is_within(os.path.realpath(path), _paths(_cell(opened))) is readable

    def test_of_a_runner_beside_the_tools_are_none(self, tmp_path: Path) -> None:
        for name in ("tools", "actions-runner/bin", "runners/one", "runners/two"):
            (tmp_path / name).mkdir(parents=True)
        assert list_without_runners(tmp_path) == [str(tmp_path)]
        (tmp_path / "actions-runner" / ".runner").write_text("{}")
        (tmp_path / "runners" / "two" / ".runner").write_text("{}")
        assert list_without_runners(tmp_path) == [str(tmp_path / "tools")]
        assert list_without_runners(tmp_path / "nothing") == [str(tmp_path / "nothing")]

    def test_of_our_packages_are_for_our_python_alone(self, opened: Path) -> None:
        facts = SandboxBuilder(capabilities=FACTS).build(
            SandboxPolicy(),
            command=(sys.executable,),
            cwd=opened,
            environment={},
            timeout_seconds=1,
            number=0,
        )
        packages = next(each for each in sys.path if each.endswith("site-packages"))
        assert _is_within(packages, _paths(facts))
        assert not _is_within(packages, _paths(_cell(opened)))


class TestTheEnvironment:
    def test_leads_home_to_a_folder_of_its_own(self, opened: Path) -> None:
        environment = {"HOME": "/home/me", "XDG_CACHE_HOME": "/home/me/.cache", "LANG": "C"}
        cell = _cell(opened, environment=environment)
        assert cell.environment == {
            "LANG": "C",
            "HOME": f"{cell.scratch}/home",
            "TMPDIR": f"{cell.scratch}/tmp",
            "TEMP": f"{cell.scratch}/tmp",
            "TMP": f"{cell.scratch}/tmp",
            "PYTHONUSERBASE": "/home/me/.local",
            "USER": "agentci",
            "LOGNAME": "agentci",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }

    def test_names_a_user_where_ours_names_none(self, opened: Path) -> None:
        cell = _cell(opened, environment={"USER": "me"})
        assert (cell.environment["USER"], cell.environment["LOGNAME"]) == ("me", "agentci")

    def test_says_where_that_folder_is_made(self, opened: Path) -> None:
        cell = _cell(opened, environment={"TMPDIR": str(opened)})
        assert cell.scratch is not None
        assert Path(cell.scratch).parent == opened
        elsewhere = _cell(opened, environment={"TMPDIR": "/nonexistent"})
        assert elsewhere.scratch is not None
        assert elsewhere.scratch.startswith("/tmp/agentci-")


class TestLimits:
    def test_are_what_was_asked_for(self, opened: Path) -> None:
        sandbox_policy = SandboxPolicy(memory_mb=100, processes=7, file_mb=2)
        limits = _jail(_cell(opened, sandbox_policy=sandbox_policy))["limits"]
        assert limits["RLIMIT_DATA"] == 100 * 1024**2
        assert limits["RLIMIT_NPROC"] == 7
        assert limits["RLIMIT_FSIZE"] == 2 * 1024**2
        assert limits["RLIMIT_CORE"] == 1
        assert limits["RLIMIT_CPU"] == int(2.5 * (os.cpu_count() or 1)) + 1

    def test_make_room_for_other_processes_of_the_same_user(self, opened: Path) -> None:
        limits = _jail(_cell(opened, users=None))["limits"]
        assert limits["RLIMIT_NPROC"] == 512 + 1500 + 128 * (os.cpu_count() or 1)
