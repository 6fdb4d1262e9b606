"""Runs the command of a case, with the environment in which its model calls are recorded."""

import os
import re
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

from agentci._util.text.format import format_count, format_duration
from agentci._util.text.truncate import short
from agentci.execution.user_command import UserCommand
from agentci.record import injected
from agentci.record.case_file import RecordCase
from agentci.record.http_server import ServerAddress
from agentci.record.otlp_receiver import (
    CONTENT_VARIABLE,
    INJECTED_ROUTE,
    ROUTE,
    drop_signal_variables,
    make_export_variables,
)
from agentci.record.printed_answer import read_printed
from agentci.record.proxy import make_api_variables
from agentci.record.record_order import INPUT_PLACE, RecordingSources, RecordOrder
from agentci.record.replay import make_key_variables

INPUT_VARIABLE: Final = "AGENTCI_INPUT"
CASE_VARIABLE: Final = "AGENTCI_CASE"
# As in the files of `injected/`.
CASES_URL_VARIABLE: Final = "AGENTCI_CASES_URL"
CONTENT_CHOICE_VARIABLE: Final = "AGENTCI_CONTENT_CHOICE"
INJECTED_URL_VARIABLE: Final = "AGENTCI_RECORD_URL"
SPANS_FOLDER_VARIABLE: Final = "AGENTCI_SPANS_DIR"
PYTEST_TEST_VARIABLE: Final = "PYTEST_CURRENT_TEST"
PYTEST_PLUGIN: Final = "agentci_recording"
NODE_HOOK: Final = "agentci_ai_sdk.cjs"
# With it, Node refuses to read the hook, and the agent does not start.
NODE_PERMISSION: Final = re.compile(r"--(?:experimental-)?permission\b")
MAX_LAST_LINE: Final = 200
POLL_SECONDS: Final = 0.1
PROGRESS_SECONDS: Final = 30.0
OUTPUT_TAIL_BYTES: Final = 4096


class CommandEnd(NamedTuple):
    """How a command ended.

    Attributes:
        code: its exit code, negative for a signal; None if it was interrupted or not started.
        limit: seconds after which it was stopped; None if it was not stopped by time.
        stopped: why it was stopped before that; empty if it was not.
    """

    code: int | None
    limit: float | None = None
    stopped: str = ""

    def describe(self) -> str:
        """Describe how it failed; empty if it did not."""
        if self.stopped:
            return self.stopped
        if self.limit is not None:
            return f"was stopped after {format_duration(self.limit * 1000, 1)} (--timeout)"
        return describe_exit(self.code) if self.code else ""


class CommandRun(NamedTuple):
    """What came of running a command.

    Attributes:
        output: end of what it printed to stdout and stderr.
        printed: to stdout; None if it was not captured, or is too long.
        is_stdin_unread: whether it read nothing from stdin.
    """

    end: CommandEnd
    output: str = ""
    printed: str | None = None
    is_stdin_unread: bool = True
    seconds: float = 0.0


class _Streams(NamedTuple):
    """What a command reads and writes; None to share it with this process."""

    stdin: IO[bytes] | None = None
    output: IO[bytes] | None = None
    errors: IO[bytes] | None = None


