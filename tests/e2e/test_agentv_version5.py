"""Assertions of AgentV 5 that run code of the eval file, call a service or compare embeddings."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer, script, serve
from tests.helpers.support import run_agentci
from tests.judges.bench import embedded


def judge(
    folder: Path, *assertions: dict[str, Any], run: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The results of ``assertions`` on a run that answers "Paris.", by their names."""
    case = {
        "id": "a",
        "vars": {"input": "q", "expected_output": "Paris"},
        "assert": [{"metric": str(number), **each} for number, each in enumerate(assertions)],
    }
    document = {"prompts": ["{{ input }}"], "tests": [case]}
    (folder / "a.eval.yaml").write_text(json.dumps(document))
    given = {"id": "a", "text": "Paris.", **(run or {})}
    (folder / "a.outputs.jsonl").write_text(json.dumps(given))
    ran = run_agentci(["run"], cwd=folder)
    return {each["evaluator"]: each for each in ran.results["results"]}


LINES = """\
found = context["expected_output"][0]["content"] in output
return {"pass": found, "score": 0.9 if found else 0, "reason": "found"}
"""
CALLED = "context.trace.events.filter((event) => event.type === 'tool_call').length"
FIELDS = "context.expectedOutput[0].content === 'Paris' && context.tokenUsage.output === 5"


def test_inline_code_scores_the_answer(tmp_path: Path) -> None:
    found = judge(
        tmp_path,
        {"type": "python", "value": "'Paris' in output and 'city' not in output"},
        {"type": "python", "value": LINES},
        {"type": "python", "value": "0.5", "threshold": 0.4},
        {"type": "python", "value": "len(output) > 100"},
        {"type": "javascript", "value": "output.includes('Paris');"},
        {"type": "not-javascript", "value": "output.includes('Paris')"},
        {"type": "javascript", "value": "const size = output.length; size === 6"},
        {"type": "javascript", "value": FIELDS},
        {"type": "javascript", "value": "return Promise.resolve({score: output.length / 10})"},
        {"type": "python", "value": "unknown"},
        {"type": "javascript", "value": "throw new Error('broken')"},
        run={"token_usage": {"input": 1, "output": 5}},
    )
    assert [(each["status"], each["score"]) for each in found.values()] == [
        ("passed", 1.0),
        ("passed", 0.9),
        ("passed", 0.5),
        ("failed", 0.0),
        ("passed", 1.0),
        ("failed", 0.0),
        ("passed", 1.0),
        ("passed", 1.0),
        ("failed", 0.6),
        ("errored", None),
        ("errored", None),
    ]
    assert found["1"]["reasoning"] == "found"
    assert "name 'unknown' is not defined" in found["9"]["reason"]
    assert "broken" in found["10"]["reason"]


def test_code_that_reads_unrecorded_tool_calls_is_errored(tmp_path: Path) -> None:
    [result] = judge(tmp_path, {"type": "javascript", "value": f"{CALLED} === 0"}).values()
    assert result["status"] == "errored"
    assert "does not say which tools were called" in result["reason"]


@pytest.mark.parametrize(
    ("answer", "status", "score"),
    [
        (b'{"pass": true, "reason": "fine"}', "passed", 1.0),
        (b"false", "failed", 0.0),
        (b"0.9", "passed", 0.9),
        (b"no", "errored", None),
    ],
)
def test_webhook_scores_the_answer(
    tmp_path: Path, answer: bytes, status: str, score: float | None
) -> None:
    with serve(script(Answer(body=answer))) as server:
        [result] = judge(tmp_path, {"type": "webhook", "value": server.url}).values()
        [asked] = server.asked
    assert (result["status"], result["score"]) == (status, score), result
    sent = json.loads(asked.body)
    assert (sent["output"], sent["context"]["expected_output"][0]["content"]) == ("Paris.", "Paris")


@pytest.mark.parametrize(
    ("vector", "threshold", "status", "score"),
    [
        ([1.0, 0.0], None, "passed", 1.0),
        ([0.0, 1.0], None, "failed", 0.5),
        ([0.0, 1.0], 0.5, "passed", 0.5),
    ],
)
def test_similarity_is_that_of_embeddings(
    tmp_path: Path, vector: list[float], threshold: float | None, status: str, score: float
) -> None:
    with serve(script(embedded([1.0, 0.0], vector))) as server:
        service = {"base_url": server.url, "model": "vectors-1"}
        entry = {"type": "similar", "value": "Paris", "config": {"embedding_provider": service}}
        limit = {} if threshold is None else {"threshold": threshold}
        [result] = judge(tmp_path, {**entry, **limit}).values()
        [asked] = server.asked
    assert (result["status"], result["score"]) == (status, pytest.approx(score)), result
    assert json.loads(asked.body)["input"] == ["Paris", "Paris."]


