"""Webhook payloads of GitHub, collected by Octokit and installed by npm."""

import json
from functools import cache
from typing import Any, Final

import pytest

from tests.services.servers import MODULES

FILE: Final = MODULES / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"
needs_examples = pytest.mark.skipif(not FILE.is_file(), reason="npm did not install the examples")


def examples(name: str) -> list[dict[str, Any]]:
    """All example payloads of an event."""
    return next(each["examples"] for each in _all() if each["name"] == name)


@cache
def _all() -> Any:
    return json.loads(FILE.read_text())
