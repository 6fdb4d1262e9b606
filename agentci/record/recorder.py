"""Runs an agent, once or once per case, and converts its model calls to traces."""

import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from agentci._util.text.format import format_count, format_duration, format_number
from agentci._util.text.truncate import short
from agentci.execution.user_command import UserCommand, make_transient_folder
from agentci.model.trace import INCOMPLETE_RUN
from agentci.model.values import Json, replace
from agentci.record import injected
from agentci.record.apis import other_requests
from agentci.record.apis.registry import find_unrecorded_service
from agentci.record.conversations import rebuild_turns
from agentci.record.exchanges import FIRST_ERROR, Exchange, ExchangeLog, parse_exchanges
from agentci.record.http_server import (
    RequestHandler,
    ServerAddress,
    ServerRequest,
    ServerResponse,
    make_json_response,
    serve_requests,
)
from agentci.record.ignored_inputs import AskedInput, InputWatch, find_asked_input
from agentci.record.otlp_receiver import (
    CONTENT_VARIABLE,
    INJECTED_ROUTE,
    ROUTE,
    TOO_MANY_SPANS,
    OtlpReceiver,
    drop_signal_variables,
    make_export_variables,
)
from agentci.record.printed_answer import (
    MAX_PRINTED_BYTES,
    AnswerSource,
    describe_changed_output,
    describe_other_answer,
    describe_printed_key,
    hide_answers,
    is_answer,
    read_printed,
)
from agentci.record.proxy import RecordingProxy, find_upstreams, make_api_variables
from agentci.record.recorded_case import (
    MAX_ID,
    NO_ACTIVITY,
    NO_ANSWER,
    PROXY,
    RecordCase,
    RecordingChoice,
    TraceSummary,
    choose_recording,
)
from agentci.record.redaction import RecordingRedactor
from agentci.record.replay import (
    REPEATED,
    ReplayedCase,
    ReplayingProxy,
    find_unset_keys,
    make_key_variables,
)
from agentci.record.request_file import (
    MAX_PRINTED,
    format_requests,
    make_file_name,
    select_requests,
)
from agentci.record.write_spans import (
    CaseStamp,
    mark_incomplete,
    mark_lines,
    set_printed,
    write_turns,
)
from agentci.recordings.telemetry import semconv

