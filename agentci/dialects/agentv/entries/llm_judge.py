"""Entries of ``llm_judge``, ``llm-grader`` in AgentV 4."""

from typing import Literal

from pydantic import Field

from agentci.dialects.agentv.fields import JudgeEntry
from agentci.dialects.agentv.judge import Surroundings, identity_of, standard_of
from agentci.dialects.agentv.llm_judge import LlmJudge
from agentci.dialects.panels import JudgeSpec
from agentci.model.judging import WantedPanel


class LlmJudgeEntry(JudgeEntry):
    """A language model that judges how well an answer does what it should."""

    type: Literal["llm_judge"] = Field(description="A language model that judges.")
    judge: JudgeSpec | None = Field(
        default=None, description="Which model judges, where that is not the one of the file."
    )


def build_llm_judge(entry: LlmJudgeEntry, surroundings: Surroundings) -> LlmJudge:
    """Make the evaluator; raises InputError where nobody said who judges."""
    field = "judge" if entry.judge is not None else "type"
    place = surroundings.place_of(field)
    return LlmJudge(
        identity=identity_of(entry, surroundings),
        standard=standard_of(entry, surroundings),
        wanted=WantedPanel(
            panel=surroundings.judges.panel(entry.judge, place), name=entry.name, place=place
        ),
    )
