"""Evaluators that judge by their exit code: 0 is good, 1 is not, as `grep` and `test` have it."""

from dataclasses import dataclass
from typing import Literal

from agentci.evaluators.fields import Entry, Seconds, Text
from agentci.evaluators.evaluator_type import EvaluatorType
from agentci.evaluators.context import Surroundings
from agentci.errors import EvaluatorError
from agentci.model.case import Case
from agentci.model.requests import ProgramReply, Reply, RunProgram
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import LocalProgram, Wanted
from pydantic import Field

VERDICTS = {0: True, 1: False}


class ExitCodeEntry(Entry):
    """What configs say; the descriptions are for whoever reads a complaint."""

    type: Literal["exit_code"]
    path: Text = Field(description="The program, relative to this config.")
    timeout: Seconds = Field(default=30, description="Seconds after which it is stopped.")
    executor: Text = Field(default="local", description="Where it runs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitCodeEvaluator:
    """A program that reads the agent's answers, a line each, and exits with 0 or 1."""

    identity: Identity
    program: LocalProgram
    program_place: Place
    timeout_seconds: float
    executor: str

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """Its program, so that what that needs is installed beforehand."""
        name = self.identity.name
        return (Wanted(program=self.program, name=name, place=self.program_place),)

    def ask(self, case: Case) -> RunProgram:
        """Have the program run over all answers; pure, so nothing runs here."""
        answers = [" ".join(" ".join(turn.answer_parts).split()) for turn in case.trace.turns]
        return RunProgram(
            program=self.program,
            stdin="".join(f"{answer}\n" for answer in answers),
            timeout_seconds=self.timeout_seconds,
            executor=self.executor,
        )

    def read(self, reply: Reply) -> Judgement:
        """Judge by the exit code.

        Raises:
            EvaluatorError: it is none of those that are a verdict.
        """
        if not isinstance(reply, ProgramReply) or reply.exit_code not in VERDICTS:
            raise EvaluatorError(f"{self.identity.name} gave no verdict: exit with 0 or 1")
        passed = VERDICTS[reply.exit_code]
        return Judgement(score=float(passed), passed=passed, reasoning=reply.stderr or None)


def build(entry: ExitCodeEntry, surroundings: Surroundings) -> ExitCodeEvaluator:
    """Make the evaluator of an entry.

    Raises:
        InputError: there is no such program; ``locate`` says so.
    """
    return ExitCodeEvaluator(
        identity=Identity(
            name=entry.name,
            type=entry.type,
            bar="exits with 0",
            threshold=None,
            required=entry.required,
            place=surroundings.place,
        ),
        program=surroundings.locate(entry.path),
        program_place=surroundings.place_of("path"),
        timeout_seconds=entry.timeout,
        executor=entry.executor,
    )


EXIT_CODE = EvaluatorType(entry=ExitCodeEntry, build=build)
