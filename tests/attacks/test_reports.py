"""Hostile text in every field of a run stays text: in the log, the outputs and all reports."""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from agentci.reports.console import FOLDED
from tests._util.http.servers import Answer, Asked, serve
from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob, find_obstacle
from tests.attacks.hostile_text import ALL, IGNORED, TEXTS
from tests.attacks.job import KEY_SECRET, PROGRAMS, TOKEN_SECRET, VARIABLE_SECRET, Job
from tests.helpers.browser import PROGRAM as BROWSER
from tests.helpers.browser import browser
from tests.helpers.recordings import otlp
from tests.helpers.runner import commands_in, read_output_file
from tests.helpers.support import Ran

CONFIG = "evil ::error::F`<img src=x onerror=window.forged=1>`@octocat #1.yaml"
CONTROLS = ("\x1b", "\x9b", "\x00", "\u202e")
OUTPUTS = {
    *("passed", "verdict", "score", "checks", "passed-count", "failed-count", "errored-count"),
    *("skipped-count", "results", "junit", "summary", "report", "comment"),
}
# Queries that are false or 0 in a page to which the texts have added nothing.
FORGED = (
    "window.forged",
    "document.querySelectorAll('main :is(img, iframe, object, script, base)').length",
    "document.querySelectorAll('main a[href^=javascript]').length",
    'document.querySelectorAll(\'a:is([href*="//evil"], [href*="//www.evil"])\').length',
)
FRAGMENTS = (
    *("", '#check="><img src=x onerror=window.forged=1>', "#check=__proto__", "#check=%00"),
    *("#search=<img src=x onerror=window.forged=1>", "#q='];window.forged=1//"),
    "#sort=constructor&status=__proto__",
)
# What agentci writes itself; everything else in a comment would be markup of others.
ELEMENTS = {
    *("h2", "h3", "h4", "table", "thead", "tbody", "tr", "th", "td", "p", "ul", "ol", "li"),
    *("details", "summary", "strong", "em", "hr", "br", "sub", "del", "pre", "code", "!--"),
    *("blockquote", "a"),
}


def write_hostile_eval(job: Job) -> None:
    """Write the texts into names, questions, answers, tools, ids and results."""
    trace = json.loads(otlp(ALL, ALL, calls=[(ALL, {text: text for text in TEXTS})]))
    job.write(
        {
            "trace.json": json.dumps(trace),
            "texts.json": json.dumps(TEXTS),
            "ev.py": (PROGRAMS / "prints_hostile_text.py").read_text(),
        }
    )
    entries = [
        f"- {{name: {_quote(f'e{number} {text[:90].strip()}')}, type: code, path: ev.py,"
        f" threshold: 1.0, config: {{number: {number}}}}}\n"
        for number, text in enumerate(TEXTS)
        if "\ud800" not in text and "\x00" not in text and text.strip()
    ]
    job.write({CONFIG: f"traces: trace.json\nevaluators:\n{''.join(entries)}"})


def _quote(text: str) -> str:
    """Any text in YAML."""
    escaped = (c if c.isascii() and c.isalnum() else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(escaped)}"'


@pytest.fixture(scope="module")
def evaluated(python: Path | None) -> Iterator[tuple[Job, Ran]]:
    """One run of the action, shared by all tests of its reports."""
    if reason := find_obstacle("container", python):
        pytest.skip(f"mode container: {reason}")
    assert python is not None
    job = Job("container", python)
    write_hostile_eval(job)
    with serve(lambda _: Answer(status=404)) as api:
        ran = job.run(CONFIG, inputs={"evaluator-io": "all"}, environ={"GITHUB_API_URL": api.url})
    assert ran.code == 1, ran.err
    assert len(ran.results["results"]) > 50
    yield job, ran
    job.remove()


def read_report(ran: Ran, name: str) -> str:
    return (ran.folder / "agentci-results" / name).read_text(encoding="utf-8")


