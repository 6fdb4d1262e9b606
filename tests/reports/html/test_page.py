"""``report.html`` as text: its content, its data and its content security policy."""

import hashlib
import json
import re
from base64 import b64encode

import pytest
from lxml import etree

from agentci._util.text import json_text
from agentci.model.result import CallPayload, EvaluatorCalls, Report, Status
from agentci.model.values import replace
from agentci.reports.html.markup import Markup, escape_text, join_markup, tag
from agentci.reports.json_report import JsonReport
from tests.conftest import Golden
from tests.helpers.reports import make_report, make_result, mixed_report, shard_report, text_of
from tests.reports.html.pages import (
    HOSTILE,
    compared,
    data_of,
    full_report,
    hostile_report,
    long_report,
    make_trend,
    page_of,
    transcript_report,
    tree_of,
)


def _words(report: Report) -> str:
    """The text of the page without scripts."""
    tree = tree_of(report)
    etree.strip_elements(tree, "style", "script", with_tail=False)
    return " ".join(" ".join(tree.itertext()).split())


def test_page_matches_snapshot(golden: Golden) -> None:
    page = page_of(full_report())
    own = re.compile(r"(<style>).*(</style>)|(<script type=\"module\">).*(</script>)", re.DOTALL)
    body = own.sub(r"\1\2\3\4", re.sub(r"sha256-[^']+", "sha256-...", page))
    golden("report.html", body.replace("><", ">\n<"))


class TestWithoutScript:
    def test_verdict_and_reasons_come_first(self) -> None:
        words = _words(mixed_report())
        assert (
            words.index("Quality gate failed") < words.index("2 of 3") < words.index("Evaluators")
        )

    @pytest.mark.parametrize(
        ("report", "kind"),
        [
            pytest.param(make_report([make_result("passed", 1.0)]), "passed", id="passed"),
            pytest.param(make_report([make_result("failed", 0.1)]), "failed", id="failed"),
            pytest.param(make_report([make_result("errored")]), "errored", id="errored"),
            pytest.param(shard_report([make_result("passed")]), "passed", id="a shard"),
            pytest.param(make_report([]), "failed", id="no checks"),
        ],
    )
    def test_verdict_colour_follows_status(self, report: Report, kind: str) -> None:
        [header] = tree_of(report).iter("header")
        assert header.get("class") == f"verdict {kind}"

    def test_score_histogram_has_text_alternative(self) -> None:
        [picture, *_] = tree_of(mixed_report()).find_class("histogram")
        assert (
            picture.find("title").text
            == "Scores: 1 from 0.6 to 0.7, 1 from 0.9 to 1, threshold 0.7"
        )
        assert [bar.get("class") for bar in picture.iter("rect")] == ["failed", "passed"]

    def test_failed_bar_is_stacked_on_passed_bar(self) -> None:
        scores: list[tuple[Status, float]] = [
            ("passed", 1.0),
            ("passed", 1.0),
            ("failed", 0.99),
            ("skipped", 0.0),
        ]
        report = make_report([make_result(status, score) for status, score in scores])
        [picture] = tree_of(report).find_class("histogram")
        bars = [(bar.get("class"), bar.get("y"), bar.get("height")) for bar in picture.iter("rect")]
        assert bars == [("passed", "10.7", "21.3"), ("failed", "0", "10.7")]

    def test_histogram_omits_missing_scores_and_threshold(self) -> None:
        nan = make_result("failed", float("nan"), evaluator="b")
        report = make_report(
            [make_result("errored"), nan, make_result("passed", 1.0, evaluator="c", threshold=None)]
        )
        [picture] = tree_of(report).find_class("histogram")
        assert picture.find("title").text == "Scores: 1 from 0.9 to 1"

    def test_configs_are_named_if_several(self) -> None:
        report = make_report(
            [make_result("passed", 1.0, config=name) for name in ("a.yaml", "b.yaml")]
        )
        words = _words(report)
        assert "Config" in words
        assert "b.yaml" in words

    def test_worst_checks_are_listed(self) -> None:
        words = _words(mixed_report())
        assert "cancels \u203a response_quality score 0.6999, threshold 0.7 It never says" in words

    def test_failures_above_limit_are_counted(self) -> None:
        failed = [make_result("failed", 0.1, case=f"c{number}") for number in range(25)]
        assert "and 5 more failed" in _words(make_report(failed))

    def test_errors_above_limit_are_counted(self) -> None:
        results = [
            make_result("errored", case=f"c{n}", reason=f"exit code {n}") for n in range(103)
        ]
        words = _words(make_report(results))
        assert "Errored checks (103)" in words
        assert "\u2026 and 3 more" in words


