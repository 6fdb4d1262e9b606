import os
from pathlib import Path

from attack import attempt


def grow(size):
    with Path(os.environ["TMPDIR"], "large").open("wb") as file:
        file.truncate(size)
    return True


attempt({"a large file": lambda: grow(65 * 1024**2)})
