"""What was recorded of a case, and whether it can be evaluated."""

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci.model.trace import INCOMPLETE_RUN
from agentci.model.values import Json, replace
from agentci.record.agent_process import CommandEnd, CommandRun, find_last_line
from agentci.record.apis import other_requests
from agentci.record.apis.registry import find_unrecorded_service
from agentci.record.case_file import RecordCase
from agentci.record.chosen_answer import ChosenAnswer, choose_answer
from agentci.record.conversations import rebuild_turns
from agentci.record.exchanges import FIRST_ERROR, Exchange, parse_exchanges
from agentci.record.ignored_inputs import AskedInput, find_asked_input
from agentci.record.otlp_receiver import TOO_MANY_SPANS
from agentci.record.record_order import RecordingSources, RecordOrder
from agentci.record.recording_choice import (
    NO_ACTIVITY,
    NO_ANSWER,
    PROXY,
    RecordingChoice,
    TraceSummary,
    choose_recording,
)
from agentci.record.replay import REPEATED, find_unset_keys
from agentci.record.request_file import UNNAMED, format_requests, make_file_name, select_requests
from agentci.record.write_spans import CaseStamp, mark_incomplete, write_turns

EMPTY_ANSWER: Final = "the model's last answer is empty"
# Ends the reason of a case whose recording has model calls.
NONE_MADE: Final = "the agent made none"
NOT_RUN: Final = CommandRun(CommandEnd(None))


class RecordedCase(Struct, frozen=True, kw_only=True):
    """What was recorded of one case.

    Attributes:
        case: its id; empty without cases.
        lines: OTLP JSON; those of an incomplete case are marked as such.
        incomplete: why it cannot be evaluated; empty if it can.
        source: where the lines are from; empty without lines.
        reason: of the choice of the source; empty if there was none.
        end: of the command.
        model_calls: number of calls that reached the proxy.
        other_requests: requests that call no model, by method and path.
        requests: content of the file with its requests and responses; empty if there are none.
        misses: requests that were not in the earlier recording.
        answered: number of model calls that were answered from that recording.
        forwarded: number of model calls of a replay that went to a model.
        open_call: the tool that the model called last, if no result was sent; empty if it was.
        failure: response of a service to the last failed call.
        injection_errors: of injected code; they do not stop the agent.
        unrecorded: the service that the agent seems to use, which the proxy does not record.
        unset_keys: variables with keys that it may need; empty if it needs none or any is set.
        asked: how its input reached the model; None without an input or a model call.
        question: the first question to the model.
        ignores_input: whether all cases have this question, although their inputs differ.
        lacks_input: whether the case has no input.
        is_started: whether its command was not left out after a signal.
        turns_problem: why turns of a conversation are missing; empty if none are.
        is_input_unread: whether the command has no ``{input}``, and read nothing from stdin.
        output: end of what the command printed, if it was captured.
        warnings: that the command or its framework has other answers or arguments than the model.
        prints_answer: whether its answer is, from now on, what the command prints.
        prints_more: whether the command printed more than the model's answer, which is evaluated.
    """

    case: str
    lines: tuple[str, ...]
    incomplete: str
    summary: TraceSummary
    source: str
    reason: str
    end: CommandEnd
    model_calls: int
    other_requests: tuple[str, ...] = ()
    requests: str = ""
    misses: tuple[str, ...] = ()
    answered: int = 0
    forwarded: int = 0
    open_call: str = ""
    failure: str = ""
    injection_errors: tuple[str, ...] = ()
    unrecorded: str = ""
    unset_keys: tuple[str, ...] = ()
    asked: AskedInput | None = None
    question: str = ""
    ignores_input: bool = False
    lacks_input: bool = False
    is_input_unread: bool = False
    is_started: bool = True
    turns_problem: str = ""
    output: str = ""
    warnings: tuple[str, ...] = ()
    prints_answer: bool = False
    prints_more: bool = False
    seconds: float = 0.0

    @property
    def has_activity(self) -> bool:
        """Whether a model was called, or telemetry received."""
        return bool(self.model_calls or self.source)

    @property
    def is_complete(self) -> bool:
        """Whether it was recorded and can be evaluated."""
        return bool(self.source) and not self.incomplete


