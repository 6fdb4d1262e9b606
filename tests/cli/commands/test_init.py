"""``agentci init`` in repositories as people have them: what it finds, writes and leaves alone."""

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from agentci.cli.commands.init import (
    CHECKOUT,
    DOWNLOAD,
    SETUP_PYTHON,
    UPLOAD,
    init_project,
)
from examples.agents.mock_model import mock_model
from tests.helpers.actionlint import complaints
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.repositories import repository
from tests.helpers.support import ROOT, make_session, run_agentci
from tests.record.recorded import AGENT as AGENT_PROGRAM
from tests.record.recorded import make_environment

BIN = Path(sys.executable).parent
MAX_LINES = 47
EXAMPLE = ROOT / "examples/workflows/pull-request.yml"
WORKFLOW = ".github/workflows/agent-eval.yml"
AGENT = "import sys\nfrom openai import OpenAI\nprint(sys.argv[1])\n"
AGENTEVALS = "evaluators: [{name: response_match_score, type: builtin}]\neval_set: set.json\n"
AGENTV = "tests:\n- {id: a, criteria: x, input: Hi, assertions: [{type: contains, value: Hi}]}\n"
NODE = json.dumps({"scripts": {"agent": "node a.js"}, "dependencies": {"ai": "5.0.0"}})

