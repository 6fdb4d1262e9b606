"""An environment on disk: the folder that its manifest names, as the manifest describes it."""

import json
import os
from pathlib import Path
from typing import Any

from agentci.environments.installers import python_in
from agentci.environments.manifest import MANIFEST, differences
from agentci.text import clip


class DamagedError(Exception):
    """What is there cannot be used; says why, as the end of a sentence."""


def find(home: Path) -> Path | None:
    """The verified environment in ``home``, None where none was completed.

    Raises:
        DamagedError: one was, and is not what it was.
    """
    try:
        content = (home / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(f"{MANIFEST} cannot be read: {error.strerror}") from None
    try:
        manifest = json.loads(content)
        folder = home / Path(manifest["folder"]).name
        _verify(folder, manifest["files"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedError(f"{MANIFEST} is not as it was written") from None
    except OSError as error:
        raise DamagedError(str(error)) from None
    return folder


def _verify(folder: Path, files: dict[str, Any]) -> None:
    changed = differences(folder, files)
    if changed:
        raise DamagedError(f"changed since: {', '.join(clip.listed(changed, 3))}")
    if not os.access(python_in(folder), os.X_OK):
        raise DamagedError(f"its Python is gone: {python_in(folder).resolve()}")
