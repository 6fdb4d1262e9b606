"""``junit.xml`` of a real run, parsed by known consumers."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from agentci.model.values import JUNIT_FORMATS
from tests.helpers.recordings import otlp
from tests.helpers.support import PATH, run_agentci
from tests.services.servers import MODULES, NODE

HOSTILE: Final = "]]> <b> & \x1b[31m \ud800 [[ATTACHMENT|../../secret]] ::error::x"
PROGRAMS: Final = {
    "fine": "print('{\"score\": 0.9}')",
    "low": f"print({json.dumps(json.dumps({'score': 0.1, 'details': {'issues': [HOSTILE]}}))})",
    "broken": f"raise SystemExit({HOSTILE!a})",
    "idle": 'print(\'{"score": 0, "status": "NOT_EVALUATED", "details": {"why": "idle"}}\')',
}
STATUSES: Final = {"fine": "passed", "low": "failed", "broken": "errored", "idle": "skipped"}
REASONS: Final = {
    "low": "score 0.1, threshold 0.5",
    "broken": "Evaluator `broken` exited with code 1",
    "idle": "skipped by the evaluator, no reason given",
}
CONFIGS: Final = ("evals/a.yaml", "evals/b.yaml")
TRACES: Final = ("one", "two")
CASES: Final = len(CONFIGS) * len(TRACES) * len(PROGRAMS)


@pytest.fixture(scope="module", params=JUNIT_FORMATS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checks of every status, in two configs whose evaluators have the same names."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "evals").mkdir()
    entries = [f"- name: {name}\n  type: code\n  path: {name}.py\n" for name in PROGRAMS]
    for name, program in PROGRAMS.items():
        (folder / "evals" / f"{name}.py").write_text(program)
    for number, name in enumerate(TRACES):
        (folder / "evals" / f"{name}.json").write_text(otlp(trace=number + 1))
    for config in CONFIGS:
        (folder / config).write_text(f"evaluators:\n{''.join(entries)}traces: '*.json'\n")
    ran = run_agentci(["run", *CONFIGS, "--junit-dialect", request.param], cwd=folder)
    assert ran.code == 1
    return folder / "agentci-results" / "junit.xml"


def parse_as_gitlab(xml: str) -> Iterator[dict[str, Any]]:
    """Test cases as GitLab makes them (``lib/gitlab/ci/parsers/test/junit.rb``).

    It reads the text of an element instead of its attributes if there is text, takes the first of
    failure, error and skipped, and searches only the output for attachments.
    """
    root = ET.fromstring(xml)
    assert root.tag == "testsuites"
    for suite in root.iter("testsuite"):
        for case in suite.findall("testcase"):
            found = [case.find(tag) for tag in ("failure", "error", "skipped")]
            first = next((each for each in found if each is not None), None)
            links = re.findall(r"\[\[ATTACHMENT\|.+?\]\]", case.findtext("system-out", ""))
            yield {
                "key": (suite.get("name"), case.get("classname"), case.get("name")),
                "file": case.get("file"),
                "execution_time": float(case.get("time", "")),
                "status": "success" if first is None else first.tag,
                "shown": None if first is None else (first.text or "").strip(),
                "attached": links[0] if links else None,
            }


class TestGitLab:
    def test_gitlab_distinguishes_all_cases(self, file: Path) -> None:
        keys = [case["key"] for case in parse_as_gitlab(file.read_text())]
        assert len(set(keys)) == len(keys) == CASES

    def test_gitlab_shows_status_and_reason(self, file: Path) -> None:
        tags = {"passed": "success", "failed": "failure", "errored": "error", "skipped": "skipped"}
        for case in parse_as_gitlab(file.read_text()):
            evaluator = case["key"][1].rpartition(".")[2]
            assert case["status"] == tags[STATUSES[evaluator]]
            if evaluator == "fine":
                assert case["shown"] is None
            else:
                assert REASONS[evaluator] in case["shown"].splitlines()[0]
                assert f"config evals/{case['key'][1].split('.')[1]}.yaml:" in case["shown"]

    def test_gitlab_attaches_only_the_report(self, file: Path) -> None:
        page = str(file.parent / "report.html")
        if "<properties>" in file.read_text():
            page = "agentci-results/report.html"
        for case in parse_as_gitlab(file.read_text()):
            bad = case["status"] in ("failure", "error")
            assert case["attached"] == (f"[[ATTACHMENT|{page}]]" if bad else None)

    def test_gitlab_reads_time_and_file(self, file: Path) -> None:
        cases = [*parse_as_gitlab(file.read_text())]
        is_common = "<properties>" in file.read_text()
        assert all(case["execution_time"] > 0 for case in cases)
        assert {case["file"] for case in cases} == ({*CONFIGS} if is_common else {None})


class TestDatadog:
    def test_tags_name_case_evaluator_and_score(self, file: Path) -> None:
        """``datadog-ci junit upload`` reads properties called ``dd_tags[KEY]``."""
        cases = list(ET.parse(file).iter("testcase"))
        is_common = "<properties>" in file.read_text()
        for case in cases:
            evaluator = case.get("classname", "").rpartition(".")[2]
            found = {p.get("name", ""): p.get("value", "") for p in case.iter("property")}
            tags = {key: value for key, value in found.items() if key.startswith("dd_tags[")}
            assert bool(tags) == is_common
            if is_common:
                assert tags["dd_tags[agentci.evaluator]"] == evaluator
                assert tags.get("dd_tags[agentci.score]") == found.get("score")
                assert tags["dd_tags[agentci.case]"] in case.get("name", "")


class TestJunitparser:
    """Used by publishers of test results, such as EnricoMi's."""

    def test_junitparser_reads_every_case_and_outcome(self, file: Path) -> None:
        kinds = {"passed": [], "failed": [Failure], "errored": [Error], "skipped": [Skipped]}
        cases = [case for suite in JUnitXml.fromfile(str(file)) for case in suite]
        assert len(cases) == CASES
        for case in cases:
            evaluator = case.classname.rpartition(".")[2]
            assert [type(each) for each in case.result] == kinds[STATUSES[evaluator]]
            for each in case.result:
                assert REASONS[evaluator] in each.message
                assert REASONS[evaluator] in each.text

    def test_junitparser_counts_match_attributes(self, file: Path) -> None:
        for suite in JUnitXml.fromfile(str(file)):
            kinds = [type(each) for case in suite for each in case.result]
            counted = [kinds.count(kind) for kind in (Failure, Error, Skipped)]
            assert [suite.failures, suite.errors, suite.skipped] == counted == [2, 2, 2]
            assert suite.tests == len([*suite]) == CASES / len(CONFIGS)


