"""Judges at once and leaves a daemon, in a session of its own, that holds stdout."""

import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
os.wait()
print('{"score": 1.0}')
