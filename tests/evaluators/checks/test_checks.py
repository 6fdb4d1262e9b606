"""Each check with a run that passes, one that fails, and one that does not say enough."""

from typing import Any

import pytest

from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.checks.check import CheckContext, CheckEvaluator
from agentci.evaluators.checks.names import CHECK_NAMES
from agentci.evaluators.checks.registry import CHECKS, build_check
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.fields import TokenPriceSpec
from agentci.model.case import Case, Expectation
from agentci.model.requests import ConstantJudgement, Judgement, Skip
from agentci.model.trace import (
    ModelStep,
    SubagentRun,
    TokenUsage,
    ToolCall,
    ToolResponse,
    Trace,
    Turn,
)
from agentci.model.values import Json, Place
from agentci.reports.tool_calls import has_forbidden_call

PLACE = Place(file="config.yaml", line=3)
SCHEMA = '{"type": "object", "required": ["a"]}'
PASS, FAIL = True, False
ERROR = None


def build(check: str, value: Json = None, **options: Any) -> CheckEvaluator:
    given = {} if value is None else {"value": value}
    kind = "contains" if check == "icontains" else check
    entry = CHECKS[kind].entry.model_validate({"check": check, **given, **options})

    def find_place(path: object = (), *, key: bool = False) -> Place:
        return Place(file=f"{path}", line=1 + key)

    context = CheckContext(
        name=check,
        place=PLACE,
        find_place=find_place,
        read=lambda name: TextFile(name=name, text=SCHEMA if name == "s.json" else "{"),
        read_variable=lambda name: {"KEY": "p4ss/w0rd!", "SHORT": "abc"}.get(name, ""),
        prices={"m-*": TokenPriceSpec(input=1.0, output=2.0, cache_read=0.5)},
    )
    return build_check(kind, entry, context)


def make_case(*turns: Turn, **fields: Any) -> Case:
    trace = Trace(id="t", key="t", turns=turns, place=PLACE, **fields)
    return Case(id="c", trace=trace)


def turn(answer: str | None = "yes", *calls: ToolCall, **fields: Any) -> Turn:
    parts = () if answer is None else (answer,)
    return Turn(id="t", user_text="q", answer_parts=parts, tool_calls=calls, **fields)


def call(name: str, args: Json = None, **fields: Any) -> ToolCall:
    return ToolCall(name=name, args={} if args is None else args, **fields)


def step(input_tokens: int | None = 10, output: int | None = 5, **fields: Any) -> ModelStep:
    return ModelStep(input_tokens=input_tokens, output_tokens=output, **fields)


def judge(evaluator: CheckEvaluator, case: Case) -> Judgement:
    request = evaluator.ask(case)
    assert isinstance(request, ConstantJudgement)
    return evaluator.read(request)


def verdict(evaluator: CheckEvaluator, case: Case) -> bool | None:
    """Whether the check passes; None for an error."""
    try:
        return judge(evaluator, case).passed
    except EvaluatorError:
        return ERROR


UNKNOWN_TOOLS = turn(tool_calls_recorded=False)
THREE_OF_FIVE = turn(model_steps=(step(), step(), step(), step(None), step(10, None)))

