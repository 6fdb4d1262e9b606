"""Broken, slow, oversized and malformed responses, failed connections and interrupts."""

import gzip
import threading
from collections.abc import Iterator

import pytest

from agentci._util.http import HttpLimits
from agentci.errors import PermanentFetchError, UnreachableError
from tests._util.http.patience import Patience, after
from tests._util.http.servers import (
    Answer,
    Asked,
    Raw,
    full_port,
    head,
    refused_port,
    script,
    serve,
)
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

LIMIT = 1000
GOOD = Answer(body=b"good")


@pytest.fixture
def patience() -> Patience:
    return Patience()


def _raw(*pieces: bytes, resets: bool = False) -> Raw:
    return Raw(pieces=pieces, resets=resets)


def _drip(*pieces: bytes, drop: bytes = b"x") -> Raw:
    return Raw(pieces=pieces, endlessly=drop, pause_seconds=0.02)


BROKEN = {
    "truncated": _raw(head(200, "Content-Length: 10"), b"12345"),
    "last byte missing": _raw(head(200, "Content-Length: 10"), b"123456789"),
    "reset in body": _raw(head(200, "Content-Length: 10"), b"12345", resets=True),
    "cut between chunks": _raw(head(200, "Transfer-Encoding: chunked"), b"5\r\n12345\r\n"),
    "cut inside a chunk": _raw(head(200, "Transfer-Encoding: chunked"), b"9\r\n12345"),
    "chunk without length": _raw(
        head(200, "Transfer-Encoding: chunked"), b"many\r\n12345\r\n0\r\n\r\n"
    ),
    "longer than Content-Length": _raw(head(200, "Content-Length: 4"), b"12345"),
    "one byte too long": _raw(head(200, "Content-Length: 1"), b"12"),
    "no Content-Length": _raw(head(200), b"12345"),
    "two different lengths": _raw(head(200, "Content-Length: 4", "Content-Length: 5"), b"12345"),
    "one length twice": _raw(head(200, "Content-Length: 5", "Content-Length: 5"), b"12345"),
    "length and chunks": _raw(
        head(200, "Content-Length: 5", "Transfer-Encoding: chunked"), b"5\r\n12345\r\n0\r\n\r\n"
    ),
    "negative length": _raw(head(200, "Content-Length: -5"), b"12345"),
    "length in words": _raw(head(200, "Content-Length: five"), b"12345"),
    "length with underscore": _raw(head(200, "Content-Length: 0_5"), b"12345"),
    "Transfer-Encoding with trailing space": _raw(
        head(200, "Transfer-Encoding: chunked "), b"5\r\n12345\r\n0\r\n\r\n"
    ),
    "unknown Transfer-Encoding": _raw(head(200, "Transfer-Encoding: gzip"), b"12345"),
    "empty": _raw(),
    "reset at once": _raw(resets=True),
    "not HTTP": _raw(b"220 this is a server for mail\r\n"),
    "too many headers": _raw(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 200, b"\r\n"),
    "too long header": _raw(b"HTTP/1.1 200 OK\r\n", b"a" * 100_000, b"\r\n\r\n"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
class TestBrokenResponse:
    def test_broken_response_is_retried(self, broken: Raw, patience: Patience) -> None:
        with serve(script(broken, GOOD)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"
        (message,) = patience.told
        assert "; retrying in 1" in message
        assert message.endswith(" s (1/5)")

    def test_repeated_broken_response_is_reported(self, broken: Raw, patience: Patience) -> None:
        with serve(script(broken)) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a?token=hunter2", limit_bytes=LIMIT)
        assert len(server.asked) == 5
        assert len(patience.told) == 4
        message = str(caught.value)
        assert message.startswith(f"{server.url}/a: the response ")
        assert message.endswith(" (5 attempts)")
        assert caught.value.hint


class TestResponse:
    def test_extra_data_does_not_start_next_response(self, patience: Patience) -> None:
        client = patience.client()
        was_sent = threading.Event()

        def pieces() -> Iterator[bytes]:
            yield head(200, "Content-Length: 4")
            yield b"good"
            yield head(200, "Content-Length: 4") + b"evil"
            was_sent.set()

        with serve(script(Raw(pieces=pieces(), pause_seconds=0.05), GOOD)) as server:
            assert client.get(server.url, limit_bytes=LIMIT).content == b"good"
            assert was_sent.wait(NO_TIMEOUT_SECONDS)
            assert client.get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_chunked_response_is_joined(self, patience: Patience) -> None:
        chunks = [b"5\r\n12345\r\n", b"3;a=b\r\n678\r\n", b"0\r\n", b"\r\n"]
        with serve(script(_raw(head(200, "Transfer-Encoding: chunked"), *chunks))) as server:
            assert patience.client().get(server.url, limit_bytes=8).content == b"12345678"

    def test_endless_response_is_rejected(self, patience: Patience) -> None:
        chunk = b"fff\r\n" + b"x" * 0xFFF + b"\r\n"
        flood = Raw(pieces=[head(200, "Transfer-Encoding: chunked")], endlessly=chunk)
        with serve(script(flood)) as server, pytest.raises(PermanentFetchError) as caught:
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert (
            str(caught.value)
            == f"{server.url}/: the response is too long; the limit is 1,000 bytes"
        )

    def test_endless_error_page_is_cut(self, patience: Patience) -> None:
        flood = Raw(pieces=[head(404)], endlessly=b"x" * 100)
        with serve(script(flood)) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, response.content) == (404, b"x" * LIMIT)

    @pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "identity, gzip", "\x1b[31m" * 99])
    def test_compressed_response_is_rejected(self, encoding: str, patience: Patience) -> None:
        bomb = gzip.compress(b"\0" * 10**6)
        answer = Answer(body=bomb, headers={"Content-Encoding": encoding})
        with serve(script(answer)) as server, pytest.raises(PermanentFetchError) as caught:
            patience.client().get(server.url, limit_bytes=10**5)
        assert ": the response is compressed (" in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 200

    def test_compressed_error_page_is_not_read(self, patience: Patience) -> None:
        answer = Answer(status=404, body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
        with serve(script(answer)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b""

    @pytest.mark.parametrize(
        "line",
        [
            b"Set-Cookie: \x00\xff=;;expires=99999; domain=",
            b"Content-Type: text/plain; charset=\xff\x00; charset",
            b"X-A: \x1b[31m\x9b\xc2\x9b",
            b"X-A: b\rX-B: c",
            b"X-A: b\n c",
            b": without a name",
            b"without a colon",
            b"\x00\x00: \x00",
            b"Link: <" + b"<" * 60_000,
            b"Date: Sun, 99 Nov 9999999999 08:49:37 GMT",
            b"Keep-Alive: timeout=-1",
            b"Connection: \xff",
        ],
    )
    def test_malformed_headers_are_ignored(self, line: bytes, patience: Patience) -> None:
        headers = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" + line + b"\r\n\r\n"
        with serve(script(_raw(headers, b"good"))) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_identity_encoding_is_accepted(self, patience: Patience) -> None:
        answer = Answer(body=b"x", headers={"Content-Encoding": "Identity"})
        with serve(script(answer)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"x"

    def test_status_without_body_ignores_content_length(self, patience: Patience) -> None:
        with serve(script(_raw(head(304, "Content-Length: 5000")))) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, response.content) == (304, b"")


class TestTimeout:
    @pytest.mark.parametrize(
        "slow",
        [
            pytest.param(_drip(head(200, "Content-Length: 1000")), id="a byte at a time"),
            pytest.param(
                _drip(head(200, "Transfer-Encoding: chunked"), drop=b"1\r\nx\r\n"),
                id="a chunk at a time",
            ),
            pytest.param(_drip(b"HTTP/1.1 200 OK\r\nX-A: "), id="inside a header"),
        ],
    )
    def test_dripping_response_times_out(self, slow: Raw, patience: Patience) -> None:
        limits = HttpLimits(tries=2, document_seconds=0.3)
        with serve(script(slow)) as server, pytest.raises(UnreachableError) as caught:
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/: no complete response within 0.3 s (2 attempts)"
        )

    @pytest.mark.parametrize(
        "sent", [b"", head(200, "Content-Length: 9"), head(200, "Content-Length: 9") + b"12345678"]
    )
    def test_silent_server_times_out(self, sent: bytes, patience: Patience) -> None:
        silent = Raw(pieces=[sent, b""], pause_seconds=60)
        limits = HttpLimits(tries=2, silence_seconds=0.1)
        with (
            serve(script(silent)) as server,
            pytest.raises(UnreachableError, match=r"no data for 0\.1 s \(2 attempts\)$"),
        ):
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)

    def test_slow_response_within_limits_is_read(self, patience: Patience) -> None:
        slow = Raw(
            pieces=[head(200, "Content-Length: 5"), *(b"%d" % i for i in range(5))],
            pause_seconds=0.02,
        )
        with serve(script(slow)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"01234"

    def test_full_backlog_times_out(self, patience: Patience) -> None:
        limits = HttpLimits(tries=1, connect_seconds=0.1)
        with (
            full_port() as port,
            pytest.raises(UnreachableError, match=r"no connection within 0\.1 s"),
        ):
            patience.client(limits=limits).get(f"http://127.0.0.1:{port}/", limit_bytes=LIMIT)


class TestConnection:
    def test_refused_connection_is_retried(self, patience: Patience) -> None:
        url = f"http://127.0.0.1:{refused_port()}/a"
        with pytest.raises(UnreachableError) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert str(caught.value) == (f"{url}: connection refused (5 attempts)")
        assert len(patience.told) == 4

    def test_unresolved_host_is_retried(self, patience: Patience) -> None:
        # Too long for a DNS query.
        url = f"https://{'a.' * 130}b/"
        with pytest.raises(
            UnreachableError, match=r"cannot resolve a\..*b \(5 attempts\)"
        ) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert len(patience.told) == 4
        assert "name" in str(caught.value.hint)

    def test_dead_kept_connection_is_replaced(self, patience: Patience) -> None:
        client = patience.client()
        with serve(script(_raw(head(200, "Content-Length: 4"), b"good"), GOOD)) as server:
            for _ in range(2):
                assert client.get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_unreachable_proxy_is_retried(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{refused_port()}")
        with pytest.raises(UnreachableError, match="the proxy did not connect") as caught:
            patience.client().get("https://example.invalid/a", limit_bytes=LIMIT)
        assert "HTTPS_PROXY" in str(caught.value.hint)
        assert len(patience.told) == 4

    @pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "http://", "http://["])
    def test_invalid_proxy_address_is_not_retried(
        self, proxy: str, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(UnreachableError, match="the proxy's address is invalid") as caught:
            patience.client().get("https://example.invalid/a", limit_bytes=LIMIT)
        assert "HTTPS_PROXY" in str(caught.value.hint)
        assert patience.told == []

    def test_loopback_request_bypasses_proxy(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refused_port()}")
        with serve(script(GOOD)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_secrets_are_not_sent_to_proxy(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with serve(script(Answer(status=407))) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//user:hunter2@"))
            with pytest.raises(UnreachableError) as caught:
                patience.client().get(
                    "https://example.invalid/a", limit_bytes=LIMIT, headers={"X-Token": "hunter3"}
                )
        assert "hunter" not in f"{caught.value} {caught.value.hint} {patience.told}"
        assert "hunter3" not in str(proxy.asked)


class TestInterruption:
    def test_interrupt_before_first_request_sends_nothing(self, patience: Patience) -> None:
        with (
            serve(script(GOOD)) as server,
            pytest.raises(UnreachableError, match=r"^was interrupted$"),
        ):
            patience.client(stopped=after(0)).get(server.url, limit_bytes=LIMIT)
        assert server.asked == []

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(Raw(pieces=[b""], pause_seconds=60), id="while the server is silent"),
            pytest.param(_drip(head(200, "Content-Length: 1000")), id="while bytes drip"),
        ],
    )
    def test_interrupt_stops_read_promptly(self, answer: Raw, patience: Patience) -> None:
        asked = threading.Event()

        def respond(_: Asked) -> Raw:
            asked.set()
            return answer

        with serve(respond) as server, pytest.raises(UnreachableError, match=r"^was interrupted$"):
            patience.client(stopped=asked.is_set).get(server.url, limit_bytes=LIMIT)

    def test_interrupt_stops_wait_promptly(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "50"})
        with (
            serve(script(busy)) as server,
            pytest.raises(UnreachableError, match=r"^was interrupted$"),
        ):
            patience.client(stopped=lambda: patience.slept > 3).get(server.url, limit_bytes=LIMIT)
        assert 3 < patience.slept < 3.5

    def test_interrupt_at_end_of_wait_sends_nothing(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "1"})
        with serve(script(busy, GOOD)) as server, pytest.raises(UnreachableError):
            patience.client(stopped=lambda: patience.slept >= 0.95).get(
                server.url, limit_bytes=LIMIT
            )
        assert len(server.asked) == 1
