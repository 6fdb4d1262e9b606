"""The JSON Schema of ``results.json``, for everyone who reads it."""

from typing import get_args

from agentci.model.choices import OnError, OnSkip, OnTurnMismatch
from agentci.model.json import Json, JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def results_schema() -> JsonObject:
    """Draft 2020-12; objects are open, since keys may be added to them."""
    return {
        "$schema": DIALECT,
        "title": "results.json of agentci",
        "description": "What a run judged, and whether its gate is open.",
        **_object(
            schema_version={"const": 1},
            tool=_object(name={"const": "agentci"}, version=_TEXT),
            complete=_said(_BOOLEAN, "False where the run was broken off."),
            decision=_object(
                open=_BOOLEAN,
                exit_code=_COUNT,
                why=_said(_TEXTS, "The weightiest reason first."),
            ),
            totals=_object(
                checks=_COUNT,
                passed=_COUNT,
                failed=_COUNT,
                errored=_COUNT,
                skipped=_COUNT,
                score=_said(_NUMBER_OR_NULL, "The mean of the scores that were given."),
            ),
            results={"type": "array", "items": {"$ref": "#/$defs/result"}},
            cases={"type": "array", "items": {"$ref": "#/$defs/case"}},
            problems={"type": "array", "items": {"$ref": "#/$defs/problem"}},
            provenance={"type": "array", "items": {"$ref": "#/$defs/provenance"}},
            gates={"type": "array", "items": {"$ref": "#/$defs/gate"}},
            judges=_said(
                {"type": "array", "items": {"$ref": "#/$defs/spending"}},
                "What the models cost that judged, by config.",
            ),
            shard=_said(
                {"anyOf": [_shard(), {"type": "null"}]}, "What it is a part of; null for a whole."
            ),
        ),
        "$defs": {
            "result": _result(),
            "case": _case(),
            "problem": _problem(),
            "provenance": _provenance(),
            "gate": _gate(),
            "bar": _bar(),
            "spending": _spending(),
        },
    }


def _result() -> JsonObject:
    return _object(
        id=_said(_TEXT, "Of config, case and evaluator: the same on every run."),
        config=_TEXT,
        case=_said(_TEXT, "The golden case's id, else the trace's or the conversation's."),
        trace=_TEXT,
        golden=_said(_TEXT_OR_NULL, "The golden case's id."),
        recording=_said(_TEXT, "The recorded file."),
        evaluator=_TEXT,
        type=_said(_TEXT, "The evaluator's `type` in the config."),
        status={"enum": ["passed", "failed", "errored", "skipped"]},
        score=_said(_NUMBER_OR_NULL, "0 to 1; null where none was given, which is not zero."),
        bar=_said(_TEXT, "What had to be reached, in words."),
        threshold=_NUMBER_OR_NULL,
        required=_said(_BOOLEAN, "False for an advisory evaluator, which never shuts the gate."),
        weight=_said({"type": "number"}, "How much its score counts in that of its case."),
        turn_scores={"type": "array", "items": _NUMBER_OR_NULL},
        hits=_TEXTS,
        misses=_TEXTS,
        reasoning=_TEXT_OR_NULL,
        details=_said({"type": "object"}, "Whatever else the evaluator told."),
        reason=_said(
            _TEXT_OR_NULL,
            "Why it errored or was skipped, or passed or failed in spite of its score.",
        ),
        warnings=_said(_TEXTS, "What had to be guessed or dropped while the case was read."),
        seconds={"type": ["number", "null"]},
        cached=_BOOLEAN,
        place=_said(_place(), "The evaluator in the config."),
    )


def _case() -> JsonObject:
    return _object(
        id=_TEXT,
        trace=_TEXT,
        golden=_said(_TEXT_OR_NULL, "The golden case's id."),
        no_golden_because=_TEXT_OR_NULL,
        recording=_said(_TEXT, "The recorded file."),
        turns=_COUNT,
        dialogue=_said(
            {"type": "array", "items": _object(asked=_TEXT, answered=_TEXT_OR_NULL)},
            "What was said in each turn, in short.",
        ),
        warnings=_TEXTS,
        performance=_said({"type": ["object", "null"]}, "Latency, tokens and counts, as recorded."),
    )


def _problem() -> JsonObject:
    return _object(
        severity={"enum": ["error", "warning", "notice"]},
        message=_TEXT,
        hint=_said(_TEXT_OR_NULL, "A way out."),
        place={"anyOf": [_place(), {"type": "null"}]},
    )


def _place() -> JsonObject:
    return _object(file=_TEXT, line=_COUNT, column={"type": ["integer", "null"], "minimum": 1})


def _provenance() -> JsonObject:
    return _object(
        config=_TEXT,
        evaluator=_said(_TEXT, "An evaluator that is kept elsewhere."),
        source=_TEXT,
        repository=_TEXT,
        revision=_said(_TEXT, "Branch, tag or commit that the config names."),
        ref=_TEXT,
        commit=_said(_TEXT, "What the revision meant in this run."),
        digest=_said(_TEXT, "Of all files; the same digest is the same evaluator."),
    )


def _gate() -> JsonObject:
    bars: JsonObject = {"type": "object", "additionalProperties": {"$ref": "#/$defs/bar"}}
    return _object(
        config=_TEXT,
        evaluators=_said(_TEXTS, "Those that judge, in the order of the config."),
        uncovered=_said(_COUNT, "Golden cases that no recording matched."),
        policy=_said(
            _object(overall={"$ref": "#/$defs/bar"}, evaluators=bars, cases=_case_bar()),
            "The config's `gate`.",
        ),
    )


def _bar() -> JsonObject:
    return _object(
        min_pass_rate=_said(_NUMBER_OR_NULL, "Null counts the checks among all others."),
        min_score=_NUMBER_OR_NULL,
        on_error={"enum": list(get_args(OnError))},
        on_skip={"enum": list(get_args(OnSkip))},
        on_turn_mismatch={"enum": list(get_args(OnTurnMismatch))},
    )


def _case_bar() -> JsonObject:
    bar = _object(threshold={"type": "number"}, min_pass_rate={"type": "number"})
    return _said(
        {"anyOf": [bar, {"type": "null"}]}, "Null where cases are not looked at as a whole."
    )


def _spending() -> JsonObject:
    charge = _object(
        calls=_COUNT,
        tokens=_said(_COUNT, "Read and written; estimated where a service does not count them."),
        usd=_said(_NUMBER_OR_NULL, "By the prices of the config; null where it lacks one."),
    )
    return _object(
        config=_TEXT,
        spent=_said(charge, "In this run, on whatever came of it."),
        saved=_said(charge, "What replies of earlier runs would have cost."),
    )


def _shard() -> JsonObject:
    return _object(
        index=_said(_COUNT, "Counted from 1."),
        total=_COUNT,
        of=_said(_TEXT, "Of the whole: shards of one run share it."),
        checks=_said(_TEXTS, "The ids of all checks of the whole, in its order."),
    )


_TEXT: JsonObject = {"type": "string"}
_TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_BOOLEAN: JsonObject = {"type": "boolean"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL: JsonObject = {"type": ["number", "null"]}


def _object(**properties: Json) -> dict[str, Json]:
    """All of ``properties`` are always there."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _said(schema: JsonObject, description: str) -> JsonObject:
    return {**schema, "description": description}
