"""Faults while a remote evaluator is fetched.

Every workspace also has a local evaluator: after each fault it is run, or the config is
rejected. A program other than the requested one is never run.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentci._util.http import HttpLimits
from agentci._util.http_client import HttpClient
from agentci.cli.main import run_command
from agentci.model.values import replace
from agentci.remote.programs import Sources, read_source_context
from tests._util.http.servers import Answer, Asked, Raw, head, script, serve
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, cache_of, make_session, run_agentci
from tests.helpers.waiting import wait_until
from tests.remote.sources.archives import tar_info, tarred, zipped
from tests.remote.sources.fake_github import FakeGitHub, Kept

pytestmark = pytest.mark.slow

REPOSITORY = "agentevals-dev/evaluators"
REF = "evaluators/fixed/fixed.py"
OWN = "  - {name: own, type: code, path: own.py}\n"
PROGRAM = "import json, sys\njson.load(sys.stdin)\nprint('{\"score\": 0.75}')\n"
# Creates a file if it is run, which must never happen.
HOSTILE = "import pathlib, sys\npathlib.Path(sys.argv[0]).parent.joinpath('ran').touch()\n"
ERRORED, INVALID = 3, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A workspace with a local and a remote evaluator.

    Attributes:
        commit: the commit with the remote evaluator.
    """

    folder: Path
    github: FakeGitHub
    commit: str

    def configure(self, *lines: str, ref: str = REF) -> None:
        """Write a config; ``lines`` extend the entry of the remote evaluator."""
        (self.folder / "agentci.yaml").write_text(
            "traces: trace.json\n"
            "evaluators:\n"
            f"{OWN}"
            "  - name: fixed\n"
            "    type: remote\n"
            f"    ref: {ref}\n" + "".join(f"    {line}\n" for line in lines)
        )

    def environ(self, raw: str | None = None) -> dict[str, str]:
        """Return the URLs of the fake GitHub server; ``raw`` replaces its raw host."""
        return {
            "AGENTCI_GITHUB_API_URL": self.github.api,
            "AGENTCI_GITHUB_RAW_URL": self.github.raw if raw is None else raw,
            "AGENTEVALS_GITHUB_TOKEN": "hush",
        }

    def run(self, *arguments: str, raw: str | None = None) -> Ran:
        """Run the command line; ``raw`` replaces the raw host."""
        return run_agentci(["run", *arguments], cwd=self.folder, environ=self.environ(raw))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with FakeGitHub() as github:
        commit = github.publish(REPOSITORY, {REF: PROGRAM})
        (tmp_path / "trace.json").write_text(otlp())
        (tmp_path / "own.py").write_text("print('{\"score\": 1}')")
        bench = Bench(folder=tmp_path, github=github, commit=commit)
        bench.configure(f"rev: {commit}")
        yield bench


def check_errored(ran: Ran, *expected: str) -> None:
    """Check that only the remote evaluator errored, with a reason and a hint."""
    own, fixed = ran.results["results"]
    assert (ran.code, own["status"], fixed["status"]) == (ERRORED, "passed", "errored")
    assert fixed["reason"].startswith("Evaluator `fixed` could not be fetched: ")
    assert fixed["reason"].endswith(")"), "the reason has no hint"
    assert all(each in fixed["reason"] for each in expected), fixed["reason"]
    check_clean(ran)


def check_refused(ran: Ran, *expected: str) -> None:
    """Check that the config was rejected with a location and that nothing was run."""
    results = ran.results
    [problem] = results["problems"]
    text = f"{problem['message']} ({problem['hint']})"
    assert (ran.code, results["results"]) == (INVALID, [])
    # The place is that of the pin if there is one, else that of the ref.
    assert problem["place"]["file"] == "agentci.yaml"
    assert problem["place"]["line"] in {6, 7}
    assert problem["hint"]
    assert all(each in text for each in expected), text
    check_clean(ran)


def check_evaluated(ran: Ran) -> None:
    assert [result["score"] for result in ran.results["results"]] == [1.0, 0.75]
    assert ran.code == 0
    check_clean(ran)


def check_clean(ran: Ran) -> None:
    """Check that no partial file is left, no hostile program ran and no secret is printed."""
    names = [path.name for path in ran.folder.rglob("*")]
    assert not [name for name in names if name.startswith(".tmp-") or name == "ran"]
    reports = (ran.folder / "agentci-results").iterdir()
    shown = "".join((ran.out, ran.err, *(report.read_text() for report in reports)))
    assert "Traceback (most recent" not in shown
    assert "hush" not in shown


