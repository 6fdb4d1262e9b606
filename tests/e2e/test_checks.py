"""Checks from the config to the exit code, reports, comparison and policy."""

import shutil
from pathlib import Path
from typing import Any

from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, run_agentci

RECORDINGS = ROOT / "examples" / "agentevals" / "recordings"
CHECKS = """\
traces: recordings/*.jsonl
checks:
- max_latency: 1m
- max_tokens: 20_000
- max_tool_calls: 8
- max_model_calls: 8
- no_tool_errors: true
- forbidden_tools: ["delete_*"]
- not_contains: [password]
- no_secrets: true
- max_words: 500
"""


def prepare(folder: Path, text: str) -> Path:
    shutil.copytree(RECORDINGS, folder / "recordings")
    (folder / "agentci.yaml").write_text(text)
    return folder


def statuses(results: dict[str, object]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in results["results"]:  # type: ignore[attr-defined]  # (JSON)
        found.setdefault(each["evaluator"], set()).add(each["status"])
    return found


def test_checks_pass(tmp_path: Path) -> None:
    ran = run_agentci(["run"], cwd=prepare(tmp_path, CHECKS))
    assert ran.code == 0, ran.out
    found = statuses(ran.results)
    assert len(found) == 9
    assert {*map(frozenset, found.values())} == {frozenset({"passed"})}


def test_checks_fail_and_say_why(tmp_path: Path) -> None:
    text = CHECKS + "- trajectory: [find_order]\n- contains: xyzzy\n"
    ran = run_agentci(["run"], cwd=prepare(tmp_path, text))
    assert ran.code == 1
    assert "the answer does not contain 'xyzzy'" in ran.out
    assert "expected, not called" in ran.out
    summary = (tmp_path / "agentci-results" / "summary.md").read_text()
    assert "find_order" in summary


def test_value_of_a_secret_variable_is_found_and_not_shown(tmp_path: Path) -> None:
    folder = prepare(tmp_path, "traces: recordings/*.jsonl\nchecks: [no_secrets: {env: [TOKEN]}]\n")
    assert run_agentci(["run"], cwd=folder, environ={"TOKEN": ""}).code == 3
    assert run_agentci(["run"], cwd=folder, environ={"TOKEN": "not in it"}).code == 0
    ran = run_agentci(["run"], cwd=folder, environ={"TOKEN": "kettle"})
    assert ran.code == 1
    assert "has a secret: the value of TOKEN" in ran.out
    files = [each.read_text() for each in (folder / "agentci-results").iterdir()]
    assert all("kettle" not in text for text in (ran.out, *files))


def test_check_without_data_is_an_error(tmp_path: Path) -> None:
    ran = run_agentci(["run"], cwd=prepare(tmp_path, CHECKS + "- max_cost: 5\n"))
    assert ran.code == 3
    assert "recorded no cost and has no price" in ran.out


def test_prices_of_the_config(tmp_path: Path) -> None:
    text = CHECKS + "- max_cost: $0.50\nprices: {'gpt-*': {input: 0.15, output: 0.6}}\n"
    ran = run_agentci(["run"], cwd=prepare(tmp_path, text))
    assert ran.code == 0, ran.out
    metrics = ran.results["metrics"]["run"]
    assert metrics["priced_cases"] == metrics["cost_cases"] == len(ran.results["cases"])
    assert metrics["cost_usd"] > 0


def test_prices_of_max_cost_count_in_the_metrics_if_all_agree(tmp_path: Path) -> None:
    def measure(other: str) -> dict[str, Any]:
        entries = (
            f"- {{check: max_cost, name: {name}, value: 5, prices: {{'gpt-*': {{input: {price}, "
            "output: 0.6}}}\n"
            for name, price in (("one", "0.15"), ("two", other))
        )
        ran = run_agentci(["run"], cwd=prepare(tmp_path / other, CHECKS + "".join(entries)))
        assert ran.code == 0, ran.out
        found: dict[str, Any] = ran.results["metrics"]["run"]
        return found

    same = measure("0.15")
    assert same["priced_cases"] == same["cost_cases"] > 0
    assert same["cost_usd"] > 0
    assert "cost_usd" not in measure("0.3")


def test_check_for_no_case_fails_the_gate(tmp_path: Path) -> None:
    text = CHECKS + "- {check: contains, value: a, cases: [none-*]}\n"
    ran = run_agentci(["run"], cwd=prepare(tmp_path, text))
    assert ran.code == 1
    assert "contains evaluated no case: no case has an id like `none-*`" in ran.out
    assert statuses(ran.results)["contains"] == {"skipped"}


def test_pattern_for_no_case_is_warned_about_beside_others(tmp_path: Path) -> None:
    text = CHECKS + "- {check: max_chars, value: 9000, cases: ['*', none-*, weather]}\n"
    ran = run_agentci(["run"], cwd=prepare(tmp_path, text))
    assert ran.code == 0
    assert [each["message"] for each in ran.results["problems"]] == [
        "check max_chars: no case has an id like 'none-*'",
        "check max_chars: no case has an id like 'weather'",
    ]


def test_pattern_names_each_run_of_an_eval_case(tmp_path: Path) -> None:
    runs = [otlp("Hi", answer, trace=number) for number, answer in enumerate(("yes", "no"), 1)]
    (tmp_path / "t.jsonl").write_text("\n".join(runs))
    (tmp_path / "cases.yaml").write_text("eval_cases: [{id: greeting, input: Hi}]\n")
    (tmp_path / "agentci.yaml").write_text(
        "traces: t.jsonl\neval_set: cases.yaml\n"
        "checks: [{check: contains, value: 'yes', cases: [greeting]}]\n"
    )
    ran = run_agentci(["run"], cwd=tmp_path)
    found = {each["case"]: each["status"] for each in ran.results["results"]}
    assert found == {"greeting": "passed", "greeting#2": "failed"}


def test_validate_and_plan_know_checks(tmp_path: Path) -> None:
    prepare(tmp_path, CHECKS)
    assert run_agentci(["validate"], cwd=tmp_path).code == 0
    assert "max_latency" in run_agentci(["plan"], cwd=tmp_path).out
    (tmp_path / "agentci.yaml").write_text("checks: [max_latency: 5]\n")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == 2
    assert "agentci.yaml:1:23: error: `max_latency` must be a time such as 5s" in ran.err + ran.out
