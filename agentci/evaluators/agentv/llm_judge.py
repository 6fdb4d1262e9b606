"""``llm_judge`` (``llm-grader`` in AgentV 4) and ``rubrics``: a judge model grades a response."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Final, Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import BeforeValidator, Field, JsonValue, model_validator

from agentci._util.text.suggest import quote_name
from agentci._util.text.templates import list_template_names
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.agentv import agentv_evaluator, findings, judge_templates
from agentci.evaluators.agentv.code_judge import DEFAULT_TIMEOUT_SECONDS, CodeJudge
from agentci.evaluators.agentv.findings import iterate_prompt_segments
from agentci.evaluators.agentv.judge_templates import (
    MAX_GRADE,
    TRUSTED_VARIABLES,
    Criterion,
    GradeRange,
    Rubrics,
    TemplateSource,
    collect_untrusted_texts,
    make_template_values,
    summarize_votes,
)
from agentci.evaluators.agentv.payload import NO_RUN
from agentci.evaluators.evaluator import Definition, Facts, define_command
from agentci.evaluators.fields import (
    Cached,
    Name,
    RepeatableEntry,
    Share,
    StrictModel,
    Text,
    optional,
)
from agentci.evaluators.judge_config import JudgeSpec, define_judge
from agentci.evaluators.program_output import decode_output, describe_exit
from agentci.evaluators.prompts import make_question, make_question_from_prompt
from agentci.model.case import Case, Expectation
from agentci.model.judges import AggregateVerdict, AskModel, JudgePrompt, RequiredJudge, ScoreSchema
from agentci.model.requests import (
    FIXED_TIMEOUT,
    Compose,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunCommand,
    Task,
)
from agentci.model.values import JsonObject, Place, Problem

HITS, MISSES = "hits", "misses"
HOLISTIC_FORM: Final = ScoreSchema(notes=(HITS, MISSES))
# AgentV's limit.
MAX_NOTES: Final = 4


class HolisticScale(Struct, frozen=True, kw_only=True):
    """One score for the whole response, with hits and misses."""

    @property
    def form(self) -> ScoreSchema:
        """The schema of the verdict."""
        return HOLISTIC_FORM

    @property
    def instructions(self) -> str:
        """The judge model's instructions besides the score."""
        return "List briefly what is right (hits) and what is missing or wrong (misses)."

    def make_finding(self, aggregate: AggregateVerdict) -> findings.Finding:
        """Take the aggregate score, and the reasons of the verdict nearest to it."""
        nearest = aggregate.representative_verdict
        votes = summarize_votes(HOLISTIC_FORM.value_name, aggregate)
        split: JsonObject = {} if votes is None else {"samples": votes}
        return findings.Finding(
            score=float(aggregate.value),
            hits=nearest.notes[HITS][:MAX_NOTES],
            misses=nearest.notes[MISSES][:MAX_NOTES],
            reasoning=nearest.reason or None,
            details={**nearest.details, **split},
        )


class PromptProgram(Struct, frozen=True, kw_only=True):
    """A program that prints a prompt; ``code_judge`` defines how it is run and its input."""

    code_judge: CodeJudge

    def ask(self, case: Case) -> RunCommand:
        """Run the program on the case and its run."""
        return self.code_judge.ask(case)

    def read_prompt(self, response: Response) -> str:
        """Return the printed prompt.

        Raises:
            EvaluatorError: the program failed or printed nothing.
        """
        if not isinstance(response, ProgramOutput):
            raise TypeError(f"expected the output of a command, got {type(response).__name__}")
        subject = f"the prompt program of `{self.code_judge.identity.name}`"
        if response.exit_code != 0:
            ended = describe_exit(response, network=self.code_judge.run.network, in_image=False)
            raise EvaluatorError(f"{subject} {ended}")
        try:
            prompt = decode_output(response.stdout).strip()
        except EvaluatorError as error:
            raise EvaluatorError(f"{subject} printed an invalid prompt: {error}") from None
        if not prompt:
            raise EvaluatorError(f"{subject} printed no prompt")
        return prompt


