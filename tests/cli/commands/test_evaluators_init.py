"""``agentci evaluator init``: the new evaluator runs unchanged and overwrites nothing."""

import ast
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agentci._util.workspace import Workspace
from agentci.cli.commands.evaluators import init_evaluator
from agentci.config.schema import make_config_schema
from agentci.errors import InputError
from agentci.model.values import Problem
from tests.helpers.support import ROOT, run_agentci

TRACE = ROOT / "examples/agentevals/recordings/where_is_my_parcel.json"
PROGRAMS = ("polite.py", "polite.js", "polite.ts", "always-polite.py", "always-polite.ts")


class TestNewEvaluator:
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_new_evaluator_scores_a_trace(self, name: str, tmp_path: Path) -> None:
        (result,) = _evaluate(tmp_path, name, config={"min_length": 5})
        assert (result["status"], result["score"]) == ("passed", 1)
        assert result["turn_scores"] == [1]

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_new_evaluator_reports_misses(self, name: str, tmp_path: Path) -> None:
        (result,) = _evaluate(tmp_path, name, config={"min_length": 500})
        assert (result["status"], result["score"]) == ("failed", 0)
        (miss,) = result["misses"]
        assert miss.startswith("turn 1: ")
        assert miss.endswith(" characters, minimum 500")

    def test_new_evaluators_of_all_languages_agree(self, tmp_path: Path) -> None:
        results = []
        for name in ("in_py.py", "in_js.js", "in_ts.ts"):
            (result,) = _evaluate(tmp_path, name, config={"min_length": 500})
            results.append((result["score"], result["turn_scores"], result["details"]))
        assert results == results[:1] * 3

    @pytest.mark.parametrize("extension", ["js", "ts"])
    @pytest.mark.parametrize("kind", ["module", "commonjs"])
    def test_package_json_type_does_not_break_evaluator(
        self, extension: str, kind: str, tmp_path: Path
    ) -> None:
        (tmp_path / "package.json").write_text(json.dumps({"type": kind}))
        (result,) = _evaluate(tmp_path, f"polite.{extension}", config={})
        assert result["status"] == "passed"

    def test_new_evaluator_runs_with_agentevals_sdk(self, tmp_path: Path) -> None:
        _make(tmp_path, "polite")
        program = tmp_path / "polite/polite.py"
        text = program.read_text().replace("agentci.sdk", "agentevals_evaluator_sdk")
        program.write_text(text)
        (result,) = _run(tmp_path, {"name": "polite", "type": "code", "path": str(program)})
        assert result["status"] == "passed"

    @pytest.mark.slow
    @pytest.mark.parametrize("width", [88, 100])
    def test_new_evaluator_passes_ruff_and_mypy(self, width: int, tmp_path: Path) -> None:
        _make(tmp_path, "always-polite")
        for tool in (
            ["ruff", "check", "--isolated", "--select=E,F,I,B,UP,ANN,SIM,RUF", "."],
            ["ruff", "format", "--isolated", "--check", f"--line-length={width}", "."],
            ["mypy", "--strict", "--cache-dir=/dev/null", "--follow-imports=silent", "."],
        ):
            done = subprocess.run(
                [sys.executable, "-m", *tool],
                cwd=tmp_path / "always-polite",
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout.decode()

    @pytest.mark.parametrize(
        ("name", "entrypoint", "language"),
        [
            ("polite", "polite.py", "python"),
            ("polite.js", "polite.js", "javascript"),
            ("Polite2.TS", "Polite2.ts", "typescript"),
            ("null.js", "null.js", "javascript"),
        ],
    )
    def test_manifest_describes_new_evaluator(
        self, name: str, entrypoint: str, language: str, tmp_path: Path
    ) -> None:
        stem = Path(name).stem
        _make(tmp_path, name)
        files = {path.name for path in (tmp_path / stem).iterdir()}
        assert files == {entrypoint, "evaluator.yaml"}
        manifest = yaml.safe_load((tmp_path / stem / "evaluator.yaml").read_text())
        assert manifest.pop("description")
        assert manifest == {
            "name": stem,
            "language": language,
            "entrypoint": entrypoint,
            "tags": [],
            "author": "",
        }

    @pytest.mark.parametrize(
        ("runtime", "extension"),
        [
            *(("py", ".py"), ("python", ".py"), ("js", ".js"), ("javascript", ".js")),
            *(("ts", ".ts"), ("TypeScript", ".ts"), (None, ".py")),
        ],
    )
    def test_runtime_option_sets_language(
        self, runtime: str | None, extension: str, tmp_path: Path
    ) -> None:
        _make(tmp_path, "polite", runtime=runtime)
        assert (tmp_path / "polite" / f"polite{extension}").is_file()

    def test_runtime_may_repeat_file_extension(self, tmp_path: Path) -> None:
        _make(tmp_path, "polite.ts", runtime="typescript")
        assert (tmp_path / "polite/polite.ts").is_file()

    def test_function_is_named_after_evaluator(self, tmp_path: Path) -> None:
        _make(tmp_path, "always-polite")
        tree = ast.parse((tmp_path / "always-polite/always-polite.py").read_text())
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert functions == ["always_polite"]

    def test_dir_option_sets_folder(self, tmp_path: Path) -> None:
        _make(tmp_path, "polite", folder="evals/evaluators")
        assert (tmp_path / "evals/evaluators/polite/polite.py").is_file()

    def test_unrelated_files_in_folder_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "polite").mkdir()
        (tmp_path / "polite/README.md").write_text("mine")
        _make(tmp_path, "polite")
        assert (tmp_path / "polite/polite.py").is_file()
        assert (tmp_path / "polite/README.md").read_text() == "mine"


