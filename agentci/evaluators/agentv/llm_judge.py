"""``llm_judge`` (``llm-grader`` in AgentV 4): a language model that judges an answer."""

from typing import Final

from msgspec import Struct

from agentci._util.text.templates import names_in
from agentci.evaluators.agentv.free_text import FreeForm
from agentci.evaluators.agentv.prompt_program import PromptProgram
from agentci.evaluators.agentv.recorded import recorded
from agentci.evaluators.agentv.rubrics import Rubrics
from agentci.evaluators.agentv.variables import TRUSTED, Matter, values_for, words_of_others
from agentci.evaluators.agentv.verdict import Standard, judgement_of
from agentci.evaluators.prompts.prompts import pose, pose_written
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, Question, WantedPanel
from agentci.model.requests import Compose, Need, Reply, Task
from agentci.model.ruling import Ruling

TASK: Final = "You judge what an AI agent answered to a task."
BY_CRITERIA: Final = "Say how well candidate_answer does what the criteria ask for."
BY_REFERENCE: Final = (
    "A reference_answer, where there is one, is a good answer: others may be as good in other"
    " words. Where it is a list of messages, the last of them is the answer. Length and formatting"
    " count for nothing."
)
BY_TEMPLATE: Final = "How to judge it is said outside of the markers."
RUBRICS: Final = "rubrics"
TOOL_CALLS: Final = "tool_calls"


def sections(*names: str) -> str:
    """A template with a section for each variable."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{{{{ {name} }}}}" for name in names)


TEMPLATE: Final = sections("criteria", "question", "reference_answer", "candidate_answer")


def with_criteria(words: str) -> str:
    """The template with ``words`` in the place of a case's criteria."""
    rest = sections("question", "reference_answer", "candidate_answer")
    return f"[[ ## criteria ## ]]\n{words}\n\n{rest}"


class LlmJudge(Struct, frozen=True, kw_only=True):
    """A model that judges one case at a time.

    Attributes:
        scale: what it is to say, and what that comes to.
        template: of its own; empty for that of the case, or ours.
        program: what writes its prompt, in the place of a template.
    """

    identity: Identity
    standard: Standard
    wanted: WantedPanel
    scale: FreeForm | Rubrics
    template: str = ""
    program: PromptProgram | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who judges."""
        return (self.wanted,)

    @property
    def is_told_by_cases(self) -> bool:
        """Whether a case alone says what it is to judge by."""
        return not self.template and self.program is None and self._rubrics is None

    def ask(self, case: Case) -> AskModel | Compose:
        """Have the model judge the answer of a case, once its prompt is written."""
        sample, transcript = recorded(case)
        matter = Matter(sample=sample, transcript=transcript, rubrics=self._rubrics)
        program = self.program
        if program is None:
            return self._request(self._filled(self.template or sample.judge_template, matter))

        def then(replies: tuple[Reply, ...]) -> Task:
            return self._request(self._written(program.prompt_in(replies[0]), matter))

        return Compose(parts=((self.identity.name, program.ask(case)),), then=then)

    def read(self, reply: Reply) -> Judgement:
        """Judge by what the model said."""
        if not isinstance(reply, Ruling):
            raise TypeError(f"a model was asked, and {type(reply).__name__} came")
        return judgement_of(self.scale.find(reply), self.standard)

    @property
    def _rubrics(self) -> Rubrics | None:
        return self.scale if isinstance(self.scale, Rubrics) else None

    def _request(self, question: Question) -> AskModel:
        return AskModel(question=question, panel=self.wanted.panel)

    def _filled(self, own: str, matter: Matter) -> Question:
        template = own or TEMPLATE
        if self._rubrics is not None:
            names = (RUBRICS,) if own or not any(matter.transcript.tool_uses) else _CONTEXT
            added = [name for name in names if name not in names_in(template)]
            template = "\n\n".join((template, sections(*added))) if added else template
        return pose(
            self._instructions(by_template=bool(own)),
            template,
            values_for(template, matter),
            self.scale.form,
            trusted=TRUSTED,
            leaves_unknown=True,
        )

    def _written(self, prompt: str, matter: Matter) -> Question:
        rubrics = self._rubrics
        told = "" if rubrics is None else rubrics.told
        if told:
            prompt = f"{prompt}\n\n[[ ## {RUBRICS} ## ]]\n{told}"
        return pose_written(
            self._instructions(by_template=True),
            prompt,
            words_of_others(matter),
            self.scale.form,
            trusted=(matter.sample.criteria, told),
        )

    def _instructions(self, *, by_template: bool) -> str:
        ours = (BY_REFERENCE,) if self._rubrics else (BY_CRITERIA, BY_REFERENCE)
        how = (BY_TEMPLATE,) if by_template else ours
        return " ".join((TASK, *how, self.scale.instructions))


# What criteria may be about beside the answer.
_CONTEXT: Final = (TOOL_CALLS, RUBRICS)
