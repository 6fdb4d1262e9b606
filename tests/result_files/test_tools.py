"""What each tool leaves open in its files: names, repeats, errors and versions."""

import json
from typing import Any

import pytest

from agentci.errors import InputError
from agentci.model.result import CASE_METRIC
from agentci.result_files.registry import read_result_archive
from tests.result_files.result_samples import (
    outcomes,
    read_json,
    read_lines,
    read_text,
    statuses,
)


def promptfoo_result(**changes: Any) -> dict[str, Any]:
    return {
        "success": True,
        "score": 1,
        "testIdx": 0,
        "promptIdx": 0,
        "testCase": {"description": "a", "vars": {"x": 1}, "assert": []},
        "gradingResult": {"componentResults": []},
        "provider": {"id": "openai:m", "label": "m"},
        "prompt": {"label": "p"},
        "failureReason": 0,
        **changes,
    }


def promptfoo_file(*results: dict[str, Any], version: Any = 3, repeat: Any = 1) -> dict[str, Any]:
    return {
        "evalId": "e",
        "results": {"version": version, "results": list(results)},
        "runtimeOptions": {"repeat": repeat},
    }


def test_promptfoo_names_by_description_and_vars() -> None:
    tests = [
        {"description": "a", "vars": {"x": 1}},
        {"description": "a", "vars": {"x": 2}},
        {"vars": {"b": 1, "a": "é"}},
        {"description": "only"},
    ]
    found = read_json(
        promptfoo_file(
            *(promptfoo_result(testCase=each, testIdx=n, vars=None) for n, each in enumerate(tests))
        )
    )
    assert [*statuses(found)] == ['a / {"x": 1}', 'a / {"x": 2}', '{"a": "é", "b": 1}', "only"]


def test_promptfoo_names_provider_and_prompt_if_there_are_several() -> None:
    found = read_json(
        promptfoo_file(
            promptfoo_result(provider="one", promptIdx=1),
            promptfoo_result(provider="two", promptIdx=0, prompt={"raw": "q"}),
        )
    )
    assert [*statuses(found)] == ["a / two / q", "a / one / p"]


def test_promptfoo_repeats_follow_test_index_whatever_the_order() -> None:
    results = [promptfoo_result(testIdx=n, score=n) for n in (3, 0, 2, 1)]
    found = read_json(promptfoo_file(*results, repeat=2))
    assert [(row.case, row.repeat, row.score) for row in found.rows] == [
        ("a", 1, 0.0),
        ("a", 2, 1.0),
        ("a #2", 1, 2.0),
        ("a #2", 2, 3.0),
    ]


def test_promptfoo_lines_tell_repeats_from_other_tests_by_assertions() -> None:
    other = {"description": "a", "vars": {"x": 1}, "assert": [{"type": "equals"}]}
    found = read_lines(
        *(promptfoo_result(testIdx=n) for n in range(2)),
        promptfoo_result(testIdx=2, testCase=other),
    )
    assert [(row.case, row.repeat) for row in found.rows] == [("a", 1), ("a", 2), ("a #2", None)]


@pytest.mark.parametrize(
    ("metric", "named", "name"),
    [
        ("{{x}}-length", {"1-length": 1}, "1-length"),
        ("{{ x }}-length", {}, "{{ x }}-length"),
        ("{{ y | upper }}-length", {"Y-length": 1}, "Y-length"),
        ("{{ y | upper }}-length", {"Y-length": 1, "Z-length": 1}, "{{ y | upper }}-length"),
        ("plain", {}, "plain"),
        (None, {}, "contains"),
    ],
)
def test_promptfoo_metric_templates(metric: str | None, named: dict[str, int], name: str) -> None:
    component = {"pass": True, "score": 1, "assertion": {"type": "contains", "metric": metric}}
    grading = {"componentResults": [component, None], "namedScores": named}
    found = read_json(promptfoo_file(promptfoo_result(gradingResult=grading)))
    assert [row.metric for row in found.rows] == [CASE_METRIC, name]


def test_promptfoo_thresholds_of_other_scales_are_not_of_the_score() -> None:
    kinds = ("llm-rubric", "latency", "not-levenshtein", "cost")
    components = [
        {"pass": True, "score": 1, "assertion": {"type": kind, "threshold": 0.5}} for kind in kinds
    ]
    components.append({"pass": None, "metadata": {"assertionSet": {"threshold": "x"}}})
    components.append({"pass": True})
    found = read_json(
        promptfoo_file(promptfoo_result(gradingResult={"componentResults": components}))
    )
    assert [(row.metric, row.threshold, row.status) for row in found.rows[1:]] == [
        ("llm-rubric", 0.5, "passed"),
        ("latency", None, "passed"),
        ("not-levenshtein", None, "passed"),
        ("cost", None, "passed"),
        ("assertion", None, "errored"),
        ("assertion#2", None, "passed"),
    ]


