"""The packages of ``examples/extensions``: built, installed and used."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer, Asked, serve
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples" / "extensions"
PATH = os.environ["PATH"]

GO = """\
#!/bin/sh
cat > /dev/null
[ "$1" = run ] && [ "$#" = 2 ] && [ -f "$2" ] && echo '{"score": 0.75}'
"""
FIXED = "print('{\"score\": %s}')"
PRIORITY = "import os; print('{\"score\": %s}' % (os.nice(0) / 20))"


class Registry:
    """A fake company registry: versions of evaluators, by name."""

    def __init__(self) -> None:
        self.published: dict[str, list[str]] = {}
        self.damaged = False

    def __call__(self, asked: Asked) -> Answer:
        parts = asked.path.strip("/").split("/")
        if parts == ["evaluators"]:
            newest = [
                {"name": name, "version": str(len(versions)), "language": "python"}
                for name, versions in self.published.items()
            ]
            return _json({"evaluators": newest})
        _, name, version = parts
        if int(version) > len(self.published.get(name, ())):
            return Answer(status=404)
        content = self.published[name][int(version) - 1].encode()
        file = {
            "path": f"{name}.py",
            "sha256": hashlib.sha256(content + b" " * self.damaged).hexdigest(),
            "content": base64.b64encode(content).decode(),
        }
        return _json({"entry": f"{name}.py", "files": [file]})


def _json(document: object) -> Answer:
    return Answer(body=json.dumps(document).encode())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A wheel of every example, by the name of its folder; built from copies."""
    found: dict[str, Path] = {}
    for example in sorted(each for each in EXAMPLES.iterdir() if each.is_dir()):
        folder = tmp_path_factory.mktemp(example.name)
        shutil.copytree(example, folder / "source")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
            cwd=folder / "source",
            capture_output=True,
            check=True,
        )
        (found[example.name],) = folder.glob("*.whl")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a trace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "trace.json").write_text(otlp())
    return workspace


