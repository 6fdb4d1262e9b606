"""The formula of a ``multi`` grader: only arithmetic over the scores of other graders."""

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate

MAX_CHARACTERS: Final = 2_000
MAX_DEPTH: Final = 50
MAX_SHOWN: Final = 40

_BINARY: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: math.pow,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[float], float]]] = {
    ast.UAdd: lambda a: a,
    ast.USub: lambda a: -a,
}
_UNARY_FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}
_VARIADIC_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {"min": min, "max": max}

# A number, a name, or a function with its operands.
_Term: TypeAlias = "float | str | tuple[Callable[..., float], tuple[_Term, ...]]"


class Formula(Struct, frozen=True, kw_only=True):
    """A parsed formula.

    Attributes:
        text: the formula as written.
        names: the names of the scores that it uses.
    """

    text: str
    names: frozenset[str]
    _term: _Term

    def value(self, scores: Mapping[str, float]) -> float:
        """Compute the formula with ``scores``, which must have all of ``names``.

        Raises:
            ValueError: the result is not a finite number; the message has the reason.
        """
        try:
            value = _evaluate_term(self._term, scores)
        except ZeroDivisionError:
            raise ValueError("division by zero") from None
        except (ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError("the result is not a finite number")
        return value


def parse_formula(text: str) -> Formula:
    """Parse a formula of numbers, names, ``+ - * / ^`` and eight functions.

    Raises:
        ValueError: the formula is invalid; the message has the reason.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"the formula has {len(text):,} characters; the limit is {MAX_CHARACTERS:,}"
        )
    source = text.strip().replace("^", "**")
    names: set[str] = set()
    try:
        term = _parse_term(_parse_expression(source), names, MAX_DEPTH)
    except _UnsupportedSyntaxError as error:
        part = truncate.short(ast.get_source_segment(source, error.node) or source, MAX_SHOWN)
        raise ValueError(f"unsupported expression `{part}` in the formula") from None
    return Formula(text=text, names=frozenset(names), _term=term)


class _UnsupportedSyntaxError(Exception):
    """Python syntax that formulas do not support."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node
        super().__init__()


def _parse_expression(source: str) -> ast.expr:
    try:
        with warnings.catch_warnings(action="ignore"):  # such as Python's style warnings
            return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            "invalid formula; write for example `0.5 * first + 0.5 * second`"
        ) from None


def _parse_term(node: ast.expr, names: set[str], levels: int) -> _Term:
    function: Callable[..., float]
    if not levels:
        raise ValueError(f"the formula is nested more than {MAX_DEPTH} levels deep")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _parse_number(value)
        case ast.Name(id=name):
            names.add(name)
            return name
        case ast.UnaryOp(op=sign) if type(sign) in _UNARY:
            operands, function = [node.operand], _UNARY[type(sign)]
        case ast.BinOp(op=operator) if type(operator) in _BINARY:
            operands, function = [node.left, node.right], _BINARY[type(operator)]
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]):
            function = _find_function(name, len(operands))
        case _:
            raise _UnsupportedSyntaxError(node)
    return function, tuple(_parse_term(each, names, levels - 1) for each in operands)


def _parse_number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number in the formula is too large") from None


def _find_function(name: str, arguments: int) -> Callable[..., float]:
    if name in _UNARY_FUNCTIONS and arguments == 1:
        return _UNARY_FUNCTIONS[name]
    if name in _VARIADIC_FUNCTIONS and arguments:
        return _VARIADIC_FUNCTIONS[name] if arguments > 1 else float
    if name in _UNARY_FUNCTIONS or name in _VARIADIC_FUNCTIONS:
        count = "one number" if name in _UNARY_FUNCTIONS else "at least one number"
        raise ValueError(f"`{name}` takes {count}")
    raise ValueError(
        f"unknown function `{name}` in the formula; the functions are "
        f"{', '.join((*_VARIADIC_FUNCTIONS, *_UNARY_FUNCTIONS))}"
    )


def _evaluate_term(term: _Term, scores: Mapping[str, float]) -> float:
    if isinstance(term, str):
        return scores[term]
    if isinstance(term, float):
        return term
    function, terms = term
    return float(function(*(_evaluate_term(each, scores) for each in terms)))
