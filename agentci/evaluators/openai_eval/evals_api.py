"""``backend: remote``: a service of the Evals API grades the turns."""

from collections.abc import Mapping

from msgspec import Struct

from agentci._util.text.format import number
from agentci.errors import EvaluatorError
from agentci.evaluators.constant import settled
from agentci.evaluators.grader_payload import SAMPLE
from agentci.evaluators.openai_eval.combine_turns import judgement_of
from agentci.evaluators.openai_eval.template_data import ITEM, line_up
from agentci.evaluators.openai_eval.text_graders import Grade
from agentci.model.case import Case
from agentci.model.grading import GradeRemotely, RemoteGrade, RemoteGrades, WantedService
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.requests import Compose, Need, Reply, Settled, Skip


class RemoteEvaluator(Struct, frozen=True, kw_only=True):
    """The evaluator; what passes is the word of the service.

    Attributes:
        criterion: the grader, as the API writes it.
        low, high: the bounds of its scores.
        least, turn_mismatch_fails: as in ``OpenAIEvaluator``.
    """

    identity: Identity
    wanted: WantedService
    criterion: JsonObject
    timeout_seconds: float
    least: float
    low: float = 0.0
    high: float = 1.0
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who grades."""
        return (self.wanted,)

    def ask(self, case: Case) -> Compose | Skip:
        """Have all turns graded at once."""
        lined_up = line_up(case, compares=self.identity.needs_golden)
        if isinstance(lined_up, Skip):
            return lined_up
        request = GradeRemotely(
            service=self.wanted.service,
            name=f"agentci {self.identity.name}",
            criterion=self.criterion,
            items=tuple(map(_item, lined_up.rows)),
            timeout_seconds=self.timeout_seconds,
        )

        def judge(replies: tuple[Reply, ...]) -> Settled:
            [reply] = replies
            if not isinstance(reply, RemoteGrades):
                raise TypeError(f"a service was asked, and {type(reply).__name__} came")
            judgement = judgement_of(
                [self._grade(each) for each in reply.grades],
                [each.passed for each in reply.grades],
                least=self.least,
                counts=lined_up.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return Settled(judgement=judgement)

        return Compose(parts=((self.identity.name, request),), then=judge)

    def read(self, reply: Reply) -> Judgement:
        """What came of it."""
        return settled(reply)

    def _grade(self, grade: RemoteGrade) -> Grade:
        if not self.low <= grade.score <= self.high:
            bounds = f"{number(self.low)} to {number(self.high)}"
            raise EvaluatorError(f"the service gave {number(grade.score)}, not a score of {bounds}")
        reason = grade.details.get("reason")
        return Grade(
            score=(grade.score - self.low) / (self.high - self.low),
            told=f"the service gave {number(grade.score)}",
            details=grade.details,
            reasoning=reason if isinstance(reason, str) else "",
        )


def _item(row: Mapping[str, JsonObject]) -> JsonObject:
    """What is sent of a turn: texts and columns, without all that the agent did."""
    return {name: value for name, value in row[ITEM].items() if name != SAMPLE}
