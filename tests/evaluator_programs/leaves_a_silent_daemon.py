"""Judges, and leaves a daemon that has closed everything: nothing tells of it."""

import os
import time

reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.closerange(0, writer + 1)
    time.sleep(300)
    os._exit(0)
os.close(writer)
os.read(reader, 1)  # until the daemon is one
print('{"score": 1.0}')
