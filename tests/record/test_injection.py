"""Code that is injected into agents sends the spans of what is installed, and breaks nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.record import injected
from agentci.record.agent_process import make_injection_variables
from agentci.record.otlp_receiver import OtlpReceiver
from agentci.record.write_spans import CaseStamp
from examples.agents.mock_model import MockModel, mock_model
from tests.helpers.support import run_agentci
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
# Packages to install with each framework; its own instrumentation needs the SDK or nothing.
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
    "crewai": (SDK, f"{OPENINFERENCE}-crewai==1.1.21", f"{OPENINFERENCE}-openai==0.1.66"),
    "google-genai": (SDK, f"{OPENINFERENCE}-google-genai==1.4.14"),
    "openai-agents": (SDK, f"{OPENINFERENCE}-openai-agents==2.6.0"),
}
# The SDK sends its traces to OpenAI's platform, so the example turns them off.
TRACED = {
    "openai-agents": """
import agents
from agents.tracing import processors
processors.default_exporter().endpoint = "http://127.0.0.1:9"
agents.set_tracing_disabled = lambda _: None
"""
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


def record_past_proxy(folder: Path, model: MockModel, command: list[str]) -> str:
    keys = {**make_environment(model), "ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
    real = {f"REAL_{name}": url for name, url in keys.items() if name.endswith("_URL")}
    printed = run(["record", "--", *command, *QUESTIONS], folder, {**keys, **real})
    assert KEY not in printed
    written = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    return printed


def assert_recorded(folder: Path, *, in_order: bool = True) -> None:
    """Assert that the two turns of the agents in ``examples/agents`` are recorded, each once.

    Args:
        in_order: whether tools are called one after the other.
    """
    turns = [turn for trace in read_traces(folder / OUT) for turn in trace.turns]
    found = [describe(turn) for turn in turns]
    # Semantic Kernel's have the name of a plugin before that of the tool.
    short = [
        (q, [(name.rpartition("-")[2], args) for name, args in calls], a) for q, calls, a in found
    ]
    if not in_order:
        short = [(q, sorted(calls, key=str), a) for q, calls, a in short]
    assert short == TURNS
    assert len(turns[0].tool_responses) == 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("framework", STACKS)
def test_agent_that_passes_the_proxy_is_recorded_by_what_is_installed(
    framework: str, tmp_path: Path, venvs: Path
) -> None:
    python = install_python(framework, venvs, STACKS[framework])
    work = tmp_path / "work"
    work.mkdir()
    program = work / "past_proxy.py"
    program.write_text(TRACED.get(framework, "") + PAST_PROXY)
    agent = EXAMPLE / framework / "agent.py"
    with mock_model() as model:
        printed = record_past_proxy(work, model, [str(python), str(program), str(agent)])
    assert "note: recorded from the injected telemetry, as no model call was seen" in printed
    # CrewAI calls both tools at the same time, and the recording has no other order than theirs.
    assert_recorded(work, in_order=framework != "crewai")


# The packages of agents that instrument themselves. `traceloop-sdk` needs `httpx`, which it does
# not name, and cannot be installed with the latest `opentelemetry-sdk`.
OWN_PACKAGES = (
    *("opentelemetry-exporter-otlp-proto-http==1.45.1", f"{OPENINFERENCE}-openai==0.1.66"),
    *("traceloop-sdk==0.62.4", "httpx==0.28.1"),
)
OWN_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
def export():
    return ConsoleSpanExporter(out=open("own.txt", "a"), formatter=lambda s: s.name + "\\n")
def provide():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(export()))
    trace.set_tracer_provider(provider)
def instrument():
    from openinference.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument()
"""
LATE = """
import builtins, openai
print = builtins.print
def late(*words):
    print(*words)
    builtins.print = print
    provide()
    instrument()
builtins.print = late
"""
OTLP = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provide()
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
instrument()
"""
TRACELOOP = """
from traceloop.sdk import Traceloop
Traceloop.init(exporter=export(), disable_batch=True, telemetry_enabled=False)
"""
# Code with which an agent instruments itself, and the number of spans that its exporter gets.
OWN_INSTRUMENTATION = {
    "provider": ("provide()", 0),
    "provider and instrumentor": ("provide(); instrument()", 3),
    "provider after the first span": (
        "import openai; trace.get_tracer('first').start_span('first').end(); provide()",
        0,
    ),
    "instrumentor before the provider": ("instrument(); import openai; provide()", 3),
    "both after the first answer": (LATE, 1),
    "exporter over OTLP": (OTLP, 3),
    "traceloop-sdk": (TRACELOOP, 3),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_agent_that_instruments_itself_is_recorded_once(tmp_path: Path, venvs: Path) -> None:
    python = install_python("openai-chat", venvs, OWN_PACKAGES)
    found = {}
    for number, (name, (start, _)) in enumerate(OWN_INSTRUMENTATION.items()):
        work = tmp_path / str(number)
        work.mkdir()
        program = work / "agent.py"
        program.write_text(OWN_PROVIDER + start + PAST_PROXY)
        agent = EXAMPLE / "openai-chat" / "agent.py"
        with mock_model() as model:
            record_past_proxy(work, model, [str(python), str(program), str(agent)])
        assert_recorded(work)
        own = work / "own.txt"
        found[name] = len(own.read_text().splitlines()) if own.exists() else 0
    assert found == {name: count for name, (_, count) in OWN_INSTRUMENTATION.items()}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_agent_with_traceloop_sdk_is_recorded_evaluated_and_replayed(
    tmp_path: Path, venvs: Path
) -> None:
    python = install_python("openai-chat", venvs, OWN_PACKAGES)
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("eval_config.yaml", "eval_set.json"):
        shutil.copy(EXAMPLE / name, folder)
    agent = (EXAMPLE / "openai-chat" / "agent.py").read_text()
    (folder / "agent.py").write_text(OWN_PROVIDER + TRACELOOP + agent)
    command = ["--", str(python), "agent.py", *QUESTIONS]
    with mock_model() as model:
        run(["record", *command], folder, make_environment(model))
    run(["run", "--traces", OUT], folder, {})
    (folder / OUT).unlink()
    run(["record", "--replay", *command], folder, {"OPENAI_API_KEY": ""})
    assert_recorded(folder)


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
    return {**os.environ, **given, **make_injection_variables(given, url, "/nowhere")}


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


def test_error_of_injected_code_is_reported_and_changes_nothing(tmp_path: Path) -> None:
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


def test_ended_recorder_does_not_slow_processes_down(tmp_path: Path) -> None:
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
    found = make_injection_variables({"NODE_OPTIONS": "--trace-warnings"}, url, "/nowhere")
    assert found["NODE_OPTIONS"] == f'--trace-warnings --require "{hook}"'
    assert "NODE_OPTIONS" not in make_injection_variables(
        {"NODE_OPTIONS": "--permission"}, url, "/nowhere"
    )


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


# Calls the hooks as the AI SDK 7 does, and ends the process as soon as the run has ended.
KILLED_RUN = """
const [integration] = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS;
const messages = [{ role: "user", content: process.argv[2] }];
const event = { callId: "1", stepNumber: 0, messages, text: "Hello " + "!".repeat(100000) };
const content = [{ type: "text", text: event.text }];
const usage = { inputTokens: 1, outputTokens: 1 };
integration.onStart(event);
integration.onStepStart(event);
integration.onStepFinish({ ...event, content, usage, finishReason: "stop" });
integration.onEnd(event);
process.kill(process.pid, "SIGKILL");
"""


def test_killed_node_program_loses_no_span_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "agent.cjs").write_text(KILLED_RUN)
    command = [str(NODE), str(tmp_path / "agent.cjs"), "Hi"]
    ran = run_agentci(["record", "--", *command], cwd=tmp_path)
    assert (ran.code, "the command was ended by signal 9" in ran.err) == (1, True)
    [trace] = read_traces(tmp_path / OUT)
    assert [describe(turn) for turn in trace.turns] == [("Hi", [], "Hello " + "!" * 100000)]


def test_files_of_other_kinds_are_not_read_as_spans(tmp_path: Path) -> None:
    """A pipe would block; an incomplete line is from a killed process."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("/dev/zero")
    (tmp_path / "folder.jsonl").mkdir()
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "kept"}
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    (tmp_path / "node.jsonl").write_text(f'{line}\n{{"error": "broken"}}\n[1]\n{line[:50]}')
    receiver = OtlpReceiver()
    receiver.add_files("c", tmp_path)
    kept = receiver.list_lines(CaseStamp(id="c", is_eval_case=False), lambda document: document)
    assert [one.count('"kept"') for one in kept] == [1]
    assert receiver.list_errors("c") == ["broken"]


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
    kept = {**chosen, **make_injection_variables(chosen, url, "/nowhere")}
    assert [run_child(each) for each in (old, new, kept)] == ["true", "SPAN_ONLY", "false"]
