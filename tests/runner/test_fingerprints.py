"""Fingerprints: equal for the same evaluator and the same eval case."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentci.config.overrides import Overrides
from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.model.case import AgentvCase, EvalCase, Expectation
from agentci.model.problem import Place
from agentci.model.trace import Turn
from agentci.model.values import replace
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
