"""Invalid input: exit code 2, each error with file, line and hint, no traceback."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.helpers.recordings import eval_set, eval_set_of, otlp
from tests.helpers.support import Ran, run_agentci

CONFIG = """\
evaluators:
- name: tool_trajectory_avg_score
  type: builtin
eval_set: golden.json
traces: trace.json
"""
SCORES_ONE = "print('{\"score\": 1.0}')"


def _write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace whose checks all pass."""
    folder = tmp_path / "workspace"
    _write_files(
        folder,
        {
            "eval_config.yaml": CONFIG,
            "golden.json": eval_set(),
            "trace.json": otlp(),
            "ev.py": SCORES_ONE,
        },
    )
    return folder


def _problems(ran: Ran) -> list[str]:
    """The reported errors as text, from results.json or from the raised problems."""
    places = [
        f"{p['place']['file']}:{p['place']['line']}: {p['message']}" if p["place"] else p["message"]
        for p in ran.results["problems"]
        if p["severity"] == "error"
    ]
    return places or [str(problem) for problem in ran.problems]


def test_unmodified_workspace_passes(folder: Path) -> None:
    assert run_agentci(["run"], cwd=folder).code == 0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param("", "eval_config.yaml:1: ", id="empty"),
        pytest.param("- a\n- b\n", "eval_config.yaml:1: ", id="list"),
        pytest.param(b"\xff\xfee\x00", "eval_config.yaml:1: ", id="UTF-16"),
        pytest.param(b"\x00\x01\x02", "eval_config.yaml:1: ", id="binary"),
        pytest.param("a: " + "[" * 100_000, "eval_config.yaml:1: ", id="deeply nested"),
        pytest.param(b"x" * (2 * 1024**2), "eval_config.yaml:1: ", id="too large"),
        pytest.param("evaluators: []\n", "eval_config.yaml:1: ", id="no evaluators"),
        pytest.param(
            "evaluators:\n- name: a\n  type: cod\n  path: ev.py\n",
            "eval_config.yaml:3: ",
            id="unknown type",
        ),
        pytest.param(CONFIG + "evaluator: 1\n", "eval_config.yaml:6: ", id="unknown top-level key"),
        pytest.param(
            CONFIG.replace(
                "builtin\n", "builtin\n- {name: tool_trajectory_avg_score, type: builtin}\n"
            ),
            "eval_config.yaml:4: ",
            id="duplicate evaluator name",
        ),
        *(
            pytest.param(
                CONFIG.replace("builtin\n", f"builtin\n  threshold: {value}\n"),
                "eval_config.yaml:4: ",
                id=f"threshold {value}",
            )
            for value in ("1.5", ".nan", '"0.7"', "true", "-1")
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: gone.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: gone.py does not exist",
            id="missing evaluator file",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: ../outside.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: ../outside.py is outside the workspace",
            id="evaluator outside the workspace",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: link.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: link.py is outside the workspace",
            id="symlink out of the workspace",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: sub}\ntraces: trace.json\n",
            "eval_config.yaml:2: ",
            id="evaluator path is a folder",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: loop.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: loop.py is not a regular file",
            id="symlink loop",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: notes.txt}\ntraces: trace.json\n",
            "eval_config.yaml:2: ",
            id="evaluator file of unknown type",
        ),
        pytest.param(
            CONFIG.replace("trace.json", "nothing*.json"),
            "eval_config.yaml:5: no trace file matches nothing*.json",
            id="no trace matches",
        ),
        pytest.param(
            CONFIG.replace("traces: trace.json", ""),
            "eval_config.yaml:1: the config names no traces",
            id="no traces configured",
        ),
        pytest.param(
            CONFIG.replace("golden.json", "gone.json"),
            "eval_config.yaml:4: gone.json does not exist",
            id="missing eval set",
        ),
        pytest.param(
            CONFIG.replace("golden.json", "sub"),
            "eval_config.yaml:4: sub is a folder",
            id="eval set is a folder",
        ),
        pytest.param(
            CONFIG.replace("golden.json", "trace.json"), "trace.json:1: ", id="not an eval set"
        ),
    ],
)
def test_config_error_names_file_and_line(folder: Path, config: str | bytes, expected: str) -> None:
    (folder.parent / "outside.py").write_text(SCORES_ONE)
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "loop.py").symlink_to("loop.py")
    _write_files(folder, {"eval_config.yaml": config, "sub/x": "", "notes.txt": ""})
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code == 2
    assert [problem for problem in _problems(ran) if problem.startswith(expected)]
    assert ran.results["results"] == []
    file, line, message = expected.split(":", 2)
    shown = [text for text in ran.out.splitlines() if f"{file}:{line}:" in text]
    assert any(message.strip() in text for text in shown), ran.out


