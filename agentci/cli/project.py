"""Find what a repository has that `agentci init` needs: an agent, traces, eval sets, configs."""

import fnmatch
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text.json_document import LONE_SURROGATE, read_json
from agentci._util.workspace import Workspace, is_file, read_chunks, read_start
from agentci.config.discovery import SKIPPED_FOLDERS, find_configs
from agentci.errors import InputError, RecordingError
from agentci.model.values import Json
from agentci.record.case_file import read_cases
from agentci.record.recording_file import EarlierRecording
from agentci.record.request_file import FORMAT, UNNAMED, make_file_name
from agentci.recordings.registry import REQUESTS_SUFFIX, detect_format_name, read_recording
from agentci.recordings.runs import convert_run, group_runs

# Packages of agents, and the section of docs/frameworks.md that says how they are recorded.
FRAMEWORKS: Final[Mapping[str, str]] = {
    "google-adk": "google-adk",
    "openai-agents": "openai-agents-sdk",
    "langgraph": "langchain-and-langgraph",
    "langchain": "langchain-and-langgraph",
    "pydantic-ai": "pydantic-ai",
    "strands-agents": "strands-agents",
    "crewai": "crewai",
    "llama-index": "llamaindex",
    "agent-framework": "microsoft-agent-framework",
    "semantic-kernel": "semantic-kernel",
    "autogen-agentchat": "autogen",
    "ai": "vercel-ai-sdk",
    # Those above use them.
    "anthropic": "anthropic-sdk",
    "openai": "openai-sdk",
}
# Modules whose names are not those of their packages.
_MODULES: Final[Mapping[str, str]] = {
    "google-adk": "google.adk",
    "openai-agents": "agents",
    "strands-agents": "strands",
}
AGENT_FILES: Final = (
    *("agent.py", "main.py", "app.py", "src/agent.py", "src/main.py"),
    *("agent.js", "agent.mjs", "index.js", "src/agent.js", "src/index.js"),
)
_PROGRAM: Final = re.compile(r"\.(?:py|js|mjs)$")
_TEST_PATH: Final = re.compile(r"(?:^|/)(?:tests?/|test_|conftest\.py$)|[._]test\.")
MAX_PROGRAMS: Final = 500
MAX_READ_TRACES: Final = 5
CONFIG_NAMES: Final = ("agentci.yaml", "eval_config.yaml")
MAX_FILES: Final = 5000
MAX_DEPTH: Final = 5
MAX_TEXT_BYTES: Final = 256 * 1024
MAX_TRACE_BYTES: Final = 32 * 1024**2
_TRACE_PATH: Final = re.compile(
    r"trace|recording|recorded|otel|otlp|span|transcript", re.IGNORECASE
)
_TRACE_SUFFIXES: Final = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_EVAL_SET_PATH: Final = re.compile(r"eval|golden|case|test", re.IGNORECASE)
_EVAL_SET_KEYS: Final = re.compile(r'"(?:eval_set_id|evalSetId)"|^eval_cases:', re.MULTILINE)
# Of ADK, in the form of eval sets or an older one.
TEST_FILE_SUFFIX: Final = ".test.json"
_TEST_FILE_KEYS: Final = re.compile(rf'{_EVAL_SET_KEYS.pattern}|"expected_tool_use"', re.MULTILINE)
_CASES_PATH: Final = re.compile(r"(?:case|eval|input|question)[^/]*\.(?:jsonl|json|ya?ml)$")
_WORD: Final = r"(?:^|[\s\"'\[,])"
# What a package needs beside it, as in `pydantic-ai-slim[openai]`.
_EXTRAS: Final = re.compile(r"(?<=[\w.-])\[[\w\s.,-]*\]")


class RecordedAgent(Struct, frozen=True, kw_only=True):
    """Requests that `agentci record` kept, with which the agent can be replayed.

    Attributes:
        traces: the file with the traces.
        cases: the file with the inputs; empty if the agent was recorded without one.
        prints_answers: whether the answers of all cases are what the agent prints.
    """

    traces: str
    cases: str
    prints_answers: bool = False


class Project(Struct, frozen=True, kw_only=True):
    """What was found; paths are relative to the working directory.

    Attributes:
        configs: agentci, agentevals and AgentV configs, nearest first.
        framework: a package of the agent; empty if none is known.
        command: how the agent probably runs; empty if there is no sign of it.
        agents: programs that use a framework, if there is no command.
        install: the command that installs its packages; empty without any.
        traces: a glob of recorded runs; empty if there are none.
        has_tool_status: whether the recorded runs say which tool calls failed.
        eval_sets: files with eval cases.
        recorded: what can be replayed; None without recorded requests or their inputs.
        has_pytest: whether its tests use pytest.
        is_python: whether its packages are installed with pip.
    """

    configs: tuple[str, ...] = ()
    framework: str = ""
    command: str = ""
    agents: tuple[str, ...] = ()
    install: str = ""
    traces: str = ""
    has_tool_status: bool = False
    eval_sets: tuple[str, ...] = ()
    recorded: RecordedAgent | None = None
    has_pytest: bool = False

    @property
    def is_python(self) -> bool:
        """Whether its packages are installed with pip."""
        return self.install.startswith("pip ")


