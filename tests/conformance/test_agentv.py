"""agentci returns the results of AgentV 1.6.0, 1.6.1, 2.7.0, 4.42.4, with listed differences."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from agentci.config.settings import parse_settings
from agentci.evaluators.agentv.findings import extract_question, extract_reference_answer
from agentci.runner.load_configs import load_suites
from tests._util.http.servers import Asked, script, serve
from tests.helpers.support import Ran, make_services, run_agentci
from tests.judges.bench import said

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("agentv/*/expected.json"))
# AgentV's own threshold; a borderline score does not pass.
PASS = 0.8
STATUS = {"pass": "passed", "borderline": "failed", "fail": "failed", "skip": "skipped"}
V4 = "N"

Row: TypeAlias = "tuple[str, str, float | None, str, list[str], list[str]]"


@dataclass(frozen=True, slots=True)
class Difference:
    """An intended difference: the reason and one line for each of our results that differ.

    ``versions`` are the versions of AgentV that it applies to.
    """

    why: str
    rows: tuple[str, ...]
    versions: str = "A1 A2 B2 N"


ERRORED = "a failing judge is errored; AgentV scores it 0, and from version 4 on often as a pass"
LOST = "a case without a recorded run is errored and not evaluated"
UNRECORDED = "an output that is only text does not say which tools were called"

READ_ALL = "hits and misses are also read if AgentV 4 expects assertions"

HITS_FIRST = "hits and misses precede assertions if a response has both; prompts ask for them"

DIFFERENCES = {
    "20-code-protocol": (Difference(READ_ALL, ("noscore failed 0.0", "strscore failed 0.0"), V4),),
    "21-code-failures": (
        Difference(
            ERRORED,
            tuple(
                f"{name} errored None"
                for name in (
                    *("exit1_json", "exit1_text", "exit3_stderr", "text", "empty", "array"),
                    *("number", "nan", "logline", "missing_binary"),
                )
            ),
        ),
    ),
    "23-code-script-forms": (
        Difference(ERRORED, ("not_found_script errored None",)),
        Difference(READ_ALL, ("with_cwd failed 0.5",), V4),
    ),
    "27-code-timeout": (Difference(ERRORED, ("slow errored None",)),),
    "33-field-dates": (
        Difference(
            "`formats` decide whether the day comes first; AgentV applies them too late",
            ("d_eu failed 0.5",),
        ),
    ),
    "33b-field-dates-timezone": (
        Difference(
            "dates are days in UTC, independent of the time zone of the machine",
            ("iso_vs_mon passed 1.0",),
        ),
    ),
    "54-composite-llm-agg": (
        Difference(HITS_FIRST, ("gate passed 0.9", "gate_custom passed 0.9"), V4),
    ),
    "60-llm-default": (
        Difference(
            "AgentV 4 does not report the output of its own judge", ("llm_judge failed 0.65",), V4
        ),
    ),
    "61-llm-bad-reply": (
        Difference(
            "a response without a verdict is an error, not a score of 0", ("j errored None",)
        ),
    ),
    "63-llm-rubrics": (
        Difference("a rubric without a verdict is reported as a miss", ("r failed 0.75",)),
    ),
    "68-llm-template-script": (
        Difference(ERRORED, ("j_empty errored None", "j_fail errored None")),
        Difference(HITS_FIRST, ("j passed 0.9",), V4),
    ),
    "73-plain-text-output": (Difference(UNRECORDED, ("t errored None",), "A2 B2 N"),),
    "76-batch-recorded-jsonl": (
        Difference(LOST, ("c errored None", "t errored None"), "B2 N"),
        Difference(UNRECORDED, ("t errored None", "t errored None"), "B2 N"),
    ),
}

# Evaluators that AgentV omits with a warning, and our error for each; the others are compared.
INVALID = {
    "23-code-script-forms": {"cwd_missing": "folder ./nope not found"},
    "24-code-script-invalid": {"missing": "code_judge needs `script`"},
    "31-field-missing": {"bad_match_skipped": "must be exact, numeric_tolerance or date, not"},
    "40-latency-cost-tokens": {
        "lat_invalid": "`threshold` must be a number of at least 0, not -1",
        "tok_none": "token_usage needs max_total, max_input or max_output",
    },
    "42-execution-metrics": {"tolerance_only_skipped": "execution_metrics needs one of"},
}
# Files for which AgentV omits all evaluators as invalid, or has a language model evaluate by the
# criteria only.
REFUSED = {
    "09-traj-invalid-configs": (
        "`mode` must be any_order, in_order, exact, superset or subset, not the string 'sideways'",
        "mode any_order needs `minimums`",
        "mode exact needs `expected`",
    ),
    "67b-llm-template-file-invalid": ("bad.md uses no variable with the agent's output",),
}
# Folders with their own tests below: the version that wrote the results reads them differently.
LEFT_TO_OTHER_TESTS = {
    *("22a-code-stdin-payload-A1", "26-code-target-proxy", "71-shorthands"),
    *("90-conversation-4x", "91-written-out-4x"),
}


def _versions(folder: Path) -> Iterator[str]:
    yield from json.loads((folder / "expected.json").read_text())["results"]


# Folders whose agent is run several times.
WITH_TRIALS = [folder for folder in FOLDERS if (folder / "agent.py").exists()]

EVALUATED = [
    pytest.param(folder, version, id=f"{folder.name}-{version}")
    for folder in FOLDERS
    if folder.name not in {*REFUSED, *LEFT_TO_OTHER_TESTS} and folder not in WITH_TRIALS
    for version in _versions(folder)
    if (folder.name, version)
    not in {
        ("76-batch-recorded-jsonl", "A2"),  # it mixes up all answers if one is missing
        ("70-inherit-file-evaluators", "A2"),  # below
    }
]


@pytest.mark.parametrize(("folder", "version"), EVALUATED)
def test_recorded_run_gets_results_of_agentv(folder: Path, version: str, tmp_path: Path) -> None:
    ran = _run(folder, version, tmp_path, without=tuple(INVALID.get(folder.name, ())))
    ours, theirs = list(_our_rows(ran)), list(_their_rows(folder, version))
    differing = [f"{one[1]} {one[3]} {one[2]}" for one in ours if one not in theirs]
    known = [each for each in DIFFERENCES.get(folder.name, ()) if version in each.versions]
    assert sorted(differing) == sorted(row for each in known for row in each.rows)
    assert [one[:2] for one in ours] == [one[:2] for one in theirs]


@pytest.mark.parametrize("folder", WITH_TRIALS, ids=lambda folder: folder.name)
def test_agent_trials_get_results_of_agentv(folder: Path, tmp_path: Path) -> None:
    targets = yaml.safe_load((folder / "targets.B2.yaml").read_text())["targets"]
    target = next(each for each in targets if each["provider"] == "cli")
    ran = _run(folder, "B2", tmp_path, target=target)
    [theirs] = json.loads((folder / "expected.json").read_text())["results"]["B2"]["cases"]
    [ours] = ran.results["results"]
    assert ours["score"] == theirs["score"]
    assert [(each["attempt"], each["score"]) for each in ours["trials"]["trials"]] == [
        (each["attempt"], each["score"]) for each in theirs["trials"]
    ]
    assert ours["trials"]["strategy"] == theirs["aggregation"]["strategy"]
    assert ours["trials"]["cost_limited"] == theirs.get("cost_limited", False)
    answered = ran.results["cases"][0]["turns"][0]["answer"]
    assert answered == theirs["candidate_answer"]


@pytest.mark.parametrize("name", INVALID)
def test_evaluator_omitted_by_agentv_is_an_error(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / name
    for version in _versions(folder):
        ran = _run(folder, version, tmp_path / version)
        assert ran.code == 2
        assert _are_reported(ran, INVALID[name].values())


@pytest.mark.parametrize("name", REFUSED)
def test_file_without_valid_evaluators_is_rejected(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / name
    for version in _versions(folder):
        ran = _run(folder, version, tmp_path / version)
        assert ran.code == 2
        assert _are_reported(ran, REFUSED[name])


def test_case_without_evaluators_inherits_those_of_file(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "70-inherit-file-evaluators"
    ran = _run(folder, "A2", tmp_path)  # A2 has a language model evaluate case4
    evaluated = [(row["case"], row["evaluator"]) for row in ran.results["results"]]
    assert evaluated == [
        ("case1", "global"), ("case2", "local"), ("case3", "local2"), ("case4", "global"),
    ]  # fmt: skip


def test_code_judge_receives_payload_of_agentv_1(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "22a-code-stdin-payload-A1"
    ran = _run(folder, "A1", tmp_path, wire="camel")
    captured = json.loads((folder / "captured_stdin.A1.json").read_text())
    received = json.dumps(ran.results["results"][0]["details"]).replace(str(tmp_path), "<CASE_DIR>")
    # The capture lost the inputs of tool calls.
    assert _without_inputs(json.loads(received)) == _without_inputs(captured)


def test_prompt_template_renders_as_in_agentv(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "66-llm-template-md"
    asked: list[Asked] = []
    ran = _run(folder, "B2", tmp_path, asked=asked)
    [theirs] = _prompts(folder, "B2")
    theirs = theirs.replace("eo={{expected_outcome}}", "eo=does the job")  # also in old templates
    recorded = json.loads((folder / "case1.output.json").read_text())["output_messages"]
    theirs = theirs.replace("OM=[]", f"OM={json.dumps(recorded, indent=2)}")  # a bug of AgentV
    assert _bare(asked[0]).strip() == theirs.strip()
    assert "tpl.md uses the unknown variable 'nope'" in ran.out


def test_prompt_program_receives_input_of_agentv(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "68-llm-template-script"
    asked: list[Asked] = []
    _run(folder, "B2", tmp_path, wire="snake", asked=asked)
    prompt, _, stdin = _bare(asked[0]).partition("\nSTDIN ")
    read = json.loads(stdin)
    captured = json.loads((folder / "captured_prompt_stdin.B2.json").read_text())
    # AgentV rewrites user-defined keys; agentci does not.
    assert read | {"config": {"strict_mode": True}} == captured | {
        "expected_outcome": "does the job"
    }
    assert prompt == _prompts(folder, "B2")[0].replace("strict_mode", "strictMode")


@pytest.mark.parametrize("version", ["B2", "N"])
def test_target_proxy_responds_as_in_agentv(version: str, tmp_path: Path) -> None:
    """AgentV 4 answers no request because of a bug; its model names differ from ours."""
    folder = Path(__file__).parent / "agentv" / "26-code-target-proxy"
    with serve(script(said("MOCK REPLY"))) as server:
        judge = {"provider": "openai", "model": "judge", "base_url": server.url}
        ran = _run(folder, version, tmp_path, judge=judge)
    assert list(_our_rows(ran)) == list(_their_rows(folder, "B2"))
    received = ran.results["results"][0]["details"]
    captured = json.dumps(json.loads((folder / "captured_proxy.B2.json").read_text()))
    ours_alone = re.sub(r'("?)rec\1, \1judge\1, \1rec\1', r"\1judge\1", captured)
    expected = json.loads(ours_alone)
    # The capture lost the requests of batches.
    asked, answered = itemgetter("request"), itemgetter("status", "body")
    assert [asked(each)[:2] for each in received["log"]] == [
        asked(each)[:2] for each in expected["log"]
    ]
    assert _has(*([*map(answered, each["log"])] for each in (received, expected)))
    assert (received["env_present"], received["token_len"]) == (True, 64)


def test_shorthands_expand_to_messages_of_agentv(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "71-shorthands"
    for version, wire in (("B2", "snake"), ("N", "v4")):
        ran = _run(folder, version, tmp_path / version, wire=wire)
        captured = json.loads((folder / f"captured_cases.{version}.json").read_text())
        ours = [row["details"] for row in ran.results["results"]]
        # AgentV rewrites user-defined keys; agentci does not.
        received = json.dumps([{key: each.get(key) for key in captured[0]} for each in ours])
        assert json.loads(received.replace('"riskLevel"', '"risk_level"')) == captured


def _has(ours: Any, theirs: Any) -> bool:
    """Whether ``ours`` contains all that ``theirs`` does."""
    if isinstance(theirs, dict):
        return all(_has(ours[name], value) for name, value in theirs.items())
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(_has, ours, theirs))
    return bool(ours == theirs)


def test_conversation_turns_get_scores_of_agentv(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "90-conversation-4x"
    ran = _run(folder, V4, tmp_path)
    ours = {
        row["evaluator"]: (row["score"], *_hits_and_misses(row)) for row in ran.results["results"]
    }
    [case] = json.loads((folder / "expected.json").read_text())["results"][V4]["cases"]
    theirs = {
        ("" if part["name"] == "conversation" else f"{part['name']}/") + found["name"]: (
            found["score"],
            *(
                [each["text"] for each in found["assertions"] if each["passed"] is passed]
                for passed in (True, False)
            ),
        )
        for part in case["scores"]
        for found in part["scores"]
    }
    assert ours == theirs
    weighted = [(row["score"], row["weight"]) for row in ran.results["results"]]
    total = sum(weight for _, weight in weighted)
    assert sum(score * weight for score, weight in weighted) / total == pytest.approx(case["score"])


def test_eval_cases_are_loaded_as_in_agentv(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "91-written-out-4x"
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.copy(folder / "eval.N.yaml", tmp_path / "a.eval.yaml")
    [loaded] = load_suites(parse_settings([], {}), make_services(tmp_path, {}))
    theirs = json.loads((folder / "expected.json").read_text())["results"][V4]["tests"]
    for loaded_case, case in zip(loaded.suite.eval_cases or (), theirs, strict=True):
        sample = loaded_case.eval_case
        assert (sample.id, sample.criteria, sample.metadata) == (
            case["id"], case["criteria"], case["metadata"],
        )  # fmt: skip
        assert list(sample.input_messages) == _as_written(case["input"])
        assert list(sample.expected_messages) == case["expected_output"]
        assert extract_question(sample) == case["question"]
        assert extract_reference_answer(sample) == case["reference_answer"]
        files = [path.replace(str(tmp_path), "<CASE_DIR>") for path in sample.input_files]
        assert files == case["file_paths"]
        assert [each.identity.name for each in loaded_case.evaluators] == case["assertions"]
        lines = {each.identity.threshold for each in loaded_case.evaluators}
        assert lines == {case.get("threshold", 0.8)}


def _as_written(messages: Any) -> Any:
    """Messages without the keys that AgentV adds to parts with files."""
    added = ("path", "text", "resolvedPath")
    return [
        {**each, "content": [{k: v for k, v in p.items() if k not in added} for p in parts]}
        if isinstance(parts := each["content"], list)
        else each
        for each in messages
    ]


def _hits_and_misses(row: Any) -> tuple[list[str], list[str]]:
    return row["hits"], row["misses"]


def _run(
    folder: Path,
    version: str,
    into: Path,
    *,
    without: Sequence[str] = (),
    asked: list[Asked] | None = None,
    **fields: Any,
) -> Ran:
    """Evaluate a folder; ``reply.txt`` holds the response of its language model.

    Args:
        asked: receives the requests to the language model.
    """
    shutil.copytree(folder, into, dirs_exist_ok=True)
    file = yaml.safe_load((folder / f"eval.{version}.yaml").read_text())
    _drop(file, without)
    file |= fields
    if folder.name.startswith("27"):  # its command line sets a timeout of 2 s
        _each_evaluator(file)["slow"]["timeout"] = 2
    batch = ["--traces", "recorded.jsonl"] if (folder / "recorded.jsonl").exists() else []
    response = folder / "reply.txt"
    with (
        serve(script(said(response.read_text()))) if response.exists() else nullcontext() as server
    ):
        if server is not None:
            file["judge"] = {"provider": "openai", "model": "mock", "base_url": server.url}
        (into / "eval.yaml").write_text(yaml.safe_dump(file, sort_keys=False))
        ran = run_agentci(["run", "eval.yaml", *batch], cwd=into)
        if server is not None and asked is not None:
            asked += server.asked
    return ran


def _bare(asked: Asked) -> str:
    """The prompt of a request, without the text and markers that agentci adds."""
    text = json.loads(asked.body)["messages"][-1]["content"]
    inner = text.partition("\n\n")[2].rpartition("\n\n")[0]
    return re.sub(r'<untrusted id="\w+" name="\w+">\n|\n</untrusted id="\w+">', "", inner)


def _prompts(folder: Path, version: str) -> list[str]:
    """The prompts of AgentV for the same folder."""
    results = json.loads((folder / "expected.json").read_text())["results"][version]
    requests = [
        found["evaluator_provider_request"]
        for case in results["cases"]
        for found in case["evaluator_results"]
        if "evaluator_provider_request" in found
    ]
    return [each["user_prompt"] for each in requests]


def _lists(file: Mapping[str, Any]) -> Iterator[list[Any]]:
    cases = next(file[key] for key in ("evalcases", "cases", "tests") if key in file)
    for part in (file, *cases):
        for owner in (part, part.get("execution") or {}):
            yield from (owner[key] for key in ("evaluators", "assertions") if key in owner)


def _each_evaluator(file: Mapping[str, Any]) -> dict[str, Any]:
    return {each.get("name"): each for entries in _lists(file) for each in entries}


def _drop(file: Mapping[str, Any], names: Sequence[str]) -> None:
    for entries in _lists(file):
        entries[:] = [each for each in entries if each.get("name") not in names]


def _are_reported(ran: Ran, wanted: Any) -> bool:
    messages = [problem["message"] for problem in ran.results["problems"]]
    return all(any(part in message for message in messages) for part in wanted)


def _their_rows(folder: Path, version: str) -> Iterator[Row]:
    results = json.loads((folder / "expected.json").read_text())["results"][version]
    left_out = INVALID.get(folder.name, {})
    for case in results["cases"]:
        case_id = case.get("evalId") or case.get("eval_id") or case["test_id"]
        evaluated = (
            case.get("evaluatorResults") or case.get("evaluator_results") or case.get("scores")
        )
        for found in evaluated or [_default_judge(case)]:
            if found["name"] in left_out:
                continue
            hits, misses = found.get("hits", []), found.get("misses", [])
            if version == V4:
                hits, misses = (
                    [
                        _asserted(each, found)
                        for each in found["assertions"]
                        if each["passed"] is passed
                    ]
                    for passed in (True, False)
                )
            status = STATUS[found["verdict"]]
            yield case_id, found["name"], round(found["score"], 9), status, hits, misses


def _asserted(assertion: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """An assertion as agentci and AgentV before 4 show it: a model's with its evidence."""
    evidence = assertion.get("evidence") if found["type"] == "llm-grader" else None
    return f"{assertion['text']}: {evidence}" if evidence else str(assertion["text"])


def _default_judge(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result of AgentV's default judge, which has no row of its own."""
    verdict = "pass" if case["score"] >= PASS else "fail"
    return {"assertions": [], **case, "name": "llm_judge", "verdict": verdict}


def _our_rows(ran: Ran) -> Iterator[Row]:
    for row in ran.results["results"]:
        score = row["score"] if row["score"] is None else round(row["score"], 9)
        yield row["case"], row["evaluator"], score, row["status"], row["hits"], row["misses"]


def _without_inputs(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_inputs(each) for key, each in value.items() if key != "input"}
        case list():
            return [_without_inputs(each) for each in value]
        case _:
            return value
