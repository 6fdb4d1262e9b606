"""Reading of eval files, and errors in invalid ones."""

import json
from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.agentv.external_files import read_jsonl
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.gate import CaseThresholds, GateThresholds
from tests.config.agentv.no_files import NoFiles

GONE = "{type: file, value: gone}"
WEIGHTS = "{type: weighted_average, weights: {C1: 2}}"
CODE = "{name: c, type: code_judge, script: [judge]}"


def _read(text: str, **overrides: Any) -> Suite:
    document = read_yaml(text.encode(), file="f.yaml")
    return read_eval_file(
        document, Overrides(**overrides), NoFiles(), variables=ConfigVariables({})
    )


def _errors(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(text)
    return [str(problem) for problem in caught.value.problems]


def _cases(*lines: str, key: str = "cases", shared: str = f"[{CODE}]") -> str:
    listed = "".join(f"  - {line}\n" for line in lines)
    return f"execution: {{evaluators: {shared}}}\n{key}:\n{listed}"


class TestCases:
    def test_all_agentv_spellings_are_read(self) -> None:
        suite = _read(
            "evalcases:\n"
            f"  - {{id: a, expected_outcome: o, input_messages: [{{role: user, content: q}}],"
            f" expected_messages: [{{role: assistant, content: r}}], evaluators: [{CODE}]}}\n"
            f"  - {{id: b, outcome: o, input: q, expected_output: r, evaluators: [{CODE}]}}\n"
        )
        assert suite.eval_cases is not None
        first, second = (each.eval_case for each in suite.eval_cases)
        assert (first.criteria, second.criteria) == ("o", "o")
        assert first.input_messages == second.input_messages
        assert first.expected_messages == second.expected_messages

    def test_file_references_are_resolved(self) -> None:
        part = "{type: file, value: guide.md}, {type: file, value: a.txt}, {type: text, value: t}"
        suite = _read(
            _cases(
                f"{{id: a, input: [{{role: user, content: [{part}]}}],"
                f" expected_output: [{{role: assistant, content: [{part}]}}]}}"
            )
        )
        assert suite.eval_cases is not None
        sample = suite.eval_cases[0].eval_case
        assert (sample.guideline_files, sample.input_files) == (("/w/guide.md",), ("/w/a.txt",))
        assert sample.expected_messages[0]["content"] == [
            {
                "type": "file",
                "path": "guide.md",
                "text": "guide.md",
                "resolved_path": "/w/guide.md",
            },
            {"type": "file", "path": "a.txt", "text": "a.txt", "resolved_path": "/w/a.txt"},
            {"type": "text", "value": "t"},
        ]

    def test_single_message_and_structured_answer_are_read(self) -> None:
        suite = _read(_cases("{id: a, input: {role: user, content: q}, expected_output: {k: 1}}"))
        assert suite.eval_cases is not None
        sample = suite.eval_cases[0].eval_case
        assert sample.input_messages == ({"role": "user", "content": "q"},)
        assert sample.expected_messages == ({"role": "assistant", "content": {"k": 1}},)

    def test_expected_list_keeps_mappings_with_warning(self) -> None:
        suite = _read(_cases("{id: a, input: q, expected_output: [1, {k: 1}]}"))
        assert suite.eval_cases is not None
        assert suite.eval_cases[0].eval_case.expected_messages[0]["content"] == [{"k": 1}]
        assert [problem.severity for problem in suite.notices] == ["warning"]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{input: q}", "3:5: a case has no `id` (add `id: ...`)"),
            ("{id: 5, input: q}", "3:10: `id` must be a string that is not blank, not 5"),
            ("{id: a}", "3:5: case 'a' has no input (add `input: ...`)"),
            ("[just text]", "3:5: each case must be a mapping with `id` and `input`"),
            ("just text", "3:5: there is no file just text"),
            ("{id: a, input: q, rubrics: []}", "3:32: `rubrics` must be a list with at least"),
            ("{id: a, input: [{role: me, content: q}]}", "3:28: `role` must be system, user,"),
            ("{id: a, input: [{role: user}]}", "3:21: a message has neither `content` nor"),
            ("{id: a, input: {role: me}}", "3:27: `input.role` must be system, user,"),
            (
                "{id: a, input: [{role: user, content: [{type: file, value: gone}]}]}",
                "3:64: there is no file gone",
            ),
            (
                "{id: a, input: [{role: user, content: [{type: file, value: 5}]}]}",
                "3:64: a message part of type `file` needs `value`, a path",
            ),
            (
                "{id: a, input: q, expected_output: {role: tool, content: [{type: file}]}}",
                "3:63: a message part of type `file` needs `value`, a path",
            ),
            (
                f"{{id: a, input: q, expected_output: {{role: tool, content: [{GONE}]}}}}",
                "3:83: there is no file gone",
            ),
        ],
    )
    def test_invalid_case_is_reported_on_its_line(self, line: str, message: str) -> None:
        [problem] = _errors(_cases(line))
        assert problem.startswith(f"f.yaml:{message}")

    def test_unsupported_case_keys_are_reported(self) -> None:
        for_all = _cases("{id: a, input: q}") + "vars: {k: v}\n"
        assert _errors(for_all)[0].startswith("f.yaml:4:1: `vars` is not supported")
        [note] = _read(_cases("{id: a, input: q, execution: {trials: {count: 2}}}")).notices
        assert str(note).startswith("f.yaml:3:35: `trials` of a single case have no effect")

    def test_unknown_dependency_is_rejected(self) -> None:
        cases = _cases("{id: a, input: q, depends_on: [b]}", "{id: b, input: q}")
        assert _read(cases).eval_cases is not None
        assert _errors(_cases("{id: a, input: q, depends_on: [a, c]}", "{id: b1, input: q}")) == [
            "f.yaml:3:36: case 'a' depends on itself",
            "f.yaml:3:39: case 'a' depends on unknown case 'c'",
        ]
        [message] = _errors(_cases("{id: a, input: q, depends_on: a}"))
        assert message.startswith("f.yaml:3:35: `depends_on` must be a list")

    def test_keys_without_effect_are_warned_about_once(self) -> None:
        cases = _cases("{id: a, input: q, workspace: w}", "{id: b, input: q, workspace: w}")
        messages = [str(each) for each in _read(cases + "preprocessors: []\n").notices]
        assert [each.split(" (")[0] for each in messages] == [
            "f.yaml:3:23: `workspace` has no effect",
            "f.yaml:5:1: `preprocessors` has no effect",
        ]

    def test_ignored_spellings_are_warned_about(self) -> None:
        own = f"evaluators: [{CODE}], assertions: [{CODE}], execution: {{evaluators: [{CODE}]}}"
        keys = "input: q, input_messages: q, criteria: c, outcome: c, expected_outcome: c"
        messages = [each.message for each in _read(_cases(f"{{id: a, {keys}, {own}}}")).notices]
        assert messages == [
            "`input` is ignored, because `input_messages` is set",
            "`outcome` is ignored, because `criteria` is set",
            "`expected_outcome` is ignored, because `criteria` is set",
            "`evaluators` is ignored, because `execution.evaluators` is set",
            "`assertions` is ignored, because `execution.evaluators` is set",
        ]

    def test_unknown_key_in_case_execution_is_reported(self) -> None:
        text = _cases("{id: a, input: q, execution: {threshhold: 1, target: t}}")
        [warning] = _read(text.replace("execution: {e", "execution: {workers: 1, e")).notices
        assert warning.message == "unknown key 'threshhold' is ignored"

    @pytest.mark.parametrize("key", ["prompts", "default_test"])
    def test_agentv_5_key_is_rejected(self, key: str) -> None:
        [message] = _errors(_cases("{id: a, input: q}") + f"{key}: []\n")
        assert message.startswith(f"f.yaml:4:1: `{key}` is not supported by agentci")

    def test_duplicate_case_id_is_rejected(self) -> None:
        hint = "first used at f.yaml:3:5; give each case a unique id"
        errors = _errors(_cases("{id: a, input: q}", "{id: a, input: q}"))
        assert errors == [f"f.yaml:4:10: duplicate case id 'a' ({hint})"]

    def test_cases_must_be_one_nonempty_list(self) -> None:
        assert _errors("cases: []") == ["f.yaml:1:8: `cases` must be a list with at least one case"]
        assert "`cases` must be a string or a list, not 3" in _errors("cases: 3")[0]
        both = _errors(_cases("{id: a, input: q}") + "tests: []\n")
        message = "the file has two lists of cases: `cases` and `tests`"
        assert both == [f"f.yaml:4:1: {message} (merge them into one list)"]

    def test_unknown_case_key_is_warned_about(self) -> None:
        suite = _read(_cases("{id: a, input: q, critera: x, x-mine: 1, note: n}") + "dataste: d\n")
        assert [str(problem) for problem in suite.notices] == [
            "f.yaml:3:23: unknown key 'critera' is ignored (did you mean 'criteria'?)",
            "f.yaml:4:1: unknown key 'dataste' is ignored (did you mean 'dataset'?)",
        ]


