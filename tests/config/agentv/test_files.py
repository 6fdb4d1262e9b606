"""Files that eval files refer to: found as in AgentV, and only inside the workspace."""

from pathlib import Path

import pytest

from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.runner.load_configs import load_suites
from tests.helpers.support import make_services

ASSERTIONS = "assertions: [{type: is-json}]\n"
CASES = "- {id: %s, input: q}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with an eval file in a folder of its own."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "evals").mkdir()
    return tmp_path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _ids(folder: Path, text: str) -> list[str]:
    _write(folder / "evals/f.eval.yaml", ASSERTIONS + text)
    [loaded] = load_suites(parse_settings([], {}), make_services(folder, {}))
    return [each.eval_case.id for each in loaded.suite.eval_cases or ()]


def _error(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        _ids(folder, text)
    return str(caught.value.problems[0]).removeprefix("evals/f.eval.yaml:")


class TestCaseFiles:
    def test_case_file_is_found_beside_eval_file(self, folder: Path) -> None:
        _write(folder / "evals/cases/a.yaml", CASES % "a")
        _write(folder / "evals/b.jsonl", '\ufeff{"id": "b", "input": "q"}\r\n')
        _write(folder / "evals/c.json", '[{"id": "c", "input": "q"}]')
        assert _ids(folder, "tests: [file://cases/a.yaml, ./b.jsonl, c.json]") == ["a", "b", "c"]

    def test_glob_matches_in_name_order(self, folder: Path) -> None:
        for name in "cab":
            _write(folder / f"evals/cases/{name}.yaml", CASES % name)
        assert _ids(folder, "tests: cases/*.yaml") == ["a", "b", "c"]

    def test_folder_holds_one_case_per_subfolder(self, folder: Path) -> None:
        _write(folder / "evals/cases/b/case.yml", "input: q")
        _write(folder / "evals/cases/a/case.yaml", "{id: own, input: q}")
        _write(folder / "evals/cases/a/workspace/case.yaml", "not read")
        _write(folder / "evals/cases/c/note.md", "no case")
        assert _ids(folder, "tests: ./cases/") == ["own", "b"]

    def test_case_file_may_exceed_config_limits(self, folder: Path) -> None:
        lines = [f'{{"id": "{i}", "input": "{"q" * 1000}"}}\n' for i in range(1100)]
        _write(folder / "evals/many.jsonl", "".join(lines))
        assert len(_ids(folder, "tests: many.jsonl")) == 1100
        _write(folder / "evals/many.yaml", ASSERTIONS)
        settings = parse_settings(["evals/many.jsonl"], {})
        [loaded] = load_suites(settings, make_services(folder, {}))
        assert len(loaded.suite.eval_cases or ()) == 1100

    @pytest.mark.parametrize(
        ("reference", "message"),
        [
            ("gone.yaml", "2:8: no case file matches gone.yaml (looked in"),
            ("../..", "2:8: ../.. is outside the workspace"),
            ("link.yaml", "2:8: link.yaml is outside the workspace"),
            ("empty", "2:8: no folder in empty has a case.yaml (use one folder per case)"),
            (
                "cases.txt",
                "2:8: evals/cases.txt is not a file of cases (cases are read from .yaml,",
            ),
            ("cases.csv", "evals/cases.csv:1: the file has no cases"),
            ("/etc/hostname", "2:8: /etc/hostname"),
        ],
    )
    def test_unreadable_case_file_is_reported(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory, reference: str, message: str
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "x.yaml"
        elsewhere.write_text(CASES % "x")
        (folder / "evals/link.yaml").symlink_to(elsewhere)
        _write(folder / "evals/cases.txt", "")
        _write(folder / "evals/cases.csv", "id,input\n")
        (folder / "evals/empty").mkdir()
        assert _error(folder, f"tests: {reference}").startswith(message)


class TestIncludedFiles:
    ENTRY = "assertions: [{type: contains, value: %s}]"

    def _names(self, folder: Path, included: str) -> list[str]:
        text = f"assertions: [{{include: {included}}}]\ntests: [{{id: a, input: q}}]"
        _write(folder / "evals/f.eval.yaml", text)
        [loaded] = load_suites(parse_settings([], {}), make_services(folder, {}))
        return list(loaded.suite.names)

    def test_named_template_comes_from_nearest_folder(self, folder: Path) -> None:
        _write(folder / ".agentv/templates/safe.yml", self.ENTRY % "far")
        assert self._names(folder, "safe") == ["contains-far"]
        _write(folder / "evals/.agentv/templates/safe.yaml", self.ENTRY % "near")
        assert self._names(folder, "safe") == ["contains-near"]

    def test_included_path_is_relative_to_including_file(self, folder: Path) -> None:
        _write(folder / "evals/shared/a.yaml", "assertions: [{include: ./b.yaml}]")
        _write(folder / "evals/shared/b.yaml", self.ENTRY % "b")
        _write(folder / "evals/b.yaml", self.ENTRY % "other")
        assert self._names(folder, "./shared/a.yaml") == ["contains-b"]

    @pytest.mark.parametrize(
        ("included", "message"),
        [
            ("safe", "1:24: file .agentv/templates/safe.yaml not found (looked in"),
            ("./safe.yaml", "1:24: file ./safe.yaml not found"),
        ],
    )
    def test_missing_included_file_is_reported(
        self, folder: Path, included: str, message: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            self._names(folder, included)
        assert str(caught.value.problems[0]).startswith(f"evals/f.eval.yaml:{message}")


class TestAssertions:
    def _command(self, folder: Path) -> tuple[str, ...]:
        text = "assertions: [{type: words}]\ntests: [{id: a, input: q}]"
        _write(folder / "evals/f.eval.yaml", text)
        [loaded] = load_suites(parse_settings([], {}), make_services(folder, {}))
        [judge] = loaded.suite.evaluators
        assert isinstance(judge, CodeJudge)
        return judge.run.command

    def test_custom_assertion_comes_from_nearest_folder(self, folder: Path) -> None:
        for place in (".agentv/graders/words.ts", ".agentv/assertions/words.js"):
            _write(folder / place, "")
            assert self._command(folder) == ("bun", "run", str(folder / place))
        _write(folder / "evals/.agentv/assertions/words.mts", "")
        assert self._command(folder)[-1].endswith("evals/.agentv/assertions/words.mts")

    @pytest.mark.parametrize("kind", ["../words", "away"])
    def test_assertion_outside_workspace_is_rejected(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory, kind: str
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "x.ts"
        elsewhere.touch()
        _write(folder / ".agentv/words.ts", "")
        _write(folder / ".agentv/assertions/note.md", "")
        (folder / ".agentv/assertions/away.ts").symlink_to(elsewhere)
        text = f"tests: [{{id: a, input: q, assert: [{{type: {kind}}}]}}]"
        assert "`type` must be code_judge" in _error(folder, text)
