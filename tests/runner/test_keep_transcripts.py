"""For which checks a page has what was sent and what came back, and in how much room."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentci.model.choices import CallScope
from agentci.model.program import LocalProgram
from agentci.model.requests import RunProgram
from agentci.model.result import CheckResult
from agentci.model.values import replace
from agentci.runner.transcripts import ExternalCall, TranscriptLog
from tests.helpers.reports import make_result

ROOM = 1_000


def dealing(stdin: str) -> ExternalCall:
    program = LocalProgram(path="/w/judge.py")
    request = RunProgram(program=program, stdin=stdin, timeout_seconds=1)
    return ExternalCall(name="tone", request=request, error="timed out")


def result(
    id_: str, status: Any = "failed", score: float | None = 0.5, **others: Any
) -> CheckResult:
    return replace(make_result(status, score, **others), id=id_)


def log_of(
    *results: CheckResult, of: CallScope = "failed", stdin: str = "x" * 300
) -> TranscriptLog:
    log = TranscriptLog(of, max_characters=ROOM)
    for each in results:
        log.add(each, [dealing(stdin)], ())
    return log


@pytest.mark.parametrize(
    ("of", "kept"),
    [("failed", {"f", "e", "s"}), ("all", {"f", "e", "s", "p"}), ("none", set())],
)
def test_they_are_kept_of_those_checks_that_are_named(of: CallScope, kept: set[str]) -> None:
    found = [
        result("p", "passed"),
        result("f"),
        result("e", "errored", None),
        result("s", "skipped", None),
    ]
    exchanges = log_of(*found, of=of, stdin="x").select_worst()
    assert (set(exchanges.json_by_check), exchanges.omitted_checks) == (kept, frozenset())


def test_the_worst_have_the_room() -> None:
    found = [
        result("poor", score=0.5),
        result("passed", "passed", 0),
        result("skipped", "skipped", None),
        result("advisory", score=0.0, required=False),
        result("bad", score=0.1),
        result("errored", "errored", None),
    ]
    exchanges = log_of(*found, of="all").select_worst()
    assert list(exchanges.json_by_check) == ["errored", "bad"]
    assert exchanges.omitted_checks == {"poor", "advisory", "skipped", "passed"}


def test_what_is_kept_does_not_hang_on_the_order_in_which_it_comes() -> None:
    found = [result(f"{number}", score=number / 100) for number in range(100)]
    kept = {"0", "1"}
    assert set(log_of(*found).select_worst().json_by_check) == kept
    assert set(log_of(*reversed(found)).select_worst().json_by_check) == kept


def test_of_equals_the_same_ones_are_kept_whenever_they_come() -> None:
    found = [result(f"{number:03}") for number in range(100)]
    assert set(log_of(*found).select_worst().json_by_check) == set(
        log_of(*reversed(found)).select_worst().json_by_check
    )


def test_what_is_small_has_no_room_where_something_worse_had_none() -> None:
    log = log_of(*(result(f"{number}", score=0.1) for number in range(10)))
    log.add(result("small", score=0.9), [dealing("")], ())
    assert "small" in log.select_worst().omitted_checks


def test_a_later_run_that_is_less_bad_does_not_leave_the_earlier_one() -> None:
    log = log_of(*(result(f"{number}", score=0.1) for number in range(10)))
    log.add(result("0", score=0.9), [dealing("")], ())
    exchanges = log.select_worst()
    assert ("0" in exchanges.json_by_check, "0" in exchanges.omitted_checks) == (False, True)


def test_no_more_than_the_room_is_taken_in_the_end() -> None:
    exchanges = log_of(*(result(f"{number}") for number in range(10))).select_worst()
    assert sum(map(len, exchanges.json_by_check.values())) <= ROOM
    assert len(exchanges.json_by_check) + len(exchanges.omitted_checks) == 10


def test_of_several_runs_of_a_check_the_last_is_kept() -> None:
    log = TranscriptLog("failed", max_characters=ROOM)
    for stdin in ("x", "y"):
        log.add(result("1"), [dealing(stdin)], ())
    exchanges = log.select_worst()
    [told] = json.loads(exchanges.json_by_check["1"])
    assert (told["texts"][0]["content"], exchanges.omitted_checks) == ("y", frozenset())


def test_they_are_packed_as_a_page_can_hold_them() -> None:
    packed = log_of(result("1"), stdin="</script>\u00e9").select_worst().json_by_check["1"]
    assert packed.isascii()
    assert "<" not in packed
    assert json.loads(packed) == [
        {
            "name": "tone",
            "outcome": "program: timed out",
            "texts": [{"name": "stdin", "content": "</script>\u00e9", "size": 11, "notes": []}],
        }
    ]


def test_several_threads_may_keep_some_at_a_time() -> None:
    log = TranscriptLog("failed", max_characters=100 * ROOM)
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda n: log.add(result(f"{n}"), [dealing("x")], ()), range(500)))
    exchanges = log.select_worst()
    assert len(exchanges.json_by_check) == 500
