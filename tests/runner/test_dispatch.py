"""Requests of evaluators: commands, compositions and graders."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentci._util.child_programs import GRADE_PATH
from agentci.errors import EvaluatorError
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    Judgement,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
    Task,
)
from agentci.model.values import replace
from agentci.runner.check import execute_request
from agentci.runner.dispatch import dispatch_request, make_job
from tests.helpers.support import PATH, make_services

SDK_JUDGE = """\
#!/usr/bin/env bun
import { createTargetClient, defineCodeJudge } from '@agentv/eval';

export default defineCodeJudge(({ candidateAnswer, toolCallsByName }) => {
  const hits: string[] = createTargetClient() ? [] : [candidateAnswer];
  return { score: 7, hits, misses: [], details: toolCallsByName };
});
"""


def _command(folder: Path, *words: str, stdin: str = "") -> RunCommand:
    return RunCommand(command=words, folder=str(folder), stdin=stdin, timeout_seconds=20)


def _printed(response: Response) -> str:
    assert isinstance(response, ProgramOutput)
    return response.stdout.decode()


class TestCommand:
    def test_command_runs_in_its_folder_with_stdin(self, tmp_path: Path) -> None:
        (tmp_path / "judges").mkdir()
        services = make_services(tmp_path, {})
        command = _command(tmp_path / "judges", "sh", "-c", "basename $PWD; cat", stdin="input\n")
        assert _printed(dispatch_request(command, name="a", services=services)) == "judges\ninput\n"

    def test_command_may_be_file_in_its_folder(self, tmp_path: Path) -> None:
        program = tmp_path / "judge"
        program.write_text("#!/bin/sh\necho $1\n")
        program.chmod(0o755)
        command = _command(tmp_path, "./judge", "yes")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))
            == "yes\n"
        )

    @pytest.mark.parametrize("program", ["no-such-program", "./judge"])
    def test_missing_program_is_named(self, program: str, tmp_path: Path) -> None:
        command = _command(tmp_path, program)
        with pytest.raises(EvaluatorError, match=rf"`a` could not be started: `{program}`"):
            dispatch_request(command, name="a", services=make_services(tmp_path, {}))

    @pytest.mark.parametrize("words", [("node",), ("bun",), ("bun", "run")])
    def test_typescript_file_runs_with_node(self, words: tuple[str, ...], tmp_path: Path) -> None:
        (tmp_path / "judge.ts").write_text(
            "const argument: string = process.argv[2]; console.log(argument)\n"
        )
        command = _command(tmp_path, *words, "judge.ts", "typed")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))
            == "typed\n"
        )

    @pytest.mark.parametrize(
        "first_line",
        ["#!/usr/bin/env bun", "#!/usr/bin/env -S bun run", "#! /usr/bin/env node"],
    )
    def test_typescript_shebang_of_bun_or_node_runs(self, first_line: str, tmp_path: Path) -> None:
        judge = tmp_path / "judge.ts"
        judge.write_text(f"{first_line}\n{SDK_JUDGE.partition(chr(10))[2]}")
        judge.chmod(0o755)
        command = _command(tmp_path, "./judge.ts", stdin='{"candidate_answer": "it"}')
        response = dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        assert json.loads(_printed(response))["hits"] == ["it"]

    def test_python_shebang_of_uv_runs(self, tmp_path: Path) -> None:
        judge = tmp_path / "judge.py"
        judge.write_text("#!/usr/bin/env -S uv run\nimport sys; print(sys.argv[1])\n")
        judge.chmod(0o755)
        command = _command(tmp_path, "./judge.py", "snake")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))
            == "snake\n"
        )

    def test_bare_name_is_not_looked_up_in_folder(self, tmp_path: Path) -> None:
        (tmp_path / "echo").write_text("#!/usr/bin/env node\n")
        (tmp_path / "echo").chmod(0o755)
        command = _command(tmp_path, "echo", "judge.js")
        (tmp_path / "judge.js").write_text("console.log('judged')\n")
        printed = _printed(
            dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        )
        assert printed == "judge.js\n"

    def test_non_executable_file_is_rejected(self, tmp_path: Path) -> None:
        (tmp_path / "judge.ts").write_text(SDK_JUDGE)
        with pytest.raises(
            EvaluatorError, match=r"`\./judge\.ts` does not exist or is not executable"
        ):
            dispatch_request(
                _command(tmp_path, "./judge.ts"), name="a", services=make_services(tmp_path, {})
            )

    def test_import_of_agentv_sdk_is_resolved(self, tmp_path: Path) -> None:
        (tmp_path / "judge.ts").write_text(SDK_JUDGE)
        payload = '{"candidate_answer": "it", "tool_calls_by_name": {"my_tool": 1}}'
        command = _command(tmp_path, "bun", "judge.ts", stdin=payload)
        response = dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        assert json.loads(_printed(response)) == {
            "score": 1,
            "hits": ["it"],
            "misses": [],
            "details": {"my_tool": 1},
        }

    def test_exception_in_sdk_judge_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "judge.mjs").write_text(
            "import { defineCodeGrader } from '@agentv/sdk';\n"
            "export default defineCodeGrader(() => { throw new Error('no'); });\n"
        )
        command = _command(tmp_path, "node", "judge.mjs", stdin="{}")
        response = dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        assert isinstance(response, ProgramOutput)
        assert response.exit_code == 1
        assert json.loads(_printed(response))["misses"] == ["no"]

    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("CodeJudge", "the judge returned undefined, not a result"),
            ("Assertion", "the judge returned undefined, not a result"),
            ("PromptTemplate", "the template returned undefined, not a text"),
        ],
    )
    def test_sdk_judge_that_returns_nothing_is_reported(
        self, kind: str, why: str, tmp_path: Path
    ) -> None:
        (tmp_path / "judge.mjs").write_text(
            f"import {{ define{kind} }} from '@agentv/eval';\n"
            f"export default define{kind}(() => undefined);\n"
        )
        command = _command(tmp_path, "node", "judge.mjs", stdin="{}")
        response = dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        assert isinstance(response, ProgramOutput)
        assert response.exit_code == 1
        assert why in _printed(response) + response.stderr

    @pytest.mark.parametrize(
        ("verdict", "score"),
        [("pass: true", 1), ("pass: false", 0), ("pass: false, score: 0.4", 0.4)],
    )
    def test_sdk_assertion_may_return_pass(
        self, verdict: str, score: float, tmp_path: Path
    ) -> None:
        (tmp_path / "words.mjs").write_text(
            "import { defineAssertion } from '@agentv/eval';\n"
            f"export default defineAssertion(() => ({{ {verdict}, reasoning: 'r' }}));\n"
        )
        command = _command(tmp_path, "bun", "run", str(tmp_path / "words.mjs"), stdin="{}")
        printed = _printed(
            dispatch_request(command, name="a", services=make_services(tmp_path, {}))
        )
        assert json.loads(printed) == {"score": score, "reasoning": "r"}

    def test_sdk_installed_in_repository_takes_precedence(self, tmp_path: Path) -> None:
        own = tmp_path / "node_modules" / "@agentv" / "eval"
        own.mkdir(parents=True)
        (own / "package.json").write_text('{"type": "module", "exports": "./own.js"}')
        (own / "own.js").write_text(
            "export const defineCodeJudge = () => console.log('own');\n"
            "export const createTargetClient = () => undefined;\n"
        )
        (tmp_path / "judge.ts").write_text(SDK_JUDGE)
        command = _command(tmp_path, "node", "judge.ts")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))
            == "own\n"
        )

    @pytest.mark.parametrize("words", [("uv", "run"), ("uv",)])
    def test_python_script_runs_without_uv(self, words: tuple[str, ...], tmp_path: Path) -> None:
        (tmp_path / "judge.py").write_text("import sys; print(sys.argv[1])\n")
        command = _command(tmp_path, *words, "judge.py", "snake")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))
            == "snake\n"
        )

    @pytest.mark.parametrize("words", [("uv", "run", "gone.py"), ("uv", "run"), ("bun", "x.py")])
    def test_missing_script_or_tool_is_reported(
        self, words: tuple[str, ...], tmp_path: Path
    ) -> None:
        with pytest.raises(EvaluatorError, match=f"`{words[0]}` is not installed"):
            dispatch_request(
                _command(tmp_path, *words), name="a", services=make_services(tmp_path, {})
            )

    def test_interpreter_without_script_runs_unchanged(self, tmp_path: Path) -> None:
        command = _command(tmp_path, "node", "--version")
        assert (
            _printed(dispatch_request(command, name="a", services=make_services(tmp_path, {})))[0]
            == "v"
        )


class TestCommandInContainer:
    def test_container_job_keeps_command_and_limits(self, tmp_path: Path) -> None:
        command = RunCommand(
            command=("bun", "run", "judge.ts"),
            folder=str(tmp_path / "judges"),
            stdin="{}",
            timeout_seconds=20,
            executor="docker",
            image="oven/bun:1",
            network=False,
            variables=("KEY",),
            memory_mb=64,
            processes=7,
        )
        job = make_job(
            command, name="a", services=make_services(tmp_path, {"KEY": "k", "OTHER": "o"})
        )
        assert (job.command, job.cwd) == (command.command, tmp_path / "judges")
        limits = job.sandbox_policy
        assert (limits.image, limits.network, limits.memory_mb, limits.processes) == (
            "oven/bun:1", False, 64, 7,
        )  # fmt: skip
        assert (job.environment["KEY"], "OTHER" in job.environment) == ("k", False)


class TestComposition:
    def test_composition_passes_responses_to_next_request(self, tmp_path: Path) -> None:
        def settle(responses: tuple[Response, ...]) -> Task:
            return ConstantJudgement(
                judgement=Judgement(score=1, passed=True, hits=tuple(map(_printed, responses)))
            )

        def read(response: Response) -> Judgement:
            assert isinstance(response, ConstantJudgement)
            return response.judgement

        parts = tuple((each, _command(tmp_path, "echo", each)) for each in ("a", "b"))
        request = Compose(parts=parts, then=settle)
        services = make_services(tmp_path, {})
        judgement, _ = execute_request(request, [], name="both", read=read, services=services)
        assert judgement.hits == ("a\n", "b\n")

    def test_failed_part_of_composition_is_named(self, tmp_path: Path) -> None:
        def read(_: Response) -> Judgement:
            raise AssertionError

        parts = (("part", _command(tmp_path, "no-such-program")),)
        request = Compose(parts=parts, then=lambda _: parts[0][1])
        services = make_services(tmp_path, {})
        with pytest.raises(EvaluatorError, match="`part`"):
            execute_request(request, [], name="whole", read=read, services=services)


class TestPreloadedImports:
    """Imports of a Python program that may be forked from a preloaded interpreter."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "judge.py").write_text("import json\n")
        return tmp_path

    def _imports(self, command: RunCommand, folder: Path, path: str = PATH) -> object:
        services = make_services(folder, {"PATH": path})
        return make_job(command, name="a", services=services).sandbox_policy.imports

    @pytest.mark.parametrize("words", [("judge.py",), ("./judge.py", "-x", "y")])
    def test_python_script_is_forked_with_its_imports(
        self, words: tuple[str, ...], folder: Path
    ) -> None:
        assert self._imports(_command(folder, sys.executable, *words), folder) == ("json",)

    def test_python_found_on_path_is_forked(self, folder: Path) -> None:
        path = str(Path(sys.executable).parent)
        assert self._imports(_command(folder, "python3", "judge.py"), folder, path) == ("json",)

    @pytest.mark.parametrize(
        "words",
        [(), ("-m", "judge"), ("-judge.py",), ("gone.py",), ("judge",), ("judge.py", "a\0")],
    )
    def test_other_arguments_are_not_forked(self, words: tuple[str, ...], folder: Path) -> None:
        for name in ("-judge.py", "judge"):
            (folder / name).touch()
        assert self._imports(_command(folder, sys.executable, *words), folder) is None

    def test_other_python_is_not_forked(self, folder: Path) -> None:
        other = folder / "python3"
        other.symlink_to(sys.executable)
        assert self._imports(_command(folder, "./python3", "judge.py"), folder) is None

    def test_isolation_spawn_is_not_forked(self, folder: Path) -> None:
        command = replace(_command(folder, sys.executable, "judge.py"), isolation="spawn")
        assert self._imports(command, folder) is None


