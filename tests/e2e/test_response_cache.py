"""Responses of programs are reused only with `cache: true` and while the key is the same."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentci.cli.main import run_command
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import Executors
from agentci.model.requests import ProgramOutput
from agentci.model.values import OPTIONAL_FORMATS, replace
from tests._util.http.servers import Answer, script, serve
from tests.e2e.cached_runs import HELPERS, PROGRAMS, configure, run, write_helper
from tests.e2e.cached_runs import write_program as write
from tests.helpers.recordings import otlp
from tests.helpers.support import PATH, ROOT, cache_of, make_session, run_agentci

NAMES = list(PROGRAMS)
# Importing any of these would add milliseconds to a short run.
IDLE = {
    *("asyncio", "concurrent.futures", "difflib", "http.client", "jsonschema", "logging"),
    *("requests", "ssl", "subprocess", "agentci.cli.action", "agentci.config.agentv.files"),
    *(
        "agentci.config.agentv.external_files",
        "agentci.evaluators.agentv",
    ),
    *("agentci.execution.local", "agentci.execution.docker", "agentci.recordings.adk_eval_set"),
    *(
        "agentci.recordings.agentv_outputs",
        "agentci.recordings.agentv_run",
        "agentci.remote.lock_file",
        "agentci.reports.merge",
    ),
    *(
        "agentci.runner.load_outputs",
        "agentci.runner.trial_runner",
        "agentci.remote.sources.registry",
        "agentci.remote.evaluator_cache",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with one Python program."""
    write(tmp_path)
    return tmp_path


