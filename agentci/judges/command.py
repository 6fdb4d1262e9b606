"""A program as a judge: it receives a prompt and prints a response."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.text import escape, truncate
from agentci._util.text.json_text import decode_strict_json
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import Executor, SandboxPolicy
from agentci.judges.budget import Budget, compute_charge
from agentci.judges.keys import ApiKey, ApiKeys
from agentci.model.judges import JudgePrompt, ModelResponse, ModelSettings
from agentci.model.requests import ProgramOutput
from agentci.model.values import Json

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


def read_agentv_response(printed: str) -> str:
    """Read the response that AgentV would find in what a command printed.

    This is the content of the last assistant message in ``output``, else ``text``, else all.
    """
    try:
        document = decode_strict_json(printed)
    except ValueError:
        return printed
    if not isinstance(document, dict):
        return printed
    messages = document.get("output", document.get("output_messages", []))
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        return printed
    if messages:
        contents = [
            each["content"]
            for each in messages
            if isinstance(each, dict) and each.get("role") == "assistant" and "content" in each
        ]
        return _format_content(contents[-1]) if contents else ""
    return _format_content(document["text"]) if "text" in document else printed


def _format_content(content: Json) -> str:
    """The text of a message: its content, or the texts in the parts of it."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    typed = [each for each in parts if isinstance(each, dict) and isinstance(each.get("type"), str)]
    if parts and len(typed) == len(parts):
        texts = (each.get("text") for each in typed if each["type"] == "text")
        return "\n".join(text for text in texts if isinstance(text, str))
    return json.dumps(content, ensure_ascii=False)


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
            printed = output.stdout.decode("utf-8", "replace")
            if settings.prints_agentv_json:
                printed = read_agentv_response(printed)
            response = key.redact_response(ModelResponse(text=printed, ending="complete"))
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
