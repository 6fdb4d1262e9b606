"""``type: builtin``: a metric of ours against a threshold, as agentevals 0.11.0 judges by it."""

from msgspec import Struct, field

from agentci.evaluators.agentevals.measurement import identity_of, judgement_of
from agentci.evaluators.metrics.registry import METRICS
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import Wanted
from agentci.model.requests import Measure, Measurement, Reply, Skip


class BuiltinEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that is computed here.

    Attributes:
        metric: its name in the table of metrics.
        options: the metric's own.
        turn_mismatch_fails: see ``judgement_of``.
    """

    identity: Identity
    metric: str
    options: JsonObject = field(default_factory=dict)
    turn_mismatch_fails: bool = True

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """No program."""
        return ()

    def ask(self, case: Case) -> Measure | Skip:
        """Have the turns compared, unless there is nothing to compare them with."""
        golden = case.golden.turns if case.golden else ()
        if METRICS[self.metric].needs_golden and not golden:
            return Skip(reason=case.no_golden_because or "the golden case has no turns")
        return Measure(
            metric=self.metric, actual=case.trace.turns, golden=golden, options=self.options
        )

    def read(self, reply: Reply) -> Judgement:
        """Judge by the score, and by the number of turns."""
        if not isinstance(reply, Measurement):
            raise TypeError(f"a metric was asked for, not {type(reply).__name__}")
        return judgement_of(reply, self.identity, turn_mismatch_fails=self.turn_mismatch_fails)


def assemble_builtin(
    metric: str,
    *,
    place: Place,
    threshold: float | None = None,
    match_type: str | None = None,
    required: bool = True,
    turn_mismatch_fails: bool = True,
) -> BuiltinEvaluator:
    """The evaluator that judges by ``metric``; None stands for agentevals' defaults."""
    return BuiltinEvaluator(
        identity=identity_of(
            metric,
            place=place,
            threshold=threshold,
            required=required,
            needs_golden=metric in METRICS and METRICS[metric].needs_golden,
        ),
        metric=metric,
        options={} if match_type is None else {"match_type": match_type},
        turn_mismatch_fails=turn_mismatch_fails,
    )
