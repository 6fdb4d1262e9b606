"""Cosine similarity of vectors of any magnitude."""

import math

import pytest

from agentci.evaluators.similarity import cosine_similarity


@pytest.mark.parametrize(
    ("mine", "its", "value"),
    [
        ([1, 0], [1, 0], 1.0),
        ([1, 0], [0, 3], 0.0),
        ([1, 2], [-2, -4], -1.0),
        ([1, 0], [1, 1], math.sqrt(0.5)),
        ([1e308, 1e308], [1e308, 1e308], 1.0),
        ([5e-324, 0], [1, 0], 1.0),
        ([-3.0], [0.1], -1.0),
    ],
)
def test_cosine_equals_cosine_of_angle(mine: list[float], its: list[float], value: float) -> None:
    assert cosine_similarity(mine, its) == pytest.approx(value, abs=1e-15)


def test_equal_vectors_have_cosine_exactly_one() -> None:
    vectors = [[math.sin(i * j) for i in range(1, 300)] for j in range(1, 50)]
    assert {cosine_similarity(each, each) for each in vectors} == {1.0}


@pytest.mark.parametrize(("mine", "its"), [([0, 0], [1, 0]), ([1, 0], [0.0, -0.0])])
def test_zero_vector_is_rejected(mine: list[float], its: list[float]) -> None:
    with pytest.raises(ValueError, match="zeros"):
        cosine_similarity(mine, its)
