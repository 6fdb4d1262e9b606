"""Judges without an API key: GitHub Actions ID tokens are exchanged for access tokens."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agentci.runner.prepare import KEY_HINT
from tests._util.http.servers import Answer, Asked, Raw, Server, serve
from tests._util.http.tunnel import services
from tests.e2e.judged import Judged, judge, scored
from tests.judges.bench import refused

IDENTITY = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyZXBvOm9yZy9hZ2VudCJ9.c2lnbmF0dXJl"
REQUEST_TOKEN = "request-token-0123456789"
TOKEN = "short-lived-0123456789"
SECRETS = (IDENTITY, REQUEST_TOKEN, TOKEN)

OPENAI = {"identity_provider_id": "idp_1", "service_account_id": "sa_1"}
ANTHROPIC = {
    "federation_rule_id": "fdrl_1",
    "organization_id": "org_1",
    "service_account_id": "svac_1",
    "workspace_id": "wrkspc_1",
}
AZURE = {"tenant_id": "tenant-1", "client_id": "client-1"}
RESOURCE = "https://r.openai.azure.com"


def keyless(provider: str, ids: Mapping[str, str], **others: Any) -> dict[str, Any]:
    auth = {"type": "github-oidc", **ids}
    return {"provider": provider, "model": "m", "auth": auth, **others}


def anthropic_scored() -> Answer:
    text = json.dumps({"reasoning": "so", "score": 0.9})
    content = [{"type": "text", "text": text}]
    return Answer(body=json.dumps({"content": content, "stop_reason": "end_turn"}).encode())


class World:
    """GitHub, the judge services, and the requests that they received.

    Attributes:
        exchange: the response to the token exchange with a given number.
        identity: the response of GitHub to a request for an ID token.
    """

    def __init__(self) -> None:
        self.lifetime = 3600.0
        self.exchange: Callable[[int], Answer | Raw] = self._token
        self.identity: Answer | Raw = Answer(body=json.dumps({"value": IDENTITY}).encode())
        self.exchanged: list[Asked] = []
        self.questions: list[Asked] = []
        self.identified: list[Asked] = []
        self._lock = threading.Lock()

    def _token(self, _: int) -> Answer:
        given = {"access_token": TOKEN, "expires_in": self.lifetime, "token_type": "Bearer"}
        return Answer(body=json.dumps(given).encode())

    def of_github(self, asked: Asked) -> Answer | Raw:
        self.identified.append(asked)
        return self.identity

    def of_services(self, asked: Asked) -> Answer | Raw:
        if asked.path.endswith("/token"):
            with self._lock:
                self.exchanged.append(asked)
                number = len(self.exchanged)
            time.sleep(0.05)  # so that other threads need a token meanwhile
            return self.exchange(number)
        if asked.method == "GET":
            return refused(404)
        self.questions.append(asked)
        return anthropic_scored() if asked.path.endswith("/messages") else scored(0.9)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Judged]]:
    with serve(world.of_github) as github, services(world.of_services, monkeypatch):
        environ = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(tmp_path),
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{github.url}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
        }

        def run(given: Mapping[str, Any], *options: str, **others: Any) -> Judged:
            found = judge(tmp_path, given, *options, **{"environ": environ, **others})
            printed = found.ran.out + found.ran.err + json.dumps(found.report)
            assert [secret for secret in SECRETS if secret in printed] == []
            return found

        yield run


def body(asked: Asked) -> Any:
    return json.loads(asked.body)


def test_openai_exchanges_id_token_for_access_token(
    world: World, run: Callable[..., Judged]
) -> None:
    assert run(keyless("openai", OPENAI)).statuses == ["passed"]
    [identity], [exchange], [question] = world.identified, world.exchanged, world.questions
    assert identity.path == "/token?api-version=2.0&audience=https%3A%2F%2Fapi.openai.com%2Fv1"
    assert identity.headers["authorization"] == f"bearer {REQUEST_TOKEN}"
    assert (exchange.method, exchange.headers["host"], exchange.path) == (
        *("POST", "auth.openai.com"),
        "/oauth/token",
    )
    assert body(exchange) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": IDENTITY,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        **OPENAI,
    }
    assert (question.headers["host"], question.path) == (
        "api.openai.com",
        "/v1/chat/completions",
    )
    assert question.headers["authorization"] == f"Bearer {TOKEN}"


def test_anthropic_exchanges_id_token_for_access_token(
    world: World, run: Callable[..., Judged]
) -> None:
    assert run(keyless("anthropic", ANTHROPIC)).statuses == ["passed"]
    [exchange], [question] = world.exchanged, world.questions
    assert (exchange.headers["host"], exchange.path) == ("api.anthropic.com", "/v1/oauth/token")
    assert exchange.headers["anthropic-beta"] == "oauth-2025-04-20,oidc-federation-2026-04-01"
    assert body(exchange) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": IDENTITY,
        **ANTHROPIC,
    }
    assert question.headers["authorization"] == f"Bearer {TOKEN}"
    assert question.headers["anthropic-beta"] == "oauth-2025-04-20"
    assert "x-api-key" not in question.headers


@pytest.mark.parametrize(
    ("base_url", "scope", "path"),
    [
        (
            RESOURCE,
            "https://cognitiveservices.azure.com/.default",
            "/openai/v1/chat/completions",
        ),
        (
            "https://r.services.ai.azure.com/api/projects/p",
            "https://ai.azure.com/.default",
            "/api/projects/p/openai/v1/chat/completions",
        ),
    ],
)
def test_azure_exchanges_id_token_for_access_token(
    world: World, run: Callable[..., Judged], base_url: str, scope: str, path: str
) -> None:
    assert run(keyless("azure", AZURE, base_url=base_url)).statuses == ["passed"]
    [identity], [exchange], [question] = world.identified, world.exchanged, world.questions
    assert identity.path.endswith("&audience=api%3A%2F%2FAzureADTokenExchange")
    assert exchange.headers["host"] == "login.microsoftonline.com"
    assert exchange.path == "/tenant-1/oauth2/v2.0/token"
    assert exchange.headers["content-type"] == "application/x-www-form-urlencoded"
    assert {name: value for name, [value] in parse_qs(exchange.body.decode()).items()} == {
        "client_id": "client-1",
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": IDENTITY,
        "scope": scope,
    }
    assert (question.headers["host"], question.path) == (urlsplit(base_url).hostname, path)
    assert question.headers["authorization"] == f"Bearer {TOKEN}"
    assert "api-key" not in question.headers


def test_audience_is_configurable(world: World, run: Callable[..., Judged]) -> None:
    run(keyless("openai", {**OPENAI, "audience": "mine"}))
    assert world.identified[0].path.endswith("&audience=mine")
    assert "audience" not in body(world.exchanged[0])


def test_threads_share_access_token(world: World, run: Callable[..., Judged]) -> None:
    found = run(keyless("openai", OPENAI), "--jobs", "8", cases=16)
    assert found.statuses == ["passed"] * 16
    assert (len(world.exchanged), len(world.questions)) == (1, 16)


def test_expired_access_token_is_renewed(world: World, run: Callable[..., Judged]) -> None:
    world.lifetime = 0.001
    assert run(keyless("openai", OPENAI), cases=3).statuses == ["passed"] * 3
    assert len(world.exchanged) >= 3


def test_token_exchange_is_retried_after_status_503(
    world: World, run: Callable[..., Judged]
) -> None:
    world.exchange = lambda n: refused(503) if n == 1 else World()._token(n)
    assert run(keyless("openai", OPENAI)).statuses == ["passed"]
    assert len(world.exchanged) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Answer(
                status=401,
                body=json.dumps(
                    {"error": "invalid_grant", "error_description": f"no trust in {IDENTITY}"}
                ).encode(),
            ),
            "status 401 (no trust in ***); check the ids in `auth`",
        ),
        (refused(403, message="not you"), "status 403 (not you); check the ids"),
        (Answer(status=400, body=b"<html>"), "status 400; check the ids"),
        (Answer(body=b"<html>"), "the response contains none; check the ids"),
        (Answer(body=b'{"token": 1}'), "the response contains none; check the ids"),
    ],
)
def test_failed_token_exchange_is_not_repeated(
    world: World, run: Callable[..., Judged], answer: Answer, expected: str
) -> None:
    world.exchange = lambda _: answer
    found = run(keyless("openai", OPENAI), cases=3)
    assert (found.ran.code, found.statuses) == (3, ["errored"] * 3)
    assert {expected in reason for reason in found.reasons} == {True}
    assert len(world.exchanged) == 1
    assert world.questions == []


def test_refused_id_token_errors_with_permissions_hint(
    world: World, run: Callable[..., Judged]
) -> None:
    world.identity = refused(403)
    [reason] = run(keyless("openai", OPENAI)).reasons
    assert reason == (
        "GitHub issued no ID token for this job: status 403; check that the job has"
        " `permissions: {id-token: write}`"
    )
    assert world.exchanged == []


def test_id_token_is_not_requested_over_http(world: World, run: Callable[..., Judged]) -> None:
    environ = {
        "ACTIONS_ID_TOKEN_REQUEST_URL": "http://github.example/token",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
    }
    [reason] = run(keyless("openai", OPENAI), environ=environ).reasons
    assert "http://github.example/token is not encrypted" in reason
    assert world.identified == []


IN_ACTIONS = {"GITHUB_ACTIONS": "true"}
IN_JOB = {
    **IN_ACTIONS,
    "ACTIONS_ID_TOKEN_REQUEST_URL": "http://localhost:1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "t",
}


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        (
            keyless("openai", OPENAI),
            IN_ACTIONS,
            "this job cannot get an ID token from GitHub; add `permissions: {id-token: write}`",
        ),
        (keyless("openai", OPENAI), {}, "works only in GitHub Actions"),
        (keyless("openai", {}), IN_JOB, "needs identity_provider_id, service_account_id"),
        (
            keyless("openai", {**OPENAI, **AZURE}),
            IN_JOB,
            "has keys that openai does not support: tenant_id, client_id",
        ),
        (
            keyless("gemini", OPENAI),
            IN_JOB,
            "'gemini' does not support github-oidc; use openai, anthropic or azure",
        ),
        (
            keyless("openai", OPENAI, base_url="https://evil.example/v1"),
            IN_JOB,
            "`base_url` is not a host of openai, so it must not receive a token",
        ),
        (
            keyless("openai", OPENAI, base_url="https://api.openai.com.evil.example/v1"),
            IN_JOB,
            "`base_url` is not a host of openai, so it must not receive a token",
        ),
        (
            keyless("azure", AZURE, base_url="http://localhost:1"),
            IN_JOB,
            "`base_url` is not a host of azure, so it must not receive a token",
        ),
        (
            keyless("openai", OPENAI, api_key_env="KEY"),
            IN_JOB,
            "`auth` and the key in KEY exclude each other; remove one",
        ),
        (keyless("openai", {"type": "oidc"}), IN_JOB, "judge.auth.type"),
    ],
)
def test_invalid_auth_is_rejected_before_any_call(
    tmp_path: Path, given: Mapping[str, Any], environ: Mapping[str, str], expected: str
) -> None:
    found = judge(tmp_path, given, environ=environ)
    assert found.ran.code == 2
    assert expected in found.ran.out
    assert KEY_HINT not in found.ran.out


def test_pull_request_from_fork_skips_check(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    repos = {"head": {"repo": {"full_name": "me/a"}}, "base": {"repo": {"full_name": "org/a"}}}
    event.write_text(json.dumps({"pull_request": repos}))
    environ = {
        **IN_ACTIONS,
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }
    found = judge(tmp_path, keyless("openai", OPENAI), environ=environ)
    assert found.statuses == ["skipped"]
    assert "pull requests from forks have no access to secrets" in found.reasons[0]


@contextmanager
def openai_with_models(
    patch: pytest.MonkeyPatch, end: str | None, status: int = 200
) -> Iterator[Server]:
    """Serve OpenAI models whose shutdown date is ``end``."""

    def respond(asked: Asked) -> Answer:
        if asked.method == "GET":
            model = json.dumps({"id": "m", "shutdown_date": end}).encode()
            return Answer(status=status, body=model)
        return scored(0.9)  # type: ignore[no-any-return]

    with services(respond, patch) as server:
        yield server


class TestModelShutdownDate:
    """Only the API of OpenAI at its default URL reports it."""

    GIVEN: Mapping[str, Any] = {"provider": "openai", "model": "m", "api_key_env": "KEY"}

    def test_shutdown_soon_is_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        soon = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 10 * 86_400))
        with openai_with_models(monkeypatch, soon) as server:
            found = judge(tmp_path, self.GIVEN, cases=2)
        assert found.statuses == ["passed"] * 2
        [warning] = found.report["problems"]
        assert warning["message"].startswith(f"the model m will be shut down on {soon}, in ")
        assert warning["severity"] == "warning"
        assert [each.path for each in server.asked if each.method == "GET"] == ["/v1/models/m"]

    def test_shut_down_model_is_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with openai_with_models(monkeypatch, "2026-01-01") as server:
            found = judge(tmp_path, self.GIVEN)
        assert found.ran.code == 2
        assert "evaluator `j`: the model m was shut down on 2026-01-01" in found.ran.out
        assert {each.method for each in server.asked} == {"GET"}

    def test_model_is_looked_up_once_per_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two: list[Any] = [
            {"name": "j", "type": "llm_judge"},
            {"name": "k", "type": "llm_judge", "judge": {"samples": 2, "effort": "low"}},
        ]
        with openai_with_models(monkeypatch, None) as server:
            judge(tmp_path, self.GIVEN, evaluators=two)
        assert [each.method for each in server.asked].count("GET") == 1

    @pytest.mark.parametrize("how", ["--offline", "replay"])
    def test_model_is_not_looked_up_without_calls(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        options, more = (["--offline"], {}) if how == "--offline" else ([], {"replay": "only"})
        with openai_with_models(monkeypatch, "2026-01-01") as server:
            judge(tmp_path, {**self.GIVEN, **more}, *options)
        assert server.asked == []

    def test_model_is_not_looked_up_at_custom_base_url(self, tmp_path: Path) -> None:
        def respond(asked: Asked) -> Answer:
            assert asked.method == "POST"
            return scored(0.9)  # type: ignore[no-any-return]

        with serve(respond) as server:
            found = judge(tmp_path, {**self.GIVEN, "base_url": server.url})
        assert found.statuses == ["passed"]
