"""``agentci show`` on real recordings, eval sets and reports."""

import gzip
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentci.record.request_file import RecordedRequest, format_requests
from agentci.recordings.telemetry.conventions.registry import CONVENTION_ATTRIBUTES
from agentci.recordings.transcripts.formats import TRANSCRIPT_FORMATS
from tests.helpers.support import ROOT, Ran, run_agentci

FRAMEWORKS = ROOT / "tests/recordings/frameworks"
TRANSCRIPTS = ROOT / "tests/recordings/transcripts/files"
AGENTEVALS = ROOT / "tests/conformance/agentevals"
METRIC = ("--metric", "response_match_score", "--eval-set", "eval_set.json")
NO_CONTENT = ("adk2-nocontent", "openai-chat-v2-nocontent", "autogen")


def show(path: Path, *arguments: str) -> Ran:
    return run_agentci(["show", path.name, *arguments], cwd=path.parent)


def show_json(path: Path, *arguments: str) -> Any:
    ran = show(path, "--json", *arguments)
    assert ran.code == 0
    return json.loads(ran.out)


def list_turns(shown: Any) -> list[Any]:
    return [turn for case in shown["cases"] for turn in case["turns"]]


def list_recordings() -> Iterator[Any]:
    for path in sorted(FRAMEWORKS.glob("*/basic.jsonl.gz")):
        expected = json.loads(path.with_name("expected.json").read_text())["basic"]
        yield pytest.param(path, expected, id=path.parent.name)


@pytest.mark.parametrize(("path", "expected"), tuple(list_recordings()))
def test_recording_is_shown_as_what_happened(path: Path, expected: Sequence[Any]) -> None:
    text, shown = show(path).out, show_json(path)
    assert (shown["kind"], shown["format"]) == ("recording", "otlp-json")
    # The telemetry of a framework always says what recorded it.
    read = [each for each in shown["instrumentations"] if each["conventions"]]
    assert read
    assert all(f"{each['scope']} {each['version']}".strip() in text for each in read)
    if path.parent.name in NO_CONTENT:
        assert all(case["not_captured"] and case["switch"] for case in shown["cases"])
        assert all(case["switch"] in text for case in shown["cases"])
        return
    turns = list_turns(shown)
    assert [(turn["user"], turn["answer"]) for turn in turns] == [
        (turn["user"], turn["final"]) for turn in expected
    ]
    for turn, want in zip(turns, expected, strict=True):
        calls = [(call["name"], call["args"]) for call in turn["tool_calls"]]
        assert [call for call in calls if call[0] in {each["name"] for each in want["tool_calls"]}]
        assert f"user    {want['user']}\n" in text
        assert f"answer  {want['final']}\n" in text
        for name, _ in calls:
            assert f"call    {name}(" in text


def test_unread_attributes_are_counted_by_prefix() -> None:
    path = FRAMEWORKS / "vercel-ai/basic.jsonl.gz"
    names: Counter[str] = Counter()
    for line in gzip.decompress(path.read_bytes()).splitlines():
        for resource in json.loads(line).get("resourceSpans", ()):
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    names.update(each["key"] for each in span["attributes"])
    unread = {name: count for name, count in names.items() if not CONVENTION_ATTRIBUTES.has(name)}
    shown = show_json(path)["ignored_attributes"]
    assert sum(each["count"] for each in shown) == sum(unread.values()) > 0
    (telemetry,) = (each for each in shown if each["prefix"] == "ai.telemetry.")
    assert telemetry["count"] == unread["ai.telemetry.functionId"]
    assert telemetry["names"] == ["ai.telemetry.functionId"]
    assert re.search(
        r"^  ai\.telemetry\.\* +\d+  ai\.telemetry\.functionId$", show(path).out, re.MULTILINE
    )


