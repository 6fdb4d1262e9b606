"""What of this package every environment has: what evaluators import, and nothing else."""

import compileall
import sysconfig
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[2]
SHIPPED: Final = ("__init__.py", "py.typed", "sdk.py")


@cache
def contents() -> dict[str, bytes]:
    """Content by path below site-packages."""
    return {f"{PACKAGE.name}/{name}": (PACKAGE / name).read_bytes() for name in SHIPPED}


def ship(environment: Path) -> None:
    """Put it into a virtual environment of the Python that runs us.

    Raises:
        OSError: it cannot be written.
    """
    base = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", base))
    for name, content in contents().items():
        file = packages / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    compileall.compile_dir(packages / PACKAGE.name, quiet=2)
