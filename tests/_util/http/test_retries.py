"""Retries after temporary failures, and the waits between them."""

import time
from email.utils import formatdate

import pytest

from agentci._util.http import DEFAULT_LIMITS, HttpLimits, Retries, find_retryable_error
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
    def test_temporary_status_is_retried(self, status: int, patience: Patience) -> None:
        with serve(script(Answer(status=status), Answer(body=b"good"))) as server:
            assert patience.client().get(f"{server.url}/a", limit_bytes=LIMIT).content == b"good"
        (message,) = patience.told
        assert message.startswith(f"{server.url}/a: status {status}; retrying in 1")
        assert message.endswith(" s (1/5)")

    def test_repeated_temporary_status_is_reported(self, patience: Patience) -> None:
        with serve(script(Answer(status=503))) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a?b=c", limit_bytes=LIMIT)
        assert str(caught.value) == (f"{server.url}/a: status 503 (5 attempts)")
        assert "later" in str(caught.value.hint)
        assert len(server.asked) == 5

    def test_single_attempt_fails_without_wait(self, patience: Patience) -> None:
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
            pytest.param(USED_UP, id="no requests left"),
            pytest.param({"Retry-After": "1"}, id="Retry-After"),
        ],
    )
    def test_github_rate_limit_is_retried(
        self, headers: dict[str, str], patience: Patience
    ) -> None:
        limited = Answer(status=403, headers=headers)
        with serve(script(limited, Answer(body=b"good"))) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_forbidden_status_is_not_retried(self, patience: Patience) -> None:
        forbidden = Answer(status=403, headers={"x-ratelimit-remaining": "10"})
        with serve(script(forbidden)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).status == 403
        assert len(server.asked) == 1


class TestWait:
    def test_waits_double_and_are_randomized(self) -> None:
        failure = find_retryable_error(500, {}, now=NOW)
        assert failure is not None
        retries = make_retries()
        for least in (1, 2, 4, 8):
            waits = {retries.compute_wait(failure) for _ in range(50)}
            assert least <= min(waits)
            assert max(waits) <= 1.5 * least
            assert len(waits) > 10
            retries.start_retry(failure, least)

    def test_total_wait_is_within_limits(self, patience: Patience) -> None:
        with serve(script(Answer(status=500))) as server, pytest.raises(UnreachableError):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert 15 <= patience.slept <= 22.5

    def test_retry_after_seconds_are_waited(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "4"})
        with serve(script(busy, Answer())) as server:
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert patience.told == [f"{server.url}/a: status 429; retrying in 4 s (1/5)"]
        assert patience.slept == pytest.approx(4)

    def test_retry_after_date_is_waited(self, patience: Patience) -> None:
        date = formatdate(time.time() + 30, usegmt=True)
        with serve(script(Answer(status=503, headers={"Retry-After": date}), Answer())) as server:
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert 25 <= patience.slept <= 30

    def test_own_waits_have_an_upper_limit(self, patience: Patience) -> None:
        limits = HttpLimits(longest_wait_seconds=2)
        with serve(script(Answer(status=500))) as server, pytest.raises(UnreachableError):
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)
        assert 7 <= patience.slept <= 7.5

    def test_too_long_retry_after_is_not_waited(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "3600"})
        with serve(script(busy)) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/a: status 429; it asks to wait 3,600 s, the limit is 60 s"
        )
        assert "GITHUB_TOKEN" in str(caught.value.hint)
        assert len(server.asked) == 1
        assert patience.told == []


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("status", "headers", "seconds"),
        [
            pytest.param(503, {"retry-after": "7"}, 7, id="seconds"),
            pytest.param(503, {"retry-after": "1.5"}, 1.5, id="fraction of a second"),
            pytest.param(503, {"retry-after-ms": "250"}, 0.25, id="milliseconds"),
            pytest.param(503, {"retry-after": formatdate(NOW + 9, usegmt=True)}, 9, id="date"),
            pytest.param(
                503,
                {
                    "retry-after": formatdate(1009, usegmt=True),
                    "date": formatdate(1000, usegmt=True),
                },
                9,
                id="date by the server clock",
            ),
            pytest.param(
                503, {"retry-after": formatdate(NOW + 9, usegmt=False)}, 9, id="date without zone"
            ),
            pytest.param(
                403,
                {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}"},
                10,
                id="GitHub reset with 403",
            ),
            pytest.param(
                429,
                {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}"},
                10,
                id="GitHub reset with 429",
            ),
            pytest.param(
                429,
                {**USED_UP, "x-ratelimit-reset": f"{NOW + 9:.0f}", "retry-after": "3"},
                3,
                id="Retry-After before GitHub reset",
            ),
        ],
    )
    def test_retry_after_value_is_parsed(
        self, status: int, headers: dict[str, str], seconds: float
    ) -> None:
        failure = find_retryable_error(status, headers, now=NOW)
        assert failure is not None
        assert failure.asked_seconds == seconds

    @pytest.mark.parametrize(
        ("status", "headers"),
        [
            pytest.param(
                500, {"x-ratelimit-reset": f"{NOW + 9:.0f}", **USED_UP}, id="reset with status 500"
            ),
            pytest.param(
                429, {"x-ratelimit-reset": f"{NOW + 9:.0f}"}, id="reset with requests left"
            ),
            pytest.param(429, {**USED_UP, "x-ratelimit-reset": "0"}, id="reset in the past"),
            pytest.param(429, {**USED_UP, "x-ratelimit-reset": "soon"}, id="reset in words"),
            *(
                pytest.param(429, {"retry-after": value}, id=f"{value[:20]!a}")
                for value in (
                    *("", "0", "-5", "inf", "nan", "1e3", "0x10", "\u0663", "soon"),
                    *("9" * 5000, "Mon, 99 Foo 2026", "Thu, 01 Jan 1970 00:00:00 GMT", "\x1b[31m"),
                    "Fri, 31 Dec 99999 23:59:59 GMT",
                    "Sun, 06 Nov 1994 08:49:37 +99999999999999999999",
                )
            ),
        ],
    )
    def test_invalid_retry_after_value_is_ignored(
        self, status: int, headers: dict[str, str]
    ) -> None:
        failure = find_retryable_error(status, headers, now=NOW)
        assert failure is not None
        assert failure.asked_seconds is None
        assert 1 <= make_retries().compute_wait(failure) <= 1.5

    def test_far_future_date_gives_long_wait(self) -> None:
        failure = find_retryable_error(
            429, {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, now=NOW
        )
        assert failure is not None
        assert failure.asked_seconds is not None
        assert failure.asked_seconds > 10**10
