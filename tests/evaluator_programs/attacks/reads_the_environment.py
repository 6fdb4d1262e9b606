from pathlib import Path

from attack import SCENE, attempt

NEEDLE = SCENE["secret"].encode()


def anywhere():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if NEEDLE in (process / "environ").read_bytes():
                return True
        except OSError:
            pass
    return False


attempt(
    {
        "parent": lambda: NEEDLE in Path(f"/proc/{SCENE['pid']}/environ").read_bytes(),
        "anywhere": anywhere,
    }
)
