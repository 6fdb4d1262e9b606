"""What is shown of an evaluator's run on one case: all that went in, came out and became of it."""

import re
from collections.abc import Iterator
from typing import Final

from agentci._util.text.escape import inert, log, one_line, plain_line
from agentci._util.text.format import count, number
from agentci.execution.child_process.pipes import KEPT_LOG_BYTES
from agentci.model.case import Synopsis
from agentci.model.requests import ProgramReply, Reply
from agentci.model.result import Decision, Result, Totals
from agentci.reports.check_text import findings
from agentci.reports.report_format import tally_line
from agentci.runner.services import World

SPELT_OUT: Final = "; what may not be shown as it is, is spelt out"
CUT: Final = "; only the end of it is kept"


class Transcript:
    """Writes to the world's ``out``, at once.

    What programs read and print is written as it is, to the byte where it is UTF-8. On a terminal
    and in a workflow's log, which obey some of it, what they would obey is spelt out.
    """

    def __init__(self, world: World) -> None:
        self._out = world.out
        self._in_workflow = world.github.active
        self._is_obeyed = world.github.active or world.out.isatty()

    def tell_case(self, case: Synopsis, *, position: int, total: int) -> None:
        """Say what is judged."""
        none = f"none ({case.no_golden_because})"
        golden = none if case.golden is None else case.golden
        self._section(
            f"case {case.id} ({position} of {total})",
            f"recording: {case.recording.file}",
            f"golden case: {golden}",
            *(f"warning: {each}" for each in case.warnings),
        )

    def tell_stdin(self, document: str) -> None:
        """Show what the program is given, before it is run."""
        self._show("stdin", document.encode("utf-8"))

    def tell_reply(self, reply: Reply | None, *, seconds: float) -> None:
        """Show what the program left behind; None where it did not end by itself."""
        after = f"after {number(seconds)} seconds"
        if not isinstance(reply, ProgramReply):
            self._section(f"no exit code {after}: it did not run to its end")
            return
        self._show("stdout", reply.stdout)
        said = reply.stderr.encode("utf-8")
        self._show("stderr", said, CUT if len(said) >= KEPT_LOG_BYTES else "")
        self._section(f"exit code {reply.exit_code} {after}")

    def tell_verdict(self, result: Result) -> None:
        """Say what became of it."""
        self._section(f"verdict: {result.status}", *_verdict(result))

    def tell_decision(self, decision: Decision, totals: Totals) -> None:
        """Say what a gate over this evaluator alone would do."""
        word = "open" if decision.open else "shut"
        self._section(f"gate: {word}", *decision.why, tally_line(totals))

    def _section(self, title: str, *lines: str) -> None:
        body = "".join(f"{log(line)}\n" for line in lines)
        self._write(f"=== {one_line(title)} ===\n{body}\n")

    def _show(self, stream: str, content: bytes, note: str = "") -> None:
        """Show all of ``content``, and begin a new line where it did not."""
        text = content.decode("utf-8", "backslashreplace")
        shown = self._harmless(text)
        changed = SPELT_OUT if shown.encode("utf-8") != content else ""
        end = "" if not shown or shown.endswith("\n") else "\n"
        title = f"=== {stream}: {count(len(content), 'byte')}{note}{changed} ==="
        self._write(f"{title}\n{shown}{end}\n")

    def _harmless(self, text: str) -> str:
        if not self._is_obeyed:
            return text
        visible = _UNSEEN.sub(_spelt_out, text)
        return inert(visible) if self._in_workflow else visible

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


# Letters of other scripts are looked at one by one.
_UNSEEN: Final = re.compile(r"[^\n\t -~]")


def _spelt_out(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else ascii(character)[1:-1]


def _verdict(result: Result) -> Iterator[str]:
    judgement = result.judgement
    if judgement is not None:
        yield f"score: {judgement.score}"
    yield f"bar: {result.evaluator.bar}"
    if result.reason is not None:
        yield f"reason: {result.reason}"
    yield from map(plain_line, findings(result))
