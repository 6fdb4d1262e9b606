"""Scores whether the final response matches the expected one in meaning.

The scores are those of ``final_response_match_v2`` of Google's Agent Development Kit 2.13: 1 for a
turn that most samples find valid, else 0 (a tie is not valid), and their mean over turns. The
wording of the prompt is ours.
"""

from typing import Final

from agentci.evaluators.metrics.judged.judged_metric import JudgedTurn, JudgedTurnScore, final_text
from agentci.evaluators.prompts.questions import make_question
from agentci.model.judges import AggregateVerdict, JudgePrompt, ScoreSchema

name: Final = "final_response_match_v2"
needs_expected: Final = True
rubric_type: Final = ""

FORM: Final = ScoreSchema(kind="boolean", value_name="is_the_agent_response_valid")
INSTRUCTIONS: Final = """\
You judge whether the answer of an AI agent is valid, by a reference answer that is known to be \
right.
- Valid is an answer that says what the reference says. It may say more, in other words, in \
another order, and in another format, unless the user asked for one.
- Names, abbreviations and numbers may be written in any usual way (TX for Texas, 1000000 for \
1,000,000); a number may be rounded as is usual for its kind. Units have to be right.
- Trust the reference: do not compute anything anew, and do not judge by what you know yourself.
- An answer that claims not to know, or not to be able to, what the reference knows is not valid.
- A reference may name no more than the key facts; the answer has to have them."""
TEMPLATE: Final = """\
What the user asked:
{{ question }}

The agent's answer:
{{ answer }}

The reference answer:
{{ reference }}"""


def question(matter: JudgedTurn) -> JudgePrompt:
    """Ask whether the response is as good as the expected one."""
    golden = matter.golden or matter.turn
    values = {
        "question": golden.user_text,
        "answer": final_text(matter.turn),
        "reference": final_text(golden),
    }
    return make_question(INSTRUCTIONS, TEMPLATE, values, FORM)


def grade(ruling: AggregateVerdict, _: JudgedTurn) -> JudgedTurnScore:
    """Score 1 for a valid response, else 0."""
    if ruling.value is True:
        return JudgedTurnScore(score=1.0)
    return JudgedTurnScore(
        score=0.0, misses=(f"not valid: {ruling.representative_verdict.reason}",)
    )