def test_promptfoo_error_without_grading_is_errored() -> None:
    result = promptfoo_result(
        success=False,
        gradingResult=None,
        failureReason=None,
        error="\n\x1b[31mAPI\x1b[0m  error\nx",
    )
    [row] = read_json(promptfoo_file(result, repeat="?")).rows
    assert (row.status, row.score, row.reason) == ("errored", None, "API error")


def test_promptfoo_success_without_grading_passes() -> None:
    result = promptfoo_result(gradingResult=None, latencyMs=250, cost=0.5, provider=None)
    [row] = read_json(promptfoo_file(result)).rows
    assert (row.status, row.seconds, row.cost_usd) == ("passed", 0.25, 0.5)


def test_promptfoo_older_version_is_a_warning_and_newer_is_refused() -> None:
    older = {**promptfoo_file(promptfoo_result(), version=2), "runtimeOptions": None}
    found = read_json(older)
    assert [each.message for each in found.warnings] == ["unknown version 2 of promptfoo results"]
    for version in (4, "4", "4.1"):
        with pytest.raises(InputError, match="promptfoo results of version 4"):
            read_json(promptfoo_file(promptfoo_result(), version=version))
    [warning] = read_json(promptfoo_file(promptfoo_result(), version=None)).warnings
    assert warning.message == "unknown version null of promptfoo results"
    with pytest.raises(InputError, match="unexpected content"):
        read_json(promptfoo_file({"success": "yes"}))


def deepeval_file(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    run = {"testCases": list(cases), "conversationalTestCases": [], "metricsScores": []}
    return {**run, **changes}


def deepeval_case(**changes: Any) -> dict[str, Any]:
    metric = {"name": "M", "score": 0.1, "success": True, "threshold": 0.5}
    return {"name": "a", "input": "q", "metricsData": [metric], **changes}


def test_deepeval_verdict_is_never_derived_from_the_threshold() -> None:
    [row] = read_json(deepeval_file(deepeval_case())).rows
    assert (row.status, row.score, row.threshold) == ("passed", 0.1, 0.5)


def test_deepeval_names() -> None:
    cases = [
        deepeval_case(name="test_case_0", input="q0"),
        deepeval_case(name="test_case_1", input=None),
        deepeval_case(name="same", input="q1"),
        deepeval_case(name="same", input="q2"),
        deepeval_case(),
        deepeval_case(),
    ]
    talk = [deepeval_case(name=None, input=None, scenario="refund")]
    found = read_json(deepeval_file(*cases, conversationalTestCases=talk))
    assert [(row.case, row.repeat) for row in found.rows] == [
        ("q0", None),
        ("test_case_1", None),
        ("same: q1", None),
        ("same: q2", None),
        ("a", 1),
        ("a", 2),
        ("refund", None),
    ]


def test_deepeval_statuses_and_flaky_metrics() -> None:
    metrics = [
        {"name": "skip", "skipped": True, "success": False},
        {"name": "raised", "success": False, "error": "boom\ntrace"},
        {"name": "flaky", "success": False, "score": 0, "flaky": True},
        {"name": "open", "score": 1},
    ]
    rows = read_json(deepeval_file(deepeval_case(metricsData=metrics))).rows
    assert [(row.metric, row.status, row.reason, row.advisory) for row in rows] == [
        ("skip", "skipped", None, False),
        ("raised", "errored", "boom", False),
        ("flaky", "failed", None, True),
        ("open", "errored", None, False),
    ]


def test_deepeval_case_without_metrics_is_errored() -> None:
    found = read_json(deepeval_file(deepeval_case(metricsData=None)))
    assert outcomes(found) == {("a", CASE_METRIC): ("errored", None)}


def inspect_log(*samples: dict[str, Any], **changes: Any) -> dict[str, Any]:
    log = {
        "version": 2,
        "status": "success",
        "plan": {},
        "eval": {"task": "t", "scorers": [{"name": "s"}], "config": {"epochs": 1}},
        "samples": list(samples),
    }
    return {**log, **changes}


def inspect_sample(value: Any, **changes: Any) -> dict[str, Any]:
    return {"id": 1, "epoch": 1, "scores": {"s": {"value": value}}, **changes}


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("C", ("passed", 1.0)),
        ("P", ("failed", 0.5)),
        ("I", ("failed", 0.0)),
        ("N", ("failed", 0.0)),
        (True, ("passed", 1.0)),
        (False, ("failed", 0.0)),
        (0.25, (None, 0.25)),
        (7, (None, 7.0)),
        (None, ("skipped", None)),
    ],
)
def test_inspect_values(value: Any, outcome: tuple[Any, Any]) -> None:
    assert outcomes(read_json(inspect_log(inspect_sample(value)))) == {("t/1", "s"): outcome}


