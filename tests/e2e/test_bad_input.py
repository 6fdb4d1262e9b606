"""Wrong input: exit 2, every problem with its file and line, a way out, never a traceback."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci

CONFIG = """\
evaluators:
- name: tool_trajectory_avg_score
  type: builtin
eval_set: golden.json
traces: trace.json
"""
SCORES_ONE = "print('{\"score\": 1.0}')"


def _lay(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace in which all is well."""
    folder = tmp_path / "workspace"
    _lay(
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
    """Problems as the user reads them, from wherever they are kept."""
    places = [
        f"{p['place']['file']}:{p['place']['line']}: {p['message']}" if p["place"] else p["message"]
        for p in ran.results["problems"]
        if p["severity"] == "error"
    ]
    return places or [str(problem) for problem in ran.problems]


def test_all_is_well_to_begin_with(folder: Path) -> None:
    assert run_agentci(["run"], cwd=folder).code == 0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param("", "eval_config.yaml:1: ", id="empty"),
        pytest.param("- a\n- b\n", "eval_config.yaml:1: ", id="a list"),
        pytest.param(b"\xff\xfee\x00", "eval_config.yaml:1: ", id="UTF-16"),
        pytest.param(b"\x00\x01\x02", "eval_config.yaml:1: ", id="binary"),
        pytest.param("a: " + "[" * 100_000, "eval_config.yaml:1: ", id="nested very deep"),
        pytest.param(b"x" * (2 * 1024**2), "eval_config.yaml:1: ", id="too large"),
        pytest.param("evaluators: []\n", "eval_config.yaml:1: ", id="no evaluators"),
        pytest.param(
            "evaluators:\n- name: a\n  type: cod\n  path: ev.py\n",
            "eval_config.yaml:3: ",
            id="unknown type",
        ),
        pytest.param(
            CONFIG + "evaluator: 1\n", "eval_config.yaml:6: ", id="unknown key at the top"
        ),
        pytest.param(
            CONFIG.replace(
                "builtin\n", "builtin\n- {name: tool_trajectory_avg_score, type: builtin}\n"
            ),
            "eval_config.yaml:4: ",
            id="two evaluators of one name",
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
            id="an evaluator that is not there",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: ../outside.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: ../outside.py is outside the workspace",
            id="an evaluator above the workspace",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: link.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: link.py is outside the workspace",
            id="an evaluator behind a link that leads out",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: sub}\ntraces: trace.json\n",
            "eval_config.yaml:2: ",
            id="a folder for an evaluator",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: loop.py}\ntraces: trace.json\n",
            "eval_config.yaml:2: loop.py is not a regular file",
            id="an evaluator behind a link that leads in a circle",
        ),
        pytest.param(
            "evaluators:\n- {name: a, type: code, path: notes.txt}\ntraces: trace.json\n",
            "eval_config.yaml:2: ",
            id="an evaluator that no runtime knows",
        ),
        pytest.param(
            CONFIG.replace("trace.json", "nothing*.json"),
            "eval_config.yaml:5: no trace file matches nothing*.json",
            id="no recording matches",
        ),
        pytest.param(
            CONFIG.replace("traces: trace.json", ""),
            "eval_config.yaml:1: the config names no traces",
            id="no recordings are named",
        ),
        pytest.param(
            CONFIG.replace("golden.json", "gone.json"),
            "eval_config.yaml:4: gone.json does not exist",
            id="an eval set that is not there",
        ),
        pytest.param(
            CONFIG.replace("golden.json", "sub"), "eval_config.yaml:4: sub is a folder", id="folder"
        ),
        pytest.param(
            CONFIG.replace("golden.json", "trace.json"), "trace.json:1: ", id="not an eval set"
        ),
    ],
)
def test_a_config_that_cannot_be_used_is_told_with_its_line(
    folder: Path, config: str | bytes, expected: str
) -> None:
    (folder.parent / "outside.py").write_text(SCORES_ONE)
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "loop.py").symlink_to("loop.py")
    _lay(folder, {"eval_config.yaml": config, "sub/x": "", "notes.txt": ""})
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code == 2
    assert [problem for problem in _problems(ran) if problem.startswith(expected)]
    assert ran.results["results"] == []
    file, line, message = expected.split(":", 2)
    shown = [text for text in ran.out.splitlines() if f"{file}:{line}:" in text]
    assert any(message.strip() in text for text in shown), ran.out


