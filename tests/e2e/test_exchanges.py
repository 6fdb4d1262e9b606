"""What evaluators were sent and what came back, in ``report.html`` of whole runs."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from tests._util.http.servers import script, serve
from tests.e2e.judged import KEY, at, judge
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci
from tests.judges.bench import said

SECRET = "s3cret/of-the+program"
ENVIRON = {"PATH": "/usr/bin:/bin", "DEMO_KEY": SECRET}
FORGED = "</script><script>window.stolen = 1</script>"


def run(folder: Path, program: str, *options: str, **entry: Any) -> Ran:
    """Judge one recording by a program in Python."""
    (folder / "traces.jsonl").write_text(otlp())
    (folder / "judge.py").write_text(program)
    evaluator = {"name": "tone", "type": "code", "path": "./judge.py", **entry}
    config = {"traces": ["traces.jsonl"], "evaluators": [evaluator]}
    (folder / "eval.yaml").write_text(json.dumps(config))
    return run_agentci(["run", "eval.yaml", *options], cwd=folder, environ=ENVIRON)


def page_of(folder: Path) -> str:
    return (folder / "agentci-results" / "report.html").read_text()


def told(folder: Path) -> list[Mapping[str, Any]]:
    """All exchanges of a page, each with its texts by their names."""
    elements = html.document_fromstring(page_of(folder)).xpath(
        "//*[starts-with(@id, 'exchanges-')]"
    )
    found = [each for element in elements for each in json.loads(element.text)]
    return [{**each, "texts": {text["name"]: text for text in each["texts"]}} for each in found]


def test_a_program_that_fails_is_shown_with_all_three_streams(tmp_path: Path) -> None:
    run(
        tmp_path,
        "import sys\n"
        "name = __import__('json').load(sys.stdin)['metric_name']\n"
        f'print(\'{{"score": 0, "details": {{"said": "{FORGED}"}}}}\')\n'
        "print('I judged', name, file=sys.stderr)\n",
    )
    [exchange] = told(tmp_path)
    texts = {name: text["content"] for name, text in exchange["texts"].items()}
    assert exchange["outcome"].startswith("program: exit code 0 after ")
    assert json.loads(texts["stdin"])["metric_name"] == "tone"
    assert texts["stdout"] == f'{{"score": 0, "details": {{"said": "{FORGED}"}}}}\n'
    assert texts["stderr"] == "I judged tone\n"
    assert FORGED not in page_of(tmp_path)


@pytest.mark.parametrize(
    ("program", "outcome", "texts"),
    [
        pytest.param(
            "import sys; sys.stdout.buffer.write(b'caf\\xe9')",
            "program: exit code 0 after",
            {"stdout": ("caf\\xe9", 4, ["bytes that are not UTF-8 are written \\xNN"])},
            id="not UTF-8",
        ),
        pytest.param(
            "import sys; print('late', file=sys.stderr); sys.exit(3)",
            "program: exit code 3 after",
            {"stdout": ("", 0, []), "stderr": ("late\n", 5, [])},
            id="a crash",
        ),
        pytest.param(
            "import time; time.sleep(60)",
            "program: Custom evaluator 'tone' timed out after 1s",
            {},
            id="without end",
        ),
    ],
)
def test_a_program_that_could_not_judge_is_shown(
    program: str, outcome: str, texts: dict[str, Any], tmp_path: Path
) -> None:
    run(tmp_path, program, timeout=1)
    [exchange] = told(tmp_path)
    found = exchange["texts"]
    assert exchange["outcome"].startswith(outcome)
    assert json.loads(found["stdin"]["content"])["metric_name"] == "tone"
    assert {
        name: (found[name]["content"], found[name]["size"], found[name]["notes"]) for name in texts
    } == texts


def test_of_a_flood_both_ends_are_shown(tmp_path: Path) -> None:
    run(tmp_path, "print('begin' + 9_000_000 * 'x' + 'end')")
    [exchange] = told(tmp_path)
    stdout = exchange["texts"]["stdout"]
    assert stdout["size"] == 9_000_009
    assert len(stdout["content"]) == 64 * 1024
    assert (stdout["content"][:6], stdout["content"][-5:]) == ("beginx", "xend\n")


def test_a_secret_that_a_program_prints_is_nowhere(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        "import json, os, sys, urllib.parse\n"
        "key = os.environ['DEMO_KEY']\n"
        "print(key, urllib.parse.quote(key, safe=''), file=sys.stderr)\n"
        "print(json.dumps({'score': 0, 'details': {'issues': [f'key {key}'], key: key}}))\n",
        env=["DEMO_KEY"],
    )
    [exchange] = told(tmp_path)
    assert exchange["texts"]["stderr"]["content"] == "*** ***\n"
    assert ran.results["results"][0]["misses"] == ["key ***"]
    written = [path.read_text() for path in (tmp_path / "agentci-results").iterdir()]
    assert [text for text in [ran.out, *written] if SECRET in text] == []


def test_a_secret_in_the_words_of_a_crash_is_nowhere(tmp_path: Path) -> None:
    ran = run(
        tmp_path, "import os; raise SystemExit('no ' + os.environ['DEMO_KEY'])", env=["DEMO_KEY"]
    )
    assert "no ***" in ran.results["results"][0]["reason"]
    assert SECRET not in page_of(tmp_path)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("print(70 * 'x' + key)", id="no JSON"),
        pytest.param("print('{\"score\": \"' + 50 * 'x' + key + '\"}')", id="no score"),
        pytest.param(
            "print('{\"protocol_version\": \"9' + 50 * 'x' + key + '\"}')", id="no version"
        ),
        pytest.param("raise SystemExit(key + 1990 * 'x')", id="the end of a log"),
        pytest.param(
            "import json; said = [965 * 'x' + key + 50 * 'x'] * 999\n"
            "print(json.dumps({'score': 0, 'details': {'issues': said}}))",
            id="many words",
        ),
        pytest.param(
            "import sys, time; print(key + 290 * 'x', file=sys.stderr, flush=True); time.sleep(60)",
            id="last words",
        ),
    ],
)
def test_half_of_a_secret_where_words_are_cut_is_nowhere(program: str, tmp_path: Path) -> None:
    env = {"env": ["DEMO_KEY"], "timeout": 1}
    ran = run(tmp_path, f"import os; key = os.environ['DEMO_KEY']\n{program}", **env)
    written = [path.read_text() for path in (tmp_path / "agentci-results").iterdir()]
    halves = (SECRET[:7], SECRET[-8:])
    assert [text for text in [ran.out, *written] for half in halves if half in text] == []


@pytest.mark.parametrize(
    ("score", "options", "shown"),
    [(1, [], 0), (0, [], 1), (1, ["--exchanges", "all"], 1), (0, ["--exchanges", "none"], 0)],
)
def test_which_checks_are_shown_is_an_option(
    score: int, options: list[str], shown: int, tmp_path: Path
) -> None:
    run(tmp_path, f"print('{{\"score\": {score}}}')", *options)
    assert len(told(tmp_path)) == shown


def test_a_reply_of_an_earlier_run_is_shown_as_one(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path, "print('{\"score\": 0}')", cache=True)
    [exchange] = told(tmp_path)
    assert exchange["outcome"] == "program: exit code 0 in an earlier run"
    assert exchange["texts"]["stdout"]["content"] == '{"score": 0}\n'


def test_a_merged_report_says_where_they_are(tmp_path: Path) -> None:
    run(tmp_path, "print('{\"score\": 0}')", "--output-dir", "part")
    run_agentci(["merge", "part"], cwd=tmp_path)
    data = html.document_fromstring(page_of(tmp_path)).get_element_by_id("data").text
    assert json.loads(data)["elsewhere"] is True
    assert told(tmp_path) == []


def test_a_model_is_shown_with_its_question_and_each_reply(tmp_path: Path) -> None:
    bad = {"reasoning": f"It names no price, {KEY}.", "hits": [], "misses": ["m"], "score": 0.3}
    with serve(script(said(json.dumps(bad)))) as server:
        report = judge(tmp_path, at(server.url, samples=2)).report
    [exchange] = told(tmp_path)
    texts = {name: text["content"] for name, text in exchange["texts"].items()}
    assert list(texts) == ["system", "user", "reply 1", "reply 2"]
    assert "Paris 0." in texts["user"]
    assert json.loads(texts["reply 1"])["reasoning"] == "It names no price, ***."
    [result] = report["results"]
    assert result["reasoning"] == "It names no price, ***."
    assert KEY not in page_of(tmp_path)


def test_what_a_model_said_that_is_no_verdict_is_shown(tmp_path: Path) -> None:
    with serve(script(said("I would rather not"), said("Still not"))) as server:
        judge(tmp_path, at(server.url))
    [exchange] = told(tmp_path)
    assert exchange["outcome"].startswith("model m: the judge's response contains no verdict")
    replies = [exchange["texts"][name]["content"] for name in ("reply 1", "reply 2")]
    assert replies == ["I would rather not", "Still not"]


def test_a_program_that_judges_is_shown_as_a_model(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text('print(\'{"score": 0.1, "reasoning": "so"}\')')
    command = {"provider": "command", "command": [sys.executable, "ask.py"]}
    judge(tmp_path, command)
    [exchange] = told(tmp_path)
    assert exchange["outcome"].startswith(f"model {sys.executable} ask.py: 1 reply after")
