"""Requests of the HTTP client: size limits, URLs, headers, connections and TLS."""

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentci._util.http import HttpGetter, HttpLimits
from agentci._util.http_client import HttpClient
from agentci._util.http_transport import parse_address
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.version import __version__
from tests._util.http.patience import Patience
from tests._util.http.servers import CERTIFICATE, Answer, Asked, Raw, script, serve
from tests.helpers.support import ROOT

LIMIT = 1000


@pytest.fixture
def patience() -> Patience:
    return Patience()


def test_response_has_status_headers_and_content(patience: Patience) -> None:
    answer = Answer(body=b"print(1)\n", headers={"X-Kind": "program"})
    with serve(script(answer)) as server:
        response = patience.client().get(f"{server.url}/a?b=c", limit_bytes=LIMIT)
    assert (response.status, response.content) == (200, b"print(1)\n")
    assert response.headers["x-kind"] == "program"
    assert server.paths == ["/a?b=c"]
    assert patience.told == []


def test_request_has_user_agent_and_accept_headers() -> None:
    client: HttpGetter = HttpClient(report=print)
    with serve(script(Answer())) as server:
        client.get(server.url, limit_bytes=LIMIT, headers={"Accept": "text/plain"})
    (request,) = server.asked
    assert request.method == "GET"
    assert request.headers["user-agent"] == f"agentci/{__version__}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["accept"] == "text/plain"


@pytest.mark.parametrize("status", [204, 304, 400, 401, 403, 404, 410, 501])
def test_permanent_status_is_returned_without_retry(status: int, patience: Patience) -> None:
    with serve(script(Answer(status=status))) as server:
        response = patience.client().get(server.url, limit_bytes=LIMIT)
    assert (response.status, response.content) == (status, b"")
    assert len(server.asked) == 1


def test_import_does_not_load_slow_modules() -> None:
    code = (
        "import sys; before = set(sys.modules); import agentci._util.http_client;"
        " sys.exit(bool({'requests', 'socket', 'email'} & (sys.modules.keys() - before)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


class TestSize:
    def test_response_may_be_as_large_as_limit(self, patience: Patience) -> None:
        with serve(script(Answer(body=b"x" * LIMIT))) as server:
            assert len(patience.client().get(server.url, limit_bytes=LIMIT).content) == LIMIT

    def test_content_length_over_limit_is_rejected(self, patience: Patience) -> None:
        with (
            serve(script(Answer(body=b"x" * (LIMIT + 1)))) as server,
            pytest.raises(PermanentFetchError) as caught,
        ):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/: the response is 1,001 bytes long; the limit is 1,000 bytes"
        )

    def test_error_page_is_cut_at_limit(self, patience: Patience) -> None:
        with serve(script(Answer(status=404, body=b"x" * (2 * LIMIT)))) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, len(response.content)) == (404, LIMIT)

    @pytest.mark.parametrize("size", [1, 2, 200_000])
    def test_content_of_any_size_is_complete(self, size: int, patience: Patience) -> None:
        body = bytes(index % 251 for index in range(size))
        with serve(script(Answer(body=body))) as server:
            assert patience.client().get(server.url, limit_bytes=size).content == body


