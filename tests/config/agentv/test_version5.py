"""Eval files of AgentV 5: prompts, variables, defaults of all cases, and types of assertions."""

import json
from collections.abc import Mapping

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentv.composite import CompositeEvaluator
from agentci.evaluators.agentv.judge_templates import Rubrics
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.model.case import AgentvCase
from agentci.model.requests import Judgement
from agentci.model.values import Place
from tests.config.agentv.no_files import NoFiles
from tests.evaluators.agentv.agentv_cases import judge_run, run_with_answer

TARGETS = {
    ".agentv/providers.yaml": "- {id: openai:m, label: default}\n- {id: openai:n, label: other}"
}


def read(
    text: str,
    files: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Suite:
    return read_eval_file(
        read_yaml(text.encode(), file="f.yaml"),
        Overrides(),
        NoFiles(texts={**TARGETS, **(files or {})}),
        variables=ConfigVariables(environ or {}, allowed=("OWN_*",)),
    )


def cases(text: str) -> list[AgentvCase]:
    return [each.eval_case for each in read(text).eval_cases or ()]


def contents(case: AgentvCase) -> list[object]:
    return [each["content"] for each in case.input_messages]


CHECK = "assert: [{type: is-json}]"


@pytest.mark.parametrize(
    ("prompts", "variables", "expected"),
    [
        ("['{{ input }}']", "{input: q}", ["q"]),
        ("['Is {{ vars.a }} {{ b.c }}?']", "{a: x, b: {c: 2}}", ["Is x 2?"]),
        ("'Say {{ a }}'", "{a: x}", ["Say x"]),
        ("[{id: p, prompt: 'Say {{ a }}'}]", "{a: x}", ["Say x"]),
        ("[file://p.txt]", "{a: x}", ["p.txt"]),
        ("[{role: system, content: '{{ a }}'}]", "{a: x}", ["x"]),
        (
            "[[{role: system, content: s}, {role: user, content: '{{ a }}'}]]",
            "{a: x}",
            ["s", "x"],
        ),
        ("['{{ input }}']", "{input: [{role: user, content: m}]}", ["m"]),
        ("[file://p.ts:make]", "{input: q}", ["q"]),
    ],
)
def test_prompt_with_vars_is_the_input(prompts: str, variables: str, expected: list[str]) -> None:
    [case] = cases(f"prompts: {prompts}\ntests: [{{id: a, vars: {variables}, {CHECK}}}]")
    assert contents(case) == expected


def test_default_test_completes_cases() -> None:
    suite = read(
        "prompts: ['{{ input }} {{ tone }}']\n"
        "default_test: {vars: {tone: now}, threshold: 0.5, metadata: {x: 1}, "
        "assert: [{type: contains, value: z}], options: {repeat: 2}}\n"
        "assert: [{type: is-json}]\n"
        "tests:\n"
        "- {id: a, vars: {input: q, tone: then, expected_output: r}}\n"
        "- {id: b, vars: {input: q}, execution: {skip_defaults: true}, assert: [{type: is-json}]}\n"
    )
    first, second = suite.eval_cases or ()
    assert [contents(each.eval_case) for each in (first, second)] == [["q then"], ["q now"]]
    assert first.eval_case.expected_messages[0]["content"] == "r"
    assert first.eval_case.metadata == {"x": 1}
    assert [each.identity.name for each in first.evaluators] == ["is-json", "contains-z"]
    assert {each.identity.threshold for each in first.evaluators} == {0.5}
    assert [each.identity.name for each in second.evaluators] == ["is-json"]
    [warning] = suite.notices
    assert warning.message == "`options.repeat` has no effect"


def test_vars_apply_to_evaluators_of_the_case_and_of_all_cases() -> None:
    suite = read(
        "prompts: [p]\nassert: [{metric: all, type: equals, value: '{{ word }}'}]\n"
        "tests:\n"
        "- {id: a, vars: {word: x}, assert: [{metric: own, type: contains, value: '{{word}}!'}]}\n"
        "- {id: b, vars: {word: y}}\n"
    )
    first, second = suite.eval_cases or ()

    def scores(case: EvalFileCase, answer: str) -> dict[str, float | None]:
        run = run_with_answer(answer)
        return {each.identity.name: judge_run(each, run).score for each in case.evaluators}

    assert scores(first, "x") == {"own": 0.0, "all": 1.0}
    assert scores(first, "x!") == {"own": 1.0, "all": 0.0}
    assert scores(second, "y") == {"all": 1.0}
    assert suite.notices == ()


def find_judge(assertion: str) -> LlmJudge:
    text = f"prompts: [p]\ntests: [{{id: a, criteria: c, assert: [{assertion}]}}]"
    [evaluator] = read(text).evaluators
    assert isinstance(evaluator, LlmJudge)
    return evaluator


def test_rubric_text_replaces_the_criteria() -> None:
    judge = find_judge("{type: llm-rubric, value: Is it kind?, threshold: 0.6, provider: other}")
    assert "## criteria ## ]]\nIs it kind?" in judge.template
    assert judge.threshold.score == 0.6
    assert judge.required_judge.judge.settings.model == "n"


def test_rubric_list_is_graded_one_by_one() -> None:
    judge = find_judge("{type: llm-rubric, value: [{operator: correctness, outcome: kind}, short]}")
    assert isinstance(judge.scale, Rubrics)
    assert [each.text for each in judge.scale.criteria] == ["kind", "short"]


def test_rubric_prompt_is_the_template() -> None:
    judge = find_judge("{type: llm-rubric, value: kind, prompt: 'Rate {{ output }}'}")
    assert judge.template == "Rate {{ output }}"
    assert isinstance(judge.scale, Rubrics)
    assert find_judge("{type: llm-rubric}").template == ""


@pytest.mark.parametrize("value", ["ship it", "{goal: ship it}"])
def test_goal_is_judged_by_tools_and_answer(value: str) -> None:
    judge = find_judge(f"{{type: 'trajectory:goal-success', value: {value}}}")
    assert "ship it" in judge.template
    assert "{{ tool_calls }}" in judge.template


def judge_answer(assertion: str, answer: str) -> Judgement:
    [evaluator] = read(f"prompts: [p]\ntests: [{{id: a, assert: [{assertion}]}}]").evaluators
    return judge_run(evaluator, run_with_answer(answer))


@pytest.mark.parametrize(
    ("assertion", "passing", "failing"),
    [
        ("{type: not-contains, value: x}", "y", "x"),
        ("{type: not-contains, value: x, negate: true}", "x", "y"),
    ],
)
def test_negated_type_inverts_the_result(assertion: str, passing: str, failing: str) -> None:
    assert judge_answer(assertion, passing).passed is True
    assert judge_answer(assertion, failing).passed is False


MEMBERS = (
    "assert: [{type: contains, value: a, weight: 3}, {type: contains, value: b}, "
    "{type: contains, value: c, weight: 0}]"
)


@pytest.mark.parametrize(
    ("fields", "answer", "score", "passed"),
    [
        ("threshold: 0.7", "a", 0.75, True),
        ("threshold: 0.8", "a", 0.75, False),
        ("weight: 1", "a", 0.75, False),
        ("weight: 1", "ab", 1.0, True),
        ("threshold: 0.7, min_score: 0.8", "a", 0.75, False),
    ],
)
def test_assert_set_is_the_mean_by_weight(
    fields: str, answer: str, score: float, passed: bool
) -> None:
    found = judge_answer(f"{{type: assert-set, {fields}, {MEMBERS}}}", answer)
    assert (found.score, found.passed) == (score, passed)


def test_assert_set_without_threshold_passes_if_every_member_does() -> None:
    members = "assert: [{type: contains, value: a, min_score: 0}]"
    found = judge_answer(f"{{type: assert-set, {members}}}", "x")
    assert (found.score, found.passed) == (0.0, True)


def test_assert_set_needs_members() -> None:
    with pytest.raises(InputError, match="`assert-set` needs `evaluators`"):
        read("prompts: [p]\ntests: [{id: a, assert: [{type: assert-set}]}]")


def test_nested_sets_keep_their_names() -> None:
    inner = "{metric: inner, type: assert-set, assert: [{metric: x, type: is-json}]}"
    text = f"prompts: [p]\ntests: [{{id: a, assert: [{{type: assert-set, assert: [{inner}]}}]}}]"
    [outer] = read(text).evaluators
    assert isinstance(outer, CompositeEvaluator)
    assert [each.identity.name for each in outer.members] == ["inner"]


def test_what_needs_a_live_environment_is_a_warning_on_its_line() -> None:
    suite = read(
        "prompts: [p, q]\nproviders: [codex]\nevaluate_options: {repeat: 2}\n"
        "environment: {type: host}\nextensions: [x]\n"
        f"tests: [{{id: a, {CHECK}}}]"
    )
    assert [(each.place.line if each.place else 0, each.message) for each in suite.notices] == [
        (4, "`environment` has no effect"),
        (5, "`extensions` has no effect"),
    ]


def test_each_prompt_makes_a_case_of_every_test() -> None:
    text = (
        "prompts:\n- {id: one way, prompt: 'Sum up {{ t }}'}\n- 'Say {{ t }}'\n"
        "- {file: p.md}\n- {messages: [{role: system, content: '{{ t }}'}]}\n"
        f"tests: [{{id: a, vars: {{t: x}}, {CHECK}}}, {{id: b, depends_on: [a], {CHECK}}}]"
    )
    found = [(each.id, contents(each)) for each in cases(text)]
    assert found[:4] == [
        ("a__prompt_one-way", ["Sum up x"]),
        ("a__prompt_prompt-ff97a73457ec", ["Say x"]),
        ("a__prompt_p.md", ["p.md"]),
        ("a__prompt_chat-94c10087ee32", ["x"]),
    ]
    assert [each.partition("__")[0] for each, _ in found] == ["a"] * 4 + ["b"] * 4


def test_list_of_messages_is_one_prompt() -> None:
    messages = "[{role: system, content: s}, {role: user, content: q}]"
    [case] = cases(f"prompts: {messages}\ntests: [{{id: a, {CHECK}}}]")
    assert (case.id, contents(case)) == ("a", ["s", "q"])


@pytest.mark.parametrize("prompt", ["file://p.py:make", "{function_file: p.js}", "{command: [x]}"])
def test_prompt_of_a_program_has_no_effect(prompt: str) -> None:
    suite = read(f"prompts: [{prompt}]\ntests: [{{id: a, vars: {{input: q}}, {CHECK}}}]")
    assert [each.message for each in suite.notices] == [
        "a prompt that a program makes has no effect"
    ]
    assert contents((suite.eval_cases or ())[0].eval_case) == ["q"]


@pytest.mark.parametrize(
    ("fields", "name"), [("vars: {input: q, x: y}", ""), ("input: q, vars: {x: y}", "metric: m, ")]
)
def test_file_with_cases_of_version_5_is_of_version_5(fields: str, name: str) -> None:
    entry = f"{{{name}type: equals, value: '{{{{ x }}}}'}}"
    [evaluator] = read(f"tests: [{{id: a, {fields}, assert: [{entry}]}}]").evaluators
    assert judge_run(evaluator, run_with_answer("y")).passed is True


def test_cases_are_read_from_csv_and_json() -> None:
    files = {"c.csv": "id,vars.input,__expected\na,q,is-json\n", "c.json": '{"tests": []}'}
    files["c.json"] = json.dumps({"tests": [{"id": "b", "input": "r", "assert": ["Is kind."]}]})
    suite = read("prompts: ['{{ input }}']\ntests: [file://c.csv]", files)
    [case] = suite.eval_cases or ()
    assert (str(case.eval_case.place), contents(case.eval_case)) == ("c.csv:2", ["q"])
    suite = read("judge: {provider: openai, model: m}\ntests: c.json", files)
    assert [each.eval_case.id for each in suite.eval_cases or ()] == ["b"]


@pytest.mark.parametrize("program", ["gen.py", "gen.py:create_tests", "file://a/gen.mjs"])
def test_program_that_makes_cases_is_an_error(program: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"tests: [{program}]")
    [problem] = caught.value.problems
    assert (problem.place, "no program makes cases" in problem.message) == (
        Place(file="f.yaml", line=1, column=9),
        True,
    )


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("file://gone.js", "there is no file gone.js"),
        ("file://a.py:f", "names a.py, which is not a file in JavaScript or TypeScript"),
        ("''", "`transform` must be JavaScript"),
        ("[x]", "`transform` must be JavaScript"),
    ],
)
def test_invalid_transform_is_an_error(transform: str, message: str) -> None:
    text = f"tests: [{{id: a, input: q, assert: [{{type: is-json, transform: {transform}}}]}}]"
    with pytest.raises(InputError, match=message):
        read(text)


