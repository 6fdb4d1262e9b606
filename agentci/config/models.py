"""Models of the parts of a config, except for the entries of its evaluators."""

import json
import re
from typing import Annotated, Final, Self, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from agentci.config.yaml_document import YamlDocument
from agentci.evaluators.fields import (
    AnyConfidence,
    Confidence,
    ConfigVersion,
    Count,
    MatchType,
    Prices,
    Share,
    StrictModel,
    Text,
    optional,
)
from agentci.evaluators.judge_config import SharedJudgeSpec
from agentci.model.case import GateOn, MetricThreshold, ResultsSource, RunSource
from agentci.model.gate import RegressionMode, RegressionOutcome
from agentci.model.values import (
    GroupBy,
    OnEmpty,
    OnError,
    OnLoosened,
    OnMissing,
    OnRemoved,
    OnSkip,
    OnTurnMismatch,
    PolicySource,
)
from agentci.recordings.registry import FORMAT_NAMES
from agentci.result_files.row import AUTO_TOOL, TOOL_NAMES

MAX_SCORE: Final = 10**9


def _check_tool(name: str) -> str:
    if name not in (AUTO_TOOL, *TOOL_NAMES):
        raise ValueError(f"unknown tool {name!r}")
    return name


ToolName: TypeAlias = Annotated[
    str,
    AfterValidator(_check_tool),
    WithJsonSchema({"type": "string", "enum": [AUTO_TOOL, *TOOL_NAMES]}),
]
ScoreValue: TypeAlias = Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE, allow_inf_nan=False)]


class MetricSpec(StrictModel):
    """What a score needs to pass, on the tool's own scale; it replaces the tool's verdict."""

    threshold: ScoreValue | None = optional("Lowest score that passes.")
    max: ScoreValue | None = optional("Highest score that passes, where lower scores are better.")

    @model_validator(mode="after")
    def _check_one_bound(self) -> Self:
        if (self.threshold is None) is (self.max is None):
            raise ValueError("a metric needs either `threshold` or `max`")
        return self


class ExpectSpec(StrictModel):
    """Cases that must be in the results, so that missing ones do not go unnoticed."""

    cases: Count | list[Text] = Field(
        description="Lowest number of cases, or their ids; a case of the list that is missing is "
        "an error."
    )


class ResultsEntry(StrictModel):
    """Result files of one tool."""

    path: Text = Field(description="Path or glob.")
    tool: ToolName = optional(
        "The tool that wrote the files; `auto` detects it.", default=AUTO_TOOL
    )
    name: Text | None = optional(
        "Prefix of the names of metrics (`NAME/METRIC`), to distinguish several tools or suites. "
        "`{stem}` is the file's name without its ending, `{folder}` that of its folder."
    )
    gate_on: GateOn = optional(
        "Where a tool states verdicts on whole cases and on metrics: whether the `case` or the "
        "`metrics` fail the gate. The others are shown and compared.",
        default="case",
    )
    metrics: dict[str, MetricSpec] = optional(
        "Thresholds by metric. A score without a verdict never passes without one.", default={}
    )
    expect: ExpectSpec | None = optional("Cases that must be in the results.")


def make_results_sources(
    given: str | list[str | ResultsEntry], document: YamlDocument
) -> tuple[ResultsSource, ...]:
    """Convert the value of ``results:`` to sources with their places."""
    if isinstance(given, str):
        return (ResultsSource(path=given, place=document.place_of(("results",))),)
    return tuple(_make_source(each, document, index) for index, each in enumerate(given))


def _make_source(given: str | ResultsEntry, document: YamlDocument, index: int) -> ResultsSource:
    place = document.place_of(("results", index))
    if isinstance(given, str):
        return ResultsSource(path=given, place=place)
    expected = None if given.expect is None else given.expect.cases
    return ResultsSource(
        path=given.path,
        tool=given.tool,
        name=given.name or "",
        gate_on=given.gate_on,
        metrics={
            name: MetricThreshold(threshold=each.threshold, maximum=each.max)
            for name, each in given.metrics.items()
        },
        expected_count=expected if isinstance(expected, int) else None,
        expected_cases=tuple(dict.fromkeys(expected)) if isinstance(expected, list) else (),
        place=place,
    )


EXTENSION_PREFIX: Final = "x-"
CASE_NAME_FIELDS: Final = ("stem", "folder")


def _check_trace_format(name: str) -> str:
    if name not in FORMAT_NAMES:
        raise ValueError(f"unknown trace format {name!r}")
    return name


