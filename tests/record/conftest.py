"""The folder of the virtual environments that the tests of frameworks share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def venvs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workers of a run, for `tests.record.test_frameworks.install_python`."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    venvs = folder / "venvs"
    venvs.mkdir(exist_ok=True)
    return venvs