class TestNextSteps:
    @pytest.mark.parametrize("folder", [".", "evals", "odd: folder #1", "-"])
    def test_printed_config_entry_runs(self, folder: str, tmp_path: Path) -> None:
        output = _make(tmp_path, "polite", folder=folder)
        config = yaml.safe_load(output[output.index("evaluators:") :])
        jsonschema.Draft202012Validator(make_config_schema()).validate(config)
        (entry,) = config["evaluators"]
        (result,) = _run(tmp_path, entry)
        assert result["status"] == "passed"

    def test_next_steps_name_files_and_try_command(self, tmp_path: Path) -> None:
        output = _make(tmp_path, "polite", folder="my evals")
        assert output.startswith(
            "Created my evals/polite/polite.py and my evals/polite/evaluator.yaml\n"
        )
        assert "agentci evaluator run 'my evals/polite/polite.py' --trace TRACE\n" in output

    def test_folder_name_cannot_inject_workflow_commands(self, tmp_path: Path) -> None:
        output = _make(tmp_path, "polite", folder="a\r::error::##[group]")
        assert not any(line.startswith("::") or "##[" in line for line in output.splitlines())


class TestName:
    @pytest.mark.parametrize(
        ("name", "better"),
        [
            ("", "my_evaluator"),
            ("..", "my_evaluator"),
            ("../polite", "polite"),
            ("/etc/polite.py", "polite"),
            ("sub/polite", "polite"),
            ("very polite", "very_polite"),
            ("höflich", "hoflich"),
            ("礼貌", "my_evaluator"),
            ("2nd", "nd"),
            ("-polite", "polite"),
            ("_polite", "polite"),
            ("polite\n", "polite"),
            (".py", "py"),
            ("a\\b", "a_b"),
        ],
    )
    def test_invalid_name_error_suggests_valid_name(
        self, name: str, better: str, tmp_path: Path
    ) -> None:
        (problem,) = _refused(tmp_path, name)
        assert problem.message.startswith("invalid evaluator name ")
        assert (problem.hint or "").startswith(f"try {better!r}")

    def test_path_as_name_error_mentions_dir_option(self, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, "../polite")
        assert problem.hint == "try 'polite', and set its folder with --dir"

    @pytest.mark.parametrize("name", ["class", "json", "agentci", "sum", "evaluator", "pydantic"])
    def test_reserved_python_name_is_rejected(self, name: str, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, name)
        assert str(problem) == (
            f"invalid evaluator name {name!r}: the name is reserved in Python (try '{name}_check')"
        )
        _make(tmp_path, f"{name}.js")

    @pytest.mark.parametrize("name", ["polite.rb", "polite.py.txt", "polite.v2", "polite."])
    def test_unknown_extension_error_lists_supported_extensions(
        self, name: str, tmp_path: Path
    ) -> None:
        (problem,) = _refused(tmp_path, name)
        assert problem.message.endswith("known: .py, .js or .ts")
        assert "docs/writing-evaluators.md" in (problem.hint or "")

    def test_overlong_name_is_rejected(self, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, "a" * 101)
        assert problem.hint == "use at most 100"

    def test_extension_contradicting_runtime_is_rejected(self, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, "polite.ts", runtime="py")
        assert problem.message == "'polite.ts' is typescript, but --runtime is 'py'"

    def test_unknown_runtime_is_rejected(self, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, "polite", runtime="ruby")
        assert problem.message == "unknown --runtime 'ruby'"
        assert (problem.hint or "").startswith("choose py, js or ts; ")


