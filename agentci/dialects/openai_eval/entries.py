"""Entries of ``type: openai_eval``, and the graders in them, as the Evals API writes these."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from agentci.dialects.fields import Entry, Seconds, Share, Strict, Text
from agentci.dialects.openai_eval.fields import FormulaText, Template
from agentci.dialects.openai_eval.formula import parse_formula
from agentci.text.names import did_you_mean, one_of, quoted

ACTUAL: Final = "{{ item.actual_response }}"
EXPECTED: Final = "{{ item.expected_response }}"
DEFAULT_TIMEOUT_SECONDS: Final = 120

MetricName: TypeAlias = Literal[
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


def _computed(metric: MetricName) -> MetricName:
    if metric == "cosine":
        raise ValueError(
            "cosine compares embeddings, which this version of agentci does not ask for; "
            "`cosine_tf` compares counts of words"
        )
    return metric


def _here(backend: str) -> str:
    if backend == "remote":
        raise ValueError(
            "this version of agentci asks no service to grade: without `backend` it does so itself"
        )
    return backend


class GraderSpec(Strict, defer_build=True):
    """What all graders share."""

    type: str
    name: Text | None = Field(
        default=None, description="Name of the grader, which formulas over a list need."
    )


class Threshold(GraderSpec):
    """A grader whose scores are held to a bar."""

    pass_threshold: Share | None = Field(
        default=None,
        description="Score that a turn has to reach; the entry's `threshold` by default.",
    )


class TextSimilarity(Threshold):
    """How alike two texts are."""

    type: Literal["text_similarity"] = Field(description="How alike two texts are.")
    evaluation_metric: Annotated[MetricName, AfterValidator(_computed)] = Field(
        description="What they are compared by."
    )
    input: Template = Field(default=ACTUAL, description="Template of the text that is judged.")
    reference: Template = Field(
        default=EXPECTED, description="Template of the text that it is compared with."
    )


class StringCheck(GraderSpec):
    """Whether a text is, or contains, another."""

    type: Literal["string_check"] = Field(description="Whether a text is, or contains, another.")
    operation: Literal["eq", "ne", "like", "ilike"] = Field(
        description="`eq` and `ne` compare, `like` looks for the reference in the input, `ilike` "
        "does so whatever the case."
    )
    input: Template = Field(default=ACTUAL, description="Template of the text that is judged.")
    reference: Template = Field(
        default=EXPECTED, description="Template of the text that it is compared with."
    )


Member: TypeAlias = Annotated[TextSimilarity | StringCheck, Field(discriminator="type")]


class Multi(Threshold):
    """A formula over the scores of other graders."""

    type: Literal["multi"] = Field(description="A formula over the scores of other graders.")
    graders: (
        Annotated[dict[str, Member], Field(min_length=1)]
        | Annotated[list[Member], Field(min_length=1)]
    ) = Field(
        description="The graders, by the names that the formula has for them; or a list of graders "
        "that have a `name`."
    )
    calculate_output: FormulaText = Field(
        description="The formula: numbers, names, `+ - * / ^`, `min` `max` `abs` `floor` `ceil` "
        "`exp` `sqrt` `log`."
    )

    @property
    def members(self) -> Mapping[str, Member]:
        """The graders by name, however they are written."""
        if isinstance(self.graders, dict):
            return self.graders
        return {each.name or "": each for each in self.graders}

    @model_validator(mode="after")
    def _of_its_graders(self) -> Self:
        known = list(self.members)
        if "" in known or len(known) < len(self.graders):
            raise ValueError("every grader of a list needs a `name` of its own")
        for name in sorted(parse_formula(self.calculate_output).names.difference(known)):
            hint = did_you_mean(name, known) or f"there is {one_of(known)}"
            raise ValueError(f"the formula names {quoted(name)}, which is no grader; {hint}")
        return self


GraderEntry: TypeAlias = Annotated[
    TextSimilarity | StringCheck | Multi, Field(discriminator="type")
]


class OpenAIEvalEntry(Entry, defer_build=True):
    """A grader of OpenAI's Evals API, which grades every turn here."""

    type: Literal["openai_eval"] = Field(description="A grader of OpenAI's Evals API.")
    grader: GraderEntry = Field(description="What grades every turn.")
    threshold: Share | None = Field(
        default=None,
        description="Score that every turn has to reach to pass; by default the grader's "
        "`pass_threshold`, or 0.5.",
    )
    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS,
        description="Seconds that a grader may take which is not computed by agentci itself.",
    )
    backend: Annotated[Literal["local", "remote"], AfterValidator(_here)] = Field(
        default="local", description="Where it is graded: `local`, by agentci itself."
    )

    @model_validator(mode="after")
    def _with_one_threshold(self) -> Self:
        own = self.grader.pass_threshold if isinstance(self.grader, Threshold) else None
        if None not in (own, self.threshold) and own != self.threshold:
            raise ValueError("threshold and pass_threshold say the same: keep one of them")
        return self
