"""The evaluator of a check, what builds it, and what checks read of a recorded run.

A check at an eval case is one evaluator for each name, with a rule for each case.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from agentci._util.text import json_text
from agentci.errors import EvaluatorError, SkippedError
from agentci.evaluators.evaluator import (
    NO_TOOL_CALLS,
    Definition,
    Facts,
    covers_case,
    extract_judgement,
)
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.fields import TokenPriceSpec
from agentci.evaluators.trajectory.matchers import KeyPath
from agentci.model.case import Case, Expectation
from agentci.model.program import RequiredProgram
from agentci.model.requests import ConstantJudgement, EvaluatorIdentity, Judgement, Response, Skip
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import Json, JsonObject, Place, replace


class FindPlace(Protocol):
    """Finds the parts of a value in its file."""

    def __call__(self, path: KeyPath = (), *, key: bool = False) -> Place:
        """Return the place of the part at ``path``, or of its key."""


class CheckContext(Struct, frozen=True, kw_only=True):
    """The surroundings of one item of ``checks``.

    Attributes:
        name: of the check in reports.
        place: of the item.
        find_place: returns the place of a part of its value; with ``key=True`` that of its key.
        read: reads the file that the value names; raises InputError if it cannot be read.
        read_variable: returns the value of an environment variable, "" if it is not set; raises
            InputError if variables cannot be used.
        prices: of the config, by patterns of models.
    """

    name: str
    place: Place
    find_place: FindPlace
    read: Callable[[str], TextFile]
    read_variable: Callable[[str], str]
    prices: Mapping[str, TokenPriceSpec]


NO_ANSWER = "the run ended without an answer"


class Texts(Struct, frozen=True, kw_only=True):
    """Texts of a run.

    Attributes:
        places: where each text is from, for messages.
        missing: what the recording lacks; empty if these are all texts.
    """

    texts: tuple[str, ...]
    places: tuple[str, ...]
    missing: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over places and texts."""
        return zip(self.places, self.texts, strict=True)


def check_complete(texts: Texts, *, is_failed: bool) -> None:
    """Check that the texts are all that were made, unless the check fails by those that are known.

    Raises:
        EvaluatorError: the recording lacks some.
    """
    if not is_failed and texts.missing:
        raise EvaluatorError(texts.missing)


def list_turns(trace: Trace) -> tuple[Turn, ...]:
    """List the turns of the agent, then those of its sub-agents."""
    inner = (turn for run in trace.subagents for turn in run.turns)
    return (*trace.turns, *inner)


def list_tool_calls(trace: Trace) -> tuple[ToolCall, ...]:
    """List the tool calls of the agent and of its sub-agents."""
    return tuple(call for turn in list_turns(trace) for call in turn.tool_calls)


def collect_texts(case: Case, of: str) -> Texts:
    """Collect the texts that the option ``of`` names."""
    found: list[tuple[str, str]] = []
    missing: list[str] = []
    turns = case.trace.turns
    for number, turn in enumerate(turns, start=1):
        is_chosen = of in ("answers", "all") or (of == "answer" and number == len(turns))
        if is_chosen and turn.final_text is None:
            missing.append(f"turn {number} has no answer")
        elif is_chosen:
            found.append((f"answer of turn {number}", turn.final_text or ""))
    for turn in list_turns(case.trace):
        if of == "all":
            found += [("an intermediate answer", text) for text in turn.intermediate_texts]
        if of in ("arguments", "all"):
            found += _list_arguments(turn, missing)
        if of in ("results", "all"):
            found += _list_results(turn, missing)
    return Texts(
        texts=tuple(text for _, text in found),
        places=tuple(place for place, _ in found),
        missing="; ".join(dict.fromkeys(missing)),
    )


def _list_arguments(turn: Turn, missing: list[str]) -> Iterator[tuple[str, str]]:
    if not turn.tool_calls_recorded:
        missing.append(NO_TOOL_CALLS)
    for call in turn.tool_calls:
        if call.args is None:
            missing.append(f"the arguments of `{call.name}` were not recorded")
        else:
            yield from ((f"arguments of `{call.name}`", text) for text in list_strings(call.args))


def _list_results(turn: Turn, missing: list[str]) -> Iterator[tuple[str, str]]:
    if not turn.tool_calls_recorded:
        missing.append(NO_TOOL_CALLS)
    if len(turn.tool_responses) < len(turn.tool_calls):
        missing.append("not all results of tools were recorded")
    for response in turn.tool_responses:
        texts = list_strings(response.output)
        yield from ((f"result of `{response.name}`", text) for text in texts)


