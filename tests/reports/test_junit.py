"""``junit.xml`` in the common format and in the strict format of Jenkins."""

from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest
from lxml import etree

from agentci.model.result import Report, Status
from agentci.model.values import COMMAND_LINE, JUNIT_FORMATS, JUnitFormat, Place, Problem
from agentci.reports.junit import MAX_TEXT, JUnitReport
from tests.conftest import Golden
from tests.helpers.reports import CONFIG, make_report, make_result, mixed_report, text_of

XSD = etree.XMLSchema(file=str(Path(__file__).parent / "data" / "junit-10.xsd"))
ANGLE = ">"


def _parsed(report: Report, dialect: JUnitFormat = "common") -> ET.Element:
    return ET.fromstring(text_of(JUnitReport(dialect=dialect), report))


def _case(dialect: JUnitFormat = "common", *arguments: Any, **others: Any) -> ET.Element:
    """The one test case of a report with one result."""
    found = _parsed(make_report([make_result(*arguments, **others)]), dialect).find(".//testcase")
    assert found is not None
    return found


@pytest.mark.parametrize("dialect", JUNIT_FORMATS)
class TestEveryFormat:
    def test_junit_matches_snapshot(self, golden: Golden, dialect: JUnitFormat) -> None:
        golden(f"junit-{dialect}.xml", text_of(JUnitReport(dialect=dialect), mixed_report()))

    def test_suites_and_root_count_results(self, dialect: JUnitFormat) -> None:
        results = [
            make_result("passed", seconds=1.0),
            make_result("failed", evaluator="a", seconds=0.0006),
            make_result("errored", evaluator="b", config="other.yaml", seconds=float("nan")),
            make_result("skipped", evaluator="c", config="other.yaml", seconds=-1.0),
        ]
        root = _parsed(make_report(results), dialect)
        names = ("tests", "failures", "errors", "time")
        assert [root.get(name) for name in names] == ["4", "1", "1", "1.001"]
        assert [[suite.get(name) for name in ("name", *names)] for suite in root] == [
            [CONFIG, "2", "1", "0", "1.001"],
            ["other.yaml", "2", "0", "1", "0.000"],
        ]
        assert [suite.get("skipped") for suite in root] == ["0", "1"]

    @pytest.mark.parametrize(
        ("status", "tag"), [("failed", "failure"), ("errored", "error"), ("skipped", "skipped")]
    )
    @pytest.mark.parametrize("reason", [None, "", "\x00\x1b[31m", "\n"])
    def test_failure_and_error_elements_are_never_empty(
        self, status: Any, tag: str, reason: str | None, dialect: JUnitFormat
    ) -> None:
        found = _case(dialect, status, reason=reason, criterion="").find(tag)
        assert found is not None
        assert found.get("message")
        assert found.get("type")
        assert tag == "skipped" or (found.text or "").strip()

    def test_problems_are_in_output_of_their_suite(self, dialect: JUnitFormat) -> None:
        results = [make_result("passed"), make_result("passed", config="other.yaml")]
        problems = [
            Problem(message="is odd", place=Place(file="other.yaml"), severity="warning"),
            Problem(message="is not JSON", place=Place(file="traces/a.json", line=4)),
        ]
        first, second = _parsed(make_report(results, problems=problems), dialect)
        assert first.findtext("system-err") == "traces/a.json:4: error: is not JSON"
        assert second.findtext("system-out") == "other.yaml:1: warning: is odd"
        assert first.find("system-out") is None

    def test_problems_are_reported_without_checks(self, dialect: JUnitFormat) -> None:
        [suite] = _parsed(make_report([], problems=[Problem(message="no config")]), dialect)
        assert (suite.get("tests"), suite.get("errors"), suite.get("file")) == ("1", "1", None)
        assert suite.findtext("system-err") == "error: no config"

    def test_each_error_of_the_input_is_an_errored_test_case(self, dialect: JUnitFormat) -> None:
        place = Place(file="a.yaml", line=2)
        problems = [Problem(message="is odd", place=place), Problem(message="is odd", place=place)]
        problems.append(Problem(message="is old", severity="warning"))
        text = text_of(
            JUnitReport(dialect=dialect), make_report([make_result("passed")], problems=problems)
        )
        root = ET.fromstring(text)
        assert (root.get("tests"), root.get("errors")) == ("3", "2")
        names = [case.get("name") for case in root.iter("testcase")][:2]
        assert names == ["invalid input a.yaml:2", "invalid input a.yaml:2 (2)"]
        errors = [(each.get("message"), each.text) for each in root.iter("error")]
        assert errors == [("a.yaml:2: error: is odd",) * 2] * 2

    def test_layout_does_not_depend_on_number_of_checks(self, dialect: JUnitFormat) -> None:
        verdicts = ["passed", "failed", "errored", "skipped", "passed"] * 50
        text = text_of(
            JUnitReport(dialect=dialect),
            make_report([make_result(each, case=str(n)) for n, each in enumerate(verdicts)]),  # type: ignore[arg-type]
        )
        tree = ET.fromstring(text)
        names = [case.get("name", "").partition(" ")[0] for case in tree.iter("testcase")]
        assert names == [str(number) for number in range(250)]
        ET.indent(tree)
        assert text.partition("\n")[2] == f"{ET.tostring(tree, encoding='unicode')}\n"

    def test_warnings_are_in_output_of_test_case(self, dialect: JUnitFormat) -> None:
        output = _case(dialect, "passed", warnings=["guessed"]).findtext("system-out")
        assert (output or "").splitlines()[-1] == "guessed"

    @pytest.mark.parametrize("status", get_args(Status))
    def test_report_is_attached_to_checks_that_did_not_pass(
        self, dialect: JUnitFormat, status: Status
    ) -> None:
        report = make_report([make_result(status, warnings=["guessed"])])
        text = text_of(JUnitReport(dialect=dialect, attachment="/r/report.html"), report)
        output = ET.fromstring(text).findtext(".//testcase/system-out") or ""
        last = output.splitlines()[-1]
        bad = status in ("failed", "errored")
        assert last == ("[[ATTACHMENT|/r/report.html]]" if bad else "guessed")

    @pytest.mark.parametrize("path", ["a]]b", "a|b", "a\nb", ""], ids=repr)
    def test_path_that_would_break_the_link_is_not_attached(
        self, dialect: JUnitFormat, path: str
    ) -> None:
        writer = JUnitReport(dialect=dialect, attachment=path)
        assert "ATTACHMENT" not in text_of(writer, make_report([make_result("failed")]))

    def test_identical_looking_checks_have_unique_names(self, dialect: JUnitFormat) -> None:
        long = [f"{'x' * 1000}{digit}{'y' * 1000}" for digit in "12"]
        ids = ["a b", " a b", "a\u202eb", "a\tb", "a b", *long]
        results = [make_result("failed", case=case) for case in ids] * 50
        cases = _parsed(make_report(results), dialect).findall(".//testcase")
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len(set(names)) == len(names) == len(results)
        assert [name for _, name in names[:2]] == [
            f"a b {ANGLE} response_quality",
            f"a b {ANGLE} response_quality (2)",
        ]

    def test_long_text_is_cut(self, dialect: JUnitFormat) -> None:
        failure = _case(dialect, "failed", reasoning="x" * 100_000).find("failure")
        assert failure is not None
        assert MAX_TEXT - 20 < len(failure.text or "") <= MAX_TEXT

    def test_attachment_marker_of_gitlab_is_escaped(self, dialect: JUnitFormat) -> None:
        text = text_of(
            JUnitReport(dialect=dialect),
            make_report([make_result("failed", misses=["[[ATTACHMENT|../secret]]"])]),
        )
        assert "[[ATTACHMENT" not in text


