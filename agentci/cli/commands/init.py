"""``agentci init``: write a config and a workflow for a repository, and evaluate its traces."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import make_folder, write_file_atomically, write_to_stream
from agentci._util.text.escape import escape_for_log
from agentci._util.text.json_document import LONE_SURROGATE
from agentci._util.text.suggest import quote_name
from agentci._util.text.truncate import truncate_list
from agentci._util.workspace import Workspace, is_file, limit_input, read_start
from agentci.cli.commands.record import find_placeholder
from agentci.cli.project import (
    FRAMEWORKS,
    MAX_TEXT_BYTES,
    Project,
    RecordedAgent,
    find_project,
)
from agentci.cli.session import Session
from agentci.config.discovery import DEFAULT_EVAL_SET
from agentci.config.options import COMMAND_PLACEHOLDER, DEFAULT_RECORDING
from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.model.values import replace
from agentci.reports.groups_and_totals import format_problem

CONFIG_FILE: Final = "agentci.yaml"
WORKFLOW_FILE: Final = ".github/workflows/agent-eval.yml"
EVAL_FILE_SUFFIX: Final = ".eval.yaml"
INPUT_WORD: Final = "{input}"
MAX_NAMES: Final = 3
# As in docs/recipes.md; a test holds them equal.
CHECKOUT: Final = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
SETUP_PYTHON: Final = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0"
UPLOAD: Final = "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"
DOWNLOAD: Final = "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"
ACTION: Final = "org/agent-eval-action@v1 # zizmor: ignore[unpinned-uses]"
OWNER_NOTE: Final = "`org`: the owner of your copy; pin it to a commit"
FIRST_CHECKS: Final = ("no_secrets: true", "max_tool_calls: 30")
# A replayed answer has the same words, unless the agent or the recording changed.
ANSWER_LINES: Final = (
    "evaluators: # the words of answers, see agentci's docs/eval-cases.md#answers",
    "  - {name: response_match_score, type: builtin, threshold: 1, turn_score: min}",
)
TOOL_ERRORS_CHECK: Final = "no_tool_errors: true"
# Of recordings of model calls, in which some frameworks say which tools failed.
KNOWN_ERRORS_CHECK: Final = "{check: no_tool_errors, allow_unknown: true}"
LOOSENED_NOTE: Final = "# fails changes that lower thresholds or edit eval cases"
GATE_LINE: Final = f"# gate: {{on_loosened: fail}} {LOOSENED_NOTE}"
# With answers that no eval case expects yet.
ANSWER_GATE_LINES: Final = (
    "gate:",
    "  evaluators: {response_match_score: {on_empty: allow}} # until eval cases have answers",
    f"  # on_loosened: fail {LOOSENED_NOTE}",
)
DEFAULT_TRACES: Final = "traces/*.jsonl"
FIRST_CASES: Final = "eval_cases:\n  - id: hello\n    input: Hello\n"
# Where GitHub evaluates an expression, also in a string of YAML.
EXPRESSION: Final = "${{"
ANSWER_KEY: Final = re.compile(rb"\banswer[\"']?\s*:")
UNCHECKED_OUTPUT: Final = (
    "evaluates the model's answers; anything else that the agent prints is only compared "
    "with the recording and the baseline"
)
NO_MANIFEST: Final = "requirements.txt, pyproject.toml or package.json"
JOB_MINUTES: Final = 30
# Below the limit of the job, so that an agent that hangs is reported.
CASE_SECONDS: Final = 120
COMMAND_SECONDS: Final = 1_200
IGNORED_LINES: Final = ("agentci-results/",)
Ask = Callable[[str], str]


class _Answers(Struct, frozen=True, kw_only=True):
    """What the user decided, or what was found.

    Attributes:
        command: runs the agent, with ``COMMAND_PLACEHOLDER`` if it is not known; empty to
            evaluate the traces in the repository.
    """

    command: str
    eval_sets: tuple[str, ...]
    has_workflow: bool


def init_project(ask: Ask | None, session: Session) -> int:
    """Write what is missing, never over a file that is there, and evaluate the traces, if any.

    Args:
        ask: asks a question and returns the answer; None to take what was found.

    Raises:
        InputError: a file cannot be written, or not be named in a workflow.
    """
    workspace = session.services.workspace
    with limit_input(workspace.display_path(workspace.cwd)):
        project = find_project(workspace)
    _say(session, *_describe(project))
    answers = _decide(project, ask)
    eval_sets = answers.eval_sets
    has_cases = eval_sets or (project.recorded is not None and project.recorded.cases)
    if INPUT_WORD in answers.command and not has_cases:
        _write(workspace.cwd / DEFAULT_EVAL_SET, FIRST_CASES, session)
        eval_sets = (DEFAULT_EVAL_SET,)
    config = next(iter(project.configs), CONFIG_FILE)
    compares_answers = _lack_answers(eval_sets, workspace)
    if config not in project.configs:
        content = make_config(project, eval_sets, compares_answers=compares_answers)
        _write(workspace.cwd / config, content, session)
    traces = "" if _names_traces(config, workspace) else project.traces
    if answers.has_workflow:
        prefix = _find_prefix(workspace)
        in_root: Callable[[str], str] = lambda name: f"{prefix}/{name}" if prefix else name  # noqa: E731
        recorded = project.recorded or RecordedAgent(traces=DEFAULT_RECORDING, cases="")
        cases = tuple(filter(None, (recorded.cases,)))
        if not cases and INPUT_WORD in answers.command:
            cases = eval_sets
        workflow = make_workflow(
            in_root(config),
            project,
            command=answers.command,
            cases=tuple(map(in_root, cases)),
            record_to=in_root(recorded.traces),
            traces=in_root(traces) if traces else "",
            folder=prefix,
        )
        _write(workspace.root / WORKFLOW_FILE, workflow, session)
    _ignore_results(session)
    if answers.has_workflow and answers.command and not project.install:
        _say(
            session,
            f"warning: found no {NO_MANIFEST}, so the workflow installs no packages; if the "
            f"agent needs some, add one, delete {WORKFLOW_FILE} and run `agentci init` again",
        )
    _say(session, *_list_limits(config, project, answers, compares_answers=compares_answers))
    return _evaluate(config, project, replace(answers, eval_sets=eval_sets), traces, session)


def _lack_answers(eval_sets: Sequence[str], workspace: Workspace) -> bool:
    """Return whether there are eval sets, and none has answers, which may be in other words.

    Those that `agentci accept` adds have the words of recorded runs.
    """
    texts = [
        read_start(workspace.resolve_given(workspace.cwd / name, named=name), MAX_TEXT_BYTES)
        for name in eval_sets
        if not name.endswith(".json")
    ]
    return len(texts) == len(eval_sets) > 0 and not any(map(ANSWER_KEY.search, texts))


def _find_prefix(workspace: Workspace) -> str:
    """Return the path of the working directory in the repository; empty for its root."""
    folder = workspace.cwd.relative_to(workspace.root).as_posix()
    return "" if folder == "." else folder


def _describe(project: Project) -> Iterator[str]:
    found = {
        "config": ", ".join(project.configs[:3]),
        "framework": project.framework,
        "agent": project.command,
        "traces": project.traces,
        "recorded requests": "the workflow can run the agent from them"
        if project.recorded is not None
        else "",
        "eval set": ", ".join(truncate_list(project.eval_sets, MAX_NAMES)),
        "tests": "pytest (evaluators also run there, see agentci's docs/pytest.md)"
        if project.has_pytest
        else "",
    }
    known = {name: value for name, value in found.items() if value}
    yield from (f"found {name}: {value}" for name, value in known.items())
    if not known:
        yield "found no agent, traces or configs"
    elif project.agents:
        names = ", ".join(truncate_list(project.agents, MAX_NAMES))
        yield f"found several programs that may be the agent: {names}"
    elif not (project.command or project.traces or project.configs):
        yield "found no agent"
    if project.framework and not project.traces:
        anchor = FRAMEWORKS[project.framework]
        yield f"how to record {project.framework}: agentci's docs/frameworks.md#{anchor}"


def _decide(project: Project, ask: Ask | None) -> _Answers:
    # Traces in the repository are recorded elsewhere, and AgentV eval files run the agent.
    has_runs = project.traces or any(each.endswith(EVAL_FILE_SUFFIX) for each in project.configs)
    recorded = project.recorded
    command = "" if has_runs and recorded is None else project.command
    if recorded is not None and not recorded.cases and INPUT_WORD in command:
        command = ""  # It was recorded with an input that is not known.
    eval_sets = project.eval_sets
    has_workflow = True
    if ask is not None:
        if not has_runs or recorded is not None:
            shown = f" [{command}]" if command else ""
            question = f"Command that runs the agent ({INPUT_WORD} for its input; - for none)"
            command = ask(f"{question}{shown}: ").strip() or command
        if len(eval_sets) > 1:
            given = ask(f"Eval sets, separated by commas [{', '.join(eval_sets)}]: ")
            eval_sets = tuple(filter(None, map(str.strip, given.split(",")))) or eval_sets
        has_workflow = ask(f"Write {WORKFLOW_FILE}? [Y/n] ").strip().lower() not in ("n", "no")
    if not command and (not has_runs or recorded is not None):
        is_single = recorded is not None and not recorded.cases
        command = COMMAND_PLACEHOLDER if is_single else f"{COMMAND_PLACEHOLDER} {INPUT_WORD}"
    command = "" if command == "-" else command
    return _Answers(command=command, eval_sets=eval_sets, has_workflow=has_workflow)


def _write(path: Path, text: str, session: Session) -> None:
    """Write a new file; one that exists stays as it is.

    Raises:
        InputError: it cannot be written, or a link leads out of the workspace.
    """
    workspace = session.services.workspace
    name = workspace.display_path(path)
    resolved = workspace.resolve_given(path, named=name)
    if resolved.path.exists():
        _say(session, f"kept {name}, which exists")
        return
    try:
        make_folder(resolved.path.parent, workspace.root)
        write_file_atomically(resolved.path, text.encode(), owner=workspace.root)
    except OSError as error:
        message = f"{name} cannot be written: {error.strerror}"
        raise InputError.from_message(message) from None
    _say(session, f"wrote {name}")


def _ignore_results(session: Session) -> None:
    workspace = session.services.workspace
    path = workspace.resolve_given(workspace.cwd / ".gitignore")
    text = ""
    if is_file(path.path):
        text = read_start(path, MAX_TEXT_BYTES).decode("utf-8", "surrogateescape")
    changed = add_ignored_lines(text)
    if changed != text and len(text.encode("utf-8", "surrogateescape")) < MAX_TEXT_BYTES:
        content = changed.encode("utf-8", "surrogateescape")
        write_file_atomically(path.path, content, owner=workspace.root)
        _say(session, "added agentci-results/ to .gitignore")


def _names_traces(config: str, workspace: Workspace) -> bool:
    path = workspace.resolve_given(workspace.cwd / config, named=config)
    try:
        text = read_start(path, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError as error:
        message = f"{config} cannot be read: {error.strerror}"
        raise InputError.from_message(message) from None
    return any(line.startswith("traces:") for line in text.splitlines())


def _evaluate(
    config: str, project: Project, answers: _Answers, traces: str, session: Session
) -> int:
    """Evaluate the traces once, or say how to record them."""
    if project.traces and answers.has_workflow and not answers.command:
        _say(
            session,
            f"{WORKFLOW_FILE} evaluates the committed traces, and does not run the agent (see "
            "agentci's docs/recording.md)",
        )
    missing = _describe_placeholder(answers, session.services.workspace)
    if not project.traces:
        _say(session, "next:", *(f"  {each}" for each in missing), *_list_next_commands(answers))
        return 0
    from agentci.cli.commands.run import run  # noqa: PLC0415 (only with traces)

    values = {"traces": (traces,)} if traces else {}
    try:
        code = run(parse_settings((config,), values), session)
    except InputError as error:
        problems = (f"  {format_problem(each)}" for each in error.problems)
        _say(session, "the first run needs more:", *problems)
        code = 0
    else:
        if not answers.eval_sets:
            _say(session, "next: agentci accept   # makes good runs the expectation")
    _say(session, *(f"next: {each}" for each in missing))
    return code


def _describe_placeholder(answers: _Answers, workspace: Workspace) -> list[str]:
    """Return what is to be filled in in the workflow, if it has been written without a command."""
    place = find_placeholder(WORKFLOW_FILE, workspace)
    if place is None or not answers.has_workflow:
        return []
    return [f"replace {COMMAND_PLACEHOLDER} in {place} by the command that runs your agent"]


def _list_limits(
    config: str, project: Project, answers: _Answers, *, compares_answers: bool
) -> Iterator[str]:
    """Yield what the written config and the workflow check, and what they do not."""
    if config not in project.configs:
        yield _describe_checks(project, config, compares_answers=compares_answers)
    if answers.has_workflow and project.recorded and not project.recorded.prints_answers:
        yield f"{WORKFLOW_FILE} {UNCHECKED_OUTPUT}"


def _describe_checks(project: Project, config: str, *, compares_answers: bool) -> str:
    compared = "tool calls and answers" if compares_answers else "tool calls"
    unchecked = "tool results" if compares_answers else "the content of answers and tool results"
    if not project.has_tool_status:
        unchecked += ", nor whether tools failed if the traces do not record it"
    return (
        f"{config} checks for secrets and failed tool calls, limits the number of tool calls, and "
        f"compares {compared} with those that eval cases expect. It does not check {unchecked} "
        "(see agentci's docs/checks.md)"
    )


def _list_next_commands(answers: _Answers) -> Iterator[str]:
    command = answers.command or "COMMAND"
    files = answers.eval_sets if INPUT_WORD in command else ()
    if DEFAULT_EVAL_SET in files:
        yield f"  put the questions to your agent into {DEFAULT_EVAL_SET}"
    cases = "".join(f" --cases {shlex.quote(each)}" for each in files)
    yield f"  agentci record{cases} -- {command}   # with a key of the model"
    yield "  agentci run       # the verdict"
    yield "  agentci accept    # makes good runs the expectation"
    replays = "the workflow answers the agent from the recording"
    if not answers.command and answers.has_workflow:
        replays = f"{WORKFLOW_FILE} evaluates the committed traces"
        yield f"  add `record: COMMAND` and `replay: true` to {WORKFLOW_FILE}   # runs the agent"
    yield f"  git add . && git commit{f'   # {replays}' if answers.has_workflow else ''}"


def _say(session: Session, *lines: str) -> None:
    text = "".join(f"{escape_for_log(line)}\n" for line in lines)
    write_to_stream(text, session.out)


def make_config(project: Project, eval_sets: Sequence[str], *, compares_answers: bool) -> str:
    """Make a config with checks that need no expected answers.

    Args:
        eval_sets: files with eval cases.
        compares_answers: whether it also compares answers, once eval cases have some.
    """
    lines = [f"traces: {_quote(project.traces or DEFAULT_TRACES)}"]
    if eval_sets:
        names = ", ".join(_quote(each) for each in eval_sets)
        lines.append(f"eval_set: [{names}]" if len(eval_sets) > 1 else f"eval_set: {names}")
    else:
        lines.append(f"# eval_set: {DEFAULT_EVAL_SET} # `agentci accept` writes it from good runs")
    # Cases in YAML need not list their calls.
    if eval_sets and all(each.endswith(".json") for each in eval_sets):
        metric = "{name: tool_trajectory_avg_score, type: builtin, threshold: 1.0}"
        lines += ["evaluators:", f"  - {metric}"]
    else:
        lines += ANSWER_LINES if compares_answers else [f"# {each}" for each in ANSWER_LINES]
    lines.append("checks: # see agentci's docs/checks.md for more")
    lines += [f"  - {each}" for each in FIRST_CHECKS]
    lines.append(f"  - {TOOL_ERRORS_CHECK if project.has_tool_status else KNOWN_ERRORS_CHECK}")
    lines += ANSWER_GATE_LINES if compares_answers else [GATE_LINE]
    return "\n".join((*lines, ""))


def make_workflow(  # noqa: PLR0913 (what a workflow has)
    config: str,
    project: Project,
    *,
    command: str,
    cases: Sequence[str],
    record_to: str = DEFAULT_RECORDING,
    traces: str = "",
    folder: str = "",
) -> str:
    """Make a workflow for pull requests: install, run the agent from its recording, evaluate.

    Args:
        config: path of the config in the repository.
        command: runs the agent; empty if traces are in the repository.
        cases: files with the agent's inputs; empty for a command without any.
        record_to: file with the traces of the agent.
        traces: traces that the config does not name.
        folder: the project's folder in the repository; empty for its root.

    Raises:
        InputError: GitHub would evaluate an expression in a path.
    """
    for path in (config, *cases, record_to, traces, folder):
        _check_path(path)
    lines = [
        "name: agent",
        "on:",
        "  push: {branches: [main, master]} # their results are the baseline of pull requests",
        "  pull_request:",
        "  merge_group:",
        "permissions: {}",
        (
            'concurrency: {group: "agent-${{ github.event.number || github.run_id }}", '
            "cancel-in-progress: true}"
        ),
        "jobs:",
        "  eval:",
        "    runs-on: ubuntu-latest",
        f"    timeout-minutes: {JOB_MINUTES}",
        "    permissions: {contents: read, actions: read} # `actions` to find the baseline",
        '    outputs: {page: "${{ steps.page.outputs.artifact-url }}"}',
        "    steps:",
        f"      - uses: {CHECKOUT}",
        "        with: {persist-credentials: false, fetch-depth: 0} # to compare with the base",
    ]
    if command:
        lines += _make_install_steps(project, folder)
    lines.append(f"      - uses: {ACTION} {OWNER_NOTE}")
    if command and project.is_python:
        packages = "/".join(filter(None, ("/github/workspace", folder, ".agent-packages")))
        lines.append(f"        env: {{PYTHONPATH: {json.dumps(packages, ensure_ascii=False)}}}")
    lines += ["        with:", *_format_input("config", config)]
    if command:
        lines += _format_input(
            "record", f"env -C {shlex.quote(folder)} {command}" if folder else command
        )
        if COMMAND_PLACEHOLDER in command:
            lines[-1] += f" # replace {COMMAND_PLACEHOLDER} by the command that runs your agent"
        lines += _format_input("record-to", "" if record_to == DEFAULT_RECORDING else record_to)
        lines += _format_input("cases", cases)
        limit = f"{CASE_SECONDS} # seconds per case" if cases else f"{COMMAND_SECONDS} # seconds"
        lines.append(f"          record-timeout: {limit}")
        lines.append("          replay: true # answers from the recording, without a key")
        if project.recorded is not None and project.recorded.prints_answers:
            lines.append("          answer: stdout # what the agent prints, as it was recorded")
    else:
        lines += _format_input("traces", traces)
    return "\n".join((*lines, *_LAST_LINES, ""))


def _format_input(name: str, value: str | Sequence[str]) -> Iterator[str]:
    """Format an input of the action; one with several values has one per line."""
    values = [value] if isinstance(value, str) else value
    if len(values) > 1:
        yield f"          {name}: |"
        yield from (f"            {each}" for each in values)
    elif values and values[0]:
        yield f"          {name}: {_quote(values[0])}"


# The job that runs the agent must not be able to write. The comment comes after the upload, so
# that it can link each case in the uploaded page.
_LAST_LINES: Final = (
    "          baseline: base",
    f"      - uses: {UPLOAD}",
    "        if: ${{ !cancelled() }}",
    "        with: {name: agentci-results, path: agentci-results/, overwrite: true}",
    f"      - uses: {UPLOAD}",
    "        if: ${{ !cancelled() }}",
    "        id: page",
    "        with: {path: agentci-results/report.html, archive: false} # GitHub shows the page",
    "  comment: # runs no code of the pull request",
    "    needs: [eval]",
    "    if: ${{ !cancelled() && github.event_name == 'pull_request' && needs.eval.outputs.page }}",
    "    runs-on: ubuntu-latest",
    "    permissions: {pull-requests: write}",
    "    steps:",
    f"      - uses: {DOWNLOAD}",
    "        with: {name: agentci-results, path: agentci-results}",
    f"      - uses: {ACTION}",
    (
        "        with: {comment-report: agentci-results, comment: always, "
        'report-url: "${{ needs.eval.outputs.page }}"}'
    ),
)


def _make_install_steps(project: Project, folder: str) -> Iterator[str]:
    if project.is_python:
        yield f"      - uses: {SETUP_PYTHON}"
        yield '        with: {python-version: "3.13"} # that of the action'
    if project.install:
        yield f"      - run: {project.install}"
        if folder:
            yield f"        working-directory: {_quote(folder)}"
    else:
        yield f"      # Installs nothing: found no {NO_MANIFEST}."
        yield "      # If the agent needs packages, add one, and write this file again."


def add_ignored_lines(text: str, lines: Sequence[str] = IGNORED_LINES) -> str:
    """Return the text of .gitignore with the lines that it lacks."""
    known = {line.strip().strip("/") for line in text.splitlines()}
    missing = [line for line in lines if line.strip("/") not in known]
    if not missing:
        return text
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return before + "".join(f"{line}\n" for line in missing)


def _check_path(path: str) -> None:
    """Refuse a path that is another one in a workflow: anyone can add files to a repository."""
    if EXPRESSION in path or LONE_SURROGATE.search(path):
        message = f"{quote_name(path)} cannot be named in a workflow"
        raise InputError.from_message(message, hint=f"rename it, without `{EXPRESSION}`, in UTF-8")


def _quote(text: str) -> str:
    is_plain = text.replace("/", "").replace("_", "").replace("-", "").replace(".", "").isalnum()
    return text if is_plain and text[0].isalpha() else json.dumps(text, ensure_ascii=False)
