"""Find the part of a Python module that a function reaches, without running any of it.

A function reaches the module-level names that it uses, transitively, and all statements that run
when the module is loaded and may affect others. Code that can reach names without mentioning them
(``exec``, ``sys.modules``, a star import) reaches the whole module.
"""

import ast
import builtins
import symtable
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

# The errors of a parser about source text that it cannot read.
PARSE_ERRORS: Final = (SyntaxError, ValueError, RecursionError, MemoryError)

# With these, code can reach what it does not mention.
DYNAMIC_NAMES: Final = frozenset(
    {"__builtins__", "__import__", "compile", "eval", "exec", "globals", "locals", "vars"}
)
DYNAMIC_MODULES: Final = frozenset({"builtins", "imp", "importlib", "pkgutil", "runpy"})

# Calls, decorators and bases that have no effect besides their result. `agentci.pytest` and the
# library whose interface it has decorate tests.
PURE_MODULES: Final = (
    *("abc", "collections", "contextlib", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "itertools", "math", "operator", "pathlib", "re", "statistics"),
    *("string", "typing", "typing_extensions", "agentci.pytest", "pytest", "pytest_agent_evals"),
)
PURE_BUILTINS: Final = frozenset(
    {
        *(
            "abs",
            "bool",
            "bytes",
            "classmethod",
            "dict",
            "float",
            "frozenset",
            "int",
            "len",
            "list",
        ),
        *("max", "min", "object", "property", "range", "round", "set", "sorted", "staticmethod"),
        *("str", "sum", "tuple", "zip"),
    }
)
# In place of the module's own name.
OWN: Final = "<own>"
MAX_CALL_DEPTH: Final = 8
MAX_PARSED: Final = 32

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Import = ast.Import | ast.ImportFrom


class ModuleImport(Struct, frozen=True, kw_only=True):
    """A module that code imports, and what it uses of it.

    Attributes:
        module: dotted name; empty for ``from . import name``.
        level: number of leading dots of a relative import.
        names: names in the module; None if any may be used. A name can be that of a submodule.
        attributes: used attributes of the only name in ``names``; None if any may be used.
        is_used: whether the names are used; else the import only runs the modules.
    """

    module: str
    level: int = 0
    names: frozenset[str] | None = frozenset()
    attributes: frozenset[str] | None = None
    is_used: bool = True


class ReachedCode(Struct, frozen=True, kw_only=True):
    """The part of a module that names in it reach.

    Attributes:
        parts: source text of statements, in their order.
        imports: what these statements import.
    """

    parts: tuple[str, ...]
    imports: tuple[ModuleImport, ...]


class _ImportedName(Struct, frozen=True):
    """A name that an import binds; ``name`` is empty if it stands for the module."""

    bound: str
    module: str
    level: int
    name: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


class _Statement(Struct, frozen=True, eq=False, kw_only=True):
    node: ast.stmt
    text: str
    binds: frozenset[str]
    uses: frozenset[str]
    imports: tuple[_ImportedName, ...]
    is_inert: bool


