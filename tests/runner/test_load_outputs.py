"""Recorded outputs of eval files: discovery, parsing and matching with cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.support import Ran, run_agentci

JUDGE = "{name: says_it, type: contains, value: it}"
FILE = f"""\
tests:
  - {{id: a, input: First question}}
  - {{id: b, input: Second question}}
assertions: [{JUDGE}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An eval file with two cases and one assertion."""
    (tmp_path / "x.eval.yaml").write_text(FILE)
    return tmp_path


def _run(folder: Path, *arguments: str) -> Ran:
    return run_agentci(["run", *(arguments or ("x.eval.yaml",))], cwd=folder)


def _statuses(ran: Ran) -> dict[str, str]:
    return {row["case"]: row["status"] for row in ran.results["results"]}


def _messages(ran: Ran) -> list[str]:
    return [problem["message"] for problem in ran.results["problems"]]


def _span(number: int, question: str, answer: str) -> dict[str, Any]:
    def message_attribute(role: str, text: str) -> dict[str, Any]:
        message = [{"role": role, "parts": [{"type": "text", "content": text}]}]
        key = "input" if role == "user" else "output"
        value = {"stringValue": json.dumps(message)}
        return {"key": f"gen_ai.{key}.messages", "value": value}

    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "invoke_agent helper",
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "1200000000",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
            message_attribute("user", question),
            message_attribute("assistant", answer),
        ],
    }


class TestDiscovery:
    def test_outputs_next_to_eval_file_are_loaded(self, folder: Path) -> None:
        (folder / "x.outputs.jsonl").write_text('{"id": "a", "text": "it"}\n')
        (folder / "b.output.json").write_text("not")
        assert _statuses(_run(folder)) == {"a": "passed", "b": "failed"}

    def test_outputs_named_in_eval_file_are_loaded(self, folder: Path) -> None:
        (folder / "x.eval.yaml").write_text(f"{FILE}outputs: [o/*.json]\n")
        (folder / "o").mkdir()
        (folder / "o" / "a.json").write_text('{"text": "it"}')
        (folder / "o" / "b.output.json").write_text('{"output": "it"}')
        assert _statuses(_run(folder)) == {"a": "passed", "b": "passed"}

    def test_traces_option_overrides_outputs_of_eval_file(self, folder: Path) -> None:
        (folder / "x.eval.yaml").write_text(f"{FILE}outputs: gone.json\n")
        (folder / "o.jsonl").write_text('{"id": "a", "text": "it"}\n{"id": "b", "text": "it"}')
        ran = _run(folder, "x.eval.yaml", "--traces", "o.jsonl")
        assert _statuses(ran) == {"a": "passed", "b": "passed"}
        assert ran.code == 0

    def test_missing_outputs_error_suggests_file_name(self, folder: Path) -> None:
        ran = _run(folder)
        assert ran.code == 2
        [problem] = ran.results["problems"]
        assert problem["hint"].endswith("create x.outputs.jsonl next to it")

    def test_outputs_pattern_without_match_is_invalid_input(self, folder: Path) -> None:
        (folder / "x.eval.yaml").write_text(f"{FILE}outputs: gone.json\n")
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (2, ["no recorded output matches gone.json"])
        assert ran.results["problems"][0]["place"]["line"] == 5

    def test_json_lines_eval_file_loads_its_outputs(self, folder: Path) -> None:
        (folder / "y.jsonl").write_text('{"id": "a", "input": "q"}\n')
        (folder / "y.yaml").write_text(
            "execution: {evaluators: [{name: says_it, type: contains, value: it}]}\n"
        )
        (folder / "y.outputs.jsonl").write_text('{"id": "a", "text": "it"}')
        assert _run(folder, "y.jsonl").code == 0


class TestMatching:
    def test_case_without_output_is_errored(self, folder: Path) -> None:
        (folder / "x.outputs.jsonl").write_text('{"id": "a", "text": "it"}')
        ran = _run(folder)
        assert (ran.code, _statuses(ran)) == (3, {"a": "passed", "b": "errored"})
        assert ran.results["results"][1]["reason"] == "this case has no recorded output"

    def test_plan_shows_case_without_output_as_error(self, folder: Path) -> None:
        (folder / "x.outputs.jsonl").write_text('{"id": "a", "text": "it"}')
        out = run_agentci(["plan", "x.eval.yaml"], cwd=folder).out
        assert "a, says_it: evaluate without a program or model" in out
        assert "b, says_it: error: this case has no recorded output" in out

    def test_two_outputs_of_one_case_are_invalid_input(self, folder: Path) -> None:
        (folder / "x.outputs.jsonl").write_text('{"id": "a", "text": "it"}\n' * 2)
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (2, ["case 'a' has two recorded outputs"])

    def test_later_attempts_are_ignored(self, folder: Path) -> None:
        rows = [{"id": "a", "attempt": 1, "text": "no"}, {"id": "a", "text": "it"}]
        rows += [{"id": "b", "attempt": 0, "text": "it"}]
        (folder / "x.outputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
        ran = _run(folder)
        assert (ran.code, _statuses(ran)) == (0, {"a": "passed", "b": "passed"})

    def test_output_without_case_is_warning(self, folder: Path) -> None:
        rows = [{"id": name, "text": "it"} for name in ("a", "b", "c")]
        (folder / "x.outputs.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"text": "x"}])))
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (
            0,
            ["output 'c' matches no case", "a recorded output matches no case"],
        )

    def test_trace_matches_case_by_its_question(self, folder: Path) -> None:
        spans = [_span(1, "Second question", "it"), _span(2, "First question", "that")]
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, spans)))
        ran = _run(folder, "x.eval.yaml", "--traces", "t.jsonl")
        assert _statuses(ran) == {"a": "failed", "b": "passed"}
        [turn] = ran.results["cases"][1]["turns"]
        assert (turn["user"], turn["answer"]) == ("Second question", "it")

    def test_all_broken_output_files_are_reported(self, folder: Path) -> None:
        (folder / "a.output.json").write_text('{"output_messages": 3, "text": 3}')
        (folder / "x.outputs.jsonl").write_text('{"id": "b", "text": "it"}\n{"id": "c"}')
        (folder / "b.output.json").mkdir()
        ran = _run(folder, "x.eval.yaml", "--traces", "*.json*", "--traces", "b.output.json")
        assert ran.code == 2
        assert any("no output of the agent" in message for message in _messages(ran))
        assert any("is a folder" in message for message in _messages(ran))


class TestReferencedFiles:
    def test_referenced_files_are_found_in_parent_folders(self, folder: Path) -> None:
        inner = folder / "evals" / "deep"
        inner.mkdir(parents=True)
        (folder / "evals" / "notes.txt").write_text("noted")
        (folder / ".agentv").mkdir()
        (folder / ".agentv" / "config.yaml").write_text("guideline_patterns: ['**/rules.md']\n")
        (folder / "rules.md").write_text("rule")
        (inner / "echo.py").write_text(
            "import json, sys\nprint(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))\n"
        )
        (inner / "x.eval.yaml").write_text(
            "cases:\n"
            "  - id: a\n"
            "    input:\n"
            "      - role: user\n"
            "        content: [{type: file, value: notes.txt}, {type: file, value: /rules.md}]\n"
            "    evaluators: [{name: c, type: code_judge, script: [python3, echo.py]}]\n"
        )
        (inner / "a.output.json").write_text("it")
        ran = _run(folder, "evals/deep/x.eval.yaml")
        details = ran.results["results"][0]["details"]
        assert details["input_files"] == [str(folder / "evals" / "notes.txt")]
        assert details["guideline_files"] == [str(folder / "rules.md")]

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("gone.txt", "file gone.txt not found"),
            ("/etc/passwd", "/etc/passwd is outside the workspace"),
            (
                "link.txt",
                "link.txt is outside the workspace: link.txt is a link to /etc/passwd",
            ),
            ("latin.txt", "latin.txt is not UTF-8"),
        ],
    )
    def test_missing_or_outside_file_is_invalid_input(
        self, path: str, message: str, folder: Path
    ) -> None:
        (folder / "link.txt").symlink_to("/etc/passwd")
        (folder / "latin.txt").write_bytes(b"\xe9")
        part = f"{{type: file, value: {path}}}"
        (folder / "x.eval.yaml").write_text(
            f"cases: [{{id: a, input: [{{role: user, content: [{part}]}}],"
            f" evaluators: [{{name: c, type: latency, threshold: 1}}]}}]\n"
        )
        ran = _run(folder)
        assert (ran.code, _messages(ran)) == (2, [message])

    def test_eval_file_outside_workspace_may_use_its_repository(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        (folder / ".git").mkdir()
        (folder / "judges").mkdir()
        (folder / "judges" / "j.py").write_text("print('{\"score\": 1}')\n")
        (folder / "x.eval.yaml").write_text(
            "cases: [{id: a, input: q, evaluators: [{name: c, type: code_judge,"
            " cwd: judges, script: [python3, j.py]}]}]\n"
        )
        (folder / "o.jsonl").write_text('{"id": "a", "text": "it"}')
        ran = _run(
            tmp_path_factory.mktemp("elsewhere"),
            str(folder / "x.eval.yaml"),
            "--traces",
            str(folder / "o.jsonl"),
        )
        assert ran.code == 0, ran.out