class Site:
    """A folder of installed packages and runs of agentci that use it."""

    def __init__(self, folder: Path, workspace: Path, wheels: Mapping[str, Path]) -> None:
        self._folder = folder
        self._workspace = workspace
        self._wheels = wheels

    def install(self, example: str) -> None:
        """Install the wheel of an example, including its entry points."""
        with zipfile.ZipFile(self._wheels[example]) as wheel:
            wheel.extractall(self._folder)

    def configure(self, **entry: object) -> None:
        """Write a config of one evaluator."""
        config = {"traces": "trace.json", "evaluators": [{"name": "it", **entry}]}
        (self._workspace / "agentci.yaml").write_text(json.dumps(config))

    def agentci(self, *arguments: str, path: str = PATH, **environ: str) -> Ran:
        """Run the command line in a process of its own."""
        search = os.pathsep.join([str(self._folder), str(ROOT)])
        ran = subprocess.run(
            [sys.executable, "-m", "agentci", *arguments],
            cwd=self._workspace,
            env={
                "HOME": str(self._folder),
                "PATH": path,
                "PYTHONPATH": search,
                "PYTHONSAFEPATH": "1",
                **environ,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(code=ran.returncode, out=ran.stdout, err=ran.stderr, folder=self._workspace)


@pytest.fixture
def site(tmp_path: Path, folder: Path, wheels: Mapping[str, Path]) -> Site:
    packages = tmp_path / "site"
    packages.mkdir()
    return Site(packages, folder, wheels)


def result(ran: Ran) -> Any:
    """The only result."""
    assert ran.code in (0, 1, 3), ran.out + ran.err
    (found,) = ran.results["results"]
    return found


class TestGoRuntime:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        (folder / "main.go").write_text("package main\n")
        site.configure(type="code", path="main.go")

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        """A search path with a fake `go` program."""
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "go").write_text(GO)
        (programs / "go").chmod(0o755)
        return os.pathsep.join([str(programs), "/usr/bin", "/bin"])

    def test_go_file_without_package_is_rejected(self, site: Site, path: str) -> None:
        ran = site.agentci("validate", path=path)
        assert ran.code == 2
        assert "`main.go` is not executable" in ran.out

    def test_installed_package_runs_go_files(self, site: Site, path: str) -> None:
        site.install("go-runtime")
        assert site.agentci("validate", path=path).code == 0
        assert result(site.agentci("run", path=path))["score"] == 0.75

    def test_missing_go_is_reported(self, site: Site, tmp_path: Path) -> None:
        site.install("go-runtime")
        ran = site.agentci("run", path=str(tmp_path))
        assert ran.code == 3
        assert result(ran)["reason"] == (
            "Go not found on PATH (required for .go evaluators); install it from https://go.dev/dl"
        )


class TestNiceExecutor:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        (folder / "priority.py").write_text(PRIORITY)
        site.configure(type="code", path="priority.py", executor="nice")

    def test_nice_executor_without_package_is_unknown(self, site: Site) -> None:
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "agentci.yaml:1:" in ran.out
        assert "unknown executor 'nice'; known executors: local, docker" in ran.out

    def test_misspelled_executor_gets_suggestion(self, site: Site) -> None:
        site.install("nice-executor")
        site.configure(type="code", path="priority.py", executor="nicer")
        assert "did you mean 'nice'?" in site.agentci("validate").out

    def test_nice_executor_lowers_process_priority(self, site: Site) -> None:
        site.install("nice-executor")
        assert site.agentci("validate").code == 0
        here = os.nice(0)
        assert result(site.agentci("run"))["score"] == min(here + 10, 19) / 20

    def test_nice_executor_enforces_timeout(self, site: Site, folder: Path) -> None:
        site.install("nice-executor")
        (folder / "hangs.py").write_text("import time; time.sleep(60)")
        site.configure(type="code", path="hangs.py", executor="nice", timeout=1)
        ran = site.agentci("run")
        assert ran.code == 3
        assert "timed out after 1 s" in result(ran)["reason"]

    def test_missing_nice_program_is_reported(self, site: Site, tmp_path: Path) -> None:
        site.install("nice-executor")
        reason = result(site.agentci("run", path=str(tmp_path)))["reason"]
        assert "could not be run: `nice` not found on PATH" in reason


class TestCompanyRegistry:
    @pytest.fixture
    def registry(self) -> Registry:
        registry = Registry()
        registry.published["grounded"] = [FIXED % 0.25, FIXED % 0.75]
        return registry

    @pytest.fixture
    def address(self, registry: Registry) -> Iterator[str]:
        with serve(registry) as server:
            yield server.url

    @pytest.fixture(autouse=True)
    def _entry(self, site: Site) -> None:
        site.configure(type="remote", source="company", ref="grounded")

    def test_company_source_without_package_is_unknown(self, site: Site) -> None:
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "unknown evaluator source 'company'" in ran.out

    def test_unpinned_evaluator_uses_newest_version_and_suggests_pin(
        self, site: Site, address: str
    ) -> None:
        site.install("company-registry")
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert result(ran)["score"] == 0.75
        assert "rev: 2" in ran.results["problems"][0]["hint"]

    def test_pinned_version_is_used_online_and_offline(self, site: Site, address: str) -> None:
        site.install("company-registry")
        site.configure(type="remote", source="company", ref="grounded", rev="1")
        for arguments in (["run"], ["run", "--offline"]):
            ran = site.agentci(*arguments, COMPANY_EVALUATORS=address)
            assert result(ran)["score"] == 0.25
            assert ran.results["problems"] == []

    def test_lock_file_pins_version(
        self, site: Site, registry: Registry, address: str, folder: Path
    ) -> None:
        site.install("company-registry")
        ran = site.agentci("lock", COMPANY_EVALUATORS=address)
        assert ran.code == 0, ran.out + ran.err
        digest = hashlib.sha256(registry.published["grounded"][1].encode()).hexdigest()
        assert digest in (folder / "agentci.lock").read_text()
        registry.published["grounded"].append(FIXED % 1)
        ran = site.agentci("run", "--locked", COMPANY_EVALUATORS=address)
        assert result(ran)["score"] == 0.75

    def test_evaluator_list_shows_company_evaluators(self, site: Site, address: str) -> None:
        site.install("company-registry")
        arguments = ("evaluator", "list", "--source", "company")
        ran = site.agentci(*arguments, COMPANY_EVALUATORS=address)
        assert ran.code == 0, ran.out + ran.err
        assert "grounded" in ran.out

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ({"ref": "grouned"}, "the company's registry has no evaluator 'grouned'"),
            ({"ref": "grounded", "rev": "9"}, "/evaluators/grounded/9; check the name"),
            ({"ref": "grounded", "repo": "x"}, "the company has one registry; remove `repo`"),
        ],
    )
    def test_unknown_evaluator_version_or_repo_is_reported(
        self, site: Site, address: str, entry: Mapping[str, str], message: str
    ) -> None:
        site.install("company-registry")
        site.configure(type="remote", source="company", **entry)
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert ran.code == 2
        assert message in ran.out + ran.err

    def test_damaged_download_is_an_error(
        self, site: Site, registry: Registry, address: str
    ) -> None:
        registry.damaged = True
        site.install("company-registry")
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert ran.code == 3
        assert "grounded.py of grounded arrived damaged" in result(ran)["reason"]

    def test_validate_does_not_contact_registry(self, site: Site) -> None:
        site.install("company-registry")
        assert site.agentci("validate").code == 0


