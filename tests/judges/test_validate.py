"""What keeps a judge from judging is said before anything is asked, and a model's end in time."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.judges.keys import ApiKeys
from agentci.judges.registry import PROVIDERS
from agentci.judges.validate import find_settings_problems, find_shutdown_warning
from agentci.model.judges import ModelSettings
from tests._util.http.servers import Answer, Raw, script, serve
from tests.judges.bench import KEY, Bench, refused
from tests.judges.bench import settings as at

TODAY = date(2026, 11, 22)


def objected(**given: Any) -> list[str]:
    settings = ModelSettings(**{"provider": "openai", "model": "m", "key_variable": "KEY", **given})
    missing = ApiKeys({"KEY": KEY, "EMPTY": " "}, Bench().transport).explain_missing(settings)
    return [*find_settings_problems(settings), *([missing] if missing else [])]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_provider_a_model_and_a_key_are_enough(provider: str) -> None:
    assert objected(provider=provider) == []


def test_a_command_is_enough() -> None:
    assert objected(provider="command", model="", key_variable="", command=("judge",)) == []


@pytest.mark.parametrize(
    ("given", "said"),
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
def test_what_keeps_a_model_from_being_asked_is_named(given: dict[str, Any], said: str) -> None:
    assert objected(**given) == [said]


@pytest.mark.parametrize("more", ["me:{0}@", "{0}@", "?key={0}", "#{0}"])
def test_an_address_holds_no_key(more: str) -> None:
    more = more.format(KEY)
    name, rest = (more, "") if more.endswith("@") else ("", more)
    [said] = objected(base_url=f"https://{name}judge.example/v1{rest}")
    assert "https://judge.example/v1 must not contain a user, password, query or fragment" in said
    assert "remove it; `api_key_env` names" in said
    assert KEY not in said


def test_without_a_key_another_machine_may_be_asked_unencrypted() -> None:
    assert objected(base_url="http://ollama:11434/v1", key_variable="") == []


def look_up(bench: Bench, answer: Answer | Raw) -> tuple[str, list[str]]:
    with serve(script(answer)) as server:
        given = at(server.url, model="org/m 1")
        said = find_shutdown_warning(given, bench.transport, keys=bench.keys, today=TODAY)
    assert {each.method for each in server.asked} == {"GET"}
    assert {each.headers["authorization"] for each in server.asked} == {f"Bearer {KEY}"}
    return said, list(server.paths)


def ends(value: object) -> Answer:
    return Answer(body=json.dumps({"id": "m", "shutdown_date": value}).encode())


def test_a_model_that_ends_soon_is_warned_of() -> None:
    said, paths = look_up(Bench(), ends("2026-12-11"))
    assert said == "the model org/m 1 will be shut down on 2026-12-11, in 19 days"
    assert paths == ["/models/org%2Fm%201"]


@pytest.mark.parametrize("value", [TODAY, TODAY - timedelta(days=400)])
def test_a_model_that_has_ended_is_an_error(value: date) -> None:
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
def test_what_says_nothing_of_an_end_is_no_warning(answer: Answer | Raw) -> None:
    assert look_up(Bench(), answer)[0] == ""


def test_every_provider_says_what_it_needs() -> None:
    for name in PROVIDERS:
        assert list(find_settings_problems(ModelSettings(provider=name)))
