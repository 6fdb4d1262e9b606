"""A gate that passes says so with warnings if a reviewer must look at something."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, run_agentci

TITLE = "Quality gate passed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose runs passed before, with the results in the folder ``before``."""
    folder = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "agentci-results")
    shutil.copytree(ROOT / "examples/agentevals", folder, ignore=ignored)
    assert run_agentci(["run", "--output-dir", "before"], cwd=folder, environ={}).code == 0
    return folder


def edit(file: Path, *changes: tuple[str, str], count: int = -1) -> None:
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, count)
    file.write_text(text)


def run(project: Path, *options: str) -> Ran:
    return run_agentci(["run", "--baseline", "before", *options], cwd=project, environ={})


def read_headlines(project: Path, ran: Ran) -> dict[str, str]:
    """Read the verdict of each report, without its icon."""
    folder = project / "agentci-results"
    page = (folder / "report.html").read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    verdict = json.loads(found[1])["verdict"]
    [terminal] = re.findall(rf"^({TITLE}.*)$", ran.out, re.MULTILINE)
    return {
        "terminal": terminal,
        "page": f"{verdict['title']}: {verdict['reasons'][0]}",
        **{
            name: (folder / f"{name}.md").read_text().splitlines()[0].split(" ", 2)[2]
            for name in ("comment", "summary")
        },
    }


def assert_verdict(project: Path, ran: Ran, icon: str, title: str) -> None:
    headlines = read_headlines(project, ran)
    assert headlines == dict.fromkeys(headlines, title)
    assert (ran.code, ran.results["decision"]["passed"]) == (0, True)
    for name in ("comment", "summary"):
        text = (project / "agentci-results" / f"{name}.md").read_text()
        assert text.startswith(f"## {icon} ")


def test_same_run_passes_without_warnings(project: Path) -> None:
    assert_verdict(project, run(project), "✅", f"{TITLE}: 21 checks passed")


def test_lowered_threshold_is_a_warning(project: Path) -> None:
    edit(project / "eval_config.yaml", ("threshold: 1.0", "threshold: 0.5"), count=1)
    title = f"{TITLE} with 1 warning: 21 checks passed, 1 looser policy change"
    assert_verdict(project, run(project), "⚠️", title)


def test_failing_check_that_became_advisory_is_a_warning(project: Path) -> None:
    required = ("    threshold: 0.6", "    threshold: 0.999\n    required: false")
    edit(project / "eval_config.yaml", required)
    title = (
        f"{TITLE} with 2 warnings: 16 required checks passed, 1 looser policy change, "
        "4 advisory checks newly failing"
    )
    assert_verdict(project, run(project), "⚠️", title)


def test_edited_expectation_is_a_warning(project: Path) -> None:
    edit(project / "eval_set.json", ("today by 18:00", "today before 18:00"))
    title = f"{TITLE} with 1 warning: 21 checks passed, 1 eval case edited"
    assert_verdict(project, run(project), "⚠️", title)


@pytest.mark.parametrize(("old", "new"), [("by 18:00", "by 20:00"), ("desk lamp", "floor lamp")])
def test_changed_fact_in_an_answer_that_passes_is_a_warning(
    project: Path, old: str, new: str
) -> None:
    edit(project / "recordings/where_is_my_parcel.json", (old, new))
    title = f"{TITLE} with 1 warning: 21 checks passed, 1 case with other facts than expected"
    assert_verdict(project, run(project), "⚠️", title)


@pytest.mark.parametrize(
    ("factor", "icon", "named"), [(1, "✅", ""), (4, "⚠️", ", 3.6 times the tokens")]
)
def test_many_times_the_tokens_are_a_warning(
    project: Path, factor: int, icon: str, named: str
) -> None:
    for file in (project / "recordings").iterdir():
        tokens = r'(_tokens",\s*"value":\s*\{\s*"intValue":\s*"?)(\d+)'
        text = file.read_text()
        file.write_text(re.sub(tokens, lambda found: f"{found[1]}{int(found[2]) * factor}", text))
    title = f"{TITLE}{' with 1 warning' * bool(named)}: 21 checks passed{named}"
    assert_verdict(project, run(project), icon, title)


