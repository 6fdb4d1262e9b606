"""Entries with all that applies to them: defaults, values of the whole config, overrides."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci.config.entry_types import type_of
from agentci.config.overrides import Overrides
from agentci.config.schema import Types
from agentci.config.yaml_document import YamlDocument
from agentci.evaluators.agentevals.entries import CAMEL_CASE
from agentci.model.json import JsonObject
from agentci.model.place import COMMAND_LINE, Place
from agentci.model.problem import Problem

BUILTIN: Final = "builtin"

# Top-level keys of agentevals 0.7.3 for all built-in metrics; here for those that set none.
THRESHOLD: Final = "threshold"
FOR_BUILTINS: Final = (THRESHOLD, "trajectory_match_type", "judge_model")


class Merged(Struct, frozen=True, kw_only=True):
    """What an evaluator is built from.

    Attributes:
        type: one of the known types.
        place_of: where one of its own fields is; the entry's place where it has none of that name.
    """

    name: str
    type: str
    data: JsonObject
    place: Place
    place_of: Callable[[str], Place]


def merge(document: YamlDocument, types: Types, overrides: Overrides) -> tuple[Merged, ...]:
    """All entries with a name and a known type, in the order of the config; added metrics last."""
    merged: dict[str, Merged] = {}
    evaluators = document.data.get("evaluators")
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        kind, name = type_of(entry, types), document.value(("evaluators", index, "name"))
        if isinstance(entry, Mapping) and kind is not None and isinstance(name, str):
            shared = _shared(document.data, kind, types)
            own = {CAMEL_CASE.get(key, key): value for key, value in _given(entry).items()}
            last = overrides.fields if kind == BUILTIN and not overrides.metrics else {}
            each = Merged(
                name=name,
                type=kind,
                data={**shared, **own, **last},
                place=document.place_of(("evaluators", index)),
                place_of=_places(document, index),
            )
            merged.setdefault(name, each)
    for metric in overrides.metrics:
        shared = _shared(document.data, BUILTIN, types)
        merged[metric] = Merged(
            name=metric,
            type=BUILTIN,
            data={**shared, "name": metric, "type": BUILTIN, **overrides.fields},
            place=COMMAND_LINE,
            place_of=lambda _: COMMAND_LINE,
        )
    return tuple(merged.values())


def idle_thresholds(
    document: YamlDocument, entries: Sequence[Merged], overrides: Overrides
) -> Iterator[Problem]:
    """Thresholds for built-in metrics, where there are none."""
    if any(entry.type == BUILTIN for entry in entries):
        return
    said = {
        "--threshold": overrides.threshold is not None and Place(file=document.file),
        "this threshold": THRESHOLD in document.data and document.place_of((THRESHOLD,)),
    }
    for what, place in said.items():
        if place:
            yield Problem(
                message=f"{what} changes no evaluator of this config: it is for built-in metrics",
                place=place,
                hint="give the others a `threshold` of their own, or one in `defaults`",
                severity="warning",
            )


def _places(document: YamlDocument, index: int) -> Callable[[str], Place]:
    return lambda field: document.place_of(("evaluators", index, field))


def _shared(data: JsonObject, kind: str, types: Types) -> JsonObject:
    """Fields that entries of a type take from the whole config; ``defaults`` count more."""
    defaults = data.get("defaults")
    known = types[kind].entry.model_fields
    return {
        **{key: data[key] for key in FOR_BUILTINS if kind == BUILTIN and key in _given(data)},
        **{
            key: value
            for key, value in _given(defaults if isinstance(defaults, Mapping) else {}).items()
            if key in known
        },
    }


def _given(fields: JsonObject) -> JsonObject:
    """Fields with a value; as in agentevals, null is as good as none."""
    return {key: value for key, value in fields.items() if value is not None}
