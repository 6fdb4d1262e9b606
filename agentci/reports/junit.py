"""The report for CI servers: JUnit's XML, made with ``junit-xml`` and mended where that loses.

``junit-xml`` drops a failure without a message (the case then counts as passed), knows no
properties of test cases, leaves out zeros, writes attributes that the strict schema forbids, and
its serialiser stops at half a surrogate pair. So its elements are built from filtered text that is
never empty, amended, and serialised here.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from xml.etree import ElementTree as ET

import junit_xml
from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import number
from agentci.gate.decision import totals
from agentci.model.choices import JUnitDialect
from agentci.model.place import COMMAND_LINE
from agentci.model.problem import Problem
from agentci.model.result import Report, Result
from agentci.model.values import replace
from agentci.reports.check_text import findings, headline, lines
from agentci.reports.junit_names import attribute, case_name, classnames, part
from agentci.reports.locations import file_name, in_a_file, problem_line
from agentci.reports.stability import properties_of

MAX_TEXT = 8_000
MAX_REASON = 6_000
# Test cases that are elements at a time: of few, each would take longer to serialise.
AT_ONCE = 100

# No check takes as long; a foreign report may say anything.
MAX_SECONDS = 1e9


class JUnit(Struct, frozen=True, kw_only=True):
    """One suite a config, one test case a check.

    Attributes:
        dialect: ``common`` is read by GitLab, Azure and the actions that publish test results, with
            ``file``, ``line`` and properties on test cases; ``jenkins`` keeps to its strict schema.
    """

    dialect: JUnitDialect = "common"
    name: str = "junit"
    file_name: str = "junit.xml"

    def render(self, report: Report) -> Iterator[str]:
        """The XML document; problems of the input stand in the output of their suite."""
        suites = _by_config(report.results) or {"agentci": []}
        problems = _shared_out(report.problems, list(suites))
        root = ET.Element("testsuites", {"name": "agentci"})
        self._count(root, report.results)
        yield '<?xml version="1.0" encoding="UTF-8"?>\n'
        yield from _nested(
            root,
            (
                self._suite(config, classname, suites[config], problems[config])
                for config, classname in classnames(list(suites)).items()
            ),
        )
        yield "\n"

    def _suite(
        self, config: str, classname: str, results: Sequence[Result], problems: Sequence[Problem]
    ) -> Iterator[str]:
        suite = junit_xml.TestSuite(
            attribute(file_name(config)),
            file=attribute(config) if results and config != COMMAND_LINE.file else None,
            stdout=_text(_problem(each) for each in problems if each.severity != "error"),
            stderr=_text(_problem(each) for each in problems if each.severity == "error"),
        )
        element: ET.Element = suite.build_xml_doc()
        said = [ET.tostring(each, encoding="unicode") for each in element]
        element[:] = []
        self._count(element, results)
        portions = (results[at : at + AT_ONCE] for at in range(0, len(results), AT_ONCE))
        taken = Counter[str]()
        cases = (self._test_cases(portion, classname, taken) for portion in portions)
        return _nested(element, ([text] for text in chain(said, cases)), level=1)

    def _test_cases(self, results: Sequence[Result], classname: str, taken: Counter[str]) -> str:
        cases = [_test_case(result, case_name(result, taken), classname) for result in results]
        suite: ET.Element = junit_xml.TestSuite("", cases).build_xml_doc()
        for element, result in zip(suite, results, strict=True):
            self._amend(element, result)
        suite.attrib.clear()
        ET.indent(suite, level=1)
        text = ET.tostring(suite, encoding="unicode")
        return text.removeprefix("<testsuite>").removesuffix("</testsuite>").strip()

    def _amend(self, test_case: ET.Element, result: Result) -> None:
        """Add what ``junit-xml`` cannot write or leaves out where it is zero."""
        test_case.set("time", _seconds([result]))
        asides = list(result.case.warnings)
        if self.dialect == "common":
            if place := in_a_file(result.evaluator.place):
                test_case.set("file", attribute(place.file))
                test_case.set("line", str(place.line))
            test_case.insert(0, _properties(result))
        else:
            asides = [f"{name}: {value}" for name, value in _facts(result).items()] + asides
        if asides:
            ET.SubElement(test_case, "system-out").text = _text(asides)

    def _count(self, element: ET.Element, results: Sequence[Result]) -> None:
        """Set the attributes of a suite or of the root, and no others."""
        counts = totals(results)
        attributes = {
            "name": element.get("name", ""),
            "tests": str(counts.checks),
            "failures": str(counts.failed),
            "errors": str(counts.errored),
            "skipped": str(counts.skipped),
            "time": _seconds(results),
        }
        if self.dialect == "jenkins" and element.tag == "testsuites":
            del attributes["skipped"]
        if file := element.get("file"):
            attributes["file"] = file
        element.attrib.clear()
        element.attrib.update(attributes)


def _nested(
    element: ET.Element, children: Iterator[Iterable[str]], *, level: int = 0
) -> Iterator[str]:
    """An element around ``children`` in pieces of text, laid out as ``ET.indent`` does."""
    margin, whole = "\n" + "  " * level, ET.tostring(element, encoding="unicode")
    first = next(children, None)
    if first is None:
        yield whole
        return
    yield f"{whole.removesuffix(' />')}>"
    for child in chain([first], children):
        yield f"{margin}  "
        yield from child
    yield f"{margin}</{element.tag}>"


def _by_config(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.config, []).append(result)
    return groups


def _shared_out(problems: Sequence[Problem], configs: Sequence[str]) -> dict[str, list[Problem]]:
    """Problems by the config that they lie in; those that lie elsewhere are the first one's."""
    shares: dict[str, list[Problem]] = {config: [] for config in configs}
    for problem in problems:
        file = configs[0] if problem.place is None else problem.place.file
        shares[file if file in shares else configs[0]].append(problem)
    return shares


