"""The files that `agentci init` writes."""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from agentci._util.text.json_document import LONE_SURROGATE
from agentci._util.text.suggest import quote_name
from agentci.cli.project import Project
from agentci.config.options import DEFAULT_RECORDING
from agentci.errors import InputError

# As in docs/recipes.md; a test holds them equal.
CHECKOUT: Final = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
SETUP_PYTHON: Final = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0"
UPLOAD: Final = "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"
ACTION: Final = "org/agent-eval-action@v1 # zizmor: ignore[unpinned-uses]"
FIRST_CHECKS: Final = ("no_secrets: true", "max_tool_calls: 30")
ANSWER_METRIC: Final = "#   - {name: response_match_score, type: builtin, threshold: 0.8}"
TOOL_ERRORS_CHECK: Final = "no_tool_errors: true"
DEFAULT_TRACES: Final = "traces/*.jsonl"
CASES_FILE: Final = "evals/cases.yaml"
FIRST_CASES: Final = "eval_cases:\n  - id: hello\n    input: Hello\n"
# Where GitHub evaluates an expression, also in a string of YAML.
EXPRESSION: Final = "${{"
NO_MANIFEST: Final = "requirements.txt, pyproject.toml or package.json"
IGNORED_LINES: Final = ("agentci-results/",)


def make_config(project: Project, eval_sets: Sequence[str]) -> str:
    """Make a config with checks that need no expected answers.

    Args:
        eval_sets: files with eval cases.
    """
    lines = [f"traces: {_quote(project.traces or DEFAULT_TRACES)}"]
    if eval_sets:
        names = ", ".join(_quote(each) for each in eval_sets)
        lines.append(f"eval_set: [{names}]" if len(eval_sets) > 1 else f"eval_set: {names}")
    else:
        lines.append(f"# eval_set: {CASES_FILE}   # `agentci accept` writes it from good runs")
    # Cases in YAML need not list their calls.
    if eval_sets and all(each.endswith(".json") for each in eval_sets):
        metric = "{name: tool_trajectory_avg_score, type: builtin, threshold: 1.0}"
        lines += ["evaluators:", f"  - {metric}"]
    else:
        lines += ["# evaluators: # compare answers with those of the eval cases", ANSWER_METRIC]
    lines.append("checks: # see docs/checks.md for more")
    lines += [f"  - {each}" for each in FIRST_CHECKS]
    if project.has_tool_status:
        lines.append(f"  - {TOOL_ERRORS_CHECK}")
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
        "on: [pull_request, merge_group]",
        "permissions: {}",
        "concurrency:",
        "  group: agent-${{ github.ref }}",
        "  cancel-in-progress: true",
        "jobs:",
        "  eval:",
        "    name: Evaluate the agent",
        "    runs-on: ubuntu-latest",
        "    permissions:",
        "      contents: read",
        "      pull-requests: write # for the comment",
        "    steps:",
        f"      - uses: {CHECKOUT}",
        "        with:",
        "          persist-credentials: false",
    ]
    if command:
        lines += _make_install_steps(project, folder)
    lines += [
        "      # `org`: the owner of your copy; pin it to a commit",
        f"      - uses: {ACTION}",
    ]
    if command and project.is_python:
        packages = "/".join(filter(None, ("/github/workspace", folder, ".agent-packages")))
        lines += ["        env:", f"          PYTHONPATH: {_quote(packages)}"]
    inputs: dict[str, str | Sequence[str]] = {"config": config}
    if command:
        inputs["record"] = f"env -C {shlex.quote(folder)} {command}" if folder else command
        inputs["record-to"] = "" if record_to == DEFAULT_RECORDING else record_to
        inputs["cases"] = cases
    elif traces:
        inputs["traces"] = traces
    lines.append("        with:")
    for name, value in inputs.items():
        lines += _format_input(name, value)
    if command:
        lines.append("          replay: true # answers from the recording, without a key")
    return "\n".join((*lines, *_COMMENT_STEPS, ""))


def _format_input(name: str, value: str | Sequence[str]) -> Iterator[str]:
    """Format an input of the action; one with several values has one per line."""
    values = [value] if isinstance(value, str) else value
    if len(values) > 1:
        yield f"          {name}: |"
        yield from (f"            {each}" for each in values)
    elif values and values[0]:
        yield f"          {name}: {_quote(values[0])}"


# The comment comes after the upload, so that it can link each case in the uploaded page.
_COMMENT_STEPS: Final = (
    f"      - uses: {UPLOAD}",
    "        if: ${{ !cancelled() }}",
    "        id: page",
    "        with:",
    "          path: agentci-results/report.html",
    "          archive: false # GitHub shows the page instead of a zip file",
    f"      - uses: {ACTION}",
    "        if: ${{ !cancelled() }}",
    "        with:",
    "          comment-report: agentci-results",
    "          comment: always",
    "          report-url: ${{ steps.page.outputs.artifact-url }}",
)


def _make_install_steps(project: Project, folder: str) -> Iterator[str]:
    if project.is_python:
        yield f"      - uses: {SETUP_PYTHON}"
        yield "        with:"
        yield '          python-version: "3.13" # that of the action'
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
