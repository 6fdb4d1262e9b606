"""The packages of ``examples/extensions``: built, installed beside agentci, and made use of."""

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
    """What the company's registry answers: versions of evaluators, by name."""

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
    """A wheel of every example, by the name of its folder; the examples stay as they are."""
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
    """A workspace with a recording."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "trace.json").write_text(otlp())
    return workspace


class Site:
    """A folder of installed packages, and agentci run with it."""

    def __init__(self, folder: Path, workspace: Path, wheels: Mapping[str, Path]) -> None:
        self._folder = folder
        self._workspace = workspace
        self._wheels = wheels

    def install(self, example: str) -> None:
        """Put the example where Python looks for packages, its entry points included."""
        with zipfile.ZipFile(self._wheels[example]) as wheel:
            wheel.extractall(self._folder)

    def configure(self, **entry: object) -> None:
        """Judge by one evaluator."""
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
    """The only one."""
    assert ran.code in (0, 1, 3), ran.out + ran.err
    (found,) = ran.results["results"]
    return found


class TestTheRuntimeForGo:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        (folder / "main.go").write_text("package main\n")
        site.configure(type="code", path="main.go")

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        """A search path on which there is a Go, or what looks like one from outside."""
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "go").write_text(GO)
        (programs / "go").chmod(0o755)
        return os.pathsep.join([str(programs), "/usr/bin", "/bin"])

    def test_is_needed(self, site: Site, path: str) -> None:
        ran = site.agentci("validate", path=path)
        assert ran.code == 2
        assert "`main.go` is not executable" in ran.out

    def test_runs_go_files(self, site: Site, path: str) -> None:
        site.install("go-runtime")
        assert site.agentci("validate", path=path).code == 0
        assert result(site.agentci("run", path=path))["score"] == 0.75

    def test_says_that_there_is_no_go(self, site: Site, tmp_path: Path) -> None:
        site.install("go-runtime")
        ran = site.agentci("run", path=str(tmp_path))
        assert ran.code == 3
        assert result(ran)["reason"] == (
            "Go not found on PATH (required for .go evaluators); install it from https://go.dev/dl"
        )


class TestTheExecutorWithLowPriority:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        (folder / "priority.py").write_text(PRIORITY)
        site.configure(type="code", path="priority.py", executor="nice")

    def test_is_needed(self, site: Site) -> None:
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "agentci.yaml:1:" in ran.out
        assert "unknown executor 'nice'; known executors: local, docker" in ran.out

    def test_is_proposed_where_it_was_meant(self, site: Site) -> None:
        site.install("nice-executor")
        site.configure(type="code", path="priority.py", executor="nicer")
        assert "did you mean 'nice'?" in site.agentci("validate").out

    def test_lowers_the_priority(self, site: Site) -> None:
        site.install("nice-executor")
        assert site.agentci("validate").code == 0
        here = os.nice(0)
        assert result(site.agentci("run"))["score"] == min(here + 10, 19) / 20

    def test_ends_programs_that_take_too_long(self, site: Site, folder: Path) -> None:
        site.install("nice-executor")
        (folder / "hangs.py").write_text("import time; time.sleep(60)")
        site.configure(type="code", path="hangs.py", executor="nice", timeout=1)
        ran = site.agentci("run")
        assert ran.code == 3
        assert "timed out after 1 s" in result(ran)["reason"]

    def test_says_that_there_is_no_nice(self, site: Site, tmp_path: Path) -> None:
        site.install("nice-executor")
        reason = result(site.agentci("run", path=str(tmp_path)))["reason"]
        assert "could not be run: `nice` not found on PATH" in reason


class TestTheRegistryOfACompany:
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

    def test_is_needed(self, site: Site) -> None:
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "unknown evaluator source 'company'" in ran.out

    def test_gives_the_newest_version_and_says_how_to_stay_there(
        self, site: Site, address: str
    ) -> None:
        site.install("company-registry")
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert result(ran)["score"] == 0.75
        assert "rev: 2" in ran.results["problems"][0]["hint"]

    def test_gives_the_version_that_is_named_and_no_other_later(
        self, site: Site, address: str
    ) -> None:
        site.install("company-registry")
        site.configure(type="remote", source="company", ref="grounded", rev="1")
        for arguments in (["run"], ["run", "--offline"]):
            ran = site.agentci(*arguments, COMPANY_EVALUATORS=address)
            assert result(ran)["score"] == 0.25
            assert ran.results["problems"] == []

    def test_is_locked_like_any_other(
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

    def test_is_listed(self, site: Site, address: str) -> None:
        site.install("company-registry")
        arguments = ("evaluator", "list", "--source", "company")
        ran = site.agentci(*arguments, COMPANY_EVALUATORS=address)
        assert ran.code == 0, ran.out + ran.err
        assert "grounded" in ran.out

    @pytest.mark.parametrize(
        ("entry", "complaint"),
        [
            ({"ref": "grouned"}, "the company's registry has no evaluator 'grouned'"),
            ({"ref": "grounded", "rev": "9"}, "/evaluators/grounded/9; check the name"),
            ({"ref": "grounded", "repo": "x"}, "the company has one registry; remove `repo`"),
        ],
    )
    def test_says_what_it_does_not_have(
        self, site: Site, address: str, entry: Mapping[str, str], complaint: str
    ) -> None:
        site.install("company-registry")
        site.configure(type="remote", source="company", **entry)
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert ran.code == 2
        assert complaint in ran.out + ran.err

    def test_does_not_give_what_arrived_damaged(
        self, site: Site, registry: Registry, address: str
    ) -> None:
        registry.damaged = True
        site.install("company-registry")
        ran = site.agentci("run", COMPANY_EVALUATORS=address)
        assert ran.code == 3
        assert "grounded.py of grounded arrived damaged" in result(ran)["reason"]

    def test_need_not_answer_for_a_config_to_be_validated(self, site: Site) -> None:
        site.install("company-registry")
        assert site.agentci("validate").code == 0


class TestTheTypeThatJudgesByExitCode:
    @pytest.fixture(autouse=True)
    def _program(self, folder: Path, site: Site) -> None:
        """The program that the example's README shows."""
        text = (EXAMPLES / "exit-code-type" / "README.md").read_text()
        program = folder / "character.sh"
        program.write_text(text.partition("```bash\n")[2].partition("```")[0])
        program.chmod(0o755)
        site.configure(type="exit_code", path="character.sh")

    def test_is_needed(self, site: Site) -> None:
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
    def test_judges_by_it(
        self, site: Site, folder: Path, answer: str, status: str, reasoning: str | None
    ) -> None:
        site.install("exit-code-type")
        (folder / "trace.json").write_text(otlp(answer=answer))
        assert site.agentci("validate").code == 0
        judged = result(site.agentci("run"))
        assert (judged["status"], judged["reasoning"]) == (status, reasoning)
        assert (judged["type"], judged["criterion"]) == ("exit_code", "exits with 0")

    def test_takes_no_other_code_for_a_verdict(self, site: Site, folder: Path) -> None:
        site.install("exit-code-type")
        (folder / "character.sh").write_text("#!/bin/sh\nexit 2\n")
        judged = result(site.agentci("run"))
        assert (judged["status"], judged["reason"]) == (
            "errored",
            "it gave no verdict: exit with 0 or 1",
        )

    def test_is_complained_about_on_its_line(self, site: Site) -> None:
        site.install("exit-code-type")
        site.configure(type="exit_code", path="gone.sh", timout=3)
        ran = site.agentci("validate")
        assert ran.code == 2
        assert "did you mean 'timeout'?" in ran.out


class TestAPackageThatIsBroken:
    @pytest.fixture(autouse=True)
    def _broken(self, site: Site, folder: Path, tmp_path: Path, wheels: Mapping[str, Path]) -> None:
        """All of them are installed, and import what is not there."""
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
    def test_is_named_by_configs_that_need_it(
        self, site: Site, entry: Mapping[str, str], package: str, command: str
    ) -> None:
        site.configure(**entry)
        ran = site.agentci(command)
        assert ran.code == 2
        said = ran.out + ran.err
        assert f"the package {package} provides " in said
        assert "agentci.yaml:1:" in said
        assert "No module named 'not_there_at_all'" in said
        assert "Traceback" not in said

    def test_does_not_matter_to_others(self, site: Site) -> None:
        site.configure(type="code", path="it.py")
        assert result(site.agentci("run"))["status"] == "passed"


def test_a_run_that_needs_nothing_of_others_does_not_look_for_them(folder: Path) -> None:
    (folder / "it.py").write_text(FIXED % 1)
    program = (
        "import sys\n"
        "from agentci.execution.registry import Executors\n"
        "from agentci.execution.runtimes.registry import make_command\n"
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
