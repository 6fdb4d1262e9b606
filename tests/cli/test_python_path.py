"""Modules of the user with the names of agentci's packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.support import ROOT

# A module per package that agentci needs.
NAMES = (
    *("jinja2", "jsonschema", "junit_xml", "msgspec", "packaging", "pydantic", "rapidfuzz", "re2"),
    *("requests", "urllib3", "yaml"),
)
# As installers write it.
CONSOLE_SCRIPT = "import sys\nfrom agentci.__main__ import main\nsys.exit(main())\n"
# An agent that needs the user's module, and calls no model.
AGENT = ("record", "--cases", "cases.yaml", "--", sys.executable, "-c", "import yaml; yaml.greet()")


@pytest.mark.parametrize("words", [["-m", "agentci"], ["bin/agentci"]], ids=["module", "script"])
@pytest.mark.parametrize("place", ["path", "folder"])
def test_modules_of_the_user_replace_no_package(
    words: list[str], place: str, tmp_path: Path
) -> None:
    folder = tmp_path if place == "folder" else tmp_path / "packages"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.py").write_text("def greet():\n    print('from the user')\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agentci").write_text(CONSOLE_SCRIPT)
    (tmp_path / "cases.yaml").write_text("- {id: one, input: Hello}\n")
    (tmp_path / "agentci.yaml").write_text("traces: traces/*.jsonl\nchecks: [no_secrets: true]\n")
    path = os.pathsep.join(map(str, (folder, ROOT)))

    def run(*arguments: str) -> tuple[int, str]:
        ran = subprocess.run(
            [sys.executable, *words, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    code, text = run(*AGENT)
    assert (code, "no complete turn" in text) == (3, True), text
    [recorded] = (tmp_path / "traces" / ".failed").glob("*.jsonl")
    assert "Error" not in recorded.read_text()
    assert run("validate")[0] == 0
    assert run("run")[0] == 3
