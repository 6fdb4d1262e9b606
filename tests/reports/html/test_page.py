"""``report.html`` as text: its content, its data and its content security policy."""

import hashlib
import json
import re
from base64 import b64encode
from typing import cast

import pytest
from lxml import etree

from agentci.gate.comparison import compare_runs
from agentci.model.gate import PolicyChange, PolicyComparison
from agentci.model.result import CallPayload, EvaluatorCalls, Provenance, Report, Status
from agentci.model.values import Place, Problem, replace
from agentci.reports.contents import limit_contents
from agentci.reports.html.markup import Markup, escape_text, join_markup, tag
from agentci.reports.json_report import JsonReport
from tests.conftest import Golden
from tests.helpers.reports import make_report, make_result, mixed_report, shard_report, text_of
from tests.reports.html.pages import (
    HOSTILE,
    blocks_of,
    changed_days_report,
    compared,
    conversation_report,
    data_of,
    failing_tool_report,
    full_report,
    hostile_report,
    long_report,
    make_change,
    make_trend,
    page_of,
    retried_call_report,
    transcript_report,
    tree_of,
)


def _words(report: Report) -> str:
    """The text of the page for readers without scripts."""
    tree = tree_of(report)
    etree.strip_elements(tree, "style", "script", with_tail=False)
    return " ".join(" ".join(tree.itertext()).split())


def test_page_matches_snapshot(golden: Golden) -> None:
    page = page_of(full_report())
    own = re.compile(r"(<style>).*(</style>)|(<script type=\"module\">).*(</script>)", re.DOTALL)
    body = own.sub(r"\1\2\3\4", re.sub(r"sha256-[^']+", "sha256-...", page))
    golden("report.html", body.replace("><", ">\n<"))


def test_cause_of_one_case_is_named_by_what_happened_unless_it_is_a_call() -> None:
    names = [
        list(data_of(report).get("cause_names", {}).values())
        for report in (changed_days_report("tone"), retried_call_report())
    ]
    assert names[0] == ["tone: 30 days \N{RIGHTWARDS ARROW} 14 days"]
    assert names[1] == []


class TestWithoutScript:
    def test_verdict_reasons_problems_and_worst_checks_are_shown(self) -> None:
        words = _words(mixed_report())
        order = ["Quality gate failed", "2 of 3", "3 passed" if "3 passed" in words else "checks:"]
        assert [words.index(each) for each in order] == sorted(words.index(each) for each in order)
        assert "cancels > response_quality score 0.6999, threshold 0.7 It never says" in words

    def test_checks_above_limit_are_counted(self) -> None:
        failed = [make_result("failed", 0.1, case=f"c{number}") for number in range(25)]
        assert "and 5 more" in _words(make_report(failed))

    def test_problems_of_invalid_input_are_shown(self) -> None:
        place = Place(file="a.yaml", line=3, column=5)
        problem = Problem(message="`x` is not a key", hint="remove it", place=place)
        words = _words(make_report([], problems=[problem]))
        assert "Invalid input a.yaml:3:5: error: `x` is not a key; remove it" in words


