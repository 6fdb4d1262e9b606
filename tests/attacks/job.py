"""A workflow job on the checkout of a hostile pull request, run as each kind of user."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.helpers import repositories
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran

Mode: TypeAlias = Literal["container", "user", "root"]

PROGRAMS = Path(__file__).with_name("programs")
# The user of the runner, who owns the checkout that root in the container evaluates.
OWNER = 1001
# Each worker of pytest-xdist has a user of its own, so that limits per user stay apart.
USER = 4242 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# What root in a container has by default.
CAPABILITIES = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)
# Different values, so that masking one does not hide that another leaked.
VARIABLE_SECRET = "s3cr3t-of-a-variable-0123456789"
TOKEN_SECRET = "s3cr3t-of-the-token-0123456789"
KEY_SECRET = "s3cr3t-of-the-provider-0123456789"
FILE_SECRET = "s3cr3t-of-a-file-0123456789"
# Above what the sandbox allows a program, and low enough for a machine with 8 GiB.
MEMORY_LIMIT = f"--as={5 * 1024**3}"
REPORT_FILES = ("results.json", "junit.xml", "summary.md", "report.html", "comment.md")
HEAD, BASE = "1" * 40, "2" * 40
CODE_ENTRY: Mapping[str, Any] = {"name": "ev", "type": "code", "path": "ev.py", "threshold": 1.0}


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link of the checkout."""

    target: str


Files: TypeAlias = Mapping[str, str | bytes | Link]


@dataclass(frozen=True, slots=True)
class Job:
    """A runner's folder for one job.

    Attributes:
        python: an interpreter that all users can read, with agentci.
        top: holds the folders below and whatever else a test adds outside the checkout.
        workspace: the checkout: all that a pull request controls.
    """

    mode: Mode
    python: Path
    top: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="job-", dir="/tmp")))

    def __post_init__(self) -> None:
        for folder in (self.top, self.workspace, self.home, self.commands, self.temporary):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        self.temporary.chmod(0o1777)
        for name in ("output", "summary", "env", "path", "state"):
            (self.commands / name).touch()
        self.write_event({"number": 1, "head": _commit(HEAD), "base": _commit(BASE)})
        self.write({"trace.json": otlp("Hello", "All is well.", calls=())})

    @property
    def workspace(self) -> Path:
        return self.top / "workspace"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def commands(self) -> Path:
        """The folder of the files that workflow commands are written to."""
        return self.top / "commands"

    @property
    def temporary(self) -> Path:
        return self.top / "temporary"

    def write(self, files: Files) -> None:
        """Write files of the checkout; those that start with ``#!`` can be executed."""
        for name, content in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                path.symlink_to(content.target)
                continue
            data = content.encode() if isinstance(content, str) else content
            path.write_bytes(data)
            path.chmod(0o755 if data.startswith(b"#!") else 0o644)

    def configure(self, *entries: Mapping[str, Any], **others: Any) -> None:
        """Write ``agentci.yaml`` with these evaluators; without any, ``ev.py`` is the only one."""
        config = {"traces": "trace.json", "evaluators": entries or (CODE_ENTRY,), **others}
        self.write({"agentci.yaml": json.dumps(config)})

    def add_program(self, name: str, *, config: Any = None, **fields: Any) -> None:
        """Make one of ``programs/`` the only evaluator, with ``config`` as its config."""
        for file in (f"{name}.py", "attempts.py"):
            self.write({file: (PROGRAMS / file).read_text()})
        self.configure({**CODE_ENTRY, "path": f"{name}.py", "config": config or {}, **fields})

    def write_eval(self, assertion: Mapping[str, Any], text: str = "hi", **others: Any) -> None:
        """Write ``a.eval.yaml`` with one test, and the agent's recorded output."""
        test = {"id": "one", "input": text, "criteria": "c", "expected_output": text}
        content = {"description": "d", "tests": [{**test, "assertions": [assertion]}], **others}
        self.write({"a.eval.yaml": json.dumps(content)})
        self.write({"a.outputs.jsonl": json.dumps({"id": "one", "text": "hi"}) + "\n"})

    def write_event(self, pull_request: Mapping[str, Any]) -> None:
        """Write the event that started the workflow."""
        self.write_event_file({"pull_request": pull_request})

    def write_event_file(self, event: Mapping[str, Any]) -> None:
        (self.commands / "event.json").write_text(json.dumps(event))

    def add_credentials(self) -> Path:
        """Write a file with a secret into the home folder and return its path."""
        folder = self.home / "actions-runner"
        folder.mkdir()
        (folder / "run.sh").write_text("#!/bin/sh\n")
        (folder / "run.sh").chmod(0o755)
        (folder / "credentials").write_text(FILE_SECRET)
        return folder / "credentials"

    def commit(self) -> str:
        """Commit the whole checkout and return the commit id."""
        git(self.workspace, "init", "--quiet", "--initial-branch", "main")
        git(self.workspace, "add", "--all", "--force")
        git(self.workspace, "commit", "--quiet", "--message", "a change")
        return git(self.workspace, "rev-parse", "HEAD")

    def give_to_owner(self) -> None:
        """Give all files to the owner of the checkout."""
        if os.geteuid() != 0:
            return
        owner = {"container": OWNER, "user": USER, "root": 0}[self.mode]
        for folder in (self.workspace, self.home, self.commands):
            for path in (folder, *folder.rglob("*")):
                os.chown(path, owner, owner, follow_symlinks=False)

    def run(
        self,
        config: str | None = "agentci.yaml",
        *,
        inputs: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        cpu_seconds: int | None = None,
    ) -> Ran:
        """Evaluate a config: in the container as the action, otherwise by the command line.

        Args:
            inputs: of the action, or options of the command line.
            cpu_seconds: limit of processor time of each process, with one of memory; a process that
                exceeds it is killed.
        """
        self.give_to_owner()
        given = {**({"config": config} if config else {}), **(inputs or {})}
        if self.mode == "container":
            variables = self._action_variables(given) | dict(environ or {})
            return self._execute([str(ROOT / "entrypoint.py")], variables, cpu_seconds)
        options = [word for key in given if key != "config" for word in (f"--{key}", given[key])]
        arguments = ["run", *([config] if config else []), *options]
        return self.execute(*arguments, environ=environ, cpu_seconds=cpu_seconds)

    def execute(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        cpu_seconds: int | None = None,
    ) -> Ran:
        """Run a command of agentci."""
        self.give_to_owner()
        command = [str(ROOT / "entrypoint.py"), *arguments]
        return self._execute(command, self.variables() | dict(environ or {}), cpu_seconds)

    def read_all_output(self, ran: Ran) -> str:
        """All that a run printed or wrote for people and for GitHub."""
        folder = self.workspace / "agentci-results"
        files = [folder / name for name in REPORT_FILES]
        files += [path for path in self.commands.iterdir() if path.name != "event.json"]
        texts = [path.read_text(errors="replace") for path in files if path.is_file()]
        return "\n".join([ran.out, ran.err, *texts])

    def remove(self) -> None:
        # Not by `shutil.rmtree`, which recurses: attacks nest folders.
        subprocess.run(["rm", "-rf", "--", self.top], capture_output=True, check=False)

    def _execute(
        self, command: Sequence[str], variables: Mapping[str, str], cpu_seconds: int | None
    ) -> Ran:
        limit = [] if cpu_seconds is None else ["prlimit", f"--cpu={cpu_seconds}", MEMORY_LIMIT]
        done = subprocess.run(
            [*_prefix(self.mode), *limit, str(self.python), "-I", *command],
            cwd=self.workspace,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return Ran(
            code=done.returncode,
            out=done.stdout.decode("utf-8", "replace"),
            err=done.stderr.decode("utf-8", "replace"),
            folder=self.workspace,
        )

    def variables(self) -> dict[str, str]:
        """The environment of a job, with a secret and a key."""
        return {
            "PATH": f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.temporary),
            "MY_SECRET": VARIABLE_SECRET,
            "OPENAI_API_KEY": KEY_SECRET,
        }

    def _action_variables(self, inputs: Mapping[str, str]) -> dict[str, str]:
        files = {"OUTPUT": "output", "STEP_SUMMARY": "summary", "ENV": "env", "PATH": "path"}
        files |= {"STATE": "state", "EVENT_PATH": "event.json"}
        return {
            **self.variables(),
            **{f"GITHUB_{name}": str(self.commands / file) for name, file in files.items()},
            **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_SERVER_URL": "http://127.0.0.1:9",
            "GITHUB_API_URL": "http://127.0.0.1:9",
            "GITHUB_SHA": HEAD,
            "GITHUB_RUN_ID": "1",
            "ACTIONS_RUNTIME_TOKEN": TOKEN_SECRET,
            "INPUT_GITHUB-TOKEN": TOKEN_SECRET,
        }


