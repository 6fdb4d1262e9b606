"""Summaries of cases for reports."""

import hashlib

from msgspec import Struct

from agentci._util.text import escape, json_text, truncate
from agentci.model.case import Case, CaseSummary, DialogueTurn
from agentci.model.problem import Place
from agentci.model.trace import Turn
from agentci.reports.run_content import ChunkWriter, encode_content, make_run_content

MAX_EXCERPT_CHARACTERS = 100
RUN_DIGITS = 16


def make_case_summary(case: Case, contents: ChunkWriter | None = None) -> CaseSummary:
    """Reduce ``case`` to its summary, which is stored after its evaluation.

    Args:
        contents: where its content is stored; None if only the summary is needed.
    """
    trace, expected = case.trace, case.expected
    return CaseSummary(
        id=case.id,
        trace_id=trace.id,
        group=_group(case),
        eval_case_id=None if expected is None else expected.id,
        unmatched_reason=case.unmatched_reason,
        missing_run_reason=case.missing_run_reason,
        not_captured=trace.not_captured,
        eval_case_place=_find_eval_case_place(case),
        recording=trace.place,
        dialogue=tuple(excerpt_turn(turn.user_text, turn.final_text) for turn in trace.turns),
        warnings=trace.warnings,
        performance=None
        if trace.performance is None
        else json_text.dumps_compact(trace.performance),
        run=_digest_run(case),
        content=None
        if contents is None
        else contents.append(encode_content(make_run_content(case))),
    )


def _find_eval_case_place(case: Case) -> Place | None:
    found = (case.expected, case.agentv_case, case.dataset_row)
    return next((each.place for each in found if each is not None), None)


class _RecordedTurns(Struct, frozen=True):
    turns: tuple[Turn, ...]


def _digest_run(case: Case) -> str:
    """Digest what was recorded of a run; the turns of a transcript repeat its case's question."""
    recorded = _RecordedTurns(case.trace.turns) if case.transcript is None else case.transcript
    text = json_text.dumps_compact(recorded)
    return hashlib.sha256(text.encode()).hexdigest()[:RUN_DIGITS]


def _group(case: Case) -> str:
    if case.expected is not None:
        return case.expected.id
    return (
        case.dataset_row.id if case.dataset_row is not None else case.trace.conversation or case.id
    )


def excerpt_turn(question: str, answer: str | None) -> DialogueTurn:
    """Shorten question and answer to one line each for display."""
    return DialogueTurn(
        question=excerpt(question), answer=None if answer is None else excerpt(answer)
    )


def excerpt(text: str) -> str:
    """Shorten a text to one line for display."""
    return truncate.short(escape.flatten_line(text), MAX_EXCERPT_CHARACTERS)
