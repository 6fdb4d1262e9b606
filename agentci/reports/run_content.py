"""The content of cases, for reports: what a recorded run holds and what is expected of it.

Also its summary, which results keep in memory, and a trace made of it again.
"""

import hashlib
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentci._util.text import escape, json_text, truncate
from agentci.evaluators.checks.names import CALLS_CHECK
from agentci.model.case import AgentvCase, Case, CaseSummary, DialogueTurn
from agentci.model.result import (
    BaselineResult,
    BaselineTurn,
    CallContent,
    ExpectedCall,
    RunContent,
    SubagentContent,
    TurnContent,
)
from agentci.model.trace import (
    EARLY_END,
    ModelStep,
    PriceList,
    RunSpan,
    SubagentRun,
    TokenTotals,
    TokenUsage,
    ToolCall,
    ToolResponse,
    Trace,
    Turn,
)
from agentci.model.values import Json, JsonObject, Place, replace
from agentci.recordings.prices import price_steps
from agentci.reports.find_run_changes import shows_failure
from agentci.reports.tool_calls import align


def find_answer_change(content: RunContent, before: RunContent) -> bool | None:
    """Return whether a final answer changed; None if that is not known."""
    if {content.level, before.level} & {"excerpt", "none"}:
        return None
    return _list_answers(content) != _list_answers(before)


def _list_answers(content: RunContent) -> list[tuple[str | None, int]]:
    return [(turn.answer, turn.cut.get("answer", 0)) for turn in content.turns if not turn.missing]


def has_failed(call: CallContent) -> bool:
    """Return whether a tool failed: by the recording, or by an error as its result."""
    return shows_failure(call.result, call.failed, call.error)


def mark_failed_calls(content: RunContent) -> RunContent:
    """Mark the tool calls that failed, before their results are left out."""
    inner = (turn for each in content.subagents for turn in each.turns)
    if not any(has_failed(call) for turn in (*content.turns, *inner) for call in turn.calls):
        return content
    subagents = tuple(
        replace(each, turns=tuple(map(_mark_failed_calls, each.turns)))
        for each in content.subagents
    )
    return replace(
        content, turns=tuple(map(_mark_failed_calls, content.turns)), subagents=subagents
    )


def _mark_failed_calls(turn: TurnContent) -> TurnContent:
    if not any(map(has_failed, turn.calls)):
        return turn
    calls = (replace(call, failed=True) if has_failed(call) else call for call in turn.calls)
    return replace(turn, calls=tuple(calls))


def add_baseline(content: RunContent, before: RunContent) -> RunContent:
    """Add the turns of the baseline, and of the results of its tools the start.

    A turn that only the baseline has is added as missing.
    """
    own = [turn for turn in before.turns if not turn.missing]
    turns = [
        _add_baseline_turn(turn, own[index]) if index < len(own) else turn
        for index, turn in enumerate(content.turns)
    ]
    turns += (
        _add_baseline_turn(TurnContent(user=turn.user, answer=None, missing=True), turn)
        for turn in own[len(turns) :]
    )
    if before.level != "full":
        turns = [replace(turn, baseline_results=()) for turn in turns]
    return replace(content, turns=tuple(turns))


def add_baseline_durations(content: RunContent, before: RunContent) -> RunContent:
    """Add the baseline's times and tokens to the spans that are the same step of the same turn.

    Steps that only the baseline has are added apart.
    """
    if not (before.spans and content.spans):
        return content
    old, steps = _list_steps(before), _list_steps(content)
    pairs = [pair for turn in steps for pair in _pair_steps(old[turn], steps[turn])]
    before_spans = {now.place: then.span for then, now in pairs}
    spans = (
        replace(
            span,
            before_ms=then.ms,
            before_start_ms=then.start_ms,
            before_tokens=then.tokens,
            before_first_token_ms=then.first_token_ms,
        )
        if (then := before_spans.get(place))
        else span
        for place, span in enumerate(content.spans)
    )
    same = {then.place: now.span for then, now in pairs}
    # Of a run that is cut, steps may only be left out.
    most = 0 if "spans" in content.cut else MAX_GONE_STEPS
    gone = islice(_place_gone_steps(before.spans, same), most)
    return replace(content, spans=tuple(spans), baseline_spans=tuple(gone))


