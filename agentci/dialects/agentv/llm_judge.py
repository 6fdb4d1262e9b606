"""``llm_judge`` (``llm-grader`` in AgentV 4): a language model that judges an answer."""

from dataclasses import dataclass
from typing import Final

from agentci.dialects.agentv.derived import (
    candidate_answer_of,
    question_of,
    reference_answer_of,
)
from agentci.dialects.agentv.recorded import recorded
from agentci.dialects.agentv.verdict import Finding, Standard, judgement_of
from agentci.model.case import Case
from agentci.model.exchange import Need, Reply
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, Form, WantedPanel
from agentci.model.ruling import Ruling
from agentci.questions.prompts import pose

FORM: Final = Form(notes=("hits", "misses"))
# As many as AgentV keeps.
MAX_NOTES: Final = 4

INSTRUCTIONS: Final = (
    "You judge the answer that an AI agent gave to a task. Say how well candidate_answer does what"
    " the criteria ask for. A reference_answer, where there is one, is a good answer: others may be"
    " as good in other words. Where it is a list of messages, the last of them is the answer."
    " Length and formatting count for nothing. Be brief: name what is right (hits) and what is"
    " missing or wrong (misses)."
)
TEMPLATE: Final = """[[ ## criteria ## ]]
{{ criteria }}

[[ ## question ## ]]
{{ question }}

[[ ## reference_answer ## ]]
{{ reference_answer }}

[[ ## candidate_answer ## ]]
{{ candidate_answer }}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmJudge:
    """A model that judges one case at a time."""

    identity: Identity
    standard: Standard
    wanted: WantedPanel

    @property
    def needs(self) -> tuple[Need, ...]:
        """Who judges."""
        return (self.wanted,)

    def ask(self, case: Case) -> AskModel:
        """Have the model judge the answer of a case."""
        sample, transcript = recorded(case)
        values = {
            "criteria": sample.criteria.strip(),
            "question": question_of(sample).strip(),
            "reference_answer": reference_answer_of(sample).strip(),
            "candidate_answer": candidate_answer_of(transcript).strip(),
        }
        return AskModel(
            question=pose(INSTRUCTIONS, TEMPLATE, values, FORM), panel=self.wanted.panel
        )

    def read(self, reply: Reply) -> Judgement:
        """Judge by what the model said."""
        if not isinstance(reply, Ruling):
            raise TypeError(f"a model was asked, and {type(reply).__name__} came")
        told = reply.spokesman
        finding = Finding(
            score=float(reply.value),
            hits=told.notes["hits"][:MAX_NOTES],
            misses=told.notes["misses"][:MAX_NOTES],
            reasoning=told.reason or None,
        )
        return judgement_of(finding, self.standard)
