"""Code that is injected into agents sends the spans of what is installed, and breaks nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import uv

from agentci.record import injected
from agentci.record.recorder import make_injection_variables
from examples.agents.mock_model import MockModel, mock_model
from tests.record.recorded import (
    AGENT,
    KEY,
    OUT,
    describe,
    make_environment,
    read_traces,
    record,
)
from tests.record.test_frameworks import (
    EXAMPLE,
    QUESTIONS,
    TURNS,
    install_python,
    link_modules,
    run,
)
from tests.services.servers import NODE

FOLDER = Path(injected.__path__[0])
SDK = "opentelemetry-sdk==1.45.2"
OPENINFERENCE = "openinference-instrumentation"
# What is installed beside each framework; its own instrumentation needs the SDK or nothing.
STACKS = {
    "openai-chat": (SDK, f"{OPENINFERENCE}-openai==0.1.66"),
    "openai-responses": (SDK, f"{OPENINFERENCE}-openai==0.1.66"),
    "langgraph": (SDK, f"{OPENINFERENCE}-langchain==0.1.80", f"{OPENINFERENCE}-openai==0.1.66"),
    "pydantic-ai": (SDK,),
    "anthropic": (SDK,),
    "semantic-kernel": (),
    "strands": (),
    "google-adk": (),
    "agent-framework": (SDK,),
}
# Calls models at an address that is not read from a variable, so that the proxy sees nothing.
PAST_PROXY = """
import os, runpy, sys
for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
    os.environ[name] = os.environ["REAL_" + name]
del os.environ["OPENAI_API_BASE"]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PAST_PROXY_NODE = """
process.env.OPENAI_BASE_URL = process.env.REAL_OPENAI_BASE_URL;
process.argv.splice(1, 1);
await import(process.argv[1]);
"""


def make_stack(name: str, folder: Path) -> Path:
    """Install a framework and what instruments it, and return its Python."""
    python = install_python(name, folder)
    if STACKS[name]:
        tool = uv.find_uv_bin()
        command = [tool, "pip", "install", "-q", "--system-certs", "--python", str(python)]
        subprocess.run([*command, *STACKS[name]], check=True)
    return python


def record_past_proxy(folder: Path, model: MockModel, command: list[str]) -> str:
    keys = {**make_environment(model), "ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
    real = {f"REAL_{name}": url for name, url in keys.items() if name.endswith("_URL")}
    printed = run(["record", "--", *command, *QUESTIONS], folder, {**keys, **real})
    assert KEY not in printed
    written = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    return printed


def assert_recorded(folder: Path) -> None:
    """The recording holds the two turns of the agents in ``examples/agents``, whole."""
    turns = [turn for trace in read_traces(folder / OUT) for turn in trace.turns]
    found = [describe(turn) for turn in turns]
    # Semantic Kernel's have the name of a plugin before that of the tool.
    short = [
        (q, [(name.rpartition("-")[2], args) for name, args in calls], a) for q, calls, a in found
    ]
    assert short == TURNS
    assert len(turns[0].tool_responses) == 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", STACKS)
def test_agent_that_passes_the_proxy_is_recorded_by_what_is_installed(
    framework: str, tmp_path: Path
) -> None:
    python = make_stack(framework, tmp_path / "venv")
    work = tmp_path / "work"
    work.mkdir()
    program = work / "past_proxy.py"
    program.write_text(PAST_PROXY)
    agent = EXAMPLE / framework / "agent.py"
    with mock_model() as model:
        printed = record_past_proxy(work, model, [str(python), str(program), str(agent)])
    assert "note: recorded from the injected telemetry, as no model call was seen" in printed
    assert_recorded(work)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ["vercel-ai", "vercel-ai-6"])
def test_node_agent_that_passes_the_proxy_is_recorded(framework: str, tmp_path: Path) -> None:
    link_modules(framework, tmp_path / "node_modules")
    if not (tmp_path / "node_modules" / "ai" / "package.json").exists():
        pytest.skip("npm has not installed the AI SDK")
    shutil.copy(EXAMPLE / framework / "agent.mjs", tmp_path)
    program = tmp_path / "past_proxy.mjs"
    program.write_text(PAST_PROXY_NODE)
    with mock_model() as model:
        command = [str(NODE), str(program), str(tmp_path / "agent.mjs")]
        printed = record_past_proxy(tmp_path, model, command)
    assert "note: recorded from the injected telemetry, as no model call was seen" in printed
    assert_recorded(tmp_path)


