"""Check a Jinja2 prompt template without running any of it.

A template is a program of its author, and Jinja2 runs parts of it already while it compiles it: it
computes constant expressions. So templates are only parsed here; the sandboxed child program
compiles and renders them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import ClassVar, Final

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.parser import Parser

from agentci.errors import InputError
from agentci.model.values import Place

# Jinja2 defines these names itself.
_TEMPLATE_NAMES: Final = frozenset({*DEFAULT_NAMESPACE, "self", "super"})
_MACRO_NAMES: Final = frozenset({"caller", "kwargs", "varargs"})
MAX_PARSED: Final = 64
_LOOP_NAMES: Final = frozenset({"loop"})


def check_prompt_template(template: str, place: Place, *, line_counts: bool = False) -> None:
    """Check that a template is valid and uses a variable.

    Args:
        template: the text.
        place: where the template is.
        line_counts: whether the template is a whole file, so that its line numbers are the file's.

    Raises:
        InputError: the template is invalid, or uses no variable.
    """
    try:
        variables = find_prompt_variables(template)
    except TemplateSyntaxError as error:
        at = Place(file=place.file, line=error.lineno) if line_counts else place
        where = "" if line_counts else f" on line {error.lineno}"
        raise InputError.from_message(
            f"template syntax error in the prompt{where}: {error.message}", place=at
        ) from None
    except RecursionError:
        raise InputError.from_message(
            "the prompt template is nested too deeply", place=place
        ) from None
    except ValueError:  # Python limits the digits of a number
        raise InputError.from_message(
            "the prompt template contains a number with too many digits", place=place
        ) from None
    if not variables:
        raise InputError.from_message(
            "the prompt uses no variable, so that the judge model would not see the response",
            place=place,
            hint="add the content to evaluate, such as {{response}}",
        )


def parse_template(template: str) -> nodes.Template:
    """Parse a template without running any of it.

    Raises:
        TemplateSyntaxError, RecursionError, ValueError: the template is invalid.
    """
    # `Environment.parse` would compile code to improve the traceback of an error.
    return Parser(Environment(), template).parse()  # noqa: S701 (nothing is rendered)


@lru_cache(maxsize=MAX_PARSED)
def find_prompt_variables(template: str) -> frozenset[str]:
    """Find the names that a template reads and has not certainly set before.

    Raises:
        TemplateSyntaxError, RecursionError, ValueError: the template is invalid.
    """
    tree = parse_template(template)
    finder = _VariableFinder()
    finder.visit(tree, set(_TEMPLATE_NAMES))
    return frozenset(finder.found)


class _VariableFinder:
    """Finds the names that a template reads and has not certainly set before.

    Its methods take a node and the names that are set before it, and add those that it sets.

    Attributes:
        found: these names.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit(self, node: nodes.Node, bound: set[str]) -> None:
        """Visit a node and those in it."""
        self._METHODS.get(type(node), _VariableFinder._visit_children)(self, node, bound)

    def _visit_name(self, node: nodes.Name, bound: set[str]) -> None:
        if node.ctx == "load":
            self._add(node.name, bound)
        else:
            bound.add(node.name)

    def _visit_attribute(self, node: nodes.NSRef, bound: set[str]) -> None:
        self._add(node.name, bound)

    def _add(self, name: str, bound: set[str]) -> None:
        if name not in bound:
            self.found.add(name)

    def _visit_assignment(self, node: nodes.Assign, bound: set[str]) -> None:
        self.visit(node.node, bound)
        self.visit(node.target, bound)

    def _visit_assigned_block(self, node: nodes.AssignBlock, bound: set[str]) -> None:
        self._visit_all([*([node.filter] if node.filter else []), *node.body], set(bound))
        self.visit(node.target, bound)

    def _visit_branches(self, node: nodes.If, bound: set[str]) -> None:
        self.visit(node.test, bound)
        # What only a branch sets may be unset afterwards.
        for branch in (node.body, node.elif_, node.else_):
            self._visit_all(branch, set(bound))

    def _visit_loop(self, node: nodes.For, bound: set[str]) -> None:
        self.visit(node.iter, bound)
        inner = set(bound)
        self._visit_all([node.target, *([node.test] if node.test else [])], inner)
        self._visit_all(node.body, inner | _LOOP_NAMES)
        self._visit_all(node.else_, set(bound))

    def _visit_with(self, node: nodes.With, bound: set[str]) -> None:
        self._visit_all(node.values, bound)
        self._visit_all([*node.targets, *node.body], set(bound))

    def _visit_macro(self, node: nodes.Macro, bound: set[str]) -> None:
        bound.add(node.name)
        self._visit_all([*node.args, *node.defaults, *node.body], bound | _MACRO_NAMES)

    def _visit_call_block(self, node: nodes.CallBlock, bound: set[str]) -> None:
        self.visit(node.call, bound)
        self._visit_all([*node.args, *node.defaults, *node.body], bound | _MACRO_NAMES)

    def _visit_import(self, node: nodes.Import, bound: set[str]) -> None:
        self.visit(node.template, bound)
        bound.add(node.target)

    def _visit_imported_names(self, node: nodes.FromImport, bound: set[str]) -> None:
        self.visit(node.template, bound)
        bound |= {each if isinstance(each, str) else each[1] for each in node.names}

    def _visit_scope(self, node: nodes.Node, bound: set[str]) -> None:
        self._visit_all(node.iter_child_nodes(), set(bound))

    def _visit_children(self, node: nodes.Node, bound: set[str]) -> None:
        self._visit_all(node.iter_child_nodes(), bound)

    def _visit_all(self, parts: Iterable[nodes.Node], bound: set[str]) -> None:
        for part in parts:
            self.visit(part, bound)

    _METHODS: ClassVar[Mapping[type[nodes.Node], Callable[..., None]]] = {
        nodes.Name: _visit_name,
        nodes.NSRef: _visit_attribute,
        nodes.Assign: _visit_assignment,
        nodes.AssignBlock: _visit_assigned_block,
        nodes.If: _visit_branches,
        nodes.For: _visit_loop,
        nodes.With: _visit_with,
        nodes.Macro: _visit_macro,
        nodes.CallBlock: _visit_call_block,
        nodes.Import: _visit_import,
        nodes.FromImport: _visit_imported_names,
        nodes.Block: _visit_scope,
        nodes.FilterBlock: _visit_scope,
        nodes.Scope: _visit_scope,
    }
