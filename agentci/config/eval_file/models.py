"""What an eval file may say, apart from the entries of its evaluators; of all generations."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from agentci.config.models import EvalFileGateSpec, TraceFormat
from agentci.dialects.agentv.payload import Wire
from agentci.dialects.fields import Name, Share, Strict, Text
from agentci.dialects.panels import SharedJudgeSpec
from agentci.model.choices import GroupBy

Content: TypeAlias = Text | dict[str, JsonValue] | list[JsonValue]
Entries: TypeAlias = list[JsonValue]

# Keys of lists of evaluators, in the order in which they are looked at.
OF_EXECUTION: Final = "execution"
SEED_LISTS: Final = (
    (OF_EXECUTION, "evaluators"), ("evaluators",), ("assertions",), ("assert",),
)  # fmt: skip
V4_LISTS: Final = (
    ("assertions",), ("assert",), (OF_EXECUTION, "evaluators"), ("evaluators",),
)  # fmt: skip

# Read by AgentV, and without any effect on how recorded runs are judged.
WITHOUT_EFFECT: Final = frozenset(
    {
        *("$schema", "author", "category", "conversation_id", "evaluator", "license", "note"),
        *("notes", "requires", "tags", "target", "targets", "workspace", "workers", "cache"),
    }
)
# What would change which cases there are or what they are asked, and is not done here.
UNREAD: Final = {
    "depends_on": "cases are judged each by itself",
    "input_files": "refer to files inside of messages",
    "mode": "conversations are judged as one recorded run",
    "preprocessors": "record what the agent really got",
    "rubrics": "they ask a language model to judge, which this version of agentci does not",
    "turns": "conversations are judged as one recorded run",
    "vars": "write the case out",
}
# Likewise at the top of a file, where AgentV 4 has one for all cases.
UNREAD_AT_THE_TOP: Final = {"input": "write it into the cases"}


class Lenient(Strict):
    """A mapping whose other keys are looked at elsewhere."""

    model_config = ConfigDict(extra="allow")


class Execution(Lenient):
    """How AgentV runs cases; of use here is what judges them."""

    evaluators: Entries | None = Field(default=None, description="What judges.")
    skip_defaults: bool = Field(
        default=False, description="In files with `tests`: leave out the file's own evaluators."
    )
    threshold: Share | None = Field(
        default=None, description="Score that passes, 0.8 by default; for the whole file."
    )
    trials: JsonValue = Field(default=None, description="Several runs of each case.")


class CaseSpec(Lenient):
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
    execution: Execution | None = Field(default=None, description="What judges this case.")
    evaluators: Entries | None = Field(default=None, description="What judges this case.")
    assertions: Entries | None = Field(default=None, description="What judges this case.")
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Of your own.")


class EvalFile(Lenient):
    """Cases, what an agent answered to each, and what judges the answers."""

    evalcases: list[JsonValue] | None = Field(default=None, description="The cases (AgentV 1).")
    cases: list[JsonValue] | None = Field(default=None, description="The cases (AgentV 2).")
    eval_cases: list[JsonValue] | None = Field(default=None, description="The cases.")
    tests: list[JsonValue] | None = Field(default=None, description="The cases (AgentV 4).")
    name: str | None = Field(default=None, description="Of the file.")
    dataset: str | None = Field(default=None, description="Of the file, in older files.")
    description: str | None = Field(default=None, description="What it is about.")
    version: JsonValue = Field(default=None, description="Of the file.")
    metadata: dict[str, JsonValue] | None = Field(default=None, description="Of your own.")
    execution: Execution | None = Field(default=None, description="What judges all cases.")
    assertions: Entries | None = Field(default=None, description="What judges all cases.")
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
    wire: Wire = Field(
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
        """What ``outputs`` names, always as many."""
        return (self.outputs,) if isinstance(self.outputs, str) else tuple(self.outputs)


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class MessageSpec(Lenient):
    """One message."""

    role: Role = Field(description="Who says it.")
    content: str | dict[str, JsonValue] | list[dict[str, JsonValue]] | None = Field(
        default=None, description="Text, data, or a list of parts."
    )
    tool_calls: Annotated[list[dict[str, JsonValue]], Field(min_length=1)] | None = Field(
        default=None, description="Tools that are used in it."
    )
