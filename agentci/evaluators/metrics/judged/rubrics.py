"""How many of its rubrics a turn fulfils: what metrics of rubrics have in common.

The scores are those of ADK 2.13: each rubric is fulfilled or not, as most samples have it; the
score is the mean over all rubrics of all turns.
"""

from collections.abc import Mapping
from typing import Final

from agentci.evaluators.metrics.judged.judged_metric import Grade, Matter, require_all
from agentci.evaluators.prompts.prompts import pose
from agentci.model.judging import Checklist, Question
from agentci.model.rubric import Rubric
from agentci.model.ruling import Ruling

REPLY: Final = """\
For every property say true where it is fulfilled, or where its condition does not apply; false \
where it applies and is not fulfilled, or where that cannot be told for sure.

The properties:
"""


def ask(instructions: str, template: str, values: Mapping[str, str], matter: Matter) -> Question:
    """Ask which rubrics are fulfilled."""
    listed = "\n".join(f"- [{each.id}] {each.text}" for each in matter.rubrics)
    form = Checklist(names=tuple(each.id for each in matter.rubrics))
    return pose(f"{instructions}\n{REPLY}{listed}", template, dict(values), form)


def grade(ruling: Ruling, matter: Matter) -> Grade:
    """The share of rubrics that are fulfilled; each counts."""
    ids = [each.id for each in matter.rubrics]
    require_all(ruling, ids, "the rubric")
    missed = [each for each in matter.rubrics if ruling.values[each.id] is not True]
    return Grade(
        score=1 - len(missed) / len(ids),
        weight=len(ids),
        misses=tuple(f"[{each.id}] {each.text}: {_reason(each, ruling)}" for each in missed),
    )


def _reason(rubric: Rubric, ruling: Ruling) -> str:
    mark = ruling.spokesman.marks.get(rubric.id)
    return "not fulfilled" if mark is None or not mark.reason else mark.reason
