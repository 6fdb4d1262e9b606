"""agentci answers as AgentV does (1.6.0, 1.6.1, 2.7.0, 4.42.4), save where that misleads a gate."""

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
from agentci.evaluators.agentv.case_texts import extract_question, extract_reference_answer
from agentci.runner.load_configs import load_suites
from tests._util.http.servers import Asked, script, serve
from tests.helpers.support import Ran, make_services, run_agentci
from tests.judges.bench import said

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("agentv/*/expected.json"))
# By AgentV's own word; a borderline score does not pass.
PASS = 0.8
STATUS = {"pass": "passed", "borderline": "failed", "fail": "failed", "skip": "skipped"}
V4 = "N"

Row: TypeAlias = "tuple[str, str, float | None, str, list[str], list[str]]"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where we answer otherwise: why, and a line for each of our results that differ.

    ``versions`` are those of AgentV that it is about.
    """

    why: str
    rows: tuple[str, ...]
    versions: str = "A1 A2 B2 N"


ERRORED = "a judge that fails is errored; AgentV takes it for 0, and from 4 on often for a pass"
LOST = "a case without a recording is errored, its evaluators judge nothing"

READ_ALL = "hits and misses are read also where AgentV 4 wants assertions"

HITS_FIRST = "hits and misses count before assertions where a reply has both; we ask for these"

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
            "`formats` say whether the day comes first; AgentV reads them too late",
            ("d_eu failed 0.5",),
        ),
    ),
    "33b-field-dates-timezone": (
        Difference(
            "dates are days in UTC whatever the time zone of the machine",
            ("iso_vs_mon passed 1.0",),
        ),
    ),
    "54-composite-llm-agg": (
        Difference(HITS_FIRST, ("gate passed 0.9", "gate_custom passed 0.9"), V4),
    ),
    "60-llm-default": (
        Difference(
            "AgentV 4 does not tell what its own judge said", ("llm_judge failed 0.65",), V4
        ),
    ),
    "61-llm-bad-reply": (
        Difference("a reply that holds no verdict is an error, not a 0", ("j errored None",)),
    ),
    "63-llm-rubrics": (
        Difference("what the judge says nothing of is missed, and said so", ("r failed 0.75",)),
    ),
    "68-llm-template-script": (
        Difference(ERRORED, ("j_empty errored None", "j_fail errored None")),
        Difference(HITS_FIRST, ("j passed 0.9",), V4),
    ),
    "76-batch-recorded-jsonl": (Difference(LOST, ("c errored None", "t errored None"), "B2 N"),),
}

# Evaluators that AgentV leaves out with a warning, by what we say of each; the others are compared.
INVALID = {
    "23-code-script-forms": {"cwd_missing": "there is no folder ./nope"},
    "24-code-script-invalid": {"missing": "code_judge needs `script`"},
    "31-field-missing": {"bad_match_skipped": "must be exact, numeric_tolerance or date, not"},
    "40-latency-cost-tokens": {
        "lat_invalid": "threshold must be a number of at least 0, not -1",
        "tok_none": "token_usage needs max_total, max_input or max_output",
    },
    "42-execution-metrics": {"tolerance_only_skipped": "execution_metrics needs one of"},
}
# Files of which AgentV judges nothing once it has left out what is invalid, or has a language model
# judge by nothing but the criteria.
REFUSED = {
    "09-traj-invalid-configs": (
        "mode must be any_order, in_order, exact, superset or subset, not the text 'sideways'",
        "mode any_order needs `minimums`",
        "mode exact needs `expected`",
    ),
    "67b-llm-template-file-invalid": ("bad.md uses no variable with the agent's output",),
}
# What is read differently by the version that wrote the answers: as it is said in the test's name.
LEFT_TO_OTHER_TESTS = {
    *("22a-code-stdin-payload-A1", "26-code-target-proxy", "71-shorthands"),
    *("90-conversation-4x", "91-written-out-4x"),
}


def _versions(folder: Path) -> Iterator[str]:
    yield from json.loads((folder / "expected.json").read_text())["results"]


# Whose agent is run, several times.
TRIED = [folder for folder in FOLDERS if (folder / "agent.py").exists()]

JUDGED = [
    pytest.param(folder, version, id=f"{folder.name}-{version}")
    for folder in FOLDERS
    if folder.name not in {*REFUSED, *LEFT_TO_OTHER_TESTS} and folder not in TRIED
    for version in _versions(folder)
    if (folder.name, version)
    not in {
        ("76-batch-recorded-jsonl", "A2"),  # it mixes all answers up where one is missing
        ("70-inherit-file-evaluators", "A2"),  # below
    }
]


@pytest.mark.parametrize(("folder", "version"), JUDGED)
def test_a_recorded_run_is_judged_as_agentv_judges_it(
    folder: Path, version: str, tmp_path: Path
) -> None:
    ran = _run(folder, version, tmp_path, without=tuple(INVALID.get(folder.name, ())))
    ours, theirs = list(_our_rows(ran)), list(_their_rows(folder, version))
    differing = [f"{one[1]} {one[3]} {one[2]}" for one in ours if one not in theirs]
    known = [each for each in DIFFERENCES.get(folder.name, ()) if version in each.versions]
    assert sorted(differing) == sorted(row for each in known for row in each.rows)
    assert [one[:2] for one in ours] == [one[:2] for one in theirs]


@pytest.mark.parametrize("folder", TRIED, ids=lambda folder: folder.name)
def test_trials_of_an_agent_come_to_what_they_do_in_agentv(folder: Path, tmp_path: Path) -> None:
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
def test_an_evaluator_that_agentv_leaves_out_is_a_problem(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / name
    for version in _versions(folder):
        ran = _run(folder, version, tmp_path / version)
        assert ran.code == 2
        assert _all_told(ran, INVALID[name].values())


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_whose_evaluators_agentv_leaves_out(name: str, tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / name
    for version in _versions(folder):
        ran = _run(folder, version, tmp_path / version)
        assert ran.code == 2
        assert _all_told(ran, REFUSED[name])


def test_evaluators_of_the_file_judge_a_case_whose_execution_lists_none(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "70-inherit-file-evaluators"
    ran = _run(folder, "A2", tmp_path)  # which leaves case4 to a language model
    judged = [(row["case"], row["evaluator"]) for row in ran.results["results"]]
    assert judged == [
        ("case1", "global"), ("case2", "local"), ("case3", "local2"), ("case4", "global"),
    ]  # fmt: skip


def test_the_oldest_judges_read_what_they_always_read(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "22a-code-stdin-payload-A1"
    ran = _run(folder, "A1", tmp_path, wire="camel")
    captured = json.loads((folder / "captured_stdin.A1.json").read_text())
    told = json.dumps(ran.results["results"][0]["details"]).replace(str(tmp_path), "<CASE_DIR>")
    # The capture lost what tools were given.
    assert _without_inputs(json.loads(told)) == _without_inputs(captured)


def test_a_template_is_filled_as_agentv_fills_it(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "66-llm-template-md"
    asked: list[Asked] = []
    ran = _run(folder, "B2", tmp_path, asked=asked)
    [theirs] = _prompts(folder, "B2")
    theirs = theirs.replace("eo={{expected_outcome}}", "eo=does the job")  # of all generations
    recorded = json.loads((folder / "case1.output.json").read_text())["output_messages"]
    theirs = theirs.replace("OM=[]", f"OM={json.dumps(recorded, indent=2)}")  # theirs is a fault
    assert _bare(asked[0]).strip() == theirs.strip()
    assert "tpl.md uses the unknown variable 'nope'" in ran.out


def test_a_program_that_writes_prompts_reads_what_agentv_gives_it(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "68-llm-template-script"
    asked: list[Asked] = []
    _run(folder, "B2", tmp_path, wire="snake", asked=asked)
    prompt, _, stdin = _bare(asked[0]).partition("\nSTDIN ")
    read = json.loads(stdin)
    captured = json.loads((folder / "captured_prompt_stdin.B2.json").read_text())
    # AgentV rewrites the keys of users; we leave them alone.
    assert read | {"config": {"strict_mode": True}} == captured | {
        "expected_outcome": "does the job"
    }
    assert prompt == _prompts(folder, "B2")[0].replace("strict_mode", "strictMode")


@pytest.mark.parametrize("version", ["B2", "N"])
def test_judges_ask_models_as_they_ask_them_in_agentv(version: str, tmp_path: Path) -> None:
    """Version 4 of AgentV answers none, by a fault; the names of its models are not ours."""
    folder = Path(__file__).parent / "agentv" / "26-code-target-proxy"
    with serve(script(said("MOCK REPLY"))) as server:
        judge = {"provider": "openai", "model": "judge", "base_url": server.url}
        ran = _run(folder, version, tmp_path, judge=judge)
    assert list(_our_rows(ran)) == list(_their_rows(folder, "B2"))
    told = ran.results["results"][0]["details"]
    captured = json.dumps(json.loads((folder / "captured_proxy.B2.json").read_text()))
    ours_alone = re.sub(r'("?)rec\1, \1judge\1, \1rec\1', r"\1judge\1", captured)
    expected = json.loads(ours_alone)
    # The capture lost what was asked in batches.
    asked, answered = itemgetter("request"), itemgetter("status", "body")
    assert [asked(each)[:2] for each in told["log"]] == [
        asked(each)[:2] for each in expected["log"]
    ]
    assert _has(*([*map(answered, each["log"])] for each in (told, expected)))
    assert (told["env_present"], told["token_len"]) == (True, 64)


def test_shorthands_mean_the_same_messages(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "71-shorthands"
    for version, wire in (("B2", "snake"), ("N", "v4")):
        ran = _run(folder, version, tmp_path / version, wire=wire)
        captured = json.loads((folder / f"captured_cases.{version}.json").read_text())
        ours = [row["details"] for row in ran.results["results"]]
        # AgentV rewrites the keys of users; we leave them alone.
        told = json.dumps([{key: each.get(key) for key in captured[0]} for each in ours])
        assert json.loads(told.replace('"riskLevel"', '"risk_level"')) == captured


def _has(ours: Any, theirs: Any) -> bool:
    """Whether we say all that they do."""
    if isinstance(theirs, dict):
        return all(_has(ours[name], value) for name, value in theirs.items())
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(_has, ours, theirs))
    return bool(ours == theirs)


def test_turns_are_judged_as_agentv_judges_them(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "90-conversation-4x"
    ran = _run(folder, V4, tmp_path)
    ours = {row["evaluator"]: (row["score"], *_told(row)) for row in ran.results["results"]}
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


def test_cases_are_put_together_as_agentv_does_it(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "agentv" / "91-written-out-4x"
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.copy(folder / "eval.N.yaml", tmp_path / "a.eval.yaml")
    [loaded] = load_suites(parse_settings([], {}), make_services(tmp_path, {}))
    theirs = json.loads((folder / "expected.json").read_text())["results"][V4]["tests"]
    for judged, case in zip(loaded.suite.eval_cases or (), theirs, strict=True):
        sample = judged.eval_case
        assert (sample.id, sample.criteria, sample.metadata) == (
            case["id"], case["criteria"], case["metadata"],
        )  # fmt: skip
        assert list(sample.input_messages) == _as_written(case["input"])
        assert list(sample.expected_messages) == case["expected_output"]
        assert extract_question(sample) == case["question"]
        assert extract_reference_answer(sample) == case["reference_answer"]
        files = [path.replace(str(tmp_path), "<CASE_DIR>") for path in sample.input_files]
        assert files == case["file_paths"]
        assert [each.identity.name for each in judged.evaluators] == case["assertions"]
        lines = {each.identity.threshold for each in judged.evaluators}
        assert lines == {case.get("threshold", 0.8)}


def _as_written(messages: Any) -> Any:
    """Messages without what AgentV adds to parts that name files."""
    added = ("path", "text", "resolvedPath")
    return [
        {**each, "content": [{k: v for k, v in p.items() if k not in added} for p in parts]}
        if isinstance(parts := each["content"], list)
        else each
        for each in messages
    ]


def _told(row: Any) -> tuple[list[str], list[str]]:
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
    """Judge a folder; what a language model says in it stands in ``reply.txt``.

    Args:
        asked: what it was asked is put there.
    """
    shutil.copytree(folder, into, dirs_exist_ok=True)
    file = yaml.safe_load((folder / f"eval.{version}.yaml").read_text())
    _drop(file, without)
    file |= fields
    if folder.name.startswith("27"):  # its command line gives two seconds to everything
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
    """The prompt that a model was asked with, without what we put around it and into it."""
    text = json.loads(asked.body)["messages"][-1]["content"]
    inner = text.partition("\n\n")[2].rpartition("\n\n")[0]
    return re.sub(r'<untrusted id="\w+" name="\w+">\n|\n</untrusted id="\w+">', "", inner)


def _prompts(folder: Path, version: str) -> list[str]:
    """What AgentV asked in the same place."""
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


def _all_told(ran: Ran, wanted: Any) -> bool:
    messages = [problem["message"] for problem in ran.results["problems"]]
    return all(any(part in message for message in messages) for part in wanted)


def _their_rows(folder: Path, version: str) -> Iterator[Row]:
    results = json.loads((folder / "expected.json").read_text())["results"][version]
    left_out = INVALID.get(folder.name, {})
    for case in results["cases"]:
        case_id = case.get("evalId") or case.get("eval_id") or case["test_id"]
        judged = case.get("evaluatorResults") or case.get("evaluator_results") or case.get("scores")
        for found in judged or [_default_judge(case)]:
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
    """An assertion as we show it, and AgentV before version 4: a model's with its evidence."""
    evidence = assertion.get("evidence") if found["type"] == "llm-grader" else None
    return f"{assertion['text']}: {evidence}" if evidence else str(assertion["text"])


def _default_judge(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """What AgentV's judge of cases without evaluators said, which has no row of its own."""
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
