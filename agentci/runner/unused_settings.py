"""Find settings of a config and its eval cases that have no effect on the recorded runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from agentci._util.text.format import format_count
from agentci._util.text.patterns import matches_any, matches_name
from agentci._util.text.suggest import find_misspelled, find_nearest, quote_name, suggest_name
from agentci.config.discovery import is_case_file
from agentci.config.suite import Suite
from agentci.evaluators.evaluator import Evaluator, is_comparable
from agentci.model.case import Case, CaseSummary, EvalCase, EvalSet, Expectation
from agentci.model.trace import ToolCall
from agentci.model.values import Problem, replace

if TYPE_CHECKING:
    from agentci.evaluators.checks.check import CheckEvaluator
    from agentci.evaluators.trajectory.expectation import CallPattern

_WILDCARDS: Final = frozenset("*?")


def find_unused_patterns(
    suite: Suite, cases: Iterable[CaseSummary], eval_set: EvalSet | None
) -> Iterator[Problem]:
    """Warn about each of the ``cases`` of a check that names no case, if others name some.

    A check that is for no case at all fails the gate. An eval case without a run is reported as
    such.
    """
    narrowed = [each for each in suite.evaluators if getattr(each, "cases", ())]
    if not narrowed:
        return
    ids = {each for case in cases for each in (case.id, case.eval_case_id) if each}
    ids |= {case.id for case in eval_set.cases} if eval_set is not None else set()
    for evaluator in narrowed:
        patterns: tuple[str, ...] = getattr(evaluator, "cases", ())
        unused = [one for one in patterns if not any(matches_any((one,), each) for each in ids)]
        for one in unused if len(unused) < len(patterns) else ():
            name = evaluator.identity.name
            yield Problem(
                message=f"check {name}: no case has an id like {quote_name(one)}",
                place=evaluator.identity.place,
                hint=suggest_name(one, sorted(ids)) or "`agentci plan` lists the cases",
                severity="warning",
            )


def find_unread_answers(suite: Suite, eval_set: EvalSet | None) -> Iterator[Problem]:
    """Warn about the `answer:` of eval cases if no evaluator compares with any of them.

    Answers of ADK eval sets, which always have some, and of cases with a check of the answer's text
    are left out.
    """
    cases = () if eval_set is None else eval_set.cases
    unread: list[EvalCase] = []
    for case in cases:
        if not is_case_file(case.place.file) or not any(turn.answer_parts for turn in case.turns):
            continue
        if any(_reads_answers(each, case) for each in suite.evaluators):
            return
        if not _has_text_check(suite, case):
            unread.append(case)
    if unread:
        yield Problem(
            message="no evaluator compares the answers of "
            f"{format_count(len(unread), 'eval case')}",
            place=unread[0].place,
            hint="add `{name: response_match_score, type: builtin, threshold: 0.95, "
            "turn_score: min}` to `evaluators:` or `checks: [contains: TEXT]` to the eval cases; "
            "or remove `answer`",
            severity="warning",
        )


def _has_text_check(suite: Suite, case: EvalCase) -> bool:
    """Return whether the eval case has a check of its own that looks for a text in the answer."""
    if not case.own_checks:
        return False
    from agentci.evaluators.checks.texts import JsonAnswer, PresentTexts  # noqa: PLC0415 (few need it)

    own = (getattr(each, "by_case", {}).get(case.id) for each in suite.evaluators)
    return any(isinstance(each.compiled, JsonAnswer | PresentTexts) for each in own if each)


def _reads_answers(evaluator: Evaluator, case: EvalCase) -> bool:
    if not is_comparable(evaluator):
        return True
    turns = tuple(replace(turn, answer_parts=()) for turn in case.turns)
    without = Expectation(eval_case=replace(case, turns=turns))
    read = evaluator.read_expectation
    return read(Expectation(eval_case=case)) != read(without)


class CalledTools:
    """Collects the tools that recorded runs call.

    Attributes:
        are_known: whether all calls were recorded.
        arguments: names of the arguments by tool; None if those of a call were not recorded.
    """

    def __init__(self) -> None:
        self.are_known = True
        self.arguments: dict[str, set[str] | None] = {}

    @property
    def names(self) -> set[str]:
        """Names of the tools."""
        return {*self.arguments}

    def watch(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Pass on ``cases``, and collect their tools."""
        for case in cases:
            inner = (turn for run in case.trace.subagents for turn in run.turns)
            for turn in (*case.trace.turns, *inner):
                self.are_known &= turn.tool_calls_recorded
                for call in turn.tool_calls:
                    self._add_call(call)
            yield case

    def _add_call(self, call: ToolCall) -> None:
        known = self.arguments.setdefault(call.name, set())
        if call.args is None:
            self.arguments[call.name] = None
        elif known is not None:
            known |= {*call.named_args}