EXAMPLES: dict[str, list[tuple[CheckEvaluator, bool | None, Case]]] = {
    "max_latency": [
        (build("max_latency", "5s"), PASS, make_case(turn(duration_ms=5000), turn(duration_ms=1))),
        (build("max_latency", "5s"), FAIL, make_case(turn(duration_ms=1), turn(duration_ms=5001))),
        (build("max_latency", "5s"), ERROR, make_case(turn(duration_ms=1), turn())),
        (build("max_latency", "5s"), FAIL, make_case(turn(duration_ms=5001), turn())),
        (build("max_latency", "800ms"), FAIL, make_case(turn(duration_ms=801))),
        (build("max_latency", "1m30s"), PASS, make_case(turn(duration_ms=90_000))),
        (
            build("max_latency", "5s", scope="run"),
            FAIL,
            make_case(turn(duration_ms=3000), turn(duration_ms=3000)),
        ),
        (build("max_latency", "5s", scope="run"), ERROR, make_case(turn(duration_ms=3000), turn())),
    ],
    "max_duration": [
        (
            build("max_duration", "5s"),
            PASS,
            make_case(turn(start=0, duration_ms=1000), turn(start=4 * 10**9, duration_ms=1000)),
        ),
        (
            build("max_duration", "5s"),
            FAIL,
            make_case(turn(start=0, duration_ms=1000), turn(start=4 * 10**9, duration_ms=1001)),
        ),
        (build("max_duration", "5s"), ERROR, make_case(turn(duration_ms=1))),
        (build("max_duration", "5s"), ERROR, make_case(turn(start=0, duration_ms=1), turn())),
        (build("max_duration", "5s"), FAIL, make_case(turn(start=0, duration_ms=5001), turn())),
    ],
    "max_tokens": [
        (build("max_tokens", 30), PASS, make_case(turn(model_steps=(step(), step())))),
        (build("max_tokens", 29), FAIL, make_case(turn(model_steps=(step(), step())))),
        (build("max_tokens", 1000), ERROR, make_case(THREE_OF_FIVE)),
        (build("max_tokens", 44), FAIL, make_case(THREE_OF_FIVE)),
        (build("max_tokens", 1000), ERROR, make_case(turn())),
        (build("max_tokens", 15), PASS, make_case(turn(), usage=TokenUsage(input=10, output=5))),
        (build("max_tokens", 14), FAIL, make_case(turn(), usage=TokenUsage(input=10, output=5))),
        *(
            (
                build("max_tokens", most),
                status,
                make_case(turn(model_steps=(ModelStep(),)), usage=TokenUsage(input=10, output=5)),
            )
            for most, status in ((15, PASS), (14, FAIL))
        ),
        (
            build("max_tokens", 5770),
            FAIL,
            make_case(turn(), usage=TokenUsage(input=3, output=10, cached=5758)),
        ),
        (
            build("max_tokens", 29),
            FAIL,
            make_case(
                turn(model_steps=(step(),)),
                subagents=(SubagentRun(turns=(turn(model_steps=(step(),)),)),),
            ),
        ),
        (build("max_tokens", {"input": 10}), PASS, make_case(turn(model_steps=(step(10, None),)))),
        (build("max_tokens", {"input": 9}), FAIL, make_case(turn(model_steps=(step(),)))),
        (build("max_tokens", {"output": 4}), FAIL, make_case(turn(model_steps=(step(),)))),
        (
            build("max_tokens", {"total": 15, "per": "turn"}),
            PASS,
            make_case(turn(model_steps=(step(),)), turn(model_steps=(step(),))),
        ),
        (
            build("max_tokens", {"total": 15, "per": "turn"}),
            ERROR,
            make_case(turn(model_steps=(step(),)), turn()),
        ),
        (
            build("max_tokens", {"total": 15, "per": "call"}),
            FAIL,
            make_case(turn(model_steps=(step(), step(11)))),
        ),
        (
            build("max_tokens", {"total": 15, "per": "call"}),
            ERROR,
            make_case(turn(model_steps=(step(),)), turn()),
        ),
        # Cached tokens are part of the input, unless they are more than it.
        (build("max_tokens", 15), PASS, make_case(turn(model_steps=(step(cached_tokens=8),)))),
        (build("max_tokens", 26), PASS, make_case(turn(model_steps=(step(cached_tokens=11),)))),
        (
            build("max_tokens", 25),
            FAIL,
            make_case(turn(model_steps=(step(cached_tokens=1, cache_write_tokens=10),))),
        ),
        (build("max_tokens", 25), FAIL, make_case(turn(model_steps=(step(cached_tokens=11),)))),
    ],
    "max_cost": [
        (build("max_cost", "$0.05"), PASS, make_case(turn(), cost_usd=0.05)),
        (build("max_cost", 0.05), FAIL, make_case(turn(), cost_usd=0.051)),
        (build("max_cost", 1), ERROR, make_case(turn())),
        (build("max_cost", 1), PASS, make_case(turn(model_steps=(step(cost_usd=0.5),)))),
        (build("max_cost", 0.00002), PASS, make_case(turn(model_steps=(step(model="m-1"),)))),
        (build("max_cost", 0.0000199), FAIL, make_case(turn(model_steps=(step(model="m-1"),)))),
        (
            build("max_cost", 0.000016),
            PASS,
            make_case(turn(model_steps=(step(model="m-1", cached_tokens=8),))),
        ),
        # Tokens that are written to a cache cost more than others at some providers.
        (
            build(
                "max_cost",
                55,
                prices={"w": {"input": 1e6, "output": 0, "cache_write": 9e6, "cache_read": 0}},
            ),
            FAIL,
            make_case(turn(model_steps=(step(model="w", cached_tokens=2, cache_write_tokens=6),))),
        ),
        (build("max_cost", 1), ERROR, make_case(turn(model_steps=(step(model="other"),)))),
        (build("max_cost", 1), ERROR, make_case(turn(model_steps=(step(),)))),
        (build("max_cost", 1), ERROR, make_case(turn(model_steps=(step(None, model="m-1"),)))),
        (
            build("max_cost", 1),
            FAIL,
            make_case(turn(model_steps=(step(cost_usd=2.0), step(None, model="m-1")))),
        ),
        (
            build("max_cost", 9, prices={"other": {"input": 1e6, "output": 0}}),
            FAIL,
            make_case(turn(model_steps=(step(model="other"),))),
        ),
    ],
    "max_tool_calls": [
        (build("max_tool_calls", 1), PASS, make_case(turn("", call("a", failed=True)))),
        (build("max_tool_calls", 1), FAIL, make_case(turn("", call("a")), turn("", call("a")))),
        (build("max_tool_calls", 1), ERROR, make_case(UNKNOWN_TOOLS)),
        (build("max_tool_calls", {"a*": 1}), PASS, make_case(turn("", call("ab"), call("b")))),
        (build("max_tool_calls", {"a*": 1}), FAIL, make_case(turn("", call("ab"), call("a")))),
    ],
    "max_model_calls": [
        (build("max_model_calls", 1), PASS, make_case(turn(model_steps=(step(),)))),
        (build("max_model_calls", 1), FAIL, make_case(turn(model_steps=(step(), step())))),
        (build("max_model_calls", 1), ERROR, make_case(turn())),
    ],
    "max_repeats": [
        (build("max_repeats", 1), PASS, make_case(turn("", call("a", {"x": 1}), call("a")))),
        (
            build("max_repeats", 1),
            FAIL,
            make_case(turn("", call("a", {"x": 1, "y": [2]}), call("a", {"y": [2.0], "x": 1}))),
        ),
        (build("max_repeats", 1), ERROR, make_case(turn("", ToolCall(name="a"), call("a")))),
        (build("max_repeats", 1), PASS, make_case(turn("", ToolCall(name="a"), call("b")))),
        (build("max_repeats", 1, tools=["b"]), PASS, make_case(turn("", call("a"), call("a")))),
        (build("max_repeats", 1), ERROR, make_case(UNKNOWN_TOOLS)),
    ],
    "no_tool_errors": [
        (build("no_tool_errors", True), PASS, make_case(turn("", call("a", failed=False)))),
        (build("no_tool_errors"), PASS, make_case(turn(""))),
        (build("no_tool_errors", True), FAIL, make_case(turn("", call("a", failed=True)))),
        (build("no_tool_errors", True), ERROR, make_case(turn("", call("a")))),
        (
            build("no_tool_errors", True),
            FAIL,
            make_case(turn("", call("a"), call("a", failed=True), call("a", failed=True))),
        ),
        (build("no_tool_errors", allow=1), PASS, make_case(turn("", call("a", failed=True)))),
        (build("no_tool_errors", tools=["b"]), PASS, make_case(turn("", call("a", failed=True)))),
        (
            build("no_tool_errors", recovered=True),
            PASS,
            make_case(turn("", call("a", failed=True), call("a", failed=False))),
        ),
        (
            build("no_tool_errors", recovered=True),
            FAIL,
            make_case(turn("", call("a", failed=False), call("a", failed=True))),
        ),
        (build("no_tool_errors", True), ERROR, make_case(UNKNOWN_TOOLS)),
    ],
    "required_tools": [
        (build("required_tools", ["a", "b*"]), PASS, make_case(turn("", call("a"), call("bc")))),
        (build("required_tools", ["a", "b"]), FAIL, make_case(turn("", call("a")))),
        (build("required_tools", ["a", "b"], threshold=0.5), PASS, make_case(turn("", call("a")))),
        (build("required_tools", {"a": 2}), FAIL, make_case(turn("", call("a")))),
        (build("required_tools", ["a"]), ERROR, make_case(UNKNOWN_TOOLS)),
    ],
    "forbidden_tools": [
        (build("forbidden_tools", ["a"]), PASS, make_case(turn("", call("b")))),
        (build("forbidden_tools", ["del_*"]), FAIL, make_case(turn("", call("del_1")))),
        (build("forbidden_tools", ["a"]), ERROR, make_case(UNKNOWN_TOOLS)),
        (
            build("forbidden_tools", ["a"]),
            FAIL,
            make_case(turn(), subagents=(SubagentRun(turns=(turn("", call("a")),)),)),
        ),
        (
            build("forbidden_tools", [{"a": {"x": {"$gt": 5}}}]),
            FAIL,
            make_case(turn("", call("a", {"x": 6, "y": 1}))),
        ),
        (
            build("forbidden_tools", [{"a": {"x": 1}}]),
            ERROR,
            make_case(turn("", ToolCall(name="a"))),
        ),
        (
            build("forbidden_tools", [{"a": {"x": 1}}, "b"]),
            FAIL,
            make_case(turn("", ToolCall(name="a"), call("b"))),
        ),
        (
            build("forbidden_tools", [{"tool": "a", "before": "check"}]),
            PASS,
            make_case(turn("", call("check"), call("a"))),
        ),
        (
            build("forbidden_tools", [{"tool": "a", "before": "check"}]),
            FAIL,
            make_case(turn("", call("check", step=0), call("a", step=0))),
        ),
        (
            build("forbidden_tools", [{"tool": "a", "after": "check"}]),
            FAIL,
            make_case(turn("", call("check")), turn("", call("a"))),
        ),
        (
            build("forbidden_tools", [{"tool": "a", "status": "ok"}]),
            ERROR,
            make_case(turn("", call("a"))),
        ),
    ],
    "allowed_tools": [
        (build("allowed_tools", ["a", "b*"]), PASS, make_case(turn("", call("bc")))),
        (build("allowed_tools", ["a"]), FAIL, make_case(turn("", call("b")))),
        (build("allowed_tools", []), ERROR, make_case(UNKNOWN_TOOLS)),
    ],
    "contains": [
        (build("contains", "b"), PASS, make_case(turn("abc"))),
        (build("contains", ["a", "x"]), FAIL, make_case(turn("abc"))),
        (build("contains", "B"), FAIL, make_case(turn("abc"))),
        (build("contains", "B", ignore_case=True), PASS, make_case(turn("abc"))),
        (build("icontains", "B"), PASS, make_case(turn("abc"))),
        (build("contains", "a"), FAIL, make_case(turn("abc"), turn("x"))),
        (build("contains", "a"), FAIL, make_case(turn("abc"), turn(None))),
        (build("contains", "a", of="answers"), PASS, make_case(turn("abc"), turn("x"))),
        (build("contains", "z", of="answers"), ERROR, make_case(turn("abc"), turn(None))),
        (
            build("contains", 'say "hi"', of="arguments"),
            PASS,
            make_case(turn("", call("a", {"t": ['say "hi"\n']}))),
        ),
        (build("contains", "z", of="arguments"), ERROR, make_case(turn("", ToolCall(name="a")))),
        (build("contains", "z", of="results"), ERROR, make_case(turn("", call("a")))),
        (
            build("contains", "sun", of="results"),
            PASS,
            make_case(
                turn("", call("a"), tool_responses=(ToolResponse(name="a", output={"w": "sun"}),))
            ),
        ),
        (build("contains", "z", of="results"), ERROR, make_case(UNKNOWN_TOOLS)),
        (build("contains", "47", of="arguments"), PASS, make_case(turn("", call("a", {"n": 47})))),
        (
            build("contains", "sun", of="results"),
            PASS,
            make_case(turn("", call("a"), tool_responses=(ToolResponse(name="a", output="sun"),))),
        ),
        (build("contains", "z", of="arguments"), ERROR, make_case(UNKNOWN_TOOLS)),
        (
            build("contains", "mid", of="all"),
            PASS,
            make_case(turn("", intermediate_texts=("mid",))),
        ),
    ],
    "contains_any": [
        (build("contains_any", ["x", "b"]), PASS, make_case(turn("abc"))),
        (build("contains_any", ["x", "y"]), FAIL, make_case(turn("abc"))),
        (build("contains_any", ["x", "b"]), FAIL, make_case(turn(None))),
    ],
    "contains_all": [
        (build("contains_all", ["a", "b"]), PASS, make_case(turn("abc"))),
        (build("contains_all", ["a", "x"]), FAIL, make_case(turn("abc"))),
        (build("contains_all", ["a", "x"], threshold=0.5), PASS, make_case(turn("abc"))),
        (build("contains_all", ["a"]), FAIL, make_case(turn(None))),
    ],
    "not_contains": [
        (build("not_contains", "x"), PASS, make_case(turn("abc"))),
        (build("not_contains", "a"), FAIL, make_case(turn("abc"), turn("x"))),
        (build("not_contains", "a"), FAIL, make_case(turn("abc"), turn(None))),
        (build("not_contains", "x"), ERROR, make_case(turn("abc"), turn(None))),
    ],
    "starts_with": [
        (build("starts_with", ["x", "ab"]), PASS, make_case(turn("abc"))),
        (build("starts_with", "b"), FAIL, make_case(turn("abc"))),
        (build("starts_with", "a"), FAIL, make_case(turn(None))),
    ],
    "equals": [
        (build("equals", "ABC", ignore_case=True), PASS, make_case(turn("abc"))),
        (build("equals", "ab"), FAIL, make_case(turn("abc"))),
        (build("equals", "a"), FAIL, make_case(turn(None))),
    ],
    "matches": [
        (build("matches", r"\bINV-[0-9]{6}\b"), PASS, make_case(turn("see INV-123456."))),
        (build("matches", "INV", full=True), FAIL, make_case(turn("INV-1"))),
        (build("matches", ["I", "X"]), FAIL, make_case(turn("INV-1"))),
        (build("matches", "(a+)+$"), FAIL, make_case(turn("a" * 50_000 + "b"))),
        (build("matches", "a"), FAIL, make_case(turn(None))),
    ],
    "not_matches": [
        (build("not_matches", "(?i)X"), PASS, make_case(turn("abc"))),
        (build("not_matches", "(?i)B"), FAIL, make_case(turn("abc"))),
        (build("not_matches", "x"), ERROR, make_case(turn(None))),
    ],
    "json_schema": [
        (build("json_schema", True), PASS, make_case(turn('{"a": 1}'))),
        (build("json_schema", True), FAIL, make_case(turn("hello"))),
        (build("json_schema", True), FAIL, make_case(turn('{"a": 1, "a": 2}'))),
        (build("json_schema", True), PASS, make_case(turn('```json\n{"a": 1}\n```\n'))),
        (build("json_schema", True, fence="refuse"), FAIL, make_case(turn("```\n1\n```"))),
        (build("json_schema", True, fence="require"), FAIL, make_case(turn("1"))),
        (build("json_schema", {"required": ["a"]}), PASS, make_case(turn('{"a": 1}'))),
        (build("json_schema", {"required": ["a"]}), FAIL, make_case(turn("{}"))),
        (build("json_schema", "s.json"), FAIL, make_case(turn("[]"))),
        (build("json_schema", {"$ref": "#"}), ERROR, make_case(turn("1"))),
        (build("json_schema", True), FAIL, make_case(turn(None))),
    ],
    "max_words": [
        (build("max_words", 3), PASS, make_case(turn("one two\n three"))),
        (build("max_words", 2), FAIL, make_case(turn("one two three"))),
        (build("max_words", {"min": 4}), FAIL, make_case(turn("one two three"))),
        (build("max_words", 3), ERROR, make_case(turn(None))),
    ],
    "max_chars": [
        (build("max_chars", {"min": 1, "max": 3}), PASS, make_case(turn("abc"))),
        (build("max_chars", 2), FAIL, make_case(turn("abc"))),
        (build("max_chars", 2), ERROR, make_case(turn(None))),
    ],
    "no_secrets": [
        (build("no_secrets", True), PASS, make_case(turn("hello", call("a", {"id": "4711"})))),
        (build("no_secrets", True), FAIL, make_case(turn("-----BEGIN RSA PRIVATE KEY-----"))),
        (build("no_secrets", True), ERROR, make_case(turn(None))),
        (build("no_secrets", True), ERROR, make_case(turn("x", ToolCall(name="a")))),
        (
            build("no_secrets", True),
            FAIL,
            make_case(turn("x", intermediate_texts=("-----BEGIN PRIVATE KEY-----",))),
        ),
        (
            build("no_secrets", {"ignore": ["private-*"]}),
            PASS,
            make_case(turn("-----BEGIN RSA PRIVATE KEY-----")),
        ),
        (
            build("no_secrets", {"of": ["results"]}),
            PASS,
            make_case(turn("-----BEGIN PRIVATE KEY-----")),
        ),
        (build("no_secrets", {"env": ["KEY"]}), PASS, make_case(turn("hello"))),
        (build("no_secrets", {"env": ["KEY"]}), FAIL, make_case(turn("it is p4ss/w0rd!."))),
        (
            build("no_secrets", {"env": ["KEY"]}),
            FAIL,
            make_case(turn("x", call("get", {"url": "https://h/?k=p4ss%2Fw0rd%21"}))),
        ),
        (build("no_secrets", {"env": ["UNSET"]}), ERROR, make_case(turn("hello"))),
        (build("no_secrets", {"env": ["SHORT"]}), ERROR, make_case(turn("abc"))),
        (
            build("no_secrets", {"env": ["UNSET"]}),
            FAIL,
            make_case(turn("-----BEGIN RSA PRIVATE KEY-----")),
        ),
    ],
    "trajectory": [
        (
            build("trajectory", ["a", {"b": {"x": 1}}]),
            PASS,
            make_case(turn("", call("a"), call("b", {"x": 1}))),
        ),
        (build("trajectory", ["a"]), FAIL, make_case(turn("", call("a")), turn(""))),
        (
            build("trajectory", {"calls": ["a", "b"], "scope": "run"}),
            PASS,
            make_case(turn("", call("a")), turn("", call("b"))),
        ),
        (
            build("trajectory", {"calls": ["a"], "threshold": 0.5}),
            PASS,
            make_case(turn("", call("a")), turn("")),
        ),
        (
            build("trajectory", {"calls": ["a"], "threshold": 0.5, "forbidden": ["b"]}),
            FAIL,
            make_case(turn("", call("a")), turn("", call("b"))),
        ),
        (build("trajectory", [{"a": {"x": 1}}]), ERROR, make_case(turn("", ToolCall(name="a")))),
        (
            build("trajectory", [{"tool": "a", "status": "ok"}]),
            ERROR,
            make_case(turn("", call("a"))),
        ),
        (build("trajectory", ["a"]), ERROR, make_case(UNKNOWN_TOOLS)),
    ],
}
CASES = [
    pytest.param(*example, id=f"{name} {index}")
    for name, examples in EXAMPLES.items()
    for index, example in enumerate(examples)
]


