import os
from pathlib import Path

from attack import SCENE, attempt


def write(folder):
    path = Path(folder, "written-by-an-attack")
    path.write_text("x")
    return path.unlink() is None


def overwrite():
    with open(__file__, "a") as file:
        return file.write("\n") or True


attempt(
    {
        "workspace": lambda: write(SCENE["workspace"]),
        "own folder": lambda: write(Path(__file__).parent),
        "own file": overwrite,
        "/tmp": lambda: write("/tmp"),
        "/var/tmp": lambda: write("/var/tmp"),
        "/": lambda: write("/"),
        "beside": lambda: write(Path(os.environ["TMPDIR"]).parent.parent),
        "home": lambda: write(SCENE["home"]),
        "rename": lambda: os.rename(SCENE["workspace"], SCENE["workspace"] + "2") or True,
    }
)