INPUT_VARIABLE: Final = "AGENTCI_INPUT"
CASE_VARIABLE: Final = "AGENTCI_CASE"
# As in the files of `injected/`.
CASES_URL_VARIABLE: Final = "AGENTCI_CASES_URL"
CONTENT_CHOICE_VARIABLE: Final = "AGENTCI_CONTENT_CHOICE"
INJECTED_URL_VARIABLE: Final = "AGENTCI_RECORD_URL"
SPANS_FOLDER_VARIABLE: Final = "AGENTCI_SPANS_DIR"
CASE_ROUTE: Final = "case"
BAGGAGE_CASE: Final = "agentci.case"
PYTEST_TEST_VARIABLE: Final = "PYTEST_CURRENT_TEST"
PYTEST_PLUGIN: Final = "agentci_recording"
NODE_HOOK: Final = "agentci_ai_sdk.cjs"
# With it, Node refuses to read the hook, and the agent does not start.
NODE_PERMISSION: Final = re.compile(r"--(?:experimental-)?permission\b")
INPUT_PLACE: Final = "{input}"
MAX_LAST_LINE: Final = 200
POLL_SECONDS: Final = 0.1
PROGRESS_SECONDS: Final = 30.0
OUTPUT_TAIL_BYTES: Final = 4096
EMPTY_ANSWER: Final = "the model's last answer is empty"
# Ends the reason of a case whose recording has model calls.
NONE_MADE: Final = "the agent made none"
NO_CASE: Final = RecordCase(id="", input=None, is_named=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOrder:
    """What to record.

    Attributes:
        command: program and arguments; ``{input}`` stands for the input of a case.
        cases: one process each; without a file, one unnamed case.
        environ: the environment of the command.
        redactor: removes keys.
        recorded: requests to answer from an earlier recording, by file name of the case; None to
            call the models.
        answers: what the answer is, by id of a case. By default it is what the command prints if
            that is the model's answer, and else the model's, with a warning if it prints another.
        fallback: whether requests that are not in that recording go to the models.
        shares_terminal: whether a single command without an input keeps stdin and the terminal.
        is_injected: whether code is injected that sends the spans of installed instrumentation.
        report: prints a line of progress.
        keep: stores what was recorded when a case ends; one call at a time.
        is_stopped: whether a signal has interrupted the recording.
        timeout: seconds after which the command of a case is stopped; None for no limit.
    """

    command: tuple[str, ...]
    cases: tuple[RecordCase, ...] = (NO_CASE,)
    jobs: int = 1
    environ: Mapping[str, str] = field(repr=False)
    redactor: RecordingRedactor
    recorded: Mapping[str, ReplayedCase] | None = None
    answers: Mapping[str, AnswerSource] = field(default_factory=dict)
    fallback: bool = False
    shares_terminal: bool = True
    is_injected: bool = True
    report: Callable[[str], None]
    keep: "Callable[[RecordedCase], None]"
    is_stopped: Callable[[], bool]
    timeout: float | None = None


class CommandEnd(NamedTuple):
    """How a command ended.

    Attributes:
        code: its exit code, negative for a signal; None if it was interrupted or not started.
        limit: seconds after which it was stopped; None if it was not stopped by time.
        stopped: why it was stopped before that; empty if it was not.
    """

    code: int | None
    limit: float | None = None
    stopped: str = ""

    def describe(self) -> str:
        """Describe how it failed; empty if it did not."""
        if self.stopped:
            return self.stopped
        if self.limit is not None:
            return f"was stopped after {format_duration(self.limit * 1000, 1)} (--timeout)"
        return describe_exit(self.code) if self.code else ""


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


def record(order: RecordOrder) -> tuple[RecordedCase, ...]:
    """Run the command for each case and return what was recorded, in the order of the cases.

    Raises:
        InputError: the command cannot be started.
        OSError: no port is available.
    """
    order.redactor.learn_variables(order.environ)
    log = ExchangeLog()
    upstreams = find_upstreams(order.environ)
    with closing(RecordingProxy(upstreams, log, order.redactor, order.report)) as proxy:
        replay = _make_replay(order, log, proxy)
        sources = _Sources(log, OtlpReceiver(), OtlpReceiver(), replay)
        router = _Router(sources, replay or proxy)
        # The files that Node programs write there still contain keys.
        with serve_requests(router) as address, make_transient_folder("agentci-spans-") as folder:
            recorder = _Recorder(order, sources, address, folder)
            with ThreadPoolExecutor(order.jobs) as pool:
                found = list(pool.map(recorder.run_case, order.cases))
            found = recorder.finish(found)
            named = {case.id for case in order.cases}
            others = [each for each in recorder.list_cases() if each not in named]
            if others:
                found = [_drop_unnamed(each) for each in found]
            for one in others:
                case = RecordCase(id=one, input=None, is_named=one in router.named)
                found.append(recorder.collect(case, CommandEnd(0)))
                order.keep(found[-1])
    return tuple(found)


def _drop_unnamed(found: RecordedCase) -> RecordedCase:
    """Drop what belongs to no test of a pytest run, unless it has model calls.

    Telemetry does not say to which test it belongs, and the proxy saw the same.
    """
    if found.case or found.model_calls:
        return found
    return replace(
        found,
        lines=(),
        incomplete="",
        source="",
        reason="",
        summary=replace(found.summary, missing=""),
    )


def _make_replay(
    order: RecordOrder, log: ExchangeLog, proxy: RecordingProxy
) -> ReplayingProxy | None:
    if order.recorded is None:
        return None
    fallback = proxy if order.fallback else None
    return ReplayingProxy(order.recorded, fallback, log, order.redactor, order.report)


class _Streams(NamedTuple):
    """What a command reads and writes; None to share it with this process."""

    stdin: IO[bytes] | None = None
    output: IO[bytes] | None = None
    errors: IO[bytes] | None = None


class _Sources(NamedTuple):
    log: ExchangeLog
    exported: OtlpReceiver
    injected: OtlpReceiver
    replay: ReplayingProxy | None


class _Router:
    """Passes exports of telemetry to the receivers, and other requests to the proxy.

    Each process of a pytest run has its own address, and names each test when it begins. Requests
    of servers can name their case in the header ``baggage``.

    Attributes:
        named: cases that requests named.
    """

    def __init__(self, sources: _Sources, proxy: RequestHandler) -> None:
        self._receivers = {ROUTE: sources.exported, INJECTED_ROUTE: sources.injected}
        self._proxy = proxy
        self._cases: dict[str, str] = {}
        self.named: set[str] = set()

    def respond(self, request: ServerRequest) -> ServerResponse:
        if request.route == CASE_ROUTE:
            self._cases[request.case] = request.body.decode("utf-8", "replace")
            return make_json_response(HTTPStatus.OK, {})
        if receiver := self._receivers.get(request.route):
            return receiver.respond(request)
        case = self._cases.get(request.case, request.case)
        if not case and (case := find_baggage_case(request)):
            self.named.add(case)
        return self._proxy.respond(replace(request, case=case))


def find_baggage_case(request: ServerRequest) -> str:
    """Return the case that the baggage of a request names, as ``agentci.case=ID``; else empty."""
    members = (each.partition(";")[0] for each in request.get_header("baggage").split(","))
    pairs = (member.partition("=") for member in members)
    found = (unquote(value.strip()) for name, _, value in pairs if name.strip() == BAGGAGE_CASE)
    name = next(found, "").strip()
    return name if len(name) <= MAX_ID and name.isprintable() else ""


class _Recorder:
    def __init__(
        self, order: RecordOrder, sources: _Sources, address: ServerAddress, folder: str
    ) -> None:
        self._log, self._exported, self._injected, self._replay = sources
        self._folder = folder
        self._order = order
        self._address = address
        self._seed = os.urandom(16)
        self._lock = threading.Lock()
        self._ended = 0
        self._watch = InputWatch()
        self._held: list[RecordedCase] = []

    def list_cases(self) -> list[str]:
        """Return the cases that requests named."""
        missed = self._replay.misses if self._replay else ()
        named = [*self._log.list_cases(), *self._injected.list_cases(), *missed]
        return list(dict.fromkeys(named))

    def run_case(self, case: RecordCase) -> RecordedCase:
        """Run the command for a case; without effect after a signal."""
        if self._order.is_stopped():
            return self.collect(case, CommandEnd(None), not_started="it was not started")
        if reason := self._find_turns_problem(case):
            found = self.collect(case, CommandEnd(None), not_started=reason)
            found = replace(found, turns_problem=reason)
            self._end_case(found)
            return found
        started = time.monotonic()
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
            tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder,
        ):
            stdin.write((case.text or "").encode("utf-8", "surrogateescape"))
            stdin.seek(0)
            shared = self._order.shares_terminal and self._is_single
            streams = _Streams() if shared else _Streams(stdin, output, errors)
            end = self._run_command(case, folder, streams)
            redact = self._order.redactor.redact
            # What was written last, such as the message of a crash, is the end.
            written = sorted((output, errors), key=lambda one: os.fstat(one.fileno()).st_mtime_ns)
            tail = redact("".join(map(_read_tail, written)))
            printed = None if shared else read_printed(output)
            # The command moves the position of the file that it shares.
            is_stdin_unread = not os.lseek(stdin.fileno(), 0, os.SEEK_CUR)
            self._injected.add_files(case.id, Path(folder))
        seconds = time.monotonic() - started
        printed = None if printed is None else redact(printed)
        found = self.collect(case, end, output=tail, printed=printed, seconds=seconds)
        found = self._check_inputs(case, found, is_stdin_unread=is_stdin_unread)
        self._end_case(found)
        return found

    def _check_inputs(
        self, case: RecordCase, found: RecordedCase, *, is_stdin_unread: bool
    ) -> RecordedCase:
        """Note whether the command took the input of a case, and all turns of a conversation."""
        has_place = any(INPUT_PLACE in word for word in self._order.command)
        is_unread = bool(case.text) and is_stdin_unread and not has_place
        lacks_input = bool(case.id) and case.text is None
        found = replace(found, is_input_unread=is_unread, lacks_input=lacks_input)
        turns = format_count(found.summary.turns, "turn")
        is_given = has_place or not is_stdin_unread
        if is_given and found.is_complete and found.summary.turns < len(case.turns):
            reason = f"the agent answered {turns} of {len(case.turns)}"
            found = replace(self._mark(found, reason), turns_problem=reason)
        return found

    @property
    def _is_single(self) -> bool:
        """Whether there is one case without an input, whose command keeps the terminal."""
        return len(self._order.cases) == 1 and self._order.cases[0].text is None

    def _find_turns_problem(self, case: RecordCase) -> str:
        """Return why the command cannot take the turns of a conversation; empty if it may."""
        words = [word for word in self._order.command if INPUT_PLACE in word]
        if not case.turns or not words or INPUT_PLACE in words:
            return ""
        return (
            f"it is a conversation, whose {len(case.turns)} turns `{INPUT_PLACE}` cannot pass "
            "within another word"
        )

    def _run_command(self, case: RecordCase, folder: str, streams: _Streams) -> CommandEnd:
        words = list(self._order.command)
        if case.input is not None:
            words = [word.replace(INPUT_PLACE, case.input) for word in words]
        elif case.turns:
            given = (case.turns if word == INPUT_PLACE else (word,) for word in words)
            words = [word for each in given for word in each]
        command = UserCommand(
            words,
            self._make_environment(case, folder),
            stdin=streams.stdin,
            output=streams.output,
            errors=streams.errors,
        )
        started = shown = time.monotonic()
        limit = self._order.timeout
        while (code := command.wait(POLL_SECONDS)) is None:
            if self._order.is_stopped():
                command.stop()
                return CommandEnd(None)
            # A stopped program may end as if nothing had happened.
            if self._replay is not None and (reason := self._replay.find_end(case.id)):
                return CommandEnd(command.stop() or -signal.SIGTERM, stopped=reason)
            if limit is not None and time.monotonic() - started > limit:
                return CommandEnd(command.stop() or -signal.SIGTERM, limit)
            if time.monotonic() - shown > PROGRESS_SECONDS:
                shown = time.monotonic()
                calls = format_count(self._log.count_model_calls(case.id), "model call")
                self._order.report(f"recording{_format_name(case.id)}: {calls} so far")
        return CommandEnd(code)

    def _make_environment(self, case: RecordCase, folder: str) -> dict[str, str]:
        environ = dict(self._order.environ)
        if self._order.recorded is not None and not self._order.fallback:
            environ |= make_key_variables(environ, self._order.recorded)
        variables = make_api_variables(
            environ, lambda route: self._address.make_url(case.id, route)
        )
        if case.id:
            variables[CASE_VARIABLE] = case.id
        else:
            variables |= _make_pytest_variables(environ, self._address)
        if self._order.is_injected:
            url = self._address.make_url(case.id, INJECTED_ROUTE)
            variables |= make_injection_variables(environ, url, folder)
        if case.text is not None and "\0" not in case.text:
            variables[INPUT_VARIABLE] = case.text
        variables |= make_export_variables(environ, self._address.make_url(case.id, ROUTE))
        outer = drop_signal_variables(environ)
        outer.pop(PYTEST_TEST_VARIABLE, None)  # set if a test runs agentci
        return {**outer, **variables}

    def collect(
        self,
        case: RecordCase,
        end: CommandEnd,
        *,
        not_started: str = "",
        output: str = "",
        printed: str | None = None,
        seconds: float = 0.0,
    ) -> RecordedCase:
        """Return what has been recorded of a case so far.

        Args:
            output: end of what the command printed to stdout and stderr.
            printed: to stdout; None if it was not captured, or is too long.
        """
        parsed = list(parse_exchanges(self._log.list_exchanges(case.id)))
        exchanges = [one for one in parsed if one.api is not other_requests]
        seed = self._seed + case.id.encode("utf-8", "surrogateescape")
        run = blake2b(seed, digest_size=8).hexdigest()
        stamp = CaseStamp(id=case.id, is_eval_case=case.is_named, input=case.input, run=run)
        redact = self._order.redactor.redact
        # A server may be asked the same question again.
        turns = rebuild_turns(exchanges, joins_repeated=bool(case.id))
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
        failure = self._describe_failure(failed[-1]) if failed else ""
        reason = next(iter(misses), "")
        open_call = _describe_open_call(exchanges)
        reason = reason or _find_incomplete_reason(case, end, output, summary, failure, open_call)
        answer = (
            _ChosenAnswer(lines=tuple(lines), source=self._order.answers.get(case.id))
            if reason
            else self._choose_answer(case.id, lines, printed, choice)
        )
        lines = answer.lines
        if answer.missing:
            reason, summary = answer.missing, replace(summary, missing=answer.missing)
        reason = not_started or reason
        is_fault = misses[0].startswith(REPEATED) if misses else not failure and end.code
        incomplete = _format_incomplete(reason, is_fault=bool(is_fault)) if reason else ""
        if incomplete:
            lines = mark_incomplete(lines, incomplete, stamp, seed=seed, redact=redact)
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
            seconds=seconds,
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
        self, case: str, lines: Sequence[str], printed: str | None, choice: RecordingChoice
    ) -> "_ChosenAnswer":
        """Note in the lines of a complete case what its command printed, and what is its answer.

        Args:
            printed: as for ``collect``.
        """
        source, other, missing, is_new = self._order.answers.get(case), "", "", False
        answers, texts = choice.summary.answers, dict[str, str]()
        forwarded = self._replay.forwarded[case] if self._replay else 0
        known = {} if forwarded else self._order.recorded or {}
        recorded = known.get(make_file_name(case))
        before = None if recorded is None else recorded.printed
        if source == "stdout":
            missing = _find_missing_answer(printed)
            if not missing and not is_answer(printed or "", answers):
                texts[semconv.PRINTED_ANSWER] = (printed or "").strip()
        elif source is None:
            other = describe_other_answer(printed or "", answers) or choice.other_answer
            is_answered = not other and is_answer(printed or "", answers)
            is_new = is_answered and self._order.recorded is None and bool(case)
            source = "stdout" if is_new else None
        if source != "model" and printed is not None and not missing:
            if not other and before is not None:
                other = describe_changed_output(printed, before, answers)
            hidden = hide_answers(printed, choice.summary.texts)
            # Of several conversations, it is not known which one printed what.
            if len(hidden) <= MAX_PRINTED and (case or len(answers) == 1):
                texts[semconv.PRINTED] = hidden
        key = describe_printed_key(printed or "")
        warnings = tuple(filter(None, (key, other, choice.other_arguments)))
        marks = {semconv.ANSWER_SOURCE: source or "", semconv.WARNINGS: "\n".join(warnings)}
        return _ChosenAnswer(
            lines=mark_lines(
                lines if missing else set_printed(lines, texts),
                {name: text for name, text in marks.items() if text},
            ),
            source=source,
            is_new=is_new,
            missing=missing,
            warnings=warnings,
            prints_more=self._order.recorded is None
            and source is None
            and not other
            and bool((printed or "").strip()),
        )

    def _describe_failure(self, exchange: Exchange) -> str:
        error = exchange.error
        if exchange.status < FIRST_ERROR:
            error = "with a response that is cut off or is not one of this API"
        message = f"{exchange.api.name} answered {exchange.status} {error}".strip()
        return self._order.redactor.redact(message)

    def _end_case(self, found: RecordedCase) -> None:
        with self._lock:
            self._keep(found)
            self._ended += 1
            number = f"{self._ended}/{len(self._order.cases)}"
        if not found.case:
            return
        what = found.summary.format_content()
        seconds = format_number(found.seconds, 1)
        self._order.report(f"[{number}] {found.case}: {what} ({seconds} s)")

    def _keep(self, found: RecordedCase) -> None:
        """Store a case, unless its command may have ignored the input: then hold it back."""
        if found.asked is not None:
            self._watch.add(found.asked)
        self._held.append(found)
        is_doubtful = found.asked is not None and not found.asked.is_sent and not found.incomplete
        if self._watch.has_difference:
            ready, self._held = self._held, []
        elif not is_doubtful:
            ready = [self._held.pop()]
        else:
            ready = []
        for each in ready:
            self._order.keep(each)

    def finish(self, found: Sequence[RecordedCase]) -> list[RecordedCase]:
        """Store the cases that were held back, and return all; mark those that ignored inputs."""
        marked = self._held
        if self._watch.are_ignored:
            reason = "the model was not sent its input"
            marked = [replace(self._mark(each, reason), ignores_input=True) for each in self._held]
        for each in marked:
            self._order.keep(each)
        by_id = {each.case: each for each in marked}
        return [by_id.get(each.case, each) for each in found]

    def _mark(self, found: RecordedCase, reason: str) -> RecordedCase:
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


