"""Scores how many rubrics the tool calls of each turn fulfil."""

from typing import Final

from agentci.evaluators.metrics.judged import judged_metric
from agentci.evaluators.metrics.judged.judged_metric import JudgedTurn, format_steps
from agentci.model.judges import JudgePrompt

name: Final = "rubric_based_tool_use_quality_v1"
needs_expected: Final = False
rubric_type: Final = "TOOL_USE_QUALITY"
grade = judged_metric.grade_rubrics

INSTRUCTIONS: Final = """\
You judge how an AI agent used its tools, by properties that this is to have.
- Judge the calls that were made, their arguments, their order and what came back; not what the \
agent said.
- A property about the arguments of a call that was not made does not apply."""
TEMPLATE: Final = """\
What the user asked:
{{ question }}

The tools that the agent used:
{{ steps }}"""


def question(matter: JudgedTurn) -> JudgePrompt:
    """Ask which rubrics the tool calls fulfil."""
    values = {"question": matter.turn.user_text, "steps": format_steps(matter.turn)}
    return judged_metric.make_rubric_question(INSTRUCTIONS, TEMPLATE, values, matter)
