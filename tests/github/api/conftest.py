"""Fixtures for GitHub API tests: a local server, and a client that does not sleep."""

from collections.abc import Iterator

import pytest

from tests._util.http.patience import Patience
from tests.github.api.hub import Hub, running_hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def patience() -> Patience:
    return Patience()
