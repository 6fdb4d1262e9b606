"""Recorded runs that no eval case is for: the checks of eval cases do not evaluate them."""

from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci

WEATHER = """eval_cases:
  - id: weather
    input: What is the weather in Paris?
    calls: [get_weather]
"""
ROME = "  - {id: rome, input: And in Rome?, checks: [{contains: Rome}]}\n"
FOR_CASE = "agentevals.eval.case.id"


def run(folder: Path, cases: str, *, other: str, more: str = "") -> Ran:
    """Evaluate the run of the eval case `weather` and another one."""
    (folder / "weather.json").write_text(otlp())
    (folder / "rome.json").write_text(other)
    (folder / "cases.yaml").write_text(cases)
    config = f"traces: '*.json'\neval_set: cases.yaml\nchecks: [{{no_secrets: true}}]\n{more}"
    (folder / "agentci.yaml").write_text(config)
    return run_agentci(["run"], cwd=folder)


def list_problems(ran: Ran) -> list[tuple[str, str]]:
    return [(each["severity"], each["message"]) for each in ran.results["problems"]]


@pytest.mark.parametrize(
    ("attributes", "severity", "name"),
    [
        pytest.param({}, "note", "And in Rome?", id="question"),
        pytest.param({FOR_CASE: "rome"}, "warning", "rome", id="named"),
    ],
)
def test_run_whose_eval_case_was_removed_is_listed(
    attributes: dict[str, str], severity: str, name: str, tmp_path: Path
) -> None:
    other = otlp("And in Rome?", "Rome: sunny", trace=2, attributes=attributes)
    ran = run(tmp_path, WEATHER + ROME, other=other)
    assert (ran.code, list_problems(ran)) == (0, [])
    ran = run(tmp_path, WEATHER, other=other)
    message = f"1 recorded run matches no eval case: `{name}`"
    assert (ran.code, list_problems(ran)) == (0, [(severity, message)])
    assert message in ran.out


def test_run_without_an_eval_case_fails_the_gate_if_configured(tmp_path: Path) -> None:
    other = otlp("And in Rome?", "Rome: sunny", trace=2)
    strict = "gate: {on_skip: fail}\n"
    assert run(tmp_path, WEATHER + ROME, other=other, more=strict).code == 0
    ran = run(tmp_path, WEATHER, other=other, more=strict)
    assert ran.code == 1
    assert "Quality gate failed: 1 recorded run without an eval case" in ran.out
    for shard in ("1/2", "2/2"):
        folder = f"shards/{shard[0]}"
        run_agentci(["run", "--shard", shard, "--output-dir", folder], cwd=tmp_path)
    merged = run_agentci(["merge", "shards/1/results.json", "shards/2/results.json"], cwd=tmp_path)
    assert merged.code == 1
    assert run_agentci(["run", "--case", "weather"], cwd=tmp_path).code == 0


def test_eval_case_that_a_pattern_of_traces_names_must_exist(tmp_path: Path) -> None:
    other = otlp("And in Rome?", "Rome: sunny", trace=2)
    run(tmp_path, WEATHER, other=other)
    (tmp_path / "agentci.yaml").write_text(
        "traces: [{path: '*.json', case: '{stem}'}]\neval_set: cases.yaml\n"
    )
    ran = run_agentci(["run"], cwd=tmp_path)
    assert list_problems(ran) == [("warning", "1 recorded run matches no eval case: `rome`")]


def test_broken_file_is_reported_without_the_cases_that_it_may_have(tmp_path: Path) -> None:
    run(tmp_path, WEATHER + ROME, other="{")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 2
    assert [severity for severity, _ in list_problems(ran)] == ["error"]
    assert "without a recorded run" not in ran.out
