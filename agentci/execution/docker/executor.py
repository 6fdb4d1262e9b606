"""Run each program in its own container, on the engine that the user's environment names.

The program's folder is copied, not mounted. So this works with an engine on another machine, and
from inside a container whose files the engine cannot see.
"""

import json
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from agentci.errors import EvaluatorError
from agentci.execution.docker.container import (
    CONTAINER_FOLDER,
    OWNER_LABEL,
    UNKNOWN_OWNER,
    FolderArchives,
    has_owner_ended,
    make_owner_label,
    make_sandbox_options,
    select_variables,
    translate_command,
)
from agentci.execution.docker.engine import ERROR_PREFIX, DockerClient, ImageResolver, extract_error
from agentci.execution.executor_api import INTERRUPTED, SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput

NO_IMAGE: Final = "has no container image; set one in its entry, such as `image: python:3.12-slim`"
LIST_OPTIONS: Final = ("--all", "--no-trunc", "--filter", f"label={OWNER_LABEL}")
LIST_FORMAT: Final = f'{{{{.ID}}}} {{{{.Label "{OWNER_LABEL}"}}}}'
WARNING_PREFIX: Final = "WARNING: "


class DockerExecutor:
    """An executor whose programs can reach only their image's files and a copy of their folder.

    A container is removed when its program has ended, exceeded its timeout or printed too much, and
    on ``stop``. If this process is killed, the next run on this machine removes it.

    Args:
        variables: the user's environment, with the engine's address and credentials.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._client = DockerClient(variables)
        # Runs commands that ``stop`` may end; the client still works then, to remove containers.
        self._programs = LocalExecutor()
        self._images = ImageResolver(self._client, self._programs)
        self._archives = FolderArchives()
        self._label = make_owner_label()
        self._lock = threading.Lock()
        self._has_removed_abandoned = False
        # Without a lock, because a signal handler reads these.
        self._names: set[str] = set()
        self._limitations: dict[str, None] = {}
        self._stopped = False

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        """Run ``command``, given with paths of this machine, on a copy of ``cwd`` in a container.

        See ``Executor.run``; ``timeout_seconds`` counts from the container's start, because pulling
        the image and copying the folder may take long.
        """
        if sandbox_policy is None or not sandbox_policy.image:
            raise EvaluatorError(NO_IMAGE)
        self._check_stopped()
        image = self._images.find(sandbox_policy.image)
        self._remove_abandoned()
        archive = self._archives.pack(cwd)
        name = f"agentci-{secrets.token_hex(8)}"
        self._names.add(name)
        try:
            variables = select_variables(environment)
            options = (f"--name={name}", f"--label={OWNER_LABEL}={self._label}")
            docker_variables = self._client.environment()
            sandbox_options = make_sandbox_options(
                sandbox_policy, variables=variables, docker_variables=docker_variables
            )
            program, *arguments = translate_command(command, cwd)
            made = self._client.run_checked(
                *(
                    "create",
                    *options,
                    *sandbox_options,
                    f"--entrypoint={program}",
                    image,
                    *arguments,
                ),
                variables=variables,
            )
            self._record_warnings(made.stderr)
            self._client.run_checked(
                "cp", "--quiet", "-", f"{name}:{CONTAINER_FOLDER}", stdin=archive
            )
            self._check_stopped()
            response = self._programs.run(
                self._client.command("start", "--attach", "--interactive", name),
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cwd=Path("/"),
                environment=docker_variables,
            )
            if response.exit_code != 0:
                self._check_end(response, name, sandbox_policy)
        except EvaluatorError:
            self._check_stopped()  # stop() removes the container, which causes other errors
            raise
        else:
            return response
        finally:
            self._remove([name])

    def compute_input_digest(self, cwd: Path, sandbox_policy: SandboxPolicy) -> str:
        """Return a digest of the image and of the copied files; both are found once per run."""
        if not sandbox_policy.image:
            raise EvaluatorError(NO_IMAGE)
        self._check_stopped()
        image = self._images.find(sandbox_policy.image)
        return sha256(image.encode() + self._archives.pack(cwd)).hexdigest()

    def limitations(self) -> Collection[str]:
        """Return the engine's warnings about options that it does not support."""
        return tuple(self._limitations)

    def stop(self) -> None:
        """End all programs at once, and refuse to run more."""
        self._stopped = True
        self._programs.stop()
        if names := tuple(self._names):
            self._remove(names)

    def _check_stopped(self) -> None:
        if self._stopped:
            raise EvaluatorError(INTERRUPTED)

    def _remove_abandoned(self) -> None:
        """Remove, once per run, the containers of agentci processes that were killed."""
        with self._lock:
            if self._has_removed_abandoned or self._label == UNKNOWN_OWNER:
                return
            listed = self._client.run_checked("ps", *LIST_OPTIONS, "--format", LIST_FORMAT)
            lines = listed.stdout.decode("utf-8", "replace").splitlines()
            owners = dict(line.partition(" ")[::2] for line in lines)
            abandoned = [container for container, label in owners.items() if has_owner_ended(label)]
            if abandoned:
                self._remove(abandoned)
            self._has_removed_abandoned = True

    def _remove(self, names: Iterable[str]) -> None:
        """Kill and remove containers; those that fail are tried again on ``stop``."""
        names = tuple(names)
        with suppress(EvaluatorError):
            response = self._client.run("rm", "--force", "--volumes", *names)
            self._names.difference_update(names if response.exit_code == 0 else ())

    def _record_warnings(self, warnings: str) -> None:
        for line in warnings.splitlines():
            if line.startswith(WARNING_PREFIX):
                text = f"container engine: {line.removeprefix(WARNING_PREFIX)}"
                self._limitations[text] = None

    def _check_end(self, response: ProgramOutput, name: str, sandbox_policy: SandboxPolicy) -> None:
        """Check that the program itself caused its exit code.

        Raises:
            EvaluatorError: the engine was lost, memory ran out, or the program did not start.
        """
        state = self._inspect_state(name)
        if state is None or state.get("Running"):
            raise EvaluatorError(
                f"{ERROR_PREFIX}lost the connection to the engine: {extract_error(response)}"
            )
        if state.get("OOMKilled"):
            raise EvaluatorError(
                f"used more than its {sandbox_policy.memory_mb} MiB of memory and was killed;"
                " raise `memory_mb` if it needs more"
            )
        if state.get("Error") or state.get("Status") == "created":
            raise EvaluatorError(
                f"could not be started in a container: {extract_error(response)};"
                f" check that the image `{sandbox_policy.image}` contains what the program needs"
            )

    def _inspect_state(self, name: str) -> Mapping[str, Any] | None:
        answer = self._client.run("inspect", "--format", "{{json .State}}", "--", name)
        if answer.exit_code != 0:
            return None
        state: Mapping[str, Any] = json.loads(answer.stdout)
        return state
