"""`checks:` in a config: forms, names, and problems with their places."""

from pathlib import Path

import pytest

from agentci.config.overrides import Overrides
from agentci.errors import InputError
from agentci.evaluators.checks.check import CheckEvaluator
from agentci.runner.load_configs import load_suite
from tests.helpers.support import make_services


def load(folder: Path, text: str) -> list[CheckEvaluator]:
    (folder / "agentci.yaml").write_text(text)
    loaded = load_suite(folder / "agentci.yaml", Overrides(), make_services(folder, {}))
    return [each for each in loaded.suite.evaluators if isinstance(each, CheckEvaluator)]


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(folder, text)
    return [str(each) for each in raised.value.problems]


def test_short_and_long_form(tmp_path: Path) -> None:
    first, second = load(
        tmp_path,
        "checks:\n- max_latency: 5s\n"
        "- {check: max_latency, value: 5s, name: whole, scope: run, required: false, "
        "cases: [a*]}\n",
    )
    assert (first.identity.name, second.identity.name) == ("max_latency", "whole")
    assert (first.identity.required, second.identity.required) == (True, False)
    assert (first.cases, second.cases) == ((), ("a*",))
    assert first.limits == second.limits == {"max_ms": 5000.0}
    assert first.identity.place.line == 2


def test_checks_inherit_no_threshold(tmp_path: Path) -> None:
    [found] = load(
        tmp_path, "threshold: 0.1\ndefaults: {threshold: 0.2}\nchecks: [{required_tools: [a, b]}]\n"
    )
    assert found.identity.threshold == 1.0


@pytest.mark.parametrize(
    ("check", "column"),
    [
        ("{check: required_tools, value: [a], threshold: 0}", 57),
        ("{check: contains_all, value: [a], threshold: 0.0}", 55),
        ("{trajectory: {calls: [a], score: f1, threshold: 0}}", 58),
    ],
)
def test_threshold_of_zero_is_warned_about(tmp_path: Path, check: str, column: int) -> None:
    (tmp_path / "agentci.yaml").write_text(f"checks: [{check}]\n")
    found = load_suite(tmp_path / "agentci.yaml", Overrides(), make_services(tmp_path, {}))
    [warning] = found.suite.notices
    assert (warning.severity, warning.place and warning.place.column) == ("warning", column)
    assert "every score reaches a threshold of 0" in warning.message


@pytest.mark.parametrize("name", ["no_secrets", "no_tool_errors", "json_schema"])
def test_check_that_is_true_may_be_only_its_name(name: str, tmp_path: Path) -> None:
    [short] = load(tmp_path, f"checks: [{name}]\n")
    [full] = load(tmp_path, f"checks: [{name}: true]\n")
    assert short == full


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        ("{min_pass_rate: 0}", "2"),
        ("{evaluators: {contains: {min_pass_rate: 0}}}", "2"),
        ("{min_pass_rate: 0, min_score: 0.7}", ""),
        ("{min_pass_rate: 0, max_regression: 0}", ""),
        ("{min_score: 0.7, evaluators: {contains: {min_pass_rate: 0}}}", ""),
    ],
)
def test_pass_rate_of_zero_without_another_limit_is_a_warning(
    gate: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "agentci.yaml").write_text(f"checks: [contains: a]\ngate: {gate}\n")
    found = load_suite(tmp_path / "agentci.yaml", Overrides(), make_services(tmp_path, {}))
    notices = [(each.severity, str(each.place).split(":")[1]) for each in found.suite.notices]
    assert notices == ([("warning", line)] if line else [])


def test_check_that_only_informs_may_have_a_threshold_of_zero(tmp_path: Path) -> None:
    text = "checks: [{check: required_tools, value: [a], threshold: 0, required: false}]\n"
    (tmp_path / "agentci.yaml").write_text(text)
    found = load_suite(tmp_path / "agentci.yaml", Overrides(), make_services(tmp_path, {}))
    assert found.suite.notices == ()


def test_checks_stand_beside_evaluators_and_in_the_gate(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "evaluators: [{name: tool_trajectory_avg_score, type: builtin}]\n"
        "eval_set: set.json\n"
        "checks: [contains: a, contains: b]\n"
        "gate: {evaluators: {'contains:a': {min_pass_rate: 0.5}}}\n",
    )
    assert [each.identity.name for each in found] == ["contains:a", "contains:b"]


