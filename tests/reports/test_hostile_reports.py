"""Every writer with results of arbitrary and hostile text."""

import json
import re
from collections.abc import Callable
from functools import partial
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from lxml import etree, html

from agentci.cli.publish import make_outputs, render_outputs
from agentci.model.case import (
    CALL_CHANGES,
    RESULT_CHANGES,
    Case,
    ChangedCall,
    ChangedResult,
    ChangedText,
    EvalCase,
    RunChanges,
)
from agentci.model.gate import Gate, GatePolicy, GateThresholds, PolicyChange, PolicyComparison
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import CheckResult, Decision, Report, Shard, ShardInfo, Totals
from agentci.model.trace import Trace, Turn
from agentci.model.values import (
    COMMAND_LINE,
    JUNIT_FORMATS,
    OPTIONAL_FORMATS,
    JUnitFormat,
    Place,
    Problem,
    replace,
)
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.html.page import HtmlReport
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnitReport
from agentci.reports.problems import render_problems
from agentci.reports.registry import REPORT_WRITERS, make_optional_writer
from agentci.reports.results_schema import make_results_schema
from agentci.reports.run_content import make_case_summary
from agentci.reports.workflow_commands import (
    ANNOTATION_MESSAGE_UNITS,
    ANNOTATIONS_PER_TYPE,
    COMMENT_CHARACTERS,
    SUMMARY_BYTES,
)
from tests.helpers.building import values
from tests.helpers.reports import annotated, text_of
from tests.helpers.runner import Command, commands_in, read_output_file

pytestmark = pytest.mark.slow

VALIDATOR = Draft202012Validator(make_results_schema())
DELIMITER = "delimiter-4f2a"

