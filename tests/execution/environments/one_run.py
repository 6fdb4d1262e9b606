"""Requests one environment in a separate process: CACHE INDEX TOOL REQUIREMENT."""

import sys
from pathlib import Path

from agentci.execution.requirements import Requirements
from tests.execution.environments.installer_runners import (
    make_environment_store,
    make_installer_runner,
)


def main(cache: str, index: str, tool: str, requirement: str) -> None:
    """Print the notices and the path of the interpreter."""
    environments = make_environment_store(
        Path(cache),
        make_installer_runner(tool, index=index),
        notify=lambda sentence: print(f"notice: {sentence}", flush=True),  # noqa: T201
    )
    python = environments.get_python(Requirements(text=requirement), name="one")
    print(python, flush=True)  # noqa: T201 (its output)


if __name__ == "__main__":
    main(*sys.argv[1:])