class _ChosenAnswer(Struct, frozen=True, kw_only=True):
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


def _find_missing_answer(printed: str | None) -> str:
    """Return why what a command printed is not its answer; empty if it is."""
    if printed is None:
        return f"the command printed more than {MAX_PRINTED_BYTES // 1024**2} MiB to stdout"
    return "" if printed.strip() else "the command printed nothing to stdout"


def _format_incomplete(reason: str, *, is_fault: bool) -> str:
    """Format why a case cannot be evaluated.

    Args:
        is_fault: whether the agent or its command is at fault.
    """
    first = "correct the agent, and " if is_fault else ""
    return f"{INCOMPLETE_RUN}{reason}; {first}record it again"


def describe_exit(code: int) -> str:
    """Describe the exit code of a command, or the signal that ended it."""
    return f"exited with code {code}" if code > 0 else f"was ended by signal {-code}"


def find_last_line(output: str) -> str:
    """Return the last line, without the stack that Node prints after its message, shortened.

    Empty if nothing was printed.
    """
    lines = [line for each in output.splitlines() if (line := " ".join(each.split()))]
    if lines and lines[-1].startswith("Node.js v"):
        stack = (place for place, line in enumerate(lines) if line.startswith("at "))
        lines = lines[: next(stack, -1)]
    return short(lines[-1], MAX_LAST_LINE) if lines else ""


