"""Requests to judge services: formats, retries, limits and the protection of keys."""

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from time import time
from typing import Any

import pytest

from agentci._util.http import HttpLimits
from agentci.errors import EvaluatorError
from agentci.judges.providers import PROVIDERS
from agentci.judges.transport import LIMITS, MAX_RESPONSE_BYTES, ServiceRequest
from agentci.model.judges import BudgetLimits
from agentci.model.result import ModelCost
from agentci.model.values import replace
from agentci.version import __version__
from tests._util.http.patience import after
from tests._util.http.servers import Answer, Asked, Raw, Server, head, refused_port, script, serve
from tests.helpers.support import ROOT
from tests.judges.bench import KEY, QUESTION, Bench, refused, said, scored, settings

OVERLOADED = refused(503, message="busy")
REPLIES = {
    "openai": b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}',
    "anthropic": b'{"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}',
}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def ask(bench: Bench, server: Server, **others: Any) -> str:
    return bench.asker.ask(QUESTION, settings(server.url, **others), until=bench.until).text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_sent_request_equals_provider_request(provider: str, bench: Bench) -> None:
    module = PROVIDERS[provider]
    with serve(script(Answer(body=REPLIES.get(provider, REPLIES["openai"])))) as server:
        given = settings(server.url, provider=provider)
        assert bench.asker.ask(QUESTION, given, until=bench.until).text == "ok"
    (asked,) = server.asked
    call = module.build_request(QUESTION, given, module.initial_capabilities(given))
    name, value = module.make_key_header(KEY)
    assert asked.method == "POST"
    assert f"{server.url}{asked.path}" == call.url
    assert asked.body == call.body
    assert dict(asked.headers) == {
        **{name.lower(): value for name, value in call.headers.items()},
        name.lower(): value,
        "host": f"127.0.0.1:{server.port}",
        "user-agent": f"agentci/{__version__}",
        "accept-encoding": "identity",
        "content-length": str(len(call.body)),
    }


def test_no_key_is_sent_without_key_variable(bench: Bench) -> None:
    with serve(script(said("ok"))) as server:
        assert ask(bench, server, key_variable="") == "ok"
    assert "authorization" not in server.asked[0].headers


def test_missing_key_is_an_error_before_any_request(bench: Bench) -> None:
    with (
        serve(script(said("ok"))) as server,
        pytest.raises(EvaluatorError, match="variable OTHER with the judge's key is not set"),
    ):
        ask(bench, server, key_variable="OTHER")
    assert server.asked == []


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_transient_status_is_retried(status: int, bench: Bench) -> None:
    with serve(script(refused(status), said("ok"))) as server:
        assert ask(bench, server) == "ok"
    assert 0.3 <= bench.patience.slept <= 0.5
    (message,) = bench.patience.told
    assert f": status {status}; retrying in " in message
    assert message.endswith(" s (1/5)")


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 410, 413, 422, 501])
def test_permanent_status_is_not_retried(status: int, bench: Bench) -> None:
    with (
        serve(script(refused(status, message="no"))) as server,
        pytest.raises(EvaluatorError, match=f"status {status}"),
    ):
        ask(bench, server)
    assert len(server.asked) == 1
    assert bench.budget.spent == ModelCost()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After-Ms": "1500", "Retry-After": "60"}, 1.5),
        (
            {"Date": formatdate(1e9, usegmt=True), "Retry-After": formatdate(1e9 + 9, usegmt=True)},
            9,
        ),
        ({"Retry-After": formatdate(1e9, usegmt=True)}, 0),
    ],
)
def test_retry_waits_for_retry_after_time(
    headers: dict[str, str], seconds: float, bench: Bench
) -> None:
    with serve(script(refused(429, headers), said("ok"))) as server:
        assert ask(bench, server) == "ok"
    assert bench.patience.slept == pytest.approx(seconds, abs=0.11)


def test_retry_after_without_date_header_uses_local_clock(bench: Bench) -> None:
    date = formatdate(time() + 20, usegmt=True)
    with serve(script(refused(429, {"Retry-After": date}), said("ok"))) as server:
        assert ask(bench, server) == "ok"
    assert 15 <= bench.patience.slept <= 21


def test_too_long_retry_after_is_an_error(bench: Bench) -> None:
    with (
        serve(script(refused(429, {"Retry-After": "61"}))) as server,
        pytest.raises(EvaluatorError, match="status 429; it asks to wait 61 s, the limit is 60 s"),
    ):
        ask(bench, server)
    assert len(server.asked) == 1