@pytest.mark.parametrize(("evaluator", "expected", "case"), CASES)
def test_verdict(evaluator: CheckEvaluator, expected: bool | None, case: Case) -> None:
    assert verdict(evaluator, case) is expected


def test_every_check_has_examples() -> None:
    assert tuple(CHECKS) == CHECK_NAMES == tuple(EXAMPLES)


@pytest.mark.parametrize(("evaluator", "expected", "case"), CASES)
def test_a_miss_is_named(evaluator: CheckEvaluator, expected: bool | None, case: Case) -> None:
    if expected is FAIL:
        found = judge(evaluator, case)
        assert found.misses
        assert found.score is not None
        assert found.score < 1


@pytest.mark.parametrize(
    ("rule", "misses"),
    [
        ("pay", ["turn 2: `pay` was called"]),
        (
            {"pay": {"amount": {"$not": {"$regex": "^(5|6)$"}}}},
            ['turn 2: `pay(amount="7")` is forbidden: amount matches $not $regex "^(5|6)$"'],
        ),
        ({"pay": {"amount": "7"}}, ['turn 2: `pay(amount="7")` is forbidden']),
        (
            {"tool": "pay", "args": {"amount": "7"}, "args_match": "superset", "before": "ask"},
            ['turn 2: `pay(amount="7")` is forbidden without an earlier `ask`'],
        ),
        (
            {"pay": {"$exact": {"amount": "7"}}},
            [
                (
                    'turn 2: `pay(amount="7")` is forbidden: '
                    'the arguments match $exact {"amount": "7"}'
                )
            ],
        ),
    ],
)
def test_forbidden_call_is_described_with_what_the_rule_compares(
    rule: Json, misses: list[str]
) -> None:
    calls = (call("pay", {"to": "b", "amount": "5"}), call("pay", {"amount": "7"}))
    evaluator = build("forbidden_tools", [rule])
    case = make_case(turn("a", *(calls[:1] if rule != "pay" else ())), turn("b", calls[1]))
    assert list(judge(evaluator, case).misses) == misses


