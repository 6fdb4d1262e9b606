import os
from pathlib import Path

from attack import attempt

PLACES = {
    name: Path(folder)
    for name, folder in {
        "its folder": os.environ["TMPDIR"],
        "home": os.environ["HOME"],
        "shared memory": "/dev/shm",
        "/tmp": "/tmp",
        "/var/tmp": "/var/tmp",
    }.items()
}
attempt(
    {name: (path / "left-by-an-attack").exists for name, path in PLACES.items()}
)