MAX_GONE_STEPS: Final = 200


def _place_gone_steps(before: Sequence[RunSpan], same: Mapping[int, RunSpan]) -> Iterator[RunSpan]:
    """Yield the steps of the baseline that this run lacks, where they would be in it.

    Each starts after the step before it, or within that, but not after the next one.

    Args:
        same: the steps that it has, by their index in the baseline.
    """
    ids = {
        span.id: same[place].id if place in same else f"baseline {span.id}"
        for place, span in enumerate(before)
    }
    places = sorted(range(len(before)), key=lambda place: before[place].start_ms)
    limits, limit = dict[int, float](), math.inf
    for place in reversed(places):
        limit = same[place].start_ms if place in same else limit
        limits[place] = limit
    then = now = RunSpan(id="", name="", kind="other", start_ms=0, ms=0)
    for place in places:
        span, found = before[place], same.get(place)
        if found is None:
            is_after = span.start_ms >= then.start_ms + then.ms
            offset = now.ms if is_after else span.start_ms - then.start_ms
            found = replace(
                span,
                id=ids[span.id],
                parent=None if span.parent is None else ids.get(span.parent),
                start_ms=max(0, min(now.start_ms + offset, limits[place])),
                before_start_ms=span.start_ms,
            )
            yield found
        then, now = span, found


class _Step(NamedTuple):
    """A span with its index, of a run."""

    place: int
    span: RunSpan
    run: RunContent

    @property
    def key(self) -> tuple[str, str]:
        """The kind and the name without the model, which may be another one than before."""
        name, model = self.span.name, self.span.model
        return self.span.kind, name.replace(model, "") if model else name


def _list_steps(content: RunContent) -> defaultdict[int, list[_Step]]:
    """List the steps of each turn by its index."""
    steps: defaultdict[int, list[_Step]] = defaultdict(list)
    turns = _find_turns(content)
    for place, (turn, span) in enumerate(zip(turns, content.spans, strict=True)):
        steps[turn].append(_Step(place, span, content))
    return steps


def _list_requests(content: RunContent) -> dict[str | None, str]:
    """List what tools are given and which tools models call, by id of the span."""
    requests: dict[str | None, str] = {}
    for turn in content.turns:
        for index, step in enumerate(turn.steps):
            names = [call.name for call in turn.calls if call.step == index]
            requests[step.span] = json_text.dumps_compact(names)
        requests.update((c.span, json_text.dumps_compact(c.arguments)) for c in turn.calls)
    return requests


# Of both sides: the steps of longer turns are paired only by their order.
MAX_ALIGNED_PAIRS: Final = 40_000


def _pair_steps(before: Sequence[_Step], now: Sequence[_Step]) -> Iterator[tuple[_Step, _Step]]:
    """Pair steps of the same kind and name in order, those with the same request first.

    Model calls are also paired with those of another name.
    """
    if [step.key for step in before] == [step.key for step in now]:
        yield from zip(before, now, strict=True)
        return
    left: defaultdict[tuple[str, str], deque[_Step]] = defaultdict(deque)
    others: list[_Step] = []
    for then, found in _align_steps(before, now):
        if then and found:
            yield then, found
        elif then:
            left[then.key].append(then)
        elif found:
            others.append(found)
    # These have another order than in the baseline.
    yield from ((left[step.key].popleft(), step) for step in others if left[step.key])


