"""Models of eval files of all AgentV versions, except for the entries of their evaluators."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from agentci.config.models import EvalFileGateSpec, TraceFormat
from agentci.evaluators.agentv.llm_judge_entries import CriteriaList
from agentci.evaluators.agentv.payload import PayloadFormat
from agentci.evaluators.fields import Count, Name, Share, StrictModel, Text
from agentci.evaluators.judge_config import SharedJudgeSpec
from agentci.model.choices import GroupBy

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

    evaluators: Entries | None = Field(default=None, description="Evaluators.")
    assertions: Entries | None = Field(default=None, description="Evaluators.")
    evaluator_template: Template = None
    skip_defaults: bool = Field(
        default=False, description="In files with `tests`: do not use the file's evaluators."
    )
    threshold: Share | None = Field(
        default=None,
        description="Score that a check must reach: that of the case, else of the file, else 0.8.",
    )
    trials: JsonValue = Field(default=None, description="Several runs of each case.")


class FileOrCaseSpec(LenientModel):
    """Fields that a file and each of its cases have in common."""

    execution: Execution | None = Field(default=None, description="Evaluators.")
    threshold: Share | None = Field(
        default=None, description="Score that a check must reach, if `execution` sets none."
    )

    @property
    def own_threshold(self) -> float | None:
        """The score threshold set in this part, if any."""
        given = None if self.execution is None else self.execution.threshold
        return self.threshold if given is None else given


class CaseSpec(FileOrCaseSpec):
    """One case."""

    id: Name = Field(description="Name of the case; unique in its file.")
    criteria: str | None = Field(default=None, description="Criteria for a good answer.")
    expected_outcome: str | None = Field(default=None, description="As above, in older files.")
    outcome: str | None = Field(default=None, description="As above, in the oldest files.")
    input: Content | None = Field(
        default=None, description="What the agent is asked: text, or a list of messages."
    )
    input_messages: Content | None = Field(default=None, description="As above, in older files.")
    expected_output: Content | None = Field(
        default=None, description="A good answer: text, data, or a list of messages."
    )
    expected_messages: Content | None = Field(default=None, description="As above, in older files.")
    evaluators: Entries | None = Field(default=None, description="Evaluators of this case.")
    assertions: Entries | None = Field(default=None, description="Evaluators of this case.")
    rubrics: CriteriaList | None = Field(
        default=None, description="Criteria by which a judge model grades this case."
    )
    evaluator_template: Template = None
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Data of your own.")
    vars: dict[str, JsonValue] | None = Field(
        default=None, description="Values of `{{ name }}` in the input and the expected output."
    )
    input_files: Paths | None = Field(
        default=None, description="Files to put before a text `input`, in the same message."
    )
    mode: Literal["conversation"] | None = Field(
        default=None, description="Required with `turns`; each turn is evaluated separately."
    )
    turns: Annotated[list[JsonValue], Field(min_length=1)] | None = Field(
        default=None, description="Turns of the conversation with the agent."
    )
    aggregation: Literal["mean", "min", "max"] = Field(
        default="mean", description="How AgentV aggregates the scores of the turns."
    )
    on_turn_failure: Literal["continue", "stop"] = Field(
        default="continue", description="Whether AgentV continues after a failed turn."
    )
    window_size: Count | None = Field(
        default=None,
        description="Number of latest rounds that evaluators of a turn receive; by default all.",
    )
    depends_on: list[Name] = Field(
        default=[],
        description="Cases that AgentV runs first; agentci evaluates each case separately.",
    )

    @property
    def any_criteria(self) -> str:
        """The criteria for a good response, under the key of any AgentV version; "" if not set."""
        return self.criteria or self.expected_outcome or self.outcome or ""


class TurnSpec(LenientModel):
    """One turn of a conversation."""

    input: Content = Field(description="What the agent is asked: text, or a list of messages.")
    expected_output: Content | None = Field(
        default=None, description="A good answer: text, data, or a list of messages."
    )
    assertions: Entries | None = Field(default=None, description="Evaluators of this turn.")


class EvalFile(FileOrCaseSpec):
    """Eval cases, the agent's output for each, and the evaluators."""

    evalcases: Cases | None = Field(default=None, description="The cases (AgentV 1).")
    cases: Cases | None = Field(default=None, description="The cases (AgentV 2).")
    eval_cases: Cases | None = Field(default=None, description="The cases.")
    tests: Cases | None = Field(default=None, description="The cases (AgentV 4).")
    name: str | None = Field(default=None, description="Has no effect.")
    dataset: str | None = Field(default=None, description="Has no effect.")
    description: str | None = Field(default=None, description="Has no effect.")
    version: JsonValue = Field(default=None, description="Has no effect.")
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="Data of your own, for all cases."
    )
    input: Content | None = Field(
        default=None,
        description="Input that precedes that of every case: text, or a list of messages.",
    )
    input_files: Paths | None = Field(
        default=None, description="Files of every case that sets none."
    )
    assertions: Entries | None = Field(default=None, description="Evaluators of all cases.")
    evaluator_template: Template = None
    outputs: Text | list[Text] = Field(
        default=[],
        description="Recorded outputs: a path or glob, or a list of them, relative to this file.",
    )
    trace_format: TraceFormat | None = Field(
        default=None,
        description="Format of recorded traces; by default detected from their content.",
    )
    group_by: GroupBy | None = Field(
        default=None, description="Whether a run is one trace, or all traces of a conversation."
    )
    wire: PayloadFormat = Field(
        default="union", description="Payload format that code judges receive."
    )
    judge: SharedJudgeSpec | None = Field(
        default=None, description="Judge model of all evaluators that need one and set none."
    )
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
    content: str | dict[str, JsonValue] | list[dict[str, JsonValue]] | None = Field(
        default=None, description="Text, data, or a list of parts."
    )
    tool_calls: Annotated[list[dict[str, JsonValue]], Field(min_length=1)] | None = Field(
        default=None, description="Tool calls in the message."
    )
