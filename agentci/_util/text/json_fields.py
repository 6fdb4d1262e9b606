"""Reads fields of JSON objects in users' files, and collects all problems with them."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from agentci._util.text.json_document import Step
from agentci._util.text.suggest import find_nearest, quote_name, suggest_name
from agentci.model.json import Json, JsonObject

MAX_DEPTH: Final = 64

JSON_TYPE_NAMES: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    str: "a string",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "a list",
}


class JsonFieldProblem(Struct, frozen=True, kw_only=True):
    """Something wrong with the value at ``path``."""

    path: tuple[Step, ...]
    message: str
    hint: str | None = None


class JsonFields:
    """The fields of one object, each known by a name in snake_case.

    A file may use camelCase instead, and null means that the field is missing. A value of the
    wrong type is reported and counts as missing.

    Attributes:
        path: path of the object in its file.
        problems: of the whole file, shared by all of its objects.
    """

    def __init__(
        self,
        value: JsonObject,
        *,
        noun: str,
        path: tuple[Step, ...],
        complaints: list[JsonFieldProblem],
    ) -> None:
        self.path = path
        self.problems = complaints
        self._value = value
        self._noun = noun
        self._names: dict[str, None] = {}

    def require(self, *names: str) -> None:
        """Report each of ``names`` that is missing."""
        for name in names:
            if not self.has(name):
                given = [key for key, value in self._value.items() if value is not None]
                close = find_nearest(name, given)
                hint = None if close is None else f"it has {close!r}"
                self.add_problem(f"{self._noun} needs {name!r}", hint=hint)

    def has(self, name: str) -> bool:
        """Whether ``name`` has a value."""
        return self._take(name) is not None

    def text(self, name: str) -> str | None:
        """Return a string field."""
        value = self._take(name)
        if isinstance(value, str):
            return value
        self._add_type_problem(name, "a string")
        return None

    def number(self, name: str) -> float | None:
        """Return a number field."""
        value = self._take(name)
        if isinstance(value, int | float):
            return value
        self._add_type_problem(name, "a number")
        return None

    def mapping(self, name: str) -> JsonObject | None:
        """Return an object field with arbitrary keys."""
        value = self._take(name)
        if not isinstance(value, Mapping):
            self._add_type_problem(name, "an object")
            return None
        if _is_nested_deeper(value, MAX_DEPTH):
            self.add_problem(f"{name!r} is nested deeper than {MAX_DEPTH} levels", name)
            return None
        return value

    def object(self, name: str, *, noun: str, hint: str | None = None) -> "JsonFields | None":
        """Return an object field with known fields.

        Args:
            noun: what it is, for problems: "an invocation".
            hint: what the user can do if the type is wrong.
        """
        value = self._take(name)
        if isinstance(value, Mapping):
            return self._inner(value, noun, self._key(name))
        self._add_type_problem(name, "an object", hint)
        return None

    def objects(self, name: str, *, noun: str) -> Iterator["JsonFields"]:
        """Iterate over a list of objects with known fields; ``noun`` is what each of them is."""
        items = self._take(name)
        if not isinstance(items, list):
            self._add_type_problem(name, "a list")
            return
        for index, value in enumerate(items):
            if isinstance(value, Mapping):
                yield self._inner(value, noun, self._key(name), index)
            else:
                self.add_problem(f"{noun} is {_format_type(value)}, not an object", name, index)

    def check_unknown_keys(self, *others: str) -> None:
        """Report every key that was not read and is not in ``others``."""
        for name in others:
            self._take(name)
        known = [*self._names, *map(to_camel_case, self._names)]
        for key in self._value:
            if key not in known:
                hint = suggest_name(key, known)
                self.add_problem(f"{self._noun} has no key {quote_name(key)}", key, hint=hint)

    def add_problem(self, message: str, *steps: Step, hint: str | None = None) -> None:
        """Report a problem of this object, or of the value at ``steps``."""
        first, rest = steps[:1], steps[1:]
        key = (self._key(step) if isinstance(step, str) else step for step in first)
        self.problems.append(
            JsonFieldProblem(path=(*self.path, *key, *rest), message=message, hint=hint)
        )

    def _take(self, name: str) -> Json:
        if name not in self._names:
            self._names[name] = None
            if (
                name in self._value
                and to_camel_case(name) != name
                and to_camel_case(name) in self._value
            ):
                self.add_problem(
                    f"{name!r} and {to_camel_case(name)!r} are the same key", to_camel_case(name)
                )
        return self._value.get(self._key(name))

    def _key(self, name: str) -> str:
        """Return the spelling of ``name`` in the file."""
        return name if name in self._value else to_camel_case(name)

    def _inner(self, value: JsonObject, noun: str, *steps: Step) -> "JsonFields":
        return JsonFields(value, noun=noun, path=(*self.path, *steps), complaints=self.problems)

    def _add_type_problem(self, name: str, kind: str, hint: str | None = None) -> None:
        value = self._take(name)
        if value is not None:
            self.add_problem(
                f"{self._key(name)!r} is {_format_type(value)}, not {kind}", name, hint=hint
            )


@cache
def to_camel_case(name: str) -> str:
    """Convert ``user_content`` to ``userContent``."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _format_type(value: Json) -> str:
    return JSON_TYPE_NAMES[type(value)]


def _is_nested_deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_nested_deeper(each, levels - 1) for each in inner)