TraceFormat: TypeAlias = Annotated[
    str,
    AfterValidator(_check_trace_format),
    WithJsonSchema({"type": "string", "enum": list(FORMAT_NAMES)}),
]


class PassRateSpec(StrictModel):
    """The required pass rate, and the confidence in it."""

    min_pass_rate: Share = optional("Share of checks that must pass.", default=1.0)
    pass_rate_confidence: Confidence | None = optional(
        "Confidence, such as 0.95, that the pass rate of similar cases reaches `min_pass_rate`."
    )

    @model_validator(mode="after")
    def _check_confidence_is_provable(self) -> Self:
        if self.pass_rate_confidence is not None and not 0 < self.min_pass_rate < 1:
            raise ValueError(
                "`pass_rate_confidence` needs a `min_pass_rate` above 0 and below 1, because no "
                "number of cases shows that all cases would pass"
            )
        return self


class ThresholdSpec(PassRateSpec):
    """Thresholds for the checks of one evaluator.

    If `min_pass_rate` or `min_score` is set, these checks no longer count towards that threshold of
    the whole gate. Fields that are not set keep the values of the whole gate.
    """

    min_score: Share | None = optional("Mean score to reach.")
    on_error: OnError = optional("Whether an errored check fails the gate.", default="fail")
    on_skip: OnSkip = optional(
        "Whether a skipped check or a run without an eval case fails the gate.",
        default="allow",
    )
    on_empty: OnEmpty = optional(
        "Whether a required evaluator that evaluated no case fails the gate.", default="fail"
    )
    on_turn_mismatch: OnTurnMismatch = optional(
        "Whether missing or unexpected turns fail a check.", default="fail"
    )


class GateSpec(ThresholdSpec, json_schema_extra={"examples": [{"min_pass_rate": 0.9}]}):
    """Thresholds for the gate to pass."""

    on_missing: OnMissing = optional(
        "Whether an eval case without a recorded run fails the gate.", default="fail"
    )
    max_regression: Share | None = optional(
        "Allowed drop of an evaluator's mean score; default: any."
    )
    regression_confidence: AnyConfidence = optional(
        "Confidence of `regression_mode`.", default=0.95
    )
    regression_mode: RegressionMode = optional(
        "`detect` fails if the drop is significantly larger than `max_regression`; `prove` passes "
        "only if a larger drop is excluded.",
        default="detect",
    )
    fail_on_regression: list[RegressionOutcome] = optional(
        "Comparison outcomes that fail the gate.", default=["fail"]
    )
    on_loosened: OnLoosened = optional(
        "Whether a policy looser than the base commit's fails the gate; the base's value decides.",
        default="warn",
    )
    policy: PolicySource = optional(
        "Whose thresholds decide, those of the evaluated commit or of the base; the base's value "
        "decides.",
        default="head",
    )
    on_removed: OnRemoved = optional(
        "Whether a missing check that passed in the baseline fails the gate, is reported as "
        "worse, or is allowed if its eval case was removed.",
        default="warn",
    )
    evaluators: dict[str, ThresholdSpec] = optional("Thresholds by evaluator.", default={})


class CaseThresholdSpec(PassRateSpec):
    """Thresholds for whole cases, using the weighted mean score of each case's checks.

    Single checks then do not have to pass, unless `min_pass_rate` of the gate or of their evaluator
    requires it, or their entry sets `required: true`.
    """

    threshold: Share | None = optional(
        "Score that a case must reach; by default, the threshold of evaluators."
    )
    min_pass_rate: Share = optional("Share of cases that must pass, from 0 to 1.", default=1.0)


def list_replacing_limits(spec: type[ThresholdSpec]) -> tuple[str, ...]:
    """List the keys of limits that may replace ``min_pass_rate``, as they fail if all checks fail.

    These are the keys that are not set by default.
    """
    return tuple(
        key
        for key, field in spec.model_fields.items()
        if field.default is None and key not in PassRateSpec.model_fields
    )


class EvalFileGateSpec(GateSpec):
    """Thresholds for the gate to pass."""

    cases: CaseThresholdSpec | None = optional(
        "Thresholds of whole cases; single checks may then fail."
    )


def _allow_extension_keys(schema: dict[str, JsonValue]) -> None:
    schema["patternProperties"] = {f"^{EXTENSION_PREFIX}": {}}