class PythonModule:
    """The statements of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: ``source`` cannot be parsed.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        with warnings.catch_warnings(action="ignore"):  # they are for the author's own tools
            body = ast.parse(source).body
            tables = symtable.symtable(source, "<module>", "exec").get_children()
        self._scopes = {(each.get_name(), each.get_lineno()): each for each in tables}
        imports = [node for node in body if isinstance(node, _Import)]
        others = {
            name
            for node in body
            if not isinstance(node, _Import)
            for name in _list_bound_names(node)
        }
        self._imported = {
            each.bound: each for node in imports for each in _bind(node) if each.bound not in others
        }
        self._bound = others | {each.bound for node in imports for each in _bind(node)}
        self._open_classes: set[str] = set()
        lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._statements = [self._read_statement(node, lines) for node in body]
        self._has_star = any(
            each.name == "*" for statement in self._statements for each in statement.imports
        )
        self._by_name: dict[str, list[_Statement]] = {}
        for statement in self._statements:
            for name in statement.binds:
                self._by_name.setdefault(name, []).append(statement)

    def reach(self, names: Collection[str] | None) -> ReachedCode:
        """Find what ``names`` reach; None stands for the whole module."""
        if names is None or self._has_star or not self._bound.issuperset(names):
            return self._reach_all(is_dynamic=self._has_star)
        reached: set[str] = set()
        chosen = {id(each): each for each in self._statements if not each.is_inert}
        pending = [*names, *(name for each in chosen.values() for name in each.uses)]
        while pending:
            name = pending.pop()
            if name in reached:
                continue
            reached.add(name)
            for each in self._by_name.get(name, ()):
                chosen[id(each)] = each
                pending += each.uses
        found = [each for each in self._statements if id(each) in chosen]
        if self._is_dynamic(found, reached):
            return self._reach_all(is_dynamic=True)
        imports = tuple(self._find_imports(found, reached))
        return ReachedCode(parts=tuple(self._list_parts(found, reached)), imports=imports)

    def find_read_keys(
        self, function: str, position: int, *, depth: int = MAX_CALL_DEPTH
    ) -> frozenset[str] | None:
        """Find the keys that a function reads of the mapping in one of its positional parameters.

        None if it may read any key. Functions of the module that get the mapping are followed.
        """
        statements = self._by_name.get(function, [])
        node = statements[0].node if len(statements) == 1 else None
        if not isinstance(node, _Function) or not statements[0].is_inert or not depth:
            return None
        parameters = [*node.args.posonlyargs, *node.args.args]
        if position >= len(parameters) or self._is_dynamic(statements, statements[0].uses):
            return None
        reader = _KeyReader(parameters[position].arg, statements[0].uses)
        if not reader.read(node):
            return None
        keys = set(reader.keys)
        for called, at in reader.calls:
            found = self.find_read_keys(called, at, depth=depth - 1)
            if found is None:
                return None
            keys |= found
        return frozenset(keys)

    def _reach_all(self, *, is_dynamic: bool) -> ReachedCode:
        imports = tuple(self._find_imports(self._statements, self._bound))
        if is_dynamic:
            imports = tuple(
                ModuleImport(module=each.module, level=each.level, names=None) for each in imports
            )
        return ReachedCode(parts=(self._source,), imports=imports)

    def _read_statement(self, node: ast.stmt, lines: list[str]) -> _Statement:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        is_inert = self._is_inert(node)
        if isinstance(node, ast.ClassDef) and is_inert and not _customizes_subclasses(node):
            self._open_classes.add(f"{OWN}.{node.name}")
        return _Statement(
            node=node,
            text="\n".join(lines[first - 1 : node.end_lineno]),
            binds=frozenset(_list_bound_names(node)),
            uses=frozenset(self._list_uses(node)),
            imports=tuple(
                name for each in ast.walk(node) if isinstance(each, _Import) for name in _bind(each)
            ),
            is_inert=is_inert,
        )

    def _list_uses(self, node: ast.stmt) -> Iterator[str]:
        """Yield the module-level names that a statement uses; some may be local names."""
        if isinstance(node, _Function | ast.ClassDef):
            yield from _list_global_names(self._scopes[node.name, node.lineno])
            yield from _list_names(_list_outer_expressions(node))
        else:
            yield from _list_names([node])

    def _is_inert(self, node: ast.stmt) -> bool:  # noqa: PLR0911 (one per kind of statement)
        """Return whether a statement only binds names, without an effect on others."""
        match node:
            case ast.Import() | ast.ImportFrom():
                return all(
                    not each.level
                    and (
                        each.module.partition(".")[0] in sys.stdlib_module_names
                        or _is_in_pure_module(f"{each.module}.")
                    )
                    for each in _bind(node)
                )
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._has_pure_decorators(node) and all(
                    map(self._is_pure, _list_outer_expressions(node))
                )
            case ast.ClassDef():
                return self._is_inert_class(node)
            case ast.Assign(targets=targets, value=value):
                return all(isinstance(each, ast.Name) for each in targets) and self._is_pure(value)
            case (
                ast.AnnAssign(target=ast.Name(), value=value)
                | ast.AugAssign(target=ast.Name(), value=value)
            ):
                return value is None or self._is_pure(value)
            case ast.If(test=test, orelse=[]):
                return _is_skipped_on_import(test)
            case ast.Expr(value=value):
                return isinstance(value, ast.Constant)
            case _:
                return isinstance(node, ast.Pass)

    def _is_inert_class(self, node: ast.ClassDef) -> bool:
        return (
            not node.keywords
            and self._has_pure_decorators(node)
            and all(map(self._is_pure, node.decorator_list))
            and all(map(self._is_plain_base, node.bases))
            and all(map(self._is_inert, node.body))
        )

    def _has_pure_decorators(self, node: _Function | ast.ClassDef) -> bool:
        called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
        return all(map(self._is_pure_callable, called))

    def _is_plain_base(self, base: ast.expr) -> bool:
        name = self._qualify(base.value if isinstance(base, ast.Subscript) else base)
        return (
            name in self._open_classes
            or (name.startswith("builtins.") and hasattr(builtins, name.partition(".")[2]))
            or _is_in_pure_module(name)
        )

    def _is_pure(self, expression: ast.expr) -> bool:
        """Return whether computing an expression affects only its value."""
        pending: list[ast.AST] = [expression]
        while pending:
            node = pending.pop()
            match node:
                case ast.Lambda():
                    pending += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                    continue
                case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                    return False
                case ast.Call(func=called):
                    on_text = isinstance(called, ast.Attribute) and isinstance(
                        called.value, ast.Constant
                    )
                    if not on_text and not self._is_pure_callable(called):
                        return False
                case _:
                    pass
            pending += ast.iter_child_nodes(node)
        return True

    def _is_pure_callable(self, called: ast.expr) -> bool:
        name = self._qualify(called)
        module, _, builtin = name.partition(".")
        return builtin in PURE_BUILTINS if module == "builtins" else _is_in_pure_module(name)

    def _qualify(self, expression: ast.expr) -> str:
        """Return the full name of an imported, own or built-in name; of others an empty one."""
        match expression:
            case ast.Name(id=name):
                if name in self._imported:
                    return self._imported[name].qualified
                return f"{OWN}.{name}" if name in self._bound else f"builtins.{name}"
            case ast.Attribute(value=value, attr=attribute):
                return f"{self._qualify(value)}.{attribute}"
            case _:
                return ""

    def _is_dynamic(self, statements: Iterable[_Statement], reached: Collection[str]) -> bool:
        """Return whether code may reach names that it does not mention."""
        if any(name in DYNAMIC_NAMES and name not in self._bound for name in reached):
            return True
        used = [each for each in self._find_imports(statements, reached) if each.is_used]
        return any(
            each.module.partition(".")[0] in DYNAMIC_MODULES
            or (each.module == "sys" and (each.names is None or "modules" in each.names))
            for each in used
        )

    def _find_imports(
        self, statements: Iterable[_Statement], reached: Collection[str]
    ) -> Iterator[ModuleImport]:
        statements = [*statements]
        bound = [
            (each, isinstance(statement.node, _Import) and each.bound not in reached)
            for statement in statements
            for each in statement.imports
        ]
        if not bound:
            return
        others = [each.node for each in statements if not isinstance(each.node, _Import)]
        used = _find_attributes(others, {each.bound for each, _ in bound})
        for each, is_unused in bound:
            if is_unused:
                names = frozenset({each.name} if each.name else ())
                yield ModuleImport(module=each.module, level=each.level, names=names, is_used=False)
            elif each.name == "*":
                yield ModuleImport(module=each.module, level=each.level, names=None)
            elif each.name:
                yield ModuleImport(
                    module=each.module,
                    level=each.level,
                    names=frozenset({each.name}),
                    attributes=used[each.bound],
                )
            else:
                yield from _import_module(each, used[each.bound])

    def _list_parts(
        self, statements: Iterable[_Statement], reached: Collection[str]
    ) -> Iterator[str]:
        """Yield the text of statements; of imports, only the names that are used."""
        for each in statements:
            if not isinstance(each.node, _Import):
                yield each.text
                continue
            for name in _bind(each.node):
                dots = "." * name.level
                if name.bound in reached:
                    yield f"import {dots}{name.qualified} as {name.bound}"
                elif not each.is_inert:
                    yield f"import {dots}{name.module}"


def _import_module(name: _ImportedName, used: frozenset[str] | None) -> Iterator[ModuleImport]:
    """Yield the modules of ``import a``, ``import a as b`` and ``import a.b``."""
    package, _, inner = name.module.partition(".")
    if inner and name.bound == package:
        yield ModuleImport(module=name.module, names=None)
        used = None if used is None else used - {inner.partition(".")[0]}
        yield ModuleImport(module=package, names=used)
    else:
        yield ModuleImport(module=name.module, names=used)


def _bind(node: _Import) -> Iterator[_ImportedName]:
    """Yield the names that an import binds."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            bound = alias.asname or alias.name
            yield _ImportedName(bound, node.module or "", node.level, alias.name)
        else:
            yield _ImportedName(alias.asname or alias.name.partition(".")[0], alias.name, 0)