class CaseCollector:
    """Collects what was recorded of cases."""

    def __init__(self, order: RecordOrder, sources: RecordingSources) -> None:
        self._log, self._exported, self._injected, self._replay = sources
        self._order = order
        self._seed = os.urandom(16)
        # Cases with a process of their own, unlike those of a pytest run.
        self._own = frozenset(case.id for case in order.cases if case.id)

    def collect(
        self, case: RecordCase, run: CommandRun = NOT_RUN, *, not_started: str = ""
    ) -> RecordedCase:
        """Return what has been recorded of a case so far.

        Args:
            not_started: why its command was not run; empty if it was.
        """
        end, output, printed = run.end, run.output, run.printed
        parsed = list(parse_exchanges(self._log.list_exchanges(case.id)))
        exchanges = [one for one in parsed if one.api is not other_requests]
        seed = self._seed + case.id.encode("utf-8", "surrogateescape")
        stamp = CaseStamp(
            id=case.id,
            is_eval_case=case.is_named,
            input=case.input,
            run=blake2b(seed, digest_size=8).hexdigest(),
        )
        redact = self._order.redactor.redact
        # A server may be asked the same question again.
        turns = rebuild_turns(
            exchanges,
            joins_unanswered=bool(case.id),
            # Unless a conversation has a question twice.
            joins_answered=case.id in self._own and len({*case.turns}) == len(case.turns),
            printed=printed or "",
        )
        by_proxy = tuple(write_turns(turns, stamp, seed=seed, redact=redact))
        choice = choose_recording(
            by_proxy,
            exported=self._exported.list_lines(stamp, redact),
            injected=self._injected.list_lines(stamp, redact),
        )
        summary = self._explain_missing(choice.summary, case.id, end, exchanges)
        if choice.source != PROXY and self._has_refused_spans(case.id):
            summary = replace(summary, missing=TOO_MANY_SPANS)
        failed = [one for one in exchanges if one.failed and one.status]
        misses = tuple(self._replay.misses.get(case.id, ())) if self._replay else ()
        lines = () if misses else choice.lines
        failure = self._describe_failure(failed[-1], case.id) if failed else ""
        reason = next(iter(misses), "")
        open_call = _describe_open_call(exchanges)
        reason = reason or _find_incomplete_reason(case, end, output, summary, failure, open_call)
        answer = (
            ChosenAnswer(lines=tuple(lines), source=self._order.answers.get(case.id))
            if reason
            else self._choose_answer(case.id, printed, choice)
        )
        lines = answer.lines
        if answer.missing:
            reason, summary = answer.missing, replace(summary, missing=answer.missing)
        reason = not_started or reason
        is_fault = misses[0].startswith(REPEATED) if misses else not failure and end.code
        incomplete = _format_incomplete(reason, is_fault=bool(is_fault)) if reason else ""
        if incomplete:
            # Without lines, nothing else names the case.
            named = stamp if stamp.id or lines else replace(stamp, id=UNNAMED)
            lines = mark_incomplete(lines, incomplete, named, seed=seed, redact=redact)
        return RecordedCase(
            case=case.id,
            lines=lines,
            incomplete=incomplete,
            summary=summary,
            source=choice.source if choice.lines and not misses else "",
            reason=choice.reason,
            end=end,
            model_calls=len(exchanges),
            other_requests=tuple(
                dict.fromkeys(f"{o.method} {o.path}" for o in parsed if o.api is other_requests)
            ),
            requests=self._format_requests(parsed, None if answer.source == "model" else printed),
            misses=misses,
            answered=self._replay.answered[case.id] if self._replay else 0,
            forwarded=self._replay.forwarded[case.id] if self._replay else 0,
            open_call=open_call,
            failure=failure,
            unrecorded=find_unrecorded_service(
                self._order.environ, self._injected.list_modules(case.id)
            ),
            unset_keys=() if self._replay else find_unset_keys(self._order.environ, output),
            injection_errors=tuple(map(redact, self._injected.list_errors(case.id))),
            asked=find_asked_input(case.input, exchanges),
            question=redact(turns[0].question) if turns else "",
            output=output,
            warnings=answer.warnings,
            prints_answer=answer.is_new,
            prints_more=answer.prints_more,
            seconds=run.seconds,
        )

    def _explain_missing(
        self, summary: TraceSummary, case: str, end: CommandEnd, exchanges: Sequence[Exchange]
    ) -> TraceSummary:
        """Note an empty answer of the model, or that a replayed agent did not call it."""
        if summary.missing == NO_ANSWER and exchanges and _is_empty(exchanges[-1]):
            reasons = ", ".join(exchanges[-1].reply.finish_reasons) or "none"
            return replace(summary, missing=f"{EMPTY_ANSWER} (finish reason: {reasons})")
        recorded = (self._order.recorded or {}).get(make_file_name(case))
        number = recorded.model_calls if recorded is not None and end.code == 0 else 0
        if summary.missing != NO_ACTIVITY or not number:
            return summary
        calls = format_count(number, "model call")
        return replace(summary, missing=f"the recording has {calls}, and {NONE_MADE}")

    def _format_requests(self, parsed: Sequence[Exchange], printed: str | None) -> str:
        """Format the file of a case; empty without requests."""
        requests = select_requests(parsed, self._order.redactor.redact)
        return format_requests(requests, printed) if requests else ""

    def _has_refused_spans(self, case: str) -> bool:
        return any(one.has_refused_spans(case) for one in (self._exported, self._injected))

    def _choose_answer(
        self, case: str, printed: str | None, choice: RecordingChoice
    ) -> ChosenAnswer:
        forwarded = self._replay.forwarded[case] if self._replay else 0
        known = {} if forwarded else self._order.recorded or {}
        recorded = known.get(make_file_name(case))
        return choose_answer(
            choice,
            printed,
            self._order.answers.get(case),
            before=None if recorded is None else recorded.printed,
            has_case=bool(case),
            is_replay=self._order.recorded is not None,
        )

    def _describe_failure(self, exchange: Exchange, case: str) -> str:
        error = exchange.error
        if exchange.status < FIRST_ERROR:
            error = "with a response that is cut off or is not one of this API"
            error += f" (recorded in {make_file_name(case)})" if self._replay else ""
        message = f"{exchange.api.name} answered {exchange.status} {error}".strip()
        return self._order.redactor.redact(message)

    def mark(self, found: RecordedCase, reason: str) -> RecordedCase:
        """Mark a case as incomplete that was recorded as complete."""
        reason = _format_incomplete(reason, is_fault=True)
        lines = mark_incomplete(
            found.lines, reason, CaseStamp(), seed=b"", redact=self._order.redactor.redact
        )
        return replace(found, lines=lines, incomplete=reason)