def _check_case_name(name: str) -> str:
    unknown = [word for word in _PLACEHOLDER.findall(name) if word not in CASE_NAME_FIELDS]
    if unknown:
        known = " and ".join(f"{{{word}}}" for word in CASE_NAME_FIELDS)
        raise ValueError(f"unknown placeholder `{{{unknown[0]}}}`; there are {known}")
    return name


_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
CaseName: TypeAlias = Annotated[Text, AfterValidator(_check_case_name)]


AttributeValue: TypeAlias = str | StrictInt | StrictFloat | StrictBool
Selection: TypeAlias = Annotated[dict[Text, AttributeValue], Field(min_length=1)]


class TracesEntry(StrictModel):
    """Files of recorded runs, and the eval cases that they are runs of."""

    path: Text = Field(description="Path or glob.")
    case: CaseName | dict[str, Text] | None = optional(
        "Id of the eval case: `{stem}` is the file's name without its ending, `{folder}` that of "
        "its folder; or ids by file name. For recordings that do not hold what the user wrote, "
        "whose question is then that of the eval case."
    )
    where: Selection | None = optional(
        "Only traces in which each attribute has this value on a span, or on the resource of a "
        "span without the attribute; `*` and `?` stand for any text and any character."
    )

    @property
    def wanted(self) -> dict[str, str]:
        """The patterns of ``where``, with numbers and truth values as JSON writes them."""
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in (self.where or {}).items()
        }


class EvalConfig(StrictModel, json_schema_extra=_allow_extension_keys):
    """Evaluators and a gate for recorded agent runs; eval configs of agentevals work unchanged."""

    version: ConfigVersion = optional("Version of this format.", default=1)
    evaluators: list[JsonValue] = Field(
        default=[],
        min_length=1,
        description="Evaluators; optional with `checks` or `results`.",
        examples=[[{"name": "tool_trajectory_avg_score", "type": "builtin"}]],
    )
    checks: list[JsonValue] = Field(
        default=[],
        min_length=1,
        description="Checks; see agentci's docs/checks.md.",
        examples=[[{"max_latency": "5s"}, "no_secrets"]],
    )
    prices: Prices = optional(
        "US dollars per million tokens, by model, for `max_cost` and reports.",
        default={},
    )
    results: Text | list[Text | ResultsEntry] = optional(
        "Result files of other tools: paths, globs, or entries.", default=[]
    )
    defaults: dict[str, JsonValue] = optional("Defaults of evaluators' fields.", default={})
    traces: Text | list[Text | TracesEntry] = optional(
        "Recorded runs: paths, globs, or entries.",
        default=[],
    )
    group_by: GroupBy | None = optional("Whether a case is one trace or a whole conversation.")
    eval_set: Text | Annotated[list[Text], Field(min_length=1)] | None = optional(
        "Eval cases: paths or globs; see agentci's docs/eval-cases.md."
    )
    dataset: Text | None = optional("Rows as JSON Lines; see agentci's docs/graders.md.")
    trace_format: TraceFormat | None = optional("Format of the recorded runs; default: detected.")
    threshold: Share | None = optional("Default for built-in metrics.")
    trajectory_match_type: MatchType | None = optional("Default for built-in metrics.")
    judge_model: Text | None = optional("Judge model of built-in metrics.")
    judge: SharedJudgeSpec | None = optional("Judge model of evaluators.")
    gate: GateSpec = Field(default_factory=GateSpec)
    output_format: JsonValue = Field(
        default=None, description="Key of agentevals; has no effect.", deprecated=True
    )
    output: JsonValue = Field(
        default=None, description="Key of agentevals; has no effect.", deprecated=True
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_extension_keys(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {key: value for key, value in data.items() if not key.startswith(EXTENSION_PREFIX)}

    @property
    def globs(self) -> tuple[str, ...]:
        """The paths and globs of ``traces``, always as a tuple."""
        entries = [self.traces] if isinstance(self.traces, str) else self.traces
        return tuple(each if isinstance(each, str) else each.path for each in entries)

    @property
    def eval_sets(self) -> tuple[str, ...]:
        """The paths and globs of ``eval_set``, always as a tuple."""
        return (self.eval_set,) if isinstance(self.eval_set, str) else tuple(self.eval_set or ())

    @property
    def run_sources(self) -> tuple[RunSource, ...]:
        """The entries of ``traces``."""
        entries = [self.traces] if isinstance(self.traces, str) else self.traces
        return tuple(
            RunSource(path=each)
            if isinstance(each, str)
            else RunSource(path=each.path, case=each.case, where=each.wanted)
            for each in entries
        )
