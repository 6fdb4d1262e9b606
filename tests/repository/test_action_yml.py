"""action.yml matches the command line options and the code."""

import re
from typing import Any

import pytest
import yaml

from agentci.cli.publish import make_outputs_without_report
from agentci.config.options import OPTIONS, REPORT_OPTIONS, Option
from tests.helpers.support import ROOT, run_agentci

ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())
INPUTS = [option for option in OPTIONS if not option.cli_only]


def test_inputs_are_config_and_all_options_in_order() -> None:
    assert list(ACTION["inputs"]) == ["config", *(option.name for option in INPUTS)]


@pytest.mark.parametrize("option", INPUTS, ids=lambda option: option.name)
class TestInput:
    def test_default_matches_option(self, option: Option) -> None:
        assert ACTION["inputs"][option.name]["default"] == (
            "false" if option.is_switch else option.default
        )

    def test_description_matches_option(self, option: Option) -> None:
        assert ACTION["inputs"][option.name]["description"].startswith(option.help)

    def test_input_is_not_marked_required(self, option: Option) -> None:
        assert "required" not in ACTION["inputs"][option.name]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_options_are_flags_of_run(option: Option, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_agentci(["run", "--help"], cwd=ROOT)
    flags = capsys.readouterr().out.split()
    assert (f"--{option.name}" in flags) is not option.input_only


@pytest.mark.parametrize("name", REPORT_OPTIONS)
def test_report_options_are_flags_of_merge(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_agentci(["merge", "--help"], cwd=ROOT)
    assert f"--{name}" in capsys.readouterr().out.split()


def test_matrix_job_comes_from_strategy_context() -> None:
    default = ACTION["inputs"]["matrix-job"]["default"]
    assert default == "${{ strategy.job-index }}/${{ strategy.job-total }}"


def test_token_comes_from_github_context() -> None:
    assert ACTION["inputs"]["github-token"]["default"] == "${{ github.token }}"


def test_outputs_match_those_of_the_code() -> None:
    assert list(ACTION["outputs"]) == list(make_outputs_without_report("invalid"))


def test_action_runs_dockerfile_or_pinned_image() -> None:
    assert set(ACTION["runs"]) == {"using", "image"}
    assert ACTION["runs"]["using"] == "docker"
    image = r"docker://ghcr\.io/\S+@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"Dockerfile|{image}", ACTION["runs"]["image"])
