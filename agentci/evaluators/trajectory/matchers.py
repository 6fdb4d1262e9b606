"""Compares the arguments of calls with expected ones, by values and matchers such as ``$regex``."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias, TypeGuard

from msgspec import Struct

from agentci._util.text import json_text, truncate
from agentci._util.text.patterns import RE2_HINT, compile_pattern, matches_any
from agentci._util.text.safe_schema import SafeSchema
from agentci._util.text.suggest import join_with_or, suggest_name
from agentci.model.values import Json, JsonObject

KeyPath: TypeAlias = tuple[str | int, ...]


class ExpectationProblem(Struct, frozen=True, kw_only=True):
    """What is wrong, and where.

    Attributes:
        path: keys and indexes from the whole expectation to the value.
        key: whether the key at the end of ``path`` is wrong, and not its value.
    """

    path: KeyPath
    message: str
    hint: str | None = None
    key: bool = False


class ExpectationProblems:
    """Collects the problems of one expectation."""

    def __init__(self) -> None:
        self.found: list[ExpectationProblem] = []

    def add(
        self, path: KeyPath, message: str, hint: str | None = None, *, key: bool = False
    ) -> None:
        """Add a problem of the value at ``path``, or of its key."""
        self.found.append(ExpectationProblem(path=path, message=message, hint=hint, key=key))

    def add_unknown_key(self, path: KeyPath, key: str, known: tuple[str, ...], owner: str) -> None:
        """Add a problem of the key ``key`` of the mapping at ``path``."""
        hint = suggest_name(key, known) or f"known keys: {', '.join(known)}"
        self.add((*path, key), f"{owner} has no key {key!r}", hint, key=True)

    @property
    def distinct(self) -> tuple[ExpectationProblem, ...]:
        """The problems, each once."""
        return tuple(dict.fromkeys(self.found))


MAX_SHOWN: Final = 80
PREFIX: Final = "$"


class Absent:
    """The value of an argument that a call does not have; null is a value."""


ABSENT: Final = Absent()
Found: TypeAlias = "Json | Absent"
Test: TypeAlias = Callable[[Found], bool]


class Matcher(Struct, frozen=True, kw_only=True):
    """What a value must be.

    Attributes:
        accepts: whether a value, or ``ABSENT``, fits.
        written: as in the expectation.
        is_plain: whether it is a value to be equal to, and no ``$`` matcher.
    """

    accepts: Test
    written: Json
    is_plain: bool = True

    @property
    def text(self) -> str:
        """The value or the matcher on one line."""
        if self.is_plain or not isinstance(self.written, Mapping):
            return format_value(self.written)
        return truncate.short(_format_matcher(self.written), MAX_SHOWN)


def _format_matcher(written: Json) -> str:
    """Format ``$not $regex "^1"``, without braces around matchers."""
    if not isinstance(written, Mapping) or not any(key.startswith(PREFIX) for key in written):
        return json_text.dumps_readable(written)
    return " ".join(f"{key} {_format_matcher(value)}" for key, value in written.items())


def format_value(value: Found) -> str:
    """Format a value for messages, truncated."""
    if isinstance(value, Absent):
        return "absent"
    return truncate.short(json_text.dumps_readable(value), MAX_SHOWN)


def are_equal(expected: Json, found: Found) -> bool:
    """Compare as JSON: 1 equals 1.0; true is not 1, and text is not a number."""
    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and expected.keys() == found.keys()
            and all(are_equal(value, found[key]) for key, value in expected.items())
        )
    if _is_list(expected):
        return (
            _is_list(found) and len(expected) == len(found) and all(map(are_equal, expected, found))
        )
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if _is_number(expected):
        return _is_number(found) and expected == found
    return type(expected) is type(found) and expected == found


def describe_type_mismatch(expected: Json, found: Found) -> str | None:
    """Explain a miss that only the type makes: a number that is text, or the other way round."""
    if isinstance(found, str) and _is_number(expected) and found.strip() == format_value(expected):
        return f"'{found}' is text, {format_value(expected)} was expected"
    if isinstance(expected, str) and _is_number(found) and expected.strip() == format_value(found):
        return f"{format_value(found)} is a number, the text '{expected}' was expected"
    return None


class MatcherReader:
    """Reads values and matchers.

    Args:
        problems: gets what is wrong; a wrong matcher fits nothing.
        is_open: whether objects may hold more than what is written.
    """

    def __init__(self, problems: ExpectationProblems, *, is_open: bool) -> None:
        self._problems = problems
        self._is_open = is_open

    def read(self, written: Json, path: KeyPath) -> Matcher:
        """Read a value or a matcher."""
        if isinstance(written, Mapping):
            if any(key.startswith(PREFIX) for key in written):
                return self._read_matcher(written, path)
            fields = {key: self.read(value, (*path, key)) for key, value in written.items()}
            return Matcher(accepts=self._make_object_test(fields), written=written)
        if _is_list(written):
            items = [self.read(each, (*path, index)) for index, each in enumerate(written)]
            return Matcher(accepts=_make_list_test(items), written=written)
        return Matcher(accepts=lambda found: are_equal(written, found), written=written)

    def _make_object_test(self, fields: Mapping[str, Matcher]) -> Test:
        is_open = self._is_open

        def test(found: Found) -> bool:
            if not isinstance(found, Mapping) or not (is_open or found.keys() <= fields.keys()):
                return False
            return all(each.accepts(found.get(key, ABSENT)) for key, each in fields.items())

        return test

    def _read_matcher(self, written: Mapping[str, Json], path: KeyPath) -> Matcher:
        tests: list[Test] = []
        parameters = {key for name in written for key in PARAMETERS.get(name, ())}
        for key, operand in written.items():
            if key in MAKERS:
                tests.append(MAKERS[key](_Operand(operand, (*path, key), written, self)))
            elif key not in parameters:
                known = (*MAKERS, *sorted(parameters))
                hint = suggest_name(key, known) or (
                    "write the value below `$literal` if it is a value"
                    if key.startswith(PREFIX)
                    else "keys next to a `$` matcher are its parameters"
                )
                self._problems.add((*path, key), f"unknown matcher key {key!r}", hint, key=True)
        return Matcher(
            accepts=lambda found: all(test(found) for test in tests),
            written=written,
            is_plain=False,
        )

    def with_objects(self, *, is_open: bool) -> "MatcherReader":
        """A reader for values in which objects are open, or not."""
        return MatcherReader(self._problems, is_open=is_open)

    def reject(self, path: KeyPath, message: str, hint: str | None = None) -> Test:
        """Add a problem, and return a test that nothing passes."""
        self._problems.add(path, message, hint)
        return lambda _: False


class _Operand(Struct, frozen=True):
    """The value of one ``$`` key.

    Attributes:
        siblings: the whole matcher, with the parameters.
    """

    value: Json
    path: KeyPath
    siblings: Mapping[str, Json]
    reader: MatcherReader

    def reject(self, expected: str) -> Test:
        name, found = self.path[-1], format_value(self.value)
        return self.reader.reject(self.path, f"`{name}` needs {expected}, not {found}")

    def read(self) -> Matcher:
        return self.reader.read(self.value, self.path)

    def read_items(self) -> list[Matcher] | None:
        """The matchers of a list; None if the operand is not a list."""
        if not _is_list(self.value):
            return None
        return [self.reader.read(each, (*self.path, i)) for i, each in enumerate(self.value)]


def _make_list_test(items: Sequence[Matcher]) -> Test:
    def test(found: Found) -> bool:
        return (
            _is_list(found)
            and len(found) == len(items)
            and all(item.accepts(each) for item, each in zip(items, found, strict=True))
        )

    return test


def _make_any(operand: _Operand) -> Test:
    if operand.value not in (True, None):
        return operand.reject("true")
    return lambda found: not isinstance(found, Absent)


def _make_absent(operand: _Operand) -> Test:
    if operand.value is not True:
        return operand.reject("true")
    return lambda found: isinstance(found, Absent)


def _make_one_of(operand: _Operand) -> Test:
    items = operand.read_items()
    if not items:
        return operand.reject("a list with at least one item")
    return lambda found: any(each.accepts(found) for each in items)


def _make_regex(operand: _Operand) -> Test:
    if not isinstance(operand.value, str):
        return operand.reject("a pattern")
    try:
        pattern = compile_pattern(operand.value)
    except ValueError as error:
        return operand.reader.reject(operand.path, f"invalid pattern: {error}", RE2_HINT)
    return lambda found: isinstance(found, str) and pattern.search(found) is not None


def _make_iequals(operand: _Operand) -> Test:
    if not isinstance(operand.value, str):
        return operand.reject("a string")
    text = operand.value.casefold()
    return lambda found: isinstance(found, str) and found.casefold() == text


def _make_contains(operand: _Operand) -> Test:
    value, item = operand.value, operand.read()

    def test(found: Found) -> bool:
        if isinstance(found, str):
            return isinstance(value, str) and value in found
        return _is_list(found) and any(item.accepts(each) for each in found)

    return test


def _make_approx(operand: _Operand) -> Test:
    value = operand.value
    limits = {name: operand.siblings.get(name) for name in PARAMETERS["$approx"]}
    for name, limit in limits.items():
        if limit is not None and not (_is_number(limit) and limit >= 0):
            path = (*operand.path[:-1], name)
            return operand.reader.reject(path, f"`{name}` must be a number of at least 0")
    if not _is_number(value):
        return operand.reject("a number")
    expected = _make_fraction(value)
    relative = limits["rel"]
    if relative is None and limits["abs"] is None:
        relative = DEFAULT_RELATIVE
    within = max(_make_fraction(limits["abs"] or 0), _make_fraction(relative or 0) * abs(expected))
    return lambda found: _is_number(found) and abs(_make_fraction(found) - expected) <= within


def _make_order_test(holds: Callable[[Any, Any], bool]) -> "Maker":
    """Make the maker of a limit: a number for numbers, a text for texts."""

    def make(operand: _Operand) -> Test:
        limit = operand.value
        if isinstance(limit, str):
            return lambda found: isinstance(found, str) and holds(found, limit)
        if not _is_number(limit):
            return operand.reject("a number or a string")
        return lambda found: _is_number(found) and holds(found, limit)

    return make


def _make_type(operand: _Operand) -> Test:
    value = operand.value
    names = [value] if isinstance(value, str) else list(value) if _is_list(value) else []
    if not names or not all(isinstance(name, str) and name in JSON_TYPES for name in names):
        return operand.reject(f"{join_with_or(list(JSON_TYPES))}")
    tests = [JSON_TYPES[str(name)] for name in names]
    return lambda found: any(test(found) for test in tests)


def _make_schema(operand: _Operand) -> Test:
    try:
        schema = SafeSchema(operand.value)
    except ValueError as error:
        return operand.reader.reject(operand.path, f"invalid `$schema`: {error}")
    return lambda found: not isinstance(found, Absent) and schema.accepts(found)


def _make_unordered(operand: _Operand) -> Test:
    items = operand.read_items()
    if items is None:
        return operand.reject("a list")

    def test(found: Found) -> bool:
        return _is_list(found) and len(found) == len(items) and _can_pair(items, found)

    return test


def _can_pair(items: Sequence[Matcher], found: Sequence[Json]) -> bool:
    """Whether each item can have a value of its own, by augmenting paths."""
    fits = [[index for index, each in enumerate(found) if item.accepts(each)] for item in items]
    owner: dict[int, int] = {}

    def claim(item: int, seen: set[int]) -> bool:
        for index in fits[item]:
            if index not in seen:
                seen.add(index)
                if index not in owner or claim(owner[index], seen):
                    owner[index] = item
                    return True
        return False

    return all(claim(item, set()) for item in range(len(items)))


def _make_not(operand: _Operand) -> Test:
    inner = operand.read()
    return lambda found: not isinstance(found, Absent) and not inner.accepts(found)


def _make_optional(operand: _Operand) -> Test:
    inner = operand.read()
    return lambda found: isinstance(found, Absent) or inner.accepts(found)


def _make_literal(operand: _Operand) -> Test:
    value = operand.value
    return lambda found: are_equal(value, found)


def _make_objects(*, is_open: bool) -> "Maker":
    def make(operand: _Operand) -> Test:
        reader = operand.reader.with_objects(is_open=is_open)
        return reader.read(operand.value, operand.path).accepts

    return make


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _make_fraction(value: object) -> Fraction:
    """The decimal number as written, so that 1.01 is within 0.01 of 1."""
    return Fraction(str(value))


def _is_integer(value: Found) -> bool:
    return _is_number(value) and value % 1 == 0


Maker: TypeAlias = Callable[[_Operand], Test]
DEFAULT_RELATIVE: Final = 1e-6
# Keys that are allowed next to a matcher.
PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {"$approx": ("abs", "rel")}
JSON_TYPES: Final[Mapping[str, Test]] = {
    "string": lambda found: isinstance(found, str),
    "number": _is_number,
    "integer": _is_integer,
    "boolean": lambda found: isinstance(found, bool),
    "object": lambda found: isinstance(found, Mapping),
    "array": _is_list,
    "null": lambda found: found is None,
}
MAKERS: Final[Mapping[str, Maker]] = {
    "$any": _make_any,
    "$one_of": _make_one_of,
    "$regex": _make_regex,
    "$iequals": _make_iequals,
    "$contains": _make_contains,
    "$approx": _make_approx,
    "$gt": _make_order_test(operator.gt),
    "$gte": _make_order_test(operator.ge),
    "$lt": _make_order_test(operator.lt),
    "$lte": _make_order_test(operator.le),
    "$type": _make_type,
    "$schema": _make_schema,
    "$unordered": _make_unordered,
    "$not": _make_not,
    "$optional": _make_optional,
    "$absent": _make_absent,
    "$partial": _make_objects(is_open=True),
    "$exact": _make_objects(is_open=False),
    "$literal": _make_literal,
}

EXACT: Final = "exact"
SUPERSET: Final = "superset"
SUBSET: Final = "subset"
IGNORE: Final = "ignore"
# Names of ``args_match``; ``partial`` is promptfoo's for ``superset``.
MODES: Final[Mapping[str, str]] = {
    **{each: each for each in (EXACT, SUPERSET, SUBSET, IGNORE)},
    "partial": SUPERSET,
}
WHOLE: Final = "the arguments"


class ArgumentRules(Struct, frozen=True, kw_only=True):
    """What arguments must be.

    Attributes:
        named: matchers by argument name.
        whole: a matcher for all arguments together, instead of ``named``.
        mode: ``exact``, ``superset`` or ``subset``.
        only: names of the only arguments that are compared; None for all.
        ignore: names of arguments that are not compared, with ``*`` and ``?``.
        defaults: values that an argument may have without being named, and that a named argument
            has if the call leaves it out.
    """

    named: Mapping[str, Matcher]
    whole: Matcher | None = None
    mode: str = EXACT
    only: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    defaults: JsonObject = {}


class WrongArgument(Struct, frozen=True, kw_only=True):
    """An argument that does not fit.

    Attributes:
        matcher: None for an argument that is not expected.
        note: what makes the difference, if it is only the type.
    """

    name: str
    matcher: Matcher | None
    found: Found
    note: str | None = None


class ArgumentComparison(Struct, frozen=True, kw_only=True):
    """The arguments that were compared, and those of them that do not fit."""

    compared: int
    wrong: tuple[WrongArgument, ...]


def compare_arguments(rules: ArgumentRules, found: JsonObject) -> ArgumentComparison:
    """Compare the arguments of a call."""
    compared = pair_arguments(rules, found)
    return ArgumentComparison(
        compared=len(compared),
        wrong=tuple(
            _make_wrong(name, matcher, value)
            for name, matcher, value in compared
            if matcher is None or not _fits(rules, matcher, value)
        ),
    )


def _fits(rules: ArgumentRules, matcher: Matcher, value: Found) -> bool:
    may_be_missing = rules.mode == SUBSET and isinstance(value, Absent)
    return may_be_missing or matcher.accepts(value)


def pair_arguments(
    rules: ArgumentRules, found: JsonObject
) -> list[tuple[str, Matcher | None, Found]]:
    """List each argument that is compared; without a matcher those that are not expected."""
    if rules.whole is not None:
        left = {key: value for key, value in found.items() if not matches_any(rules.ignore, key)}
        return [(WHOLE, rules.whole, left)]
    return list(_pair_named(rules, found))


def _pair_named(
    rules: ArgumentRules, found: JsonObject
) -> Iterator[tuple[str, Matcher | None, Found]]:
    for name, matcher in rules.named.items():
        if _is_compared(rules, name):
            yield name, matcher, found.get(name, rules.defaults.get(name, ABSENT))
    if rules.mode != SUPERSET:
        for name, value in found.items():
            is_default = name in rules.defaults and are_equal(rules.defaults[name], value)
            if name not in rules.named and not is_default and _is_compared(rules, name):
                yield name, None, value


def _is_compared(rules: ArgumentRules, name: str) -> bool:
    is_chosen = rules.only is None or name in rules.only
    return is_chosen and not matches_any(rules.ignore, name)


def _make_wrong(name: str, matcher: Matcher | None, found: Found) -> WrongArgument:
    is_plain = matcher is not None and matcher.is_plain
    note = describe_type_mismatch(matcher.written, found) if matcher and is_plain else None
    return WrongArgument(name=name, matcher=matcher, found=found, note=note)


def read_arguments(args: Json) -> JsonObject | None:
    """Return the arguments of a call as an object; None if they were not recorded."""
    if args is None or isinstance(args, Mapping):
        return args
    return {"value": args}
