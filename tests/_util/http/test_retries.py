"""Servers that are busy are left alone for a while, as they ask for it, and asked again."""

import time
from email.utils import formatdate

import pytest

from agentci._util.http.interface import DEFAULT_LIMITS, HttpLimits
from agentci._util.http.retries import Retries, find_retryable_error
from agentci.errors import UnreachableError
from tests._util.http.patience import Patience
from tests._util.http.servers import Answer, script, serve

LIMIT = 1000
NOW = 1_800_000_000.0
USED_UP = {"x-ratelimit-remaining": "0"}


@pytest.fixture
def patience() -> Patience:
    return Patience()


def make_retries() -> Retries:
    return Retries("https://a.example", limits=DEFAULT_LIMITS, report=lambda _: None)


class TestStatus:
    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    def test_that_may_pass_is_tried_again(self, status: int, patience: Patience) -> None:
        with serve(script(Answer(status=status), Answer(body=b"good"))) as server:
            assert patience.client().get(f"{server.url}/a", limit_bytes=LIMIT).content == b"good"
        (told,) = patience.told
        assert told.startswith(f"{server.url}/a: status {status}; retrying in 1")
        assert told.endswith(" s (1/5)")

    def test_that_does_not_pass_is_told_with_a_way_out(self, patience: Patience) -> None:
        with serve(script(Answer(status=503))) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a?b=c", limit_bytes=LIMIT)
        assert str(caught.value) == (f"{server.url}/a: status 503 (5 attempts)")
        assert "later" in str(caught.value.hint)
        assert len(server.asked) == 5

    def test_of_a_single_try_is_told_at_once(self, patience: Patience) -> None:
        limits = HttpLimits(tries=1)
        with (
            serve(script(Answer(status=500))) as server,
            pytest.raises(UnreachableError, match=r"status 500 \(1 attempt\)$"),
        ):
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)
        assert patience.slept == 0

    @pytest.mark.parametrize(
        "headers",
        [
            pytest.param(USED_UP, id="that says that nothing is left"),
            pytest.param({"Retry-After": "1"}, id="that says when to come back"),
        ],
    )
    def test_of_githubs_rate_limit_is_tried_again(
        self, headers: dict[str, str], patience: Patience
    ) -> None:
        limited = Answer(status=403, headers=headers)
        with serve(script(limited, Answer(body=b"good"))) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_of_a_door_that_is_shut_is_not(self, patience: Patience) -> None:
        shut = Answer(status=403, headers={"x-ratelimit-remaining": "10"})
        with serve(script(shut)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).status == 403
        assert len(server.asked) == 1


class TestWaits:
    def test_double_and_are_never_the_same_for_all(self) -> None:
        failure = find_retryable_error(500, {}, now=NOW)
        assert failure is not None
        retries = make_retries()
        for least in (1, 2, 4, 8):
            waits = {retries.compute_wait(failure) for _ in range(50)}
            assert least <= min(waits)
            assert max(waits) <= 1.5 * least
            assert len(waits) > 10
            retries.start_retry(failure, least)

    def test_are_slept_in_all(self, patience: Patience) -> None:
        with serve(script(Answer(status=500))) as server, pytest.raises(UnreachableError):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert 15 <= patience.slept <= 22.5

    def test_are_as_long_as_a_server_asks_in_seconds(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "4"})
        with serve(script(busy, Answer())) as server:
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert patience.told == [f"{server.url}/a: status 429; retrying in 4 s (1/5)"]
        assert patience.slept == pytest.approx(4)

    def test_are_as_long_as_a_server_asks_by_a_date(self, patience: Patience) -> None:
        date = formatdate(time.time() + 30, usegmt=True)
        with serve(script(Answer(status=503, headers={"Retry-After": date}), Answer())) as server:
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert 25 <= patience.slept <= 30

    def test_of_our_own_are_never_longer_than_the_longest(self, patience: Patience) -> None:
        limits = HttpLimits(longest_wait_seconds=2)
        with serve(script(Answer(status=500))) as server, pytest.raises(UnreachableError):
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)
        assert 7 <= patience.slept <= 7.5

    def test_that_are_too_long_are_not_begun(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "3600"})
        with serve(script(busy)) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/a: status 429; it asks to wait 3,600 s, the limit is 60 s"
        )
        assert "GITHUB_TOKEN" in str(caught.value.hint)
        assert len(server.asked) == 1
        assert patience.told == []


class TestWhatAServerAsksFor:
    @pytest.mark.parametrize(
        ("status", "headers", "seconds"),
        [
            pytest.param(503, {"retry-after": "7"}, 7, id="seconds"),
            pytest.param(503, {"retry-after": "1.5"}, 1.5, id="a fraction of seconds"),
            pytest.param(503, {"retry-after-ms": "250"}, 0.25, id="milliseconds"),
            pytest.param(503, {"retry-after": formatdate(NOW + 9, usegmt=True)}, 9, id="a date"),
            pytest.param(
                503,
                {
                    "retry-after": formatdate(1009, usegmt=True),
                    "date": formatdate(1000, usegmt=True),
                },
                9,
                id="a date, by the server's own clock",
            ),
            pytest.param(
                503, {"retry-after": formatdate(NOW + 9, usegmt=False)}, 9, id="a date without zone"
            ),
            pytest.param(
                403, {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}"}, 10, id="GitHub's reset"
            ),
            pytest.param(
                429,
                {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}"},
                10,
                id="its reset, of a 429",
            ),
            pytest.param(
                429,
                {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}", "retry-after": "3"},
                3,
                id="seconds before its reset",
            ),
        ],
    )
    def test_is_understood(self, status: int, headers: dict[str, str], seconds: float) -> None:
        failure = find_retryable_error(status, headers, now=NOW)
        assert failure is not None
        assert failure.asked_seconds == seconds

    @pytest.mark.parametrize(
        ("status", "headers"),
        [
            pytest.param(
                500, {"x-ratelimit-reset": f"{NOW + 9:.0f}", **USED_UP}, id="a reset beside a crash"
            ),
            pytest.param(
                429, {"x-ratelimit-reset": f"{NOW + 9:.0f}"}, id="a reset with requests left"
            ),
            pytest.param(429, {**USED_UP, "x-ratelimit-reset": "0"}, id="a reset long ago"),
            pytest.param(429, {**USED_UP, "x-ratelimit-reset": "soon"}, id="a reset in words"),
            *(
                pytest.param(429, {"retry-after": said}, id=f"{said[:20]!a}")
                for said in (
                    *("", "0", "-5", "inf", "nan", "1e3", "0x10", "\u0663", "soon"),
                    *("9" * 5000, "Mon, 99 Foo 2026", "Thu, 01 Jan 1970 00:00:00 GMT", "\x1b[31m"),
                    "Fri, 31 Dec 99999 23:59:59 GMT",
                    "Sun, 06 Nov 1994 08:49:37 +99999999999999999999",
                )
            ),
        ],
    )
    def test_without_sense_is_not_heeded(self, status: int, headers: dict[str, str]) -> None:
        failure = find_retryable_error(status, headers, now=NOW)
        assert failure is not None
        assert failure.asked_seconds is None
        assert 1 <= make_retries().compute_wait(failure) <= 1.5

    def test_may_be_what_nobody_waits_for(self) -> None:
        failure = find_retryable_error(
            429, {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, now=NOW
        )
        assert failure is not None
        assert failure.asked_seconds is not None
        assert failure.asked_seconds > 10**10
