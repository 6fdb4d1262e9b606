"""``report.html`` as text: what it holds, and what it can never do."""

import hashlib
import json
import re
import time
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
    exchange_report,
    full_report,
    hostile_report,
    long_report,
    make_trend,
    page_of,
    tree_of,
)


def _words(report: Report) -> str:
    """What can be read of the page where no script runs."""
    tree = tree_of(report)
    etree.strip_elements(tree, "style", "script", with_tail=False)
    return " ".join(" ".join(tree.itertext()).split())


def test_the_page_shows_this(golden: Golden) -> None:
    page = page_of(full_report())
    own = re.compile(r"(<style>).*(</style>)|(<script type=\"module\">).*(</script>)", re.DOTALL)
    body = own.sub(r"\1\2\3\4", re.sub(r"sha256-[^']+", "sha256-...", page))
    golden("report.html", body.replace("><", ">\n<"))


class TestWithoutAScript:
    def test_the_verdict_comes_first_with_its_reasons(self) -> None:
        words = _words(mixed_report())
        assert (
            words.index("Quality gate failed") < words.index("2 of 3") < words.index("Evaluators")
        )

    @pytest.mark.parametrize(
        ("report", "kind"),
        [
            pytest.param(make_report([make_result("passed", 1.0)]), "passed", id="open"),
            pytest.param(make_report([make_result("failed", 0.1)]), "failed", id="shut"),
            pytest.param(make_report([make_result("errored")]), "errored", id="error"),
            pytest.param(shard_report([make_result("passed")]), "passed", id="a shard"),
            pytest.param(make_report([]), "failed", id="nothing judged"),
        ],
    )
    def test_the_verdict_has_a_colour_of_its_own(self, report: Report, kind: str) -> None:
        [header] = tree_of(report).iter("header")
        assert header.get("class") == f"verdict {kind}"

    def test_evaluators_have_their_scores_as_a_picture_that_is_told_as_well(self) -> None:
        [picture, *_] = tree_of(mixed_report()).find_class("histogram")
        assert (
            picture.find("title").text
            == "Scores: 1 from 0.6 to 0.7, 1 from 0.9 to 1, threshold 0.7"
        )
        assert [bar.get("class") for bar in picture.iter("rect")] == ["failed", "passed"]

    def test_what_failed_with_a_score_as_high_stands_on_what_passed(self) -> None:
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

    def test_evaluators_without_a_score_or_a_bar_have_no_more_than_they_have(self) -> None:
        nan = make_result("failed", float("nan"), evaluator="b")
        report = make_report(
            [make_result("errored"), nan, make_result("passed", 1.0, evaluator="c", threshold=None)]
        )
        [picture] = tree_of(report).find_class("histogram")
        assert picture.find("title").text == "Scores: 1 from 0.9 to 1"

    def test_configs_are_named_where_there_are_several(self) -> None:
        report = make_report(
            [make_result("passed", 1.0, config=name) for name in ("a.yaml", "b.yaml")]
        )
        words = _words(report)
        assert "Config" in words
        assert "b.yaml" in words

    def test_the_worst_checks_are_told(self) -> None:
        words = _words(mixed_report())
        assert "cancels \u203a response_quality score 0.6999, threshold 0.7 It never says" in words

    def test_many_failures_are_counted(self) -> None:
        failed = [make_result("failed", 0.1, case=f"c{number}") for number in range(25)]
        assert "and 5 more failed" in _words(make_report(failed))

    def test_long_lists_are_cut_and_counted(self) -> None:
        results = [
            make_result("errored", case=f"c{n}", reason=f"exit code {n}") for n in range(103)
        ]
        words = _words(make_report(results))
        assert "Errored checks (103)" in words
        assert "\u2026 and 3 more" in words


class TestBesideABaseline:
    def test_what_got_worse_is_told_and_linked_to(self) -> None:
        report = compared(mixed_report(), make_trend())
        words = _words(report)
        assert "cancels \u203a response_quality : score 0.95 -> 0.7" in words
        links = [link.get("href") for link in tree_of(report).iter("a")]
        assert "#check=id+of+evals%2Feval_config.yaml%2C+cancels%2C+response_quality" in links

    def test_the_script_knows_the_score_of_before(self) -> None:
        checks = data_of(compared(mixed_report(), make_trend()))["checks"]
        assert [each.get("before") for each in checks] == [None, None, 0.95, None, None, None]

    def test_a_picture_shows_the_way_it_went(self) -> None:
        better = make_trend(evaluator="tone", after=0.95, regressions=(), outcome="pass")
        same = make_trend(evaluator="brief", after=0.9, regressions=(), outcome="pass")
        unknown = make_trend(evaluator="other", before=None, regressions=())
        report = compared(mixed_report(), make_trend(), better, same, unknown)
        pictures = tree_of(report).find_class("change")
        assert [each.find("title").text for each in pictures] == [
            "From 0.9 to 0.6",
            "From 0.9 to 0.95",
            "From 0.9 to 0.9",
        ]
        assert [each[-1].get("class") for each in pictures] == ["worse", "better", "same"]

    def test_a_case_that_this_run_has_not_is_no_link(self) -> None:
        report = compared(make_report([make_result("passed", 1.0)]), make_trend())
        assert "cancels \u203a response_quality: score" in _words(report)

    def test_a_refused_one_says_why(self) -> None:
        assert "it is of another schema" in _words(
            compared(mixed_report(), not_comparable="it is of another schema")
        )