PIECES = [
    *("::error::x", "::set-output name=passed::true", "##[error]x", "::", "\n", "\r", "\r\n"),
    *("\u2028", "\x85", "\x0b", "\x1b[31m", "\x9b", "\x00", "\ud800", "\ufffe", "\u202e"),
    *("|", "`", "```", "~~~", "<", ">", "&", "]]>", "<!--", "</details>", "@user", "\\", "%0A"),
    *("passed=true", f"\n{DELIMITER}x\n", ",", ";", " ", "\t", "a", "中", "🙂"),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(
    st.characters(codec=None), max_size=15
)
LINES = st.lists(TEXT, max_size=3).map(tuple)
SCORES = st.none() | st.floats(0, 1) | st.just(float("nan"))
FILES = TEXT | st.just(COMMAND_LINE.file)
PLACES = values(Place, file=FILES, line=st.integers(1, 10**6), column=st.none() | st.integers(1))
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.fixed_dictionaries({"name": TEXT, "args": JSON}), max_size=4)
COMPARISONS = st.fixed_dictionaries({"expected": CALLS, "actual": CALLS, "matched": st.just(False)})
DETAILS = st.dictionaries(TEXT, JSON, max_size=2) | st.fixed_dictionaries(
    {"comparisons": st.lists(COMPARISONS, max_size=2)}
)
TURNS = values(Turn, id=TEXT, user_text=TEXT, answer_parts=LINES)
TRACES = values(
    Trace, id=TEXT, key=TEXT, turns=st.lists(TURNS, max_size=2).map(tuple), place=PLACES,
    warnings=LINES,
    performance=st.none() | st.dictionaries(TEXT, JSON, max_size=2),
)  # fmt: skip
EVAL_CASES = values(EvalCase, id=TEXT, turns=st.just(()), place=PLACES)
CHANGED_TEXTS = values(ChangedText, before=TEXT, after=TEXT)
CHANGED_RESULTS = values(
    ChangedResult, tool=TEXT, before=TEXT, after=TEXT, kind=st.sampled_from(RESULT_CHANGES)
)
CHANGED_CALLS = values(
    ChangedCall, tool=TEXT, before=TEXT, after=TEXT, kind=st.sampled_from(CALL_CHANGES)
)
RUN_CHANGES = values(
    RunChanges, answer=st.none() | CHANGED_TEXTS, facts=TEXT, printed=TEXT,
    results=st.lists(CHANGED_RESULTS, max_size=2).map(tuple),
    calls=st.lists(CHANGED_CALLS, max_size=2).map(tuple),
)  # fmt: skip
CASES = st.tuples(
    values(
        Case,
        id=TEXT,
        trace=TRACES,
        expected=st.none() | EVAL_CASES,
        unmatched_reason=st.none() | TEXT,
    ).map(make_case_summary),
    st.none() | RUN_CHANGES,
).map(lambda pair: replace(pair[0], changes=pair[1]))
JUDGEMENTS = values(
    Judgement, score=SCORES, passed=st.none() | st.booleans(), hits=LINES, misses=LINES,
    turn_scores=st.lists(SCORES, max_size=3).map(tuple), reasoning=st.none() | TEXT,
    details=DETAILS,
)  # fmt: skip
EVALUATORS = values(
    EvaluatorIdentity, name=TEXT, type=TEXT, criterion=TEXT, place=PLACES,
    threshold=st.none() | st.floats(0, 1), required=st.booleans(),
)  # fmt: skip
RESULTS = values(
    CheckResult, id=TEXT, config=FILES, case=CASES, evaluator=EVALUATORS,
    status=st.sampled_from(["passed", "failed", "errored", "skipped"]),
    judgement=st.none() | JUDGEMENTS, reason=st.none() | TEXT, seconds=st.floats(),
    cached=st.booleans(),
)  # fmt: skip
PROBLEMS = values(
    Problem, message=TEXT, place=st.none() | PLACES, hint=st.none() | TEXT,
    severity=st.sampled_from(["error", "warning", "note"]),
)  # fmt: skip
COUNTS = st.integers(0, 10**6)
THRESHOLDS = values(
    GateThresholds, min_pass_rate=st.none() | st.floats(0, 1), min_score=st.none() | st.floats(0, 1)
)
GATES = values(
    Gate, config=FILES, evaluators=LINES, uncovered=LINES, unmatched=LINES,
    policy=values(
        GatePolicy,
        overall=THRESHOLDS,
        evaluators=st.dictionaries(TEXT, THRESHOLDS, max_size=2),
    ),
)  # fmt: skip
CHANGES = values(
    PolicyChange, config=FILES, kind=st.sampled_from(["loosened", "removed", "edited"]),
    subject=TEXT, before=TEXT, after=TEXT, names=LINES, fails=st.booleans(),
)  # fmt: skip
POLICIES = values(
    PolicyComparison, base=TEXT, loosened=st.lists(CHANGES, max_size=2).map(tuple),
    decided_by_base=LINES, missing=LINES, unavailable=TEXT, required=st.booleans(), notes=LINES,
)  # fmt: skip
SHARD_INFOS = values(
    ShardInfo,
    shard=st.integers(1, 256).flatmap(
        lambda total: values(Shard, index=st.integers(1, total), total=st.just(total))
    ),
    plan_digest=st.just("c0de" * 16),
    checks=st.just(("0123456789abcdef",)),
)
REPORTS = values(
    Report,
    complete=st.booleans(),
    decision=values(Decision, passed=st.booleans(), exit_code=st.integers(0, 3), reasons=LINES),
    totals=values(
        Totals, checks=COUNTS, passed=COUNTS, failed=COUNTS, errored=COUNTS, skipped=COUNTS,
        score=st.none() | st.floats(0, 1),
    ),
    results=st.lists(RESULTS, max_size=3).map(tuple),
    problems=st.lists(PROBLEMS, max_size=2).map(tuple),
    gates=st.lists(GATES, max_size=2).map(tuple),
    shard_info=st.none() | SHARD_INFOS,
    commit=st.sampled_from(["", "c0de" * 10, "c0de" * 16]),
    policy=st.none() | POLICIES,
)  # fmt: skip

