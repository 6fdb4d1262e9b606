"""Hostile inputs end in an error, a failed gate or their own text: never in a crash or a pass."""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests._util.http.servers import Answer, Asked, serve
from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.documented import NUMBERS_IN_TEXTS
from tests.attacks.job import CODE_ENTRY, HEAD, Files, Job, results_of
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran

# Much more than a run needs, and much less than a bomb takes.
CPU_SECONDS = 30
FAILS = "print('{\"score\": 0}')\n"
CONFIG = """\
traces: trace.json
evaluators:
- name: ev
  type: code
  path: ev.py
  threshold: 1.0
"""
DOUBLING = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{key}: &{key} [{','.join([f'*{before}'] * 9)}]\n"
    for before, key in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGES = "x0: &x0 {a: 1}\n" + "".join(
    f"x{number}: &x{number}\n  <<: [*x{number - 1}, *x{number - 1}]\n" for number in range(1, 60)
)
BOMBS: Mapping[str, Files] = {
    "aliases": {"agentci.yaml": DOUBLING + CONFIG},
    "aliases in lock": {"agentci.lock": DOUBLING},
    "deep flow": {"agentci.yaml": "a: " + "[" * 100_000},
    "deep block": {"agentci.yaml": "\n".join(f"{' ' * depth}a:" for depth in range(5000))},
    "chain of merges": {"agentci.yaml": MERGES + CONFIG},
    "alias of itself": {"agentci.yaml": "a: &a [*a]\n" + CONFIG},
    "long number": {"agentci.yaml": CONFIG.replace("1.0", "9" * 200_000)},
    "sexagesimal number": {"agentci.yaml": CONFIG.replace("1.0", ":".join(["59"] * 100_000))},
    "tag of Python": {
        "agentci.yaml": "a: !!python/object/apply:os.system ['touch built']\n" + CONFIG
    },
    "threshold twice": {"agentci.yaml": CONFIG + "  threshold: 0.0\n"},
    "merged threshold": {
        "agentci.yaml": "traces: trace.json\nd: &d {threshold: 0.0, required: false}\n"
        "evaluators:\n- {<<: *d, name: ev, type: code, path: ev.py}\n"
    },
    "deep JSON": {"trace.json": "[" * 1_000_000},
    "long JSON number": {"trace.json": f"[{'1' * 5_000_000}]"},
    "JSON key twice": {"trace.json": otlp()[:-1] + ',"resourceSpans":[]}'},
    "gzip of 300 MiB": {
        "trace.json": gzip.compress(b'{"resourceSpans":[') + gzip.compress(bytes(1024**2)) * 300,
    },
    "20,000 gzip members": {"trace.json": gzip.compress(b" " * 1000) * 20_000},
    "NUL in path": {"agentci.yaml": CONFIG.replace("ev.py", '"ev\\0.py"')},
    "escaped lines": {"agentci.yaml": 'a: "' + "\\\n" * 300_000 + '"\n' + CONFIG},
    "long comment": {"agentci.yaml": "#" * 900_000 + "\n" + CONFIG},
    "anchors": {"agentci.yaml": "".join(f"k{n}: &a{n} x\n" for n in range(30_000)) + CONFIG},
    "nested globs": {"agentci.yaml": CONFIG.replace("trace.json", f"'{'**/' * 30}x*'")},
    "glob of asterisks": {"agentci.yaml": CONFIG.replace("trace.json", f"'{'*' * 60}b.json'")},
    "named pipe": {},
}


@attack("X2", "user")
def test_bombs_are_errors_in_bounded_time(make_job: MakeJob) -> None:
    wrong = {}
    for name, files in BOMBS.items():
        job = make_job()
        job.write({"agentci.yaml": CONFIG, "ev.py": FAILS})
        if name == "named pipe":
            (job.workspace / "trace.json").unlink()
            os.mkfifo(job.workspace / "trace.json")
        job.write(files)
        ran = job.run(cpu_seconds=CPU_SECONDS)
        if ran.code not in (1, 2, 3) or (job.workspace / "built").exists():
            wrong[name] = (ran.code, (ran.out + ran.err)[-500:])
        job.remove()
    assert wrong == {}


