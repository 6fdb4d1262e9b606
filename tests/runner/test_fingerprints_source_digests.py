"""Digests of the files that evaluators name, with the modules that they reach."""

from pathlib import Path

import pytest

from agentci._util.workspace import find_workspace
from agentci.evaluators.evaluator import FileContents
from agentci.runner import fingerprints
from agentci.runner.fingerprints import SourceDigests

FILES = {
    "own.py": "import help\nfrom pack import inner, text\nfrom pack.deep import leaf\n"
    "def one(): return help.a() + inner.b()\n"
    "def two(): return leaf.c(text)\n",
    "help.py": "def a(): return 1\ndef unused(): return 2\n",
    "pack/__init__.py": "from .words import text\nfrom pack import other\n",
    "pack/words.py": "text = 'x'\n",
    "pack/other.py": "def d(): return 1\n",
    "pack/inner.py": "from . import words\ndef b(): return words.text\ndef unused(): return 1\n",
    "pack/deep/leaf.py": "import own\ndef c(text): return text\n",
    "pack/unused.py": "",
    "data.json": "{}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def digest(folder: Path, *names: str, function: str = "", home: Path | None = None) -> list[str]:
    digests = SourceDigests(find_workspace(folder, root=folder))
    paths = (str(folder / name) for name in names)
    return digests.compute(
        FileContents(*paths, function=function, home=None if home is None else str(home))
    )


def find_reached(folder: Path, function: str = "") -> set[str]:
    """The files whose change changes the digest of ``own.py``."""
    reached = set()
    for name, text in FILES.items():
        before = digest(folder, "own.py", function=function)
        (folder / name).write_text(f"{text}\nprint()\n")
        if digest(folder, "own.py", function=function) != before:
            reached.add(name)
        (folder / name).write_text(text)
    return reached


def test_imported_modules_of_workspace_count(folder: Path) -> None:
    every = {name for name in FILES if name.endswith(".py")}
    assert find_reached(folder) == every - {"pack/unused.py"}
    assert find_reached(folder, "one") == every - {"pack/unused.py"}


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("help.py", "return 1", "return 3", {"one", ""}),
        ("help.py", "return 2", "return 3", set()),
        ("pack/inner.py", "return words", "return 1, words", {"one", ""}),
        ("pack/inner.py", "return 1", "return 2", set()),
        ("pack/words.py", "'x'", "'y'", {"one", "two", ""}),
        ("pack/deep/leaf.py", "return text", "return 1", {"two", ""}),
        ("pack/other.py", "return 1", "return 2", set()),
        ("own.py", "return leaf", "return 1, leaf", {"two", ""}),
        ("data.json", "{}", "[]", set()),
    ],
)
def test_only_reached_parts_of_modules_count(
    folder: Path, file: str, old: str, new: str, changed: set[str]
) -> None:
    functions = ("one", "two", "")
    before = {name: digest(folder, "own.py", function=name) for name in functions}
    (folder / file).write_text(FILES[file].replace(old, new))
    after = {name: digest(folder, "own.py", function=name) for name in functions}
    assert {name for name in functions if before[name] != after[name]} == changed


def test_all_used_submodules_count(folder: Path) -> None:
    (folder / "check.py").write_text(
        "import pack\ndef one(): return pack.inner.b(pack.unused, 1)\n"
    )
    before = digest(folder, "check.py", function="one")
    (folder / "pack" / "unused.py").write_text("x = 1\n")
    between = digest(folder, "check.py", function="one")
    (folder / "pack" / "inner.py").write_text("y = 1\n")
    assert (
        len({str(each) for each in (before, between, digest(folder, "check.py", function="one"))})
        == 3
    )


def test_digest_does_not_depend_on_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "deep" / "folder"
    for name, text in FILES.items():
        path = other / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert digest(folder, "own.py") == digest(other, "own.py")


