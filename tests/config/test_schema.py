"""The JSON Schema and its models accept the same configs."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentci.config.schema import make_config_schema
from agentci.config.validate import check_config
from agentci.config.yaml_document import YamlDocument, read_yaml
from agentci.evaluators.metrics import MATCHERS
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.execution.registry import EXECUTORS
from agentci.model.values import Json
from tests.helpers.support import ROOT

COMMITTED = ROOT / "schemas" / "config.schema.json"
SCHEMA = make_config_schema()


class TestEditorSchema:
    def test_committed_schema_is_up_to_date(self) -> None:
        generated = json.dumps(SCHEMA, indent=2, ensure_ascii=False)
        assert f"{generated}\n" == COMMITTED.read_text(encoding="utf-8"), "run `make schemas`"

    def test_schema_is_valid_json_schema(self) -> None:
        Draft202012Validator.check_schema(SCHEMA)

    def test_schema_has_no_external_references(self) -> None:
        references = [part["$ref"] for part in _parts(SCHEMA) if "$ref" in part]
        assert references
        assert [each for each in references if not each.startswith("#/$defs/")] == []

    def test_every_field_has_a_description(self) -> None:
        schema = SCHEMA
        fields = {
            f"{name}.{key}": field
            for name, part in {"top": schema, **schema["$defs"]}.items()
            for key, field in part["properties"].items()
        }
        assert [key for key, field in fields.items() if not _description(field, schema)] == []

    def test_metric_names_are_suggested(self) -> None:
        names = SCHEMA["$defs"]["BuiltinEntry"]["properties"]["name"]["examples"]
        assert "tool_trajectory_avg_score" in names

    def test_executors_match_registry(self) -> None:
        field = SCHEMA["$defs"]["CodeEntry"]["properties"]["executor"]
        assert field["examples"] == list(EXECUTORS)

    def test_match_types_match_metric(self) -> None:
        field = SCHEMA["properties"]["trajectory_match_type"]
        assert field["anyOf"][0]["enum"] == list(MATCHERS)


# Values that some fields accept and others reject.
VALUES: st.SearchStrategy[Json] = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 2, 30, 86_400, 86_401, 10**30, 0.0, 0.5, 1.0, 1.5, 30.0),
        *(
            "",
            "a",
            "0.7",
            "true",
            "EXACT",
            "in_order",
            "Any_Order",
            "EXACT\n",
            "exact ",
            "\u0131N_ORDER",
        ),
        *("local", "docker", "fail", "allow", "warn", "auto", "trace", "otlp-json", "code"),
        *([], ["a"], ["a", 1], [""], [{}], {}, {"a": 1}, {"min_score": 0.5}, {"b": {"a": 1}}),
    ]
)
NAMES = st.sampled_from(["ev", "response_match_score", "tool_trajectory_avg_score", "", 5, None])
FIELDS = sorted(
    {
        *(key for each in EVALUATOR_TYPES.values() for key in each.entry.model_fields),
        *("trajectoryMatchType", "judgeModel", "zap"),
    }
)
TYPES = st.sampled_from(["code", "builtin"]) | VALUES
ENTRIES = st.builds(
    lambda known, others: {**known, **others},
    st.fixed_dictionaries({"name": NAMES, "type": TYPES}, optional={"path": VALUES}),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=2),
)
BARS = st.dictionaries(
    st.sampled_from(["min_pass_rate", "min_score", "on_error", "on_skip", "on_turn_mismatch", "z"]),
    VALUES,
    max_size=3,
)
TOP: dict[str, st.SearchStrategy[Any]] = {
    **{key: VALUES for key in SCHEMA["properties"] if key != "evaluators"},
    "defaults": st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=2) | VALUES,
    "gate": st.builds(
        lambda bar, bars: {**bar, **bars},
        BARS,
        st.fixed_dictionaries(
            {}, optional={"evaluators": st.dictionaries(st.just("ev"), BARS | VALUES)}
        ),
    )
    | VALUES,
    "x-mine": VALUES,
    "zap": VALUES,
}
CONFIGS = st.builds(
    lambda entries, others: {**entries, **dict(others)},
    st.fixed_dictionaries({"evaluators": st.lists(ENTRIES | VALUES, max_size=2) | VALUES}),
    st.lists(st.sampled_from(sorted(TOP)).flatmap(lambda key: st.tuples(st.just(key), TOP[key]))),
)


# Rules of models and of `check_config` that a schema cannot express.
RULES = (
    "is already used by the evaluator",
    "unknown built-in metric",
    "does not use rubrics",
    "`gate.evaluators` names unknown",
    "confidence",
    "keep one of them",
)
EDITOR_SCHEMA = Draft202012Validator(SCHEMA)


@given(CONFIGS)
def test_editor_schema_and_models_accept_the_same_configs(data: dict[str, Json]) -> None:
    _, problems = check_config(_document(data))
    errors = [
        each
        for each in problems
        if each.severity == "error" and not any(rule in each.message for rule in RULES)
    ]
    assert bool(errors) == (not EDITOR_SCHEMA.is_valid(data))


@given(CONFIGS)
def test_every_problem_has_place_and_plain_message(data: dict[str, Json]) -> None:
    for problem in check_config(_document(data))[1]:
        assert problem.place is not None
        message = problem.message.replace("pydantic-ai-messages", "")  # a trace format
        assert not any(word in message for word in ("schema", "Input", "pydantic", "$"))


def _document(data: dict[str, Json]) -> YamlDocument:
    return read_yaml(json.dumps(data, ensure_ascii=False).encode(), file="c.yaml")


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _parts(value)


def _description(field: dict[str, Any], schema: dict[str, Any]) -> str:
    referred = schema["$defs"].get(field.get("$ref", "").rpartition("/")[2], {})
    return str(field.get("description") or referred.get("description") or "")
