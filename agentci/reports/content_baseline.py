"""The content of a case beside that of the baseline, and how its results changed."""

from collections.abc import Mapping, Sequence
from typing import Literal

from agentci.model.result import (
    SCORED_STATUSES,
    BaselineCheck,
    BaselineTurn,
    CallContent,
    CaseState,
    CheckResult,
    ExpectedCall,
    RunContent,
    TurnContent,
)
from agentci.model.values import replace


def find_case_state(
    results: Sequence[CheckResult], baseline: Mapping[str, BaselineCheck]
) -> CaseState | None:
    """Return how the results of a case compare with the baseline; None if it has none of them.

    Args:
        results: of the case.
        baseline: by check id; empty without a baseline.
    """
    if not baseline:
        return None
    before = {each.id: baseline[each.id].status for each in results if each.id in baseline}
    failed = [each.id for each in results if each.status == "failed"]
    if any(each.status == "errored" for each in results):
        return "error"
    if failed:
        is_known = any(before.get(each) == "failed" for each in failed)
        has_new = any(before.get(each) in ("passed", "skipped") for each in failed)
        return "still_failing" if is_known and not has_new else "new_failure"
    if not before:
        return "new_case"
    is_fixed = any(status in ("failed", "errored") for status in before.values())
    return (
        "fixed" if is_fixed and any(each.status in SCORED_STATUSES for each in results) else "same"
    )


def find_answer_change(content: RunContent, before: RunContent) -> bool | None:
    """Return whether a final answer changed; None if that is not known."""
    if {content.level, before.level} & {"excerpt", "none"}:
        return None
    return _list_answers(content) != _list_answers(before)


def _list_answers(content: RunContent) -> list[tuple[str | None, int]]:
    return [(turn.answer, turn.cut.get("answer", 0)) for turn in content.turns if not turn.missing]


def add_baseline(content: RunContent, before: RunContent) -> RunContent:
    """Add the turns of the baseline, without results of tools.

    A turn that only the baseline has is added as missing.
    """
    own = [turn for turn in before.turns if not turn.missing]
    turns = [
        replace(turn, baseline=_compare_turn(turn, own[index])) if index < len(own) else turn
        for index, turn in enumerate(content.turns)
    ]
    turns += (
        TurnContent(user=turn.user, answer=None, missing=True, baseline=_make_baseline_turn(turn))
        for turn in own[len(turns) :]
    )
    return replace(content, turns=tuple(turns))


def _compare_turn(turn: TurnContent, before: TurnContent) -> BaselineTurn | Literal["same"]:
    now = _make_baseline_turn(turn)
    then = _make_baseline_turn(before)
    is_same = (now.answer, now.calls, now.cut) == (then.answer, then.calls, then.cut)
    return "same" if is_same and not turn.missing else then


def _make_baseline_turn(turn: TurnContent) -> BaselineTurn:
    shown = {
        name: count
        for name, count in turn.cut.items()
        if name == "answer" or (name.startswith("calls[") and name.endswith(".arguments"))
    }
    return BaselineTurn(
        answer=turn.answer,
        calls=tuple(ExpectedCall(name=call.name, arguments=call.arguments) for call in turn.calls),
        latency_ms=turn.latency_ms,
        tokens=turn.tokens,
        cut=shown,
    )


def restore_baseline(content: RunContent) -> RunContent:
    """Restore the baseline's turns from a content to which ``add_baseline`` added them.

    Turns that are the same lack their latency and tokens, which only the baseline's own report has.
    """
    turns = []
    for turn in content.turns:
        if turn.baseline is None:
            break  # the baseline lacks this turn and those after it
        before = turn.baseline
        if before == "same":
            before = replace(_make_baseline_turn(turn), latency_ms=None, tokens=None)
        turns.append(
            TurnContent(
                user=turn.user,
                answer=before.answer,
                calls=tuple(
                    CallContent(name=call.name, arguments=call.arguments) for call in before.calls
                ),
                latency_ms=before.latency_ms,
                tokens=before.tokens,
                cut=before.cut,
            )
        )
    return RunContent(turns=tuple(turns), level=content.level)