class TestIndex:
    @pytest.mark.parametrize(
        ("report", "status"),
        [
            pytest.param(make_report([make_result("passed", 1.0)]), "passed", id="passed"),
            pytest.param(make_report([make_result("failed", 0.1)]), "failed", id="failed"),
            pytest.param(make_report([make_result("errored")]), "errored", id="errored"),
            pytest.param(shard_report([make_result("passed")]), "passed", id="a shard"),
            pytest.param(make_report([]), "failed", id="no checks"),
        ],
    )
    def test_verdict_has_status(self, report: Report, status: Status) -> None:
        assert data_of(report)["verdict"]["status"] == status

    def test_index_has_every_check_with_its_case_and_evaluator(self) -> None:
        report = mixed_report()
        data = data_of(report)
        found = {
            each["id"]: (case["id"], data["evaluators"][each["evaluator"]]["name"])
            for case in data["cases"]
            for each in case["checks"]
        }
        assert found == {each.id: (each.case.id, each.evaluator.name) for each in report.results}

    def test_check_has_score_reason_and_baseline(self) -> None:
        data = data_of(conversation_report())
        checks = {case["id"]: case["checks"][0] for case in data["cases"]}
        assert checks["to_rome"]["score"] == 0.25
        assert checks["to_rome"]["before"] == ["passed", 1.0]
        assert checks["to_rome"]["reason"] == "turn 1: the wrong city"
        assert checks["out_of_order"]["reason"] == "exit code 3"
        assert "score" not in checks["by_sea"]
        assert "before" not in checks["by_sea"]

    def test_case_has_state_amounts_and_cluster(self) -> None:
        cases = {each["id"]: each for each in data_of(conversation_report())["cases"]}
        states = {name: each.get("state") for name, each in cases.items()}
        assert states == {
            "to_rome": "new_failure",
            "to_rome_again": "new_failure",
            "by_train": "still_failing",
            "on_foot": "fixed",
            "unchanged": "same",
            "out_of_order": "error",
            "by_sea": "new_case",
        }
        assert cases["to_rome"]["cluster"] == cases["to_rome_again"]["cluster"]
        assert "cluster" not in cases["unchanged"]
        assert cases["to_rome"]["amounts"] == {"ms": 9000.0, "tokens": 930, "usd": 0.002}
        assert cases["to_rome"]["before"]["ms"] == 1200.0

    def test_column_has_statistics_and_change(self) -> None:
        columns = data_of(conversation_report())["columns"]
        column = next(each for each in columns if each["name"] == "response_quality")
        assert (column["passed"], column["failed"], column["skipped"]) == (2, 3, 1)
        assert column["baseline"]["label"] == "regressed"
        assert column["baseline"]["means"] == "0.9 → 0.6"

    def test_removed_checks_of_baseline_are_listed(self) -> None:
        gone = make_change("gone", 0.95, None, "removed")
        trend = make_trend(newly_failing=(), no_longer_evaluated=(gone,))
        found = data_of(compared(mixed_report(), trend))
        assert found["lost"] == {"missing": 1, "checks": [], "more": 0}
        removed = [["gone", [["response_quality", 0.95]], "removed", None]]
        assert found["baseline"]["removed_cases"] == removed

    def test_removed_checks_of_advisory_evaluators_are_not_in_the_tile(self) -> None:
        """It is of required checks."""
        gone = [make_change(case, 0.95, None, "removed") for case in ("gone", "refunds")]
        trends = [
            make_trend(evaluator=name, required=required, no_longer_evaluated=tuple(gone))
            for name, required in (("price", True), ("tone", False))
        ]
        assert data_of(compared(mixed_report(), *trends))["lost"]["missing"] == 2

    def test_each_evaluator_counts_the_checks_of_a_removed_case(self) -> None:
        """Not only one whose outcome is inconclusive because of it."""
        gone = (make_change("gone", 0.95, None, "removed"),)
        outcomes = {"price": "pass", "tone": "inconclusive"}
        results = [make_result("passed", 0.9, evaluator=name) for name in outcomes]
        trends = [
            make_trend(
                evaluator=name,
                newly_failing=(),
                no_longer_evaluated=gone,
                outcome=outcome,
                after=0.9,
            )
            for name, outcome in outcomes.items()
        ]
        columns = data_of(compared(make_report(results), *trends))["columns"]
        changed = {each["name"]: each["baseline"]["changed"] for each in columns}
        assert changed == dict.fromkeys(outcomes, "1 no longer evaluated (removed)")

    def test_cause_is_a_sentence(self) -> None:
        crash = "exit code 1: Traceback (most recent call last):\n  File x\nValueError: no 4711"
        reasons = (
            (crash, "exit code 1: ValueError"),
            (crash.replace("1: ", "1: raised: no 4711\n"), "exit code 1: ValueError"),
            ('{"score": 0, "why": "The order is unknown."}', "The order is unknown."),
            ('not JSON for an object: [{"a": 1}]', "not JSON for an object"),
            ("The order is unknown.\n\n1. It was sent.", "The order is unknown."),
            ("order R-4711 is unknown", "order \N{HORIZONTAL ELLIPSIS} is unknown"),
        )
        results = [
            make_result("errored", case=f"c{n}", evaluator=f"e{n}", reason=reason)
            for n, (reason, _) in enumerate(reasons)
        ]
        data = data_of(make_report(results))
        checks = [check for case in data["cases"] for check in case["checks"]]
        for check, (_, shown) in zip(checks, reasons, strict=True):
            pieces, numbers = data["reasons"][check["cause"]], check.get("numbers", [])
            text = "".join(a + b for a, b in zip(pieces, [*numbers, ""], strict=True))
            assert text.partition(": ")[2] == shown

    def test_outcome_is_a_whole_clause(self) -> None:
        trend = make_trend(
            outcome="non-comparable",
            reason="mean score 1 \u2192 1 (9 cases), but 4 checks were removed",
            max_regression=0.02,
        )
        columns = data_of(compared(mixed_report(), trend))["columns"]
        [change] = [each["baseline"] for each in columns if "baseline" in each]
        assert (change["reason"], change["allowed"]) == ("4 checks were removed", 0.02)

    def test_removed_check_is_at_its_case(self) -> None:
        gone = make_change("cancels", 0.95, None, "removed")
        trend = make_trend(evaluator="tone", newly_failing=(), no_longer_evaluated=(gone,))
        found = data_of(compared(mixed_report(), trend))
        [removed] = [each["removed"] for each in found["cases"] if "removed" in each]
        assert removed == [["tone", 0.95]]
        assert "removed_cases" not in found["baseline"]

    def test_changed_calls_of_a_case_are_known(self) -> None:
        cases = data_of(conversation_report())["cases"]
        changed = [each["id"] for each in cases if each.get("calls_changed")]
        assert changed == ["to_rome", "to_rome_again", "on_foot"]

    def test_advisory_evaluators_that_regressed_are_counted_apart(self) -> None:
        trends = [make_trend(evaluator=f"e{n}", required=n > 0) for n in range(3)]
        found = data_of(compared(mixed_report(), *trends))["baseline"]["outcomes"]
        assert found == "2 regressed \N{MIDDLE DOT} 1 regressed (advisory)"

    def test_outcomes_are_counted_by_the_words_of_their_rows(self) -> None:
        before = [
            replace(make_result("passed", 1.0, case=f"c{n}"), id=f"{n:016x}") for n in range(12)
        ]
        kept = before[:10]
        comparison = compare_runs(before, kept, (), baseline="base")
        data = data_of(replace(make_report(kept), comparison=comparison))
        assert [each["baseline"]["label"] for each in data["columns"]] == ["unchanged"]
        assert data["baseline"]["outcomes"] == "1 unchanged"

    def test_calls_of_a_run_without_content_are_not_compared(self) -> None:
        report = conversation_report()
        results = tuple(
            replace(each, case=replace(each.case, not_captured="content is not recorded"))
            for each in report.results
        )
        cases = data_of(replace(report, results=results))["cases"]
        assert any(each.get("not_compared") for each in cases)
        assert not any(each.get("calls_changed") for each in cases)

    def test_missing_baseline_has_reason(self) -> None:
        found = data_of(compared(mixed_report(), no_baseline="its schema version differs"))
        assert found["baseline"]["missing"] == "its schema version differs"

    def test_run_of_workflow_is_included(self) -> None:
        run = data_of(conversation_report())["run"]
        assert (run["repository"], run["pull_request"], run["title"]) == (
            "acme/desk",
            7,
            "Shorter prompt",
        )

    def test_policy_changes_above_limit_are_counted(self) -> None:
        change = PolicyChange(
            config="a.yaml", kind="loosened", subject="threshold of tone", before="1", after="0.5"
        )
        loosened = PolicyComparison(base="main", loosened=(change,) * 53, notes=("one note",))
        policy = data_of(replace(mixed_report(), policy=loosened))["policy"]
        assert policy["changes"][0] == ["threshold of tone", "1", "0.5"]
        assert (len(policy["changes"]), policy["omitted"], policy["remarks"]) == (
            50,
            3,
            ["one note"],
        )
        assert "policy" not in data_of(replace(mixed_report(), policy=PolicyComparison(base="x")))

    def test_messages_have_errored_checks_by_reason_and_notes(self) -> None:
        rows = [
            ("a", "tone", "exit 3"),
            ("b", "tone", "exit 3"),
            ("a", "price", "killed"),
        ]
        results = [
            make_result("errored", case=case, evaluator=name, reason=why, required=name == "tone")
            for case, name, why in rows
        ]
        report = make_report(results)
        note = "1 advisory check did not pass (price)"
        decision = replace(report.decision, unlisted_notes=(note,))
        errors = {"level": "error", "more": 0}
        assert data_of(replace(report, decision=decision))["messages"] == [
            {**errors, "place": "tone", "text": "exit 3", "cases": ["a", "b"]},
            {**errors, "place": "price (advisory)", "text": "killed", "cases": ["a"]},
            {"level": "note", "text": note},
        ]

    def test_messages_have_problems_warnings_repeats_and_sources(self) -> None:
        source = Provenance(
            config="a.yaml", evaluator="tone", source="github", repository="a/b", revision="v1",
            ref="tone", commit="c0ffee", digest="d",
        )  # fmt: skip
        report = replace(full_report(), provenance=(source,))
        warned = make_result("passed", 1.0, case="odd", warnings=["1 span dropped"])
        report = replace(report, results=(*report.results, warned))
        messages = data_of(report)["messages"]
        assert {each["level"] for each in messages} == {"error", "warning", "note"}
        texts = " ".join(each["text"] for each in messages)
        assert "1 span dropped" in texts
        assert "flaky" in texts
        assert "tone is from github: a/b tone at c0ffee" in texts

    def test_checks_of_a_case_are_in_the_order_of_all_reports(self) -> None:
        given = {"a": "passed", "b": "errored", "c": "failed", "d": "failed", "e": "skipped"}
        results = [
            make_result(cast(Status, status), evaluator=name, required=name != "c", misses=[name])
            if status == "failed"
            else make_result(cast(Status, status), evaluator=name)
            for name, status in given.items()
        ]
        report = make_report(results)
        data, [[content]] = data_of(report), blocks_of(report)
        evaluators = [each["name"] for each in data["evaluators"]]
        names = [evaluators[each["evaluator"]] for each in data["cases"][0]["checks"]]
        assert names == ["d", "c", "b", "a", "e"]
        assert [each.get("misses") for each in content["checks"][:3]] == [["d"], ["c"], None]
        assert evaluators == [*given]

    def test_hostile_text_is_preserved(self) -> None:
        assert data_of(hostile_report())["cases"][0]["id"] == HOSTILE

    def test_data_cannot_end_its_script_element(self) -> None:
        page = page_of(hostile_report())
        for id_ in ("data", "cases-0"):
            data = page.partition(f'id="{id_}">')[2].partition("</script>")[0]
            assert data.isascii()
            assert "<" not in data

    def test_empty_report_has_no_cases(self) -> None:
        data = data_of(make_report([]))
        assert data["cases"] == []
        assert "evaluators" not in data