class TestUnchangedInput:
    @pytest.mark.parametrize("name", NAMES)
    def test_unchanged_program_is_not_run(self, tmp_path: Path, name: str) -> None:
        write(tmp_path, name)
        first, second = run(tmp_path), run(tmp_path)
        assert (first.cached, second.cached) == ([False], [True])
        assert first.times == second.times

    def test_cached_run_imports_no_unused_modules(self, folder: Path) -> None:
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            "from agentci.cli.main import main\n"
            "main(['run'])\n"
            f"print(*(sys.modules.keys() & {IDLE}))\n"
        )

        def judge() -> list[str]:
            ran = subprocess.run(
                [sys.executable, "-c", program],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            *lines, loaded = ran.stdout.splitlines()
            return [
                "1 cached" if any(line.endswith("; 1 cached") for line in lines) else "",
                loaded,
            ]

        assert "agentci.execution.local" in judge()[1]
        assert judge() == ["1 cached", ""]

    def test_cached_run_writes_same_report_except_durations(self, folder: Path) -> None:
        def report() -> object:
            run(folder)
            found = json.loads((folder / "agentci-results" / "results.json").read_text())
            for result in found["results"]:
                del result["seconds"], result["cached"]
            return found

        assert report() == report()

    def test_every_report_marks_cached_checks(self, folder: Path) -> None:
        (folder / "trace-2.json").write_text(otlp(trace=2))
        run(folder)
        (folder / "trace-3.json").write_text(otlp(trace=3))
        ran = run(folder, "--verbose")
        assert sorted(ran.cached) == [False, True, True]
        assert "; 2 cached\n" in ran.out
        assert ran.out.count(": score 1 (cached)\n") == 2
        assert "; 2 cached\n" in (folder / "agentci-results" / "summary.md").read_text()
        junit = (folder / "agentci-results" / "junit.xml").read_text()
        assert junit.count('name="cached" value="true"') == 2

    def test_cached_failure_fails_again(self, folder: Path) -> None:
        program = folder / "evals" / "check" / "check.py"
        program.write_text(PROGRAMS["check.py"].replace('"score": 1', '"score": 0.25'))
        first, second = run(folder), run(folder)
        assert (first.code, second.code, second.cached) == (1, 1, [True])
        assert first.times == second.times

    def test_cached_response_uses_current_config(self, folder: Path) -> None:
        first = run(folder)
        configure(folder, "required: false")
        second = run(folder)
        assert second.cached == [True]
        assert [each["required"] for each in second.results] == [False]
        assert first.times == second.times

    def test_cache_is_valid_in_moved_workspace(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """As on another runner that restored the cache."""
        step = {"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "x", "GITHUB_REPOSITORY": "o/r"}
        first = run(folder, environ=step)
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "work"
        shutil.copytree(folder, elsewhere, symlinks=True)
        cache = ("--cache-dir", str(cache_of(folder)))
        second = run(elsewhere, *cache, environ=step)
        assert second.cached == [True]
        assert run(elsewhere, *cache, environ={**step, "GITHUB_REPOSITORY": "o/x"}).cached == [
            False
        ]
        assert run(elsewhere, *cache).cached == [False]
        assert first.times == second.times

    def test_reports_in_program_folder_do_not_invalidate_cache(self, folder: Path) -> None:
        formats = [f"--formats={name}" for name in OPTIONAL_FORMATS]
        for _ in range(2):
            run_agentci(["run", "--output-dir", "evals/check", *formats], cwd=folder)
        results = json.loads((folder / "evals" / "check" / "results.json").read_text())
        assert [result["cached"] for result in results["results"]] == [True]


class TestWithoutCacheTrue:
    """A response is neither stored nor looked up."""

    def test_uncached_program_follows_changed_service(self, folder: Path) -> None:
        (folder / "evals" / "check" / "check.py").write_text(
            "import json, os, urllib.request\n"
            "score = urllib.request.urlopen(os.environ['SERVICE']).read()\n"
            "print(json.dumps({'score': float(score)}))\n"
        )
        configure(folder, "env: [SERVICE]", cache="")
        with serve(script(Answer(body=b"1"), Answer(body=b"0"))) as server:
            runs = [run(folder, environ={"SERVICE": server.url}) for _ in range(2)]
        assert [each.code for each in runs] == [0, 1]
        assert [each.cached for each in runs] == [[False], [False]]

    def test_nothing_is_stored_without_cache_true(self, folder: Path) -> None:
        configure(folder, cache="")
        run(folder)
        assert not cache_of(folder).exists()

    @pytest.mark.parametrize("cache", ["", "false"])
    def test_stored_response_is_not_used_without_cache_true(self, folder: Path, cache: str) -> None:
        first = run(folder)
        configure(folder, cache=cache)
        second = run(folder)
        assert second.cached == [False]
        assert first.times != second.times

    def test_defaults_enable_cache(self, folder: Path) -> None:
        configure(folder, cache="")
        config = folder / "eval_config.yaml"
        config.write_text(config.read_text() + "defaults: {cache: true}\n")
        assert [run(folder).cached for _ in range(2)] == [[False], [True]]


@pytest.mark.parametrize(
    "entry",
    [
        "{name: tool_trajectory_avg_score, type: builtin, cache: true}",
        "{name: p, type: prompt, prompt: p, threshold: 1, cache: true}",
    ],
)
def test_entry_without_a_program_has_no_cache_field(tmp_path: Path, entry: str) -> None:
    (tmp_path / "eval_config.yaml").write_text(f"traces: t.json\nevaluators:\n- {entry}\n")
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == 2
    assert "eval_config.yaml:3" in ran.out
    assert "cache" in ran.out


def test_grader_without_a_program_cannot_be_cached(tmp_path: Path) -> None:
    entry = "name: g, type: openai_eval, grader: {type: string_check, operation: eq}"
    (tmp_path / "eval_config.yaml").write_text(
        f"traces: t.json\nevaluators:\n- {{{entry}, cache: true}}\n"
    )
    ran = run_agentci(["validate"], cwd=tmp_path)
    assert ran.code == 2
    assert "this entry runs no program" in ran.out


def _change_helper(folder: Path, name: str) -> None:
    write_helper(folder, "two", name=name)


def _change_program(folder: Path, name: str) -> None:
    program = folder / "evals" / "check" / name
    program.write_text(program.read_text() + "\n")


def _add_module(folder: Path, name: str) -> None:
    """Add a package that shadows the module of the same name."""
    helper = folder / "evals" / "check" / HELPERS[name][0]
    package = helper.with_suffix("")
    package.mkdir()
    (package / "__init__.py").write_text(helper.read_text())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [_change_program, _change_helper, _add_module])
def test_changed_folder_runs_program(
    tmp_path: Path, name: str, change: Callable[[Path, str], None]
) -> None:
    write(tmp_path, name)
    first = run(tmp_path)
    change(tmp_path, name)
    second, third = run(tmp_path), run(tmp_path)
    assert first.times != second.times
    assert (second.cached, third.cached) == ([False], [True])
    assert second.times == third.times


class TestCacheKey:
    """Each part of it; a change of anything else reuses the response."""

    def test_changed_trace_runs_program(self, folder: Path) -> None:
        run(folder)
        (folder / "trace.json").write_text(otlp(answer="It rains."))
        assert run(folder).cached == [False]

    def test_changed_config_field_runs_program(self, folder: Path) -> None:
        run(folder)
        configure(folder, "config: {strict: true}")
        assert run(folder).cached == [False]

    def test_changed_network_setting_runs_program(self, folder: Path) -> None:
        run(folder)
        configure(folder, "network: false")
        assert run(folder).cached == [False]

    def test_changed_env_variable_runs_program(self, folder: Path) -> None:
        configure(folder, "env: [MOOD]")
        for mood, expected in (("good", False), ("good", True), ("bad", False), ("good", True)):
            ran = run(folder, environ={"MOOD": mood})
            [result] = ran.results
            assert (result["details"]["seen"][-1], result["cached"]) == (mood, expected)

    @pytest.mark.parametrize(
        ("name", "cached"),
        [("TZ", False), ("LC_ALL", False), ("PYTHONPATH", False), ("USER", True), ("HOME", True)],
    )
    def test_changed_environment_runs_program(
        self, folder: Path, name: str, *, cached: bool
    ) -> None:
        def judge(value: str) -> bool:
            environment = make_child_environment({"PATH": PATH, name: value})
            session = make_session(folder, {}, child_environment=environment)
            assert run_command(["run"], session) == 0
            report = json.loads((folder / "agentci-results" / "results.json").read_text())
            return bool(report["results"][0]["cached"])

        assert [judge("/a"), judge("/a"), judge("/b")] == [False, True, cached]

    def test_other_program_in_same_folder_is_run(self, folder: Path) -> None:
        own = folder / "evals" / "check"
        shutil.copy(own / "check.py", own / "other.py")
        run(folder)
        configure(folder, name="other.py")
        assert run(folder).cached == [False]

    def test_changed_interpreter_runs_program(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """Another `node` comes first in PATH."""
        write_other = folder / "evals" / "check" / "check.js"
        write_other.write_text(PROGRAMS["check.js"])
        write_helper(folder, "one", name="check.js")
        configure(folder, name="check.js")
        node = shutil.which("node", path=PATH)
        other = tmp_path_factory.mktemp("bin") / "node"
        other.write_text(f'#!/bin/sh\nexec {node} "$@"\n')
        other.chmod(0o755)
        run(folder)
        assert run(folder).cached == [True]
        environ = {"PATH": f"{other.parent}:{PATH}"}
        assert run(folder, environ=environ).cached == [False]

    def test_changed_agentci_version_runs_program(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run(folder)
        monkeypatch.setattr("agentci.runner.response_cache.cache.__version__", "0.0.0")
        assert run(folder).cached == [False]

    def test_changed_executor_runs_program(self, folder: Path) -> None:
        executors = Executors({"local": LocalExecutor, "elsewhere": LocalExecutor})

        def judge() -> bool:
            session = make_session(folder, {}, executors=executors)
            assert run_command(["run"], session) == 0
            report = json.loads((folder / "agentci-results" / "results.json").read_text())
            return bool(report["results"][0]["cached"])

        assert [judge(), judge()] == [False, True]
        configure(folder, "executor: elsewhere")
        assert [judge(), judge()] == [False, True]

    @pytest.mark.parametrize("entry", ["memory_mb: 512", "timeout: 29", "required: false"])
    def test_unrelated_settings_do_not_invalidate_cache(self, folder: Path, entry: str) -> None:
        run(folder)
        configure(folder, entry)
        assert run(folder).cached == [True]

    def test_unlisted_variables_do_not_invalidate_cache(self, folder: Path) -> None:
        run(folder, environ={"MOOD": "good"})
        assert run(folder, environ={"MOOD": "bad"}).cached == [True]

    def test_files_outside_program_folder_do_not_invalidate_cache(self, folder: Path) -> None:
        run(folder)
        (folder / "data" / "words.txt").write_text("rude")
        assert run(folder).cached == [True]


def test_no_cache_option_runs_program_and_replaces_response(folder: Path) -> None:
    first, second = run(folder), run(folder, "--no-cache")
    assert first.times != second.times
    third = run(folder)
    assert third.cached == [True]
    assert second.times == third.times


class TestSymlink:
    def test_symlinked_folder_is_followed(self, folder: Path) -> None:
        evals = folder / "evals"
        (evals / "check").rename(evals / "check-1")
        shutil.copytree(evals / "check-1", evals / "check-2")
        (evals / "check-2" / "helper.py").write_text("WORD = 'two'\n")
        (evals / "check").symlink_to("check-1")
        assert [run(folder).cached for _ in range(2)] == [[False], [True]]
        (evals / "check").unlink()
        (evals / "check").symlink_to("check-2")
        assert run(folder).seen[0] == "two"

    def test_symlinked_program_includes_target_folder(self, folder: Path) -> None:
        """Python imports modules from there."""
        shared, own = folder / "shared", folder / "evals" / "check"
        own.rename(shared)
        own.mkdir()
        (own / "check.py").symlink_to("../../shared/check.py")
        assert [run(folder).cached for _ in range(2)] == [[False], [True]]
        (shared / "helper.py").write_text("WORD = 'two'\n")
        assert run(folder).seen[0] == "two"


class TestUncacheableResponse:
    @pytest.mark.parametrize(
        "program", ["raise SystemExit(3)", "print('no json')", "import time; time.sleep(60)"]
    )
    def test_errored_check_is_not_cached(self, folder: Path, program: str) -> None:
        configure(folder, "timeout: 1")
        (folder / "evals" / "check" / "check.py").write_text(program)
        for _ in range(2):
            [result] = run(folder).results
            assert (result["status"], result["cached"]) == ("errored", False)

    def test_folder_changed_during_run_is_not_cached(self, folder: Path) -> None:
        """It may have been read before the change or after it."""
        executors = Executors({"local": ChangingExecutor})
        out = io.StringIO()
        session = replace(make_session(folder, {}, executors=executors), out=out)
        assert run_command(["run"], session) == 0
        assert "responses are not cached: evals/check changed during the run" in out.getvalue()
        write_helper(folder, "one")
        assert run(folder).cached == [False]

    def test_too_large_folder_is_not_cached(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agentci.runner.response_cache.cache.MAX_FILES", 1)
        runs = [run(folder) for _ in range(2)]
        assert [each.cached for each in runs] == [[False], [False]]
        assert "cannot compare the files of evaluator `check`: " in runs[0].out
        assert "has more than 1 files" in runs[0].out


class ChangingExecutor(LocalExecutor):
    """Changes a module while the program runs."""

    def run(self, command: Sequence[str], **others: Any) -> ProgramOutput:
        output = super().run(command, **others)
        Path(command[-1]).with_name("helper.py").write_text("WORD = 'two'\n")
        return output


def test_concurrent_programs_are_all_cached(folder: Path) -> None:
    for number in range(2, 21):
        (folder / f"trace-{number}.json").write_text(otlp(trace=number))
    first, second = run(folder, "--jobs", "4"), run(folder, "--jobs", "4")
    assert (second.cached, len(second.cached)) == ([True] * 20, 20)
    assert first.times == second.times
    write_helper(folder, "two")
    assert run(folder).cached == [False] * 20
