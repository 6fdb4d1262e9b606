"""Entries of `evaluators:`: their types, and the defaults and overrides merged into them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.models import GateSpec, ThresholdSpec, list_replacing_limits
from agentci.config.overrides import Overrides, ProgramResolver
from agentci.config.schema import EvaluatorTypes, describe_value
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentevals.builtin_entry import CAMEL_CASE
from agentci.evaluators.checks.names import CHECK_NAMES
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES, METRICS
from agentci.evaluators.metrics import UNSUPPORTED_METRICS as METRICS_NOT_YET
from agentci.evaluators.registry import EVAL_FILE_TYPES, EVALUATOR_TYPES
from agentci.model.values import COMMAND_LINE, Json, JsonObject, Place, Problem, replace


def find_evaluator_types(document: YamlDocument, programs: ProgramResolver) -> EvaluatorTypes:
    """Find the built-in evaluator types, and the plugin types that the config uses.

    Raises:
        InputError: a plugin that the config uses is broken.
    """
    evaluators = document.data.get("evaluators")
    found: dict[str, EvaluatorType[Any]] = {}
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else []):
        name = entry.get("type") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or name in {*EVALUATOR_TYPES, *EVAL_FILE_TYPES, *found}:
            continue
        try:
            plugin_type = programs.type_named(name)
        except InputError as error:
            place = document.place_of(("evaluators", index, "type"))
            raise InputError([replace(each, place=place) for each in error.problems]) from None
        if plugin_type is not None:
            found[name] = plugin_type
    return EVALUATOR_TYPES.with_types(found)


def find_entry_type(entry: Json, types: EvaluatorTypes) -> str | None:
    """The type of an entry; None if it is not one of ``types``."""
    name = entry.get("type") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) and name in types else None


def find_type_problem(
    entry: Json, index: int, document: YamlDocument, types: EvaluatorTypes
) -> Problem:
    """Explain why an entry has none of ``types``."""
    path = ("evaluators", index)
    if not isinstance(entry, Mapping):
        found = describe_value(entry, document.plain_text(path))
        return Problem(
            message=f"each evaluator must be a mapping with `name` and `type`, not {found}",
            place=document.place_of(path),
            hint=_format_entry_fix(entry),
        )
    if named := next((key for key in entry if key in CHECK_NAMES), None):
        return Problem(
            message=f"`{named}` is a check, not an evaluator",
            place=document.place_of(path),
            hint=f"write it below `checks:`, as `- {named}: ...`",
        )
    if "type" in entry:
        return _unknown_type_problem(entry["type"], (*path, "type"), document, types)
    name = entry.get("name")
    owner = f"evaluator {quote_name(name)}" if isinstance(name, str) else "an evaluator"
    return Problem(
        message=f"{owner} has no `type`",
        place=document.place_of(path),
        hint=f"add `type: {_guess_type(entry)}`",
    )


def _unknown_type_problem(
    value: Json, path: KeyPath, document: YamlDocument, types: EvaluatorTypes
) -> Problem:
    name = value if isinstance(value, str) else ""
    if name in EVAL_FILE_TYPES:
        return Problem(
            message=f"type {name!r} is only available in AgentV eval files",
            place=document.place_of(path),
            hint=EVAL_FILE_TYPES[name],
        )
    return Problem(
        message=(
            f"`type` must be {join_with_or(list(types))}, not "
            f"{describe_value(value, document.plain_text(path))}"
        ),
        place=document.place_of(path),
        hint=suggest_name(name, list(types)),
    )


def _guess_type(entry: JsonObject) -> str:
    if "path" in entry:
        return "code"
    name = entry.get("name")
    known = isinstance(name, str) and name in {
        *METRICS,
        *JUDGED_METRIC_PURPOSES,
        *HOSTED_METRICS,
        *METRICS_NOT_YET,
    }
    return "builtin" if known else "builtin` or `type: code"


_ENTRY_EXAMPLE: Final = "- {name: tool_trajectory_avg_score, type: builtin}"


def _format_entry_fix(entry: Json) -> str:
    if isinstance(entry, str) and entry in {*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS}:
        return f"write `- {{name: {entry}, type: builtin}}`"
    return f"for example `{_ENTRY_EXAMPLE}`"


BUILTIN_TYPE: Final = "builtin"

EVERY_SCORE_REACHES_ZERO: Final = "every score reaches a threshold of 0"

# Top-level keys for all built-in metrics in agentevals 0.7.3; here for entries without their own.
THRESHOLD_KEY: Final = "threshold"
BUILTIN_METRIC_KEYS: Final = (THRESHOLD_KEY, "trajectory_match_type", "judge_model")


class MergedEntry(Struct, frozen=True, kw_only=True):
    """The data that an evaluator is built from.

    Attributes:
        type: one of the known types.
        place_of: the position of one of its fields; the entry's position if the field is not set.
    """

    name: str
    type: str
    data: JsonObject
    place: Place
    place_of: Callable[[str], Place]


def merge_entries(
    document: YamlDocument, types: EvaluatorTypes, overrides: Overrides
) -> tuple[MergedEntry, ...]:
    """Merge all entries that have a name and a known type.

    They keep the order of the config; metrics from the command line come last.
    """
    merged: dict[str, MergedEntry] = {}
    evaluators = document.data.get("evaluators")
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        kind, name = find_entry_type(entry, types), document.value(("evaluators", index, "name"))
        if isinstance(entry, Mapping) and kind is not None and isinstance(name, str):
            shared = _find_shared_fields(document.data, kind, types)
            own = {CAMEL_CASE.get(key, key): value for key, value in _drop_nulls(entry).items()}
            last = overrides.fields if kind == BUILTIN_TYPE and not overrides.metrics else {}
            each = MergedEntry(
                name=name,
                type=kind,
                data={**shared, **own, **last},
                place=document.place_of(("evaluators", index)),
                place_of=_make_place_lookup(document, index),
            )
            merged.setdefault(name, each)
    for metric in overrides.metrics:
        shared = _find_shared_fields(document.data, BUILTIN_TYPE, types)
        merged[metric] = MergedEntry(
            name=metric,
            type=BUILTIN_TYPE,
            data={**shared, "name": metric, "type": BUILTIN_TYPE, **overrides.fields},
            place=COMMAND_LINE,
            place_of=lambda _: COMMAND_LINE,
        )
    return tuple(merged.values())


def find_unused_thresholds(
    document: YamlDocument, entries: Sequence[MergedEntry], overrides: Overrides
) -> Iterator[Problem]:
    """Warn about thresholds for built-in metrics in a config without built-in metrics."""
    if any(entry.type == BUILTIN_TYPE for entry in entries):
        return
    places = {
        "--threshold": overrides.threshold is not None and Place(file=document.file),
        "`threshold`": THRESHOLD_KEY in document.data and document.place_of((THRESHOLD_KEY,)),
    }
    for name, place in places.items():
        if place:
            yield Problem(
                message=f"{name} has no effect: it applies to built-in metrics, and the config has "
                "none",
                place=place,
                hint="set `threshold` in each evaluator, or in `defaults`",
                severity="warning",
            )


def find_thresholds_of_zero(entries: Sequence[MergedEntry]) -> Iterator[Problem]:
    """Warn about thresholds that no score can miss, where the gate depends on them."""
    for entry in entries:
        # The threshold of a prompt may lie on any scale.
        if entry.type != "prompt" and entry.data.get("required") is not False:
            threshold = entry.data.get(THRESHOLD_KEY)
            is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            if is_number and threshold == 0:
                yield Problem(
                    message=f"evaluator {entry.name}: {EVERY_SCORE_REACHES_ZERO}",
                    place=entry.place_of(THRESHOLD_KEY),
                    hint="raise it, or write `required: false` if the evaluator only informs",
                    severity="warning",
                )


def find_gates_without_limit(gate: GateSpec, document: YamlDocument) -> Iterator[Problem]:
    """Warn about a `min_pass_rate` of 0 without another limit: any check may fail."""
    specs: dict[KeyPath, ThresholdSpec] = {
        ("gate",): gate,
        **{("gate", "evaluators", name): spec for name, spec in gate.evaluators.items()},
    }
    for path, spec in specs.items():
        is_open = "min_pass_rate" in spec.model_fields_set and spec.min_pass_rate == 0
        if is_open and not (_has_limit(spec) or _has_limit(gate)):
            keys = [f"`{key}`" for key in list_replacing_limits(GateSpec)]
            yield Problem(
                message="every pass rate reaches a `min_pass_rate` of 0, so all checks may fail",
                place=document.place_of((*path, "min_pass_rate")),
                hint=f"raise it, or set {join_with_or(keys)}",
                severity="warning",
            )


def _has_limit(spec: ThresholdSpec) -> bool:
    """Whether a limit besides the pass rate is set; a minimum of 0 limits nothing."""
    values = {key: getattr(spec, key) for key in list_replacing_limits(type(spec))}
    return any(
        value is not None and (value != 0 or not key.startswith("min_"))
        for key, value in values.items()
    )


def _make_place_lookup(document: YamlDocument, index: int) -> Callable[[str], Place]:
    return lambda field: document.place_of(("evaluators", index, field))


def _find_shared_fields(data: JsonObject, kind: str, types: EvaluatorTypes) -> JsonObject:
    """The fields that entries of one type inherit from the config; ``defaults`` take precedence."""
    defaults = data.get("defaults")
    known = types[kind].entry.model_fields
    return {
        **{
            key: data[key]
            for key in BUILTIN_METRIC_KEYS
            if kind == BUILTIN_TYPE and key in _drop_nulls(data)
        },
        **{
            key: value
            for key, value in _drop_nulls(defaults if isinstance(defaults, Mapping) else {}).items()
            if key in known
        },
    }


def _drop_nulls(fields: JsonObject) -> JsonObject:
    """Remove fields with a null value; null means "not set", as in agentevals."""
    return {key: value for key, value in fields.items() if value is not None}
