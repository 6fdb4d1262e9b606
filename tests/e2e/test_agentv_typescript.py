"""Judges in TypeScript, as AgentV's users write them."""

import json
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.support import PATH, run_agentci
from tests.services.servers import MODULES

# Installed by npm for one processor and system (`make test-slow` does it).
BUN: Final = next(MODULES.glob("@oven/bun-*/bin/bun"), None)

JUDGE = """import { score } from './lib/utils.js';
import plain from './plain.js';
console.log(JSON.stringify({ score: score * plain }));
"""


def test_typescript_module_is_imported_by_the_name_of_its_javascript(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "judge.ts").write_text(JUDGE)
    (tmp_path / "lib" / "utils.ts").write_text("export { score } from './more.js';")
    (tmp_path / "lib" / "more.ts").write_text("export const score: number = 1;")
    (tmp_path / "plain.js").write_text("module.exports = 1;")
    judge = {"name": "j", "type": "code-grader", "command": ["bun", "run", "judge.ts"]}
    file = {"tests": [{"id": "a", "input": "q", "assertions": [judge]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(file))
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "x"}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, [each["score"] for each in ran.results["results"]]) == (0, [1.0]), ran.out


def test_missing_module_is_named_as_written(tmp_path: Path) -> None:
    (tmp_path / "judge.ts").write_text("import './gone.js';")
    judge = {"name": "j", "type": "code-grader", "command": ["bun", "run", "judge.ts"]}
    file = {"tests": [{"id": "a", "input": "q", "assertions": [judge]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(file))
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "x"}))
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
    assert (ran.code, "gone." in ran.out) == (3, True), ran.out


SDK_JUDGE = """#!/usr/bin/env bun
import { defineScriptGrader } from '@agentv/sdk';
import { count } from './words.js';

export default defineScriptGrader(({ output }) => {
  const words: number = count(typeof output === 'string' ? output : '');
  return { score: words / 2, assertions: [{ text: `Bun ${Bun.version}`, passed: words === 2 }] };
});
"""


@pytest.mark.slow
@pytest.mark.skipif(BUN is None, reason="bun is not installed by npm")
@pytest.mark.parametrize("line", ["bun run judge.ts", "bun judge.ts", "./judge.ts"])
def test_judge_with_the_sdk_runs_under_installed_bun(tmp_path: Path, line: str) -> None:
    assert BUN is not None
    (tmp_path / "judge.ts").write_text(SDK_JUDGE)
    (tmp_path / "judge.ts").chmod(0o755)
    words = "export const count = (text: string): number => text.split(' ').length;"
    (tmp_path / "words.ts").write_text(words)
    judge = {"name": "j", "type": "code-grader", "command": line.split()}
    file = {"tests": [{"id": "a", "input": "q", "assertions": [judge]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(file))
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "two words"}))
    environ = {"PATH": f"{BUN.parent}:{PATH}"}
    ran = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path, environ=environ)
    [result] = ran.results["results"]
    assert (ran.code, result["score"]) == (0, 1.0), ran.out
    assert result["hits"][0].startswith("Bun 1."), result