def test_attributes_of_unknown_agents_are_not_read(tmp_path: Path) -> None:
    attributes = [
        {"key": "weave.component.type", "value": {"stringValue": "Generator"}},
        {"key": "plain", "value": {"intValue": 1}},
    ]
    path = write_spans(tmp_path, [{"attributes": attributes}])
    shown = show_json(path)
    assert shown["ignored_attributes"] == [
        {"prefix": "plain", "count": 1, "names": ["plain"]},
        {"prefix": "weave.component.", "count": 1, "names": ["weave.component.type"]},
    ]
    assert shown["instrumentations"] == [
        {"scope": "", "version": "", "conventions": [], "spans": 1}
    ]
    (case,) = shown["cases"]
    assert (case["missing"], case["turns"]) == (["turns"], [])
    assert "no scope         not read    1\n" in show(path).out


def write_spans(folder: Path, spans: Sequence[dict[str, Any]]) -> Path:
    path = folder / "run.json"
    full = [
        {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "step", **span}
        for number, span in enumerate(spans, start=1)
    ]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": full}]}]}))
    return path


def test_recording_without_agent_shows_what_is_in_it(tmp_path: Path) -> None:
    health = {"attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}]}
    path = write_spans(tmp_path, [health, health])
    ran, shown = show(path), show_json(path)
    assert ran.code == 0
    assert ran.out.startswith(
        "run.json: otlp-json, 0 cases, 2 spans in 2 traces\n"
        "2 traces without agent activity ignored\n"
    )
    assert (shown["cases"], shown["ignored_traces"]) == ([], 2)


def test_many_instrumentations_prefixes_and_cases_are_cut_in_text_only(tmp_path: Path) -> None:
    def make_span(number: int) -> dict[str, Any]:
        values = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(
                [
                    {
                        "role": "user",
                        "parts": [{"type": "text", "content": f"q{number} " + "x" * 500}],
                    }
                ]
            ),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": "fine"}]}]
            ),
            f"own{number}.name": "1",
        }
        return {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in values.items()]}

    path = write_spans(tmp_path, [make_span(number) for number in range(25)])
    text, shown = show(path).out, show_json(path)
    assert len(shown["cases"]) == 25
    assert text.startswith(f"{path.name}: otlp-json, 25 cases, 25 spans in 25 traces\n")
    assert text.count("\nCase ") == 20
    assert "\N{HORIZONTAL ELLIPSIS} and 5 more cases; `agentci show --json` prints all\n" in text
    assert "  \N{HORIZONTAL ELLIPSIS} and 10 more\n" in text
    assert shown["cases"][0]["turns"][0]["user"] == "q0 " + "x" * 500
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize("format_folder", sorted(TRANSCRIPTS.iterdir()), ids=lambda path: path.name)
def test_transcript_is_shown_or_refused_in_one_line(format_folder: Path) -> None:
    for path in sorted(format_folder.rglob("*")):
        if path.is_dir() or path.name == "expected.json":
            continue
        ran = show(path)
        if ran.code == 2:
            (problem,) = ran.problems
            assert problem.hint
            continue
        shown = show_json(path)
        if shown["kind"] == "eval_set":
            continue
        # Exports of spans are in the same folder.
        assert (shown["format"] in TRANSCRIPT_FORMATS) != bool(shown["instrumentations"])
        for turn in list_turns(shown):
            for call in turn["tool_calls"]:
                assert f"call    {call['name']}" in ran.out


def test_many_calls_and_instrumentations_are_cut_in_text(tmp_path: Path) -> None:
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        for number in range(45)
    ]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": calls}]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages))
    text = show(path).out
    assert text.count("call    find()\n") == 40
    assert "\N{HORIZONTAL ELLIPSIS} and 5 more calls\n" in text
    span = {"traceId": "1" * 32, "name": "step"}
    scopes = [
        {"scope": {"name": f"own-{number}"}, "spans": [{**span, "spanId": f"{number + 1:016x}"}]}
        for number in range(20)
    ]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}))
    text = show(path).out
    assert text.count("  not read    1\n") == 15
    assert "\n\N{HORIZONTAL ELLIPSIS} and 5 more\n" in text


