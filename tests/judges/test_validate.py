"""Checks of judge settings before any request, and warnings of model shutdowns."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError
from agentci.judges.keys import ApiKeys, find_settings_problems, find_shutdown_warning
from agentci.judges.providers import PROVIDERS
from agentci.model.judges import ModelSettings
from tests._util.http.servers import Answer, Raw, script, serve
from tests.judges.bench import KEY, Bench, refused
from tests.judges.bench import settings as at

TODAY = date(2026, 11, 22)


def problems_of(**given: Any) -> list[str]:
    settings = ModelSettings(**{"provider": "openai", "model": "m", "key_variable": "KEY", **given})
    missing = ApiKeys(
        ConfigVariables({"KEY": KEY, "EMPTY": " "}), Bench().transport
    ).explain_missing(settings)
    return [*find_settings_problems(settings), *([missing] if missing else [])]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_provider_model_and_key_are_sufficient(provider: str) -> None:
    assert problems_of(provider=provider) == []


def test_command_is_sufficient() -> None:
    assert problems_of(provider="command", model="", key_variable="", command=("judge",)) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"provider": "opnai"}, "unknown provider 'opnai'; did you mean 'openai'?"),
        (
            {"provider": "zzz"},
            "unknown provider 'zzz'; use openai, azure, anthropic, gemini or command",
        ),
        (
            {"model": ""},
            "`model` is missing; there is no default model",
        ),
        ({"provider": "azure"}, "the provider 'azure' needs a `base_url`"),
        (
            {"provider": "gemini", "effort": "low"},
            "the provider 'gemini' does not support `effort`",
        ),
        (
            {"key_variable": "NONE"},
            "the environment variable NONE with the judge's key is not set",
        ),
        (
            {"key_variable": "EMPTY"},
            "the environment variable EMPTY with the judge's key is not set",
        ),
        ({"provider": "command"}, "`provider: command` needs a `command`"),
        (
            {"command": ("j",)},
            "the provider 'openai' does not use `command`; remove one of them",
        ),
        (
            {"provider": "command", "command": ("j",), "temperature": 0},
            "the provider 'command' does not support `temperature`",
        ),
        (
            {"base_url": "https://models.github.ai/inference"},
            (
                "`base_url` is the address of GitHub Models, which was shut down on 2026-07-30; use"
                " another service, or a program (`provider: command`) such as the Copilot CLI"
            ),
        ),
        (
            {"base_url": "http://litellm:4000/v1"},
            (
                "invalid `base_url`: http://litellm:4000/v1 is not encrypted; use https; http"
                " is allowed only for this machine (localhost, 127.0.0.1)"
            ),
        ),
        (
            {"base_url": "litellm"},
            "invalid `base_url`: litellm is not a URL; write it as https://HOST/PATH",
        ),
    ],
)
def test_invalid_setting_is_reported(given: dict[str, Any], problem: str) -> None:
    assert problems_of(**given) == [problem]


@pytest.mark.parametrize("more", ["me:{0}@", "{0}@", "?key={0}", "#{0}"])
def test_base_url_with_credentials_is_rejected(more: str) -> None:
    more = more.format(KEY)
    name, rest = (more, "") if more.endswith("@") else ("", more)
    [problem] = problems_of(base_url=f"https://{name}judge.example/v1{rest}")
    assert (
        "https://judge.example/v1 must not contain a user, password, query or fragment" in problem
    )
    assert "remove it; `api_key_env` names" in problem
    assert KEY not in problem


def test_unencrypted_base_url_is_allowed_without_key() -> None:
    assert problems_of(base_url="http://ollama:11434/v1", key_variable="") == []


def look_up(bench: Bench, answer: Answer | Raw) -> tuple[str, list[str]]:
    with serve(script(answer)) as server:
        given = at(server.url, model="org/m 1")
        warning = find_shutdown_warning(given, bench.transport, keys=bench.keys, today=TODAY)
    assert {each.method for each in server.asked} == {"GET"}
    assert {each.headers["authorization"] for each in server.asked} == {f"Bearer {KEY}"}
    return warning, list(server.paths)


def ends(value: object) -> Answer:
    return Answer(body=json.dumps({"id": "m", "shutdown_date": value}).encode())


def test_upcoming_shutdown_is_a_warning() -> None:
    warning, paths = look_up(Bench(), ends("2026-12-11"))
    assert warning == "the model org/m 1 will be shut down on 2026-12-11, in 19 days"
    assert paths == ["/models/org%2Fm%201"]


@pytest.mark.parametrize("value", [TODAY, TODAY - timedelta(days=400)])
def test_past_shutdown_is_an_error(value: date) -> None:
    with pytest.raises(EvaluatorError, match=f"was shut down on {value}; use another model"):
        look_up(Bench(), ends(str(value)))


@pytest.mark.parametrize(
    "answer",
    [
        ends("2027-11-22"),
        ends(None),
        Answer(body=b"{}"),
        ends("soon"),
        Answer(body=b"<html>"),
        refused(404),
        refused(401),
        Raw(pieces=[], resets=True),
    ],
)
def test_distant_or_unknown_shutdown_gives_no_warning(answer: Answer | Raw) -> None:
    assert look_up(Bench(), answer)[0] == ""


def test_every_provider_reports_missing_settings() -> None:
    for name in PROVIDERS:
        assert list(find_settings_problems(ModelSettings(provider=name)))
