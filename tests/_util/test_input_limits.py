"""Limits on the processor time and the memory that reading an input takes, in real processes."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agentci._util.workspace import add_input_size, limit_input
from agentci.errors import InputError
from tests.helpers.support import make_environment_with_input_limits

START = """
import os, resource, signal, threading, time
from agentci._util.workspace import add_input_size, enable_input_limits, limit_input
from agentci.errors import InputError
enable_input_limits(os.environ)

def seconds_left():
    return signal.getitimer(signal.ITIMER_PROF)[0]

def memory_limit():
    return resource.getrlimit(resource.RLIMIT_DATA)[0]

def show(act):
    try:
        with limit_input("a.json"):
            act()
        print("read")
    except InputError as error:
        print(error)

def work():
    while True:
        pass
"""


# Coverage holds a lock that an exception from a signal handler would leave closed.
def _run(program: str, factor: str = "") -> str:
    """What a program prints, with the limits multiplied by ``factor``."""
    ran = subprocess.run(
        [sys.executable, "-c", START + program],
        env=make_environment_with_input_limits(factor),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout


START_OF_ERROR = "a.json:1: reading this file and what it names takes too much"
HINT = "(make it smaller, or raise the limits with AGENTCI_INPUT_LIMITS=4)"
TOO_SLOW = f"{START_OF_ERROR} processor time {HINT}\n"


def test_endless_work_ends_with_the_name_of_the_input() -> None:
    program = "show(work)\nshow(lambda: None)\nprint(seconds_left())\n"
    assert _run(program, "0.002") == f"{TOO_SLOW}read\n0.0\n"


def test_error_handlers_do_not_catch_the_limit() -> None:
    program = """
def swallow():
    while True:
        try:
            work()
        except Exception:
            pass
show(swallow)
"""
    assert _run(program, "0.002") == TOO_SLOW


def test_limit_reached_while_reading_fails_does_not_escape() -> None:
    # The signal arrives inside max(), and can only be handled when the block has been left.
    program = """
from itertools import chain
for _ in range(3):
    try:
        with limit_input("a.json"):
            max(chain(range(10**7), [""]))
    except TypeError:
        print("TypeError")
print(seconds_left())
"""
    assert _run(program, "0.0001") == "TypeError\nTypeError\nTypeError\n0.0\n"


def test_waiting_takes_no_processor_time() -> None:
    assert _run("show(lambda: time.sleep(0.5))", "0.002") == "read\n"


def test_memory_is_limited_while_reading() -> None:
    program = """
before = memory_limit()
show(lambda: bytearray(300 * 1024**2))
print(memory_limit() == before, len(bytearray(300 * 1024**2)))
"""
    line = f"{START_OF_ERROR} memory {HINT}"
    assert _run(program, "0.1") == f"{line}\nTrue {300 * 1024**2}\n"


def test_limits_grow_with_the_size_of_the_input() -> None:
    program = """
with limit_input("a.json", size=1024**2):
    before = memory_limit()
    print(round(seconds_left()))
    add_input_size(1024**2)
    print(round(seconds_left()), memory_limit() - before)
"""
    assert _run(program) == f"65\n70 {32 * 1024**2}\n"


def test_input_inside_another_has_limits_of_its_own() -> None:
    program = """
with limit_input("a.yaml"):
    add_input_size(1024**2)
    with limit_input("b.json"):
        print(round(seconds_left()))
        add_input_size(2 * 1024**2)
        with limit_input("c.json"):
            add_input_size(1024**2)
            print(round(seconds_left()))
        print(round(seconds_left()))
    print(round(seconds_left()))
print(seconds_left())
"""
    assert _run(program) == "60\n65\n75\n80\n0.0\n"


def test_other_threads_have_no_limits() -> None:
    program = """
def act():
    with limit_input("a.json"):
        add_input_size(1)
        print(seconds_left())
thread = threading.Thread(target=act)
thread.start()
thread.join()
"""
    assert _run(program) == "0.0\n"


def test_limit_of_the_user_is_not_raised() -> None:
    program = """
_, hard = resource.getrlimit(resource.RLIMIT_DATA)
resource.setrlimit(resource.RLIMIT_DATA, (1024**3, hard))
with limit_input("a.json"):
    add_input_size(1024**3)
    print(memory_limit() == 1024**3)
print(memory_limit() == 1024**3)
"""
    assert _run(program) == "True\nTrue\n"


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "inf", "x"])
def test_factor_must_be_a_positive_number(tmp_path: Path, factor: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "agentci", "validate"],
        cwd=tmp_path,
        env=make_environment_with_input_limits(factor),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.endswith("error: AGENTCI_INPUT_LIMITS must be a positive number\n")


def test_without_limits_only_errors_are_explained() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limit_input("a.json"):
        add_input_size(1)
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with pytest.raises(InputError, match="too much memory"), limit_input("a.json"):
        raise MemoryError
    with pytest.raises(InputError, match="nested too deeply"), limit_input("a.json"):
        raise RecursionError
