"""``agentci cache``: dir, list, verify and clean."""

import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import pytest

from agentci._util.cache_folder import RESPONSES_FILE, hold_cache_lock
from agentci.cli.commands.cache import (
    clean_cache,
    list_cache_entries,
    print_cache_folder,
    verify_cache,
)
from agentci.errors import InputError
from agentci.github.baseline.cache import BaselineStore
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.model.requests import ProgramOutput
from agentci.remote.cache_index import EvaluatorKey
from agentci.remote.evaluator_cache import EvaluatorCache
from agentci.runner.response_cache.store import ResponseStore
from tests.remote.cache_samples import KEY, SNAPSHOT, as_nobody, index_of, trees_of

LARGE_KEY = EvaluatorKey(
    source="url", repository="", commit="sha256:" + "0" * 64, ref="https://x/y.py"
)
LARGE = ProgramSnapshot(
    entry="y.py",
    files={
        "y.py": ProgramFile(content=bytes(3 * 1024**2)),
        "z.py": ProgramFile(content=bytes(500_000)),
    },
)
Command: TypeAlias = Callable[[Path, TextIO], int]


@pytest.fixture
def store(tmp_path: Path) -> EvaluatorCache:
    """A cache with one evaluator in it."""
    store = EvaluatorCache(tmp_path / "cache")
    store.put(KEY, SNAPSHOT)
    return store


def _run(command: Callable[..., int], folder: Path, **options: Any) -> tuple[int, str]:
    out = io.StringIO()
    code = command(folder, out, **options)
    return code, out.getvalue()


def _damage(store: EvaluatorCache) -> None:
    (trees_of(store)[0] / "tone.py").write_text("print('{}')")


class TestDir:
    def test_cache_dir_is_printed(self, tmp_path: Path) -> None:
        assert _run(print_cache_folder, tmp_path / "not made") == (0, f"{tmp_path}/not made\n")


class TestList:
    def test_list_has_one_line_per_evaluator(self, store: EvaluatorCache) -> None:
        store.put(LARGE_KEY, LARGE)
        code, out = _run(list_cache_entries, store.folder)
        *table, last = out.splitlines()
        assert code == 0
        assert [line.split() for line in [table[0], *sorted(table[1:])]] == [
            ["SOURCE", "REPOSITORY", "REF", "COMMIT", "SIZE", "FILES"],
            ["github", "org/evals", "tone/tone.py", "8c1f8c1f8c1f", "48", "bytes", "3"],
            ["url", "-", "https://x/y.py", "000000000000", "3.5", "MiB", "2"],
        ]
        assert last == f"2 evaluators, 3.5 MiB, in {store.folder}"

    def test_list_columns_are_aligned(self, store: EvaluatorCache) -> None:
        store.put(LARGE_KEY, LARGE)
        table = _run(list_cache_entries, store.folder)[1].splitlines()[:-1]
        commits = ("COMMIT", "8c1f8c1f8c1f", "000000000000")
        assert len({line.index(each) for line in table for each in commits if each in line}) == 1

    def test_list_shows_sizes_with_units(self, store: EvaluatorCache) -> None:
        files = {"a.py": ProgramFile(content=bytes(3500))}
        store.put(KEY, ProgramSnapshot(entry="a.py", files=files))
        assert "3.4 KiB" in _run(list_cache_entries, store.folder)[1]

    def test_list_reports_damaged_entry(self, store: EvaluatorCache) -> None:
        _damage(store)
        code, out = _run(list_cache_entries, store.folder)
        assert code == 0
        assert out.startswith("damaged: github org/evals tone/tone.py at 8c1f8c1f8c1f (")
        assert out.endswith(f"0 evaluators, 0 bytes, in {store.folder}\n")

    def test_list_cannot_inject_workflow_commands(self, store: EvaluatorCache) -> None:
        ref = "x\n::error::forged\x1b[31m##[error]"
        store.put(EvaluatorKey(source="s", repository="r\n", commit="\r", ref=ref), SNAPSHOT)
        out = _run(list_cache_entries, store.folder)[1]
        assert "\x1b" not in out
        assert "##[" not in out
        assert not any(line.startswith("::") for line in out.splitlines())
        assert len(out.splitlines()) == 4

    def test_json_list_has_all_fields(self, store: EvaluatorCache) -> None:
        put = store.put(KEY, SNAPSHOT)
        code, out = _run(list_cache_entries, store.folder, as_json=True)
        assert code == 0
        assert json.loads(out) == [
            {
                "source": "github",
                "repository": "org/evals",
                "ref": "tone/tone.py",
                "commit": KEY.commit,
                "path": str(put.path),
                "size_bytes": 48,
                "files": dict(put.digests),
                "damage": None,
            }
        ]

    def test_json_list_reports_damage(self, store: EvaluatorCache) -> None:
        index_of(store)[0].write_text("{}")
        (entry,) = json.loads(_run(list_cache_entries, store.folder, as_json=True)[1])
        assert (entry["source"], entry["path"], entry["files"]) == (None, None, None)
        assert "must have the keys" in entry["damage"]

    def test_list_counts_responses(self, store: EvaluatorCache) -> None:
        assert _keep(store.folder, 1) == ""
        assert ", 1 response, " in _run(list_cache_entries, store.folder)[1]
        _keep(store.folder, 2)
        assert ", 2 responses, " in _run(list_cache_entries, store.folder)[1]

    def test_list_counts_baselines(self, store: EvaluatorCache) -> None:
        BaselineStore(store.folder).put("c0de" * 10, "agentci-results", b"{}")
        assert ", 1 baseline, " in _run(list_cache_entries, store.folder)[1]

    def test_json_list_includes_baselines(self, tmp_path: Path) -> None:
        store, commit, damaged = BaselineStore(tmp_path), "c0de" * 10, "dead" * 10
        store.put(commit, "agentci-results", b"{}")
        store.put(damaged, "agentci-results", b"{}")
        second = next(tmp_path.rglob(f"{damaged}-*"))
        second.write_bytes(b"PK")
        entries = json.loads(_run(list_cache_entries, tmp_path, as_json=True)[1])
        assert [(each["source"], each["commit"]) for each in entries] == [
            ("baselines", commit),
            ("baselines", damaged),
        ]
        assert entries[1]["path"] == str(second)
        assert [each["damage"] is None for each in entries] == [True, False]

    def test_missing_cache_lists_nothing(self, tmp_path: Path) -> None:
        code, out = _run(list_cache_entries, tmp_path / "missing")
        assert (code, out) == (0, f"0 evaluators, 0 bytes, in {tmp_path}/missing\n")
        assert _run(list_cache_entries, tmp_path / "missing", as_json=True) == (0, "[]\n")


