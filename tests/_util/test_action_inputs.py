"""The token of the job is an input of the action, and no config can name it."""

from agentci._util.action_inputs import read_token_input, remove_action_inputs


def test_is_read_from_the_input() -> None:
    assert read_token_input({"INPUT_GITHUB-TOKEN": " t\n"}) == "t"
    assert read_token_input({"GITHUB_TOKEN": "t"}) == ""


def test_is_not_among_what_configs_may_name() -> None:
    environ = {"INPUT_GITHUB-TOKEN": "t", "INPUT_CONFIG": "c", "OPENAI_API_KEY": "k"}
    assert remove_action_inputs(environ) == {"OPENAI_API_KEY": "k"}
