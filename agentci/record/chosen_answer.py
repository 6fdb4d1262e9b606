"""What the answer of a recorded case is, and the warnings about what its command printed."""

from msgspec import Struct

from agentci.record.printed_answer import (
    MAX_PRINTED_BYTES,
    AnswerSource,
    describe_changed_output,
    describe_other_answer,
    describe_printed_key,
    hide_answers,
    is_answer,
)
from agentci.record.recording_choice import RecordingChoice
from agentci.record.request_file import MAX_PRINTED
from agentci.record.write_spans import mark_lines, set_printed
from agentci.recordings.telemetry import semconv


class ChosenAnswer(Struct, frozen=True, kw_only=True):
    """The lines of a case, and what its answer is.

    Attributes:
        source: what it is; None for the model's, although that was not chosen.
        is_new: whether it is what the command prints without being chosen.
        missing: why there is no answer; empty if there is one.
        warnings, prints_more: as in ``RecordedCase``.
    """

    lines: tuple[str, ...]
    source: AnswerSource | None
    is_new: bool = False
    missing: str = ""
    warnings: tuple[str, ...] = ()
    prints_more: bool = False


def choose_answer(
    choice: RecordingChoice,
    printed: str | None,
    source: AnswerSource | None,
    *,
    before: str | None,
    has_case: bool,
    is_replay: bool,
) -> ChosenAnswer:
    """Note in the lines of a complete case what its command printed, and what is its answer.

    Args:
        printed: to stdout; None if it was not captured, or is too long.
        source: what the answer is, as the user chose; None by default.
        before: what the command printed when the replayed responses were recorded; None if that is
            not known.
        has_case: whether the command ran for a case.
    """
    other, missing, is_new = "", "", False
    answers, texts = choice.summary.answers, dict[str, str]()
    if source == "stdout":
        missing = _find_missing_answer(printed)
        if not missing and not is_answer(printed or "", answers):
            texts[semconv.PRINTED_ANSWER] = (printed or "").strip()
    elif source is None:
        other = describe_other_answer(printed or "", answers) or choice.other_answer
        is_answered = not other and is_answer(printed or "", answers)
        is_new = is_answered and has_case and not is_replay
        source = "stdout" if is_new else None
    if source != "model" and printed is not None and not missing:
        if not other and before is not None:
            other = describe_changed_output(printed, before, answers)
        hidden = hide_answers(printed, choice.summary.texts)
        # Of several conversations, it is not known which one printed what.
        if len(hidden) <= MAX_PRINTED and (has_case or len(answers) == 1):
            texts[semconv.PRINTED] = hidden
    key = describe_printed_key(printed or "")
    warnings = tuple(filter(None, (key, other, choice.other_arguments)))
    marks = {semconv.ANSWER_SOURCE: source or "", semconv.WARNINGS: "\n".join(warnings)}
    return ChosenAnswer(
        lines=mark_lines(
            choice.lines if missing else set_printed(choice.lines, texts),
            {name: text for name, text in marks.items() if text},
        ),
        source=source,
        is_new=is_new,
        missing=missing,
        warnings=warnings,
        prints_more=not is_replay
        and source is None
        and not other
        and bool((printed or "").strip()),
    )


def _find_missing_answer(printed: str | None) -> str:
    """Return why what a command printed is not its answer; empty if it is."""
    if printed is None:
        return f"the command printed more than {MAX_PRINTED_BYTES // 1024**2} MiB to stdout"
    return "" if printed.strip() else "the command printed nothing to stdout"