def test_similarity_without_model_is_a_warning_until_it_runs(tmp_path: Path) -> None:
    document = {
        "prompts": ["p"],
        "tests": [{"id": "a", "assert": [{"type": "similar", "value": "x"}]}],
    }
    (tmp_path / "a.eval.yaml").write_text(json.dumps(document))
    (tmp_path / "a.outputs.jsonl").write_text(json.dumps({"id": "a", "text": "x"}))
    checked = run_agentci(["validate"], cwd=tmp_path)
    assert (checked.code, "`similar` needs `config.embedding_provider`" in checked.out) == (0, True)
    ran = run_agentci(["run"], cwd=tmp_path)
    assert (ran.code, "it has no judge model: `similar` needs" in ran.out) == (2, True)


def test_key_of_similarity_must_be_a_variable(tmp_path: Path) -> None:
    service = {"base_url": "http://127.0.0.1:9", "model": "m", "api_key": "abc"}
    entry = {"type": "similar", "value": "x", "config": {"embedding_provider": service}}
    document = {"prompts": ["p"], "tests": [{"id": "a", "assert": [entry]}]}
    (tmp_path / "a.eval.yaml").write_text(json.dumps(document))
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert (ran.code, "`api_key` must name a variable" in ran.out) == (2, True), ran.out


def run_cases(folder: Path, document: dict[str, Any], *answers: str) -> dict[str, Any]:
    """The results of an eval file by their evaluators; each case gets one of ``answers``."""
    (folder / "a.eval.yaml").write_text(json.dumps(document))
    rows = [
        {"id": case["id"], "text": answer}
        for case, answer in zip(document["tests"], answers, strict=True)
    ]
    (folder / "a.outputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ran = run_agentci(["run"], cwd=folder)
    assert ran.code in {0, 1, 3}, ran.out
    return {f"{each['case']}/{each['evaluator']}": each for each in ran.results["results"]}


def test_transforms_change_the_output_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "shout.ts").write_text(
        "import { mark } from './mark.js';\n"
        "export const shout = async (output: string, context: any): Promise<string> =>\n"
        "  output.toUpperCase() + context.vars.who + mark;\n"
    )
    (tmp_path / "lib" / "mark.ts").write_text("export const mark: string = '!';")
    own = {"type": "equals", "value": "HI Ada!?", "transform": "output + '?'"}
    member = {"metric": "low", "type": "contains", "value": "hi", "transform": "output.slice(0, 2)"}
    found = run_cases(
        tmp_path,
        {
            "prompts": ["p"],
            "default_test": {"options": {"transform": "output.trim() + ' '"}},
            "assert": [{"metric": "all", "type": "python", "value": "output == 'HI Ada!'"}],
            "tests": [
                {
                    "id": "a",
                    "vars": {"who": "Ada"},
                    "options": {"transform": "file://lib/shout.ts:shout"},
                    "assert": [{"metric": "own", **own}],
                },
                {
                    "id": "b",
                    "assert": [{"metric": "set", "type": "assert-set", "assert": [member]}],
                },
            ],
        },
        "hi ",
        " hi",
    )
    assert {name: each["score"] for name, each in found.items()} == {
        "a/own": 1,
        "a/all": 1,
        "b/set": 1,
        "b/all": 0,
    }


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        ("undefined", "the `transform` of `m` exited with code 1: the function returned nothing"),
        ("output.gone()", "output.gone is not a function"),
        ("process.exit(0)", "the `transform` of `m` printed something else"),
    ],
)
def test_transform_without_a_value_is_errored(tmp_path: Path, transform: str, reason: str) -> None:
    entry = {"metric": "m", "type": "contains", "value": "x", "transform": transform}
    [result] = run_cases(
        tmp_path, {"prompts": ["p"], "tests": [{"id": "a", "assert": [entry]}]}, "x"
    ).values()
    assert (result["status"], reason in result["reason"]) == ("errored", True), result["reason"]


def test_transformed_value_is_written_as_json(tmp_path: Path) -> None:
    entry = {"type": "equals", "value": '{\n  "a": [\n    1\n  ]\n}'}
    document = {
        "prompts": ["p"],
        "tests": [{"id": "a", "options": {"transform": "({a: [1]})"}, "assert": [entry]}],
    }
    [result] = run_cases(tmp_path, document, "x").values()
    assert result["status"] == "passed", result


