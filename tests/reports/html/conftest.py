"""The tests of the page use the script that is built from its sources."""

import pytest

from agentci.reports.html.page import SCRIPT
from scripts.page import FOLDER, build_script, find_bun


@pytest.fixture(scope="session", autouse=True)
def _script_is_built() -> None:
    """Without Bun, tests use the script as it is."""
    program = find_bun()
    if program is not None:
        is_current = build_script(program) == (FOLDER / SCRIPT).read_text("utf-8")
        assert is_current, "run `make page`"
