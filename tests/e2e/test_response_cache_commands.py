"""Cached responses of commands in eval files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cached_runs import PROGRAMS, Judged, run, write_helper, write_program
from tests.helpers.support import run_agentci

EVAL_FILE: Final = "cases.eval.yaml"
PYTHON: Final = (sys.executable, "evals/check/check.py")
COMMANDS: Final[dict[str, str | Sequence[str]]] = {
    "agentci's Python": PYTHON,
    "shell": "python3 evals/check/check.py",
    "uv": ("uv", "run", "evals/check/check.py"),
    "Node.js": ("node", "evals/check/check.js"),
    "executable": ("./evals/check/check.sh", "word"),
}
# Fails, after all members have run, if WORD is bad.
AGGREGATE: Final = 'import json; print("no" if WORD == "bad" else json.dumps({"score": 1}))'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_program(tmp_path)
    for name, text in PROGRAMS.items():
        program = tmp_path / "evals" / "check" / name
        program.write_text(text)
        program.chmod(0o755)
        write_helper(tmp_path, "one", name=name)
    (tmp_path / "outputs.jsonl").write_text(json.dumps({"id": "a", "text": "yes"}))
    return tmp_path


def _evaluate(folder: Path, *evaluators: dict[str, Any]) -> Judged:
    case = {"id": "a", "criteria": "c", "input": "q", "execution": {"evaluators": evaluators}}
    text = json.dumps({"outputs": "outputs.jsonl", "cases": [case]})
    (folder / EVAL_FILE).write_text(text)
    return run(folder, EVAL_FILE)


def _code_judge(script: str | Sequence[str] = PYTHON, **fields: Any) -> dict[str, Any]:
    entry = {"name": "check", "type": "code_judge", "script": script, "cache": True}
    return {**entry, **fields}


@pytest.mark.parametrize("name", COMMANDS)
class TestCommand:
    def test_unchanged_command_is_not_run(self, folder: Path, name: str) -> None:
        first, second = (_evaluate(folder, _code_judge(COMMANDS[name])) for _ in range(2))
        assert (first.cached, second.cached) == ([False], [True])
        assert first.times == second.times

    def test_changed_folder_runs_command(self, folder: Path, name: str) -> None:
        first = _evaluate(folder, _code_judge(COMMANDS[name]))
        (folder / "evals" / "check" / "new.txt").touch()
        second = _evaluate(folder, _code_judge(COMMANDS[name]))
        assert second.cached == [False]
        assert first.times != second.times


class TestCommandIsRun:
    def test_changed_argument_runs_command(self, folder: Path) -> None:
        _evaluate(folder, _code_judge([*PYTHON, "one"]))
        assert _evaluate(folder, _code_judge([*PYTHON, "one"])).cached == [True]
        assert _evaluate(folder, _code_judge([*PYTHON, "two"])).cached == [False]

    def test_changed_cwd_runs_command(self, folder: Path) -> None:
        script = [sys.executable, str(folder / PYTHON[1])]
        (folder / "evals" / "data").mkdir()
        (folder / "evals" / "data" / "words.txt").write_text("kind")
        _evaluate(folder, _code_judge(script))
        assert _evaluate(folder, _code_judge(script, cwd="evals")).cached == [False]

    def test_changed_module_runs_command(self, folder: Path) -> None:
        _evaluate(folder, _code_judge())
        write_helper(folder, "two")
        assert _evaluate(folder, _code_judge()).seen[0] == "two"

    def test_changed_file_argument_runs_command(self, folder: Path) -> None:
        script = [*PYTHON, "data/words.txt"]
        _evaluate(folder, _code_judge(script))
        (folder / "data" / "other.txt").touch()
        assert _evaluate(folder, _code_judge(script)).cached == [True]
        (folder / "data" / "words.txt").write_text("rude")
        assert _evaluate(folder, _code_judge(script)).cached == [False]

    @pytest.mark.parametrize("fields", [{"cache": False}, {}])
    def test_command_without_cache_true_is_always_run(
        self, folder: Path, fields: dict[str, bool]
    ) -> None:
        entry = {"name": "check", "type": "code_judge", "script": PYTHON, **fields}
        first, second = (_evaluate(folder, entry) for _ in range(2))
        assert second.cached == [False]
        assert first.times != second.times

    def test_command_without_file_is_always_run(self, folder: Path) -> None:
        line = "python3 evals/*/check.py"
        first, second = (_evaluate(folder, _code_judge(line)) for _ in range(2))
        assert second.cached == [False]
        assert "the command of evaluator `check` contains no file to compare" in first.out
        assert first.times != second.times

    def test_errored_command_is_not_cached(self, folder: Path) -> None:
        (folder / "evals" / "check" / "check.py").write_text("import helper; print('no')")
        assert [_evaluate(folder, _code_judge()).cached for _ in range(2)] == [[False], [False]]

    def test_null_byte_in_argument_errors_check(self, folder: Path) -> None:
        judged = _evaluate(folder, _code_judge([*PYTHON, "a\0b"]))
        assert [each["status"] for each in judged.results] == ["errored"]


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "contains", "value": "yes"},
        {"type": "llm_judge", "prompt": "Is it good?"},
        {"type": "tool_trajectory", "mode": "any_order", "minimums": {"search": 1}},
    ],
)
def test_entry_without_a_program_has_no_cache_field(folder: Path, entry: dict[str, Any]) -> None:
    case = {"id": "a", "input": "q", "evaluators": [{"name": "x", "cache": True, **entry}]}
    (folder / EVAL_FILE).write_text(json.dumps({"outputs": "outputs.jsonl", "cases": [case]}))
    ran = run_agentci(["validate", EVAL_FILE], cwd=folder)
    assert (ran.code, "unknown key 'cache'" in ran.out) == (2, True), ran.out


class TestComposite:
    def _evaluate(self, folder: Path, **aggregator: Any) -> Judged:
        members = [_code_judge(name="one"), _code_judge([*PYTHON, "two"], name="two")]
        composite = {"name": "all", "type": "composite", "evaluators": members}
        how = aggregator or {"type": "weighted_average"}
        return _evaluate(folder, {**composite, "aggregator": how})

    def test_unchanged_composite_is_not_run(self, folder: Path) -> None:
        assert [self._evaluate(folder).cached for _ in range(2)] == [[False], [True]]

    def test_changed_member_runs_composite(self, folder: Path) -> None:
        self._evaluate(folder)
        write_helper(folder, "two")
        assert self._evaluate(folder).cached == [False]
        assert self._evaluate(folder).cached == [True]

    def test_aggregator_program_is_cached_with_cache_true(self, folder: Path) -> None:
        (folder / "sum.py").write_text(f"WORD = 'good'; {AGGREGATE}")
        how = {"type": "code_judge", "path": "python3 sum.py", "cache": True}
        assert [self._evaluate(folder, **how).cached for _ in range(2)] == [[False], [True]]
        assert self._evaluate(folder, **{**how, "cache": False}).cached == [False]

    def test_failed_aggregator_is_not_cached(self, folder: Path) -> None:
        how = {"type": "code_judge", "path": "python3 sum.py", "cache": True}
        (folder / "sum.py").write_text(f"WORD = 'bad'; {AGGREGATE}")
        assert [self._evaluate(folder, **how).code for _ in range(2)] == [3, 3]
        (folder / "sum.py").write_text(f"WORD = 'good'; {AGGREGATE}")
        assert self._evaluate(folder, **how).cached == [False]

    def test_finished_member_stays_cached_after_timeout_of_other(self, folder: Path) -> None:
        two = folder / "two.py"
        members = [_code_judge(name="one"), _code_judge("python3 two.py", name="two", timeout=1)]
        composite = {"name": "all", "type": "composite", "evaluators": members}
        judge = {**composite, "aggregator": {"type": "weighted_average"}}
        found = []
        for text in (quick := "print('{\"score\": 1}')", "while True: pass", quick):
            two.write_text(text)
            judged = _evaluate(folder, judge)
            found.append((judged.code, judged.cached))
        assert found == [(0, [False]), (3, [False]), (0, [True])]
