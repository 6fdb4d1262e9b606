"""One score for an answer, with what is right and what is wrong in it."""

from typing import Final

from msgspec import Struct

from agentci.evaluators.agentv.verdict import Finding
from agentci.evaluators.vote_summary import votes_on
from agentci.model.json import JsonObject
from agentci.model.judging import Form
from agentci.model.ruling import Ruling

HITS, MISSES = "hits", "misses"
FORM: Final = Form(notes=(HITS, MISSES))
# As many as AgentV keeps.
MAX_NOTES: Final = 4


class FreeForm(Struct, frozen=True, kw_only=True):
    """How a model says what it thinks of an answer as a whole."""

    @property
    def form(self) -> Form:
        """Of the verdict."""
        return FORM

    @property
    def instructions(self) -> str:
        """What to say beside the score."""
        return "Be brief: name what is right (hits) and what is missing or wrong (misses)."

    def find(self, ruling: Ruling) -> Finding:
        """The score, and the reasons of whoever is nearest to it."""
        told = ruling.spokesman
        votes = votes_on(FORM.value_name, ruling)
        split: JsonObject = {} if votes is None else {"samples": votes}
        return Finding(
            score=float(ruling.value),
            hits=told.notes[HITS][:MAX_NOTES],
            misses=told.notes[MISSES][:MAX_NOTES],
            reasoning=told.reason or None,
            details={**told.details, **split},
        )