def _align_steps(
    before: Sequence[_Step], now: Sequence[_Step]
) -> Iterator[tuple[_Step | None, _Step | None]]:
    if not before or len(before) * len(now) > MAX_ALIGNED_PAIRS:
        yield from ((step, None) for step in before)
        yield from ((None, step) for step in now)
        return
    old, new = (_list_requests(each[0].run) for each in (before, now))

    def measure_likeness(then: _Step, step: _Step) -> int:
        if then.key != step.key:
            return int(then.span.kind == step.span.kind == "model")
        return 9 if old.get(then.span.id) == new.get(step.span.id) else 3

    yield from align(before, now, measure_likeness)


def _find_turns(content: RunContent) -> list[int]:
    """Find the index of each span's turn: the one around it, else the last that began."""
    indexes = {turn.span: index for index, turn in enumerate(content.turns)}
    parents = {span.id: span.parent for span in content.spans}
    found = []
    begun = -1
    for span in content.spans:
        begun = indexes.get(span.id, begun)
        outer: str | None = span.id
        # A trace may have cycles.
        left = len(parents)
        while outer is not None and outer not in indexes and left:
            left -= 1
            outer = parents.get(outer)
        found.append(indexes.get(outer, begun))
    return found


def add_cost(content: RunContent, prices: PriceList) -> RunContent:
    """Add the cost by ``prices`` if it was not recorded and all model calls can be priced.

    A baseline is priced again, so that a price that changed does not look like another use.
    """
    if not prices or (content.cost_usd is not None and not content.priced):
        return content
    if content.level != "full":
        return content  # its sub-agents may have been left out
    inner = (turn for run in content.subagents for turn in run.turns)
    turns = [turn for turn in (*content.turns, *inner) if not turn.missing]
    cost, missing = price_steps((step for turn in turns for step in turn.steps), prices)
    if missing or not turns or not all(turn.steps for turn in turns):
        return content
    return replace(content, cost_usd=cost, priced=True)


def _add_baseline_turn(turn: TurnContent, before: TurnContent) -> TurnContent:
    now = _make_baseline_turn(turn)
    then = _make_baseline_turn(before)
    is_same = (now.answer, now.calls, now.cut) == (then.answer, then.calls, then.cut)
    results = _start_results(before)
    if not is_same or turn.missing:
        return replace(turn, baseline=then, baseline_results=results)
    pairs = zip(_start_results(turn), results, strict=True)
    return replace(
        turn,
        baseline="same",
        baseline_results=tuple("same" if one == other else other for one, other in pairs),
        baseline_latency_ms=then.latency_ms,
    )


# Of the result of a tool in the baseline.
MAX_RESULT_CHARACTERS: Final = 200


