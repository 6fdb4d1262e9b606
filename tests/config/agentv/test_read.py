"""Eval files: what they mean, and what is said of each that is wrong."""

import json
from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.agentv.external_files import read_jsonl
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.gate import CaseThresholds, GateThresholds
from tests.config.agentv.no_files import NoFiles

GONE = "{type: file, value: gone}"
WEIGHTS = "{type: weighted_average, weights: {C1: 2}}"
CODE = "{name: c, type: code_judge, script: [judge]}"


def _read(text: str, **overrides: Any) -> Suite:
    document = read_yaml(text.encode(), file="f.yaml")
    return read_eval_file(document, Overrides(**overrides), NoFiles(), variables={})


def _told(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(text)
    return [str(problem) for problem in caught.value.problems]


def _cases(*lines: str, key: str = "cases", shared: str = f"[{CODE}]") -> str:
    listed = "".join(f"  - {line}\n" for line in lines)
    return f"execution: {{evaluators: {shared}}}\n{key}:\n{listed}"


class TestCases:
    def test_know_their_words_in_every_generation(self) -> None:
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

    def test_may_refer_to_files(self) -> None:
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

    def test_may_ask_with_one_message_and_expect_data(self) -> None:
        suite = _read(_cases("{id: a, input: {role: user, content: q}, expected_output: {k: 1}}"))
        assert suite.eval_cases is not None
        sample = suite.eval_cases[0].eval_case
        assert sample.input_messages == ({"role": "user", "content": "q"},)
        assert sample.expected_messages == ({"role": "assistant", "content": {"k": 1}},)

    def test_keep_the_mappings_of_a_list_as_agentv_does_and_say_so(self) -> None:
        suite = _read(_cases("{id: a, input: q, expected_output: [1, {k: 1}]}"))
        assert suite.eval_cases is not None
        assert suite.eval_cases[0].eval_case.expected_messages[0]["content"] == [{"k": 1}]
        assert [problem.severity for problem in suite.notices] == ["warning"]

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("{input: q}", "3:5: a case has no 'id' (add `id: ...`)"),
            ("{id: 5, input: q}", "3:10: id must be text that is not blank, not 5"),
            ("{id: a}", "3:5: the case 'a' asks nothing (add `input: ...`)"),
            ("[just text]", "3:5: each case must be a mapping with `id` and `input`"),
            ("just text", "3:5: there is no file just text"),
            ("{id: a, input: q, rubrics: []}", "3:32: rubrics must be a list with at least"),
            ("{id: a, input: [{role: me, content: q}]}", "3:28: role must be system, user,"),
            ("{id: a, input: [{role: user}]}", "3:21: a message has neither `content` nor"),
            ("{id: a, input: {role: me}}", "3:27: role must be system, user,"),
            (
                "{id: a, input: [{role: user, content: [{type: file, value: gone}]}]}",
                "3:64: there is no file gone",
            ),
            (
                "{id: a, input: [{role: user, content: [{type: file, value: 5}]}]}",
                "3:64: a part of type file needs `value`: a path",
            ),
            (
                "{id: a, input: q, expected_output: {role: tool, content: [{type: file}]}}",
                "3:63: a part of type file needs `value`: a path",
            ),
            (
                f"{{id: a, input: q, expected_output: {{role: tool, content: [{GONE}]}}}}",
                "3:83: there is no file gone",
            ),
        ],
    )
    def test_that_are_wrong_are_told_on_their_lines(self, line: str, told: str) -> None:
        [problem] = _told(_cases(line))
        assert problem.startswith(f"f.yaml:{told}")

    def test_say_what_of_them_is_not_read(self) -> None:
        for_all = _cases("{id: a, input: q}") + "vars: {k: v}\n"
        assert _told(for_all)[0].startswith("f.yaml:4:1: `vars` is not read")
        [notice] = _read(_cases("{id: a, input: q, execution: {trials: {count: 2}}}")).notices
        assert str(notice).startswith("f.yaml:3:35: `trials` of a single case have no effect")

    def test_may_depend_on_others(self) -> None:
        cases = _cases("{id: a, input: q, depends_on: [b]}", "{id: b, input: q}")
        assert _read(cases).eval_cases is not None
        assert _told(_cases("{id: a, input: q, depends_on: [a, c]}", "{id: b1, input: q}")) == [
            "f.yaml:3:36: the case 'a' depends on itself",
            "f.yaml:3:39: the case 'a' depends on 'c', which is no case",
        ]
        [told] = _told(_cases("{id: a, input: q, depends_on: a}"))
        assert told.startswith("f.yaml:3:35: depends_on must be a list")

    def test_are_warned_once_of_what_evaluators_will_miss(self) -> None:
        cases = _cases("{id: a, input: q, workspace: w}", "{id: b, input: q, workspace: w}")
        told = [str(each) for each in _read(cases + "preprocessors: []\n").notices]
        assert [each.split(" (")[0] for each in told] == [
            "f.yaml:3:23: `workspace` has no effect",
            "f.yaml:5:1: `preprocessors` has no effect",
        ]

    def test_are_warned_of_words_that_others_come_before(self) -> None:
        own = f"evaluators: [{CODE}], assertions: [{CODE}], execution: {{evaluators: [{CODE}]}}"
        words = "input: q, input_messages: q, criteria: c, outcome: c, expected_outcome: c"
        told = [each.message for each in _read(_cases(f"{{id: a, {words}, {own}}}")).notices]
        assert told == [
            "`input` is passed over: there is `input_messages`",
            "`outcome` is passed over: there is `criteria`",
            "`expected_outcome` is passed over: there is `criteria`",
            "`evaluators` is passed over: there is `execution.evaluators`",
            "`assertions` is passed over: there is `execution.evaluators`",
        ]

    def test_are_looked_at_down_to_how_they_are_run(self) -> None:
        text = _cases("{id: a, input: q, execution: {threshhold: 1, target: t}}")
        [warning] = _read(text.replace("execution: {e", "execution: {workers: 1, e")).notices
        assert warning.message == "unknown key 'threshhold', which has no effect"

    @pytest.mark.parametrize("key", ["prompts", "imports", "scenarios", "default_test"])
    def test_of_agentv_5_are_refused(self, key: str) -> None:
        [told] = _told(_cases("{id: a, input: q}") + f"{key}: []\n")
        assert told.startswith(f"f.yaml:4:1: `{key}` is not read by this version of agentci")

    def test_have_an_id_each(self) -> None:
        assert _told(_cases("{id: a, input: q}", "{id: a, input: q}")) == [
            "f.yaml:4:10: two cases have the id 'a' (the first is f.yaml:3:5; give one another id)"
        ]

    def test_are_listed_once_and_as_a_list(self) -> None:
        assert _told("cases: []") == ["f.yaml:1:8: cases must be a list with at least one case"]
        assert "cases must be text or a list, not 3" in _told("cases: 3")[0]
        both = _told(_cases("{id: a, input: q}") + "tests: []\n")
        assert both == [
            "f.yaml:4:1: the file lists its cases twice, as `cases` and `tests` (make it one list)"
        ]

    def test_have_keys_that_are_known_or_warned_of(self) -> None:
        suite = _read(_cases("{id: a, input: q, critera: x, x-mine: 1, note: n}") + "dataste: d\n")
        assert [str(problem) for problem in suite.notices] == [
            "f.yaml:3:23: unknown key 'critera', which has no effect (did you mean 'criteria'?)",
            "f.yaml:4:1: unknown key 'dataste', which has no effect (did you mean 'dataset'?)",
        ]


