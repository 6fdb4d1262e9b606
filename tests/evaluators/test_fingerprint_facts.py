"""A fingerprint changes with a part of the expectation if and only if a result can change with it.

Every type of evaluator has an example here. One value of the expectation after the other is
changed; what the evaluator sends and concludes, for runs that fit the one or the other
expectation, tells whether its result can change.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest
from msgspec import Struct, structs

from agentci._util.text.templates import MissingPlaceholderError, fill_placeholders
from agentci.config.overrides import Overrides
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.vertex_metric import make_hosted_evaluator
from agentci.evaluators.agentv.conversation import (
    Conversation,
    ConversationEvaluator,
    ConversationTurn,
)
from agentci.evaluators.agentv.registry import AGENTV_TYPES
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES, METRICS
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.execution.child.programs.call_grader import call_grader
from agentci.model.case import AgentvCase, Case, DatasetRow, EvalCase, Expectation, Rubric
from agentci.model.judges import AggregateVerdict, AskModel, JudgeScore, ModelResponse, Verdict
from agentci.model.requests import (
    CompareEmbeddings,
    Compose,
    ComputeMetric,
    ConstantJudgement,
    EmbeddingSimilarity,
    GradeWithService,
    ProgramOutput,
    Response,
    RunProgram,
    ServiceGrade,
    ServiceGrades,
    Skip,
)
from agentci.model.trace import Message, ToolCall, ToolResponse, ToolUse, Trace, Transcript, Turn
from agentci.model.values import Place, list_field_names, replace
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_configs import load_suite
from tests.helpers.support import make_services

PLACE = Place(file="e")
QUALITY, TOOL_USE = "FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY"
JUDGE = "judge: {provider: openai, model: m, embedding_model: e}\n"
GRADER = (
    "def grade(sample, item):\n    return float(item.get('truth', '') in sample['output_text'])\n"
)
ANY_GRADER = "def grade(sample, item):\n    return {'score': 1, 'all': str(sorted(item.items()))}\n"


def model_grader(text: str) -> str:
    return f"input: [{{role: user, content: '{text} {{{{ item.actual_response }}}}'}}]"


GRADERS = {
    "text_similarity": "{type: text_similarity, evaluation_metric: rouge_1}",
    "similarity to a column": "{type: text_similarity, evaluation_metric: bleu, "
    "reference: '{{ item.truth }}'}",
    "cosine": "{type: text_similarity, evaluation_metric: cosine}",
    "string_check": "{type: string_check, operation: eq, reference: '{{ item.ground_truth }}'}",
    "label_model": f"{{type: label_model, {model_grader('{{ item.truth }}')}, "
    "labels: [a, b], passing_labels: [a]}",
    "score_model": f"{{type: score_model, {model_grader('Rate')}}}",
    "python": f"{{type: python, source: {json.dumps(GRADER)}}}",
    "python of any column": f"{{type: python, source: {json.dumps(ANY_GRADER)}}}",
    "multi": "{type: multi, calculate_output: a, graders: {a: {type: string_check, "
    "operation: eq, reference: '{{ item.note }}'}}}",
}
REMOTE = ", backend: remote, base_url: 'http://localhost/v1'"
ENTRIES = {
    **{f"builtin: {name}": f"{{name: {name}, type: builtin}}" for name in METRICS},
    **{f"builtin: {name}": f"{{name: {name}, type: builtin}}" for name in JUDGED_METRIC_PURPOSES},
    "builtin: turn_score": "{name: response_match_score, type: builtin, turn_score: min}",
    "builtin: ignore_args": "{name: tool_trajectory_avg_score, type: builtin, ignore_args: true}",
    "code": "{name: own, type: code, path: own.py}",
    "remote": "{name: own, type: remote, source: url, ref: 'https://localhost/own.py', "
    f"sha256: {'a' * 64}}}",
    **{
        f"openai_eval: {name}": f"{{name: own, type: openai_eval, grader: {grader}}}"
        for name, grader in GRADERS.items()
    },
    "openai_eval: remote": "{name: own, type: openai_eval, grader: "
    f"{GRADERS['similarity to a column']}{REMOTE}}}",
    "grader": "{name: own, type: grader, grader: own.py}",
    "grader of any column": "{name: own, type: grader, grader: any.py}",
    "prompt": "{name: own, type: prompt, threshold: 3, prompt: "
    "'{{ truth }} {{ response }}{% if ground_truth is defined %}{{ ground_truth }}{% endif %}'}",
}
CHECKS = {
    "check: contains": "contains: a",
    "check: max_words": "max_words: 5",
    "check: trajectory": "trajectory: [search]",
}
PROGRAM = "{type: code_judge, script: [python3, own.py]"
AGENTV_ENTRIES = {
    "code_judge": f"{PROGRAM}}}",
    **{
        f"code_judge: {wire}": f"{PROGRAM}, wire: {wire}}}"
        for wire in ("camel", "snake", "v4", "snake+v4")
    },
    "llm_judge": "{type: llm_judge}",
    "llm_judge: template": "{type: llm_judge, prompt: '{{ output }} {{ metadata }}'}",
    "llm_judge: messages": "{type: llm_judge, prompt: '{{ output }} {{ input_messages }}'}",
    "llm_judge: program": "{type: llm_judge, prompt: {script: [python3, own.py]}}",
    "rubrics": "{type: rubrics, criteria: [{id: a, outcome: A}]}",
    "composite": "{type: composite, aggregator: {type: weighted_average}, evaluators: "
    "[{name: a, type: contains, value: a}, "
    "{name: f, type: field_accuracy, fields: [{path: b, match: exact}]}]}",
    "tool_trajectory": "{type: tool_trajectory, mode: exact, expected: [{tool: search}]}",
    "field_accuracy": "{type: field_accuracy, fields: [{path: a, match: exact}]}",
    "latency": "{type: latency, threshold: 1}",
    "cost": "{type: cost, budget: 1}",
    "token_usage": "{type: token_usage, max_total: 1}",
    "execution_metrics": "{type: execution_metrics, max_tool_calls: 1}",
    **{
        kind: f"{{type: {kind}, value: a}}"
        for kind in ("contains", "icontains", "starts_with", "ends_with", "equals", "regex")
    },
    **{
        f"{prefix}_{suffix}": f"{{type: {prefix}_{suffix}, value: [a, b]}}"
        for prefix in ("contains", "icontains")
        for suffix in ("any", "all")
    },
    "is_json": "{type: is_json}",
    "assert_set": "{type: assert-set, assert: [{name: a, type: contains, value: a}]}",
    "trajectory:tool_used": "{type: 'trajectory:tool-used', value: search}",
    "trajectory:tool_sequence": "{type: 'trajectory:tool-sequence', value: [search]}",
    "trajectory:tool_args_match": "{type: 'trajectory:tool-args-match', "
    "value: {name: search, args: {city: x}}}",
    "trajectory:step_count": "{type: 'trajectory:step-count', value: {max: 1}}",
    "skill_trigger": "{type: skill-trigger, skill: a}",
    **{kind: f"{{type: {kind}, value: a}}" for kind in ("python", "javascript", "webhook")},
    "equals: transformed": "{type: equals, value: '1', transform: output.trim()}",
    "similar": "{type: similar, value: a}",
}


def turn(number: int) -> Turn:
    return Turn(
        id=f"t{number}",
        user_text=f"Weather in city {number}?",
        answer_parts=(f"It is sunny {number}", "and warm."),
        tool_calls=(
            ToolCall(name="search", args={"city": {"name": "Paris"}}, id="1"),
            ToolCall(name="read", args={"page": 1}, id="2"),
        ),
        tool_responses=(ToolResponse(name="search", output=["sun"], id="1", call_index=0),),
        intermediate_texts=("I will search.",),
    )


EVAL_CASE = EvalCase(
    id="c",
    turns=(turn(1), turn(2)),
    place=PLACE,
    rubrics=(
        (Rubric(id="a", text="A", type=QUALITY), Rubric(id="b", text="B", type=TOOL_USE)),
        (Rubric(id="c", text="C", type=QUALITY), Rubric(id="d", text="D", type=TOOL_USE)),
    ),
)
COLUMNS = {"truth": "sunny", "note": "It is sunny", "query": "Weather?", "tags": ["a"]}
AGENTV_CASE = AgentvCase(
    id="a",
    criteria="It is polite.",
    input_messages=({"role": "user", "content": [{"type": "text", "value": "Weather?"}]},),
    expected_messages=(
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": {"a": 1, "b": {"c": 2}}},
    ),
    place=PLACE,
    guideline_files=("/evals/rules.md",),
    input_files=("/evals/input.md",),
    input_texts={"input.md": "text"},
    metadata={"level": "hard"},
    judge_template="Rate {{ output }} by {{ criteria }}",
)


def change(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a value, each with one change, and where the change is."""
    if isinstance(value, Struct):
        parts = {name: getattr(value, name) for name in list_field_names(value)}
        yield from ((at, structs.replace(value, **each)) for at, each in change_one(parts))
    elif isinstance(value, Mapping):
        yield from ((f".{at}", {**value, **each}) for at, each in change_one(value))
    elif isinstance(value, tuple | list):
        kind = type(value)
        for at, each in change_one(dict(enumerate(value))):
            yield f"[{at}]", kind({**dict(enumerate(value)), **each}.values())
        yield "[-1]", kind(value[:-1])
    else:
        yield "", value + 1 if type(value) is int else f"{value}x"