def test_calls_of_sub_agents_and_of_a_single_turn_are_forbidden_without_a_turn() -> None:
    inner = (SubagentRun(turns=(turn("", call("a")),)),)
    evaluator = build("forbidden_tools", ["a"])
    for case in (make_case(turn(), turn(), subagents=inner), make_case(turn("", call("a")))):
        assert list(judge(evaluator, case).misses) == ["`a` was called"]


@pytest.mark.parametrize("name", ["forbidden_tools", "allowed_tools", "trajectory"])
def test_forbidden_call_is_known_to_reports(name: str) -> None:
    given: dict[str, Any] = {"forbidden_tools": ["a"], "allowed_tools": ["b"]}
    evaluator = build(name, given.get(name, {"calls": [], "forbidden": ["a"]}))
    for tool in "ab":
        found = judge(evaluator, make_case(turn("", call(tool))))
        assert has_forbidden_call(found.details) == (tool == "a")


def test_error_counts_the_calls_without_usage() -> None:
    with pytest.raises(EvaluatorError, match="2 of 5 model calls recorded no usage"):
        build("max_tokens", {"output": 99, "input": 99, "total": 99}).ask(make_case(THREE_OF_FIVE))


def test_error_names_the_model_without_a_price() -> None:
    with pytest.raises(EvaluatorError, match="model `other` recorded no cost and has no price"):
        build("max_cost", 1).ask(make_case(turn(model_steps=(step(model="other"),))))


