"""Configs are found by name, other files by glob."""

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
    """Folders nested deeper than Python's recursion limit, with a config at the top and bottom."""
    top = tmp_path_factory.mktemp("deep")
    bottom = top / "/".join("d" * 1000)
    subprocess.run(["mkdir", "-p", bottom], check=True)  # too deep for os.makedirs
    _touch(top, "1.eval.yaml")
    _touch(bottom, "2.eval.yaml")
    yield top
    subprocess.run(["rm", "-r", top / "d"], check=True)


def _find(folder: Path, *given: str) -> list[str]:
    found, problems = find_configs(given, find_workspace(folder))
    if problems:
        raise InputError(problems)
    return [path.relative_to(folder).as_posix() for path in found]


class TestConfigs:
    def test_configs_below_working_directory_are_find(self, tmp_path: Path) -> None:
        _touch(
            tmp_path, "agentci.yaml", "eval_config.yaml", ".agentci/b.yaml", "evals/x/q.eval.yaml"
        )
        assert _find(tmp_path) == [
            "agentci.yaml",
            "eval_config.yaml",
            ".agentci/b.yaml",
            "evals/x/q.eval.yaml",
        ]

    def test_deeply_nested_config_is_find(self, deep: Path) -> None:
        assert len(_find(deep)) == 2

    def test_config_behind_link_to_outside_is_refused(self, tmp_path: Path) -> None:
        folder = tmp_path / "w"
        _touch(tmp_path, "mine.yaml", "w/1.eval.yaml")
        (folder / "x.eval.yaml").symlink_to(tmp_path / "mine.yaml")
        for given in ((), ("x.eval.yaml",), ("*.eval.yaml",), (str(folder / "x.eval.yaml"),)):
            with pytest.raises(InputError, match=r"x\.eval\.yaml is a link to .*mine\.yaml"):
                _find(folder, *given)
        assert _find(folder, "../mine.yaml") == ["../mine.yaml"]

    @pytest.mark.parametrize("name", ["x" * 5000, "/".join(["y" * 200] * 100), "loop"])
    def test_impossible_file_name_does_not_exist(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "loop").symlink_to("loop")
        if name == "loop":
            assert _find(tmp_path, name) == [name]
        else:
            with pytest.raises(InputError, match="does not exist"):
                _find(tmp_path, name)

    def test_hidden_and_vendored_folders_are_skipped(self, tmp_path: Path) -> None:
        _touch(tmp_path, "a.eval.yaml", ".hidden/b.eval.yaml", "node_modules/c.eval.yaml")
        assert _find(tmp_path) == ["a.eval.yaml"]

    def test_error_lists_searched_names(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"agentci\.yaml, eval_config\.yaml"):
            _find(tmp_path)

    def test_files_folders_and_globs_count_once(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml", "team/eval_config.yaml", "g/1.yaml", "g/2.yaml")
        assert _find(tmp_path, "x.yaml", "team", "g/*.yaml", "g/1.yaml") == [
            "x.yaml",
            "team/eval_config.yaml",
            "g/1.yaml",
            "g/2.yaml",
        ]

    def test_folder_named_like_config_is_not_a_config(self, tmp_path: Path) -> None:
        _touch(tmp_path, "a.eval.yaml/b.eval.yaml", ".agentci/c.yaml/d", "e.eval.yaml")
        assert _find(tmp_path) == ["e.eval.yaml", "a.eval.yaml/b.eval.yaml"]

    def test_config_with_two_spellings_counts_once(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml", "sub/y")
        assert _find(tmp_path, "sub/../x.yaml", "x.yaml", f"{tmp_path}/x.yaml") == ["sub/../x.yaml"]

    def test_every_missing_name_is_reported(self, tmp_path: Path) -> None:
        _touch(tmp_path, "x.yaml")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError) as caught:
            _find(tmp_path, "x.yaml", "y.yaml", "empty")
        assert [problem.message for problem in caught.value.problems] == [
            "y.yaml does not exist",
            "no config found in empty",
        ]

    @pytest.mark.parametrize("given", [(), ("agentci.yaml",), ("sub",), ("sub/x.yml",)])
    def test_folder_in_the_place_of_a_config_is_named(
        self, given: tuple[str, ...], tmp_path: Path
    ) -> None:
        for name in ("agentci.yaml", "sub/agentci.yaml", "sub/x.yml"):
            (tmp_path / name).mkdir(parents=True)
        with pytest.raises(InputError) as caught:
            _find(tmp_path, *given)
        named = "sub/agentci.yaml" if given == ("sub",) else "".join(given) or "agentci.yaml"
        assert str(caught.value) == (
            f"{named} is a folder (name a config in it, or put a config in its place)"
        )


class TestFindMatchingPaths:
    def test_double_star_matches_nested_folders(self, tmp_path: Path) -> None:
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
    def test_pattern_matches_expected_files(
        self, tmp_path: Path, pattern: str, expected: list[str]
    ) -> None:
        _touch(tmp_path, "a.json", "t/b.json", "t/u/c.json", ".h/d.json")
        found = find_matching_paths(tmp_path, pattern)
        assert [str(path).removeprefix(f"{tmp_path}/") for path in found] == expected
        absolute = find_matching_paths(Path("/nowhere"), f"{tmp_path}/{pattern}")
        assert absolute == found

    def test_symlink_loops_are_not_followed(self, tmp_path: Path) -> None:
        _touch(tmp_path, "t/a.json")
        for name in "bcdef":
            (tmp_path / name).symlink_to(".")
        assert find_matching_paths(tmp_path, "**/*.json") == (tmp_path / "t" / "a.json",)
        assert find_matching_paths(tmp_path, "b/t/*.json") == (tmp_path / "b" / "t" / "a.json",)

    def test_deeply_nested_file_matches_double_star(self, deep: Path) -> None:
        assert len(find_matching_paths(deep, "**/*.yaml")) == 2

    def test_name_with_brackets_matches_literally(self, tmp_path: Path) -> None:
        _touch(tmp_path, "run[1].json")
        assert find_matching_paths(tmp_path, "run[1].json") == (tmp_path / "run[1].json",)

    def test_file_named_like_pattern_hides_no_other(self, tmp_path: Path) -> None:
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

    def test_folder_with_brackets_or_star_matches_literally(self, tmp_path: Path) -> None:
        _touch(tmp_path, "[x]/a.json", "*/b.json")
        assert find_matching_paths(tmp_path, "[x]/*.json") == (tmp_path / "[x]" / "a.json",)
        assert find_matching_paths(tmp_path, "*") == (tmp_path / "*",)

    def test_brackets_in_base_folder_are_literal(self, tmp_path: Path) -> None:
        _touch(tmp_path, "[x]/a.json")
        assert find_matching_paths(tmp_path / "[x]", "*.json") == (tmp_path / "[x]" / "a.json",)

    def test_folder_does_not_match(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").mkdir()
        assert find_matching_paths(tmp_path, "*.json") == ()


@pytest.mark.parametrize("name", ["agentci.yml", ".agentci/a.yml", "deep/er/x.eval.yml"])
def test_config_with_wrong_extension_gets_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    _, [problem] = find_configs([], find_workspace(tmp_path, root=tmp_path))
    assert problem.hint == f"rename {name} to {name[:-4]}.yaml, or pass its path"
