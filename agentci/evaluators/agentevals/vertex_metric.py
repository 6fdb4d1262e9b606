"""``type: builtin`` with a metric that Google's ADK measures through Vertex AI."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, ValidationError

from agentci._util.child_programs import ADK_MEASURE_PATH
from agentci._util.text.format import format_number
from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import (
    Definition,
    Facts,
    check_response,
    check_tool_calls_recorded,
    extract_judgement,
)
from agentci.evaluators.metrics import (
    HOSTED_METRICS,
    INSTALL_ADK,
    NO_EXPECTED_TURNS,
    HostedMetric,
    count_unpaired_turns,
    define_metric,
    get_threshold,
    make_metric_identity,
    make_metric_judgement,
    pair_turns,
)
from agentci.evaluators.program_output import describe_exit
from agentci.model.case import Case, Expectation
from agentci.model.program import LocalProgram, RequiredProgram
from agentci.model.requests import (
    Compose,
    ConstantJudgement,
    EvaluatorIdentity,
    Judgement,
    MetricResult,
    ProgramOutput,
    Response,
    RunProgram,
    Skip,
    Task,
)
from agentci.model.trace import ToolCall, ToolResponse, Turn
from agentci.model.values import Json, JsonObject, Place, TurnScore

AGENT: Final = "agent"


class _AdkModel(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, frozen=True)


class AdkNote(_AdkModel):
    """A note on a turn: the result of a rubric, an explanation or an error."""

    id: str
    score: float | None
    rationale: str | None


class AdkScore(_AdkModel):
    """The score of a turn or of all turns; without a score, the notes explain why."""

    score: float | None = None
    status: str = ""
    notes: tuple[AdkNote, ...] = ()


class AdkResult(AdkScore):
    """The output of ``child/programs/measure_adk.py``: a result, or the reason for its absence."""

    turns: tuple[AdkScore, ...] = ()
    error: str | None = None


def parse_adk_result(stdout: bytes) -> AdkResult:
    """Parse the output of ADK.

    Raises:
        EvaluatorError: if it is not a result.
    """
    try:
        return AdkResult.model_validate_json(stdout)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"invalid result of Google's ADK{where and f' at `{where}`'}: {first['msg']}"
        raise EvaluatorError(message) from None


def format_invocations(turns: Sequence[Turn]) -> list[Json]:
    """Format turns as ADK's ``Invocation``.

    Texts between tool calls are left out, because their position is unknown.
    """
    return [
        {
            "invocation_id": turn.id,
            "user_content": _content("user", {"text": turn.user_text}),
            "final_response": (
                _content("model", *({"text": part} for part in turn.answer_parts))
                if turn.answer_parts
                else None
            ),
            "intermediate_data": {"invocation_events": list(_format_events(turn))},
        }
        for turn in turns
    ]


def _format_events(turn: Turn) -> Iterator[Json]:
    """Yield the calls, each followed by its responses, then the responses without a known call."""
    for number, call in enumerate(turn.tool_calls):
        yield _event("model", {"function_call": _format_tool_call(call)})
        yield from (
            _format_tool_response(one) for one in turn.tool_responses if one.call_index == number
        )
    yield from (_format_tool_response(one) for one in turn.tool_responses if one.call_index is None)


def _format_tool_response(response: ToolResponse) -> Json:
    output = response.output
    if not isinstance(output, dict):  # ADK requires an object
        output = {"error" if response.failed else "result": output}
    found = {"id": response.id, "name": response.name, "response": output}
    return _event("user", {"function_response": found})


def _format_tool_call(call: ToolCall) -> Json:
    args = {} if call.args is None else {"args": call.named_args}
    return {"id": call.id, "name": call.name, **args}


def _event(role: str, part: JsonObject) -> Json:
    return {"author": AGENT, "content": _content(role, part)}


def _content(role: str, *parts: JsonObject) -> Json:
    return {"role": role, "parts": list(parts)}


MEASURE_PROGRAM: Final = LocalProgram(path=ADK_MEASURE_PATH)
# ADK takes seconds to load, and its service takes minutes for a long conversation.
TIMEOUT_SECONDS: Final = 900
CREDENTIALS_FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
CREDENTIAL_VARIABLES: Final = (
    "GOOGLE_API_KEY",
    CREDENTIALS_FILE_VARIABLE,
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENAI_USE_VERTEXAI",
)

NOT_EVALUATED: Final = "NOT_EVALUATED"
NOT_INSTALLED: Final = ("ImportError", "ModuleNotFoundError")
# ADK's ids of the notes that belong to no rubric.
EXPLANATION_NOTE: Final = "explanation"
ERROR_NOTE: Final = "error"
NO_REASON: Final = "no reason reported"


class HostedEvaluator(Struct, frozen=True, kw_only=True):
    """A metric that a service measures.

    Attributes:
        metric: its name in ``HOSTED_METRICS``.
        turn_mismatch_fails: see ``make_metric_judgement``; has no effect without an eval case.
        turn_score: see ``make_metric_judgement``; has no effect if the conversation is scored.
    """

    identity: EvaluatorIdentity
    metric: str
    turn_mismatch_fails: bool = True
    turn_score: TurnScore = "mean"

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """Nothing: its program is neither prepared nor cached."""
        return ()

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        return define_metric(
            self.identity,
            turn_mismatch_fails=self.turn_mismatch_fails,
            turn_score=self.turn_score,
        )

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the expected turns as they are sent, for a comparing metric."""
        return format_invocations(expectation.turns) if self._metric.needs_expected else None

    def ask(self, case: Case) -> Compose | Skip:
        """Request the measurement of all turns, or of paired turns for a comparing metric.

        Raises:
            EvaluatorError: if there are no turns, or the metric of a conversation lacks tool calls.
        """
        expected = case.expected.turns if case.expected and self._metric.needs_expected else ()
        if self._metric.needs_expected and not expected:
            return Skip(reason=case.unmatched_reason or NO_EXPECTED_TURNS)
        if self._metric.scores_conversation:
            check_tool_calls_recorded(case.trace.turns)
        # For a metric that compares nothing, each turn is paired with itself.
        pairs = pair_turns(case.trace.turns, expected or case.trace.turns)
        measurement: JsonObject = {
            "metric": self.metric,
            "threshold": self._metric.to_scale(get_threshold(self.identity)),
            "actual": format_invocations([turn for turn, _ in pairs]),
            "expected": format_invocations([turn for _, turn in pairs]) if expected else None,
        }
        run = RunProgram(
            program=MEASURE_PROGRAM,
            stdin=dumps_compact(measurement),
            timeout_seconds=TIMEOUT_SECONDS,
            timeout_hint="the service did not answer in time; run again",
            own_variables=CREDENTIAL_VARIABLES,
            key_file=CREDENTIALS_FILE_VARIABLE,
            isolation="spawn",
        )
        counts = count_unpaired_turns(case.trace.turns, expected) if expected else {}
        then = partial(self._make_judgement, len(pairs), counts)
        return Compose(parts=((self.metric, run),), then=then)

    def read(self, response: Response) -> Judgement:
        """Return the judgement of the measurement."""
        return extract_judgement(response)

    @property
    def _metric(self) -> HostedMetric:
        return HOSTED_METRICS[self.metric]

    def _make_judgement(
        self, turns: int, counts: JsonObject, responses: tuple[Response, ...]
    ) -> Task:
        [response] = responses
        output = check_response(response, ProgramOutput)
        if output.exit_code != 0:
            ended = describe_exit(output, network=True, in_image=False)
            raise EvaluatorError(f"Google's ADK {ended}")
        result = parse_adk_result(output.stdout)
        if result.error is not None:
            raise EvaluatorError(_format_adk_error(result.error))
        measured = self._measurement(result, turns, counts)
        return ConstantJudgement(
            judgement=make_metric_judgement(
                measured,
                self.identity,
                turn_mismatch_fails=self.turn_mismatch_fails,
                turn_score=self.turn_score,
            )
        )

    def _measurement(self, result: AdkResult, turns: int, counts: JsonObject) -> MetricResult:
        """Convert the scores of all turns.

        A mean over fewer turns could hide a failure, so every turn must have a score.
        """
        if len(result.turns) != turns:
            raise EvaluatorError(f"Google's ADK scored {len(result.turns)} of {turns} turns")
        numbered = [(f"turn {number}: ", each) for number, each in enumerate(result.turns, start=1)]
        if self._metric.scores_conversation:  # ADK reports that score with the last turn
            numbered = [("", result.turns[-1])]
        scores = tuple(self._normalize(each, where) for where, each in numbered)
        return MetricResult(
            score=self._normalize(result, ""),
            turn_scores=() if self._metric.scores_conversation else scores,
            misses=tuple(
                f"{where}{miss}"
                for (where, each), score in zip(numbered, scores, strict=True)
                for miss in self._misses(each, score)
            ),
            details=counts,
        )

    def _normalize(self, found: AdkScore, where: str) -> float:
        """Convert a score to 0 to 1.

        Raises:
            EvaluatorError: if there is no score, or it is outside the metric's scale.
        """
        if found.score is None or found.status == NOT_EVALUATED:
            why = next((each.rationale for each in found.notes if each.id == ERROR_NOTE), None)
            raise EvaluatorError(f"{where}Google's ADK returned no score: {why or NO_REASON}")
        metric = self._metric
        if not metric.lowest <= found.score <= metric.highest:
            raise EvaluatorError(
                f"{where}Google's ADK returned score {format_number(found.score)}; it must be"
                f" between {format_number(metric.lowest)} and {format_number(metric.highest)}"
            )
        return metric.normalize(found.score)

    def _misses(self, found: AdkScore, score: float) -> Iterator[str]:
        """Yield the rubrics that failed, and the explanation of a score below the threshold."""
        for note in found.notes:
            if note.score == 0:
                yield f"{note.id}: {note.rationale}" if note.rationale else note.id
            elif (
                note.id == EXPLANATION_NOTE
                and note.rationale
                and score < get_threshold(self.identity)
            ):
                yield note.rationale


def _format_adk_error(error: str) -> str:
    hint = f"; install it: {INSTALL_ADK}" if error.startswith(NOT_INSTALLED) else ""
    return f"Google's ADK failed: {error}{hint}"


def make_hosted_evaluator(
    metric: str,
    *,
    place: Place,
    threshold: float | None = None,
    required: bool = True,
    turn_mismatch_fails: bool = True,
) -> HostedEvaluator:
    """Make the evaluator for ``metric``; None stands for agentevals' default."""
    return HostedEvaluator(
        identity=make_metric_identity(
            metric,
            place=place,
            threshold=threshold,
            required=required,
            needs_expected=HOSTED_METRICS[metric].needs_expected,
        ),
        metric=metric,
        turn_mismatch_fails=turn_mismatch_fails,
    )