JUDGE_TASK: Final = "You evaluate an AI agent's answer to a task."
CRITERIA_INSTRUCTIONS: Final = "Rate how well candidate_answer meets the criteria."
REFERENCE_INSTRUCTIONS: Final = (
    "If there is a reference_answer, it is an example of a good answer; an answer in other words"
    " can be as good. If it is a list of messages, the last message is the answer. Ignore length"
    " and formatting."
)
TEMPLATE_INSTRUCTIONS: Final = "Follow the instructions that are outside of the markers."
RUBRICS_SECTION: Final = "rubrics"
TOOL_CALLS_SECTION: Final = "tool_calls"
FILE_CHANGES_SECTION: Final = "file_changes"


def format_sections(*names: str) -> str:
    """Make a template with one section per variable."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{{{{ {name} }}}}" for name in names)


DEFAULT_TEMPLATE: Final = format_sections(
    "criteria", "question", "reference_answer", "candidate_answer"
)


def wrap_criteria(words: str) -> str:
    """Make a template with ``words`` instead of the case's criteria."""
    rest = format_sections("question", "reference_answer", "candidate_answer")
    return f"[[ ## criteria ## ]]\n{words}\n\n{rest}"


class LlmJudge(Struct, frozen=True, kw_only=True):
    """A judge model that grades one case at a time.

    Attributes:
        definition: see ``ComparableEvaluator``.
        scale: which verdict the model gives, and how it becomes a finding.
        template: the evaluator's own template; if empty, the case's template or the default one.
        program: a program that writes the prompt; replaces the template.
    """

    identity: EvaluatorIdentity
    definition: Definition
    threshold: findings.PassThreshold
    required_judge: RequiredJudge
    scale: HolisticScale | Rubrics
    template: str = ""
    program: PromptProgram | None = None

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """The judge model."""
        return (self.required_judge,)

    @property
    def needs_case_criteria(self) -> bool:
        """Whether the criteria can only come from the case."""
        return not self.template and self.program is None and self._rubrics is None

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return the template and its variables as far as the case has them.

        A program that writes the prompt gets the case as a code judge does.
        """
        agentv_case = findings.get_agentv_case(expectation)
        if self.program is not None:
            segments = [*iterate_prompt_segments(agentv_case)]
            return [self.program.code_judge.read_expectation(expectation), segments]
        own = self.template or agentv_case.judge_template
        source = TemplateSource(agentv_case=agentv_case, transcript=NO_RUN)
        return ["" if self.template else own, make_template_values(own or DEFAULT_TEMPLATE, source)]

    def ask(self, case: Case) -> AskModel | Compose:
        """Have the judge model grade the response of a case, once the prompt is written."""
        agentv_case, transcript = findings.get_recorded_run(case)
        source = TemplateSource(
            agentv_case=agentv_case, transcript=transcript, rubrics=self._rubrics
        )
        program = self.program
        if program is None:
            return self._request(
                self._make_template_question(self.template or agentv_case.judge_template, source)
            )

        def then(responses: tuple[Response, ...]) -> Task:
            question = self._make_written_question(program.read_prompt(responses[0]), source)
            return self._request(question)

        return Compose(parts=((self.identity.name, program.ask(case)),), then=then)

    def read(self, response: Response) -> Judgement:
        """Make a judgement from the model's verdict."""
        if not isinstance(response, AggregateVerdict):
            raise TypeError(f"expected a model's verdict, got {type(response).__name__}")
        return findings.make_agentv_judgement(self.scale.make_finding(response), self.threshold)

    @property
    def _rubrics(self) -> Rubrics | None:
        return self.scale if isinstance(self.scale, Rubrics) else None

    def _request(self, question: JudgePrompt) -> AskModel:
        return AskModel(prompt=question, judge=self.required_judge.judge)

    def _make_template_question(self, own: str, source: TemplateSource) -> JudgePrompt:
        template = own or DEFAULT_TEMPLATE
        present = list_template_names(template)
        added = [name for name in self._list_added(own, source) if name not in present]
        template = "\n\n".join((template, format_sections(*added))) if added else template
        return make_question(
            self._instructions(by_template=bool(own)),
            template,
            make_template_values(template, source),
            self.scale.form,
            trusted=TRUSTED_VARIABLES,
            leaves_unknown=True,
        )

    def _list_added(self, own: str, source: TemplateSource) -> Iterator[str]:
        """The variables that the template gets appended: of its own only the rubrics."""
        if not own and source.transcript.file_changes:
            yield FILE_CHANGES_SECTION
        if self._rubrics is not None:
            if not own and any(source.transcript.tool_uses):
                yield TOOL_CALLS_SECTION
            yield RUBRICS_SECTION

    def _make_written_question(self, prompt: str, source: TemplateSource) -> JudgePrompt:
        rubrics = self._rubrics
        rubrics_text = "" if rubrics is None else rubrics.text
        if rubrics_text:
            prompt = f"{prompt}\n\n[[ ## {RUBRICS_SECTION} ## ]]\n{rubrics_text}"
        return make_question_from_prompt(
            self._instructions(by_template=True),
            prompt,
            collect_untrusted_texts(source),
            self.scale.form,
            trusted=(source.agentv_case.criteria, rubrics_text),
        )

    def _instructions(self, *, by_template: bool) -> str:
        default_instructions = (
            (REFERENCE_INSTRUCTIONS,)
            if self._rubrics
            else (CRITERIA_INSTRUCTIONS, REFERENCE_INSTRUCTIONS)
        )
        how = (TEMPLATE_INSTRUCTIONS,) if by_template else default_instructions
        return " ".join((JUDGE_TASK, *how, self.scale.instructions))