# The files of a repository, what init says, and the inputs of the action besides `config`.
UNKNOWN = {"record": "AGENT_COMMAND {input}", "cases": "evals/cases.yaml", "replay": True}
REPOSITORIES: Mapping[str, tuple[Mapping[str, str], str, Mapping[str, object]]] = {
    "empty": ({}, "found no agent, traces or configs", UNKNOWN),
    "python": (
        {"agent.py": AGENT, "requirements.txt": "openai==2.0\n"},
        "found framework: openai",
        {"record": "python agent.py {input}", "cases": "evals/cases.yaml", "replay": True},
    ),
    "traces": (
        {"recordings/a.jsonl": otlp(), "recordings/b.jsonl": otlp(trace=2), "agent.py": AGENT},
        "found traces: recordings/*.jsonl",
        {},
    ),
    "adk-old-test-file": (
        {
            "traces/a.jsonl": otlp(),
            "agent/hi.test.json": '[{"query": "Hi", "expected_tool_use": [], "reference": "Hi"}]',
        },
        "found eval set: agent/hi.test.json",
        {},
    ),
    "eval-set": (
        {"traces/a.jsonl": otlp(), "evals/golden.json": eval_set()},
        "found eval set: evals/golden.json",
        {},
    ),
    "agentevals": (
        {"eval_config.yaml": AGENTEVALS, "set.json": eval_set(), "traces/a.jsonl": otlp()},
        "found config: eval_config.yaml",
        {"traces": "traces/*.jsonl"},
    ),
    "agentv": ({"evals/a.eval.yaml": AGENTV}, "found config: evals/a.eval.yaml", {}),
    "pytest": (
        {"pyproject.toml": "[project]\ndependencies = ['langgraph>=1']\n", "tests/conftest.py": ""},
        "found tests: pytest",
        UNKNOWN,
    ),
    "adk": (
        {
            "pyproject.toml": '[project]\ndependencies = ["google-adk"]\n',
            "src/agent.py": "root_agent = 1\n",
            "tests/a.test.json": eval_set(),
        },
        "docs/frameworks.md#google-adk",
        {"record": "python src/agent.py", "replay": True},
    ),
    "node": (
        {"package.json": NODE, "package-lock.json": "{}"},
        "found framework: ai",
        {"record": "npm run --silent agent", "replay": True},
    ),
    "own-config": (
        {
            "agentci.yaml": "traces: t/*.jsonl\nchecks: [no_secrets: true]\n",
            "t/trace.jsonl": otlp(),
        },
        "found config: agentci.yaml",
        {},
    ),
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def check_workflow(folder: Path) -> Mapping[str, object]:
    """Check the workflow with the linters, and return the inputs of the action."""
    path = folder / WORKFLOW
    done = subprocess.run(
        [BIN / "zizmor", "--offline", "--no-progress", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert len(path.read_text().splitlines()) <= MAX_LINES
    jobs = yaml.safe_load(path.read_text())["jobs"]
    job = jobs["eval"]
    assert job["timeout-minutes"] == 30
    assert job["permissions"] == {"contents": "read", "actions": "read"}
    evaluate, results, page = job["steps"][-3:]
    assert page["with"]["archive"] is False
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    download, comment = jobs["comment"]["steps"]
    assert download["with"]["name"] == results["with"]["name"]
    assert comment["uses"] == evaluate["uses"]
    assert comment["with"]["comment-report"] == download["with"]["path"]
    assert job["outputs"] == {"page": f"${{{{ steps.{page['id']}.outputs.artifact-url }}}}"}
    assert comment["with"]["report-url"] == "${{ needs.eval.outputs.page }}"
    inputs: dict[str, object] = evaluate["with"]
    assert inputs.pop("baseline") == "base"
    if "record" in inputs:
        assert inputs.pop("record-timeout") == (120 if "cases" in inputs else 1200)
    return inputs


@pytest.mark.parametrize("name", REPOSITORIES)
def test_what_is_written_is_valid_and_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    files, found, expected = REPOSITORIES[name]
    root = repository(tmp_path / "r")
    write(root, files)
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert found in ran.out
    assert ran.code in (0, 1)
    inputs = check_workflow(root)
    assert {key: value for key, value in inputs.items() if key != "config"} == expected
    config = root / str(inputs["config"])
    assert config.is_file()
    assert run_agentci(["validate", str(config)], cwd=root).code == 0
    assert "agentci-results/" in (root / ".gitignore").read_text()
    for file, text in files.items():
        assert (root / file).read_text() == text
    before = {
        path: path.read_bytes()
        for path in root.rglob("*")
        if "agentci-results" not in str(path) and ".git/" not in f"{path}" and path.is_file()
    }
    again = run_agentci(["init", "--yes"], cwd=root)
    assert "wrote" not in again.out
    assert all(path.read_bytes() == content for path, content in before.items())


def test_verdict_of_the_traces_is_shown(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"traces/a.jsonl": otlp(), "evals/set.json": eval_set(answer="x")})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "Quality gate passed" in ran.out
    assert {each["evaluator"] for each in ran.results["results"]} == {
        "tool_trajectory_avg_score",
        "no_secrets",
        "no_tool_errors",
        "max_tool_calls",
    }
    assert (
        "agentci.yaml checks for secrets and failed tool calls, limits the number of tool calls, "
        "and compares tool calls with those that eval cases expect. It does not check the content "
        "of answers and tool results (see agentci's docs/checks.md)\n" in ran.out
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("It is sunny in Paris.", 0),
        ("It is sunny, in *Paris*", 0),
        ("It is raining in Paris.", 1),
        ("It is sunny in Rome.", 1),
        ("It isn't sunny in Paris.", 1),
    ],
)
def test_suggested_metric_notices_another_word_in_a_short_answer(
    answer: str, code: int, tmp_path: Path
) -> None:
    write(tmp_path, {"traces/a.jsonl": otlp(answer=answer)})
    run_agentci(["init", "--yes"], cwd=tmp_path)
    config = (tmp_path / "agentci.yaml").read_text()
    config = config.replace("# eval_set:", "eval_set:").replace("# evaluators:", "evaluators:")
    (tmp_path / "agentci.yaml").write_text(config.replace("#   - {name", "  - {name"))
    (tmp_path / "evals").mkdir(exist_ok=True)
    (tmp_path / "evals/cases.yaml").write_text(
        "eval_cases:\n  - id: paris\n    input: What is the weather in Paris?\n"
        "    calls: [get_weather]\n    answer: It is sunny in Paris.\n"
    )
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == code, ran.out
    assert "response_match_score" in ran.out


@pytest.mark.parametrize("name", ["python", "traces"])
def test_commented_lines_of_the_config_work_as_they_are(name: str, tmp_path: Path) -> None:
    files, _, _ = REPOSITORIES[name]
    write(tmp_path, {"traces/a.jsonl": otlp(), **files})
    assert run_agentci(["init", "--yes"], cwd=tmp_path).code == 0
    config = tmp_path / "agentci.yaml"
    lines = config.read_text().splitlines()
    assert any(each.startswith("# evaluators:") for each in lines)
    config.write_text("\n".join(each.removeprefix("# ") for each in lines))
    assert run_agentci(["accept", "--all"], cwd=tmp_path).code == 0
    assert run_agentci(["validate"], cwd=tmp_path).out == "no problems in 1 file\n"
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 0
    names = {each["evaluator"] for each in ran.results["results"]}
    assert {"case:calls", "response_match_score", "no_secrets"} <= names


def test_failed_tools_are_checked_only_where_the_traces_say_it(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no such order"},
        {"role": "assistant", "content": "Sorry"},
    ]
    write(tmp_path, {"transcripts/a.json": json.dumps(messages)})
    ran = run_agentci(["init", "--yes"], cwd=tmp_path)
    assert ran.code == 0
    check = "  - {check: no_tool_errors, allow_unknown: true}\n"
    assert check in (tmp_path / "agentci.yaml").read_text()
    assert "whether tools failed if the traces do not record it" in ran.out


@pytest.mark.parametrize(
    ("requirements", "framework"),
    [
        ("pydantic-ai-slim[openai]==2.68.0\n", "pydantic-ai"),
        ("openai==3\nllama-index-core==0.14\n", "llama-index"),
        ("autogen-ext[openai, azure]\nautogen-agentchat\n", "autogen-agentchat"),
        ("openai[realtime]>=2\n", "openai"),
        ("openai-whisper\n", ""),
    ],
)
def test_framework_is_named_and_not_its_dependency(
    tmp_path: Path, requirements: str, framework: str
) -> None:
    write(tmp_path, {"requirements.txt": requirements})
    ran = run_agentci(["init", "--yes"], cwd=tmp_path)
    found = [line for line in ran.out.splitlines() if line.startswith("found framework")]
    assert found == ([f"found framework: {framework}"] if framework else [])


def test_workflow_that_installs_nothing_is_announced(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"agent.py": AGENT})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "warning: found no requirements.txt, pyproject.toml or package.json" in ran.out
    assert "Installs nothing: found no requirements.txt" in (root / WORKFLOW).read_text()
    assert check_workflow(root)["record"] == "python agent.py {input}"