class TestTheDataOfTheScript:
    def test_every_check_is_there_with_all_that_was_found(self) -> None:
        report = mixed_report()
        data = data_of(report)
        assert [each["id"] for each in data["checks"]] == [each.id for each in report.results]
        for check, result in zip(data["checks"], report.results, strict=True):
            assert data["cases"][check["case"]]["id"] == result.case.id
            assert data["evaluators"][check["evaluator"]]["name"] == result.evaluator.name
            details = result.judgement.details if result.judgement else {}
            assert check.get("details", {}) == json_text.make_strict(details)

    def test_trials_are_there(self) -> None:
        [first, *_] = data_of(full_report())["checks"]
        assert first["trials"]["trials"][1]["reason"] == "it hung"

    def test_hostile_text_comes_back_as_it_was(self) -> None:
        data = data_of(hostile_report())
        assert data["cases"][0]["id"] == HOSTILE
        assert data["checks"][0]["details"][HOSTILE] == HOSTILE

    def test_nothing_in_it_ends_the_element(self) -> None:
        data = page_of(hostile_report()).partition('id="data">')[2].partition("</script>")[0]
        assert data.isascii()
        assert "<" not in data

    def test_what_was_not_judged_has_no_score(self) -> None:
        [check] = data_of(make_report([make_result("skipped", 0.0)]))["checks"]
        assert check["score"] is None

    def test_an_empty_report_has_none(self) -> None:
        assert data_of(make_report([])) == {"checks": [], "evaluators": [], "cases": []}


class TestExchanges:
    def test_are_elements_of_their_own(self) -> None:
        report = exchange_report(CallPayload(name="stdin", content="{}", size=2))
        [check] = data_of(report)["checks"]
        element = tree_of(report).get_element_by_id(f"transcript-{check['transcript']}")
        assert element.get("type") == "application/json"
        assert json.loads(element.text)[0]["texts"][0]["content"] == "{}"

    def test_that_had_no_room_are_said_to_be_left_out(self) -> None:
        result = make_result("failed", 0.1)
        left_out = EvaluatorCalls(omitted_checks=frozenset([result.id]))
        [check] = data_of(replace(make_report([result]), evaluator_calls=left_out))["checks"]
        assert (check["omitted"], "transcript" in check) == (True, False)

    def test_of_other_runs_are_elsewhere(self) -> None:
        data = data_of(replace(mixed_report(), evaluator_calls=EvaluatorCalls(kept_in_parts=True)))
        assert data["merged"] is True
        assert "merged" not in data_of(mixed_report())


class TestTheContentSecurityPolicy:
    def test_knows_our_style_and_our_script_by_their_digests(self) -> None:
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
    def test_finds_nothing_to_forbid(self, report: Report) -> None:
        tree = tree_of(report)
        attributes = {name for element in tree.iter() for name in element.attrib}
        assert [
            name for name in attributes if name.startswith("on") or name in {"style", "src"}
        ] == []
        assert len(list(tree.iter("script"))) == 2 + len(report.evaluator_calls.json_by_check)
        links = [element.get("href") for element in tree.iter() if "href" in element.attrib]
        assert [link for link in links if not link.startswith("#")] == []

    def test_the_script_reads_no_html(self) -> None:
        script = page_of(mixed_report()).rpartition("<script")[2]
        forbidden = (
            r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|Parser"
        )
        assert re.findall(forbidden, script) == []


class TestMarkup:
    def test_what_is_no_markup_is_escaped(self) -> None:
        assert tag("p", "<b>", tag("i", "a & b"), id="\"x'") == (
            '<p id="&quot;x&#39;">&lt;b&gt;<i>a &amp; b</i></p>'
        )

    def test_what_cannot_be_seen_is_left_out(self) -> None:
        assert escape_text("a\x1b[31m\u202eb") == "ab"

    def test_joined_text_is_escaped_too(self) -> None:
        assert join_markup("<", Markup("<br>")) == "&lt;<br>"


class TestManyChecks:
    def test_are_told_in_less_room_than_the_results_take(self) -> None:
        report = long_report(1000)
        assert len(page_of(report)) < len(text_of(JsonReport(), report))

    def test_are_written_in_time(self) -> None:
        report = long_report(10_000)
        start = time.process_time()
        page_of(report)
        assert time.process_time() - start < 2.0

    def test_evaluators_beyond_measure_are_counted(self) -> None:
        results = [make_result("passed", 1.0, evaluator=f"e{number}") for number in range(503)]
        assert "\u2026 and 3 more" in _words(make_report(results))

    def test_evaluators_are_told_once_for_all_their_checks(self) -> None:
        report = long_report(10)
        assert len(data_of(replace(report, problems=()))["evaluators"]) == 1


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