class TestExistingFiles:
    @pytest.mark.parametrize("name", ["polite.py", "evaluator.yaml"])
    def test_existing_file_is_not_overwritten(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "polite").mkdir()
        (tmp_path / "polite" / name).write_text("mine")
        (problem,) = _refused(tmp_path, "polite")
        assert str(problem) == f"polite/{name} already exists (choose another name)"
        assert (tmp_path / "polite" / name).read_text() == "mine"

    def test_every_existing_file_is_reported(self, tmp_path: Path) -> None:
        _make(tmp_path, "polite")
        assert len(_refused(tmp_path, "polite")) == 2

    def test_dangling_symlink_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "polite").mkdir()
        (tmp_path / "polite/polite.py").symlink_to(tmp_path / "nowhere")
        _refused(tmp_path, "polite")
        assert not (tmp_path / "nowhere").exists()

    @pytest.mark.parametrize("folder", [".", "polite"])
    def test_file_in_place_of_folder_is_rejected(self, folder: str, tmp_path: Path) -> None:
        (tmp_path / "polite").write_text("mine")
        (problem,) = _refused(tmp_path, "polite", folder=folder)
        assert problem.message.startswith("cannot write to polite")
        assert problem.message.endswith(": Not a directory")
        assert problem.hint == "choose another folder with --dir"

    def test_folder_name_with_nul_is_rejected(self, tmp_path: Path) -> None:
        (problem,) = _refused(tmp_path, "polite", folder="\0")
        assert "cannot write to " in problem.message
        assert "embedded null" in problem.message


def _make(folder_of_work: Path, name: str, *, runtime: str | None = None, folder: str = ".") -> str:
    """Create an evaluator and return the command's output."""
    out, workspace = io.StringIO(), Workspace(root=folder_of_work, cwd=folder_of_work)
    code = init_evaluator(name, runtime=runtime, folder=folder, workspace=workspace, out=out)
    assert code == 0
    return out.getvalue()


def _refused(
    folder_of_work: Path, name: str, *, runtime: str | None = None, folder: str = "."
) -> tuple[Problem, ...]:
    """Check that no evaluator is created, and return the errors."""
    before = sorted(folder_of_work.rglob("*"))
    with pytest.raises(InputError) as caught:
        _make(folder_of_work, name, runtime=runtime, folder=folder)
    assert sorted(folder_of_work.rglob("*")) == before
    return caught.value.problems


def _evaluate(folder: Path, name: str, *, config: dict[str, Any]) -> list[Any]:
    """Create an evaluator and return the results of a run with it."""
    _make(folder, name)
    path = f"{Path(name).stem}/{name}"
    return _run(folder, {"name": "new", "type": "code", "path": path, "config": config})


def _run(folder: Path, entry: dict[str, Any]) -> list[Any]:
    (folder / "recording.json").write_bytes(TRACE.read_bytes())
    config = {"traces": "recording.json", "evaluators": [{"threshold": 1.0, **entry}]}
    (folder / "eval_config.yaml").write_text(json.dumps(config))
    results: list[Any] = run_agentci(["run", "eval_config.yaml"], cwd=folder).results["results"]
    return results
