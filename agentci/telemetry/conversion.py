"""From spans to what is judged: conversations of turns."""

from collections.abc import Sequence
from itertools import chain

from agentci.model.place import Place
from agentci.model.trace import Trace, Turn
from agentci.telemetry.anchors import Family, families, roots
from agentci.telemetry.drafts import Draft, draft
from agentci.telemetry.groups import Group, GroupBy, golden_id, groups_of
from agentci.telemetry.joining import joined
from agentci.telemetry.performance import performance
from agentci.telemetry.tree import SpanTree
from agentci.telemetry.uses import Use, calls_made, responses_given, uses_of
from agentci.telemetry.views import unread, views_of


def traces_of(
    trees: Sequence[SpanTree], *, group_by: GroupBy, multi_turn_goldens: bool
) -> tuple[Trace, ...]:
    """The recorded conversations, in first-seen order; those without any turn included.

    Args:
        group_by: what is judged as one: each trace, all traces that share a session or a
            conversation, or (``auto``) whichever the recordings and the goldens suggest.
        multi_turn_goldens: a golden case has several turns, which suggests conversations.
    """
    groups = groups_of(trees, group_by=group_by, multi_turn_goldens=multi_turn_goldens)
    return tuple(map(_trace, groups))


def _trace(group: Group) -> Trace:
    views = [views_of(tree) for tree in group.trees]
    found = [family for spans in views for family in families(spans)]
    drafts, undecided = joined([draft(family) for family in found if family.is_turn])
    used = [uses_of(turn.calls, turn.runs) for turn in drafts]
    uses = [tools for tools, _ in used]
    first = group.trees[0]
    said = (
        *(warning for tree in group.trees for warning in (*tree.warnings, *unread(tree))),
        *(_empty(family) for family in found if family.is_agentic and not family.is_turn),
        *undecided,
        *(warning for _, guesses in used for warning in guesses),
    )
    return Trace(
        id=first.id,
        key=group.key,
        turns=tuple(map(_turn, drafts, uses)),
        place=Place(file=first.file),
        golden_id=golden_id(group),
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
