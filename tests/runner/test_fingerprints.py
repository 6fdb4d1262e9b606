"""Fingerprints: equal for the same evaluator and the same eval case."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentci.config.overrides import Overrides
from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.model.case import AgentvCase, EvalCase, Expectation
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Place, replace
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_configs import load_suite
from tests.helpers.support import make_services

PLACE = Place(file="e.yaml", line=1)
EVAL_CASE = EvalCase(id="c", turns=(Turn(id="t", user_text="q"),), place=PLACE)
NOTHING = Expectation(
    agentv_case=AgentvCase(
        id="a", criteria="", input_messages=(), expected_messages=(), place=PLACE
    )
)
CODE = "traces: t.json\nevaluators:\n  - {{name: own, type: code, path: own.py{}}}\n"
JUDGE = (
    "tests:\n  - id: a\n    input: q\n    assertions:\n"
    "      - {{type: code-grader, name: own, command: [python3, own.py]{}}}\n"
)


def fingerprint_of(folder: Path, config: str, *, program: str = "print(1)") -> str:
    (folder / "own.py").write_text(program)
    (folder / "e.yaml").write_text(config)
    services = make_services(folder, {})
    [evaluator] = load_suite(folder / "e.yaml", Overrides(), services).suite.evaluators
    return Fingerprints(services.workspace).compute(evaluator, NOTHING)


def fingerprint_of_metric(folder: Path, eval_case: EvalCase | None = None, **others: Any) -> str:
    evaluator = make_builtin_evaluator("response_match_score", **{"place": PLACE, **others})
    expectation = Expectation(eval_case=eval_case)
    return Fingerprints(make_services(folder, {}).workspace).compute(evaluator, expectation)


def test_fingerprint_does_not_depend_on_workspace_path(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    assert fingerprint_of(one, CODE.format("")) == fingerprint_of(other, CODE.format(""))
    assert fingerprint_of(one, JUDGE.format("")) == fingerprint_of(other, JUDGE.format(""))


def test_fingerprint_changes_with_program_and_config(tmp_path: Path) -> None:
    for config in (CODE, JUDGE):
        same = fingerprint_of(tmp_path, config.format(""))
        assert fingerprint_of(tmp_path, config.format(""), program="print(2)") != same
    given = fingerprint_of(tmp_path, CODE.format(", config: {a: 1}"))
    assert given != fingerprint_of(tmp_path, CODE.format(""))
    assert given != fingerprint_of(tmp_path, CODE.format(", config: {a: 2}"))
    assert fingerprint_of(tmp_path, CODE.format(", threshold: 0.9")) != fingerprint_of(
        tmp_path, CODE.format("")
    )


def test_fingerprint_ignores_settings_without_effect_on_score(tmp_path: Path) -> None:
    same = fingerprint_of(tmp_path, CODE.format(""))
    assert (
        fingerprint_of(tmp_path, CODE.format(", timeout: 9, memory_mb: 99, required: false"))
        == same
    )
    assert fingerprint_of(tmp_path, f"# moved\n{CODE.format('')}") == same


@pytest.mark.parametrize("own", ["weight: 2", "required: false"])
@pytest.mark.parametrize(
    "entry",
    [
        "{{type: field_accuracy, name: f, fields: [{{path: a, match: exact{0}}}]}}",
        "{{type: rubrics, name: r, criteria: [{{id: a, outcome: A{0}}}]}}",
    ],
)
def test_fingerprint_changes_with_weight_and_required_of_parts(
    tmp_path: Path, entry: str, own: str
) -> None:
    judge = "judge: {provider: openai, model: m}\n"
    config = f"{judge}tests:\n  - id: a\n    input: q\n    expected_output: x\n    assertions:\n"
    same, other = (f"{config}      - {entry.format(each)}\n" for each in ("", f", {own}"))
    assert fingerprint_of(tmp_path, same) != fingerprint_of(tmp_path, other)


def test_fingerprint_changes_with_eval_case_not_its_line(tmp_path: Path) -> None:
    same = fingerprint_of_metric(tmp_path, EVAL_CASE)
    assert (
        fingerprint_of_metric(tmp_path, replace(EVAL_CASE, place=Place(file="x", line=9))) == same
    )
    assert fingerprint_of_metric(tmp_path, replace(EVAL_CASE, turns=())) != same
    assert fingerprint_of_metric(tmp_path) != same


def test_fingerprint_accepts_any_option_value(tmp_path: Path) -> None:
    prints = Fingerprints(make_services(tmp_path, {}).workspace)
    evaluator = replace(
        make_builtin_evaluator("response_match_score", place=PLACE),
        options={"f": partial(print, 1), "n": None, "l": [1.5, True]},  # type: ignore[dict-item]
    )
    assert prints.compute(evaluator, NOTHING) == prints.compute(evaluator, NOTHING)


def test_embedding_model_changes_fingerprint_only_of_similarity(tmp_path: Path) -> None:
    def of(grader: str, model: str) -> str:
        judge = f"judge: {{provider: openai, model: m, embedding_model: {model}}}\n"
        entry = f"  - {{name: g, type: openai_eval, grader: {grader}}}\n"
        return fingerprint_of(tmp_path, f"traces: t.json\n{judge}evaluators:\n{entry}")

    asking = "input: [{role: user, content: 'Rate {{ item.actual_response }}'}]"
    labels = f"{{type: label_model, {asking}, labels: [a, b], passing_labels: [a]}}"
    cosine = "{type: text_similarity, evaluation_metric: cosine}"
    assert of(labels, "e") == of(labels, "f")
    assert of(cosine, "e") != of(cosine, "f")


@pytest.mark.parametrize("link", ["own.sh", "inner/own.sh"])
def test_file_behind_link_out_of_workspace_is_not_read(tmp_path: Path, link: str) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    for each in (folder, outside):
        each.mkdir()
    (folder / "inner").symlink_to(outside if "/" in link else "missing")
    (folder / "own.sh").symlink_to(outside / "own.sh")
    config = JUDGE.replace("own.py", link).format("")
    prints = set()
    for content in ("one", "two"):
        (outside / "own.sh").write_text(content)
        prints.add(fingerprint_of(folder, config))
    assert len(prints) == 1


ASKED = (
    "{}tests:\n  - id: a\n    input: q\n    criteria: A\n    assertions:\n"
    "      - {{type: llm-grader, name: own, judge: {{{}}}}}\n"
)
OPENAI = "provider: openai, model: m"


@pytest.mark.parametrize(
    ("config", "one", "other"),
    [
        pytest.param(CODE, "", ", threshold: 0.5, network: true, env: []", id="defaults"),
        pytest.param(JUDGE, "", ", weight: 2", id="weight"),
        pytest.param(JUDGE, ", min_score: 0.7", ", required: 0.7", id="threshold of AgentV"),
        pytest.param(CODE, ", timeout: 1", ", cache: true", id="limits"),
    ],
)
def test_equal_settings_have_the_same_fingerprint(
    tmp_path: Path, config: str, one: str, other: str
) -> None:
    assert fingerprint_of(tmp_path, config.format(one)) == fingerprint_of(
        tmp_path, config.format(other)
    )


@pytest.mark.parametrize(
    ("config", "own"),
    [
        *((CODE, each) for each in ("env: [A]", "repeat: 3", "network: false", "threshold: 0.6")),
        *((JUDGE, each) for each in ("negate: true", "min_score: 0.6", "own_key: 1", "wire: v4")),
    ],
)
def test_settings_change_the_fingerprint(tmp_path: Path, config: str, own: str) -> None:
    changed = fingerprint_of(tmp_path, config.format(f", {own}"))
    assert changed != fingerprint_of(tmp_path, config.format(""))


@pytest.mark.parametrize(
    ("judge", "is_same"),
    [
        ("api_key_env: A", True),
        ("price: {input: 1, output: 2}", True),
        ("cache: false", True),
        ("samples: 1", True),
        ("combine: mean", True),
        ("samples: 3", False),
        ("samples: 3, combine: mean", False),
        ("temperature: 0.5", False),
        ("base_url: 'http://localhost'", False),
        ("effort: low", False),
        ("max_output_tokens: 9", False),
    ],
)
def test_judge_counts_with_what_affects_its_verdicts(
    tmp_path: Path, judge: str, *, is_same: bool
) -> None:
    same = fingerprint_of(tmp_path, ASKED.format("", OPENAI))
    assert (fingerprint_of(tmp_path, ASKED.format("", f"{OPENAI}, {judge}")) == same) is is_same
    shared = ASKED.format(f"judge: {{{OPENAI}, {judge}}}\n", "")
    assert (fingerprint_of(tmp_path, shared) == same) is is_same


def test_aggregation_of_samples_changes_the_fingerprint(tmp_path: Path) -> None:
    own = (f"{OPENAI}, samples: 3, combine: {each}" for each in ("mean", "median"))
    one, other = (fingerprint_of(tmp_path, ASKED.format("", each)) for each in own)
    assert one != other


@pytest.mark.parametrize(
    "config",
    [
        ASKED.format("", "command: [python3, own.py]"),
        JUDGE.replace("[python3, own.py]", "'cat | python3 own.py | cat'").format(""),
        JUDGE.replace("code-grader, name: own, command: [python3, own.py]", "composite, name: own, "
        "assertions: [{{type: contains, name: c, value: x}}], "
        "aggregator: {{type: code-grader, path: 'python3 own.py'}}").format(""),
    ],
)  # fmt: skip
def test_files_of_commands_change_the_fingerprint(tmp_path: Path, config: str) -> None:
    prints = [fingerprint_of(tmp_path, config, program=f"print({each})") for each in (1, 2, 1)]
    assert prints[0] == prints[2] != prints[1]


def test_installed_requirements_change_the_fingerprint(tmp_path: Path) -> None:
    def read(content: str, own: str = "") -> str:
        (tmp_path / "check" / "requirements.txt").write_text(content)
        return fingerprint_of(tmp_path, CODE.replace("own.py", "check/own.py").format(own))

    (tmp_path / "check").mkdir()
    (tmp_path / "check" / "own.py").write_text("print(1)")

    assert read("a==1") != read("a==2")
    ignored = ", requirements: none"
    assert read("a==1", ignored) == read("a==2", ignored)


def test_fingerprint_accepts_any_text_and_number(tmp_path: Path) -> None:
    prints = Fingerprints(make_services(tmp_path, {}).workspace)
    evaluator = make_builtin_evaluator("tool_trajectory_avg_score", place=PLACE)
    found = {
        prints.compute(
            evaluator,
            Expectation(
                eval_case=replace(
                    EVAL_CASE,
                    turns=(
                        replace(EVAL_CASE.turns[0], tool_calls=(ToolCall(name="a", args=args),)),
                    ),
                )
            ),
        )
        for args in ({"a": "\ud800"}, {"a": 10**30}, {"a": float("inf")})
    }
    assert len(found) == 3