def make_child_environment(url: str, *folders: Path) -> dict[str, str]:
    path = os.pathsep.join(map(str, folders))
    given = {"PYTHONPATH": path} if folders else {}
    return {**os.environ, **given, **make_injection_variables(given, url)}


def test_other_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('own', __name__, __file__)\n")
    done = subprocess.run(
        [sys.executable, "-c", "import sitecustomize; print(sitecustomize.__file__)"],
        env=make_child_environment("http://127.0.0.1:9/t/injected", tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    own = tmp_path / "sitecustomize.py"
    assert done.stdout == f"own sitecustomize {own}\n{own}\n"
    assert done.stderr == ""


BROKEN_SDK = "raise RuntimeError('broken package')\n"
AGENT_WITH_OPENTELEMETRY = """
import sys
sys.path.insert(0, {agents!r})
import http_agent
import openai
print(http_agent.answer("chat", "Hi", []))
"""


def test_error_of_injected_code_is_named_and_changes_nothing(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    for name in ("openai", "openinference/instrumentation/openai", "opentelemetry/sdk/trace"):
        folder = packages / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("" if name == "openai" else BROKEN_SDK)
    (packages / "opentelemetry" / "sdk" / "__init__.py").write_text("")
    program = tmp_path / "agent.py"
    agents = str(AGENT.parent)
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(packages)!r})\n"
        + AGENT_WITH_OPENTELEMETRY.format(agents=agents)
    )
    with mock_model() as model:
        ran = record(tmp_path, model, program=program)
        plain = record(tmp_path, model, program=program, options=["--no-injection"])
    assert (ran.code, plain.code) == (0, 0)
    assert (
        "note: injection failed: opentelemetry.sdk.trace: RuntimeError: broken package" in ran.err
    )
    assert plain.err == ""
    assert "1 model call (from the proxy)" in ran.out
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "You asked: Hi")]


def test_ended_recorder_slows_no_process_down(tmp_path: Path) -> None:
    program = (
        "import sys; s = sys.modules['agentci_injected'] = sys.meta_path[0].find_spec.__globals__\n"
        "for number in range(100):\n"
        "    s['attempt']('send', s['EXPORTER'].send, '/v1/traces', {})\n"
        "print(s['EXPORTER']._failures)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=make_child_environment("http://127.0.0.1:9/t/injected"),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_node_options_of_the_user_stay_and_permissions_are_not_broken() -> None:
    url = "http://127.0.0.1:9/t/injected"
    hook = str(FOLDER / "agentci_ai_sdk.cjs")
    found = make_injection_variables({"NODE_OPTIONS": "--trace-warnings"}, url)
    assert found["NODE_OPTIONS"] == f'--trace-warnings --require "{hook}"'
    assert "NODE_OPTIONS" not in make_injection_variables({"NODE_OPTIONS": "--permission"}, url)


def test_node_program_starts_with_the_hook(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    environ = make_child_environment("http://127.0.0.1:9/t/injected")
    done = subprocess.run(
        [NODE, "-e", "console.log(globalThis.AI_SDK_TELEMETRY_INTEGRATIONS.length)"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_content_is_switched_on_as_the_installed_packages_need(tmp_path: Path) -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    program = f"import os; print(os.environ.get({name!r}))"

    def run_child(environ: dict[str, str]) -> str:
        return subprocess.run(
            [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
        ).stdout.strip()

    url = "http://127.0.0.1:9/t/injected"
    old = make_child_environment(url)
    util = tmp_path / "opentelemetry" / "util" / "genai"
    util.mkdir(parents=True)
    (util / "__init__.py").write_text("")
    new = make_child_environment(url, tmp_path)
    chosen = {"PATH": os.environ["PATH"], name: "false"}
    kept = {**chosen, **make_injection_variables(chosen, url)}
    assert [run_child(each) for each in (old, new, kept)] == ["true", "SPAN_ONLY", "false"]
