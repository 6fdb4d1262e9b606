"""Lock files, pinned versions, licence and packaging."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.reports.html.page import SCRIPT, STYLE
from tests.helpers.support import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {
    name: (ROOT / name).read_text()
    for name in (
        "requirements.lock",
        "requirements-evaluators.lock",
        "requirements-dev.lock",
        "requirements-docs.lock",
    )
}
# The brackets keep these lines from matching themselves.
HOSTS = re.compile(r"(py[p]i|python[h]osted|npm[j]s|deb\.[d]ebian)\.(org|com)", re.IGNORECASE)
MACHINE = re.compile(r"(^|[^\w.])/(wor[k]|far[m])/|/roo[t]/", re.MULTILINE)


def _tracked() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows which files are tracked")
def test_tracked_files_contain_no_registry_hosts_or_local_paths() -> None:
    texts = ((path, path.read_bytes().decode("utf-8", "replace")) for path in _tracked())
    found = [path for path, text in texts if HOSTS.search(text) or MACHINE.search(text)]
    assert found == []


@pytest.mark.parametrize("text", LOCKS.values(), ids=LOCKS.keys())
class TestLockFile:
    def test_every_package_has_a_hash(self, text: str) -> None:
        packages = re.split(r"^(?=\S+==)", text, flags=re.MULTILINE)[1:]
        assert packages
        assert [each for each in packages if "--hash=sha256:" not in each] == []

    def test_lock_file_names_no_index(self, text: str) -> None:
        assert re.findall(r"^\s*(--index|--extra|--find|-i |-f )|://", text, re.MULTILINE) == []

    def test_versions_agree_between_lock_files(self, text: str) -> None:
        ours, others = _versions(text), _versions(LOCKS["requirements-dev.lock"])
        assert [name for name in ours if ours[name] != others.get(name, ours[name])] == []


@pytest.mark.parametrize(
    ("requirements", "lock"),
    [
        pytest.param(PYPROJECT["project"]["dependencies"], "requirements.lock", id="runtime"),
        pytest.param(
            PYPROJECT["project"]["optional-dependencies"]["evaluators"],
            "requirements-evaluators.lock",
            id="evaluators",
        ),
        pytest.param(PYPROJECT["dependency-groups"]["dev"], "requirements-dev.lock", id="dev"),
        pytest.param(PYPROJECT["dependency-groups"]["docs"], "requirements-docs.lock", id="docs"),
    ],
)
def test_requirements_are_locked(requirements: list[str], lock: str) -> None:
    names = {re.split(r"[><=!~ ;\[]", requirement)[0] for requirement in requirements}
    assert names - _versions(LOCKS[lock]).keys() == set()


def test_base_image_is_pinned_by_digest() -> None:
    default, pinned = (ROOT / "Dockerfile").read_text().splitlines()[1:3]
    assert default == "ARG BASE_IMAGE=pinned"
    image = r"python:3\.\d+\S*-slim\S*@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"FROM {image} AS pinned", pinned)


def test_dockerfile_follows_rules_for_actions() -> None:
    words = [line.split()[0] for line in (ROOT / "Dockerfile").read_text().splitlines() if line]
    last_stage = words[len(words) - words[::-1].index("FROM") :]
    assert "USER" not in last_stage
    assert "WORKDIR" not in last_stage
    assert re.search(r'^ENTRYPOINT \["/\S+", ', (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_ci_tests_every_declared_python_version() -> None:
    named = {
        classifier.rpartition(" ")[2]
        for classifier in PYPROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", classifier)
    }
    tested = _yaml(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert set(tested["python"]) == named


def test_licence_text_is_complete() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n")
    assert "END OF TERMS AND CONDITIONS" in text


def test_wheel_contains_package_types_and_licence(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0].partition("-")[0] for name in names}
    assert folders == {"agentci", "agent_eval_action"}
    assert "agentci/py.typed" in names
    assert {f"agentci/reports/html/{name}" for name in (SCRIPT, STYLE)} <= set(names)
    assert [name for name in names if name.endswith(".js") and "/built/" not in name] == []
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def _versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+?)==(\S+)", lock, re.MULTILINE))


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())
