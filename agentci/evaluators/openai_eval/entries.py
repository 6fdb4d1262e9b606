"""Entries of ``type: openai_eval``."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.evaluators.fields import Entry, Seconds, Share, Text, VariableName
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.openai_eval.formula import parse_formula
from agentci.evaluators.openai_eval.grader_fields import FormulaText
from agentci.evaluators.openai_eval.model_grader_specs import LabelModel, ScoreModel
from agentci.evaluators.openai_eval.specs import (
    GradedSpec,
    PythonFunction,
    StringCheck,
    TextSimilarity,
)
from agentci.evaluators.repeat import Repeated

DEFAULT_TIMEOUT_SECONDS: Final = 120


Member: TypeAlias = Annotated[
    TextSimilarity | StringCheck | LabelModel | ScoreModel | PythonFunction,
    Field(discriminator="type"),
]


class Multi(GradedSpec):
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


AnyGrader: TypeAlias = Annotated[
    TextSimilarity | StringCheck | LabelModel | ScoreModel | PythonFunction | Multi,
    Field(discriminator="type"),
]


class OpenAIEvalEntry(Repeated, Entry):
    """A grader of OpenAI's Evals API, which grades every turn here."""

    type: Literal["openai_eval"] = Field(description="A grader of OpenAI's Evals API.")
    grader: AnyGrader = Field(description="What grades every turn.")
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
        own = self.grader.own_threshold if isinstance(self.grader, GradedSpec) else None
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
