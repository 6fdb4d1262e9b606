"""JSON Schema for values from agents: patterns run on RE2, and no reference leaves the schema."""

import threading
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentci._util.text import truncate
from agentci._util.text.json_text import is_shallow, make_strict
from agentci._util.text.patterns import compile_pattern
from agentci.model.values import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
MAX_MESSAGE: Final = 200
# Keywords that are applied in one check; references can make their number grow exponentially.
MAX_STEPS: Final = 100_000
# Levels of a schema, and of keywords while it is applied: jsonschema and its registry, which is
# native code, must not reach the interpreter's recursion limit.
MAX_SCHEMA_DEPTH: Final = 64
MAX_NESTED_KEYWORDS: Final = 200
# Keywords that depend on the results of their neighbours, which must be counted first.
LAST_KEYWORDS: Final = ("unevaluatedItems", "unevaluatedProperties")


class SafeSchema:
    """A JSON Schema, draft 2020-12 unless its ``$schema`` names another draft.

    Raises:
        ValueError: it is not a valid schema, is nested too deeply, refers to another document, or
            has a pattern that RE2 does not accept.
    """

    __slots__ = ("_steps", "_validator", "written")

    def __init__(self, schema: Json) -> None:
        if not isinstance(schema, bool | Mapping):
            raise ValueError("a JSON Schema is a mapping, or true or false")  # noqa: TRY004 (of the user)
        if not is_shallow(schema, MAX_SCHEMA_DEPTH):
            raise ValueError(f"the schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
        _check_keywords(schema)
        self._steps = _StepCounter()
        self._validator = _make_validator(_move_last(schema), self._steps)
        _check_references(schema)
        self.written = schema

    def find_problems(self, value: Json, limit: int) -> tuple[str, ...]:
        """Describe the first problems of ``value``, each with its place in it.

        Raises:
            ValueError: the schema refers to itself too deeply, or takes too many steps.
        """
        self._steps.count = self._steps.depth = 0
        with closing(self._iter_errors(make_strict(value))) as errors:
            return tuple(map(_describe, islice(errors, limit)))

    def accepts(self, value: Json) -> bool:
        """Return whether ``value`` is valid; raises ValueError like ``find_problems``."""
        return not self.find_problems(value, 1)

    def _iter_errors(self, value: Json) -> "Generator[ValidationError, None, None]":
        yield from self._validator.iter_errors(value)


class _StepCounter(threading.local):
    """Counts the keywords that the check of one value applies: in total, and nested."""

    count = depth = 0

    def add(self) -> None:
        self.count += 1
        if self.count > MAX_STEPS:
            raise ValueError(
                f"applying the schema takes more than {MAX_STEPS:,} steps; simplify its references"
            )

    def wrap(self, keyword: Any) -> Any:
        """Return a keyword's function that is counted."""

        def apply(*arguments: Any) -> "Iterator[ValidationError]":
            self.add()
            if self.depth >= MAX_NESTED_KEYWORDS:
                raise ValueError(
                    f"the schema refers to itself more than {MAX_NESTED_KEYWORDS} levels deep"
                )
            self.depth += 1
            try:
                yield from keyword(*arguments) or ()
            finally:
                self.depth -= 1

        return apply


def _move_last(schema: Any) -> Any:
    """Return the schema with the keywords at the end that depend on others."""
    if isinstance(schema, Mapping):
        names = sorted(schema, key=lambda name: name in LAST_KEYWORDS)
        return {name: _move_last(schema[name]) for name in names}
    if isinstance(schema, list | tuple):
        return [_move_last(each) for each in schema]
    return schema


def _describe(error: "ValidationError | SchemaError") -> str:
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    )
    return truncate.characters(
        f"{place.removeprefix('.') or 'the value'}: {error.message}", MAX_MESSAGE
    )


