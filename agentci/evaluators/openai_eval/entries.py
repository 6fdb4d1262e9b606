"""Entries of ``type: openai_eval``, with graders as the Evals API defines them."""

import ast
import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, model_validator

from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.text.templates import list_template_paths
from agentci.evaluators.fields import (
    Count,
    Entry,
    RepeatableEntry,
    Seconds,
    Share,
    StrictModel,
    Text,
    VariableName,
    optional,
)
from agentci.evaluators.grader_protocol import ITEM, SAMPLE, SAMPLE_FIELDS
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.openai_eval.graders import parse_formula

MAX_SOURCE_BYTES: Final = 256 * 1024  # OpenAI's limit

# The start of a placeholder in a template.
_PLACEHOLDER_START: Final = re.compile(r"\{\{\s*(?:item|sample)\b")


def _check_template(template: str) -> str:
    """Reject a template with placeholders that can never be filled.

    The fields of `item` depend on the dataset and are not checked.

    Raises:
        ValueError: names the placeholder and suggests another.
    """
    places = list_template_paths(template)
    for namespace, steps in places:
        if namespace not in (ITEM, SAMPLE):
            raise ValueError(
                f"unknown placeholder {quote_name(namespace)} in the template; write"
                f" `{ITEM}.{namespace}`, or `{SAMPLE}.FIELD` for the agent's output"
            )
        if namespace == SAMPLE and steps and steps[0] not in SAMPLE_FIELDS:
            hint = (
                suggest_name(f"{steps[0]}", SAMPLE_FIELDS)
                or f"its fields are {', '.join(SAMPLE_FIELDS)}"
            )
            field = quote_name(f"{steps[0]}")
            raise ValueError(f"unknown field {field} of `{SAMPLE}` in the template; {hint}")
    if len(_PLACEHOLDER_START.findall(template)) > len(places):
        raise ValueError(
            "unsupported placeholder in the template; only `{{ item.name }}` is supported, without"
            " expressions"
        )
    return template


def _check_formula(formula: str) -> str:
    parse_formula(formula)
    return formula


def _check_python(source: str) -> str:
    if len(source.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        raise ValueError(f"the source is larger than {MAX_SOURCE_BYTES:,} bytes")
    try:
        with warnings.catch_warnings(action="ignore"):  # the author's own tools report them
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else f"{error}"
        raise ValueError(f"invalid Python source: {what}") from None
    return source


TemplateText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_template)]
FormulaText: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_formula)]
PythonSource: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_python)]
FiniteFloat: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


ACTUAL_TEMPLATE: Final = "{{ item.actual_response }}"
EXPECTED_TEMPLATE: Final = "{{ item.expected_response }}"

SimilarityMetricName: TypeAlias = Literal[
    "fuzzy_match",
    "bleu",
    "gleu",
    "meteor",
    "cosine",
    "cosine_tf",
    "rouge_1",
    "rouge_2",
    "rouge_3",
    "rouge_4",
    "rouge_5",
    "rouge_l",
]


class GraderSpec(StrictModel):
    """Fields shared by all graders."""

    type: str
    name: Text | None = optional("Name; required in a list.")


class ScoredGraderSpec(GraderSpec):
    """A grader whose scores are compared with a threshold."""

    pass_threshold: Share | None = optional(
        "Minimum score of a turn; default: the entry's `threshold`."
    )

    @property
    def own_threshold(self) -> float | None:
        """The grader's own threshold from 0 to 1; None if the entry sets the threshold."""
        return self.pass_threshold


class TextSimilaritySpec(ScoredGraderSpec):
    """How similar two texts are."""

    type: Literal["text_similarity"] = Field(description="Similarity of two texts.")
    evaluation_metric: SimilarityMetricName = Field(description="The similarity metric.")
    input: TemplateText = optional("Template of the evaluated text.", default=ACTUAL_TEMPLATE)
    reference: TemplateText = optional(
        "Template of the text to compare with.", default=EXPECTED_TEMPLATE
    )