class TestEvaluators:
    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ("3", "1:26: each evaluator must be a mapping with `name` and `type`, not 3"),
            ("{name: c}", "1:26: evaluator 'c' has no `type` (add `type: code_judge`)"),
            ("{k: 1}", "1:26: an evaluator has no `type` (add `type: code_judge`)"),
            ("{name: c, type: latancy}", "`type` must be code_judge, llm_judge, rubrics,"),
            ("{name: c, type: 3}", "not 3"),
            ("{name: c, type: agent-judge}", "1:42: evaluator type 'agent-judge' is not supported"),
            ("{type: latency, threshold: 1}", "1:26: an evaluator of type `latency` has no `name`"),
            (
                "{name: 7, type: latency, threshold: 1}",
                '1:33: `name` must be a string that is not blank, not 7 (put it in quotes: "7")',
            ),
            (
                "{name: ' ', type: latency, threshold: 1}",
                "1:33: `name` must be a string that is not blank, not ",
            ),
            (
                "{name: [c], type: latency, threshold: 1}",
                "1:33: `name` must be a string that is not blank, not a li",
            ),
            ("{name: c, type: llm_judge}", "1:42: `c` needs a judge model"),
            ("{name: c, type: latency}", "1:26: evaluator 'c' has no `threshold`"),
            ("{name: c, type: latency, threshold: x}", "1:62: `threshold` must be a number of at"),
            ("{name: c, type: latency, threshold: 1, thresold: 2}", "unknown key 'thresold'"),
            ("{name: c, type: code_judge}", "1:26: code_judge needs `script`"),
            ("{name: c, type: code_judge, script: a, command: b}", "are the same field"),
            ("{name: c, type: code_judge, script: a, cwd: gone}", "1:70: there is no folder gone"),
            (
                "{name: c, type: code_judge, script: a, target: {}}",
                "1:73: `c` needs a judge model",
            ),
            (
                "{name: c, type: composite, aggregator: {type: weighted_average}}",
                "1:26: `composite` needs `evaluators`",
            ),
            (
                f"{{name: n, type: composite, aggregator: {{type: llm_judge}}, assert: [{CODE}]}}",
                "`n` needs a judge model",
            ),
            (
                f"{{name: n, type: composite, assert: [{CODE}], aggregator: {{type: mean}}}}",
                "`aggregator.type` must be weighted_average, code_judge, threshold or llm_judge",
            ),
            (
                f"{{name: n, type: composite, assert: [{CODE}], aggregator: {{}}}}",
                "`aggregator` has no `type`",
            ),
            (
                f"{{name: n, type: composite, assert: [{CODE}], aggregator: {WEIGHTS}}}",
                "`weights` names 'C1', which is not a member of the composite (did you mean 'c'?)",
            ),
            ("{name: c, type: regex, value: '('}", "invalid regular expression"),
            (
                "{name: c, type: regex, value: a, flags: q}",
                "unknown flag of the regular expression: 'q'",
            ),
        ],
    )
    def test_invalid_evaluator_is_reported_on_its_line(self, entry: str, message: str) -> None:
        problems = _errors(_cases("{id: a, input: q}", shared=f"[{entry}]"))
        assert message in problems[0]
        assert len(problems) == 1

    def test_unknown_key_of_an_evaluator_is_ignored_with_a_warning(self) -> None:
        entry = "{name: c, type: latency, threshold: 1, owner: shop}"
        suite = _read(_cases("{id: a, input: q}", shared=f"[{entry}]"))
        [warning] = suite.notices
        assert str(warning) == "f.yaml:1:65: unknown key 'owner' is ignored"
        assert [each.identity.name for each in suite.evaluators] == ["c"]

    def test_evaluators_must_be_a_list(self) -> None:
        text = "cases: [{id: a, input: q}]\nexecution: {evaluators: 3}"
        assert "`execution.evaluators` must be a list" in _errors(text)[0]
        text = f"cases: [{{id: a, input: q, assert: 3, x: [{CODE}]}}]"
        assert "`assert` must be a list, not 3" in _errors(text)[0]

    def test_second_evaluator_of_a_name_gets_a_number(self) -> None:
        suite = _read(_cases("{id: a, input: q}", shared=f"[{CODE}, {CODE}]"))
        assert [each.identity.name for each in suite.evaluators] == ["c", "c-2"]
        second = 26 + len(CODE) + len(", {name: ")
        [warning] = suite.notices
        assert str(warning) == (
            f"f.yaml:1:{second}: a second evaluator 'c' is named 'c-2' (rename one of them; "
            "`gate.evaluators` and `--only` take the new name)"
        )

    def test_case_without_evaluators_is_rejected(self) -> None:
        [message] = _errors("cases: [{id: a, input: q}]")
        assert message.startswith("f.yaml:1:9: case 'a' has no evaluators (AgentV would")

    def test_invalid_yaml_value_is_reported_once(self) -> None:
        own = "{id: a, input: q, assert: [{name: l, type: latency, threshold: 010}]}"
        [problem] = _errors(f"tests: [{own}]")
        assert "010 is ambiguous" in problem

    def test_case_evaluators_replace_shared_evaluators(self) -> None:
        own = "{id: a, input: q, evaluators: [{name: own, type: latency, threshold: 1}]}"
        assert _read(_cases(own)).names == ("own",)

    def test_tests_key_combines_case_and_shared_evaluators(self) -> None:
        own = "id: a, input: q, assertions: [{type: latency, threshold: 1}]"
        assert _read(_cases(f"{{{own}}}", key="tests")).names == ("latency", "c")
        alone = f"{{{own}, execution: {{skip_defaults: true}}}}"
        assert _read(_cases(alone, key="tests")).names == ("latency",)

    def test_name_shared_by_case_and_file_is_numbered_with_one_warning(self) -> None:
        cases = [f"{{id: {name}, input: q, assertions: [{CODE}]}}" for name in "ab"]
        suite = _read(_cases("\n  - ".join(cases), key="tests"))
        [warning] = suite.notices
        assert "evaluator 'c' is named 'c-2' in cases that have their own 'c'" in str(warning)
        cases_read = suite.eval_cases or ()
        names = [[each.identity.name for each in case.evaluators] for case in cases_read]
        assert (suite.names, names) == (("c", "c-2"), [["c", "c-2"]] * 2)

    def test_name_made_for_case_and_file_is_numbered(self) -> None:
        listed = "assertions: [{type: contains, value: x}]"
        text = f"tests: [{{id: a, input: q, {listed}}}]\n{listed}"
        assert _read(text).names == ("contains-x", "contains-x-2")

    def test_unnamed_evaluators_get_names(self) -> None:
        listed = (
            "[{type: contains, value: x}, {type: contains, value: x}, {type: is-json}, "
            "{type: contains-any, value: [a, b]}, "
            "{type: regex, value: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]"
        )
        assert _read(_cases("{id: a, input: q}", key="tests", shared=listed)).names == (
            "contains-x", "contains-x-2", "is-json", "contains-any-2", f"regex-{'a' * 30}",
        )  # fmt: skip

    def test_shared_evaluator_is_built_once(self) -> None:
        suite = _read(_cases("{id: a, input: q}", "{id: b, input: q}"))
        assert len(suite.evaluators) == 1

    def test_metric_override_has_no_effect(self) -> None:
        [note] = _read(_cases("{id: a, input: q}"), metrics=("response_match_score",)).notices
        assert str(note).startswith("f.yaml:1: --metric has no effect on eval files")

    def test_evaluators_can_be_selected(self) -> None:
        own = "{id: a, input: q, evaluators: [{name: own, type: latency, threshold: 1}]}"
        suite = _read(_cases(own, "{id: b, input: q}"), only=("own",))
        assert suite.eval_cases is not None
        assert [each.eval_case.id for each in suite.eval_cases] == ["a"]
        assert suite.names == ("own", "c")


