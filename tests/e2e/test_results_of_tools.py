"""Result files of other tools under the gate: verdicts, thresholds, baselines, shards, merging."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci
from tests.result_files.result_samples import FILES, SAMPLES, load_expected, sample_file


def copy(sample: str, folder: Path, name: str = "") -> Path:
    source = sample_file(sample)
    target = folder / (name or source.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return target


def write_rows(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("\n".join(json.dumps({"metric": "m", **row}) for row in rows))


def run(folder: Path, *options: str, results: Any = None, **config: Any) -> Ran:
    """Run with a config, or without one if it has no keys."""
    if results is not None or config:
        keys = {} if results is None else {"results": results}
        (folder / "agentci.yaml").write_text(json.dumps({**keys, **config}))
        options = ("agentci.yaml", *options)
    return run_agentci(["run", "--quiet", *options], cwd=folder)


def statuses(ran: Ran) -> dict[tuple[str, str], str]:
    return {(each["case"], each["evaluator"]): each["status"] for each in ran.results["results"]}


def reasons(ran: Ran) -> str:
    decision = ran.results["decision"]
    return "\n".join([*decision["reasons"], *decision["notes"]])


@pytest.mark.parametrize(
    "sample", [sample for sample in SAMPLES if isinstance(load_expected(sample), list)]
)
def test_every_real_file_becomes_checks(tmp_path: Path, sample: str) -> None:
    path = copy(sample, tmp_path)
    ran = run(tmp_path, "--results", path.name)
    expected = load_expected(sample)
    checks = {(one["case"], one["metric"]): one["status"] or "skipped" for one in expected}
    found = {(one["case"], one["evaluator"]): one for one in ran.results["results"]}
    assert found.keys() == checks.keys()
    if all(one["repeat"] is None for one in expected):
        assert statuses(ran) == checks
        scores = {(one["case"], one["metric"]): one["score"] for one in expected}
        assert {key: one["score"] for key, one in found.items()} == scores
    measured = [one for one in found.values() if one.get("better") == "unknown"]
    assert all(one["status"] != "passed" for one in measured)
    assert ran.code == expected_code(found)


def expected_code(found: dict[tuple[str, str], Any]) -> int:
    required = {one["status"] for one in found.values() if one["required"]}
    if "failed" in required or not required:
        return 1
    return 3 if "errored" in required else 0


def test_verdict_of_the_case_gates_and_its_metrics_inform(tmp_path: Path) -> None:
    copy("promptfoo/sets", tmp_path)
    ran = run(tmp_path, results="out.json")
    required = {one["evaluator"] for one in ran.results["results"] if one["required"]}
    assert (ran.code, required) == (1, {"(case)"})
    assert "1 of 3 required checks failed" in reasons(ran)
    ran = run(tmp_path, results=[{"path": "out.json", "gate_on": "metrics"}])
    required = {one["evaluator"] for one in ran.results["results"] if one["required"]}
    assert "(case)" not in required
    assert "exact" in required


def test_case_that_could_not_be_evaluated_fails_the_gate_on_metrics_too(tmp_path: Path) -> None:
    copy("promptfoo/errors", tmp_path)
    ran = run(tmp_path, results=[{"path": "out.json", "gate_on": "metrics"}])
    errored = {one["case"] for one in ran.results["results"] if one["status"] == "errored"}
    assert errored == {"atlantis", "set"}
    assert "2 required checks errored" in reasons(ran)


def test_score_without_verdict_never_passes(tmp_path: Path) -> None:
    copy("evalite/base", tmp_path)
    ran = run(tmp_path, results="out.json")
    assert (ran.code, {*statuses(ran).values()}) == (1, {"skipped"})
    assert "no required check was evaluated" in reasons(ran) or "no check" in reasons(ran)
    bounds = {"Exact": {"threshold": 0.5}}
    ran = run(tmp_path, results=[{"path": "out.json", "metrics": bounds}])
    found = {one["case"][-6:]: one for one in ran.results["results"] if one["evaluator"] == "Exact"}
    assert {case: one["status"] for case, one in found.items()} == {
        "rance?": "passed",
        "Italy?": "passed",
        "Spain?": "failed",
        "tugal?": "passed",
    }
    assert ran.code == 1
    assert found["Italy?"]["criterion"] == "score >= 0.5"


def test_lower_scores_are_better_with_max(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 0.2}, {"id": "b", "score": 0.4})
    entry = {"path": "a.jsonl", "metrics": {"m": {"max": 0.3}}}
    ran = run(tmp_path, results=[entry])
    assert (ran.code, statuses(ran)) == (1, {("a", "m"): "passed", ("b", "m"): "failed"})
    assert ran.results["results"][0]["criterion"] == "score <= 0.3"


def test_threshold_needs_a_score_and_a_metric(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "passed": True})
    entry = {"path": "a.jsonl", "metrics": {"m": {"threshold": 0.3}, "other": {"max": 1}}}
    ran = run(tmp_path, results=[entry])
    assert (ran.code, statuses(ran)) == (2, {("a", "m"): "errored"})
    [problem] = ran.results["problems"]
    assert (
        problem["message"] == "no result has metric `other`, for which `metrics` sets a threshold"
    )
    assert problem["hint"] == "metrics: m"


def test_score_out_of_range_is_errored(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 1e12, "passed": True})
    ran = run(tmp_path, results="a.jsonl")
    assert (ran.code, statuses(ran)) == (3, {("a", "m"): "errored"})


def test_repeats_are_one_check(tmp_path: Path) -> None:
    copy("promptfoo/repeat", tmp_path)
    ran = run(tmp_path, results="out.json")
    found = {(one["case"], one["evaluator"]): one for one in ran.results["results"]}
    norway = found["norway", "(case)"]
    assert norway["status"] == "passed"
    assert [one["status"] for one in norway["repeats"]["repeats"]] == ["passed", "passed", "failed"]
    assert norway["repeats"]["flip_rate"] == pytest.approx(1 / 3)


def test_repeats_without_verdict_have_their_mean(tmp_path: Path) -> None:
    copy("inspect/epochs", tmp_path)
    ran = run(tmp_path, results="log.json")
    found = {(one["case"], one["evaluator"]): one for one in ran.results["results"]}
    norway = found["epochs/norway", "length"]
    assert (norway["status"], norway["better"]) == ("skipped", "unknown")
    assert norway["score"] == pytest.approx((0.4 + 0.6 + 0.4) / 3)
    assert norway["repeats"]["aggregation"] == "mean"


def test_several_tools_are_under_one_gate_with_own_evaluators(tmp_path: Path) -> None:
    for sample, name in (
        ("promptfoo/base", "promptfoo.json"),
        ("deepeval/base", "deepeval.json"),
        ("junit/pytest-base", "junit.xml"),
        ("inspect/base-eval", "log.eval"),
    ):
        copy(sample, tmp_path, f"out/{name}")
    (tmp_path / "trace.json").write_text(otlp(answer="It is sunny."))
    (tmp_path / "own.py").write_text("def sunny(sample, item):\n    return 1.0\n")
    entry = {"name": "own", "type": "grader", "grader": "own.py:sunny"}
    ran = run(
        tmp_path,
        results=[{"path": "out/*", "name": "{stem}"}],
        traces="trace.json",
        evaluators=[entry],
    )
    names = {one["evaluator"] for one in ran.results["results"]}
    assert names >= {"own", "promptfoo/(case)", "deepeval/Exact", "junit/(case)", "log/includes"}
    assert {one["type"] for one in ran.results["results"]} == {
        *("grader", "promptfoo", "deepeval", "junit", "inspect"),
    }
    assert ran.code == 1


def test_same_case_and_metric_of_two_files_is_an_error(tmp_path: Path) -> None:
    copy("promptfoo/base", tmp_path, "a.json")
    copy("promptfoo/head", tmp_path, "b.json")
    ran = run(tmp_path, results="*.json")
    [problem] = ran.results["problems"]
    assert ran.code == 2
    assert problem["message"] == "case `france`, metric `(case)` of b.json is also in a.json"
    assert "name" in problem["hint"]


def test_metric_with_the_name_of_an_evaluator_is_an_error(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 1, "passed": True, "metric": "own"})
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "own.py").write_text("def f(sample, item):\n    return 1.0\n")
    entry = {"name": "own", "type": "grader", "grader": "own.py:f"}
    ran = run(tmp_path, results="a.jsonl", traces="trace.json", evaluators=[entry])
    assert ran.code == 2
    assert "metric `own` of a.jsonl has the name of an evaluator" in ran.out


def test_expected_cases(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 1, "passed": True})
    ran = run(tmp_path, results=[{"path": "a.jsonl", "expect": {"cases": 2}}])
    assert ran.code == 2
    assert "the results have 1 case; `expect` requires 2" in ran.out
    ran = run(tmp_path, results=[{"path": "a.jsonl", "expect": {"cases": ["a", "b"]}}])
    assert (ran.code, statuses(ran)) == (3, {("a", "m"): "passed", ("b", "(case)"): "errored"})
    ran = run(tmp_path, results=[{"path": "a.jsonl", "expect": {"cases": ["a"]}}])
    assert ran.code == 0
    ran = run(tmp_path, results=[{"path": "a.jsonl", "expect": {"cases": 1}}])
    assert ran.code == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "a.json:1:"),
        ("a.json", '{"prompts": [], "providers": []}', "a promptfoo configuration"),
        ("log.eval", "PK\x03\x04", "the archive is broken"),
        ("a.xml", "<!DOCTYPE a><testsuites/>", "document type"),
    ],
)
def test_broken_file_is_reported_and_others_count(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    write_rows(tmp_path / "good.jsonl", {"id": "a", "score": 1, "passed": True})
    ran = run(tmp_path, results=[name, "good.jsonl"])
    assert (ran.code, statuses(ran)) == (2, {("a", "m"): "passed"})
    assert message in ran.out


def test_folder_and_missing_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    ran = run(tmp_path, results="out")
    assert (ran.code, "out is a folder" in ran.out) == (2, True)
    for options in ({"results": "none/*.json"}, {}):
        given = () if options else ("--results", "none/*.json")
        ran = run(tmp_path, *given, **options)
        assert ran.code == 2
        assert "no result file matches none/*.json" in ran.out


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([{"path": "a", "tool": "promptfo"}], "tool"),
        ([{"path": "a", "metrics": {"m": {}}}], "a metric needs either `threshold` or `max`"),
        ([{"path": "a", "metrics": {"m": {"max": 1, "threshold": 1}}}], "either"),
        ([{"path": "a", "gate_on": "all"}], "gate_on"),
        ([{"path": "a", "expect": {"cases": 0}}], "cases"),
    ],
)
def test_invalid_entry_is_an_error_with_its_place(
    tmp_path: Path, results: Any, message: str
) -> None:
    ran = run(tmp_path, results=results)
    assert ran.code == 2
    assert message in ran.out
    assert "agentci.yaml:1:" in ran.out


def test_config_needs_evaluators_or_results(tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text("traces: a.json\n")
    ran = run_agentci(["run"], cwd=tmp_path)
    assert (ran.code, "the file has no `evaluators`" in ran.out) == (2, True)


def test_options_replace_the_results_of_the_config(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 0.5})
    entries = [
        {"path": "gone.json", "tool": "promptfoo"},
        {"path": "gone", "metrics": {"m": {"threshold": 0.4}}},
    ]
    ran = run(tmp_path, "--results", "a.jsonl", results=entries)
    assert (ran.code, statuses(ran)) == (0, {("a", "m"): "passed"})
    ran = run(tmp_path, "--results", "a.jsonl", results=entries[:1])
    assert (ran.code, statuses(ran)) == (1, {("a", "m"): "skipped"})


def test_only_selects_metrics(tmp_path: Path) -> None:
    copy("deepeval/base", tmp_path)
    ran = run(tmp_path, "--only", "Wordiness", results="latest_run_full.json")
    assert {metric for _, metric in statuses(ran)} == {"Wordiness"}
    assert ran.code == 0


def test_config_beside_results_without_one_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text("evaluators: []")
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 1, "passed": True})
    ran = run_agentci(["run", "--results", "a.jsonl"], cwd=tmp_path)
    assert ran.code == 0
    assert "agentci.yaml is not used" in ran.out


def against_base(tmp_path: Path, tool: str, **config: Any) -> Ran:
    copy(f"{tool}/base", tmp_path, "out.json")
    run(tmp_path, results="out.json", **config)
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    copy(f"{tool}/head", tmp_path, "out.json")
    return run(tmp_path, "--baseline", "old", results="out.json", **config)


@pytest.mark.parametrize("tool", ["promptfoo", "deepeval", "inspect", "adk", "pydantic-evals"])
def test_comparison_with_the_base(tmp_path: Path, tool: str) -> None:
    ran = against_base(tmp_path, tool)
    expected = json.loads((FILES / tool / "head" / "against-base.json").read_text())
    comparison = ran.results["comparison"]
    classes = {name: count for name, count in comparison["classes"].items() if count}
    assert classes == {
        "compared": expected["paired"],
        "added": len(expected["added"]),
        "removed": len(expected["removed"]),
    }
    worse = {
        (change["case"], each["evaluator"])
        for each in comparison["evaluators"]
        for change in each["newly_failing"]
        if change["status_before"] == "passed"
    }
    assert worse <= {(case, metric) for case, metric in expected["worse"]}
    assert worse or tool == "adk"


def test_case_that_crashed_is_newly_errored_and_not_removed(tmp_path: Path) -> None:
    write_rows(
        tmp_path / "a.jsonl",
        *({"id": name, "metric": metric, "passed": True} for name in "ab" for metric in "mn"),
        {"id": "c", "metric": "(case)", "passed": "errored"},
    )
    run(tmp_path, results="a.jsonl")
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    write_rows(
        tmp_path / "a.jsonl",
        {"id": "a", "metric": "m", "passed": True},
        {"id": "b", "metric": "(case)", "passed": "errored", "reason": "agent crashed"},
    )
    ran = run(tmp_path, "--baseline", "old", results="a.jsonl")
    comparison = ran.results["comparison"]
    classes = {name: count for name, count in comparison["classes"].items() if count}
    assert classes == {"compared": 1, "added": 1, "newly_errored": 2, "removed": 2}
    worse = {
        (each["evaluator"], change["case"], change["status"])
        for each in comparison["evaluators"]
        for change in each["no_longer_evaluated"]
    }
    assert worse == {("m", "b", "errored"), ("n", "b", "errored"), ("n", "a", "removed")}


def test_removed_case_fails_the_gate_if_the_config_says_so(tmp_path: Path) -> None:
    ran = against_base(tmp_path, "table", gate={"on_removed": "fail", "min_pass_rate": 0})
    assert ran.code == 1
    assert "1 no longer evaluated (removed)" in reasons(ran)


def test_measurements_of_any_scale_are_compared(tmp_path: Path) -> None:
    ran = against_base(tmp_path, "pydantic-evals")
    [length] = [
        one for one in ran.results["comparison"]["evaluators"] if one["evaluator"] == "Length"
    ]
    assert (length["before"], length["after"]) == (6.0, pytest.approx(16 / 3))
    assert length["change_low"] is None
    assert not length["required"]


def test_looser_thresholds_are_listed(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 0.5}, {"id": "b", "score": 0.5})
    strict = {"m": {"threshold": 0.5}}
    run(tmp_path, results=[{"path": "a.jsonl", "metrics": strict, "expect": {"cases": 2}}])
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    ran = run(
        tmp_path,
        "--baseline",
        "old",
        results=[{"path": "a.jsonl", "metrics": {"m": {"threshold": 0.25}}}],
    )
    loosened = [
        (one["kind"], one["subject"], one["after"]) for one in ran.results["policy"]["loosened"]
    ]
    assert loosened == [
        ("edited", "expect.cases of results a.jsonl", "not set"),
        ("loosened", "threshold of m", "0.25"),
    ]
    ran = run(tmp_path, "--baseline", "old", results="a.jsonl")
    kinds = {one["subject"]: one["kind"] for one in ran.results["policy"]["loosened"]}
    assert kinds == {"expect.cases of results a.jsonl": "edited", "m": "removed"}


def test_looser_gate_of_a_metric_is_listed(tmp_path: Path) -> None:
    copy("deepeval/base", tmp_path, "out.json")
    gate = {"evaluators": {"Exact": {"min_pass_rate": 0.9}}, "min_pass_rate": 0.5}
    run(tmp_path, results="out.json", gate=gate)
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    gate = {"evaluators": {"Exact": {"min_pass_rate": 0.7}}, "min_pass_rate": 0.5}
    ran = run(tmp_path, "--baseline", "old", results="out.json", gate=gate)
    [change] = ran.results["policy"]["loosened"]
    assert change["subject"] == "gate.evaluators.Exact.min_pass_rate"
    assert (change["before"], change["after"]) == ("0.9", "0.7")


def test_larger_maximum_is_looser(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 0.1})
    run(tmp_path, results=[{"path": "a.jsonl", "metrics": {"m": {"max": 0.2}}}])
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    ran = run(
        tmp_path,
        "--baseline",
        "old",
        results=[{"path": "a.jsonl", "metrics": {"m": {"max": 0.3}}}],
    )
    [change] = ran.results["policy"]["loosened"]
    assert (change["subject"], change["before"], change["after"]) == ("max of m", "0.2", "0.3")


def test_policy_of_the_base_decides(tmp_path: Path) -> None:
    gate = {"policy": "base"}
    write_rows(tmp_path / "a.jsonl", {"id": "a", "score": 0.5})
    metrics = {"m": {"threshold": 0.8}}
    run(tmp_path, results=[{"path": "a.jsonl", "metrics": metrics}], gate=gate)
    (tmp_path / "agentci-results").rename(tmp_path / "old")
    metrics = {"m": {"threshold": 0.1}}
    ran = run(
        tmp_path,
        "--baseline",
        "old",
        results=[{"path": "a.jsonl", "metrics": metrics}],
        gate={"policy": "head"},
    )
    assert (ran.code, statuses(ran)) == (1, {("a", "m"): "failed"})


def test_shards_are_merged_to_the_whole(tmp_path: Path) -> None:
    copy("promptfoo/base", tmp_path)
    whole = run(tmp_path, results="out.json").results
    for index in (1, 2):
        options = ("--shard", f"{index}/2", "--output-dir", f"shard{index}")
        run(tmp_path, *options, results="out.json")
    merged = run_agentci(["merge", "shard1", "shard2"], cwd=tmp_path)
    assert merged.code == 1
    found = {one["id"]: one for one in merged.results["results"]}
    assert found == {one["id"]: one for one in whole["results"]}


def test_gate_sets_thresholds_of_metrics_by_name(tmp_path: Path) -> None:
    copy("deepeval/base", tmp_path)
    gate = {"evaluators": {"Exact": {"min_pass_rate": 0.5}, "Letters": {"min_pass_rate": 0.5}}}
    assert run(tmp_path, results="latest_run_full.json", gate=gate).code == 0


def test_merge_takes_result_files(tmp_path: Path) -> None:
    copy("promptfoo/base", tmp_path, "a.json")
    copy("junit/pytest-base", tmp_path, "b.xml")
    write_rows(tmp_path / "own.jsonl", {"id": "a", "passed": True})
    run(tmp_path, "--output-dir", "own", results="own.jsonl")
    ran = run_agentci(["merge", "a.json", "b.xml", "own"], cwd=tmp_path)
    assert ran.code == 1
    assert [gate["config"] for gate in ran.results["gates"]] == ["a.json", "b.xml", "agentci.yaml"]
    (tmp_path / "c.json").write_text('{"a": 1}')
    ran = run_agentci(["merge", "c.json"], cwd=tmp_path)
    assert (ran.code, "no known tool wrote this file" in ran.out) == (2, True)


def test_compare_takes_result_files(tmp_path: Path) -> None:
    base, head = (copy(f"promptfoo/{side}", tmp_path, f"{side}.json") for side in ("base", "head"))
    ran = run_agentci(["compare", base.name, head.name], cwd=tmp_path)
    assert ran.code == 0
    assert "checks of both runs: 9 compared, 3 added, 3 only in the baseline" in ran.out
    assert "newly failing: exact 1 → 0: italy" in ran.out
    run(tmp_path, "--results", head.name)
    ran = run_agentci(["compare", base.name, "agentci-results"], cwd=tmp_path)
    assert "9 compared" in ran.out


def test_run_of_evalite_compared_with_itself_is_a_warning(tmp_path: Path) -> None:
    """Of two runs that began in the same second evalite exports the first one twice."""
    first, other = (copy(f"evalite/{name}", tmp_path, f"{name}.json") for name in ("base", "head"))
    again = tmp_path / "again.json"
    again.write_text(first.read_text())
    warning = "both results are of evalite run 1 of 2026-11-23 08:04:35"
    assert warning in run_agentci(["compare", first.name, again.name], cwd=tmp_path).out
    assert "both results" not in run_agentci(["compare", first.name, other.name], cwd=tmp_path).out
    run(tmp_path, "--results", first.name, "--output-dir", "before")
    ran = run(tmp_path, "--results", again.name, "--baseline", "before")
    assert ran.results["comparison"]["same_run"] == "evalite run 1 of 2026-11-23 08:04:35"
    assert warning in (tmp_path / "agentci-results" / "summary.md").read_text()


def test_compare_shows_warnings_about_the_files(tmp_path: Path) -> None:
    base, head = (copy(f"agentevals/{side}", tmp_path, f"{side}.json") for side in ("base", "head"))
    ran = run_agentci(["compare", base.name, head.name], cwd=tmp_path)
    assert ran.out.count("agentevals writes no ids of eval cases") == 2


def test_plan_shows_recorded_verdicts(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", {"id": "a", "passed": True}, {"id": "b", "score": 1})
    ran = run_agentci(["plan", "--results", "a.jsonl"], cwd=tmp_path)
    assert ran.code == 0
    assert "a, m: read the result of jsonl" in ran.out


def test_reports_of_results_are_written(tmp_path: Path) -> None:
    copy("promptfoo/base", tmp_path)
    run(tmp_path, results="out.json")
    folder = tmp_path / "agentci-results"
    for name in ("junit.xml", "summary.md", "report.html", "comment.md"):
        assert "italy" in (folder / name).read_text()
    performance = json.loads((folder / "results.json").read_text())["cases"][0]["performance"]
    assert performance == {"duration_seconds": 0.022}
