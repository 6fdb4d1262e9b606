"""``composite``: one score out of those of other evaluators."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text.javascript import number, stringify
from agentci.evaluators.agentv.agentv_evaluator import Judge
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.free_text import FreeForm
from agentci.evaluators.agentv.verdict import PASS, Finding, Standard, judgement_of, verdict_of
from agentci.evaluators.constant import settled
from agentci.evaluators.prompts.prompts import pose
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, WantedPanel
from agentci.model.requests import Compose, Need, Reply, Settled, Task
from agentci.model.ruling import Ruling
from agentci.model.values import replace

RESULTS: Final = "EVALUATOR_RESULTS_JSON"
TASK: Final = "You sum up what several evaluators found in one answer of an AI agent."


def with_results(words: str) -> str:
    """A template with the results below ``words``."""
    return f"{words}\n\n{{{{ {RESULTS} }}}}"


TEMPLATE: Final = with_results(
    "Say how good the answer is on the whole, by the results of all evaluators:"
)


class WeightedAverage(Struct, frozen=True, kw_only=True):
    """The mean of the members' scores; a weight that is not given is 1."""

    weights: Mapping[str, float]


class PassRate(Struct, frozen=True, kw_only=True):
    """The share of members that pass."""

    threshold: float


class Program(Struct, frozen=True, kw_only=True):
    """A program that is given the members' results; ``judge`` says how it is run and read."""

    judge: CodeJudge


class Model(Struct, frozen=True, kw_only=True):
    """A language model that is given the members' results in the place of ``RESULTS``."""

    wanted: WantedPanel
    template: str = TEMPLATE


Aggregator: TypeAlias = WeightedAverage | PassRate | Program | Model


class Composite(Struct, frozen=True, kw_only=True):
    """The evaluator; a member that cannot judge leaves it without a judgement."""

    identity: Identity
    members: tuple[Judge, ...]
    aggregator: Aggregator
    standard: Standard

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the members need, and who sums them up."""
        own = (self.aggregator.wanted,) if isinstance(self.aggregator, Model) else ()
        return (*(each for member in self.members for each in member.needs), *own)

    def ask(self, case: Case) -> Compose:
        """Have all members judge, then put their scores together."""
        return Compose(
            parts=tuple((member.identity.name, member.ask(case)) for member in self.members),
            then=self._aggregate,
        )

    def read(self, reply: Reply) -> Judgement:
        """What came of it."""
        return settled(reply)

    def _aggregate(self, replies: tuple[Reply, ...]) -> Task:
        judged = {
            member.identity.name: member.read(reply)
            for member, reply in zip(self.members, replies, strict=True)
        }
        aggregator = self.aggregator
        if isinstance(aggregator, Program):
            return self._ask_program(aggregator.judge, judged)
        if isinstance(aggregator, Model):
            return self._ask_model(aggregator, judged)
        if isinstance(aggregator, PassRate):
            return self._settled(_counted(judged, aggregator.threshold), judged)
        return self._settled(_averaged(judged, aggregator.weights), judged)

    def _ask_program(self, judge: CodeJudge, judged: Mapping[str, Judgement]) -> Compose:
        request = judge.command_over(stringify({"results": _results(judged)}, indent=2))

        def read(replies: tuple[Reply, ...]) -> Task:
            return self._settled(judge.finding(replies[0]), judged)

        return Compose(parts=((self.identity.name, request),), then=read)

    def _ask_model(self, model: Model, judged: Mapping[str, Judgement]) -> Compose:
        scale = FreeForm()
        instructions = f"{TASK} {scale.instructions}"
        results = {RESULTS: stringify(_results(judged), indent=2)}
        question = pose(instructions, model.template, results, scale.form, leaves_unknown=True)
        request = AskModel(question=question, panel=model.wanted.panel)

        def read(replies: tuple[Reply, ...]) -> Task:
            if not isinstance(replies[0], Ruling):
                raise TypeError(f"a model was asked, and {type(replies[0]).__name__} came")
            return self._settled(scale.find(replies[0]), judged)

        return Compose(parts=((self.identity.name, request),), then=read)

    def _settled(self, finding: Finding, judged: Mapping[str, Judgement]) -> Settled:
        judgement = judgement_of(finding, self.standard)
        members: JsonObject = {name: _summary(each) for name, each in judged.items()}
        details = {**judgement.details, "members": members}
        return Settled(judgement=replace(judgement, details=details))


def _averaged(judged: Mapping[str, Judgement], weights: Mapping[str, float]) -> Finding:
    total = sum(weights.get(name, 1.0) for name in judged)
    weighted = sum(_score(each) * weights.get(name, 1.0) for name, each in judged.items())
    return Finding(
        score=weighted / total if total else 0.0,
        hits=_prefixed({name: each.hits for name, each in judged.items()}),
        misses=_prefixed({name: each.misses for name, each in judged.items()}),
        reasoning=_reasoning(judged),
    )


def _counted(judged: Mapping[str, Judgement], threshold: float) -> Finding:
    passed = sum(each.passed is True for each in judged.values())
    share = passed / len(judged)
    found = _averaged(judged, {})
    line = f"{passed}/{len(judged)} evaluators passed (threshold: {number(threshold)})"
    if share >= threshold:
        return replace(found, score=share, hits=(line, *found.hits))
    return replace(found, score=share, misses=(line, *found.misses))


def _score(judgement: Judgement) -> float:
    """The score, which every evaluator of an eval file gives."""
    return judgement.score or 0.0


def _prefixed(told: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(f"[{name}] {line}" for name, lines in told.items() for line in lines)


def _reasoning(judged: Mapping[str, Judgement]) -> str | None:
    told = [f"{name}: {each.reasoning}" for name, each in judged.items() if each.reasoning]
    return "; ".join(told) or None


def _results(judged: Mapping[str, Judgement]) -> JsonObject:
    return {name: _result(judgement) for name, judgement in judged.items()}


def _verdict(judgement: Judgement) -> str:
    """AgentV's word for a judgement; rubrics may fail with any score."""
    score = _score(judgement)
    return "fail" if score >= PASS and not judgement.passed else verdict_of(score)


def _result(judgement: Judgement) -> JsonObject:
    """What a program or a model is told of a member, in AgentV's camelCase."""
    told: dict[str, Json] = {
        "score": judgement.score,
        "verdict": _verdict(judgement),
        "hits": judgement.hits,
        "misses": judgement.misses,
        "expectedAspectCount": max(len(judgement.hits) + len(judgement.misses), 1),
        "reasoning": judgement.reasoning,
        "details": judgement.details or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _summary(judgement: Judgement) -> JsonObject:
    nested = judgement.details.get("members")
    told: JsonObject = {
        "score": judgement.score,
        "verdict": _verdict(judgement),
    }
    return told if nested is None else {**told, "members": nested}