def test_eval_set_is_shown_as_expected_turns() -> None:
    path = AGENTEVALS / "c06-ambiguous/eval_set.json"
    shown = show_json(path)
    assert (shown["kind"], shown["id"]) == ("eval_set", "set1")
    assert [case["id"] for case in shown["cases"]] == ["case_1", "case_2"]
    assert show(path).out == (
        "eval_set.json: eval set set1, 2 eval cases\n"
        "\n"
        "Case case_1\n"
        "  turn 1  user    What is the weather in Paris?\n"
        '          call    get_weather(city="Paris")\n'
        "          answer  It is sunny in Paris, 21 degrees.\n"
        "\n"
        "Case case_2\n"
        "  turn 1  user    What is the weather in Paris?\n"
        '          call    get_news(topic="local")\n'
        "          answer  B\n"
    )


def test_large_eval_set_is_cut_in_text(tmp_path: Path) -> None:
    path = tmp_path / "eval_set.json"
    turn = {"user_content": {"parts": [{"text": "hi"}]}}
    cases = [{"eval_id": f"c{number}", "conversation": [turn] * 25} for number in range(22)]
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    text = show(path).out
    assert text.count("\nCase ") == 20
    assert "and 2 more cases; `agentci show --json` prints all\n" in text
    assert text.count("and 5 more turns\n") == 20


def test_recorded_requests_are_named(tmp_path: Path) -> None:
    asked = RecordedRequest(
        method="POST", path="/chat/completions", body={"messages": []}, response={"id": "r"}
    )
    (tmp_path / "a.json").write_text(format_requests([asked, asked]))
    ran = run_agentci(["show", "a.json"], cwd=tmp_path)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "a.json: 2 recorded requests, from which `agentci record --replay` answers the agent",
        "2 POST /chat/completions",
        "The runs are in the traces, the .jsonl file next to the folder",
    ]
    ran = run_agentci(["show", "a.json", "--json"], cwd=tmp_path)
    assert json.loads(ran.out) == {
        "kind": "requests",
        "file": "a.json",
        "requests": ["POST /chat/completions"] * 2,
    }


def test_results_are_shown_with_every_check(tmp_path: Path) -> None:
    config = "examples/agentevals-failing/eval_config.yaml"
    run_agentci(["run", config, "--output-dir", str(tmp_path)], cwd=ROOT)
    path = tmp_path / "results.json"
    stored, shown, text = json.loads(path.read_text()), show_json(path), show(path).out
    assert (shown["kind"], shown["decision"]["passed"]) == ("results", False)
    assert [
        (check["case"], check["evaluator"], check["status"], check["score"])
        for check in shown["checks"]
    ] == [
        (check["case"], check["evaluator"], check["status"], check["score"])
        for check in stored["results"]
    ]
    assert "\nQuality gate failed: " in text
    assert all(f"> {check['evaluator']}: " in text for check in stored["results"])


@pytest.mark.parametrize(
    ("case", "group_by", "turns"),
    [
        # `agentevals.session_name` on the resource joins traces by default.
        ("d06-missing-turn", "auto", None),
        ("d03-conversation-id-auto-single", "auto", [1, 1]),
        ("d03-conversation-id-auto-single", "trace", [1, 1]),
        ("d03-conversation-id-auto-single", "conversation", [2]),
        ("d09-average-of-turns", "auto", [2]),
        ("d09-average-of-turns", "conversation", [2]),
        ("d09-average-of-turns", "trace", [1, 1]),
    ],
)
def test_group_by_makes_cases_as_in_a_run(
    case: str, group_by: str, turns: list[int] | None, tmp_path: Path
) -> None:
    path = AGENTEVALS / case / "trace.json"
    shown = show_json(path, "--group-by", group_by)
    if turns is not None:
        assert [len(each["turns"]) for each in shown["cases"]] == turns
    # The same cases as a run, under the same ids.
    shutil.copy(path, tmp_path / "trace.json")
    metric = ("--metric", "tool_trajectory_avg_score")
    eval_set = ("--eval-set", str(path.with_name("eval_set.json")))
    ran = run_agentci(
        ["run", *metric, "--traces", "trace.json", "--group-by", group_by, *eval_set],
        cwd=tmp_path,
    )
    with_eval_set = show_json(path, "--group-by", group_by, "--eval-set", "eval_set.json")
    assert [(each["id"], len(each["turns"])) for each in with_eval_set["cases"]] == [
        (each["id"], each["turn_count"]) for each in ran.results["cases"]
    ]


