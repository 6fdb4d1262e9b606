"""Rule evaluators, in addition to the conformance cases."""

import gc
from typing import Any, Final

import pytest

from agentci._util.text.javascript import find_at_path
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv.findings import get_recorded_run
from agentci.evaluators.agentv.response_checks import parse_day
from agentci.evaluators.evaluator import extract_judgement
from agentci.model.case import Case
from agentci.model.requests import Judgement, ProgramOutput, RunProgram
from agentci.model.trace import TokenUsage, Trace, Transcript
from tests.evaluators.agentv.agentv_cases import (
    PLACE,
    case,
    evaluate,
    run_with_answer,
    run_with_tools,
    suite_of,
)


class TestLimits:
    @pytest.mark.parametrize(
        ("entry", "miss"),
        [
            ({"type": "latency", "threshold": 1}, "No duration data available in trace"),
            ({"type": "cost", "budget": 1}, "No cost data available in trace"),
            ({"type": "token_usage", "max_total": 1}, "No token usage data available in trace"),
            ({"type": "execution_metrics", "max_cost_usd": 1}, "Cost data not available"),
        ],
    )
    def test_missing_metric_fails_limit(self, entry: Any, miss: str) -> None:
        judgement = evaluate(entry, run_with_answer("x"))
        assert (judgement.score, judgement.misses) == (0.0, (miss,))

    def test_unset_token_limit_is_not_checked(self) -> None:
        run = run_with_answer("x", token_usage=TokenUsage(input=5, output=6))
        judgement = evaluate({"type": "token_usage", "max_input": 5}, run)
        assert judgement.hits == ("Input tokens 5 <= 5",)

    def test_execution_metrics_reasoning_lists_measured_values(self) -> None:
        entry = {"type": "execution_metrics", "max_tool_calls": 1, "target_exploration_ratio": 1}
        judgement = evaluate(entry, run_with_tools("read"))
        assert judgement.score == 1.0
        assert judgement.reasoning == "execution_metrics tool_calls=1, exploration_ratio=1.00"

    def test_execution_metrics_reasoning_reports_no_metrics(self) -> None:
        judgement = evaluate(
            {"type": "execution_metrics", "max_duration_ms": 1}, run_with_answer("x")
        )
        assert judgement.reasoning == "No metrics evaluated"


class TestFieldAccuracy:
    def _judge(self, given: str, expected: Any, **field: Any) -> Judgement:
        entry = {"type": "field_accuracy", "fields": [{"path": "n", **field}]}
        messages = ({"role": "assistant", "content": expected},)
        return evaluate(entry, run_with_answer(given), expected_messages=messages)

    @pytest.mark.parametrize(
        ("given", "wanted", "field", "line"),
        [
            ("101", 100, {"tolerance": 1}, "n (within tolerance: diff=1.00)"),
            ("102", 100, {"tolerance": 1}, "n (outside tolerance: diff=2.00, tolerance=1)"),
            ("102", 100, {"tolerance": 0.02, "relative": True}, "n (within tolerance: diff=2.00)"),
            (
                *("102", 100, {"tolerance": 0.01, "relative": True}),
                "n (outside tolerance: diff=2.00, tolerance=0.01)",
            ),
            ("1", 0, {"tolerance": 1, "relative": True}, "n (within tolerance: diff=1.00)"),
            ('"100 EUR"', 100, {}, "n (within tolerance: diff=0.00)"),
            ('"EUR 100"', 100, {}, "n (non-numeric value)"),
            ("true", 1, {}, "n (non-numeric value)"),
            ('"1e999"', 1, {}, "n (invalid numeric value)"),
            ("1e308", 1, {}, "n (outside tolerance: diff=1e+308, tolerance=0)"),
            ("1e308", -1e308, {}, "n (outside tolerance: diff=Infinity, tolerance=0)"),
            ("9" * 320, 1, {}, "n (non-numeric value)"),
        ],
    )
    def test_numeric_tolerance_is_applied(
        self, given: str, wanted: Any, field: Any, line: str
    ) -> None:
        judgement = self._judge(
            f'{{"n": {given}}}', {"n": wanted}, match="numeric_tolerance", **field
        )
        assert (*judgement.hits, *judgement.misses) == (line,)

    @pytest.mark.parametrize(
        ("given", "line"),
        [("1", "n (value mismatch)"), ('"2"', "n (type mismatch: got string, expected number)")],
    )
    def test_exact_mismatch_names_difference(self, given: str, line: str) -> None:
        assert self._judge(f'{{"n": {given}}}', {"n": 2}, match="exact").misses == (line,)

    def test_null_is_reported_as_object(self) -> None:
        assert self._judge('{"n": null}', {"n": True}, match="exact").misses == (
            "n (type mismatch: got object, expected boolean)",
        )

    def test_fenced_json_answer_is_parsed(self) -> None:
        assert self._judge('So:\n```json\n{"n": 2}\n```', '{"n": 2}', match="exact").passed

    def test_last_expected_message_with_data_is_used(self) -> None:
        messages = (
            {"role": "assistant", "content": {"n": 2}},
            {"role": "assistant", "content": "no data"},
            {"role": "user", "content": {"n": 3}},
        )
        entry = {"type": "field_accuracy", "fields": [{"path": "n", "match": "exact"}]}
        assert evaluate(entry, run_with_answer('{"n": 2}'), expected_messages=messages).passed

    def test_all_or_nothing_scores_zero_on_one_miss(self) -> None:
        entry = {
            "type": "field_accuracy",
            "aggregation": "all_or_nothing",
            "fields": [{"path": "n", "match": "exact"}, {"path": "m", "match": "exact"}],
        }
        expected = ({"role": "assistant", "content": {"n": 1, "m": 1}},)
        judgement = evaluate(entry, run_with_answer('{"n": 1, "m": 2}'), expected_messages=expected)
        assert judgement.score == 0.0
        assert (
            evaluate(entry, run_with_answer('{"n": 1, "m": 1}'), expected_messages=expected).score
            == 1.0
        )

    def test_newer_files_report_all_hits(self) -> None:
        fields = [{"path": name, "match": "exact"} for name in "abcdef"]
        entry = {"type": "field_accuracy", "fields": fields}
        expected = ({"role": "assistant", "content": {"a": 1}},)
        run = run_with_answer('{"a": 1}')
        assert len(evaluate(entry, run, expected_messages=expected).hits) == 4
        assert len(evaluate(entry, run, key="tests", expected_messages=expected).hits) == 6

    def test_invalid_expected_date_is_a_miss(self) -> None:
        judgement = self._judge('{"n": "2026-03-05"}', {"n": "soon"}, match="date")
        assert judgement.misses == ("n (unparseable expected date)",)


