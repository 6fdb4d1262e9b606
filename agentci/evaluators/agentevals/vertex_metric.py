"""``type: builtin`` whose metric Google's ADK measures through Vertex AI, in its own process."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from agentci._util.child_programs import MEASURE
from agentci._util.text.format import number as shown
from agentci._util.text.strict_json import compact
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.adk_json import Result, Scored, invocations, read_result
from agentci.evaluators.agentevals.measurement import identity_of, judgement_of
from agentci.evaluators.agentevals.threshold import threshold_of
from agentci.evaluators.constant import settled
from agentci.evaluators.metrics.metric import pairs, turn_counts
from agentci.evaluators.metrics.registry import HOSTED, INSTALL_ADK
from agentci.evaluators.metrics.vertex import HostedMetric
from agentci.evaluators.process_errors import ending
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import LocalProgram, Wanted
from agentci.model.requests import (
    Compose,
    Measurement,
    ProgramReply,
    Reply,
    RunProgram,
    Settled,
    Skip,
    Task,
)

PROGRAM: Final = LocalProgram(path=MEASURE)
# ADK takes seconds to load, and its service minutes for a long conversation.
TIMEOUT_SECONDS: Final = 900
KEY_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
VARIABLES: Final = (
    "GOOGLE_API_KEY",
    KEY_FILE,
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENAI_USE_VERTEXAI",
)

NOT_EVALUATED: Final = "NOT_EVALUATED"
NOT_INSTALLED: Final = ("ImportError", "ModuleNotFoundError")
# What ADK calls the notes that belong to no rubric.
EXPLANATION: Final = "explanation"
ERROR: Final = "error"
UNEXPLAINED: Final = "Google's ADK gives no reason"


class HostedEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that a service measures.

    Attributes:
        metric: its name in the table of those.
        turn_mismatch_fails: see ``judgement_of``; of no effect where no golden case is needed.
    """

    identity: Identity
    metric: str
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """No program that is made ready, nor one whose replies are kept."""
        return ()

    def ask(self, case: Case) -> Compose | Skip:
        """Have all turns measured; those with a golden case as far as both sides have some.

        Raises:
            EvaluatorError: there are none.
        """
        golden = case.golden.turns if case.golden and self._metric.needs_golden else ()
        if self._metric.needs_golden and not golden:
            return Skip(reason=case.no_golden_because or "the golden case has no turns")
        # Where nothing is compared, each turn is its own partner.
        paired = pairs(case.trace.turns, golden or case.trace.turns)
        asked: JsonObject = {
            "metric": self.metric,
            "threshold": self._metric.scaled(threshold_of(self.identity)),
            "actual": invocations([actual for actual, _ in paired]),
            "golden": invocations([wanted for _, wanted in paired]) if golden else None,
        }
        run = RunProgram(
            program=PROGRAM,
            stdin=compact(asked),
            timeout_seconds=TIMEOUT_SECONDS,
            variables=VARIABLES,
            key_file=KEY_FILE,
            isolation="spawn",
            cached=False,
        )
        counts = turn_counts(case.trace.turns, golden) if golden else {}
        return Compose(parts=((self.metric, run),), then=partial(self._judged, len(paired), counts))

    def read(self, reply: Reply) -> Judgement:
        """What the measurement came to."""
        return settled(reply)

    @property
    def _metric(self) -> HostedMetric:
        return HOSTED[self.metric]

    def _judged(self, turns: int, counts: JsonObject, replies: tuple[Reply, ...]) -> Task:
        [reply] = replies
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a program was run, and {type(reply).__name__} came")
        if reply.exit_code != 0:
            raise EvaluatorError(f"Google's ADK {ending(reply, network=True, in_image=False)}")
        result = read_result(reply.stdout)
        if result.refusal is not None:
            raise EvaluatorError(_refused(result.refusal))
        measured = self._measurement(result, turns, counts)
        return Settled(
            judgement=judgement_of(
                measured, self.identity, turn_mismatch_fails=self.turn_mismatch_fails
            )
        )

    def _measurement(self, result: Result, turns: int, counts: JsonObject) -> Measurement:
        """Take the scores; what is left out of a mean might have failed, so nothing may be."""
        if len(result.turns) != turns:
            raise EvaluatorError(f"of {turns} turns, Google's ADK judged {len(result.turns)}")
        numbered = [(f"turn {number}: ", each) for number, each in enumerate(result.turns, start=1)]
        if self._metric.whole:  # which it scores under the last one
            numbered = [("", result.turns[-1])]
        scores = tuple(self._share(each, where) for where, each in numbered)
        return Measurement(
            score=self._share(result, ""),
            turn_scores=() if self._metric.whole else scores,
            misses=tuple(
                f"{where}{miss}"
                for (where, each), score in zip(numbered, scores, strict=True)
                for miss in self._misses(each, score)
            ),
            details=counts,
        )

    def _share(self, found: Scored, where: str) -> float:
        """A score from 0 to 1.

        Raises:
            EvaluatorError: there is none, or it is beyond the metric's scale.
        """
        if found.score is None or found.status == NOT_EVALUATED:
            why = next((each.rationale for each in found.notes if each.id == ERROR), None)
            raise EvaluatorError(f"{where}not evaluated: {why or UNEXPLAINED}")
        metric = self._metric
        if not metric.lowest <= found.score <= metric.highest:
            raise EvaluatorError(
                f"{where}the score is {shown(found.score)},"
                f" not from {shown(metric.lowest)} to {shown(metric.highest)}"
            )
        return metric.share(found.score)

    def _misses(self, found: Scored, share: float) -> Iterator[str]:
        """The rubrics that are not fulfilled; of a score that falls short also why."""
        for note in found.notes:
            if note.score == 0:
                yield f"{note.id}: {note.rationale}" if note.rationale else note.id
            elif note.id == EXPLANATION and note.rationale and share < threshold_of(self.identity):
                yield note.rationale


def _refused(refusal: str) -> str:
    hint = f" ({INSTALL_ADK})" if refusal.startswith(NOT_INSTALLED) else ""
    return f"Google's ADK cannot judge: {refusal}{hint}"


def assemble_hosted(
    metric: str,
    *,
    place: Place,
    threshold: float | None = None,
    required: bool = True,
    turn_mismatch_fails: bool = True,
) -> HostedEvaluator:
    """The evaluator that has ``metric`` measured; None stands for agentevals' default."""
    return HostedEvaluator(
        identity=identity_of(
            metric,
            place=place,
            threshold=threshold,
            required=required,
            needs_golden=HOSTED[metric].needs_golden,
        ),
        metric=metric,
        turn_mismatch_fails=turn_mismatch_fails,
    )
