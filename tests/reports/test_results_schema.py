"""The JSON Schema of ``results.json``."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentci.reports.json_report import JsonReport
from agentci.reports.results_schema import make_results_schema
from tests.helpers.reports import make_report, mixed_report, shard_report, text_of
from tests.helpers.support import ROOT

VALIDATOR = Draft202012Validator(make_results_schema())


def test_results_schema_is_valid_schema() -> None:
    Draft202012Validator.check_schema(make_results_schema())


def test_schema_file_is_up_to_date() -> None:
    written = (ROOT / "schemas" / "results.schema.json").read_text(encoding="utf-8")
    assert written == json.dumps(make_results_schema(), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "report",
    [mixed_report(), make_report([]), shard_report([])],
    ids=["mixed", "empty", "a shard"],
)
def test_reports_are_valid_and_every_key_is_described(report: Any) -> None:
    rendered = json.loads(text_of(JsonReport(), report))
    VALIDATOR.validate(rendered)
    described: Any = make_results_schema()
    assert list(rendered) == list(described["properties"])
    for name in ("results", "cases", "problems", "provenance", "gates"):
        kind = name if name == "provenance" else name[:-1]
        for each in rendered[name]:
            keys = described["$defs"][kind]["properties"]
            assert [*each] == [key for key in keys if key in each]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(["schema_version"], 2, id="other version"),
        pytest.param(["results", 0, "status"], "ok", id="unknown status"),
        pytest.param(["results", 0, "score"], "0.9", id="score as text"),
        pytest.param(["results", 0, "place"], None, id="no place"),
        pytest.param(["totals", "checks"], -1, id="a negative count"),
        pytest.param(["problems", 0, "severity"], "fatal", id="unknown severity"),
        pytest.param(["shard"], {"index": 1}, id="incomplete shard"),
        pytest.param(["gates"], [{"config": "a"}], id="a gate without a policy"),
    ],
)
def test_invalid_values_are_rejected(path: list[str | int], value: object) -> None:
    rendered = json.loads(text_of(JsonReport(), mixed_report()))
    part = rendered
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    assert not VALIDATOR.is_valid(rendered)
