"""Evaluators whose exit code is the verdict: 0 passes, 1 fails, as with `grep` and `test`."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from agentci.extend import (
    Case,
    Entry,
    EvaluatorContext,
    EvaluatorError,
    EvaluatorIdentity,
    EvaluatorType,
    Judgement,
    LocalProgram,
    Place,
    ProgramOutput,
    RequiredProgram,
    Response,
    RunProgram,
    Seconds,
    Text,
)

VERDICTS = {0: True, 1: False}


class ExitCodeEntry(Entry):
    """Fields of an entry; the descriptions appear in error messages."""

    type: Literal["exit_code"]
    path: Text = Field(description="The program, relative to this config.")
    timeout: Seconds = Field(default=30, description="Seconds after which it is stopped.")
    executor: Text = Field(default="local", description="Where it runs.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitCodeEvaluator:
    """A program that reads the agent's answers, a line each, and exits with 0 or 1."""

    identity: EvaluatorIdentity
    program: LocalProgram
    program_place: Place
    timeout_seconds: float
    executor: str

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """Its program, so that what that needs is installed beforehand."""
        name = self.identity.name
        return (RequiredProgram(program=self.program, name=name, place=self.program_place),)

    def ask(self, case: Case) -> RunProgram:
        """Have the program run over all answers; pure, so nothing runs here."""
        answers = [" ".join(" ".join(turn.answer_parts).split()) for turn in case.trace.turns]
        return RunProgram(
            program=self.program,
            stdin="".join(f"{answer}\n" for answer in answers),
            timeout_seconds=self.timeout_seconds,
            executor=self.executor,
        )

    def read(self, response: Response) -> Judgement:
        """Judge by the exit code.

        Raises:
            EvaluatorError: it is none of those that are a verdict.
        """
        if not isinstance(response, ProgramOutput) or response.exit_code not in VERDICTS:
            raise EvaluatorError(f"{self.identity.name} gave no verdict: exit with 0 or 1")
        passed = VERDICTS[response.exit_code]
        return Judgement(score=float(passed), passed=passed, reasoning=response.stderr or None)


def build(entry: ExitCodeEntry, context: EvaluatorContext) -> ExitCodeEvaluator:
    """Make the evaluator of an entry.

    Raises:
        InputError: there is no such program; ``locate`` says so.
    """
    return ExitCodeEvaluator(
        identity=EvaluatorIdentity(
            name=entry.name,
            type=entry.type,
            criterion="exits with 0",
            threshold=None,
            required=entry.required,
            place=context.place,
        ),
        program=context.locate(entry.path),
        program_place=context.find_place("path"),
        timeout_seconds=entry.timeout,
        executor=entry.executor,
    )


EXIT_CODE = EvaluatorType(entry=ExitCodeEntry, build=build)