def test_should_retry_header_overrides_status(bench: Bench) -> None:
    final = refused(500, {"X-Should-Retry": "false"})
    with serve(script(final)) as server, pytest.raises(EvaluatorError, match="status 500"):
        ask(bench, server)
    assert len(server.asked) == 1
    with serve(script(refused(418, {"X-Should-Retry": "true"}), said("ok"))) as server:
        assert ask(bench, server) == "ok"


def test_request_fails_after_five_attempts(bench: Bench) -> None:
    with (
        serve(script(OVERLOADED)) as server,
        pytest.raises(EvaluatorError, match=r"status 503 \(busy\) \(5 attempts\)"),
    ):
        ask(bench, server)
    assert len(server.asked) == 5
    assert 0.75 * 7.5 <= bench.patience.slept <= 7.6


def test_retry_after_delays_later_requests(bench: Bench) -> None:
    with serve(script(refused(429, {"Retry-After": "30"}), said("ok"))) as server:
        given = settings(server.url)
        limited = replace(bench.limits, tries=1)
        hasty = Bench(patience=bench.patience, limits=limited)
        with pytest.raises(EvaluatorError, match="429"):
            hasty.asker.ask(QUESTION, given, until=hasty.until)
        assert bench.patience.slept == 0
        assert hasty.asker.ask(QUESTION, given, until=hasty.until).text == "ok"
    assert bench.patience.slept == pytest.approx(30, abs=0.2)


def test_retry_past_deadline_is_not_attempted(bench: Bench) -> None:
    with (
        serve(script(refused(429, {"Retry-After": "30"}))) as server,
        pytest.raises(EvaluatorError, match="no time left to call the judge again"),
    ):
        bench.asker.ask(QUESTION, settings(server.url), until=bench.patience.clock() + 20)
    assert len(server.asked) == 1


def test_request_after_deadline_is_not_sent(bench: Bench) -> None:
    with (
        serve(script(said("ok"))) as server,
        pytest.raises(EvaluatorError, match="no time left to call http"),
    ):
        bench.asker.ask(QUESTION, settings(server.url), until=bench.patience.clock())
    assert server.asked == []


def test_slow_response_is_aborted_at_deadline() -> None:
    bench = Bench()
    with (
        serve(
            script(
                Raw(pieces=[head(200, "Content-Length: 9999")], endlessly=b" ", pause_seconds=0.05)
            )
        ) as server,
        pytest.raises(EvaluatorError, match="did not respond in time"),
    ):
        bench.asker.ask(QUESTION, settings(server.url), until=bench.patience.clock() + 0.3)


def test_unresponsive_service_is_retried() -> None:
    bench = Bench(limits=replace(LIMITS, silence_seconds=0.2))
    silent = Raw(pieces=[b""], endlessly=b"", pause_seconds=0.6)
    with serve(script(silent, said("ok"))) as server:
        assert ask(bench, server) == "ok"
    assert "no data for 0.2 s" in bench.patience.told[0]


@pytest.mark.parametrize(
    "fault",
    [
        Raw(pieces=[], resets=True),
        Raw(pieces=[head(200, "Content-Length: 100"), b"{"]),
        Answer(body=b"<html>a proxy</html>"),
        Answer(body=b""),
    ],
    ids=["reset", "truncated", "no JSON", "empty"],
)
def test_broken_response_is_retried(fault: Answer | Raw, bench: Bench) -> None:
    with serve(script(fault, said("ok"))) as server:
        assert ask(bench, server) == "ok"
    assert len(server.asked) == 2
    # The service may have charged for the failed request.
    assert bench.budget.spent.calls == 2


def test_refused_connection_is_not_charged(bench: Bench) -> None:
    given = settings(f"http://127.0.0.1:{refused_port()}")
    with pytest.raises(EvaluatorError, match="connection refused"):
        bench.asker.ask(QUESTION, given, until=bench.until)
    assert bench.budget.spent == ModelCost()


def test_too_large_response_is_an_error(bench: Bench) -> None:
    huge = Raw(
        pieces=[head(200, f"Content-Length: {MAX_RESPONSE_BYTES + 1}")], endlessly=b" " * 65536
    )
    with serve(script(huge)) as server, pytest.raises(EvaluatorError, match="the limit is"):
        ask(bench, server)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(status: int, bench: Bench) -> None:
    with (
        serve(script(said("ok"))) as other,
        serve(script(Answer(status=status, headers={"Location": other.url}))) as server,
        pytest.raises(EvaluatorError, match="a redirect is not followed"),
    ):
        ask(bench, server)
    assert other.asked == []


