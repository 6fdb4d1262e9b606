"""Run the agent of an eval file on one case, and read its output."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentci._util.workspace import is_file, read_file, restore_path, trust_path
from agentci.errors import EvaluatorError, InputError, RecordingError
from agentci.evaluators.agentv.case_texts import format_agent_prompt
from agentci.evaluators.agentv.command_template import (
    OUTPUT_FILE,
    PROMPT,
    PROMPT_FILE,
    fill_command,
    find_placeholders,
    format_file_path,
)
from agentci.evaluators.program_output import describe_exit, format_log_tail
from agentci.execution.executor_api import NO_SANDBOX, ProgramJob
from agentci.model.case import AgentvCase
from agentci.model.program import Agent
from agentci.model.requests import LOCAL_EXECUTOR, ProgramOutput, RunCommand
from agentci.model.values import replace
from agentci.recordings.agentv.read import read_recorded_runs
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.runner.command_jobs import make_command_job
from agentci.runner.services import Services

# Linux allows no longer argument.
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1
FOLDER_MODE: Final = 0o755
# What programs print if an environment variable is missing.
MISSING_VARIABLE: Final = re.compile(
    r"environ|credential|api.?key|auth|token|KeyError", re.IGNORECASE
)


def run_agent(agent: Agent, eval_case: AgentvCase, attempt: int, services: Services) -> RecordedRun:
    """Run the agent on a case once.

    Raises:
        EvaluatorError: it failed, timed out, or returned no valid output.
    """
    try:
        with _make_temporary_folder(sandboxed=agent.sandboxed) as folder:
            return _run_once(agent, eval_case, attempt, folder, services)
    except OSError as error:
        raise EvaluatorError(f"the agent could not be run: {error}") from None
    except EvaluatorError as error:
        raise EvaluatorError(f"the agent {error}") from None


def _run_once(
    agent: Agent, eval_case: AgentvCase, attempt: int, folder: Path, services: Services
) -> RecordedRun:
    job = _make_agent_job(agent, eval_case, attempt, folder, services)
    started = services.clock()
    response = job.run(services.executors[LOCAL_EXECUTOR])
    milliseconds = (services.clock() - started) * 1000
    if response.exit_code != 0:
        ended = describe_exit(
            response, network=agent.network, in_image=False, sandboxed=agent.sandboxed
        )
        raise EvaluatorError(f"{ended}{_hint_at_variables(response)}")
    content = _find_response(agent, response, folder)
    try:
        content.decode()
        runs = read_recorded_runs(content, file="the output", of_one_case=True)
    except UnicodeDecodeError:
        raise EvaluatorError("returned an invalid output: it is not UTF-8") from None
    except RecordingError as error:
        raise EvaluatorError(f"returned an invalid output: {error.problem.message}") from None
    if len(runs) != 1:
        raise EvaluatorError(f"returned {len(runs)} outputs instead of one")
    run = runs[0]
    transcript = run.transcript
    if transcript.duration_ms is None:
        transcript = replace(transcript, duration_ms=round(milliseconds))
    return replace(
        run, case_id=eval_case.id, attempt=attempt, transcript=transcript, place=agent.place
    )


def _make_agent_job(
    agent: Agent, eval_case: AgentvCase, attempt: int, folder: Path, services: Services
) -> ProgramJob:
    prompt, named = format_agent_prompt(eval_case), find_placeholders(agent.command)
    prompt_file = folder / "prompt.txt"
    prompt_file.write_text(prompt, encoding="utf-8", errors="backslashreplace", newline="\n")
    files = (*eval_case.guideline_files, *eval_case.input_files)
    command = fill_command(
        agent.command,
        {
            PROMPT: prompt,
            PROMPT_FILE: str(prompt_file),
            "GUIDELINES": "\n\n".join(map(_read_guideline, eval_case.guideline_files)),
            "EVAL_ID": eval_case.id,
            "ATTEMPT": str(attempt),
            OUTPUT_FILE: str(_output_file(folder)),
        },
        [format_file_path(path, agent.files_format) for path in files],
    )
    for word in command:
        if "\0" in word:
            raise EvaluatorError("cannot be started: an argument contains a NUL character")
        if len(word.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES:
            hint = "use {PROMPT_FILE} instead of {PROMPT}"
            raise EvaluatorError(
                "cannot be started: an argument is longer than"
                f" {MAX_ARGUMENT_BYTES:,} bytes; {hint}"
            )
    request = RunCommand(
        command=command,
        folder=agent.folder,
        home=agent.home,
        stdin="" if {PROMPT, PROMPT_FILE} & set(named) else prompt,
        timeout_seconds=agent.timeout_seconds,
        network=agent.network,
        variables=agent.variables,
        isolation="spawn",
    )
    job = make_command_job(request, services)
    if not agent.sandboxed:
        return replace(job, sandbox_policy=NO_SANDBOX)
    readable = (*job.sandbox_policy.readable, trust_path(folder))
    return replace(job, sandbox_policy=replace(job.sandbox_policy, readable=readable))


def _find_response(agent: Agent, response: ProgramOutput, folder: Path) -> bytes:
    """The output file if the command names one, else stdout."""
    content, where = response.stdout, "printed nothing on stdout"
    if OUTPUT_FILE in find_placeholders(agent.command):
        path = _output_file(folder)
        if not is_file(path):
            raise EvaluatorError(f"wrote no {{{OUTPUT_FILE}}}{_format_stderr(response)}")
        content, where = _read_response_file(path), f"wrote nothing into {{{OUTPUT_FILE}}}"
    if not content.strip():
        raise EvaluatorError(f"{where}{_format_stderr(response)}")
    return content


def _read_guideline(file: str) -> str:
    try:
        return read_file(restore_path(file), name=file, limit_bytes=MAX_RECORDING_BYTES).decode(
            "utf-8", "replace"
        )
    except InputError as error:
        raise EvaluatorError(f"could not be run: {error.problems[0].message}") from None


def _read_response_file(path: Path) -> bytes:
    found = restore_path(f"{trust_path(path.parent)}/{path.name}")
    try:
        return read_file(found, name=f"{{{OUTPUT_FILE}}}", limit_bytes=MAX_RECORDING_BYTES)
    except InputError as error:
        raise EvaluatorError(f"returned an invalid output: {error.problems[0].message}") from None


def _hint_at_variables(response: ProgramOutput) -> str:
    """A hint if the agent seems to miss an environment variable."""
    if MISSING_VARIABLE.search(response.stderr) is None:
        return ""
    return "\n(the agent sees only the environment variables that its `env` names)"


def _output_file(folder: Path) -> Path:
    return folder / "output.json"


def _format_stderr(response: ProgramOutput) -> str:
    stderr = format_log_tail(response.stderr)
    return f"; on stderr:\n{stderr}" if stderr else ""


@contextmanager
def _make_temporary_folder(*, sandboxed: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="agentci-agent-"))
    try:
        if sandboxed:
            folder.chmod(FOLDER_MODE)  # it may run as another user
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
