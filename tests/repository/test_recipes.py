"""Recipes in documents and examples: checked by linters, and run if this machine can."""

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
MINIMUM = 14  # workflows in documents and examples; fewer means that they are no longer found

Shell: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all documented workflows."""
    folder = tmp_path_factory.mktemp("recipes") / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, text in workflows().items():
        (folder / name).write_text(text)
    return folder


class TestDocumentedWorkflows:
    def test_workflows_are_found(self) -> None:
        assert len(workflows()) >= MINIMUM

    def test_workflows_match_schema(self, folder: Path) -> None:
        files = sorted(map(str, folder.iterdir()))
        done = _linter("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
        assert done.returncode == 0, done.stdout

    def test_zizmor_reports_no_problems(self, folder: Path) -> None:
        done = _linter("zizmor", "--offline", "--no-progress", str(folder.parent.parent))
        assert done.returncode == 0, done.stdout

    def test_actionlint_reports_no_problems(self) -> None:
        assert complaints(workflows()) == []


def test_documented_commands_are_valid(capsys: pytest.CaptureFixture[str]) -> None:
    errors = []
    for document, words in command_lines():
        try:
            make_parser().parse_args(words)
        except SystemExit:
            errors.append(f"{document}: agentci {' '.join(words)}: {capsys.readouterr().err}")
    assert errors == []


def test_gitlab_file_matches_schema(tmp_path: Path) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text(gitlab())
    schema = ["--builtin-schema", "vendor.gitlab-ci"]
    done = _linter("check-jsonschema", *schema, str(tmp_path / ".gitlab-ci.yml"))
    assert done.returncode == 0, done.stdout


def test_pre_commit_hook_exists() -> None:
    (config,) = (yaml.safe_load(each) for each in snippets(RECIPES, "yaml") if "hooks:" in each)
    (hook,) = config["repos"][0]["hooks"]
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == ours["id"]
    assert re.search(hook["files"], "agents/refunds/evals/eval_config.yaml")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs a script in a checkout with configs in evals/ and agentci on the PATH."""
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
                "WORKSPACE_TMP": str(tmp_path),
                **(environ or {}),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


class TestGitlabJob:
    def test_gitlab_job_writes_its_artifacts(self, shell: Shell, tmp_path: Path) -> None:
        job = yaml.safe_load(gitlab())["agent-eval"]
        done = shell("\n".join(job["script"]))
        assert done.returncode == 0, done.stderr
        taken = job["artifacts"]["paths"]
        assert [name for name in taken if not (tmp_path / "checkout" / name).is_dir()] == []
        assert (tmp_path / "checkout" / job["artifacts"]["reports"]["junit"]).is_file()

    def test_gitlab_job_fails_on_regression(self, shell: Shell, tmp_path: Path) -> None:
        _make_worse(tmp_path / "checkout")
        job = yaml.safe_load(gitlab())["agent-eval"]
        assert shell("\n".join(job["script"])).returncode == 1
        assert 1 not in job["allow_failure"]["exit_codes"]


class TestJenkinsPipeline:
    def test_jenkins_pipeline_writes_its_artifacts(self, shell: Shell, tmp_path: Path) -> None:
        (command,) = commands_of_jenkins()
        assert shell(command).returncode == 0
        (report,) = re.findall(r"^ +junit testResults: '([^']+)'", jenkins(), re.MULTILINE)
        XSD.assertValid(etree.parse(tmp_path / "checkout" / report))
        (kept,) = re.findall(r"archiveArtifacts '(.+)'", jenkins())
        assert list((tmp_path / "checkout").glob(f"{kept}/*.html"))

    def test_jenkins_pipeline_fails_on_regression(self, shell: Shell, tmp_path: Path) -> None:
        _make_worse(tmp_path / "checkout")
        (command,) = commands_of_jenkins()
        assert shell(command).returncode == 1


class TestMonorepo:
    """The scripts of the workflow for monorepos, in a repository with two agents."""

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
            pytest.param(["libs/tools.py"], ["refunds", "search"], id="shared code"),
            pytest.param(['libs/"é".py'], ["refunds", "search"], id="shared code, quoted name"),
            pytest.param(["agents/refunds/é.txt"], ["refunds"], id="non-ASCII name"),
            pytest.param(['agents/refunds/"a"\t.txt'], ["refunds"], id="quoted name"),
            pytest.param(["agents/größe/a.txt"], ["größe"], id="non-ASCII agent"),
        ],
    )
    def test_changed_agents_are_found(
        self, shell: Shell, tmp_path: Path, changed: list[str], agents: list[str]
    ) -> None:
        base = self._make_base(tmp_path / "checkout")
        _commit(tmp_path / "checkout", changed)
        assert self._agents(shell, base, tmp_path / "output") == agents

    def test_moved_file_selects_both_agents(self, shell: Shell, tmp_path: Path) -> None:
        checkout = tmp_path / "checkout"
        base = self._make_base(checkout)
        _git(checkout, "mv", "agents/refunds/evals.txt", "agents/search/evals.txt")
        _commit(checkout, [])
        assert self._agents(shell, base, tmp_path / "output") == ["refunds", "search"]
        _git(checkout, "rm", "--quiet", "-r", "agents/refunds")
        _commit(checkout, [])
        assert self._agents(shell, base, tmp_path / "output") == ["search"]

    def test_unknown_base_commit_fails(self, shell: Shell, tmp_path: Path) -> None:
        self._make_base(tmp_path / "checkout")
        with pytest.raises(AssertionError, match="fatal: "):
            self._agents(shell, "0" * 39 + "1", tmp_path / "output")

    @staticmethod
    def _make_base(checkout: Path) -> str:
        files = ["agents/refunds/agent.py", "agents/refunds/evals.txt", "agents/search/agent.py"]
        _commit(checkout, [*files, "libs/tools.py"])
        return _git(checkout, "rev-parse", "HEAD")

    @staticmethod
    def _agents(shell: Shell, base: str, output: Path) -> list[str]:
        """The agents that the script finds."""
        output.unlink(missing_ok=True)
        step = step_of(_monorepo(), "changed")
        environ = {"BASE": base, "SHARED": step["env"]["SHARED"], "GITHUB_OUTPUT": str(output)}
        done = shell(step["run"], interpreter="bash", environ=environ)
        assert done.returncode == 0, done.stderr
        name, _, value = output.read_text().partition("=")
        assert name == "agents"
        found: list[str] = json.loads(value)
        return found

    def test_every_agent_has_its_own_gate(self, shell: Shell, tmp_path: Path) -> None:
        (config,) = re.findall(r"config: (agents/\*[^\s`]+)", RECIPES.read_text())
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
    def test_required_job_fails_on_regression(self, shell: Shell, results: str, code: int) -> None:
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