def find_project(workspace: Workspace) -> Project:
    """Look at the names and beginnings of the files below the working directory."""
    files = sorted(_list_files(workspace.cwd), key=lambda name: (name.count("/"), name))
    texts = {name: _read(name, workspace) for name in _list_manifests(files)}
    manifest = "\n".join(texts.values())
    configs = [name for name in files if Path(name).name in CONFIG_NAMES]
    with suppress(InputError):
        found, _ = find_configs((), workspace)
        names = [path.relative_to(workspace.cwd).as_posix() for path in found if is_file(path)]
        configs += filter(_is_text, names)
    programs = _find_programs(files, workspace)
    traces = _find_traces(files, workspace)
    command = _guess_command(files, programs, workspace)
    return Project(
        configs=tuple(dict.fromkeys(configs)),
        framework=_find_framework(manifest, files) or next(iter(programs.values()), ""),
        command=command,
        agents=() if command else tuple(programs),
        install=_find_install_command(files),
        traces=traces,
        has_tool_status=_has_tool_status(fnmatch.filter(files, traces), workspace),
        eval_sets=tuple(_find_eval_sets(files, workspace)),
        recorded=_find_recorded_agent(files, workspace),
        has_pytest=any(Path(name).name in ("conftest.py", "pytest.ini") for name in files)
        or "pytest" in manifest,
    )


def _list_files(root: Path) -> Iterator[str]:
    """Yield up to ``MAX_FILES`` regular files, without hidden folders, dependencies and links.

    Names that are not UTF-8 are left out: no config can name them.
    """
    waiting, count = [(root, 0)], 0
    while waiting and count < MAX_FILES:
        folder, depth = waiting.pop(0)
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                if path.is_symlink():
                    continue
                is_inner = not path.name.startswith(".") and path.name not in SKIPPED_FOLDERS
                if path.is_dir():
                    if is_inner and depth < MAX_DEPTH and path.name != "agentci-results":
                        waiting.append((path, depth + 1))
                elif count < MAX_FILES and is_file(path):
                    count += 1
                    name = path.relative_to(root).as_posix()
                    if _is_text(name):
                        yield name


def _is_text(name: str) -> bool:
    return LONE_SURROGATE.search(name) is None


def _list_manifests(files: Sequence[str]) -> Iterator[str]:
    names = ("pyproject.toml", "package.json")
    for file in files:
        name = Path(file).name
        if name in names or (name.startswith("requirements") and name.endswith(".txt")):
            yield file


def _read(name: str, workspace: Workspace) -> str:
    with suppress(InputError, OSError):
        path = workspace.resolve_given(workspace.cwd / name)
        return read_start(path, MAX_TEXT_BYTES).decode("utf-8", "replace")
    return ""


def _find_framework(manifest: str, files: Sequence[str]) -> str:
    """Find a package, also by one of its parts such as ``llama-index-core``."""
    has_node = any(Path(name).name == "package.json" for name in files)
    named = _EXTRAS.sub("", manifest)
    for package in FRAMEWORKS:
        if package == "ai" and not has_node:
            continue
        part = "" if package in ("ai", "anthropic", "openai") else r"(?:-[\w-]+)?"
        if re.search(rf"{_WORD}{re.escape(package)}{part}(?![\w-])", named, re.MULTILINE):
            return package
    return ""


def _find_programs(files: Sequence[str], workspace: Workspace) -> dict[str, str]:
    """Find the programs that import a framework, and its package; those at the root come first."""
    found: dict[str, str] = {}
    programs = (name for name in files if _PROGRAM.search(name) and not _TEST_PATH.search(name))
    for name in islice(programs, MAX_PROGRAMS):
        text = _read(name, workspace)
        package = next((each for each in FRAMEWORKS if _imports(text, each, name)), None)
        if package is not None:
            found[name] = package
    return found


def _imports(text: str, package: str, file: str) -> bool:
    if file.endswith(".py"):
        module = _MODULES.get(package) or rf"{package.replace('-', '_')}\w*"
        pattern = rf"^\s*(?:from|import)\s+{module}[\s.,]"
        return package != "ai" and bool(re.search(pattern, f"{text}\n", re.MULTILINE))
    return bool(re.search(rf"(?:from|import|require\()\s*[\"']{re.escape(package)}[\"'/]", text))


def _find_install_command(files: Sequence[str]) -> str:
    if "requirements.txt" in files:
        return "pip install --target .agent-packages -r requirements.txt"
    if "pyproject.toml" in files:
        return "pip install --target .agent-packages ."
    if "package-lock.json" in files:
        return "npm ci"
    return "npm install" if "package.json" in files else ""


