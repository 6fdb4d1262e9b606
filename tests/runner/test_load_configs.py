"""Loading of configs: evaluators, programs and files inside the workspace."""

from pathlib import Path

import pytest

from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.runner.load_configs import load_suites
from agentci.runner.suite_files import LoadedSuite
from tests.helpers.support import make_services

PROGRAM = "- {{name: {0}, type: code, path: {0}.py}}\n"


def _load(folder: Path, *only: str) -> tuple[LoadedSuite, ...]:
    return load_suites(parse_settings([], {"only": only}), make_services(folder, {}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two configs: one with the evaluators a and b, one with c."""
    for name in "abc":
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "agentci.yaml").write_text("evaluators:\n" + PROGRAM.format("c"))
    (tmp_path / "x.eval.yaml").write_text(
        "evaluators:\n" + PROGRAM.format("a") + PROGRAM.format("b")
    )
    return tmp_path


class TestOnlyOption:
    def test_only_selects_evaluator_from_all_configs(self, folder: Path) -> None:
        [loaded] = _load(folder, "b")
        assert [each.identity.name for each in loaded.suite.evaluators] == ["b"]

    def test_only_selects_evaluators_of_different_configs(self, folder: Path) -> None:
        assert len(_load(folder, "b", "c")) == 2

    def test_evaluators_that_only_leaves_out_are_noted(self, folder: Path) -> None:
        [loaded] = _load(folder, "b")
        [note] = loaded.notices
        assert (note.severity, note.message) == ("note", "--only leaves out 2 evaluators: `c`, `a`")
        assert [each.notices for each in _load(folder)] == [(), ()]

    def test_unknown_evaluator_in_only_is_reported_once(self, folder: Path) -> None:
        with pytest.raises(InputError) as caught:
            _load(folder, "b", "d")
        assert [problem.message for problem in caught.value.problems] == [
            "--only names unknown evaluator 'd'"
        ]


class TestPaths:
    def test_config_outside_workspace_may_use_its_own_folder(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        settings = parse_settings([str(folder / "x.eval.yaml")], {})
        [loaded] = load_suites(settings, make_services(tmp_path_factory.mktemp("elsewhere"), {}))
        assert len(loaded.suite.evaluators) == 2

    def test_unsupported_program_is_reported_at_its_path(self, folder: Path) -> None:
        (folder / "c.rb").touch()
        (folder / "agentci.yaml").write_text("evaluators: [{name: c, type: code, path: c.rb}]")
        with pytest.raises(
            InputError,
            match=r"^agentci\.yaml:1:42: `c\.rb` .* has none of the supported extensions \(\.py",
        ):
            _load(folder)

    def test_all_config_errors_are_reported_together(self, folder: Path) -> None:
        (folder / "agentci.yaml").write_text(
            "evaluators:\n- {name: z, type: code, path: z.py, zap: 1}\n"
            "eval_set: gone.json\nfoo: 1\n"
        )
        with pytest.raises(InputError) as caught:
            _load(folder)
        lines = [problem.place.line for problem in caught.value.problems if problem.place]
        assert lines == [2, 2, 4, 3]
