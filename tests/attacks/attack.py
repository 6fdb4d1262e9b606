"""How a test says which attack it is: its number and the modes in which it runs."""

import pytest

from tests.attacks.job import Mode


def attack(number: str, *modes: Mode) -> pytest.MarkDecorator:
    """Run a test once per mode, with ids such as ``F1-container``."""
    return pytest.mark.parametrize(
        "mode", [pytest.param(mode, id=f"{number}-{mode}") for mode in modes], indirect=True
    )