def _list_bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the module-level names that a statement binds."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from (each.bound for each in _bind(node))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
                continue
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case _:
                pass
        pending += ast.iter_child_nodes(node)


def _list_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _list_global_names(scope: symtable.SymbolTable) -> Iterator[str]:
    yield from (each.get_name() for each in scope.get_symbols() if each.is_global())
    for inner in scope.get_children():
        yield from _list_global_names(inner)


def _list_outer_expressions(node: _Function | ast.ClassDef) -> list[ast.expr]:
    """List the expressions of a definition that are computed outside its scope."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(each.value for each in node.keywords)]
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    return [*node.decorator_list, *defaults]


def _customizes_subclasses(node: ast.ClassDef) -> bool:
    return any(
        isinstance(each, _Function) and each.name == "__init_subclass__" for each in node.body
    )


def _is_skipped_on_import(test: ast.expr) -> bool:
    """Return whether a condition is only true for type checkers or in a main program."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]):
            return True
        case _:
            return False


def _is_in_pure_module(name: str) -> bool:
    return name.startswith(tuple(f"{module}." for module in PURE_MODULES))


def _find_attributes(
    nodes: Iterable[ast.AST], names: Collection[str]
) -> dict[str, frozenset[str] | None]:
    """Find the attributes of ``names`` that code uses; None for a name that it uses otherwise."""
    found: dict[str, set[str]] = {name: set() for name in names}
    others: set[str] = set()
    pending = [*nodes]
    while pending:
        match pending.pop():
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in found:
                found[name].add(attribute)
            case ast.Name(id=name):
                others.add(name)
            case node:
                pending += ast.iter_child_nodes(node)
    return {name: None if name in others else frozenset(used) for name, used in found.items()}


