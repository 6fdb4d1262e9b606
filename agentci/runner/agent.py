"""Runs the agent of an eval file over one case, and reads what it answered."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentci._util.text.secrets import without
from agentci._util.workspace import is_file, read_file
from agentci.errors import EvaluatorError, InputError, RecordingError
from agentci.evaluators.agentv.agent_prompt import prompt_of
from agentci.evaluators.agentv.command_template import (
    OUTPUT_FILE,
    PROMPT,
    PROMPT_FILE,
    filled_in,
    formatted,
    names_in,
)
from agentci.evaluators.process_errors import ending, last_lines
from agentci.execution.job import Job
from agentci.execution.limits import UNCONFINED
from agentci.model.agent import Agent
from agentci.model.requests import LOCAL, ProgramReply, RunCommand
from agentci.model.sample import Sample
from agentci.model.values import replace
from agentci.recordings.agentv.read import read_rows
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.file_content import MAX_RECORDING_BYTES
from agentci.runner.command_line import job_of_line
from agentci.runner.services import World
from agentci.runner.transcript import values_of

# The longest word that Linux hands to a program.
MAX_WORD_BYTES: Final = 128 * 1024 - 1
FOLDER_MODE: Final = 0o755
# What programs say that miss a variable.
OF_VARIABLES: Final = re.compile(r"environ|credential|api.?key|auth|token|KeyError", re.IGNORECASE)


def run_agent(agent: Agent, sample: Sample, attempt: int, world: World) -> RecordedRun:
    """Have the agent answer a case once.

    Raises:
        EvaluatorError: it failed, took too long, or did not answer; says so as a sentence.
    """
    try:
        with _folder(jailed=agent.jailed) as folder:
            return _run(agent, sample, attempt, folder, world)
    except OSError as error:
        raise EvaluatorError(f"the agent could not be run: {error}") from None
    except EvaluatorError as error:
        secrets = values_of(agent.variables, world.variables)
        raise EvaluatorError(f"the agent {without(str(error), secrets)}") from None


def _run(agent: Agent, sample: Sample, attempt: int, folder: Path, world: World) -> RecordedRun:
    job = _job(agent, sample, attempt, folder, world)
    started = world.clock()
    reply = job.run(world.executors[LOCAL])
    milliseconds = (world.clock() - started) * 1000
    if reply.exit_code != 0:
        ended = ending(reply, network=agent.network, in_image=False, jailed=agent.jailed)
        raise EvaluatorError(f"{ended}{_hint_at_variables(reply)}")
    run = _read(_content(agent, reply, folder))
    transcript = run.transcript
    if transcript.duration_ms is None:
        transcript = replace(transcript, duration_ms=round(milliseconds))
    return replace(
        run, case_id=sample.id, attempt=attempt, transcript=transcript, place=agent.place
    )


def _job(agent: Agent, sample: Sample, attempt: int, folder: Path, world: World) -> Job:
    prompt, named = prompt_of(sample), names_in(agent.command)
    prompt_file = folder / "prompt.txt"
    prompt_file.write_text(prompt, encoding="utf-8", errors="backslashreplace", newline="\n")
    files = (*sample.guideline_files, *sample.input_files)
    command = filled_in(
        agent.command,
        {
            PROMPT: prompt,
            PROMPT_FILE: str(prompt_file),
            "GUIDELINES": "\n\n".join(
                Path(each).read_text("utf-8") for each in sample.guideline_files
            ),
            "EVAL_ID": sample.id,
            "ATTEMPT": str(attempt),
            OUTPUT_FILE: str(_output_file(folder)),
        },
        [formatted(path, agent.files_format) for path in files],
    )
    _look_at(command)
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
    job = job_of_line(request, world)
    if not agent.jailed:
        return replace(job, confinement=UNCONFINED)
    readable = (*job.confinement.readable, folder)
    return replace(job, confinement=replace(job.confinement, readable=readable))


def _look_at(command: tuple[str, ...]) -> None:
    for word in command:
        if "\0" in word:
            raise EvaluatorError("cannot be given a NUL character on its command line")
        if len(word.encode("utf-8", "replace")) > MAX_WORD_BYTES:
            hint = "name {PROMPT_FILE} in the place of {PROMPT}"
            raise EvaluatorError(f"cannot be given so long a prompt on its command line; {hint}")


def _content(agent: Agent, reply: ProgramReply, folder: Path) -> bytes:
    """The reply: what is in the file that the command names for it, else what was printed."""
    content, where = reply.stdout, "printed nothing on stdout"
    if OUTPUT_FILE in names_in(agent.command):
        path = _output_file(folder)
        if not is_file(path):
            raise EvaluatorError(f"wrote no {{{OUTPUT_FILE}}}{_last_words(reply)}")
        content, where = _read_file(path), f"wrote nothing into {{{OUTPUT_FILE}}}"
    if not content.strip():
        raise EvaluatorError(f"{where}{_last_words(reply)}")
    return content


def _read_file(path: Path) -> bytes:
    try:
        return read_file(path, name=f"{{{OUTPUT_FILE}}}", limit_bytes=MAX_RECORDING_BYTES)
    except InputError as error:
        raise EvaluatorError(f"answered what cannot be read: {error.problems[0].message}") from None


def _read(content: bytes) -> RecordedRun:
    try:
        content.decode()
        runs = read_rows(content, file="its reply", of_one_case=True)
    except UnicodeDecodeError:
        raise EvaluatorError("answered what is not UTF-8") from None
    except RecordingError as error:
        raise EvaluatorError(f"answered what cannot be read: {error.problem.message}") from None
    if len(runs) != 1:
        raise EvaluatorError(f"answered {len(runs)} outputs, where one was asked for")
    return runs[0]


def _hint_at_variables(reply: ProgramReply) -> str:
    """A way out for who looked for a key in vain."""
    if OF_VARIABLES.search(reply.stderr) is None:
        return ""
    return "\n(of your environment variables it sees those that are named in its `env`)"


def _output_file(folder: Path) -> Path:
    return folder / "output.json"


def _last_words(reply: ProgramReply) -> str:
    said = last_lines(reply.stderr)
    return f"; on stderr:\n{said}" if said else ""


@contextmanager
def _folder(*, jailed: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="agentci-agent-"))
    try:
        if jailed:
            folder.chmod(FOLDER_MODE)  # it may run as another user
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