def find_forged_commands(log: str) -> list[str]:
    """Lines that a runner may take for a command of the texts, whatever it trims."""
    start = re.compile(f"[\\s{''.join(IGNORED)}]*")
    titles = "|".join(FOLDED)
    own = re.compile(
        rf"::(error|warning|notice) ?(file=|title=|::|line)|::group::({titles})$|::endgroup::$"
    )
    forged = []
    for line in re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]", log):
        trimmed = start.sub("", line, count=1)
        is_foreign = trimmed.startswith("::") and not own.match(trimmed)
        if is_foreign or "##[" in line or re.match(r"::\w+::forged", trimmed):
            forged.append(trimmed[:60])
    return forged


@attack("M1", "container")
@pytest.mark.usefixtures("mode")
def test_texts_are_no_workflow_commands(evaluated: tuple[Job, Ran]) -> None:
    _, ran = evaluated
    log = ran.out + ran.err
    assert find_forged_commands(log) == []
    assert {command.name for command in commands_in(log)} <= {"error", "warning", "notice"}
    assert [control for control in CONTROLS if control in log] == []


@attack("M2", "container")
@pytest.mark.usefixtures("mode")
def test_texts_set_no_outputs_and_variables(evaluated: tuple[Job, Ran]) -> None:
    job, _ = evaluated
    assert read_output_file((job.commands / "output").read_text()).keys() == OUTPUTS
    for name in ("env", "path", "state"):
        assert (job.commands / name).read_text() == ""


@attack("M3", "container")
@pytest.mark.usefixtures("mode")
def test_texts_add_no_elements_to_junit(evaluated: tuple[Job, Ran]) -> None:
    _, ran = evaluated
    root = ET.fromstring(read_report(ran, "junit.xml"))
    totals = ran.results["totals"]
    counts = [len([*root.iter(name)]) for name in ("testcase", "failure", "error")]
    assert counts == [totals[name] for name in ("checks", "failed", "errored")]
    assert {each.tag for each in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "failure", "error", "skipped"),
        *("properties", "property", "system-out", "system-err"),
    }


@attack("M4", "container")
@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("name", ["comment.md", "summary.md"])
def test_texts_are_no_markdown(evaluated: tuple[Job, Ran], name: str) -> None:
    cmarkgfm = pytest.importorskip("cmarkgfm", reason="GitHub's Markdown is not installed")
    options = pytest.importorskip("cmarkgfm.cmark").Options
    _, ran = evaluated
    page = cmarkgfm.github_flavored_markdown_to_html(
        read_report(ran, name), options=options.CMARK_OPT_UNSAFE
    )
    plain = re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    tags = re.findall(r"<\s*/?([a-zA-Z!][^\s>]*)", plain)
    assert {tag.rstrip("/").lower() for tag in tags} <= ELEMENTS
    links = re.findall(r"<[^>]*(?:href|src)=([^ >]*)", plain)
    assert [link for link in links if "127.0.0.1:9/o/r" not in link] == []
    text = html.unescape(re.sub(r"<[^>]*>", "", plain))
    assert re.findall(r"(?<![\w`])@[A-Za-z][\w/-]*", text) == []
    assert re.findall(r"(?:^|[\s(])#\d+|GH-\d+|\w+/\w+#\d+", text) == []
    headings = re.findall(r"<h[1-6]>(.*?)</h", page)
    assert not [each for each in headings if "passed" in each]


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@attack("M5", "container")
@pytest.mark.usefixtures("mode")
def test_texts_run_nothing_in_browser(evaluated: tuple[Job, Ran], tmp_path: Path) -> None:
    _, ran = evaluated
    page = tmp_path / "report.html"
    page.write_text(read_report(ran, "report.html"), encoding="utf-8")
    checks = [f"#check={result['id']}" for result in ran.results["results"][:12]]
    found: list[Any] = []
    with browser(tmp_path / "profile") as window:
        for fragment in (*FRAGMENTS, *checks):
            window.open(page, fragment)
            found += [(fragment, query) for query in FORGED if window.run(query)]
            window.run("document.querySelectorAll('button, summary').forEach((x) => x.click())")
            found += [(fragment, "after clicks")] if window.run("window.forged") else []
        assert window.faults == []
    assert found == []


