"""Models of ``results:``, which names result files of other tools."""

from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from agentci.config.yaml_document import YamlDocument
from agentci.evaluators.fields import Count, StrictModel, Text, optional
from agentci.model.sources import GateOn, MetricThreshold, ResultsSource
from agentci.result_files.names import AUTO_TOOL, TOOL_NAMES

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
        "Put before the names of metrics, as `NAME/METRIC`, to tell several tools or suites apart. "
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
