"""Entries of ``llm_judge``, ``llm-grader`` in AgentV 4."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from agentci.evaluators.agentv.agentv_evaluator import Surroundings, identity_of, standard_of
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.entries.code_judge_entry import DEFAULT_TIMEOUT_SECONDS
from agentci.evaluators.agentv.entries.judge_entry import wanted_panel
from agentci.evaluators.agentv.entries.rubrics_entry import Criteria, rubrics_of
from agentci.evaluators.agentv.entry_fields import JudgeEntry
from agentci.evaluators.agentv.free_text import FreeForm
from agentci.evaluators.agentv.judge_templates import Vocabulary
from agentci.evaluators.agentv.llm_judge import LlmJudge, with_criteria
from agentci.evaluators.agentv.prompt_program import PromptProgram
from agentci.evaluators.agentv.variables import CANDIDATE, VARIABLES
from agentci.evaluators.fields import Strict, Text
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.repeat import Repeated
from agentci.model.json import JsonObject
from agentci.model.problem import Problem
from agentci.model.requests import RunCommand

VOCABULARY: Final = Vocabulary(known=frozenset(VARIABLES), needed=CANDIDATE, around=with_criteria)


class PromptProgramSpec(Strict):
    """A program that reads a case as code judges do, and prints the prompt."""

    script: Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None, description="The program and its arguments; the last one is its file."
    )
    command: Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None, description="The same."
    )
    config: dict[str, JsonValue] | None = Field(
        default=None, description="What it is given under `config`."
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return tuple(self.script or self.command or ())

    @model_validator(mode="after")
    def _with_program(self) -> Self:
        if (self.script is None) == (self.command is None):
            raise ValueError("prompt needs its program, once: `script`, or `command`")
        return self


class LlmJudgeEntry(Repeated, JudgeEntry):
    """A language model that judges how well an answer does what it should."""

    type: Literal["llm_judge"] = Field(description="A language model that judges.")
    prompt: Text | PromptProgramSpec | None = Field(
        default=None,
        description="What it is asked, with `{{ candidate_answer }}` and other variables: text, "
        "a file of text, or a program that prints it.",
    )
    evaluator_template: Text | None = Field(
        default=None,
        alias="evaluatorTemplate",
        description="The same, where there is no `prompt`.",
    )
    rubrics: Criteria | None = Field(
        default=None, description="Criteria that are judged each by itself."
    )
    config: dict[str, JsonValue] | None = Field(
        default=None, description="What a program that prints the prompt is given under `config`."
    )
    model: JsonValue = Field(default=None, description="No effect: see `judge`.")
    judge: JudgeSpec | None = Field(
        default=None, description="Which model judges, where that is not the one of the file."
    )


def build_llm_judge(entry: LlmJudgeEntry, surroundings: Surroundings) -> LlmJudge:
    """Make the evaluator.

    Raises:
        InputError: nobody said who judges, or its template or its rubrics are not as they should
            be.
    """
    if entry.model is not None:
        _warn_of_model(surroundings)
    template, program = "", None
    if isinstance(entry.prompt, PromptProgramSpec):
        program = _program(entry, entry.prompt, surroundings)
    elif (given := entry.prompt or entry.evaluator_template) is not None:
        field = "prompt" if entry.prompt else "evaluatorTemplate"
        place = surroundings.place_of(field)
        template = surroundings.templates.read(given, place, VOCABULARY)
    return LlmJudge(
        identity=identity_of(entry, surroundings),
        standard=standard_of(entry, surroundings),
        wanted=wanted_panel(entry.name, entry.judge, surroundings),
        scale=FreeForm()
        if entry.rubrics is None
        else rubrics_of(entry.rubrics, surroundings.place_of("rubrics")),
        template=template,
        program=program,
    )


def _program(
    entry: LlmJudgeEntry, spec: PromptProgramSpec, surroundings: Surroundings
) -> PromptProgram:
    """The program, which runs in the folder of its file."""
    *words, named = spec.words
    path = surroundings.templates.files.path(named, surroundings.place_of("prompt"))
    folder, _, file = path.rpartition("/")
    given: JsonObject | None = entry.config if spec.config is None else spec.config
    return PromptProgram(
        judge=CodeJudge(
            identity=identity_of(entry, surroundings),
            run=RunCommand(
                command=(*words, f"./{file}"),
                folder=folder,
                home=surroundings.home,
                timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
            ),
            standard=standard_of(entry, surroundings),
            config=given,
            wire=surroundings.wire,
        )
    )


def _warn_of_model(surroundings: Surroundings) -> None:
    surroundings.templates.files.warn(
        Problem(
            message="`model` has no effect, as in AgentV",
            place=surroundings.place_of("model"),
            hint="write `judge: {model: ...}`",
            severity="warning",
        )
    )
