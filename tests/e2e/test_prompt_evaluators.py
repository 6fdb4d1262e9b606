"""Evaluators of type `prompt`, from the config entry to the report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentci.evaluators import pytest_agent_evals
from tests._util.http.servers import script, serve
from tests.helpers.support import ROOT, Ran, run_agentci
from tests.judges.bench import said

ROW = {
    "id": "refund",
    "query": "Can I return it?",
    "context": "30 days",
    "response": "Yes. {{ context }}",
    "tool_calls": [],
}
GOOD = '{"result": 4, "reason": "kind"}'
PROMPT = """\
Score the relevance of the answer from 1 to 5.

Q: {{query}}
A: {{response}}
{% if context %}Known: {{ context }}{% endif %}
Tools: {{tool_calls}}

Output JSON format: {"result": int, "reason": str}
"""


def _configure(folder: Path, url: str, *rows: Any, **entry: Any) -> None:
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows or (ROW,))))
    (folder / "relevance.md").write_text(PROMPT)
    evaluator = {"name": "relevance", "type": "prompt", "prompt": "relevance.md", "threshold": 3}
    config = {
        "dataset": "data.jsonl",
        "judge": {"provider": "openai", "model": "m", "base_url": url},
        "evaluators": [evaluator | entry],
    }
    (folder / "agentci.yaml").write_text(json.dumps(config, indent=1))


def _run(folder: Path, response: object, **entry: Any) -> tuple[Ran, Any]:
    """Return the run and the last request to the judge, or None without a request."""
    text = response if isinstance(response, str) else json.dumps(response)
    with serve(script(said(text))) as server:
        _configure(folder, server.url, **entry)
        ran = run_agentci(["run"], cwd=folder)
        asked = [json.loads(each.body) for each in server.asked]
    return ran, asked[-1] if asked else None


def test_prompt_file_is_filled_and_sent_to_judge(tmp_path: Path) -> None:
    ran, asked = _run(tmp_path, {"result": 4, "reason": "kind"})
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["reasoning"]) == (0, "passed", "kind")
    assert (result["score"], result["criterion"]) == (None, "result >= 3")
    assert (result["details"]["result"], result["details"]["judge"]["model"]) == (4.0, "m")
    user = asked["messages"][-1]["content"]
    assert user.startswith("Score the relevance of the answer from 1 to 5.\n\nQ: <untrusted ")
    assert "\nYes. {{ context }}\n" in user
    assert "\n30 days\n" in user


def _run_with_a_grader(folder: Path, *replies: str) -> tuple[list[Ran], list[int]]:
    """Run once for each response; return the runs and the number of requests of each.

    The response of the grader is cached.
    """
    rans, asked = [], []
    for response in replies:
        with serve(script(said(response))) as server:
            _configure(folder, server.url)
            (folder / "g").mkdir(exist_ok=True)
            (folder / "g" / "g.py").write_text("def grade(sample, item): return 1")
            config = json.loads((folder / "agentci.yaml").read_text())
            config["evaluators"].append(
                {"name": "g", "type": "grader", "grader": "g/g.py", "cache": True}
            )
            (folder / "agentci.yaml").write_text(json.dumps(config, indent=1))
            rans.append(run_agentci(["run"], cwd=folder))
            asked.append(len(server.asked))
    return rans, asked


def test_only_cached_grader_is_reported_as_cached(tmp_path: Path) -> None:
    rans, asked = _run_with_a_grader(tmp_path, GOOD, GOOD)
    assert asked == [1, 1]
    assert [each["cached"] for each in rans[1].results["results"]] == [False, True]


def test_missing_verdict_causes_same_calls_in_later_run(
    tmp_path: Path,
) -> None:
    _, [_, later] = _run_with_a_grader(tmp_path, GOOD, "It is good.")
    (tmp_path / "elsewhere").mkdir()
    _, [first] = _run_with_a_grader(tmp_path / "elsewhere", "It is good.")
    assert later == first


@pytest.mark.parametrize(
    ("entry", "response", "status", "score"),
    [
        ({"threshold": 3}, {"result": 2, "reason": "r"}, "failed", None),
        ({"threshold": 3, "scale": [1, 5]}, {"result": 4, "reason": "r"}, "passed", 0.75),
        ({"threshold": 0.5}, {"result": 0.25, "reason": "r"}, "failed", 0.25),
        ({"threshold": True}, {"result": "true", "reason": "r"}, "passed", 1.0),
        ({"threshold": False}, {"result": True, "reason": "r"}, "failed", 0.0),
    ],
)
def test_threshold_uses_scale_of_judge(
    tmp_path: Path, entry: dict[str, Any], response: object, status: str, score: float | None
) -> None:
    ran, _ = _run(tmp_path, response, **entry)
    [result] = ran.results["results"]
    assert (result["status"], result["score"]) == (status, score)
    assert ran.code == (0 if status == "passed" else 1)


@pytest.mark.parametrize(
    ("entry", "response"),
    [
        ({"threshold": 3}, {"result": True, "reason": "r"}),
        ({"threshold": 3}, {"result": "4/5", "reason": "r"}),
        ({"threshold": 0.5}, {"result": 4, "reason": "r"}),
        ({"threshold": 3, "scale": [1, 5]}, {"result": 6, "reason": "r"}),
        ({"threshold": True}, {"result": 1, "reason": "r"}),
        ({"threshold": 3}, "It is good."),
    ],
)
def test_result_of_wrong_type_or_range_is_errored(
    tmp_path: Path, entry: dict[str, Any], response: object
) -> None:
    ran, _ = _run(tmp_path, response, **entry)
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (3, "errored", None)


ENDLESS = (
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ query }}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (
            "Rate {{ contxt }}",
            "cannot fill the prompt template: 'contxt' is undefined; available var",
        ),
        (ENDLESS, "Evaluator `relevance`"),  # its memory or its time is too little
    ],
)
def test_unfillable_prompt_errors_without_judge_call(
    tmp_path: Path, template: str, reason: str
) -> None:
    ran, asked = _run(tmp_path, {"result": 4}, prompt=template)
    [result] = ran.results["results"]
    assert (ran.code, result["status"], asked) == (3, "errored", None)
    assert reason in result["reason"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"prompt": "none.md"}, "none.md does not exist"),
        ({"prompt": "../none.md"}, "../none.md"),
        ({"prompt": "a\nb {{ c"}, "template syntax error in the prompt on line 2"),
        ({"prompt": "Rate it\nwell."}, "the prompt uses no variable"),
        ({"threshold": "3"}, "`threshold` must be true or false or a number, not the string '3'"),
        ({"scale": [1]}, "scale"),
        ({"scale": [5, 1]}, "`scale` must be [lowest, highest] and include the `threshold`"),
        ({"threshold": True, "scale": [1, 5]}, "`scale` requires a numeric `threshold`"),
        ({"judge": {"provider": "gemini"}}, "relevance"),
    ],
)
def test_invalid_entry_is_rejected_before_any_call(
    tmp_path: Path, entry: dict[str, Any], problem: str
) -> None:
    ran, asked = _run(tmp_path, {"result": 4}, **entry)
    assert (ran.code, asked) == (2, None)
    assert problem in ran.out


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://me:secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1 must not contain a user"),
        ("nowhere", "invalid `base_url`: nowhere is not a URL"),
    ],
)
def test_validate_rejects_invalid_base_url(tmp_path: Path, url: str, problem: str) -> None:
    _configure(tmp_path, url)
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == 2
    assert problem in ran.out
    assert "secret" not in ran.out


def test_template_syntax_error_is_reported_with_line(tmp_path: Path) -> None:
    _configure(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "relevance.md").write_text("one\ntwo {{ query\n")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == 2
    assert "relevance.md:2: error: template syntax error in the prompt" in ran.out


# Jinja2 computes constants while it compiles: these create a folder, or do not end.
HARMFUL = (
    "{{ ([1]|groupby('real'))[0].__repr__.__func__.__globals__['random']._os.mkdir('ran') }}",
    "{{ 9**(9**9) }}",
    "{{ 'x' * 10**11 }}",
)
# Runs the command line, and ends at the first call of Jinja2's compiler in this process.
GUARDED = """
import os, sys, jinja2, jinja2.compiler, jinja2.meta, jinja2.nodes, jinja2.optimizer