class TestContents:
    def test_block_has_conversation_and_findings(self) -> None:
        [block] = blocks_of(conversation_report())
        [turn, missing] = block[0]["run"]["turns"]
        assert turn["calls"][0]["arguments"] == {"to": "Paris", "seats": 2}
        assert turn["expected_answer"] == "There is no flight to Rome today."
        assert turn["baseline"]["answer"] == "There is no flight to Rome."
        assert missing["missing"] is True
        assert block[0]["checks"][0]["misses"] == ["turn 1: the wrong city"]
        assert block[0]["file"].startswith("evals/recordings/to_rome.json")

    def test_trials_and_repeats_are_kept(self) -> None:
        [[first, *_]] = blocks_of(full_report())
        repeated = first["checks"][-1]
        assert repeated["trials"]["trials"][1]["reason"] == "it hung"
        assert repeated["repeats"]["flip_rate"] == 0.5

    def test_cases_are_split_into_blocks(self) -> None:
        report = long_report(150)
        assert [len(each) for each in blocks_of(report)] == [64, 64, 22]
        places = [each["block"] for each in data_of(report)["cases"]]
        assert (places[0], places[64], places[-1]) == ([0, 0], [1, 0], [2, 21])

    def test_details_beyond_limits_are_left_out(self) -> None:
        results = [
            make_result("failed", 0.1, case="long", details={"x": "y" * 70_000}),
            *(
                make_result("passed", 1.0, case=f"c{n}", details={"x": "y" * 60_000})
                for n in range(20)
            ),
        ]
        cases = [case for block in blocks_of(make_report(results)) for case in block]
        kept = [case["checks"][0]["details"] for case in cases]
        assert kept[0] == {"omitted": "70,008 characters, which results.json may have"}
        assert sum("x" in each for each in kept) == 17


