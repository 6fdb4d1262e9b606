"""``field_accuracy``: an answer in JSON, held against the expected one field by field."""

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.javascript import fixed, number, stringify
from agentci.evaluators.agentv.dates import day_of
from agentci.evaluators.agentv.equality import equal, leaf, type_of
from agentci.evaluators.agentv.helpers import ASSISTANT, candidate_answer_of
from agentci.evaluators.agentv.verdict import Finding
from agentci.model.json import Json
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript
from agentci.recordings.telemetry.json_input import loads

Match: TypeAlias = Literal["exact", "numeric_tolerance", "date"]
Aggregation: TypeAlias = Literal["weighted_average", "all_or_nothing"]

MOST_SHOWN: Final = 4

_FENCE: Final = re.compile(r"```(?:json\n?)?")
_LEADING_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


class FieldRule(Struct, frozen=True, kw_only=True):
    """How one field is compared; ``path`` such as ``items[0].price``."""

    path: str
    match: Match
    required: bool
    weight: float
    tolerance: float
    relative: bool
    formats: tuple[str, ...]


class FieldAccuracy(Struct, frozen=True, kw_only=True):
    """The rule.

    Attributes:
        expected_name: how messages call the expected messages.
        shows_all: whether all lines are told, or as in AgentV 1 and 2 four of each kind.
    """

    fields: tuple[FieldRule, ...]
    aggregation: Aggregation
    expected_name: str
    shows_all: bool

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        candidate = json_in(candidate_answer_of(transcript))
        if candidate is None:
            return Finding(
                score=0.0,
                misses=("Failed to parse candidate answer as JSON",),
                reasoning="Candidate answer is not valid JSON",
            )
        expected = _expected(sample)
        if expected is None:
            return Finding(
                score=0.0,
                misses=(f"No expected data found in {self.expected_name}",),
                reasoning=f"Could not extract expected data from {self.expected_name}",
            )
        return self._compare([_judge(rule, candidate, expected) for rule in self.fields])

    def _compare(self, found: list["_Field"]) -> Finding:
        hits = [each.line for each in found if each.fits]
        misses = [each.line for each in found if not each.fits]
        total = sum(each.weight for each in found)
        score = sum(each.weight for each in found if each.fits) / total if total else 0.0
        if self.aggregation == "all_or_nothing":
            score = 0.0 if misses else 1.0
        most = None if self.shows_all else MOST_SHOWN
        return Finding(
            score=score,
            hits=tuple(hits[:most]),
            misses=tuple(misses[:most]),
            reasoning=f"{len(hits)}/{len(found)} fields matched",
        )


class _Field(Struct, frozen=True, kw_only=True):
    """What became of one field."""

    fits: bool
    line: str
    weight: float


def json_in(text: str) -> Json:
    """The JSON object in an answer, fences and prose around it aside; None where there is none."""
    bare = _FENCE.sub("", text).strip()
    start, end = bare.find("{"), bare.rfind("}")
    try:
        return loads(bare[start : end + 1] if 0 <= start < end else bare)
    except ValueError:
        return None


def _expected(sample: Sample) -> Json:
    """The data of the last expected message of the assistant that holds any."""
    for message in reversed(sample.expected_messages):
        if message.get("role") != ASSISTANT:
            continue
        content = message.get("content")
        found = json_in(content) if isinstance(content, str) else content
        if isinstance(found, Mapping | list):
            return found
    return None


def _judge(rule: FieldRule, candidate: Json, expected: Json) -> _Field:
    path, weight = rule.path, rule.weight
    wanted_there, wanted = leaf(expected, path)
    if not wanted_there:
        return _Field(fits=True, line=f"{path}: no expected value", weight=weight)
    given_there, given = leaf(candidate, path)
    if given_there:
        fits, remark = _COMPARE[rule.match](rule, given, wanted)
        return _Field(fits=fits, line=f"{path}{remark and f' ({remark})'}", weight=weight)
    if rule.required:
        return _Field(fits=False, line=f"{path} (required, missing)", weight=weight)
    return _Field(fits=True, line=f"{path}: optional field missing", weight=0.0)


def _exact(_: FieldRule, given: Json, wanted: Json) -> tuple[bool, str]:
    if equal(given, wanted):
        return True, ""
    got, expected = type_of(given), type_of(wanted)
    if got != expected:
        return False, f"type mismatch: got {got}, expected {expected}"
    return False, "value mismatch"


def _numeric(rule: FieldRule, given: Json, wanted: Json) -> tuple[bool, str]:
    one, other = _number(given), _number(wanted)
    if one is None or other is None:
        return False, "non-numeric value"
    if not (math.isfinite(one) and math.isfinite(other)):
        return False, "invalid numeric value"
    off = abs(one - other)
    off = off / abs(other) if rule.relative and other else off
    if off <= rule.tolerance:
        return True, f"within tolerance: diff={fixed(off, 2)}"
    return False, f"outside tolerance: diff={fixed(off, 2)}, tolerance={number(rule.tolerance)}"


def _date(rule: FieldRule, given: Json, wanted: Json) -> tuple[bool, str]:
    got, expected = (day_of(_text(each), rule.formats) for each in (given, wanted))
    if got is None:
        return False, "unparseable candidate date"
    if expected is None:
        return False, "unparseable expected date"
    if got == expected:
        return True, ""
    return False, f"date mismatch: got {got.isoformat()}, expected {expected.isoformat()}"


_COMPARE: Final = {"exact": _exact, "numeric_tolerance": _numeric, "date": _date}


def _number(value: Json) -> float | None:
    """A number, or the one that a text begins with."""
    if isinstance(value, str):
        found = _LEADING_NUMBER.match(value)
        return None if found is None else float(found[1])
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else stringify(value)
