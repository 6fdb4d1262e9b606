"""``type: builtin``: a metric computed here, with a threshold as in agentevals 0.11.0."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import (
    Definition,
    Facts,
    check_response,
    check_tool_calls_recorded,
)
from agentci.evaluators.metrics import (
    METRICS,
    NO_EXPECTED_TURNS,
    TOOL_TRAJECTORY,
    define_metric,
    drop_arguments,
    make_metric_identity,
    make_metric_judgement,
    read_match_type,
)
from agentci.model.case import Case, Expectation
from agentci.model.program import RequiredProgram
from agentci.model.requests import (
    ComputeMetric,
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    Response,
    Skip,
)
from agentci.model.trace import SubagentRun, ToolCall, Trace, Turn
from agentci.model.values import JsonObject, Place, TurnScore, replace


def include_subagents(trace: Trace) -> tuple[Turn, ...]:
    """Return the turns with the calls of sub-agents, without results.

    They are after the call that started the sub-agent; if it was not recorded, at the end of the
    only turn.

    Raises:
        EvaluatorError: the turn that started a sub-agent is not known, or the sub-agent's calls.
    """
    if not trace.subagents:
        return trace.turns
    check_tool_calls_recorded(turn for run in trace.subagents for turn in run.turns)
    own_ids = {call.id for turn in trace.turns for call in turn.tool_calls if call.id}
    runs: dict[str, list[SubagentRun]] = {}
    unplaced: list[SubagentRun] = []
    nested_ids = {
        call.id for run in trace.subagents for turn in run.turns for call in turn.tool_calls
    }
    for run in trace.subagents:
        if run.call_id is not None and run.call_id in own_ids | nested_ids:
            runs.setdefault(run.call_id, []).append(run)
        else:
            unplaced.append(run)
    if unplaced and len(trace.turns) != 1:
        raise EvaluatorError(
            f"the recording does not say in which turn sub-agent `{unplaced[0].name or 'unknown'}`"
            " was started"
        )
    turns = [replace(turn, tool_calls=tuple(_expand(turn, runs, ()))) for turn in trace.turns]
    left = [call for run in unplaced for turn in run.turns for call in _expand(turn, runs, ())]
    if left:
        turns[0] = replace(turns[0], tool_calls=(*turns[0].tool_calls, *left))
    return tuple(replace(turn, tool_responses=()) for turn in turns)


def _expand(
    turn: Turn, runs: Mapping[str, Sequence[SubagentRun]], above: tuple[str, ...]
) -> Iterator[ToolCall]:
    """Yield the calls of a turn, each with those of the sub-agents that it started."""
    for call in turn.tool_calls:
        yield call
        if call.id is not None and call.id not in above:
            for run in runs.get(call.id, ()):
                for inner in run.turns:
                    yield from _expand(inner, runs, (*above, call.id))


class BuiltinEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that is computed here.

    Attributes:
        metric: its name in ``METRICS``.
        options: the metric's own options.
        subagents: whether tool calls of sub-agents count.
        ignore_args: whether only the names of tool calls are compared.
        turn_mismatch_fails, turn_score: see ``make_metric_judgement``.
    """

    identity: EvaluatorIdentity
    metric: str
    options: JsonObject = field(default_factory=dict)
    subagents: bool = False
    ignore_args: bool = False
    turn_mismatch_fails: bool = True
    turn_score: TurnScore = "mean"

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """Nothing."""
        return ()

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        shared = define_metric(
            self.identity,
            turn_mismatch_fails=self.turn_mismatch_fails,
            turn_score=self.turn_score,
        )
        if self.metric != TOOL_TRAJECTORY:
            return shared
        match_type = read_match_type(self.options)
        own = {**shared, "trajectory_match_type": match_type}
        flags = {"subagents": self.subagents, "ignore_args": self.ignore_args}
        return {**own, **{name: True for name, is_set in flags.items() if is_set}}

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the metric reads of the expected turns."""
        return METRICS[self.metric].read_expected(self._select(expectation.turns))

    def ask(self, case: Case) -> ComputeMetric | Skip:
        """Request the metric, or skip the case if a required eval case is missing."""
        expected = case.expected.turns if case.expected else ()
        if METRICS[self.metric].needs_expected and not expected:
            return Skip(reason=case.unmatched_reason or NO_EXPECTED_TURNS)
        if missing := METRICS[self.metric].explain_missing(expected):
            return Skip(reason=missing)
        actual = include_subagents(case.trace) if self.subagents else case.trace.turns
        return ComputeMetric(
            metric=self.metric,
            actual=self._select(actual),
            expected=self._select(expected),
            options=self.options,
        )

    def _select(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return drop_arguments(turns) if self.ignore_args else turns

    def read(self, response: Response) -> Judgement:
        """Judge by the score and by the number of turns."""
        return make_metric_judgement(
            check_response(response, MetricResult),
            self.identity,
            turn_mismatch_fails=self.turn_mismatch_fails,
            turn_score=self.turn_score,
        )


def make_builtin_evaluator(
    metric: str,
    *,
    place: Place,
    threshold: float | None = None,
    match_type: str | None = None,
    required: bool = True,
    turn_mismatch_fails: bool = True,
) -> BuiltinEvaluator:
    """Make the evaluator for ``metric``; None stands for agentevals' defaults."""
    return BuiltinEvaluator(
        identity=make_metric_identity(
            metric,
            place=place,
            threshold=threshold,
            required=required,
            needs_expected=metric in METRICS and METRICS[metric].needs_expected,
        ),
        metric=metric,
        options={} if match_type is None else {"match_type": match_type},
        turn_mismatch_fails=turn_mismatch_fails,
    )
