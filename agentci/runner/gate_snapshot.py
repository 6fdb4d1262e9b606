"""Describe what a config requires: the settings of its evaluators and its eval cases."""

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from agentci._util.text import json_text, truncate
from agentci._util.text.change import list_leaves
from agentci._util.text.format import format_count
from agentci._util.workspace import Workspace
from agentci.config.suite import EvalFileCase, Suite
from agentci.evaluators.evaluator import (
    ComparableEvaluator,
    Definition,
    Evaluator,
    Facts,
    FileContents,
)
from agentci.evaluators.metrics import TOOL_TRAJECTORY
from agentci.gate.policy_changes import match_cases
from agentci.model.case import Dataset, EvalSet, MetricThreshold, ResultsSource, RunSource
from agentci.model.gate import MAX_USD, RESULTS_PREFIX, EvaluatorSettings, Gate
from agentci.model.requests import KEYS_NOT_AFFECTING_SCORES, EvaluatorIdentity, Repetition
from agentci.model.values import Json, MatchType, Place, list_field_names, replace
from agentci.runner.fingerprints import SourceDigests

E = TypeVar("E", bound=Evaluator)

# Where evaluators keep their threshold besides the identity: the class and its field.
THRESHOLD_FIELDS: Final = {
    "PassThreshold": "score",
    "PassRate": "threshold",
    "OpenAIEvaluator": "threshold",
    "EvalsApiEvaluator": "threshold",
}
# Fields with values that have a threshold.
NESTED_FIELDS: Final = ("threshold", "aggregator", "code_judge", "evaluator")
SCALED_THRESHOLD_FIELD: Final = "prompt_threshold"
# The threshold in a grader of OpenAI's Evals API, on its own scale.
SERVICE_THRESHOLD_KEY: Final = "pass_threshold"
# The rule of a check, which has its limits.
CHECK_RULE_FIELD: Final = "compiled"
MATCH_TYPE_OPTION: Final = "match_type"
DEFAULT_MATCH_TYPE: Final[MatchType] = "EXACT"

NEUTRAL: Final = EvaluatorSettings(
    name="",
    threshold=0.0,
    criterion="",
    required=True,
    match_type=DEFAULT_MATCH_TYPE,
    turn_score="mean",
    on_turn_mismatch="fail",
)


def read_settings(evaluator: Evaluator) -> EvaluatorSettings:
    """Read what an evaluator requires, without its definition and cases."""
    identity, found = evaluator.identity, evaluator
    mismatch = getattr(found, "turn_mismatch_fails", None)
    scaled: Any = getattr(getattr(found, SCALED_THRESHOLD_FIELD, None), "threshold", None)
    is_number = isinstance(scaled, float | int) and not isinstance(scaled, bool)
    return EvaluatorSettings(
        name=identity.name,
        threshold=float(scaled) if is_number else identity.threshold,
        criterion=identity.criterion,
        required=identity.required,
        weight=identity.weight,
        match_type=_read_match_type(found),
        turn_score=getattr(found, "turn_score", None),
        on_turn_mismatch=None if mismatch is None else "fail" if mismatch else "allow",
        repeat=identity.repetition.times,
        repeat_by=identity.repetition.aggregation,
        limits=getattr(found, "limits", {}),
    )


def apply_settings(evaluator: E, settings: EvaluatorSettings) -> E:
    """Return the evaluator with what ``settings`` require.

    An evaluator of a plugin keeps its threshold, which only the plugin knows how to apply.
    """
    found: Any = evaluator
    if isinstance(found, Struct):
        return _apply(found, settings)  # type: ignore[no-any-return]  # (of the same class)
    changed = copy.copy(found)
    changed.identity = replace(evaluator.identity, required=settings.required)
    return changed  # type: ignore[no-any-return]  # (of the same class)


def _read_match_type(evaluator: Any) -> MatchType | None:
    if getattr(evaluator, "metric", None) != TOOL_TRAJECTORY:
        return None
    given = getattr(evaluator, "options", {}).get(MATCH_TYPE_OPTION)
    return given or DEFAULT_MATCH_TYPE


