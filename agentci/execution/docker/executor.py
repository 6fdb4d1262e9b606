"""Runs each program in a container of its own, on the engine that the user's environment names.

Nothing is mounted: the program's folder is copied in, so it works with an engine elsewhere, and
from inside of a container whose files the engine does not see.
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
from agentci.execution.docker.build_context import Luggage
from agentci.execution.docker.client import REFUSED, Client, said
from agentci.execution.docker.images import Images
from agentci.execution.docker.options import FOLDER, command_within, options_of, variables_for
from agentci.execution.docker.owner import LABEL, UNKNOWN, is_gone, own_label
from agentci.execution.executor import INTERRUPTED
from agentci.execution.limits import Confinement
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramReply

NO_IMAGE: Final = "has no image to run in; name one in its entry, such as `image: python:3.12-slim`"
LIST: Final = ("--all", "--no-trunc", "--filter", f"label={LABEL}")
LISTED: Final = f'{{{{.ID}}}} {{{{.Label "{LABEL}"}}}}'
WARNING: Final = "WARNING: "


class DockerExecutor:
    """An executor whose programs reach what their image holds, their own folder, and no more.

    A container is removed as soon as its program has ended, run out of time or printed too much,
    and on ``stop``; should this process be killed, the next one on this machine removes it.

    Args:
        variables: the environment of the user: where the engine is, and who we are to it.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._client = Client(variables)
        # Runs what may be ended at any time; what has to be removed is removed by the client.
        self._programs = LocalExecutor()
        self._images = Images(self._client, self._programs)
        self._luggage = Luggage()
        self._label = own_label()
        self._lock = threading.Lock()
        self._has_tidied = False
        # A signal handler reads these, and so no lock is taken for them.
        self._names: set[str] = set()
        self._shortcomings: dict[str, None] = {}
        self._stopped = False

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        confinement: Confinement | None = None,
    ) -> ProgramReply:
        """Run ``command``, by the names of this machine, on a copy of ``cwd`` in a container.

        Args:
            timeout_seconds: from the start of the container on: to pull and to copy may take long.
        """
        if confinement is None or not confinement.image:
            raise EvaluatorError(NO_IMAGE)
        self._go_on()
        image = self._images.find(confinement.image)
        self._tidy()
        archive = self._luggage.pack(cwd)
        name = f"agentci-{secrets.token_hex(8)}"
        self._names.add(name)
        try:
            variables = variables_for(environment)
            options = (f"--name={name}", f"--label={LABEL}={self._label}")
            ours = self._client.environment()
            walls = options_of(confinement, variables=variables, of_docker=ours)
            program, *arguments = command_within(command, cwd)
            made = self._client.tell(
                *("create", *options, *walls, f"--entrypoint={program}", image, *arguments),
                variables=variables,
            )
            self._note(made.stderr)
            self._client.tell("cp", "--quiet", "-", f"{name}:{FOLDER}", stdin=archive)
            self._go_on()
            reply = self._programs.run(
                self._client.command("start", "--attach", "--interactive", name),
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cwd=Path("/"),
                environment=ours,
            )
            if reply.exit_code != 0:
                self._explain(reply, name, confinement)
        except EvaluatorError:
            self._go_on()  # whoever stops us takes the container away, whatever is done with it
            raise
        else:
            return reply
        finally:
            self._remove([name])

    def seal(self, cwd: Path, confinement: Confinement) -> str:
        """A digest of the image and of what is copied from ``cwd``: both are found once a run."""
        if not confinement.image:
            raise EvaluatorError(NO_IMAGE)
        self._go_on()
        image = self._images.find(confinement.image)
        return sha256(image.encode() + self._luggage.pack(cwd)).hexdigest()

    def shortcomings(self) -> Collection[str]:
        """What the engine says that it cannot do of what was asked for."""
        return tuple(self._shortcomings)

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more."""
        self._stopped = True
        self._programs.stop()
        if names := tuple(self._names):
            self._remove(names)

    def _go_on(self) -> None:
        if self._stopped:
            raise EvaluatorError(INTERRUPTED)

    def _tidy(self) -> None:
        """Remove, once, what processes of this machine left behind that were killed."""
        with self._lock:
            if self._has_tidied or self._label == UNKNOWN:
                return
            listed = self._client.tell("ps", *LIST, "--format", LISTED)
            lines = listed.stdout.decode("utf-8", "replace").splitlines()
            owners = dict(line.partition(" ")[::2] for line in lines)
            left = [container for container, label in owners.items() if is_gone(label)]
            if left:
                self._remove(left)
            self._has_tidied = True

    def _remove(self, names: Iterable[str]) -> None:
        """Kill containers and remove them; those that could not be are tried again on ``stop``."""
        names = tuple(names)
        with suppress(EvaluatorError):
            gone = self._client.ask("rm", "--force", "--volumes", *names).exit_code == 0
            self._names.difference_update(names if gone else ())

    def _note(self, warnings: str) -> None:
        for line in warnings.splitlines():
            if line.startswith(WARNING):
                text = f"the container engine: {line.removeprefix(WARNING)}"
                self._shortcomings[text] = None

    def _explain(self, reply: ProgramReply, name: str, confinement: Confinement) -> None:
        """Tell an end that was not the program's own from one that was.

        Raises:
            EvaluatorError: it was not.
        """
        state = self._state_of(name)
        if state is None or state.get("Running"):
            raise EvaluatorError(f"{REFUSED}the engine was lost: {said(reply)}")
        if state.get("OOMKilled"):
            used = f"used more than its {confinement.memory_mb} MiB of memory and was ended"
            raise EvaluatorError(f"{used}; raise `memory_mb` in its entry if it needs more")
        if state.get("Error") or state.get("Status") == "created":
            why = said(reply)
            hint = f"; does the image {confinement.image!r} have what it needs?"
            raise EvaluatorError(f"could not be started in a container: {why}{hint}")

    def _state_of(self, name: str) -> Mapping[str, Any] | None:
        answer = self._client.ask("inspect", "--format", "{{json .State}}", "--", name)
        if answer.exit_code != 0:
            return None
        state: Mapping[str, Any] = json.loads(answer.stdout)
        return state