def test_inspect_value_with_keys_is_several_metrics() -> None:
    found = read_json(inspect_log(inspect_sample({"a": "C", "b": 2, "c": "words"})))
    assert outcomes(found) == {("t/1", "s/a"): ("passed", 1.0), ("t/1", "s/b"): (None, 2.0)}
    assert [each.message for each in found.warnings] == [
        "scorer s/c is not read: its values are text"
    ]


def test_inspect_scorer_that_raised_is_errored_and_others_count() -> None:
    scorers = [{"name": "s"}, {"name": "t"}]
    sample = inspect_sample("C", error={"message": "boom"})
    found = read_json(inspect_log(sample, eval={"task": "t", "scorers": scorers}))
    assert outcomes(found) == {("t/1", "s"): ("passed", 1.0), ("t/1", "t"): ("errored", None)}


def test_inspect_missing_samples_of_all_epochs_are_errored() -> None:
    log = {
        "task": "t",
        "scorers": [{"name": "s"}],
        "config": {"epochs": 2},
        "dataset": {"sample_ids": [1, "b"]},
    }
    found = read_json(inspect_log(inspect_sample("C"), eval=log, status="error"))
    assert [row.key for row in found.rows] == [
        ("t/1", "s", 1),
        ("t/1", CASE_METRIC, 2),
        ("t/b", CASE_METRIC, 1),
        ("t/b", CASE_METRIC, 2),
    ]


def test_inspect_sample_without_scores_is_errored() -> None:
    found = read_json(inspect_log(inspect_sample("C"), inspect_sample("C", id=2, scores=None)))
    assert outcomes(found)["t/2", CASE_METRIC] == ("errored", None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"invalidated": True}, "marked as invalidated"),
        ({"samples": None}, "written without samples"),
        ({"version": 3}, "Inspect log of version 3"),
        ({"eval": {"task": "t"}, "samples": [inspect_sample("C", scores={})]}, "no scores"),
        (
            {"eval": {"task": "t", "config": {"epochs": 10**9}, "dataset": {"sample_ids": [1]}}},
            "lacks",
        ),
    ],
)
def test_inspect_log_without_results_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_json(inspect_log(inspect_sample("C"), **changes))


def test_inspect_older_version_is_a_warning() -> None:
    found = read_json(inspect_log(inspect_sample("C"), version=1))
    assert [each.message for each in found.warnings] == ["unknown version 1 of Inspect log"]


def test_inspect_cut_off_log_without_samples_has_all_as_errored() -> None:
    log = {"task": "t", "dataset": {"sample_ids": ["a"]}, "scorers": [{"name": "s"}]}
    found = read_json(inspect_log(status="cancelled", eval=log, samples=None))
    assert outcomes(found) == {("t/a", CASE_METRIC): ("errored", None)}


def test_pydantic_values_of_other_types_are_errored() -> None:
    case = {
        "name": "a",
        "assertions": {"x": {"value": "yes"}},
        "scores": {"x": {"value": None}},
        "evaluator_failures": [{"name": "y", "error_message": "boom"}],
    }
    report = {
        "name": "t",
        "cases": [case],
        "failures": [
            {"name": "b [2/3]", "source_case_name": "b", "error_message": "agent crashed"},
            {"name": "c [2/3]", "source_case_name": None},
        ],
        "report_evaluator_failures": [{"name": "Confusion"}],
    }
    found = read_json(report)
    assert [(row.key, row.status, row.reason) for row in found.rows] == [
        (("a", "x", None), "errored", None),
        (("a", "x#2", None), "errored", None),
        (("a", "y", None), "errored", "boom"),
        (("b", CASE_METRIC, 2), "errored", "agent crashed"),
        (("c [2/3]", CASE_METRIC, None), "errored", None),
    ]
    assert [each.message for each in found.warnings] == ["the report evaluator Confusion failed"]


