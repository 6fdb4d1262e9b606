"""JSON Schema of `results.json`."""

from typing import get_args

from agentci.gate.statistics import IntervalMethod
from agentci.model.choices import OnError, OnSkip, OnTurnMismatch, RepeatAggregation
from agentci.model.gate import COMPARISON_OUTCOMES
from agentci.model.json import Json, JsonObject
from agentci.model.result import Status, TrialStrategy

TEXT: JsonObject = {"type": "string"}
TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
TEXTS: JsonObject = {"type": "array", "items": TEXT}
BOOLEAN: JsonObject = {"type": "boolean"}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
NUMBER_OR_NULL: JsonObject = {"type": ["number", "null"]}


def make_object_schema(**properties: Json) -> dict[str, Json]:
    """Make a schema of an object in which all ``properties`` are required."""
    return {"type": "object", "required": list(properties), "properties": properties}


def with_description(schema: JsonObject, description: str) -> JsonObject:
    """Return ``schema`` with a description."""
    return {**schema, "description": description}


def make_regression_schema() -> JsonObject:
    """Make the schema of ``regression`` of a gate policy."""
    bar = make_object_schema(
        max_drop=with_description({"type": "number"}, "Of the mean score of an evaluator."),
        confidence={"type": "number"},
        fail_on={"type": "array", "items": _outcome()},
    )
    return with_description(
        {"anyOf": [bar, {"type": "null"}]}, "Null where a comparison with a baseline only informs."
    )


def make_comparison_schema() -> JsonObject:
    """Make the schema of ``comparison`` of a report."""
    change = make_object_schema(case=TEXT, before=NUMBER_OR_NULL, after=NUMBER_OR_NULL)
    changes: JsonObject = {"type": "array", "items": change}
    trend = make_object_schema(
        config=TEXT,
        evaluator=TEXT,
        required=BOOLEAN,
        pairs=with_description(COUNT, "Checks that both runs judged."),
        before=with_description(NUMBER_OR_NULL, "Mean score in the baseline."),
        after=with_description(NUMBER_OR_NULL, "Mean score in this run."),
        regressions=with_description(changes, "Checks that passed and now fail."),
        improvements=with_description(changes, "Checks that failed and now pass."),
        p_value=with_description(NUMBER_OR_NULL, "Of such a drop if nothing had changed."),
        outcome=_outcome(),
        reason=TEXT,
    )
    comparison = make_object_schema(
        baseline=with_description(TEXT, "Where the baseline was found."),
        evaluators=with_description({"type": "array", "items": trend}, "One an evaluator."),
        not_comparable=with_description(
            TEXT, "Why nothing can be compared; empty where something can."
        ),
        added=with_description(COUNT, "Checks that the baseline does not have."),
        removed=with_description(COUNT, "Checks that only the baseline has."),
        commit=with_description(TEXT, "What the baseline is of; empty where it does not say."),
        stale=with_description(
            TEXT, "Why it may be of another commit than it should; empty where it is not."
        ),
    )
    return {"anyOf": [comparison, {"type": "null"}]}


def _outcome() -> JsonObject:
    return {"enum": list(COMPARISON_OUTCOMES)}


STATUS: JsonObject = {"enum": list(get_args(Status))}


def make_trials_schema() -> JsonObject:
    """Make the schema of ``trials`` of a result."""
    trial = make_object_schema(
        attempt=with_description(COUNT, "Counted from 0."),
        score=NUMBER_OR_NULL,
        reason=with_description(TEXT_OR_NULL, "Why it could not be judged."),
    )
    return make_object_schema(
        strategy={"enum": list(get_args(TrialStrategy))},
        trials={"type": "array", "items": trial},
        cost_limited=with_description(
            BOOLEAN, "Whether a limit of costs kept further runs from being made."
        ),
    )


def make_repeats_schema() -> JsonObject:
    """Make the schema of ``repeats`` of a result."""
    repeat = make_object_schema(
        status=STATUS,
        score=NUMBER_OR_NULL,
        reason=with_description(TEXT_OR_NULL, "As that of a result."),
    )
    return make_object_schema(
        by=with_description({"enum": list(get_args(RepeatAggregation))}, "What decides."),
        flip_rate=with_description(
            NUMBER_OR_NULL,
            "Share of the verdicts that are another than that of most; null where one could not be "
            "judged.",
        ),
        repeats={"type": "array", "items": repeat},
    )


def make_totals_properties() -> dict[str, JsonObject]:
    """Make the schemas of the counts and the mean score of a set of checks."""
    return {
        "checks": COUNT,
        "passed": COUNT,
        "failed": COUNT,
        "errored": COUNT,
        "skipped": COUNT,
        "score": with_description(NUMBER_OR_NULL, "The mean of the scores that were given."),
    }


