"""``--case`` and ``--tag`` select the cases to check."""

import json
from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci

HAS_X = {"type": "contains", "value": "x"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two eval files with outputs for all of their cases, and tags of files and cases."""
    write(tmp_path, "a", tags=["fast"], cases={"a-1": ["core"], "a-2": []})
    write(tmp_path, "b", tags=[], cases={"b-1": ["core", "fast"]})
    return tmp_path


def write(folder: Path, name: str, *, tags: list[str], cases: dict[str, list[str]]) -> None:
    tests = [
        {"id": case, "criteria": "c", "input": "q", "tags": own, "assertions": [HAS_X]}
        for case, own in cases.items()
    ]
    (folder / f"{name}.eval.yaml").write_text(json.dumps({"tags": tags, "tests": tests}))
    rows = [json.dumps({"id": case, "text": "x"}) for case in cases]
    (folder / f"{name}.outputs.jsonl").write_text("\n".join(rows))


def checked(ran: Ran) -> list[str]:
    assert ran.results["problems"] == []
    return [each["case"] for each in ran.results["results"]]


@pytest.mark.parametrize(
    ("options", "cases"),
    [
        (["--case", "a-1"], ["a-1"]),
        (["--case", "*-1"], ["a-1", "b-1"]),
        (["--case", "a-2", "--case", "b*"], ["a-2", "b-1"]),
        (["--tag", "fast"], ["a-1", "a-2", "b-1"]),
        (["--tag", "core", "--tag", "fast"], ["a-1", "b-1"]),
        (["--tag", "core", "--case", "b*"], ["b-1"]),
    ],
    ids=" ".join,
)
def test_cases_are_selected(folder: Path, options: list[str], cases: list[str]) -> None:
    ran = run_agentci(["run", "a.eval.yaml", "b.eval.yaml", *options], cwd=folder)
    assert (ran.code, checked(ran)) == (0, cases)


def test_verdict_states_that_only_a_part_was_evaluated(folder: Path) -> None:
    files, note = ["a.eval.yaml", "b.eval.yaml"], "only the cases of --case a-1 were evaluated"
    ran = run_agentci(["run", *files, "--case", "a-1"], cwd=folder)
    assert f"Quality gate passed: 1 check passed, {note}\n" in ran.out
    for name in ("summary.md", "comment.md"):
        text = (folder / "agentci-results" / name).read_text()
        assert note in text.replace("\\", "")
    (folder / "a.outputs.jsonl").write_text('{"id": "a-1", "text": "y"}\n')
    ran = run_agentci(["run", *files, "--case", "a-1"], cwd=folder)
    assert (ran.code, note in ran.out) == (1, True)
    assert "evaluated" not in run_agentci(["run", "b.eval.yaml"], cwd=folder).out


@pytest.mark.parametrize("options", [["--case", "c*"], ["--tag", "slow"]])
def test_selection_without_cases_is_an_error(folder: Path, options: list[str]) -> None:
    ran = run_agentci(["run", "a.eval.yaml", *options], cwd=folder)
    assert ran.code == 2
    assert f"no case to check matches {' '.join(options)}" in ran.out


def test_name_without_a_case_is_an_error_beside_names_of_cases(folder: Path) -> None:
    options = ["--case", "a-1", "--case", "a-22"]
    ran = run_agentci(["run", "a.eval.yaml", "b.eval.yaml", *options], cwd=folder)
    assert ran.code == 2
    assert "no case to check matches --case a-22; `agentci plan` lists" in ran.out


def test_selection_is_rejected_with_a_baseline(folder: Path) -> None:
    ran = run_agentci(["run", "a.eval.yaml", "--case", "a-1", "--baseline", "base"], cwd=folder)
    assert ran.code == 2
    shown = f"{ran.out}{ran.problems}"
    assert "--case and --tag cannot be combined with --baseline" in shown


def test_cases_of_traces_are_selected(tmp_path: Path) -> None:
    lines = [otlp(question, "x", trace=index) for index, question in enumerate(("Hi", "Bye"), 1)]
    (tmp_path / "traces.jsonl").write_text("\n".join(lines))
    (tmp_path / "agentci.yaml").write_text("traces: traces.jsonl\nchecks: [{contains: x}]\n")
    names = checked(run_agentci(["run"], cwd=tmp_path))
    assert len(names) == len(lines)
    ran = run_agentci(["run", "--case", names[0]], cwd=tmp_path)
    assert checked(ran) == names[:1]
    assert run_agentci(["run", "--case", "none"], cwd=tmp_path).code == 2
    assert run_agentci(["run", "--tag", "any"], cwd=tmp_path).code == 2
