"""Rules for imports and modules. Each test lists the violations."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers.modules import MODULES, PACKAGE, read_module
from tests.helpers.support import ROOT

# Bottom up: a package imports from itself and from those before it.
ORDER = (
    *("version", "model", "sdk", "errors", "_util", "recordings", "result_files", "evaluators"),
    *(
        "config",
        "gate",
        "reports",
        "execution",
        "remote",
        "extend",
        "judges",
        "runner",
        "record",
        "github",
        "cli",
        "pytest",
    ),
    "__main__",
)
# Values to values: no network, process, clock, environment or opening of paths.
PURE = (
    *("agentci.model", "agentci.errors", "agentci._util.text", "agentci.recordings"),
    *(
        "agentci.result_files",
        "agentci.evaluators",
        "agentci.config",
        "agentci.gate",
        "agentci.reports",
    ),
)
# They find files and read settings for the other, pure modules of their package.
READERS = {"agentci.config.discovery", "agentci.config.agentv.files"}
OUTSIDE = {"os", "io", "subprocess", "socket", "time", "random", "requests", "shutil", "tempfile"}
EXTENSIBLE = (
    *("recordings", "result_files", "evaluators", "reports"),
    *("execution", "remote/sources"),
)


def test_only_workspace_makes_resolved_paths() -> None:
    makers = {
        str(path.relative_to(PACKAGE)) for path in MODULES if "ResolvedPath(" in path.read_text()
    }
    assert makers == {"_util/workspace.py"}


def test_packages_import_only_from_those_below() -> None:
    assert [
        (name, imported)
        for name, module in _modules().items()
        for imported in _imports(module)
        if _rank(imported) > _rank(name)
    ] == []


def test_there_are_no_import_cycles() -> None:
    TopologicalSorter(
        {name: set(_imports(module)) for name, module in _modules().items()}
    ).prepare()


def test_every_module_has_a_docstring() -> None:
    assert [each for each in MODULES if not read_module(each).has_docstring] == []


def test_class_names_are_unique() -> None:
    defined = Counter(
        name
        for module in MODULES
        if module.name != "sdk.py"  # shipped as a single file, with the names of agentevals' SDK
        for name in re.findall(r"^\s*class (\w+)[(:]", module.read_text(), re.MULTILINE)
    )
    assert [name for name, times in defined.items() if times > 1] == []


def test_pure_packages_do_not_import_io() -> None:
    assert {
        name: outside
        for name, module in _modules().items()
        if name.startswith(PURE) and name not in READERS
        if (outside := OUTSIDE & set(_foreign_imports(module)))
    } == {}


@pytest.mark.parametrize("package", EXTENSIBLE)
def test_extensions_do_not_import_their_registry(package: str) -> None:
    registry = f"agentci.{package.replace('/', '.')}.registry"
    assert (PACKAGE / package / "registry.py").is_file()
    assert [
        module.name
        for module in (PACKAGE / package).glob("*.py")
        if registry in set(_imports(module))
    ] == []


def test_contributing_table_has_import_order() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", guide, re.MULTILINE)
    assert rows == [name for name in ORDER if name not in {"version", "__main__"}]


@cache
def _modules() -> dict[str, Path]:
    return {_name(module): module for module in MODULES}


def _name(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _rank(name: str) -> int:
    return ORDER.index((*name.split("."), "version")[1])


def _imports(module: Path) -> list[str]:
    return [name for name in _imported(module) if name.startswith("agentci.")]


def _foreign_imports(module: Path) -> list[str]:
    return [name.split(".")[0] for name in _imported(module) if not name.startswith("agentci")]


@cache
def _imported(module: Path) -> tuple[str, ...]:
    return tuple(_list_imported(module))


def _list_imported(module: Path) -> Iterator[str]:
    for name, member in read_module(module).imports:
        full = f"{name}.{member}"
        yield full if full in _modules() else name
