"""Frozen values of both kinds are treated alike."""

import pytest

from agentci.model.problem import Place
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.model.values import IdentityKey, list_field_names, replace

PLACE = Place(file="a.yaml", line=2)
SNAPSHOT = ProgramSnapshot(entry="x.py", files={"x.py": ProgramFile(content=b"secret")})


def test_a_value_with_another_field_is_a_new_one() -> None:
    assert replace(PLACE, line=3) == Place(file="a.yaml", line=3)
    assert replace(SNAPSHOT, entry="y.py").entry == "y.py"
    assert (PLACE.line, SNAPSHOT.entry) == (2, "x.py")


def test_a_field_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError):
        replace(PLACE, lime=3)  # type: ignore[call-arg]


def test_the_names_of_its_fields_are_in_order() -> None:
    assert list_field_names(PLACE) == ("file", "line", "column")
    assert list_field_names(SNAPSHOT)[-1] == "files"
    assert list_field_names("a text") == ()


def test_in_keys_of_caches_a_value_is_equal_to_itself_alone() -> None:
    one, other = [1], [1]
    assert IdentityKey(one) == IdentityKey(one)
    assert hash(IdentityKey(one)) == hash(IdentityKey(one))
    assert IdentityKey(one) != IdentityKey(other)
    assert IdentityKey(one) != one
