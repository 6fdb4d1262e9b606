"""Where nothing else ends what programs left behind, we do as its parent."""

import subprocess
import sys

import pytest

from tests.helpers.support import ROOT

# The system lists a process as dead of which the first thread has ended.
WITHOUT_ITS_FIRST_THREAD = """
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
ENDS_IT = """
import subprocess, sys
from agentci.execution.child_process.orphan_processes import become_subreaper, kill_children
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans are not ours")
def test_a_child_whose_first_thread_is_gone_is_ended_unless_it_is_spared() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS_IT, WITHOUT_ITS_FIRST_THREAD],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout.split() == ["True", "None", "-9"], done.stderr