WHOLE = Answer(body=PROGRAM.encode())
CUT = Raw(pieces=[head(200, "Content-Length: 70"), PROGRAM[:30].encode()])
RESET = replace(CUT, resets=True)
LONGER = Raw(pieces=[head(200, "Content-Length: 20"), PROGRAM.encode()])


class TestServer:
    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(CUT, id="truncated"),
            pytest.param(RESET, id="connection reset"),
            pytest.param(LONGER, id="longer than Content-Length"),
            pytest.param(Answer(status=500), id="server error"),
            pytest.param(Answer(status=429, headers={"Retry-After": "7"}), id="rate limited"),
        ],
    )
    def test_transient_fault_is_retried(self, bench: Bench, fault: Answer | Raw) -> None:
        with serve(script(fault, WHOLE)) as server:
            ran = bench.run(raw=server.url)
            assert len(server.asked) == 2
        check_evaluated(ran)
        assert ran.err.count("; retrying in ") == 1
        assert " s (1/5)" in ran.err

    def test_retry_after_is_respected(self, bench: Bench) -> None:
        asks = Answer(status=429, headers={"Retry-After": "7"})
        with serve(script(asks, WHOLE)) as server:
            assert "; retrying in 7 s (1/5)" in bench.run(raw=server.url).err

    @pytest.mark.parametrize(
        ("fault", "expected"),
        [
            pytest.param(CUT, "the response is incomplete", id="truncated"),
            pytest.param(
                LONGER,
                "the response is longer than its Content-Length",
                id="longer than Content-Length",
            ),
            pytest.param(Answer(status=503), "status 503", id="server error"),
            pytest.param(
                Answer(status=429, headers={"Retry-After": "600"}),
                "asks to wait 600 s",
                id="long Retry-After",
            ),
        ],
    )
    def test_permanent_fault_errors_only_remote_checks(
        self, bench: Bench, fault: Answer | Raw, expected: str
    ) -> None:
        with serve(script(fault)) as server:
            check_errored(bench.run(raw=server.url), expected)

    def test_slow_response_is_aborted(self, bench: Bench) -> None:
        drip = Raw(pieces=[head(200, "Content-Length: 70")], endlessly=b"x", pause_seconds=0.05)
        with serve(script(drip)) as server:
            environ = bench.environ(raw=server.url)
            http = HttpClient(
                report=lambda _: None,
                sleep=lambda _: None,
                limits=HttpLimits(document_seconds=0.2, tries=2),
            )
            around = read_source_context(environ, http=http, workspace=bench.folder)
            code = run_command(
                ["run"], make_session(bench.folder, environ, sources=Sources(around))
            )
        ran = Ran(code=code, out="", err="", folder=bench.folder)
        check_errored(ran, "no complete response within 0.2 s", "2 attempts")

    def test_endless_response_is_rejected(self, bench: Bench) -> None:
        chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
        endless = Raw(pieces=[head(200, "Transfer-Encoding: chunked")], endlessly=chunk)
        with serve(script(endless)) as server:
            check_refused(bench.run(raw=server.url), "the response is too long")

    def test_content_with_wrong_git_hash_is_never_run(self, bench: Bench) -> None:
        with serve(script(Answer(body=HOSTILE.encode()))) as server:
            check_errored(bench.run(raw=server.url), "other content than in git", "a proxy")

    def test_redirect_to_other_host_drops_token(self, bench: Bench) -> None:
        with serve(script(WHOLE)) as other:
            led = Answer(status=302, headers={"Location": f"{other.url}/there"})
            with serve(script(led)) as server:
                check_evaluated(bench.run(raw=server.url))
                assert server.asked[0].headers["authorization"] == "Bearer hush"
            assert [each.path for each in other.asked] == ["/there"]
            assert "authorization" not in other.asked[0].headers

    def test_redirect_to_http_is_rejected(self, bench: Bench) -> None:
        led = Answer(status=302, headers={"Location": "http://example.invalid/x"})
        with serve(script(led)) as server:
            check_refused(bench.run(raw=server.url), "is not encrypted")

    def test_untrusted_certificate_errors_only_remote_checks(self, bench: Bench) -> None:
        with serve(script(WHOLE), tls=True) as server:
            check_errored(bench.run(raw=server.url), "TLS failed", "REQUESTS_CA_BUNDLE")
            assert server.asked == []