def _apply(value: Any, settings: EvaluatorSettings) -> Any:
    """Set the values in ``value`` and in the values that it consists of."""
    fields = value.__struct_fields__
    changes = {} if settings.threshold is None else _set_thresholds(value, settings.threshold)
    for name in NESTED_FIELDS:
        if name in fields and isinstance(part := getattr(value, name), Struct):
            changes[name] = _apply(part, settings)
    if CHECK_RULE_FIELD in fields and settings.limits and value.limits:
        changes[CHECK_RULE_FIELD] = replace(value.compiled, limits=settings.limits)
    changes |= _set_metric_options(frozenset(fields), settings)
    if "identity" in fields and isinstance(identity := value.identity, EvaluatorIdentity):
        scaled = changes.get(SCALED_THRESHOLD_FIELD)
        share = settings.threshold if scaled is None else scaled.score(scaled.threshold)
        if scaled is not None or None not in (share, identity.threshold):
            identity = replace(identity, threshold=share, criterion=settings.criterion)
        changes["identity"] = replace(
            identity,
            required=settings.required,
            weight=settings.weight,
            repetition=Repetition(times=settings.repeat, aggregation=settings.repeat_by),
        )
    return replace(value, **changes) if changes else value


def _set_metric_options(fields: frozenset[str], settings: EvaluatorSettings) -> dict[str, Any]:
    """Return the fields of a metric's evaluator that hold an option, with the new values."""
    changes: dict[str, Any] = {}
    if "turn_mismatch_fails" in fields and settings.on_turn_mismatch is not None:
        changes["turn_mismatch_fails"] = settings.on_turn_mismatch == "fail"
    if "turn_score" in fields and settings.turn_score is not None:
        changes["turn_score"] = settings.turn_score
    if {"metric", "options"} <= fields and settings.match_type is not None:
        changes["options"] = {MATCH_TYPE_OPTION: settings.match_type}
    return changes


def _set_thresholds(value: Any, threshold: float) -> dict[str, Any]:
    """Return the fields of ``value`` that hold a threshold, with the new one."""
    changes: dict[str, Any] = {}
    if own := THRESHOLD_FIELDS.get(type(value).__name__):
        changes[own] = threshold
    criterion = getattr(value, "criterion", None)
    if isinstance(criterion, dict) and SERVICE_THRESHOLD_KEY in criterion:
        scaled = value.low + threshold * (value.high - value.low)
        changes["criterion"] = {**criterion, SERVICE_THRESHOLD_KEY: scaled}
    scaled = getattr(value, SCALED_THRESHOLD_FIELD, None)
    if scaled is not None and not isinstance(scaled.threshold, bool):
        changes[SCALED_THRESHOLD_FIELD] = replace(scaled, threshold=threshold)
    return changes


DIGITS: Final = 16
MAX_VALUE: Final = 100
SHOWN_DIGITS: Final = 8
_IDENTITY: Final = "identity"
# Parts of evaluators that are no keys of a config.
_PARTS: Final = frozenset({"entry", "program", "rule", "run"})
_NOT_AFFECTING_SCORES: Final = {
    *KEYS_NOT_AFFECTING_SCORES,
    *KEYS_NOT_AFFECTING_SCORES.values(),
}
# Fields that are not settings: those without effect, except for `required`, which is part of the
# policy; the definition, which is made of the other fields; and values of agentci itself.
_UNLISTED_FIELDS: Final = (_NOT_AFFECTING_SCORES - {"required"}) | {
    *("own_variables", "definition", "compiled", "home", "budget_id", "caps", "replay"),
    *("federation", "prices"),
    "by_case",  # what checks of eval cases look for, which belongs to the eval cases
    "embedding_model",  # a setting of judges; evaluators that compare embeddings use `model`
}
# Characters of the values of all cases.
MAX_CASE_VALUES: Final = 256 * 1024
MAX_CASE_VALUE: Final = 300
_CASE_FIELDS: Final = ("criteria", "input_messages", "expected_messages")
# Expected turns of a conversation, which belong to its case.
CONVERSATION_FIELD: Final = "conversation"