def test_agent_is_found_by_its_imports(tmp_path: Path) -> None:
    agent = "import sys\nfrom pydantic_ai import Agent\nprint(sys.argv)\n"
    root = repository(tmp_path / "r")
    write(root, {"bot/run me.py": agent, "tests/test_bot.py": agent, "lib.py": "import json\n"})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "found framework: pydantic-ai" in ran.out
    assert check_workflow(root)["record"] == "python 'bot/run me.py' {input}"
    (root / WORKFLOW).unlink()
    write(root, {"bot/other.py": agent})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "several programs that may be the agent: bot/other.py, bot/run me.py" in ran.out
    assert check_workflow(root) == {"config": "agentci.yaml", **UNKNOWN}
    assert f"  replace AGENT_COMMAND in {WORKFLOW}:" in ran.out


def test_cases_of_all_eval_sets_are_recorded(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    sets = {f"evals/{x}.yaml": f"eval_cases:\n  - {{id: {x}, input: Hi {x}}}\n" for x in "ab"}
    write(root, {"agent.py": RECORDED.replace("api, *rest", "rest"), **sets})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "agentci record --cases evals/a.yaml --cases evals/b.yaml -- python" in ran.out
    assert check_workflow(root)["cases"] == "evals/a.yaml\nevals/b.yaml\n"
    assert complaints({"agent.yml": (root / WORKFLOW).read_text()}) == []


def test_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"svc/agent.py": AGENT, "svc/requirements.txt": "openai\n"})
    subprocess.run([BIN / "agentci", "init", "--yes"], cwd=root / "svc", check=True)
    assert check_workflow(root) == {
        "config": "svc/agentci.yaml",
        "record": "env -C svc python agent.py {input}",
        "record-to": "svc/traces/recorded.jsonl",
        "cases": "svc/evals/cases.yaml",
        "replay": True,
    }
    assert complaints({"agent.yml": (root / WORKFLOW).read_text()}) == []