RESPONSES = {
    "not a number": "print('{\"score\": NaN}')",
    "infinite": "print('{\"score\": 1e999}')",
    "two documents": 'print(\'{"score": 0}{"score": 1}\')',
    "two lines": 'print(\'{"score": 0}\\n{"score": 1}\')',
    "text": 'print(\'{"score": "1"}\')',
    "true": "print('{\"score\": true}')",
    "key twice": 'print(\'{"score": 0, "score": 1}\')',
    "above 1": "print('{\"score\": 1.5}')",
    "negative zero": "print('{\"score\": -0.0}')",
    "tiny": "print('{\"score\": 1e-400}')",
    "digits": "print('{\"score\": 1' + '0' * 5000 + '}')",
    "nothing": "",
    "chatter": "print('hello {\"score\": 1}')",
    "exit code": "print('{\"score\": 1}'); raise SystemExit(1)",
    "killed": "import os; print('{\"score\": 1}', flush=True); os.kill(os.getpid(), 9)",
    "deep": "print('{\"score\": 1, \"details\": ' + '[' * 100000 + ']' * 100000 + '}')",
    "UTF-16": "import sys; sys.stdout.buffer.write('{\"score\": 1}'.encode('utf-16'))",
    "failed with score 1": 'print(\'{"score": 1, "status": "FAILED"}\')',
    "passed without score": 'print(\'{"score": null, "status": "PASSED"}\')',
}


@attack("X5", "user")
def test_ambiguous_responses_are_no_passes(job: Job) -> None:
    files = {f"ev{number}.py": f"{each}\n" for number, each in enumerate(RESPONSES.values())}
    job.write(files)
    job.configure(*({**CODE_ENTRY, "name": file[:-3], "path": file} for file in files))
    ran = job.run()
    assert ran.code in (1, 3), ran.out
    results = dict(zip(RESPONSES, results_of(ran), strict=True))
    passed = {name: each for name, each in results.items() if each["status"] == "passed"}
    assert passed.keys() - NUMBERS_IN_TEXTS == set(), passed


EVENT = {
    "action": "completed",
    "workflow_run": {
        "id": 5,
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "b",
        "head_repository": {"full_name": "f/r", "owner": {"login": "f"}},
        "conclusion": "failure",
        "html_url": "https://x",
    },
    "repository": {"full_name": "o/r"},
}
PULL = {"number": 7, "state": "open", "head": {"sha": HEAD, "repo": {"full_name": "f/r", "id": 2}}}
Edit: TypeAlias = Callable[[Any], object]
FORGED_REASON = "all passed @org/team https://evil.example [a](b) <script>"


def answer_as_github(asked: Asked) -> Answer:
    """GitHub's API, with one open pull request and no comments."""
    content: Any = []
    if "/pulls?" in asked.path:
        content = [{**PULL, "base": {"repo": {"full_name": "o/r"}}}]
    elif asked.path.endswith("/pulls/7"):
        content = PULL
    elif asked.method != "GET":
        content = {"id": 1, "html_url": "x"}
    return Answer(body=json.dumps(content).encode(), headers={"Content-Type": "application/json"})


def edit(change: Edit) -> Callable[[Path, Any], None]:
    """Write the report after a change of its content."""

    def write(file: Path, report: Any) -> None:
        change(report)
        file.write_text(json.dumps(report))

    return write


def replace_folder(file: Path, _: Any) -> None:
    file.parent.rmdir()
    file.parent.symlink_to("/etc")


def write_huge_numbers(file: Path, report: Any) -> None:
    file.write_text(json.dumps(report).replace('"checks": 1', f'"checks": {"9" * 4000}'))


def write_lone_surrogates(file: Path, report: Any) -> None:
    file.write_text(json.dumps(report).replace("ev.py", "\\ud800\\u0000"))