class _KeyReader:
    """Finds the keys that a function reads of the mapping ``parameter``.

    Attributes:
        calls: functions that get the mapping, each with the position of the argument.
    """

    def __init__(self, parameter: str, uses: Collection[str]) -> None:
        self.keys: set[str] = set()
        self.calls: list[tuple[str, int]] = []
        self._parameter = parameter
        self._uses = uses
        self._explained: set[int] = set()

    def read(self, function: _Function) -> bool:
        """Read the function; False if it uses the mapping in another way."""
        nodes = [*ast.walk(function)]
        for node in nodes:
            self._read_node(node)
        bound = [each.arg for each in nodes if isinstance(each, ast.arg)]
        uses = [each for each in nodes if isinstance(each, ast.Name)]
        return bound.count(self._parameter) == 1 and all(
            id(each) in self._explained for each in uses if each.id == self._parameter
        )

    def _read_node(self, node: ast.AST) -> None:
        match node:
            case ast.Subscript(value=ast.Name() as name, slice=ast.Constant(value=str(key))):
                if isinstance(node.ctx, ast.Load):
                    self._add_key(name, key)
            case ast.Compare(
                left=ast.Constant(value=str(key)),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Name() as name],
            ):
                self._add_key(name, key)
            case ast.Call(
                func=ast.Attribute(value=ast.Name() as name, attr="get"),
                args=[ast.Constant(value=str(key)), *_],
            ):
                self._add_key(name, key)
            case ast.Call(func=ast.Name(id=called), args=arguments) if called in self._uses:
                self._add_call(called, arguments)
            case _:
                pass

    def _add_key(self, name: ast.Name, key: str) -> None:
        if name.id == self._parameter:
            self._explained.add(id(name))
            self.keys.add(key)

    def _add_call(self, called: str, arguments: list[ast.expr]) -> None:
        if any(isinstance(each, ast.Starred) for each in arguments):
            return
        for position, each in enumerate(arguments):
            if isinstance(each, ast.Name) and each.id == self._parameter:
                self._explained.add(id(each))
                self.calls.append((called, position))


def find_read_keys(source: str, function: str, position: int) -> frozenset[str] | None:
    """As ``PythonModule.find_read_keys``; None if ``source`` cannot be parsed."""
    module = parse_module(source)
    return None if module is None else module.find_read_keys(function, position)


@lru_cache(maxsize=MAX_PARSED)
def parse_module(source: str) -> PythonModule | None:
    """Parse a module; None if it is not valid Python."""
    try:
        return PythonModule(source)
    except PARSE_ERRORS:
        return None
