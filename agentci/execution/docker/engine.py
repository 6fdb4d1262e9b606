"""Run the `docker` program, and resolve each image to its digest once per run."""

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import PROXY_VARIABLES
from agentci.execution.executor_api import INTERRUPTED, ProgramTimeoutError
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput

# Timeout for commands that take milliseconds on an idle machine.
ENGINE_SECONDS: Final = 60.0

# Variables for the `docker` program: the engine's address, credentials, and what its helper
# programs need. Programs of evaluators get none of them.
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
    f"{ERROR_PREFIX}`docker` not found on PATH outside of the workspace; install the Docker CLI,"
    " or run agentci on a machine that has it (the image of the action does not)"
)
NO_RESPONSE: Final = (
    f"{ERROR_PREFIX}the engine did not respond within {ENGINE_SECONDS:g} s;"
    " check that it is not overloaded"
)


class DockerClient:
    """Runs short `docker` commands for one engine, from any number of threads.

    The commands also work after a run is interrupted, so that containers can be removed.

    Args:
        variables: the user's environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._search_path = variables.get("PATH", os.defpath)
        self._environment = {
            name: value for name, value in variables.items() if _is_docker_variable(name)
        }
        self._executor = LocalExecutor()

    def command(self, *arguments: str) -> tuple[str, ...]:
        """Return the `docker` command with these arguments.

        Raises:
            EvaluatorError: `docker` is not on PATH.
        """
        program = shutil.which("docker", path=self._search_path)
        if program is None:
            raise EvaluatorError(NO_CLI)
        return (program, *arguments)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the `docker` program."""
        return self._environment

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        seconds: float = ENGINE_SECONDS,
    ) -> ProgramOutput:
        """Run a command and return its output, whatever its exit code.

        Args:
            arguments: the arguments of `docker`.
            stdin: the input of `docker`.
            variables: additional environment variables of `docker`.
            seconds: timeout in seconds.

        Raises:
            EvaluatorError: `docker` could not be run, or did not finish in time.
        """
        command = self.command(*arguments)
        try:
            return self._executor.run(
                command,
                stdin=stdin,
                timeout_seconds=seconds,
                cwd=Path("/"),
                environment={**self._environment, **(variables or {})},
            )
        except ProgramTimeoutError:
            raise EvaluatorError(NO_RESPONSE) from None
        except EvaluatorError as error:
            raise EvaluatorError(f"{ERROR_PREFIX}{error}") from None

    def run_checked(
        self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> ProgramOutput:
        """Run a command that has to succeed; see ``run``.

        Raises:
            EvaluatorError: the command failed.
        """
        response = self.run(*arguments, stdin=stdin, variables=variables)
        if response.exit_code != 0:
            raise EvaluatorError(f"{ERROR_PREFIX}{extract_error(response)}")
        return response


def extract_error(response: ProgramOutput) -> str:
    """Extract the error message of `docker` as one line, without its prefixes."""
    lines: Sequence[str] = [line for line in response.stderr.splitlines() if line.strip()]
    text = next((line for line in lines if "rror" in line or "annot" in line), " ".join(lines))
    for start in ("docker: ", "Error response from daemon: ", "error during connect: "):
        text = text.removeprefix(start)
    return text[:MAX_ERROR_CHARS].rstrip(" .") or f"`docker` exited with code {response.exit_code}"


def _is_docker_variable(name: str) -> bool:
    return (
        name in DOCKER_VARIABLES
        or name.startswith(DOCKER_PREFIX)
        or name.upper() in PROXY_VARIABLES
    )


PULL_SECONDS: Final = 900.0
NO_SUCH_IMAGE: Final = "no such image"


class ImageResolver:
    """Resolves image names to digests; each name keeps its first result.

    Args:
        client: runs short commands.
        programs: runs pulls, which take long, so that ``stop`` can end them.
    """

    def __init__(self, client: DockerClient, programs: LocalExecutor) -> None:
        self._client = client
        self._programs = programs
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        self._errors: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the engine's digest of the image ``name``; pull the image if it is missing.

        Raises:
            EvaluatorError: the image or the engine is not found; later calls raise the same error.
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
        response = self._client.run("image", "inspect", "--format", "{{.Id}}", "--", name)
        if response.exit_code == 0:
            return response.stdout.decode("utf-8", "replace").strip()
        if NO_SUCH_IMAGE in response.stderr.lower():
            return None
        raise EvaluatorError(
            f"{ERROR_PREFIX}{extract_error(response)}; start the engine, or check "
            "DOCKER_HOST and the Docker context"
        )

    def _pull(self, name: str) -> str:
        try:
            response = self._programs.run(
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
        found = self._look_up(name) if response.exit_code == 0 else None
        if found is None:
            raise EvaluatorError(
                f"{ERROR_PREFIX}the image `{name}` was not found and could not be pulled:"
                f" {extract_error(response)}; check its name, or build it, pull it or log in in an"
                " earlier step"
            )
        return found
