"""What a config requires, read from its evaluators and eval cases."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentci.config.overrides import Overrides
from agentci.gate.policy_changes import find_policy_changes
from agentci.model.gate import Gate
from agentci.model.values import replace
from agentci.runner.gate_snapshot import apply_base_settings, make_gate
from agentci.runner.load_configs import load_suite
from agentci.runner.load_inputs import load_eval_set, load_suite_dataset
from agentci.runner.suite_files import LoadedSuite
from tests.helpers.recordings import eval_case, eval_set_of
from tests.helpers.support import make_services

JUDGE = {"provider": "openai", "model": "gpt-5-mini"}
PROMPT = "Rate {{ item.response }}."
SCORE_MODEL = {
    "type": "score_model",
    "range": [1, 5],
    "input": [{"role": "user", "content": "Rate {{ item.actual_response }}."}],
}
SIMILARITY = {"type": "text_similarity", "evaluation_metric": "bleu"}
REMOTE = {"backend": "remote", "base_url": "https://example.org/openai/v1"}
# An entry of each type, with the lower of two thresholds.
ENTRIES: list[dict[str, Any]] = [
    {
        "name": "tool_trajectory_avg_score",
        "type": "builtin",
        "threshold": 0.5,
        "trajectory_match_type": "IN_ORDER",
    },
    {"name": "response_match_score", "type": "builtin", "threshold": 0.5, "turn_score": "min"},
    {"name": "final_response_match_v2", "type": "builtin", "threshold": 0.5, "turn_score": "min"},
    {"name": "own", "type": "code", "path": "own.py", "threshold": 0.5},
    {"name": "own", "type": "grader", "grader": "own.py", "threshold": 0.5},
    {"name": "own", "type": "prompt", "prompt": PROMPT, "threshold": 0.5},
    {"name": "own", "type": "prompt", "prompt": PROMPT, "threshold": 2, "scale": [1, 5]},
    {"name": "own", "type": "prompt", "prompt": PROMPT, "threshold": 2},
    {"name": "own", "type": "openai_eval", "grader": SCORE_MODEL, "threshold": 0.5},
    {"name": "own", "type": "openai_eval", "grader": SIMILARITY, "threshold": 0.5},
    {"name": "own", "type": "openai_eval", "grader": SIMILARITY, "threshold": 0.5, **REMOTE},
]
MEMBER = {"name": "m", "type": "contains", "value": "x", "min_score": 0.5}
OWN_COMPOSITE = {"name": "own", "type": "composite", "assertions": [MEMBER]}
ASSERTIONS: list[dict[str, Any]] = [
    {"name": "own", "type": "contains", "value": "x"},
    {"name": "own", "type": "regex", "value": "x"},
    {"name": "own", "type": "llm_judge"},
    {"name": "own", "type": "code_judge", "command": ["python3", "own.py"]},
    {"name": "own", "type": "latency", "threshold": 100},
    {"name": "own", "type": "rubrics", "criteria": ["is short"]},
    {
        **OWN_COMPOSITE,
        "aggregator": {"type": "weighted_average"},
    },
    {**OWN_COMPOSITE, "aggregator": {"type": "code_judge", "path": "own.py"}},
]


def describe(folder: Path, content: Any, name: str = "agentci.yaml") -> tuple[LoadedSuite, Gate]:
    """Load a config, and make its gate."""
    (folder / "own.py").write_text("def grade(sample, item):\n    return 1\n")
    (folder / name).write_text(json.dumps(content))
    services = make_services(folder, {})
    loaded = load_suite(folder / name, Overrides(), services)
    gate = make_gate(
        loaded.suite,
        services.workspace,
        eval_set=load_eval_set(loaded, services.workspace),
        dataset=load_suite_dataset(loaded, services.workspace, carries_runs=False),
    )
    return loaded, gate


def config(*entries: Any, **others: Any) -> Any:
    return {"judge": JUDGE, "evaluators": list(entries), "traces": "t.json", **others}


def eval_file(*tests: Any, **others: Any) -> Any:
    return {"judge": JUDGE, "outputs": "out.jsonl", "tests": list(tests), **others}


def case(name: str = "a", **others: Any) -> Any:
    return {"id": name, "criteria": "is good", "input": "Hello", **others}


def raised(entry: Any) -> Any:
    return {**entry, "threshold": entry["threshold"] * 1.5}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: f"{each['name']}-{each['type']}")
class TestThresholdOfEachType:
    def test_threshold_is_no_part_of_the_definition(self, tmp_path: Path, entry: Any) -> None:
        [low] = describe(tmp_path, config(entry))[1].settings
        [high] = describe(tmp_path, config(raised(entry)))[1].settings
        assert (low.threshold, high.threshold) == (
            entry["threshold"],
            raised(entry)["threshold"],
        )
        assert low.definition == high.definition

    def test_base_settings_make_the_evaluator_of_the_base(self, tmp_path: Path, entry: Any) -> None:
        base, gate = describe(tmp_path, config(raised(entry)))
        head, head_gate = describe(tmp_path, config({**entry, "required": False}))
        applied = apply_base_settings(head.suite, gate, head_gate)
        assert normalize(applied.evaluators) == normalize(base.suite.evaluators)


@pytest.mark.parametrize("entry", ASSERTIONS, ids=lambda each: each["type"])
class TestThresholdOfEachAssertion:
    def test_threshold_is_no_part_of_the_definition(self, tmp_path: Path, entry: Any) -> None:
        [low], [high] = (
            describe(tmp_path, eval_file(case(assertions=[{**entry, "min_score": score}])))[
                1
            ].settings
            for score in (0.4, 0.6)
        )
        assert (low.threshold, high.threshold) == (0.4, 0.6)
        assert low.definition == high.definition

    def test_base_settings_make_the_evaluator_of_the_base(self, tmp_path: Path, entry: Any) -> None:
        strict = {**entry, "min_score": 0.6, "weight": 2}
        base, gate = describe(tmp_path, eval_file(case(assertions=[strict])))
        loose = {**entry, "min_score": 0.4, "required": False}
        head, head_gate = describe(tmp_path, eval_file(case(assertions=[loose])))
        applied = apply_base_settings(head.suite, gate, head_gate)
        assert normalize(applied.evaluators) == normalize(base.suite.evaluators)
        assert applied.eval_cases is not None
        assert applied.eval_cases[0].evaluators == applied.evaluators


def normalize(evaluators: Any) -> str:
    """The evaluators as text, without positions in the file and their definition there."""
    shown = [
        replace(each, definition={}) if "definition" in each.__struct_fields__ else each
        for each in evaluators
    ]
    return re.sub(r"Place\([^)]*\)", "", repr(shown))


class TestDefinition:
    @pytest.mark.parametrize(
        "change",
        [
            {"config": {"min_words": 3}},
            {"path": "other.py"},
            {"env": ["KEY"]},
            {"network": False},
        ],
        ids=str,
    )
    def test_other_fields_are_part_of_the_definition(self, tmp_path: Path, change: Any) -> None:
        (tmp_path / "other.py").write_text("")
        entry = {"name": "own", "type": "code", "path": "own.py"}
        [before] = describe(tmp_path, config(entry))[1].settings
        [after] = describe(tmp_path, config({**entry, **change}))[1].settings
        assert before.definition != after.definition

    def test_values_of_a_definition_are_texts_that_differ(self, tmp_path: Path) -> None:
        entry = {"name": "own", "type": "code", "path": "own.py", "config": {"words": 3}}
        [found] = describe(tmp_path, config(entry))[1].settings
        assert found.values["config.words"] == "3"
        assert (found.values["type"], found.values["path"]) == ("code", "./own.py")
        texts = []
        for end in ("a", "b"):
            long = {**entry, "config": {"words": 200 * "x" + end}}
            [found] = describe(tmp_path, config(long))[1].settings
            texts.append(found.values["config.words"])
        assert texts[0] != texts[1]
        assert all("… (201 characters, SHA-256 " in each for each in texts)

    @pytest.mark.parametrize("change", [{"timeout": 60}, {"memory_mb": 1000}], ids=str)
    def test_limits_are_not(self, tmp_path: Path, change: Any) -> None:
        entry = {"name": "own", "type": "code", "path": "own.py"}
        [before] = describe(tmp_path, config(entry))[1].settings
        [after] = describe(tmp_path, config({**entry, **change}))[1].settings
        assert before == after

    def test_same_files_elsewhere_have_the_same_definition(self, tmp_path: Path) -> None:
        entry = {"name": "own", "type": "code", "path": "own.py"}
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        gates = [describe(tmp_path / name, config(entry))[1] for name in ("one", "two")]
        assert gates[0] == gates[1]

    def test_labels_are_part_of_it_and_have_no_threshold(self, tmp_path: Path) -> None:
        grader = {"type": "label_model", "input": SCORE_MODEL["input"], "labels": ["a", "b"]}
        entry = {"name": "own", "type": "openai_eval"}
        found = [
            describe(tmp_path, config({**entry, "grader": {**grader, "passing_labels": labels}}))[
                1
            ].settings[0]
            for labels in (["a"], ["a", "b"])
        ]
        assert [each.threshold for each in found] == [None, None]
        assert found[0].definition != found[1].definition

    def test_own_limit_of_an_assertion_is_part_of_it(self, tmp_path: Path) -> None:
        entry = {"name": "own", "type": "latency"}
        found = [
            describe(tmp_path, eval_file(case(assertions=[{**entry, "threshold": limit}])))[1]
            for limit in (100, 200)
        ]
        assert found[0].settings[0].definition != found[1].settings[0].definition


class TestMatchTypeAndTurns:
    def test_default_match_type_is_exact(self, tmp_path: Path) -> None:
        entry = {"name": "tool_trajectory_avg_score", "type": "builtin"}
        [settings] = describe(tmp_path, config(entry))[1].settings
        assert (settings.match_type, settings.on_turn_mismatch) == ("EXACT", "fail")

    def test_match_type_of_the_config_applies(self, tmp_path: Path) -> None:
        entry = {"name": "tool_trajectory_avg_score", "type": "builtin"}
        other = {"name": "response_match_score", "type": "builtin"}
        whole = config(entry, other, trajectory_match_type="any_order")
        first, second = describe(tmp_path, whole)[1].settings
        assert (first.match_type, second.match_type) == ("ANY_ORDER", None)

    def test_turn_mismatch_of_the_gate_applies(self, tmp_path: Path) -> None:
        entry = {"name": "response_match_score", "type": "builtin"}
        [settings] = describe(tmp_path, config(entry, gate={"on_turn_mismatch": "allow"}))[
            1
        ].settings
        assert settings.on_turn_mismatch == "allow"


class TestEvalCases:
    def test_expected_answers_change_the_digest_and_ids_do_not(self, tmp_path: Path) -> None:
        entry = {"name": "response_match_score", "type": "builtin"}
        whole = config(entry, eval_set="set.json")
        found = []
        for name, answer in (("a", "Yes."), ("b", "Yes."), ("a", "No.")):
            cases = [eval_case("Hello", answer, calls=(), case=name)]
            (tmp_path / "set.json").write_text(eval_set_of(cases))
            found.append(describe(tmp_path, whole)[1].eval_cases)
        assert [{*each} for each in found] == [{"a"}, {"b"}, {"a"}]
        assert found[0]["a"] == found[1]["b"] != found[2]["a"]

    def test_rows_of_a_dataset_count_without_the_agents_answer(self, tmp_path: Path) -> None:
        entry = {"name": "own", "type": "grader", "grader": "own.py"}
        found = []
        for expected, answer in (("Yes.", "Yes."), ("Yes.", "Perhaps."), ("No.", "Yes.")):
            row = {"id": "a", "query": "Hello", "expected": expected, "response": answer}
            (tmp_path / "rows.jsonl").write_text(json.dumps(row))
            found.append(describe(tmp_path, config(entry, dataset="rows.jsonl"))[1].eval_cases)
        assert found[0] == found[1] != found[2]

    def test_case_of_eval_file_counts_without_its_evaluators(self, tmp_path: Path) -> None:
        one, other = {"name": "x", "type": "is_json"}, {"name": "y", "type": "is_json"}
        found = [
            describe(tmp_path, eval_file(case(**given)))[1].eval_cases
            for given in (
                {"assertions": [one]},
                {"assertions": [other]},
                {"assertions": [one], "expected_output": "Hi"},
            )
        ]
        assert found[0] == found[1] != found[2]

    def test_turns_belong_to_the_case(self, tmp_path: Path) -> None:
        found = []
        for expected in ("Hi", "Bye"):
            turn = {
                "input": "Hello",
                "expected_output": expected,
                "assertions": [{"name": "x", "type": "is_json"}],
            }
            given = {"id": "a", "criteria": "is good", "mode": "conversation", "turns": [turn]}
            found.append(describe(tmp_path, eval_file(given))[1])
        assert found[0].eval_cases != found[1].eval_cases
        assert found[0].settings == found[1].settings

    def test_evaluators_of_some_cases_name_them(self, tmp_path: Path) -> None:
        own = case("b", assertions=[{"name": "y", "type": "is_json"}])
        shared = {"name": "x", "type": "is_json"}
        gate = describe(tmp_path, eval_file(case(), own, assertions=[shared]))[1]
        assert [(each.name, each.cases) for each in gate.settings] == [("x", ()), ("y", ("b",))]


def test_evaluator_of_several_cases_stays_shared(tmp_path: Path) -> None:
    shared = {"name": "x", "type": "is_json"}
    content = eval_file(case(), case("b"), assertions=[shared])
    loaded, gate = describe(tmp_path, content)
    base = replace(gate, settings=(replace(gate.settings[0], threshold=0.9),))
    [evaluator] = apply_base_settings(loaded.suite, base, gate).evaluators
    assert evaluator.identity.threshold == 0.9


def test_renamed_case_keeps_the_settings_of_the_base(tmp_path: Path) -> None:
    entry = {"name": "safe", "type": "contains", "value": "x"}
    strict = {**entry, "required": True, "min_score": 0.9}
    _, base = describe(tmp_path, eval_file(case("refund", assertions=[strict]), case("greet")))
    loose = {**entry, "min_score": 0.1}
    loaded, head = describe(
        tmp_path, eval_file(case("refund-1", assertions=[loose]), case("greet"))
    )
    applied = apply_base_settings(loaded.suite, base, head)
    assert [
        each.identity.threshold for each in applied.evaluators if each.identity.name == "safe"
    ] == [0.9]
    changes = {each.subject: each.names for each in find_policy_changes([base], [head])}
    assert changes["threshold of safe"] == ("refund",)
    _, removed = describe(tmp_path, eval_file(case("refund-1"), case("greet")))
    assert "safe" in {each.subject for each in find_policy_changes([base], [removed])}
