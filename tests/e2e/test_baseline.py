"""Comparison with an earlier run: what is reported and what fails the gate."""

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from tests.e2e.baseline_workflow import write_eval
from tests.helpers.support import Ran, run_agentci


def run(folder: Path, *options: str, sunny: int = 6, cases: int = 6, **gate: Any) -> Ran:
    """Evaluate ``cases`` answers, ``sunny`` of which pass."""
    write_eval(folder, sunny=sunny, cases=cases, **gate)
    return run_agentci(["run", *options], cwd=folder, environ={})


@pytest.fixture
def base(tmp_path: Path) -> str:
    assert run(tmp_path, "--output-dir", "main").code == 0
    return "main"


def test_regression_without_limit_does_not_fail_gate(tmp_path: Path, base: str) -> None:
    ran = run(tmp_path, "--baseline", base, sunny=0)
    assert ran.code == 0
    [trend] = ran.results["comparison"]["evaluators"]
    assert (trend["before"], trend["after"], trend["outcome"]) == (1.0, 0.0, "fail")
    assert len(trend["newly_failing"]) == 6
    table = ran.out.partition("Comparison with the baseline\n")[2].splitlines()
    row = "own 6 1 0 (\u22121) regressed 6 newly failing"
    assert " ".join(table[1].split()) == row
    assert (
        "### Comparison with the baseline `main`"
        in (tmp_path / "agentci-results" / "summary.md").read_text()
    )


def test_significant_regression_fails_gate(tmp_path: Path, base: str) -> None:
    ran = run(tmp_path, "--baseline", f"{base}/results.json", sunny=0, max_regression=0.1)
    assert ran.code == 1
    reason = "mean score 1 → 0 (6 cases, max_regression 0.1, p = 0.016)"
    assert f"\nQuality gate failed: 6 cases newly failing, own regressed: {reason}\n" in ran.out


def test_inconclusive_regression_fails_gate_only_if_configured(tmp_path: Path, base: str) -> None:
    given: dict[str, Any] = {"max_regression": 0.1, "sunny": 4}
    assert run(tmp_path, "--baseline", base, **given).code == 0
    strict = {**given, "fail_on_regression": ["fail", "inconclusive"]}
    assert run(tmp_path, "--baseline", base, **strict).code == 1


@pytest.mark.parametrize(
    ("content", "outcome", "pairs"),
    [("none", "non-comparable", 0), ("budget", "pass", 6)],
)
def test_changed_evaluator_needs_runs_of_the_baseline(
    tmp_path: Path, content: str, outcome: str, pairs: int
) -> None:
    run(tmp_path, "--output-dir", "earlier", "--content", content)
    report = tmp_path / "earlier" / "results.json"
    report.write_text(report.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    [trend] = run(tmp_path, "--baseline", "earlier").results["comparison"]["evaluators"]
    assert (trend["outcome"], trend["pairs"]) == (outcome, pairs)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("nowhere", "there is no report nowhere"),
        ("own.py", "own.py:1:1: "),
        ("agentci.yaml", "the file is not a results.json of agentci"),
    ],
)
def test_unusable_baseline_is_invalid_input(tmp_path: Path, named: str, why: str) -> None:
    ran = run(tmp_path, "--baseline", named)
    assert (ran.code, ran.results["totals"]["checks"]) == (2, 0)
    assert why in ran.out
    assert run(tmp_path, "--output-dir", "head").code == 0
    merged = run_agentci(["merge", "head", "--baseline", named], cwd=tmp_path)
    assert merged.code == 2
    assert why in merged.out


def test_unusable_baseline_is_reported_with_other_errors(tmp_path: Path) -> None:
    write_eval(tmp_path, sunny=6)
    for trace in tmp_path.glob("*.json"):
        trace.unlink()
    ran = run_agentci(["run", "--baseline", "nowhere"], cwd=tmp_path, environ={})
    assert ran.code == 2
    assert "there is no report nowhere" in ran.out
    assert "no trace file matches" in ran.out


def test_missing_baseline_fails_the_gate_only_if_configured(tmp_path: Path) -> None:
    assert run(tmp_path, max_regression=0.1).code == 0
    strict: dict[str, Any] = {"max_regression": 0.1, "fail_on_regression": ["no-baseline"]}
    assert run(tmp_path, **strict).code == 1


def test_checks_in_only_one_run_are_counted(tmp_path: Path, base: str) -> None:
    (tmp_path / "trace5.json").unlink()
    ran = run(tmp_path, "--baseline", base, cases=5)
    classes = ran.results["comparison"]["classes"]
    assert (classes["compared"], classes["removed"], classes["added"]) == (5, 1, 0)
    assert "  checks of both runs: 5 compared, 1 only in the baseline\n" in ran.out
    compared = run_agentci(["compare", "agentci-results", base], cwd=tmp_path).out
    assert "checks of both runs: 5 compared, 1 added" in compared


