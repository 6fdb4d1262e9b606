"""Fixtures for sources: a fake GitHub on this machine, and an HTTP client that does not wait."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.http import HttpGetter
from agentci._util.http_client import HttpClient
from agentci.remote.sources.github import GitHubSource
from tests.remote.sources.fake_github import FakeGitHub


def no_sleep(_: float) -> None:
    """Return at once; tests of the HTTP client cover waiting."""


@pytest.fixture
def http() -> HttpGetter:
    return HttpClient(report=lambda _: None, sleep=no_sleep)


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as github:
        yield github


@pytest.fixture
def source(github: FakeGitHub, http: HttpGetter, tmp_path: Path) -> GitHubSource:
    return GitHubSource(github.context(http, tmp_path))
