"""Helpers for frozen values: list their fields, copy them with changes.

Values are ``msgspec.Struct``: its classes are created 40 times as fast as dataclasses, and
its instances 10 times. Values with a field that must not be shown (a secret, a whole file) are
dataclasses.
"""

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, structs

if TYPE_CHECKING:
    # Type checkers check the field names of both kinds with this one.
    from dataclasses import replace as replace  # noqa: PLC0414, TID251
else:

    def replace(value: object, /, **changes: object) -> object:
        """Copy ``value`` with some fields changed."""
        kind = structs if isinstance(value, Struct) else dataclasses
        return kind.replace(value, **changes)


T = TypeVar("T")


class IdentityKey(Generic[T]):
    """A cache key for ``value`` that compares by identity.

    Comparing or hashing large values would take as long as computing what is cached.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def list_field_names(value: object) -> tuple[str, ...]:
    """List the field names of a value in order; empty for other objects."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return (
        tuple(field.name for field in dataclasses.fields(value))
        if dataclasses.is_dataclass(value)
        else ()
    )