def test_pydantic_report_with_labels_only_has_no_results() -> None:
    with pytest.raises(InputError, match="the file has no results"):
        read_json({"name": "t", "cases": [{"name": "a", "labels": {}}], "failures": []})


ADK_METRICS = [
    {"metric_name": "m", "eval_status": 1, "score": 1.0, "threshold": 0.5},
    {"metric_name": "judged", "eval_status": 3, "score": None},
    {"metric_name": "token_usage_v1", "eval_status": 4, "score": 3},
    {"metric_name": "new", "eval_status": 9, "score": 1},
]


def test_adk_statuses() -> None:
    cases = [
        {"eval_id": "a", "overall_eval_metric_results": ADK_METRICS},
        {"eval_id": "b", "overall_eval_metric_results": ADK_METRICS[2:3]},
        {"eval_id": "c", "overall_eval_metric_results": None},
    ]
    found = read_json({"eval_set_result_id": "r", "eval_case_results": cases})
    assert outcomes(found) == {
        ("a", "m"): ("passed", 1.0),
        ("a", "judged"): ("skipped", None),
        ("a", "new"): ("errored", 1.0),
        ("b", CASE_METRIC): ("errored", None),
        ("c", CASE_METRIC): ("errored", None),
    }


def test_adk_file_as_json_text_and_with_camel_case_keys() -> None:
    metric = {"metricName": "m", "evalStatus": "FAILED", "score": 0.5, "threshold": 0.8}
    case = {"evalId": "a", "overallEvalMetricResults": [metric]}
    result = {"evalSetResultId": "r", "evalCaseResults": [case]}
    for written in (result, json.dumps(result)):
        assert outcomes(read_json(written)) == {("a", "m"): ("failed", 0.5)}


def vitest_test(**changes: Any) -> dict[str, Any]:
    scores = [{"name": "J", "score": 0.5}, {"name": "J", "score": None}]
    meta = {"eval": {"scores": scores, "avgScore": 0.25}}
    return {"title": "t", "ancestorTitles": ["", "s"], "status": "passed", "meta": meta, **changes}


def vitest_file(*tests: dict[str, Any]) -> dict[str, Any]:
    return {"numTotalTests": 1, "testResults": [{"name": "b", "assertionResults": list(tests)}]}


def test_vitest_judges_state_no_verdict() -> None:
    found = read_json(vitest_file(vitest_test()))
    assert outcomes(found) == {
        ("s > t", CASE_METRIC): ("passed", 0.25),
        ("s > t", "J"): (None, 0.5),
        ("s > t", "J#2"): ("errored", None),
    }


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        ("failed", "AssertionError: low", "failed"),
        ("failed", "\x1b[31mAssertionError: low", "failed"),
        ("failed", "Error: HTTP 400", "errored"),
        ("failed", None, "errored"),
        ("todo", None, "skipped"),
        ("unknown", None, "errored"),
    ],
)
def test_vitest_statuses(status: str, message: str | None, expected: str) -> None:
    messages = [] if message is None else [message]
    test = vitest_test(status=status, failureMessages=messages, meta={"harness": {"name": "h"}})
    assert statuses(read_json(vitest_file(test))) == {"s > t": expected}


def test_vitest_same_titles_in_two_files_are_two_cases() -> None:
    run = vitest_file(vitest_test(duration=1500))
    run["testResults"].append({"name": "a", "assertionResults": [vitest_test(status="failed")]})
    whole = {row.case: row for row in read_json(run).rows if row.metric == CASE_METRIC}
    assert {name: row.status for name, row in whole.items()} == {
        "s > t": "errored",
        "s > t #2": "passed",
    }
    assert whole["s > t #2"].seconds == 1.5


def test_plain_vitest_run_is_refused() -> None:
    with pytest.raises(InputError, match="a plain test run"):
        read_json(vitest_file(vitest_test(meta={}), vitest_test(meta=None)))


