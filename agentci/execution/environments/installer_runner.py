"""Where installers do their work, and what is said when one of them fails."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.execution.executor import Executor

# uv takes settings from the folders above the one it is started in. Those of the workspace are
# not the user's to install by: a pull request may hold them.
CWD: Final = Path("/")

LAST_LINES: Final = 10
MAX_LAST_WORDS: Final = 1200

# By what pip or uv says, in lower case.
HINTS: Final = {
    "do not match the hashes": "an index has other content than was locked: if that is meant,"
    " run `agentci lock` and review the change",
    "hash mismatch": "an index has other content than was locked: if that is meant,"
    " run `agentci lock` and review the change",
    "ensurepip": "install uv, or pip beside the Python that runs agentci",
    "no space left": "make room on the disk, or name another with --cache-dir",
}
HINT: Final = "try the same with pip by hand; is an index that has it named and reachable?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Runs installers as an executor runs programs, so that a signal ends them, too.

    Attributes:
        environment: all that installers see of ours.
        search_path: folders in which ``uv`` is looked for, as in ``PATH``.
        timeout_seconds: for each step of an installation; most need one second, torch some hundred.
    """

    executor: Executor
    environment: Mapping[str, str] = field(repr=False)
    search_path: str
    timeout_seconds: float = 600.0

    def run(self, command: Sequence[str]) -> bytes:
        """Run one step to its end, and return what it printed to stdout.

        Raises:
            EvaluatorError: it failed; as the end of a sentence about the evaluator.
        """
        begun = time.monotonic()
        try:
            reply = self.executor.run(
                command,
                stdin=b"",
                timeout_seconds=self.timeout_seconds,
                cwd=CWD,
                environment=self.environment,
            )
        except EvaluatorError as error:
            if time.monotonic() - begun < self.timeout_seconds:
                raise failure(f"{Path(command[0]).name} {error}") from None
            took = f"it took longer than {self.timeout_seconds:g}s and was ended"
            raise failure(f"{took} (is the package index slow, or much to be built?)") from None
        if reply.exit_code != 0:
            said = reply.stderr.strip() or reply.stdout.decode("utf-8", "replace").strip()
            raise failure(_last_words(said) or f"exit code {reply.exit_code}", hint=_hint(said))
        return reply.stdout

    def succeeds(self, command: Sequence[str]) -> bool:
        """Whether a command works on this machine."""
        try:
            self.run(command)
        except EvaluatorError:
            return False
        return True


def failure(reason: str, *, hint: str = "") -> EvaluatorError:
    """The error of an evaluator that lacks what it needs."""
    way_out = f"\n({hint})" if hint else ""
    return EvaluatorError(
        f"could not install its requirements (requirements.txt): {reason}{way_out}"
    )


def _last_words(said: str) -> str:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    return truncate.middle("\n".join(lines[-LAST_LINES:]), MAX_LAST_WORDS)


def _hint(said: str) -> str:
    heard = said.lower()
    return next((hint for words, hint in HINTS.items() if words in heard), HINT)
