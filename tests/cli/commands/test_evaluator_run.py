"""``agentci evaluator run`` shows the complete input and output of an evaluator."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands.terminals import shown_on_terminal
from tests.execution.environments.package_index import SDK, PackageIndex
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import EVALUATORS, Ran, run_agentci

HEADING = re.compile(r"^=== (.+) ===$", re.MULTILINE)
ESCAPED = "; control characters are escaped"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a trace and its eval case."""
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "goldens.json").write_text(eval_set())
    return tmp_path


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    """A package index with one installable package."""
    index = PackageIndex()
    index.add(SDK, "0.2.0")
    index.add("demo-words", "1.0")
    yield index
    index.close()


def run_evaluator(folder: Path, program: str, *arguments: str, **environ: str) -> Ran:
    """Run ``agentci evaluator run`` with a shared test program or one from the folder."""
    path = str(EVALUATORS / program) if (EVALUATORS / program).is_file() else program
    recording = () if "--trace" in arguments else ("--trace", "trace.json")
    return run_agentci(
        ["evaluator", "run", path, *recording, *arguments], cwd=folder, environ=environ
    )


def write(folder: Path, code: str) -> str:
    """Write a program that imports ``json`` and ``sys`` and has parsed its input as ``case``."""
    start = "import json, sys\ncase = json.load(sys.stdin)\n"
    (folder / "own.py").write_text(start + code)
    return "own.py"