def test_next_commands_say_where_questions_go(tmp_path: Path) -> None:
    write(tmp_path, {"agent.py": AGENT})
    ran = run_agentci(["init", "--yes"], cwd=tmp_path)
    lines = [line.strip() for line in ran.out.partition("next:\n")[2].splitlines()]
    assert lines[0] == "put the questions to your agent into evals/cases.yaml"
    assert lines[1].startswith("agentci record --cases evals/cases.yaml -- python agent.py {input}")


def test_folder_name_with_spaces_is_one_word_of_the_command(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"my agent; #/agent.py": AGENT})
    subprocess.run([BIN / "agentci", "init", "--yes"], cwd=root / "my agent; #", check=True)
    command = str(check_workflow(root)["record"])
    expected = ["env", "-C", "my agent; #", "python", "agent.py", "{input}"]
    assert shlex.split(command) == expected


def test_path_with_an_expression_is_not_written_into_a_workflow(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"${{ secrets.KEY }}/agentci.yaml": "traces: t.json\nchecks: [no_secrets: true]\n"})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert ran.code == 2
    assert "'${{ secrets.KEY }}/agentci.yaml' cannot be named in a workflow" in str(ran.problems)
    assert not (root / WORKFLOW).exists()


def test_files_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"package.json": '{"scripts":' + "[" * 50_000, "agent.py": AGENT})
    write(root, {"traces/\udcff.json": otlp()})
    os.mkfifo(root / "requirements.txt")
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert (ran.code, "found traces" in ran.out) == (0, False)
    assert check_workflow(root)["record"] == "python agent.py {input}"


def test_config_that_is_no_file_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    os.mkfifo(root / "agentci.yaml")
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert ran.code == 2
    assert "agentci.yaml cannot be read: not a regular file" in str(ran.problems)


def test_at_most_three_questions_are_asked(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"main.py": AGENT, "evals/a.json": eval_set(), "evals/b.json": eval_set()})
    questions: list[str] = []
    answers = iter(["python other.py", " evals/b.json ", "n"])

    def ask(question: str) -> str:
        questions.append(question)
        return next(answers)

    session = make_session(root, {})
    assert init_project(ask, session) == 0
    assert len(questions) == 3
    assert "python main.py {input}" in questions[0]
    assert "eval_set: evals/b.json" in (root / "agentci.yaml").read_text()
    assert not (root / WORKFLOW).exists()


