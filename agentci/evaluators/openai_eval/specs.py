"""Graders that compute, and those that call a function, as the Evals API writes them."""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from agentci.evaluators.fields import Share, Strict, Text
from agentci.evaluators.openai_eval.grader_fields import Source, Template

ACTUAL: Final = "{{ item.actual_response }}"
EXPECTED: Final = "{{ item.expected_response }}"

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


class GraderSpec(Strict):
    """What all graders share."""

    type: str
    name: Text | None = Field(
        default=None, description="Name of the grader, which formulas over a list need."
    )


class GradedSpec(GraderSpec):
    """A grader whose scores are held to a bar."""

    pass_threshold: Share | None = Field(
        default=None,
        description="Score that a turn has to reach; the entry's `threshold` by default.",
    )

    @property
    def own_threshold(self) -> float | None:
        """What has to be reached, of the share that can be; None where the entry says it."""
        return self.pass_threshold


class TextSimilarity(GradedSpec):
    """How alike two texts are."""

    type: Literal["text_similarity"] = Field(description="How alike two texts are.")
    evaluation_metric: MetricName = Field(description="What they are compared by.")
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


class PythonFunction(GradedSpec):
    """A Python function that returns a score."""

    type: Literal["python"] = Field(description="A Python function that returns a score.")
    source: Source = Field(
        description="Python that defines `grade(sample, item)`, which returns 0 to 1."
    )
    image_tag: Text | None = Field(
        default=None, description="Read by OpenAI; here the function has the Python of agentci."
    )
