"""Requests one environment in a separate process: CACHE INDEX TOOL REQUIREMENT."""

import sys
from pathlib import Path

from agentci.execution.requirements import Requirements
from tests.execution.environments.workshops import environments_at, workshop_with


def main(cache: str, index: str, tool: str, requirement: str) -> None:
    """Print the notices and the path of the interpreter."""
    environments = environments_at(
        Path(cache),
        workshop_with(tool, index=index),
        notify=lambda sentence: print(f"told: {sentence}", flush=True),  # noqa: T201
    )
    python = environments.get_python(Requirements(text=requirement), name="one")
    print(python, flush=True)  # noqa: T201 (its output)


if __name__ == "__main__":
    main(*sys.argv[1:])
