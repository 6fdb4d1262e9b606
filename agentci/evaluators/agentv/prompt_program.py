"""A program that reads a case and prints the prompt for a judge."""

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.process_errors import ending
from agentci.evaluators.program_output import decoded
from agentci.model.case import Case
from agentci.model.requests import ProgramReply, Reply, RunCommand


class PromptProgram(Struct, frozen=True, kw_only=True):
    """The program; ``judge`` says how it is run, and what it is given."""

    judge: CodeJudge

    def ask(self, case: Case) -> RunCommand:
        """Have it run over the case and its run."""
        return self.judge.ask(case)

    def prompt_in(self, reply: Reply) -> str:
        """What it printed.

        Raises:
            EvaluatorError: it failed, or printed nothing.
        """
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a command was asked for, not {type(reply).__name__}")
        whose = f"the prompt template of '{self.judge.identity.name}'"
        if reply.exit_code != 0:
            ended = ending(reply, network=self.judge.run.network, in_image=False)
            raise EvaluatorError(f"{whose} {ended}")
        try:
            prompt = decoded(reply.stdout).strip()
        except EvaluatorError as error:
            raise EvaluatorError(f"{whose} printed no prompt: {error}") from None
        if not prompt:
            raise EvaluatorError(f"{whose} printed no prompt")
        return prompt