def _guess_command(files: Sequence[str], programs: Mapping[str, str], workspace: Workspace) -> str:
    if "package.json" in files:
        scripts: Json = None
        with suppress(InputError):
            content = read_json(_read("package.json", workspace).encode(), file="package.json")
            scripts = content.value.get("scripts") if isinstance(content.value, dict) else None
        if isinstance(scripts, dict) and "agent" in scripts:
            return "npm run --silent agent"
    file = next((name for name in AGENT_FILES if name in files), None)
    if file is None and len(programs) == 1:
        file = next(iter(programs))
    if file is None:
        return ""
    program = "python" if file.endswith(".py") else "node"
    takes_input = re.search(r"sys\.argv|argparse|process\.argv", _read(file, workspace))
    words = shlex.join((program, file))
    return f"{words} {{input}}" if takes_input else words


def _find_traces(files: Sequence[str], workspace: Workspace) -> str:
    """Return a glob of the folder with the most recorded runs."""
    found: dict[str, int] = {}
    folders = {Path(name).parent for name in files}
    recorded = {each.with_suffix("") for each in folders if each.suffix == REQUESTS_SUFFIX}
    for name in files:
        is_named = _TRACE_PATH.search(name) and "test" not in name
        if name.endswith(_TRACE_SUFFIXES) and (is_named or Path(name).with_suffix("") in recorded):
            suffix = next(each for each in reversed(_TRACE_SUFFIXES) if name.endswith(each))
            folder = Path(name).parent.as_posix()
            glob = f"*{suffix}" if folder == "." else f"{folder}/*{suffix}"
            if _is_recording(name, workspace):
                found[glob] = found.get(glob, 0) + 1
    return max(found, key=lambda glob: found[glob], default="")


def _is_recording(name: str, workspace: Workspace) -> bool:
    path = workspace.cwd / name
    if not is_file(path) or path.stat().st_size > MAX_TRACE_BYTES:
        return False
    with suppress(InputError):
        resolved = workspace.resolve_given(path)
        chunks = read_chunks(resolved, name=name, limit_bytes=MAX_TRACE_BYTES)
        return detect_format_name(chunks, file=name) is not None
    return False


def _has_tool_status(files: Sequence[str], workspace: Workspace) -> bool:
    """Whether the recorded runs say of each of their tool calls if it failed; False without any."""
    found = False
    for name in files[:MAX_READ_TRACES]:
        spool = SpooledChunks()
        with suppress(InputError, RecordingError):
            path = workspace.resolve_given(workspace.cwd / name)
            chunks = read_chunks(path, name=name, limit_bytes=MAX_TRACE_BYTES)
            stored = read_recording(chunks, file=name, spool=spool)
            groups = group_runs(stored, spool, group_by="auto", multi_turn_eval_cases=False)
            turns = (turn for each in groups for turn in convert_run(each, spool).turns)
            if any(call.failed is None for turn in turns for call in turn.tool_calls):
                return False
            found = True
    return found


def _find_eval_sets(files: Sequence[str], workspace: Workspace) -> Iterator[str]:
    for name in files:
        is_named = name.endswith((".json", ".yaml")) and _EVAL_SET_PATH.search(name)
        keys = _TEST_FILE_KEYS if name.endswith(TEST_FILE_SUFFIX) else _EVAL_SET_KEYS
        if is_named and keys.search(_read(name, workspace)):
            yield name


def _find_recorded_agent(files: Sequence[str], workspace: Workspace) -> RecordedAgent | None:
    """Find the first folder of recorded requests whose inputs are known."""
    folders: dict[str, set[str]] = {}
    for name in files:
        path = Path(name)
        if path.parent.suffix == REQUESTS_SUFFIX and f'"{FORMAT}"' in _read(name, workspace):
            folders.setdefault(path.parent.as_posix(), set()).add(path.name)
    for folder, names in folders.items():
        traces = f"{folder.removesuffix(REQUESTS_SUFFIX)}.jsonl"
        if traces not in files:
            continue
        if names == {make_file_name(UNNAMED)}:
            return RecordedAgent(traces=traces, cases="")
        cases = next((each for each in files if _has_cases(each, names, workspace)), "")
        if cases:
            sources = EarlierRecording(_read(traces, workspace).splitlines()).list_answer_sources()
            printed = {make_file_name(case) for case, each in sources.items() if each == "stdout"}
            return RecordedAgent(traces=traces, cases=cases, prints_answers=names <= printed)
    return None


def _has_cases(file: str, names: AbstractSet[str], workspace: Workspace) -> bool:
    """Whether the inputs of all recorded cases, by the names of their files, are in a file."""
    if not _CASES_PATH.search(file):
        return False
    with suppress(InputError):
        cases = read_cases(_read(file, workspace).encode(), file=file)
        return names <= {make_file_name(each.id) for each in cases if each.text is not None}
    return False
