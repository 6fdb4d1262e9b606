"""Evaluators reach no process, socket, memory or file outside the sandbox, and leave nothing."""

import contextlib
import platform
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.documented import (
    FILES,
    HARMLESS_CALLS,
    HARMLESS_SOCKETS,
    PRIORITIES,
    with_shared_user,
)
from tests.attacks.job import CODE_ENTRY, PROGRAMS, VARIABLE_SECRET, Job, details_of, result_of
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran
from tests.helpers.waiting import find_processes

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@attack("J1", "container", "user", "root")
def test_signals_reach_no_other_process(job: Job) -> None:
    job.add_program("signals_others")
    ran = job.run()
    found = details_of(ran)
    assert (ran.code, found["done"]) == (0, {})
    assert found["others"] > 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
@attack("J2", "container", "user", "root")
def test_system_calls_lead_nowhere(job: Job) -> None:
    job.add_program("calls_the_kernel")
    found = details_of(job.run())
    allowed = HARMLESS_CALLS | with_shared_user(job.mode, PRIORITIES)
    assert found["attempts"] > 60
    assert found["done"].keys() - allowed == set()


@attack("J3", "container", "user", "root")
def test_no_socket_family_is_open_without_network(job: Job) -> None:
    job.add_program("opens_sockets", network=False)
    found = details_of(job.run())
    assert found["attempts"] > 100
    assert found["done"].keys() - HARMLESS_SOCKETS == set()