def test_transform_of_a_conversation_has_no_effect() -> None:
    turn = "turns: [{input: q, assert: [{type: is-json}]}]"
    text = (
        f"prompts: [p]\ntests: [{{id: a, mode: conversation, options: {{transform: x}}, {turn}}}]"
    )
    [warning] = read(text).notices
    assert warning.message == "`options.transform` has no effect"


@pytest.mark.parametrize("single", ["Is kind.", "{type: is-json}"])
def test_single_evaluator_is_a_list(single: str) -> None:
    text = f"judge: {{provider: openai, model: m}}\nprompts: [p]\nassert: {single}\n"
    suite = read(f"{text}tests: [{{id: a, assert: {{type: contains, value: x}}}}]")
    [case] = suite.eval_cases or ()
    own, _ = [each.identity.name for each in case.evaluators]
    assert own == "contains-x"


def test_environment_of_the_file_is_inserted() -> None:
    suite = read(
        "env: {HOME: home, SIZE: 3}\nprompts: ['{{ env.HOME }} {{ env.SIZE }}']\n"
        f"tests: [{{id: a, {CHECK}}}]"
    )
    assert contents((suite.eval_cases or ())[0].eval_case) == ["home 3"]
    assert suite.notices == ()


@pytest.mark.parametrize("place", ["prompts", "assert"])
def test_filter_of_a_variable_is_an_error(place: str) -> None:
    """A text that stays as it is would pass `not-contains`."""
    prompt = "{{ x | upper }}" if place == "prompts" else "{{ x }} {{ other | upper }}"
    value = "{{ x|upper }}" if place == "assert" else "{{ x }}"
    with pytest.raises(InputError) as caught:
        read(
            f"prompts: ['{prompt}']\ntests:\n- id: a\n  vars: {{x: y}}\n"
            f"  assert: [{{type: not-contains, value: '{value}'}}]"
        )
    [problem] = caught.value.problems
    assert "is not replaced: only names are, without filters" in problem.message


