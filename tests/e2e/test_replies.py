"""What programs replied is taken again where nothing has changed, and never where something has."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.replies import HELPERS, PROGRAMS, configure, run, write_helper
from tests.e2e.replies import write_program as write
from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, run_agentci

NAMES = list(PROGRAMS)
# Each would take milliseconds of a second that has little to do.
IDLE = {
    *("asyncio", "concurrent.futures", "difflib", "http.client", "jsonschema", "logging"),
    *("requests", "ssl", "subprocess", "agentci.cli.action", "agentci.config.agentv.files"),
    *(
        "agentci.config.agentv.external_files",
        "agentci.evaluators.agentv",
        "agentci.runner.command_jobs",
    ),
    *("agentci.execution.local", "agentci.execution.docker", "agentci.recordings.adk_eval_set"),
    *(
        "agentci.recordings.agentv",
        "agentci.remote.lock.file",
        "agentci.reports.merge",
        "agentci.model.lock",
    ),
    *(
        "agentci.runner.load_outputs",
        "agentci.runner.trial_runner",
        "agentci.remote.sources.registry",
        "agentci.remote.cache.store",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with one program of Python."""
    write(tmp_path)
    return tmp_path


class TestUnchangedInput:
    @pytest.mark.parametrize("name", NAMES)
    def test_runs_no_program(self, tmp_path: Path, name: str) -> None:
        write(tmp_path, name)
        first, second = run(tmp_path), run(tmp_path)
        assert (first.cached, second.cached) == ([False], [True])
        assert first.times == second.times

    def test_loads_nothing_that_it_has_no_use_for(self, folder: Path) -> None:
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            "from agentci.cli.main import main\n"
            "main(['run', '--quiet', '--cache-dir', '.cache'])\n"
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
            *_, totals, loaded = ran.stdout.splitlines()
            return [totals.rpartition("; ")[2], loaded]

        assert "agentci.execution.local" in judge()[1]
        assert judge() == ["1 cached", ""]

    def test_gives_the_same_report_but_for_seconds_and_cached(self, folder: Path) -> None:
        def report() -> object:
            run(folder)
            found = json.loads((folder / "agentci-results" / "results.json").read_text())
            for result in found["results"]:
                del result["seconds"], result["cached"]
            return found

        assert report() == report()

    def test_is_said_to_be_cached_in_every_report(self, folder: Path) -> None:
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

    def test_of_a_check_that_failed_fails_again(self, folder: Path) -> None:
        program = folder / "evals" / "check" / "check.py"
        program.write_text(PROGRAMS["check.py"].replace('"score": 1', '"score": 0.25'))
        first, second = run(folder), run(folder)
        assert (first.code, second.code, second.cached) == (1, 1, [True])
        assert first.times == second.times

    def test_is_judged_anew_by_what_the_config_says_now(self, folder: Path) -> None:
        first = run(folder)
        configure(folder, "required: false")
        second = run(folder)
        assert second.cached == [True]
        assert [each["required"] for each in second.results] == [False]
        assert first.times == second.times

    def test_may_lie_elsewhere(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """As on another runner, which has the cache of the one before."""
        first = run(folder)
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "work"
        shutil.copytree(folder, elsewhere, symlinks=True)
        second = run(elsewhere)
        assert second.cached == [True]
        assert first.times == second.times

    def test_is_not_changed_by_reports_in_the_folder_of_the_program(self, folder: Path) -> None:
        own = ("--output-dir", "evals/check", "--cache-dir", "evals/check/cache")
        for _ in range(2):
            run_agentci(["run", *own], cwd=folder)
        results = json.loads((folder / "evals" / "check" / "results.json").read_text())
        assert [result["cached"] for result in results["results"]] == [True]


def _new_word(folder: Path, name: str) -> None:
    write_helper(folder, "two", name=name)


def _new_program(folder: Path, name: str) -> None:
    program = folder / "evals" / "check" / name
    program.write_text(program.read_text() + "\n")


def _new_data(folder: Path, _: str) -> None:
    (folder / "data" / "words.txt").write_text("rude")


def _data_of_the_same_size_and_times(folder: Path, _: str) -> None:
    file = folder / "data" / "words.txt"
    status = file.stat()
    file.write_text("rude")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _new_module_beside(folder: Path, name: str) -> None:
    """One that comes before another of its name."""
    helper = folder / "evals" / "check" / HELPERS[name][0]
    package = helper.with_suffix("")
    package.mkdir()
    (package / "__init__.py").write_text(helper.read_text())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change",
    [_new_program, _new_word, _new_data, _data_of_the_same_size_and_times, _new_module_beside],
)
def test_a_change_of_what_a_program_reads_has_it_run(
    tmp_path: Path, name: str, change: Callable[[Path, str], None]
) -> None:
    write(tmp_path, name)
    first = run(tmp_path)
    change(tmp_path, name)
    second, third = run(tmp_path), run(tmp_path)
    assert first.times != second.times
    assert (second.cached, third.cached) == ([False], [True])
    assert second.times == third.times