CriterionGrade: TypeAlias = Annotated[int, Field(ge=0, le=MAX_GRADE)]
GradeBounds: TypeAlias = Annotated[list[CriterionGrade], Field(min_length=2, max_length=2)]


class RangeSpec(StrictModel):
    """The meaning of a range of grades."""

    score_range: GradeBounds = Field(description="The lowest and the highest grade.")
    outcome: Text = Field(description="The meaning of these grades.")


class CriterionSpec(StrictModel):
    """One criterion, met or not met; if one in the list has `score_ranges`, all are graded."""

    id: Name | None = optional("Unique id; by default `rubric-1`, `rubric-2` and so on.")
    outcome: Text | None = optional("What a good answer does.")
    criteria: Text | None = optional("Alias of `outcome`.")
    expected_outcome: Text | None = optional("Alias of `outcome` in older files.")
    description: Text | None = optional("Alias of `outcome` in the oldest files.")
    operator: JsonValue = optional("Ignored, as in most AgentV versions.")
    weight: agentv_evaluator.NonNegative = optional("Weight in the score.", default=1.0)
    required: bool | None = optional(
        "Whether the evaluator fails if the criterion is not met; by default `true`. "
        "For graded criteria the default is `false`, and `true` requires the highest grade."
    )
    min_score: Share | None = optional(
        "Share of the highest grade below which the evaluator fails."
    )
    required_min_score: CriterionGrade | None = optional(
        "The same threshold as a grade from 0 to 10, in older files."
    )
    score_ranges: list[RangeSpec] | dict[str, Text] | None = optional(
        "Meaning of the grades: a list of ranges that cover 0 to 10, or a mapping from "
        "the lowest grade of each range to its meaning."
    )

    @property
    def text(self) -> str:
        """The text of the criterion; empty if only its ranges describe it."""
        aliases = (self.outcome, self.criteria, self.expected_outcome, self.description)
        return next(filter(None, aliases), "")

    @property
    def min_share(self) -> float | None:
        """See ``Criterion``."""
        if self.min_score is not None or self.required_min_score is None:
            return self.min_score
        return self.required_min_score / MAX_GRADE

    @property
    def ranges(self) -> tuple[GradeRange, ...]:
        """See ``Criterion``."""
        return tuple(_parse_ranges(self.score_ranges or []))

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        if not self.text and not self.score_ranges:
            raise ValueError(
                "a criterion needs `outcome`, what a good answer does, or `score_ranges`"
            )
        ranges = self.ranges
        covered = [each.low for each in ranges[:1]] == [0] and ranges[-1].high == MAX_GRADE
        adjacent = all(one.high + 1 == other.low for one, other in pairwise(ranges))
        if self.score_ranges is not None and not (covered and adjacent):
            raise ValueError(f"`score_ranges` must cover 0 to {MAX_GRADE} without gaps or overlaps")
        return self


def _list_criteria(given: JsonValue) -> JsonValue:
    """Return a text as a list of one criterion; AgentV skips the evaluator."""
    return [given] if isinstance(given, str) else given


