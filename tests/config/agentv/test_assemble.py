"""What eval files of AgentV 4 do not write out: it is put together as AgentV 4.42.4 does it."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.code_judge import CodeJudge
from tests.config.agentv.no_files import NoFiles

JUDGED = "assertions: [{type: is-json}]\n"


def _read(text: str, texts: Mapping[str, str] | None = None, **variables: str) -> Suite:
    document = read_yaml(text.encode(), file="f.yaml")
    return read_eval_file(document, Overrides(), NoFiles(texts or {}), variables=variables)


def _judged(text: str, texts: Mapping[str, str] | None = None) -> list[EvalFileCase]:
    return list(_read(JUDGED + text, texts).eval_cases or ())


def _asked(text: str) -> list[Any]:
    [judged] = _judged(text)
    return [message["content"] for message in judged.eval_case.input_messages]


def _told(text: str, texts: Mapping[str, str] | None = None, **variables: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(JUDGED + text, texts, **variables)
    return [str(problem) for problem in caught.value.problems]


def _warned(text: str) -> list[str]:
    return [str(problem) for problem in _read(text).notices]


class TestVars:
    def test_are_put_into_what_is_asked_and_expected(self) -> None:
        [judged] = _judged(
            "input: For {{who}}.\n"
            "tests:\n"
            "- id: '{{who}}'\n"
            "  vars: {who: Ada, of: {kin: [1, a], n: 2.0}, nil: null}\n"
            "  criteria: greets {{ who }} {{of.kin}} {{of.n}} {{nil}}\n"
            "  input: [{role: user, content: [{type: text, value: 'Hi {{who}}'}]}]\n"
            "  expected_output: '{{of}}'\n"
            "  metadata: {to: '{{who}}'}\n"
        )
        sample = judged.eval_case
        assert sample.criteria == 'greets Ada [1,"a"] 2 null'
        assert [each["content"] for each in sample.input_messages] == [
            "For Ada.", [{"type": "text", "value": "Hi Ada"}],
        ]  # fmt: skip
        assert sample.expected_messages[0]["content"] == {"kin": [1, "a"], "n": 2.0}
        assert (sample.id, sample.metadata) == ("{{who}}", {"to": "{{who}}"})

    def test_that_are_not_there_leave_the_placeholder_and_are_warned_of(self) -> None:
        text = JUDGED + "tests:\n- {id: a, vars: {who: Ada}, input: 'x {{whom}} {{who.is}}'}\n"
        rest = "its placeholder is not replaced (did you mean 'who'?)"
        assert _warned(text) == [
            f"f.yaml:3:36: unknown variable 'whom': {rest}",
            f"f.yaml:3:36: unknown variable 'who.is': {rest}",
        ]
        assert _asked(text.removeprefix(JUDGED)) == ["x {{whom}} {{who.is}}"]

    def test_are_not_put_into_evaluators(self) -> None:
        own = "assert: [{type: equals, value: '{{who}} {{output}}'}]"
        [warning] = _warned(f"tests:\n- {{id: a, vars: {{who: Ada}}, input: q, {own}}}\n")
        assert warning == (
            "f.yaml:2:70: `vars` do not apply to evaluators, as in AgentV: {{who}} is not replaced "
            "(write the value itself)"
        )

    def test_leave_texts_alone_where_there_are_none(self) -> None:
        assert _asked("tests: [{id: a, input: 'x {{who}}'}]") == ["x {{who}}"]
        assert not _warned(JUDGED + "tests: [{id: a, input: 'x {{who}}'}]")

    def test_are_a_mapping(self) -> None:
        [told] = _told("tests: [{id: a, input: q, vars: [1]}]")
        assert told.startswith("f.yaml:2:33: `vars` must be a mapping")


class TestTheEnvironment:
    FILE = "assertions: [{type: equals, value: 'v ${{ NAME }}'}]\ntests: [{id: a, input: q}]\n"

    def test_is_read_by_files_with_tests(self) -> None:
        suite = _read(self.FILE, NAME="x")
        assert suite.names == ("equals-v x",)

    def test_may_hold_numbers_and_truth(self) -> None:
        text = "assertions: [{type: latency, threshold: '${{ MS }}', negate: '${{ NOT }}'}]\n"
        [judge] = _read(text + "tests: [{id: a, input: q}]", MS="5", NOT="false").evaluators
        assert judge.identity.threshold == 0.8
        [judge] = _read(text + "tests: [{id: a, input: q}]", MS="1.5", NOT="true").evaluators
        with pytest.raises(InputError, match="`threshold` must be a number"):
            _read(text + "tests: [{id: a, input: q}]", MS="07", NOT="true")

    def test_is_to_hold_what_a_file_names(self) -> None:
        text = "tests: [{id: a, input: 'x ${{NAME}} ${{NAME}}'}]"
        [told] = _told(text)
        assert told == (
            "f.yaml:2:24: environment variable NAME is not set "
            "(set it for agentci, for example in `env:` of the workflow step)"
        )

    def test_is_not_asked_for_what_has_no_effect(self) -> None:
        text = (
            "description: of ${{ VAR }}\ntarget: ${{ A }}\nx-mine: ${{ B }}\n"
            "execution: {target: '${{ C }}'}\n"
        )
        assert _asked(text + "tests: [{id: a, input: q, workspace: '${{ D }}'}]") == ["q"]

    def test_is_not_read_by_older_files(self) -> None:
        text = "assertions: [{type: is-json, name: j}]\ncases: [{id: a, input: '${{ NAME }}'}]"
        [judged] = _read(text).eval_cases or ()
        assert judged.eval_case.input_messages[0]["content"] == "${{ NAME }}"


class TestSharedInput:
    def test_comes_before_that_of_each_case(self) -> None:
        case = "tests: [{id: a, input: {role: user, content: q}}]"
        assert _asked(f"input: first\n{case}") == ["first", "q"]
        assert _asked(f"input: {{role: system, content: s}}\n{case}") == ["s", "q"]
        assert _asked(f"input: {{some: data}}\n{case}") == [{"some": "data"}, "q"]

    def test_may_be_left_out(self) -> None:
        skips = "execution: {skip_defaults: true}, assert: [{type: is-json}]"
        assert _asked(f"input: first\ntests: [{{id: a, input: q, {skips}}}]") == ["q"]

    def test_does_not_ask_for_a_case(self) -> None:
        assert _told("input: first\ntests: [{id: a}]") == [
            "f.yaml:3:9: case 'a' has no input (add `input: ...`)"
        ]

    def test_is_told_where_it_cannot_be_read(self) -> None:
        assert "f.yaml:2:8: `input` must be" in _told("input: 3\ntests: [{id: a, input: q}]")[0]
        assert "f.yaml:3:24: `input` must be" in _told("input: s\ntests: [{id: a, input: 3}]")[0]

    def test_may_be_files(self) -> None:
        files = [{"type": "file", "value": "a.txt"}, {"type": "file", "value": "b.txt"}]
        shared = "input: s\ninput_files: [a.txt, b.txt]\n"
        [judged] = _judged(shared + "tests: [{id: a, input: q}]")
        first, second = judged.eval_case.input_messages
        assert first == {"role": "user", "content": "s"}
        assert second == {"role": "user", "content": [*files, {"type": "text", "value": "q"}]}
        assert judged.eval_case.input_files == ("/w/a.txt", "/w/b.txt")

    def test_gives_way_to_the_files_of_a_case(self) -> None:
        own = "{id: a, input: q, input_files: ['{{f}}'], vars: {f: x}}"
        [judged] = _judged(f"input_files: [gone]\ntests: [{own}]")
        assert judged.eval_case.input_files == ("/w/x",)

    def test_puts_files_before_texts_alone(self) -> None:
        own = "{id: a, input_files: [f], input: [{role: user, content: q}]}"
        [told] = _told(f"tests: [{own}]")
        assert told == (
            "f.yaml:2:42: `input_files` requires a text `input` "
            "(refer to files in messages: {type: file, value: PATH})"
        )
        [told] = _told("tests: [{id: a, input: q, input_files: f}]")
        assert told.startswith("f.yaml:2:40: `input_files` must be a list")

    def test_stays_where_it_is_written(self) -> None:
        [told] = _told("input_files:\n- gone\ntests: [{id: a, input: q}]")
        assert told.startswith("f.yaml:3:3: there is no file gone")


class TestSharedMetadata:
    def test_give_way_to_those_of_a_case(self) -> None:
        own = "{id: a, input: q, metadata: {l: 2}}, {id: b, input: q}"
        text = f"metadata: {{k: 1, l: 1}}\ntests: [{own}]"
        assert [each.eval_case.metadata for each in _judged(text)] == [
            {"k": 1, "l": 2}, {"k": 1, "l": 1},
        ]  # fmt: skip


class TestCasesInOtherFiles:
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
    def test_take_the_place_of_their_path(self, tests: str, ids: list[str]) -> None:
        judged = _judged(f"tests: {tests}", self.FILES)
        assert [each.eval_case.id for each in judged] == ids

    def test_keep_their_places(self) -> None:
        judged = _judged("tests: [c.jsonl, c.yaml]", self.FILES)
        places = [str(each.eval_case.place) for each in judged]
        assert places == ["c.jsonl:1", "c.jsonl:3", "c.yaml:1:3"]

    def test_get_what_is_shared(self) -> None:
        [judged] = _judged("input: s\ntests: c.yaml", self.FILES)
        assert [each["content"] for each in judged.eval_case.input_messages] == ["s", "q"]

    def test_of_folders_are_called_as_those(self) -> None:
        files = {"folder/a/case.yaml": "input: q", "folder/b/case.yaml": "{id: own, input: q}"}
        judged = _judged("tests: folder/", files)
        assert [each.eval_case.id for each in judged] == ["a", "own"]
        [told] = _told("tests: folder/", {"folder/a/case.yaml": "[]"})
        assert told.startswith("folder/a/case.yaml:1:1: each case must be a mapping")

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("tests: [{}]", "c.yaml:1:1: a file of cases must be a list (pass eval files"),
            ("- [", "c.yaml:2:1: invalid YAML"),
            ("", "c.yaml:1: the file is empty"),
            ("- {id: y, id: y, input: q}", "c.yaml:1:11: "),
        ],
    )
    def test_that_are_broken_are_told_in_their_file(self, text: str, told: str) -> None:
        assert _told("tests: c.yaml", {"c.yaml": text})[0].startswith(told)

    def test_that_are_missing_are_told_where_they_are_named(self) -> None:
        assert _told("tests: [c.yaml]") == ["f.yaml:2:9: there is no file c.yaml"]

    def test_are_told_file_by_file(self) -> None:
        files = {"c.yaml": "- {id: y}\n", "d.yaml": "\n- {id: y}\n"}
        told = _told("tests: [c.yaml, d.yaml]\ninput: 3", files)
        assert [each.split(":")[0] for each in told] == ["f.yaml"]
        told = _told("tests: [d.yaml, c.yaml]", files)
        assert [each.split(" ")[0] for each in told] == [
            "d.yaml:2:3:", "c.yaml:1:3:", "c.yaml:1:8:",
        ]  # fmt: skip

    def test_have_ids_that_no_other_has(self) -> None:
        told = _told("tests: [c.yaml, c.yaml]", self.FILES)
        hint = "first used at c.yaml:1:3; give each case a unique id"
        assert told == [f"c.yaml:1:8: duplicate case id 'y' ({hint})"]


class TestIncludedEvaluators:
    def test_take_the_place_of_their_name(self) -> None:
        files = {
            "safe": "assertions: [{type: contains, value: a}, {include: deep}]",
            "deep": "assertions: [{type: equals, value: b}]",
        }
        own = "{id: a, input: q, assert: [{type: is-json}]}"
        suite = _read(f"assertions: [{{include: safe}}]\ntests: [{own}]", files)
        assert suite.names == ("is-json", "contains-a", "equals-b")
        assert str(suite.evaluators[2].identity.place) == "deep:1:14"

    def test_may_be_members(self) -> None:
        files = {"safe": "assertions: [{type: contains, value: a}]"}
        mean = "aggregator: {type: weighted_average}"
        own = f"{{type: composite, assertions: [{{include: safe}}], {mean}}}"
        suite = _read(f"assertions: [{own}]\ntests: [{{id: a, input: q}}]", files)
        assert suite.names == ("composite",)

    @pytest.mark.parametrize(
        ("included", "told"),
        [
            ("gone", "f.yaml:2:46: there is no file gone"),
            ("[]", "f.yaml:2:46: `include` must be the name of a file"),
            ("itself", "itself:1:24: itself includes itself (list the evaluators directly)"),
            ("a", "c:1:24: files are included more than 3 levels deep"),
            ("list", "list:1:1: an included file needs a list of `assertions`"),
            ("text", "text:1:13: an included file needs a list of `assertions`"),
        ],
    )
    def test_that_cannot_be_had_are_told(self, included: str, told: str) -> None:
        files = {
            **{name: f"assertions: [{{include: {then}}}]" for name, then in pairwise("abcd")},
            "itself": "assertions: [{include: itself}]",
            "list": "[]",
            "text": "assertions: none",
        }
        text = f"tests: [{{id: a, input: q, assert: [{{include: {included}}}]}}]"
        assert _told(text, {**files, "d": files["a"]})[0].startswith(told)


class TestThresholds:
    ONE = "[{type: is-json}]"

    def _lines(self, text: str, **overrides: Any) -> list[float | None]:
        document = read_yaml(text.encode(), file="f.yaml")
        suite = read_eval_file(document, Overrides(**overrides), NoFiles(), variables={})
        samples = suite.eval_cases or ()
        return [each.evaluators[0].identity.threshold for each in samples]

    def test_of_a_case_hold_for_it_alone(self) -> None:
        text = (
            "assertions: [{type: is-json}]\nexecution: {threshold: 0.7}\ntests:\n"
            "- {id: a, input: q, execution: {threshold: 0.5}, threshold: 0.1}\n"
            "- {id: b, input: q, threshold: 0.6}\n"
            "- {id: c, input: q}\n"
        )
        assert self._lines(text) == [0.5, 0.6, 0.7]
        assert self._lines(text, threshold=0.9) == [0.9, 0.9, 0.9]

    def test_of_the_file_may_stand_at_its_top(self) -> None:
        assert self._lines(f"threshold: 0.3\n{JUDGED}tests: [{{id: a, input: q}}]") == [0.3]

    @pytest.mark.parametrize(
        ("own", "column"), [("threshold: 0.5", 38), ("execution: {threshold: 0.5}", 50)]
    )
    def test_of_a_case_do_not_go_with_a_gate_over_cases(self, own: str, column: int) -> None:
        text = f"tests: [{{id: a, input: q, {own}}}]\ngate: {{cases: {{}}}}"
        [told] = _told(text)
        assert told == (
            f"f.yaml:2:{column}: `threshold` of a case cannot be combined with `gate.cases` "
            "(remove `gate.cases`, or set `min_score` in evaluators)"
        )


class TestTypesOfOnesOwn:
    def test_are_commands(self) -> None:
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

    def test_that_nobody_knows_are_told(self) -> None:
        told = _told("tests: [{id: a, input: q, assert: [{type: words}, {type: [x]}, 3]}]")
        assert [each.split(",")[0] for each in told] == [
            "f.yaml:2:43: `type` must be code_judge",
            "f.yaml:2:58: `type` must be code_judge",
            "f.yaml:2:64: each evaluator must be a mapping with `name` and `type`",
        ]

    def test_are_told_where_they_are_wrong(self) -> None:
        [told] = _told("tests: [{id: a, input: q, assert: [{type: own, weight: heavy}]}]")
        assert told.startswith("f.yaml:2:56: `weight` must be a number")
