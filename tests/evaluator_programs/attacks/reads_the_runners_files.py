import os
from pathlib import Path

from attack import SCENE, attempt

FOLDER = Path(SCENE["runner"])


def append():
    with (FOLDER / "set_env").open("a") as file:
        return file.write("PATH=/evil\n")


attempt(
    {
        "read": lambda: (FOLDER / "credentials").read_text(),
        "read what all may read": lambda: (FOLDER / "set_env").read_text(),
        "list": lambda: os.listdir(FOLDER),
        "append": append,
        "link": lambda: os.link(FOLDER / "credentials", Path(os.environ["TMPDIR"], "x")) or True,
        "rename": lambda: os.rename(FOLDER / "credentials", FOLDER / "y") or True,
        "chmod": lambda: os.chmod(FOLDER / "credentials", 0o666) or True,
        "another check's files": lambda: any(
            os.listdir(path) for path in Path(SCENE["temporary"]).glob("agentci-*/tmp")
            if not os.environ["TMPDIR"].startswith(str(path.parent))
        ),
    }
)