def test_key_is_not_sent_unencrypted(bench: Bench) -> None:
    with pytest.raises(EvaluatorError, match="is not encrypted"):
        bench.asker.ask(QUESTION, settings("http://models.example"), until=bench.until)


@pytest.mark.parametrize(
    "status_and_error",
    [
        (429, {"code": "insufficient_quota", "message": "You exceeded your quota"}),
        (429, {"type": "organization_spend_limit_exceeded"}),
        (429, {"type": "enforced_spend_limit_reached"}),
        (400, {"message": "Your credit balance is too low to access the API"}),
        (402, {"message": "pay"}),
    ],
)
def test_exhausted_credit_stops_further_requests(
    status_and_error: tuple[int, dict[str, str]], bench: Bench
) -> None:
    status, error = status_and_error
    with serve(script(refused(status, **error))) as server:
        for _ in range(3):
            with pytest.raises(EvaluatorError, match="the key in KEY has no credit left"):
                ask(bench, server)
    assert len(server.asked) == 1


def test_content_filter_error_is_a_refusal(bench: Bench) -> None:
    with serve(script(refused(400, code="content_filter", message="filtered"))) as server:
        response = bench.asker.ask(QUESTION, settings(server.url), until=bench.until)
    assert (response.ending, response.finish_reason) == ("refused", "content_filter")