def test_errors_of_all_configs_are_reported_together(folder: Path) -> None:
    _write_files(
        folder, {"a.eval.yaml": "evaluators: 1\n", "b.eval.yaml": "evaluators: []\nx: 1\n"}
    )
    ran = run_agentci(["run"], cwd=folder)
    files = {problem.split(":")[0] for problem in _problems(ran)}
    assert files == {"a.eval.yaml", "b.eval.yaml"}
    assert len(_problems(ran)) == 3


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param(b"\x89PNG\r\n\x1a\n\x00\xff", id="binary"),
        pytest.param('{"a": 1}', id="JSON object that is not a trace"),
        pytest.param("[" * 200_000, id="deeply nested"),
        pytest.param('{"resourceSpans": [', id="truncated"),
        pytest.param(otlp() + "\n{oops\n", id="invalid second line"),
        pytest.param(otlp().encode("utf-16"), id="UTF-16"),
    ],
)
def test_broken_trace_does_not_affect_other_traces(folder: Path, content: str | bytes) -> None:
    _write_files(folder, {"broken.json": content})
    ran = run_agentci(["run", "--traces", "*e.json", "--traces", "broken.json"], cwd=folder)
    assert ran.code == 2
    assert [problem for problem in _problems(ran) if problem.startswith("broken.json:")]
    assert [result["status"] for result in ran.results["results"]] == ["passed"]
    assert "broken.json" in ran.out


def test_trace_that_is_folder_or_pipe_is_rejected(folder: Path) -> None:
    (folder / "d.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    ran = run_agentci(
        ["run", "--traces", "trace.json", "--traces", "d.json", "--traces", "pipe.json"], cwd=folder
    )
    assert ran.code == 2
    assert len(_problems(ran)) == 2
    assert "d.json is a folder; name the files in it, e.g. d.json/*.jsonl" in ran.out
    assert ran.results["totals"]["passed"] == 1


HEALTH_CHECK = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "GET /", "attributes": []}


def test_traces_without_agent_activity_alone_are_an_error(folder: Path) -> None:
    _write_files(folder, {"http.json": json.dumps([HEALTH_CHECK])})
    ran = run_agentci(["run", "--traces", "http.json"], cwd=folder)
    assert ran.code == 2
    assert "http.json" in ran.out
    assert "no agent activity in 1 trace" in ran.out


def test_trace_without_agent_activity_beside_others_is_ignored_and_counted(folder: Path) -> None:
    _write_files(folder, {"http.json": json.dumps([HEALTH_CHECK])})
    ran = run_agentci(["run", "--traces", "http.json", "--traces", "trace.json"], cwd=folder)
    assert ran.code == 0
    assert "1 trace without agent activity ignored" in ran.out
    assert ran.results["totals"]["checks"] == 1


def test_unreadable_trace_is_reported_beside_one_without_agent_activity(folder: Path) -> None:
    _write_files(folder, {"http.json": json.dumps([HEALTH_CHECK]), "broken.json": "{"})
    ran = run_agentci(["run", "--traces", "http.json", "--traces", "broken.json"], cwd=folder)
    assert ran.code == 2
    assert "broken.json:1" in ran.out


