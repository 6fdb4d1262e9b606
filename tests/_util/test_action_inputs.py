"""The job token is an input of the action that configs cannot read."""

from agentci._util.action_inputs import read_token_input, remove_action_inputs


def test_token_is_read_from_input() -> None:
    assert read_token_input({"INPUT_GITHUB-TOKEN": " t\n"}) == "t"
    assert read_token_input({"GITHUB_TOKEN": "t"}) == ""


def test_action_inputs_are_removed_from_environment() -> None:
    environ = {"INPUT_GITHUB-TOKEN": "t", "INPUT_CONFIG": "c", "OPENAI_API_KEY": "k"}
    assert remove_action_inputs(environ) == {"OPENAI_API_KEY": "k"}