@attack("M6", "user")
def test_texts_send_no_control_characters_to_terminal(job: Job) -> None:
    write_hostile_eval(job)
    ran = job.execute("run", CONFIG, "--verbose")
    assert len(ran.results["results"]) > 50
    assert [each for each in (*CONTROLS, "\r") if each in ran.out + ran.err] == []


SHOWN_FIRST = "## ❌ Quality gate failed: 1 of 1 check failed"
FAILING: Mapping[str, str] = {
    "ev.py": "print('{\"score\": 0}')\n",
    "agentci.yaml": "traces: trace.json\nevaluators:\n- {name: ev, type: code, path: ev.py}\n",
}
TEMPLATES: Mapping[str, str] = {
    "comment": "<!-- ",
    "block": "{% extends 'default' %}{% block failures %}<!-- {% endblock %}",
    "marker": "<!-- agentci:0123456789abcdef:0123456789abcdef -->\n",
    "file": "{% include '/etc/passwd' %}",
    "globals": "{{ cycler.__init__.__globals__.os.environ }}",
    "constant": "{{ ([1]|groupby('real'))[0].__repr__.__func__.__globals__ }}",
    "loop": "{% for i in range(10**9) %}x{% endfor %}",
    "memory": "{{ 'x' * 10**10 }}",
    "power": "{{ 9**(9**9) }}",
    "deep": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
}


@attack("M7", "container")
def test_template_of_pull_request_does_not_hide_verdict(make_job: MakeJob) -> None:
    wrong = {}
    for name, template in TEMPLATES.items():
        job = make_job()
        job.write({**FAILING, "t.md": template})
        ran = job.run("agentci.yaml", inputs={"comment-template": "t.md"}, cpu_seconds=30)
        shown = job.read_all_output(ran)
        comment = job.workspace / "agentci-results" / "comment.md"
        first = comment.read_text().startswith(SHOWN_FIRST) if comment.exists() else ran.code == 2
        secrets = (KEY_SECRET, TOKEN_SECRET, VARIABLE_SECRET, "root:")
        if ran.code not in (1, 2) or not first or any(each in shown for each in secrets):
            wrong[name] = (ran.code, shown[-500:])
        job.remove()
    assert wrong == {}


def list_files_as(changed: object) -> Callable[[Asked], Answer]:
    """GitHub's API with these changed files of the pull request."""
    body = changed if isinstance(changed, str) else json.dumps(changed)
    headers = {"Content-Type": "application/json"}
    found = Answer(body=body.encode(), headers=headers)
    return lambda asked: found if "/files" in asked.path else Answer(status=404)


DIFFS: Mapping[str, object] = {
    "digits": [{"filename": "agentci.yaml", "patch": f"@@ -1 +{'9' * 5_000},1 @@"}],
    "range": [{"filename": "agentci.yaml", "patch": f"@@ -1 +1,{'9' * 9} @@\n" * 1_000}],
    "many": [{"filename": "agentci.yaml", "patch": "@@ -1 +1 @@\n" * 500_000}],
    "types": [{"filename": {}, "patch": []}, {"filename": "agentci.yaml", "patch": 7}, None, 3],
    "object": {"filename": "agentci.yaml"},
    "deep": "[" * 100_000,
    "command": [
        {"filename": "agentci.yaml", "patch": "\n::error::forged\n@@ -1 +1 @@\r\n::set-env::x"}
    ],
}


@attack("M8", "container")
def test_diff_of_pull_request_changes_no_verdict(make_job: MakeJob) -> None:
    wrong = {}
    for name, changed in DIFFS.items():
        job = make_job()
        job.write(FAILING)
        with serve(list_files_as(changed)) as api:
            ran = job.run("agentci.yaml", environ={"GITHUB_API_URL": api.url}, cpu_seconds=30)
        if ran.code != 1 or find_forged_commands(ran.out + ran.err):
            wrong[name] = (ran.code, (ran.out + ran.err)[-500:])
        job.remove()
    assert wrong == {}
