import os

from attack import SCENE, attempt


def write(number):
    descriptor = os.open(f"/proc/{SCENE['pid']}/fd/{number}", os.O_WRONLY)
    return os.write(descriptor, b"::error::forged\n")


attempt({"stdout": lambda: write(1), "stderr": lambda: write(2)})