def test_a_module_counts_where_python_read_what_it_was_compiled_to(folder: Path) -> None:
    """Of the source, Python then asks for size and time alone."""
    helper = folder / "evals" / "check" / "helper.py"
    py_compile.compile(str(helper))
    assert [run(folder).cached for _ in range(2)] == [[False], [True]]
    write_helper(folder, "another")
    assert run(folder).seen[0] == "another"


def test_a_file_that_is_gone_is_missed(folder: Path) -> None:
    run(folder)
    (folder / "data" / "words.txt").unlink()
    assert [result["status"] for result in run(folder).results] == ["errored"]


class TestAProgramIsRun:
    """Where its reply might be another one."""

    def test_for_another_recording(self, folder: Path) -> None:
        run(folder)
        (folder / "trace.json").write_text(otlp(answer="It rains."))
        assert run(folder).cached == [False]

    def test_for_another_value_of_a_variable_that_it_may_see(self, folder: Path) -> None:
        configure(folder, "env: [MOOD]")
        for mood, expected in (("good", False), ("good", True), ("bad", False), ("good", True)):
            ran = run(folder, environ={"MOOD": mood})
            [result] = ran.results
            assert (result["details"]["seen"][-1], result["cached"]) == (mood, expected)

    def test_not_for_a_variable_that_it_may_not_see(self, folder: Path) -> None:
        run(folder, environ={"MOOD": "good"})
        assert run(folder, environ={"MOOD": "bad"}).cached == [True]

    @pytest.mark.parametrize("entry", ["network: false", "memory_mb: 512", "processes: 100"])
    def test_with_other_walls_around_it(self, folder: Path, entry: str) -> None:
        run(folder)
        configure(folder, entry)
        assert run(folder).cached == [False]

    def test_with_other_settings_of_its_own(self, folder: Path) -> None:
        run(folder)
        configure(folder, "config: {strict: true}")
        assert run(folder).cached == [False]

    def test_where_its_entry_says_that_it_has_to(self, folder: Path) -> None:
        configure(folder, "cache: false")
        first, second = run(folder), run(folder)
        assert first.times != second.times
        assert second.cached == [False]

    def test_where_its_config_says_so_of_all(self, folder: Path) -> None:
        config = folder / "eval_config.yaml"
        config.write_text(config.read_text() + "defaults: {cache: false}\n")
        assert [run(folder).cached for _ in range(2)] == [[False], [False]]

    def test_where_nothing_is_to_be_taken_from_the_cache(self, folder: Path) -> None:
        first, second = run(folder), run(folder, "--no-cache")
        assert first.times != second.times
        third = run(folder)
        assert third.cached == [True]
        assert second.times == third.times


class TestWhatWasReachedByALink:
    def test_is_something_else_once_the_link_leads_elsewhere(self, folder: Path) -> None:
        (folder / "data").rename(folder / "data-1")
        shutil.copytree(folder / "data-1", folder / "data-2")
        (folder / "data-2" / "words.txt").write_text("rude")
        (folder / "data").symlink_to("data-1")
        assert [run(folder).cached for _ in range(2)] == [[False], [True]]
        (folder / "data").unlink()
        (folder / "data").symlink_to("data-2")
        second = run(folder)
        assert (second.cached, second.seen[1]) == ([False], "rude")

    def test_is_the_program_itself(self, folder: Path) -> None:
        evals = folder / "evals"
        (evals / "check").rename(evals / "check-1")
        shutil.copytree(evals / "check-1", evals / "check-2")
        (evals / "check-2" / "helper.py").write_text("WORD = 'two'\n")
        (evals / "check").symlink_to("check-1")
        run(folder)
        assert run(folder).cached == [True]
        (evals / "check").unlink()
        (evals / "check").symlink_to("check-2")
        assert run(folder).seen[0] == "two"