def _make_pytest_variables(environ: Mapping[str, str], address: ServerAddress) -> dict[str, str]:
    """Make the variables with which a pytest run names its tests; others ignore them."""
    plugins = filter(None, (environ.get("PYTEST_PLUGINS"), PYTEST_PLUGIN))
    folders = filter(None, (environ.get("PYTHONPATH"), _find_injected_folder()))
    return {
        CASES_URL_VARIABLE: address.make_url("", "").rstrip("/"),
        "PYTEST_PLUGINS": ",".join(plugins),
        "PYTHONPATH": os.pathsep.join(folders),
    }


def make_injection_variables(
    environ: Mapping[str, str], url: str, spans_folder: str
) -> dict[str, str]:
    """Make the variables that inject the code of ``injected/`` into programs.

    Args:
        url: where Python programs send spans.
        spans_folder: where Node programs write them.
    """
    folder = _find_injected_folder()
    # Before the folder of the environment's own `sitecustomize`, which the injected one runs.
    folders = filter(None, (folder, environ.get("PYTHONPATH")))
    variables = {
        INJECTED_URL_VARIABLE: url,
        SPANS_FOLDER_VARIABLE: spans_folder,
        "PYTHONPATH": os.pathsep.join(folders),
    }
    if not environ.get(CONTENT_VARIABLE):
        variables[CONTENT_CHOICE_VARIABLE] = "1"
    options = environ.get("NODE_OPTIONS", "")
    if not NODE_PERMISSION.search(options):
        path = str(Path(folder) / NODE_HOOK).replace("\\", "\\\\").replace('"', '\\"')
        variables["NODE_OPTIONS"] = f'{options} --require "{path}"'.strip()
    return variables


def _find_injected_folder() -> str:
    return str(Path(injected.__path__[0]).absolute())


def _format_name(case: str) -> str:
    return f" {case}" if case else ""


def _read_tail(output: IO[bytes]) -> str:
    start = max(0, output.seek(0, os.SEEK_END) - OUTPUT_TAIL_BYTES)
    output.seek(start)
    content = output.read()
    # The first line may begin with a part of a key, which would not be recognised.
    cut = content.partition(b"\n")[2] if start else b""
    return (cut or content).decode("utf-8", "replace")
