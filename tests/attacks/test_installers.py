"""A package that a pull request names builds nothing outside the sandbox."""

import io
import json
import tarfile
from pathlib import Path

from tests._util.http.servers import Answer, serve
from tests.attacks.attack import attack
from tests.attacks.job import CODE_ENTRY, PROGRAMS, VARIABLE_SECRET, Job
from tests.execution.environments.package_index import SDK, PackageIndex
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT

BACKEND = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "demo-evil"
version = "1.0"
"""


def write_source_package(path: Path, settings: dict[str, object]) -> None:
    """Write a source distribution that needs no other package to be built."""
    files = {
        "pyproject.toml": BACKEND,
        "backend.py": (PROGRAMS / "spies_while_building.py").read_text(),
        "settings.json": json.dumps(settings),
        "PKG-INFO": "Metadata-Version: 2.1\nName: demo-evil\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"demo_evil-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def write_eval(job: Job, requirement: str, score: float) -> None:
    entry = {**CODE_ENTRY, "path": "ev/ev.py"}
    job.write(
        {
            "evals/ev/ev.py": f"print('{{\"score\": {score}}}')\n",
            "evals/ev/requirements.txt": f"{requirement}\n",
            "evals/agentci.yaml": json.dumps({"traces": "trace.json", "evaluators": [entry]}),
            "evals/trace.json": otlp("Hello", "All is well.", calls=()),
        }
    )


@attack("X1", "container", "user")
def test_source_package_is_not_built_outside_of_sandbox(job: Job) -> None:
    credentials = job.add_credentials()
    packages, marker = job.top / "packages", job.top / "marker"
    packages.mkdir()
    marker.touch()
    marker.chmod(0o666)
    index = PackageIndex()
    try:
        index.add(SDK, "0.2.0")
        index.add("demo-honest", "1.0")
        # What an attacker can publish on the public index.
        environ = {"PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": str(packages)}
        write_eval(job, "demo-honest==1.0", 1.0)
        honest = job.run("evals/agentci.yaml", environ=environ)
        assert honest.code == 0, honest.out + honest.err

        with serve(lambda _: Answer(body=b"{}")) as attacker:
            settings: dict[str, object] = {
                "secret": VARIABLE_SECRET,
                "readable": [str(credentials)],
                "writable": [str(ROOT / "agentci" / "gate" / "decision.py")],
                "evaluator": str(job.workspace / "evals" / "ev" / "ev.py"),
                "marker": str(marker),
                "url": attacker.url,
            }
            write_source_package(packages / "demo_evil-1.0.tar.gz", settings)
            write_eval(job, "demo-evil==1.0", 0.0)
            ran = job.run("evals/agentci.yaml", environ=environ)
            reports = [json.loads(asked.body) for asked in attacker.asked]
    finally:
        index.close()
    assert ran.code in (1, 2, 3), ran.out
    assert marker.read_text() == ""
    assert "0.0" in (job.workspace / "evals" / "ev" / "ev.py").read_text()
    for report in reports:
        assert report == {"environ": [], "readable": [], "writable": []}