def list_strings(value: Json) -> Iterator[str]:
    """Yield each string in a value, and any other value as JSON."""
    if isinstance(value, str):
        yield value
        return
    yield json_text.dumps_readable(value)
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case Mapping() as members:
                waiting += members.values()
            case Sequence() as items:
                waiting += items
            case _:
                pass


class CheckFinding(Struct, frozen=True, kw_only=True):
    """What a rule found in a run.

    Attributes:
        score: 0 to 1.
        passes: whether the check passes at any score; None if the threshold decides.
        reason: why it fails at a score that reaches the threshold; else None.
        turn_scores: one per turn, for rules that score turns.
        hits, misses: what was right and what was wrong, one line each.
    """

    score: float
    passes: bool | None = None
    reason: str | None = None
    turn_scores: tuple[float, ...] = ()
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    details: JsonObject = field(default_factory=dict)


class CheckRule(Protocol):
    """What a check looks for: pure, and without expected answers."""

    def evaluate(self, case: Case) -> CheckFinding:
        """Evaluate a recorded run.

        Raises:
            EvaluatorError: the recording does not say what is needed to pass.
            SkippedError: it cannot say so, as it is a replay.
        """


class LimitedRule(CheckRule, Protocol):
    """A rule with limits; a larger limit is looser.

    Attributes:
        limits: numbers by name; a name that starts with ``min`` is a lower limit.
    """

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits by name."""


class CheckEvaluator(Struct, frozen=True, kw_only=True):
    """The evaluator of a check.

    Attributes:
        compiled: its rule; all that the config says of it is in ``entry``, and its limits.
        entry: the definition, without limits and threshold.
        cases: patterns of the ids of the only cases that it evaluates; empty for all.
    """

    identity: EvaluatorIdentity
    compiled: CheckRule
    entry: Definition
    cases: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """Nothing."""
        return ()

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``."""
        return {**self.entry, "threshold": self.identity.threshold, "limits": self.limits}

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits of the rule; empty if it has none."""
        found: Mapping[str, float] = getattr(self.compiled, "limits", {})
        return found

    def read_expectation(self, _: Expectation) -> Facts:
        """Read nothing of the expectation."""
        return None

    def ask(self, case: Case) -> ConstantJudgement | Skip:
        """Evaluate the run, which needs nothing else; skip it if it is not one of its cases.

        Raises:
            EvaluatorError: as ``CheckRule.evaluate``.
        """
        if not covers_case(self, case.id, None if case.expected is None else case.expected.id):
            patterns = ", ".join(f"`{each}`" for each in self.cases)
            return Skip(reason=f"no case has an id like {patterns}")
        try:
            found = self.compiled.evaluate(case)
        except SkippedError as error:
            return Skip(reason=str(error), expected=True)
        threshold = 1.0 if self.identity.threshold is None else self.identity.threshold
        return ConstantJudgement(
            judgement=Judgement(
                score=found.score,
                passed=found.score >= threshold if found.passes is None else found.passes,
                reason=found.reason,
                turn_scores=found.turn_scores,
                hits=found.hits,
                misses=found.misses,
                details=found.details,
            )
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)


def make_finding(
    *misses: str, hits: tuple[str, ...] = (), details: JsonObject | None = None
) -> CheckFinding:
    """Make the finding of a rule, which is met if there is no miss."""
    return CheckFinding(
        score=0.0 if misses else 1.0,
        hits=() if misses else hits,
        misses=misses,
        details=details or {},
    )


class CaseCheckEvaluator(Struct, frozen=True, kw_only=True):
    """The checks of one name of all eval cases that have one.

    Attributes:
        by_case: the check of each eval case, by its id.
    """

    identity: EvaluatorIdentity
    by_case: Mapping[str, CheckEvaluator]

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """Nothing."""
        return ()

    @property
    def definition(self) -> Definition:
        """See ``ComparableEvaluator``; what is checked belongs to the eval case."""
        return {"type": self.identity.type, "check": self.identity.name}

    def identify(self, eval_case_id: str | None) -> EvaluatorIdentity:
        """Return the identity at the line of the check of an eval case."""
        own = None if eval_case_id is None else self.by_case.get(eval_case_id)
        return self.identity if own is None else replace(self.identity, place=own.identity.place)

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the check of the eval case compares with."""
        eval_case = expectation.eval_case
        return None if eval_case is None else eval_case.own_checks.get(self.identity.name)

    def ask(self, case: Case) -> ConstantJudgement | Skip:
        """Evaluate the run with the check of its eval case; skip it if that has none.

        Raises:
            EvaluatorError: as ``CheckRule.evaluate``.
        """
        own = None if case.expected is None else self.by_case.get(case.expected.id)
        if own is None:
            reason = "the eval case has no such check"
            return Skip(reason=case.unmatched_reason or reason)
        return own.ask(case)

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)
