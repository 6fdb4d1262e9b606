"""JUnit XML report for CI servers."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, starmap
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

import junit_xml
from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_number
from agentci.gate.decision import compute_totals
from agentci.gate.rules import list_missing_cases
from agentci.model.requests import EvaluatorIdentity
from agentci.model.result import CheckResult, RepeatRecord, Report, Status
from agentci.model.values import COMMAND_LINE, JUnitFormat, Place, Problem, replace
from agentci.reports.check_text import (
    format_headline,
    format_reason,
    list_findings,
    split_lines,
)
from agentci.reports.groups_and_totals import format_path, format_problem, place_in_file
from agentci.reports.outcomes import make_repeat_properties

MAX_ATTRIBUTE = 1_000
INVALID_INPUT = "invalid input"


def make_classnames(configs: Sequence[str]) -> dict[str, str]:
    """Return a unique dotted class name for each config."""
    names: dict[str, str] = {}
    for config in configs:
        path = re.sub(r"\.ya?ml$", "", format_path(config))
        parts = (escape_name_part(each) for each in path.split("/") if each.strip("."))
        name = ".".join(parts) or "agentci"
        while name in names.values():
            name += "_"
        names[config] = name
    return names


@lru_cache(maxsize=1024)
def escape_name_part(text: str) -> str:
    """Escape text as one part of a dotted name."""
    return re.sub(r"[.\s]", "_", escape_attribute(text))


def make_case_name(result: CheckResult, taken: Counter[str]) -> str:
    """Make the name of a test case, with a number if an earlier one in the suite looks the same.

    Ids may differ only in invisible characters or in the part that truncation removes.
    """
    # A case has a check of each evaluator.
    parts = [escape_attribute(each) for each in (result.case.id, result.evaluator.name)]
    name = " > ".join(parts)
    if len(name) > MAX_ATTRIBUTE or not all(parts):
        name = escape_attribute(f"{result.case.id} > {result.evaluator.name}")
    return _number_name(name, taken)


def _number_name(name: str, taken: Counter[str]) -> str:
    taken[name] += 1
    return name if taken[name] == 1 else f"{name} ({taken[name]})"


# Names of cases and evaluators, and thresholds, recur with every check.
@lru_cache(maxsize=1024)
def escape_attribute(text: str) -> str:
    """Escape and truncate untrusted text for an XML attribute."""
    return escape.escape_for_log_line(escape.escape_for_xml(truncate.middle(text, MAX_ATTRIBUTE)))


# Takes the place of an evaluator in the name of an eval case without a recorded run.
NO_RUN: Final = "recorded run"
MAX_TEXT = 8_000
MAX_REASON = 6_000

# Seconds. No check takes longer; a report of another run may contain any value.
MAX_SECONDS = 1e9


class JUnitReport(Struct, frozen=True, kw_only=True):
    """One test suite per config, one test case per check.

    Attributes:
        dialect: ``common`` suits GitLab, Azure, Datadog and the actions that publish test results,
            with ``file``, ``line`` and properties on test cases; ``jenkins`` follows its strict
            schema.
        attachment: path of ``report.html``, which GitLab and Jenkins link from test cases that
            failed or errored; empty for no link.
    """

    dialect: JUnitFormat = "common"
    attachment: str = ""
    name: str = "junit"
    file_name: str = "junit.xml"

    def render(self, report: Report) -> Iterator[str]:
        """Yield the XML document.

        Problems of the input are in the output of their suite, and each error is a test case, too:
        a server that shows only test cases must not take an invalid config for success.
        """
        suites = _group_by_config(report.results) or {"agentci": []}
        problems = _group_problems(report.problems, list(suites))
        found = [*list_missing_cases(report)]
        missing: dict[str, list[_MissingCase]] = {config: [] for config in suites}
        for config, case, problem in found:
            missing[config if config in missing else next(iter(missing))].append((case, problem))
        root = ET.Element("testsuites", {"name": "agentci"})
        self._count(root, report.results, _list_errors(report.problems), missing=len(found))
        yield '<?xml version="1.0" encoding="UTF-8"?>\n'
        yield from _wrap_element(
            root,
            chain.from_iterable(
                self._suite(config, classname, suites[config], problems[config], missing[config])
                for config, classname in make_classnames(list(suites)).items()
            ),
        )
        yield "\n"

    def _suite(
        self,
        config: str,
        classname: str,
        results: Sequence[CheckResult],
        problems: Sequence[Problem],
        missing: "Sequence[_MissingCase]",
    ) -> Iterator[str]:
        suite = junit_xml.TestSuite(
            escape_attribute(format_path(config)),
            file=escape_attribute(config) if results and config != COMMAND_LINE.file else None,
            stdout=_make_text(
                format_problem(each) for each in problems if each.severity != "error"
            ),
            stderr=_make_text(map(format_problem, _list_errors(problems))),
        )
        element: ET.Element = suite.build_xml_doc()
        outputs = [ET.tostring(each, encoding="unicode") for each in element]
        element[:] = []
        self._count(element, results, _list_errors(problems), missing=len(missing))
        taken = Counter[str]()
        cases = chain(
            (self._render_error(each, classname, taken) for each in _list_errors(problems)),
            (
                self._render_test_case(each, make_case_name(each, taken), classname)
                for each in results
            ),
            (_render_missing_case(*each, classname, taken) for each in missing),
        )
        yield _SUITE_MARGIN
        inner = (f"{_MARGIN}{text}" for text in chain(outputs, cases))
        yield from _wrap_element(element, inner, _SUITE_MARGIN)

    def _render_test_case(self, result: CheckResult, name: str, classname: str) -> str:
        """Render a test case; a tree of elements would take most of the time of all reports."""
        evaluator = result.evaluator
        output: Sequence[str] = result.case.shown_warnings
        children: list[str] = []
        where = ""
        if self.dialect == "common":
            where = _render_place(evaluator.place)
            children.append(_render_properties(result))
        else:
            properties = _list_properties(
                evaluator, result.score, result.repeats, cached=result.cached
            )
            output = [*(f"{k}: {v}" for k, v in properties.items()), *output]
        if tag := _TAGS.get(result.status):
            outcome = {"type": result.status, "message": _format_message(result)}
            children.append(_render_element(tag, outcome, _format_details(result)))
        link = self._format_attachment() if result.status in ("failed", "errored") else ""
        if text := "\n".join(each for each in (_make_text(output) if output else "", link) if each):
            children.append(_render_element("system-out", {}, text))
        start = (
            f'<testcase name="{name.translate(_ESCAPED_ATTRIBUTE)}"'
            f' classname="{_render_evaluator(classname, evaluator.name)}"'
            f' time="{_limit_seconds(result):.3f}"{where}'
        )
        inner = "".join(f"{_MARGIN}  {child}" for child in children)
        return f"{start}>{inner}{_MARGIN}</testcase>"

    def _render_error(self, problem: Problem, classname: str, taken: Counter[str]) -> str:
        """Render an error of the input as a test case."""
        text = format_problem(problem)
        name = _number_name(
            escape_attribute(f"{INVALID_INPUT} {problem.place or ''}".strip()), taken
        )
        error = {"type": "errored", "message": escape_attribute(text)}
        attributes = {"name": name, "classname": classname, "time": "0.000"}
        whole = _render_element("testcase", attributes).removesuffix(" />")
        inner = _render_element("error", error, _make_text([text]))
        return f"{whole}>{_MARGIN}  {inner}{_MARGIN}</testcase>"

    def _format_attachment(self) -> str:
        """Format the line that attaches the report; empty if its path cannot be written so."""
        path = self.attachment
        if not path or path != escape_attribute(path) or "]" in path or "|" in path:
            return ""
        return f"[[ATTACHMENT|{path}]]"

    def _count(
        self,
        element: ET.Element,
        results: Sequence[CheckResult],
        problems: Sequence[Problem],
        *,
        missing: int,
    ) -> None:
        """Replace the attributes of a suite or the root by its counts."""
        counts = compute_totals(results)
        attributes = {
            "name": element.get("name", ""),
            "tests": str(counts.checks + len(problems) + missing),
            "failures": str(counts.failed + missing),
            "errors": str(counts.errored + len(problems)),
            "skipped": str(counts.skipped),
            "time": _format_seconds(results),
        }
        if self.dialect == "jenkins" and element.tag == "testsuites":
            del attributes["skipped"]
        if file := element.get("file"):
            attributes["file"] = file
        element.attrib.clear()
        element.attrib.update(attributes)


# The id of an eval case without a recorded run, and the problem that describes it.
_MissingCase: TypeAlias = tuple[str, Problem]


def _render_missing_case(case: str, problem: Problem, classname: str, taken: Counter[str]) -> str:
    """Render an eval case without a recorded run as a failed test case."""
    text = format_problem(replace(problem, severity="error"))
    name = _number_name(escape_attribute(f"{case} > {NO_RUN}"), taken)
    attributes = {"name": name, "classname": classname, "time": "0.000"}
    whole = _render_element("testcase", attributes).removesuffix(" />")
    failure = {"type": "failed", "message": escape_attribute(text)}
    inner = _render_element("failure", failure, _make_text([text]))
    return f"{whole}>{_MARGIN}  {inner}{_MARGIN}</testcase>"


def _wrap_element(element: ET.Element, inner: Iterator[str], margin: str = "\n") -> Iterator[str]:
    """Yield an element around other elements, which begin with their margins, as text."""
    whole = ET.tostring(element, encoding="unicode")
    first = next(inner, None)
    if first is None:
        yield whole
        return
    yield f"{whole.removesuffix(' />')}>"
    yield first
    yield from inner
    yield f"{margin}</{element.tag}>"


def _list_errors(problems: Iterable[Problem]) -> list[Problem]:
    return [each for each in problems if each.severity == "error"]


def _group_by_config(results: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    groups: dict[str, list[CheckResult]] = {}
    for result in results:
        groups.setdefault(result.config, []).append(result)
    return groups


def _group_problems(found: Sequence[Problem], configs: Sequence[str]) -> dict[str, list[Problem]]:
    """Group problems by config; those in other files go to the first config."""
    shares: dict[str, list[Problem]] = {config: [] for config in configs}
    for problem in found:
        file = configs[0] if problem.place is None else problem.place.file
        shares[file if file in shares else configs[0]].append(problem)
    return shares


_TAGS: Final[dict[Status, str]] = {
    "failed": "failure",
    "errored": "error",
    "skipped": "skipped",
}
# Before a suite, and before a test case.
_SUITE_MARGIN: Final = "\n" + "  "
_MARGIN: Final = f"{_SUITE_MARGIN}  "
_ESCAPED_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ESCAPED_ATTRIBUTE: Final = {
    **_ESCAPED_TEXT,
    **str.maketrans({'"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#09;"}),
}


def _render_element(tag: str, attributes: Mapping[str, str], text: str = "") -> str:
    """Render an element as ElementTree does."""
    given = "".join(
        f' {name}="{value.translate(_ESCAPED_ATTRIBUTE)}"' for name, value in attributes.items()
    )
    return f"<{tag}{given}>{text.translate(_ESCAPED_TEXT)}</{tag}>" if text else f"<{tag}{given} />"


def _format_message(result: CheckResult) -> str:
    """Format why the check has its outcome, then the headline, in one line.

    Of a headline of several lines, keep the first and last.
    """
    headline = truncate.join_first_and_last(split_lines(format_headline(result)))
    # A headline with a reason of the whole check starts with it.
    reason = "" if result.status != "failed" or result.reason else format_reason(result)
    message = f"{reason} ({headline})" if reason else headline
    return _break_link(escape_attribute(message)) or result.status


def _format_details(result: CheckResult) -> str:
    """Format headline, places and findings, for consumers that do not show the message."""
    headline = "\n".join(split_lines(format_headline(result))) or result.status
    return _make_text(
        (
            truncate.middle(headline, MAX_REASON),
            f"config {replace(result.evaluator.place, column=None)}",
            f"trace {result.case.recording.file}",
            *list_findings(result),
        )
    )


def _render_properties(result: CheckResult) -> str:
    """Render the properties, and the tags that Datadog makes of names of this form."""
    own, tags = _render_shared_properties(
        result.evaluator, result.score, result.repeats, cached=result.cached
    )
    return f"{own}{_render_property('dd_tags[agentci.case]', result.case.id)}{tags}"


# Scores recur, and a case has a check of each evaluator.
@lru_cache(maxsize=1024)
def _render_shared_properties(
    evaluator: EvaluatorIdentity,
    score: float | None,
    repeats: RepeatRecord | None,
    *,
    cached: bool,
) -> tuple[str, str]:
    """Render what may be the same in other cases: what is before the tag of the case, and after."""
    properties = _list_properties(evaluator, score, repeats, cached=cached)
    tags = {"evaluator": evaluator.name, "score": properties.get("score", "")}
    shown = {f"dd_tags[agentci.{name}]": value for name, value in tags.items() if value}
    own, after = ("".join(starmap(_render_property, each.items())) for each in (properties, shown))
    return f"<properties>{own}", f"{after}{_MARGIN}  </properties>"


@lru_cache(maxsize=1024)
def _render_property(name: str, value: str) -> str:
    attributes = {"name": name, "value": escape_attribute(value)}
    return f"{_MARGIN}    {_render_element('property', attributes)}"


@lru_cache(maxsize=1024)
def _render_evaluator(classname: str, evaluator: str) -> str:
    return f"{classname}.{escape_name_part(evaluator)}".translate(_ESCAPED_ATTRIBUTE)


@lru_cache(maxsize=1024)
def _render_place(place: Place) -> str:
    if place_in_file(place) is None:
        return ""
    file = escape_attribute(place.file).translate(_ESCAPED_ATTRIBUTE)
    return f' file="{file}" line="{place.line}"'


def _list_properties(
    evaluator: EvaluatorIdentity,
    score: float | None,
    repeats: RepeatRecord | None,
    *,
    cached: bool,
) -> dict[str, str]:
    properties = {
        "score": "" if score is None else format_number(score, digits=6),
        "threshold": ""
        if evaluator.threshold is None
        else format_number(evaluator.threshold, digits=6),
        "criterion": evaluator.criterion,
        "type": evaluator.type,
        "required": "" if evaluator.required else "false",
        "cached": "true" if cached else "",
        **make_repeat_properties(repeats),
    }
    return {name: value for name, value in properties.items() if value}


def _format_seconds(results: Iterable[CheckResult]) -> str:
    return f"{sum_seconds(results):.3f}"


def sum_seconds(results: Iterable[CheckResult]) -> float:
    """Sum the seconds that checks took, without impossible ones of another run."""
    return math.fsum(map(_limit_seconds, results))


def _limit_seconds(result: CheckResult) -> float:
    return result.seconds if 0 < result.seconds <= MAX_SECONDS else 0.0


def _make_text(parts: Iterable[str]) -> str:
    """Join lines as the text of an element."""
    text = truncate.characters("\n".join(line for line in parts if line), MAX_TEXT)
    return _break_link(escape.neutralize_commands(escape.escape_for_xml(text)))


def _break_link(text: str) -> str:
    """Neutralise ``[[ATTACHMENT|path]]``, which GitLab would follow."""
    return text.replace("[[ATTACHMENT", "[ [ATTACHMENT")
