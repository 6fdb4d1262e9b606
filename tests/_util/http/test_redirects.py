"""Safe redirects are followed, without the credentials of the first host."""

import pytest

from agentci.errors import PermanentFetchError, UnreachableError
from tests._util.http.patience import Patience
from tests._util.http.servers import (
    CERTIFICATE,
    Answer,
    Asked,
    Raw,
    head,
    refused_port,
    script,
    serve,
)

TOKEN = {"Authorization": "Bearer hunter2"}
LIMIT = 1000


@pytest.fixture
def patience() -> Patience:
    return Patience()


def _to(location: str, status: int = 302) -> Answer:
    return Answer(status=status, body=b"moved", headers={"Location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_followed(status: int, patience: Patience) -> None:
    with serve(script(_to("/b/../c?d#e", status), Answer(body=b"here"))) as server:
        response = patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
    assert response.content == b"here"
    assert server.paths == ["/a", "/c?d"]


def test_headers_are_sent_again_to_same_host(patience: Patience) -> None:
    with serve(script(_to("b"), Answer())) as server:
        patience.client().get(f"{server.url}/a", limit_bytes=LIMIT, headers=TOKEN)
    assert [asked.headers.get("authorization") for asked in server.asked] == ["Bearer hunter2"] * 2


def test_headers_are_not_sent_to_another_host(
    patience: Patience,
) -> None:
    def respond(asked: Asked) -> Answer:
        return _to(f"{other.url}/b") if asked.path == "/a" else Answer(body=b"home")

    with serve(respond) as first, serve(lambda _: _to(f"{first.url}/c")) as other:
        headers = {**TOKEN, "X-Api-Key": "hunter2"}
        response = patience.client().get(f"{first.url}/a", limit_bytes=LIMIT, headers=headers)
    assert response.content == b"home"
    assert "hunter2" not in str(other.asked)
    assert other.paths == ["/b"]
    assert [asked.headers["authorization"] for asked in first.asked] == ["Bearer hunter2"] * 2


def test_password_in_url_is_not_sent_to_another_host(patience: Patience) -> None:
    with serve(script(Answer())) as other, serve(script(_to(other.url))) as first:
        url = first.url.replace("//", "//user:hunter2@")
        patience.client().get(url, limit_bytes=LIMIT)
    assert "authorization" in first.asked[0].headers
    assert "authorization" not in other.asked[0].headers


def test_sixth_redirect_is_rejected(patience: Patience) -> None:
    with serve(script(*map(_to, "bcdef"), Answer(body=b"here"))) as server:
        assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"here"
    with (
        serve(script(_to("/"))) as server,
        pytest.raises(PermanentFetchError, match=r"redirects more than 5 times$"),
    ):
        patience.client().get(server.url, limit_bytes=LIMIT)
    assert len(server.asked) == 6


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        pytest.param(
            "http://example.com/b", "http://example.com/b is not encrypted", id="unencrypted"
        ),
        pytest.param(
            "//example.com/b", "is not encrypted", id="unencrypted, scheme of the request"
        ),
        pytest.param("file:///etc/passwd", "is not an http(s) URL", id="file URL"),
        pytest.param("https://[/", "not a URL", id="invalid URL"),
        pytest.param("https://user:hunter2@h:x/", "not a URL", id="invalid URL with a secret"),
        pytest.param("gopher://\x1b[31m\x9b", "is not a URL", id="terminal escapes"),
    ],
)
def test_unsafe_redirect_is_rejected(location: str, expected: str, patience: Patience) -> None:
    with serve(script(_to(location))) as server, pytest.raises(PermanentFetchError) as caught:
        patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
    message = str(caught.value)
    assert message.startswith(f"{server.url}/a redirects to a URL that is not allowed: ")
    assert expected in message
    assert message.isprintable()
    assert "hunter2" not in message


def test_redirect_from_https_to_http_is_rejected(
    patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with (
        serve(script(Answer())) as plain,
        serve(script(_to(f"{plain.url}/b?token=hunter2")), tls=True) as server,
        pytest.raises(PermanentFetchError) as caught,
    ):
        patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
    assert str(caught.value) == (
        f"{server.url}/a redirects from https to {plain.url}/b, which is not encrypted"
    )
    assert plain.asked == []


def test_redirect_from_http_to_https_is_followed(
    patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with (
        serve(script(Answer(body=b"safe")), tls=True) as safe,
        serve(script(_to(safe.url))) as server,
    ):
        assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"safe"


def test_error_after_redirect_names_failing_url(patience: Patience) -> None:
    port = refused_port()
    with (
        serve(script(_to(f"http://127.0.0.1:{port}/b?token=hunter2"))) as server,
        pytest.raises(UnreachableError) as caught,
    ):
        patience.client().get(f"{server.url}/a", limit_bytes=LIMIT)
    assert str(caught.value) == (
        f"{server.url}/a: redirected to http://127.0.0.1:{port}/b: connection refused (5 attempts)"
    )
    assert len(server.asked) == 5


def test_redirect_with_non_ascii_path_is_followed(patience: Patience) -> None:
    for location in ("/ü".encode(), "/ü".encode("latin-1")):
        moved = Raw(pieces=[head(302).removesuffix(b"\r\n"), b"Location: ", location, b"\r\n\r\n"])
        with serve(script(moved, Answer(body=b"here"))) as server:
            assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"here"
        assert server.paths == ["/", "/%C3%BC"]


def test_redirect_status_without_location_is_returned(patience: Patience) -> None:
    with serve(script(Answer(status=302, body=b"?"))) as server:
        response = patience.client().get(server.url, limit_bytes=LIMIT)
    assert (response.status, response.content) == (302, b"?")


def test_redirect_body_is_not_read(patience: Patience) -> None:
    pieces = [head(302, "Location: /b", "Content-Length: 1000000000000", "Content-Encoding: gzip")]
    with serve(script(Raw(pieces=pieces), Answer(body=b"here"))) as server:
        assert patience.client().get(server.url, limit_bytes=LIMIT).content == b"here"
