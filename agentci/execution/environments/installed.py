"""An environment on disk: the folder that its manifest names, as the manifest describes it."""

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci._util.text import truncate
from agentci.execution.environments.installers import python_in
from agentci.execution.environments.manifest import MANIFEST, differences

# What cannot be read for one of these may be whole all the same.
SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAX_NAMES: Final = 3


class DamagedError(Exception):
    """What is there cannot be used; says why, as the end of a sentence."""


def find(home: Path) -> Path | None:
    """The verified environment in ``home``, None where none was completed.

    Raises:
        DamagedError: one was, and is not what it was.
        OSError: the machine is short of something.
    """
    try:
        content = (home / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _told(error, f"{MANIFEST} cannot be read") from None
    try:
        manifest = json.loads(content)
        folder = home / Path(manifest["folder"]).name
        _verify(folder, manifest["files"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedError(f"{MANIFEST} is not as it was written") from None
    except OSError as error:
        raise _told(error, f"{error.filename} cannot be read") from None
    return folder


def _verify(folder: Path, files: Mapping[str, str]) -> None:
    changed = differences(folder, files)
    if changed:
        raise DamagedError(f"changed since: {', '.join(truncate.listed(changed, MAX_NAMES))}")
    if not os.access(python_in(folder), os.X_OK):
        raise DamagedError(f"its Python is gone: {python_in(folder).resolve()}")


def _told(error: OSError, what: str) -> Exception:
    return error if error.errno in SHORTAGES else DamagedError(f"{what}: {error.strerror}")