# A plain text is a criterion, too.
CriteriaList: TypeAlias = Annotated[
    list[Text | CriterionSpec], Field(min_length=1), BeforeValidator(_list_criteria)
]


class RubricsEntry(RepeatableEntry, agentv_evaluator.AgentvEntry):
    """A judge model that scores each of several criteria."""

    type: Literal["rubrics"] = Field(
        description="A language model that grades each of several criteria."
    )
    rubrics: CriteriaList | None = optional("The criteria.")
    criteria: CriteriaList | None = optional("Alias of `rubrics`.")
    judge: JudgeSpec | None = optional("The judge model; by default that of the file.")
    target: Text | None = optional("Name of the judge model in AgentV's list of targets.")

    @model_validator(mode="after")
    def _check_one_list(self) -> Self:
        if (self.rubrics is None) == (self.criteria is None):
            raise ValueError("set either `criteria` or `rubrics`, which are the same field")
        return self


def build_rubrics(entry: RubricsEntry, context: agentv_evaluator.AgentvContext) -> LlmJudge:
    """Make the evaluator.

    Raises:
        InputError: no judge model is configured, or two criteria have the same id.
    """
    field = "rubrics" if entry.criteria is None else "criteria"
    listed = entry.criteria or entry.rubrics or []
    judge = agentv_evaluator.make_required_judge(
        entry.name, entry.judge, context, target=entry.target
    )
    return LlmJudge(
        identity=agentv_evaluator.make_agentv_identity(entry, context),
        definition=agentv_evaluator.define_agentv_entry(
            entry, context, judge=define_judge(judge.judge)
        ),
        threshold=agentv_evaluator.make_pass_threshold(entry, context),
        required_judge=judge,
        scale=make_rubrics(listed, context.find_place(field)),
    )


def make_rubrics(listed: Sequence[str | CriterionSpec], place: Place) -> Rubrics:
    """Make rubrics of the criteria listed at ``place``.

    Raises:
        InputError: two criteria have the same id.
    """
    criteria = tuple(_make_criterion(each, index + 1) for index, each in enumerate(listed))
    [(most, times)] = Counter(each.id for each in criteria).most_common(1)
    if times > 1:
        hint = "ids must be unique"
        raise InputError.from_message(
            f"two criteria have the id {quote_name(most)}", place=place, hint=hint
        )
    return Rubrics(criteria=criteria)


def _make_criterion(given: str | CriterionSpec, number: int) -> Criterion:
    spec = CriterionSpec(outcome=given) if isinstance(given, str) else given
    return Criterion(
        id=spec.id or f"rubric-{number}",
        text=spec.text,
        weight=spec.weight,
        required=spec.required,
        min_share=spec.min_share,
        ranges=spec.ranges,
    )


def _parse_ranges(given: Sequence[RangeSpec] | dict[str, str]) -> Iterator[GradeRange]:
    """Yield the ranges in order; in a mapping, each ends where the next one begins."""
    if isinstance(given, dict):
        if not all(each.isdecimal() and len(each) <= len(str(MAX_GRADE)) for each in given):
            raise ValueError("the keys of `score_ranges` must be grades from 0 to 10")
        firsts = sorted((int(each), meaning) for each, meaning in given.items())
        ends = [first - 1 for first, _ in firsts[1:]] + [MAX_GRADE]
        for (first, meaning), last in zip(firsts, ends, strict=True):
            yield GradeRange(low=first, high=last, meaning=meaning)
        return
    for each in sorted(given, key=lambda spec: spec.score_range):
        low, high = each.score_range
        yield GradeRange(low=low, high=high, meaning=each.outcome)


LLM_JUDGE_VOCABULARY: Final = judge_templates.TemplateVocabulary(
    known=frozenset(judge_templates.TEMPLATE_VARIABLES),
    required=judge_templates.CANDIDATE_VARIABLES,
    wrap=wrap_criteria,
)


