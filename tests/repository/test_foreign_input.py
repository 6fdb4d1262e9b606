"""Each library that reads foreign input in agentci's own process, and why that is safe.

OTLP protobuf is read by code of our own: depth 100, and no length beyond the file.
"""

import sys
from typing import Final

from tests.helpers.modules import MODULES, PACKAGE, read_module

# Their code runs inside of the sandbox, in tests that run evaluators themselves, or in the agent.
OTHER_PROCESSES = ("execution/child", "pytest", "record/injected", "sdk.py")
# Libraries that read foreign input in agentci's own process: what they read, and why that is safe.
FOREIGN_INPUT: Final = {
    "jinja2": (
        "prompts, the comment's template",
        "parsed only; compiled in the sandbox (10 s, 256 MB, no network)",
    ),
    "re": ("regex of AgentV", "compiled within the limits, matched in the sandbox"),
    "ast, symtable": (
        "formulas, Python programs, calls that smolagents writes as text",
        (
            "never compiled; formulas of 2,000 characters and depth 50, modules of 256 KiB, calls "
            "of 1 MiB with values of JSON"
        ),
    ),
    "yaml": ("configs", "events only, 100,000 values, depth 64, aliases counted"),
    "json, msgspec, csv": ("files, output, tables", "limits of size, digits, depth and cells"),
    "pydantic": ("parsed documents", "our models only"),
    "jsonschema, referencing": (
        "values, and schemas of checks",
        "safe_schema.py: 100,000 steps per value, uniqueItems in linear time; nothing is fetched",
    ),
    "re2": ("patterns of checks", "time linear in the text"),
    "xml": ("JUnit", "expat without DTD and entities, depth 200"),
    "zlib, zipfile, tarfile": (
        "traces, programs, results",
        "in memory, limits of size and members; Zstandard alike",
    ),
    "glob, fnmatch, shlex": ("patterns of files, commands", "within the limits"),
    "packaging": ("requirements.txt", "lines of 10,000 characters"),
    "email, http": (
        "requests to agentci's own servers",
        "a secret token, limits of headers and body",
    ),
    "sqlite3, marshal": ("cache, traces that are being read", "written by agentci; digests"),
    "rapidfuzz, difflib, decimal, fractions": ("texts, names, numbers", "limits of length"),
}
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
    for path in MODULES:
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(OTHER_PROCESSES):
            imports = read_module(path).imports
            found.update({imported.partition(".")[0]: name for imported, _ in imports})
    return found


def test_each_library_that_reads_foreign_input_is_listed_and_no_other() -> None:
    imported = list_imports()
    listed = {name for names in FOREIGN_INPUT for name in names.split(", ")}
    missing = {name: imported[name] for name in imported.keys() - NO_PARSERS - listed}
    assert missing == {}, "add why its use on foreign input is safe"
    assert listed - imported.keys() == set()
    assert NO_PARSERS - imported.keys() - sys.stdlib_module_names <= {"agentci"}