def test_secret_is_never_shown() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = judge(build("no_secrets", True), make_case(turn("x", call("t", {"k": secret}))))
    assert found.misses == ("arguments of `t` has a secret: github-token",)
    assert secret not in f"{found}"


def test_tokens_that_break_the_convention_are_noted() -> None:
    found = judge(build("max_tokens", 99), make_case(turn(model_steps=(step(cached_tokens=11),))))
    note = "1 model call recorded more cached than input tokens; both were counted"
    assert found.hits == ("26 tokens", note)


def test_value_of_a_variable_is_never_shown() -> None:
    evaluator = build("no_secrets", {"env": ["KEY"]})
    found = judge(evaluator, make_case(turn("it is p4ss/w0rd!")))
    assert found.misses == ("answer of turn 1 has a secret: the value of KEY",)
    assert "p4ss" not in f"{found}{evaluator}{evaluator.definition}"


def test_schema_problems_have_their_place() -> None:
    evaluator = build("json_schema", {"properties": {"a": {"items": {"type": "string"}}}})
    found = judge(evaluator, make_case(turn('{"a": ["x", 1]}')))
    assert found.misses == ("a[1]: 1 is not of type 'string'",)


def test_trajectory_is_shown_call_by_call() -> None:
    evaluator = build("trajectory", ["a", {"b": {"x": 1}}, "c"])
    found = judge(evaluator, make_case(turn("", call("a"), call("b", {"x": 2}))))
    [first, *_] = found.misses
    assert first == "turn 1: b: x 1 → 2; 1 of 3 expected calls"
    by_f1 = build("trajectory", {"calls": ["a", {"b": {"x": 1}}, "c"], "score": "f1"})
    [with_numbers, *_] = judge(by_f1, make_case(turn("", call("a"), call("b", {"x": 2})))).misses
    assert with_numbers.startswith(f"{first} (precision 0.5, recall 0.33, F1 0.4)")
    [none, *_] = judge(evaluator, make_case(turn(""))).misses
    assert none.endswith("; 0 of 3 expected calls")
    details: Any = found.details
    [shown] = details["trajectories"]
    assert [row["mark"] for row in shown["rows"]] == ["", "differs", "missing"]


