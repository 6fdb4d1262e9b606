"""Strategies of Hypothesis for our values."""

from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def values(kind: type[T], /, **fields: SearchStrategy[object]) -> SearchStrategy[T]:
    """Values of ``kind`` with these fields and defaults for all others.

    ``builds`` of Hypothesis resolves all annotations, which name types that only type checkers
    import.
    """
    return st.fixed_dictionaries(fields).map(lambda chosen: kind(**chosen))