def _is_empty(exchange: Exchange) -> bool:
    """Whether the model answered neither with text nor with a call of a tool."""
    found = (message.content for message in exchange.reply.messages)
    return not exchange.failed and not any((one.text or "").strip() or one.calls for one in found)


def _describe_open_call(exchanges: Sequence[Exchange]) -> str:
    """Describe the tool that the model called last: ``called `TOOL```; empty if it called none."""
    if not exchanges:
        return ""
    last = exchanges[-1]
    calls = [call.name for each in last.reply.messages for call in each.content.calls]
    offered = {*_list_names(last.body.get("tools"))}
    unknown = [name for name in calls if offered and name not in offered]
    name = next(iter(unknown or calls), "")
    return f"called `{name}`{', which the request does not offer' if unknown else ''}" * bool(name)


def _list_names(tools: Json) -> Iterator[str]:
    """Yield all names in the tools of a request, in the form of any API."""
    if isinstance(tools, list):
        for each in tools:
            yield from _list_names(each)
    elif isinstance(tools, Mapping):
        for key, value in tools.items():
            if key == "name" and isinstance(value, str):
                yield value
            elif key != "parameters":
                yield from _list_names(value)


def _find_incomplete_reason(
    case: RecordCase,
    end: CommandEnd,
    output: str,
    summary: TraceSummary,
    failure: str,
    open_call: str,
) -> str:
    """Return why a case cannot be evaluated; empty if it can.

    The exit code counts only if the case is a process of its own. A command without cases that is
    stopped, such as a server, is complete with what it recorded.

    Args:
        output: end of what the command printed.
        failure: what a service answered to the last call that failed.
        open_call: what the model called last, without a result.
    """
    if end.code is None:
        return "it was interrupted" if case.id else ""
    ending = end.describe()
    last = find_last_line(output) if ending else ""
    printed = f": {last}" if last else ""
    if ending and summary.missing == NO_ACTIVITY:
        return f"the command {ending} before it called a model{printed}"
    after = f" after the model {open_call}" if open_call and not failure else ""
    reasons = [failure or f"{summary.missing}{'' if ending else after}"] if summary.missing else []
    if ending and (case.id or reasons):
        reasons.append(f"the command {ending}{after}{printed}")
    return ", and ".join(reasons)


def _format_incomplete(reason: str, *, is_fault: bool) -> str:
    """Format why a case cannot be evaluated.

    Args:
        is_fault: whether the agent or its command is at fault.
    """
    first = "correct the agent, and " if is_fault else ""
    return f"{INCOMPLETE_RUN}{reason}; {first}record it again"