def test_number_of_a_variable_is_text_in_an_evaluator() -> None:
    suite = read(
        "prompts: [p]\ntests: [{id: a, vars: {n: 5}, assert: [{type: contains, value: '{{ n }}'}]}]"
    )
    assert [each.identity.name for each in suite.evaluators] == ["contains-5"]


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        ("3", (3, "pass_at_k", None)),
        ("{count: 2, strategy: mean, early_exit: true, cost_limit_usd: 1}", (2, "mean", 1.0)),
    ],
)
def test_repeated_runs_are_trials(repeat: str, expected: tuple[int, str, float | None]) -> None:
    text = f"prompts: [p]\nevaluate_options: {{repeat: {repeat}}}\ntests: [{{id: a, {CHECK}}}]"
    for execution in ("", "\nexecution: {threshold: 0.5}"):
        trials = read(text + execution).trials
        assert trials is not None
        assert (trials.count, trials.strategy, trials.cost_limit_usd) == expected
    assert read(f"{text}\nexecution: {{trials: {{count: 7}}}}").trials.count == 7  # type: ignore[union-attr]


def test_unknown_strategy_of_repeated_runs_is_a_warning() -> None:
    options = "evaluate_options: {repeat: {count: 2, strategy: pass_all}}"
    suite = read(f"prompts: [p]\n{options}\ntests: [{{id: a, {CHECK}}}]")
    assert [each.message for each in suite.notices] == [
        "`repeat` with the strategy 'pass_all' has no effect"
    ]
    assert suite.trials is None