def test_all_eval_sets_are_evaluated(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    cases = "eval_cases:\n  - {id: bye, input: Bye, checks: [contains: Ciao]}\n"
    sets = {"evals/a.json": eval_set(answer="x"), "evals/b.yaml": cases}
    traces = {"traces/a.jsonl": otlp(), "traces/b.jsonl": otlp("Bye", "Ciao", calls=(), trace=2)}
    write(root, {**traces, **sets})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "eval_set: [evals/a.json, evals/b.yaml]\n" in (root / "agentci.yaml").read_text()
    found = {each["eval_case"] for each in ran.results["results"]}
    assert "bye" in found
    assert len(found) == 2


def test_end_of_input_at_a_question_interrupts(tmp_path: Path) -> None:
    terminal, its_end = os.openpty()
    with subprocess.Popen(
        [BIN / "agentci", "init"],
        cwd=tmp_path,
        stdin=its_end,
        stdout=its_end,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(its_end)
        os.write(terminal, b"\x04")
        _, errors = process.communicate()
    os.close(terminal)
    assert (process.returncode, "Traceback" in errors) == (130, False)
    assert not list(tmp_path.iterdir())


def test_existing_lines_of_gitignore_stay(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"caf\xe9\n*.log")
    run_agentci(["init", "--yes"], cwd=tmp_path)
    assert (tmp_path / ".gitignore").read_bytes() == b"caf\xe9\n*.log\nagentci-results/\n"


def test_actions_are_pinned_as_in_the_examples() -> None:
    files = ROOT.glob("examples/workflows/*.yml")
    others = [each.read_text(encoding="utf-8") for each in files if each.name != EXAMPLE.name]
    for action in (CHECKOUT, SETUP_PYTHON, UPLOAD, DOWNLOAD):
        assert any(action in text for text in others)


def test_example_is_what_is_written(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, REPOSITORIES["python"][0])
    run_agentci(["init", "--yes"], cwd=root)
    assert (root / WORKFLOW).read_text() == EXAMPLE.read_text(encoding="utf-8")


RECORDED = AGENT_PROGRAM.read_text(encoding="utf-8")
QUESTIONS = '{"id": "oslo/now", "input": "weather in Oslo"}\n{"id": "thanks", "input": "Thanks"}\n'


def record(folder: Path, *arguments: str) -> None:
    with mock_model() as model:
        environ = {**os.environ, **make_environment(model)}
        subprocess.run([BIN / "agentci", "record", *arguments], cwd=folder, env=environ, check=True)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A repository with an agent and its recording, and no config."""
    root = repository(tmp_path / "r")
    write(root, {"agent.py": RECORDED, "inputs/cases.jsonl": QUESTIONS})
    command = (sys.executable, "agent.py", "chat", "{input}")
    record(root, "--cases", "inputs/cases.jsonl", "--out", "runs/a.jsonl", "--", *command)
    return root


def test_agent_of_a_recording_is_replayed_in_the_workflow(recorded: Path) -> None:
    ran = run_agentci(["init", "--yes"], cwd=recorded)
    assert "found recorded requests" in ran.out
    assert ran.code == 0
    assert check_workflow(recorded) == {
        "config": "agentci.yaml",
        "record": "python agent.py {input}",
        "record-to": "runs/a.jsonl",
        "cases": "inputs/cases.jsonl",
        "replay": True,
        "answer": "stdout",
    }
    assert "anything else that the agent prints" not in ran.out
    assert 'traces: "runs/*.jsonl"\n' in (recorded / "agentci.yaml").read_text()
    assert run_agentci(["validate"], cwd=recorded).code == 0


def test_agent_that_prints_more_than_answers_is_replayed_with_a_note(recorded: Path) -> None:
    program = recorded / "agent.py"
    program.write_text(program.read_text() + "\nprint('Bye')\n")
    (recorded / "runs/a.jsonl").unlink()
    command = (sys.executable, "agent.py", "chat", "{input}")
    record(recorded, "--cases", "inputs/cases.jsonl", "--out", "runs/a.jsonl", "--", *command)
    ran = run_agentci(["init", "--yes"], cwd=recorded)
    assert "answer" not in check_workflow(recorded)
    assert (
        f"{WORKFLOW} evaluates the model's answers; anything else that the agent prints" in ran.out
    )


@pytest.mark.parametrize(
    ("changed", "code", "shown"),
    [
        ("", 0, ""),
        ("print = lambda text, **_: sys.stdout.write(f'It is false that: {text}')", 1, "false"),
        ("print = lambda text, **_: sys.stdout.write(text.replace('sunny', 'wet'))", 1, "wet"),
        # In no other words, so that a line shows them.
        (
            "print = lambda text, **_: sys.stdout.write('It is, in Oslo, sunny.')",
            0,
            'oslo: expected "sunny in Oslo", got "in Oslo, sunny"',
        ),
    ],
)
def test_first_config_compares_answers_once_they_are_accepted(
    changed: str, code: int, shown: str, tmp_path: Path
) -> None:
    root = repository(tmp_path / "r")
    agent = f"import sys\nsys.argv.insert(1, 'chat')\n{RECORDED}"
    write(root, {"agent.py": agent})
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert "compares tool calls and answers with those that eval cases expect" in ran.out
    write(root, {"evals/cases.yaml": "eval_cases:\n- {id: oslo, input: weather in Oslo}\n"})
    step = ("--cases", "evals/cases.yaml", "--", sys.executable, "agent.py", "{input}")
    record(root, *step)
    ran = run_agentci(["run"], cwd=root)
    assert (ran.code, "response_match_score evaluated no case" in ran.out) == (0, True)
    ran = run_agentci(["accept", "--all"], cwd=root)
    assert "`agentci run` compares their calls and answers" in ran.out
    assert run_agentci(["run"], cwd=root).code == 0
    write(root, {"agent.py": agent.replace("import json", f"import json\n{changed}", 1)})
    record(root, "--replay", *step)
    ran = run_agentci(["run"], cwd=root)
    assert (ran.code, shown in " ".join(ran.out.split())) == (code, True)


def test_answers_that_are_there_already_are_not_compared_word_for_word(tmp_path: Path) -> None:
    case = "eval_cases:\n- {id: oslo, input: weather in Oslo, answer: Sunny}\n"
    write(tmp_path, {"agent.py": AGENT, "evals/own.yaml": case})
    ran = run_agentci(["init", "--yes"], cwd=tmp_path)
    assert "It does not check the content of answers" in ran.out
    assert "\n# evaluators:" in (tmp_path / "agentci.yaml").read_text()


def test_workflow_replays_a_conversation_among_eval_cases(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    cases = (
        "eval_cases:\n- {id: oslo, input: weather in Oslo}\n"
        "- {id: talk, turns: [{input: weather in Rome}, {input: Thanks, calls: []}]}\n"
    )
    agent = f"import sys\nsys.argv.insert(1, 'chat')\n{RECORDED}"
    write(root, {"agent.py": agent, "evals/cases.yaml": cases})
    record(root, "--cases", "evals/cases.yaml", "--", sys.executable, "agent.py", "{input}")
    ran = run_agentci(["init", "--yes"], cwd=root)
    assert ran.code == 0
    inputs = check_workflow(root)
    assert (inputs["record"], inputs["cases"]) == ("python agent.py {input}", "evals/cases.yaml")
    step = ("--replay", "--cases", str(inputs["cases"]), "--")
    record(root, *step, *shlex.split(str(inputs["record"])))
    ran = run_agentci(["run"], cwd=root)
    assert (ran.code, {each["case"] for each in ran.results["results"]}) == (0, {"oslo", "talk"})


def test_recording_without_its_inputs_is_evaluated_as_it_is(recorded: Path) -> None:
    (recorded / "inputs/cases.jsonl").write_text('{"id": "other", "input": "Hi"}\n')
    ran = run_agentci(["init", "--yes"], cwd=recorded)
    assert "found recorded requests" not in ran.out
    assert check_workflow(recorded) == {"config": "agentci.yaml"}


def test_recording_with_an_unknown_input_needs_a_command(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {"agent.py": RECORDED})
    record(root, "--", sys.executable, "agent.py", "chat", "weather in Oslo")
    ran = run_agentci(["init", "--yes"], cwd=root)
    place = next(
        f"{WORKFLOW}:{number}"
        for number, line in enumerate((root / WORKFLOW).read_text().splitlines(), start=1)
        if "record: " in line
    )
    assert ran.out.endswith(
        f"next: replace AGENT_COMMAND in {place} by the command that runs your agent\n"
    )
    unknown = {"config": "agentci.yaml", "record": "AGENT_COMMAND", "replay": True}
    assert check_workflow(root) == unknown
    (root / WORKFLOW).unlink()
    answers = iter(["-", ""])
    session = make_session(root, {})
    assert init_project(lambda _: next(answers), session) == 0
    assert check_workflow(root) == {"config": "agentci.yaml"}
    assert isinstance(session.out, io.StringIO)
    assert f"{WORKFLOW} evaluates the committed traces, and does not run" in session.out.getvalue()
    (root / WORKFLOW).unlink()
    answers = iter(["python agent.py chat 'weather in Oslo'", ""])
    assert init_project(lambda _: next(answers), make_session(root, {})) == 0
    assert check_workflow(root) == {
        "config": "agentci.yaml",
        "record": "python agent.py chat 'weather in Oslo'",
        "replay": True,
    }