class CommandRunner:
    """Runs the command of an order.

    Args:
        address: of the server that records.
        folder: for files that the programs write.
    """

    def __init__(
        self, order: RecordOrder, sources: RecordingSources, address: ServerAddress, folder: str
    ) -> None:
        self._order = order
        self._sources = sources
        self._address = address
        self._folder = folder

    def run(self, case: RecordCase) -> CommandRun:
        """Run the command for a case."""
        started = time.monotonic()
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
            tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder,
        ):
            stdin.write((case.text or "").encode("utf-8", "surrogateescape"))
            stdin.seek(0)
            shared = self._order.shares_terminal and self._is_single
            streams = _Streams() if shared else _Streams(stdin, output, errors)
            end = self._wait_for_command(case, folder, streams)
            redact = self._order.redactor.redact
            # What was written last, such as the message of a crash, is the end.
            written = sorted((output, errors), key=lambda one: os.fstat(one.fileno()).st_mtime_ns)
            tail = redact("".join(map(_read_tail, written)))
            printed = None if shared else read_printed(output)
            # The command moves the position of the file that it shares.
            is_stdin_unread = not os.lseek(stdin.fileno(), 0, os.SEEK_CUR)
            self._sources.injected.add_files(case.id, Path(folder))
        return CommandRun(
            end=end,
            output=tail,
            printed=None if printed is None else redact(printed),
            is_stdin_unread=is_stdin_unread,
            seconds=time.monotonic() - started,
        )

    @property
    def _is_single(self) -> bool:
        """Whether there is one case without an input, whose command keeps the terminal."""
        return len(self._order.cases) == 1 and self._order.cases[0].text is None

    def _wait_for_command(self, case: RecordCase, folder: str, streams: _Streams) -> CommandEnd:
        words = list(self._order.command)
        if case.input is not None:
            words = [word.replace(INPUT_PLACE, case.input) for word in words]
        elif case.turns:
            given = (case.turns if word == INPUT_PLACE else (word,) for word in words)
            words = [word for each in given for word in each]
        command = UserCommand(
            words,
            self._make_environment(case, folder),
            stdin=streams.stdin,
            output=streams.output,
            errors=streams.errors,
        )
        started = shown = time.monotonic()
        limit, replay = self._order.timeout, self._sources.replay
        while (code := command.wait(POLL_SECONDS)) is None:
            if self._order.is_stopped():
                command.stop()
                return CommandEnd(None)
            # A stopped program may end as if nothing had happened.
            if replay is not None and (reason := replay.find_end(case.id)):
                return CommandEnd(command.stop() or -signal.SIGTERM, stopped=reason)
            if limit is not None and time.monotonic() - started > limit:
                return CommandEnd(command.stop() or -signal.SIGTERM, limit)
            if time.monotonic() - shown > PROGRESS_SECONDS:
                shown = time.monotonic()
                calls = format_count(self._sources.log.count_model_calls(case.id), "model call")
                self._order.report(f"recording{_format_name(case.id)}: {calls} so far")
        return CommandEnd(code)

    def _make_environment(self, case: RecordCase, folder: str) -> dict[str, str]:
        environ = dict(self._order.environ)
        if self._order.recorded is not None and not self._order.fallback:
            environ |= make_key_variables(environ, self._order.recorded)
        variables = make_api_variables(
            environ, lambda route: self._address.make_url(case.id, route)
        )
        if case.id:
            variables[CASE_VARIABLE] = case.id
        else:
            variables |= _make_pytest_variables(environ, self._address)
        if self._order.is_injected:
            url = self._address.make_url(case.id, INJECTED_ROUTE)
            variables |= make_injection_variables(environ, url, folder)
        if case.text is not None and "\0" not in case.text:
            variables[INPUT_VARIABLE] = case.text
        variables |= make_export_variables(environ, self._address.make_url(case.id, ROUTE))
        outer = drop_signal_variables(environ)
        outer.pop(PYTEST_TEST_VARIABLE, None)  # set if a test runs agentci
        return {**outer, **variables}


def describe_exit(code: int) -> str:
    """Describe the exit code of a command, or the signal that ended it."""
    return f"exited with code {code}" if code > 0 else f"was ended by signal {-code}"


def find_last_line(output: str) -> str:
    """Return the last line, without the stack that Node prints after its message, shortened.

    Empty if nothing was printed.
    """
    lines = [line for each in output.splitlines() if (line := " ".join(each.split()))]
    if lines and lines[-1].startswith("Node.js v"):
        stack = (place for place, line in enumerate(lines) if line.startswith("at "))
        lines = lines[: next(stack, -1)]
    return short(lines[-1], MAX_LAST_LINE) if lines else ""


def _make_pytest_variables(environ: Mapping[str, str], address: ServerAddress) -> dict[str, str]:
    """Make the variables with which a pytest run names its tests; others ignore them."""
    plugins = filter(None, (environ.get("PYTEST_PLUGINS"), PYTEST_PLUGIN))
    folders = filter(None, (environ.get("PYTHONPATH"), _find_injected_folder()))
    return {
        CASES_URL_VARIABLE: address.make_url("", "").rstrip("/"),
        "PYTEST_PLUGINS": ",".join(plugins),
        "PYTHONPATH": os.pathsep.join(folders),
    }


def make_injection_variables(
    environ: Mapping[str, str], url: str, spans_folder: str
) -> dict[str, str]:
    """Make the variables that inject the code of ``injected/`` into programs.

    Args:
        url: where Python programs send spans.
        spans_folder: where Node programs write them.
    """
    folder = _find_injected_folder()
    # Before the folder of the environment's own `sitecustomize`, which the injected one runs.
    folders = filter(None, (folder, environ.get("PYTHONPATH")))
    variables = {
        INJECTED_URL_VARIABLE: url,
        SPANS_FOLDER_VARIABLE: spans_folder,
        "PYTHONPATH": os.pathsep.join(folders),
    }
    if not environ.get(CONTENT_VARIABLE):
        variables[CONTENT_CHOICE_VARIABLE] = "1"
    options = environ.get("NODE_OPTIONS", "")
    if not NODE_PERMISSION.search(options):
        path = str(Path(folder) / NODE_HOOK).replace("\\", "\\\\").replace('"', '\\"')
        variables["NODE_OPTIONS"] = f'{options} --require "{path}"'.strip()
    return variables


def _find_injected_folder() -> str:
    return str(Path(injected.__path__[0]).absolute())


def _format_name(case: str) -> str:
    return f" {case}" if case else ""


def _read_tail(output: IO[bytes]) -> str:
    start = max(0, output.seek(0, os.SEEK_END) - OUTPUT_TAIL_BYTES)
    output.seek(start)
    content = output.read()
    # The first line may begin with a part of a key, which would not be recognised.
    cut = content.partition(b"\n")[2] if start else b""
    return (cut or content).decode("utf-8", "replace")
