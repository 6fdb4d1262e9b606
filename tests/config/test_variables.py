"""Which environment variables configs may name, and that their values become secrets."""

import pytest

from agentci.config.variables import ConfigVariables, is_name_pattern, is_reserved
from agentci.errors import EvaluatorError

ENVIRON = {
    "MY_SECRET": "s3cret-value",
    "MY_OTHER": "0ther-value",
    "GITHUB_TOKEN": "ghs_token",
    "INPUT_CONFIG": "evals",
    "GITHUB_SHA": "0" * 40,
}


@pytest.mark.parametrize(
    ("allowed", "named", "value"),
    [
        pytest.param(["*"], "MY_SECRET", "s3cret-value", id="any"),
        pytest.param(["MY_SECRET"], "MY_SECRET", "s3cret-value", id="name"),
        pytest.param(["X", "MY_*"], "MY_OTHER", "0ther-value", id="pattern"),
        pytest.param([], "MY_SECRET", "", id="none"),
        pytest.param(["MY_SECRET"], "MY_OTHER", "", id="another name"),
        pytest.param(["my_secret", "MY_SECRE", "*_SECRE"], "MY_SECRET", "", id="similar names"),
        pytest.param(["*", "GITHUB_TOKEN"], "GITHUB_TOKEN", "", id="token of the job"),
        pytest.param(["*", "INPUT_*"], "INPUT_CONFIG", "", id="input of the action"),
        pytest.param([], "GITHUB_SHA", "0" * 40, id="public"),
        pytest.param(["*"], "NOT_SET", "", id="not set"),
    ],
)
def test_config_reads_only_allowed_variables(allowed: list[str], named: str, value: str) -> None:
    variables = ConfigVariables(ENVIRON, allowed=allowed, public=("GITHUB_SHA", "GITHUB_TOKEN"))
    assert variables.get(named) == value
    assert (named in variables) == bool(value)


def test_value_that_was_read_is_a_secret() -> None:
    variables = ConfigVariables(ENVIRON, allowed=["MY_*"], public=("GITHUB_SHA",))
    assert variables.select(("MY_SECRET", "GITHUB_SHA", "MY_UNSET")) == {
        "MY_SECRET": "s3cret-value",
        "GITHUB_SHA": "0" * 40,
    }
    text = f"s3cret-value 0ther-value {'0' * 40}"
    assert variables.redactor.redact(text) == f"*** 0ther-value {'0' * 40}"
    assert variables.allow(["MY_SECRET"]).redactor is variables.redactor


def test_program_gets_no_refused_variable() -> None:
    with pytest.raises(EvaluatorError, match="MY_OTHER is not in env-allow; add it to the"):
        ConfigVariables(ENVIRON, allowed=["MY_SECRET"]).select(("MY_SECRET", "MY_OTHER"))


def test_own_variable_is_read_whatever_is_allowed() -> None:
    variables = ConfigVariables(ENVIRON, allowed=())
    assert variables.read_own("GITHUB_TOKEN") == "ghs_token"
    assert variables.redactor.redact("ghs_token") == "***"
    assert variables.read_own("NOT_SET") == ""


@pytest.mark.parametrize(
    "name", ["ACTIONS_RUNTIME_TOKEN", "INPUT_GITHUB-TOKEN", "GITHUB_TOKEN", "GH_TOKEN"]
)
def test_credentials_of_the_job_are_reserved(name: str) -> None:
    assert is_reserved(name)
    refusal = ConfigVariables({name: "x"}, allowed=["*", name]).explain_refusal(name)
    assert refusal is not None
    assert refusal[0] == f"{name} is never available to configs"


def test_name_patterns_have_no_other_characters() -> None:
    assert all(map(is_name_pattern, ["A", "_a1", "*", "A_*_B"]))
    assert not any(map(is_name_pattern, ["", "A B", "A,B", "$A", "1A", "A=b", "[A]", "A?", "A\n"]))