class TestDates:
    @pytest.mark.parametrize(
        ("text", "day"),
        [
            ("2026", "2026-01-01"),
            ("2026-03", "2026-03-01"),
            ("2026-13", None),
            ("2026-03-05", "2026-03-05"),
            ("2026-03-05T23:00:00-05:00", "2026-03-06"),
            ("5-MAR-2026", "2026-03-05"),
            ("5 March 2026", "2026-03-05"),
            ("March 5, 2026", "2026-03-05"),
            ("5-Ma-2026", None),
            ("5-Xyz-2026", None),
            ("31-Feb-2026", None),
            ("03/05/2026", "2026-03-05"),
            ("13/05/2026", "2026-05-13"),
            ("13/13/2026", None),
            ("soon", None),
            ("0001-01-01T00:00:00+23:59", None),
            ("9999-12-31T23:59:59-23:59", None),
        ],
    )
    def test_date_is_normalized_to_utc_day(self, text: str, day: str | None) -> None:
        found = parse_day(text, ())
        assert (found and found.isoformat()) == day

    def test_date_formats_resolve_day_month_order(self) -> None:
        days = [
            str(parse_day("03/05/2026", formats))
            for formats in (["DD/MM/YYYY"], ["MM/DD/YYYY"], ["DD/MM/YYYY", "MM/DD/YYYY"])
        ]
        assert days == ["2026-05-03", "2026-03-05", "2026-03-05"]


@pytest.mark.parametrize("step", ["²", "9" * 5_000, "1"])
def test_path_with_odd_index_does_not_exist(step: str) -> None:
    assert find_at_path({"a": [0]}, f"a[{step}]") == (False, None)
    assert find_at_path({"a": [0]}, "a[0]") == (True, 0)


