"""Speaks with a container engine by way of the `docker` program, as the user's environment says."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import PROXIES
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramReply

# How long the engine may take for what is a matter of milliseconds on a quiet machine.
ENGINE_SECONDS: Final = 60.0

# Where the engine is, who we are to it, and what helpers of the program need; programs of
# evaluators see none of it.
PASSED_ON: Final = frozenset(
    {
        "HOME", "LD_LIBRARY_PATH", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE",
        "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
PREFIX: Final = "DOCKER_"

MAX_SAID: Final = 500
REFUSED: Final = "could not be run in a container: "
NO_CLI: Final = (
    f"{REFUSED}there is no `docker` on PATH; install Docker's command line,"
    " or run agentci where it is (the action's own image has none)"
)
NO_ANSWER: Final = f"{REFUSED}the engine did not answer for {ENGINE_SECONDS:g}s; is it overloaded?"


class Client:
    """One engine, asked from any number of threads.

    What is asked here is brief, and is answered even while a run is being ended: what was made
    has to be removed.

    Args:
        variables: the environment of the user.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._search_path = variables.get("PATH", os.defpath)
        self._own = {name: value for name, value in variables.items() if _is_for_us(name)}
        self._executor = LocalExecutor()

    def command(self, *arguments: str) -> tuple[str, ...]:
        """The command that does it.

        Raises:
            EvaluatorError: there is none on this machine.
        """
        program = shutil.which("docker", path=self._search_path)
        if program is None:
            raise EvaluatorError(NO_CLI)
        return (program, *arguments)

    def environment(self) -> Mapping[str, str]:
        """What the `docker` program sees."""
        return self._own

    def ask(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        seconds: float = ENGINE_SECONDS,
    ) -> ProgramReply:
        """What it answers, also where it refuses.

        Args:
            variables: more of what it sees.

        Raises:
            EvaluatorError: it cannot be asked.
        """
        command = self.command(*arguments)
        try:
            return self._executor.run(
                command,
                stdin=stdin,
                timeout_seconds=seconds,
                cwd=Path("/"),
                environment={**self._own, **(variables or {})},
            )
        except EvaluatorError as error:
            silent = str(error).startswith("timed out")
            raise EvaluatorError(NO_ANSWER if silent else f"{REFUSED}{error}") from None

    def tell(
        self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> ProgramReply:
        """What it answers to something that has to be done.

        Raises:
            EvaluatorError: it was not done.
        """
        reply = self.ask(*arguments, stdin=stdin, variables=variables)
        if reply.exit_code != 0:
            raise EvaluatorError(f"{REFUSED}{said(reply)}")
        return reply


def said(reply: ProgramReply) -> str:
    """What the `docker` program complains of, in one line, without what it says before that."""
    lines: Sequence[str] = [line for line in reply.stderr.splitlines() if line.strip()]
    text = next((line for line in lines if "rror" in line or "annot" in line), " ".join(lines))
    for start in ("docker: ", "Error response from daemon: ", "error during connect: "):
        text = text.removeprefix(start)
    return text[:MAX_SAID].rstrip(" .") or f"`docker` exited with code {reply.exit_code}"


def _is_for_us(name: str) -> bool:
    return name in PASSED_ON or name.startswith(PREFIX) or name.upper() in PROXIES
