"""Scores how many rubrics the final response of each turn fulfils."""

from typing import Final

from agentci.evaluators.metrics.judged import judged_metric
from agentci.evaluators.metrics.judged.judged_metric import JudgedTurn, final_text, format_steps
from agentci.model.judges import JudgePrompt

name: Final = "rubric_based_final_response_quality_v1"
needs_expected: Final = False
rubric_type: Final = "FINAL_RESPONSE_QUALITY"
grade = judged_metric.grade_rubrics

INSTRUCTIONS: Final = """\
You judge the final answer of an AI agent by properties that it is to have.
- Evidence is what the user said, and what tools answered that were called rightly: the right \
tool, with arguments that the question calls for. What the agent itself says is no evidence, nor \
is the answer of a tool that was called wrongly.
- A claim of the answer is right only where the evidence shows it. Where evidence is missing \
because the agent did not call a tool that it should have called, the property is not fulfilled.
- Other words and usual ways to write numbers are as good, as long as the meaning is the same."""
TEMPLATE: Final = """\
What the user asked:
{{ question }}

What the agent did:
{{ steps }}

Its final answer:
{{ answer }}"""


def question(matter: JudgedTurn) -> JudgePrompt:
    """Ask which rubrics the response fulfils."""
    values = {
        "question": matter.turn.user_text,
        "steps": format_steps(matter.turn),
        "answer": final_text(matter.turn),
    }
    return judged_metric.make_rubric_question(INSTRUCTIONS, TEMPLATE, values, matter)