@contextlib.contextmanager
def listen(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(1)
        yield


@attack("J4", "container", "root")
def test_sockets_of_root_are_closed_despite_network(job: Job) -> None:
    path, abstract = str(job.top / "engine.sock"), f"\0attack-{uuid.uuid4().hex}"
    with listen(path), listen(abstract):
        Path(path).chmod(0o660)
        job.add_program("connects_to_local_sockets", config={"addresses": [path, abstract]})
        found = details_of(job.run())
    assert (found["attempts"], found["done"]) == (4, {})


@attack("J5", "user")
def test_abstract_socket_of_same_user_is_closed(job: Job) -> None:
    abstract = f"\0attack-{uuid.uuid4().hex}"
    with listen(abstract):
        job.add_program("connects_to_local_sockets", config={"addresses": [abstract]})
        found = details_of(job.run())
    assert (found["attempts"], found["done"]) == (2, {})


@attack("J6", "container", "user")
def test_program_inherits_only_standard_streams(make_job: MakeJob) -> None:
    for isolation in ("fork", "spawn"):
        job = make_job()
        job.add_program("lists_descriptors", isolation=isolation)
        found = details_of(job.run())["descriptors"]
        own = {name for name, target in found.items() if not target.startswith("/proc/")}
        assert own == {"0", "1", "2"}, (isolation, found)


@attack("J7", "container", "user")
def test_memory_holds_no_secret_of_others(job: Job) -> None:
    question = "question-of-another-check-0123456789"
    secrets = {VARIABLE_SECRET: "s3cr3t-of-a-var", question: "question-of-ano"}
    config = {
        "starts": list(secrets.values()),
        "reversed": [text.removeprefix(start)[::-1] for text, start in secrets.items()],
    }
    reader = "import os\nprint('{\"score\": %d}' % bool(os.environ['MY_SECRET']))\n"
    job.add_program("searches_memory", config=config)
    job.write({"first.py": reader, "first.json": otlp(question, calls=(), trace=2)})
    searcher = {**CODE_ENTRY, "path": "searches_memory.py", "config": config}
    first = {**CODE_ENTRY, "name": "first", "path": "first.py", "env": ["MY_SECRET"]}
    job.configure(first, searcher, traces=["first.json", "trace.json"])
    allowed = {"env-allow": "MY_SECRET"} if job.mode == "container" else {}
    ran = job.run(inputs={"jobs": "1", **allowed})
    assert ran.code == 0, ran.out + ran.err
    found = [each for each in ran.results["results"] if each["evaluator"] == "ev"]
    hits = {each["file"]: {*each["details"]["hits"]} for each in found}
    assert all(each["details"]["size"] > 1_000_000 for each in found)
    # The check of the first trace got the question itself.
    assert (hits["trace.json"], hits["first.json"] - {1}) == (set(), set())


@attack("J8", "container", "user", "root")
def test_daemons_end_with_their_check(job: Job) -> None:
    word = f"daemon-{uuid.uuid4().hex}"
    job.add_program("starts_daemons", config={"word": word})
    ran = job.run()
    assert details_of(ran)["daemons"] > 0
    assert find_processes(word) == []


def run_to_its_end(job: Job, program: str, **fields: Any) -> Ran:
    """Run a program that must be stopped; its check is errored."""
    job.add_program(program, **fields)
    ran = job.run()
    assert (ran.code, result_of(ran)["status"]) == (3, "errored"), ran.out
    return ran


@attack("J9", "container", "user")
def test_fork_bomb_ends_with_its_timeout(job: Job) -> None:
    run_to_its_end(job, "forks_and_forks", timeout=3, processes=200)
    assert find_processes(str(job.workspace)) == []


@attack("J10", "user")
def test_endless_output_is_stopped(make_job: MakeJob) -> None:
    for descriptor in (1, 2):
        job = make_job()
        job.write({"ev.py": f"import os\nwhile True: os.write({descriptor}, bytes(65536))\n"})
        job.configure({**CODE_ENTRY, "timeout": 120})
        ran = job.run()
        assert (ran.code, result_of(ran)["status"]) == (3, "errored"), ran.out
        assert "timed out" not in result_of(ran)["reason"]


@attack("J11", "container", "user")
def test_full_private_folder_is_stopped_and_removed(make_job: MakeJob) -> None:
    for program in ("writes_one_large_file", "writes_many_files"):
        job = make_job()
        run_to_its_end(job, program, timeout=5)
        assert [*job.temporary.iterdir()] == []
        job.remove()
    job = make_job()
    job.add_program("nests_folders")
    job.run()
    assert [*job.temporary.iterdir()] == []


@attack("J12", "container")
def test_deleted_open_files_end_with_the_check(job: Job) -> None:
    """Documented: they do not count toward the limit of the folder, only each file's size does."""
    job.add_program("writes_deleted_files", config={"folders": ["", "/dev/shm"]}, timeout=120)
    free = shutil.disk_usage(job.top).free
    result_of(job.run())
    assert shutil.disk_usage(job.top).free > free - 1024**3


@attack("J13", "container", "user", "root")
def test_shared_memory_is_left_to_no_other_check(job: Job) -> None:
    name = f"/dev/shm/attack-{uuid.uuid4().hex}"
    program = (
        "import json, os, sys\n"
        f"seen = os.path.exists({name!r})\n"
        f"open({name!r}, 'w').write('x')\n"
        "print(json.dumps({'score': 1.0, 'details': {'seen': seen}}))\n"
    )
    job.write({"ev.py": program, "second.json": otlp("Again", calls=(), trace=2)})
    job.configure(CODE_ENTRY, traces=["trace.json", "second.json"])
    ran = job.run(inputs={"jobs": "1"})
    seen = [each["details"]["seen"] for each in ran.results["results"]]
    assert (ran.code, seen, Path(name).exists()) == (0, [False, False], False)


@attack("C9", "container", "user", "root")
def test_workspace_and_outputs_are_read_only(job: Job) -> None:
    names = [
        *("agentci-results/results.json", ".agentci/cache/responses.sqlite3", "agentci.lock"),
        *("agentci.yaml", "writes_everywhere.py", ".git/config", ".git/hooks/post-checkout", "new"),
    ]
    word = f"written-{uuid.uuid4().hex}"
    outside = [str(job.commands / name) for name in ("output", "env", "path", "state", "summary")]
    outside += [str(job.home / word), str(job.top / word)]
    job.add_program(
        "writes_everywhere", config={"names": names, "outside": outside, "word": word}, cache=True
    )
    job.write({"agentci.lock": ""})
    config = (job.workspace / "agentci.yaml").read_text()
    job.commit()
    job.run()
    job.write({"agentci.yaml": config.replace('"cache": true', '"cache": false')})
    found = details_of(job.run())
    done = {effect.split()[0] for effect in found["done"]}
    assert found["attempts"] > 40
    assert done - with_shared_user(job.mode, FILES) == set()
    assert not (job.workspace / "new").exists()
    assert not Path("/tmp", word).exists()


@needs_compiler
@attack("R1", "container", "root")
def test_race_with_clearing_of_shared_memory_changes_no_file_of_root(job: Job) -> None:
    victim, shared = job.top / "victim", Path("/dev/shm", f"attack-{uuid.uuid4().hex}")
    victim.write_text("of root, readable by all")
    victim.chmod(0o644)
    definitions = {"VICTIM": f'"{victim}"', "FOLDER": f'"{shared}"', "ROUNDS": "20"}
    subprocess.run(
        [
            *("gcc", "-O2", "-o", str(job.workspace / "racer")),
            *(f"-D{name}={value}" for name, value in definitions.items()),
            str(PROGRAMS / "swaps_links.c"),
        ],
        check=True,
    )
    job.write({"maker.py": (PROGRAMS / "makes_shared_folder.py").read_text()})
    maker = {"type": "code", "path": "maker.py", "config": {"folder": str(shared)}, "repeat": 22}
    racer = {"name": "racer", "type": "code", "path": "racer", "timeout": 200}
    job.configure(racer, {**maker, "name": "maker"})
    try:
        ran = job.run(inputs={"jobs": "2"})
    finally:
        shutil.rmtree(shared, ignore_errors=True)
    statuses = {each["evaluator"]: each["status"] for each in ran.results["results"]}
    assert victim.stat().st_mode & 0o777 == 0o644
    # Where shared memory has no folders, there is no race, and the maker is errored.
    assert statuses in ({"racer": "passed", "maker": each} for each in ("passed", "errored"))
