"""What has to be true of a config beyond the shape of its parts."""

from collections.abc import Iterator, Mapping
from typing import Final

from agentci._util.child_programs import is_adk_installed
from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.config.yaml_document import YamlDocument
from agentci.evaluators.metrics.registry import ASKING, HOSTED, INSTALL_ADK, METRICS, NOT_YET
from agentci.model.json import JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem

RUBRIC_BASED: Final = "rubric_based_"
_WITHOUT_EFFECT: Final = ("output", "output_format")


def cross_checks(document: YamlDocument) -> Iterator[Problem]:
    """Check names against each other and against what there is; the parts may be of any shape."""
    entries = _entries(document)
    yield from _repeated_names(document, entries)
    yield from _metrics(document, entries)
    yield from _gate(document, entries)
    yield from _without_effect(document)


def metric_problem(name: str, place: Place | None = None) -> Problem | None:
    """Why there is no built-in metric ``name``, None where there is one."""
    if name in METRICS or name in ASKING or (name in HOSTED and is_adk_installed()):
        return None
    if name in HOSTED:
        message = f"the metric {name!r} needs Google's ADK, which is not installed beside agentci"
        return Problem(message=message, place=place, hint=INSTALL_ADK)
    if name in NOT_YET:
        message = f"the metric {name!r} is not run by this version of agentci"
        return Problem(message=message, place=place, hint=NOT_YET[name])
    return Problem(
        message=f"there is no built-in metric {quoted(name)}",
        place=place,
        hint=did_you_mean(name, [*METRICS, *ASKING, *HOSTED, *NOT_YET])
        or f"known here: {', '.join([*METRICS, *ASKING, *HOSTED])}",
    )


_Entries = dict[int, JsonObject]


def _entries(document: YamlDocument) -> _Entries:
    """The entries that have a name, by their index in ``evaluators``."""
    evaluators = document.data.get("evaluators")
    return {
        index: entry
        for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ())
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
    }


def _repeated_names(document: YamlDocument, entries: _Entries) -> Iterator[Problem]:
    first: dict[str, Place] = {}
    for index, entry in entries.items():
        name, place = str(entry["name"]), document.place_of(("evaluators", index, "name"))
        if name in first:
            yield Problem(
                message=f"the name {quoted(name)} is taken by the evaluator on line"
                f" {first[name].line}",
                place=place,
                hint="every evaluator needs a name of its own",
            )
        first.setdefault(name, place)


def _metrics(document: YamlDocument, entries: _Entries) -> Iterator[Problem]:
    for index, entry in entries.items():
        if entry.get("type") != "builtin":
            continue
        problem = metric_problem(
            str(entry["name"]), document.place_of(("evaluators", index, "name"))
        )
        if problem is not None:
            yield problem
        elif entry.get("rubrics") and not str(entry["name"]).startswith(RUBRIC_BASED):
            yield Problem(
                message=f"{entry['name']} does not use rubrics",
                place=document.place_of(("evaluators", index, "rubrics"), key=True),
                hint="remove them",
            )


def _gate(document: YamlDocument, entries: _Entries) -> Iterator[Problem]:
    gate = document.data.get("gate")
    bars = gate.get("evaluators") if isinstance(gate, Mapping) else None
    names = list(dict.fromkeys(str(entry["name"]) for entry in entries.values()))
    for name in bars if isinstance(bars, Mapping) else ():
        if name not in names:
            yield Problem(
                message=f"there is no evaluator {quoted(name)} for the gate to check",
                place=document.place_of(("gate", "evaluators", name), key=True),
                hint=did_you_mean(name, names) or (f"there is {one_of(names)}" if names else None),
            )


def _without_effect(document: YamlDocument) -> Iterator[Problem]:
    for key in _WITHOUT_EFFECT:
        if key in document.data:
            yield Problem(
                message=f"{key!r} has no effect: reports are written in all forms",
                place=document.place_of((key,), key=True),
                severity="notice",
            )