def test_joined_traces_are_shown_as_one_case() -> None:
    path = AGENTEVALS / "d09-average-of-turns/trace.json"
    (case,) = show_json(path)["cases"]
    assert case["conversation"]
    assert case["traces"] == 2
    assert f"  2 traces from {case['trace']} on, joined by conversation" in show(path).out
    unwrapped = FRAMEWORKS / "openai-chat-v2-span-unwrapped/basic.jsonl.gz"
    assert " on, joined by history, " in show(unwrapped).out


def test_eval_case_or_the_reason_why_there_is_none_is_shown() -> None:
    path = AGENTEVALS / "c03-two-cases-no-match/trace.json"
    cases = show_json(path, "--eval-set", "eval_set.json")["cases"]
    assert {case["unmatched_reason"] for case in cases} == {"no matching eval case"}
    assert "  no matching eval case\n" in show(path, "--eval-set", "eval_set.json").out
    other = AGENTEVALS / "c02-two-cases-match-by-text/trace.json"
    text = show(other, "--eval-set", "eval_set.json").out
    for case in show_json(other, "--eval-set", "eval_set.json")["cases"]:
        assert f"  eval case {case['eval_case']}\n" in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("broken.json", b'{"resourceSpans": [', "invalid JSON"),
        ("lines.jsonl", b'{"spanId": "1"}\n{"spanId": \n', "invalid JSON"),
        ("notes.txt", b"\xff\xfe\x00binary", "UTF-8"),
        ("empty.json", b"", "empty"),
        ("list.json", b"[1, 2]", "not a recorded run in a known format"),
        ("set.json", b'{"eval_set_id": "a", "eval_cases": 1}', "eval_cases"),
        ("report.json", b'{"schema_version": 1, "decision": {}, "results": []}', "results.json"),
        ("cut.jsonl.gz", gzip.compress(b'{"resourceSpans": []}', mtime=0)[:-6], "gzip"),
    ],
)
def test_unreadable_file_is_one_error(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    ran = show(path)
    (problem,) = ran.problems
    assert (ran.code, ran.out) == (2, "")
    assert problem.place is not None
    assert problem.place.file == name
    assert message in str(problem)


def test_missing_folder_and_unknown_format_are_errors(tmp_path: Path) -> None:
    path = write_spans(tmp_path, [{}])
    cases: dict[str, list[str]] = {
        "nothing.json does not exist": ["nothing.json"],
        "is a folder (name one file)": ["."],
        "unknown trace format `nosuch` (use one of auto, ": [
            *(path.name, "--trace-format", "nosuch")
        ],
    }
    for message, arguments in cases.items():
        ran = run_agentci(["show", *arguments], cwd=tmp_path)
        assert ran.code == 2
        assert message in str(ran.problems[0])


def test_forced_format_reads_the_file_as_this_format() -> None:
    path = FRAMEWORKS / "vercel-ai/basic.jsonl.gz"
    assert show_json(path, "--trace-format", "otlp-json")["format"] == "otlp-json"
    ran = show(path, "--trace-format", "jaeger-json")
    assert ran.code == 2
    # A forced format is not replaced by what the file looks like.
    eval_set = AGENTEVALS / "c06-ambiguous/eval_set.json"
    assert show(eval_set, "--trace-format", "atif").code == 2


def test_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(257 * 1024**2)
    ran = show(path)
    (problem,) = ran.problems
    assert (ran.code, problem.message) == (2, "huge.jsonl is larger than 256 MiB")


def test_foreign_text_cannot_control_terminal_or_workflow(tmp_path: Path) -> None:
    hostile = "\x1b[31mred\x1b]0;title\x07\n::error::no\n##[group]x\u202egnp.exe"
    messages = [
        {"role": "user", "content": hostile},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "\x1b[2J",
                    "type": "function",
                    "function": {"name": hostile, "arguments": json.dumps({hostile: hostile})},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "\x1b[2J", "content": hostile},
        {"role": "assistant", "content": hostile},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages))
    text = show(path).out
    assert "red" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert "##[" not in text
    raw = show(path, "--json").out
    assert raw.isascii()
    assert "##[" not in raw
    assert json.loads(raw)["cases"][0]["turns"][0]["user"] == hostile


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(environ: dict[str, str], coloured: bool) -> None:
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "agentci", "show", "autogen/basic.jsonl.gz"]
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(
        command,
        stdout=terminal,
        env={**inherited, "PYTHONPATH": str(ROOT), **environ},
        cwd=FRAMEWORKS,
        check=True,
    )
    os.close(terminal)
    printed = os.read(main, 65536)
    os.close(main)
    assert b"Case " in printed
    assert (b"\x1b[1m" in printed, b"\x1b[1;31m" in printed) == (coloured, coloured)


