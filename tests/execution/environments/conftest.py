"""A package index for each test."""

from collections.abc import Iterator

import pytest

from tests.execution.environments.package_index import SDK, PackageIndex


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    """An index with the SDK and two packages, one of which depends on the other."""
    index = PackageIndex()
    index.add(SDK, "0.1.0")
    index.add(SDK, "0.2.0")
    index.add("demo-greeting", "1.0", needs=["demo-words>=2"])
    index.add("demo-words", "1.0")
    index.add("demo-words", "2.0")
    yield index
    index.close()