def test_trajectory_names_paths_and_keeps_hints_in_details() -> None:
    evaluator = build("trajectory", [{"any_of": ["a", "b"]}])
    found = judge(evaluator, make_case(turn("", call("b"), call("x"))))
    assert found.misses[1:] == ("turn 1: any_of 0: path 2 of 2",)
    details: Any = found.details
    [shown] = details["trajectories"]
    assert shown["hints"] == ["with `extra: allow` it would pass"]


@pytest.mark.parametrize("scope", ["turn", "run"])
def test_time_has_enough_digits_to_differ_from_the_limit(scope: str) -> None:
    found = judge(build("max_latency", "4s", scope=scope), make_case(turn(duration_ms=4000.04)))
    assert [each.partition(" took ")[2] for each in found.misses] == ["4.00004 s, more than 4 s"]


def test_name_never_holds_the_limit_and_the_definition_does() -> None:
    first, second = build("max_latency", "5s"), build("max_latency", "6s")
    assert first.identity.name == second.identity.name
    assert first.definition != second.definition
    assert first.identity.criterion == "time <= 5 s"


def test_definition_holds_all_that_decides_the_result() -> None:
    pairs = [
        (build("max_tokens", 5), build("max_tokens", {"total": 5, "per": "call"})),
        (build("max_cost", 5), build("max_cost", 5, prices={"x": {"input": 1, "output": 1}})),
        (build("json_schema", "s.json"), build("json_schema", True)),
        (build("required_tools", ["a"]), build("required_tools", ["a"], threshold=0.5)),
        (build("contains", "a"), build("contains", "b")),
        (build("trajectory", ["a"]), build("trajectory", {"calls": ["a"], "threshold": 0.5})),
    ]
    assert [one.definition == other.definition for one, other in pairs] == [False] * len(pairs)
    assert build("contains", "a").definition == build("contains", "a", name="n").definition


