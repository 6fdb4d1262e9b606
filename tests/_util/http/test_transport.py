"""Requests that are sent exactly once, without retries or redirects."""

import pytest

from agentci._util.http import DEFAULT_LIMITS, RetryableError
from agentci._util.http_transport import HttpTransport, make_http_request
from agentci.errors import PermanentFetchError
from tests._util.http.servers import Answer, Raw, head, refused_port, script, serve

LIMIT = 1000


def post(url: str, content: bytes = b"{}") -> Answer:
    request = make_http_request(url, {"X-Key": "k"}, LIMIT, content=content)
    response = HttpTransport(DEFAULT_LIMITS).send_once(request, lambda: False)
    return Answer(status=response.status, body=response.content)


def test_post_sends_content_length_and_headers() -> None:
    with serve(script(Answer(body=b"done"))) as server:
        assert post(server.url, "é".encode()).body == b"done"
    (request,) = server.asked
    assert (request.method, request.body) == ("POST", "é".encode())
    assert (request.headers["content-length"], request.headers["x-key"]) == ("2", "k")


@pytest.mark.parametrize("status", [301, 307, 400, 403, 429, 500, 503])
def test_any_status_is_returned_and_redirect_not_followed(status: int) -> None:
    answer = Answer(status=status, body=b"why", headers={"Location": "/elsewhere"})
    with serve(script(answer)) as server:
        assert post(server.url) == Answer(status=status, body=b"why")
    assert len(server.asked) == 1


def test_error_reports_whether_request_arrived() -> None:
    half = Raw(pieces=[head(200, "Content-Length: 9"), b"x"])
    with serve(script(half)) as server, pytest.raises(RetryableError) as truncated:
        post(server.url)
    with pytest.raises(RetryableError) as refused:
        post(f"http://127.0.0.1:{refused_port()}")
    assert (truncated.value.arrived, refused.value.arrived) == (True, False)


def test_unencrypted_url_must_be_allowed() -> None:
    with pytest.raises(PermanentFetchError, match="is not encrypted"):
        make_http_request("http://ollama:11434", {}, LIMIT)
    assert not make_http_request(
        "http://ollama:11434", {}, LIMIT, unencrypted=True
    ).address.is_loopback


def test_repr_hides_headers_and_content() -> None:
    shown = repr(make_http_request("https://a.example", {"K": "secret"}, LIMIT, content=b"text"))
    assert "secret" not in shown
    assert "text" not in shown