def _start_results(turn: TurnContent) -> tuple[BaselineResult, ...]:
    """Shorten the results of a turn's tools to their start."""
    found = []
    for index, call in enumerate(turn.calls):
        text, left = None, turn.cut.get(f"calls[{index}].result", 0)
        if call.result is not UNSET:
            value = call.result
            text = value if isinstance(value, str) else json_text.dumps_readable(value)
            left += max(0, len(text) - MAX_RESULT_CHARACTERS)
            text = text[:MAX_RESULT_CHARACTERS]
        found.append(BaselineResult(start=text, left=left, failed=has_failed(call)))
    return tuple(found)


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

    Turns that are the same lack their tokens, which only the baseline's own report has.
    """
    turns = []
    for turn in content.turns:
        if turn.baseline is None:
            break  # the baseline lacks this turn and those after it
        before = turn.baseline
        if before == "same":
            latency = turn.baseline_latency_ms
            before = replace(_make_baseline_turn(turn), latency_ms=latency, tokens=None)
        own = _start_results(turn)
        results = [own[i] if r == "same" else r for i, r in enumerate(turn.baseline_results)]
        left = {f"calls[{i}].result": each.left for i, each in enumerate(results) if each.left}
        turns.append(
            TurnContent(
                user=turn.user,
                answer=before.answer,
                calls=tuple(
                    _restore_call(call, results[index] if index < len(results) else None)
                    for index, call in enumerate(before.calls)
                ),
                latency_ms=before.latency_ms,
                tokens=before.tokens,
                cut={**before.cut, **left},
            )
        )
    return RunContent(turns=tuple(turns), level=content.level)


def _restore_call(call: ExpectedCall, found: BaselineResult | None) -> CallContent:
    result = UNSET if found is None or found.start is None else found.start
    failed = found is not None and found.failed
    return CallContent(name=call.name, arguments=call.arguments, result=result, failed=failed)


MAX_TAGS: Final = 20


class ChunkWriter(Protocol):
    """Stores chunks of bytes."""

    def append(self, chunk: bytes) -> int:
        """Store ``chunk``; return its number."""


def encode_content(content: RunContent) -> bytes:
    """Encode for ``decode_content``."""
    return json_text.dumps_compact(content).encode()


def decode_content(data: bytes) -> RunContent:
    """Decode a content."""
    return _DECODER.decode(data)


_DECODER: Final = msgspec.json.Decoder(RunContent)


def make_run_content(case: Case) -> RunContent:
    """Make the content of a case, with the turns that are expected but missing."""
    trace, transcript = case.trace, case.transcript
    expected = (
        case.expectation.turns if case.agentv_case is None else _read_messages(case.agentv_case)
    )
    turns = [
        _make_turn(turn, expected[index] if index < len(expected) else None)
        for index, turn in enumerate(trace.turns)
    ]
    turns = [
        turn if _lists_calls(case, index) else replace(turn, expected_calls=None)
        for index, turn in enumerate(turns)
    ]
    if trace.not_captured:
        turns = [turn if turn.user else replace(turn, user_recorded=False) for turn in turns]
    turns += map(_make_missing_turn, expected[len(turns) :])
    latency = _sum_known([turn.latency_ms for turn in turns if not turn.missing])
    return RunContent(
        turns=tuple(turns),
        spans=() if trace.replayed else trace.spans,
        subagents=tuple(
            SubagentContent(
                turns=tuple(map(_make_turn, run.turns)), name=run.name, call_id=run.call_id
            )
            for run in trace.subagents
        ),
        columns=case.dataset_row.input_columns if case.dataset_row else {},
        tags=_read_tags(case),
        printed=trace.printed,
        latency_ms=_find_duration(case) if latency is None else latency,
        tokens=_count_tokens(trace.usage if transcript is None else transcript.token_usage),
        cost_usd=_check_amount(trace.cost_usd if transcript is None else transcript.cost_usd),
    )


def _lists_calls(case: Case, turn: int) -> bool:
    """Return whether the eval case says which calls a turn makes, or that it makes none."""
    eval_case = case.expected
    if eval_case is None or eval_case.has_plain_calls:
        return True
    written = eval_case.own_checks.get(CALLS_CHECK)
    return isinstance(written, list) and turn < len(written) and written[turn] is not None


def _read_tags(case: Case) -> tuple[str, ...]:
    """Return the `tags` of an eval file's `metadata` or of a dataset row: texts, or one text."""
    values = (
        case.agentv_case and case.agentv_case.metadata,
        case.dataset_row and case.dataset_row.columns,
    )
    found = next((each["tags"] for each in values if each and "tags" in each), ())
    tags = found.split() if isinstance(found, str) else found
    if not isinstance(tags, list | tuple):
        return ()
    return tuple(dict.fromkeys(each for each in tags if isinstance(each, str)))[:MAX_TAGS]


def _make_turn(turn: Turn, expected: Turn | None = None) -> TurnContent:
    responses = {each.call_index: each for each in turn.tool_responses}
    return TurnContent(
        user=turn.user_text,
        user_recorded=turn.user_text_recorded,
        answer=turn.final_text,
        expected_answer=None if expected is None else expected.final_text,
        calls=tuple(
            _make_call(call, responses.get(index)) for index, call in enumerate(turn.tool_calls)
        ),
        calls_recorded=turn.tool_calls_recorded,
        expected_calls=None if expected is None else _make_expected_calls(expected.tool_calls),
        texts=turn.intermediate_texts,
        steps=turn.model_steps,
        latency_ms=_check_amount(turn.duration_ms),
        tokens=_sum_tokens(turn.model_steps),
        id=turn.id,
        trace=turn.trace_id,
        span=turn.span_id,
        start=turn.start,
    )