def end(*_, **__):
    print("compiled a template", file=sys.stderr, flush=True)
    os._exit(99)

for kind in vars(jinja2.nodes).values():
    if isinstance(kind, type) and "as_const" in vars(kind):
        kind.as_const = end
jinja2.compiler.CodeGenerator.__init__ = jinja2.optimizer.Optimizer.__init__ = end
jinja2.Environment.compile = jinja2.Template.render = end

from agentci.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_template_that_takes_too_long_gets_advice_that_its_entry_can_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_agent_evals, "RENDER_SECONDS", 1)
    template = ENDLESS.replace("{{ query }}", "") + "{{ query }}"
    ran, asked = _run(tmp_path, {"result": 4}, prompt=template)
    [result] = ran.results["results"]
    assert (ran.code, asked) == (3, None)
    assert "timed out after 1 s; simplify the prompt template" in result["reason"]
    assert "`timeout`" not in result["reason"]


@pytest.mark.parametrize(
    ("command", "template", "code"),
    [
        *(("validate", template, 0) for template in HARMFUL),
        ("run", HARMFUL[0], 3),
        ("run", "{{ 1 + 1 }}", 0),
    ],
)
def test_template_is_not_compiled_in_process_of_agentci(
    tmp_path: Path, command: str, template: str, code: int
) -> None:
    with serve(script(said(GOOD))) as server:
        _configure(tmp_path, server.url)
        (tmp_path / "relevance.md").write_text(template + "{{ response }}")
        ran = subprocess.run(
            [sys.executable, "-c", GUARDED, command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "k"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (ran.returncode, ran.stderr.count("compiled a template")) == (code, 0), ran.stderr
    assert not (tmp_path / "ran").exists()
