"""Summaries of cases for reports."""

from agentci._util.text import escape, json_text, truncate
from agentci.model.case import Case, CaseSummary, DialogueTurn

MAX_EXCERPT_CHARACTERS = 100


def make_case_summary(case: Case) -> CaseSummary:
    """Reduce ``case`` to its summary, which is stored after its evaluation."""
    trace, expected = case.trace, case.expected
    return CaseSummary(
        id=case.id,
        trace_id=trace.id,
        group=_group(case),
        eval_case_id=None if expected is None else expected.id,
        unmatched_reason=case.unmatched_reason,
        missing_run_reason=case.missing_run_reason,
        not_captured=trace.not_captured,
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


def excerpt_turn(question: str, answer: str | None) -> DialogueTurn:
    """Shorten question and answer to one line each for display."""
    return DialogueTurn(
        question=_excerpt(question), answer=None if answer is None else _excerpt(answer)
    )


def _excerpt(text: str) -> str:
    return truncate.short(escape.flatten_line(text), MAX_EXCERPT_CHARACTERS)
