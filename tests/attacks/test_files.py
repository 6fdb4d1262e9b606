"""Evaluators cannot read files outside the workspace and the system's, by whatever link."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.job import (
    CODE_ENTRY,
    FILE_SECRET,
    KEY_SECRET,
    PROGRAMS,
    TOKEN_SECRET,
    VARIABLE_SECRET,
    Job,
    Link,
    details_of,
)
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran

# Prints the content of a file as a detail.
SHELL_PROGRAM = """\
#!{interpreter}
found=$(cat '{path}' 2>&1 | tr '"' ' ')
printf '{{"score": 1, "details": {{"found": "%s"}}}}' "$found"
"""


def shell_program(path: Path, interpreter: str = "/bin/sh") -> str:
    return SHELL_PROGRAM.format(path=path, interpreter=interpreter)


def read_in_python(job: Job, path: str) -> None:
    """Make a Python program that reads a file the evaluator, in a process of its own."""
    job.add_program("reads_files", isolation="spawn", config={"paths": [path]})


def assert_secret_stays(job: Job, ran: Ran) -> None:
    """The file's content is nowhere, and the program was refused it or did not run at all."""
    assert FILE_SECRET not in job.read_all_output(ran)
    if ran.code not in (2, 3):
        assert "ermission denied" in json.dumps(details_of(ran)), ran.out


@attack("F1", "container", "user", "root")
def test_lib_folder_beside_program_is_link_outside(job: Job) -> None:
    credentials = job.add_credentials()
    job.write({"bin/ev.sh": shell_program(credentials), "lib": Link(str(credentials.parent))})
    job.configure({**CODE_ENTRY, "path": "bin/ev.sh"})
    assert_secret_stays(job, job.run())


@attack("F1b", "container", "user", "root")
def test_program_reads_file_outside_by_its_path(job: Job) -> None:
    credentials = job.add_credentials()
    job.write({"bin/ev.sh": shell_program(credentials)})
    job.configure({**CODE_ENTRY, "path": "bin/ev.sh"})
    assert_secret_stays(job, job.run())


@attack("F2", "container", "user", "root")
def test_command_names_executable_beside_secret(job: Job) -> None:
    credentials = job.add_credentials()
    judge = f"""\
import json
try:
    found = open({str(credentials)!r}).read()
except OSError as error:
    found = str(error)
print(json.dumps({{"score": 1, "hits": [found], "misses": [], "reasoning": found}}))
"""
    command = ["python3", "judge.py", str(credentials.parent / "run.sh")]
    job.write_eval({"name": "judge", "type": "code_judge", "command": command})
    job.write({"judge.py": judge})
    ran = job.run("a.eval.yaml")
    assert FILE_SECRET not in job.read_all_output(ran)
    if ran.code not in (2, 3):
        assert "ermission denied" in json.dumps(ran.results), ran.out


@attack("F3", "container", "user", "root")
def test_interpreter_is_link_beside_linked_lib_folder(job: Job) -> None:
    credentials = job.add_credentials()
    interpreter = job.workspace / "tools" / "bin" / "run"
    job.write(
        {
            "ev.x": shell_program(credentials, str(interpreter)),
            "tools/lib": Link(str(credentials.parent)),
            "tools/bin/run": Link("/bin/sh"),
        }
    )
    job.configure({**CODE_ENTRY, "path": "ev.x"})
    assert_secret_stays(job, job.run())


@attack("F4", "container", "root")
def test_closed_checkout_does_not_open_files_of_root(job: Job) -> None:
    folder = job.top / "of-root"
    folder.mkdir(mode=0o700)
    (folder / "key").write_text(FILE_SECRET)
    (folder / "key").chmod(0o600)
    job.write({"bin/ev.sh": shell_program(folder / "key"), "lib": Link(str(folder))})
    job.configure({**CODE_ENTRY, "path": "bin/ev.sh"})
    job.workspace.chmod(0o700)
    assert_secret_stays(job, job.run())


@attack("F5", "container", "user")
def test_variables_of_job_are_not_put_into_reports(job: Job) -> None:
    names = ("MY_SECRET", "ACTIONS_RUNTIME_TOKEN", "OPENAI_API_KEY", "INPUT_GITHUB-TOKEN")
    text = " ".join(f"${{{{ {name} }}}}" for name in names)
    job.write_eval({"name": "same", "type": "equals", "value": text}, text=text)
    ran = job.run("a.eval.yaml", environ={"ACTIONS_RUNTIME_TOKEN": TOKEN_SECRET})
    shown = job.read_all_output(ran)
    for secret in (VARIABLE_SECRET, TOKEN_SECRET, KEY_SECRET):
        assert secret not in shown
    assert ran.code in (1, 2), ran.out


# Characters that formats escape.
ODD_SECRET = 'Tr0ub4dor&3 "x"/<y>%\'z_*'
SPELLS = """\
import base64, html, json, os, sys, urllib.parse
secret = os.environ["MY_SECRET"]
data = secret.encode()
spellings = [
    secret, repr(secret), json.dumps(secret), html.escape(secret),
    *(base64.b64encode(b"xy"[:n] + data + b"z" * n).decode() for n in range(3)),
    base64.urlsafe_b64encode(data).decode(), data.hex(), data.hex().upper(),
    urllib.parse.quote(secret), urllib.parse.quote_plus(secret, safe="")
]
sys.stderr.write("\\n".join(spellings))
details = {"issues": spellings, secret: {secret: [secret]}}
print(json.dumps({"score": 0.0, "details": details}))
"""


