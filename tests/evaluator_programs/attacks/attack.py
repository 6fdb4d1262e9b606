"""What the attacks share: what they are told, and how they tell what they have reached."""

import json
import sys

SCENE = json.loads(sys.stdin.buffer.read() or b"{}") if __name__ != "__main__" else {}


def attempt(attempts):
    """Try all; those that raise nothing and return something have reached what they wanted."""
    reached, refused = [], {}
    for name, act in attempts.items():
        try:
            if act():
                reached.append(name)
            else:
                refused[name] = "came to nothing"
        except BaseException as error:
            refused[name] = f"{type(error).__name__}: {error}"
    tell(reached, refused)


def tell(reached, refused=None):
    print(json.dumps({"score": 1.0, "details": {"reached": reached, "refused": refused or {}}}))