def test_problems_of_all_configs_are_told_at_once(folder: Path) -> None:
    _lay(folder, {"a.eval.yaml": "evaluators: 1\n", "b.eval.yaml": "evaluators: []\nx: 1\n"})
    ran = run_agentci(["run"], cwd=folder)
    files = {problem.split(":")[0] for problem in _problems(ran)}
    assert files == {"a.eval.yaml", "b.eval.yaml"}
    assert len(_problems(ran)) == 3


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param(b"\x89PNG\r\n\x1a\n\x00\xff", id="binary"),
        pytest.param('{"a": 1}', id="another JSON"),
        pytest.param("[" * 200_000, id="nested very deep"),
        pytest.param('{"resourceSpans": [', id="cut off"),
        pytest.param(otlp() + "\n{oops\n", id="a broken line"),
        pytest.param(otlp().encode("utf-16"), id="UTF-16"),
    ],
)
def test_a_broken_recording_loses_itself_and_no_other(folder: Path, content: str | bytes) -> None:
    _lay(folder, {"broken.json": content})
    ran = run_agentci(["run", "--traces", "*e.json", "--traces", "broken.json"], cwd=folder)
    assert ran.code == 2
    assert [problem for problem in _problems(ran) if problem.startswith("broken.json:")]
    assert [result["status"] for result in ran.results["results"]] == ["passed"]
    assert "broken.json" in ran.out


def test_a_recording_that_may_not_be_read_or_is_a_folder_is_told(folder: Path) -> None:
    (folder / "d.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    ran = run_agentci(
        ["run", "--traces", "trace.json", "--traces", "d.json", "--traces", "pipe.json"], cwd=folder
    )
    assert ran.code == 2
    assert len(_problems(ran)) == 2
    assert "d.json is a folder; name the files in it, e.g. d.json/*.jsonl" in ran.out
    assert ran.results["totals"]["passed"] == 1


def test_a_trace_without_an_agent_cannot_be_judged(folder: Path) -> None:
    span = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "GET /", "attributes": []}
    _lay(folder, {"http.json": json.dumps([span])})
    ran = run_agentci(["run", "--traces", "http.json"], cwd=folder)
    assert ran.code == 3
    [result] = ran.results["results"]
    assert result["status"] == "errored"
    assert "the GenAI semantic conventions and the attributes of Google's ADK" in result["reason"]


def test_nothing_judged_never_opens_the_gate(folder: Path) -> None:
    _lay(folder, {"other.json": otlp("Who are you?", trace=2), "more.json": otlp("Why?", trace=3)})
    ran = run_agentci(["run", "--traces", "other.json", "--traces", "more.json"], cwd=folder)
    assert [result["status"] for result in ran.results["results"]] == ["skipped", "skipped"]
    assert ran.code == 1


def test_an_old_report_never_outlives_a_run_that_could_not_be_made(folder: Path) -> None:
    run_agentci(["run"], cwd=folder)
    _lay(folder, {"eval_config.yaml": "evaluators: {}\n"})
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
def test_wrong_usage_is_exit_2(folder: Path, arguments: list[str]) -> None:
    (folder / "out").symlink_to(folder.parent)
    ran = run_agentci(arguments, cwd=folder)
    assert ran.code == 2
    told = [str(problem) for problem in ran.problems] or ran.out.splitlines()
    assert any(arguments[-1] in line for line in told)


@pytest.mark.parametrize("name", ["trace.json", "lines.jsonl"])
def test_a_recording_is_known_wherever_it_stands(folder: Path, name: str) -> None:
    _lay(folder, {"lines.jsonl": f"{otlp(trace=1)}\n{otlp(trace=2)}\n"})
    as_config = run_agentci(["run", name], cwd=folder)
    assert [p["hint"] for p in as_config.results["problems"]] == [
        "this is a recorded run: list it as `traces` of a config, or pass it with --traces"
    ]
    as_eval_set = run_agentci(["run", "--eval-set", name], cwd=folder)
    assert _problems(as_eval_set) == [f"{name}:1: the file is a trace, not an eval set"]
    assert (as_config.code, as_eval_set.code) == (2, 2)


def test_an_eval_set_is_known_among_recordings(folder: Path) -> None:
    ran = run_agentci(["run", "--traces", "golden.json"], cwd=folder)
    assert ran.code == 2
    assert "this is an eval set; use it as `eval_set:`" in ran.out


@pytest.mark.parametrize("command", ["run", "plan", "validate", "lock"])
def test_a_config_that_is_not_there_hides_no_problem_of_another(folder: Path, command: str) -> None:
    _lay(folder, {"typo.yaml": CONFIG + "evaluator: 1\n"})
    ran = run_agentci([command, "gone.yaml", "typo.yaml"], cwd=folder)
    told = "\n".join([ran.out, *map(str, ran.problems)])
    assert ran.code == 2
    assert "gone.yaml does not exist" in told
    assert "typo.yaml:6" in told
