"""Reads the datasets that suites are judged by."""

from pathlib import Path
from typing import Final

from agentci._util.workspace import Workspace, read_file
from agentci.model.dataset import Dataset
from agentci.runner.load_configs import LoadedSuite

MAX_DATASET_BYTES: Final = 64 * 1024**2


def read_rows(loaded: LoadedSuite, workspace: Workspace, *, carries_runs: bool) -> Dataset | None:
    """The dataset of a suite, if it names one.

    Args:
        carries_runs: there are no recordings beside it.

    Raises:
        InputError: it is not there, or with every row that is wrong.
    """
    named, place = loaded.suite.dataset, loaded.suite.place_of("dataset")
    if named is None:
        return None
    path = loaded.locator.locate(named, place)
    return dataset_in(path, workspace, carries_runs=carries_runs)


def dataset_in(path: Path, workspace: Workspace, *, carries_runs: bool) -> Dataset:
    """The rows of a file; as ``read_rows``."""
    from agentci.recordings.dataset import read_dataset  # noqa: PLC0415 (of no use to most runs)

    name = workspace.name_of(path)
    data = read_file(path, name=name, limit_bytes=MAX_DATASET_BYTES)
    return read_dataset(data, file=name, carries_runs=carries_runs)
