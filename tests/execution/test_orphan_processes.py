"""As a subreaper, agentci kills the processes that programs leave behind."""

import subprocess
import sys

import pytest

from tests.helpers.support import ROOT

# The system lists a process as a zombie after its first thread has ended.
WITHOUT_FIRST_THREAD = """
import ctypes, os, pathlib, threading, time
def stay():
    first_thread = pathlib.Path(f"/proc/self/task/{os.getpid()}/stat")
    while ") Z " not in first_thread.read_text():
        time.sleep(0.01)
    print("stays", flush=True)
    time.sleep(300)
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""
KILLS_CHILD = """
import subprocess, sys
from agentci.execution.local import become_subreaper, kill_children
print(become_subreaper())
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
kill_children(excluded=[child.pid])
print(child.poll())
kill_children(excluded=[])
try:
    print(child.wait())
finally:
    child.kill()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_child_without_first_thread_is_killed_unless_excluded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLS_CHILD, WITHOUT_FIRST_THREAD],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout.split() == ["True", "None", "-9"], done.stderr
