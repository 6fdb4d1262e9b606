"""Configs are found by name, recordings by glob."""

from pathlib import Path

import pytest

from agentci.discovery import find_configs, matches
from agentci.errors import InputError
from agentci.workspace import workspace_of


def _touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def _found(folder: Path, *given: str) -> list[str]:
    found = find_configs(given, workspace_of(folder))
    return [path.relative_to(folder).as_posix() for path in found]


class TestConfigs:
    def test_without_a_name_they_are_found_below_the_working_directory(
        self, tmp_path: Path
    ) -> None:
        _touch(
            tmp_path, "agentci.yaml", "eval_config.yaml", ".agentci/b.yaml", "evals/x/q.eval.yaml"
        )
        assert _found(tmp_path) == [
            "agentci.yaml",
            "eval_config.yaml",
            ".agentci/b.yaml",
            "evals/x/q.eval.yaml",
        ]

    def test_hidden_and_vendored_folders_are_skipped(self, tmp_path: Path) -> None:
        _touch(tmp_path, "a.eval.yaml", ".hidden/b.eval.yaml", "node_modules/c.eval.yaml")
        assert _found(tmp_path) == ["a.eval.yaml"]

    def test_none_at_all_says_where_was_looked(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"agentci\.yaml, eval_config\.yaml"):
            _found(tmp_path)

    def test_files_folders_and_globs_may_be_given_and_count_once(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml", "team/eval_config.yaml", "g/1.yaml", "g/2.yaml")
        assert _found(tmp_path, "x.yaml", "team", "g/*.yaml", "g/1.yaml") == [
            "x.yaml",
            "team/eval_config.yaml",
            "g/1.yaml",
            "g/2.yaml",
        ]

    def test_every_name_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError) as caught:
            _found(tmp_path, "x.yaml", "y.yaml", "empty")
        assert [problem.message for problem in caught.value.problems] == [
            "y.yaml does not exist",
            "no config was found below empty",
        ]


class TestMatches:
    def test_stars_reach_into_folders(self, tmp_path: Path) -> None:
        _touch(tmp_path, "t/a.json", "t/deep/er/b.json", "t/c.txt")
        names = [path.name for path in matches(tmp_path, "t/**/*.json")]
        assert names == ["a.json", "b.json"]

    def test_a_name_with_brackets_is_found_as_it_is(self, tmp_path: Path) -> None:
        _touch(tmp_path, "run[1].json")
        assert matches(tmp_path, "run[1].json") == (tmp_path / "run[1].json",)

    def test_brackets_in_the_folder_around_do_not_matter(self, tmp_path: Path) -> None:
        _touch(tmp_path, "[x]/a.json")
        assert matches(tmp_path / "[x]", "*.json") == (tmp_path / "[x]" / "a.json",)

    def test_folders_are_no_recordings(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").mkdir()
        assert matches(tmp_path, "*.json") == ()
