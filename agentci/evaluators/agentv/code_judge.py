"""``code_judge`` (``code-grader`` in AgentV 4): a command that reads a run and prints a score."""

import codecs
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.judge_result import finding_in
from agentci.evaluators.agentv.payload import Wire, payload
from agentci.evaluators.agentv.recorded import recorded
from agentci.evaluators.agentv.verdict import Finding, Standard, judgement_of
from agentci.evaluators.process_errors import ending, silence
from agentci.evaluators.program_output import EXAMPLE, parse_output
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import WantedPanel
from agentci.model.requests import Need, ProgramReply, Reply, RunCommand
from agentci.model.values import replace

MAX_SHOWN: Final = 10
NO_MODULE: Final = "No module named "
HINT_AT_UV: Final = (
    "\nWhere there is no uv, packages that a script declares are not installed: install uv in a"
    " step before, or name an `image` that has them, with `executor: docker`."
)


class CodeJudge(Struct, frozen=True, kw_only=True):
    """A command that judges one case at a time.

    Attributes:
        run: how it is run, whatever it reads; a line of shell is given to a shell.
        config: what it is given under ``config``; None where its entry has no keys of its own.
        wire: the words in which it is given the case.
        prefers_assertions: see ``finding_in``.
        wanted: who answers what the command asks a model; None where it asks none.
    """

    identity: Identity
    run: RunCommand
    standard: Standard
    config: JsonObject | None = None
    wire: Wire = "union"
    prefers_assertions: bool = False
    wanted: WantedPanel | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who answers it; the command itself may be anything, and cannot be made ready."""
        return () if self.wanted is None else (self.wanted,)

    def ask(self, case: Case) -> RunCommand:
        """Have the command run over the case and its run."""
        return self.command_over(payload(*recorded(case), self.config, self.wire))

    def command_over(self, stdin: str) -> RunCommand:
        """Have the command run over ``stdin``."""
        return replace(self.run, stdin=stdin)

    def read(self, reply: Reply) -> Judgement:
        """Judge by the score that was printed.

        Raises:
            EvaluatorError: it failed, or did not print a result; AgentV takes that for a 0, or
                from 4.0 on for a pass.
        """
        return judgement_of(self.finding(reply), self.standard)

    def finding(self, reply: Reply) -> Finding:
        """What was printed; as ``read``."""
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a command was asked for, not {type(reply).__name__}")
        try:
            return self._finding(reply)
        except EvaluatorError as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None

    def _finding(self, reply: ProgramReply) -> Finding:
        if reply.exit_code != 0:
            ended = ending(reply, network=self.run.network, in_image=bool(self.run.image))
            raise EvaluatorError(f"{ended}{self._hint(reply)}{self._last_words(reply)}")
        if not reply.stdout.removeprefix(codecs.BOM_UTF8).strip():
            raise EvaluatorError(silence(reply, EXAMPLE))
        try:
            return self._printed(reply)
        except EvaluatorError as error:
            raise EvaluatorError(f"produced invalid JSON: {error}") from None

    def _printed(self, reply: ProgramReply) -> Finding:
        return finding_in(
            parse_output(reply.stdout),
            size=len(reply.stdout),
            prefers_assertions=self.prefers_assertions,
        )

    def _hint(self, reply: ProgramReply) -> str:
        """What to do about packages that only uv would have installed."""
        return HINT_AT_UV if self.run.command[0] == "uv" and NO_MODULE in reply.stderr else ""

    def _last_words(self, reply: ProgramReply) -> str:
        """What it printed before it failed: AgentV's own templates say there what went wrong."""
        try:
            found = self._printed(reply)
        except EvaluatorError:
            return ""
        said = [*found.misses, *([found.reasoning] if found.reasoning else [])]
        lines = truncate.listed([f"\n- {each}" for each in dict.fromkeys(said)], MAX_SHOWN)
        return f"\nIt had printed:{''.join(lines)}" if lines else ""