class TestGate:
    def test_pass_threshold_comes_from_file_or_override(self) -> None:
        text = _cases("{id: a, input: q}").replace("execution: {", "execution: {threshold: 0.5, ")
        assert _read(text).evaluators[0].identity.threshold == 0.5
        assert _read(text, threshold=0.3).evaluators[0].identity.threshold == 0.3

    def test_case_gate_has_default_thresholds(self) -> None:
        suite = _read(_cases("{id: a, input: q}") + "gate: {cases: {}}\n")
        assert suite.gate.cases == CaseThresholds(threshold=0.8)
        assert suite.gate.overall == GateThresholds(min_pass_rate=0.0)

    def test_case_gate_keeps_regression_thresholds(self) -> None:
        suite = _read(_cases("{id: a, input: q}") + "gate: {max_regression: 0.1, cases: {}}\n")
        assert suite.gate.regression is not None
        assert suite.gate.regression.max_drop == 0.1

    def test_case_gate_keeps_required_evaluators(self) -> None:
        vital = f"[{CODE[:-1]}, required: true}}, {{name: d, type: latency, threshold: 1}}]"
        text = _cases("{id: a, input: q}", shared=vital)
        suite = _read(f"{text}gate: {{min_pass_rate: 0.5, cases: {{threshold: 0.7}}}}\n")
        assert suite.gate.cases == CaseThresholds(threshold=0.7)
        assert suite.gate.overall.min_pass_rate == 0.5
        assert {name: bar.min_pass_rate for name, bar in suite.gate.evaluators.items()} == {
            "c": 1.0
        }

    def test_unknown_evaluator_in_gate_is_rejected(self) -> None:
        [message] = _errors(
            _cases("{id: a, input: q}") + "gate: {evaluators: {d: {min_score: 1}}}\n"
        )
        assert (
            message
            == "f.yaml:4:21: `gate.evaluators` names unknown evaluator 'd' (known evaluators: c)"
        )