ARTIFACTS: Mapping[str, Callable[[Path, Any], object]] = {
    "forged verdict": edit(
        lambda report: report["decision"].update(passed=True, exit_code=0, reasons=[FORGED_REASON])
    ),
    "number of a pull request": edit(lambda report: report.update(pull_request=99)),
    "link to the event": lambda file, _: file.symlink_to("../../commands/event.json"),
    "link to the environment": lambda file, _: file.symlink_to("/proc/self/environ"),
    "folder is a link": replace_folder,
    "100 MiB": lambda file, _: file.write_bytes(b"[" + b" " * 100 * 1024**2 + b"]"),
    "60 MiB of brackets": lambda file, _: file.write_bytes(b"[" * 60 * 1024**2),
    "400,000 reasons": edit(
        lambda report: report["decision"].update(reasons=["y" * 100] * 400_000)
    ),
    "huge numbers": write_huge_numbers,
    "negative totals": edit(lambda report: report["totals"].update(checks=-5, passed=10**30)),
    "named pipe": lambda file, _: os.mkfifo(file),
    "folder": lambda file, _: file.mkdir(),
    "lone surrogates": write_lone_surrogates,
}


def post_report(
    job: Job, write: Callable[[Path, Any], object], report: Any
) -> tuple[Ran, list[Asked]]:
    """Post a report of a fork in the workflow that runs after the fork's; return all requests."""
    job.write_event_file(EVENT)
    (job.workspace / "report").mkdir()
    write(job.workspace / "report" / "results.json", json.loads(json.dumps(report)))
    with serve(answer_as_github) as api:
        environ = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_API_URL": api.url}
        inputs = {"comment-report": "report", "comment": "always"}
        ran = job.run(None, inputs=inputs, environ=environ, cpu_seconds=60)
        return ran, [*api.asked]


@attack("X3", "container")
def test_artifacts_of_forks_post_only_neutral_text(make_job: MakeJob) -> None:
    fork = make_job()
    issues = {"issues": ["@octocat [x](https://evil) <img src=x> #1"]}
    response = json.dumps({"score": 0, "details": issues})
    fork.write({"ev.py": f"print({response!r})\n"})
    fork.configure()
    fork.run()
    report = json.loads((fork.workspace / "agentci-results" / "results.json").read_text())
    ran, asked = post_report(make_job(), edit(lambda report: report), report)
    assert [each.path for each in asked if each.method != "GET"], ran.out

    wrong: dict[str, Any] = {}
    for name, write in ARTIFACTS.items():
        job = make_job()
        ran, asked = post_report(job, write, report)
        posts = [each for each in asked if each.method != "GET"]
        texts = [each.body.decode() for each in posts]
        forged = [
            part
            for part in ("@org/team", "https://evil.example [a](b)", "<script>")
            if any(part in text for text in texts)
        ]
        if ran.code not in (0, 1, 2) or forged or any("99" in each.path for each in posts):
            wrong[name] = (ran.code, forged, [each.path for each in posts], ran.out[-500:])
        job.remove()
    assert wrong == {}


def set_all(**values: Any) -> Edit:
    return lambda report: [result.update(values) for result in report["results"]]


def lower_thresholds(report: Any) -> None:
    for gate in report["gates"]:
        gate["policy"]["overall"].update(min_pass_rate=0)


def drop_checks(report: Any) -> None:
    report["results"].clear()
    report["shard"]["checks"].clear()


SHARD_EDITS: Mapping[str, Edit] = {
    "nothing": lambda _: None,
    "verdict": lambda report: report["decision"].update(passed=True, exit_code=0),
    "totals": lambda report: report["totals"].update(passed=3, failed=0),
    "no results": lambda report: report["results"].clear(),
    "no results and checks": drop_checks,
    "no gates": lambda report: report.update(gates=[]),
    "lower threshold in one shard": lower_thresholds,
    "not required": set_all(required=False),
    "skipped": set_all(status="skipped", score=None),
    "shard 1 of 1": lambda report: report["shard"].update(index=1, total=1),
    "no shard": lambda report: report.update(shard=None),
    "passed": set_all(status="passed", score=1.0),
}


