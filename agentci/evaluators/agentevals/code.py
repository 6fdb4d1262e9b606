"""``type: code`` and ``type: remote``: a program that reads EvalInput and prints EvalResult."""

import codecs
from typing import Final

from msgspec import Struct

from agentci._util.text.strict_json import readable
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.eval_input import eval_input
from agentci.evaluators.agentevals.eval_result import EvalResult, eval_result
from agentci.evaluators.agentevals.threshold import threshold_of
from agentci.evaluators.agentevals.truncate_result import without_excess
from agentci.evaluators.process_errors import ending, silence
from agentci.evaluators.program_output import EXAMPLE, parse_output
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import Wanted
from agentci.model.requests import ProgramReply, Reply, RunProgram
from agentci.model.values import replace

# Lists that evaluators, the community's among them, put their complaints in.
COMPLAINTS: Final = {"issues": "", "missing_tools": "missing tools: "}
REASONS: Final = ("reasoning", "reason")

PASSED: Final = {"PASSED": True, "FAILED": False, "NOT_EVALUATED": None}


class CodeEvaluator(Struct, frozen=True, kw_only=True):
    """A program that judges one case at a time.

    Attributes:
        config: what it is given under ``config``.
        run: how its program is run, whatever it reads.
        program_place: where the config names the program.
    """

    identity: Identity
    config: JsonObject
    run: RunProgram
    program_place: Place

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """Its program."""
        name = self.identity.name
        return (Wanted(program=self.run.program, name=name, place=self.program_place),)

    def ask(self, case: Case) -> RunProgram:
        """Have the program run over all turns of the recording and of its golden case."""
        given = eval_input(
            case,
            name=self.identity.name,
            threshold=threshold_of(self.identity),
            config=self.config,
        )
        return replace(self.run, stdin=given)

    def read(self, reply: Reply) -> Judgement:
        """Judge by the program's own verdict where it gives one, else by its score.

        Raises:
            EvaluatorError: it failed, or did not print a result.
        """
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a program was asked for, not {type(reply).__name__}")
        try:
            return self._judge(self._result(reply))
        except EvaluatorError as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None

    def _result(self, reply: ProgramReply) -> EvalResult:
        if reply.exit_code == 0:
            return _result(reply)
        raise EvaluatorError(ending(reply, network=self.run.network, in_image=bool(self.run.image)))

    def _judge(self, result: EvalResult) -> Judgement:
        by_score = result.score >= threshold_of(self.identity)
        passed = by_score if result.status is None else PASSED[result.status]
        overruled = passed is not None and passed != by_score
        return Judgement(
            score=result.score,
            passed=passed,
            reason=f"its own verdict is {result.status}" if overruled else None,
            turn_scores=result.turn_scores,
            misses=tuple(_complaints(result.details)) if passed is False else (),
            reasoning=_reasoning(result.details),
            details=result.details,
        )


def _result(reply: ProgramReply) -> EvalResult:
    if not reply.stdout.removeprefix(codecs.BOM_UTF8).strip():
        raise EvaluatorError(silence(reply, EXAMPLE))
    try:
        result = eval_result(parse_output(reply.stdout))
    except EvaluatorError as error:
        raise EvaluatorError(f"produced invalid JSON: {error}") from None
    return without_excess(result, size=len(reply.stdout), shown=(*COMPLAINTS, *REASONS))


def _complaints(details: JsonObject) -> list[str]:
    return [
        f"{prefix}{_line(complaint)}"
        for key, prefix in COMPLAINTS.items()
        for complaint in _listed(details.get(key))
    ]


def _listed(given: Json) -> list[Json]:
    if isinstance(given, list):
        return given
    return [given] if given else []


def _line(complaint: Json) -> str:
    return complaint if isinstance(complaint, str) else readable(complaint)


def _reasoning(details: JsonObject) -> str | None:
    for key in REASONS:
        reason = details.get(key)
        if isinstance(reason, str) and reason.strip():
            return reason
    return None