def _test_case(result: Result, name: str, classname: str) -> junit_xml.TestCase:
    test_case = junit_xml.TestCase(name, classname=f"{classname}.{part(result.evaluator.name)}")
    if result.status == "failed":
        test_case.add_failure_info(_message(result), _told(result), "failed")
    elif result.status == "errored":
        test_case.add_error_info(_message(result), _told(result), "errored")
    elif result.status == "skipped":
        test_case.add_skipped_info(_message(result), _told(result))
    return test_case


def _message(result: Result) -> str:
    """One line: of what a program printed, the first and the last."""
    return attribute(truncate.outline(lines(headline(result)))) or result.status


def _told(result: Result) -> str:
    """What consumers show that do not show the message: it in full, where to act, the details."""
    told = "\n".join(lines(headline(result))) or result.status
    return _text(
        (
            truncate.middle(told, MAX_REASON),
            f"at {replace(result.evaluator.place, column=None)}",
            f"recording {result.case.recording.file}",
            *findings(result),
        )
    )


def _problem(problem: Problem) -> str:
    return f"{problem.severity}: {problem_line(problem)}"


def _properties(result: Result) -> ET.Element:
    element = ET.Element("properties")
    for name, value in _facts(result).items():
        ET.SubElement(element, "property", {"name": name, "value": attribute(value)})
    return element


def _facts(result: Result) -> dict[str, str]:
    score = None if result.judgement is None else result.judgement.score
    evaluator = result.evaluator
    facts = {
        "score": "" if score is None else number(score, digits=6),
        "threshold": "" if evaluator.threshold is None else number(evaluator.threshold, digits=6),
        "bar": evaluator.bar,
        "type": evaluator.type,
        "required": "" if evaluator.required else "false",
        "cached": "true" if result.cached else "",
        **properties_of(result.repeats),
    }
    return {name: value for name, value in facts.items() if value}


def _seconds(results: Iterable[Result]) -> str:
    return f"{math.fsum(r.seconds for r in results if 0 < r.seconds <= MAX_SECONDS):.3f}"


def _text(parts: Iterable[str]) -> str:
    """Lines as the text of an element; GitLab would follow ``[[ATTACHMENT|path]]`` in it."""
    text = truncate.characters("\n".join(line for line in parts if line), MAX_TEXT)
    return escape.inert(escape.xml(text)).replace("[[ATTACHMENT", "[ [ATTACHMENT")
