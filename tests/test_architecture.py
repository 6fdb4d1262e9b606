"""The shape of the house: what may import what, and how large a room may be."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGE = ROOT / "agentci"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 250

# From the ground up: a module imports from its own layer and from those before it.
LAYERS = (
    {"model", "sdk", "shims", "version"},
    {"errors"},
    {"text"},
    {"trial_scores", "repeats", "intervals", "dealings"},
    {"case_scores", "proofs", "similarity", "questions", "agreement"},
    {"comparison", "github", "telemetry", "metrics", "demands", "reasons"},
    {"gate"},
    {"formats", "dialects", "reporters"},
    {"config"},
    {"exchanges", "lockfile", "merging", "options", "spool", "workspace"},
    {"settings", "events"},
    {"zips"},
    {"http", "store", "checkout", "extensions"},
    {"sources", "runtimes", "executors", "github_api"},
    {"judges", "proxy"},
    {"evals_api"},
    {"environments"},
    {"library", "replies"},
    {"engines", "discovery", "locator", "sinks"},
    {"attachments", "feedback"},
    {"attempts", "suites", "scheduling", "checks", "pipeline", "progress", "publishing"},
    {"datasets", "eval_sets", "outputs", "recordings", "cases", "fingerprints", "labels"},
    {"preflight", "recorder", "courses"},
    {"agents", "baselines", "earlier_runs", "equipment", "grading_services", "seating", "sharding"},
    {"locking", "lockables"},
    {"commands"},
    {"process"},
    {"arguments", "usage", "testing"},
    {"cli", "action", "pytest"},
    {"__main__"},
)
PURE = {
    *("model", "errors", "text", "github", "telemetry", "metrics", "demands", "reasons"),
    *(
        "trial_scores",
        "repeats",
        "intervals",
        "dealings",
        "case_scores",
        "proofs",
        "gate",
        "questions",
    ),
    *("comparison", "similarity", "agreement"),
    *("formats", "dialects", "reporters", "config", "merging"),
}
OUTSIDE = {"os", "io", "subprocess", "socket", "time", "random", "requests", "shutil", "tempfile"}
EXTENSIONS = {"formats", "metrics", "dialects", "reporters", "runtimes", "executors", "sources"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
class TestEveryModule:
    def test_imports_nothing_from_above(self, module: Path) -> None:
        own = _layer(_part(module))
        assert [name for name in _imports(module) if _layer(name.split(".")[1]) > own] == []

    def test_is_small_enough_to_read(self, module: Path) -> None:
        assert len(module.read_text().splitlines()) <= MAX_LINES

    def test_opens_with_a_sentence_on_what_it_is_for(self, module: Path) -> None:
        assert ast.get_docstring(ast.parse(module.read_text()))


@pytest.mark.parametrize("package", sorted(PURE))
def test_the_middle_is_pure(package: str) -> None:
    modules = [module for module in MODULES if _part(module) == package]
    assert modules
    assert {
        _name(module): outside
        for module in modules
        if (outside := OUTSIDE & set(_foreign_imports(module)))
    } == {}


@pytest.mark.parametrize("package", sorted(EXTENSIONS))
def test_an_extension_knows_its_base_but_neither_its_siblings_nor_the_registry(
    package: str,
) -> None:
    registry = f"agentci.{package}.registry"
    importers = {
        _name(module)
        for module in MODULES
        if _part(module) == package and registry in _imports(module)
    }
    assert (PACKAGE / package / "registry.py").is_file()
    assert importers == set()


def test_what_is_pure_is_covered_in_full() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (held,) = re.findall(r"^PURE +:= (.+)$", makefile, re.MULTILINE)
    assert set(held.split(",")) == {
        f"agentci/{name}/*" if (PACKAGE / name).is_dir() else f"agentci/{name}.py"
        for name in PURE - {"config"}
    }


def test_the_picture_of_the_layers_is_what_is_held_here() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    picture = guide.partition("From the ground up")[2].split("```")[1]
    drawn = [set(re.split(r" {3,}", line)[0].split()) for line in picture.split("\n") if line]
    assert drawn == [layer - {"version"} for layer in LAYERS if layer != {"__main__"}]


def test_there_are_no_cycles() -> None:
    graph = {_name(module): set(_imports(module)) for module in MODULES}
    TopologicalSorter(graph).prepare()


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    for module in MODULES:
        if module.name == "__init__.py":
            assert len(ast.parse(module.read_text()).body) == 1, module


def _name(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part(module: Path) -> str:
    """The package or the module right below ``agentci``; the ground for its ``__init__``."""
    parts = _name(module).split(".")
    return parts[1] if len(parts) > 1 else "version"


def _layer(part: str) -> int:
    return next(index for index, parts in enumerate(LAYERS) if part in parts)


def _imports(module: Path) -> list[str]:
    return [name for name in _imported(module) if name.startswith("agentci.")]


def _foreign_imports(module: Path) -> list[str]:
    return [name.split(".")[0] for name in _imported(module) if not name.startswith("agentci")]


def _imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
