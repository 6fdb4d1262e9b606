"""Every recipe of the documents: accepted by linters, and run where this machine can."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from lxml import etree

from agentci.cli.arguments import make_parser
from tests.helpers.actionlint import complaints
from tests.helpers.documents import snippets
from tests.helpers.recipes import (
    RECIPES,
    command_lines,
    commands_of_jenkins,
    gitlab,
    jenkins,
    step_of,
    workflows,
)
from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
XSD = etree.XMLSchema(file=str(ROOT / "tests/reports/data/junit-10.xsd"))
MINIMUM = 14  # of workflows in the documents; fewer, and they are not found any more

Shell: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All workflows, as files."""
    folder = tmp_path_factory.mktemp("recipes") / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, text in workflows().items():
        (folder / name).write_text(text)
    return folder


class TestTheWorkflowsOfTheDocuments:
    def test_are_found(self) -> None:
        assert len(workflows()) >= MINIMUM

    def test_are_of_the_schema(self, folder: Path) -> None:
        files = sorted(map(str, folder.iterdir()))
        done = _linter("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
        assert done.returncode == 0, done.stdout

    def test_are_safe(self, folder: Path) -> None:
        done = _linter("zizmor", "--offline", "--no-progress", str(folder.parent.parent))
        assert done.returncode == 0, done.stdout

    def test_make_sense(self) -> None:
        assert complaints(workflows()) == []


def test_every_command_line_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for document, words in command_lines():
        try:
            make_parser().parse_args(words)
        except SystemExit:
            wrong.append(f"{document}: agentci {' '.join(words)}: {capsys.readouterr().err}")
    assert wrong == []


def test_the_file_of_gitlab_is_of_its_schema(tmp_path: Path) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text(gitlab())
    schema = ["--builtin-schema", "vendor.gitlab-ci"]
    done = _linter("check-jsonschema", *schema, str(tmp_path / ".gitlab-ci.yml"))
    assert done.returncode == 0, done.stdout


def test_the_hook_of_pre_commit_is_one_that_there_is() -> None:
    (config,) = (yaml.safe_load(each) for each in snippets(RECIPES, "yaml") if "hooks:" in each)
    (hook,) = config["repos"][0]["hooks"]
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == ours["id"]
    assert re.search(hook["files"], "agents/refunds/evals/eval_config.yaml")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs a script in a checkout whose configs are in evals/, with agentci on the PATH."""
    checkout, programs = tmp_path / "checkout", tmp_path / "programs"
    shutil.copytree(ROOT / "examples/agentevals", checkout / "evals")
    programs.mkdir()
    (programs / "agentci").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentci "$@"\n')
    (programs / "agentci").chmod(0o755)

    def run(
        script: str, *, interpreter: str = "sh", environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [interpreter, "-e", "-c", script],
            cwd=checkout,
            env={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "HOME": str(tmp_path),
                "PYTHONPATH": str(ROOT),
                **(environ or {}),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


class TestTheJobOfGitlab:
    def test_judges_and_leaves_what_gitlab_takes_up(self, shell: Shell, tmp_path: Path) -> None:
        job = yaml.safe_load(gitlab())["agent-eval"]
        done = shell("\n".join(job["script"]))
        assert done.returncode == 0, done.stderr
        taken = job["artifacts"]["paths"]
        assert [name for name in taken if not (tmp_path / "checkout" / name).is_dir()] == []
        assert job["cache"]["paths"] == [".agentci/cache"]
        assert (tmp_path / "checkout" / job["artifacts"]["reports"]["junit"]).is_file()

    def test_fails_when_the_agent_got_worse(self, shell: Shell, tmp_path: Path) -> None:
        _make_worse(tmp_path / "checkout")
        job = yaml.safe_load(gitlab())["agent-eval"]
        assert shell("\n".join(job["script"])).returncode == 1
        assert 1 not in job["allow_failure"]["exit_codes"]


class TestThePipelineOfJenkins:
    def test_judges_and_leaves_what_jenkins_takes_up(self, shell: Shell, tmp_path: Path) -> None:
        (command,) = commands_of_jenkins()
        assert shell(command).returncode == 0
        (report,) = re.findall(r"^ +junit '(.+)'$", jenkins(), re.MULTILINE)
        XSD.assertValid(etree.parse(tmp_path / "checkout" / report))
        (kept,) = re.findall(r"archiveArtifacts '(.+)'", jenkins())
        assert list((tmp_path / "checkout").glob(f"{kept}/*.html"))

    def test_fails_when_the_agent_got_worse(self, shell: Shell, tmp_path: Path) -> None:
        _make_worse(tmp_path / "checkout")
        (command,) = commands_of_jenkins()
        assert shell(command).returncode == 1


class TestTheMonorepo:
    """Its two scripts, in a repository with two agents."""

    @pytest.mark.parametrize(
        ("changed", "agents"),
        [
            pytest.param(["agents/refunds/prompt.txt"], ["refunds"], id="one agent"),
            pytest.param(
                ["agents/refunds/a b.txt", "agents/search/evals/x.yaml"],
                ["refunds", "search"],
                id="two agents",
            ),
            pytest.param(["README.md", "agents/README.md"], [], id="none"),
            pytest.param(["libs/tools.py"], ["refunds", "search"], id="what all are made of"),
            pytest.param(['libs/"é".py'], ["refunds", "search"], id="a quoted one of them"),
            pytest.param(["agents/refunds/é.txt"], ["refunds"], id="a name that is not ASCII"),
            pytest.param(['agents/refunds/"a"\t.txt'], ["refunds"], id="a name that is quoted"),
            pytest.param(["agents/größe/a.txt"], ["größe"], id="an agent that is not ASCII"),
        ],
    )
    def test_finds_the_agents_that_a_change_is_about(
        self, shell: Shell, tmp_path: Path, changed: list[str], agents: list[str]
    ) -> None:
        base = self._begun(tmp_path / "checkout")
        _commit(tmp_path / "checkout", changed)
        assert self._agents(shell, base, tmp_path / "output") == agents

    def test_judges_both_agents_where_a_file_moved_and_none_that_is_gone(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        checkout = tmp_path / "checkout"
        base = self._begun(checkout)
        _git(checkout, "mv", "agents/refunds/evals.txt", "agents/search/evals.txt")
        _commit(checkout, [])
        assert self._agents(shell, base, tmp_path / "output") == ["refunds", "search"]
        _git(checkout, "rm", "--quiet", "-r", "agents/refunds")
        _commit(checkout, [])
        assert self._agents(shell, base, tmp_path / "output") == ["search"]

    def test_fails_where_the_base_is_not_known(self, shell: Shell, tmp_path: Path) -> None:
        self._begun(tmp_path / "checkout")
        with pytest.raises(AssertionError, match="fatal: "):
            self._agents(shell, "0" * 39 + "1", tmp_path / "output")

    @staticmethod
    def _begun(checkout: Path) -> str:
        files = ["agents/refunds/agent.py", "agents/refunds/evals.txt", "agents/search/agent.py"]
        _commit(checkout, [*files, "libs/tools.py"])
        return _git(checkout, "rev-parse", "HEAD")

    @staticmethod
    def _agents(shell: Shell, base: str, output: Path) -> list[str]:
        """Those that the script finds."""
        output.unlink(missing_ok=True)
        step = step_of(_monorepo(), "changed")
        environ = {"BASE": base, "SHARED": step["env"]["SHARED"], "GITHUB_OUTPUT": str(output)}
        done = shell(step["run"], interpreter="bash", environ=environ)
        assert done.returncode == 0, done.stderr
        name, _, value = output.read_text().partition("=")
        assert name == "agents"
        found: list[str] = json.loads(value)
        return found

    def test_has_a_gate_for_each_agent_in_one_job(self, shell: Shell, tmp_path: Path) -> None:
        (config,) = re.findall(r"config: (agents/\*\S+)", RECIPES.read_text())
        for agent in ("refunds", "search"):
            shutil.copytree(
                tmp_path / "checkout/evals", tmp_path / "checkout/agents" / agent / "evals"
            )
        assert shell(f"agentci run '{config}'").returncode == 0
        results = json.loads((tmp_path / "checkout/agentci-results/results.json").read_text())
        gates = [gate["config"] for gate in results["gates"]]
        assert gates == [
            f"agents/{agent}/evals/eval_config.yaml" for agent in ("refunds", "search")
        ]

    @pytest.mark.parametrize(
        ("results", "code"),
        [
            ("success success", 0),
            ("success skipped", 0),
            ("success failure", 1),
            ("success cancelled", 1),
            ("failure skipped", 1),
        ],
    )
    def test_is_green_when_no_agent_got_worse(self, shell: Shell, results: str, code: int) -> None:
        step = step_of(_monorepo(), "eval")
        assert (
            shell(step["run"], interpreter="bash", environ={"RESULTS": results}).returncode == code
        )


def _monorepo() -> str:
    (found,) = (each for each in workflows().values() if "id: changed" in each)
    return found


def _linter(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / name, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


def _make_worse(checkout: Path) -> None:
    shutil.rmtree(checkout / "evals" / "recordings")
    shutil.copytree(ROOT / "examples/agentevals-failing/recordings", checkout / "evals/recordings")


def _commit(checkout: Path, names: list[str]) -> None:
    for name in names:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(f"{name} among {len(names)}")
    _git(checkout, "init", "--quiet")
    _git(checkout, "add", "--all")
    identity = ["-c", "user.name=ci", "-c", "user.email=ci@example.invalid"]
    _git(checkout, *identity, "commit", "--quiet", "--message", "change")


def _git(checkout: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.strip()
