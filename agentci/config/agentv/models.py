"""Models of eval files of all AgentV versions, except for the entries of their evaluators."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from agentci.config.models import EvalFileGateSpec, TraceFormat
from agentci.evaluators.agentv.llm_judge import CriteriaList
from agentci.evaluators.agentv.payload import PayloadFormat
from agentci.evaluators.fields import Count, Name, Share, StrictModel, Text, optional
from agentci.evaluators.judge_config import SharedJudgeSpec
from agentci.model.values import GroupBy

Content: TypeAlias = Text | dict[str, JsonValue] | list[JsonValue]
Entries: TypeAlias = list[JsonValue]
Paths: TypeAlias = list[Text]
Cases: TypeAlias = Text | list[JsonValue]

# Paths of evaluator lists, in order of precedence.
EXECUTION_KEY: Final = "execution"
SEED_LIST_PATHS: Final = (
    (EXECUTION_KEY, "evaluators"), ("evaluators",), ("assertions",), ("assert",),
)  # fmt: skip
V4_LIST_PATHS: Final = (
    ("assertions",), ("assert",), (EXECUTION_KEY, "assertions"), (EXECUTION_KEY, "evaluators"),
    ("evaluators",),
)  # fmt: skip

# The key for the judge prompt in the first versions of AgentV.
TEMPLATE_KEY: Final = "evaluatorTemplate"
Template: TypeAlias = Annotated[
    str | None,
    Field(
        alias=TEMPLATE_KEY,
        description="Judge prompt of evaluators that set none: text with `{{ candidate_answer }}`, "
        "or the path of a file with it.",
    ),
]


class LenientModel(StrictModel):
    """A mapping that allows other keys, which are checked elsewhere."""

    model_config = ConfigDict(extra="allow")


class Execution(LenientModel):
    """How AgentV runs cases; agentci reads evaluators, thresholds and trials."""

    evaluators: Entries | None = optional("Evaluators.")
    assertions: Entries | None = optional("Evaluators.")
    evaluator_template: Template = None
    skip_defaults: bool = optional(
        "In files with `tests`: do not use the file's evaluators.", default=False
    )
    threshold: Share | None = optional(
        "Score that a check must reach: that of the case, else of the file, else 0.8."
    )
    trials: JsonValue = optional("Several runs of each case.")


class FileOrCaseSpec(LenientModel):
    """Fields that a file and each of its cases have in common."""

    execution: Execution | None = optional("Evaluators.")
    threshold: Share | None = optional("Score that a check must reach, if `execution` sets none.")

    @property
    def own_threshold(self) -> float | None:
        """The score threshold set in this part, if any."""
        given = None if self.execution is None else self.execution.threshold
        return self.threshold if given is None else given


class CaseSpec(FileOrCaseSpec):
    """One case."""

    id: Name = Field(description="Name of the case; unique in its file.")
    criteria: str | None = optional("Criteria for a good answer.")
    expected_outcome: str | None = optional("As above, in older files.")
    outcome: str | None = optional("As above, in the oldest files.")
    input: Content | None = optional("What the agent is asked: text, or a list of messages.")
    input_messages: Content | None = optional("As above, in older files.")
    expected_output: Content | None = optional("A good answer: text, data, or a list of messages.")
    expected_messages: Content | None = optional("As above, in older files.")
    evaluators: Entries | None = optional("Evaluators of this case.")
    assertions: Entries | None = optional("Evaluators of this case.")
    rubrics: CriteriaList | None = optional("Criteria by which a judge model grades this case.")
    evaluator_template: Template = None
    metadata: dict[str, JsonValue] | None = optional("Data of your own.")
    vars: dict[str, JsonValue] | None = optional(
        "Values of `{{ name }}` in the input and the expected output."
    )
    input_files: Paths | None = optional("Files to put before a text `input`, in the same message.")
    mode: Literal["conversation"] | None = optional(
        "Required with `turns`; each turn is evaluated separately."
    )
    turns: Annotated[list[JsonValue], Field(min_length=1)] | None = optional(
        "Turns of the conversation with the agent."
    )
    aggregation: Literal["mean", "min", "max"] = optional(
        "How AgentV aggregates the scores of the turns.", default="mean"
    )
    on_turn_failure: Literal["continue", "stop"] = optional(
        "Whether AgentV continues after a failed turn.", default="continue"
    )
    window_size: Count | None = optional(
        "Number of latest rounds that evaluators of a turn receive; by default all."
    )
    depends_on: list[Name] = optional(
        "Cases that AgentV runs first; agentci evaluates each case separately.", default=[]
    )

    @property
    def any_criteria(self) -> str:
        """The criteria for a good response, under the key of any AgentV version; "" if not set."""
        return self.criteria or self.expected_outcome or self.outcome or ""


class TurnSpec(LenientModel):
    """One turn of a conversation."""

    input: Content = Field(description="What the agent is asked: text, or a list of messages.")
    expected_output: Content | None = optional("A good answer: text, data, or a list of messages.")
    assertions: Entries | None = optional("Evaluators of this turn.")


class EvalFile(FileOrCaseSpec):
    """Eval cases, the agent's output for each, and the evaluators."""

    evalcases: Cases | None = optional("The cases (AgentV 1).")
    cases: Cases | None = optional("The cases (AgentV 2).")
    eval_cases: Cases | None = optional("The cases.")
    tests: Cases | None = optional("The cases (AgentV 4).")
    name: str | None = optional("Has no effect.")
    dataset: str | None = optional("Has no effect.")
    description: str | None = optional("Has no effect.")
    version: JsonValue = optional("Has no effect.")
    metadata: dict[str, JsonValue] | None = optional("Data of your own, for all cases.")
    input: Content | None = optional(
        "Input that precedes that of every case: text, or a list of messages."
    )
    input_files: Paths | None = optional("Files of every case that sets none.")
    assertions: Entries | None = optional("Evaluators of all cases.")
    evaluator_template: Template = None
    outputs: Text | list[Text] = optional(
        "Recorded outputs: a path or glob, or a list of them, relative to this file.", default=[]
    )
    trace_format: TraceFormat | None = optional(
        "Format of recorded traces; by default detected from their content."
    )
    group_by: GroupBy | None = optional(
        "Whether a run is one trace, or all traces of a conversation."
    )
    wire: PayloadFormat | None = optional(
        "Payload format that code judges receive; by default that of the versions that read the "
        "list of cases: `snake+v4` with `tests`, else `union`."
    )
    judge: SharedJudgeSpec | None = optional("Judge model of evaluators.")
    gate: EvalFileGateSpec = Field(
        default_factory=EvalFileGateSpec, description="Thresholds for the gate to pass."
    )

    @property
    def globs(self) -> tuple[str, ...]:
        """The paths and globs of ``outputs``, always as a tuple."""
        return (self.outputs,) if isinstance(self.outputs, str) else tuple(self.outputs)


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class MessageSpec(LenientModel):
    """One message."""

    role: Role = Field(description="Author of the message.")
    content: str | dict[str, JsonValue] | list[dict[str, JsonValue]] | None = optional(
        "Text, data, or a list of parts."
    )
    tool_calls: Annotated[list[dict[str, JsonValue]], Field(min_length=1)] | None = optional(
        "Tool calls in the message."
    )