class TestText:
    @pytest.mark.parametrize(
        ("entry", "holds"),
        [
            ({"type": "contains", "value": "World"}, True),
            ({"type": "contains", "value": "world"}, False),
            ({"type": "icontains", "value": "WORLD"}, True),
            ({"type": "contains-any", "value": ["x", "Hello"]}, True),
            ({"type": "contains-all", "value": ["x", "Hello"]}, False),
            ({"type": "icontains-any", "value": ["HELLO"]}, True),
            ({"type": "icontains-all", "value": ["HELLO", "X"]}, False),
            ({"type": "starts-with", "value": " Hello"}, True),
            ({"type": "ends-with", "value": "World"}, True),
            ({"type": "equals", "value": "Hello World "}, True),
            ({"type": "equals", "value": "Hello"}, False),
            ({"type": "is-json"}, False),
            ({"type": "regex", "value": "^ hello", "flags": "i"}, True),
            ({"type": "regex", "value": "(?<a>l)(?<!x)o$"}, False),
        ],
    )
    def test_text_rule_scores_one_or_zero(self, entry: Any, holds: bool) -> None:
        judgement = evaluate(entry, run_with_answer(" Hello World\n"), key="tests")
        assert (judgement.score, judgement.passed) == (float(holds), holds)
        assert len(judgement.hits if holds else judgement.misses) == 1

    @pytest.mark.parametrize(
        ("entry", "line"),
        [
            ({"type": "contains", "value": 'a"b'}, 'Output does not contain "a"b"'),
            ({"type": "icontains", "value": "HELLO"}, 'Output contains "HELLO" (case-insensitive)'),
            ({"type": "contains_any", "value": ["a", "lo", "H"]}, 'Output contains "lo"'),
            (
                {"type": "icontains_any", "value": ["a", "b"]},
                'Output does not contain any of: "a", "b" (case-insensitive)',
            ),
            (
                {"type": "contains_all", "value": ["H", "lo"]},
                "Output contains all 2 expected strings",
            ),
            (
                {"type": "icontains_all", "value": ["a", "H", "b"]},
                'Output missing (case-insensitive): "a", "b"',
            ),
            ({"type": "equals", "value": "x"}, 'Output does not equal "x"'),
            (
                {"type": "regex", "value": "h.l", "flags": "i"},
                "Output matches pattern /h.l/i (flags: i)",
            ),
            ({"type": "regex", "value": "x"}, "Output does not match pattern /x/"),
            ({"type": "is_json"}, "Output is not valid JSON"),
        ],
    )
    def test_text_rule_uses_agentv_wording(self, entry: Any, line: str) -> None:
        judgement = evaluate(entry, run_with_answer("Hello"), key="tests")
        assert (*judgement.hits, *judgement.misses) == (line,)

    def test_valid_json_passes_is_json(self) -> None:
        assert evaluate({"type": "is-json"}, run_with_answer("[1]"), key="tests").hits == (
            "Output is valid JSON",
        )


class TestRegex:
    ENTRY: Final = {"name": "e", "type": "regex", "value": "(a|a?)+b"}

    def _read(self, response: ProgramOutput) -> Judgement:
        [evaluator] = suite_of(self.ENTRY, key="tests").evaluators
        return evaluator.read(response)

    @pytest.mark.slow
    def test_endless_search_is_an_error(self) -> None:
        with pytest.raises(EvaluatorError) as error:
            evaluate(self.ENTRY, run_with_answer("a" * 100), key="tests")
        assert str(error.value) == (
            "Evaluator `e`: the search takes more than 5 s of processor time"
        )

    @pytest.mark.parametrize(
        ("printed", "code", "stderr", "reason"),
        [
            ("", 1, "the search takes too much memory\n", "the search takes too much memory"),
            ("", -9, "", "the search printed no result"),
            ('{"found": 1}', 0, "", "the search printed no result"),
            ("[]", 0, "", "found an array"),
        ],
    )
    def test_search_without_result_is_an_error(
        self, printed: str, code: int, stderr: str, reason: str
    ) -> None:
        with pytest.raises(EvaluatorError, match=reason):
            self._read(ProgramOutput(stdout=printed.encode(), stderr=stderr, exit_code=code))

    def test_search_has_no_network_and_no_prerequisites(self) -> None:
        [evaluator] = suite_of(self.ENTRY, key="tests").evaluators
        request = evaluator.ask(case(run_with_answer("a")))
        assert isinstance(request, RunProgram)
        assert (request.network, request.cached, evaluator.needs) == (False, True, ())

    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            ("(" * 5_000 + ")" * 5_000, "nested too deeply"),
            ("a{99999999999}", "the repetition number is too large"),
            ("(?L)a", "cannot use 'L' flag with a str pattern"),
            ("a{2}{3}", "multiple repeat"),
        ],
    )
    def test_invalid_pattern_is_reported(self, pattern: str, reason: str) -> None:
        gc.disable()  # finalizers of other tests' objects would fail in the deep recursion
        try:
            with pytest.raises(InputError, match=reason):
                suite_of({**self.ENTRY, "value": pattern}, key="tests")
        finally:
            gc.enable()

    def test_unusual_pattern_prints_no_warning(self, recwarn: pytest.WarningsRecorder) -> None:
        suite_of({**self.ENTRY, "value": "[[a]"}, key="tests")
        assert list(recwarn) == []


def test_borderline_score_has_a_reason() -> None:
    entry = {"type": "execution_metrics", "max_tool_calls": 9, "max_llm_calls": 9, "max_tokens": 1}
    judgement = evaluate(entry, run_with_answer("x"))
    assert judgement.reason == "borderline: at least 0.6, but below the threshold 0.8"


def test_wrong_case_or_response_type_is_a_type_error() -> None:
    trace = Trace(id="a", key="a", turns=(), place=PLACE)
    with pytest.raises(TypeError):
        get_recorded_run(Case(id="a", trace=trace, transcript=Transcript(messages=())))
    with pytest.raises(TypeError):
        extract_judgement(ProgramOutput(stdout=b"", stderr="", exit_code=0))
