"""The job token is an input of the action."""

from agentci.remote.run_sources import read_token_input


def test_token_is_read_from_input() -> None:
    assert read_token_input({"INPUT_GITHUB-TOKEN": " t\n"}) == "t"
    assert read_token_input({"GITHUB_TOKEN": "t"}) == ""