def test_other_files_count_with_their_content(folder: Path) -> None:
    found = digest(folder, "data.json", "missing.json", "pack", "help.py")
    assert len(found) == 2
    (folder / "data.json").write_text("[]")
    assert digest(folder, "data.json", "help.py") != found


@pytest.mark.parametrize("text", ["def (", "return 1"])
def test_invalid_module_counts_as_a_whole(folder: Path, text: str) -> None:
    (folder / "help.py").write_text(text)
    before = digest(folder, "own.py", function="one")
    (folder / "help.py").write_text(f"{text} ")
    assert digest(folder, "own.py", function="one") != before


def test_relative_import_beyond_the_root_is_ignored(folder: Path) -> None:
    (folder / "own.py").write_text(f"from {'.' * 60} import words\n")
    assert len(digest(folder, "own.py")) == 1


def test_binary_module_counts_as_a_whole(folder: Path) -> None:
    (folder / "own.py").write_bytes(b"\xff1")
    before = digest(folder, "own.py")
    (folder / "own.py").write_bytes(b"\xff2")
    assert digest(folder, "own.py") != before


def test_files_outside_of_workspace_and_repository_are_not_read(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    for each in (work, home):
        each.mkdir()
    (work / "own.py").symlink_to(home / "own.py")
    (work / "check.py").write_text("import own\n")
    found = []
    for content in ("print(1)", "print(2)"):
        (home / "own.py").write_text(content)
        found.append((digest(work, "own.py"), digest(work, "check.py")))
        found.append((digest(home, "own.py", home=home), digest(work, "own.py", home=home)))
    assert found[0] == found[2]
    assert found[0][0] == [""]
    assert found[1][1] != found[3][1]


def test_number_of_modules_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "MAX_MODULES", 1)
    assert find_reached(folder) == {"own.py"}


def test_large_module_counts_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "MAX_MODULE_BYTES", 10)
    assert find_reached(folder, "one") == {"own.py"}


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ('import {a} from "./help.js"', "help.js"),
        ('import {a} from "./typed.js"', "typed.ts"),
        ("const help = require('../lib/help')", "../lib/help.js"),
        ("await import ( './help.mjs' )", "help.mjs"),
        ('import "./help.ts"', "help.ts"),
        ('export * from "./first.js"', "second.js"),
    ],
)
def test_imported_scripts_count(tmp_path: Path, line: str, file: str) -> None:
    folder = tmp_path / "own"
    for each in (folder, tmp_path / "lib"):
        each.mkdir()
    (folder / "own.js").write_text(f"{line}\nimport fs from 'fs'\nimport './missing.js'\n")
    (folder / "first.js").write_text("import './own.js'; import './second.js'\n")
    (folder / "unused.js").write_text("1")
    (folder / file).write_text("1")
    before = digest(tmp_path, "own/own.js")
    (folder / "unused.js").write_text("2")
    assert digest(tmp_path, "own/own.js") == before
    (folder / file).write_text("2")
    assert digest(tmp_path, "own/own.js") != before


def read(folder: Path, *names: str, function: str = "") -> str:
    digests = SourceDigests(find_workspace(folder, root=folder))
    paths = (str(folder / name) for name in names)
    return "\n".join(digests.read(FileContents(*paths, function=function)))


def test_code_is_read_with_what_it_imports(folder: Path) -> None:
    text = read(folder, "own.py", "data.json", "missing.json")
    assert all(each in text for each in ("def two()", "def a()", "def c(text)", "{}"))


def test_only_code_that_a_function_reaches_is_read(folder: Path) -> None:
    text = read(folder, "own.py", function="one")
    assert "def a()" in text
    assert "def two()" not in text


def test_module_that_cannot_be_parsed_is_read_whole(folder: Path) -> None:
    (folder / "help.py").write_bytes(b"def (\n# tool_calls \xff")
    assert "# tool_calls" in read(folder, "own.py", function="one")