def test_list_of_texts_makes_a_case_of_each() -> None:
    text = (
        "prompts: ['{{ q }} {{ l }}']\ndefault_test: {vars: {q: [x, y]}}\ntests:\n"
        "- {id: 'a-{{ q }}-{{ l }}', vars: {l: [es, fr]}, assert: "
        "[{type: contains, value: '{{ l }}'}]}\n"
        "- {id: b, vars: {q: z, l: [es, fr], m: [{role: user}], n: []}, "
        f"{CHECK}}}\n- {{id: b-2, vars: {{q: z, l: 1}}, {CHECK}}}"
    )
    found = [(each.id, contents(each)) for each in cases(text.replace("- {id: b-2", "- {id: c"))]
    assert found == [
        ("a-x-es", ["x es"]),
        ("a-x-fr", ["x fr"]),
        ("a-y-es", ["y es"]),
        ("a-y-fr", ["y fr"]),
        ("b", ["z es"]),
        ("b-2", ["z fr"]),
        ("c", ["z 1"]),
    ]
    with pytest.raises(InputError, match="duplicate case id 'b-2'"):
        read(text)


def test_variable_may_name_another() -> None:
    [case] = cases(
        "prompts: ['{{ q }}']\n"
        f"tests: [{{id: a, vars: {{p: {{n: Ada}}, q: 'Greet {{{{ vars.p.n }}}}'}}, {CHECK}}}]"
    )
    assert contents(case) == ["Greet Ada"]