def _keep(folder: Path, *numbers: int) -> str:
    """Store responses; return why they could not be stored."""
    responses = ResponseStore(folder)
    for number in numbers:
        response = ProgramOutput(stdout=b"{}", stderr="", exit_code=0)
        responses.put(bytes([number]), response)
    responses.close()
    return responses.problem


class TestVerify:
    def test_verify_accepts_sound_cache(self, store: EvaluatorCache) -> None:
        assert _run(verify_cache, store.folder) == (0, "1 evaluator verified, 0 damaged\n")

    def test_verify_reports_damaged_evaluator_and_fix(self, store: EvaluatorCache) -> None:
        store.put(LARGE_KEY, LARGE)
        (store.put(KEY, SNAPSHOT).folder / "more").touch()
        code, out = _run(verify_cache, store.folder)
        assert code == 2
        assert "tone/tone.py at 8c1f8c1f8c1f" in out
        assert "more is not part of it" in out
        assert "1 evaluator verified, 1 damaged\n" in out
        assert "the next run fetches them" in out

    def test_verify_names_unreadable_index_file(self, store: EvaluatorCache) -> None:
        index_of(store)[0].write_text("{")
        code, out = _run(verify_cache, store.folder)
        assert code == 2
        assert out.startswith(f"damaged: {index_of(store)[0].name}: its entry in the index: ")

    def test_verify_checks_every_response(self, store: EvaluatorCache) -> None:
        _keep(store.folder, 1, 2, 3)
        summary = "1 evaluator verified, 0 damaged\n3 responses, {} of them damaged\n"
        assert _run(verify_cache, store.folder) == (0, summary.format(0))
        with sqlite3.connect(store.folder / RESPONSES_FILE) as connection:
            connection.execute("UPDATE responses SET stdout = x'00' WHERE rowid = 2")
        code, out = _run(verify_cache, store.folder)
        assert (code, out.startswith(summary.format(1))) == (2, True)
        with sqlite3.connect(store.folder / RESPONSES_FILE) as connection:
            connection.execute("UPDATE responses SET stdout = x'00'")
        assert "3 of them damaged" in _run(verify_cache, store.folder)[1]

    def test_verify_checks_every_baseline(self, store: EvaluatorCache) -> None:
        for commit in ("c0de" * 10, "f00d" * 10):
            BaselineStore(store.folder).put(commit, "agentci-results", b"{}")
        summary = "1 evaluator verified, 0 damaged\n2 baselines, {} of them damaged\n"
        assert _run(verify_cache, store.folder) == (0, summary.format(0))
        next((store.folder / "baselines").iterdir()).write_text("PK")
        code, out = _run(verify_cache, store.folder)
        assert (code, out.startswith(summary.format(1))) == (2, True)

    def test_verify_reports_unreadable_response_database(self, store: EvaluatorCache) -> None:
        (store.folder / RESPONSES_FILE).write_text("no database, of whatever size it may be")
        code, out = _run(verify_cache, store.folder)
        assert (code, "damaged: responses.sqlite3: file is not a database\n" in out) == (2, True)
        assert (store.folder / RESPONSES_FILE).exists()

    def test_verify_removes_nothing(self, store: EvaluatorCache) -> None:
        _damage(store)
        _run(verify_cache, store.folder)
        assert len(index_of(store)) == 1


