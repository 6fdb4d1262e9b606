"""A program as a judge: it receives a prompt and prints a response."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import Executor, SandboxPolicy
from agentci.judges.budget import Budget, compute_charge
from agentci.judges.keys import ApiKey, ApiKeys
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings
from agentci.model.requests import ProgramOutput

PROMPT_PLACEHOLDER: Final = "{prompt}"
MAX_STDERR_SHOWN: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSandbox:
    """Where a judge command runs, and what it may access.

    Attributes:
        environment: without the key, which is added as its own variable.
    """

    executor: Executor
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    sandbox_policy: SandboxPolicy


class CommandClient:
    """Runs a judge command; thread-safe.

    Args:
        clock: the clock of ``until``.
    """

    def __init__(
        self, sandbox: CommandSandbox, budget: Budget, *, keys: ApiKeys, clock: Callable[[], float]
    ) -> None:
        self._sandbox = sandbox
        self._budget = budget
        self._keys = keys
        self._clock = clock

    def ask(self, prompt: JudgePrompt, settings: ModelSettings, *, until: float) -> ModelResponse:
        """Run the program once.

        Raises:
            EvaluatorError: it failed, or there is no budget for it.
        """
        text = escape.replace_surrogates("\n\n".join(filter(None, (prompt.system, prompt.user))))
        key = self._keys.get(settings, until=until)
        with self._budget.reserve(self._budget.compute_max_charge(prompt, settings)) as pending:
            output = self._run(settings, text, key, until - self._clock())
            stdout = output.stdout.decode("utf-8", "replace")
            response = key.redact_response(ModelResponse(text=stdout, ending="complete"))
            pending.charge = compute_charge(prompt, settings, response)
        if output.exit_code != 0:
            stderr = truncate.short(
                key.redact(escape.escape_for_log_line(output.stderr)), MAX_STDERR_SHOWN
            )
            raise EvaluatorError(
                f"the judge's command exited with code {output.exit_code}: {stderr}"
            )
        return response

    def _run(
        self, settings: ModelSettings, prompt: str, key: ApiKey, seconds: float
    ) -> ProgramOutput:
        if seconds <= 0:
            raise EvaluatorError("no time left to run the judge's command")
        sandbox = self._sandbox
        secret = {settings.key_variable: key.secret} if key.secret else {}
        program, *arguments = settings.command
        in_arguments = any(PROMPT_PLACEHOLDER in each for each in settings.command)
        try:
            return sandbox.executor.run(
                [
                    self._resolve_program(program),
                    *(each.replace(PROMPT_PLACEHOLDER, prompt) for each in arguments),
                ],
                stdin=b"" if in_arguments else prompt.encode(),
                timeout_seconds=round(seconds, 3),
                cwd=sandbox.cwd,
                environment={**sandbox.environment, **secret},
                sandbox_policy=sandbox.sandbox_policy,
            )
        except EvaluatorError as error:
            raise EvaluatorError(f"the judge's command {key.redact(str(error))}") from None

    def _resolve_program(self, program: str) -> str:
        """Find the program in PATH; the user that it runs as may not read all folders in it."""
        if "/" in program:
            return program
        found = shutil.which(program, path=self._sandbox.environment.get("PATH", os.defpath))
        if found is None:
            raise EvaluatorError(f"{program!r} is not in PATH")
        return found
