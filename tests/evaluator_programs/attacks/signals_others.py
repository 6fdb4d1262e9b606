"""Signals whoever does not descend from it; signal 0 only asks whether it may."""

import os
from pathlib import Path

from attack import SCENE, attempt


def all_others():
    own = {os.getpid()}
    reached = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) in own:
            continue
        try:
            os.kill(int(process.name), 0)
            reached.append(int(process.name))
        except OSError:
            pass
    return reached


attempt(
    {
        "agentci": lambda: os.kill(SCENE["pid"], 0) or 1,
        "its ward": lambda: os.kill(os.getppid(), 0) or 1,
        "everybody": all_others,
    }
)