@pytest.mark.parametrize(("content", "is_kept"), [("budget", True), ("none", False)])
def test_page_has_the_runs_of_removed_cases(
    tmp_path: Path, base: str, content: str, is_kept: bool
) -> None:
    (tmp_path / "trace5.json").unlink()
    run(tmp_path, "--baseline", base, "--content", content, cases=5)
    page = html.document_fromstring((tmp_path / "agentci-results" / "report.html").read_text())
    data, contents = (json.loads(page.get_element_by_id(each).text) for each in ("data", "cases-0"))
    [[_, [[evaluator, score]], words, place]] = data["baseline"]["removed_cases"]
    assert (evaluator, score, words) == ("own", 1.0, "removed")
    assert place == ([0, 5] if is_kept else None)
    answers = [turn["answer"] for each in contents[5:] for turn in each["run"]["turns"]]
    assert answers == (["It is sunny."] if is_kept else [])


def test_interrupted_baseline_is_rejected(tmp_path: Path, base: str) -> None:
    file = tmp_path / base / "results.json"
    file.write_text(file.read_text().replace('"complete": true', '"complete": false'))
    _assert_rejected(run(tmp_path, "--baseline", base), "belongs to an interrupted run")


def test_baseline_shard_is_rejected(tmp_path: Path) -> None:
    run(tmp_path, "--shard", "1/2", "--output-dir", "main", cases=12, sunny=12)
    ran = run(tmp_path, "--baseline", "main", cases=12, sunny=12)
    _assert_rejected(ran, "covers only shard 1 of 2")


def test_baseline_without_results_is_rejected(tmp_path: Path) -> None:
    assert run(tmp_path, "--only", "nobody", "--output-dir", "main").code == 2
    _assert_rejected(run(tmp_path, "--baseline", "main"), "has no results")


def _assert_rejected(ran: Ran, why: str) -> None:
    assert (ran.code, f"error: the baseline main {why};" in ran.out) == (2, True)


def test_only_merged_shards_are_compared(tmp_path: Path, base: str) -> None:
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--baseline", base, "--output-dir", f"s{shard}")
        ran = run(tmp_path, *options, sunny=0, max_regression=0.1)
        report = json.loads((tmp_path / f"s{shard}" / "results.json").read_text())
        assert (ran.code, report["comparison"]) == (0, None)
    ran = run_agentci(["merge", "s1", "s2", "--baseline", base], cwd=tmp_path)
    assert ran.code == 1
    assert ran.results["comparison"]["evaluators"][0]["outcome"] == "fail"


def test_same_named_evaluators_are_compared_per_config(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_eval(tmp_path / folder, sunny=6, max_regression=0.1)
    run_agentci(["run", "a", "b", "--output-dir", "main"], cwd=tmp_path)
    write_eval(tmp_path / "b", sunny=0, max_regression=0.1)
    ran = run_agentci(["run", "a", "b", "--baseline", "main"], cwd=tmp_path)
    assert "Quality gate failed: 6 cases newly failing, b/agentci.yaml: own regressed: " in ran.out
    reports = tmp_path / "agentci-results"
    page = (reports / "report.html").read_text()
    assert "b/agentci.yaml: own regressed: mean score 1 → 0" in page
    for text in (ran.out, (reports / "summary.md").read_text()):
        section = text.partition("Comparison with the baseline")[2].partition("Failed checks")[0]
        assert "own (a/agentci.yaml)" in section
        assert "6 newly failing" in section
    comment = (reports / "comment.md").read_text()
    assert comment.startswith(
        "## \N{CROSS MARK} Quality gate failed: 6 cases newly failing, b/agentci.yaml: own "
    )
    assert "**6 newly failing**" in comment


def test_renamed_config_is_compared(tmp_path: Path, base: str) -> None:
    write_eval(tmp_path, sunny=0)
    (tmp_path / "agentci.yaml").rename(tmp_path / "weather.yaml")
    options = ("--baseline", base)
    ran = run_agentci(["run", "weather.yaml", *options], cwd=tmp_path, environ={})
    comparison = ran.results["comparison"]
    assert comparison["renamed_configs"] == {"agentci.yaml": "weather.yaml"}
    [trend] = comparison["evaluators"]
    assert (trend["outcome"], len(trend["newly_failing"])) == ("fail", 6)
    why = "`weather.yaml` moved from `agentci.yaml`, with the same evaluators and cases"
    assert why in ran.out
    assert "config agentci.yaml" in str(ran.results["policy"]["loosened"])
    compared = run_agentci(["compare", base, "agentci-results"], cwd=tmp_path).out
    assert why in compared


def test_config_with_another_name_and_threshold_is_not_taken_for_the_same(
    tmp_path: Path, base: str
) -> None:
    config = tmp_path / "agentci.yaml"
    looser = json.loads(config.read_text())
    looser["evaluators"][0]["threshold"] = 0.1
    config.unlink()
    (tmp_path / "weather.yaml").write_text(json.dumps(looser))
    ran = run_agentci(["run", "weather.yaml", "--baseline", base], cwd=tmp_path, environ={})
    evaluators = ran.results["comparison"]["evaluators"]
    gone = [each["status"] for trend in evaluators for each in trend["no_longer_evaluated"]]
    assert gone == ["removed"] * 6
    assert "only the baseline has checks of `agentci.yaml`\n" in ran.out
    why = "no removed config has the same evaluators and cases"
    assert f"no baseline for `weather.yaml`: {why}\n" in ran.out


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ({"on_removed": "fail"}, "agentci.yaml: own: 6 checks no longer evaluated (removed)"),
        (
            {"max_regression": 0.1, "regression_mode": "prove"},
            "agentci.yaml: own is not comparable: 6 checks that passed were removed",
        ),
    ],
)
def test_removed_config_is_decided_by_its_gate_in_the_baseline(
    tmp_path: Path, gate: dict[str, Any], reason: str
) -> None:
    config = tmp_path / "agentci.yaml"
    assert run(tmp_path).code == 0
    looser = json.loads(config.read_text())
    assert run(tmp_path, "--output-dir", "main", **gate).code == 0
    config.unlink()
    looser["evaluators"][0]["threshold"] = 0.1
    (tmp_path / "weather.yaml").write_text(json.dumps(looser))
    ran = run_agentci(["run", "weather.yaml", "--baseline", "main"], cwd=tmp_path, environ={})
    assert ran.code == 1, ran.out
    assert f"Quality gate failed: {reason}" in ran.out
    comment = (tmp_path / "agentci-results" / "comment.md").read_text()
    assert "\N{CROSS MARK} `own` | removed |" in comment