def test_turn_without_content_is_errored(folder: Path) -> None:
    span = {
        "traceId": "1" * 32,
        "spanId": "1" * 16,
        "name": "chat",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    }
    _write_files(folder, {"bare.json": json.dumps([span])})
    ran = run_agentci(["run", "--traces", "bare.json"], cwd=folder)
    assert ran.code == 3
    [result] = ran.results["results"]
    assert result["status"] == "errored"
    assert "The content of the turn was not captured: 1 model call" in result["reason"]
    assert "gen_ai.request.model" in result["reason"]
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in result["reason"]


def test_run_without_content_is_an_error_of_its_eval_case(folder: Path) -> None:
    """It is neither a new case, nor is its eval case without a recorded run."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.conversation.id": "kettle",
    }
    spans = [
        {"traceId": "1" * 32, "spanId": "1" * 16, "name": "chat", "attributes": own}
        for own in (
            attributes,
            attributes
            | {
                "gen_ai.input.messages": [
                    {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}
                ],
                "gen_ai.output.messages": [
                    {"role": "assistant", "parts": [{"type": "text", "content": "Here."}]}
                ],
            },
        )
    ]
    eval_case = {
        "eval_id": "kettle",
        "conversation": [
            {
                "user_content": {"parts": [{"text": "Where is it?"}]},
                "final_response": {"parts": [{"text": "Here."}]},
            }
        ],
    }
    config = """
