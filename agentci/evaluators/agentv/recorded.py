"""Evaluators that judge what is recorded, without anything being run."""

from typing import Protocol

from msgspec import Struct

from agentci.evaluators.agentv.verdict import Finding, Standard, judgement_of
from agentci.evaluators.constant import settled
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.program import Wanted
from agentci.model.requests import Reply, Settled
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript


class Rule(Protocol):
    """How a recorded run is scored; a frozen value."""

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """Score ``transcript``, a run of ``sample``."""
        ...


class RuleJudge(Struct, frozen=True, kw_only=True):
    """An evaluator that goes by a rule."""

    identity: Identity
    rule: Rule
    standard: Standard

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """Nothing."""
        return ()

    def ask(self, case: Case) -> Settled:
        """Judge at once."""
        return Settled(judgement=judgement_of(self.rule.find(*recorded(case)), self.standard))

    def read(self, reply: Reply) -> Judgement:
        """What was settled."""
        return settled(reply)


def recorded(case: Case) -> tuple[Sample, Transcript]:
    """The sample of a case and its run, which every case of an eval file has when it is judged."""
    if case.sample is None or case.transcript is None:
        raise TypeError(f"{case.id} is no case of an eval file")
    return case.sample, case.transcript
