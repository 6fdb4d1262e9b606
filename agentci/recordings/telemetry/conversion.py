"""From spans to what is judged: conversations of turns."""

from collections.abc import Sequence
from itertools import chain

from agentci.model.place import Place
from agentci.model.trace import Trace, Turn
from agentci.recordings.telemetry.continuations import joined
from agentci.recordings.telemetry.groups import Group, conversation_of, golden_id, trees_of
from agentci.recordings.telemetry.performance import performance
from agentci.recordings.telemetry.span_views import unread, views_of
from agentci.recordings.telemetry.stored_trace import Spool
from agentci.recordings.telemetry.tool_calls import Use, calls_made, responses_given, uses_of
from agentci.recordings.telemetry.turn_builder import Draft, draft
from agentci.recordings.telemetry.turn_roots import Family, families, roots


def trace_of(group: Group, spool: Spool) -> Trace:
    """The recorded conversation; it may be without any turn."""
    trees = trees_of(group.recorded, spool)
    views = [views_of(tree) for tree in trees]
    found = [family for spans in views for family in families(spans)]
    drafts, undecided = joined([draft(family) for family in found if family.is_turn])
    used = [uses_of(turn.calls, turn.runs) for turn in drafts]
    uses = [tools for tools, _ in used]
    first = trees[0]
    said = (
        *(warning for tree in trees for warning in (*tree.warnings, *unread(tree))),
        *(_empty(family) for family in found if family.is_agentic and not family.is_turn),
        *undecided,
        *(warning for _, guesses in used for warning in guesses),
    )
    return Trace(
        id=first.id,
        key=group.key,
        conversation=conversation_of(trees),
        turns=tuple(map(_turn, drafts, uses)),
        place=Place(file=first.file),
        golden_id=golden_id(trees),
        performance=performance(
            drafts,
            tuple(chain.from_iterable(uses)),
            [view.span.duration for spans in views for view in roots(spans)],
        ),
        warnings=tuple(sorted(set(said))),
    )


def _turn(drawn: Draft, uses: Sequence[Use]) -> Turn:
    answer = drawn.answer.text if drawn.answer is not None else None
    return Turn(
        id=drawn.id,
        user_text=drawn.asked or "",
        answer_parts=(answer,) if answer is not None else (),
        tool_calls=calls_made(uses),
        tool_responses=responses_given(uses),
        intermediate_texts=drawn.intermediate_texts,
        trace_id=drawn.trace_id,
        span_id=drawn.id,
    )


def _empty(family: Family) -> str:
    return f"agent span {family.anchor.span.id} has no inference, tools or messages; not a turn"