@attack("F11", "container", "user")
def test_allowed_variable_is_masked_in_every_spelling(job: Job) -> None:
    job.write({"ev.py": SPELLS})
    job.configure({**CODE_ENTRY, "env": ["MY_SECRET"]})
    allowed = {"env-allow": "MY_SECRET"} if job.mode == "container" else {}
    ran = job.run(inputs={"evaluator-io": "all", **allowed}, environ={"MY_SECRET": ODD_SECRET})
    assert ran.code == 1, ran.out + ran.err
    shown = job.read_all_output(ran)
    data = ODD_SECRET.encode()
    encoded = [base64.b64encode(b"xy"[:n] + data)[4:24].decode() for n in range(3)]
    parts = ("Tr0ub4dor", data.hex()[:20], *encoded)
    assert [part for part in parts if part.lower() in shown.lower()] == []
    assert "***" in shown


@attack("F12", "container")
def test_workflow_cannot_allow_credentials_of_its_job(make_job: MakeJob) -> None:
    names = ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
    codes = {}
    for name in names:
        job = make_job()
        job.write({"ev.py": "import os\nprint(dict(os.environ))\n"})
        job.configure({**CODE_ENTRY, "env": [name]})
        ran = job.run(inputs={"env-allow": "*"}, environ=dict.fromkeys(names, TOKEN_SECRET))
        assert TOKEN_SECRET not in job.read_all_output(ran)
        codes[name] = ran.code
    assert codes == dict.fromkeys(names, 2)


CHANGES_MODELS = """\
from attempts import CONFIG, attempt, report
import os
folder = os.environ["MODELS"]
for path in CONFIG["paths"]:
    attempt(path, lambda: open(path).read())
attempt("new", lambda: open(folder + "/new", "w"))
attempt("truncate", lambda: open(folder + "/weights", "w"))
attempt("remove", lambda: os.remove(folder + "/weights") or True)
attempt("rename", lambda: os.rename(folder, folder + "2") or True)
attempt("link", lambda: os.link(folder + "/weights", os.environ["TMPDIR"] + "/w") or True)
report()
"""


@attack("F13", "container", "user", "root")
def test_folder_with_models_opens_nothing_else_and_cannot_be_changed(job: Job) -> None:
    credentials = job.add_credentials()
    models = job.home / "models"
    models.mkdir()
    (models / "weights").write_text("weights")
    (models / "out").symlink_to(credentials)
    job.write({"attempts.py": (PROGRAMS / "attempts.py").read_text()})
    paths = [f"{models}/weights", f"{models}/out", f"{models}/../actions-runner/credentials"]
    job.write({"ev.py": CHANGES_MODELS})
    config = {"paths": [*paths, str(credentials)]}
    job.configure({**CODE_ENTRY, "cache_dirs": ["MODELS"], "config": config})
    ran = job.run(inputs={"evaluator-cache": f"MODELS={models}"})
    assert FILE_SECRET not in job.read_all_output(ran)
    details = details_of(ran)
    assert details["done"] == {paths[0]: "'weights'"}
    assert len(details["refused"]) == 8
    assert (models / "weights").read_text() == "weights"


@attack("F6", "container", "user")
def test_pythonpath_folder_in_checkout_is_link_outside(job: Job) -> None:
    credentials = job.add_credentials()
    job.write({"src": Link(str(credentials.parent))})
    read_in_python(job, str(credentials))
    assert_secret_stays(job, job.run(environ={"PYTHONPATH": str(job.workspace / "src")}))


@attack("F7", "container", "user")
def test_program_folder_in_checkout_is_link_outside(job: Job) -> None:
    credentials = job.add_credentials()
    job.write({"node_modules/.bin": Link(str(credentials.parent))})
    read_in_python(job, str(credentials))
    path = f"{job.workspace}/node_modules/.bin:{job.variables()['PATH']}"
    assert_secret_stays(job, job.run(environ={"PATH": path}))


@attack("F8", "container", "user")
def test_data_folder_of_program_is_link_outside(job: Job) -> None:
    credentials = job.add_credentials()
    job.write({"data": Link(str(credentials.parent))})
    read_in_python(job, "data/credentials")
    assert_secret_stays(job, job.run())


OUTSIDE: Mapping[str, Mapping[str, Any]] = {
    "program": {"evaluators": [{**CODE_ENTRY, "path": "out/ev.py"}]},
    "traces": {"traces": "out/trace.json"},
    "eval set": {
        "eval_set": "out/set.json",
        "evaluators": [{"name": "tool_trajectory_avg_score", "type": "builtin"}],
    },
    "prompt": {
        "judge": {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"},
        "evaluators": [{"name": "p", "type": "prompt", "prompt": "out/p.md", "threshold": 0.5}],
    },
}


@attack("F9", "container")
def test_paths_of_config_lead_out_of_workspace(make_job: MakeJob) -> None:
    codes = {}
    for name, changed in OUTSIDE.items():
        job = make_job()
        outside = job.top / "outside"
        outside.mkdir()
        (outside / "ev.py").write_text("print('{\"score\": 1}')")
        (outside / "trace.json").write_text(otlp())
        (outside / "set.json").write_text(eval_set())
        (outside / "p.md").write_text("{{ response }}")
        job.write({"ev.py": "print('{\"score\": 1}')", "out": Link(str(outside))})
        config = {"traces": "trace.json", "evaluators": [CODE_ENTRY], **changed}
        job.write({"agentci.yaml": json.dumps(config)})
        codes[name] = job.run().code
    assert codes == dict.fromkeys(OUTSIDE, 2)


@attack("F10", "container", "user", "root")
def test_processes_of_others_are_closed(job: Job) -> None:
    job.add_program("reads_proc")
    found = details_of(job.run())
    assert found["others"] > 0
    assert found["done"] == {}