def make_gate(
    suite: Suite,
    workspace: Workspace,
    *,
    eval_set: EvalSet | None = None,
    dataset: Dataset | None = None,
    uncovered: tuple[str, ...] = (),
    recorded_runs: int | None = None,
) -> Gate:
    """Make the gate of a suite.

    Args:
        workspace: paths count relative to it.
        uncovered: ids of the eval cases without a matching recorded run.
        recorded_runs: as in ``Gate``.
    """
    root = workspace.root
    names = [each.identity.name for each in suite.evaluators]
    # Until results of other tools are read, their metrics are known only from the thresholds.
    names += suite.gate.evaluators if suite.has_results else ()
    evaluators = tuple(dict.fromkeys(names))
    trials = suite.trials
    return Gate(
        config=suite.file,
        policy=suite.gate,
        evaluators=evaluators,
        uncovered=uncovered,
        settings=(*_describe_evaluators(suite, workspace), *_describe_results(suite, root)),
        eval_cases=dict(_digest_cases(suite, eval_set, dataset, root)),
        recorded_runs=recorded_runs,
        selection=_describe_selection(suite.run_sources),
        case_names=_describe_case_names(suite.run_sources),
        trials="" if trials is None else f"{trials.strategy} of {trials.count}",
        inputs=dict(_describe_inputs(suite, root)),
        case_values=dict(_describe_cases(suite, eval_set, dataset, root)),
    )


def _describe_inputs(suite: Suite, root: Path) -> Iterator[tuple[str, str]]:
    """Yield the keys that change how runs are made and read, and prices if costs are limited."""
    has_costs = any(MAX_USD in getattr(each, "limits", {}) for each in suite.evaluators)
    prices = {model: each.make_price() for model, each in suite.prices.items()}
    found = {
        "group_by": None if suite.group_by == "auto" else suite.group_by,
        "trace_format": suite.trace_format,
        "prices": prices if has_costs else None,
        "command": None if suite.agent is None else suite.agent.command,
    }
    for key, value in found.items():
        if value:
            yield key, _shorten_value(_write(_drop_class_names(_list_facts(value, f"{root}"))))


def _describe_selection(sources: Sequence[RunSource]) -> Mapping[str, str]:
    """Return which traces of each path the entries of ``traces`` select, as text."""
    found: dict[str, list[str]] = {}
    for source in sources:
        own = ", ".join(f"{name}: {source.where[name]}" for name in sorted(source.where))
        found.setdefault(source.path, []).append(own)
    return {path: " or ".join(own) if all(own) else "" for path, own in found.items()}


def _describe_case_names(sources: Sequence[RunSource]) -> Mapping[str, str]:
    """Return which eval case the entries of ``traces`` name for each path, as text."""
    found: dict[str, list[str]] = {}
    for source in sources:
        given = source.case or ""
        own = given if isinstance(given, str) else json_text.dumps(dict(sorted(given.items())))
        found.setdefault(source.path, []).append(own)
    return {path: " or ".join(own) for path, own in found.items()}


def apply_base_settings(suite: Suite, base: Gate, head: Gate) -> Suite:
    """Return the suite with the settings that evaluators have in the base commit.

    Args:
        head: the gate of the suite.
    """
    shared = {each.name: each for each in base.settings if not each.cases}
    own = {(case, each.name): each for each in base.settings for case in each.cases}

    known: dict[tuple[int, int], ComparableEvaluator] = {}

    def change(evaluator: ComparableEvaluator, case: str = "") -> ComparableEvaluator:
        name = evaluator.identity.name
        settings = own.get((case, name)) or shared.get(name)
        if settings is None:
            return evaluator
        # Cases that share an evaluator go on sharing it.
        key = (id(evaluator), id(settings))
        if key not in known:
            known[key] = apply_settings(evaluator, settings)
        return known[key]

    if suite.eval_cases is None:
        return replace(
            suite,
            evaluators=tuple(map(change, suite.evaluators)),
            results=tuple(_apply_base_thresholds(each, shared) for each in suite.results),
        )
    matched = match_cases(base.eval_cases, head.eval_cases)
    former_ids = {case: former for former, case in matched.items()}
    cases: list[EvalFileCase] = []
    for each in suite.eval_cases:
        former_id = former_ids.get(each.eval_case.id, "")
        changed = tuple(change(evaluator, former_id) for evaluator in each.evaluators)
        cases.append(replace(each, evaluators=changed))
    distinct = {id(each): each for case in cases for each in case.evaluators}
    return replace(suite, evaluators=tuple(distinct.values()), eval_cases=tuple(cases))