@pytest.mark.skipif(
    not (MODULES / "test-results-parser").is_dir(), reason="npm did not install the parser"
)
class TestTestResultsParser:
    """Used by bots that report to chats."""

    def read(self, file: Path) -> Any:
        script = (
            f"const {{ parse }} = require({json.dumps(str(MODULES / 'test-results-parser'))});"
            f"const files = [{json.dumps(str(file))}];"
            "console.log(JSON.stringify(parse({ type: 'junit', files })))"
        )
        ran = subprocess.run(
            [NODE, "-e", script], env={"PATH": PATH}, capture_output=True, text=True, check=True
        )
        return json.loads(ran.stdout)

    def test_results_parser_reads_every_case_and_outcome(self, file: Path) -> None:
        statuses = {"passed": "PASS", "failed": "FAIL", "errored": "FAIL", "skipped": "SKIP"}
        suites = self.read(file)["suites"]
        cases = [case for suite in suites for case in suite["cases"]]
        assert [suite["name"] for suite in suites] == [*CONFIGS]
        assert len(cases) == CASES
        for case in cases:
            evaluator = case["name"].rpartition(" ")[2]
            assert case["status"] == statuses[STATUSES[evaluator]]
            if statuses[STATUSES[evaluator]] == "FAIL":
                assert REASONS[evaluator] in case["failure"]
                assert REASONS[evaluator] in case["stack_trace"]