class TestClean:
    def test_clean_removes_cache_content_and_reports_size(self, store: EvaluatorCache) -> None:
        store.put(LARGE_KEY, LARGE)
        with hold_cache_lock(store.folder, "x"):
            pass
        environment = store.folder / "environments" / ("0" * 64)
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").symlink_to("/usr/bin/python3")
        (store.folder / ".tmp-1").mkdir()
        (store.folder / "evaluators" / "trees" / ".tmp-2").mkdir()
        code, out = _run(clean_cache, store.folder)
        assert (code, out) == (0, "removed 2 evaluators and 1 environment: 3.5 MiB freed\n")
        assert sorted(path.name for path in store.folder.iterdir()) == [
            ".gitignore",
            "CACHEDIR.TAG",
        ]

    def test_clean_removes_responses(self, store: EvaluatorCache) -> None:
        _keep(store.folder, 1, 2)
        code, out = _run(clean_cache, store.folder)
        assert out.startswith("removed 1 evaluator, 0 environments and 2 responses: ")
        assert (code, (store.folder / RESPONSES_FILE).exists()) == (0, False)

    def test_clean_removes_baselines(self, store: EvaluatorCache) -> None:
        BaselineStore(store.folder).put("c0de" * 10, "agentci-results", b"{}")
        code, out = _run(clean_cache, store.folder)
        assert out.startswith("removed 1 evaluator, 0 environments and 1 baseline: ")
        assert (code, (store.folder / "baselines").exists()) == (0, False)

    def test_clean_keeps_foreign_files(self, store: EvaluatorCache) -> None:
        foreign = [
            store.folder / "notes.txt",
            store.folder / "evaluators" / "mine.py",
            store.folder / "environments" / "conda" / "env.yml",
            store.folder / "locks" / "bicycle",
        ]
        for path in foreign:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        assert _run(clean_cache, store.folder)[0] == 0
        assert all(path.exists() for path in foreign)
        assert store.find(KEY) is None

    def test_cleaned_cache_can_be_reused(self, store: EvaluatorCache) -> None:
        _run(clean_cache, store.folder)
        put = store.put(KEY, SNAPSHOT)
        assert store.find(KEY) == put
        assert _run(clean_cache, store.folder)[0] == 0
        assert _run(clean_cache, store.folder) == (
            0,
            "removed 0 evaluators and 0 environments: 0 bytes freed\n",
        )

    def test_clean_follows_no_symlinks(self, store: EvaluatorCache, tmp_path: Path) -> None:
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / ("0" * 64)).mkdir()
        (store.folder / "environments").symlink_to(tmp_path / "precious")
        (store.folder / ".tmp-link").symlink_to(tmp_path / "precious")
        assert _run(clean_cache, store.folder)[0] == 0
        assert len(list((tmp_path / "precious").iterdir())) == 1
        assert not (store.folder / ".tmp-link").is_symlink()

    def test_clean_reports_undeletable_files(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            store = EvaluatorCache(Path(name) / "cache")
            store.put(KEY, SNAPSHOT)
            (store.folder / "evaluators").chmod(0o555)
            with as_nobody():
                code, out = _run(clean_cache, store.folder)
            (store.folder / "evaluators").chmod(0o755)
        assert code == 2
        assert out.startswith("removed 0 evaluators and 0 environments: 0 bytes freed\n")
        assert f"{store.folder}/evaluators/index could not be removed" in out

    @pytest.mark.parametrize("make", [Path.mkdir, lambda _: None], ids=["empty", "missing"])
    def test_clean_of_empty_cache_succeeds(
        self, tmp_path: Path, make: Callable[[Path], None]
    ) -> None:
        make(tmp_path / "cache")
        assert _run(clean_cache, tmp_path / "cache") == (
            0,
            f"the cache is empty: {tmp_path}/cache\n",
        )

    def test_clean_rejects_folder_without_cache_tag(self, store: EvaluatorCache) -> None:
        (store.folder / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
        with pytest.raises(InputError, match="not an agentci cache"):
            _run(clean_cache, store.folder)
        assert store.find(KEY) is not None


@pytest.mark.parametrize("command", [list_cache_entries, verify_cache, clean_cache])
class TestForeignFolder:
    def test_foreign_folder_is_rejected(self, tmp_path: Path, command: Command) -> None:
        (tmp_path / "home" / "evaluators").mkdir(parents=True)
        (tmp_path / "home" / "evaluators" / "mine.py").touch()
        with pytest.raises(InputError, match="not an agentci cache"):
            _run(command, tmp_path / "home")
        assert (tmp_path / "home" / "evaluators" / "mine.py").exists()

    def test_file_in_place_of_folder_is_rejected(self, tmp_path: Path, command: Command) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match=r"cannot read the cache .*: Not a directory"):
            _run(command, tmp_path / "file")
