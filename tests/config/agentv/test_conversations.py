"""Evaluators of cases with several turns, and errors in invalid turns."""

from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from tests.config.agentv.no_files import NoFiles

TEXT = "{type: contains, value: x}"


def _read(*turns: str, case: str = "mode: conversation", rest: str = "") -> Suite:
    listed = "".join(f"  - {turn}\n" for turn in turns)
    text = f"tests:\n- id: a\n  {case}\n  turns:\n{listed}{rest}"
    document = read_yaml(text.encode(), file="f.yaml")
    return read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))


def _errors(*turns: str, **parts: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(*turns, **parts)
    return [str(problem) for problem in caught.value.problems]


class TestEvaluators:
    def test_turn_evaluators_precede_conversation_evaluators(self) -> None:
        suite = _read(
            f"{{input: q, assertions: [{TEXT}, {{type: is-json}}]}}",
            "{input: q}",
            f"{{input: q, assert: [{TEXT}]}}",
            rest=f"  assertions: [{{type: equals, value: y}}]\nassertions: [{TEXT}]\n",
        )
        assert suite.names == (
            "turn-1/contains-x", "turn-1/is-json", "turn-3/contains-x", "equals-y", "contains-x",
        )  # fmt: skip

    def test_all_turns_have_equal_weight(self) -> None:
        suite = _read(
            f"{{input: q, assertions: [{TEXT}, {{type: is-json, weight: 3}}]}}",
            "{input: q, assertions: [{type: is-json, weight: 0}]}",
            rest=f"assertions: [{TEXT}]\n",
        )
        assert [each.identity.weight for each in suite.evaluators] == [0.25, 0.75, 0, 1]

    def test_turn_input_includes_shared_input(self) -> None:
        suite = _read(f"{{input: q, assertions: [{TEXT}]}}", rest="input: shared\n")
        [case] = suite.eval_cases or ()
        assert [each["content"] for each in case.eval_case.input_messages] == ["shared", "q"]

    def test_required_evaluator_applies_to_its_turn(self) -> None:
        suite = _read(
            "{input: q, assertions: [{type: is-json, required: true}]}",
            rest="gate: {cases: {threshold: 0.5}}\n",
        )
        assert suite.gate.evaluators["turn-1/is-json"].min_pass_rate == 1.0

    def test_vars_of_case_are_substituted(self) -> None:
        suite = _read(
            f"{{input: 'q {{{{v}}}}', expected_output: '{{{{v}}}}.', assertions: [{TEXT}]}}",
            case="mode: conversation\n  vars: {v: 1}\n  input: s",
        )
        [case] = suite.eval_cases or ()
        assert [each["content"] for each in case.eval_case.input_messages] == ["s", "q 1"]


class TestTurns:
    @pytest.mark.parametrize(
        ("turn", "message"),
        [
            ("{}", "f.yaml:5:5: a turn has no `input` (add `input: ...`)"),
            ("q", "f.yaml:5:5: a turn must be a mapping, not the string 'q'"),
            ("{input: 3}", "f.yaml:5:13: `input` must be a string, a mapping or a list"),
            ("{input: [{role: me}]}", "f.yaml:5:21: `role` must be system, user,"),
            ("{input: q, assertions: 3}", "f.yaml:5:28: `assertions` must be a list"),
            ("{input: q, assertions: [{type: nope}]}", "f.yaml:5:36: `type` must be"),
            (
                "{input: q, expected_output: x}",
                "f.yaml:5:5: turn 1 has no evaluators",
            ),
        ],
    )
    def test_invalid_turn_is_reported_on_its_line(self, turn: str, message: str) -> None:
        [problem] = _errors(turn, rest="assertions: [{type: is-json}]\n")
        assert problem.startswith(message)

    def test_unknown_turn_key_is_warned_about(self) -> None:
        suite = _read("{input: q, asserts: []}", rest="assertions: [{type: is-json}]\n")
        assert [str(each) for each in suite.notices] == [
            "f.yaml:5:16: unknown key 'asserts' is ignored (did you mean 'assert'?)"
        ]

    def test_conversation_without_evaluators_is_rejected(self) -> None:
        assert _errors("{input: q}")[0].startswith("f.yaml:2:3: case 'a' has no evaluators")

    def test_turns_require_conversation_mode(self) -> None:
        hint = "add `mode: conversation`; AgentV ignores turns without it"
        errors = _errors("{input: q}", case="criteria: c", rest="assertions: [{type: is-json}]\n")
        assert errors == [f"f.yaml:5:3: `turns` requires `mode: conversation` ({hint})"]

    def test_empty_list_of_turns_is_rejected(self) -> None:
        document = read_yaml(b"tests: [{id: a, mode: conversation, turns: []}]", file="f.yaml")
        with pytest.raises(InputError, match=r"f\.yaml:1:44: `turns` must"):
            read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))


class TestWindowSize:
    @pytest.mark.parametrize("size", ["0", "-1", "1.5", "many"])
    def test_invalid_window_size_is_rejected(self, size: str) -> None:
        [message] = _errors("{input: q}", case=f"mode: conversation\n  window_size: {size}")
        assert message.startswith(
            "f.yaml:4:16: `window_size` must be a whole number from 1 to 1,000,000"
        )


class TestAggregation:
    TURN = f"{{input: q, assertions: [{TEXT}]}}"

    def test_max_aggregation_is_warned_about(self) -> None:
        suite = _read(self.TURN, case="mode: conversation\n  aggregation: max")
        [warning] = suite.notices
        assert str(warning) == (
            "f.yaml:4:16: `aggregation: max` has no effect: every turn must pass "
            "(AgentV uses the score of the best turn)"
        )

    def test_min_aggregation_is_accepted(self) -> None:
        assert not _read(self.TURN, case="mode: conversation\n  aggregation: min").notices

    def test_aggregation_with_case_gate_is_rejected(self) -> None:
        case = "mode: conversation\n  aggregation: min"
        [message] = _errors(self.TURN, case=case, rest="gate: {cases: {}}\n")
        assert message == (
            "f.yaml:4:16: `gate.cases` uses mean scores and does not support `aggregation: min` "
            "(remove `gate.cases`; every turn must then pass)"
        )