def find_unknown_tools(
    suite: Suite, called: CalledTools, eval_set: EvalSet | None
) -> Iterator[Problem]:
    """Find names of tools in checks that no run calls and no eval case expects.

    A warning if the name is probably misspelled, and a note if the check passes only because of it.
    """
    if not called.are_known:
        return
    cases = () if eval_set is None else eval_set.cases
    expected = {call.name for case in cases for turn in case.turns for call in turn.tool_calls}
    known = sorted(called.names | expected)
    for check in _list_checks(suite):
        named: Mapping[str, bool] = getattr(check.compiled, "named_tools", {})
        for pattern, passes_unnoticed in named.items():
            if any(matches_name(pattern, each) for each in known):
                continue
            meant = None if _WILDCARDS & {*pattern} else find_misspelled(pattern, known)
            if meant is not None or (passes_unnoticed and pattern.strip("*")):
                yield Problem(
                    message=f"check {check.identity.name}: no recorded run calls "
                    f"{quote_name(pattern)}",
                    place=check.identity.place,
                    hint=f"did you mean {quote_name(meant)}?"
                    if meant is not None
                    else suggest_name(pattern, known) or "check the name of the tool",
                    severity="note" if meant is None else "warning",
                )


def find_unknown_arguments(
    suite: Suite, called: CalledTools, eval_set: EvalSet | None
) -> Iterator[Problem]:
    """Find arguments of forbidden calls that no call has, if some call has one of a similar name.

    A warning if the name is probably misspelled, else a note: nothing is forbidden by it.
    """
    if not called.are_known:
        return
    expected: dict[str, set[str]] = {}
    cases = () if eval_set is None else eval_set.cases
    for call in (call for case in cases for turn in case.turns for call in turn.tool_calls):
        expected.setdefault(call.name, set()).update(call.named_args)
    for check in _list_checks(suite):
        patterns: tuple[CallPattern, ...] = getattr(check.compiled, "forbidden_calls", ())
        for tool, name in _list_compared_arguments(patterns, called.arguments):
            known = {*(called.arguments[tool] or ()), *expected.get(tool, ())}
            misspelled = None if name in known else find_misspelled(name, sorted(known))
            meant = misspelled or find_nearest(name, sorted(known))
            if name not in known and meant is not None:
                yield Problem(
                    message=f"check {check.identity.name}: no recorded call of {quote_name(tool)} "
                    f"has the argument {quote_name(name)}",
                    place=check.identity.place,
                    hint=f"did you mean {quote_name(meant)}?",
                    severity="note" if misspelled is None else "warning",
                )


def _list_compared_arguments(
    patterns: Iterable["CallPattern"], arguments: Mapping[str, set[str] | None]
) -> Iterator[tuple[str, str]]:
    """Yield each tool that patterns name and whose arguments are known, and a compared argument."""
    for pattern in patterns:
        for tool, known in arguments.items():
            rules = pattern.find_rules(tool) if pattern.names(tool) else None
            if rules is not None and known is not None:
                yield from ((tool, name) for name in rules.named)


def _list_checks(suite: Suite) -> Iterator["CheckEvaluator"]:
    """List the checks of a config and of its eval cases."""
    for each in suite.evaluators:
        by_case: Mapping[str, CheckEvaluator] | None = getattr(each, "by_case", None)
        if by_case is not None:
            yield from by_case.values()
        elif hasattr(each, "compiled"):
            yield cast("CheckEvaluator", each)
