"""Configs are found by name, recordings by glob."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.workspace import find_workspace
from agentci.config.discovery import find_configs, find_matching_paths
from agentci.errors import InputError


def _touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders nested deeper than functions may be, with a config at the bottom and at the top."""
    top = tmp_path_factory.mktemp("deep")
    bottom = top / "/".join("d" * 1000)
    subprocess.run(["mkdir", "-p", bottom], check=True)  # which Python cannot
    _touch(top, "1.eval.yaml")
    _touch(bottom, "2.eval.yaml")
    yield top
    subprocess.run(["rm", "-r", top / "d"], check=True)


def _found(folder: Path, *given: str) -> list[str]:
    found, problems = find_configs(given, find_workspace(folder))
    if problems:
        raise InputError(problems)
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

    def test_folders_may_be_nested_deeper_than_functions(self, deep: Path) -> None:
        assert len(_found(deep)) == 2

    def test_one_behind_a_link_that_leads_out_has_to_be_named(self, tmp_path: Path) -> None:
        folder = tmp_path / "w"
        _touch(tmp_path, "mine.yaml", "w/1.eval.yaml")
        (folder / "x.eval.yaml").symlink_to(tmp_path / "mine.yaml")
        with pytest.raises(InputError, match=r"x\.eval\.yaml is outside the workspace"):
            _found(folder)
        assert _found(folder, "x.eval.yaml") == ["x.eval.yaml"]

    @pytest.mark.parametrize("name", ["x" * 5000, "/".join(["y" * 200] * 100), "loop"])
    def test_a_name_that_no_file_can_have_is_not_there(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "loop").symlink_to("loop")
        if name == "loop":
            assert _found(tmp_path, name) == [name]
        else:
            with pytest.raises(InputError, match="does not exist"):
                _found(tmp_path, name)

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

    def test_folders_named_like_configs_are_none(self, tmp_path: Path) -> None:
        _touch(tmp_path, "a.eval.yaml/b.eval.yaml", ".agentci/c.yaml/d", "e.eval.yaml")
        assert _found(tmp_path) == ["e.eval.yaml", "a.eval.yaml/b.eval.yaml"]

    def test_one_that_is_spelled_differently_counts_once(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml", "sub/y")
        assert _found(tmp_path, "sub/../x.yaml", "x.yaml", f"{tmp_path}/x.yaml") == [
            "sub/../x.yaml"
        ]

    def test_every_name_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError) as caught:
            _found(tmp_path, "x.yaml", "y.yaml", "empty")
        assert [problem.message for problem in caught.value.problems] == [
            "y.yaml does not exist",
            "no config found in empty",
        ]


class TestMatches:
    def test_stars_reach_into_folders(self, tmp_path: Path) -> None:
        _touch(tmp_path, "t/a.json", "t/deep/er/b.json", "t/c.txt")
        names = [path.name for path in find_matching_paths(tmp_path, "t/**/*.json")]
        assert names == ["a.json", "b.json"]

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("**", ["a.json", "t/b.json", "t/u/c.json"]),
            ("**/*.json", ["a.json", "t/b.json", "t/u/c.json"]),
            ("**/**/c.json", ["t/u/c.json"]),
            ("**/u/*", ["t/u/c.json"]),
            ("./t/../t/**/?.json", ["t/../t/b.json", "t/../t/u/c.json"]),
            ("*/*", ["t/b.json"]),
            ("[ab].json", ["a.json"]),
            ("a.json/*", []),
            (".*/*", [".h/d.json"]),
            ("x/**", []),
            ("*\0", []),
            ("[", []),
        ],
    )
    def test_patterns(self, tmp_path: Path, pattern: str, expected: list[str]) -> None:
        _touch(tmp_path, "a.json", "t/b.json", "t/u/c.json", ".h/d.json")
        found = find_matching_paths(tmp_path, pattern)
        assert [str(path).removeprefix(f"{tmp_path}/") for path in found] == expected
        absolute = find_matching_paths(Path("/nowhere"), f"{tmp_path}/{pattern}")
        assert absolute == found

    def test_links_that_lead_in_circles_are_not_followed(self, tmp_path: Path) -> None:
        _touch(tmp_path, "t/a.json")
        for name in "bcdef":
            (tmp_path / name).symlink_to(".")
        assert find_matching_paths(tmp_path, "**/*.json") == (tmp_path / "t" / "a.json",)
        assert find_matching_paths(tmp_path, "b/t/*.json") == (tmp_path / "b" / "t" / "a.json",)

    def test_stars_reach_to_the_bottom_of_a_very_deep_folder(self, deep: Path) -> None:
        assert len(find_matching_paths(deep, "**/*.yaml")) == 2

    def test_a_name_with_brackets_is_found_as_it_is(self, tmp_path: Path) -> None:
        _touch(tmp_path, "run[1].json")
        assert find_matching_paths(tmp_path, "run[1].json") == (tmp_path / "run[1].json",)

    def test_a_file_whose_name_is_a_pattern_hides_no_other(self, tmp_path: Path) -> None:
        _touch(tmp_path, "t/*.json", "t/+.json", "t/a.json")
        assert [path.name for path in find_matching_paths(tmp_path, "t/*.json")] == [
            "*.json",
            "+.json",
            "a.json",
        ]
        assert [path.name for path in find_matching_paths(tmp_path, "t/?.json")] == [
            "*.json",
            "+.json",
            "a.json",
        ]

    def test_folders_may_have_brackets_and_stars_in_their_names(self, tmp_path: Path) -> None:
        _touch(tmp_path, "[x]/a.json", "*/b.json")
        assert find_matching_paths(tmp_path, "[x]/*.json") == (tmp_path / "[x]" / "a.json",)
        assert find_matching_paths(tmp_path, "*") == (tmp_path / "*",)

    def test_brackets_in_the_folder_around_do_not_matter(self, tmp_path: Path) -> None:
        _touch(tmp_path, "[x]/a.json")
        assert find_matching_paths(tmp_path / "[x]", "*.json") == (tmp_path / "[x]" / "a.json",)

    def test_folders_are_no_recordings(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").mkdir()
        assert find_matching_paths(tmp_path, "*.json") == ()


@pytest.mark.parametrize("name", ["agentci.yml", ".agentci/a.yml", "deep/er/x.eval.yml"])
def test_a_config_of_another_extension_is_told_how_to_be_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    _, [problem] = find_configs([], find_workspace(tmp_path, root=tmp_path))
    assert problem.hint == f"rename {name} to {name[:-4]}.yaml, or pass its path"