class StringCheckSpec(GraderSpec):
    """Whether a text equals or contains another."""

    type: Literal["string_check"] = Field(description="Whether a text equals or contains another.")
    operation: Literal["eq", "ne", "like", "ilike"] = Field(
        description="Equal; not equal; the input contains the reference; the same, ignoring case."
    )
    input: TemplateText = optional("Template of the evaluated text.", default=ACTUAL_TEMPLATE)
    reference: TemplateText = optional(
        "Template of the text to compare with.", default=EXPECTED_TEMPLATE
    )


class PythonGraderSpec(ScoredGraderSpec):
    """A Python function that returns a score."""

    type: Literal["python"] = Field(description="A Python function that returns a score.")
    source: PythonSource = Field(
        description="Source of `grade(sample, item)`, which returns 0 to 1."
    )
    image_tag: Text | None = optional("Ignored.")


class TextPart(StrictModel):
    """A part of a message; only text is supported."""

    type: Literal["input_text", "output_text"] = Field(description="Text.")
    text: TemplateText = Field(description="Template of the text.")


class GraderMessage(StrictModel):
    """A message to the judge model."""

    type: Literal["message"] = optional("A message.", default="message")
    role: Literal["user", "assistant", "system", "developer"] = Field(description="Its role.")
    content: TemplateText | TextPart | list[TextPart] = Field(description="Template of its text.")

    @property
    def text(self) -> str:
        """The text of all parts."""
        match self.content:
            case str():
                return self.content
            case TextPart():
                return self.content.text
            case parts:
                return "\n".join(each.text for each in parts)


GraderMessages: TypeAlias = Annotated[list[GraderMessage], Field(min_length=1)]


