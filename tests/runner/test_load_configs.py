"""Configs from disk: what they name is found, and kept inside the workspace."""

from pathlib import Path

import pytest

from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.runner.load_configs import LoadedSuite, load_suites
from tests.helpers.support import make_services

PROGRAM = "- {{name: {0}, type: code, path: {0}.py}}\n"


def _load(folder: Path, *only: str) -> tuple[LoadedSuite, ...]:
    return load_suites(parse_settings([], {"only": only}), make_services(folder, {}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two configs, with the evaluators a and b, and c."""
    for name in "abc":
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "agentci.yaml").write_text("evaluators:\n" + PROGRAM.format("c"))
    (tmp_path / "x.eval.yaml").write_text(
        "evaluators:\n" + PROGRAM.format("a") + PROGRAM.format("b")
    )
    return tmp_path


class TestOnly:
    def test_a_name_is_looked_for_in_all_configs(self, folder: Path) -> None:
        [loaded] = _load(folder, "b")
        assert [each.identity.name for each in loaded.suite.evaluators] == ["b"]

    def test_names_may_stand_in_different_configs(self, folder: Path) -> None:
        assert len(_load(folder, "b", "c")) == 2

    def test_a_name_that_no_config_has_is_a_problem_told_once(self, folder: Path) -> None:
        with pytest.raises(InputError) as caught:
            _load(folder, "b", "d")
        assert [problem.message for problem in caught.value.problems] == [
            "--only names unknown evaluator 'd'"
        ]


class TestPaths:
    def test_a_config_from_elsewhere_may_name_files_of_its_own_folder(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        settings = parse_settings([str(folder / "x.eval.yaml")], {})
        [loaded] = load_suites(settings, make_services(tmp_path_factory.mktemp("elsewhere"), {}))
        assert len(loaded.suite.evaluators) == 2

    def test_a_program_that_nothing_can_run_is_told_at_its_path(self, folder: Path) -> None:
        (folder / "c.rb").touch()
        (folder / "agentci.yaml").write_text("evaluators: [{name: c, type: code, path: c.rb}]")
        with pytest.raises(InputError, match=r"^agentci\.yaml:1:42: 'c\.rb' is none of \.py"):
            _load(folder)

    def test_what_is_wrong_with_a_config_is_told_all_at_once(self, folder: Path) -> None:
        (folder / "agentci.yaml").write_text(
            "evaluators:\n- {name: z, type: code, path: z.py, zap: 1}\n"
            "eval_set: gone.json\nfoo: 1\n"
        )
        with pytest.raises(InputError) as caught:
            _load(folder)
        lines = [problem.place.line for problem in caught.value.problems if problem.place]
        assert lines == [2, 2, 4, 3]