def test_evalite_variants_errors_and_equal_inputs() -> None:
    good = {"status": "success", "input": {"b": 1, "a": 2}, "scores": [{"name": "S", "score": 1}]}
    bad = {"status": "fail", "input": "q", "output": {"message": "boom"}, "duration": 5}
    empty = {"status": "success", "input": "r", "scores": [{"name": "S", "score": None}]}
    evals = [
        {"name": "E", "variantName": "v", "results": [bad, {**good, "colOrder": 2}]},
        {"name": "F v", "variantName": "v", "results": [{**good, "colOrder": 1}, good]},
        {"name": "G", "results": [empty, {"status": "success", "input": "s"}]},
    ]
    found = read_json({"run": {"runType": "full"}, "evals": evals})
    assert outcomes(found) == {
        ("E [v]/q", CASE_METRIC): ("errored", None),
        ('E [v]/{"a": 2, "b": 1}', "S"): (None, 1.0),
        ('F v/{"a": 2, "b": 1}', "S"): (None, 1.0),
        ('F v/{"a": 2, "b": 1} #2', "S"): (None, 1.0),
        ("G/r", "S"): ("errored", None),
        ("G/s", CASE_METRIC): ("errored", None),
    }
    assert found.rows[0].reason == "boom"


def agentv_line(**changes: Any) -> dict[str, Any]:
    score = {"name": "g", "score": 0.75, "verdict": "fail"}
    return {
        "test_id": "a",
        "suite": "s",
        "target": "x",
        "execution_status": "ok",
        "score": 0.75,
        "scores": [score],
        **changes,
    }


def test_agentv_last_line_counts_and_targets_are_named_if_several() -> None:
    found = read_lines(
        agentv_line(execution_status="execution_error", scores=None, error="boom"),
        agentv_line(),
        agentv_line(suite=None, target="y", duration_ms=1500, cost_usd=0.1),
    )
    assert outcomes(found) == {
        ("s/a / x", CASE_METRIC): ("passed", 0.75),
        ("s/a / x", "g"): ("failed", 0.75),
        ("a / y", CASE_METRIC): ("passed", 0.75),
        ("a / y", "g"): ("failed", 0.75),
    }
    assert (found.rows[2].seconds, found.rows[2].cost_usd) == (1.5, 0.1)


def test_agentv_reason_is_the_first_assertion_that_explains_the_verdict() -> None:
    held, missed = {"text": "held", "passed": True}, {"text": "missed", "passed": False}
    scores = [
        {"name": "a", "verdict": "fail", "score": 0, "assertions": [held, missed]},
        {"name": "b", "verdict": "pass", "score": 1, "assertions": [held, missed]},
        {"name": "c", "verdict": "skip", "reasoning": "no output"},
        {"name": "d", "verdict": "unknown", "input": {"error": {"code": 1}}},
        {"name": "e", "verdict": "unknown", "input": {}},
    ]
    rows = read_lines(agentv_line(scores=scores)).rows[1:]
    assert [(row.status, row.reason) for row in rows] == [
        ("failed", "missed"),
        ("passed", "held"),
        ("skipped", "no output"),
        ("errored", '{"code": 1}'),
        ("errored", None),
    ]


def test_agentv_newer_schema_is_refused() -> None:
    identity = {"schema_version": "agentv.projection_identity.v2"}
    with pytest.raises(InputError, match=r"projection_identity\.v2"):
        read_lines(agentv_line(projection_identity=identity))


def test_agentevals_statuses() -> None:
    metrics = [
        {"metric_name": "m", "eval_status": "NOT_EVALUATED", "error": "no key\nx"},
        {"metric_name": "n", "eval_status": "NOT_EVALUATED", "duration_ms": 2000},
    ]
    traces = [{"trace_id": "t1", "metrics": metrics}, {"trace_id": "t2", "metrics": []}]
    found = read_json({"traces": traces, "errors": ["file broken"]})
    assert outcomes(found) == {
        ("t1", "m"): ("errored", None),
        ("t1", "n"): ("skipped", None),
        ("t2", CASE_METRIC): ("errored", None),
    }
    assert found.rows[0].reason == "no key"
    assert "agentevals reports: file broken" in [each.message for each in found.warnings]


def lm_sample(**changes: Any) -> dict[str, Any]:
    sample = {"doc_id": 0, "doc": {}, "doc_hash": "f" * 64, "filter": "none", "metrics": ["acc"]}
    return {**sample, "acc": 1.0, **changes}


def test_lm_eval_filters_and_metrics_without_a_value_per_document() -> None:
    found = read_lines(
        lm_sample(metrics=["acc", "bleu"], bleu=[["a"], "b"]),
        lm_sample(filter="strict", acc=True),
        lm_sample(doc_id=7, acc=0),
        file="out/samples_my_task_2026-11-23T08-05-39.277598.jsonl",
    )
    case = f"my_task/{'f' * 12}"
    assert outcomes(found) == {
        (case, "acc"): (None, 1.0),
        (case, "acc,strict"): (None, 1.0),
        (f"{case} #2", "acc"): (None, 0.0),
    }
    assert [each.message for each in found.warnings] == [
        "metric bleu is not read: it has no value per document"
    ]


