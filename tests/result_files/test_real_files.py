"""The files of real tools are read to the rows expected of them, or refused."""

import json
import re

import pytest

from agentci.errors import InputError
from agentci.result_files.registry import TOOLS
from agentci.result_files.row import TOOL_NAMES
from tests.result_files.result_samples import (
    FILES,
    SAMPLES,
    describe,
    load_expected,
    read_path,
    read_text,
    sample_file,
)

READ = [sample for sample in SAMPLES if isinstance(load_expected(sample), list)]
REFUSED = {
    "braintrust/summary": "a Braintrust summary, which has only means",
    "junit/promptfoo-xml": "promptfoo's XML is not JUnit",
    "refuse/adk-evalset": "an ADK eval set, not results",
    "refuse/deepeval-cache": "DeepEval's cache, not results",
    "refuse/otlp-traces": "the file has no `gen_ai.evaluation.result` events",
    "refuse/promptfoo-config": "a promptfoo configuration, not results",
}


@pytest.mark.parametrize("sample", READ)
def test_rows_of_real_file(sample: str) -> None:
    expected = {(one["case"], one["metric"], one["repeat"]): one for one in load_expected(sample)}
    found = {row.key: row for row in read_path(sample_file(sample)).rows}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        wanted = expected[key]
        assert describe(row) == (
            *key[:2],
            wanted["status"],
            wanted["score"],
            wanted["threshold"],
            key[2],
        )
        assert (row.reason or "").startswith(wanted["reason"] or "")


def test_every_sample_is_read_or_refused() -> None:
    assert {*READ} | REFUSED.keys() == {*SAMPLES}
    assert {sample.partition("/")[0] for sample in READ} >= {"promptfoo", "inspect", "adk", "junit"}


@pytest.mark.parametrize("sample", REFUSED)
def test_file_without_results_is_refused_by_name(sample: str) -> None:
    with pytest.raises(InputError) as caught:
        read_path(sample_file(sample))
    assert REFUSED[sample] in str(caught.value)
    assert sample_file(sample).name in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("lm-eval/base/results_2026-11-23T08-05-39.277598.json", "an lm-eval summary"),
        ("agentv/base/benchmark.json", "an AgentV benchmark, which has only means"),
    ],
)
def test_means_beside_results_are_refused(path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_path(FILES / path)


@pytest.mark.parametrize(
    "sample", [sample for sample in SAMPLES if (FILES / sample / "against-base.json").is_file()]
)
def test_cases_keep_their_names(sample: str) -> None:
    """Runs of a suite with another agent have the same cases and fingerprints."""
    base = sample.replace("head", "base")
    before, after = (
        {(row.case, row.metric): row for row in read_path(sample_file(one)).rows}
        for one in (base, sample)
    )
    expected = json.loads((FILES / sample / "against-base.json").read_text())
    paired = before.keys() & after.keys()
    assert len(paired) == expected["paired"]
    assert before.keys() - paired == {(case, metric) for case, metric in expected["removed"]}
    assert after.keys() - paired == {(case, metric) for case, metric in expected["added"]}
    assert all(before[key].definition == after[key].definition for key in paired)


def test_names_are_those_of_the_tools() -> None:
    assert sorted(TOOL_NAMES) == sorted(tool.name for tool in TOOLS)


# Where an object starts with a key: in strings, quotes are escaped.
OBJECT = re.compile(rb'\{\s*("(?:[^"\\]|\\.)*"\s*:)')
JSON_FILES = [each for each in READ if sample_file(each).suffix in (".json", ".jsonl")]


@pytest.mark.parametrize("sample", JSON_FILES)
def test_key_twice_is_refused_wherever_it_stands(sample: str) -> None:
    path = sample_file(sample)
    content = path.read_bytes()
    objects = [*OBJECT.finditer(content)]
    assert objects
    for found in (objects[0], objects[len(objects) // 2], objects[-1]):
        # An unread number beyond all ranges must not end the search.
        extra = b'"zz": 1e999, ' + found[1] + b" null, "
        changed = content[: found.start(1)] + extra + content[found.start(1) :]
        with pytest.raises(InputError, match=r"appears twice|no known tool|unexpected content"):
            read_text(changed, file=path.name)
