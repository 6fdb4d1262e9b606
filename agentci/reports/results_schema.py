"""The JSON Schema of ``results.json``, for everyone who reads it."""

from typing import get_args

from agentci.model.choices import OnError, OnSkip, OnTurnMismatch
from agentci.model.json import JsonObject
from agentci.reports.results_schema_comparison import comparison_schema, regression_bar
from agentci.reports.results_schema_records import STATUS, evaluator, repeats, totals, trials
from agentci.reports.schema_types import (
    BOOLEAN,
    COUNT,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    members,
    said,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def results_schema() -> JsonObject:
    """Draft 2020-12; objects are open, since keys may be added to them."""
    return {
        "$schema": DIALECT,
        "title": "results.json of agentci",
        "description": "What a run judged, and whether its gate is open.",
        **members(
            schema_version={"const": 1},
            tool=members(name={"const": "agentci"}, version=TEXT),
            commit=said(TEXT_OR_NULL, "What was checked out while it was judged."),
            complete=said(BOOLEAN, "False where the run was broken off."),
            decision=members(
                open=BOOLEAN,
                exit_code=COUNT,
                why=said(TEXTS, "The weightiest reason first."),
            ),
            totals=members(**totals()),
            results={"type": "array", "items": {"$ref": "#/$defs/result"}},
            evaluators=said(
                {"type": "array", "items": {"$ref": "#/$defs/evaluator"}},
                "What the checks of each evaluator of each config come to.",
            ),
            cases={"type": "array", "items": {"$ref": "#/$defs/case"}},
            problems={"type": "array", "items": {"$ref": "#/$defs/problem"}},
            provenance={"type": "array", "items": {"$ref": "#/$defs/provenance"}},
            gates={"type": "array", "items": {"$ref": "#/$defs/gate"}},
            judges=said(
                {"type": "array", "items": {"$ref": "#/$defs/spending"}},
                "What the models cost that judged, by config.",
            ),
            comparison=said(comparison_schema(), "With a baseline, where one was named."),
            shard=said(
                {"anyOf": [_shard(), {"type": "null"}]}, "What it is a part of; null for a whole."
            ),
        ),
        "$defs": {
            "result": _result(),
            "evaluator": evaluator(),
            "case": _case(),
            "problem": _problem(),
            "provenance": _provenance(),
            "gate": _gate(),
            "bar": _bar(),
            "spending": _spending(),
        },
    }


def _result() -> JsonObject:
    return members(
        id=said(TEXT, "Of config, case and evaluator: the same on every run."),
        config=TEXT,
        case=said(TEXT, "The golden case's id, else the trace's or the conversation's."),
        trace=TEXT,
        golden=said(TEXT_OR_NULL, "The golden case's id."),
        recording=said(TEXT, "The recorded file."),
        evaluator=TEXT,
        type=said(TEXT, "The evaluator's `type` in the config."),
        status=STATUS,
        score=said(NUMBER_OR_NULL, "0 to 1; null where none was given, which is not zero."),
        bar=said(TEXT, "What had to be reached, in words."),
        threshold=NUMBER_OR_NULL,
        required=said(BOOLEAN, "False for an advisory evaluator, which never shuts the gate."),
        weight=said({"type": "number"}, "How much its score counts in that of its case."),
        turn_scores={"type": "array", "items": NUMBER_OR_NULL},
        hits=TEXTS,
        misses=TEXTS,
        reasoning=TEXT_OR_NULL,
        details=said({"type": "object"}, "Whatever else the evaluator told."),
        reason=said(
            TEXT_OR_NULL,
            "Why it errored or was skipped, or passed or failed in spite of its score.",
        ),
        warnings=said(TEXTS, "What had to be guessed or dropped while the case was read."),
        seconds={"type": ["number", "null"]},
        cached=BOOLEAN,
        trials=said(
            {"anyOf": [trials(), {"type": "null"}]},
            "What the result was made of, where the case was run several times.",
        ),
        repeats=said(
            {"anyOf": [repeats(), {"type": "null"}]},
            "What the result was made of, where the evaluator was asked several times.",
        ),
        fingerprint=said(TEXT, "Digest of the evaluator and of the golden case."),
        place=said(_place(), "The evaluator in the config."),
    )


def _case() -> JsonObject:
    return members(
        id=TEXT,
        trace=TEXT,
        group=said(TEXT, "What it shares with cases that tell much the same; else its own id."),
        golden=said(TEXT_OR_NULL, "The golden case's id."),
        no_golden_because=TEXT_OR_NULL,
        recording=said(TEXT, "The recorded file."),
        turns=COUNT,
        dialogue=said(
            {"type": "array", "items": members(asked=TEXT, answered=TEXT_OR_NULL)},
            "What was said in each turn, in short.",
        ),
        warnings=TEXTS,
        performance=said({"type": ["object", "null"]}, "Latency, tokens and counts, as recorded."),
    )


def _problem() -> JsonObject:
    return members(
        severity={"enum": ["error", "warning", "notice"]},
        message=TEXT,
        hint=said(TEXT_OR_NULL, "A way out."),
        place={"anyOf": [_place(), {"type": "null"}]},
    )


def _place() -> JsonObject:
    return members(file=TEXT, line=COUNT, column={"type": ["integer", "null"], "minimum": 1})


def _provenance() -> JsonObject:
    return members(
        config=TEXT,
        evaluator=said(TEXT, "An evaluator that is kept elsewhere."),
        source=TEXT,
        repository=TEXT,
        revision=said(TEXT, "Branch, tag or commit that the config names."),
        ref=TEXT,
        commit=said(TEXT, "What the revision meant in this run."),
        digest=said(TEXT, "Of all files; the same digest is the same evaluator."),
    )


def _gate() -> JsonObject:
    bars: JsonObject = {"type": "object", "additionalProperties": {"$ref": "#/$defs/bar"}}
    return members(
        config=TEXT,
        evaluators=said(TEXTS, "Those that judge, in the order of the config."),
        uncovered=said(COUNT, "Golden cases that no recording matched."),
        policy=said(
            members(
                overall={"$ref": "#/$defs/bar"},
                evaluators=bars,
                cases=_case_bar(),
                regression=regression_bar(),
            ),
            "The config's `gate`.",
        ),
    )


def _bar() -> JsonObject:
    return members(
        min_pass_rate=said(NUMBER_OR_NULL, "Null counts the checks among all others."),
        pass_rate_confidence=said(NUMBER_OR_NULL, "Null where the rate of the run is enough."),
        min_score=NUMBER_OR_NULL,
        on_error={"enum": list(get_args(OnError))},
        on_skip={"enum": list(get_args(OnSkip))},
        on_turn_mismatch={"enum": list(get_args(OnTurnMismatch))},
    )


def _case_bar() -> JsonObject:
    bar = members(
        threshold={"type": "number"},
        min_pass_rate={"type": "number"},
        pass_rate_confidence=NUMBER_OR_NULL,
    )
    return said(
        {"anyOf": [bar, {"type": "null"}]}, "Null where cases are not looked at as a whole."
    )


def _spending() -> JsonObject:
    charge = members(
        calls=COUNT,
        tokens=said(COUNT, "Read and written; estimated where a service does not count them."),
        usd=said(NUMBER_OR_NULL, "By the prices of the config; null where it lacks one."),
    )
    return members(
        config=TEXT,
        spent=said(charge, "In this run, on whatever came of it."),
        saved=said(charge, "What replies of earlier runs would have cost."),
    )


def _shard() -> JsonObject:
    return members(
        index=said(COUNT, "Counted from 1."),
        total=COUNT,
        of=said(TEXT, "Of the whole: shards of one run share it."),
        checks=said(TEXTS, "The ids of all checks of the whole, in its order."),
        dealt_by=said(
            {"type": "object", "additionalProperties": TEXT},
            "Digests that say in the place of a check's id to which shard it belongs.",
        ),
    )
