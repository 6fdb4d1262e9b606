"""How many rubrics the tool calls of each turn fulfil, as a model sees it."""

from typing import Final

from agentci.evaluators.metrics.judged import rubrics
from agentci.evaluators.metrics.judged.judged_metric import Matter, steps_of
from agentci.model.judging import Question

name: Final = "rubric_based_tool_use_quality_v1"
needs_golden: Final = False
rubric_type: Final = "TOOL_USE_QUALITY"
grade = rubrics.grade

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


def question(matter: Matter) -> Question:
    """Ask which rubrics the tool calls fulfil."""
    values = {"question": matter.turn.user_text, "steps": steps_of(matter.turn)}
    return rubrics.ask(INSTRUCTIONS, TEMPLATE, values, matter)