def _apply_base_thresholds(
    source: ResultsSource, base: Mapping[str, EvaluatorSettings]
) -> ResultsSource:
    """Return a source of results with the thresholds that its metrics have in the base commit."""
    metrics = dict(source.metrics)
    for metric in source.metrics:
        settings = base.get(_name_metric(source, metric))
        if settings is not None:
            metrics[metric] = MetricThreshold(
                threshold=settings.threshold, maximum=settings.maximum
            )
    return replace(source, metrics=metrics)


def _describe_results(suite: Suite, root: Path) -> Iterator[EvaluatorSettings]:
    """The thresholds of metrics in results of other tools, and what each entry requires."""
    for source in suite.results:
        cases = source.expected_count or ", ".join(source.expected_cases)
        values = {"tool": source.tool, "gate_on": source.gate_on, "expect.cases": f"{cases}"}
        facts = [source.tool, source.gate_on, source.expected_count, source.expected_cases]
        yield EvaluatorSettings(
            name=f"{RESULTS_PREFIX}{source.path}",
            threshold=None,
            criterion=f"gate_on: {source.gate_on}",
            required=True,
            definition=_digest(facts, root),
            values={key: _shorten_value(text) for key, text in values.items() if text},
        )
        for metric, bound in source.metrics.items():
            yield EvaluatorSettings(
                name=_name_metric(source, metric),
                threshold=bound.threshold,
                maximum=bound.maximum,
                criterion=bound.criterion,
                required=True,
                definition=_digest([bound.threshold is None], root),
                values={"criterion": bound.criterion},
            )


def _name_metric(source: ResultsSource, metric: str) -> str:
    return f"{source.name}/{metric}" if source.name else metric


def _describe_evaluators(suite: Suite, workspace: Workspace) -> Iterator[EvaluatorSettings]:
    """The settings of each evaluator; for eval files with the cases that it evaluates."""
    cases: dict[int, list[str]] = {}
    for each in suite.eval_cases or ():
        for evaluator in each.evaluators:
            cases.setdefault(id(evaluator), []).append(each.eval_case.id)
    digests = SourceDigests(workspace)
    for evaluator in suite.evaluators:
        own = cases.get(id(evaluator), [])
        facts = _list_facts(apply_settings(evaluator, NEUTRAL), f"{workspace.root}")
        yield replace(
            read_settings(evaluator),
            cases=() if len(own) == len(suite.eval_cases or ()) else tuple(own),
            definition=_digest_facts(facts),
            values=dict(_list_values(facts)),
            code=_digest_code(evaluator.definition, digests),
        )


def _digest_code(definition: Definition, digests: SourceDigests) -> str:
    """Return the digest of all files that a definition names; empty if there are none."""
    found = [each for files in find_files(definition) for each in digests.compute(files)]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:DIGITS] if found else ""


def find_files(facts: Facts) -> Iterator[FileContents]:
    """Yield the files that a definition names."""
    match facts:
        case FileContents():
            yield facts
        case Mapping():
            for key in sorted(facts):
                yield from find_files(facts[key])
        case list() | tuple():
            for each in facts:
                yield from find_files(each)
        case _:
            pass


def _digest_cases(
    suite: Suite, eval_set: EvalSet | None, dataset: Dataset | None, root: Path
) -> Iterator[tuple[str, str]]:
    """The id of each eval case or dataset row, and the digest of everything but its id."""
    for case in () if eval_set is None else eval_set.cases:
        own = [case.own_checks] if case.own_checks else []
        yield case.id, _digest([case.turns, case.rubrics, *own], root)
    for row in () if dataset is None else dataset.rows:
        yield row.id, _digest([row.query, row.input_columns], root)
    for each in suite.eval_cases or ():
        # Of a conversation, the turns are known to its evaluators only.
        found = (getattr(one, CONVERSATION_FIELD, None) for one in each.evaluators)
        conversation = next(filter(None, found), None)
        asked = replace(each.eval_case, id="", target="", provider="")
        yield each.eval_case.id, _digest([asked, conversation], root)


