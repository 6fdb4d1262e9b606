"""The images that programs run in: each is found or pulled once a run, and so is what is wrong."""

import threading
from pathlib import Path
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.docker.client import REFUSED, Client, said
from agentci.execution.executor import INTERRUPTED
from agentci.execution.local import LocalExecutor

PULL_SECONDS: Final = 900.0
MISSING: Final = "no such image"


class Images:
    """Finds images by name, and stays with what was found first.

    Args:
        programs: runs what takes long, so that it can be ended.
    """

    def __init__(self, client: Client, programs: LocalExecutor) -> None:
        self._client = client
        self._programs = programs
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The digest by which the engine knows the image ``name``, pulled where it is not there.

        Raises:
            EvaluatorError: there is no such image, or no engine; the same again for who asks again.
        """
        with self._lock:
            if name in self._refused:
                raise EvaluatorError(self._refused[name])
            if name not in self._found:
                try:
                    self._found[name] = self._look_up(name) or self._pulled(name)
                except EvaluatorError as error:
                    if str(error) != INTERRUPTED:
                        self._refused[name] = str(error)
                    raise
            return self._found[name]

    def _look_up(self, name: str) -> str | None:
        reply = self._client.ask("image", "inspect", "--format", "{{.Id}}", "--", name)
        if reply.exit_code == 0:
            return reply.stdout.decode("utf-8", "replace").strip()
        if MISSING in reply.stderr.lower():
            return None
        raise EvaluatorError(
            f"{REFUSED}{said(reply)}; start the engine, or check DOCKER_HOST and the context"
        )

    def _pulled(self, name: str) -> str:
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
            raise EvaluatorError(f"{REFUSED}`docker pull {name}` {error}") from None
        found = self._look_up(name) if reply.exit_code == 0 else None
        if found is None:
            raise EvaluatorError(
                f"{REFUSED}the image {name!r} is not there, and cannot be pulled: {said(reply)};"
                " check its name, or build, pull or log in for it in an earlier step"
            )
        return found
