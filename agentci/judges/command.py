"""Any program as a judge: it is given a prompt, and prints a reply."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.execution.executor import Executor
from agentci.execution.limits import Confinement
from agentci.judges.budget import Budget, charge_of
from agentci.judges.keys import Key, Keys
from agentci.model.judging import ModelReply, ModelSettings, Question
from agentci.model.requests import ProgramReply

PROMPT: Final = "{prompt}"
MAX_SAID: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a program runs, and what it may see.

    Attributes:
        environment: without the key, which is added under its name.
    """

    executor: Executor
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    confinement: Confinement


class CommandAsker:
    """Asks a program, from any number of threads.

    Args:
        clock: that ``until`` is told by.
    """

    def __init__(
        self,
        seat: Seat,
        budget: Budget,
        *,
        keys: Keys,
        clock: Callable[[], float],
    ) -> None:
        self._seat = seat
        self._budget = budget
        self._keys = keys
        self._clock = clock

    def ask(self, question: Question, settings: ModelSettings, *, until: float) -> ModelReply:
        """Run the program once.

        Raises:
            EvaluatorError: it failed, or there is no budget for it.
        """
        prompt = escape.encodable("\n\n".join(filter(None, (question.system, question.user))))
        key = self._keys.of(settings, until=until)
        with self._budget.spending(self._budget.most_for(question, settings)) as bill:
            printed = self._run(settings, prompt, key, until - self._clock())
            text = printed.stdout.decode("utf-8", "replace")
            reply = key.left_out(ModelReply(text=text, ending="complete"))
            bill.charge = charge_of(question, settings, reply)
        if printed.exit_code != 0:
            said = truncate.short(key.hidden_in(escape.one_line(printed.stderr)), MAX_SAID)
            raise EvaluatorError(f"the judge's program ended with code {printed.exit_code}: {said}")
        return reply

    def _run(self, settings: ModelSettings, prompt: str, key: Key, seconds: float) -> ProgramReply:
        if seconds <= 0:
            raise EvaluatorError("no time is left to run the judge's program")
        seat = self._seat
        secret = {settings.key_variable: key.secret} if key.secret else {}
        program, *arguments = settings.command
        try:
            return seat.executor.run(
                [self._found(program), *(each.replace(PROMPT, prompt) for each in arguments)],
                stdin=b"" if _takes_argument(settings) else prompt.encode(),
                timeout_seconds=round(seconds, 3),
                cwd=seat.cwd,
                environment={**seat.environment, **secret},
                confinement=seat.confinement,
            )
        except EvaluatorError as error:
            raise EvaluatorError(f"the judge's program {key.hidden_in(str(error))}") from None

    def _found(self, program: str) -> str:
        """The program's path; as whoever it runs as one might not look into all of PATH."""
        if "/" in program:
            return program
        found = shutil.which(program, path=self._seat.environment.get("PATH", os.defpath))
        if found is None:
            raise EvaluatorError(f"{program!r} is not on this machine")
        return found


def _takes_argument(settings: ModelSettings) -> bool:
    return any(PROMPT in part for part in settings.command)