def test_rubric_that_states_nothing_has_the_texts_beside_it() -> None:
    judge = "judge: {provider: openai, model: m}\nprompts: [p]\n"
    entries = "[{type: llm-rubric}, Is kind., Is short.]"
    [case] = cases(f"{judge}tests: [{{id: a, assert: {entries}}}]")
    assert case.criteria == "Is kind.\nIs short."
    [case] = cases(f"{judge}tests: [{{id: a, assert: [{{type: llm-rubric, value: x}}, Is kind.]}}]")
    assert case.criteria == ""
    with pytest.raises(InputError, match="has no criteria for evaluator 'llm-judge'"):
        read(f"{judge}tests: [{{id: a, assert: [{{type: llm-rubric}}]}}]")


def test_too_many_cases_of_one_are_an_error() -> None:
    texts = f"[{', '.join('abcdefghijk')}]"
    variables = ", ".join(f"{name}: {texts}" for name in "abcd")
    with pytest.raises(InputError, match="lists in `vars` make 14641 cases of one"):
        read(f"prompts: [p]\ntests: [{{id: a, vars: {{{variables}}}, {CHECK}}}]")


def test_missing_prompt_file_is_an_error() -> None:
    with pytest.raises(InputError, match=r"there is no file gone\.txt"):
        read(f"prompts: [file://gone.txt]\ntests: [{{id: a, {CHECK}}}]")


def test_cost_has_a_threshold() -> None:
    [evaluator] = read(
        "prompts: [p]\nassert: [{type: cost, threshold: 2}]\ntests: [{id: a}]"
    ).evaluators
    assert judge_run(evaluator, run_with_answer("x", cost_usd=1.0)).passed is True
    assert judge_run(evaluator, run_with_answer("x", cost_usd=3.0)).passed is False


def test_place_of_rewritten_evaluator_is_its_own() -> None:
    text = "prompts: [p]\ntests:\n- id: a\n  assert:\n  - {metric: m, type: not-contains, value: x}"
    [evaluator] = read(text).evaluators
    assert str(evaluator.identity.place) == "f.yaml:5:5"


SCENARIOS = """\
prompts: ["{{ phrase }} in {{ language }}"]
scenarios:
- config:
  - {id: es, vars: {language: Spanish, hello: hola}}
  - {vars: {language: French, hello: bonjour}, assert: [{type: is-json}]}
  tests:
  - {vars: {phrase: hello}, assert: [{type: equals, value: "{{ hello }}"}]}
  - {id: own, metadata: {a: 1}, vars: {phrase: bye}}
"""


def test_scenarios_join_each_row_with_each_test() -> None:
    suite = read(f"{SCENARIOS}assert: [{{type: contains, value: x}}]\n")
    found = suite.eval_cases or ()
    assert [(each.eval_case.id, contents(each.eval_case)) for each in found] == [
        ("es__scenario_test_1", ["hello in Spanish"]),
        ("own", ["bye in Spanish"]),
        ("scenario-1-2-1", ["hello in French"]),
        ("own-2", ["bye in French"]),
    ]
    names = [[each.identity.name for each in case.evaluators] for case in found]
    assert names == [
        ["equals-hola", "contains-x"],
        ["contains-x"],
        ["is-json", "equals-bonjour", "contains-x"],
        ["is-json", "contains-x"],
    ]


def test_scenarios_of_files_follow_tests() -> None:
    text = f"prompts: [p]\ntests: [{{id: a, {CHECK}}}]\nscenarios: [file://s.yaml]"
    rows = f"- {{config: [{{id: s}}], tests: [{{{CHECK}}}]}}"
    for content in (rows, f"scenarios:\n{rows}"):
        suite = read(text, {"s.yaml": content})
        assert [each.eval_case.id for each in suite.eval_cases or ()] == ["a", "s"]