@pytest.mark.parametrize(("old", "new"), [("by 18:00", "by 20:00"), ("desk lamp", "floor lamp")])
def test_changed_fact_without_expected_answer_is_a_warning(
    tmp_path: Path, old: str, new: str
) -> None:
    answer = "Your desk lamp is out for delivery and should arrive today by 18:00."
    (tmp_path / "a.json").write_text(otlp("Where is it?", answer))
    (tmp_path / "agentci.yaml").write_text("traces: a.json\nchecks: [max_tool_calls: 5]\n")
    run_agentci(["run", "--output-dir", "before"], cwd=tmp_path, environ={})
    edit(tmp_path / "a.json", (old, new))
    ran = run(tmp_path)
    title = f"{TITLE} with 1 warning: 1 check passed, 1 case with other facts than in the baseline"
    assert_verdict(tmp_path, ran, "⚠️", title)
    assert new.removeprefix("by ") in ran.out


def test_answer_in_other_words_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(otlp("Where is it?", "It is out for delivery right now."))
    (tmp_path / "agentci.yaml").write_text("traces: a.json\nchecks: [max_tool_calls: 5]\n")
    run_agentci(["run", "--output-dir", "before"], cwd=tmp_path, environ={})
    (tmp_path / "a.json").write_text(otlp("Where is it?", "The courier has your parcel already."))
    assert_verdict(tmp_path, run(tmp_path), "✅", f"{TITLE}: 1 check passed")


def test_failures_that_are_only_reported_are_a_warning(project: Path) -> None:
    edit(project / "recordings/where_is_my_parcel.json", ("track_parcel", "trace_parcel"))
    ran = run(project, "--fail-on", "never")
    title = f"{TITLE} with 3 warnings: 1 of 21 evaluated checks failed"
    assert all(each.startswith(title) for each in read_headlines(project, ran).values())
    assert (project / "agentci-results/comment.md").read_text().startswith("## ⚠️ ")


def test_failed_gate_has_no_warnings_in_its_title(project: Path) -> None:
    edit(project / "recordings/where_is_my_parcel.json", ("track_parcel", "trace_parcel"))
    edit(project / "eval_config.yaml", ("threshold: 0.8", "threshold: 0.5"))
    ran = run(project)
    assert ran.code == 1
    assert "warning" not in (project / "agentci-results/comment.md").read_text().splitlines()[0]


CONFIG = "traces: recordings/*.json\n"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("", "group_by: trace\n", "group_by: not set → trace"),
        ("group_by: trace\n", "", "group_by: trace → not set"),
        ("", "trace_format: otlp-json\n", "trace_format: not set → otlp-json"),
        (
            "- max_cost: 1\nprices: {gpt-4o-mini: {input: 2, output: 3}}\n",
            "- max_cost: 1\nprices: {gpt-4o-mini: {input: 1, output: 3}}\n",
            'prices: {"gpt-4o-mini": {"input": 2.0, "output": 3.0, "cache_read": 2.0, ',
        ),
        (
            "results: [{path: out/*.csv, expect: {cases: 3}}]\n",
            "results: [{path: out/*.csv, expect: {cases: 2}}]\n",
            "expect.cases of results out/*.csv: 3 → 2",
        ),
        (
            "results: [{path: out/*.csv, metrics: {m: {threshold: 0.5}}}]\n",
            "results: [{path: out/*.csv, metrics: {m: {max: 0.5}}}]\n",
            "criterion of m: score >= 0.5 → score <= 0.5",
        ),
    ],
)
def test_edit_of_what_is_read_is_listed_with_its_values(
    tmp_path: Path, before: str, after: str, shown: str
) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "recordings/a.json").write_text(otlp("Hi", "Hello"))
    (tmp_path / "out/a.csv").write_text("".join(["case,m\n", *(f"{n},0.5\n" for n in range(3))]))
    config = tmp_path / "agentci.yaml"
    config.write_text(f"{CONFIG}checks:\n- max_tool_calls: 5\n{before}")
    run_agentci(["run", "--output-dir", "before"], cwd=tmp_path, environ={})
    config.write_text(f"{CONFIG}checks:\n- max_tool_calls: 5\n{after}")
    assert shown in run(tmp_path).out