class TestBaseline:
    def test_regression_is_listed_and_linked(self) -> None:
        report = compared(mixed_report(), make_trend())
        words = _words(report)
        assert "cancels \u203a response_quality : score 0.95 -> 0.7" in words
        links = [link.get("href") for link in tree_of(report).iter("a")]
        assert "#check=id+of+evals%2Feval_config.yaml%2C+cancels%2C+response_quality" in links

    def test_data_contains_baseline_scores(self) -> None:
        checks = data_of(compared(mixed_report(), make_trend()))["checks"]
        assert [each.get("before") for each in checks] == [None, None, 0.95, None, None, None]

    def test_change_picture_shows_direction(self) -> None:
        better = make_trend(evaluator="tone", after=0.95, worse=(), outcome="pass")
        same = make_trend(evaluator="brief", after=0.9, worse=(), outcome="pass")
        unknown = make_trend(evaluator="other", before=None, worse=())
        report = compared(mixed_report(), make_trend(), better, same, unknown)
        pictures = tree_of(report).find_class("change")
        assert [each.find("title").text for each in pictures] == [
            "From 0.9 to 0.6",
            "From 0.9 to 0.95",
            "From 0.9 to 0.9",
        ]
        assert [each[-1].get("class") for each in pictures] == ["worse", "better", "same"]

    def test_case_missing_from_run_is_not_linked(self) -> None:
        report = compared(make_report([make_result("passed", 1.0)]), make_trend())
        assert "cancels \u203a response_quality: score" in _words(report)

    def test_baseline_that_is_not_comparable_shows_reason(self) -> None:
        assert "its schema version differs" in _words(
            compared(mixed_report(), not_comparable="its schema version differs")
        )


class TestPageData:
    def test_data_contains_every_check_and_its_details(self) -> None:
        report = mixed_report()
        data = data_of(report)
        assert [each["id"] for each in data["checks"]] == [each.id for each in report.results]
        for check, result in zip(data["checks"], report.results, strict=True):
            assert data["cases"][check["case"]]["id"] == result.case.id
            assert data["evaluators"][check["evaluator"]]["name"] == result.evaluator.name
            details = result.judgement.details if result.judgement else {}
            assert check.get("details", {}) == json_text.make_strict(details)

    def test_data_contains_trials(self) -> None:
        [first, *_] = data_of(full_report())["checks"]
        assert first["trials"]["trials"][1]["reason"] == "it hung"

    def test_hostile_text_is_preserved_in_data(self) -> None:
        data = data_of(hostile_report())
        assert data["cases"][0]["id"] == HOSTILE
        assert data["checks"][0]["details"][HOSTILE] == HOSTILE

    def test_data_cannot_end_its_script_element(self) -> None:
        data = page_of(hostile_report()).partition('id="data">')[2].partition("</script>")[0]
        assert data.isascii()
        assert "<" not in data

    def test_skipped_check_has_no_score(self) -> None:
        [check] = data_of(make_report([make_result("skipped", 0.0)]))["checks"]
        assert check["score"] is None

    def test_empty_report_has_empty_data(self) -> None:
        assert data_of(make_report([])) == {"checks": [], "evaluators": [], "cases": []}


class TestTranscript:
    def test_transcript_is_in_its_own_element(self) -> None:
        report = transcript_report(CallPayload(name="stdin", content="{}", size=2))
        [check] = data_of(report)["checks"]
        element = tree_of(report).get_element_by_id(f"transcript-{check['transcript']}")
        assert element.get("type") == "application/json"
        assert json.loads(element.text)[0]["texts"][0]["content"] == "{}"

    def test_omitted_transcript_is_marked(self) -> None:
        result = make_result("failed", 0.1)
        left_out = EvaluatorCalls(omitted_checks=frozenset([result.id]))
        [check] = data_of(replace(make_report([result]), evaluator_calls=left_out))["checks"]
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

    @pytest.mark.parametrize("report", [full_report(), hostile_report()], ids=["full", "hostile"])
    def test_page_has_nothing_policy_would_block(self, report: Report) -> None:
        tree = tree_of(report)
        attributes = {name for element in tree.iter() for name in element.attrib}
        assert [
            name for name in attributes if name.startswith("on") or name in {"style", "src"}
        ] == []
        assert len(list(tree.iter("script"))) == 2 + len(report.evaluator_calls.json_by_check)
        links = [element.get("href") for element in tree.iter() if "href" in element.attrib]
        assert [link for link in links if not link.startswith("#")] == []

    def test_script_parses_no_html(self) -> None:
        script = page_of(mixed_report()).rpartition("<script")[2]
        forbidden = (
            r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|Parser"
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

    def test_evaluators_above_limit_are_counted(self) -> None:
        results = [make_result("passed", 1.0, evaluator=f"e{number}") for number in range(503)]
        assert "\u2026 and 3 more" in _words(make_report(results))

    def test_evaluator_is_stored_once_for_all_checks(self) -> None:
        report = long_report(10)
        assert len(data_of(replace(report, problems=()))["evaluators"]) == 1


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