def sections(out: str) -> dict[str, str]:
    """The text under each heading, by the heading's first word."""
    _, *parts = HEADING.split(out)
    return {
        heading.partition(":")[0].split()[0]: text[1:-1]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def headings(out: str) -> list[str]:
    return HEADING.findall(out)


class TestTrial:
    def test_sections_are_shown_in_order(self, folder: Path) -> None:
        ran = run_evaluator(folder, "good.py")
        kinds = [re.sub(r"[\d.,]+ (bytes|seconds)", r"N \1", each) for each in headings(ran.out)]
        assert kinds == [
            "case What is the weather in Paris? (1 of 1)",
            "stdin: N bytes",
            "stdout: N bytes",
            "stderr: N bytes",
            "exit code 0 after N seconds",
            "status: passed",
            "gate: passed",
        ]
        assert (ran.code, ran.err) == (0, "")

    def test_stdin_is_shown_byte_for_byte(self, folder: Path) -> None:
        (folder / "trace.json").write_text(otlp(answer="In Orléans: ☀️ \x1b[2J \u2028"))
        ran = run_evaluator(folder, "echoes.py")
        found = sections(ran.out)
        assert found["stdin"] == found["stdout"]
        assert found["stdin"].endswith("}\n")
        size = len(found["stdin"].removesuffix("\n").encode())
        assert f"stdin: {size:,} bytes" in headings(ran.out)
        assert f"stdout: {size:,} bytes" in headings(ran.out)
        answer = json.loads(found["stdin"])["invocations"][0]["final_response"]
        assert answer == "In Orléans: ☀️ \x1b[2J \u2028"

    def test_stdout_and_stderr_are_shown_unchanged(self, folder: Path) -> None:
        program = write(
            folder, "print('a\\r\\nb\\t\\x1b[1m', file=sys.stderr); print('{}  ', end='')"
        )
        ran = run_evaluator(folder, program)
        found = sections(ran.out)
        assert (found["stdout"], found["stderr"]) == ("{}  \n", "a\r\nb\t\x1b[1m\n")
        assert "stdout: 4 bytes" in headings(ran.out)

    def test_invalid_utf_8_output_is_escaped(self, folder: Path) -> None:
        ran = run_evaluator(folder, "writes_latin1.py")
        assert "Orl\\xe9ans" in sections(ran.out)["stdout"]
        assert f"stdout: 46 bytes{ESCAPED}" in headings(ran.out)
        assert "(0xe9) is not valid UTF-8" in sections(ran.out)["status"]

    def test_large_stdout_is_shown_completely(self, folder: Path) -> None:
        program = write(folder, "print(json.dumps({'score': 1, 'details': {'x': 'é' * 10**6}}))")
        ran = run_evaluator(folder, program)
        assert len(sections(ran.out)["stdout"]) > 10**6
        assert ran.code == 0

    def test_long_stderr_shows_its_end(self, folder: Path) -> None:
        ran = run_evaluator(folder, "floods_stderr.py")
        assert "stderr: 65,536 bytes; only the end is shown" in headings(ran.out)
        assert sections(ran.out)["stderr"].endswith("the last line\n")

    def test_score_criterion_and_misses_are_shown(self, folder: Path) -> None:
        result = {"score": 0.25, "details": {"issues": ["too\nlong", "too slow"]}}
        ran = run_evaluator(
            folder, write(folder, f"print(json.dumps({result!r}))"), "--threshold", "0.75"
        )
        assert ran.code == 1
        assert "status: failed" in headings(ran.out)
        assert sections(ran.out)["status"].splitlines() == [
            "score: 0.25",
            "criterion: score >= 0.75",
            "- too long",
            "- too slow",
        ]
        assert sections(ran.out)["gate"].startswith("1 of 1 check failed")

    def test_skip_reason_is_shown(self, folder: Path) -> None:
        result = {"score": 0, "status": "NOT_EVALUATED", "details": {"reason": "no tools"}}
        ran = run_evaluator(folder, write(folder, f"print(json.dumps({result!r}))"))
        assert "status: skipped" in headings(ran.out)
        assert "reason: no tools" in sections(ran.out)["status"]
        assert (ran.code, headings(ran.out)[-1]) == (1, "gate: failed")

    def test_every_case_of_the_trace_is_scored(self, folder: Path) -> None:
        lines = [otlp("Paris?", trace=1), otlp("Rome?", trace=2, answer="")]
        (folder / "trace.json").write_text("\n".join(lines))
        ran = run_evaluator(folder, "good.py")
        cases = [each for each in headings(ran.out) if each.startswith("case")]
        assert [each.split("(")[1] for each in cases] == ["1 of 2)", "2 of 2)"]
        assert [each for each in headings(ran.out) if each.startswith("status")] == [
            "status: passed",
            "status: failed",
        ]
        assert ran.code == 1

    def test_evaluators_of_all_languages_run(self, folder: Path) -> None:
        for name in ("good.py", "good.js", "good.ts", "good.sh"):
            assert run_evaluator(folder, name).code == 0, name

    def test_evaluator_created_by_init_runs(self, folder: Path) -> None:
        run_agentci(["evaluator", "init", "polite"], cwd=folder)
        ran = run_evaluator(folder, "polite/polite.py", "--config", '{"min_length": 500}')
        assert ran.code == 1
        assert "- turn 1: 12 characters, minimum 500" in sections(ran.out)["status"]

    def test_trace_conversion_warnings_are_shown(self, folder: Path) -> None:
        recording = json.loads(otlp())
        spans = recording["resourceSpans"][0]["scopeSpans"][0]["spans"]
        lonely = {**spans[0], "spanId": "f" * 16, "name": "invoke_agent other"}
        spans.append(lonely)
        (folder / "trace.json").write_text(json.dumps(recording))
        assert "warning: agent span ffffffffffffffff has no" in sections(
            run_evaluator(folder, "good.py").out
        ).get("case", "")


class TestProgramInput:
    def test_program_receives_name_threshold_and_config(self, folder: Path) -> None:
        config = '{"limits": [1, 2.5, null], "näme": "x"}'
        ran = run_evaluator(folder, "echoes.py", "--config", config, "--threshold", "0.25")
        given = json.loads(sections(ran.out)["stdin"])
        assert given["metric_name"] == "echoes"
        assert given["threshold"] == 0.25
        assert given["config"] == json.loads(config)

    def test_program_receives_same_input_as_in_run(self, folder: Path) -> None:
        program = write(folder, "print(json.dumps({'score': 1, 'details': {'case': case}}))")
        (folder / "agentci.yaml").write_text(
            f"traces: trace.json\neval_set: goldens.json\nevaluators:\n"
            f"  - {{name: own, type: code, path: {program}, config: {{a: 1}}}}\n"
        )
        (result,) = run_agentci(["run"], cwd=folder).results["results"]
        ran = run_evaluator(folder, program, "--eval-set", "goldens.json", "--config", '{"a": 1}')
        assert json.loads(sections(ran.out)["stdin"]) == result["details"]["case"]

    def test_program_receives_matching_eval_case(self, folder: Path) -> None:
        ran = run_evaluator(folder, "echoes.py", "--eval-set", "goldens.json")
        assert headings(ran.out)[0] == "case weather (1 of 1)"
        assert "eval case: weather" in sections(ran.out)["case"]
        (expected,) = json.loads(sections(ran.out)["stdin"])["expected_invocations"]
        assert expected["final_response"] == "It is sunny."

    def test_missing_eval_set_is_reported(self, folder: Path) -> None:
        ran = run_evaluator(folder, "echoes.py")
        assert "eval case: none (no eval set provided)" in sections(ran.out)["case"]

    def test_unmatched_eval_cases_are_not_reported(self, folder: Path) -> None:
        cases = json.loads(eval_set())
        cases["eval_cases"] += json.loads(eval_set("Rain?", case="rain"))["eval_cases"]
        (folder / "goldens.json").write_text(json.dumps(cases))
        ran = run_evaluator(folder, "good.py", "--eval-set", "goldens.json")
        assert (ran.code, ran.err) == (0, "")


class TestMissingResult:
    def test_hanging_program_times_out(self, folder: Path) -> None:
        ran = run_evaluator(folder, "hangs.py", "--timeout", "1")
        assert ran.code == 3
        assert re.search(
            r"=== no exit code after 1[.\d]* seconds: the program did not exit by itself", ran.out
        )
        assert "timed out after 1 s" in sections(ran.out)["status"]
        assert "waiting for the model" in sections(ran.out)["status"]

    def test_stdin_is_shown_after_timeout(self, folder: Path) -> None:
        found = sections(run_evaluator(folder, "hangs.py", "--timeout", "1s").out)
        assert json.loads(found["stdin"])["metric_name"] == "hangs"

    def test_program_with_endless_stdout_is_stopped(self, folder: Path) -> None:
        ran = run_evaluator(folder, "floods_stdout.py")
        assert ran.code == 3
        assert "printed more than 10 MiB to stdout" in sections(ran.out)["status"]

    def test_trace_without_turns_is_an_error(self, folder: Path) -> None:
        recording = json.loads(otlp())
        del recording["resourceSpans"][0]["scopeSpans"][0]["spans"][1:]
        (folder / "trace.json").write_text(json.dumps(recording))
        ran = run_evaluator(folder, "good.py")
        assert (ran.code, "stdin" in sections(ran.out)) == (3, False)
        assert "No agent turns found" in sections(ran.out)["status"]

    def test_output_of_one_case_is_not_repeated(self, folder: Path) -> None:
        recording = json.loads(otlp(trace=2))
        del recording["resourceSpans"][0]["scopeSpans"][0]["spans"][1:]
        (folder / "trace.json").write_text(f"{otlp()}\n{json.dumps(recording)}")
        ran = run_evaluator(folder, "good.py")
        assert len([each for each in headings(ran.out) if each.startswith("stdout")]) == 1
        assert ran.code == 3


class TestCrash:
    def test_crash_shows_output_and_exit_code(self, folder: Path) -> None:
        ran = run_evaluator(folder, "exits_3.py")
        found = sections(ran.out)
        assert ran.code == 3
        assert (found["stdout"], found["stderr"]) == ('{"score": 1.0}\n', "nope\nline2\n")
        assert [each for each in headings(ran.out) if each.startswith("exit code 3 after ")]
        assert "reason: Evaluator `exits_3` exited with code 3" in found["status"]

    def test_crash_by_signal_shows_its_number(self, folder: Path) -> None:
        ran = run_evaluator(folder, "kills_itself.py")
        assert [each for each in headings(ran.out) if each.startswith("exit code -9 after ")]


class TestRequirements:
    def test_requirements_next_to_program_are_installed(
        self, folder: Path, index: PackageIndex
    ) -> None:
        (folder / "evaluators").mkdir()
        program = write(folder / "evaluators", "import demo_words\nprint('{\"score\": 1}')")
        (folder / "evaluators" / "requirements.txt").write_text("demo-words==1.0\n")
        environ = {
            "HOME": str(folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": index.url,
            "UV_NO_CONFIG": "1",
        }
        ran = run_evaluator(folder, f"evaluators/{program}", **environ)
        assert (ran.code, "installing requirements of own" in ran.err) == (0, True), ran.out

    def test_requirements_of_workspace_root_are_not_installed(self, folder: Path) -> None:
        (folder / "requirements.txt").write_text("demo-words==1.0\n")
        ran = run_evaluator(folder, write(folder, "print('{\"score\": 1}')"))
        assert ran.code == 0
        assert "note: the requirements.txt next to own.py is not installed" in ran.err


class TestProgramPath:
    def test_program_outside_workspace_runs(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        write(other, "print('{\"score\": 1}')")
        assert run_evaluator(folder, str(other / "own.py")).code == 0

    def test_program_behind_link_is_named_by_link(self, folder: Path) -> None:
        write(folder, "print('{\"score\": 1}')")
        (folder / "link.py").symlink_to("own.py")
        ran = run_evaluator(folder, "link.py")
        assert (ran.code, json.loads(sections(ran.out)["stdin"])["metric_name"]) == (0, "link")

    def test_link_to_program_outside_workspace_is_refused(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other")
        write(other, "print('{\"score\": 1}')")
        (folder / "link.py").symlink_to(other / "own.py")
        ran = run_evaluator(folder, "link.py")
        (problem,) = ran.problems
        assert problem.message.endswith(f": link.py is a link to {other}/own.py")
        assert problem.hint == f"remove the link, or name {other}/own.py instead"

    def test_program_path_is_relative_to_working_directory(self, folder: Path) -> None:
        write(folder, "print('{\"score\": 1}')")
        (folder / "sub").mkdir()
        ran = run_evaluator(folder, "sub/own.py")
        (problem,) = ran.problems
        assert problem.message == "sub/own.py is not an existing file"

    def test_program_with_unusual_name_runs(self, folder: Path) -> None:
        write(folder, "print('{\"score\": 1}')")
        for name in ("[a].py", "a*.py", "-x.py", "::error::x.py", "naïve.py"):
            (folder / name).write_bytes((folder / "own.py").read_bytes())
            assert run_evaluator(folder, f"./{name}", GITHUB_ACTIONS="true").code == 0, name

    def test_glob_characters_in_program_path_are_rejected(self, folder: Path) -> None:
        write(folder, "print('{\"score\": 1}')")
        (folder / "ab.py").write_text("print('{\"score\": 0}')")
        (folder / "own.py").rename(folder / "[a]*.py")
        (problem,) = run_evaluator(folder, "[a]*.py").problems
        assert problem.message == "[a]*.py contains glob characters, which a config would expand"


class TestInvalidInput:
    @pytest.mark.parametrize(
        ("program", "message"),
        [
            ("nope.py", "nope.py is not an existing file"),
            (".", ". is a folder"),
            ("/dev/null", "/dev/null is not an existing file"),
            (
                "trace.json",
                "`trace.json` is not executable and has none of the supported extensions",
            ),
            ("a\0b.py", "a\0b.py is not an existing file"),
        ],
    )
    def test_invalid_program_is_rejected(self, folder: Path, program: str, message: str) -> None:
        ran = run_evaluator(folder, program)
        assert (ran.code, ran.out) == (2, "")
        assert ran.problems[0].message.startswith(message)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--trace", "nope.json"), "no trace file matches nope.json"),
            (("--trace", "sub"), "sub is a folder (name the files in it"),
            (("--trace", ""), "--trace is empty"),
            (("--trace", "empty.json"), "the file is empty"),
            (("--trace", "broken.json"), "invalid JSON"),
            (("--trace", "no-spans.json"), "the file has no spans"),
            (("--eval-set", "nope.json"), "nope.json does not exist"),
            (("--eval-set", "broken.json"), "the file is not JSON"),
            (("--config", "min_length=5"), "--config 'min_length=5' is not valid JSON: "),
            (("--config", ""), "--config '' is not valid JSON: "),
            (("--config", "[1]"), "--config '[1]' is not an object"),
            (("--config", '{"a": NaN}'), "NaN is not finite"),
            (("--config", '{"a": 1e999}'), "1e999 is not finite"),
            (("--config", "[" * 100_000), "is not valid JSON"),
            (("--threshold", "2"), "--threshold must be a number from 0 to 1, not '2'"),
            (("--timeout", "0"), "--timeout must be whole seconds from 1 to 86,400, such as `30s`"),
            (("--timeout", "1500ms"), "found '1500ms'"),
            (("--timeout", "soon"), "found 'soon'"),
            (("--timeout", "9" * 5000), "--timeout must be"),
        ],
    )
    def test_invalid_option_is_reported_before_running(
        self, folder: Path, arguments: tuple[str, ...], message: str
    ) -> None:
        (folder / "sub").mkdir()
        (folder / "empty.json").touch()
        (folder / "broken.json").write_text("{]")
        (folder / "no-spans.json").write_text('{"resourceSpans": []}')
        ran = run_evaluator(folder, "good.py", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert message in str(ran.problems[0])
        assert len(str(ran.problems[0])) < 400

    def test_unreadable_trace_is_rejected(self, folder: Path) -> None:
        (folder / "loop.json").symlink_to("loop.json")
        ran = run_evaluator(folder, "good.py", "--trace", "loop.json")
        assert (ran.code, len(ran.problems)) == (2, 1)


class TestWorkflowLog:
    def test_output_cannot_inject_workflow_commands(self, folder: Path) -> None:
        (folder / "trace.json").write_text(otlp(answer="##[error]forged"))
        ran = run_evaluator(folder, "prints_workflow_commands.py", GITHUB_ACTIONS="true")
        assert ran.code == 1
        assert not [line for line in re.split(r"[\r\n]", ran.out) if line.strip()[:2] == "::"]
        assert "##[" not in ran.out
        assert "\r" not in ran.out

    def test_escaped_output_is_marked(self, folder: Path) -> None:
        ran = run_evaluator(folder, "prints_workflow_commands.py", GITHUB_ACTIONS="true")
        assert f"stderr: 49 bytes{ESCAPED}" in headings(ran.out)
        assert sections(ran.out)["stderr"].startswith(": :error file=a.py,line=1::forged\n")

    def test_harmless_output_is_not_escaped(self, folder: Path) -> None:
        ran = run_evaluator(folder, "good.py", GITHUB_ACTIONS="true")
        assert ESCAPED not in ran.out


class TestTerminal:
    def test_control_characters_in_output_are_escaped(self, folder: Path) -> None:
        program = write(folder, r"print('\x1b[2J\x9b1mé☀\r\u202e\tend'); print('::x')")
        arguments = ["evaluator", "run", program, "--trace", "trace.json"]
        out = shown_on_terminal(arguments, cwd=folder)
        assert sections(out)["stdout"] == "\\x1b[2J\\x9b1mé☀\\r\\u202e\tend\n::x\n"
        assert out.replace("\n", "").replace("\t", "").isprintable()

    def test_control_characters_in_result_are_removed(self, folder: Path) -> None:
        result = {"score": 0, "details": {"issues": ["\x1b[2Jx"], "reason": "\x1b]0;y\x07z"}}
        program = write(folder, f"print(json.dumps({result!r}))")
        arguments = ["evaluator", "run", program, "--trace", "trace.json"]
        out = shown_on_terminal(arguments, cwd=folder)
        assert out.replace("\n", "").isprintable()
        assert "- x\nz\n" in sections(out)["status"]
