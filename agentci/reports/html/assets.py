"""The style sheet and the script of the page: files of the package, written into it whole."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

# In this order they are one module: what is pure, then what shows it.
SCRIPTS: Final = (
    *("checks.js", "tool_calls.js", "exchanges.js"),
    *("elements.js", "exchange_view.js", "check_view.js"),
    *("state.js", "table.js", "report.js"),
)
STYLE: Final = "report.css"


class Asset(Struct, frozen=True, kw_only=True):
    """Text of our own, and what a content security policy knows it by."""

    text: str
    source: str


@cache
def style() -> Asset:
    """The style sheet."""
    return _asset(_read(STYLE))


@cache
def script() -> Asset:
    """The module."""
    return _asset("\n".join(map(_read, SCRIPTS)))


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _asset(text: str) -> Asset:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return Asset(text=text, source=f"'sha256-{digest}'")
