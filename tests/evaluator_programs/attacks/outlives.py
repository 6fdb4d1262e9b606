"""Leaves daemons: each in a session of its own, without pipes and without an environment."""

import os
import sys
import time

from attack import SCENE, tell

reader, writer = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, writer)
            program = f"import os, time; os.write({writer}, b'x'); os.close({writer}); time.sleep(60)"
            os.set_inheritable(writer, True)
            os.execve(sys.executable, [sys.executable, "-I", "-c", program, SCENE["word"]], {})
        os._exit(0)
for _ in range(3):
    os.read(reader, 1)
tell([])
