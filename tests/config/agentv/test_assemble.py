"""Shared values, variables and included files of AgentV 4 eval files, as in AgentV 4.42.4."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.model.gate import CaseThresholds
from tests.config.agentv.no_files import NoFiles

ASSERTIONS = "assertions: [{type: is-json}]\n"


def _read(text: str, texts: Mapping[str, str] | None = None, **variables: str) -> Suite:
    document = read_yaml(text.encode(), file="f.yaml")
    return read_eval_file(
        document, Overrides(), NoFiles(texts or {}), variables=ConfigVariables(variables)
    )


def _read_cases(text: str, texts: Mapping[str, str] | None = None) -> list[EvalFileCase]:
    return list(_read(ASSERTIONS + text, texts).eval_cases or ())


def _input_contents(text: str) -> list[Any]:
    [case] = _read_cases(text)
    return [message["content"] for message in case.eval_case.input_messages]


MEAN = "aggregator: {type: weighted_average}"


def _errors(text: str, texts: Mapping[str, str] | None = None, **variables: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(ASSERTIONS + text, texts, **variables)
    return [str(problem) for problem in caught.value.problems]


def _warnings(text: str) -> list[str]:
    return [str(problem) for problem in _read(text).notices]


class TestVars:
    def test_vars_are_substituted_in_input_and_expectation(self) -> None:
        [case] = _read_cases(
            "input: For {{who}}.\n"
            "tests:\n"
            "- id: '{{who}}'\n"
            "  vars: {who: Ada, of: {kin: [1, a], n: 2.0}, nil: null}\n"
            "  criteria: greets {{ who }} {{of.kin}} {{of.n}} {{nil}}\n"
            "  input: [{role: user, content: [{type: text, value: 'Hi {{who}}'}]}]\n"
            "  expected_output: '{{of}}'\n"
            "  metadata: {to: '{{who}}'}\n"
        )
        sample = case.eval_case
        assert sample.criteria == 'greets Ada [1,"a"] 2 null'
        assert [each["content"] for each in sample.input_messages] == [
            "For Ada.", [{"type": "text", "value": "Hi Ada"}],
        ]  # fmt: skip
        assert sample.expected_messages[0]["content"] == {"kin": [1, "a"], "n": 2.0}
        assert (sample.id, sample.metadata) == ("{{who}}", {"to": "{{who}}"})

    def test_unknown_variable_is_kept_and_warned_about(self) -> None:
        text = ASSERTIONS + "tests:\n- {id: a, vars: {who: Ada}, input: 'x {{whom}} {{who.is}}'}\n"
        rest = "its placeholder is not replaced (did you mean 'who'?)"
        assert _warnings(text) == [
            f"f.yaml:3:36: unknown variable 'whom': {rest}",
            f"f.yaml:3:36: unknown variable 'who.is': {rest}",
        ]
        assert _input_contents(text.removeprefix(ASSERTIONS)) == ["x {{whom}} {{who.is}}"]

    def test_vars_in_evaluators_are_warned_about(self) -> None:
        own = "assert: [{type: equals, value: '{{who}} {{output}}'}]"
        [warning] = _warnings(f"tests:\n- {{id: a, vars: {{who: Ada}}, input: q, {own}}}\n")
        assert warning == (
            "f.yaml:2:70: `vars` do not apply to evaluators, as in AgentV: {{who}} is not replaced "
            "(write the value itself)"
        )

    def test_placeholder_without_vars_is_unchanged(self) -> None:
        assert _input_contents("tests: [{id: a, input: 'x {{who}}'}]") == ["x {{who}}"]
        assert not _warnings(ASSERTIONS + "tests: [{id: a, input: 'x {{who}}'}]")

    def test_vars_must_be_a_mapping(self) -> None:
        [message] = _errors("tests: [{id: a, input: q, vars: [1]}]")
        assert message.startswith("f.yaml:2:33: `vars` must be a mapping")


class TestEnvironmentVariables:
    FILE = "assertions: [{type: equals, value: 'v ${{ NAME }}'}]\ntests: [{id: a, input: q}]\n"

    def test_variables_are_substituted_in_tests_files(self) -> None:
        suite = _read(self.FILE, NAME="x")
        assert suite.names == ("equals-v x",)

    def test_substituted_value_may_be_number_or_boolean(self) -> None:
        text = "assertions: [{type: latency, threshold: '${{ MS }}', negate: '${{ NOT }}'}]\n"
        [judge] = _read(text + "tests: [{id: a, input: q}]", MS="5", NOT="false").evaluators
        assert judge.identity.threshold == 0.8
        [judge] = _read(text + "tests: [{id: a, input: q}]", MS="1.5", NOT="true").evaluators
        with pytest.raises(InputError, match="`threshold` must be a number"):
            _read(text + "tests: [{id: a, input: q}]", MS="07", NOT="true")

    def test_unset_variable_is_reported(self) -> None:
        text = "tests: [{id: a, input: 'x ${{NAME}} ${{NAME}}'}]"
        [message] = _errors(text)
        assert message == (
            "f.yaml:2:24: environment variable NAME is not set "
            "(set it for agentci, for example in `env:` of the workflow step)"
        )

    def test_unset_variable_of_an_evaluator_is_reported_once(self) -> None:
        text = "tests: [{id: a, input: q, assertions: [{type: contains, value: '${{ NAME }}'}]}]"
        [message] = _errors(text)
        assert message.startswith("f.yaml:2:64: environment variable NAME is not set")

    def test_composite_whose_member_lacks_a_judge_is_reported_once(self) -> None:
        member = "{name: one, type: llm-grader, prompt: Is it kind?}"
        entry = f"{{type: composite, assertions: [{member}], {MEAN}}}"
        [message] = _errors(f"tests: [{{id: a, input: q, assertions: [{entry}]}}]")
        assert "`one` needs a judge model" in message

    def test_variable_in_ignored_key_need_not_be_set(self) -> None:
        text = (
            "description: of ${{ VAR }}\ntarget: ${{ A }}\nx-mine: ${{ B }}\n"
            "execution: {target: '${{ C }}'}\n"
        )
        assert _input_contents(text + "tests: [{id: a, input: q, workspace: '${{ D }}'}]") == ["q"]

    def test_older_files_keep_placeholders(self) -> None:
        text = "assertions: [{type: is-json, name: j}]\ncases: [{id: a, input: '${{ NAME }}'}]"
        [case] = _read(text).eval_cases or ()
        assert case.eval_case.input_messages[0]["content"] == "${{ NAME }}"


class TestSharedInput:
    def test_shared_input_precedes_case_input(self) -> None:
        case = "tests: [{id: a, input: {role: user, content: q}}]"
        assert _input_contents(f"input: first\n{case}") == ["first", "q"]
        assert _input_contents(f"input: {{role: system, content: s}}\n{case}") == ["s", "q"]
        assert _input_contents(f"input: {{some: data}}\n{case}") == [{"some": "data"}, "q"]

    def test_shared_input_can_be_skipped(self) -> None:
        skips = "execution: {skip_defaults: true}, assert: [{type: is-json}]"
        assert _input_contents(f"input: first\ntests: [{{id: a, input: q, {skips}}}]") == ["q"]

    def test_shared_input_does_not_replace_case_input(self) -> None:
        assert _errors("input: first\ntests: [{id: a}]") == [
            "f.yaml:3:9: case 'a' has no input (add `input: ...`)"
        ]

    def test_invalid_input_is_reported_on_its_line(self) -> None:
        assert "f.yaml:2:8: `input` must be" in _errors("input: 3\ntests: [{id: a, input: q}]")[0]
        assert "f.yaml:3:24: `input` must be" in _errors("input: s\ntests: [{id: a, input: 3}]")[0]

    def test_shared_input_may_be_files(self) -> None:
        files = [{"type": "file", "value": "a.txt"}, {"type": "file", "value": "b.txt"}]
        shared = "input: s\ninput_files: [a.txt, b.txt]\n"
        [case] = _read_cases(shared + "tests: [{id: a, input: q}]")
        first, second = case.eval_case.input_messages
        assert first == {"role": "user", "content": "s"}
        assert second == {"role": "user", "content": [*files, {"type": "text", "value": "q"}]}
        assert case.eval_case.input_files == ("/w/a.txt", "/w/b.txt")

    def test_case_files_replace_shared_files(self) -> None:
        own = "{id: a, input: q, input_files: ['{{f}}'], vars: {f: x}}"
        [case] = _read_cases(f"input_files: [gone]\ntests: [{own}]")
        assert case.eval_case.input_files == ("/w/x",)

    def test_input_files_require_text_input(self) -> None:
        own = "{id: a, input_files: [f], input: [{role: user, content: q}]}"
        [message] = _errors(f"tests: [{own}]")
        assert message == (
            "f.yaml:2:42: `input_files` requires a text `input` "
            "(refer to files in messages: {type: file, value: PATH})"
        )
        [message] = _errors("tests: [{id: a, input: q, input_files: f}]")
        assert message.startswith("f.yaml:2:40: `input_files` must be a list")

    def test_missing_shared_file_is_reported_on_its_line(self) -> None:
        [message] = _errors("input_files:\n- gone\ntests: [{id: a, input: q}]")
        assert message.startswith("f.yaml:3:3: there is no file gone")


class TestSharedMetadata:
    def test_case_metadata_overrides_shared_metadata(self) -> None:
        own = "{id: a, input: q, metadata: {l: 2}}, {id: b, input: q}"
        text = f"metadata: {{k: 1, l: 1}}\ntests: [{own}]"
        assert [each.eval_case.metadata for each in _read_cases(text)] == [
            {"k": 1, "l": 2}, {"k": 1, "l": 1},
        ]  # fmt: skip


class TestCaseFiles:
    FILES: Mapping[str, str] = {
        "c.yaml": "- {id: y, input: q}\n",
        "c.jsonl": '{"id": "l", "input": "q"}\n\n{"id": "m", "input": "q"}\n',
    }

    @pytest.mark.parametrize(
        ("tests", "ids"),
        [
            ("c.yaml", ["y"]),
            ("file://c.jsonl", ["l", "m"]),
            ("[file://c.jsonl, {id: own, input: q}, c.yaml]", ["l", "m", "own", "y"]),
        ],
    )
    def test_cases_replace_their_file_reference(self, tests: str, ids: list[str]) -> None:
        cases = _read_cases(f"tests: {tests}", self.FILES)
        assert [each.eval_case.id for each in cases] == ids

    def test_cases_keep_place_in_their_file(self) -> None:
        cases = _read_cases("tests: [c.jsonl, c.yaml]", self.FILES)
        places = [str(each.eval_case.place) for each in cases]
        assert places == ["c.jsonl:1", "c.jsonl:3", "c.yaml:1:3"]

    def test_shared_input_applies_to_case_files(self) -> None:
        [case] = _read_cases("input: s\ntests: c.yaml", self.FILES)
        assert [each["content"] for each in case.eval_case.input_messages] == ["s", "q"]

    def test_case_in_folder_is_named_after_folder(self) -> None:
        files = {"folder/a/case.yaml": "input: q", "folder/b/case.yaml": "{id: own, input: q}"}
        cases = _read_cases("tests: folder/", files)
        assert [each.eval_case.id for each in cases] == ["a", "own"]
        [message] = _errors("tests: folder/", {"folder/a/case.yaml": "[]"})
        assert message.startswith("folder/a/case.yaml:1:1: each case must be a mapping")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("tests: [{}]", "c.yaml:1:1: a file of cases must be a list (pass eval files"),
            ("- [", "c.yaml:1:3: invalid YAML: `[` is not closed"),
            ("", "c.yaml:1: the file is empty"),
            ("- {id: y, id: y, input: q}", "c.yaml:1:11: "),
        ],
    )
    def test_invalid_case_file_is_reported_in_that_file(self, text: str, message: str) -> None:
        assert _errors("tests: c.yaml", {"c.yaml": text})[0].startswith(message)

    def test_missing_case_file_is_reported_at_reference(self) -> None:
        assert _errors("tests: [c.yaml]") == ["f.yaml:2:9: there is no file c.yaml"]

    def test_problems_are_grouped_by_file(self) -> None:
        files = {"c.yaml": "- {id: y}\n", "d.yaml": "\n- {id: y}\n"}
        errors = _errors("tests: [c.yaml, d.yaml]\ninput: 3", files)
        assert [each.split(":")[0] for each in errors] == ["f.yaml"]
        errors = _errors("tests: [d.yaml, c.yaml]", files)
        assert [each.split(" ")[0] for each in errors] == [
            "d.yaml:2:3:", "c.yaml:1:3:", "c.yaml:1:8:",
        ]  # fmt: skip

    def test_duplicate_id_across_files_is_rejected(self) -> None:
        errors = _errors("tests: [c.yaml, c.yaml]", self.FILES)
        hint = "first used at c.yaml:1:3; give each case a unique id"
        assert errors == [f"c.yaml:1:8: duplicate case id 'y' ({hint})"]


class TestIncludedEvaluators:
    def test_included_evaluators_replace_reference(self) -> None:
        files = {
            "safe": "assertions: [{type: contains, value: a}, {include: deep}]",
            "deep": "assertions: [{type: equals, value: b}]",
        }
        own = "{id: a, input: q, assert: [{type: is-json}]}"
        suite = _read(f"assertions: [{{include: safe}}]\ntests: [{own}]", files)
        assert suite.names == ("is-json", "contains-a", "equals-b")
        assert str(suite.evaluators[2].identity.place) == "deep:1:14"

    def test_composite_members_may_be_included(self) -> None:
        files = {"safe": "assertions: [{type: contains, value: a}]"}
        mean = "aggregator: {type: weighted_average}"
        own = f"{{type: composite, assertions: [{{include: safe}}], {mean}}}"
        suite = _read(f"assertions: [{own}]\ntests: [{{id: a, input: q}}]", files)
        assert suite.names == ("composite",)

    @pytest.mark.parametrize(
        ("included", "message"),
        [
            ("gone", "f.yaml:2:46: there is no file gone"),
            ("[]", "f.yaml:2:46: `include` must be the name of a file"),
            ("itself", "itself:1:24: itself includes itself (list the evaluators directly)"),
            ("a", "c:1:24: files are included more than 3 levels deep"),
            ("list", "list:1:1: an included file needs a list of `assertions`"),
            ("text", "text:1:13: an included file needs a list of `assertions`"),
        ],
    )
    def test_invalid_include_is_reported(self, included: str, message: str) -> None:
        files = {
            **{name: f"assertions: [{{include: {then}}}]" for name, then in pairwise("abcd")},
            "itself": "assertions: [{include: itself}]",
            "list": "[]",
            "text": "assertions: none",
        }
        text = f"tests: [{{id: a, input: q, assert: [{{include: {included}}}]}}]"
        assert _errors(text, {**files, "d": files["a"]})[0].startswith(message)


class TestThresholds:
    ONE = "[{type: is-json}]"

    def _case_thresholds(self, text: str, **overrides: Any) -> list[float | None]:
        document = read_yaml(text.encode(), file="f.yaml")
        suite = read_eval_file(
            document, Overrides(**overrides), NoFiles(), variables=ConfigVariables({})
        )
        samples = suite.eval_cases or ()
        return [each.evaluators[0].identity.threshold for each in samples]

    def test_case_threshold_applies_only_to_its_case(self) -> None:
        text = (
            "assertions: [{type: is-json}]\nexecution: {threshold: 0.7}\ntests:\n"
            "- {id: a, input: q, execution: {threshold: 0.5}, threshold: 0.1}\n"
            "- {id: b, input: q, threshold: 0.6}\n"
            "- {id: c, input: q}\n"
        )
        assert self._case_thresholds(text) == [0.5, 0.6, 0.7]
        assert self._case_thresholds(text, threshold=0.9) == [0.9, 0.9, 0.9]

    def test_top_level_threshold_is_used(self) -> None:
        assert self._case_thresholds(
            f"threshold: 0.3\n{ASSERTIONS}tests: [{{id: a, input: q}}]"
        ) == [0.3]

    def test_case_thresholds_apply_to_case_scores(self) -> None:
        text = (
            "assertions: [{type: is-json}]\ntests: [{id: a, input: q, threshold: 0.5}, "
            "{id: b, input: q}]\ngate: {cases: {threshold: 0.7}}"
        )
        cases = _read(text).gate.cases
        assert cases is not None
        assert [cases.find_threshold(each) for each in "ab"] == [0.5, 0.7]

    def test_agentv_gate_scores_errors_as_zero(self) -> None:
        own = "assertions: [{type: is-json, required: true}, {type: equals, value: a}]"
        policy = _read(f"threshold: 0.6\n{own}\ntests: [{{id: a, input: q}}]\ngate: agentv").gate
        assert policy.cases == CaseThresholds(threshold=0.6, errors_score=0.0)
        assert (policy.overall.on_error, policy.overall.min_pass_rate) == ("warn", 0.0)
        required = policy.evaluators["is-json"]
        assert (required.on_error, required.min_pass_rate) == ("fail", 1.0)


class TestCustomTypes:
    def test_custom_type_runs_a_command(self) -> None:
        entries = (
            "{type: own-words, min: 3}, {type: own-words, required: false}, {name: o, type: own}"
        )
        suite = _read(f"assertions: [{entries}]\ntests: [{{id: a, input: q}}]")
        assert suite.names == ("own-words", "own-words-2", "o")
        first = suite.evaluators[0]
        assert isinstance(first, CodeJudge)
        assert first.run.command == ("bun", "run", "/w/.agentv/assertions/own-words.ts")
        assert (first.config, first.identity.type) == ({"min": 3}, "code_judge")
        assert [each.identity.required for each in suite.evaluators] == [True, False, True]

    def test_unknown_type_is_reported(self) -> None:
        errors = _errors("tests: [{id: a, input: q, assert: [{type: words}, {type: [x]}, 3]}]")
        assert [each.split(",")[0] for each in errors] == [
            "f.yaml:2:43: `type` must be code_judge",
            "f.yaml:2:58: `type` must be code_judge",
            "f.yaml:2:64: each evaluator must be a mapping with `name` and `type`",
        ]

    def test_invalid_field_of_custom_type_is_reported(self) -> None:
        [message] = _errors("tests: [{id: a, input: q, assert: [{type: own, weight: heavy}]}]")
        assert message.startswith("f.yaml:2:56: `weight` must be a number")
