"""Frozen values: which fields they have, and how to change some.

Values are ``msgspec.Struct``: such a class is made forty times as fast as a dataclass, and its
instances ten times. Those that must not show a field (a secret, a whole file) are dataclasses.
"""

import dataclasses
from typing import TYPE_CHECKING

from msgspec import Struct, structs

if TYPE_CHECKING:
    # Type checkers know which fields these take, of both kinds.
    from dataclasses import replace as replace  # noqa: PLC0414, TID251
else:

    def replace(value: object, /, **changes: object) -> object:
        """A copy of ``value`` with some fields changed."""
        kind = structs if isinstance(value, Struct) else dataclasses
        return kind.replace(value, **changes)


def names_of(value: object) -> tuple[str, ...]:
    """The names of a value's fields, in their order; none of what is no such value."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return (
        tuple(field.name for field in dataclasses.fields(value))
        if dataclasses.is_dataclass(value)
        else ()
    )
