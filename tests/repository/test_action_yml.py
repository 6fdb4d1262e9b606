"""action.yml, the options of the command line and the code hold to each other."""

import re
from typing import Any

import pytest
import yaml

from agentci.cli.main import main
from agentci.config.options import OPTIONS, REPORT_OPTIONS, Option
from agentci.reports.action_outputs import make_outputs_without_report
from tests.helpers.support import ROOT

ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())
INPUTS = [option for option in OPTIONS if not option.cli_only]


def test_has_an_input_for_the_configs_and_for_every_option_in_their_order() -> None:
    assert list(ACTION["inputs"]) == ["config", *(option.name for option in INPUTS)]


@pytest.mark.parametrize("option", INPUTS, ids=lambda option: option.name)
class TestEveryInput:
    def test_has_the_default_of_its_option(self, option: Option) -> None:
        assert ACTION["inputs"][option.name]["default"] == (
            "false" if option.is_switch else option.default
        )

    def test_is_described_as_its_option(self, option: Option) -> None:
        assert ACTION["inputs"][option.name]["description"].startswith(option.help)

    def test_is_not_required_because_github_would_not_enforce_it(self, option: Option) -> None:
        assert "required" not in ACTION["inputs"][option.name]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_but_the_actions_own_is_a_flag_of_run(
    option: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    flags = capsys.readouterr().out.split()
    assert (f"--{option.name}" in flags) is not option.input_only


@pytest.mark.parametrize("name", REPORT_OPTIONS)
def test_merge_has_the_flags_that_are_about_reports(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["merge", "--help"])
    assert f"--{name}" in capsys.readouterr().out.split()


def test_the_matrix_is_read_from_githubs_context() -> None:
    default = ACTION["inputs"]["matrix-job"]["default"]
    assert default == "${{ strategy.job-index }}/${{ strategy.job-total }}"


def test_the_token_is_that_of_the_job() -> None:
    assert ACTION["inputs"]["github-token"]["default"] == "${{ github.token }}"


def test_declares_the_outputs_that_the_code_sets() -> None:
    assert list(ACTION["outputs"]) == list(make_outputs_without_report("invalid"))


def test_runs_the_dockerfile_or_in_a_release_the_image_that_was_built_of_it() -> None:
    assert set(ACTION["runs"]) == {"using", "image"}
    assert ACTION["runs"]["using"] == "docker"
    built = r"docker://ghcr\.io/\S+@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"Dockerfile|{built}", ACTION["runs"]["image"])