FORMATS: dict[str, Callable[[Report], str]] = {
    **{each.file_name: partial(text_of, each) for each in REPORT_WRITERS.values()},
    "junit.xml for Jenkins": partial(text_of, JUnitReport(dialect="jenkins")),
    **{
        file_name: partial(text_of, make_optional_writer(name))
        for name, file_name in OPTIONAL_FORMATS.items()
    },
    "problems as SARIF": lambda report: render_problems(report.problems, "sarif"),
}
REPORT_FILES = tuple(FORMATS)
FORMATS |= {
    "console": lambda report: render_console(report, quiet=False, verbose=True, colour=True),
    "annotations": annotated,
    "problems as text": lambda report: render_problems(report.problems, "text"),
    "problems as JSON": lambda report: render_problems(report.problems, "json"),
    "problems on GitHub": lambda report: render_problems(report.problems, "github"),
}

ELEMENTS = {
    *("html", "head", "body", "meta", "title", "style", "script", "noscript", "main", "div"),
    "footer",
    *(
        "header",
        "section",
        "article",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "a",
        "span",
        "code",
        "pre",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary", "strong"),
    *("svg", "rect", "line"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "type", "hidden"),
    *("scope", "tabindex", "role", "aria-label", "aria-hidden", "open"),
    *("width", "height", "viewbox", "preserveaspectratio", "x", "y", "x1", "x2", "y1", "y2"),
}


def _of_ours(command: Command) -> bool:
    return command.name in {"error", "warning", "notice"} and set(command.properties) <= {
        "file", "line", "col", "title",
    }  # fmt: skip


# Generating a report takes longer than writing it, so each report is written in every format.
@given(report=REPORTS)
def test_every_format_is_written_deterministically(report: Report) -> None:
    for format_name, render in FORMATS.items():
        text = render(report)
        assert text.encode().decode() == text, format_name
        assert render(report) == text, format_name
        assert "\r" not in text, format_name


@given(report=REPORTS)
def test_results_json_is_strict_and_valid(report: Report) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    rendered = json.loads(text_of(JsonReport(), report), parse_constant=refuse)
    VALIDATOR.validate(rendered)
    assert len(rendered["results"]) == len(report.results)


@given(report=REPORTS, dialect=st.sampled_from(JUNIT_FORMATS))
def test_junit_is_parsed_and_its_counts_are_right(report: Report, dialect: JUnitFormat) -> None:
    data = text_of(JUnitReport(dialect=dialect), report).encode()
    expat.ParserCreate().Parse(data, True)
    root = etree.fromstring(data)
    invalid = sum(each.severity == "error" for each in report.problems)
    number = len(report.results) + invalid
    assert len(root.findall(".//testcase")) == number == int(root.get("tests"))
    for tag, status, attribute in (
        ("failure", "failed", "failures"),
        ("error", "errored", "errors"),
        ("skipped", "skipped", "skipped"),
    ):
        amount = sum(result.status == status for result in report.results)
        amount += invalid if status == "errored" else 0
        assert len(root.findall(f".//{tag}")) == amount
        assert sum(int(suite.get(attribute)) for suite in root) == amount
    assert all(each.get("message") for each in root.iter("failure", "error", "skipped"))


@given(report=REPORTS)
def test_console_and_annotations_contain_no_foreign_commands(report: Report) -> None:
    console = render_console(report, quiet=False, verbose=True, colour=True)
    problems = render_problems(report.problems, "text")
    assert commands_in(console + problems) == []
    for text in (annotated(report), render_problems(report.problems, "github")):
        commands = commands_in(text)
        assert len(commands) == len(text.splitlines())
        assert all(_of_ours(command) for command in commands)


@given(report=REPORTS)
def test_printed_report_files_contain_no_workflow_commands(report: Report) -> None:
    for name in REPORT_FILES:
        # CSV has no escapes: the ids of cases, which `results:` compares, are written unchanged.
        if not name.endswith(".csv"):
            assert commands_in(FORMATS[name](report)) == [], name


@given(report=REPORTS)
def test_annotations_and_comments_respect_github_limits(report: Report) -> None:
    commands = commands_in(annotated(report))
    for level in ("error", "warning", "notice"):
        assert sum(command.name == level for command in commands) <= ANNOTATIONS_PER_TYPE
    for command in commands:
        assert len(command.data.encode("utf-16-le")) // 2 <= ANNOTATION_MESSAGE_UNITS
    assert len(text_of(SummaryReport(), report).encode()) <= SUMMARY_BYTES
    assert len(text_of(CommentReport(), report)) <= COMMENT_CHARACTERS


def _drop_code(text: str) -> str:
    """Markdown without code blocks, code spans and character references."""
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1\n", "", text, flags=re.DOTALL | re.MULTILINE)
    # In a line of HTML, a backtick starts no code.
    outside = re.sub(
        r"^<summary>.*", lambda line: line[0].replace("`", ""), outside, flags=re.MULTILINE
    )
    return re.sub(r"(?<!\\)`[^`]*`|&#\d+;", "", outside)


@pytest.mark.parametrize("name", [name for name in REPORT_FILES if name.endswith(".md")])
@given(report=REPORTS)
def test_markdown_creates_no_mentions_or_references(name: str, report: Report) -> None:
    outside = _drop_code(FORMATS[name](report))
    assert not re.search(r"@\w|(#|GH-)\d", outside, re.IGNORECASE)
    assert set(re.findall(r"<(/?\w*)", outside)) <= {
        *("code", "/code", "details", "/details", "summary", "/summary"),
    }


@given(report=REPORTS)
def test_comment_has_no_code_blocks_and_only_its_own_links(report: Report) -> None:
    text = text_of(CommentReport(run_url="https://github.example/r"), report)
    assert not any(line.startswith(("```", "~~~")) for line in text.splitlines())
    # The workflow run and its artifacts.
    assert len(re.findall(r"(?<!\\)\]\(", _drop_code(text))) == 2


@given(report=REPORTS)
def test_summary_has_one_details_element_per_failure_and_one_for_skips(report: Report) -> None:
    text = text_of(SummaryReport(), report)
    statuses = [result.status for result in report.results]
    elements = statuses.count("failed") + ("skipped" in statuses)
    lines = text.splitlines()
    assert lines[0].startswith("## ")
    assert sum(line.startswith("<details") for line in lines) == elements
    assert sum(line.startswith("<summary>") for line in lines) == elements


@given(
    report=REPORTS,
    paths=st.dictionaries(
        st.sampled_from(["results", "junit", "summary", "report", "comment"]), TEXT
    ),
)
def test_the_runner_reads_exactly_our_outputs(report: Report, paths: dict[str, str]) -> None:
    values = make_outputs(report, paths)
    read = read_output_file(render_outputs(values, "another-delimiter"))
    assert list(read) == list(values)
    assert (read["passed"], read["verdict"]) == (values["passed"], values["verdict"])


@given(report=REPORTS)
def test_page_has_only_known_elements_and_attributes(report: Report) -> None:
    tree = html.document_fromstring(text_of(HtmlReport(), report))
    elements = [each for each in tree.iter() if isinstance(each.tag, str)]
    assert {each.tag for each in elements} <= ELEMENTS
    assert {name for each in elements for name in each.attrib} <= ATTRIBUTES
    data = json.loads(tree.get_element_by_id("data").text)
    statuses = [check["status"] for case in data["cases"] for check in case["checks"]]
    assert sorted(statuses) == sorted(each.status for each in report.results)


@given(report=REPORTS)
def test_terminal_receives_no_control_characters(report: Report) -> None:
    text = render_console(report, quiet=False, verbose=True, colour=False)
    assert not set(text) & {
        *map(chr, range(9)),
        *map(chr, range(11, 32)),
        *map(chr, range(127, 160)),
    }
