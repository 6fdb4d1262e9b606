"""The JSON Schema of eval files, for editors."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.evaluators.agentv.registry import AGENTV_TYPES
from tests.helpers.support import ROOT

SCHEMA = make_eval_file_schema()
CONFORMANCE = ROOT / "tests" / "conformance" / "agentv"
# They use evaluators that this version rejects.
REJECTED = {"09", "24", "31", "40", "54", "61", "63", "64", "66", "67b", "68"}


def test_committed_schema_is_up_to_date() -> None:
    generated = json.dumps(SCHEMA, indent=2, ensure_ascii=False)
    committed = (ROOT / "schemas" / "evalfile.schema.json").read_text(encoding="utf-8")
    assert f"{generated}\n" == committed, "run `make schemas`"


def test_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_schema_has_both_spellings_of_every_type() -> None:
    written = json.dumps(SCHEMA)
    assert [kind for kind in AGENTV_TYPES if f'"{kind.replace("_", "-")}"' not in written] == []


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in sorted(CONFORMANCE.glob("*/eval.*.yaml"))
        if file.parent.name.partition("-")[0] not in REJECTED
    ],
    ids=lambda file: f"{file.parent.name}-{file.suffixes[0][1:]}",
)
def test_supported_eval_file_matches_schema(file: Path) -> None:
    document = yaml.safe_load(file.read_text())
    errors = Draft202012Validator(SCHEMA).iter_errors(document)
    assert [error.message for error in errors] == []


ASSERTIONS = "assertions: [{type: is-json}]"


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("tests: cases/*.yaml", True),
        ("tests: [file://cases.jsonl, {id: a, input: q}]", True),
        ("tests: [{id: a, input: q, assert: [{type: my-words, min: 3}, {include: safe}]}]", True),
        ("tests: [{id: a, input: q, assert: [{type: agent-judge}]}]", False),
        ("tests: [{id: a, input: q, assert: [{type: latency}]}]", False),
        (f"tests: [{{id: a, mode: conversation, turns: [{{input: q, {ASSERTIONS}}}]}}]", True),
        (f"tests: [{{id: a, mode: conversation, turns: [{{{ASSERTIONS}}}]}}]", False),
        ("tests: [{id: a, mode: conversation, turns: [{input: q, assert: [3]}]}]", False),
    ],
)
def test_schema_covers_agentv_4_files(text: str, valid: bool) -> None:
    assert Draft202012Validator(SCHEMA).is_valid(yaml.safe_load(text)) is valid