@attack("X4", "user")
def test_edited_shards_do_not_pass(job: Job) -> None:
    entries = [{**CODE_ENTRY, "name": f"e{number}"} for number in range(3)]
    job.write({"ev.py": FAILS, "second.json": otlp("another question", calls=(), trace=2)})
    job.configure(*entries, traces=["trace.json", "second.json"])
    for shard in ("1/2", "2/2"):
        ran = job.execute("run", "--shard", shard, "--output-dir", f"shards/{shard[0]}")
        assert ran.code == 1, ran.out
    shards = job.workspace / "shards"
    passed = {}
    for name, change in SHARD_EDITS.items():
        edited = job.workspace / "edited"
        shutil.copytree(shards, edited)
        file = edited / "1" / "results.json"
        report = json.loads(file.read_text())
        change(report)
        file.write_text(json.dumps(report))
        ran = job.execute("merge", "edited")
        if ran.code not in (1, 2):
            passed[name] = (ran.code, ran.out[:300])
        shutil.rmtree(edited)
    assert passed == {}


MODULES = (
    *("json.py", "yaml.py", "sitecustomize.py", "usercustomize.py", "agentci/__init__.py"),
    *("msgspec.py", "pydantic.py", "conftest.py", "evil.pth", "encodings/__init__.py", "os.py"),
    *("ssl.py", "socket.py"),
)
TOOLS = ("python", "python3", "uv", "node", "bin/uv", "git")
SETTINGS = {
    "pip.conf": "[global]\nindex-url=http://127.0.0.1:9\n",
    ".netrc": "x",
    "uv.toml": "x",
    "pyvenv.cfg": "home = .\n",
    ".python-version": "x",
    "package.json": '{"type": "module"}',
}


@attack("X6", "container", "user")
def test_modules_and_tools_of_checkout_do_not_run_outside_of_sandbox(job: Job) -> None:
    # Evaluators cannot write to it, so whatever writes to it runs outside the sandbox.
    marker = job.top / "marker"
    marker.touch()
    marker.chmod(0o666)
    module = f"try: open({str(marker)!r}, 'a').write(__file__ + '\\n')\nexcept OSError: pass\n"
    tool = f"#!/bin/sh\necho $0 >> {marker}\nexit 1\n"
    job.write({f"{folder}{name}": module for name in MODULES for folder in ("", "evals/")})
    job.write(dict.fromkeys((*TOOLS, "monitor.sh", "hooks/post-checkout"), tool))
    job.write(SETTINGS)
    job.write({"evals/ev.py": "import statistics\nprint('{\"score\": 1}')\n"})
    job.write(
        {"evals/agentci.yaml": json.dumps({"traces": "trace.json", "evaluators": [CODE_ENTRY]})}
    )
    job.write({"evals/trace.json": otlp()})
    job.commit()
    git_config = (
        f"[core]\n\tfsmonitor = {job.workspace}/monitor.sh\n\thooksPath = {job.workspace}/hooks\n"
    )
    with (job.workspace / ".git" / "config").open("a") as file:
        file.write(git_config)
    ran = job.run("evals/agentci.yaml")
    assert marker.read_text() == ""
    assert ran.code in (0, 1, 2, 3), ran.err


def link_folder(workspace: Path, outside: Path) -> None:
    (workspace / "agentci-results").symlink_to(outside)


def link_files(workspace: Path, outside: Path) -> None:
    (workspace / "agentci-results").mkdir()
    for name in ("results.json", "junit.xml", "summary.md", "report.html", "comment.md"):
        (workspace / "agentci-results" / name).symlink_to(outside / "victim")


def link_parent(workspace: Path, _: Path) -> None:
    (workspace / "agentci-results").symlink_to("..")


@attack("X7", "container", "user")
def test_linked_outputs_are_not_followed(make_job: MakeJob) -> None:
    for link in (link_folder, link_files, link_parent):
        job = make_job()
        outside = job.home / "outside"
        outside.mkdir()
        for name in ("results.json", "victim"):
            (outside / name).write_text("precious")
        job.write({"ev.py": FAILS})
        job.configure()
        link(job.workspace, outside)
        before = {path.name for path in job.top.iterdir()}
        ran = job.run()
        assert ran.code in (1, 2), ran.out
        assert {path.name: path.read_text() for path in outside.iterdir()} == {
            "results.json": "precious",
            "victim": "precious",
        }
        assert {path.name for path in job.top.iterdir()} == before