def test_case_that_it_is_not_for_is_skipped() -> None:
    evaluator = build("contains", "a", cases=["x-*", "y"])
    request = evaluator.ask(make_case(turn("a")))
    assert request == Skip(reason="no case has an id like `x-*`, `y`")


def test_check_reads_no_expectation() -> None:
    evaluator = build("contains", "a")
    assert evaluator.read_expectation(Expectation()) is None
    assert evaluator.needs == ()
    assert evaluator.limits == {}


@pytest.mark.parametrize(
    ("check", "value", "options", "message"),
    [
        ("max_tokens", {}, {}, "`max_tokens` has no limit"),
        ("max_words", {}, {}, "`max_words` has no limit"),
        ("matches", ["a", "(?=b)"], {}, "invalid pattern: invalid perl operator: (?="),
        ("not_matches", r"(a)\1", {}, "invalid pattern: invalid escape sequence"),
        ("json_schema", {"$ref": "http://x/y"}, {}, "refers to another document"),
        ("json_schema", "broken.json", {}, "broken.json is not JSON"),
        ("no_secrets", {"rules": ["x"]}, {}, "`no_secrets` has no rule left"),
        ("forbidden_tools", [{"a": {"x": {"$no": 1}}}], {}, "unknown matcher key '$no'"),
        ("trajectory", [{"tol": "a", "args": {}}], {}, "the call has no `tool`"),
        ("trajectory", [{"any_of": ["a", "b"]}] * 9, {}, "512 combinations of paths"),
    ],
)
def test_value_that_the_model_cannot_reject(
    check: str, value: Json, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        build(check, value, **options)
    assert any(message in each.message for each in raised.value.problems)
    assert all(each.place for each in raised.value.problems)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (["503 Service Unavailable"], "`a` failed: 503 Service Unavailable"),
        ([{"error": "carrier\nAPI: 503"}], "`a` failed: carrier API: 503"),
        ([{"error": True, "message": "no stock"}], "`a` failed: no stock"),
        ([{"error": {"code": 4, "message": "no stock"}}], "`a` failed: no stock"),
        ([[{"type": "text", "text": "no stock"}]], "`a` failed: no stock"),
        ([{"code": 4}], '`a` failed: {"code": 4}'),
        ([4], "`a` failed: 4"),
        ([None], "`a` failed"),
        ([{}], "`a` failed"),
        (
            ["Traceback (most recent call last):\n  f()\nKeyError: 'id'"],
            "`a` failed: KeyError: 'id'",
        ),
        (["no stock", "no stock"], "`a` failed 2 times: no stock"),
        ([None, "no stock", "503"], "`a` failed 3 times, first: no stock"),
        (["x" * 300], f"`a` failed: {'x' * 80}…{'x' * 79}"),
    ],
)
def test_failed_tool_is_named_with_its_error(outputs: list[Json], expected: str) -> None:
    calls = [call("a", failed=True) for _ in outputs]
    responses = tuple(
        ToolResponse(name="a", output=output, failed=True, call_index=at)
        for at, output in enumerate(outputs)
    )
    run = make_case(turn("", *calls, tool_responses=responses))
    assert judge(build("no_tool_errors", True), run).misses == (expected,)