class TestEvaluators:
    @pytest.mark.parametrize(
        ("entry", "told"),
        [
            ("3", "1:26: each evaluator must be a mapping with `name` and `type`, not 3"),
            ("{name: c}", "1:26: the evaluator 'c' has no 'type' (add `type: code_judge`)"),
            ("{k: 1}", "1:26: an evaluator has no 'type' (add `type: code_judge`)"),
            ("{name: c, type: latancy}", "type must be code_judge, llm_judge, rubrics,"),
            ("{name: c, type: 3}", "not 3"),
            ("{name: c, type: agent-judge}", "1:42: evaluators of type 'agent-judge' are not run"),
            ("{type: latency, threshold: 1}", "1:26: an evaluator of type latency has no 'name'"),
            (
                "{name: 7, type: latency, threshold: 1}",
                '1:33: name must be text that is not blank, not 7 (put it in quotes: "7")',
            ),
            (
                "{name: ' ', type: latency, threshold: 1}",
                "1:33: name must be text that is not blank, not ",
            ),
            (
                "{name: [c], type: latency, threshold: 1}",
                "1:33: name must be text that is not blank, not a li",
            ),
            ("{name: c, type: llm_judge}", "1:42: it asks a model, and no `judge` says which one"),
            ("{name: c, type: latency}", "1:26: the evaluator 'c' has no 'threshold'"),
            ("{name: c, type: latency, threshold: x}", "1:62: threshold must be a number of at"),
            ("{name: c, type: latency, threshold: 1, thresold: 2}", "unknown key 'thresold'"),
            ("{name: c, type: code_judge}", "1:26: code_judge needs `script`"),
            ("{name: c, type: code_judge, script: a, command: b}", "are the same field"),
            ("{name: c, type: code_judge, script: a, cwd: gone}", "1:70: there is no folder gone"),
            (
                "{name: c, type: code_judge, script: a, target: {}}",
                "1:73: it asks a model, and no `judge` says",
            ),
            (
                "{name: c, type: composite, aggregator: {type: weighted_average}}",
                "1:26: `composite` needs `evaluators`",
            ),
            (
                f"{{name: n, type: composite, aggregator: {{type: llm_judge}}, assert: [{CODE}]}}",
                "it asks a model, and no `judge` says which one",
            ),
            (
                f"{{name: n, type: composite, assert: [{CODE}], aggregator: {{type: mean}}}}",
                "type must be weighted_average, code_judge, threshold or llm_judge",
            ),
            (
                f"{{name: n, type: composite, assert: [{CODE}], aggregator: {{}}}}",
                "aggregator has no 'type'",
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
    def test_that_are_wrong_are_told_on_their_lines(self, entry: str, told: str) -> None:
        problems = _told(_cases("{id: a, input: q}", shared=f"[{entry}]"))
        assert told in problems[0]
        assert len(problems) == 1

    def test_are_a_list(self) -> None:
        text = "cases: [{id: a, input: q}]\nexecution: {evaluators: 3}"
        assert "evaluators must be a list" in _told(text)[0]
        text = f"cases: [{{id: a, input: q, assert: 3, x: [{CODE}]}}]"
        assert "assert must be a list, not 3" in _told(text)[0]

    def test_of_one_list_have_different_names(self) -> None:
        [told] = _told(_cases("{id: a, input: q}", shared=f"[{CODE}, {CODE}]"))
        second = 26 + len(CODE) + len(", {name: ")
        assert told.startswith(f"f.yaml:1:{second}: two evaluators of one list are called 'c'")

    def test_are_wanted_by_every_case(self) -> None:
        [told] = _told("cases: [{id: a, input: q}]")
        assert told.startswith("f.yaml:1:9: nothing judges the case 'a': AgentV would ask a")

    def test_of_a_case_take_the_place_of_the_files(self) -> None:
        own = "{id: a, input: q, evaluators: [{name: own, type: latency, threshold: 1}]}"
        assert _read(_cases(own)).names == ("own",)

    def test_of_a_case_with_tests_come_before_the_files(self) -> None:
        own = "id: a, input: q, assertions: [{type: latency, threshold: 1}]"
        assert _read(_cases(f"{{{own}}}", key="tests")).names == ("latency", "c")
        alone = f"{{{own}, execution: {{skip_defaults: true}}}}"
        assert _read(_cases(alone, key="tests")).names == ("latency",)

    def test_of_a_case_and_its_file_have_different_names(self) -> None:
        own = f"{{id: a, input: q, assertions: [{CODE}]}}"
        assert "two evaluators of the case 'a' are called 'c'" in _told(_cases(own, key="tests"))[0]

    def test_get_names_in_files_with_tests(self) -> None:
        listed = (
            "[{type: contains, value: x}, {type: contains, value: x}, {type: is-json}, "
            "{type: contains-any, value: [a, b]}, "
            "{type: regex, value: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]"
        )
        assert _read(_cases("{id: a, input: q}", key="tests", shared=listed)).names == (
            "contains-x", "contains-x-2", "is-json", "contains-any-2", f"regex-{'a' * 30}",
        )  # fmt: skip

    def test_are_made_once_for_all_cases(self) -> None:
        suite = _read(_cases("{id: a, input: q}", "{id: b, input: q}"))
        assert len(suite.evaluators) == 1

    def test_are_those_of_the_file_alone(self) -> None:
        [notice] = _read(_cases("{id: a, input: q}"), metrics=("response_match_score",)).notices
        assert str(notice).startswith("f.yaml:1: --metric does not judge the cases of an eval")

    def test_may_be_run_alone(self) -> None:
        own = "{id: a, input: q, evaluators: [{name: own, type: latency, threshold: 1}]}"
        suite = _read(_cases(own, "{id: b, input: q}"), only=("own",))
        assert suite.eval_cases is not None
        assert [each.eval_case.id for each in suite.eval_cases] == ["a"]
        assert suite.names == ("own", "c")


class TestTheGate:
    def test_passes_at_the_score_of_the_file_or_of_the_command_line(self) -> None:
        text = _cases("{id: a, input: q}").replace("execution: {", "execution: {threshold: 0.5, ")
        assert _read(text).evaluators[0].identity.threshold == 0.5
        assert _read(text, threshold=0.3).evaluators[0].identity.threshold == 0.3

    def test_may_look_at_whole_cases(self) -> None:
        suite = _read(_cases("{id: a, input: q}") + "gate: {cases: {}}\n")
        assert suite.gate.cases == CaseThresholds(threshold=0.8)
        assert suite.gate.overall == GateThresholds(min_pass_rate=0.0)

    def test_then_still_wants_what_is_asked_of_checks(self) -> None:
        vital = f"[{CODE[:-1]}, required: true}}, {{name: d, type: latency, threshold: 1}}]"
        text = _cases("{id: a, input: q}", shared=vital)
        suite = _read(f"{text}gate: {{min_pass_rate: 0.5, cases: {{threshold: 0.7}}}}\n")
        assert suite.gate.cases == CaseThresholds(threshold=0.7)
        assert suite.gate.overall.min_pass_rate == 0.5
        assert {name: bar.min_pass_rate for name, bar in suite.gate.evaluators.items()} == {
            "c": 1.0
        }

    def test_knows_its_evaluators(self) -> None:
        [told] = _told(_cases("{id: a, input: q}") + "gate: {evaluators: {d: {min_score: 1}}}\n")
        assert told == "f.yaml:4:21: there is no evaluator 'd' for the gate to check (there is c)"


class TestJsonLines:
    def test_have_a_case_a_line_and_share_what_is_beside_them(self) -> None:
        sidecar = read_yaml(f"execution: {{evaluators: [{CODE}]}}".encode(), file="f.yaml")
        lines = '{"id": "a", "input": "q"}\n\n{"id": "b", "input": ["q"], "metadata": {"k": null}}'
        document = read_jsonl(lines.encode(), file="f.jsonl", sidecar=sidecar)
        with pytest.raises(InputError) as caught:
            read_eval_file(document, Overrides(), NoFiles(), variables={})
        [problem] = caught.value.problems
        assert str(problem).startswith("f.jsonl:3: message must be a mapping, not the text 'q'")

    def test_stand_alone_where_every_case_says_what_judges_it(self) -> None:
        entry = {"name": "l", "type": "latency", "threshold": 1.5}
        line = json.dumps({"id": "a", "input": "q", "evaluators": [entry]})
        document = read_jsonl(line.encode(), file="f.jsonl", sidecar=None)
        assert read_eval_file(document, Overrides(), NoFiles(), variables={}).names == ("l",)

    def test_are_the_only_cases(self) -> None:
        sidecar = read_yaml(b"assertions: []\ntests: [{id: z}]", file="f.yaml")
        with pytest.raises(InputError, match=r"^f\.yaml:2:1: f\.jsonl lists the cases that"):
            read_jsonl(b'{"id": "a"}', file="f.jsonl", sidecar=sidecar)

    def test_are_of_agentv_4_where_they_have_assertions(self) -> None:
        shared = "execution: {evaluators: [{type: is-json}]}"
        sidecar = read_yaml(shared.encode(), file="f.yaml")
        entry = {"type": "contains", "value": "x"}
        for key in ("assertions", "assert"):
            line = json.dumps({"id": "a", "input": "q", key: [entry]})
            document = read_jsonl(line.encode(), file="f.jsonl", sidecar=sidecar)
            suite = read_eval_file(document, Overrides(), NoFiles(), variables={})
            assert suite.names == ("contains-x", "is-json")

    @pytest.mark.parametrize(
        ("text", "told"),
        [("", "f.jsonl:1: the file holds no cases"), ("{", "f.jsonl:1:2: invalid JSON")],
    )
    def test_that_are_none_are_told(self, text: str, told: str) -> None:
        with pytest.raises(InputError, match=told):
            read_jsonl(text.encode(), file="f.jsonl", sidecar=None)
