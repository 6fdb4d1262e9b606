"""``python -m agentci``, and the console script."""

import os
import sys


def main() -> int:
    """Run the command line, with agentci's own packages."""
    put_given_folders_last()
    from agentci.cli.main import main as run_command_line  # noqa: PLC0415 (needs the path)

    return run_command_line()


def put_given_folders_last() -> None:
    """Search the folders of ``PYTHONPATH``, and the one that Python started in, after all others.

    A module there, such as a `yaml.py` of the user, must not replace a package of agentci. Recorded
    agents and evaluators are processes of their own, with the variable as it is.
    """
    library = os.path.dirname(os.__file__)  # noqa: PTH120 (pathlib would slow the start down)
    if library in sys.path:
        start = sys.path.index(library)
        sys.path[:] = [*sys.path[start:], *sys.path[:start]]


if __name__ == "__main__":
    sys.exit(main())