class TestExitCodeType:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        """The program that the example's README shows."""
        text = (EXAMPLES / "exit-code-type" / "README.md").read_text()
        program = folder / "character.sh"
        program.write_text(text.partition("```bash\n")[2].partition("```")[0])
        program.chmod(0o755)
        site.configure(type="exit_code", path="character.sh")

    def test_exit_code_type_without_package_is_rejected(self, site: Site) -> None:
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "not the string 'exit_code'" in ran.out

    @pytest.mark.parametrize(
        ("answer", "status", "reasoning"),
        [
            ("It is sunny.", "passed", None),
            ("As an AI\nI see no sun.", "failed", "talks about itself\n"),
        ],
    )
    def test_exit_code_decides_status(
        self, site: Site, folder: Path, answer: str, status: str, reasoning: str | None
    ) -> None:
        site.install("exit-code-type")
        (folder / "trace.json").write_text(otlp(answer=answer))
        assert site.agentci("validate").code == 0
        row = result(site.agentci("run"))
        assert (row["status"], row["reasoning"]) == (status, reasoning)
        assert (row["type"], row["criterion"]) == ("exit_code", "exits with 0")

    def test_other_exit_code_is_an_error(self, site: Site, folder: Path) -> None:
        site.install("exit-code-type")
        (folder / "character.sh").write_text("#!/bin/sh\nexit 2\n")
        row = result(site.agentci("run"))
        assert (row["status"], row["reason"]) == (
            "errored",
            "it gave no verdict: exit with 0 or 1",
        )

    def test_misspelled_key_of_exit_code_type_gets_suggestion(self, site: Site) -> None:
        site.install("exit-code-type")
        site.configure(type="exit_code", path="gone.sh", timout=3)
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "did you mean 'timeout'?" in ran.out


class TestBrokenPackage:
    @pytest.fixture(autouse=True)
    def _broken(self, site: Site, folder: Path, tmp_path: Path, wheels: Mapping[str, Path]) -> None:
        """Install all examples, each importing a missing module."""
        for example in wheels:
            site.install(example)
        for module in (tmp_path / "site").glob("*.py"):
            module.write_text("import not_there_at_all\n")
        for name in ("it.py", "it.go"):
            (folder / name).write_text(FIXED % 1)

    @pytest.mark.parametrize(
        ("entry", "package"),
        [
            ({"type": "code", "path": "it.go"}, "agentci-go"),
            ({"type": "code", "path": "it.py", "executor": "nice"}, "agentci-nice"),
            ({"type": "remote", "source": "company", "ref": "it"}, "agentci-company"),
            ({"type": "exit_code", "path": "it.py"}, "agentci-exit-code"),
        ],
    )
    @pytest.mark.parametrize("command", ["validate", "run"])
    def test_broken_package_is_named_in_config_error(
        self, site: Site, entry: Mapping[str, str], package: str, command: str
    ) -> None:
        site.configure(**entry)
        ran = site.agentci(command)
        assert ran.code == 2
        shown = ran.out + ran.err
        assert f"the package {package} provides " in shown
        assert "agentci.yaml:1:" in shown
        assert "No module named 'not_there_at_all'" in shown
        assert "Traceback" not in shown

    def test_broken_package_does_not_affect_other_evaluators(self, site: Site) -> None:
        site.configure(type="code", path="it.py")
        assert result(site.agentci("run"))["status"] == "passed"


def test_builtin_run_does_not_load_plugins(folder: Path) -> None:
    (folder / "it.py").write_text(FIXED % 1)
    program = (
        "import sys\n"
        "from agentci.execution.registry import Executors\n"
        "from agentci.execution.runtimes import make_command\n"
        "from pathlib import Path\n"
        "make_command(Path('it.py'), search_path='')\n"
        "executors = Executors()\n"
        "assert 'local' in executors\n"
        "executors.stop()\n"
        "assert 'agentci._util.plugins' not in sys.modules\n"
        "assert 'importlib.metadata' not in sys.modules\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
