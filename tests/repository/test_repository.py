"""What the repository promises about itself: locks, pins, licence, packaging."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.reports.html.page import SCRIPTS, STYLE
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
# The brackets keep these lines from being what they look for.
HOSTS = re.compile(r"(py[p]i|python[h]osted|npm[j]s|deb\.[d]ebian)\.(org|com)", re.IGNORECASE)
MACHINE = re.compile(r"(^|[^\w.])/(wor[k]|far[m])/|/roo[t]/", re.MULTILINE)


def _tracked() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows which files are tracked")
@pytest.mark.parametrize("pattern", [HOSTS, MACHINE], ids=["a registry's host", "a machine's path"])
def test_no_tracked_file_names(pattern: re.Pattern[str]) -> None:
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in _tracked()}
    assert [str(path) for path, text in texts.items() if pattern.search(text)] == []


@pytest.mark.parametrize("text", LOCKS.values(), ids=LOCKS.keys())
class TestEveryLockFile:
    def test_has_a_hash_for_every_package(self, text: str) -> None:
        packages = re.split(r"^(?=\S+==)", text, flags=re.MULTILINE)[1:]
        assert packages
        assert [each for each in packages if "--hash=sha256:" not in each] == []

    def test_does_not_say_where_packages_come_from(self, text: str) -> None:
        assert re.findall(r"^\s*(--index|--extra|--find|-i |-f )|://", text, re.MULTILINE) == []

    def test_takes_the_same_version_of_a_package_as_the_others(self, text: str) -> None:
        ours, others = _versions(text), _versions(LOCKS["requirements-dev.lock"])
        assert [name for name in ours if ours[name] != others.get(name, ours[name])] == []


@pytest.mark.parametrize(
    ("requirements", "lock"),
    [
        pytest.param(PYPROJECT["project"]["dependencies"], "requirements.lock", id="to run"),
        pytest.param(
            PYPROJECT["project"]["optional-dependencies"]["evaluators"],
            "requirements-evaluators.lock",
            id="for evaluators",
        ),
        pytest.param(PYPROJECT["dependency-groups"]["dev"], "requirements-dev.lock", id="to test"),
        pytest.param(
            PYPROJECT["dependency-groups"]["docs"], "requirements-docs.lock", id="for the site"
        ),
    ],
)
def test_what_is_needed_is_locked(requirements: list[str], lock: str) -> None:
    names = {re.split(r"[><=!~ ;\[]", requirement)[0] for requirement in requirements}
    assert names - _versions(LOCKS[lock]).keys() == set()


def test_the_base_image_is_pinned_by_digest_where_dependabot_reads_it() -> None:
    default, pinned = (ROOT / "Dockerfile").read_text().splitlines()[1:3]
    assert default == "ARG BASE_IMAGE=pinned"
    image = r"python:3\.\d+\S*-slim\S*@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"FROM {image} AS pinned", pinned)


def test_the_image_obeys_the_rules_for_actions() -> None:
    words = [line.split()[0] for line in (ROOT / "Dockerfile").read_text().splitlines() if line]
    last_stage = words[len(words) - words[::-1].index("FROM") :]
    assert "USER" not in last_stage
    assert "WORKDIR" not in last_stage
    assert re.search(r'^ENTRYPOINT \["/\S+", ', (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_ci_tests_every_python_that_the_package_names() -> None:
    named = {
        classifier.rpartition(" ")[2]
        for classifier in PYPROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", classifier)
    }
    tested = _yaml(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert set(tested["python"]) == named


def test_the_licence_is_there_in_full() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n")
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_wheel_holds_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
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
    assert {f"agentci/reports/html/{name}" for name in (*SCRIPTS, STYLE)} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def _versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+?)==(\S+)", lock, re.MULTILINE))


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())
