"""Compute the key of an environment: evaluators with equal keys share one environment."""

import compileall
import hashlib
import json
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Final

from agentci.execution.environments.requirements import Requirements

PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[2]
SDK_FILES: Final = ("__init__.py", "py.typed", "sdk.py")


@cache
def read_sdk_files() -> dict[str, bytes]:
    """Read the files of agentci's evaluator SDK, by path below site-packages."""
    return {
        f"{PACKAGE_FOLDER.name}/{name}": (PACKAGE_FOLDER / name).read_bytes() for name in SDK_FILES
    }


def install_sdk(environment: Path) -> None:
    """Write the evaluator SDK into a virtual environment of the Python that runs agentci.

    Raises:
        OSError: a file cannot be written.
    """
    base = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", base))
    for name, content in read_sdk_files().items():
        file = packages / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    compileall.compile_dir(packages / PACKAGE_FOLDER.name, quiet=2)


# Version of an environment's content other than its packages; raise it to rebuild all environments.
KEY_FORMAT: Final = 1


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