def _make_missing_turn(expected: Turn) -> TurnContent:
    return TurnContent(
        user=expected.user_text,
        answer=None,
        missing=True,
        expected_answer=expected.final_text,
        expected_calls=_make_expected_calls(expected.tool_calls),
    )


def _make_call(call: ToolCall, response: ToolResponse | None) -> CallContent:
    result: Json | UnsetType = UNSET
    # The result of a failed call is often not recorded.
    if response is not None and not (response.failed and response.output is None):
        result = response.output
    is_failed = response is not None and response.failed
    return CallContent(
        name=call.name,
        arguments=call.args,
        result=result,
        error=True if is_failed else call.failed,
        ms=_check_amount(call.duration_ms),
        span=call.span_id,
        id=call.id,
        step=call.step,
        start=call.start,
    )


def _make_expected_calls(calls: Sequence[ToolCall]) -> tuple[ExpectedCall, ...]:
    return tuple(ExpectedCall(name=call.name, arguments=call.args) for call in calls)


def _read_messages(agentv_case: AgentvCase) -> tuple[Turn, ...]:
    """Return the expected turn of a case of an eval file; empty if it expects no messages."""
    from agentci.evaluators.agentv import findings  # noqa: PLC0415 (only for eval files)

    if not agentv_case.expected_messages:
        return ()
    answer = findings.extract_reference_answer(agentv_case)
    return (
        Turn(
            id="",
            user_text="",
            answer_parts=(answer,) if answer else (),
            tool_calls=tuple(_find_expected_calls(agentv_case.expected_messages)),
        ),
    )


def _find_expected_calls(messages: Sequence[JsonObject]) -> Iterator[ToolCall]:
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list | tuple) else ():
            if isinstance(call, Mapping) and isinstance(name := call.get("tool"), str):
                yield ToolCall(name=name, args=call.get("input"))


def _find_duration(case: Case) -> float | None:
    """Return the milliseconds of a run whose turns are not measured."""
    if case.transcript is not None:
        return _check_amount(case.transcript.duration_ms)
    latency = _get_object((case.trace.performance or {}).get("latency"))
    overall = _get_object(latency.get("overall"))
    return _check_amount(overall.get("max")) if overall.get("count") == 1 else None


def _sum_known(amounts: Sequence[float | None]) -> float | None:
    """Add up amounts; None if there are none, or one is unknown."""
    known = [each for each in amounts if each is not None]
    return math.fsum(known) if known and len(known) == len(amounts) else None


def _sum_tokens(steps: Sequence[ModelStep]) -> TokenTotals | None:
    given = _sum_known([step.input_tokens for step in steps])
    produced = _sum_known([step.output_tokens for step in steps])
    if given is None or produced is None:
        return None
    return TokenTotals(input=max(int(given), 0), output=max(int(produced), 0))


def _count_tokens(usage: TokenUsage | None) -> TokenTotals | None:
    if usage is None:
        return None
    given, produced = _check_amount(usage.input), _check_amount(usage.output)
    return TokenTotals(input=int(given or 0), output=int(produced or 0))


