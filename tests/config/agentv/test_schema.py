"""The JSON Schema of eval files, which editors use."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.evaluators.agentv.registry import AGENTV_TYPES
from tests.helpers.support import ROOT

CONFORMANCE = ROOT / "tests" / "conformance" / "agentv"
# They list evaluators that this version refuses.
REFUSED = {"09", "24", "31", "40", "54", "61", "63", "64", "66", "67b", "68"}


def test_the_committed_schema_is_fresh() -> None:
    generated = json.dumps(make_eval_file_schema(), indent=2, ensure_ascii=False)
    committed = (ROOT / "schemas" / "evalfile.schema.json").read_text(encoding="utf-8")
    assert f"{generated}\n" == committed, "run `make schemas`"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(make_eval_file_schema())


def test_it_knows_every_type_in_both_spellings() -> None:
    written = json.dumps(make_eval_file_schema())
    assert [kind for kind in AGENTV_TYPES if f'"{kind.replace("_", "-")}"' not in written] == []


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in sorted(CONFORMANCE.glob("*/eval.*.yaml"))
        if file.parent.name.partition("-")[0] not in REFUSED
    ],
    ids=lambda file: f"{file.parent.name}-{file.suffixes[0][1:]}",
)
def test_it_accepts_what_agentci_runs(file: Path) -> None:
    document = yaml.safe_load(file.read_text())
    errors = Draft202012Validator(make_eval_file_schema()).iter_errors(document)
    assert [error.message for error in errors] == []


JUDGED = "assertions: [{type: is-json}]"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("tests: cases/*.yaml", True),
        ("tests: [file://cases.jsonl, {id: a, input: q}]", True),
        ("tests: [{id: a, input: q, assert: [{type: my-words, min: 3}, {include: safe}]}]", True),
        ("tests: [{id: a, input: q, assert: [{type: agent-judge}]}]", False),
        ("tests: [{id: a, input: q, assert: [{type: latency}]}]", False),
        (f"tests: [{{id: a, mode: conversation, turns: [{{input: q, {JUDGED}}}]}}]", True),
        (f"tests: [{{id: a, mode: conversation, turns: [{{{JUDGED}}}]}}]", False),
        ("tests: [{id: a, mode: conversation, turns: [{input: q, assert: [3]}]}]", False),
    ],
)
def test_it_knows_what_files_of_agentv_4_have(text: str, fits: bool) -> None:
    assert Draft202012Validator(make_eval_file_schema()).is_valid(yaml.safe_load(text)) is fits
