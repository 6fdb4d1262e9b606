"""Summaries of cases for reports."""

from agentci._util.text import escape, json_text, truncate
from agentci.model.case import Case, CaseSummary, DialogueTurn

MAX_EXCERPT_CHARACTERS = 100


def make_case_summary(case: Case) -> CaseSummary:
    """Reduce ``case`` to what is kept after its evaluation."""
    trace, golden = case.trace, case.expected
    return CaseSummary(
        id=case.id,
        trace_id=trace.id,
        group=_group(case),
        eval_case_id=None if golden is None else golden.id,
        unmatched_reason=case.unmatched_reason,
        missing_run_reason=case.missing_run_reason,
        recording=trace.place,
        dialogue=tuple(excerpt_turn(turn.user_text, turn.final_text) for turn in trace.turns),
        warnings=trace.warnings,
        performance=None if trace.performance is None else json_text.dumps(trace.performance),
    )


def _group(case: Case) -> str:
    if case.expected is not None:
        return case.expected.id
    return (
        case.dataset_row.id if case.dataset_row is not None else case.trace.conversation or case.id
    )


def excerpt_turn(asked: str, answered: str | None) -> DialogueTurn:
    """Shorten both sides of a turn to one line each for display."""
    return DialogueTurn(
        question=_excerpt(asked), answer=None if answered is None else _excerpt(answered)
    )


def _excerpt(said: str) -> str:
    return truncate.short(escape.flatten_line(said), MAX_EXCERPT_CHARACTERS)