def _check_amount(value: Json) -> float | None:
    """Return a number of a recording if it can be an amount of time, tokens or money."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _get_object(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


NOT_KEPT: Final = "the results of the baseline keep only a part of their runs (option `content`)"
HAS_SECRETS: Final = "secrets are removed from their runs in the results of the baseline"
NO_TURNS: Final = "their runs in the results of the baseline have no turns"


def explain_incomplete_content(content: RunContent) -> str:
    """Explain why a run cannot be restored; empty if it can."""
    turns = [*content.turns, *(turn for run in content.subagents for turn in run.turns)]
    if content.redacted:
        return HAS_SECRETS
    if content.level != "full" or any(turn.cut for turn in turns) or {*content.cut} - {"spans"}:
        return NOT_KEPT
    return "" if any(not turn.missing for turn in content.turns) else NO_TURNS


def list_dialogue(content: RunContent) -> tuple[DialogueTurn, ...]:
    """List the recorded turns as summaries of cases have them."""
    return tuple(excerpt_turn(turn.user, turn.answer) for turn in content.turns if not turn.missing)


def restore_trace(case: CaseSummary, content: RunContent) -> Trace:
    """Restore the trace of a case from its complete content."""
    tokens = content.tokens
    return Trace(
        id=case.trace_id,
        key=case.trace_id,
        turns=tuple(_restore_turn(turn) for turn in content.turns if not turn.missing),
        place=case.recording,
        performance=None
        if content.performance is None
        else msgspec.json.decode(content.performance),
        printed=content.printed,
        usage=None if tokens is None else TokenUsage(input=tokens.input, output=tokens.output),
        cost_usd=content.cost_usd,
        subagents=tuple(
            SubagentRun(
                turns=tuple(map(_restore_turn, run.turns)), name=run.name, call_id=run.call_id
            )
            for run in content.subagents
        ),
    )


def _restore_turn(turn: TurnContent) -> Turn:
    return Turn(
        id=turn.id,
        user_text=turn.user,
        user_text_recorded=turn.user_recorded,
        answer_parts=() if turn.answer is None else (turn.answer,),
        tool_calls=tuple(
            ToolCall(
                name=call.name,
                args=call.arguments,
                id=call.id,
                step=call.step,
                failed=call.error,
                start=call.start,
                duration_ms=call.ms,
                span_id=call.span,
            )
            for call in turn.calls
        ),
        tool_calls_recorded=turn.calls_recorded,
        tool_responses=tuple(
            ToolResponse(
                name=call.name,
                output=None if call.result is UNSET else call.result,
                id=call.id,
                failed=bool(call.error),
                call_index=index,
            )
            for index, call in enumerate(turn.calls)
            if call.result is not UNSET or call.error
        ),
        intermediate_texts=turn.texts,
        model_steps=turn.steps,
        trace_id=turn.trace,
        span_id=turn.span,
        start=turn.start,
        duration_ms=turn.latency_ms,
    )


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
        warnings=tuple(sorted({*trace.warnings, *_list_early_ends(case)})),
        performance=None
        if trace.performance is None
        else json_text.dumps_compact(trace.performance),
        run=_digest_run(case),
        content=None
        if contents is None
        else contents.append(encode_content(make_run_content(case))),
    )


def _list_early_ends(case: Case) -> Iterator[str]:
    """Warn of each answer that the model did not complete, unless it is expected like that."""
    turns, expected = case.trace.turns, case.expectation.turns
    for number, turn in enumerate(turns, start=1):
        own = expected[number - 1].final_text if number <= len(expected) else None
        if turn.early_end and turn.final_text != own:
            where = f" in turn {number}" if len(turns) > 1 else ""
            yield f"{EARLY_END}{where}, with the finish reason {turn.early_end}"


def _find_eval_case_place(case: Case) -> Place | None:
    found = (case.expected, case.agentv_case, case.dataset_row)
    return next((each.place for each in found if each is not None), None)


class _RecordedTurns(Struct, frozen=True):
    turns: tuple[Turn, ...]


def _digest_run(case: Case) -> str:
    """Digest what was recorded of a run; the turns of a transcript repeat its case's question."""
    # Contents of reports do not hold it.
    turns = tuple(replace(t, early_end="") if t.early_end else t for t in case.trace.turns)
    recorded = _RecordedTurns(turns) if case.transcript is None else case.transcript
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
