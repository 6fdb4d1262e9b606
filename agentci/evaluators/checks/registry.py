"""The checks that a config can list; a new check is an entry model, a rule and a row here."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from agentci._util.text.format import format_criterion, format_duration, parse_duration
from agentci._util.text.json_text import decode_strict_json, describe_json_error
from agentci._util.text.patterns import RE2_HINT
from agentci._util.text.safe_schema import SafeSchema
from agentci.errors import InputError
from agentci.evaluators.checks import entries
from agentci.evaluators.checks.check import CheckContext, CheckEvaluator, CheckRule
from agentci.evaluators.checks.limits import (
    MAX,
    MaxCost,
    MaxDuration,
    MaxLatency,
    MaxModelCalls,
    MaxTokens,
)
from agentci.evaluators.checks.texts import (
    AbsentTexts,
    JsonAnswer,
    LengthLimits,
    NoSecrets,
    PresentTexts,
    TextTest,
    make_pattern_tests,
    make_text_tests,
    select_rules,
)
from agentci.evaluators.checks.tools import (
    ALL_CALLS,
    MAXIMUM,
    MINIMUM,
    AllowedTools,
    ForbiddenTools,
    RepeatLimit,
    RequiredTools,
    ToolCallLimits,
    ToolErrorLimit,
)
from agentci.evaluators.checks.trajectory import TrajectoryRule
from agentci.evaluators.evaluator import Evaluator, Facts
from agentci.evaluators.trajectory.expectation import (
    ExpectedTrajectory,
    InvalidExpectationError,
    read_forbidden,
    read_trajectory,
)
from agentci.evaluators.trajectory.match import MAX_VARIANTS, count_variants
from agentci.model.gate import MAX_MS, MAX_USD
from agentci.model.requests import EvaluatorIdentity
from agentci.model.trace import ModelPrice, PriceList
from agentci.model.values import Json, Problem

CHECK_TYPE: Final = "check"
E = TypeVar("E", bound=entries.CheckEntry)


class CheckType(Struct, Generic[E], frozen=True, kw_only=True):
    """One check.

    Attributes:
        entry: the model of its item, in the long form.
        make: makes the rule; raises InputError for a value that the model cannot reject.
        criterion: describes what the rule requires.
    """

    entry: type[E]
    make: Callable[[E, CheckContext], CheckRule]
    criterion: Callable[[Mapping[str, float]], str] | None = None


def build_check(kind: str, entry: entries.CheckEntry, context: CheckContext) -> CheckEvaluator:
    """Build the evaluator of a check.

    Raises:
        InputError: its value is invalid.
    """
    check_type = CHECKS[kind]
    rule = check_type.make(entry, context)
    threshold = float(getattr(entry, "threshold", 1.0))
    if isinstance(rule, TrajectoryRule):
        threshold = rule.expected.threshold
    limits: Mapping[str, float] = getattr(rule, "limits", {})
    describe = check_type.criterion
    return CheckEvaluator(
        identity=EvaluatorIdentity(
            name=context.name,
            type=CHECK_TYPE,
            criterion=describe(limits) if describe and limits else format_criterion(threshold),
            threshold=threshold,
            required=entry.required,
            place=context.place,
        ),
        compiled=rule,
        entry=_define(entry, rule, has_limits=bool(limits)),
        cases=tuple(entry.cases),
    )


def _define(entry: entries.CheckEntry, rule: CheckRule, *, has_limits: bool) -> Mapping[str, Facts]:
    """All that decides the result besides limits and threshold, by the keys of configs."""
    left_out = {"name", "required", "threshold"} | ({"value"} if has_limits else set())
    given = entry.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    more: dict[str, Facts] = {}
    if isinstance(rule, MaxTokens):
        more["per"] = rule.per
    if isinstance(rule, MaxCost):
        more["prices"] = [[name, _list_prices(price)] for name, price in rule.prices]
    if isinstance(rule, JsonAnswer) and rule.schema is not None:
        more["value"] = rule.schema.written
    return {**given, "type": CHECK_TYPE, "check": entry.check, **more}


def find_common_prices(evaluators: Iterable[Evaluator]) -> PriceList:
    """Find the prices of all ``max_cost`` checks; empty if they differ or if none has any."""
    rules = (each.compiled for each in evaluators if isinstance(each, CheckEvaluator))
    found = {each.prices for each in rules if isinstance(each, MaxCost) and each.prices}
    return dict(found.pop()) if len(found) == 1 else {}


def _list_prices(price: ModelPrice) -> Facts:
    return [price.input, price.output, price.cache_read, price.cache_write]


def _list_texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _make_latency(entry: entries.MaxLatencyEntry, _: CheckContext) -> CheckRule:
    return MaxLatency(limits={MAX_MS: parse_duration(entry.value)}, scope=entry.scope)


def _make_duration(entry: entries.MaxDurationEntry, _: CheckContext) -> CheckRule:
    return MaxDuration(limits={MAX_MS: parse_duration(entry.value)})


def _make_tokens(entry: entries.MaxTokensEntry, context: CheckContext) -> CheckRule:
    if isinstance(entry.value, int):
        return MaxTokens(limits={"max total": entry.value}, per="run")
    limits = entry.value.model_dump(exclude_none=True, exclude={"per"})
    if not limits:
        raise InputError.from_message(
            "`max_tokens` has no limit",
            place=context.find_place(),
            hint="add `total`, `input` or `output`",
        )
    return MaxTokens(
        limits={f"{MAXIMUM}{name}": most for name, most in limits.items()}, per=entry.value.per
    )


def _make_cost(entry: entries.MaxCostEntry, context: CheckContext) -> CheckRule:
    prices = {**entry.prices, **{k: v for k, v in context.prices.items() if k not in entry.prices}}
    return MaxCost(
        limits={MAX_USD: entries.parse_cost(entry.value)},
        prices=tuple((name, each.make_price()) for name, each in prices.items()),
    )


def _make_tool_calls(entry: entries.MaxToolCallsEntry, _: CheckContext) -> CheckRule:
    value = {ALL_CALLS: entry.value} if isinstance(entry.value, int) else entry.value
    return ToolCallLimits(limits={f"{MAXIMUM}{name}": most for name, most in value.items()})


def _make_model_calls(entry: entries.MaxModelCallsEntry, _: CheckContext) -> CheckRule:
    return MaxModelCalls(limits={MAX: entry.value})


def _make_repeats(entry: entries.MaxRepeatsEntry, _: CheckContext) -> CheckRule:
    return RepeatLimit(tools=tuple(entry.tools or [ALL_CALLS]), limits={MAX: entry.value})


def _make_tool_errors(entry: entries.NoToolErrorsEntry, _: CheckContext) -> CheckRule:
    return ToolErrorLimit(
        tools=tuple(entry.tools or [ALL_CALLS]),
        recovered=entry.recovered,
        allow_unknown=entry.allow_unknown,
        limits={MAX: entry.allow},
    )


def _make_required_tools(entry: entries.RequiredToolsEntry, _: CheckContext) -> CheckRule:
    value = dict.fromkeys(entry.value, 1) if isinstance(entry.value, list) else entry.value
    return RequiredTools(limits={f"{MINIMUM}{name}": least for name, least in value.items()})


def _make_forbidden_tools(entry: entries.ForbiddenToolsEntry, context: CheckContext) -> CheckRule:
    try:
        return ForbiddenTools(rules=read_forbidden(entry.value))
    except InvalidExpectationError as error:
        raise _make_input_error(error, context) from None


def _make_allowed_tools(entry: entries.AllowedToolsEntry, _: CheckContext) -> CheckRule:
    return AllowedTools(tools=tuple(entry.value))


def _make_present(verb: str, needs: str) -> Callable[[Any, CheckContext], CheckRule]:
    def make(entry: Any, _: CheckContext) -> CheckRule:
        folds = entry.ignore_case or entry.check == "icontains"
        tests = make_text_tests(verb, _list_texts(entry.value), ignore_case=folds)
        return PresentTexts(tests=tests, of=entry.of, needs=needs)

    return make


def _make_absent(entry: entries.NotContainsEntry, _: CheckContext) -> CheckRule:
    texts = _list_texts(entry.value)
    tests = make_text_tests("contain", texts, ignore_case=entry.ignore_case)
    return AbsentTexts(tests=tests, of=entry.of)


def _make_matches(entry: entries.MatchesEntry, context: CheckContext) -> CheckRule:
    return PresentTexts(tests=_compile(entry, context), of=entry.of, needs="all")


def _make_not_matches(entry: entries.NotMatchesEntry, context: CheckContext) -> CheckRule:
    return AbsentTexts(tests=_compile(entry, context), of=entry.of)


def _compile(
    entry: entries.MatchesEntry | entries.NotMatchesEntry, context: CheckContext
) -> tuple[TextTest, ...]:
    tests: list[TextTest] = []
    problems: list[Problem] = []
    for index, each in enumerate(_list_texts(entry.value)):
        try:
            tests += make_pattern_tests([each], full=entry.full)
        except ValueError as error:
            place = context.find_place((index,) if isinstance(entry.value, list) else ())
            message = f"invalid pattern: {error}"
            problems.append(Problem(message=message, place=place, hint=RE2_HINT))
    if problems:
        raise InputError(problems)
    return tuple(tests)


def _make_json_schema(entry: entries.JsonSchemaEntry, context: CheckContext) -> CheckRule:
    if entry.value is True:
        return JsonAnswer(schema=None, fence=entry.fence)
    try:
        schema = SafeSchema(_load_schema(entry.value, context))
    except ValueError as error:
        message = f"invalid JSON Schema: {error}"
        raise InputError.from_message(message, place=context.find_place()) from None
    return JsonAnswer(schema=schema, fence=entry.fence)


def _load_schema(value: Json, context: CheckContext) -> Json:
    if not isinstance(value, str):
        return value
    file = context.read(value)
    try:
        return decode_strict_json(file.text)
    except ValueError as error:
        raise ValueError(f"{file.name} is not JSON: {describe_json_error(error)}") from None


def _make_length(unit: str) -> Callable[[Any, CheckContext], CheckRule]:
    def make(entry: Any, context: CheckContext) -> CheckRule:
        value = entry.value
        limits = {MAX: value} if isinstance(value, int) else value.model_dump(exclude_none=True)
        if limits.get("min", 0) > limits.get(MAX, math.inf):
            raise InputError.from_message(
                f"no answer has at least {limits['min']:,} and at most {limits[MAX]:,} {unit}s",
                place=context.find_place(("min",)),
                hint="exchange `min` and `max`",
            )
        if not limits:
            message = f"`{entry.check}` has no limit"
            raise InputError.from_message(
                message, place=context.find_place(), hint="add `max` or `min`"
            )
        return LengthLimits(unit=unit, limits=limits)

    return make


def _make_no_secrets(entry: entries.NoSecretsEntry, context: CheckContext) -> CheckRule:
    spec = entries.SecretsSpec() if entry.value is True else entry.value
    rules = select_rules(tuple(spec.rules or [ALL_CALLS]), tuple(spec.ignore))
    if not rules:
        names = ", ".join(rule.name for rule in select_rules((ALL_CALLS,), ()))
        raise InputError.from_message(
            "`no_secrets` has no rule left",
            place=context.find_place(),
            hint=f"for example `rules: [github-token]`; all rules: {names}",
        )
    values = {name: context.read_variable(name) for name in spec.env}
    return NoSecrets(rules=rules, of=tuple(spec.of), variables=values)


def _make_trajectory(entry: entries.TrajectoryCheckEntry, context: CheckContext) -> CheckRule:
    return TrajectoryRule(expected=read_expected_calls(entry.value, context))


def read_expected_calls(written: Json, context: CheckContext) -> ExpectedTrajectory:
    """Read expected calls.

    Raises:
        InputError: they break the grammar, or have too many paths.
    """
    try:
        expected = read_trajectory(written)
    except InvalidExpectationError as error:
        raise _make_input_error(error, context) from None
    if (number := count_variants(expected.calls)) > MAX_VARIANTS:
        raise InputError.from_message(
            f"the trajectory has {number:,} combinations of paths; at most {MAX_VARIANTS} are "
            "compared",
            place=context.find_place(),
            hint="use fewer `any_of` and `optional` groups; single calls may name several tools, "
            "as `tool: [a, b]`",
        )
    return expected


def _make_input_error(error: InvalidExpectationError, context: CheckContext) -> InputError:
    return InputError(
        [
            Problem(
                message=each.message,
                place=context.find_place(each.path, key=each.key),
                hint=each.hint,
            )
            for each in error.problems
        ]
    )


def _describe_counts(noun: str) -> Callable[[Mapping[str, float]], str]:
    """Describe limits on counts: ``tool calls <= 8``, ``find_order calls <= 2``."""

    def describe(limits: Mapping[str, float]) -> str:
        parts: list[str] = []
        for key, limit in limits.items():
            bound, _, name = key.partition(" ")
            subject = f"{name} {noun}" if name not in ("", ALL_CALLS, "total") else noun
            parts.append(f"{subject} {'>=' if bound == 'min' else '<='} {limit:,.0f}")
        return ", ".join(parts)

    return describe


CHECKS: Final[Mapping[str, CheckType[Any]]] = {
    "max_latency": CheckType(
        entry=entries.MaxLatencyEntry,
        make=_make_latency,
        criterion=lambda limits: f"time <= {format_duration(limits[MAX_MS])}",
    ),
    "max_duration": CheckType(
        entry=entries.MaxDurationEntry,
        make=_make_duration,
        criterion=lambda limits: f"time of the run <= {format_duration(limits[MAX_MS])}",
    ),
    "max_tokens": CheckType(
        entry=entries.MaxTokensEntry, make=_make_tokens, criterion=_describe_counts("tokens")
    ),
    "max_cost": CheckType(
        entry=entries.MaxCostEntry,
        make=_make_cost,
        criterion=lambda limits: f"cost <= ${limits[MAX_USD]:g}",
    ),
    "max_tool_calls": CheckType(
        entry=entries.MaxToolCallsEntry,
        make=_make_tool_calls,
        criterion=_describe_counts("tool calls"),
    ),
    "max_model_calls": CheckType(
        entry=entries.MaxModelCallsEntry,
        make=_make_model_calls,
        criterion=_describe_counts("model calls"),
    ),
    "max_repeats": CheckType(
        entry=entries.MaxRepeatsEntry,
        make=_make_repeats,
        criterion=_describe_counts("equal tool calls"),
    ),
    "no_tool_errors": CheckType(
        entry=entries.NoToolErrorsEntry,
        make=_make_tool_errors,
        criterion=_describe_counts("tool errors"),
    ),
    "required_tools": CheckType(entry=entries.RequiredToolsEntry, make=_make_required_tools),
    "forbidden_tools": CheckType(entry=entries.ForbiddenToolsEntry, make=_make_forbidden_tools),
    "allowed_tools": CheckType(entry=entries.AllowedToolsEntry, make=_make_allowed_tools),
    "contains": CheckType(entry=entries.ContainsEntry, make=_make_present("contain", "all")),
    "contains_any": CheckType(entry=entries.ContainsAnyEntry, make=_make_present("contain", "any")),
    "contains_all": CheckType(
        entry=entries.ContainsAllEntry, make=_make_present("contain", "share")
    ),
    "not_contains": CheckType(entry=entries.NotContainsEntry, make=_make_absent),
    "starts_with": CheckType(
        entry=entries.StartsWithEntry, make=_make_present("start with", "any")
    ),
    "equals": CheckType(entry=entries.EqualsEntry, make=_make_present("equal", "any")),
    "matches": CheckType(entry=entries.MatchesEntry, make=_make_matches),
    "not_matches": CheckType(entry=entries.NotMatchesEntry, make=_make_not_matches),
    "json_schema": CheckType(entry=entries.JsonSchemaEntry, make=_make_json_schema),
    "max_words": CheckType(
        entry=entries.MaxWordsEntry, make=_make_length("word"), criterion=_describe_counts("words")
    ),
    "max_chars": CheckType(
        entry=entries.MaxCharsEntry,
        make=_make_length("character"),
        criterion=_describe_counts("characters"),
    ),
    "no_secrets": CheckType(entry=entries.NoSecretsEntry, make=_make_no_secrets),
    "trajectory": CheckType(entry=entries.TrajectoryCheckEntry, make=_make_trajectory),
}