class TestTranscript:
    def test_transcript_is_in_its_own_element(self) -> None:
        report = transcript_report(CallPayload(name="stdin", content="{}", size=2))
        check = data_of(report)["cases"][0]["checks"][0]
        element = tree_of(report).get_element_by_id(f"transcript-{check['transcript']}")
        assert element.get("type") == "application/json"
        assert json.loads(element.text)[0]["texts"][0]["content"] == "{}"

    def test_omitted_transcript_is_marked(self) -> None:
        result = make_result("failed", 0.1)
        left_out = EvaluatorCalls(omitted_checks=frozenset([result.id]))
        data = data_of(replace(make_report([result]), evaluator_calls=left_out))
        check = data["cases"][0]["checks"][0]
        assert (check["omitted"], "transcript" in check) == (True, False)

    def test_transcripts_of_merged_runs_are_marked(self) -> None:
        data = data_of(replace(mixed_report(), evaluator_calls=EvaluatorCalls(kept_in_parts=True)))
        assert data["merged"] is True
        assert "merged" not in data_of(mixed_report())


class TestContentSecurityPolicy:
    def test_policy_allows_only_our_style_and_script(self) -> None:
        tree = tree_of(mixed_report())
        [policy] = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
        directives = dict(each.strip().split(" ", 1) for each in policy.split(";"))
        [style] = tree.iter("style")
        [script] = tree.xpath("//script[@type='module']")
        assert directives == {
            "default-src": "'none'",
            "script-src": _digest(script.text),
            "style-src": _digest(style.text),
            "base-uri": "'none'",
            "form-action": "'none'",
        }

    @pytest.mark.parametrize(
        "report",
        [full_report(), hostile_report(), conversation_report()],
        ids=["full", "hostile", "conversations"],
    )
    def test_page_has_nothing_policy_would_block(self, report: Report) -> None:
        tree = tree_of(report)
        attributes = {name for element in tree.iter() for name in element.attrib}
        assert [
            name for name in attributes if name.startswith("on") or name in {"style", "src", "href"}
        ] == []
        assert len(list(tree.iter("script"))) == 3 + len(report.evaluator_calls.json_by_check)

    def test_script_parses_no_html(self) -> None:
        script = page_of(mixed_report()).rpartition("<script")[2]
        forbidden = (
            r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|Function\(|Parser"
        )
        assert re.findall(forbidden, script) == []


class TestMarkup:
    def test_plain_text_is_escaped(self) -> None:
        assert tag("p", "<b>", tag("i", "a & b"), id="\"x'") == (
            '<p id="&quot;x&#39;">&lt;b&gt;<i>a &amp; b</i></p>'
        )

    def test_invisible_characters_are_removed(self) -> None:
        assert escape_text("a\x1b[31m\u202eb") == "ab"

    def test_joined_text_is_escaped(self) -> None:
        assert join_markup("<", Markup("<br>")) == "&lt;<br>"


class TestLargeReport:
    def test_page_is_smaller_than_results_json(self) -> None:
        report = long_report(1000)
        assert len(page_of(report)) < len(text_of(JsonReport(), report))

    def test_evaluator_is_stored_once_for_all_checks(self) -> None:
        report = long_report(10)
        assert len(data_of(replace(report, problems=()))["evaluators"]) == 1

    def test_page_code_is_small(self) -> None:
        assert len(page_of(make_report([]))) < 119_800

    def test_result_of_the_baseline_is_not_in_a_page_without_content(self) -> None:
        report = failing_tool_report("secret")
        assert "secret" in page_of(report)
        assert "secret" not in page_of(limit_contents(report, "none"))


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
