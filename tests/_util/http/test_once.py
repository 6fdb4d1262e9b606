"""A request can be posted once: whatever is answered is the answer."""

import pytest

from agentci._util.http.interface import DEFAULT_LIMITS
from agentci._util.http.retries import RetryableError
from agentci._util.http.transport import HttpTransport, make_http_request
from agentci.errors import PermanentFetchError
from tests._util.http.servers import Answer, Raw, head, refused_port, script, serve

LIMIT = 1000


def post(url: str, content: bytes = b"{}") -> Answer:
    wish = make_http_request(url, {"X-Key": "k"}, LIMIT, content=content)
    response = HttpTransport(DEFAULT_LIMITS).send_once(wish, lambda: False)
    return Answer(status=response.status, body=response.content)


def test_content_is_posted_with_its_length_and_our_headers() -> None:
    with serve(script(Answer(body=b"done"))) as server:
        assert post(server.url, "é".encode()).body == b"done"
    (asked,) = server.asked
    assert (asked.method, asked.body) == ("POST", "é".encode())
    assert (asked.headers["content-length"], asked.headers["x-key"]) == ("2", "k")


@pytest.mark.parametrize("status", [301, 307, 400, 403, 429, 500, 503])
def test_no_status_is_a_failure_and_no_redirect_is_followed(status: int) -> None:
    answer = Answer(status=status, body=b"why", headers={"Location": "/elsewhere"})
    with serve(script(answer)) as server:
        assert post(server.url) == Answer(status=status, body=b"why")
    assert len(server.asked) == 1


def test_an_answer_that_is_not_whole_may_have_arrived_and_one_from_nobody_has_not() -> None:
    half = Raw(pieces=[head(200, "Content-Length: 9"), b"x"])
    with serve(script(half)) as server, pytest.raises(RetryableError) as cut:
        post(server.url)
    with pytest.raises(RetryableError) as gone:
        post(f"http://127.0.0.1:{refused_port()}")
    assert (cut.value.arrived, gone.value.arrived) == (True, False)


def test_other_machines_are_asked_unencrypted_only_where_that_is_wanted() -> None:
    with pytest.raises(PermanentFetchError, match="is not encrypted"):
        make_http_request("http://ollama:11434", {}, LIMIT)
    assert not make_http_request(
        "http://ollama:11434", {}, LIMIT, unencrypted=True
    ).address.is_loopback


def test_what_is_asked_for_shows_neither_headers_nor_content() -> None:
    shown = repr(make_http_request("https://a.example", {"K": "secret"}, LIMIT, content=b"text"))
    assert "secret" not in shown
    assert "text" not in shown