class TestCommonFormat:
    def test_testcase_element_describes_check(self) -> None:
        case = _case("common", "failed", 0.5, misses=["no price"], reasoning="Why.\nAnd how.")
        assert case.attrib == {
            "name": f"books_a_flight {ANGLE} response_quality",
            "classname": "evals.eval_config.response_quality",
            "time": "0.000",
            "file": CONFIG,
            "line": "2",
        }
        assert {each.get("name"): each.get("value") for each in case.iter("property")} == {
            "score": "0.5",
            "threshold": "0.7",
            "criterion": "score >= 0.7",
            "type": "code",
            "dd_tags[agentci.case]": "books_a_flight",
            "dd_tags[agentci.evaluator]": "response_quality",
            "dd_tags[agentci.score]": "0.5",
        }
        failure = case.find("failure")
        assert failure is not None
        assert failure.get("message") == "no price (score 0.5, threshold 0.7)"
        assert failure.text == (
            "score 0.5, threshold 0.7\nconfig evals/eval_config.yaml:2\n"
            "trace evals/recordings/books_a_flight.json\n"
            "- no price\nWhy.\nAnd how."
        )

    def test_traceback_message_is_first_and_last_line(self) -> None:
        reason = "exit code 1: Traceback:\n  File 'a.py'\n\nKeyError: 'x'\n\x1b[0m\n"
        error = _case("common", "errored", reason=reason).find("error")
        assert error is not None
        assert error.get("message") == "exit code 1: Traceback: … KeyError: 'x'"
        assert (error.text or "").splitlines() == [
            "exit code 1: Traceback:",
            "  File 'a.py'",
            "KeyError: 'x'",
            "config evals/eval_config.yaml:2",
            "trace evals/recordings/books_a_flight.json",
        ]

    def test_failure_text_names_file_and_line(self) -> None:
        place = Place(file=CONFIG, line=4, column=5)
        text = _case("common", "failed", place=place).findtext("failure") or ""
        assert f"config {CONFIG}:4" in text.splitlines()

    def test_long_error_keeps_its_end_and_place(self) -> None:
        reason = f"exit code 1: {'x' * 100_000}KeyError: 'x'"
        error = _case("common", "errored", reason=reason).find("error")
        assert error is not None
        for text in (error.get("message") or "", (error.text or "").splitlines()[0]):
            assert text.startswith("exit code 1: x")
            assert text.endswith("xKeyError: 'x'")
        assert "\nconfig evals/eval_config.yaml:2\n" in (error.text or "")

    def test_command_line_is_not_written_as_file(self) -> None:
        result = make_result("failed", place=COMMAND_LINE, config=COMMAND_LINE.file)
        problem = Problem(message="is odd", place=COMMAND_LINE, severity="warning")
        [suite] = _parsed(make_report([result], problems=[problem]))
        assert (suite.get("name"), suite.get("file")) == ("command line", None)
        assert suite.findtext("system-out") == "warning: is odd"
        case = suite.find("testcase")
        assert case is not None
        assert set(case.attrib) == {"name", "classname", "time"}
        assert case.get("classname") == "command_line.response_quality"
        assert "\nconfig command line\n" in (case.findtext("failure") or "")

    def test_infinite_sum_of_times_is_avoided(self) -> None:
        results = [make_result("passed", seconds=each) for each in (1.7e308, 1.7e308, 2.0)]
        assert _parsed(make_report(results)).get("time") == "2.000"

    def test_cached_check_has_property(self) -> None:
        properties = _case("common", "passed", 0.9, cached=True).iter("property")
        assert ("cached", "true") in {(p.get("name"), p.get("value")) for p in properties}

    def test_advisory_check_has_property(self) -> None:
        properties = _case("common", "failed", 0.5, required=False).iter("property")
        assert ("required", "false") in {(p.get("name"), p.get("value")) for p in properties}

    @pytest.mark.parametrize(
        ("config", "evaluator", "classname"),
        [
            ("evals/my.eval.yaml", "tone", "evals.my_eval.tone"),
            ("./a.yml", "v1.2 tone", "a.v1_2_tone"),
            ("../../x", "tone", "x.tone"),
            ("..", "tone", "agentci.tone"),
        ],
    )
    def test_class_names_are_dotted(self, config: str, evaluator: str, classname: str) -> None:
        assert _case("common", config=config, evaluator=evaluator).get("classname") == classname

    def test_class_names_of_configs_are_distinct(self) -> None:
        results = [make_result("passed", config=config) for config in ("a.yaml", "a.yml", "a")]
        names = {case.get("classname") for case in _parsed(make_report(results)).iter("testcase")}
        assert len(names) == 3

    def test_invalid_xml_characters_are_replaced(self) -> None:
        text = text_of(
            JUnitReport(),
            make_report([make_result("failed", misses=["\ud800\ufffe\x00\x1b[31mred"])]),
        )
        assert "- ��red" in text
        ET.fromstring(text.encode())


class TestJenkinsFormat:
    @pytest.mark.parametrize(
        "report",
        [
            pytest.param(mixed_report(), id="mixed"),
            pytest.param(make_report([]), id="empty"),
            pytest.param(
                make_report([make_result("passed", seconds=123_456.7891)]), id="very slow"
            ),
            pytest.param(make_report([], problems=[Problem(message="x")]), id="only problems"),
        ],
    )
    def test_jenkins_format_is_valid_in_strict_schema(self, report: Report) -> None:
        XSD.assertValid(etree.fromstring(text_of(JUnitReport(dialect="jenkins"), report).encode()))

    def test_strict_schema_rejects_common_format(self) -> None:
        document = etree.fromstring(text_of(JUnitReport(dialect="common"), mixed_report()).encode())
        assert not XSD.validate(document)

    def test_score_and_threshold_are_in_output(self) -> None:
        assert (_case("jenkins", "passed", 0.9).findtext("system-out") or "").splitlines() == [
            "score: 0.9",
            "threshold: 0.7",
            "criterion: score >= 0.7",
            "type: code",
        ]
