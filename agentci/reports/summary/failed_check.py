"""One failed check in Markdown: what was wanted beside what was done."""

from collections.abc import Iterator

from agentci._util.text import truncate
from agentci._util.text.markdown import code, fence, folded, html, prose, row
from agentci.model.result import Result
from agentci.reports.check_text import low_turns, outcome
from agentci.reports.tool_calls import TurnCalls, unmatched

MAX_MISSES = 20
MAX_TURNS = 5
MAX_BYTES = 64 * 1024


def block(result: Result, *, unfolded: bool) -> str:
    """A part of the page that folds away, of at most ``MAX_BYTES``."""
    title = (
        f"<code>{html(result.case.id)}</code> \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
        f"<code>{html(result.evaluator.name)}</code>: {html(outcome(result))}"
    )
    whole = folded(title, "\n".join(_findings(result)), unfolded=unfolded)
    if len(whole.encode()) <= MAX_BYTES:
        return whole
    return folded(title, "Too much to be shown here: see `results.json`.", unfolded=unfolded)


def _findings(result: Result) -> Iterator[str]:
    recording = code(str(result.case.recording))
    yield f"Recording {recording}, config {code(str(result.evaluator.place))}\n"
    if result.judgement is None:
        return
    if misses := truncate.listed(result.judgement.misses, MAX_MISSES):
        yield "".join(f"- {prose(miss)}\n" for miss in misses)
    for turn in unmatched(result.judgement.details)[:MAX_TURNS]:
        yield _calls(turn)
    if turns := low_turns(result):
        yield "".join(f"- {prose(turn)}\n" for turn in turns)
    if result.judgement.reasoning:
        yield fence(result.judgement.reasoning)


def _calls(turn: TurnCalls) -> str:
    head = row([f"Turn {turn.number}", "Expected", "Actual"]) + row(["---"] * 3)
    rows = (
        row([each.mark, each.expected and code(each.expected), each.actual and code(each.actual)])
        for each in turn.rows
    )
    more = row([f"{turn.hidden:,} more", "", ""]) if turn.hidden else ""
    return f"{head}{''.join(rows)}{more}"
