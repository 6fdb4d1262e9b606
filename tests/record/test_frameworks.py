"""Agents of real frameworks without telemetry are recorded, evaluated and replayed."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import uv

from examples.agents.mock_model import mock_model
from scripts.framework_sections import SECTIONS
from tests._util.http.servers import Answer, Asked
from tests._util.http.tunnel import services
from tests.helpers.support import ROOT
from tests.record.recorded import KEY, OUT, describe, make_environment, read_traces
from tests.services.servers import MODULES, NODE

EXAMPLE = ROOT / "examples" / "agents"
UV = uv.find_uv_bin()
AGENTS = {path.parent.name: path for path in sorted(EXAMPLE.glob("*/agent.*"))}
QUESTIONS = ("What is the weather in Oslo and Rome?", "Thanks")
CITIES = ("Oslo", "Rome")
TURNS = [
    (
        QUESTIONS[0],
        [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})],
        "It is sunny in Oslo. It is sunny in Rome.",
    ),
    (QUESTIONS[1], [], "You asked: Thanks"),
]
# Puts questions into a prompt, so the eval case cannot be found by the question.
WITH_PROMPT = "crewai"


def assert_complete(framework: str, file: Path) -> None:
    """Assert that the recording has one complete conversation of two turns."""
    [trace] = read_traces(file)
    found = [describe(turn) for turn in trace.turns]
    if framework == WITH_PROMPT:
        given = [turn.user_text for turn in trace.turns]
        assert [asked in text for asked, text in zip(QUESTIONS, given, strict=True)] == [True, True]
        found = [(asked, turn[1], turn[2]) for asked, turn in zip(QUESTIONS, found, strict=True)]
    assert found == TURNS
    results = [str(one.output) for turn in trace.turns for one in turn.tool_responses]
    assert [city in text for city, text in zip(CITIES, results, strict=True)] == [True, True]


def install(framework: str, folder: Path, venvs: Path) -> Path:
    """Install a framework for the agents in a folder, and return what runs its agent."""
    if AGENTS[framework].suffix == ".py":
        return install_python(framework, venvs)
    link_modules(framework, folder / "node_modules")
    return NODE


def link_modules(framework: str, folder: Path) -> None:
    """Link the packages of a Node agent, of which ``tests/services`` may have several versions."""
    if not MODULES.exists():
        pytest.skip("npm has installed no packages")
    needed = json.loads((EXAMPLE / framework / "package.json").read_text())["dependencies"]
    given = json.loads((MODULES.parent / "package.json").read_text())["dependencies"]
    for name, version in needed.items():
        found = next(
            k for k, v in given.items() if (k, v) == (name, version) or v == f"npm:{name}@{version}"
        )
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(MODULES / found)


def install_python(framework: str, venvs: Path, packages: Sequence[str] = ()) -> Path:
    """Return the Python of a virtual environment with a framework; skip if it cannot be installed.

    The first test that needs the environment makes it, and others use it as it is.

    Args:
        venvs: the fixture of this name.
        packages: what is installed beside the framework.
    """
    venv = venvs / "+".join((framework, *packages))
    made = venv / "made"
    with (venvs / f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            return venv / "bin" / "python"
        shutil.rmtree(venv, ignore_errors=True)
        if packages:
            copy_venv(install_python(framework, venvs).parent.parent, venv)
            failure = uv_install(venv, *packages)
            assert not failure, failure
        else:
            subprocess.run([UV, "venv", "-q", "--python", sys.executable, venv], check=True)
            failure = uv_install(venv, "-r", str(EXAMPLE / framework / "requirements.txt"))
            if failure:
                pytest.skip(f"cannot install {framework}: {failure}")
        made.touch()
    return venv / "bin" / "python"


def copy_venv(venv: Path, copy: Path) -> None:
    """Link all files of a virtual environment, with the bytecode of what was already imported."""
    unfinished = shutil.ignore_patterns("made", "*.pyc.*")
    shutil.copytree(venv, copy, symlinks=True, copy_function=os.link, ignore=unfinished)


def uv_install(venv: Path, *arguments: str) -> str:
    """Install packages into a virtual environment and return the error; empty if there is none."""
    # uv links what it has downloaded for another environment: seconds, where pip needs a minute.
    done = subprocess.run(
        [UV, "pip", "install", "-q", "--system-certs", "--python", venv, *arguments],
        env={**os.environ, "UV_CACHE_DIR": str(venv.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def run(command: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Run agentci in a folder and return what it printed; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "agentci", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_page_of_agents_names_each_agent() -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE) == [*AGENTS]


@pytest.mark.slow
def test_commands_on_the_page_of_agents_work(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    install, *commands = page.split("```")[1].strip().splitlines()
    assert install.startswith("pip install")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    printed = ""
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        printed += done.stdout
    assert "It is sunny in Oslo. It is sunny in Rome.\nYou asked: Thanks\n" in printed
    assert "Recorded to traces/recorded.jsonl: 2 turns, 2 tool calls" in printed
    assert "Quality gate passed: 2 checks passed" in printed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", AGENTS)
def test_agent_is_recorded_evaluated_and_replayed(
    framework: str, tmp_path: Path, venvs: Path
) -> None:
    folder = tmp_path / "agents"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    agent = AGENTS[framework].relative_to(EXAMPLE)
    command = ["--", str(install(framework, tmp_path, venvs)), str(agent), *QUESTIONS]
    if framework == WITH_PROMPT:
        command = ["--case", "conversation", *command]
    with mock_model() as model:
        keys = {**make_environment(model), "ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
        printed = run(["record", *command], folder, keys)
        asked = len(model.requests)
    assert_complete(framework, folder / OUT)
    printed += run(["run", "--traces", OUT], folder, {})
    recorded = (folder / OUT).read_bytes()
    nowhere = {name: "" for name in keys if name.endswith("_KEY")}
    printed += run(["record", "--replay", *command], folder, nowhere)
    assert (folder / OUT).read_bytes() == recorded  # the run was equal
    assert asked == len(model.requests) == 3
    assert KEY not in printed
    written = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


# The client of Azure in place of that of the example.
AZURE_AGENTS = {
    "openai-chat": {"OpenAI": "AzureOpenAI"},
    "openai-responses": {"OpenAI": "AzureOpenAI"},
    "langgraph": {"ChatOpenAI": "AzureChatOpenAI", "model=": "azure_deployment="},
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", AZURE_AGENTS)
def test_agent_on_azure_is_recorded_and_replayed(
    framework: str, tmp_path: Path, venvs: Path
) -> None:
    program = AGENTS[framework].read_text()
    for given, wanted in AZURE_AGENTS[framework].items():
        program = program.replace(given, wanted)
    (tmp_path / "agent.py").write_text(program)
    command = ["--", str(install(framework, tmp_path, venvs)), "agent.py", *QUESTIONS]
    version = {"OPENAI_API_VERSION": "2025-04-01-preview"}
    keys = {**version, "AZURE_OPENAI_API_KEY": KEY}
    with mock_model() as model:
        printed = run(["record", *command], tmp_path, {**keys, "AZURE_OPENAI_ENDPOINT": model.url})
        asked = [(path, headers) for path, headers, _ in model.requests]
    assert len(asked) == 3
    assert [headers["api-key"] for _, headers in asked] == [KEY] * 3
    assert all("/openai/" in path and "api-version=2025-04" in path for path, _ in asked)
    assert_complete(framework, tmp_path / OUT)
    (tmp_path / OUT).unlink()
    printed += run(["record", "--replay", *command], tmp_path, version)
    assert_complete(framework, tmp_path / OUT)
    assert KEY not in printed
    written = [path for path in tmp_path.glob("traces/**/*") if path.is_file()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


def test_sections_and_committed_recordings_name_each_framework() -> None:
    recordings = {path.stem: path for path in (EXAMPLE / "recordings").glob("*.jsonl")}
    assert sorted(recordings) == sorted(AGENTS)
    sections = {Path(agent).parent.name: each for each in SECTIONS for agent in each.agents}
    assert sorted(sections) == sorted(AGENTS)
    for framework, path in recordings.items():
        assert_complete(framework, path)
        [trace] = read_traces(path)
        assert (trace.usage is None) == sections[framework].without_tokens


# How the client of Vertex AI is created, the variables, and the service that it calls.
TOKEN = "credentials=Credentials('ya29.token-0123456789abcdef')"
REGION = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
VERTEX = {
    "region": (TOKEN, REGION, "europe-west4-aiplatform.googleapis.com"),
    "code": (f"vertexai=True, {TOKEN}", REGION, "europe-west4-aiplatform.googleapis.com"),
    "global": (
        f"vertexai=True, project='p', location='global', {TOKEN}",
        {"GOOGLE_CLOUD_PROJECT": "other"},
        "aiplatform.googleapis.com",
    ),
    "key": ("", {"GOOGLE_API_KEY": KEY}, "aiplatform.googleapis.com"),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", VERTEX)
def test_agent_on_vertex_ai_is_recorded_and_replayed(
    way: str, tmp_path: Path, venvs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, variables, host = VERTEX[way]
    program = AGENTS["google-genai"].read_text()
    program = f"from google.oauth2.credentials import Credentials\n{program}"
    (tmp_path / "agent.py").write_text(program.replace("genai.Client()", f"genai.Client({client})"))
    command = ["--", str(install("google-genai", tmp_path, venvs)), "agent.py", *QUESTIONS]
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    switch = {"GOOGLE_GENAI_USE_VERTEXAI": "true"}
    with mock_model() as model:

        def respond(asked: Asked) -> Answer:
            request = urllib.request.Request(model.url + asked.path, asked.body)
            with urllib.request.urlopen(request) as response:
                return Answer(body=response.read(), headers={"Content-Type": "application/json"})

        with services(respond, monkeypatch) as server:
            printed = run(["record", *command], tmp_path, {**variables, **switch})
        assert {each.headers["host"] for each in server.asked} == {host}
        assert len(server.asked) == 3
    assert_complete("google-genai", tmp_path / OUT)
    recorded = (tmp_path / OUT).read_bytes()
    environ = {**switch, **({} if way == "key" else variables)}
    printed += run(["record", "--replay", *command], tmp_path, environ)
    assert (tmp_path / OUT).read_bytes() == recorded
    assert KEY not in printed
    written = [path for path in tmp_path.glob("traces/**/*") if path.is_file()]
    secrets = (KEY, "ya29.token")
    assert [one for one in written if any(each in one.read_text() for each in secrets)] == []
