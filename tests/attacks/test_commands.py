"""Commands that people run in the checkout of a hostile pull request: `init`, `accept`, `show`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.attacks.attack import attack
from tests.attacks.conftest import MakeJob
from tests.attacks.hostile_text import ALL, TEXTS
from tests.attacks.job import Job, Link
from tests.attacks.test_reports import CONFIG, CONTROLS, find_forged_commands, write_hostile_eval
from tests.helpers.recordings import otlp

WORKFLOW = ".github/workflows/agent-eval.yml"
OWN_CHECKS = "traces: trace.json\nchecks:\n- no_secrets: true\n"
AGENT = "import sys\nprint(sys.argv[1])\n"
REPOSITORIES: Mapping[str, Mapping[str, str | Link]] = {
    "expression": {"${{ secrets.KEY }}/agentci.yaml": OWN_CHECKS},
    "expression in traces": {"eval_config.yaml": "x: 1\n", "traces/${{ x }}/trace.json": otlp()},
    "line break": {"a\n      - run: touch x\n/agentci.yaml": OWN_CHECKS},
    "quotes": {"\"' #\\/agentci.yaml": OWN_CHECKS},
    "colon": {"a: b/agentci.yaml": OWN_CHECKS},
    "deep manifest": {"package.json": "[" * 200_000, "agent.py": AGENT},
    "link to folder": {".github": Link("../home"), "agent.py": AGENT},
    "link to workflow": {WORKFLOW: Link("../../../home/x.yml"), "agent.py": AGENT},
    "link to config": {"agentci.yaml": Link("../home/x.yaml"), "agent.py": AGENT},
    "link to cases": {"evals": Link("../home"), "agent.py": AGENT},
    "link to .gitignore": {".gitignore": Link("../home/x"), "agent.py": AGENT},
    "link to device": {"agentci.yaml": Link("/dev/zero"), "agent.py": AGENT},
}


def read_steps(workspace: Path) -> list[Any]:
    """Return the steps of the workflow; none without one."""
    path = workspace / WORKFLOW
    if not path.is_file():
        return []
    steps: list[Any] = yaml.safe_load(path.read_text())["jobs"]["eval"]["steps"]
    return steps


# Of steps that `init` writes itself.
EXPRESSIONS = re.compile(
    re.escape("${{ !cancelled() }}") + "|" + re.escape("${{ steps.page.outputs.artifact-url }}")
)


@attack("N5", "user")
def test_names_in_repository_add_nothing_to_generated_workflow(make_job: MakeJob) -> None:
    wrong = {}
    for name, files in REPOSITORIES.items():
        job = make_job()
        job.write(files)
        job.write({"traces-\udcff/recorded.json": otlp()})
        ran = job.execute("init", "--yes", cpu_seconds=60)
        steps = read_steps(job.workspace)
        runs = [step for step in steps if "run" in step]
        others = [EXPRESSIONS.sub("", json.dumps(step)) for step in steps]
        is_forged = any("${{" in step for step in others) or runs
        left = [*job.home.iterdir(), *job.workspace.glob("x")]
        if ran.code not in (0, 1, 2) or is_forged or left or "Traceback" in ran.err:
            wrong[name] = (ran.code, steps, (ran.out + ran.err)[-500:])
        job.remove()
    assert wrong == {}


YAML_TEXTS = (
    *(
        "a\nchecks:\n- no_secrets: false\n",
        "- x: y",
        "{a: b}",
        "!!python/object/apply:os.system [id]",
    ),
    *("&a *a", "--- \n...\n", "%YAML 1.1", "<<: *x", "# c", "\u2028x: 1", "\ufeff", "\t- a"),
)


@attack("N6", "user")
def test_accepted_runs_are_one_case_each_whatever_they_hold(job: Job) -> None:
    texts = [each for each in (*YAML_TEXTS, *TEXTS) if each.strip() and "\ud800" not in each]
    traces = [
        otlp(text, text, calls=[(text, {text: text})], trace=number)
        for number, text in enumerate(texts, start=1)
    ]
    job.write({"trace.json": "\n".join(traces), "agentci.yaml": OWN_CHECKS})
    ran = job.execute("accept", "--all", cpu_seconds=120)
    assert ran.code in (0, 1), ran.err
    written = yaml.safe_load((job.workspace / "evals/cases.yaml").read_text())
    assert written.keys() == {"eval_cases"}
    found = [case["input"] for case in written["eval_cases"]]
    assert len(found) > len(texts) * 0.8
    assert set(found) <= set(texts)
    assert len({case["id"] for case in written["eval_cases"]}) == len(found)
    log = ran.out + ran.err
    assert find_forged_commands(log) == []
    assert [each for each in CONTROLS if each in log] == []


@attack("N7", "user")
def test_links_lead_no_accepted_case_out_of_workspace(make_job: MakeJob) -> None:
    codes = {}
    options: Mapping[str, tuple[str, ...]] = {
        "config": (),
        "option": ("--eval-set", "e/cases.yaml"),
    }
    for name, words in options.items():
        for link, target in (("e", "../home"), ("e/cases.yaml", "../../home/x.yaml")):
            job = make_job()
            job.write({link: Link(target), "agentci.yaml": f"eval_set: e/cases.yaml\n{OWN_CHECKS}"})
            codes[f"{name} {link}"] = job.execute("accept", "--all", *words).code
            assert [*job.home.iterdir()] == []
            job.remove()
    assert set(codes.values()) == {2}, codes


@attack("N8", "user")
def test_other_commands_print_no_commands_and_control_characters(job: Job) -> None:
    write_hostile_eval(job)
    job.execute("run", CONFIG, "--output-dir", "one")
    commands = (
        *(("show", "trace.json"), ("show", "one/results.json"), ("plan", CONFIG)),
        *(("validate", CONFIG), ("compare", "one", "one"), ("merge", "one"), ("lock", CONFIG)),
        ("run", CONFIG, "--only", ALL.replace("\0", "").replace("\ud800", "")[:500]),
        ("show", ALL.replace("\0", "").replace("\ud800", "")[:100]),
    )
    wrong = {}
    for command in commands:
        ran = job.execute(*command, environ={"GITHUB_ACTIONS": "true"})
        log = ran.out + ran.err
        controls = [each for each in (*CONTROLS, "\r") if each in log]
        if ran.code not in (0, 1, 2) or find_forged_commands(log) or controls:
            wrong[command] = (ran.code, find_forged_commands(log)[:3], controls, ran.err[-300:])
    assert wrong == {}