def test_compare_command_compares_two_reports(tmp_path: Path, base: str) -> None:
    run(tmp_path, sunny=5)
    ran = run_agentci(["compare", base, "agentci-results"], cwd=tmp_path)
    assert ran.code == 0
    row = "own 6 1 0.83 (\u22120.17) inconclusive 1 newly failing"
    assert " ".join(ran.out.splitlines()[1].split()) == row
    assert "newly failing: own 1 → 0: " in ran.out
    lost = run_agentci(["compare", base, "nowhere"], cwd=tmp_path)
    assert (lost.code, lost.problems[0].message) == (2, "there is no report nowhere")


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ({"regression_confidence": 1}, "must be a number from 0 to 0.999, not 1"),
        ({"fail_on_regression": ["pass"]}, "must be fail, inconclusive, "),
    ],
)
def test_invalid_regression_settings_are_config_errors(
    tmp_path: Path, base: str, gate: dict[str, Any], message: str
) -> None:
    ran = run(tmp_path, "--baseline", base, sunny=0, max_regression=0, **gate)
    assert ran.code == 2
    assert message in ran.out


def test_compare_rejects_a_report_without_results(tmp_path: Path, base: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/agentci.yaml").write_text("evaluators: [{nme: x}]\n")
    invalid = run_agentci(["run"], cwd=tmp_path / "empty")
    assert invalid.code == 2
    report = str(tmp_path / "empty/agentci-results/results.json")
    for given in ([report, report], [base, report], [report, base]):
        ran = run_agentci(["compare", *given], cwd=tmp_path)
        assert ran.code == 2
        messages = [each.message for each in ran.problems]
        assert messages
        assert all("has no results: its input was invalid (agentci.yaml" in m for m in messages)


def test_compare_warns_about_interrupted_runs(tmp_path: Path, base: str) -> None:
    file = tmp_path / base / "results.json"
    file.write_text(file.read_text().replace('"complete": true', '"complete": false'))
    ran = run_agentci(["compare", base, base], cwd=tmp_path)
    assert ran.code == 0
    warning = (
        f"warning: the run of {base} was interrupted; checks that did not run are not compared"
    )
    assert ran.out.splitlines().count(warning) == 2


def test_run_with_invalid_input_has_no_removed_checks(tmp_path: Path, base: str) -> None:
    (tmp_path / "own.py").unlink()
    ran = run_agentci(["run", "--baseline", base], cwd=tmp_path, environ={})
    assert ran.code == 2
    assert ran.results["comparison"]["classes"]["removed"] == 0
    assert "newly failing" not in ran.out


def test_checks_that_an_interrupted_run_lacks_are_not_removed(tmp_path: Path, base: str) -> None:
    (tmp_path / "trace5.json").unlink()
    run(tmp_path, "--output-dir", "head", sunny=5, cases=5)
    file = tmp_path / "head" / "results.json"
    assert (
        "5 compared, 1 only in the baseline"
        in run_agentci(["compare", base, "head"], cwd=tmp_path).out
    )
    file.write_text(file.read_text().replace('"complete": true', '"complete": false'))
    ran = run_agentci(["compare", base, "head"], cwd=tmp_path)
    assert "checks of both runs: 5 compared\n" in ran.out
