"""Frozen values: which fields they have, and how to change some.

Values are ``msgspec.Struct``: such a class is made forty times as fast as a dataclass, and its
instances ten times. Those that must not show a field (a secret, a whole file) are dataclasses.
"""

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, structs

if TYPE_CHECKING:
    # Type checkers know which fields these take, of both kinds.
    from dataclasses import replace as replace  # noqa: PLC0414, TID251
else:

    def replace(value: object, /, **changes: object) -> object:
        """A copy of ``value`` with some fields changed."""
        kind = structs if isinstance(value, Struct) else dataclasses
        return kind.replace(value, **changes)


T = TypeVar("T")


class IdentityKey(Generic[T]):
    """Stands for ``value`` in the key of a cache: it is equal to itself alone.

    To compare large values, or to hash them, would take as long as what is cached.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def list_field_names(value: object) -> tuple[str, ...]:
    """The names of a value's fields, in their order; none of what is no such value."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return (
        tuple(field.name for field in dataclasses.fields(value))
        if dataclasses.is_dataclass(value)
        else ()
    )
