"""Cases, a recorded run with what it is compared with, and where configs take runs from."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, get_args

from msgspec import Meta, Struct, field

from agentci.model.trace import Trace, Transcript, Turn
from agentci.model.values import Json, JsonObject, Place, hint_at_show


class RunSource(Struct, frozen=True, kw_only=True):
    """One entry of ``traces``.

    Attributes:
        path: path or glob as written.
        case: the eval case of its files, which may hold ``{stem}`` and ``{folder}``, or the eval
            cases by file name; None to find it by the question.
        where: patterns of the values of attributes that a trace must have; empty for all traces.
    """

    path: str
    case: str | Mapping[str, str] | None = None
    where: Mapping[str, str] = field(default_factory=dict)


GateOn: TypeAlias = Literal["case", "metrics"]
DEFAULT_GATE_ON: Final[GateOn] = "case"


class MetricThreshold(Struct, frozen=True, kw_only=True):
    """The threshold of a metric, on the tool's own scale; exactly one of the two is set.

    Attributes:
        threshold: the lowest score that passes.
        maximum: the highest score that passes, where lower scores are better.
    """

    threshold: float | None = None
    maximum: float | None = None

    @property
    def criterion(self) -> str:
        """The requirement as text."""
        if self.threshold is not None:
            return f"score >= {self.threshold:g}"
        return f"score <= {self.maximum:g}"

    def is_reached(self, score: float, tolerance: float = 1e-9) -> bool:
        """Whether a score passes; the tolerance allows for floating-point error."""
        if self.threshold is not None:
            return score >= self.threshold - tolerance
        return self.maximum is not None and score <= self.maximum + tolerance


class ResultsSource(Struct, frozen=True, kw_only=True):
    """One entry of ``results:``.

    Attributes:
        path: path or glob, as written.
        tool: the tool that wrote the files, or ``auto``.
        name: put before the names of metrics; may hold ``{stem}`` and ``{folder}``.
        gate_on: what fails the gate where a tool states verdicts on whole cases and on metrics.
        metrics: thresholds by the tool's name of the metric.
        expected_count: how many cases there must be at least; None for any number.
        expected_cases: the cases that there must be.
    """

    path: str
    tool: str = "auto"
    name: str = ""
    gate_on: GateOn = DEFAULT_GATE_ON
    metrics: Mapping[str, MetricThreshold] = field(default_factory=dict)
    expected_count: int | None = None
    expected_cases: tuple[str, ...] = ()
    place: Place


class Rubric(Struct, frozen=True, kw_only=True):
    """A property of the answer that a judge checks.

    Attributes:
        id: unique within a turn.
        type: the rubric type in ADK; empty if there is none.
    """

    id: str
    text: str
    type: str = ""


class AgentvCase(Struct, frozen=True, kw_only=True):
    """One case of an AgentV eval file: the input of the agent and the criteria of a good answer.

    Attributes:
        id: unique in its file.
        criteria: what a good answer does; empty if the file does not state it.
        input_messages: as written, with shorthands expanded.
        expected_messages: likewise, with each file reference replaced by the text of the file.
        guideline_files, input_files: absolute paths of the files that the input messages refer to.
        input_texts: contents of the input files that are not guidelines, by their names in the
            messages.
        input_paths: absolute paths of ``input_files``, by their names in the messages.
        metadata: the author's own.
        target, provider: AgentV's names of the agent and of what runs it; empty if unknown.
        judge_template: the judge prompt of this case, for evaluators that do not set one.
        place: position of the case in its file.
    """

    id: str
    criteria: str
    input_messages: tuple[JsonObject, ...]
    expected_messages: tuple[JsonObject, ...]
    place: Place
    guideline_files: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    input_texts: Mapping[str, str] = field(default_factory=dict)
    input_paths: Mapping[str, str] = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    target: str = ""
    provider: str = ""
    judge_template: str = ""


# Columns with the output of the agent: its answer and its tool calls (two names each), its tools.
ANSWER_COLUMNS: Final = ("response", "output_text")
TOOL_CALL_COLUMNS: Final = ("tool_calls", "output_tools")
TOOL_DEFINITIONS_COLUMN: Final = "tool_definitions"


class DatasetRow(Struct, frozen=True, kw_only=True):
    """One row of a dataset.

    Attributes:
        id: unique in its dataset.
        query: the input of the agent; empty if no column has it.
        columns: all columns, as written.
        tool_definitions: the tools that the agent had, as written; empty if the row has none.
        turn: what the agent did; None if the row does not have it.
    """

    id: str
    query: str
    columns: JsonObject
    place: Place
    tool_definitions: tuple[Json, ...] = ()
    turn: Turn | None = None

    @property
    def input_columns(self) -> JsonObject:
        """The columns without output of the agent."""
        output_columns = {*ANSWER_COLUMNS, *TOOL_CALL_COLUMNS, TOOL_DEFINITIONS_COLUMN}
        return {name: value for name, value in self.columns.items() if name not in output_columns}


class Dataset(Struct, frozen=True, kw_only=True):
    """The rows of one file, in file order."""

    rows: tuple[DatasetRow, ...] = field(default=())
    place: Place


class EvalCase(Struct, frozen=True, kw_only=True):
    """An eval case: the expected turns.

    Attributes:
        rubrics: the rubrics of each turn's answer, including those of the whole case.
        own_checks: what checks of this case only compare with, as written, by their names.
        has_plain_calls: whether the tool calls of ``turns`` are exactly the expected ones; False if
            matchers, groups or options of the trajectory language say more.
    """

    id: str
    turns: tuple[Turn, ...]
    place: Place
    rubrics: tuple[tuple[Rubric, ...], ...] = ()
    own_checks: Mapping[str, Json] = field(default_factory=dict)
    has_plain_calls: bool = True


class EvalSet(Struct, frozen=True, kw_only=True):
    """The eval cases of one eval set file, in file order, including those without turns."""

    id: str
    cases: tuple[EvalCase, ...]
    place: Place


class Expectation(Struct, frozen=True, kw_only=True):
    """What a recorded run is compared with: a case without the run.

    Attributes:
        columns: the columns of the dataset row without output of the agent; None without a row.
    """

    eval_case: EvalCase | None = None
    agentv_case: AgentvCase | None = None
    columns: JsonObject | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The expected turns of the eval case; empty without one."""
        return self.eval_case.turns if self.eval_case else ()


