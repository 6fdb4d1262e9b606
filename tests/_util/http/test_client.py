"""Documents come whole, from whom they were asked of, or not at all."""

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentci._util.http.addresses import parse_address
from agentci._util.http.client import HttpClient
from agentci._util.http.interface import HttpGetter, HttpLimits
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.version import __version__
from tests._util.http.patience import Patience
from tests._util.http.servers import CERTIFICATE, Answer, Asked, Raw, script, serve
from tests.helpers.support import ROOT

LIMIT = 1000


@pytest.fixture
def patience() -> Patience:
    return Patience()


def test_a_document_comes_with_its_status_and_its_headers(patience: Patience) -> None:
    answer = Answer(body=b"print(1)\n", headers={"X-Kind": "program"})
    with serve(script(answer)) as server:
        response = patience.client().get(f"{server.url}/a?b=c", limit_bytes=LIMIT)
    assert (response.status, response.content) == (200, b"print(1)\n")
    assert response.headers["x-kind"] == "program"
    assert server.paths == ["/a?b=c"]
    assert patience.told == []


def test_a_server_is_told_who_asks_and_what_is_understood() -> None:
    client: HttpGetter = HttpClient(report=print)
    with serve(script(Answer())) as server:
        client.get(server.url, limit_bytes=LIMIT, headers={"Accept": "text/plain"})
    (asked,) = server.asked
    assert asked.method == "GET"
    assert asked.headers["user-agent"] == f"agentci/{__version__}"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["accept"] == "text/plain"


@pytest.mark.parametrize("status", [204, 304, 400, 401, 403, 404, 410, 501])
def test_an_answer_that_no_try_would_mend_is_returned(status: int, patience: Patience) -> None:
    with serve(script(Answer(status=status))) as server:
        response = patience.client().get(server.url, limit_bytes=LIMIT)
    assert (response.status, response.content) == (status, b"")
    assert len(server.asked) == 1