class TestAddress:
    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("http://example.com/a", id="other host"),
            pytest.param("http://localhost.example.com/a", id="localhost as prefix"),
            pytest.param("http://127.0.0.1.example.com/a", id="loopback address as prefix"),
            pytest.param("http://127.0.0.1@example.com/a", id="loopback address as user name"),
            pytest.param(r"http://example.com\@127.0.0.1/a", id="ambiguous backslash"),
            pytest.param("http://10.0.0.1/a", id="private network"),
            pytest.param("http://[2001:db8::1]/a", id="IPv6"),
        ],
    )
    def test_unencrypted_url_of_other_host_is_rejected(self, url: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError, match="is not encrypted") as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert "https" in str(caught.value.hint)

    @pytest.mark.parametrize(
        "url",
        ["http://localhost:9/a", "http://LOCALHOST/a", "http://127.9.9.9/a", "http://[::1]:9/a"],
    )
    def test_loopback_url_may_be_unencrypted(self, url: str) -> None:
        address = parse_address(url)
        assert address.is_loopback
        assert address.shown == url.lower()

    @pytest.mark.parametrize(
        "url",
        ["", "a/b", "file:///etc/passwd", "ftp://example.com/a", "https://", "https:///a"],
    )
    def test_url_without_http_scheme_is_rejected(self, url: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError, match=r"is not an? (http\(s\) )?URL"):
            patience.client().get(url, limit_bytes=LIMIT)

    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("https://user:hunter2@host:x/a", id="URL with an invalid port"),
            pytest.param("https://user:hunter/2@host/a", id="password with a slash"),
            pytest.param("https://host:x/?token=hunter2", id="query"),
            pytest.param("http://user:hunter2@example.com/?token=hunter2", id="unencrypted URL"),
            pytest.param(f"https://{'x' * 70}.com/?token=hunter2", id="too long host name"),
        ],
    )
    def test_error_shows_no_secret(self, url: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert "hunter" not in f"{caught.value} {caught.value.hint}"

    def test_credentials_in_url_are_sent_but_not_shown(self, patience: Patience) -> None:
        with serve(script(Answer(status=503), Answer())) as server:
            url = server.url.replace("//", "//user:hunter2@")
            patience.client().get(f"{url}/a?token=hunter2", limit_bytes=LIMIT)
        assert server.asked[0].headers["authorization"].startswith("Basic ")
        (message,) = patience.told
        assert f"{server.url}/a: status 503;" in message

    def test_error_shows_no_control_characters(self, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get("gopher://a/\x1b[31m\nred", limit_bytes=LIMIT)
        assert str(caught.value).isprintable()


class TestHeaders:
    @pytest.mark.parametrize("value", ["token\n", "a\r\nHost: b", "t\u00f6ken", "\u2028"])
    def test_invalid_header_is_rejected_and_not_shown(self, value: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get(
                "http://127.0.0.1:9/", limit_bytes=LIMIT, headers={"Authorization": value}
            )
        assert value not in str(caught.value)
        assert "token" in str(caught.value.hint)

    def test_netrc_credentials_are_not_sent(
        self,
        patience: Patience,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        netrc = tmp_path_factory.mktemp("netrc") / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
        netrc.chmod(0o600)
        monkeypatch.setenv("NETRC", str(netrc))
        with serve(script(Answer(status=302, headers={"Location": "/b"}), Answer())) as server:
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert server.paths == ["/a", "/b"]
        assert [each for each in server.asked if "authorization" in each.headers] == []

    def test_cookies_are_not_kept(self, patience: Patience) -> None:
        client = patience.client()
        with serve(script(Answer(headers={"Set-Cookie": "a=b"}))) as server:
            for _ in range(2):
                client.get(server.url, limit_bytes=LIMIT)
        assert "cookie" not in server.asked[1].headers


class TestManyRequests:
    def test_connection_is_reused(self, patience: Patience) -> None:
        client = patience.client()
        bodies = [b"", b"x", b"xy", b"x" * 100_000]
        answers = [Answer(body=body) for body in bodies]
        answers += [Answer(status=304), Answer(status=404, body=b"gone"), Answer(body=b"last")]
        with serve(script(*answers)) as server:
            for _ in answers:
                client.get(server.url, limit_bytes=10**6)
        assert {asked.connection for asked in server.asked} == {0}

    def test_parallel_requests_get_their_own_responses(self, patience: Patience) -> None:
        client = patience.client()

        def echo(asked: Asked) -> Answer:
            return Answer(body=asked.path.encode() * 500)

        paths = [f"/{number:03}" for number in range(128)]
        with serve(echo) as server, ThreadPoolExecutor(16) as pool:
            contents = pool.map(
                lambda path: client.get(server.url + path, limit_bytes=10**4).content, paths
            )
            assert list(contents) == [path.encode() * 500 for path in paths]
        assert len({asked.connection for asked in server.asked}) <= 16


class TestTls:
    def test_untrusted_certificate_is_not_retried(self, patience: Patience) -> None:
        with (
            serve(script(Answer(body=b"x")), tls=True) as server,
            pytest.raises(UnreachableError) as caught,
        ):
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert str(caught.value) == (f"{server.url}/a: TLS failed (self-signed certificate)")
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)
        assert (server.asked, patience.told) == ([], [])

    def test_server_without_tls_is_not_retried(self, patience: Patience) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            greeting = pool.submit(_greet, listener, b"220 this is a server for mail\r\n")
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(UnreachableError, match=r"TLS failed \([a-z ]+\)$"):
                patience.client().get(url, limit_bytes=LIMIT)
            greeting.result()
        assert patience.told == []

    def test_hang_up_during_handshake_is_retried(self, patience: Patience) -> None:
        limits = HttpLimits(tries=2)
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            greetings = [pool.submit(_greet, listener, b"") for _ in range(limits.tries)]
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(UnreachableError, match="the response is incomplete"):
                patience.client(limits=limits).get(url, limit_bytes=LIMIT)
            assert [greeting.result() for greeting in greetings] == [None, None]

    def test_hang_up_after_handshake_is_retried(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
        with serve(script(Raw(pieces=[]), Answer(body=b"x")), tls=True) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"x"
        assert "the response is incomplete" in patience.told[0]

    def test_custom_ca_bundle_is_trusted(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
        client = patience.client()
        with serve(script(Answer(body=b"x" * 100_000)), tls=True) as server:
            contents = [client.get(server.url, limit_bytes=10**6).content for _ in range(2)]
        assert contents == [b"x" * 100_000] * 2
        assert {asked.connection for asked in server.asked} == {0}

    def test_ca_bundle_without_certificates_is_reported(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", __file__)
        with (
            serve(script(Answer()), tls=True) as server,
            pytest.raises(UnreachableError, match=r"TLS failed \(no certificate") as caught,
        ):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)

    def test_missing_ca_bundle_is_reported(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
        with pytest.raises(
            UnreachableError, match=r"cannot read the certificates in /nowhere/ca\.pem"
        ) as caught:
            patience.client().get("https://127.0.0.1:9/", limit_bytes=LIMIT)
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)


def _greet(listener: socket.socket, data: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(data)
        connection.recv(10_000)
