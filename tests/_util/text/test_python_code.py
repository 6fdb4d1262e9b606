"""The part of a module that a function reaches, and the keys that it reads of an argument."""

import pytest

from agentci._util.text.python_code import ModuleImport, PythonModule, find_read_keys, parse_module


def reach(source: str, *names: str) -> str:
    return "\n".join(PythonModule(source).reach(names).parts)


def imports(source: str, *names: str) -> set[tuple[str, frozenset[str] | None]]:
    reached = PythonModule(source).reach(names).imports
    return {(each.module, each.names if each.is_used else frozenset()) for each in reached}


TWO = (
    "def one():\n    return helper(1)\n\ndef two():\n    return 2\n\ndef helper(x):\n    return x\n"
)


def test_other_functions_are_not_reached() -> None:
    assert reach(TWO, "one") == "def one():\n    return helper(1)\ndef helper(x):\n    return x"
    assert reach(TWO, "two") == "def two():\n    return 2"


@pytest.mark.parametrize(
    "other",
    [
        "LIMIT = 3",
        "LIMIT: int = 3",
        "WORDS = 'a b'.split()",
        "import re\nPATTERN = re.compile('a')",
        "from pathlib import Path\nHERE = Path(__file__).parent",
        "WORDS = frozenset(['a'])",
        '"""The text of the module."""',
        "class Other:\n    '''Text.'''\n    size: int = 3\n    def method(self): return 1",
        "class Failed(ValueError):\n    pass",
        "from enum import Enum\nclass Kind(Enum):\n    A = 1",
        "class Base: pass\nclass Derived(Base): pass",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: int = 1",
        "from functools import cache\n@cache\ndef other(): return 1",
        "import pytest\n@pytest.mark.parametrize('a', [1])\ndef test(a): pass",
        "from agentci.pytest import evals, Config\n@evals.evaluator(Config(two))\ndef f(): pass",
        "if __name__ == '__main__':\n    two()",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import other",
        "callback = lambda x=1, *, y=2: print(two())",
        "import logging, json",
        "import importlib",
    ],
)
def test_statement_without_effect_on_others_is_not_reached(other: str) -> None:
    assert reach(f"{TWO}\n{other}\n", "one") == reach(TWO, "one")


@pytest.mark.parametrize(
    "running",
    [
        "print()",
        "LIMIT = make()",
        "CASES['a'] = 1",
        "for each in ():\n    pass",
        "try:\n    import fast\nexcept ImportError:\n    fast = None",
        "@register\ndef other(): return 1",
        "def other(x=make()): return x",
        "class Other(Registered): pass",
        "class Other(metaclass=Meta): pass",
        "class Other:\n    print()",
        "class Base:\n    def __init_subclass__(cls): print()\nclass Other(Base): pass",
        "import set_up",
        "re = object()\nX = re.compile('a')",
        "try:\n    pass\nexcept ValueError as error:\n    pass",
        "X = make()()",
        "if __name__ == '__main__':\n    pass\nelse:\n    print()",
        "X = [(y := 1)]",
        "X = (1).__add__(make())",
    ],
)
def test_statement_that_runs_is_reached(running: str) -> None:
    assert running.splitlines()[-1] in reach(f"{TWO}\n{running}\n", "one") + "\nimport set_up"
    assert reach(f"{TWO}\n{running}\n", "one") != reach(TWO, "one")


def test_names_used_by_running_statements_are_reached() -> None:
    assert "return 2" in reach(f"{TWO}\nprint(two())", "one")


def test_local_names_are_not_reached() -> None:
    source = (
        "def one(helper):\n    two = 1\n    return [three for three in helper] + two\n"
        "def helper(): return 3\ndef two(): return 4\ndef three(): return 5\n"
    )
    assert "return 4" not in reach(source, "one")
    assert "return 3" not in reach(source, "one")
    assert "return 5" not in reach(source, "one")


def test_all_bindings_of_a_name_are_reached() -> None:
    source = "A = 1\nA += 2\nB = 3\ndef one():\n    global A\n    A += 1\n"
    assert reach(source, "one") == source.replace("B = 3\n", "").rstrip()


