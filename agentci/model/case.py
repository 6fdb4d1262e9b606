"""Cases: a recorded run with the eval case, AgentV case or dataset row that it is compared with."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from agentci.model.json import Json, JsonObject
from agentci.model.problem import Place
from agentci.model.trace import Trace, Transcript, Turn


class Rubric(Struct, frozen=True, kw_only=True):
    """One property that a model looks for.

    Attributes:
        id: unique among those of a turn.
        type: ADK's designator of what it is about; empty where there is none.
    """

    id: str
    text: str
    type: str = ""


class AgentvCase(Struct, frozen=True, kw_only=True):
    """What an agent was asked, and what a good answer does.

    Attributes:
        id: unique in its file.
        criteria: what a good answer does, in words; empty where the file does not say.
        input_messages: as they are written, shorthands written out.
        expected_messages: likewise, with the text of each file in the place of its reference.
        guideline_files, input_files: absolute paths of what the input messages refer to.
        input_texts: what those that are no guidelines say, by their names in the messages.
        metadata: the author's own.
        judge_template: how language models are asked about this case, where their entries do not
            say.
        place: the case in its file.
    """

    id: str
    criteria: str
    input_messages: tuple[JsonObject, ...]
    expected_messages: tuple[JsonObject, ...]
    place: Place
    guideline_files: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    input_texts: Mapping[str, str] = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    judge_template: str = ""


# Columns that say what the agent did: the answer and the calls, each by either name, and its tools.
ANSWER_COLUMNS: Final = ("response", "output_text")
TOOL_CALL_COLUMNS: Final = ("tool_calls", "output_tools")
TOOL_DEFINITIONS_COLUMN: Final = "tool_definitions"


class DatasetRow(Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        id: unique in its dataset.
        query: what the agent is asked; empty where no column says so.
        columns: all of them, as they are written.
        tool_definitions: the tools that the agent had, as they are written; empty where the row
            does not say.
        turn: what the agent did; None where the row does not carry that.
    """

    id: str
    query: str
    columns: JsonObject
    place: Place
    tool_definitions: tuple[Json, ...] = ()
    turn: Turn | None = None

    @property
    def input_columns(self) -> JsonObject:
        """The columns that say nothing of what the agent did."""
        done = {*ANSWER_COLUMNS, *TOOL_CALL_COLUMNS, TOOL_DEFINITIONS_COLUMN}
        return {name: value for name, value in self.columns.items() if name not in done}


class Dataset(Struct, frozen=True, kw_only=True):
    """The rows of one file, in its order."""

    rows: tuple[DatasetRow, ...] = field(default=())
    place: Place


class EvalCase(Struct, frozen=True, kw_only=True):
    """A golden case: the turns that a good agent would take.

    Attributes:
        rubrics: what the answer to each turn has to fulfil; those of the whole case included.
    """

    id: str
    turns: tuple[Turn, ...]
    place: Place
    rubrics: tuple[tuple[Rubric, ...], ...] = ()


class EvalSet(Struct, frozen=True, kw_only=True):
    """The golden cases of one eval set file, in its order; those without turns included."""

    id: str
    cases: tuple[EvalCase, ...]
    place: Place


class Case(Struct, frozen=True, kw_only=True):
    """A recorded run and, where one was found, its golden case.

    Attributes:
        id: unique in a run; the golden case's id where there is one (it stays the same when the
            agent is recorded anew), else the trace's or the conversation's.
        unmatched_reason: why ``expected`` is None ("no matching eval case").
        agentv_case, transcript: the case of an eval file, and the messages of its run; None for
            cases from traces.
        missing_run_reason: why there is no run, where that is known; its checks are errored.
        dataset_row: of the dataset, that the agent was asked by; None where there is none.
    """

    id: str
    trace: Trace
    expected: EvalCase | None = None
    unmatched_reason: str | None = None
    agentv_case: AgentvCase | None = None
    transcript: Transcript | None = None
    missing_run_reason: str | None = None
    dataset_row: DatasetRow | None = None


class DialogueTurn(Struct, frozen=True, kw_only=True):
    """What reports quote of a turn; ``answered`` is None where the agent gave no answer."""

    question: str
    answer: str | None


class CaseSummary(Struct, frozen=True, kw_only=True):
    """What reports show of a case: all that is kept of it, since there may be very many.

    Attributes:
        id, trace_id, eval_case_id: the ids of the case, of its trace and of its golden case.
        group: what it shares with cases that are no others: a golden case, the row of a dataset, a
            conversation; else its own id.
        unmatched_reason, missing_run_reason: as in ``Case``.
        recording: where it was recorded.
        dialogue: one a turn.
        warnings: what had to be guessed or dropped while it was read.
        performance: latency, tokens and counts in JSON, on one line.
    """

    id: str
    trace_id: str
    group: str
    eval_case_id: str | None = None
    unmatched_reason: str | None = None
    missing_run_reason: str | None = None
    recording: Place
    dialogue: tuple[DialogueTurn, ...] = ()
    warnings: tuple[str, ...] = ()
    performance: str | None = None