def _run_with_result(output: Json, *, failed: bool | None = None) -> Case:
    response = ToolResponse(name="a", output=output, call_index=0)
    return make_case(turn("", call("a", failed=failed), tool_responses=(response,)))


def test_result_that_can_only_be_an_error_fails_without_a_status() -> None:
    error: Json = {"isError": True, "content": [{"type": "text", "text": "no stock"}]}
    for options in ({}, {"allow_unknown": True}):
        found = judge(build("no_tool_errors", True, **options), _run_with_result(error))
        assert (found.passed, found.misses) == (False, ("`a` failed: no stock",))
    check = build("no_tool_errors", True)
    assert judge(check, _run_with_result(error, failed=False)).passed


def test_result_that_looks_like_an_error_passes_and_is_named() -> None:
    check = build("no_tool_errors", True, allow_unknown=True)
    found = judge(check, _run_with_result('{"error": "no stock"}'))
    assert (found.passed, found.details) == (True, {"possible_errors": ["`a`: no stock"]})
    for run in (_run_with_result("fine"), _run_with_result("Error: x", failed=False)):
        assert judge(check, run).details == {}


def test_error_that_was_not_recorded_is_left_out() -> None:
    run = make_case(turn("", call("a", failed=True)))
    assert judge(build("no_tool_errors", True), run).misses == ("`a` failed",)