class TestNothingIsKept:
    @pytest.mark.parametrize(
        "program", ["raise SystemExit(3)", "print('no json')", "import time; time.sleep(60)"]
    )
    def test_of_a_check_that_errored(self, folder: Path, program: str) -> None:
        configure(folder, "timeout: 1")
        (folder / "evals" / "check" / "check.py").write_text(program)
        for _ in range(2):
            [result] = run(folder).results
            assert (result["status"], result["cached"]) == ("errored", False)
            assert result["seconds"] > 0.01

    def test_of_a_reply_that_is_not_read(self, folder: Path) -> None:
        """Whose program gives a verdict in one run, and none in the next."""
        program = folder / "evals" / "check" / "check.py"
        program.write_text("import time; print(time.time_ns())")
        run(folder)
        assert run(folder).cached == [False]

    def test_of_what_changed_while_it_was_read(self, folder: Path) -> None:
        program = PROGRAMS["check.py"].replace("seen =", "time.sleep(1); seen =")
        (folder / "evals" / "check" / "check.py").write_text(program)
        thread = threading.Timer(0.6, (folder / "data" / "words.txt").write_text, ("rude",))
        thread.start()
        run(folder)
        thread.join()
        assert run(folder).cached == [False]

    def test_of_what_was_read_in_a_folder_that_was_made_meanwhile(self, folder: Path) -> None:
        later = folder / "later"
        program = PROGRAMS["check.py"].replace("seen =", "time.sleep(1); seen =")
        program = program.replace("data/words.txt", "later/words.txt")
        (folder / "evals" / "check" / "check.py").write_text(program)
        thread = threading.Timer(0.6, shutil.copytree, (folder / "data", later))
        thread.start()
        first = run(folder)
        thread.join()
        assert first.seen[1] == "kind"
        (later / "words.txt").write_text("rude")
        assert run(folder).seen[1] == "rude"


class TestTheNamesInAFolder:
    @pytest.fixture(autouse=True)
    def _lister(self, folder: Path) -> None:
        program = PROGRAMS["check.py"].replace("seen = [", "seen = [*os.listdir(pathlib.Path()), ")
        (folder / "evals" / "check" / "check.py").write_text(program)

    def test_count_where_a_program_lists_them(self, folder: Path) -> None:
        assert [run(folder).cached for _ in range(2)] == [[False], [True]]
        (folder / "more.txt").touch()
        assert run(folder).cached == [False]

    def test_count_without_what_a_run_itself_makes(self, folder: Path) -> None:
        assert run(folder, "--cache-dir", "x/y/cache").cached == [False]
        assert run(folder, "--cache-dir", "x/y/cache").cached == [True]


def test_a_report_of_ours_that_a_program_reads_is_another_one_each_time(folder: Path) -> None:
    run(folder)
    program = PROGRAMS["check.py"].replace("data/words.txt", "agentci-results/results.json")
    (folder / "evals" / "check" / "check.py").write_text(program)
    assert [run(folder).cached for _ in range(2)] == [[False], [False]]


def test_programs_that_run_at_the_same_time_are_all_cached(folder: Path) -> None:
    for number in range(2, 21):
        (folder / f"trace-{number}.json").write_text(otlp(trace=number))
    first, second = run(folder, "--jobs", "4"), run(folder, "--jobs", "4")
    assert (second.cached, len(second.cached)) == ([True] * 20, 20)
    assert first.times == second.times
    write_helper(folder, "two")
    assert run(folder).cached == [False] * 20


def test_a_folder_of_modules_that_the_environment_names_counts(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    modules = tmp_path_factory.mktemp("modules")
    (folder / "evals" / "check" / "helper.py").rename(modules / "helper.py")
    environ = {"PYTHONPATH": str(modules)}
    configure(folder, "env: [PYTHONPATH]")
    assert [run(folder, environ=environ).cached for _ in range(2)] == [[False], [True]]
    (modules / "helper.py").write_text("WORD = 'two'\n")
    assert run(folder, environ=environ).seen[0] == "two"