def test_only_selects_checks(tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text("checks: [max_words: 5, contains: a]\n")
    loaded = load_suite(
        tmp_path / "agentci.yaml", Overrides(only=("contains",)), make_services(tmp_path, {})
    )
    assert [each.identity.name for each in loaded.suite.evaluators] == ["contains"]
    assert loaded.suite.names == ("max_words", "contains")


def test_schema_file_is_read_and_counts(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    [before] = load(tmp_path, "checks: [json_schema: schema.json]\n")
    (tmp_path / "schema.json").write_text('{"type": "array"}')
    [after] = load(tmp_path, "checks: [json_schema: schema.json]\n")
    assert before.definition != after.definition


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("checks: []", "agentci.yaml:1:9: `checks` must be a list with at least one item"),
        ("checks: 5", "agentci.yaml:1:9: `checks` must be a list"),
        (
            "checks:\n- {check: max_words, value: 5, cases: []}",
            ":2:39: `cases` must be a list of strings with at least one item",
        ),
        ("checks:\n- 5", ":2:3: each check must be a mapping of its name to its value"),
        (
            'checks:\n- no_secrets: {env: ["A B"]}',
            "must be the name of an environment variable, not the string 'A B'",
        ),
        (
            "checks:\n- no_secrets: false",
            ":2:15: `no_secrets` must be true or a mapping, not false (for",
        ),
        ("checks:\n- max_words", ":2:3: the check `max_words` has no value (write `- max_words:"),
        ("checks:\n- required_tools: find", "not the string 'find' (write `[find]`)"),
        ("checks:\n- required_tools: find order", "not the string 'find order' (write it as a"),
        (
            "checks:\n- required_tools: {}",
            "or a mapping that is not empty, not an empty mapping (for example `required_tools: ",
        ),
        ("checks:\n- required_tools: []", "an empty list (for example `required_tools: [find_ord"),
        ("checks:\n- forbidden_tools: x", "not the string 'x' (write `[x]`)"),
        ("checks:\n- forbidden_tools: 5", "(for example `forbidden_tools: [delete_order]`)"),
        ("checks:\n- max_tool_calls: -3", "not -3 (for example `max_tool_calls: 10`)"),
        ("checks:\n- max_tool_calls: {a: b}", "not the string 'b' (for example `a: 10`)"),
        ("checks:\n- max_latency: soon", "not the string 'soon' (for example `max_latency: 5s`)"),
        ("checks:\n- max_cost: -1", "not -1 (for example `max_cost: 0.05`)"),
        ("checks:\n- json_schema: 5", "must be true, a string or a mapping, not 5 (for example"),
        ("checks:\n- no_secrets: {rules: 5}", "not 5 (for example `rules: [a, b]`)"),
        ("checks:\n- no_secrets: {rules: [x]}", "(for example `rules: [github-token]`; all rules:"),
        (
            "checks:\n- trajectory: {calls: 5}",
            "(for example `[find_order, {refund: {amount: 5}}]`)",
        ),
        ("checks:\n- trajectory: [{tool: 5}]", "or a list of names (write `tool: NAME`)"),
        ("checks: no_secrets", "(for example `checks: [{max_latency: 5s}, no_secrets]`)"),
        ("evaluators: tone", "(for example `evaluators: [{name: tool_trajectory_avg_score, type:"),
        ("checks: [no_secrets]\ngate: hard", "(for example `gate: {min_pass_rate: 0.9}`)"),
        ("evaluators:\n- {name: a, type: code}", "has no `path` (add `path: evaluators/tone.py`)"),
        ("", "the file is empty (run `agentci init`, which writes a config, or add `traces:` with"),
        (
            "checks:\n- no_tool_errors: {tools: [find]}",
            "(write `{check: no_tool_errors, value: true, tools: ...}`)",
        ),
        (
            "checks:\n- {check: max_repeats, value: {tools: [find]}}",
            "not a mapping (write `{check: max_repeats, value: ..., tools: ...}`)",
        ),
        (
            "checks:\n- max_words: {max: 3, min: 5}",
            ":2:28: no answer has at least 5 and at most 3 words (exchange `min` and `max`)",
        ),
        ("checks:\n- max_latncy: 5s", ":2:3: unknown check 'max_latncy' (did you mean"),
        ("checks:\n- latency: 5000", ":2:3: unknown check 'latency' (here it is `max_lat"),
        ("checks:\n- zzz: 1", "unknown check 'zzz' (known checks: max_latency"),
        ("checks:\n- {check: max_words, valu: 5}", ":2:22: unknown key 'valu'"),
        ("checks:\n- {max_words: 5, name: a}", "(write `check: max_words`, `value: ...`"),
        ("checks:\n- {a: 5, b: a}", "a check has one key"),
        ("checks:\n- max_latency: 5", ":2:16: `max_latency` must be a time such as 5s"),
        ("checks:\n- {check: max_latency, value: 5x}", ":2:31: `value` must be a time"),
        ("checks:\n- max_cost: 5 USD", ":2:13: `max_cost` must be"),
        ("checks:\n- max_words: 5\n- max_words: 6", ":3:3: the name 'max_words' is already"),
        (
            "evaluators: [{name: contains, type: code, path: a.py}]\nchecks:\n- contains: a",
            ":3:3: the name 'contains' is already used on line 1",
        ),
        ("checks:\n- matches: ['a', '(?=b)']", ":2:18: invalid pattern"),
        ("checks:\n- json_schema: none.json", ":2:16: "),
        (
            "checks:\n- {check: json_schema, value: {type: text}}",
            ":2:31: invalid JSON Schema",
        ),
        (
            "checks:\n- trajectory:\n  - find: {id: {$regx: a}}",
            ":3:17: unknown matcher key '$regx' (did you mean '$regex'?)",
        ),
        (
            "checks:\n- trajectory:\n    calls: [a]\n    ordr: x",
            ":4:5: a trajectory has no key 'ordr' (did you mean 'order'?)",
        ),
        ("checks:\n- contains: a\n  threshold: 1", "a check has one key"),
        ("checks:\n- {check: contains, value: a, threshold: 1}", "unknown key 'threshold'"),
        ("prices: {m: {input: 1}}\nchecks: [max_cost: 1]", "has no `output`"),
        ("evaluators:\n- max_latency: 5s", ":2:3: `max_latency` is a check, not an evalua"),
        ("gate: {evaluators: {zz: {}}}\nchecks: [max_words: 1]", "known evaluators: max_words"),
        ("checks: [max_words: 1]\ntests: []", "both an eval config (`checks`) and an eval file"),
        ("check: [max_words: 1]", "(did you mean `checks` instead of 'check'?)"),
    ],
)
def test_problem_has_place_and_fix(tmp_path: Path, text: str, problem: str) -> None:
    found = problems_of(tmp_path, text)
    assert any(problem in each for each in found), found


def test_all_problems_are_reported_once(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "checks:\n- max_words: x\n- contains: []\n- a: 1\n")
    assert len(found) == 3
