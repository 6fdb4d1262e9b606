"""Values of ours for Hypothesis."""

from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def values(kind: type[T], **fields: SearchStrategy[object]) -> SearchStrategy[T]:
    """Values of ``kind`` with these fields, the others as they are by default.

    Hypothesis' own ``builds`` looks at all annotations, which name types that only type checkers
    import.
    """
    return st.fixed_dictionaries(fields).map(lambda chosen: kind(**chosen))
