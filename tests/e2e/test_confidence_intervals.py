"""Confidence intervals and bounds of pass rates, with grouped cases."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci

SUNNY = "It is sunny."
PROGRAM = """\
import json, sys
said = json.load(sys.stdin)["invocations"][0]["final_response"]
print(json.dumps({"score": float("sunny" in said)}))
"""


def _run(folder: Path, *options: str, **config: Any) -> Ran:
    (folder / "own.py").write_text(PROGRAM)
    own = {"name": "own", "type": "code", "path": "own.py"}
    written = {"traces": "trace*.json", "evaluators": [own], "gate": {"min_pass_rate": 0}, **config}
    (folder / "agentci.yaml").write_text(json.dumps(written))
    return run_agentci(["run", *options], cwd=folder)


def _record(folder: Path, *answers: str, conversations: int = 99, question: str = "") -> None:
    """Write a trace for each answer and spread the traces over ``conversations``."""
    for number, answer in enumerate(answers):
        attributes = {"gen_ai.conversation.id": f"talk {number % conversations}"}
        asked = question or f"Question {number}?"
        text = otlp(asked, answer, trace=number + 1, attributes=attributes)
        (folder / f"trace{number}.json").write_text(text)


def test_report_contains_interval_per_evaluator(tmp_path: Path) -> None:
    _record(tmp_path, *[SUNNY] * 9, "It rains.")
    ran = _run(tmp_path)
    [row] = ran.results["evaluators"]
    interval = {
        "low": pytest.approx(0.579142, abs=5e-7),
        "high": 1.0,
        "method": "t",
    }
    assert row == {
        "config": "agentci.yaml",
        "evaluator": "own",
        "checks": 10,
        "passed": 9,
        "failed": 1,
        "errored": 0,
        "skipped": 0,
        "score": 0.9,
        "score_interval": interval,
        "pass_rate": 0.9,
        "pass_rate_interval": interval,
        "groups": 10,
        "flip_rate": None,
    }
    for name in ("summary.md", "report.html"):
        assert "90% (57 to 100%)" in (tmp_path / "agentci-results" / name).read_text()


def test_traces_of_one_conversation_form_one_group(tmp_path: Path) -> None:
    _record(tmp_path, *[SUNNY, SUNNY, "It rains."] * 4, conversations=3)
    ran = _run(tmp_path, group_by="trace")
    [row] = ran.results["evaluators"]
    assert (row["checks"], row["groups"]) == (12, 3)
    assert {case["group"] for case in ran.results["cases"]} == {"talk 0", "talk 1", "talk 2"}


def test_traces_of_one_eval_case_form_one_group(tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text(eval_set())
    _record(tmp_path, SUNNY, "It rains.", SUNNY, question="What is the weather in Paris?")
    ran = _run(tmp_path, eval_set="golden.json", group_by="trace")
    [row] = ran.results["evaluators"]
    assert (row["checks"], row["groups"], row["pass_rate_interval"]) == (3, 1, None)
    assert [case["id"] for case in ran.results["cases"]][1].endswith("#2")


def test_traces_of_one_dataset_row_form_one_group(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "r", "query": "Well?"}))
    _record(tmp_path, SUNNY, "It rains.", question="Well?")
    ran = _run(tmp_path, dataset="rows.jsonl", group_by="trace")
    assert [case["group"] for case in ran.results["cases"]] == ["r", "r"]


class TestPassRateConfidence:
    GATE: Final = {"min_pass_rate": 0.9, "pass_rate_confidence": 0.95}

    def test_too_few_passing_cases_fail_gate(self, tmp_path: Path) -> None:
        _record(tmp_path, *[SUNNY] * 10)
        ran = _run(tmp_path, gate=self.GATE)
        assert ran.code == 1
        assert (
            "Quality gate failed: pass rate 95% confidence bound 74% is below 90% "
            "(10 of 10 cases passed; 19 more passing cases needed)\n"
        ) in ran.out

    def test_enough_passing_cases_pass_gate_also_in_shards(self, tmp_path: Path) -> None:
        _record(tmp_path, *[SUNNY] * 29)
        assert _run(tmp_path, gate=self.GATE).code == 0
        for shard in (1, 2):
            options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
            assert _run(tmp_path, *options, gate=self.GATE).code == 0
        merged = run_agentci(["merge", "s1", "s2"], cwd=tmp_path)
        assert merged.code == 0
        assert "pass rate 95% confidence bound 90.2% reaches 90%" in merged.out

    def test_evaluator_gates_inherit_confidence(self, tmp_path: Path) -> None:
        _record(tmp_path, *[SUNNY] * 10)
        own: dict[str, Any] = {"min_pass_rate": 0.8}
        gate = {**self.GATE, "evaluators": {"own": own}}
        assert (
            "own: pass rate 95% confidence bound 74% is below 80%" in _run(tmp_path, gate=gate).out
        )
        own["pass_rate_confidence"] = None
        assert _run(tmp_path, gate=gate).code == 0

    @pytest.mark.parametrize(
        ("gate", "message"),
        [
            (
                {"pass_rate_confidence": 0.95, "min_pass_rate": 1.0},
                "because no number of cases shows that all cases would pass",
            ),
            (
                {"min_pass_rate": 0.9, "evaluators": {"own": {"pass_rate_confidence": 0.9}}},
                "`pass_rate_confidence` needs a `min_pass_rate`",
            ),
            (
                {"min_pass_rate": 0.9, "pass_rate_confidence": 95},
                "must be a number from 0.5 to 0.999, not 95; write 0.95 for 95 percent",
            ),
        ],
    )
    def test_invalid_confidence_setting_is_rejected(
        self, tmp_path: Path, gate: dict[str, Any], message: str
    ) -> None:
        _record(tmp_path, SUNNY)
        ran = _run(tmp_path, gate=gate)
        assert ran.code == 2
        assert message in ran.out

    def test_confidence_applies_to_case_gate_of_eval_file(self, tmp_path: Path) -> None:
        evaluator = {"name": "has", "type": "contains", "value": "Paris"}
        cases = [
            {"id": f"c{n}", "criteria": "c", "input": "q", "evaluators": [evaluator]}
            for n in range(10)
        ]
        gate = {"cases": {"threshold": 0.5, **self.GATE}}
        written = {"outputs": "out.jsonl", "cases": cases, "gate": gate}
        (tmp_path / "e.yaml").write_text(json.dumps(written))
        answer = {"output_messages": [{"role": "assistant", "content": "Paris."}]}
        lines = [json.dumps({"id": f"c{n}", **answer}) for n in range(10)]
        (tmp_path / "out.jsonl").write_text("\n".join(lines))
        ran = run_agentci(["run", "e.yaml"], cwd=tmp_path)
        assert (ran.code, "19 more passing cases needed" in ran.out) == (1, True)


def test_merged_shards_report_same_intervals_as_one_run(tmp_path: Path) -> None:
    _record(tmp_path, *[SUNNY] * 5, "It rains.", conversations=3)
    whole = _run(tmp_path, group_by="trace").results["evaluators"]
    for shard in (1, 2):
        _run(tmp_path, "--shard", f"{shard}/2", "--output-dir", f"s{shard}", group_by="trace")
    assert run_agentci(["merge", "s1", "s2"], cwd=tmp_path).results["evaluators"] == whole
