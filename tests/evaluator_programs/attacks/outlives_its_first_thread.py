"""Leaves daemons of which only a second thread lives: the system lists them as dead."""

import os
import sys

from attack import SCENE, tell

PROGRAM = """\
import ctypes, os, sys, threading, time
def stay():
    time.sleep(0.2)
    os.write({writer}, b"x")
    os.close({writer})
    time.sleep(60)
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""

reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.closerange(0, writer)
    os.set_inheritable(writer, True)
    program = PROGRAM.format(writer=writer)
    os.execve(sys.executable, [sys.executable, "-I", "-c", program, SCENE["word"]], {})
os.close(writer)
os.read(reader, 1)
tell([])