class SamplingParams(StrictModel):
    """Sampling parameters of the judge model."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = optional(
        "Sampling temperature; not sent by default."
    )
    reasoning_effort: Text | None = optional("Reasoning effort.")
    max_completions_tokens: Count | None = optional("Token limit of one response, with reasoning.")
    seed: JsonValue = optional("Ignored: it does not make responses repeatable.")
    top_p: JsonValue = optional("Ignored.")


class ModelGraderSpec(GraderSpec):
    """Fields shared by graders that use a model."""

    model: Text | None = optional("Judge model; default: that of `judge`.")
    input: GraderMessages = Field(description="Messages with instructions and placeholders.")

    @model_validator(mode="after")
    def _check_placeholders(self) -> Self:
        if not any(list_template_paths(each.text) for each in self.input):
            raise ValueError(
                "no message has a placeholder for the content to grade; add"
                " `{{ item.actual_response }}` to one"
            )
        return self


class LabelModelSpec(ModelGraderSpec):
    """A model that gives each response one of several labels."""

    type: Literal["label_model"] = Field(description="A model that gives a label.")
    labels: Annotated[list[Text], Field(min_length=1)] = Field(description="The labels.")
    passing_labels: Annotated[list[Text], Field(min_length=1)] = Field(
        description="The labels that pass."
    )

    @model_validator(mode="after")
    def _check_passing_labels(self) -> Self:
        for label in self.passing_labels:
            if label not in self.labels:
                raise ValueError(f"the passing label {quote_name(label)} is not in `labels`")
        return self


class ScoreModelSpec(ModelGraderSpec, ScoredGraderSpec):
    """A model that gives each response a number."""

    type: Literal["score_model"] = Field(description="A model that gives a number.")
    range: Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)] = optional(
        "Range of numbers; scores are scaled to 0-1.", default=[0, 1]
    )
    pass_threshold: FiniteFloat | None = optional(
        "Minimum number, within `range`; default: the entry's `threshold`, scaled."
    )
    sampling_params: SamplingParams | None = optional("Sampling parameters.")

    @property
    def own_threshold(self) -> float | None:
        """See ``ScoredGraderSpec``."""
        return None if self.pass_threshold is None else self.share(self.pass_threshold)

    def share(self, value: float) -> float:
        """Convert a number in the range to a score from 0 to 1."""
        low, high = self.range
        return (value - low) / (high - low)

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        low, high = self.range
        if low >= high:
            raise ValueError("`range` must be [lowest, highest]")
        if self.pass_threshold is not None and not low <= self.pass_threshold <= high:
            raise ValueError(f"`pass_threshold` is not within the range {low:g} to {high:g}")
        return self


DEFAULT_TIMEOUT_SECONDS: Final = 120


MemberSpec: TypeAlias = Annotated[
    TextSimilaritySpec | StringCheckSpec | LabelModelSpec | ScoreModelSpec | PythonGraderSpec,
    Field(discriminator="type"),
]


class MultiGraderSpec(ScoredGraderSpec):
    """A formula over the scores of other graders."""

    type: Literal["multi"] = Field(description="A formula over the scores of other graders.")
    graders: (
        Annotated[dict[str, MemberSpec], Field(min_length=1)]
        | Annotated[list[MemberSpec], Field(min_length=1)]
    ) = Field(description="Graders by name, or a list with a `name` each.")
    calculate_output: FormulaText = Field(
        description="Formula of numbers, names, `+-*/^`, `min` `max` `abs` `floor` `ceil` `exp` "
        "`sqrt` `log`."
    )

    @property
    def members(self) -> Mapping[str, MemberSpec]:
        """The graders by name, whether given as a mapping or a list."""
        if isinstance(self.graders, dict):
            return self.graders
        return {each.name or "": each for each in self.graders}

    @model_validator(mode="after")
    def _check_grader_names(self) -> Self:
        known = list(self.members)
        if "" in known or len(known) < len(self.graders):
            raise ValueError("every grader in a list needs a unique `name`")
        for name in sorted(parse_formula(self.calculate_output).names.difference(known)):
            hint = suggest_name(name, known) or f"the graders are {', '.join(known)}"
            raise ValueError(f"unknown grader {quote_name(name)} in the formula; {hint}")
        return self


AnyGraderSpec: TypeAlias = Annotated[
    TextSimilaritySpec
    | StringCheckSpec
    | LabelModelSpec
    | ScoreModelSpec
    | PythonGraderSpec
    | MultiGraderSpec,
    Field(discriminator="type"),
]


class OpenAIEvalEntry(RepeatableEntry, Entry):
    """A grader of OpenAI's Evals API that grades every turn."""

    type: Literal["openai_eval"] = Field(description="A grader of OpenAI's Evals API.")
    grader: AnyGraderSpec = Field(
        examples=[{"type": "text_similarity", "evaluation_metric": "rouge_l"}],
        description="The grader.",
    )
    threshold: Share | None = optional(
        "Minimum score of every turn; default: the grader's `pass_threshold`, or 0.5."
    )
    timeout: Seconds = optional(
        "Seconds for a `python` call or a remote run.",
        default=DEFAULT_TIMEOUT_SECONDS,
    )
    cache: Annotated[
        bool,
        Field(
            description="Whether to cache responses of a `python` grader; see "
            "agentci's docs/response-cache.md."
        ),
    ] = False
    judge: JudgeSpec | None = optional("The judge model; default: the config's.")
    backend: Literal["local", "remote"] = optional(
        "Whether agentci grades, or a service.", default="local"
    )
    base_url: Text | None = Field(
        default=None,
        description="URL of the service, including `/openai/v1`.",
        examples=["https://RESOURCE.openai.azure.com/openai/v1"],
    )
    api_key_env: VariableName | None = Field(
        default=None, description="Variable with the service's API key."
    )

    @model_validator(mode="after")
    def _check_one_threshold(self) -> Self:
        own = self.grader.own_threshold if isinstance(self.grader, ScoredGraderSpec) else None
        if own is not None and self.threshold not in (None, own):
            raise ValueError("`threshold` and `pass_threshold` contradict; keep one of them")
        return self

    @model_validator(mode="after")
    def _check_backend(self) -> Self:
        if self.backend == "local" and (self.base_url or self.api_key_env):
            raise ValueError("`base_url` and `api_key_env` require `backend: remote`")
        if self.backend == "remote" and not self.base_url:
            raise ValueError("`backend: remote` requires `base_url`")
        return self