def _describe_cases(
    suite: Suite, eval_set: EvalSet | None, dataset: Dataset | None, root: Path
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the values of each eval case or dataset row, until there are too many."""
    left = MAX_CASE_VALUES
    for case_id, value in _list_cases(suite, eval_set, dataset):
        leaves = list_leaves(_drop_class_names(_list_facts(value, f"{root}")), "")
        values = {
            path: _shorten_value(_write(each), MAX_CASE_VALUE)
            for path, each in leaves
            if each not in (None, "", [], {})
        }
        left -= len(case_id) + sum(len(path) + len(text) for path, text in values.items())
        if left < 0:
            return
        yield case_id, values


def _list_cases(
    suite: Suite, eval_set: EvalSet | None, dataset: Dataset | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what cases ask and expect, by the names that reports use."""
    for case in () if eval_set is None else eval_set.cases:
        turns = [
            {
                "question": turn.user_text,
                "answer": "\n".join(turn.answer_parts),
                "calls": [{"tool": call.name, "arguments": call.args} for call in turn.tool_calls],
            }
            for turn in case.turns
        ]
        whole: Mapping[str, Any] = turns[0] if len(turns) == 1 else {"turns": turns}
        yield case.id, {**whole, "rubrics": case.rubrics, "checks": case.own_checks}
    for row in () if dataset is None else dataset.rows:
        yield row.id, {"query": row.query, **row.input_columns}
    for each in suite.eval_cases or ():
        asked = each.eval_case
        yield asked.id, {name: getattr(asked, name) for name in _CASE_FIELDS}


def _digest(value: object, root: Path) -> str:
    return _digest_facts(_list_facts(value, f"{root}"))


def _digest_facts(facts: Json) -> str:
    return hashlib.sha256(json_text.dumps(facts).encode()).hexdigest()[:DIGITS]


def _list_values(facts: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the values of facts that are set, as short texts, by their keys with dots."""
    if isinstance(facts, dict):
        for key, value in facts.items():
            is_setting = path != (_IDENTITY,) or key == "type"
            if key and is_setting:
                yield from _list_values(value, path if not path and key in _PARTS else (*path, key))
    elif facts is not None and facts not in ("", []):
        text = _write(_drop_class_names(facts))
        yield ".".join(path).removeprefix(f"{_IDENTITY}."), _shorten_value(text)


def _write(facts: Json) -> str:
    return facts if isinstance(facts, str) else json_text.dumps(facts)


def _shorten_value(text: str, limit: int = MAX_VALUE) -> str:
    """Shorten a text so that any two differ in what is left."""
    shown = truncate.short(" ".join(text.split()), limit)
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:SHOWN_DIGITS]
    return f"{shown} ({format_count(len(text), 'character')}, SHA-256 {digest})"


def _drop_class_names(facts: Json) -> Json:
    if isinstance(facts, list):
        return [_drop_class_names(each) for each in facts]
    if isinstance(facts, dict):
        return {key: _drop_class_names(each) for key, each in facts.items() if key}
    return facts


def _list_facts(value: Any, root: str) -> Json:
    """The value as JSON without positions, and with paths relative to ``root``."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return value.replace(root, ".") if root in value else value
        case Mapping():
            return {str(key): _list_facts(value[key], root) for key in sorted(value, key=str)}
        case Sequence():
            return [_list_facts(each, root) for each in value]
        case _:
            fields = {
                name: _list_facts(member, root)
                for name in list_field_names(value)
                if name not in _UNLISTED_FIELDS and name != CONVERSATION_FIELD
                if not isinstance(member := getattr(value, name), Place)
            }
            return {"": type(value).__qualname__, **fields}