class TestGrader:
    ASKED = json.dumps({"function": "grade", "sample": {}, "item": {"a": 0.25}})

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "g.py"
        path.write_text("import statistics\ndef grade(sample, item): return item['a']\n")
        return path

    def _request(self, file: Path, **others: Any) -> RunProgram:
        program = LocalProgram(path=str(file))
        return RunProgram(
            program=program, stdin=self.ASKED, timeout_seconds=20, function="grade", **others
        )

    def test_grader_fork_preloads_imports_of_grader_and_wrapper(self, file: Path) -> None:
        services = make_services(file.parent, {})
        job = make_job(self._request(file), name="g", services=services)
        assert job.command == (sys.executable, GRADE_PATH, str(file))
        assert {"json", "math", "statistics"} <= set(job.sandbox_policy.imports or ())
        assert _printed(job.run(services.executors["local"])) == '{"score": 0.25}'

    def test_container_command_includes_grader_wrapper(self, file: Path) -> None:
        request = self._request(file, executor="docker", image="python:3.12-slim")
        job = make_job(request, name="g", services=make_services(file.parent, {}))
        program, *words = job.command
        assert (program, words[0], words[2], job.cwd) == ("python3", "-c", str(file), file.parent)
        ran = subprocess.run(
            [sys.executable, *words], input=self.ASKED.encode(), capture_output=True, check=True
        )
        assert json.loads(ran.stdout) == {"score": 0.25}

    def test_grader_from_source_text_needs_no_file(self, tmp_path: Path) -> None:
        asked = json.loads(self.ASKED) | {"source": "def grade(sample, item): return item['a']"}
        request = RunProgram(
            program=LocalProgram(path=GRADE_PATH), stdin=json.dumps(asked), timeout_seconds=20
        )
        response = dispatch_request(request, name="g", services=make_services(tmp_path, {}))
        assert _printed(response) == '{"score": 0.25}'
