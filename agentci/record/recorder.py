"""Runs an agent, once or once per case, and converts its model calls to traces."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from agentci._util.text.format import format_count, format_number
from agentci.execution.user_command import make_transient_folder
from agentci.model.values import replace
from agentci.record.agent_process import CommandEnd, CommandRun, CommandRunner
from agentci.record.case_file import MAX_ID, RecordCase
from agentci.record.exchanges import ExchangeLog
from agentci.record.http_server import (
    RequestHandler,
    ServerRequest,
    ServerResponse,
    make_json_response,
    serve_requests,
)
from agentci.record.ignored_inputs import InputWatch
from agentci.record.otlp_receiver import INJECTED_ROUTE, ROUTE, OtlpReceiver
from agentci.record.proxy import RecordingProxy, find_upstreams
from agentci.record.record_order import INPUT_PLACE, RecordingSources, RecordOrder
from agentci.record.recorded_case import CaseCollector, RecordedCase
from agentci.record.replay import ReplayingProxy

CASE_ROUTE: Final = "case"
BAGGAGE_CASE: Final = "agentci.case"


def record(order: RecordOrder, keep: Callable[[RecordedCase], None]) -> tuple[RecordedCase, ...]:
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
        sources = RecordingSources(log, OtlpReceiver(), OtlpReceiver(), replay)
        router = _Router(sources, replay or proxy)
        # The files that Node programs write there still contain keys.
        with serve_requests(router) as address, make_transient_folder("agentci-spans-") as folder:
            collector = CaseCollector(order, sources)
            runner = CommandRunner(order, sources, address, folder)
            recorder = _Recorder(order, runner, collector, keep)
            with ThreadPoolExecutor(order.jobs) as pool:
                found = list(pool.map(recorder.run_case, order.cases))
            found = recorder.finish(found)
            named = {case.id for case in order.cases}
            others = [each for each in sources.list_cases() if each not in named]
            if others:
                found = [_drop_unnamed(each) for each in found]
            for one in others:
                case = RecordCase(id=one, input=None, is_named=one in router.named)
                found.append(collector.collect(case, CommandRun(CommandEnd(0))))
                keep(found[-1])
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


class _Router:
    """Passes exports of telemetry to the receivers, and other requests to the proxy.

    Each process of a pytest run has its own address, and names each test when it begins. Requests
    of servers can name their case in the header ``baggage``.

    Attributes:
        named: cases that requests named.
    """

    def __init__(self, sources: RecordingSources, proxy: RequestHandler) -> None:
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
        self,
        order: RecordOrder,
        runner: CommandRunner,
        collector: CaseCollector,
        keep: Callable[[RecordedCase], None],
    ) -> None:
        self._order = order
        self._runner = runner
        self._collector = collector
        self._keep = keep
        self._lock = threading.Lock()
        self._ended = 0
        self._watch = InputWatch()
        self._held: list[RecordedCase] = []

    def run_case(self, case: RecordCase) -> RecordedCase:
        """Run the command for a case; without effect after a signal."""
        if self._order.is_stopped():
            found = self._collector.collect(case, not_started="it was not started")
            return replace(found, is_started=False)
        if reason := self._find_turns_problem(case):
            found = replace(self._collector.collect(case, not_started=reason), turns_problem=reason)
        else:
            run = self._runner.run(case)
            found = self._collector.collect(case, run)
            found = self._check_inputs(case, found, is_stdin_unread=run.is_stdin_unread)
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
            found = replace(self._collector.mark(found, reason), turns_problem=reason)
        return found

    def _find_turns_problem(self, case: RecordCase) -> str:
        """Return why the command cannot take the turns of a conversation; empty if it may."""
        words = [word for word in self._order.command if INPUT_PLACE in word]
        if not case.turns or not words or INPUT_PLACE in words:
            return ""
        return (
            f"it is a conversation, whose {len(case.turns)} turns `{INPUT_PLACE}` cannot pass "
            "within another word"
        )

    def _end_case(self, found: RecordedCase) -> None:
        with self._lock:
            self._store(found)
            self._ended += 1
            number = f"{self._ended}/{len(self._order.cases)}"
        if not found.case:
            return
        what = found.summary.format_content()
        seconds = format_number(found.seconds, 1)
        self._order.report(f"[{number}] {found.case}: {what} ({seconds} s)")

    def _store(self, found: RecordedCase) -> None:
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
            self._keep(each)

    def finish(self, found: Sequence[RecordedCase]) -> list[RecordedCase]:
        """Store the cases that were held back, and return all; mark those that ignored inputs."""
        marked = self._held
        if self._watch.are_ignored:
            reason = "the model was not sent its input"
            marked = [
                replace(self._collector.mark(each, reason), ignores_input=True)
                for each in self._held
            ]
        for each in marked:
            self._keep(each)
        by_id = {each.case: each for each in marked}
        return [by_id.get(each.case, each) for each in found]
