"""Fixtures for tests of posting to GitHub."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.api.hub import running_hub
from tests.github.bench import HEAD, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with running_hub() as hub:
        hub.head_sha = HEAD
        yield Bench(hub=hub, folder=tmp_path)