def change_one(values: Mapping[Any, Any]) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield the changes of one of several values."""
    for name, value in values.items():
        yield from ((f"{name}{at}", {name: changed}) for at, changed in change(value))


def change_expectation(expectation: Expectation) -> Iterator[tuple[str, Expectation]]:
    given = {
        name: value
        for name in list_field_names(expectation)
        if (value := getattr(expectation, name)) is not None
    }
    for at, changed in change_one(given):
        yield at, replace(expectation, **changed)


def observe(evaluator: ComparableEvaluator, case: Case) -> object:
    """What an evaluator sends for a case, and what it concludes from fixed responses."""
    sent: list[object] = []
    try:
        request = evaluator.ask(case)
        if isinstance(request, Skip):
            return request
        return [sent, evaluator.read(respond(request, sent))]
    except (EvaluatorError, MissingPlaceholderError) as error:
        return str(error)


def respond(task: Any, sent: list[object]) -> Response:
    """The response to a task; what is sent is added to ``sent``."""
    if isinstance(task, Compose):
        responses = tuple(respond(part, sent) for _, part in task.parts)
        return respond(task.then(responses), sent)
    if isinstance(task, ConstantJudgement):
        return task
    if isinstance(task, ComputeMetric):
        return METRICS[task.metric].measure(task.actual, task.expected, task.options)
    kinds: dict[type, Callable[[Any], tuple[Response, object]]] = {
        AskModel: lambda task: (verdict(task), task.prompt),
        CompareEmbeddings: lambda task: (EMBEDDED, task.texts),
        GradeWithService: grade,
    }
    response, seen = kinds.get(type(task), run)(task)
    sent.append(seen)
    return response


EMBEDDED = EmbeddingSimilarity(cosine=0.5, response=ModelResponse(text="", ending="complete"))


def grade(task: GradeWithService) -> tuple[Response, object]:
    templates = (f"{task.criterion['input']}", f"{task.criterion['reference']}")
    rows = [{"item": item} for item in task.items]
    result = ServiceGrade(score=1.0, passed=True, details={})
    texts = [fill_placeholders(text, row) for text in templates for row in rows]
    return ServiceGrades(grades=(result,) * len(rows)), texts


def verdict(task: AskModel) -> AggregateVerdict:
    schema = task.prompt.schema
    assert schema is not None
    value: Any = {"boolean": True, "label": schema.labels[:1] and schema.labels[0]}.get(
        schema.kind, 1.0
    )
    scores = {name: JudgeScore(value=value) for name in schema.names}
    notes = dict.fromkeys(getattr(schema, "notes", ()), ())
    return AggregateVerdict(
        values=dict.fromkeys(scores, value), verdicts=(Verdict(scores=scores, notes=notes),)
    )


def run(task: Any) -> tuple[ProgramOutput, object]:
    """The output of a program, and what it can make of its input."""
    seen: object = task.stdin
    printed: Mapping[str, Any] = {"score": 1.0, "found": True}
    given = json.loads(task.stdin)
    if "template" in given:
        text = jinja2.Template(given["template"]).render(given["variables"])
        seen, printed = text, {"text": "", "values": []}
    elif "function" in given:
        source = given.get("source") or Path(task.program.path).read_text()
        scope: dict[str, Any] = {}
        exec(source, scope)
        seen = printed = call_grader(scope["grade"], given, "grade")
    elif isinstance(task, RunProgram) and task.own_variables:
        turns = [{"score": 1.0}] * len(given["actual"])
        printed = {"score": 1.0, "turns": turns}
    output = ProgramOutput(stdout=json.dumps(printed, default=str).encode(), stderr="", exit_code=0)
    return output, seen


def make_trace(eval_case: EvalCase | None) -> Trace:
    turns = eval_case.turns if eval_case else (turn(1), turn(2))
    return Trace(id="t", key="t", turns=turns, place=PLACE)


def make_transcript(agentv_case: AgentvCase) -> Transcript:
    answer = next(
        (each["content"] for each in agentv_case.expected_messages if each["role"] == "assistant"),
        "",
    )
    tools = (ToolUse(tool="search", input={}),)
    return Transcript(messages=(Message(role="assistant", content=answer, tool_calls=tools),))


def make_traces(expectation: Expectation) -> Iterator[Trace]:
    """Runs with the expected turns, and one with the answer in a column."""
    trace = make_trace(expectation.eval_case)
    yield trace
    if expectation.columns:
        answered = replace(turn(1), answer_parts=(f"{expectation.columns['note']}",))
        yield replace(trace, turns=(answered,))


def make_cases(before: Expectation, after: Expectation) -> Iterator[tuple[Case, Case]]:
    """Each expectation with the same runs: those that fit the first, and that fit the other."""
    fitting = ((each, trace) for each in (before, after) for trace in make_traces(each))
    for model, trace in fitting:
        own = model.agentv_case
        cases = (
            Case(
                id="c",
                trace=trace,
                expected=each.eval_case,
                agentv_case=each.agentv_case,
                transcript=None if own is None else make_transcript(own),
                dataset_row=None
                if each.columns is None
                else DatasetRow(
                    id="r", query=f"{each.columns['query']}", columns=each.columns, place=PLACE
                ),
            )
            for each in (before, after)
        )
        yield next(cases), next(cases)


def find_wrong(evaluator: ComparableEvaluator, before: Expectation, folder: Path) -> list[str]:
    """The values whose change alters either the fingerprint or a result, but not both."""
    fingerprints = Fingerprints(make_services(folder, {}).workspace)
    wrong = []
    for where, after in change_expectation(before):
        if after == before:
            continue
        differs = fingerprints.compute(evaluator, before) != fingerprints.compute(evaluator, after)
        can_change = any(
            observe(evaluator, one) != observe(evaluator, other)
            for one, other in make_cases(before, after)
        )
        if differs != can_change:
            wrong.append(f"{where}: {'fingerprint' if differs else 'result'} changes")
    return wrong


def build(folder: Path, config: str) -> ComparableEvaluator:
    (folder / "own.py").write_text(GRADER)
    (folder / "any.py").write_text(ANY_GRADER)
    (folder / "e.yaml").write_text(config)
    suite = load_suite(folder / "e.yaml", Overrides(), make_services(folder, {})).suite
    [evaluator, *_] = suite.evaluators
    return evaluator


def build_agentv(folder: Path, entry: str) -> ComparableEvaluator:
    named = entry.replace("{", "{name: own, ", 1)
    head = f"{JUDGE}tests:\n  - id: a\n    criteria: A\n    input: q\n    assertions:\n"
    return build(folder, f"{head}      - {named}\n")


def test_every_type_has_an_example() -> None:
    assert {name.partition(":")[0].partition(" of ")[0] for name in ENTRIES} == {*EVALUATOR_TYPES}
    assert {name.partition(": ")[0] for name in AGENTV_ENTRIES} == {*AGENTV_TYPES}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    "expectation",
    [
        pytest.param(Expectation(eval_case=EVAL_CASE), id="eval case"),
        pytest.param(Expectation(columns=COLUMNS), id="row"),
        pytest.param(Expectation(eval_case=EVAL_CASE, columns=COLUMNS), id="both"),
    ],
)
def test_fingerprint_of_config_evaluator_is_exact(
    tmp_path: Path, entry: str, expectation: Expectation
) -> None:
    evaluator = build(tmp_path, f"{JUDGE}traces: t.json\nevaluators:\n- {entry}\n")
    assert find_wrong(evaluator, expectation, tmp_path) == []


@pytest.mark.parametrize("item", CHECKS.values(), ids=CHECKS)
def test_fingerprint_of_check_is_exact(tmp_path: Path, item: str) -> None:
    evaluator = build(tmp_path, f"traces: t.json\nchecks:\n- {item}\n")
    assert find_wrong(evaluator, Expectation(eval_case=EVAL_CASE), tmp_path) == []


@pytest.mark.parametrize("name", HOSTED_METRICS)
def test_fingerprint_of_hosted_metric_is_exact(tmp_path: Path, name: str) -> None:
    evaluator = make_hosted_evaluator(name, place=PLACE)
    assert find_wrong(evaluator, Expectation(eval_case=EVAL_CASE), tmp_path) == []


@pytest.mark.parametrize("entry", AGENTV_ENTRIES.values(), ids=AGENTV_ENTRIES)
def test_fingerprint_of_agentv_evaluator_is_exact(tmp_path: Path, entry: str) -> None:
    evaluator = build_agentv(tmp_path, entry)
    assert find_wrong(evaluator, Expectation(agentv_case=AGENTV_CASE), tmp_path) == []


def test_agentv_evaluator_needs_a_case_of_an_eval_file(tmp_path: Path) -> None:
    evaluator = build_agentv(tmp_path, AGENTV_ENTRIES["field_accuracy"])
    with pytest.raises(TypeError, match="not from an eval file"):
        evaluator.read_expectation(Expectation())


CONVERSATION = Conversation(
    preamble=({"role": "system", "content": "Be kind."},),
    turns=tuple(
        ConversationTurn(
            input_messages=({"role": "user", "content": f"Question {number}?"},),
            expected_messages=({"role": "assistant", "content": f"Answer {number}"},),
        )
        for number in range(3)
    ),
    window=1,
)
ROUNDS = Transcript(
    messages=tuple(
        Message(role=role, content=f"{role} {number}")
        for number in range(3)
        for role in ("user", "assistant")
    )
)


@pytest.mark.parametrize("turn", [None, 1])
@pytest.mark.parametrize("entry", ["{type: regex, value: Be}", "{type: llm_judge}"])
def test_fingerprint_of_conversation_is_exact(tmp_path: Path, entry: str, turn: int | None) -> None:
    inner: Any = build_agentv(tmp_path, entry)
    fingerprints = Fingerprints(make_services(tmp_path, {}).workspace)
    agentv_case = replace(AGENTV_CASE, judge_template="")
    case = Case(id="c", trace=make_trace(None), agentv_case=agentv_case, transcript=ROUNDS)

    def inspect(conversation: Conversation) -> tuple[str, object]:
        evaluator = ConversationEvaluator(
            identity=inner.identity, evaluator=inner, conversation=conversation, turn=turn
        )
        return fingerprints.compute(evaluator, case.expectation), observe(evaluator, case)

    fingerprint, observed = inspect(CONVERSATION)
    wrong = []
    for where, changed in change(replace(CONVERSATION, window=None)):
        if where == "window":
            continue
        other, seen = inspect(replace(changed, window=1))
        if (other != fingerprint) != (seen != observed):
            wrong.append(where)
    assert wrong == []
