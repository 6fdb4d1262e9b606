"""Packages on the module search path, as if they were installed."""

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

_NUMBERS = itertools.count(1)


def install(folder: Path, group: str, points: Mapping[str, str], *, module: str) -> str:
    """Install a package of one module with entry points to its objects.

    Returns:
        The package's name, which is unique because modules are imported only once.
    """
    package = f"of-others-{next(_NUMBERS)}"
    name = package.replace("-", "_")
    (folder / f"{name}.py").write_text(module)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    objects = {point: f"{name}:{each}" if each else name for point, each in points.items()}
    lines = [f"{point} = {each}\n" for point, each in objects.items()]
    (info / "entry_points.txt").write_text("".join([f"[{group}]\n", *lines]))
    return package


def copy_msgspec(folder: Path) -> str:
    """Copy msgspec, on which our values are based, to a folder without other packages.

    For interpreters without our packages; the folder goes on their module search path.
    """
    shutil.copytree(Path(msgspec.__file__).parent, folder / "msgspec")
    return str(folder)
