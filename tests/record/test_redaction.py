import pytest

from agentci._util.text.secrets import Redactor
from agentci.errors import InputError
from agentci.record.redaction import RecordingRedactor


def test_keys_of_variables_and_headers_are_removed() -> None:
    redactor = RecordingRedactor(Redactor())
    redactor.learn_variables(
        {"MY_API_KEY": "first-secret", "MAX_TOKENS": "100000", "DB_PASSWORD": "second-secret"}
    )
    redactor.learn_headers({"Authorization": "Bearer third-secret", "x-api-key": "short"})
    value = {"a": ["first-secret 100000", {"b": "second-secret third-secret short"}], "c": 1}
    assert redactor.redact(value) == {
        "a": ["[key removed] 100000", {"b": "[key removed] [key removed] short"}],
        "c": 1,
    }


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-0123456789abcdefABCD",
        "AIza0123456789abcdefghijklmnopqrstuvwxy",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-1234567890-abc",
    ],
)
def test_keys_are_recognised_by_their_shape(key: str) -> None:
    redactor = RecordingRedactor(Redactor())
    assert redactor.redact({"text": f"use {key}, please"}) == {"text": "use [key removed], please"}


@pytest.mark.parametrize(("pattern", "message"), [("[", "not a regular"), ("a*", "empty text")])
def test_invalid_rule_is_a_problem(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RecordingRedactor(Redactor(), [pattern])


def test_names_in_json_are_redacted_like_texts() -> None:
    redactor = RecordingRedactor(Redactor(), [r"\w+@\w+"])
    key = "sk-proj-0123456789abcdefABCD"
    assert redactor.redact({"a@b": {f"is {key}": 1}}) == {"***": {"is [key removed]": 1}}