def test_traces_from_another_folder_are_listed(project: Path) -> None:
    shutil.copytree(project / "recordings", project / "others")
    edit(project / "eval_config.yaml", ("recordings/", "others/"))
    ran = run(project)
    assert "traces: recordings/*.json, recordings/*.jsonl → others/*.json" in ran.out
    title = f"{TITLE} with 1 warning: 21 checks passed, 1 policy edit"
    assert_verdict(project, ran, "⚠️", title)


def test_further_traces_are_not_listed(project: Path) -> None:
    shutil.copytree(project / "recordings", project / "more")
    edit(project / "eval_config.yaml", ("eval_set: ", "  - more/*.json\neval_set: "))
    assert " → " not in run(project).out.partition("Comparison")[0]


def assert_shown(project: Path, ran: Ran, text: str) -> None:
    """Assert that terminal, comment, summary, page and results show what a change does."""
    folder = project / "agentci-results"
    assert text in ran.out
    for name in ("comment.md", "summary.md"):
        assert text in (folder / name).read_text().replace("\\", "")
    for name in ("report.html", "results.json"):
        assert text.rpartition("; ")[2] in (folder / name).read_text()


def test_checks_that_pass_only_by_a_lower_threshold_are_named(project: Path) -> None:
    answer = "Your desk lamp is out for delivery and should arrive today by 18:00."
    shorter = (answer, "Your lamp is out for delivery soon, my dear.")
    edit(project / "recordings/where_is_my_parcel.json", shorter)
    edit(project / "eval_config.yaml", ("threshold: 0.6", "threshold: 0.5"))
    ran = run(project)
    assert ran.code == 0
    assert_shown(project, ran, "0.5; 1 check passes only because of it: where_is_my_parcel")


def test_lower_threshold_without_effect_names_no_check(project: Path) -> None:
    edit(project / "eval_config.yaml", ("threshold: 0.6", "threshold: 0.5"))
    assert "threshold of response_match_score: 0.6 → 0.5\n" in run(project).out


def test_checks_that_do_not_count_any_more_are_named(project: Path) -> None:
    required = ("    threshold: 0.6", "    threshold: 0.999\n    required: false")
    edit(project / "eval_config.yaml", required)
    ran = run(project)
    shown = "advisory; 4 checks do not pass, and do not count because of it: opened_headphones, "
    assert_shown(project, ran, f"{shown}where_is_my_parcel, broken_kettle, cancel_before_shipping")


def test_failed_checks_that_a_lower_pass_rate_allows_are_named(project: Path) -> None:
    edit(project / "recordings/where_is_my_parcel.json", ("track_parcel", "trace_parcel"))
    edit(project / "eval_config.yaml", ("evaluators:", "gate: {min_pass_rate: 0.5}\nevaluators:"))
    shown = "0.5; 1 check failed, too many for the base's pass rate: where_is_my_parcel"
    assert_shown(project, run(project), shown)


def test_values_of_edited_eval_cases_are_shown(project: Path) -> None:
    edit(project / "eval_set.json", ("today by 18:00", "today before 18:00"))
    shown = "where_is_my_parcel; answer …arrive today by 18:00. → …arrive today before 18:00."
    assert shown in run(project).out
    edit(project / "eval_set.json", ("within 30 days", "within 30 weeks"))
    ran = run(project)
    assert "edited: where_is_my_parcel, opened_headphones; where_is_my_parcel: answer " in ran.out
    assert_shown(project, ran, "; opened_headphones: answer ")


def test_report_without_content_has_no_values_of_eval_cases(project: Path) -> None:
    edit(project / "eval_set.json", ("today by 18:00", "today before 18:00"))
    ran = run(project, "--content", "none")
    assert "1 eval case edited: where_is_my_parcel\n" in ran.out
    [change] = ran.results["policy"]["loosened"]
    assert (change["effect"], ran.results["gates"][0]["case_values"]) == ("", {})
