import os
import time
from pathlib import Path

from attack import tell

for number in range(4):
    with Path(os.environ["HOME"], f"large{number}").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 60 * 1024**2)
time.sleep(5)
tell(["files without end"])
