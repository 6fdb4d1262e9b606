"""Servers break off, stall, lie and flood: what they send then is never taken for a document."""

import gzip
import threading
import time
from collections.abc import Iterator

import pytest

from agentci._util.http.interface import HttpLimits
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

LIMIT = 1000
GOOD = Answer(body=b"good")
# Far more than anything here takes, and far less than what is served would.
PROMPTLY_SECONDS = 5


@pytest.fixture
def patience() -> Patience:
    return Patience()


def _raw(*pieces: bytes, resets: bool = False) -> Raw:
    return Raw(pieces=pieces, resets=resets)


def _drip(*pieces: bytes, drop: bytes = b"x") -> Raw:
    return Raw(pieces=pieces, endlessly=drop, pause_seconds=0.02)


BROKEN = {
    "which is cut off": _raw(head(200, "Content-Length: 10"), b"12345"),
    "which is cut off before its last byte": _raw(head(200, "Content-Length: 10"), b"123456789"),
    "which is reset": _raw(head(200, "Content-Length: 10"), b"12345", resets=True),
    "which is cut off between chunks": _raw(
        head(200, "Transfer-Encoding: chunked"), b"5\r\n12345\r\n"
    ),
    "which is cut off inside a chunk": _raw(head(200, "Transfer-Encoding: chunked"), b"9\r\n12345"),
    "whose chunks have no length": _raw(
        head(200, "Transfer-Encoding: chunked"), b"many\r\n12345\r\n0\r\n\r\n"
    ),
    "which is longer than it says": _raw(head(200, "Content-Length: 4"), b"12345"),
    "of one byte which is longer than it says": _raw(head(200, "Content-Length: 1"), b"12"),
    "which does not say how long it is": _raw(head(200), b"12345"),
    "which says two lengths": _raw(head(200, "Content-Length: 4", "Content-Length: 5"), b"12345"),
    "which says one length twice": _raw(
        head(200, "Content-Length: 5", "Content-Length: 5"), b"12345"
    ),
    "which says its length in two ways": _raw(
        head(200, "Content-Length: 5", "Transfer-Encoding: chunked"), b"5\r\n12345\r\n0\r\n\r\n"
    ),
    "which says a negative length": _raw(head(200, "Content-Length: -5"), b"12345"),
    "which says its length in words": _raw(head(200, "Content-Length: five"), b"12345"),
    "which says its length as Python would": _raw(head(200, "Content-Length: 0_5"), b"12345"),
    "whose chunks are announced with a space too many": _raw(
        head(200, "Transfer-Encoding: chunked "), b"5\r\n12345\r\n0\r\n\r\n"
    ),
    "which is sent in an unknown way": _raw(head(200, "Transfer-Encoding: gzip"), b"12345"),
    "which is none": _raw(),
    "which is reset at once": _raw(resets=True),
    "which is not of the web": _raw(b"220 this is a server for mail\r\n"),
    "with headers without end": _raw(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 200, b"\r\n"),
    "with a header without end": _raw(b"HTTP/1.1 200 OK\r\n", b"a" * 100_000, b"\r\n\r\n"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
class TestAnAnswer:
    def test_is_asked_for_again(self, broken: Raw, patience: Patience) -> None:
        with serve(script(broken, GOOD)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"
        (told,) = patience.told
        assert "; retrying in 1" in told
        assert told.endswith(" s (1/5)")

    def test_is_given_up_when_it_is_always_the_same(self, broken: Raw, patience: Patience) -> None:
        with serve(script(broken)) as server, pytest.raises(UnreachableError) as caught:
            patience.client().get(f"{server.url}/a?token=hunter2", limit_bytes=LIMIT)
        assert len(server.asked) == 5
        assert len(patience.told) == 4
        said = str(caught.value)
        assert said.startswith(f"{server.url}/a: the response ")
        assert said.endswith(" (5 attempts)")
        assert caught.value.hint


class TestWhatIsSent:
    def test_behind_a_document_does_not_start_the_next_one(self, patience: Patience) -> None:
        client = patience.client()
        has_come = threading.Event()

        def pieces() -> Iterator[bytes]:
            yield head(200, "Content-Length: 4")
            yield b"good"
            yield head(200, "Content-Length: 4") + b"evil"
            has_come.set()

        with serve(script(Raw(pieces=pieces(), pause_seconds=0.05), GOOD)) as server:
            assert client.get(server.url, limit_bytes=LIMIT).content == b"good"
            assert has_come.wait(PROMPTLY_SECONDS)
            assert client.get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_in_chunks_is_put_together(self, patience: Patience) -> None:
        chunks = [b"5\r\n12345\r\n", b"3;a=b\r\n678\r\n", b"0\r\n", b"\r\n"]
        with serve(script(_raw(head(200, "Transfer-Encoding: chunked"), *chunks))) as server:
            assert patience.client().get(server.url, limit_bytes=8).content == b"12345678"

    def test_without_end_is_refused(self, patience: Patience) -> None:
        chunk = b"fff\r\n" + b"x" * 0xFFF + b"\r\n"
        flood = Raw(pieces=[head(200, "Transfer-Encoding: chunked")], endlessly=chunk)
        with serve(script(flood)) as server, pytest.raises(PermanentFetchError) as caught:
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert (
            str(caught.value)
            == f"{server.url}/: the response is too long; the limit is 1,000 bytes"
        )

    def test_on_an_error_page_without_end_is_cut(self, patience: Patience) -> None:
        flood = Raw(pieces=[head(404)], endlessly=b"x" * 100)
        with serve(script(flood)) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, response.content) == (404, b"x" * LIMIT)

    @pytest.mark.parametrize("packing", ["gzip", "GZIP", "br", "identity, gzip", "\x1b[31m" * 99])
    def test_packed_is_refused_and_not_unpacked(self, packing: str, patience: Patience) -> None:
        bomb = gzip.compress(b"\0" * 10**6)
        answer = Answer(body=bomb, headers={"Content-Encoding": packing})
        with serve(script(answer)) as server, pytest.raises(PermanentFetchError) as caught:
            patience.client().get(server.url, limit_bytes=10**5)
        assert ": the response is compressed (" in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 200

    def test_packed_on_an_error_page_is_left(self, patience: Patience) -> None:
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
    def test_beside_headers_without_sense_is_an_answer(
        self, line: bytes, patience: Patience
    ) -> None:
        headers = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" + line + b"\r\n\r\n"
        with serve(script(_raw(headers, b"good"))) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_as_it_is_may_be_called_identity(self, patience: Patience) -> None:
        answer = Answer(body=b"x", headers={"Content-Encoding": "Identity"})
        with serve(script(answer)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"x"

    def test_with_a_status_that_has_no_body_is_nothing_whatever_its_length(
        self, patience: Patience
    ) -> None:
        with serve(script(_raw(head(304, "Content-Length: 5000")))) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, response.content) == (304, b"")


class TestSlowness:
    @pytest.mark.parametrize(
        "slow",
        [
            pytest.param(_drip(head(200, "Content-Length: 1000")), id="a byte at a time"),
            pytest.param(
                _drip(head(200, "Transfer-Encoding: chunked"), drop=b"1\r\nx\r\n"),
                id="a chunk at a time",
            ),
            pytest.param(_drip(b"HTTP/1.1 200 OK\r\nX-A: "), id="in the middle of a header"),
        ],
    )
    def test_has_an_end(self, slow: Raw, patience: Patience) -> None:
        limits = HttpLimits(tries=2, document_seconds=0.3)
        begun = time.monotonic()
        with serve(script(slow)) as server, pytest.raises(UnreachableError) as caught:
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/: no complete response within 0.3 s (2 attempts)"
        )
        assert time.monotonic() - begun < PROMPTLY_SECONDS

    @pytest.mark.parametrize(
        "sent", [b"", head(200, "Content-Length: 9"), head(200, "Content-Length: 9") + b"12345678"]
    )
    def test_of_a_server_that_falls_silent_has_an_end(
        self, sent: bytes, patience: Patience
    ) -> None:
        silent = Raw(pieces=[sent, b""], pause_seconds=60)
        limits = HttpLimits(tries=2, silence_seconds=0.1)
        with (
            serve(script(silent)) as server,
            pytest.raises(UnreachableError, match=r"no data for 0\.1 s \(2 attempts\)$"),
        ):
            patience.client(limits=limits).get(server.url, limit_bytes=LIMIT)

    def test_that_stays_within_the_limits_is_borne(self, patience: Patience) -> None:
        slow = Raw(
            pieces=[head(200, "Content-Length: 5"), *(b"%d" % i for i in range(5))],
            pause_seconds=0.02,
        )
        with serve(script(slow)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"01234"

    def test_of_a_server_that_takes_no_connection_has_an_end(self, patience: Patience) -> None:
        limits = HttpLimits(tries=1, connect_seconds=0.1)
        with (
            full_port() as port,
            pytest.raises(UnreachableError, match=r"no connection within 0\.1 s"),
        ):
            patience.client(limits=limits).get(f"http://127.0.0.1:{port}/", limit_bytes=LIMIT)


class TestConnections:
    def test_that_are_refused_are_tried_again(self, patience: Patience) -> None:
        url = f"http://127.0.0.1:{refused_port()}/a"
        with pytest.raises(UnreachableError) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert str(caught.value) == (f"{url}: connection refused (5 attempts)")
        assert len(patience.told) == 4

    def test_to_names_that_are_not_found_are_tried_again(self, patience: Patience) -> None:
        # Too long to be asked of any server of names.
        url = f"https://{'a.' * 130}b/"
        with pytest.raises(
            UnreachableError, match=r"cannot resolve a\..*b \(5 attempts\)"
        ) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert len(patience.told) == 4
        assert "name" in str(caught.value.hint)

    def test_that_were_kept_and_are_dead_are_replaced(self, patience: Patience) -> None:
        client = patience.client()
        with serve(script(_raw(head(200, "Content-Length: 4"), b"good"), GOOD)) as server:
            for _ in range(2):
                assert client.get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_through_a_proxy_that_is_away_are_tried_again(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{refused_port()}")
        with pytest.raises(UnreachableError, match="the proxy did not connect") as caught:
            patience.client().get("https://example.invalid/a", limit_bytes=LIMIT)
        assert "HTTPS_PROXY" in str(caught.value.hint)
        assert len(patience.told) == 4

    @pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "http://", "http://["])
    def test_through_a_proxy_that_makes_no_sense_are_not(
        self, proxy: str, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(UnreachableError, match="the proxy's address is invalid") as caught:
            patience.client().get("https://example.invalid/a", limit_bytes=LIMIT)
        assert "HTTPS_PROXY" in str(caught.value.hint)
        assert patience.told == []

    def test_to_this_machine_go_through_no_proxy(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refused_port()}")
        with serve(script(GOOD)) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"good"

    def test_to_whom_a_proxy_leads_are_told_no_secret_of_another(
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
    def test_before_the_first_request_asks_nobody(self, patience: Patience) -> None:
        with (
            serve(script(GOOD)) as server,
            pytest.raises(UnreachableError, match=r"^was interrupted$"),
        ):
            patience.client(stopped=after(0)).get(server.url, limit_bytes=LIMIT)
        assert server.asked == []

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(Raw(pieces=[b""], pause_seconds=60), id="while nothing comes"),
            pytest.param(_drip(head(200, "Content-Length: 1000")), id="while it drips"),
        ],
    )
    def test_ends_a_read_within_a_moment(self, answer: Raw, patience: Patience) -> None:
        asked = threading.Event()

        def respond(_: Asked) -> Raw:
            asked.set()
            return answer

        begun = time.monotonic()
        with serve(respond) as server, pytest.raises(UnreachableError, match=r"^was interrupted$"):
            patience.client(stopped=asked.is_set).get(server.url, limit_bytes=LIMIT)
        assert time.monotonic() - begun < PROMPTLY_SECONDS

    def test_ends_a_wait_within_a_moment(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "50"})
        with (
            serve(script(busy)) as server,
            pytest.raises(UnreachableError, match=r"^was interrupted$"),
        ):
            patience.client(stopped=lambda: patience.slept > 3).get(server.url, limit_bytes=LIMIT)
        assert 3 < patience.slept < 3.5

    def test_in_the_last_moment_of_a_wait_asks_nobody(self, patience: Patience) -> None:
        busy = Answer(status=429, headers={"Retry-After": "1"})
        with serve(script(busy, GOOD)) as server, pytest.raises(UnreachableError):
            patience.client(stopped=lambda: patience.slept >= 0.95).get(
                server.url, limit_bytes=LIMIT
            )
        assert len(server.asked) == 1
