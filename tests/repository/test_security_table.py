"""docs/security.md names each library that reads foreign input in agentci's own process."""

import ast
import re
import sys
from pathlib import Path

from tests.helpers.support import ROOT

PACKAGE = ROOT / "agentci"
# Their code runs inside of the sandbox, in tests that run evaluators themselves, or in the agent.
OTHER_PROCESSES = ("execution/child", "pytest", "record/injected", "sdk.py")
# They parse nothing, or only what agentci itself or the user's machine wrote.
NO_PARSERS = frozenset(
    {
        *("agentci", "argparse", "asyncio", "atexit", "base64", "binascii", "bisect", "builtins"),
        *("codecs", "collections", "concurrent", "contextlib", "copy", "dataclasses", "datetime"),
        *("errno", "fcntl", "functools", "gc", "hashlib", "heapq", "hmac", "importlib", "inspect"),
        *("io", "ipaddress", "itertools", "junit_xml", "keyword", "math", "operator", "os"),
        *("pathlib", "platform", "posixpath", "py_compile", "pydantic_core", "queue", "random"),
        *("reprlib", "requests", "resource", "secrets", "select", "selectors", "shutil", "signal"),
        *("site",),
        *("socket", "ssl", "stat", "statistics", "string", "struct", "subprocess", "sys"),
        *("sysconfig", "tempfile", "textwrap", "threading", "time", "traceback", "types", "typing"),
        *("unicodedata", "urllib", "urllib3", "warnings", "weakref", "webbrowser"),
    }
)


def list_imports() -> dict[str, str]:
    """The imported libraries, each with a module that imports it."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(OTHER_PROCESSES):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            found.update({each.partition(".")[0]: name for each in named})
    return found


def list_documented() -> frozenset[str]:
    text = Path(ROOT, "docs", "security.md").read_text()
    _, _, after = text.partition("| library | input | why safe |")
    rows = re.findall(r"^\| ([\w, ]+) \|", after.partition("\n\n")[0], re.MULTILINE)
    return frozenset(name for row in rows for name in row.split(", "))


def test_table_names_each_library_that_reads_foreign_input_and_no_other() -> None:
    imported = list_imports()
    missing = {name: imported[name] for name in imported.keys() - NO_PARSERS - list_documented()}
    assert missing == {}, "say in docs/security.md why its use on foreign input is safe"
    assert list_documented() - imported.keys() == frozenset()
    assert NO_PARSERS - imported.keys() - sys.stdlib_module_names <= {"agentci"}
