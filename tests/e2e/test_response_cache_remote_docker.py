"""Cached responses of remote evaluators and of programs in containers."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.e2e.cached_runs import Judged, run, write_program
from tests.e2e.cached_runs import configure as configure_program
from tests.e2e.remote import REF, REPOSITORY, configure, files
from tests.helpers.support import PATH, cache_of
from tests.remote.sources.fake_github import FakeGitHub

REMOTE = """\
import json, pathlib, sys, time
json.load(sys.stdin)
here = (pathlib.Path(__file__).parent / "score.txt").read_text()
seen = [here, pathlib.Path("words.txt").read_text()]
print(json.dumps({"score": 1, "details": {"at": time.time_ns(), "seen": seen}}))
"""


class TestRemoteEvaluator:
    @pytest.fixture
    def judge(self, folder: Path, github: FakeGitHub) -> Callable[..., Judged]:
        """Run an evaluator that reads its own file and one of the workspace."""
        (folder / "words.txt").write_text("kind")
        configure(folder, "cache: true")
        github.publish(REPOSITORY, files(**{REF: REMOTE}))
        hosts = {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}
        return lambda *options: run(folder, *options, environ=hosts)

    def test_unchanged_remote_evaluator_is_not_run(self, judge: Callable[..., Judged]) -> None:
        first, second = judge(), judge()
        assert (first.times, second.cached) == (second.times, [True])

    def test_changed_remote_evaluator_is_run(
        self, judge: Callable[..., Judged], github: FakeGitHub
    ) -> None:
        judge()
        github.publish(REPOSITORY, files("0.5", **{REF: REMOTE}))
        second = judge()
        assert (second.cached, second.seen[0], judge().cached) == ([False], "0.5", [True])

    def test_response_is_reused_without_cached_evaluator(
        self, judge: Callable[..., Judged], folder: Path
    ) -> None:
        """As in a workflow that keeps only the responses."""
        first = judge()
        elsewhere = cache_of(folder).with_suffix(".moved")
        elsewhere.mkdir()
        (cache_of(folder) / "responses.sqlite3").rename(elsewhere / "responses.sqlite3")
        second = judge("--cache-dir", str(elsewhere))
        assert (first.times, second.cached) == (second.times, [True])

    def test_remote_evaluator_without_cache_true_is_always_run(
        self, judge: Callable[..., Judged], folder: Path
    ) -> None:
        configure(folder)
        assert [judge().cached for _ in range(2)] == [[False], [False]]


DOCKER = """\
#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
case "$1" in
  image) cat "$(dirname "$0")/id" ;;
  start) cat > /dev/null; echo "{\\"score\\": 1, \\"details\\": {\\"at\\": $(date +%s%N)}}" ;;
  inspect) echo '{}' ;;
  cp) cat > /dev/null ;;
esac
"""


class TestProgramInContainer:
    @pytest.fixture
    def environ(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Mapping[str, str]:
        """A fake container engine with one image."""
        write_program(tmp_path)
        configure_program(tmp_path, "executor: docker", "image: some/image")
        engine = tmp_path_factory.mktemp("engine")
        (engine / "docker").write_text(DOCKER)
        (engine / "docker").chmod(0o755)
        (engine / "id").write_text("sha256:1")
        return {"PATH": f"{engine}:{PATH}"}

    def test_unchanged_program_in_container_is_not_run(
        self, tmp_path: Path, environ: Mapping[str, str]
    ) -> None:
        first, second = (run(tmp_path, environ=environ) for _ in range(2))
        assert (first.times, second.cached) == (second.times, [True])
        (tmp_path / "data" / "words.txt").write_text("nothing that it could see")
        assert run(tmp_path, environ=environ).cached == [True]

    def test_changed_folder_runs_program_in_container(
        self, tmp_path: Path, environ: Mapping[str, str]
    ) -> None:
        run(tmp_path, environ=environ)
        (tmp_path / "evals" / "check" / "more.txt").touch()
        assert [run(tmp_path, environ=environ).cached for _ in range(2)] == [[False], [True]]

    def test_changed_image_digest_runs_program_in_container(
        self, tmp_path: Path, environ: Mapping[str, str]
    ) -> None:
        run(tmp_path, environ=environ)
        Path(environ["PATH"].partition(":")[0], "id").write_text("sha256:2")
        assert [run(tmp_path, environ=environ).cached for _ in range(2)] == [[False], [True]]

    def test_missing_engine_errors_despite_cached_response(
        self, tmp_path: Path, environ: Mapping[str, str]
    ) -> None:
        run(tmp_path, environ=environ)
        [result] = run(tmp_path, environ={"PATH": "/nowhere"}).results
        assert (result["status"], result["cached"]) == ("errored", False)


class TestCommandInContainer:
    @pytest.fixture
    def engine(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        engine = tmp_path_factory.mktemp("engine")
        (engine / "docker").write_text(DOCKER)
        (engine / "docker").chmod(0o755)
        (engine / "id").write_text("sha256:1")
        return engine

    def test_unchanged_command_in_container_is_not_run(self, tmp_path: Path, engine: Path) -> None:
        write_program(tmp_path)
        judge = {
            "name": "check",
            "type": "code_judge",
            "script": ["python3", "check.py"],
            "cwd": "evals/check",
            "executor": "docker",
            "image": "some/image",
            "cache": True,
        }
        case = {"id": "a", "input": "q", "evaluators": [judge]}
        (tmp_path / "a.eval.yaml").write_text(json.dumps({"cases": [case]}))
        (tmp_path / "a.outputs.jsonl").write_text('{"id": "a", "text": "yes"}')

        def evaluate() -> Judged:
            return run(tmp_path, "a.eval.yaml", environ={"PATH": f"{engine}:{PATH}"})

        first, second = evaluate(), evaluate()
        assert (first.code, first.times, second.cached) == (0, second.times, [True])
        created = next(each for each in _asked(engine) if each.startswith("create"))
        assert created.endswith("--entrypoint=python3 sha256:1 check.py")
        (tmp_path / "data" / "words.txt").write_text("nothing that it could see")
        assert evaluate().cached == [True]
        (tmp_path / "evals" / "check" / "more.txt").touch()
        assert evaluate().cached == [False]


def _asked(engine: Path) -> list[str]:
    """Return the commands that the engine received."""
    return (engine / "asked").read_text().splitlines()
