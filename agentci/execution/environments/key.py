"""The key of an environment: what evaluators must have in common to share one."""

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
    """Content by path below site-packages."""
    return {
        f"{PACKAGE_FOLDER.name}/{name}": (PACKAGE_FOLDER / name).read_bytes() for name in SDK_FILES
    }


def install_sdk(environment: Path) -> None:
    """Put it into a virtual environment of the Python that runs us.

    Raises:
        OSError: it cannot be written.
    """
    base = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", base))
    for name, content in read_sdk_files().items():
        file = packages / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    compileall.compile_dir(packages / PACKAGE_FOLDER.name, quiet=2)


# Of what an environment consists of beside its packages; a higher one makes all of them anew.
KEY_FORMAT: Final = 1


def compute_environment_key(requirements: Requirements) -> str:
    """Name the environment that ``requirements`` need on this machine, in hexadecimal.

    Comments, blanks and the order of lines make no difference.

    Raises:
        EvaluatorError: there is something in them that is not to be installed.
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
    """What an environment does not survive a change of: the Python that it leans on."""
    import sysconfig  # noqa: PLC0415 (only needed where something is installed)

    base = str(getattr(sys, "_base_executable", sys.executable))  # Python has no public name for it
    return (sys.version, str(sysconfig.get_config_var("SOABI")), sysconfig.get_platform(), base)
