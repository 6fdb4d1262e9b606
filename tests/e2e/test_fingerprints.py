"""Fingerprints end to end: a check changes only with what its evaluator reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer, script, serve
from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

QUESTION = "What is the weather in Paris?"
GRADERS = """\
import json
import helpers

LIMIT = 10
WORDS = ("sunny",)


def is_short(sample, item):
    return float(len(sample["output_text"]) < LIMIT)


def is_kind(sample, item):
    return helpers.count(sample["output_text"], WORDS) / 2


def cites(sample, item):
    return float(item["truth"] in sample["output_text"])
"""
HELPERS = """\
def count(text, words):
    return float(any(word in text for word in words))


def other():
    return 0
"""


def read_fingerprints(folder: Path) -> dict[str, str]:
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code in (0, 1, 3), ran.out
    return {each["evaluator"]: each["fingerprint"] for each in ran.results["results"]}


def write_eval_set(
    folder: Path, *, answer: str = "It is sunny.", tool: str = "get_weather"
) -> None:
    turn = {
        "user_content": {"parts": [{"text": QUESTION}]},
        "final_response": {"parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": tool, "args": {"city": "Paris"}}]},
    }
    case = {"eval_id": "weather", "conversation": [turn]}
    (folder / "set.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": [case]}))


class TestEvalSet:
    CONFIG = (
        "traces: trace.json\neval_set: set.json\nevaluators:\n"
        "- {name: tool_trajectory_avg_score, type: builtin}\n"
        "- {name: response_match_score, type: builtin}\n"
    )

    @pytest.mark.parametrize(
        ("change", "changed"),
        [
            ({"answer": "It rains."}, {"response_match_score"}),
            ({"tool": "get_forecast"}, {"tool_trajectory_avg_score"}),
            ({}, set()),
        ],
    )
    def test_only_metrics_that_read_the_change_differ(
        self, tmp_path: Path, change: dict[str, str], changed: set[str]
    ) -> None:
        (tmp_path / "trace.json").write_text(otlp(question=QUESTION))
        (tmp_path / "agentci.yaml").write_text(self.CONFIG)
        write_eval_set(tmp_path)
        before = read_fingerprints(tmp_path)
        write_eval_set(tmp_path, **change)
        after = read_fingerprints(tmp_path)
        assert {name for name in before if before[name] != after[name]} == changed


class TestGraders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        names = ("is_short", "is_kind", "cites")
        lines = [f"- {{name: {each}, type: grader, grader: 'graders.py:{each}'}}" for each in names]
        config = "\n".join(["dataset: rows.jsonl", "evaluators:", *lines, ""])
        (tmp_path / "agentci.yaml").write_text(config)
        (tmp_path / "graders.py").write_text(GRADERS)
        (tmp_path / "helpers.py").write_text(HELPERS)
        self.write_row(tmp_path)
        return tmp_path

    def write_row(self, folder: Path, **columns: str) -> None:
        row = {"id": "1", "query": "Weather?", "response": "sunny", "truth": "sunny", "note": "a"}
        (folder / "rows.jsonl").write_text(json.dumps({**row, **columns}))

    def changed(self, folder: Path, *edits: tuple[str, str, str], **columns: str) -> set[str]:
        before = read_fingerprints(folder)
        assert len(before) == 3
        for file, old, new in edits:
            text = (folder / file).read_text()
            assert old in text
            (folder / file).write_text(text.replace(old, new))
        self.write_row(folder, **columns)
        after = read_fingerprints(folder)
        return {name for name in before if before[name] != after[name]}

    @pytest.mark.parametrize(
        ("edit", "changed"),
        [
            (("graders.py", "< LIMIT", "<= LIMIT"), {"is_short"}),
            (("graders.py", "LIMIT = 10", "LIMIT = 12"), {"is_short"}),
            (("graders.py", '("sunny",)', '("sunny", "warm")'), {"is_kind"}),
            (("graders.py", "import json", "import json, re"), set()),
            (("graders.py", "LIMIT = 10", "# ten\n\nLIMIT = 10"), set()),
            (("graders.py", "WORDS) / 2", "WORDS)"), {"is_kind"}),
            (("helpers.py", "any(", "all("), {"is_kind"}),
            (("helpers.py", "return 0", "return 1"), set()),
            (("graders.py", "LIMIT = 10", "LIMIT = 10\nprint()"), {"is_short", "is_kind", "cites"}),
        ],
    )
    def test_grader_differs_only_with_what_its_function_reaches(
        self, folder: Path, edit: tuple[str, str, str], changed: set[str]
    ) -> None:
        assert self.changed(folder, edit) == changed

    @pytest.mark.parametrize(
        ("columns", "changed"),
        [
            ({"note": "b"}, set()),
            ({"truth": "rain"}, {"cites"}),
            ({"response": "rainy"}, set()),
        ],
    )
    def test_grader_differs_only_with_columns_that_it_reads(
        self, folder: Path, columns: dict[str, str], changed: set[str]
    ) -> None:
        assert self.changed(folder, **columns) == changed


@pytest.mark.parametrize(
    ("file", "is_same"), [("own.py", False), ("module.py", False), ("README.md", True)]
)
def test_fetched_code_is_part_of_the_fingerprint(
    tmp_path: Path, file: str, *, is_same: bool
) -> None:
    (tmp_path / "trace.json").write_text(otlp())
    folder = tmp_path / "registry" / "own"
    folder.mkdir(parents=True)
    (folder.parent / "index.yaml").write_text(
        "evaluators: [{name: own, path: own/own.py, language: python}]\n"
    )
    (folder / "module.py").write_text("SCORE = 1\n")
    (folder / "own.py").write_text("import json, module\nprint(json.dumps({'score': 1}))\n")
    entry = "{name: own, type: remote, source: local, repo: registry, ref: own}"
    (tmp_path / "agentci.yaml").write_text(f"traces: trace.json\nevaluators:\n- {entry}\n")
    before = read_fingerprints(tmp_path)
    with (folder / file).open("a") as opened:
        opened.write("print()\n")
    assert (read_fingerprints(tmp_path) == before) is is_same


class TestReuse:
    """Nothing is reused unless the entry allows it."""

    PROGRAM = """\
import json, sys, urllib.request
json.load(sys.stdin)
with urllib.request.urlopen({url!r}) as response:
    print(json.dumps({{"score": json.load(response)["score"]}}))
"""

    @pytest.mark.parametrize(
        ("entry", "statuses"),
        [("", ["passed", "failed"]), (", cache: true", ["passed", "passed"])],
    )
    def test_service_is_asked_again_unless_responses_are_cached(
        self, tmp_path: Path, entry: str, statuses: list[str]
    ) -> None:
        (tmp_path / "trace.json").write_text(otlp())
        folder = tmp_path / "check"
        folder.mkdir()
        config = f"- {{name: own, type: code, path: check/own.py{entry}}}"
        (tmp_path / "agentci.yaml").write_text(f"traces: trace.json\nevaluators:\n{config}\n")
        answers = (Answer(body=json.dumps({"score": each}).encode()) for each in (1.0, 0.0))
        found: list[Any] = []
        with serve(script(*answers)) as server:
            (folder / "own.py").write_text(self.PROGRAM.format(url=f"{server.url}/score"))
            for _ in range(2):
                ran = run_agentci(["run"], cwd=tmp_path)
                found += [each["status"] for each in ran.results["results"]]
        assert found == statuses