def make_evaluator_schema() -> JsonObject:
    """Make the schema of one item of ``evaluators``."""
    return make_object_schema(
        config=TEXT,
        evaluator=TEXT,
        **make_totals_properties(),
        score_interval=with_description(
            _interval(), "Of the mean score, at 95 %; null where too few scores differ."
        ),
        pass_rate=with_description(
            NUMBER_OR_NULL, "Passed over passed and failed; null without any."
        ),
        pass_rate_interval=with_description(
            _interval(), "Of the pass rate, at 95 %; null for fewer than two groups."
        ),
        groups=with_description(COUNT, "How many cases were judged that do not belong together."),
        flip_rate=with_description(
            NUMBER_OR_NULL, "The mean of its checks'; null where it was not asked several times."
        ),
    )


def _interval() -> JsonObject:
    bounds = make_object_schema(
        low={"type": "number"},
        high={"type": "number"},
        method={"enum": list(get_args(IntervalMethod))},
    )
    return {"anyOf": [bounds, {"type": "null"}]}


SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def make_results_schema() -> JsonObject:
    """Make the schema of ``results.json`` (draft 2020-12).

    Objects allow additional properties, since later versions may add keys.
    """
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "results.json of agentci",
        "description": "Results of a run and the decision of its gate.",
        **make_object_schema(
            schema_version={"const": 1},
            tool=make_object_schema(name={"const": "agentci"}, version=TEXT),
            commit=with_description(TEXT_OR_NULL, "What was checked out while it was judged."),
            complete=with_description(BOOLEAN, "False where the run was broken off."),
            decision=make_object_schema(
                passed=BOOLEAN,
                exit_code=COUNT,
                reasons=with_description(TEXTS, "The most important reason first."),
            ),
            totals=make_object_schema(**make_totals_properties()),
            results={"type": "array", "items": {"$ref": "#/$defs/result"}},
            evaluators=with_description(
                {"type": "array", "items": {"$ref": "#/$defs/evaluator"}},
                "What the checks of each evaluator of each config come to.",
            ),
            cases={"type": "array", "items": {"$ref": "#/$defs/case"}},
            problems={"type": "array", "items": {"$ref": "#/$defs/problem"}},
            provenance={"type": "array", "items": {"$ref": "#/$defs/provenance"}},
            gates={"type": "array", "items": {"$ref": "#/$defs/gate"}},
            judges=with_description(
                {"type": "array", "items": {"$ref": "#/$defs/spending"}},
                "What the models cost that judged, by config.",
            ),
            comparison=with_description(
                make_comparison_schema(), "With a baseline, where one was named."
            ),
            shard=with_description(
                {"anyOf": [_shard(), {"type": "null"}]}, "What it is a part of; null for a whole."
            ),
        ),
        "$defs": {
            "result": _result(),
            "evaluator": make_evaluator_schema(),
            "case": _case(),
            "problem": _problem(),
            "provenance": _provenance(),
            "gate": _gate(),
            "thresholds": _threshold_schema(),
            "spending": _spending(),
        },
    }


def _result() -> JsonObject:
    return make_object_schema(
        id=with_description(TEXT, "Of config, case and evaluator: the same on every run."),
        config=TEXT,
        case=with_description(
            TEXT, "The golden case's id, else the trace's or the conversation's."
        ),
        trace=TEXT,
        eval_case=with_description(TEXT_OR_NULL, "The golden case's id."),
        file=with_description(TEXT, "The recorded file."),
        evaluator=TEXT,
        type=with_description(TEXT, "The evaluator's `type` in the config."),
        status=STATUS,
        score=with_description(
            NUMBER_OR_NULL, "0 to 1; null where none was given, which is not zero."
        ),
        criterion=with_description(TEXT, "What had to be reached, in words."),
        threshold=NUMBER_OR_NULL,
        required=with_description(
            BOOLEAN, "False for an advisory evaluator, which never shuts the gate."
        ),
        weight=with_description(
            {"type": "number"}, "How much its score counts in that of its case."
        ),
        turn_scores={"type": "array", "items": NUMBER_OR_NULL},
        hits=TEXTS,
        misses=TEXTS,
        reasoning=TEXT_OR_NULL,
        details=with_description({"type": "object"}, "Whatever else the evaluator told."),
        reason=with_description(
            TEXT_OR_NULL,
            "Why it errored or was skipped, or passed or failed in spite of its score.",
        ),
        warnings=with_description(
            TEXTS, "What had to be guessed or dropped while the case was read."
        ),
        seconds={"type": ["number", "null"]},
        cached=BOOLEAN,
        trials=with_description(
            {"anyOf": [make_trials_schema(), {"type": "null"}]},
            "What the result was made of, where the case was run several times.",
        ),
        repeats=with_description(
            {"anyOf": [make_repeats_schema(), {"type": "null"}]},
            "What the result was made of, where the evaluator was asked several times.",
        ),
        fingerprint=with_description(TEXT, "Digest of the evaluator and of the golden case."),
        place=with_description(_place(), "The evaluator in the config."),
    )


