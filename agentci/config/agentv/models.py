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
        description="How language models are asked, where evaluators do not say: text with "
        "`{{ candidate_answer }}`, or a file of that.",
    ),
]


class LenientModel(StrictModel):
    """A mapping that allows other keys, which are checked elsewhere."""

    model_config = ConfigDict(extra="allow")


class Execution(LenientModel):
    """How AgentV runs cases; agentci reads evaluators, thresholds and trials."""

    evaluators: Entries | None = Field(default=None, description="What judges.")
    assertions: Entries | None = Field(default=None, description="What judges.")
    evaluator_template: Template = None
    skip_defaults: bool = Field(
        default=False, description="In files with `tests`: leave out the file's own evaluators."
    )
    threshold: Share | None = Field(
        default=None, description="Score that passes: of a case, else of the file, else 0.8."
    )
    trials: JsonValue = Field(default=None, description="Several runs of each case.")


class FileOrCaseSpec(LenientModel):
    """Fields that a file and each of its cases have in common."""

    execution: Execution | None = Field(default=None, description="What judges.")
    threshold: Share | None = Field(
        default=None, description="Score that passes, where `execution` names none."
    )

    @property
    def own_threshold(self) -> float | None:
        """The score threshold set in this part, if any."""
        given = None if self.execution is None else self.execution.threshold
        return self.threshold if given is None else given


class CaseSpec(FileOrCaseSpec):
    """One case."""

    id: Name = Field(description="Name of the case; unique in its file.")
    criteria: str | None = Field(default=None, description="What a good answer does.")
    expected_outcome: str | None = Field(default=None, description="The same, in older files.")
    outcome: str | None = Field(default=None, description="The same, in the oldest files.")
    input: Content | None = Field(
        default=None, description="What the agent is asked: text, or a list of messages."
    )
    input_messages: Content | None = Field(default=None, description="The same, in older files.")
    expected_output: Content | None = Field(
        default=None, description="A good answer: text, data, or a list of messages."
    )
    expected_messages: Content | None = Field(default=None, description="The same, in older files.")
    evaluators: Entries | None = Field(default=None, description="What judges this case.")
    assertions: Entries | None = Field(default=None, description="What judges this case.")
    rubrics: CriteriaList | None = Field(
        default=None, description="Criteria by which a language model judges this case."
    )
    evaluator_template: Template = None
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Of your own.")
    vars: dict[str, JsonValue] | None = Field(
        default=None, description="Values for `{{ name }}` in what is asked and expected."
    )
    input_files: Paths | None = Field(
        default=None, description="Files before an `input` that is text, in one message."
    )
    mode: Literal["conversation"] | None = Field(
        default=None, description="With `turns`: each is judged by itself."
    )
    turns: Annotated[list[JsonValue], Field(min_length=1)] | None = Field(
        default=None, description="What the agent is asked in turn."
    )
    aggregation: Literal["mean", "min", "max"] = Field(
        default="mean", description="How AgentV makes one score of those of the turns."
    )
    on_turn_failure: Literal["continue", "stop"] = Field(
        default="continue", description="What AgentV does once a turn has failed."
    )
    window_size: Count | None = Field(
        default=None, description="How many rounds the evaluators of a turn are told."
    )
    depends_on: list[Name] = Field(
        default=[], description="Cases that AgentV runs before; each is judged by itself here."
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
    assertions: Entries | None = Field(default=None, description="What judges this turn.")


class EvalFile(FileOrCaseSpec):
    """Eval cases, the agent's output for each, and the evaluators."""

    evalcases: Cases | None = Field(default=None, description="The cases (AgentV 1).")
    cases: Cases | None = Field(default=None, description="The cases (AgentV 2).")
    eval_cases: Cases | None = Field(default=None, description="The cases.")
    tests: Cases | None = Field(default=None, description="The cases (AgentV 4).")
    name: str | None = Field(default=None, description="Of the file.")
    dataset: str | None = Field(default=None, description="Of the file, in older files.")
    description: str | None = Field(default=None, description="What it is about.")
    version: JsonValue = Field(default=None, description="Of the file.")
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="Of your own, for all cases."
    )
    input: Content | None = Field(
        default=None, description="What every case is asked first: text, or a list of messages."
    )
    input_files: Paths | None = Field(
        default=None, description="Files for every case that has none of its own."
    )
    assertions: Entries | None = Field(default=None, description="What judges all cases.")
    evaluator_template: Template = None
    outputs: Text | list[Text] = Field(
        default=[],
        description="Recorded outputs: a path or glob, or a list of them, relative to this file.",
    )
    trace_format: TraceFormat | None = Field(
        default=None, description="Format of recorded traces; by default seen from their content."
    )
    group_by: GroupBy | None = Field(
        default=None, description="Whether a run is one trace, or all traces of a conversation."
    )
    wire: PayloadFormat = Field(
        default="union", description="The words in which code judges are given cases."
    )
    judge: SharedJudgeSpec | None = Field(
        default=None, description="Which model judges, where evaluators ask one."
    )
    gate: EvalFileGateSpec = Field(
        default_factory=EvalFileGateSpec, description="What has to be reached."
    )

    @property
    def globs(self) -> tuple[str, ...]:
        """The paths and globs of ``outputs``, always as a tuple."""
        return (self.outputs,) if isinstance(self.outputs, str) else tuple(self.outputs)


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class MessageSpec(LenientModel):
    """One message."""

    role: Role = Field(description="Who says it.")
    content: str | dict[str, JsonValue] | list[dict[str, JsonValue]] | None = Field(
        default=None, description="Text, data, or a list of parts."
    )
    tool_calls: Annotated[list[dict[str, JsonValue]], Field(min_length=1)] | None = Field(
        default=None, description="Tools that are used in it."
    )