class TestContent:
    @pytest.mark.parametrize(
        "path", ["evaluators/fixed/link", "evaluators/fixed/inner/link"], ids=["beside", "below"]
    )
    def test_symlink_in_repository_is_rejected(self, bench: Bench, path: str) -> None:
        tree: dict[str, str | bytes | Kept] = {REF: PROGRAM, path: Kept(b"/etc/passwd", "120000")}
        bench.configure(f"rev: {bench.github.publish(REPOSITORY, tree)}")
        check_refused(bench.run(), "is a symbolic link", "replace it by the file itself")

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("::error::name\n", id="workflow command"),
            pytest.param("\x1b[31mred", id="escape sequence"),
            pytest.param("x" * 300, id="too long"),
        ],
    )
    def test_unsafe_file_name_is_rejected(self, bench: Bench, name: str) -> None:
        tree = {REF: PROGRAM, f"evaluators/fixed/{name}": "x"}
        bench.configure(f"rev: {bench.github.publish(REPOSITORY, tree)}")
        ran = bench.run()
        check_refused(ran, "the file name ", "rename or remove it")
        assert "\x1b" not in ran.out
        assert not [line for line in ran.out.splitlines() if line.startswith("::")]

    @pytest.mark.parametrize(
        ("name", "archive"),
        [
            ("x.zip", zipped({"a/x.py": HOSTILE, "../../out.py": HOSTILE})),
            ("x.zip", zipped({"a/x.py": HOSTILE, "/out.py": HOSTILE})),
            ("x.zip", zipped({"a/x.py": HOSTILE, "a\\..\\out.py": HOSTILE})),
            ("x.zip", zipped({"a/x.py": HOSTILE, "a/l": "/etc/passwd"}, modes={"a/l": 0o120777})),
            (
                "x.tgz",
                tarred([(tar_info("../out.py", size=1), b"x"), (tar_info("a/x.py", size=1), b"x")]),
            ),
            (
                "x.tgz",
                tarred([(tar_info("a/l", kind=tarfile.SYMTYPE, link="/etc/passwd"), b"")]),
            ),
            ("x.zip", b"PK\x03\x04 and nothing more"),
            ("x.tgz", b"\x1f\x8b and nothing more"),
        ],
        ids=[
            *("zip parent path", "zip absolute path", "zip Windows path", "zip symlink"),
            *("tar parent path", "tar symlink", "invalid zip", "invalid tar"),
        ],
    )
    def test_unsafe_archive_is_rejected(self, bench: Bench, name: str, archive: bytes) -> None:
        before = _outside(bench.folder)
        with serve(script(Answer(body=archive))) as server:
            digest = hashlib.sha256(archive).hexdigest()
            url = f"{server.url}/{name}#a/x.py"
            bench.configure("source: url", f"sha256: {digest}", ref=url)
            ran = bench.run()
        check_refused(ran, "pack ")
        assert _outside(bench.folder) == before

    def test_url_content_with_wrong_sha256_is_rejected(self, bench: Bench) -> None:
        with serve(script(Answer(body=HOSTILE.encode()))) as server:
            bench.configure("source: url", f"sha256: {'a' * 64}", ref=f"{server.url}/x.py")
            check_refused(bench.run(), "has sha256", "review it")

    @pytest.mark.parametrize("content", [b": [\n\t nope", b"\xff\xfe\0", b"[]", b"evaluators: 7"])
    def test_invalid_index_is_rejected(self, bench: Bench, content: bytes) -> None:
        (bench.folder / "index.yaml").write_bytes(content)
        bench.configure("source: local", ref="fixed")
        ran = bench.run()
        check_refused(ran, "index.yaml", "`evaluators:`")

    @pytest.mark.parametrize(
        "ref",
        ["../x.py", "/x.py", "a/%2e%2e/x.py", "a/./x.py", "%2Fetc%2Fpasswd.py", "a/..%2fx.py"],
    )
    def test_ref_with_unsafe_path_is_rejected(self, bench: Bench, ref: str) -> None:
        bench.configure(ref=f'"{ref}"')
        check_refused(bench.run(), "the ref ", "write the path")
        bench.configure(
            "source: url", f"sha256: {'a' * 64}", ref=f'"https://h.invalid/x.zip#{ref}"'
        )
        check_refused(bench.run(), "the ref ", "write the path")
        assert bench.github.count() == 0


def _outside(folder: Path) -> set[str]:
    """Return the files beside a workspace except the cache, and in it except the reports."""
    inside = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.relative_to(folder).parts[0] != "agentci-results"
    }
    return (
        inside
        | {f"../{path.name}" for path in folder.parent.iterdir() if path != cache_of(folder)}
        | {f"/{path.name}" for path in Path("/").iterdir() if path.suffix == ".py"}
    )


SCRIPT = """
import codecs, os, resource, sys
from agentci.cli.main import main
"""
# The first run loads all modules: the user nobody cannot read root's Python.
AS_NOBODY = """
assert main(["run", "--quiet", "--cache-dir", sys.argv[1]]) == 0
codecs.lookup("utf-8-sig")
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(["run"]))
"""
ON_A_FULL_DISK = """
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
sys.exit(main(["run"]))
"""