def _case() -> JsonObject:
    return make_object_schema(
        id=TEXT,
        trace=TEXT,
        group=with_description(
            TEXT, "What it shares with cases that tell much the same; else its own id."
        ),
        eval_case=with_description(TEXT_OR_NULL, "The golden case's id."),
        unmatched_reason=TEXT_OR_NULL,
        file=with_description(TEXT, "The recorded file."),
        turn_count=COUNT,
        turns=with_description(
            {"type": "array", "items": make_object_schema(user=TEXT, answer=TEXT_OR_NULL)},
            "What was said in each turn, in short.",
        ),
        warnings=TEXTS,
        performance=with_description(
            {"type": ["object", "null"]}, "Latency, tokens and counts, as recorded."
        ),
    )


def _problem() -> JsonObject:
    return make_object_schema(
        severity={"enum": ["error", "warning", "note"]},
        message=TEXT,
        hint=with_description(TEXT_OR_NULL, "A way out."),
        place={"anyOf": [_place(), {"type": "null"}]},
    )


def _place() -> JsonObject:
    return make_object_schema(
        file=TEXT, line=COUNT, column={"type": ["integer", "null"], "minimum": 1}
    )


def _provenance() -> JsonObject:
    return make_object_schema(
        config=TEXT,
        evaluator=with_description(TEXT, "An evaluator that is kept elsewhere."),
        source=TEXT,
        repository=TEXT,
        revision=with_description(TEXT, "Branch, tag or commit that the config names."),
        ref=TEXT,
        commit=with_description(TEXT, "What the revision meant in this run."),
        digest=with_description(TEXT, "Of all files; the same digest is the same evaluator."),
    )


def _gate() -> JsonObject:
    bars: JsonObject = {"type": "object", "additionalProperties": {"$ref": "#/$defs/thresholds"}}
    return make_object_schema(
        config=TEXT,
        evaluators=with_description(TEXTS, "Those that judge, in the order of the config."),
        uncovered=with_description(COUNT, "Golden cases that no recording matched."),
        policy=with_description(
            make_object_schema(
                overall={"$ref": "#/$defs/thresholds"},
                evaluators=bars,
                cases=_case_threshold_schema(),
                regression=make_regression_schema(),
            ),
            "The config's `gate`.",
        ),
    )


def _threshold_schema() -> JsonObject:
    return make_object_schema(
        min_pass_rate=with_description(NUMBER_OR_NULL, "Null counts the checks among all others."),
        pass_rate_confidence=with_description(
            NUMBER_OR_NULL, "Null where the rate of the run is enough."
        ),
        min_score=NUMBER_OR_NULL,
        on_error={"enum": list(get_args(OnError))},
        on_skip={"enum": list(get_args(OnSkip))},
        on_turn_mismatch={"enum": list(get_args(OnTurnMismatch))},
    )


def _case_threshold_schema() -> JsonObject:
    bar = make_object_schema(
        threshold={"type": "number"},
        min_pass_rate={"type": "number"},
        pass_rate_confidence=NUMBER_OR_NULL,
    )
    return with_description(
        {"anyOf": [bar, {"type": "null"}]}, "Null where cases are not looked at as a whole."
    )


def _spending() -> JsonObject:
    charge = make_object_schema(
        calls=COUNT,
        tokens=with_description(
            COUNT, "Read and written; estimated where a service does not count them."
        ),
        usd=with_description(
            NUMBER_OR_NULL, "By the prices of the config; null where it lacks one."
        ),
    )
    return make_object_schema(
        config=TEXT,
        spent=with_description(charge, "In this run, on whatever came of it."),
        saved=with_description(charge, "What replies of earlier runs would have cost."),
    )


def _shard() -> JsonObject:
    return make_object_schema(
        index=with_description(COUNT, "Counted from 1."),
        total=COUNT,
        of=with_description(TEXT, "Of the whole: shards of one run share it."),
        checks=with_description(TEXTS, "The ids of all checks of the whole, in its order."),
        assigned_by=with_description(
            {"type": "object", "additionalProperties": TEXT},
            "Digests that say in the place of a check's id to which shard it belongs.",
        ),
    )