def test_invalid_scenario_is_an_error() -> None:
    with pytest.raises(InputError, match="2:13: a scenario needs the lists `config` and `tests`"):
        read(f"tests: [{{id: a, {CHECK}}}]\nscenarios: [{{config: []}}]")


@pytest.mark.parametrize(
    "imports",
    ["imports: {tests: [{path: c.yaml}]}", "tests: [{include: c.yaml, type: tests}]"],
)
def test_imported_cases_are_evaluated(imports: str) -> None:
    suite = read(f"prompts: [p]\n{imports}", {"c.yaml": f"[{{id: c, {CHECK}}}]"})
    assert [each.eval_case.id for each in suite.eval_cases or ()] == ["c"]


def test_imported_eval_files_are_a_warning() -> None:
    text = f"prompts: [p]\nimports: {{suites: [{{path: x}}]}}\ntests: [{{id: a, {CHECK}}}, "
    suite = read(f"{text}{{include: y, type: suite}}]")
    assert [each.message for each in suite.notices] == [
        "`imports.suites` has no effect",
        "an included eval file has no effect",
    ]


def test_default_test_may_be_a_file() -> None:
    # Every file contains its own name.
    text = "prompts: ['{{ input }}']\ndefault_test: 'file://vars: {input: q}'\n"
    [case] = cases(f"{text}tests: [{{id: a, {CHECK}}}]")
    assert contents(case) == ["q"]


def test_included_list_may_be_named_assert() -> None:
    suite = read(
        "prompts: [p]\nassert: [{include: x}]\ntests: [{id: a}]",
        {"x": "assert: [{type: is-json}]"},
    )
    assert [each.identity.name for each in suite.evaluators] == ["is-json"]


def test_environment_is_inserted_in_its_new_spelling() -> None:
    text = (
        "prompts: ['{{ env.OWN_A }}']\ntests:\n- id: a\n  assert:\n"
        "  - {type: contains, value: '{{ env.OWN_B | default(\"good\") }} {{ env.OWN_C }}'}\n"
    )
    suite = read(text, environ={"OWN_A": "q"})
    assert [contents(each.eval_case) for each in suite.eval_cases or ()] == [["q"]]
    assert suite.evaluators[0].identity.name == "contains-good {{ env.OWN_C }}"
    [warning] = suite.notices
    assert str(warning).startswith(
        "f.yaml:5:29: environment variable OWN_C is not set: its placeholder stays"
    )
    with pytest.raises(InputError, match="HOME is not in env-allow"):
        read(text.replace("OWN_B", "HOME"))


def test_variable_of_a_target_that_is_only_named_may_be_unset() -> None:
    target = "target: {name: own, extends: '${{ OWN_TARGET }}'}"
    suite = read(f"prompts: [p]\n{target}\ntests: [{{id: a, assert: [Is kind.]}}]")
    [judge] = suite.evaluators
    assert isinstance(judge, LlmJudge)
    assert judge.required_judge.judge.settings.unset_variables == ("OWN_TARGET",)


def test_rubric_text_may_name_the_expected_output() -> None:
    text = "{type: llm-rubric, value: 'Matches {{ expected_output }}.'}"
    suite = read(
        f"prompts: [p]\nenv: {{A: '{{{{ env.OWN_A }}}}'}}\nassert: [{text}]\n"
        "tests: [{id: a, expected_output: e}, {id: b, vars: {expected_output: f}}]"
    )
    first, second = suite.evaluators
    assert isinstance(first, LlmJudge)
    assert isinstance(second, LlmJudge)
    assert "Matches {{ expected_output }}.\n" in first.template
    assert "Matches f.\n" in second.template
    assert "{{ candidate_answer }}" in first.template
    assert suite.notices == ()


@pytest.mark.parametrize(
    "value",
    ["{id: x, outcome: Is kind., weight: 2}", "{criteria: [{id: x, outcome: Is kind.}]}"],
)
def test_rubric_may_be_a_single_criterion(value: str) -> None:
    [judge] = read(
        f"prompts: [p]\ntests: [{{id: a, assert: [{{type: llm-rubric, value: {value}}}]}}]"
    ).evaluators
    assert isinstance(judge, LlmJudge)
    assert isinstance(judge.scale, Rubrics)
    assert "Is kind." in judge.scale.text