def _make_validator(schema: Any, steps: _StepCounter) -> "Validator":
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 (slow to load)
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 (likewise)
    from referencing import Registry  # noqa: PLC0415 (likewise)

    known = validators.validator_for(schema, default=Draft202012Validator)
    try:
        known.check_schema(schema)
    except SchemaError as error:
        raise ValueError(_describe(error)) from None
    keywords: dict[str, Any] = {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
        "uniqueItems": _check_unique_items,
    }
    own: Mapping[str, Any] = {**known.VALIDATORS, **keywords}
    keywords = {name: steps.wrap(keyword) for name, keyword in own.items()}
    extended: Any = validators.extend(known, keywords)  # type: ignore[no-untyped-call]  # (any class)
    made: Validator = extended(schema, registry=Registry())
    return made


def _check_keywords(schema: Json) -> None:
    for each in _list_schemas(schema):
        pattern, patterns = each.get("pattern"), each.get("patternProperties")
        written = [pattern] if isinstance(pattern, str) else []
        written += [*patterns] if isinstance(patterns, Mapping) else []
        for one in written:
            try:
                compile_pattern(one)
            except ValueError as error:
                raise ValueError(f"the pattern {one!r} is not accepted by RE2: {error}") from None
        if "unevaluatedProperties" in each and any(
            "patternProperties" in other for other in _list_schemas(schema)
        ):
            raise ValueError("`unevaluatedProperties` next to `patternProperties` is not supported")


def _check_references(schema: Json) -> None:
    from referencing import Registry, Resource  # noqa: PLC0415 (slow to load)
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 (likewise)
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415 (likewise)

    resource: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("", resource)
    for each in _list_schemas(schema):
        for name in REFERENCES:
            reference = each.get(name)
            if not isinstance(reference, str):
                continue
            if not reference.startswith("#"):
                raise ValueError(f"`{name}: {reference}` refers to another document")
            try:
                registry.resolver().lookup(reference)
            except Unresolvable:
                raise ValueError(f"`{name}: {reference}` does not exist in the schema") from None


def _list_schemas(value: Json) -> Iterator[Mapping[str, Json]]:
    """Yield every mapping below ``value``; a value of ``const`` or ``enum`` is not a schema."""
    if isinstance(value, Mapping):
        yield value
        for key, each in value.items():
            if key not in {"const", "enum", "default", "examples"}:
                yield from _list_schemas(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _list_schemas(each)


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 (slow to load)

    if isinstance(value, str) and compile_pattern(pattern).search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
) -> "Iterator[ValidationError]":
    if isinstance(value, Mapping):
        for pattern, schema in patterns.items():
            for name in value:
                if compile_pattern(pattern).search(name) is not None:
                    yield from validator.descend(
                        value[name], schema, path=name, schema_path=pattern
                    )


def _check_additional_properties(
    validator: Any, rest: Any, value: Any, schema: Mapping[str, Any]
) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 (slow to load)

    if not isinstance(value, Mapping):
        return
    patterns = schema.get("patternProperties", {})
    for name in value:
        if name in schema.get("properties", {}):
            continue
        if any(compile_pattern(each).search(name) is not None for each in patterns):
            continue
        if rest is False:
            yield ValidationError(f"the property {name!r} is not allowed")
        else:
            yield from validator.descend(value[name], rest, path=name)


def _check_unique_items(_: Any, is_unique: Any, value: Any, __: Any) -> "Iterator[ValidationError]":
    """Check that no two items are equal, in linear time."""
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 (slow to load)

    if is_unique and isinstance(value, list) and len({*map(_make_key, value)}) < len(value):
        yield ValidationError("it has equal items")


def _make_key(value: Any) -> Hashable:
    """Return a value that is equal for equal JSON values: 1 and 1.0, but not 1 and true."""
    match value:
        case Mapping():
            return frozenset((name, _make_key(each)) for name, each in value.items())
        case list():
            return tuple(map(_make_key, value))
        case bool():
            return f"{value}", None
        case _:
            found: Hashable = value
            return found