def test_key_in_model_response_is_redacted(bench: Bench) -> None:
    with serve(script(said(f"your key is {KEY}", reason=KEY))) as server:
        response = bench.asker.ask(QUESTION, settings(server.url), until=bench.until)
    assert response.text == "your key is ***"
    assert KEY not in repr(response)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_key_is_redacted_from_errors_and_logs(
    status: int, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = {"X-Request-Id": f"r1 {KEY}", "Retry-After": "0"}
    with (
        serve(script(refused(status, headers, message=f"bad key {KEY}\n::error::{KEY}"))) as server,
        pytest.raises(EvaluatorError) as caught,
    ):
        ask(bench, server)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in f"{chain!r} {chain}"
        chain = chain.__cause__ or chain.__context__
    assert KEY not in "".join(bench.patience.told)
    assert KEY not in caplog.text
    assert "\n" not in str(caught.value)
    if status not in {401, 403}:
        assert "bad key *** ::error::***" in str(caught.value)
        assert "request ID r1 ***" in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_authentication_error_message_is_not_shown(status: int, bench: Bench) -> None:
    quoting = refused(status, message=f"Incorrect API key provided: {KEY[:5]}***{KEY[-4:]}")
    with serve(script(quoting)) as server, pytest.raises(EvaluatorError) as caught:
        ask(bench, server)
    assert KEY[-4:] not in str(caught.value)
    assert "check the key in KEY, and that it may use m" in str(caught.value)


def test_status_401_without_key_suggests_api_key_env(bench: Bench) -> None:
    with (
        serve(script(refused(401))) as server,
        pytest.raises(
            EvaluatorError, match="set `api_key_env` to the environment variable with its key"
        ),
    ):
        ask(bench, server, key_variable="")


def test_import_does_not_load_slow_packages() -> None:
    code = (
        "import sys; import agentci.judges.client, agentci.judges.command, agentci.judges.judge;"
        " sys.exit(bool({'requests', 'urllib3', 'openai', 'anthropic'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_request_repr_hides_key_and_content() -> None:
    request = ServiceRequest(url="u", headers={"a": KEY}, content=b"text", has_key=True, until=0)
    assert KEY not in repr(request)
    assert "text" not in repr(request)


def formats(asked: Asked) -> object:
    return json.loads(asked.body).get("response_format", {}).get("type", "none")


def test_unsupported_response_format_falls_back(bench: Bench) -> None:
    def respond(asked: Asked) -> Answer:
        if formats(asked) != "none":
            return refused(400, param="response_format", message="not supported")
        return said("ok")

    with serve(respond) as server:
        assert [ask(bench, server), ask(bench, server)] == ["ok", "ok"]
    assert [formats(each) for each in server.asked] == [
        "json_schema",
        "json_object",
        "none",
        "none",
    ]
    assert bench.budget.spent.calls == 2


def test_format_fallback_is_remembered_per_model(bench: Bench) -> None:
    strange = refused(422, message="Unknown field json_schema")
    with serve(script(strange, said("a"), said("b"))) as server:
        ask(bench, server, model="m")
        ask(bench, server, model="n")
    assert [formats(each) for each in server.asked] == ["json_schema", "json_object", "json_schema"]


@pytest.mark.parametrize(
    ("message", "sent", "then"),
    [
        ("Unsupported parameter: 'max_tokens'", "max_tokens", "max_completion_tokens"),
        ("reasoning_effort is not known here", "reasoning_effort", "messages"),
        ("Unsupported value: 'temperature'", "temperature", "messages"),
    ],
)
def test_unsupported_parameter_is_dropped_on_retry(
    message: str, sent: str, then: str, bench: Bench
) -> None:
    with serve(script(refused(400, message=message), said("ok"))) as server:
        assert ask(bench, server, effort="low", temperature=0) == "ok"
    first, second = (json.loads(each.body) for each in server.asked)
    assert sent in first
    assert sent not in second
    assert then in second
    assert len(bench.patience.told) == (0 if sent == "max_tokens" else 1)


def test_parameter_fallbacks_are_finite(bench: Bench) -> None:
    everything = "temperature, effort, unsupported max_tokens max_completion_tokens json_schema"
    with (
        serve(script(refused(400, message=everything))) as server,
        pytest.raises(EvaluatorError, match="check the judge's settings"),
    ):
        ask(bench, server, effort="low", temperature=0)
    assert len(server.asked) == 6


def test_too_large_token_limit_is_not_renamed(bench: Bench) -> None:
    with (
        serve(
            script(refused(400, param="max_tokens", message="max_tokens is too large"))
        ) as server,
        pytest.raises(EvaluatorError, match="too large"),
    ):
        ask(bench, server)
    assert len(server.asked) == 1


def test_interrupted_run_stops_retrying() -> None:
    bench = Bench(stopped=after(4))
    with (
        serve(script(OVERLOADED)) as server,
        pytest.raises(EvaluatorError, match="was interrupted"),
    ):
        ask(bench, server)
    assert len(server.asked) <= 2


def test_connection_is_reused(bench: Bench) -> None:
    with serve(script(said("ok"))) as server:
        for _ in range(3):
            ask(bench, server)
    assert {each.connection for each in server.asked} == {0}


def test_questions_under_faults_are_answered_and_charged_once() -> None:
    """Every second request fails, in one of five ways; 8 threads send 40 questions."""
    faults: list[Answer | Raw] = [
        refused(429, {"Retry-After": "1"}),
        refused(500),
        Raw(pieces=[], resets=True),
        Answer(body=b"<html>"),
        Raw(pieces=[head(200, "Content-Length: 9"), b"{"]),
    ]
    seen: list[Asked] = []

    def respond(asked: Asked) -> Answer | Raw:
        seen.append(asked)
        number = len(seen)
        return (
            faults[number // 2 % 5]
            if number % 2
            else scored(0.5, prompt_tokens=3, completion_tokens=2)
        )

    bench = Bench(limits=HttpLimits(tries=20))
    with serve(respond) as server, ThreadPoolExecutor(8) as pool:
        given = settings(server.url)
        futures = [
            pool.submit(bench.asker.ask, QUESTION, given, until=bench.until + 3600)
            for _ in range(40)
        ]
        replies = [future.result() for future in futures]
    assert len(replies) == 40
    assert {response.text for response in replies} == {'{"reasoning": "so", "score": 0.5}'}
    refusals = sum(1 for number in range(1, len(seen) + 1, 2) if number // 2 % 5 in {0, 1})
    assert bench.budget.spent.calls == len(seen) - refusals


def test_max_calls_holds_across_threads() -> None:
    bench = Bench(caps=BudgetLimits(max_calls=5))
    with serve(script(said("ok"))) as server, ThreadPoolExecutor(8) as pool:
        given = settings(server.url)
        futures = [
            pool.submit(bench.asker.ask, QUESTION, given, until=bench.until) for _ in range(20)
        ]
        errors = [error for future in futures if (error := future.exception()) is not None]
    assert len(server.asked) == 5
    assert len(errors) == 15
    assert all("`max_calls` (5)" in str(error) for error in errors)
