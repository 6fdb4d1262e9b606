"""Command lines of eval files are not run again where nothing has changed."""

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
    "our Python": PYTHON,
    "a shell": "python3 evals/check/check.py",
    "uv": ("uv", "run", "evals/check/check.py"),
    "Node.js": ("node", "evals/check/check.js"),
    "a program": ("./evals/check/check.sh", "word"),
}
# Refuses what it is given, once all members have been judged.
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


def _judged(folder: Path, *evaluators: dict[str, Any]) -> Judged:
    case = {"id": "a", "criteria": "c", "input": "q", "execution": {"evaluators": evaluators}}
    text = json.dumps({"outputs": "outputs.jsonl", "cases": [case]})
    (folder / EVAL_FILE).write_text(text)
    return run(folder, EVAL_FILE)


def _judge(script: str | Sequence[str] = PYTHON, **fields: Any) -> dict[str, Any]:
    entry = {"name": "check", "type": "code_judge", "script": script, "cache": True}
    return {**entry, **fields}


@pytest.mark.parametrize("name", COMMANDS)
class TestACommand:
    def test_is_not_run_again_where_nothing_has_changed(self, folder: Path, name: str) -> None:
        first, second = (_judged(folder, _judge(COMMANDS[name])) for _ in range(2))
        assert (first.cached, second.cached) == ([False], [True])
        assert first.times == second.times

    def test_is_run_again_where_its_folder_has(self, folder: Path, name: str) -> None:
        first = _judged(folder, _judge(COMMANDS[name]))
        (folder / "evals" / "check" / "new.txt").touch()
        second = _judged(folder, _judge(COMMANDS[name]))
        assert second.cached == [False]
        assert first.times != second.times


class TestACommandIsRunAgain:
    def test_with_another_argument(self, folder: Path) -> None:
        _judged(folder, _judge([*PYTHON, "one"]))
        assert _judged(folder, _judge([*PYTHON, "one"])).cached == [True]
        assert _judged(folder, _judge([*PYTHON, "two"])).cached == [False]

    def test_in_another_folder(self, folder: Path) -> None:
        script = [sys.executable, str(folder / PYTHON[1])]
        (folder / "evals" / "data").mkdir()
        (folder / "evals" / "data" / "words.txt").write_text("kind")
        _judged(folder, _judge(script))
        assert _judged(folder, _judge(script, cwd="evals")).cached == [False]

    def test_with_another_module(self, folder: Path) -> None:
        _judged(folder, _judge())
        write_helper(folder, "two")
        assert _judged(folder, _judge()).seen[0] == "two"

    def test_with_another_file_that_it_names(self, folder: Path) -> None:
        script = [*PYTHON, "data/words.txt"]
        _judged(folder, _judge(script))
        (folder / "data" / "other.txt").touch()
        assert _judged(folder, _judge(script)).cached == [True]
        (folder / "data" / "words.txt").write_text("rude")
        assert _judged(folder, _judge(script)).cached == [False]

    @pytest.mark.parametrize("fields", [{"cache": False}, {}])
    def test_without_cache_true(self, folder: Path, fields: dict[str, bool]) -> None:
        entry = {"name": "check", "type": "code_judge", "script": PYTHON, **fields}
        first, second = (_judged(folder, entry) for _ in range(2))
        assert second.cached == [False]
        assert first.times != second.times

    def test_where_it_names_no_file(self, folder: Path) -> None:
        line = "python3 evals/*/check.py"
        first, second = (_judged(folder, _judge(line)) for _ in range(2))
        assert second.cached == [False]
        assert "the command of evaluator `check` contains no file to compare" in first.out
        assert first.times != second.times

    def test_where_it_could_not_be_judged(self, folder: Path) -> None:
        (folder / "evals" / "check" / "check.py").write_text("import helper; print('no')")
        assert [_judged(folder, _judge()).cached for _ in range(2)] == [[False], [False]]

    def test_where_it_has_a_null_in_it(self, folder: Path) -> None:
        judged = _judged(folder, _judge([*PYTHON, "a\0b"]))
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


class TestAComposite:
    def _judged(self, folder: Path, **aggregator: Any) -> Judged:
        members = [_judge(name="one"), _judge([*PYTHON, "two"], name="two")]
        composite = {"name": "all", "type": "composite", "evaluators": members}
        how = aggregator or {"type": "weighted_average"}
        return _judged(folder, {**composite, "aggregator": how})

    def test_runs_nothing_where_no_member_has_changed(self, folder: Path) -> None:
        assert [self._judged(folder).cached for _ in range(2)] == [[False], [True]]

    def test_runs_where_a_member_has(self, folder: Path) -> None:
        self._judged(folder)
        write_helper(folder, "two")
        assert self._judged(folder).cached == [False]
        assert self._judged(folder).cached == [True]

    def test_keeps_the_program_that_puts_scores_together_like_others(self, folder: Path) -> None:
        (folder / "sum.py").write_text(f"WORD = 'good'; {AGGREGATE}")
        how = {"type": "code_judge", "path": "python3 sum.py", "cache": True}
        assert [self._judged(folder, **how).cached for _ in range(2)] == [[False], [True]]
        assert self._judged(folder, **{**how, "cache": False}).cached == [False]

    def test_keeps_nothing_that_came_to_no_judgement(self, folder: Path) -> None:
        how = {"type": "code_judge", "path": "python3 sum.py", "cache": True}
        (folder / "sum.py").write_text(f"WORD = 'bad'; {AGGREGATE}")
        assert [self._judged(folder, **how).code for _ in range(2)] == [3, 3]
        (folder / "sum.py").write_text(f"WORD = 'good'; {AGGREGATE}")
        assert self._judged(folder, **how).cached == [False]

    def test_keeps_what_a_member_replied_where_another_takes_too_long(self, folder: Path) -> None:
        two = folder / "two.py"
        members = [_judge(name="one"), _judge("python3 two.py", name="two", timeout=1)]
        composite = {"name": "all", "type": "composite", "evaluators": members}
        judge = {**composite, "aggregator": {"type": "weighted_average"}}
        found = []
        for text in (quick := "print('{\"score\": 1}')", "while True: pass", quick):
            two.write_text(text)
            judged = _judged(folder, judge)
            found.append((judged.code, judged.cached))
        assert found == [(0, [False]), (3, [False]), (0, [True])]
