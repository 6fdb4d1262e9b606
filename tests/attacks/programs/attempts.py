"""What the programs of attackers share: try acts, and report which of them had an effect."""

import ctypes
import json
import os
import sys

CONFIG = json.load(sys.stdin).get("config") or {}
LIBC = ctypes.CDLL(None, use_errno=True)
done, refused = {}, {}


def attempt(name, act):
    """Try an act, which has an effect if it neither raises nor returns None."""
    try:
        value = act()
    except BaseException as error:
        refused[name] = f"{type(error).__name__}: {error}"[:200]
    else:
        (refused if value is None else done)[name] = repr(value)[:200]


def syscall(number, *arguments):
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def report(**others):
    """Print what had an effect, as far as a result has room for it."""
    shown = dict(list(done.items())[:50])
    details = {**others, "attempts": len(done) + len(refused), "done": shown}
    print(json.dumps({"score": 1.0, "details": details | {"refused": dict(list(refused.items())[:100])}}))