eval_set: set.json
group_by: conversation
evaluators: [{name: response_match_score, type: builtin, threshold: 1}]
"""
    sets = {"set.json": json.dumps({"eval_set_id": "s", "eval_cases": [eval_case]})}
    _write_files(folder, {"bare.json": json.dumps(spans[:1]), "whole.json": json.dumps(spans[1:])})
    _write_files(folder, {**sets, "agentci.yaml": config})
    command = ["run", "agentci.yaml"]
    before = run_agentci([*command, "--traces", "whole.json", "--output-dir", "old"], cwd=folder)
    assert before.code == 0
    ran = run_agentci([*command, "--traces", "bare.json", "--baseline", "old"], cwd=folder)
    assert ran.code == 3
    [case] = ran.results["cases"]
    assert (case["id"], case["eval_case"], case["state"]) == ("kettle", "kettle", "error")
    assert ran.results["gates"][0]["uncovered"] == []
    assert "Cases against old: 1 newly errored\n" in ran.out


def test_all_checks_skipped_fails_gate(folder: Path) -> None:
    _write_files(
        folder, {"other.json": otlp("Who are you?", trace=2), "more.json": otlp("Why?", trace=3)}
    )
    ran = run_agentci(["run", "--traces", "other.json", "--traces", "more.json"], cwd=folder)
    assert [result["status"] for result in ran.results["results"]] == ["skipped", "skipped"]
    assert ran.code == 1


def test_invalid_config_overwrites_previous_report(folder: Path) -> None:
    run_agentci(["run"], cwd=folder)
    _write_files(folder, {"eval_config.yaml": "evaluators: {}\n"})
    assert run_agentci(["run"], cwd=folder).code == 2
    report = json.loads((folder / "agentci-results" / "results.json").read_text())
    assert report["results"] == []
    assert report["decision"] == {**report["decision"], "passed": False, "exit_code": 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--threshold", "2"],
        ["run", "--traces", "trace.json", "--metric", "no_such_metric"],
        ["run", "gone.yaml"],
        ["run", "--only", "nobody"],
        ["run", "--trace-format", "zipkin"],
        ["run", "--eval-set", "gone.json"],
        ["run", "--output-dir", "trace.json"],
        ["run", "--output-dir", "out"],
        ["validate", "gone.yaml"],
    ],
    ids=" ".join,
)
def test_usage_error_exits_with_2_and_names_argument(folder: Path, arguments: list[str]) -> None:
    (folder / "out").symlink_to(folder.parent)
    ran = run_agentci(arguments, cwd=folder)
    assert ran.code == 2
    shown = [str(problem) for problem in ran.problems] or ran.out.splitlines()
    assert any(arguments[-1] in line for line in shown)


@pytest.mark.parametrize("name", ["trace.json", "lines.jsonl"])
def test_trace_as_config_or_eval_set_is_recognized(folder: Path, name: str) -> None:
    _write_files(folder, {"lines.jsonl": f"{otlp(trace=1)}\n{otlp(trace=2)}\n"})
    as_config = run_agentci(["run", name], cwd=folder)
    assert [p["hint"] for p in as_config.results["problems"]] == [
        "this is a recorded run: list it as `traces` of a config, or pass it with --traces"
    ]
    as_eval_set = run_agentci(["run", "--eval-set", name], cwd=folder)
    assert _problems(as_eval_set) == [f"{name}:1: the file is a trace, not an eval set"]
    assert (as_config.code, as_eval_set.code) == (2, 2)


def test_eval_set_given_as_trace_is_recognized(folder: Path) -> None:
    ran = run_agentci(["run", "--traces", "golden.json"], cwd=folder)
    assert ran.code == 2
    assert "this is an eval set; use it as `eval_set:`" in ran.out


CASES = "eval_cases:\n- id: a\n  input: A\n  calls: []\n"
OLD_SET = '[{"query": "Hi", "expected_tool_use": [], "reference": "Hi"}]'


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("golden.json", eval_set()),
        ("cases.yaml", CASES),
        ("cases.yaml", CASES.replace("calls: []", "anwser: B") + "  checks: [{equals: B}]\n"),
        ("inputs.yaml", "eval_cases: [{id: a, input: A}]\n"),
        ("old.test.json", OLD_SET),
    ],
)
def test_eval_set_given_as_config_is_recognized(
    folder: Path, command: str, name: str, content: str
) -> None:
    _write_files(folder, {name: content})
    ran = run_agentci([command, name], cwd=folder)
    assert ran.code == 2
    [shown] = [line.strip() for line in ran.out.splitlines() if name in line]
    assert shown == (
        f"{name}:1: error: the file is an eval set, not a config; name it as `eval_set:` of a "
        f"config, or pass it with `--eval-set {name}`"
    )


def test_eval_file_of_agentv_with_the_same_key_is_none_of_ours(folder: Path) -> None:
    case = "eval_cases: [{id: a, criteria: x, input: A, expected_output: B}]\n"
    _write_files(folder, {"a.yaml": case})
    ran = run_agentci(["validate", "a.yaml"], cwd=folder)
    assert "is an eval set" not in ran.out
    assert "judge" in ran.out


@pytest.mark.parametrize(
    "lines", ['{"eval_id": "a"}\n{"eval_id": "b"}\n', '\n{"id": "a", "input": "A"}\n\n{"id": 1}']
)
def test_json_lines_are_no_eval_set(folder: Path, lines: str) -> None:
    _write_files(folder, {"set.jsonl": lines})
    ran = run_agentci(["run", "--eval-set", "set.jsonl"], cwd=folder)
    assert _problems(ran) == ["set.jsonl:1: the file is JSON Lines, not an eval set"]
    assert ran.code == 2
    assert "or YAML with `eval_cases:`" in ran.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONFIG, "cases.yaml:1: the file is a config, not an eval set"),
        ("x: 1\ntests: [{id: a}]\n", "cases.yaml:2: the file has `tests` instead of `eval_cases`"),
        (eval_set(), "cases.yaml:1: the file is an eval set of ADK"),
        ("eval_cases: []\n", "cases.yaml:1: `eval_cases` must be a list with at least one item"),
        (CASES.replace("[]", "{find: {id: 1}}"), "cases.yaml:4: calls must be a list"),
    ],
)
def test_wrong_kind_of_eval_set_is_one_error(folder: Path, content: str, message: str) -> None:
    _write_files(folder, {"cases.yaml": content})
    ran = run_agentci(["run", "--eval-set", "cases.yaml"], cwd=folder)
    assert ran.code == 2
    [problem] = _problems(ran)
    assert problem.startswith(message)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            "traces:\nchecks: [{no_secrets: true}]\n",
            "k.yaml:1: `traces` must be a string or a list, not null",
        ),
        (
            "traces: [{pat: trace.json}]\nchecks: [{no_secrets: true}]\n",
            "k.yaml:1: unknown key 'pat'",
        ),
        (
            '{"schema_version": 1, "decision": {}, "totals": {}, "evaluators": [], "cases": []}',
            "k.yaml:1: the file is a report of agentci, not a config",
        ),
    ],
)
def test_mistake_in_a_config_is_one_error(folder: Path, config: str, message: str) -> None:
    _write_files(folder, {"k.yaml": config})
    assert _problems(run_agentci(["run", "k.yaml"], cwd=folder)) == [message]


def test_eval_set_without_cases_is_a_warning_if_only_checks_read_it(folder: Path) -> None:
    config = "checks: [{no_secrets: true}]\neval_set: none.json\ntraces: trace.json\n"
    _write_files(folder, {"eval_config.yaml": config, "none.json": eval_set_of([])})
    for command in ("run", "validate"):
        ran = run_agentci([command], cwd=folder)
        assert ran.code == 0
        assert ran.out.count("none.json:1:1: warning: the eval set has no cases") == 1


def test_file_that_is_no_json_names_the_forms_of_an_eval_set(folder: Path) -> None:
    _write_files(folder, {"a.csv": "id,input\n"})
    ran = run_agentci(["run", "--eval-set", "a.csv"], cwd=folder)
    assert _problems(ran) == ["a.csv:1: the file is not JSON: expecting value"]
    assert "; an eval set is one JSON document of ADK, or YAML" in ran.out


def test_config_of_accept_is_checked(folder: Path) -> None:
    _write_files(folder, {"twice.yaml": f"{CONFIG}traces: trace.json\n", "cases.yaml": CASES})
    for name, message in (
        ("twice.yaml", "twice.yaml:6:1: duplicate key 'traces'"),
        ("cases.yaml", "cases.yaml:1: the file is an eval set, not a config"),
        ("gone.yaml", "gone.yaml does not exist (pass the path of a config)"),
    ):
        ran = run_agentci(["accept", "--all", "--config", name], cwd=folder)
        assert (ran.code, len(ran.problems)) == (2, 1)
        assert str(ran.problems[0]).startswith(message)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_folder_as_traces_is_an_error_with_its_line(folder: Path, command: str) -> None:
    config = CONFIG.replace("traces: trace.json", "traces: [trace.json, sub]")
    _write_files(folder, {"eval_config.yaml": config, "sub/trace.json": otlp()})
    ran = run_agentci([command], cwd=folder)
    assert ran.code == 2
    assert [line.strip() for line in ran.out.splitlines() if "sub is" in line] == [
        "eval_config.yaml:5:9: error: sub is a folder; name the files in it, e.g. sub/*.jsonl"
    ]


@pytest.mark.parametrize("command", ["run", "plan", "validate", "lock"])
def test_missing_config_does_not_hide_other_errors(folder: Path, command: str) -> None:
    _write_files(folder, {"typo.yaml": CONFIG + "evaluator: 1\n"})
    ran = run_agentci([command, "gone.yaml", "typo.yaml"], cwd=folder)
    shown = "\n".join([ran.out, *map(str, ran.problems)])
    assert ran.code == 2
    assert "gone.yaml does not exist" in shown
    assert "typo.yaml:6" in shown
