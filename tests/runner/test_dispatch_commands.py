"""The command that replaces another is found from its script, which must be in the workspace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.runner.dispatch import SDK_FOLDER, find_substitute_command
from tests.helpers.support import PATH, make_services

SDK_SCRIPT = "import '@agentv/sdk'\n"
EVAL = """description: d
tests:
  - id: one
    input: hi
    criteria: c
    expected_output: hi
    assertions:
      - {name: j, type: code_judge, command: %s, timeout: 5}
"""


def find_substitute(folder: Path, *command: str) -> tuple[str, ...] | None:
    return find_substitute_command(command, folder, make_services(folder, {}), [folder])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_sdk_is_found_for_script_behind_link_in_workspace(folder: Path) -> None:
    (folder / "real.js").write_text(SDK_SCRIPT)
    (folder / "check.js").symlink_to("real.js")
    found = find_substitute(folder, "node", "check.js")
    assert found is not None
    assert (SDK_FOLDER / "register.mjs").as_uri() in found


@pytest.mark.parametrize("target", ["/proc/self/pagemap", "../outside.js", "missing"])
def test_script_behind_link_out_of_workspace_is_not_read(folder: Path, target: str) -> None:
    (folder.parent / "outside.js").write_text(SDK_SCRIPT)
    (folder / "check.js").symlink_to(target)
    assert find_substitute(folder, "node", "check.js") is None
    assert find_substitute(folder, "node", "../outside.js") is None


def test_first_line_behind_link_out_of_workspace_is_not_read(folder: Path) -> None:
    outside = folder.parent / "outside.ts"
    outside.write_text("#!/usr/bin/env node\n")
    outside.chmod(0o755)
    (folder / "check.ts").symlink_to(outside)
    assert find_substitute(folder, "./check.ts", "check.ts") is None


@pytest.mark.parametrize(
    ("script", "package", "is_preloaded"),
    [
        (SDK_SCRIPT, None, True),
        (SDK_SCRIPT, "@agentv/sdk", False),
        (SDK_SCRIPT, "@agentv/eval", True),
        ("import 'fs'\n", None, False),
    ],
)
def test_installed_bun_gets_the_sdk_only_if_it_would_download_it(
    folder: Path, script: str, package: str | None, is_preloaded: bool
) -> None:
    programs = folder.parent / "programs"
    programs.mkdir()
    (programs / "bun").write_text("#!/bin/sh\n")
    (programs / "bun").chmod(0o755)
    (folder / "evals").mkdir()
    (folder / "evals" / "check.js").write_text(script)
    if package is not None:
        (folder / "node_modules" / package).mkdir(parents=True)
    services = make_services(folder, {"PATH": f"{programs}:{PATH}"})
    command = ("bun", "run", "evals/check.js", "more")
    found = find_substitute_command(command, folder, services, [folder])
    if not is_preloaded:
        assert found is None
        return
    assert found is not None
    bun, run, option, preloaded, *words = found
    assert (bun, run, option) == (str(programs / "bun"), "run", "--preload")
    assert Path(preloaded).is_file()
    assert words == ["evals/check.js", "more"]


def test_unreadable_script_has_no_substitute(folder: Path) -> None:
    (folder / "check.js").mkdir()
    assert find_substitute(folder, "node", "check.js") is None
    assert find_substitute(folder, "node", "a\0.js") is None


@pytest.mark.slow
@pytest.mark.parametrize("command", ["[node, x.js]", '["./x.js"]', "[python3, x.js]"])
def test_check_with_script_behind_link_to_endless_file_is_errored(
    folder: Path, command: str
) -> None:
    (folder / "x.js").symlink_to("/proc/self/pagemap")
    (folder / "a.eval.yaml").write_text(EVAL % command)
    (folder / "a.outputs.jsonl").write_text(json.dumps({"id": "one", "text": "hi"}) + "\n")
    run = (sys.executable, "-m", "agentci", "run", "a.eval.yaml")
    ran = subprocess.run(
        ("prlimit", f"--as={4 * 2**30}", *run),
        cwd=folder,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in {1, 2, 3}, ran.stderr
    assert "internal error" not in ran.stdout + ran.stderr