def test_config_of_a_set_is_that_of_its_members(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import json, sys\nprint(json.dumps({'score': json.load(sys.stdin)['config']['a']}))"
    )
    members: list[dict[str, Any]] = [
        {
            "type": "javascript",
            "value": "context.config.a === 1 && context.config.b === 3",
            "config": {"b": 3},
        },
        {"type": "python", "value": "context['config'] == {'a': 1, 'b': 2}"},
        {"type": "script", "command": ["python3", "s.py"]},
        {"type": "contains", "value": "x"},
        {"type": "assert-set", "assert": [{"type": "python", "value": "context['config']['a']"}]},
    ]
    entry = {"type": "assert-set", "config": {"a": 1, "b": 2}, "assert": members}
    [result] = run_cases(
        tmp_path, {"prompts": ["p"], "tests": [{"id": "a", "assert": [entry]}]}, "x"
    ).values()
    assert (result["status"], result["score"]) == ("passed", 1.0), result


DIFF = "--- a/x\n+++ b/x\n+new\n"


def test_programs_read_recorded_file_changes(tmp_path: Path) -> None:
    [result] = judge(
        tmp_path,
        {"type": "python", "value": "'+new' in context['file_changes']"},
        run={"file_changes": DIFF},
    ).values()
    assert result["status"] == "passed", result


def test_run_folder_of_agentv_5_is_read_with_its_file_changes(tmp_path: Path) -> None:
    entry = {"type": "python", "value": "(context['file_changes'] or '') + output == EXPECTED"}
    entry["value"] = entry["value"].replace("EXPECTED", repr(f"{DIFF}Paris!"))
    judge(tmp_path, entry)
    outputs = tmp_path / "out" / "a-1" / "outputs"
    outputs.mkdir(parents=True)
    (tmp_path / "out" / ".internal").mkdir()
    row = {
        "test_id": "a",
        "execution_status": "ok",
        "transcript_path": "a-1/transcript.json",
        "answer_path": "a-1/outputs/answer.md",
        "file_changes_path": "a-1/outputs/file_changes.diff",
    }
    (tmp_path / "out" / ".internal" / "index.jsonl").write_text(json.dumps(row))
    (tmp_path / "out" / "a-1" / "transcript.json").write_text('{"timeline": []}')
    (outputs / "answer.md").write_text("Paris!")
    (outputs / "file_changes.diff").write_text(DIFF)
    ran = run_agentci(["run", "--traces", "out"], cwd=tmp_path)
    assert ran.code == 0, ran.out


def test_run_folder_of_agentv_5_has_tool_calls_and_prompts(tmp_path: Path) -> None:
    """The messages are in the raw transcript, unless that is a log of the agent."""
    used = {"type": "trajectory:tool-used", "value": "search"}
    document = {
        "prompts": [{"id": "one way", "prompt": "p"}, {"id": "two", "prompt": "q"}],
        "tests": [{"id": "a", "assert": [used]}],
    }
    (tmp_path / "a.eval.yaml").write_text(json.dumps(document))
    rows = [
        {
            "test_id": "a",
            "prompt_id": prompt,
            "transcript_path": f"{folder}/transcript.json",
            "transcript_raw_path": f"{folder}/transcript-raw.jsonl",
            "answer_path": f"{folder}/answer.md",
        }
        for folder, prompt in (("1", "one way"), ("2", "two"))
    ]
    message = {
        "schema_version": "agentv.transcript.v1",
        "test_id": "a",
        "message_index": 0,
        "role": "assistant",
        "content": "Found.",
        "tool_calls": [{"tool": "search", "input": {}}],
        "source": {"kind": "agentv_run", "provider": "claude"},
    }
    (tmp_path / "out" / ".internal").mkdir(parents=True)
    (tmp_path / "out" / ".internal" / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for folder, raw in (("1", message), ("2", {"type": "item", "text": "log"})):
        (tmp_path / "out" / folder).mkdir()
        (tmp_path / "out" / folder / "transcript.json").write_text('{"timeline": []}')
        (tmp_path / "out" / folder / "transcript-raw.jsonl").write_text(json.dumps(raw))
        (tmp_path / "out" / folder / "answer.md").write_text("Found.")
    ran = run_agentci(["run", "--traces", "out"], cwd=tmp_path)
    assert {each["case"]: each["status"] for each in ran.results["results"]} == {
        "a__prompt_one-way": "passed",
        "a__prompt_two": "errored",
    }