class Case(Struct, frozen=True, kw_only=True):
    """A recorded run and, if one matches, its eval case.

    Attributes:
        id: unique in a run; the id of the eval case, else of the dataset row, session or
            conversation, else the first question: what stays the same when the agent is recorded
            again, if possible.
        unmatched_reason: why ``expected`` is None ("no matching eval case").
        agentv_case, transcript: the case of an eval file and the messages of its run; None for
            cases from traces.
        missing_run_reason: why there is no run, if known; the checks of the case are errored.
        dataset_row: the dataset row that the agent was run with; None if there is none.
    """

    id: str
    trace: Trace
    expected: EvalCase | None = None
    unmatched_reason: str | None = None
    agentv_case: AgentvCase | None = None
    transcript: Transcript | None = None
    missing_run_reason: str | None = None
    dataset_row: DatasetRow | None = None

    @property
    def expectation(self) -> Expectation:
        """What the run is compared with."""
        return Expectation(
            eval_case=self.expected,
            agentv_case=self.agentv_case,
            columns=self.dataset_row.input_columns if self.dataset_row else None,
        )


CONVENTIONS_HINT: Final = (
    "agentci reads GenAI, OpenInference, Vercel AI SDK, Langfuse, LangSmith, MLflow and other "
    "conventions, see agentci's docs/traces.md"
)


# Why the checks of an eval case, a dataset row or a case of an eval file errored: nothing was
# recorded of it.
NOT_RECORDED: Final = (
    "No run of this eval case was recorded; record it with `agentci record --cases`, or select "
    "others with --case"
)
NO_RECORDED_RUN: Final = "no recorded run matches this row"
NO_RECORDED_OUTPUT: Final = "this case has no recorded output"
UNRECORDED_REASONS: Final = (NOT_RECORDED, NO_RECORDED_RUN, NO_RECORDED_OUTPUT)

# A warning about a recording whose format leaves out what the user wrote.
QUESTION_NOT_RECORDED: Final = "the recording does not hold what the user wrote"


class DialogueTurn(Struct, frozen=True, kw_only=True):
    """The part of a turn that reports quote; ``answer`` is None if the agent gave none."""

    question: str
    answer: str | None


