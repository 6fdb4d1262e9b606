"""Entries of ``type: openai_eval``, with graders as the Evals API defines them."""

import ast
import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, model_validator

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
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
)
from agentci.evaluators.grader_protocol import SAMPLE
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.openai_eval.formula import parse_formula
from agentci.evaluators.openai_eval.template_data import ITEM, SAMPLE_FIELDS

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
                f"the template names {quote_name(namespace)}: write `{ITEM}.{namespace}`, or"
                f" `{SAMPLE}.` and what the agent did"
            )
        if namespace == SAMPLE and steps and steps[0] not in SAMPLE_FIELDS:
            hint = (
                suggest_name(f"{steps[0]}", SAMPLE_FIELDS)
                or f"there is {join_with_or(SAMPLE_FIELDS)}"
            )
            raise ValueError(f"the template names {quote_name(f'{steps[0]}')} of {SAMPLE}; {hint}")
    if len(_PLACEHOLDER_START.findall(template)) > len(places):
        raise ValueError("a place of a template is written `{{ item.name }}`, and no more")
    return template


def _check_formula(formula: str) -> str:
    parse_formula(formula)
    return formula


def _check_python(source: str) -> str:
    if len(source.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        raise ValueError(f"the source has more than {MAX_SOURCE_BYTES:,} bytes")
    try:
        with warnings.catch_warnings(action="ignore"):  # the author's own tools report them
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else f"{error}"
        raise ValueError(f"the source is no Python: {what}") from None
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
    name: Text | None = Field(
        default=None, description="Name of the grader, which formulas over a list need."
    )


class ScoredGraderSpec(GraderSpec):
    """A grader whose scores are compared with a threshold."""

    pass_threshold: Share | None = Field(
        default=None,
        description="Score that a turn has to reach; the entry's `threshold` by default.",
    )

    @property
    def own_threshold(self) -> float | None:
        """The grader's own threshold from 0 to 1; None if the entry sets the threshold."""
        return self.pass_threshold


class TextSimilaritySpec(ScoredGraderSpec):
    """How similar two texts are."""

    type: Literal["text_similarity"] = Field(description="How alike two texts are.")
    evaluation_metric: SimilarityMetricName = Field(description="What they are compared by.")
    input: TemplateText = Field(
        default=ACTUAL_TEMPLATE, description="Template of the text that is judged."
    )
    reference: TemplateText = Field(
        default=EXPECTED_TEMPLATE, description="Template of the text that it is compared with."
    )


class StringCheckSpec(GraderSpec):
    """Whether a text equals or contains another."""

    type: Literal["string_check"] = Field(description="Whether a text is, or contains, another.")
    operation: Literal["eq", "ne", "like", "ilike"] = Field(
        description="`eq` and `ne` compare, `like` looks for the reference in the input, `ilike` "
        "does so whatever the case."
    )
    input: TemplateText = Field(
        default=ACTUAL_TEMPLATE, description="Template of the text that is judged."
    )
    reference: TemplateText = Field(
        default=EXPECTED_TEMPLATE, description="Template of the text that it is compared with."
    )


class PythonGraderSpec(ScoredGraderSpec):
    """A Python function that returns a score."""

    type: Literal["python"] = Field(description="A Python function that returns a score.")
    source: PythonSource = Field(
        description="Python that defines `grade(sample, item)`, which returns 0 to 1."
    )
    image_tag: Text | None = Field(
        default=None, description="Read by OpenAI; here the function has the Python of agentci."
    )


class TextPart(StrictModel):
    """A part of a message; only text is supported."""

    type: Literal["input_text", "output_text"] = Field(description="Text.")
    text: TemplateText = Field(description="Template of the text.")


class GraderMessage(StrictModel):
    """A message to the model that grades."""

    type: Literal["message"] = Field(default="message", description="A message.")
    role: Literal["user", "assistant", "system", "developer"] = Field(description="Whose it is.")
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
    """Sampling parameters of the model that grades."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = Field(
        default=None, description="Sent where it is set; many models take none."
    )
    reasoning_effort: Text | None = Field(
        default=None, description="How long a model that reasons may think."
    )
    max_completions_tokens: Count | None = Field(
        default=None, description="Tokens of one reply, thoughts included."
    )
    seed: JsonValue = Field(default=None, description="Not sent: replies are not repeatable by it.")
    top_p: JsonValue = Field(default=None, description="Not sent.")


class ModelGraderSpec(GraderSpec):
    """Fields shared by graders that use a model."""

    model: Text | None = Field(
        default=None,
        description="Model that grades, of the service that `judge` names, OpenAI's by default; "
        "without it that of `judge`.",
    )
    input: GraderMessages = Field(description="The messages that say what to grade, and how.")

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not any(list_template_paths(each.text) for each in self.input):
            raise ValueError(
                "no message names what is to be graded: write `{{ item.actual_response }}` in one"
            )
        return self


class LabelModelSpec(ModelGraderSpec):
    """A model that gives each response one of several labels."""

    type: Literal["label_model"] = Field(description="A model that gives a label.")
    labels: Annotated[list[Text], Field(min_length=1)] = Field(description="The labels.")
    passing_labels: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Those with which a turn passes."
    )

    @model_validator(mode="after")
    def _known_labels(self) -> Self:
        for label in self.passing_labels:
            if label not in self.labels:
                raise ValueError(f"the passing label {quote_name(label)} is none of the labels")
        return self


class ScoreModelSpec(ModelGraderSpec, ScoredGraderSpec):
    """A model that gives each response a number."""

    type: Literal["score_model"] = Field(description="A model that gives a number.")
    range: Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)] = Field(
        default=[0, 1], description="The least and the greatest number; scores are shares of that."
    )
    pass_threshold: FiniteFloat | None = Field(
        default=None,
        description="Number that a turn has to reach, within `range`; by default the entry's "
        "`threshold`, which is a share of it.",
    )
    sampling_params: SamplingParams | None = Field(
        default=None, description="How the model is asked."
    )

    @property
    def own_threshold(self) -> float | None:
        """See ``ScoredGraderSpec``."""
        return None if self.pass_threshold is None else self.share(self.pass_threshold)

    def share(self, value: float) -> float:
        """Convert a number in the range to a score from 0 to 1."""
        low, high = self.range
        return (value - low) / (high - low)

    @model_validator(mode="after")
    def _within_its_range(self) -> Self:
        low, high = self.range
        if low >= high:
            raise ValueError("range begins with its least number")
        if self.pass_threshold is not None and not low <= self.pass_threshold <= high:
            raise ValueError(f"pass_threshold is not within the range, {low:g} to {high:g}")
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
    ) = Field(
        description="The graders, by the names that the formula has for them; or a list of graders "
        "that have a `name`."
    )
    calculate_output: FormulaText = Field(
        description="The formula: numbers, names, `+ - * / ^`, `min` `max` `abs` `floor` `ceil` "
        "`exp` `sqrt` `log`."
    )

    @property
    def members(self) -> Mapping[str, MemberSpec]:
        """The graders by name, whether given as a mapping or a list."""
        if isinstance(self.graders, dict):
            return self.graders
        return {each.name or "": each for each in self.graders}

    @model_validator(mode="after")
    def _of_its_graders(self) -> Self:
        known = list(self.members)
        if "" in known or len(known) < len(self.graders):
            raise ValueError("every grader of a list needs a `name` of its own")
        for name in sorted(parse_formula(self.calculate_output).names.difference(known)):
            hint = suggest_name(name, known) or f"there is {join_with_or(known)}"
            raise ValueError(f"the formula names {quote_name(name)}, which is no grader; {hint}")
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
    grader: AnyGraderSpec = Field(description="What grades every turn.")
    threshold: Share | None = Field(
        default=None,
        description="Score that every turn has to reach to pass; by default the grader's "
        "`pass_threshold`, or 0.5.",
    )
    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS,
        description="Seconds after which a call of a `python` grader, or a remote run, is "
        "given up.",
    )
    cache: Annotated[
        bool,
        Field(
            description="For `python` graders: whether the response is reused while the source, "
            "the Python and the input are the same."
        ),
    ] = False
    judge: JudgeSpec | None = Field(
        default=None, description="Which model grades, where that is not the one of the config."
    )
    backend: Literal["local", "remote"] = Field(
        default="local",
        description="Where it is graded: `local`, by agentci itself, or `remote`, by a service of "
        "the Evals API.",
    )
    base_url: Text | None = Field(
        default=None,
        description="Address of the service for `backend: remote`, `/openai/v1` included.",
        examples=["https://RESOURCE.openai.azure.com/openai/v1"],
    )
    api_key_env: VariableName | None = Field(
        default=None,
        description="Name of the environment variable that holds the key of the service.",
    )

    @model_validator(mode="after")
    def _with_one_threshold(self) -> Self:
        own = self.grader.own_threshold if isinstance(self.grader, ScoredGraderSpec) else None
        if own is not None and self.threshold not in (None, own):
            raise ValueError("threshold and pass_threshold say the same: keep one of them")
        return self

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.backend == "local" and (self.base_url or self.api_key_env):
            raise ValueError("base_url and api_key_env are for `backend: remote`")
        if self.backend == "remote" and not self.base_url:
            raise ValueError("`backend: remote` needs a base_url")
        return self
