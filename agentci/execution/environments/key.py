"""Compute the key of an environment: evaluators with equal keys share one environment."""

import hashlib
import json
import py_compile
import sys
import sysconfig
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

from agentci._util.files import FILE_MODE, give_to_owner, make_folder, remove_path, set_mode
from agentci.execution.environments.requirements import Requirements

PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[2]
SDK_FILES: Final = ("__init__.py", "py.typed", "sdk.py")


@cache
def read_sdk_files() -> dict[str, bytes]:
    """Read the files of agentci's evaluator SDK, by path below site-packages."""
    return {
        f"{PACKAGE_FOLDER.name}/{name}": (PACKAGE_FOLDER / name).read_bytes() for name in SDK_FILES
    }


def install_sdk(environment: Path, owner: Path | None) -> None:
    """Write the evaluator SDK into a virtual environment of the Python that runs agentci.

    A package may have left anything in its place.

    Args:
        environment: the environment.
        owner: a path whose owner gets the files.

    Raises:
        OSError: a file cannot be written.
    """
    base = {"base": str(environment), "platbase": str(environment)}
    package = Path(sysconfig.get_path("purelib", "venv", base), PACKAGE_FOLDER.name)
    for folder in (package, package / "__pycache__"):
        if folder.is_symlink() or not folder.is_dir():
            remove_path(folder)
            make_folder(folder, owner)
    for name, content in read_sdk_files().items():
        file = package / Path(name).name
        compiled = Path(cache_from_source(str(file)))
        for path in (file, compiled):
            remove_path(path)
        file.write_bytes(content)
        made = [file]
        if file.suffix == ".py":
            py_compile.compile(str(file), cfile=str(compiled))
            made.append(compiled)
        for path in made:
            set_mode(path, FILE_MODE)
            give_to_owner(path, owner)


# Version of an environment's content other than its packages; raise it to rebuild all environments.
KEY_FORMAT: Final = 2


def compute_environment_key(requirements: Requirements) -> str:
    """Return the hexadecimal key of the environment for ``requirements`` on this machine.

    Comments, blanks and the order of lines do not change the key.

    Raises:
        EvaluatorError: the requirements contain a line that is not allowed.
    """
    facts = {
        "format": KEY_FORMAT,
        "python": find_base_python(),
        "lines": sorted(set(requirements.install_lines())),
        "locked": bool(requirements.locked),
        "source": requirements.allow_source,
        "shipped": {
            name: hashlib.sha256(data).hexdigest() for name, data in read_sdk_files().items()
        },
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def find_base_python() -> tuple[str, ...]:
    """Identify the Python that an environment depends on; a change makes the environment invalid.

    Returns:
        Its version, ABI, platform and executable.
    """
    import sysconfig  # noqa: PLC0415 (needed only if something is installed)

    base = str(getattr(sys, "_base_executable", sys.executable))  # Python has no public name for it
    return (sys.version, str(sysconfig.get_config_var("SOABI")), sysconfig.get_platform(), base)