@pytest.mark.parametrize(
    "body",
    [
        "exec('two()')",
        "globals()['two']()",
        "eval('two')",
        "import sys; sys.modules[__name__].two()",
        "from importlib import import_module; import_module('x')",
        "__import__('x')",
    ],
)
def test_dynamic_code_reaches_the_whole_module(body: str) -> None:
    source = f"def one():\n    {body}\n\ndef two():\n    return 2\n"
    assert reach(source, "one") == source
    assert reach(source, "two") == "def two():\n    return 2"


@pytest.mark.parametrize("names", [("missing",), ("one", "missing")])
def test_unknown_name_reaches_the_whole_module(names: tuple[str, ...]) -> None:
    assert reach(TWO, *names) == TWO


def test_unused_names_of_an_import_are_not_reached() -> None:
    source = "import json, re\ndef one(): return json\n"
    assert reach(source, "one") == "import json as json\ndef one(): return json"


def test_rebound_import_reaches_the_whole_module_that_it_imports() -> None:
    source = "try:\n    import help\nexcept ImportError as error:\n    help = error\n"
    assert imports(f"{source}def one(): return help\n", "one") == {("help", None)}


def test_star_import_reaches_the_whole_module() -> None:
    source = f"from other import *\n{TWO}"
    assert reach(source, "one") == source
    assert imports(source, "one") == {("other", None)}


@pytest.mark.parametrize(
    ("line", "use", "found"),
    [
        ("import help", "help.a(help.b)", {("help", frozenset({"a", "b"}))}),
        ("import help as h", "h.a()", {("help", frozenset({"a"}))}),
        ("import help", "getattr(help, x)", {("help", None)}),
        ("from help import a, b", "a()", {("help", frozenset({"a"})), ("help", frozenset())}),
        ("from help import a as b", "b()", {("help", frozenset({"a"}))}),
        ("import help", "1", {("help", frozenset())}),
        ("import json", "1", set()),
        ("import json", "json.dumps(1)", {("json", frozenset({"dumps"}))}),
        ("import pack.help", "pack.help.a()", {("pack.help", None), ("pack", frozenset())}),
        ("pass", "__import_inside__", set()),
    ],
)
def test_imports_name_what_is_used(
    line: str, use: str, found: set[tuple[str, frozenset[str] | None]]
) -> None:
    assert imports(f"{line}\ndef one(x):\n    return {use}\n", "one") == found


def test_imports_in_functions_are_found() -> None:
    source = "def one():\n    from .help import a\n    return a\n"
    assert PythonModule(source).reach(["one"]).imports == (
        ModuleImport(module="help", level=1, names=frozenset({"a"}), attributes=None),
    )


@pytest.mark.parametrize("source", ["def", "\0", "return 1\nx = (", "(" * 1000, "1" * 5000])
def test_invalid_source_is_no_module(source: str) -> None:
    assert parse_module(source) is None
    assert find_read_keys(source, "grade", 1) is None


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("return item['a']", {"a"}),
        ("return item.get('a', item.get('b'))", {"a", "b"}),
        ("return 'a' in item and 'b' not in item", {"a", "b"}),
        ("return sample['a']", set()),
        ("return check(item) + item['b']", {"b", "c"}),
        ("return check(sample)", set()),
        ("return other(item)", None),
        ("return check(*item)", None),
        ("return check(x=item)", None),
        ("return dict(item)", None),
        ("return item[sample]", None),
        ("item['a'] = 1\n    return 1", None),
        ("item = sample\n    return item['a']", None),
        ("return [item['a'] for item in sample]", None),
        ("return (lambda item: item['a'])(sample)", None),
        ("return item.items()", None),
        ("return locals()", None),
        ("return eval('item')", None),
    ],
)
def test_keys_that_a_function_reads(body: str, keys: set[str] | None) -> None:
    source = (
        f"def grade(sample, item):\n    {body}\n\ndef check(x):\n    return x['c']\n\n"
        "def other(*all):\n    return 1\n"
    )
    assert find_read_keys(source, "grade", 1) == keys


@pytest.mark.parametrize(
    "source",
    [
        "def grade(sample): return 1",
        "def grade(*all): return 1",
        "grade = len",
        "from other import grade",
        "@wrapped\ndef grade(sample, item): return 1",
        "if x:\n    def grade(sample, item): return 1",
        "def grade(sample, item): return 1\ngrade = print",
        "def grade(sample, item): return grade(sample, item)",
    ],
)
def test_keys_are_unknown_without_plain_function(source: str) -> None:
    assert find_read_keys(source, "grade", 1) is None