def test_documented_keys_are_those_of_the_json() -> None:
    page = (ROOT / "docs/show.md").read_text().partition("## JSON")[2]
    documented = {name.removesuffix("[]") for name in re.findall(r"`([a-z_]+(?:\[\])?)`", page)}
    shown = show_json(FRAMEWORKS / "vercel-ai/basic.jsonl.gz")
    (path,) = (TRANSCRIPTS / "claude-code-session/v1-delegate").glob("*.jsonl")
    agent = show_json(path)
    assert any(case["subagents"] for case in agent["cases"])
    keys = {*list_keys(shown), *list_keys(agent)}
    assert keys <= documented


def list_keys(value: Any) -> Iterator[str]:
    """The keys of all objects, except of those that were recorded."""
    if isinstance(value, list):
        for each in value:
            yield from list_keys(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in ("args", "result", "performance"):
                yield from list_keys(inner)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.jsonl", b'{"spanId": '),
        ("list.json", b"[1, 2]"),
        ("playwright.json", b'{"config": {}, "suites": []}'),
        ("health.json", b'[{"traceId": "01", "spanId": "02"}]'),
    ],
)
def test_error_about_a_recording_points_to_show(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    shutil.copy(AGENTEVALS / "c06-ambiguous/eval_set.json", tmp_path)
    ran = run_agentci(["run", *METRIC, "--traces", name], cwd=tmp_path)
    assert ran.code == 2
    hints = [each.hint or "" for each in ran.problems] or [ran.out]
    assert f"run `agentci show {name}`" in hints[0]


def test_error_about_a_recording_of_an_eval_file_points_to_show(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"spanId": "1", "traceId": "2"}\n{"spanId": \n')
    (tmp_path / "a.eval.yaml").write_text(
        "tests: [{id: a, input: hi, criteria: fine, assert: [{type: contains, value: hi}]}]\n"
    )
    ran = run_agentci(["run", "a.eval.yaml", "--traces", "run.jsonl"], cwd=tmp_path)
    assert "run.jsonl:2:" in ran.out
    assert "run `agentci show run.jsonl`" in ran.out


def test_error_about_missing_content_points_to_show(tmp_path: Path) -> None:
    shutil.copy(FRAMEWORKS / "autogen/basic.jsonl.gz", tmp_path)
    shutil.copy(AGENTEVALS / "c06-ambiguous/eval_set.json", tmp_path)
    ran = run_agentci(["run", *METRIC, "--traces", "*.gz"], cwd=tmp_path)
    (result,) = ran.results["results"]
    assert result["status"] == "errored"
    assert result["reason"].endswith("; run `agentci show basic.jsonl.gz`")
