"""The token of the job is an input of the action, and no config can name it."""

from agentci._util.action_inputs import input_token, without_inputs


def test_is_read_from_the_input() -> None:
    assert input_token({"INPUT_GITHUB-TOKEN": " t\n"}) == "t"
    assert input_token({"GITHUB_TOKEN": "t"}) == ""


def test_is_not_among_what_configs_may_name() -> None:
    environ = {"INPUT_GITHUB-TOKEN": "t", "INPUT_CONFIG": "c", "OPENAI_API_KEY": "k"}
    assert without_inputs(environ) == {"OPENAI_API_KEY": "k"}
