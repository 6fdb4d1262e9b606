"""Eval sets in agentci's own format: what is read, what is checked, and every problem's place."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agentci.config.case_file import make_cases_schema, read_case_file
from agentci.errors import InputError
from agentci.model.trace import ToolCall
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, run_agentci

CALLS = (("find", {"id": 1}), ("refund", {"amount": 19.99}))


def run(folder: Path, cases: str, *arguments: str, config: str = "", traces: str = "") -> Ran:
    (folder / "cases.yaml").write_text(f"eval_cases:\n{cases}")
    (folder / "t.jsonl").write_text(traces or otlp("Refund", "19.99 EUR", calls=CALLS))
    named = ["--traces", "t.jsonl", "--eval-set", "cases.yaml"]
    if config:
        (folder / "agentci.yaml").write_text(config)
        named = []
    return run_agentci(["run", *named, *arguments], cwd=folder)


def statuses(ran: Ran) -> dict[str, str]:
    return {
        f"{each['case']}/{each['evaluator']}": each["status"] for each in ran.results["results"]
    }


@pytest.mark.parametrize(
    ("calls", "status"),
    [
        ("[{find: {id: 1}}, {refund: {amount: 19.99}}]", "passed"),
        ("[find, {refund: {amount: {$lt: 20}}}]", "passed"),
        ("{extra: allow, calls: [find]}", "passed"),
        ("[find]", "failed"),
        ("[]", "failed"),
        ("{calls: [find, refund], forbidden: [refund]}", "failed"),
        ("{score: f1, threshold: 0.6, calls: [find]}", "passed"),
    ],
)
def test_calls_are_compared_without_a_config(tmp_path: Path, calls: str, status: str) -> None:
    ran = run(tmp_path, f"  - {{id: a, input: refund, calls: {calls}}}\n")
    assert statuses(ran) == {"a/case:calls": status}
    assert ran.code == (0 if status == "passed" else 1)


def test_checks_of_a_case_add_to_those_of_the_config(tmp_path: Path) -> None:
    traces = "\n".join([otlp("Refund", "ok", calls=CALLS), otlp("Hello", "Hi", calls=(), trace=2)])
    ran = run(
        tmp_path,
        "  - {id: a, input: Refund, checks: [max_words: 1, contains: nope]}\n"
        "  - {id: b, input: Hello, calls: [], checks: [contains: Hi]}\n",
        config="traces: t.jsonl\neval_set: cases.yaml\nchecks: [max_words: 5]\n"
        "gate: {evaluators: {'case:contains': {min_pass_rate: 0.5}}}\n",
        traces=traces,
    )
    assert statuses(ran) == {
        "a/max_words": "passed",
        "a/case:max_words": "passed",
        "a/case:contains": "failed",
        "b/max_words": "passed",
        "b/case:calls": "passed",
        "b/case:contains": "passed",
    }
    assert ran.code == 0


def test_failed_check_of_a_case_is_annotated_on_its_own_line(tmp_path: Path) -> None:
    cases = (
        "eval_cases:\n"
        "  - {id: a, input: Hi, checks: [{contains: Ciao}]}\n"
        "  - id: b\n"
        "    input: Bye\n"
        "    checks:\n"
        "      - contains: Ciao\n"
    )
    (tmp_path / "cases.yaml").write_text(cases)
    lines = (otlp("Hi", "Hello", calls=()), otlp("Bye", "Farewell", calls=(), trace=2))
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    options = ("--traces", "t.jsonl", "--eval-set", "cases.yaml")
    ran = run_agentci(["run", *options], cwd=tmp_path, environ={"GITHUB_ACTIONS": "true"})
    errors = [line for line in ran.out.splitlines() if line.startswith("::error ")]
    assert [re.findall(r"line=(\d+)", line) for line in errors] == [["2"], ["6"]]


def test_only_names_checks_of_cases(tmp_path: Path) -> None:
    cases = "  - {id: a, input: Refund, calls: [find, refund], checks: [max_words: 1]}\n"
    assert statuses(run(tmp_path, cases, "--only", "case:calls")) == {"a/case:calls": "passed"}
    ran = run(tmp_path, cases, "--only", "case:cals")
    assert "did you mean 'case:calls'?" in ran.out
    assert ran.code == 2


def test_each_turn_has_calls_of_its_own(tmp_path: Path) -> None:
    turns = (
        "  - {id: a, turns: [{input: Refund, calls: [find]}, {input: 'No', calls: []},"
        " {input: 'Bye'}]}\n"
    )
    traces = [
        otlp("Refund", "Sure?", calls=CALLS[:1]),
        otlp("No", "Ok", calls=CALLS[1:], turn=1),
        otlp("Bye", "Bye", calls=CALLS, turn=2),
    ]
    ran = run(tmp_path, turns, traces="\n".join(traces))
    [result] = ran.results["results"]
    assert (result["status"], result["score"]) == ("failed", 0.5)
    [miss] = result["misses"]
    assert miss == (
        "turn 2: refund(amount=19.99) is not expected; 1 extra call; "
        "this turn scores 0, the mean of 2 turns is 0.5"
    )
    ran = run(tmp_path, turns, traces=traces[0])
    [result] = ran.results["results"]
    assert (result["status"], result["score"]) == ("failed", 0.5)
    assert "the eval case has 3 turns, the recorded run 1; a missing turn scores 0" in ran.out


def test_turn_that_the_case_does_not_have_is_the_reason(tmp_path: Path) -> None:
    traces = [
        otlp("Refund", "Sure?", calls=CALLS[:1]),
        otlp("No", "Ok", calls=CALLS[1:], turn=1),
    ]
    cases = "  - {id: a, turns: [{input: Refund, calls: [find]}]}\n"
    ran = run(tmp_path, cases, traces="\n".join(traces))
    assert ran.code == 1
    [line] = [each for each in ran.out.splitlines() if "case:calls: " in each]
    assert "the recorded run 2: turn 2 is not expected ('No'; refund(" in line
    assert line.endswith("; score 1 alone would pass (cases.yaml:2:5)")


def test_case_without_a_trace_is_no_pass(tmp_path: Path) -> None:
    ran = run(
        tmp_path, "  - {id: a, input: Other, calls: []}\n  - {id: b, input: More, calls: []}\n"
    )
    assert ran.code == 1
    assert set(statuses(ran).values()) == {"skipped"}


def test_a_changed_expectation_is_an_edited_expectation() -> None:
    sets = [
        read_case_file(
            f"eval_cases: [{{id: a, input: x, calls: [{name}]}}]".encode(), file="c.yaml"
        )
        for name in ("f", "g")
    ]
    [before, after] = [each.eval_set.cases[0].own_checks for each in sets]
    assert before != after


def test_plain_calls_are_compared_by_metrics_too(tmp_path: Path) -> None:
    config = (
        "traces: t.jsonl\neval_set: cases.yaml\n"
        "evaluators: [{name: tool_trajectory_avg_score, type: builtin, threshold: 1.0}]\n"
    )
    plain = "[{find: {id: 1}}, {tool: refund, args: {amount: 19.99}}]"
    ran = run(tmp_path, f"  - {{id: a, input: Refund, calls: {plain}}}\n", config=config)
    assert set(statuses(ran).values()) == {"passed"}
    ran = run(tmp_path, "  - {id: a, input: Refund, calls: [find, refund]}\n", config=config)
    assert ran.code == 2
    assert "remove the metric; the check `case:calls` compares `calls`" in ran.out


def test_expected_calls_are_shown_with_their_matchers() -> None:
    written = (
        "eval_cases: [{id: a, input: x, calls: {calls: [f, {g: {a: {$lt: 5}}}, {tool: [h, i]}, "
        "{any_of: [[j, k], l]}, {any_order: [m]}]}}]"
    )
    [case] = read_case_file(written.encode(), file="c.yaml").eval_set.cases
    assert not case.has_plain_calls
    assert case.turns[0].tool_calls == (
        ToolCall(name="f"),
        ToolCall(name="g", args={"a": {"$lt": 5}}),
        ToolCall(name="h | i"),
        ToolCall(name="j"),
        ToolCall(name="k"),
        ToolCall(name="m"),
    )


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        ("[]", "c.yaml:1:13: `eval_cases` must be a list with at least one item"),
        ("[{id: a}]", ":1:14: the case has no `input`"),
        ("[{id: a, input: x, checks: []}]", ":1:40: `eval_cases.checks` must be a list with at"),
        ("[{id: a, turns: []}]", ":1:29: `eval_cases.turns` must be a list with at"),
        ("[{id: a, input: x, turns: [{input: y}]}]", "`input` and `turns` exclude each other"),
        ("[{id: a, turns: [{calls: []}]}]", "the turn has no `input`"),
        ("[{id: a, input: x}, {id: a, input: y}]", ":1:38: the id 'a' is already used on line 1"),
        ("[{id: a, input: x, call: []}]", "unknown key 'call' (did you mean 'calls'?)"),
        ("[{id: a, input: x, calls: [{tol: f, args: {}}]}]", "did you mean 'tool'?"),
        ("[{id: a, input: x, calls: [5]}]", "a call must be a name or a mapping, not 5"),
        (
            "[{id: a, input: x, calls: [{get: }]}]",
            "`get` has no arguments (write `get` for any arguments, or `get: {}` for none)",
        ),
        ("[{id: a, input: x, calls: {scope: run}}]", "`scope` has no meaning for one turn"),
        ("[{id: a, input: x, checks: [latncy: 5s]}]", "did you mean 'max_latency'?"),
        ("[{id: a, input: x, checks: [max_latency: 5]}]", "add a unit: `5s`"),
        ("[{id: a, input: x, checks: [matches: '(']}]", "invalid pattern"),
        ("[{id: a, input: x, checks: [json_schema: s.json]}]", "cannot name a file"),
        (
            "[{id: a, input: x, checks: [{check: contains, value: y, required: false}]}]",
            "a check of a case has no `required`",
        ),
        ("[{id: 1, input: x}]", "`eval_cases.id` must be a string"),
        ("[{id: a, input: x, calls: }]", ":1:32: `calls` has no value (write `calls: []` if no"),
        ("[{id: a, turns: [{input: x, calls: null}]}]", ":1:41: `calls` has no value"),
        ("[{id: a, input: x, answer: }]", "`answer` has no value"),
        ("[{id: a, input: x, calls: {calls: [f], threshold: 0}}]", "a threshold of 0 (raise it"),
        (
            "[{id: a, input: x, checks: [{check: contains_all, value: [y], threshold: 0}]}]",
            ":1:86: check contains_all: every score reaches a threshold of 0 (raise it",
        ),
    ],
)
def test_problem_has_a_place_and_a_hint(cases: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        read_case_file(f"eval_cases: {cases}".encode(), file="c.yaml")
    assert problem in "\n".join(map(str, raised.value.problems))


@pytest.mark.parametrize("text", ["", "# none yet\n", "---\n", "- {id: a, input: x}\n", "a\n"])
def test_file_without_cases_says_what_to_write(text: str) -> None:
    with pytest.raises(InputError) as raised:
        read_case_file(text.encode(), file="c.yaml")
    [problem] = raised.value.problems
    assert problem.hint == "write the cases as a list below `eval_cases:`"


def test_config_without_any_check_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("eval_cases: [{id: a, input: x}]\n")
    (tmp_path / "agentci.yaml").write_text("traces: t.jsonl\neval_set: cases.yaml\n")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert "neither the config nor an eval case has a check" in ran.out
    assert ran.code == 2


@pytest.mark.parametrize(
    ("name", "eval_set", "hint"),
    [
        pytest.param(
            "case:cals", "eval_set: cases.yaml\n", "did you mean 'case:calls'?", id="near"
        ),
        pytest.param("case:x", "", "known evaluators: max_tool_calls", id="without eval cases"),
    ],
)
def test_threshold_of_an_unknown_check_is_an_error(
    name: str, eval_set: str, hint: str, tmp_path: Path
) -> None:
    config = (
        f"traces: t.jsonl\n{eval_set}checks: [max_tool_calls: 5]\n"
        f"gate: {{evaluators: {{'{name}': {{min_score: 0.1}}}}}}\n"
    )
    cases = "  - {id: a, input: Refund, calls: [find, refund]}\n"
    ran = run(tmp_path, cases, config=config)
    message = f"`gate.evaluators` names '{name}', a check that no eval case has; {hint}"
    assert (ran.code, f"error: {message}" in ran.out) == (2, True)
    assert run(tmp_path, cases, config=config.replace(name, "case:calls"), traces="").code == (
        0 if eval_set else 2
    )
    # Other eval cases than those of the config need not have each check.
    ran = run(tmp_path, cases, "--eval-set", "cases.yaml", config=config)
    assert (ran.code, "warning: `gate.evaluators`" in ran.out) == (0, True)


def test_schema_accepts_what_is_read_and_is_committed() -> None:
    schema: Any = make_cases_schema()
    page = (ROOT / "docs/eval-cases.md").read_text(encoding="utf-8")
    examples = [text.partition("```")[0] for text in page.split("```yaml\n")[1:]]
    sets = [text for text in examples if "eval_cases:" in text]
    assert len(sets) == 2
    for text in sets:
        jsonschema.validate(yaml.safe_load(text), schema)
        assert read_case_file(text.encode(), file="c.yaml").checks
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"eval_cases": [{"id": "a", "checks": [{"latncy": "5s"}]}]}, schema)
    ran = run_agentci(["schema", "cases"], cwd=ROOT)
    assert ran.out == (ROOT / "schemas/cases.schema.json").read_text(encoding="utf-8")


def test_show_lists_the_cases(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("eval_cases: [{id: a, input: Hi, calls: [f], answer: Ho}]\n")
    ran = run_agentci(["show", "c.yaml"], cwd=tmp_path)
    assert "c.yaml: eval set c, 1 eval case" in ran.out
    assert "call    f" in ran.out


def test_case_without_an_answer_is_skipped_by_metrics_of_answers(tmp_path: Path) -> None:
    config = (
        "traces: t.jsonl\neval_set: cases.yaml\n"
        "evaluators: [{name: response_match_score, type: builtin}]\n"
    )
    traces = "\n".join([otlp("Refund", "19.99 EUR"), otlp("Hello", "Hi", trace=2)])
    silent = "  - {id: a, input: Refund}\n"
    ran = run(
        tmp_path, f"{silent}  - {{id: b, input: Hello, answer: Hi}}\n", config=config, traces=traces
    )
    assert (ran.code, statuses(ran)) == (
        0,
        {"a/response_match_score": "skipped", "b/response_match_score": "passed"},
    )
    reasons = [each["reason"] for each in ran.results["results"]]
    assert reasons == ["the eval case has no expected answer", None]
    ran = run(tmp_path, silent, config=config)
    assert ran.code == 1
    assert "the eval case has no expected answer" in ran.out
    assert "Quality gate failed: no check was evaluated" in ran.out


def test_calls_of_a_case_without_expected_calls_are_no_difference(tmp_path: Path) -> None:
    config = (
        "traces: t.jsonl\neval_set: cases.yaml\n"
        "evaluators: [{name: response_match_score, type: builtin, threshold: 1.0}]\n"
    )
    case = "  - {id: a, input: Refund, answer: Nothing}\n"
    ran = run(tmp_path, case, config=config)
    [content] = [each["turns"][0] for each in ran.results["cases"]]
    assert (ran.code, content["expected_answer"]) == (1, "Nothing")
    assert "expected_calls" not in content
    ran = run(tmp_path, case.replace("answer", "calls: [], answer"), config=config)
    [content] = [each["turns"][0] for each in ran.results["cases"]]
    assert content["expected_calls"] == []


@pytest.mark.parametrize(
    ("other", "is_read"),
    [
        ("", False),
        ("eval_set: evals/cases.yaml\n", True),
        ("# eval_set: evals/cases.yaml\n", False),
        ("eval_set: evals/cases.yaml\nunclosed: [\n", False),
    ],
)
def test_eval_cases_that_no_valid_config_reads_are_named(
    other: str, is_read: bool, tmp_path: Path
) -> None:
    config = "traces: t.jsonl\nchecks:\n  - max_tool_calls: 5\n"
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/cases.yaml").write_text("eval_cases:\n  - {input: Hi, answer: Hello.}\n")
    (tmp_path / "a.yaml").write_text(config)
    (tmp_path / "agentci.yaml").write_text(config + other)
    ran = run_agentci(["validate", "a.yaml"], cwd=tmp_path)
    warning = "a.yaml:1: warning: no config reads the eval cases in evals/cases.yaml"
    assert (warning in ran.out) is not is_read
