"""Runs the `docker` program, and resolves images to digests, once per run."""

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import PROXY_VARIABLES
from agentci.execution.executor_api import INTERRUPTED
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput

# How long the engine may take for what is a matter of milliseconds on a quiet machine.
ENGINE_SECONDS: Final = 60.0

# Where the engine is, who we are to it, and what helpers of the program need; programs of
# evaluators see none of it.
DOCKER_VARIABLES: Final = frozenset(
    {
        "HOME", "LD_LIBRARY_PATH", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE",
        "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
DOCKER_PREFIX: Final = "DOCKER_"

MAX_ERROR_CHARS: Final = 500
ERROR_PREFIX: Final = "could not be run in a container: "
NO_CLI: Final = (
    f"{ERROR_PREFIX}there is no `docker` on PATH; install Docker's command line,"
    " or run agentci where it is (the action's own image has none)"
)
NO_RESPONSE: Final = (
    f"{ERROR_PREFIX}the engine did not answer for {ENGINE_SECONDS:g}s; is it overloaded?"
)


class DockerClient:
    """One engine, asked from any number of threads.

    What is asked here is brief, and is answered even while a run is being ended: what was made
    has to be removed.

    Args:
        variables: the environment of the user.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._search_path = variables.get("PATH", os.defpath)
        self._own = {name: value for name, value in variables.items() if _is_docker_variable(name)}
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

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        seconds: float = ENGINE_SECONDS,
    ) -> ProgramOutput:
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
            raise EvaluatorError(NO_RESPONSE if silent else f"{ERROR_PREFIX}{error}") from None

    def run_checked(
        self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> ProgramOutput:
        """What it answers to something that has to be done.

        Raises:
            EvaluatorError: it was not done.
        """
        reply = self.run(*arguments, stdin=stdin, variables=variables)
        if reply.exit_code != 0:
            raise EvaluatorError(f"{ERROR_PREFIX}{extract_error(reply)}")
        return reply


def extract_error(reply: ProgramOutput) -> str:
    """What the `docker` program complains of, in one line, without what it says before that."""
    lines: Sequence[str] = [line for line in reply.stderr.splitlines() if line.strip()]
    text = next((line for line in lines if "rror" in line or "annot" in line), " ".join(lines))
    for start in ("docker: ", "Error response from daemon: ", "error during connect: "):
        text = text.removeprefix(start)
    return text[:MAX_ERROR_CHARS].rstrip(" .") or f"`docker` exited with code {reply.exit_code}"


def _is_docker_variable(name: str) -> bool:
    return (
        name in DOCKER_VARIABLES
        or name.startswith(DOCKER_PREFIX)
        or name.upper() in PROXY_VARIABLES
    )


PULL_SECONDS: Final = 900.0
NO_SUCH_IMAGE: Final = "no such image"


class ImageResolver:
    """Finds images by name, and stays with what was found first.

    Args:
        programs: runs what takes long, so that it can be ended.
    """

    def __init__(self, client: DockerClient, programs: LocalExecutor) -> None:
        self._client = client
        self._programs = programs
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        self._errors: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The digest by which the engine knows the image ``name``, pulled where it is not there.

        Raises:
            EvaluatorError: there is no such image, or no engine; the same again for who asks again.
        """
        with self._lock:
            if name in self._errors:
                raise EvaluatorError(self._errors[name])
            if name not in self._found:
                try:
                    self._found[name] = self._look_up(name) or self._pull(name)
                except EvaluatorError as error:
                    if str(error) != INTERRUPTED:
                        self._errors[name] = str(error)
                    raise
            return self._found[name]

    def _look_up(self, name: str) -> str | None:
        reply = self._client.run("image", "inspect", "--format", "{{.Id}}", "--", name)
        if reply.exit_code == 0:
            return reply.stdout.decode("utf-8", "replace").strip()
        if NO_SUCH_IMAGE in reply.stderr.lower():
            return None
        raise EvaluatorError(
            f"{ERROR_PREFIX}{extract_error(reply)}; start the engine, or check "
            "DOCKER_HOST and the context"
        )

    def _pull(self, name: str) -> str:
        try:
            reply = self._programs.run(
                self._client.command("pull", "--quiet", "--", name),
                stdin=b"",
                timeout_seconds=PULL_SECONDS,
                cwd=Path("/"),
                environment=self._client.environment(),
            )
        except EvaluatorError as error:
            if str(error) == INTERRUPTED:
                raise
            raise EvaluatorError(f"{ERROR_PREFIX}`docker pull {name}` {error}") from None
        found = self._look_up(name) if reply.exit_code == 0 else None
        if found is None:
            raise EvaluatorError(
                f"{ERROR_PREFIX}the image {name!r} is not there, and cannot be "
                f"pulled: {extract_error(reply)};"
                " check its name, or build, pull or log in for it in an earlier step"
            )
        return found