def test_importing_it_does_not_import_what_is_slow_to_import() -> None:
    code = (
        "import sys; before = set(sys.modules); import agentci._util.http.client;"
        " sys.exit(bool({'requests', 'socket', 'email'} & (sys.modules.keys() - before)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


class TestSize:
    def test_a_document_may_be_as_large_as_the_limit(self, patience: Patience) -> None:
        with serve(script(Answer(body=b"x" * LIMIT))) as server:
            assert len(patience.client().get(server.url, limit_bytes=LIMIT).content) == LIMIT

    def test_one_that_says_that_it_is_larger_is_refused(self, patience: Patience) -> None:
        with (
            serve(script(Answer(body=b"x" * (LIMIT + 1)))) as server,
            pytest.raises(PermanentFetchError) as caught,
        ):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert str(caught.value) == (
            f"{server.url}/: the response is 1,001 bytes long; the limit is 1,000 bytes"
        )

    def test_the_rest_of_an_error_page_is_left(self, patience: Patience) -> None:
        with serve(script(Answer(status=404, body=b"x" * (2 * LIMIT)))) as server:
            response = patience.client().get(server.url, limit_bytes=LIMIT)
        assert (response.status, len(response.content)) == (404, LIMIT)

    @pytest.mark.parametrize("size", [1, 2, 200_000])
    def test_all_of_a_document_comes(self, size: int, patience: Patience) -> None:
        body = bytes(index % 251 for index in range(size))
        with serve(script(Answer(body=body))) as server:
            assert patience.client().get(server.url, limit_bytes=size).content == body


class TestAddress:
    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("http://example.com/a", id="elsewhere"),
            pytest.param("http://localhost.example.com/a", id="which starts like this machine"),
            pytest.param("http://127.0.0.1.example.com/a", id="which starts like its address"),
            pytest.param("http://127.0.0.1@example.com/a", id="with a name like its address"),
            pytest.param(r"http://example.com\@127.0.0.1/a", id="that is read in two ways"),
            pytest.param("http://10.0.0.1/a", id="in the same network"),
            pytest.param("http://[2001:db8::1]/a", id="of the sixth version"),
        ],
    )
    def test_nothing_is_asked_for_in_the_clear_elsewhere(
        self, url: str, patience: Patience
    ) -> None:
        with pytest.raises(PermanentFetchError, match="is not encrypted") as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert "https" in str(caught.value.hint)

    @pytest.mark.parametrize(
        "url",
        ["http://localhost:9/a", "http://LOCALHOST/a", "http://127.9.9.9/a", "http://[::1]:9/a"],
    )
    def test_this_machine_may_be_asked_in_the_clear(self, url: str) -> None:
        address = parse_address(url)
        assert address.is_loopback
        assert address.shown == url.lower()

    @pytest.mark.parametrize(
        "url",
        ["", "a/b", "file:///etc/passwd", "ftp://example.com/a", "https://", "https:///a"],
    )
    def test_only_the_web_is_asked(self, url: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError, match=r"is not an? (http\(s\) )?URL"):
            patience.client().get(url, limit_bytes=LIMIT)

    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("https://user:hunter2@host:x/a", id="in a URL with a broken port"),
            pytest.param("https://user:hunter/2@host/a", id="in a password with a slash"),
            pytest.param("https://host:x/?token=hunter2", id="in a query"),
            pytest.param("http://user:hunter2@example.com/?token=hunter2", id="in the clear"),
            pytest.param(f"https://{'x' * 70}.com/?token=hunter2", id="of a host too long"),
        ],
    )
    def test_no_complaint_shows_a_secret(self, url: str, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get(url, limit_bytes=LIMIT)
        assert "hunter" not in f"{caught.value} {caught.value.hint}"

    def test_a_name_and_a_password_are_sent_and_never_shown(self, patience: Patience) -> None:
        with serve(script(Answer(status=503), Answer())) as server:
            url = server.url.replace("//", "//user:hunter2@")
            patience.client().get(f"{url}/a?token=hunter2", limit_bytes=LIMIT)
        assert server.asked[0].headers["authorization"].startswith("Basic ")
        (told,) = patience.told
        assert f"{server.url}/a: status 503;" in told

    def test_control_characters_of_a_url_are_not_shown(self, patience: Patience) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get("gopher://a/\x1b[31m\nred", limit_bytes=LIMIT)
        assert str(caught.value).isprintable()


class TestHeaders:
    @pytest.mark.parametrize("value", ["token\n", "a\r\nHost: b", "t\u00f6ken", "\u2028"])
    def test_one_that_cannot_be_sent_is_refused_and_not_shown(
        self, value: str, patience: Patience
    ) -> None:
        with pytest.raises(PermanentFetchError) as caught:
            patience.client().get(
                "http://127.0.0.1:9/", limit_bytes=LIMIT, headers={"Authorization": value}
            )
        assert value not in str(caught.value)
        assert "token" in str(caught.value.hint)

    def test_the_passwords_in_the_home_of_the_user_stay_there(
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

    def test_cookies_are_forgotten(self, patience: Patience) -> None:
        client = patience.client()
        with serve(script(Answer(headers={"Set-Cookie": "a=b"}))) as server:
            for _ in range(2):
                client.get(server.url, limit_bytes=LIMIT)
        assert "cookie" not in server.asked[1].headers


class TestManyDocuments:
    def test_come_over_one_connection(self, patience: Patience) -> None:
        client = patience.client()
        bodies = [b"", b"x", b"xy", b"x" * 100_000]
        answers = [Answer(body=body) for body in bodies]
        answers += [Answer(status=304), Answer(status=404, body=b"gone"), Answer(body=b"last")]
        with serve(script(*answers)) as server:
            for _ in answers:
                client.get(server.url, limit_bytes=10**6)
        assert {asked.connection for asked in server.asked} == {0}

    def test_come_to_whom_they_were_asked_by(self, patience: Patience) -> None:
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
    def test_a_server_that_nobody_vouches_for_is_not_asked_again(self, patience: Patience) -> None:
        with (
            serve(script(Answer(body=b"x")), tls=True) as server,
            pytest.raises(UnreachableError) as caught,
        ):
            patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
        assert str(caught.value) == (f"{server.url}/a: TLS failed (self-signed certificate)")
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)
        assert (server.asked, patience.told) == ([], [])

    def test_a_server_that_speaks_no_tls_is_not_asked_again(self, patience: Patience) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            greeting = pool.submit(_greet, listener, b"220 this is a server for mail\r\n")
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(UnreachableError, match=r"TLS failed \([a-z ]+\)$"):
                patience.client().get(url, limit_bytes=LIMIT)
            greeting.result()
        assert patience.told == []

    def test_one_that_hangs_up_before_it_is_known_is_asked_again(self, patience: Patience) -> None:
        limits = HttpLimits(tries=2)
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            greetings = [pool.submit(_greet, listener, b"") for _ in range(limits.tries)]
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(UnreachableError, match="the response is incomplete"):
                patience.client(limits=limits).get(url, limit_bytes=LIMIT)
            assert [greeting.result() for greeting in greetings] == [None, None]

    def test_one_that_hangs_up_later_is_asked_again(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
        with serve(script(Raw(pieces=[]), Answer(body=b"x")), tls=True) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"x"
        assert "the response is incomplete" in patience.told[0]

    def test_a_certificate_of_the_users_own_is_trusted(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
        client = patience.client()
        with serve(script(Answer(body=b"x" * 100_000)), tls=True) as server:
            contents = [client.get(server.url, limit_bytes=10**6).content for _ in range(2)]
        assert contents == [b"x" * 100_000] * 2
        assert {asked.connection for asked in server.asked} == {0}

    def test_a_file_of_certificates_that_holds_none_is_told(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", __file__)
        with (
            serve(script(Answer()), tls=True) as server,
            pytest.raises(UnreachableError, match=r"TLS failed \(no certificate") as caught,
        ):
            patience.client().get(server.url, limit_bytes=LIMIT)
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)

    def test_a_file_of_certificates_that_is_not_there_is_named(
        self, patience: Patience, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
        with pytest.raises(
            UnreachableError, match=r"cannot read the certificates in /nowhere/ca\.pem"
        ) as caught:
            patience.client().get("https://127.0.0.1:9/", limit_bytes=LIMIT)
        assert "REQUESTS_CA_BUNDLE" in str(caught.value.hint)


def _greet(listener: socket.socket, words: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(words)
        connection.recv(10_000)