class TestJsonLines:
    def test_cases_share_fields_of_sidecar(self) -> None:
        sidecar = read_yaml(f"execution: {{evaluators: [{CODE}]}}".encode(), file="f.yaml")
        lines = '{"id": "a", "input": "q"}\n\n{"id": "b", "input": ["q"], "metadata": {"k": null}}'
        document = read_jsonl(lines.encode(), file="f.jsonl", sidecar=sidecar)
        with pytest.raises(InputError) as caught:
            read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))
        [problem] = caught.value.problems
        assert str(problem).startswith("f.jsonl:3: a message must be a mapping, not the string 'q'")

    def test_sidecar_is_optional_with_case_evaluators(self) -> None:
        entry = {"name": "l", "type": "latency", "threshold": 1.5}
        line = json.dumps({"id": "a", "input": "q", "evaluators": [entry]})
        document = read_jsonl(line.encode(), file="f.jsonl", sidecar=None)
        assert read_eval_file(
            document, Overrides(), NoFiles(), variables=ConfigVariables({})
        ).names == ("l",)

    def test_cases_in_sidecar_are_rejected(self) -> None:
        sidecar = read_yaml(b"assertions: []\ntests: [{id: z}]", file="f.yaml")
        with pytest.raises(InputError, match=r"^f\.yaml:2:1: this file and f\.jsonl both have"):
            read_jsonl(b'{"id": "a"}', file="f.jsonl", sidecar=sidecar)

    def test_assertions_key_selects_agentv_4_rules(self) -> None:
        shared = "execution: {evaluators: [{type: is-json}]}"
        sidecar = read_yaml(shared.encode(), file="f.yaml")
        entry = {"type": "contains", "value": "x"}
        for key in ("assertions", "assert"):
            line = json.dumps({"id": "a", "input": "q", key: [entry]})
            document = read_jsonl(line.encode(), file="f.jsonl", sidecar=sidecar)
            suite = read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))
            assert suite.names == ("contains-x", "is-json")

    @pytest.mark.parametrize(
        ("text", "message"),
        [("", "f.jsonl:1: the file has no cases"), ("{", "f.jsonl:1:2: invalid JSON")],
    )
    def test_invalid_file_is_rejected(self, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_jsonl(text.encode(), file="f.jsonl", sidecar=None)

    @pytest.mark.parametrize("levels", [70, 400, 100_000])
    def test_deeply_nested_case_is_an_error(self, levels: int) -> None:
        text = '{"id": "a"}\n{"id": "b", "input": ' + "[" * levels + "]" * levels + "}"
        with pytest.raises(InputError, match=r"f\.jsonl:2: JSON nested too deeply"):
            read_jsonl(text.encode(), file="f.jsonl", sidecar=None)