def test_lm_eval_task_is_the_name_of_another_file() -> None:
    assert [row.case for row in read_lines(lm_sample(), file="own.jsonl").rows] == [
        f"own/{'f' * 12}"
    ]
    with pytest.raises(InputError, match=r"results.json:2: .*`doc_hash` and `metrics`"):
        read_lines(lm_sample(), {"doc_hash": 3})
    with pytest.raises(InputError, match=r"results.json:2: .*`doc_hash` and `metrics`"):
        read_lines(lm_sample(), {"doc_hash": "f"})


def ctrf_test(name: str, status: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "status": status, **changes}


def ctrf_report(*tests: dict[str, Any], version: str = "1.0.0") -> dict[str, Any]:
    return {"reportFormat": "CTRF", "specVersion": version, "results": {"tests": list(tests)}}


def test_ctrf_statuses_repeats_and_reasons() -> None:
    found = read_json(
        ctrf_report(
            ctrf_test("a", "pending"),
            ctrf_test("b", "other", trace="def f():\nE   ValueError: x", duration=1500),
            ctrf_test("c", "failed", trace="Error: y\n at z", filePath="b.ts"),
            ctrf_test("c", "passed", filePath="a.ts"),
            ctrf_test("d", "failed"),
            ctrf_test("d", "passed"),
            ctrf_test("e", "new"),
        )
    )
    assert [(row.case, row.status, row.reason, row.repeat) for row in found.rows] == [
        ("a", "skipped", None, None),
        ("b", "errored", "ValueError: x", None),
        ("d", "failed", None, 1),
        ("d", "passed", None, 2),
        ("e", "errored", None, None),
        ("c", "passed", None, None),
        ("c #2", "failed", "Error: y", None),
    ]
    assert found.rows[1].seconds == 1.5


def test_ctrf_of_older_files_is_recognised_and_newer_is_refused() -> None:
    older = {"results": {"tool": {}, "summary": {}, "tests": [ctrf_test("a", "passed")]}}
    assert statuses(read_json(older)) == {"a": "passed"}
    with pytest.raises(InputError, match=r"CTRF report of version 2\.0\.0"):
        read_json(ctrf_report(version="2.0.0"))
    [warning] = read_json(ctrf_report(ctrf_test("a", "passed"), version="next")).warnings
    assert warning.message == "unknown version next of CTRF report"


def test_ctrf_extra_of_others_is_not_read() -> None:
    test = ctrf_test("a", "passed", extra={"agentci": {"case": 3, "metric": "m"}})
    assert outcomes(read_json(ctrf_report(test))) == {("a", CASE_METRIC): ("passed", None)}


def test_tool_that_is_named_must_have_written_the_file() -> None:
    assert read_json(ctrf_report(ctrf_test("a", "passed")), tool="ctrf").tool == "ctrf"
    with pytest.raises(InputError, match="results of ctrf, not of junit"):
        read_json(ctrf_report(ctrf_test("a", "passed")), tool="junit")


def test_unknown_file_is_refused_with_its_keys() -> None:
    with pytest.raises(InputError, match=r"no known tool wrote this file; its keys are `a`, `b`"):
        read_json({"a": 1, "b": 2})
    with pytest.raises(InputError, match="no known tool wrote this file"):
        read_text("hello")


HEADER = json.dumps({key: value for key, value in inspect_log().items() if key != "samples"})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("samples/a.json", b"{}")], "missing required field `id`"),
        ([("header.json", b"{")], "header.json in the archive: Input data was truncated"),
        ([("header.json", b"\xff")], "not UTF-8"),
        ([("header.json", b'{"a": ' + b"[" * 99_999)], "nested too deeply"),
        ([], "the archive has no header.json"),
        ([("header.json", HEADER.encode())], "written without samples"),
    ],
)
def test_invalid_inspect_archive_is_refused(members: list[tuple[str, bytes]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_result_archive(members, file="log.eval")


def test_archive_is_of_inspect() -> None:
    with pytest.raises(InputError, match="results of inspect, not of ctrf"):
        read_result_archive([], file="log.eval", tool="ctrf")
