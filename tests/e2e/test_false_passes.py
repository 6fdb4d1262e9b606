"""Inputs on which agentevals 0.11.0 passes by mistake or crashes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci

TRAJECTORY = "- {name: tool_trajectory_avg_score, type: builtin}"
CODE = "- {name: mine, type: code, path: ev.py}"
GOOD = "print('{\"score\": 1}')"


def _run(
    folder: Path,
    *evaluators: str,
    program: str = GOOD,
    eval_cases: str | None = None,
    traces: Mapping[str, str] | None = None,
    more: str = "",
) -> Ran:
    """Evaluate traces (by default one) with a config of ``evaluators``."""
    (folder / "ev.py").write_text(program)
    for name, text in (traces or {"trace-1.json": otlp()}).items():
        (folder / name).write_text(text)
    lines = ["evaluators:", *evaluators, "traces: trace-*.json", more]
    if eval_cases is not None:
        (folder / "eval_cases.json").write_text(eval_cases)
        lines.append("eval_set: eval_cases.json")
    (folder / "eval_config.yaml").write_text("\n".join(lines) + "\n")
    return run_agentci(["run"], cwd=folder)


def _list_missing(folder: Path) -> list[str]:
    """Return the failed tests of junit.xml and ctrf.json, which count and explain them."""
    suites = ET.parse(folder / "agentci-results/junit.xml").getroot()
    cases = [case for case in suites.iter("testcase") if case.find("failure") is not None]
    results = json.loads((folder / "agentci-results/ctrf.json").read_text())["results"]
    tests = [each for each in results["tests"] if each["status"] == "failed"]
    numbers = {int(each.get("failures", "")) for each in (suites, *suites.iter("testsuite"))}
    assert numbers == {len(cases)} == {results["summary"]["failed"]}
    assert int(suites.get("tests", "")) == len([*suites.iter("testcase")])
    assert results["summary"]["tests"] == len(results["tests"])
    found = [str(case.get("name")) for case in cases] + [each["name"] for each in tests]
    messages = [failure.get("message") for failure in suites.iter("failure")]
    for message in (*messages, *(each["message"] for each in tests)):
        assert "error: no recorded run matches eval case `rome`; runs are matched" in message
    return found


def _statuses(ran: Ran) -> dict[str, str]:
    return {result["evaluator"]: result["status"] for result in ran.results["results"]}


def _only(ran: Ran) -> Any:
    [result] = ran.results["results"]
    return result


class TestGate:
    def test_metric_without_eval_set_is_invalid(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, TRAJECTORY, CODE)
        assert ran.code == 2
        assert "tool_trajectory_avg_score cannot be evaluated without an eval set" in ran.out
        allowed = _run(tmp_path, TRAJECTORY, CODE, more="gate: {on_empty: allow}")
        assert allowed.code == 0
        assert _statuses(allowed)["tool_trajectory_avg_score"] == "skipped"

    def test_evaluator_that_evaluates_nothing_fails_gate(self, tmp_path: Path) -> None:
        declines = 'print(\'{"status": "NOT_EVALUATED", "score": 0}\')'
        ran = _run(tmp_path, TRAJECTORY, CODE, program=declines, eval_cases=eval_set())
        assert ran.code == 1
        assert "mine evaluated no case" in ran.out
        allowed: dict[str, Any] = {"program": declines, "eval_cases": eval_set()}
        assert _run(tmp_path, TRAJECTORY, CODE, more="gate: {on_empty: allow}", **allowed).code == 0

    def test_traces_without_matching_eval_case_fail_gate(self, tmp_path: Path) -> None:
        traces = {"trace-1.json": otlp("Who?", trace=1), "trace-2.json": otlp("Why?", trace=2)}
        ran = _run(tmp_path, TRAJECTORY, eval_cases=eval_set(), traces=traces)
        assert ran.code == 1
        assert "no matching eval case" in ran.out

    def test_skipped_check_fails_gate_if_configured(self, tmp_path: Path) -> None:
        traces = {"trace-1.json": otlp(), "trace-2.json": otlp("Who?", trace=2)}
        given: dict[str, Any] = {"eval_cases": eval_set(), "traces": traces}
        assert _run(tmp_path, TRAJECTORY, CODE, **given).code == 0
        assert _run(tmp_path, TRAJECTORY, CODE, more="gate: {on_skip: fail}", **given).code == 1

    def test_eval_case_without_trace_fails_gate_unless_allowed(self, tmp_path: Path) -> None:
        eval_cases = json.loads(eval_set())
        eval_cases["eval_cases"] += json.loads(eval_set("And in Rome?", case="rome"))["eval_cases"]
        given: dict[str, Any] = {"eval_cases": json.dumps(eval_cases)}
        ran = _run(tmp_path, TRAJECTORY, **given)
        assert (ran.code, _statuses(ran)) == (1, {"tool_trajectory_avg_score": "passed"})
        assert "no recorded run matches eval case `rome`; runs are matched by their" in ran.out
        assert "Quality gate failed: 1 eval case without a recorded run: rome" in ran.out
        run_agentci(["run", "--formats", "ctrf"], cwd=tmp_path)
        assert _list_missing(tmp_path) == ["rome > recorded run", "rome > recorded run"]
        allowed = _run(tmp_path, TRAJECTORY, more="gate: {on_missing: allow}", **given)
        assert allowed.code == 0
        run_agentci(["run", "--formats", "ctrf"], cwd=tmp_path)
        assert _list_missing(tmp_path) == []
        case = ran.results["results"][0]["case"]
        assert run_agentci(["run", "--case", case], cwd=tmp_path).code == 0

    def test_eval_set_of_options_may_have_cases_of_other_traces(self, tmp_path: Path) -> None:
        eval_cases = json.loads(eval_set())
        eval_cases["eval_cases"] += json.loads(eval_set("And in Rome?", case="rome"))["eval_cases"]
        _run(tmp_path, TRAJECTORY, eval_cases=json.dumps(eval_cases))
        arguments = ["run", "--metric", "tool_trajectory_avg_score"]
        arguments += ["--traces", "trace-1.json", "--eval-set", "eval_cases.json"]
        (tmp_path / "eval_config.yaml").unlink()
        ran = run_agentci(arguments, cwd=tmp_path)
        assert (ran.code, _statuses(ran)) == (0, {"tool_trajectory_avg_score": "passed"})
        assert "warning: no recorded run matches eval case `rome`" in ran.out
        (tmp_path / "trace-2.json").write_text(otlp("And in Romes?", trace=2))
        ran = run_agentci([*arguments, "--traces", "trace-2.json"], cwd=tmp_path)
        assert ran.code == 1
        assert "Quality gate failed: 1 eval case without a recorded run: rome" in ran.out

    def test_changed_question_fails_gate_and_is_named(self, tmp_path: Path) -> None:
        eval_cases = json.loads(eval_set())
        eval_cases["eval_cases"] += json.loads(eval_set("And in Rome?", case="rome"))["eval_cases"]
        questions = ("What is the weather in Paris?", "And in  Romes?", "Who?")
        traces = {f"trace-{i}.json": otlp(each, trace=i) for i, each in enumerate(questions, 1)}
        ran = _run(tmp_path, TRAJECTORY, eval_cases=json.dumps(eval_cases), traces=traces)
        assert ran.code == 1
        assert 'eval case `rome`; if its question changed to "And in Romes?", correct' in ran.out
        assert "1 recorded run matches no eval case: `Who?`" in ran.out

    def test_missing_turn_fails_check_despite_full_score(self, tmp_path: Path) -> None:
        eval_cases = json.loads(eval_set())
        conversation = eval_cases["eval_cases"][0]["conversation"]
        conversation.append(conversation[0])
        ran = _run(tmp_path, TRAJECTORY, eval_cases=json.dumps(eval_cases))
        assert (ran.code, _only(ran)["score"], _only(ran)["status"]) == (1, 1.0, "failed")
        assert _only(ran)["reason"].startswith("Turn 2 of 2 is missing")
        allowed = _run(
            tmp_path,
            TRAJECTORY,
            eval_cases=json.dumps(eval_cases),
            more="gate: {on_turn_mismatch: allow}",
        )
        assert (allowed.code, _only(allowed)["status"]) == (0, "passed")

    @pytest.mark.parametrize(
        ("program", "code"),
        [
            pytest.param("print('{\"score\": 0}')", 1, id="low score"),
            pytest.param("raise SystemExit(3)", 3, id="crash"),
        ],
    )
    def test_failure_and_error_have_different_exit_codes(
        self, tmp_path: Path, program: str, code: int
    ) -> None:
        assert _run(tmp_path, CODE, program=program).code == code

    def test_on_error_warn_needs_a_passing_check(self, tmp_path: Path) -> None:
        broken = "raise SystemExit(3)"
        gate = "gate: {on_error: warn}"
        assert _run(tmp_path, CODE, program=broken, more=gate).code == 1
        both = _run(tmp_path, CODE, TRAJECTORY, program=broken, eval_cases=eval_set(), more=gate)
        assert both.code == 0

    def test_advisory_evaluator_does_not_fail_gate(self, tmp_path: Path) -> None:
        advisory = "- {name: mine, type: code, path: ev.py, required: false}"
        ran = _run(
            tmp_path, advisory, TRAJECTORY, program="print('{\"score\": 0}')", eval_cases=eval_set()
        )
        assert ran.code == 0
        assert "1 advisory check did not pass (mine)" in ran.out

    def test_misspelled_config_key_is_an_error(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, "- {name: mine, type: code, path: ev.py, treshold: 0.9}")
        assert ran.code == 2
        assert "threshold" in ran.out


class TestReport:
    def test_crashing_evaluator_does_not_affect_others(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, TRAJECTORY, CODE, program="boom", eval_cases=eval_set())
        assert _statuses(ran) == {"tool_trajectory_avg_score": "passed", "mine": "errored"}

    @pytest.mark.parametrize(
        "response",
        ['{"score": NaN}', '{"score": 1, "details": {"x": NaN}}', '{"score": Infinity}'],
    )
    def test_non_finite_numbers_are_kept_out_of_report(self, tmp_path: Path, response: str) -> None:
        ran = _run(tmp_path, CODE, program=f"print('''{response}''')")
        assert ran.code == 3
        text = (tmp_path / "agentci-results" / "results.json").read_text()
        json.loads(text, parse_constant=pytest.fail)

    def test_failed_status_overrides_full_score(self, tmp_path: Path) -> None:
        program = """print('{"score": 1, "status": "FAILED"}')"""
        ran = _run(tmp_path, CODE, program=program)
        assert (ran.code, _only(ran)["reason"]) == (1, "the evaluator returned status FAILED")
        assert "the evaluator returned status FAILED; score 1 alone would pass" in ran.out

    def test_boolean_score_is_an_error(self, tmp_path: Path) -> None:
        assert _run(tmp_path, CODE, program="print('{\"score\": true}')").code == 3

    def test_results_follow_config_order(self, tmp_path: Path) -> None:
        (tmp_path / "slow.py").write_text(f"import time; time.sleep(0.4); {GOOD}")
        slow = "- {name: slow, type: code, path: slow.py}"
        ran = _run(tmp_path, slow, CODE, TRAJECTORY, eval_cases=eval_set())
        assert list(_statuses(ran)) == ["slow", "mine", "tool_trajectory_avg_score"]

    def test_reports_are_reproducible_except_seconds_and_cached(self, tmp_path: Path) -> None:
        def report() -> str:
            report = _run(tmp_path, CODE, TRAJECTORY, eval_cases=eval_set()).results
            for result in report["results"]:
                del result["seconds"], result["cached"]
            return json.dumps(report)

        assert report() == report()

    def test_duplicate_trace_is_evaluated_once(self, tmp_path: Path) -> None:
        copies = {"trace-1.json": otlp(), "trace-2.json": otlp()}
        ran = _run(tmp_path, TRAJECTORY, eval_cases=eval_set(), traces=copies)
        assert (ran.code, ran.results["cases"][0]["turn_count"]) == (0, 1)
        assert ran.results["cases"][0]["warnings"]

    def test_report_contains_criterion_case_and_file(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, TRAJECTORY, eval_cases=eval_set())
        result, [case] = _only(ran), ran.results["cases"]
        assert (result["type"], result["threshold"], result["criterion"]) == (
            "builtin",
            0.5,
            "score >= 0.5",
        )
        assert (result["case"], case["eval_case"], case["file"]) == (
            "weather",
            "weather",
            "trace-1.json",
        )


class TestCodeEvaluator:
    def test_timeout_applies_to_grandchildren(self, tmp_path: Path) -> None:
        sleeper = "import subprocess, time; subprocess.Popen(['sleep', '300']); time.sleep(300)"
        ran = _run(tmp_path, "- {name: mine, type: code, path: ev.py, timeout: 1}", program=sleeper)
        assert (ran.code, "timed out after 1 s" in _only(ran)["reason"]) == (3, True)

    def test_background_process_holding_stdout_does_not_block_result(self, tmp_path: Path) -> None:
        program = f"import subprocess; subprocess.Popen(['sleep', '30']); {GOOD}"
        assert _run(tmp_path, CODE, program=program).code == 0

    def test_endless_output_is_an_error(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, CODE, program="while True: print('x' * 100000)")
        assert (ran.code, "10 MiB" in _only(ran)["reason"]) == (3, True)

    def test_typescript_evaluator_runs_without_build(self, tmp_path: Path) -> None:
        (tmp_path / "ev.ts").write_text(
            "const s: number = 1; console.log(JSON.stringify({score: s}))"
        )
        assert _run(tmp_path, "- {name: mine, type: code, path: ev.ts}").code == 0

    @pytest.mark.parametrize("timeout", ["0", "-1"])
    def test_non_positive_timeout_is_config_error(self, tmp_path: Path, timeout: str) -> None:
        entry = f"- {{name: mine, type: code, path: ev.py, timeout: {timeout}}}"
        assert _run(tmp_path, entry).code == 2


class TestFiles:
    def test_config_works_from_any_working_directory(self, tmp_path: Path) -> None:
        (tmp_path / "evals").mkdir()
        _run(tmp_path / "evals", CODE, TRAJECTORY, eval_cases=eval_set())
        assert run_agentci(["run", "evals/eval_config.yaml"], cwd=tmp_path).code == 0

    def test_paths_relative_to_working_directory_give_one_note(self, tmp_path: Path) -> None:
        (tmp_path / "evals").mkdir()
        (tmp_path / "evals" / "eval_config.yaml").write_text(
            f"evaluators:\n{TRAJECTORY}\n- {{name: a, type: code, path: ev.py}}\n"
            "eval_set: eval_cases.json\ntraces: trace.json\n"
        )
        (tmp_path / "ev.py").write_text(GOOD)
        (tmp_path / "eval_cases.json").write_text(eval_set())
        (tmp_path / "trace.json").write_text(otlp())
        ran = run_agentci(["run", "evals/eval_config.yaml"], cwd=tmp_path)
        assert ran.code == 0
        assert len([p for p in ran.results["problems"] if p["severity"] == "note"]) == 1

    def test_trace_with_byte_order_mark_is_read(self, tmp_path: Path) -> None:
        ran = _run(tmp_path, CODE, traces={"trace-1.json": f"\ufeff{otlp()}"})
        assert ran.code == 0


class TestHostileResults:
    """What a program prints never ends a run with a bug, and a contradictory result is no pass."""

    def test_answer_cannot_add_score_to_result_of_naive_script(self, tmp_path: Path) -> None:
        answer = 'bad"}, "score": 1.0, "x": {"y": "'
        program = (
            "import json, sys\n"
            'answer = json.load(sys.stdin)["invocations"][0]["final_response"]\n'
            'print(\'{"score": 0.0, "details": {"answer": "%s"}}\' % answer)\n'
        )
        ran = _run(tmp_path, CODE, program=program, traces={"trace-1.json": otlp(answer=answer)})
        assert (ran.code, _only(ran)["status"]) == (3, "errored")
        assert "the key 'score' appears twice in one object" in _only(ran)["reason"]

    @pytest.mark.parametrize(
        "value",
        [
            "1" + "0" * 400,
            "-1" + "0" * 400,
            "1" + "0" * 5000,
            "1e400",
            "NaNN",
            r'"\ud800"',  # kept in details, as U+FFFD
            "[[1]]",
        ],
    )
    @pytest.mark.parametrize("form", ['{"score": %s}', '{"score": 1, "details": {"n": %s}}'])
    def test_odd_value_in_result_is_no_bug(self, tmp_path: Path, form: str, value: str) -> None:
        ours = _run(tmp_path, CODE, program=f"print({form % value!r})")
        assert ours.code in (0, 3)
        (tmp_path / "a.eval.yaml").write_text(
            "outputs: a.jsonl\nevalcases:\n- id: one\n  input: hi\n  expected_outcome: c\n"
            "  evaluators: [{name: j, type: code_judge, script: [python3, ev.py]}]\n"
        )
        (tmp_path / "a.jsonl").write_text('{"id": "one", "text": "hi"}\n')
        agentv = run_agentci(["run", "a.eval.yaml"], cwd=tmp_path)
        assert agentv.code in (0, 1, 3)
        assert len(agentv.results["results"]) == len(ours.results["results"]) == 1