def git(folder: Path, *arguments: str) -> str:
    """Run ``git ARGUMENTS``, also with repositories of other users, and return its output."""
    allowed = ("-c", "safe.directory=*", "-c", "protocol.file.allow=always")
    return repositories.git(folder, *allowed, *arguments)


def results_of(ran: Ran) -> list[Any]:
    """The results of a run's checks, in the order of the config and the recording."""
    path = ran.folder / "agentci-results" / "results.json"
    assert path.is_file(), f"no results, exit code {ran.code}: {ran.out}{ran.err}"
    results: list[Any] = ran.results["results"]
    return results


def result_of(ran: Ran) -> Any:
    """The result of a run's only check."""
    [result] = results_of(ran)
    return result


def details_of(ran: Ran) -> Any:
    """What the only program of a run reported."""
    result = result_of(ran)
    assert result["status"] != "errored", result["reason"]
    return result["details"]


def _prefix(mode: Mode) -> list[str]:
    """The command that starts a program in a mode."""
    if mode == "container":
        allowed = ",".join(["-all", *(f"+{name}" for name in CAPABILITIES)])
        return [
            *("unshare", "--pid", "--fork", "--mount", "--mount-proc", "--ipc", "--uts"),
            *("--kill-child", "setpriv", "--bounding-set", allowed, "--inh-caps", "-all", "--"),
        ]
    if mode == "user" and os.geteuid() == 0:
        user = str(USER)
        return [
            *("setpriv", "--reuid", user, "--regid", user, "--clear-groups"),
            *("--bounding-set", "-all", "--"),
        ]
    return []


def _commit(sha: str) -> Mapping[str, Any]:
    return {"sha": sha, "ref": "main", "repo": {"full_name": "o/r"}}
