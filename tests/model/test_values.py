"""Functions for frozen values: copies with changed fields, field names, identity keys."""

import pytest

from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.model.values import IdentityKey, Place, list_field_names, replace

PLACE = Place(file="a.yaml", line=2)
SNAPSHOT = ProgramSnapshot(entry="x.py", files={"x.py": ProgramFile(content=b"secret")})


def test_replace_returns_changed_copy() -> None:
    assert replace(PLACE, line=3) == Place(file="a.yaml", line=3)
    assert replace(SNAPSHOT, entry="y.py").entry == "y.py"
    assert (PLACE.line, SNAPSHOT.entry) == (2, "x.py")


def test_replace_rejects_unknown_field() -> None:
    with pytest.raises(TypeError):
        replace(PLACE, lime=3)  # type: ignore[call-arg]


def test_field_names_are_in_declaration_order() -> None:
    assert list_field_names(PLACE) == ("file", "line", "column")
    assert list_field_names(SNAPSHOT)[-1] == "files"
    assert list_field_names("a text") == ()


def test_identity_keys_of_equal_values_differ() -> None:
    one, other = [1], [1]
    assert IdentityKey(one) == IdentityKey(one)
    assert hash(IdentityKey(one)) == hash(IdentityKey(one))
    assert IdentityKey(one) != IdentityKey(other)
    assert IdentityKey(one) != one
