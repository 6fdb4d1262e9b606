"""``llm_judge`` (``llm-grader`` in AgentV 4): a judge model that grades a response."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci._util.text.templates import list_template_names
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv import findings
from agentci.evaluators.agentv.case_texts import iterate_prompt_segments
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.judge_templates import (
    TRUSTED_VARIABLES,
    TemplateSource,
    collect_untrusted_texts,
    make_template_values,
)
from agentci.evaluators.agentv.payload import NO_RUN
from agentci.evaluators.agentv.rubrics import Rubrics, summarize_votes
from agentci.evaluators.definition import Definition, Facts
from agentci.evaluators.program_output import decode_output, describe_exit
from agentci.evaluators.prompts import make_question, make_question_from_prompt
from agentci.model.case import Case, Expectation
from agentci.model.judges import AggregateVerdict, AskModel, JudgePrompt, RequiredJudge, ScoreSchema
from agentci.model.requests import (
    Compose,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunCommand,
    Task,
)
from agentci.model.values import JsonObject

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
    """Make a template with ``words`` in place of the case's criteria."""
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