class PromptProgramSpec(StrictModel):
    """A program that reads a case as code judges do and prints the prompt."""

    script: Annotated[list[Text], Field(min_length=1)] | None = optional(
        "The program and its arguments; the last one is the file."
    )
    command: Annotated[list[Text], Field(min_length=1)] | None = optional("Alias of `script`.")
    config: dict[str, JsonValue] | None = optional("Value of `config` in its input.")
    cache: Cached = False

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return tuple(self.script or self.command or ())

    @model_validator(mode="after")
    def _check_one_command(self) -> Self:
        if (self.script is None) == (self.command is None):
            raise ValueError("set either `script` or `command`, which are the same field")
        return self


class LlmJudgeEntry(RepeatableEntry, agentv_evaluator.AgentvEntry):
    """A language model that grades how well a response meets its criteria."""

    type: Literal["llm_judge"] = Field(description="A language model that grades an answer.")
    prompt: Text | PromptProgramSpec | None = optional(
        "Prompt template with `{{ candidate_answer }}` and other variables: text, the "
        "path of a text file, or a program that prints the prompt."
    )
    evaluator_template: Text | None = Field(
        default=None,
        alias="evaluatorTemplate",
        description="Prompt template, used if there is no `prompt`.",
    )
    rubrics: CriteriaList | None = optional("Criteria that are graded one by one.")
    config: dict[str, JsonValue] | None = optional(
        "Value of `config` in the input of a prompt program."
    )
    model: JsonValue = optional("Ignored; use `judge`.")
    judge: JudgeSpec | None = optional("The judge model; by default that of the file.")
    target: Text | None = optional("Name of the judge model in AgentV's list of targets.")


def build_llm_judge(entry: LlmJudgeEntry, context: agentv_evaluator.AgentvContext) -> LlmJudge:
    """Make the evaluator.

    Raises:
        InputError: no judge model is configured, or the template or the rubrics are invalid.
    """
    if entry.model is not None:
        _warn_about_model(context)
    template, program = "", None
    if isinstance(entry.prompt, PromptProgramSpec):
        program = _build_prompt_program(entry, entry.prompt, context)
    elif (given := entry.prompt or entry.evaluator_template) is not None:
        field = "prompt" if entry.prompt else "evaluatorTemplate"
        place = context.find_place(field)
        template = context.templates.read(given, place, LLM_JUDGE_VOCABULARY)
    judge = agentv_evaluator.make_required_judge(
        entry.name, entry.judge, context, target=entry.target
    )
    return LlmJudge(
        identity=agentv_evaluator.make_agentv_identity(entry, context),
        definition=agentv_evaluator.define_agentv_entry(
            entry,
            context,
            prompt=template if program is None else _define_program(program),
            model=None,  # ignored
            judge=define_judge(judge.judge),
        ),
        threshold=agentv_evaluator.make_pass_threshold(entry, context),
        required_judge=judge,
        scale=HolisticScale()
        if entry.rubrics is None
        else make_rubrics(entry.rubrics, context.find_place("rubrics")),
        template=template,
        program=program,
    )


def _build_prompt_program(
    entry: LlmJudgeEntry, spec: PromptProgramSpec, context: agentv_evaluator.AgentvContext
) -> PromptProgram:
    """Make the program, which runs in the folder of its file."""
    *words, named = spec.words
    path = context.templates.files.path(named, context.find_place("prompt"))
    folder, _, file = path.rpartition("/")
    given: JsonObject | None = entry.config if spec.config is None else spec.config
    return PromptProgram(
        code_judge=CodeJudge(
            identity=agentv_evaluator.make_agentv_identity(entry, context),
            run=RunCommand(
                command=(*words, f"./{file}"),
                folder=folder,
                home=context.home,
                timeout_seconds=DEFAULT_TIMEOUT_SECONDS,
                timeout_hint=FIXED_TIMEOUT,
                cached=spec.cache,
            ),
            threshold=agentv_evaluator.make_pass_threshold(entry, context),
            config=given,
            wire=context.wire,
        )
    )


def _define_program(program: PromptProgram) -> Facts:
    run = program.code_judge.run
    command = define_command(run.command, folder=run.folder, home=run.home)
    return [command, program.code_judge.config, program.code_judge.wire]


def _warn_about_model(context: agentv_evaluator.AgentvContext) -> None:
    context.templates.files.warn(
        Problem(
            message="`model` has no effect, as in AgentV",
            place=context.find_place("model"),
            hint="write `judge: {model: ...}`",
            severity="warning",
        )
    )
