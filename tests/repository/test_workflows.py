"""The project's workflows: permissions, scripts and linters."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.actionlint import complaints
from tests.helpers.support import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = re.findall(r"^([^\s:=]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _jobs(name: str) -> dict[str, Any]:
    jobs: dict[str, Any] = _yaml(ROOT / ".github/workflows" / name)["jobs"]
    return jobs


def _steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in _yaml(workflow)["jobs"].values():
        yield from job.get("steps", [])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflow:
    def test_workflow_has_no_default_permissions(self, workflow: Path) -> None:
        assert _yaml(workflow)["permissions"] == {}

    def test_every_job_declares_permissions(self, workflow: Path) -> None:
        jobs = _yaml(workflow)["jobs"]
        assert [name for name, job in jobs.items() if "permissions" not in job] == []

    def test_actions_are_pinned_by_commit_with_version(self, workflow: Path) -> None:
        used = re.findall(r"uses: (?!\./)(.+)", workflow.read_text())
        pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
        assert [line for line in used if not pinned.fullmatch(line)] == []

    def test_checkout_does_not_persist_credentials(self, workflow: Path) -> None:
        checkouts = [
            each for each in _steps(workflow) if "actions/checkout@" in each.get("uses", "")
        ]
        assert [
            each for each in checkouts if each["with"]["persist-credentials"] is not False
        ] == []

    def test_scripts_contain_no_expressions(self, workflow: Path) -> None:
        assert [each for each in _steps(workflow) if "${{" in each.get("run", "")] == []

    def test_workflow_has_concurrency_group_and_timeouts(self, workflow: Path) -> None:
        content = _yaml(workflow)
        assert "group" in content["concurrency"]
        own = {name: job for name, job in content["jobs"].items() if "uses" not in job}
        assert [name for name, job in own.items() if "timeout-minutes" not in job] == []

    def test_scripts_and_make_targets_exist(self, workflow: Path) -> None:
        scripts = "\n".join(each.get("run", "") for each in _steps(workflow))
        files = re.findall(r"\bscripts/\w+\.sh", scripts)
        files += [f"scripts/{name}.py" for name in re.findall(r"-m scripts\.(\w+)", scripts)]
        assert [name for name in files if not (ROOT / name).is_file()] == []
        targets = set(re.findall(r"^make (\S+)", scripts, re.MULTILINE))
        assert {name.replace(".venv", "$(VENV)") for name in targets} - set(TARGETS) == set()

    def test_shellcheck_accepts_scripts(self, workflow: Path) -> None:
        for step in _steps(workflow):
            done = subprocess.run(
                [Path(sys.executable).parent / "shellcheck", "--shell=bash", "-"],
                input=step.get("run", ""),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_actionlint_reports_no_problems() -> None:
    assert complaints({path.name: path.read_text() for path in WORKFLOWS}) == []


@pytest.mark.slow
def test_actionlint_reports_invalid_workflow() -> None:
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    assert complaints({"wrong.yml": workflow.replace("needs: check\n", "needs: cheque\n")})


class TestCi:
    def test_ci_runs_for_pull_requests_queue_and_release(self) -> None:
        starts = _yaml(ROOT / ".github/workflows/ci.yml")[True]
        assert {"pull_request", "merge_group", "workflow_call"} <= set(starts)

    def test_final_job_requires_every_job(self) -> None:
        jobs = _jobs("ci.yml")
        last = jobs.pop("all-green")
        assert last["if"] == "always()"
        assert last["needs"] == list(jobs)
        assert f'"{" ".join(["success"] * len(jobs))}"' in last["steps"][0]["run"]


class TestRelease:
    def test_only_last_job_writes_to_repository(self) -> None:
        jobs = _jobs("release.yml")
        writers = [
            name for name, job in jobs.items() if job["permissions"].get("contents") == "write"
        ]
        assert writers == ["publish"]
        assert _before("publish", jobs) == jobs.keys() - {"publish"}

    def test_builds_wait_for_check_and_tests(self) -> None:
        jobs = _jobs("release.yml")
        built = jobs.keys() - {"check", "test"}
        assert [name for name in built if not {"check", "test"} <= _before(name, jobs)] == []

    def test_pypi_job_has_only_token_permission(self) -> None:
        assert _jobs("release.yml")["pypi"]["permissions"] == {"id-token": "write"}

    @pytest.mark.parametrize(
        ("tag", "prerelease"), [("v1.2.3", "false"), ("v1.2.3rc1", "true"), ("v2.0.0b2", "true")]
    )
    def test_release_candidate_is_marked_as_prerelease(
        self, tmp_path: Path, tag: str, prerelease: str
    ) -> None:
        """Runs the last script with programs that only print their arguments."""
        for name in ("gh", "git", "python3", "scripts/publish_tags.sh"):
            program = tmp_path / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f'#!/bin/sh\necho {name} "$@" >&2\n[ "$2" != view ]\n')
            program.chmod(0o755)
        done = subprocess.run(
            [
                "bash",
                "-e",
                "-o",
                "pipefail",
                "-c",
                _jobs("release.yml")["publish"]["steps"][-1]["run"],
            ],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_REF_NAME": tag, "IMAGE": "image"},
            capture_output=True,
            text=True,
            check=True,
        )
        [made] = [line for line in done.stderr.splitlines() if "release create" in line]
        assert f"gh release create {tag} --verify-tag --prerelease={prerelease} " in made

    def test_release_builds_the_platforms_that_ci_tests(self) -> None:
        tested, built = (
            _jobs(name)["image"]["strategy"]["matrix"] for name in ("ci.yml", "release.yml")
        )
        assert tested == built


def _before(name: str, jobs: dict[str, Any]) -> set[str]:
    """All jobs that a job needs, directly or indirectly."""
    needs = jobs[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(_before(each, jobs) for each in direct))