class ChangedText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parts of two texts with their first difference, on one line each."""

    before: str
    after: str


# The most serious first.
ResultChange: TypeAlias = Literal["error", "empty", "other"]
RESULT_CHANGES: Final[tuple[ResultChange, ...]] = get_args(ResultChange)


class ChangedResult(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The result of a tool call that another one had in the baseline."""

    tool: str
    before: Annotated[str, Meta(description="Part of the result with the first difference.")]
    after: Annotated[str, Meta(description="Likewise, of this run; empty for an empty result.")]
    kind: Annotated[
        ResultChange,
        Meta(
            description="The call newly fails, or its result newly looks like an error (`error`), "
            "or newly has no content (`empty`), or is another one."
        ),
    ] = "other"


# The most serious first.
CallChange: TypeAlias = Literal["new_tool", "lost_tool", "arguments", "added", "removed"]
CALL_CHANGES: Final[tuple[CallChange, ...]] = get_args(CallChange)


class ChangedCall(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A tool call that another one, or none, stands for in the baseline."""

    tool: str
    kind: Annotated[
        CallChange,
        Meta(
            description="The run newly calls the tool (`new_tool`), calls it no longer "
            "(`lost_tool`), with other arguments, or calls it more (`added`) or less often."
        ),
    ]
    before: Annotated[
        str,
        Meta(description="The call, or its first argument that differs; empty if there is none."),
    ] = ""
    after: Annotated[str, Meta(description="Likewise, of this run.")] = ""
    count: Annotated[int, Meta(description="Number of equal calls.")] = 1


class RunChanges(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a run does otherwise than in the baseline."""

    answer: Annotated[
        ChangedText | None, Meta(description="The first final answer that differs; else absent.")
    ] = None
    facts: Annotated[
        str,
        Meta(
            description="Numbers, units, operators, negations and types of JSON in which it does; "
            "else single words."
        ),
    ] = ""
    results: Annotated[
        tuple[ChangedResult, ...],
        Meta(description="Of calls with the same arguments; the first ones, errors before others."),
    ] = ()
    more_results: Annotated[int, Meta(description="How many more differ.")] = 0
    calls: Annotated[
        tuple[ChangedCall, ...],
        Meta(description="The first tool calls that differ, the most serious ones first."),
    ] = ()
    more_calls: Annotated[int, Meta(description="How many more differ.")] = 0
    reworded_calls: Annotated[
        int, Meta(description="Of how many calls only the words of arguments differ.")
    ] = 0
    printed: Annotated[str, Meta(description="What else the command printed.")] = ""


# No digest starts like this.
NAMED_RUN: Final = "named "


class CaseSummary(Struct, frozen=True, kw_only=True):
    """The part of a case that reports show; the rest is dropped, as there may be very many cases.

    Attributes:
        id, trace_id, eval_case_id: ids of the case, its trace and its eval case.
        group: shared by cases that are not independent: the id of an eval case, a dataset row or a
            conversation; else the case's own id.
        unmatched_reason, missing_run_reason: as in ``Case``.
        not_captured: as in ``Trace``.
        eval_case_place: where the eval case, AgentV case or dataset row is; None without one.
        recording: place of the recorded run.
        dialogue: one entry per turn.
        warnings: what was guessed or dropped while reading the run.
        performance: latency, tokens and counts as JSON on one line.
        run: a digest of everything that was recorded of the run; for results of a tool that names
            its runs, that name after ``NAMED_RUN``.
        content: number of its ``RunContent``; None if that was not kept.
        changes: against the baseline; None if the runs were not compared.
    """

    id: str
    trace_id: str
    group: str
    eval_case_id: str | None = None
    unmatched_reason: str | None = None
    missing_run_reason: str | None = None
    not_captured: str = ""
    eval_case_place: Place | None = None
    recording: Place
    dialogue: tuple[DialogueTurn, ...] = ()
    warnings: tuple[str, ...] = ()
    performance: str | None = None
    run: str = ""
    content: int | None = None
    changes: RunChanges | None = None

    @property
    def shown_warnings(self) -> tuple[str, ...]:
        """Its warnings, with that of other lines than the command printed in the baseline."""
        if self.changes is None or not self.changes.printed:
            return self.warnings
        return tuple(sorted({*self.warnings, self.changes.printed}))

    @property
    def unusable_reason(self) -> str:
        """Why no evaluator can evaluate the case; empty if it can be evaluated."""
        if self.missing_run_reason is not None:
            return self.missing_run_reason
        reason = self.not_captured
        if not self.dialogue:
            reason = f"No agent turns found in trace `{self.trace_id}`; {CONVENTIONS_HINT}"
        return reason and f"{reason}; {hint_at_show(self.recording.file)}"