class TestDisk:
    def test_full_disk_errors_only_remote_checks(self, bench: Bench) -> None:
        files = {REF: PROGRAM, "evaluators/fixed/data.txt": "x" * 100_000}
        bench.configure(f"rev: {bench.github.publish(REPOSITORY, files)}")
        code, out = start(bench, program=SCRIPT + ON_A_FULL_DISK).end()
        ran = Ran(code=code, out=out, err="", folder=bench.folder)
        check_errored(ran, "the cache", "is not writable: File too large", "--cache-dir")

    def test_read_only_cache_is_warning(self, bench: Bench) -> None:
        program = "#!/bin/sh\necho '{\"score\": 0.75}'\n"
        files = {"evaluators/fixed/fixed": Kept(program.encode(), "100755")}
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            folder = Path(name) / "work"
            (folder / "agentci-results").mkdir(parents=True)
            cache_of(folder).mkdir(mode=0o555)
            shutil.copy(bench.folder / "trace.json", folder)
            for path in (folder, folder / "agentci-results"):
                path.chmod(0o777)
            here = replace(bench, folder=folder)
            here.configure(
                f"rev: {bench.github.publish(REPOSITORY, files)}", ref="evaluators/fixed/fixed"
            )
            config = folder / "agentci.yaml"
            config.write_text(config.read_text().replace(OWN, ""))
            code, out = start(here, str(bench.folder), program=SCRIPT + AS_NOBODY).end()
            ran = Ran(code=code, out=out, err="", folder=folder)
            assert ran.code == 0, out
            [result] = ran.results["results"]
            assert result["score"] == 0.75
            [problem] = ran.results["problems"]
            assert "is not writable: Permission denied" in problem["message"]
            assert "--cache-dir" in problem["message"]
            check_clean(ran)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A started agentci process."""

    process: "subprocess.Popen[str]"

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate()
        assert "Traceback (most recent" not in out
        return self.process.returncode, out


def start(
    bench: Bench, *arguments: str, raw: str | None = None, program: str | None = None
) -> Started:
    """Start ``agentci ARGUMENTS``, or a Python ``program`` with these arguments."""
    python = ("-m", "agentci") if program is None else ("-c", program)
    # A program that limits file sizes would also limit the coverage data.
    unmeasured = () if program is None else ("COVERAGE_PROCESS_CONFIG",)
    process = subprocess.Popen(
        [sys.executable, *python, *arguments],
        cwd=bench.folder,
        env={
            **{name: value for name, value in os.environ.items() if name not in unmeasured},
            **bench.environ(raw),
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(cache_of(bench.folder)),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Started(process=process)


class TestProcesses:
    def test_concurrent_runs_fetch_once(self, bench: Bench) -> None:
        def respond(_: Asked) -> Answer:
            time.sleep(0.3)
            return WHOLE

        with serve(respond) as server:
            several = [
                start(bench, "run", "--output-dir", f"out{number}", raw=server.url)
                for number in range(2)
            ]
            assert [each.end()[0] for each in several] == [0, 0]
            assert len(server.asked) == 1

    def test_killed_run_leaves_valid_cache(self, bench: Bench) -> None:
        files = {REF: PROGRAM} | {f"evaluators/fixed/{number}": "x" for number in range(40)}
        bench.configure(f"rev: {bench.github.publish(REPOSITORY, files)}")
        for number in range(8):
            asked = bench.github.count("raw")
            killed = start(bench, "run", "--no-cache")
            wait_until(
                lambda asked=asked, number=number: (  # type: ignore[misc]
                    bench.github.count("raw") >= asked + 5 * (number + 1)
                )
            )
            killed.process.kill()
            killed.end()
        code, out = start(bench, "run").end()
        assert code == 0, out
        code, out = start(bench, "cache", "verify").end()
        assert (code, out.startswith("1 evaluator verified, 0 damaged\n")) == (0, True)

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
    )
    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(Answer(status=429, headers={"Retry-After": "50"}), id="Retry-After"),
            pytest.param(
                Raw(pieces=[head(200, "Content-Length: 9")], endlessly=b"x", pause_seconds=900),
                id="slow response",
            ),
        ],
    )
    def test_signal_ends_run_during_request(
        self, bench: Bench, answer: Answer | Raw, number: signal.Signals, code: int
    ) -> None:
        with serve(script(answer)) as server:
            started = start(bench, "run", raw=server.url)
            wait_until(lambda: server.asked)
            started.process.send_signal(number)
            assert started.end()[0] == code
        assert (
            '"complete": false' in (bench.folder / "agentci-results" / "results.json").read_text()
        )
