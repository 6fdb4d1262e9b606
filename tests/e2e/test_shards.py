"""Sharded runs, and merging their reports into those of one run."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import unescape as html
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.cli.action import run_action
from agentci.cli.commands.reports import merge
from agentci.config.settings import parse_settings
from agentci.reports.merge.read import MAX_REPORT_BYTES
from tests.conftest import MakeOnce
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.runner import commands_in, read_output_file
from tests.helpers.support import ROOT, Ran, make_session, run_agentci

CONFIG = """\
evaluators:
- {name: tool_trajectory_avg_score, type: builtin, threshold: 1.0}
- {name: response_match_score, type: builtin, threshold: 0.9, required: false}
eval_set: golden.json
traces: recordings/*.json
"""
ANOTHER = """\
evaluators:
- {name: response_match_score, type: builtin, threshold: 0.2}
eval_set: golden.json
traces: recordings/c*.json
gate: {min_pass_rate: 0.5, evaluators: {response_match_score: {on_error: warn}}}
"""
CITIES = ("Paris", "Rome", "Oslo", "Cairo", "Lima", "Quito", "Hanoi", "Cork")
EVERY = range(1, 4)
# Merged reports contain no evaluator input and output.
ELSEWHERE = ',\n"merged": true'

# Two checks for each city, and one for each of two cities in the other config.
CHECKS = 18


def _question(city: str) -> str:
    return f"What is the weather in {city}?"


def _golden(cities: Sequence[str]) -> str:
    cases = [
        json.loads(
            eval_set(_question(city), calls=[("get_weather", {"city": city})], case=city.lower())
        )["eval_cases"][0]
        for city in cities
    ]
    return json.dumps({"eval_set_id": "set", "eval_cases": cases})


def _record(folder: Path, city: str, *, called: str | None = None, trace: int = 0) -> None:
    file = folder / "evals" / "recordings" / f"{city.lower()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    number = trace or 1 + CITIES.index(city)
    calls = [("get_weather", {"city": called or city})]
    file.write_text(otlp(_question(city), f"Sunny in {city}.", calls=calls, trace=number))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with failed, skipped and optional checks under two gates."""
    _fill(tmp_path / "workspace")
    return tmp_path / "workspace"


def _fill(folder: Path) -> None:
    for city in CITIES:
        _record(folder, city, called="London" if city in {"Rome", "Lima"} else None)
    (folder / "evals" / "golden.json").write_text(_golden([*CITIES[:-2], "Nowhere"]))
    (folder / "evals" / "eval_config.yaml").write_text(CONFIG)
    (folder / "evals" / "another.eval.yaml").write_text(ANOTHER)


@pytest.fixture
def sharded(tmp_path: Path, make_once: MakeOnce) -> Path:
    """The workspace after all three shards ran."""

    def run_shards(folder: Path) -> None:
        _fill(folder)
        for index in EVERY:
            _run(folder, f"{index}/3")

    make_once(tmp_path / "workspace", run_shards)
    return tmp_path / "workspace"


def _run(folder: Path, shard: str = "", *options: str) -> Ran:
    """Run one shard with a report folder named after it, or all checks with ``whole``."""
    shards = ["--shard", shard] if shard else []
    out = f"out/{shard.replace('/', '-of-') or 'whole'}"
    arguments = ["run", "evals", *shards, "--output-dir", out, *options]
    return run_agentci(arguments, cwd=folder)


def _merge(folder: Path, *reports: str) -> Ran:
    return run_agentci(["merge", *(reports or ("out",)), "--output-dir", "merged"], cwd=folder)


def _report(folder: Path, name: str) -> Any:
    return json.loads((folder / name / "results.json").read_text())


def _edit(folder: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change a report in the folder ``out``."""
    file = folder / "out" / name / "results.json"
    report = json.loads(file.read_text())
    change(report)
    file.write_text(json.dumps(report))


def _timeless(text: str) -> str:
    """Return a report without the fields that differ between runs."""
    text = re.sub(r'"seconds": ?[^,]+,( ?"cached": ?\w+)?', "", text)
    return _placeless(re.sub(r' time="[^"]*"', "", text))


def _placeless(text: str) -> str:
    """Return a report without the folder that it was written to."""
    return re.sub(r"\[\[ATTACHMENT\|.*/report\.html]]", "[[ATTACHMENT|report.html]]", text)


def _errors(ran: Ran) -> list[str]:
    report = _report(ran.folder, "merged")
    assert (ran.code, report["decision"]["passed"], report["results"]) == (2, False, [])
    return [each["message"] for each in report["problems"]]


class TestShard:
    def test_shards_divide_checks_without_overlap(self, folder: Path) -> None:
        _run(folder)
        for index in EVERY:
            _run(folder, f"{index}/3")
        whole = [result["id"] for result in _report(folder, "out/whole")["results"]]
        parts = [
            [result["id"] for result in _report(folder, f"out/{index}-of-3")["results"]]
            for index in EVERY
        ]
        assert all(parts)
        assert sorted(check for part in parts for check in part) == sorted(whole)

    def test_new_checks_do_not_move_others_between_shards(self, folder: Path) -> None:
        (folder / "evals" / "recordings" / "oslo.json").unlink()
        _run(folder, "1/2")
        before = {result["id"] for result in _report(folder, "out/1-of-2")["results"]}
        _record(folder, "Oslo")
        _run(folder, "1/2")
        after = _report(folder, "out/1-of-2")["results"]
        assert before <= {result["id"] for result in after}
        assert {result["id"] for result in after if result["case"] != "oslo"} == before

    def test_report_of_shard_states_its_position(self, folder: Path) -> None:
        ran = _run(folder, "2/3")
        report = _report(folder, "out/2-of-3")
        assert {name: report["shard"][name] for name in ("index", "total")} == {
            "index": 2,
            "total": 3,
        }
        assert len(report["shard"]["checks"]) == CHECKS
        assert "results of shard 2 of 3 only" in report["decision"]["reasons"][-1]
        assert "Shard 2 of 3 " in ran.out

    def test_shard_fails_only_for_its_own_checks(self, folder: Path) -> None:
        codes = {}
        for index in EVERY:
            codes[index] = _run(folder, f"{index}/3").code
            results = _report(folder, f"out/{index}-of-3")["results"]
            fell = any(result["status"] == "failed" and result["required"] for result in results)
            assert codes[index] == int(fell)
        assert set(codes.values()) == {0, 1}

    def test_shard_never_passes_gate(self, folder: Path) -> None:
        ran = _run(folder, "1/1", "--fail-on", "never")
        decision = _report(folder, "out/1-of-1")["decision"]
        assert (ran.code, decision["passed"], decision["exit_code"]) == (0, False, 0)
        assert "Shard 1 of 1 passed with " in ran.out

    def test_empty_shard_exits_zero_with_reason(self, folder: Path) -> None:
        checks = [result["id"] for result in _report_of_whole(folder)["results"]]
        empty = next(n for n in range(256) if all(int(check, 16) % 256 != n for check in checks))
        ran = _run(folder, f"{empty + 1}/256")
        assert ran.code == 0
        assert "no checks in this shard" in ran.out

    def test_shard_does_not_report_unmatched_eval_cases(self, folder: Path) -> None:
        config = folder / "evals" / "eval_config.yaml"
        config.write_text(CONFIG)
        (folder / "evals" / "golden.json").write_text(_golden(["Nowhere", "Atlantis"]))
        for city in CITIES[1:]:
            (folder / "evals" / "recordings" / f"{city.lower()}.json").unlink()
        whole = run_agentci(["run", "evals/eval_config.yaml"], cwd=folder)
        assert whole.code == 1
        assert "eval cases without a recorded run" in whole.out
        for index in EVERY:
            ran = run_agentci(["run", str(config), "--shard", f"{index}/3"], cwd=folder)
            assert "eval cases without a recorded run" not in ran.out.partition("Problems")[0]

    def test_shard_of_only_skipped_checks_exits_zero(self, folder: Path) -> None:
        (folder / "evals" / "another.eval.yaml").unlink()
        (folder / "evals" / "golden.json").write_text(_golden(["Nowhere", "Atlantis"]))
        assert _run(folder).code == 1
        ran = _run(folder, "1/2")
        assert ran.code == 0
        assert "no required check was evaluated" in ran.out

    def test_invalid_input_fails_every_shard(self, folder: Path) -> None:
        (folder / "evals" / "recordings" / "oslo.json").write_text("{")
        assert [_run(folder, f"{index}/3").code for index in EVERY] == [2, 2, 2]

    def test_plan_of_shard_lists_its_checks(self, folder: Path) -> None:
        ran = run_agentci(["plan", "evals", "--shard", "1/3"], cwd=folder)
        *lines, last = re.split(": (?:warning|note)", ran.out)[0].splitlines()[:-1]
        assert last == f"{len(lines)} checks of {CHECKS} in shard 1 of 3"

    @pytest.mark.parametrize("given", ["0/3", "4/3", "1/257", "1", "a/b", "1/0", "-1/3", "auto"])
    def test_invalid_shard_option_is_rejected(self, folder: Path, given: str) -> None:
        ran = run_agentci(["run", f"--shard={given}"], cwd=folder)
        assert ran.code == 2
        assert "--shard" in str(ran.problems[0])


def _report_of_whole(folder: Path) -> Any:
    _run(folder)
    return _report(folder, "out/whole")


class TestMergedShards:
    @pytest.mark.parametrize("total", [1, 2, 3, 7, 40])
    def test_merged_reports_equal_reports_of_one_run(self, folder: Path, total: int) -> None:
        whole = _run(folder)
        for index in range(1, total + 1):
            _run(folder, f"{index}/{total}")
        shutil.move(folder / "out" / "whole", folder / "whole")
        merged = _merge(folder)
        assert (merged.code, whole.code) == (1, 1)
        for name in ("results.json", "junit.xml", "summary.md", "report.html", "comment.md"):
            one, other = ((folder / each / name).read_text() for each in ("whole", "merged"))
            assert _timeless(one) == _timeless(other).replace(ELSEWHERE, "")

    @pytest.mark.parametrize("fail_on", ["never", "error", "failed"])
    def test_gate_applies_to_merged_result(self, folder: Path, fail_on: str) -> None:
        """A pass rate below the threshold in one shard may suffice in the whole run."""
        (folder / "evals" / "eval_config.yaml").write_text(
            f"{CONFIG}gate: {{min_pass_rate: 0.6, on_missing: allow}}\n"
        )
        (folder / "evals" / "another.eval.yaml").write_text(
            ANOTHER.replace("{min_pass_rate", "{on_missing: allow, min_pass_rate")
        )
        codes = [_run(folder, f"{index}/3").code for index in EVERY]
        assert 1 in codes
        ran = run_agentci(["merge", "out", "--fail-on", fail_on], cwd=folder)
        assert (ran.code, ran.results["decision"]["passed"]) == (0, True)
        assert "Quality gate passed with " in ran.out

    def test_merged_reports_quote_questions_and_answers(self, folder: Path) -> None:
        """The traces are not available when reports are merged."""
        (folder / "evals" / "eval_config.yaml").write_text(
            "evaluators: [{name: a, type: code, path: a.py}]\ntraces: recordings/[op]*.json\n"
        )
        answer = '{"score": 0.2, "per_invocation_scores": [0.2]}'
        (folder / "evals" / "a.py").write_text(f"print('{answer}')")
        whole = run_agentci(["run", "evals/eval_config.yaml"], cwd=folder)
        shutil.move(folder / "agentci-results", folder / "whole")
        for index in EVERY[:2]:
            out = f"out/{index}"
            run_agentci(
                ["run", "evals/eval_config.yaml", f"--shard={index}/2", "--output-dir", out],
                cwd=folder,
            )
        assert _merge(folder).out == whole.out.replace("agentci-results", "merged")
        for name in ("junit.xml", "summary.md"):
            one, other = ((folder / each / name).read_text() for each in ("whole", "merged"))
            assert 'question "What is the weather in Oslo?"; answer "Sunny in Oslo."' in html(one)
            assert _timeless(one) == _timeless(other)

    def test_merged_report_of_invalid_input_equals_one_run(self, folder: Path) -> None:
        (folder / "evals" / "eval_config.yaml").write_text("evaluators: []\n")
        whole = _run(folder)
        shutil.move(folder / "out" / "whole", folder / "whole")
        for index in EVERY:
            _run(folder, f"{index}/3")
        assert (_merge(folder).code, whole.code) == (2, 2)
        assert _report(folder, "merged") == _report(folder, "whole")

    def test_reports_are_found_by_path_folder_and_glob(self, folder: Path) -> None:
        for index in EVERY:
            _run(folder, f"{index}/3")
        ran = _merge(folder, "out/3-of-3", "out/1-of-3/results.json", "out/[12]-*/results.json")
        assert (ran.code, _report(folder, "merged")["totals"]["checks"]) == (1, CHECKS)

    def test_shards_with_different_options_are_rejected(self, folder: Path) -> None:
        _run(folder, "1/2")
        _run(folder, "2/2", "--threshold", "0.1")
        others = "other checks, gates, evaluators or recorded runs"
        assert _errors(_merge(folder)) == [
            f"shard 2 of 2 has {others} than out/1-of-2/results.json",
            "shard 2 of 2 is missing",
        ]

    def test_shards_with_different_traces_are_rejected(self, folder: Path) -> None:
        _run(folder, "1/2")
        _record(folder, "Oslo", trace=77)
        _run(folder, "2/2")
        assert "other checks, gates, evaluators or recorded runs" in _errors(_merge(folder))[0]

    def test_shards_with_different_programs_are_rejected(self, folder: Path) -> None:
        program = folder / "evals" / "short.py"
        entry = "- {name: short, type: code, path: short.py}\neval_set:"
        config = CONFIG.replace("eval_set:", entry)
        (folder / "evals" / "eval_config.yaml").write_text(config)
        for index, score in enumerate((1, 0), start=1):
            program.write_text(f"print('{{\"score\": {score}}}')")
            _run(folder, f"{index}/2")
        assert "other checks, gates, evaluators or recorded runs" in _errors(_merge(folder))[0]

    def test_shards_of_different_commits_are_rejected(self, folder: Path) -> None:
        for shard, digit in (("1/2", "a"), ("2/2", "b")):
            (folder / ".git").mkdir(exist_ok=True)
            (folder / ".git" / "HEAD").write_text(digit * 40)
            _run(folder, shard)
        own, other = "b" * 12, "a" * 12
        assert _errors(_merge(folder)) == [
            f"shard 2 of 2 ran on commit {own}, but out/1-of-2/results.json on {other}",
            "shard 2 of 2 is missing",
        ]

    def test_shard_without_commit_is_accepted(self, folder: Path) -> None:
        _run(folder, "1/2")
        (folder / ".git").mkdir()
        (folder / ".git" / "HEAD").write_text("a" * 40)
        _run(folder, "2/2")
        _merge(folder)
        assert _report(folder, "merged")["commit"] is None
        _run(folder, "1/2")
        _merge(folder)
        assert _report(folder, "merged")["commit"] == "a" * 40


class TestWholeReport:
    def test_merged_whole_report_is_unchanged(self, folder: Path) -> None:
        _run(folder)
        assert _merge(folder, "out/whole").code == 1
        for name in ("results.json", "junit.xml", "summary.md", "report.html", "comment.md"):
            one, other = ((folder / each / name).read_text() for each in ("out/whole", "merged"))
            assert _placeless(one) == _placeless(other).replace(ELSEWHERE, "")

    def test_whole_report_with_shards_is_rejected(self, folder: Path) -> None:
        _run(folder)
        for index in EVERY:
            _run(folder, f"{index}/3")
        assert "a whole run" in _errors(_merge(folder))[0]

    def test_two_whole_reports_of_one_config_are_rejected(self, folder: Path) -> None:
        _run(folder)
        shutil.copytree(folder / "out" / "whole", folder / "out" / "other")
        [error, *_] = _errors(_merge(folder, "out/other", "out/whole"))
        assert error.endswith(" was also evaluated in out/other/results.json")


class TestIncompleteShards:
    @pytest.fixture
    def folder(self, sharded: Path) -> Path:
        return sharded

    def test_missing_shards_are_reported_by_number(self, folder: Path) -> None:
        assert _errors(_merge(folder, "out/1-of-3", "out/3-of-3")) == ["shard 2 of 3 is missing"]
        assert _errors(_merge(folder, "out/2-of-3")) == ["shards 1, 3 of 3 are missing"]

    def test_duplicate_shard_is_rejected(self, folder: Path) -> None:
        shutil.copytree(folder / "out" / "2-of-3", folder / "out" / "again")
        assert _errors(_merge(folder)) == ["shard 2 of 3 is also in out/2-of-3/results.json"]

    def test_shard_of_other_total_is_rejected(self, folder: Path) -> None:
        _run(folder, "4/4")
        assert _errors(_merge(folder)) == [
            "shard 4 of 4, but out/1-of-3/results.json is one of 3 shards"
        ]

    def test_interrupted_shard_is_rejected(self, folder: Path) -> None:
        _edit(folder, "1-of-3", lambda report: report.update(complete=False))
        [error] = _errors(_merge(folder))
        assert "was interrupted" in error

    def test_shard_with_invalid_input_is_rejected(self, folder: Path) -> None:
        (folder / "evals" / "eval_config.yaml").write_text("evaluators: []\n")
        _run(folder, "3/3")
        first, *others = _errors(_merge(folder))
        assert first.startswith("shard 3 of 3 ran no checks; its input is invalid: evals/eval_conf")
        assert others == ["shard 3 of 3 is missing"]

    def test_shard_of_other_agentci_version_is_rejected(self, folder: Path) -> None:
        _edit(folder, "2-of-3", lambda report: report["tool"].update(version="0.0.9"))
        [error] = _errors(_merge(folder))
        assert "agentci '0.0.9' wrote the report" in error

    @pytest.mark.parametrize("named", ["gone.json", "evals", "out/*.xml", "out/*"])
    def test_path_without_reports_is_rejected(self, folder: Path, named: str) -> None:
        merged = _merge(folder, named)
        [error] = _errors(merged)
        assert named in error
        assert "or globs such as shards/*/results.json" in merged.out + merged.err

    def test_rejected_merge_replaces_older_report(self, folder: Path) -> None:
        assert _merge(folder).code == 1
        assert _merge(folder, "out/1-of-3").code == 2
        assert "Invalid input" in (folder / "merged" / "summary.md").read_text()
        assert "missing" in (folder / "merged" / "summary.md").read_text()

    def test_outputs_are_set_after_internal_error(self, folder: Path) -> None:
        output = folder / "output"
        session = make_session(folder, {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)})
        session.out.close()  # provokes an internal error
        with pytest.raises(ValueError, match="closed file"):
            merge(["out"], parse_settings([], {}), session)
        assert read_output_file(output.read_text())["verdict"] == "error"

    def test_invalid_output_folder_is_rejected(self, folder: Path) -> None:
        ran = run_agentci(["merge", "out", "--output-dir", "evals/golden.json"], cwd=folder)
        assert ran.code == 2
        assert "evals/golden.json" in ran.out


def _double(report: Any) -> None:
    report["results"].append(report["results"][0])


def _strange(report: Any) -> None:
    report["results"][0]["id"] = "not a digest"


def _moved(report: Any) -> None:
    here = report["shard"]["index"] - 1
    ids = report["shard"]["checks"]
    report["results"][0]["id"] = next(each for each in ids if int(each, 16) % 3 != here)


def _nested(report: Any) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    report["results"][0]["details"] = {"deep": deep}


class TestForeignReports:
    @pytest.fixture
    def folder(self, sharded: Path) -> Path:
        return sharded

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            pytest.param(b"", "empty", id="empty"),
            pytest.param(b"\x89PNG\r\n\x1a\n\x00", "", id="binary"),
            pytest.param(b"<testsuites/>", "not JSON", id="XML"),
            pytest.param(b"[1, 2]", "not a results.json of agentci", id="list"),
            pytest.param(b'{"tool": 3}', "not a results.json of agentci", id="other JSON"),
            pytest.param(
                b'{"tool": {"name": "agentci"}}',
                "an unknown version of agentci wrote",
                id="no version",
            ),
            pytest.param(b'{"version": "2.1.0", "runs": []}', "not a results.json", id="SARIF"),
            pytest.param(b"[" * 200_000, "nested too deeply", id="deeply nested"),
            pytest.param(b'{"a": 1, "a": 2}', "appears twice", id="duplicate key"),
            pytest.param(b'{"a": NaN}', "not finite", id="NaN"),
        ],
    )
    def test_foreign_file_is_rejected(self, folder: Path, content: bytes, expected: str) -> None:
        (folder / "out" / "2-of-3" / "results.json").write_bytes(content)
        [error] = _errors(_merge(folder))
        assert expected in error

    def test_too_large_report_is_rejected(self, folder: Path) -> None:
        with (folder / "out" / "2-of-3" / "results.json").open("ab") as file:
            file.truncate(MAX_REPORT_BYTES + 1)
        [error] = _errors(_merge(folder))
        assert "larger than 256 MiB" in error

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            pytest.param(["complete"], "true", id="string for boolean"),
            pytest.param(["results"], {}, id="object for list"),
            pytest.param(["results", 0], None, id="null result"),
            pytest.param(["results", 0, "status"], "ok", id="unknown status"),
            pytest.param(["results", 0, "score"], "1.0", id="string score"),
            pytest.param(["results", 0, "score"], 1e300, id="huge score"),
            pytest.param(["results", 0, "score"], True, id="boolean score"),
            pytest.param(["results", 0, "required"], 0, id="number for boolean"),
            pytest.param(["results", 0, "turn_scores"], [10**400], id="score beyond float range"),
            pytest.param(["results", 0, "place", "line"], 0, id="line 0"),
            pytest.param(["results", 0, "case"], "no such case", id="unknown case"),
            pytest.param(["results", 0, "new"], 1, id="unknown key"),
            pytest.param(["cases", 0, "turn_count"], 10**12, id="huge turn count"),
            pytest.param(["cases", 0, "turn_count"], 5, id="turn count without turns"),
            pytest.param(["problems"], [{"message": "x"}], id="incomplete problem"),
            pytest.param(
                ["gates", 0, "policy", "overall", "min_pass_rate"], 2, id="pass rate of 2"
            ),
            pytest.param(["gates", 0, "uncovered"], -1, id="a count for names"),
            pytest.param(["shard", "index"], 4, id="shard 4 of 3"),
            pytest.param(["shard", "total"], 257, id="257 shards"),
            pytest.param(["shard", "plan_digest"], "x", id="invalid digest"),
            pytest.param(["shard", "checks", 0], "../x", id="invalid check id"),
            pytest.param(["schema_version"], 2, id="unknown schema version"),
            pytest.param(["decision", "exit_code"], 10**100, id="huge exit code"),
        ],
    )
    def test_invalid_field_is_rejected_with_location(
        self, folder: Path, path: list[str | int], value: object
    ) -> None:
        def change(report: Any) -> None:
            for step in path[:-1]:
                report = report[step]
            report[path[-1]] = value

        _edit(folder, "2-of-3", change)
        ran = _merge(folder)
        assert _errors(ran)
        assert "out/2-of-3/results.json:1:" in ran.out

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (_double, "duplicate results: "),
            (_strange, "results of unknown checks: 'not a digest'"),
            (_moved, "results that do not belong to shard 2 of 3: "),
            (
                lambda report: report["results"].pop(),
                "the results of 1 check of shard 2 of 3 are missing",
            ),
            (
                lambda report: report["results"][0].update(config="x"),
                "results of a config without a gate",
            ),
        ],
    )
    def test_inconsistent_report_is_rejected(
        self, folder: Path, change: Callable[[Any], object], expected: str
    ) -> None:
        _edit(folder, "2-of-3", change)
        assert any(expected in error for error in _errors(_merge(folder)))

    def test_check_listed_twice_in_all_shards_is_rejected(self, folder: Path) -> None:
        for index in EVERY:
            _edit(
                folder,
                f"{index}-of-3",
                lambda report: report["shard"]["checks"].extend(report["shard"]["checks"][:1]),
            )
        assert set(_errors(_merge(folder))) == {"`shard.checks` lists a check twice"}

    def test_shards_with_different_evaluator_commits_are_rejected(self, folder: Path) -> None:
        own = {"config": "a", "evaluator": "tone", "source": "github", "repository": "o/r"}
        more = {"revision": "main", "ref": "tone.py", "digest": "d"}
        for index in EVERY:
            provenance = [{**own, **more, "commit": f"c{index // 2}"}]
            _edit(folder, f"{index}-of-3", partial(dict.update, provenance=provenance))
        assert (
            _errors(_merge(folder))
            == ["'tone' is at commit 'c1', but in out/1-of-3/results.json at 'c0'"] * 2
        )

    def test_missing_key_is_reported_with_its_path(self, folder: Path) -> None:
        _edit(folder, "2-of-3", lambda report: report.update(provenance=[{}]))
        [error] = _errors(_merge(folder))
        assert error == "`provenance[0]`: object missing required field `config`"

    def test_deeply_nested_details_are_truncated(self, folder: Path) -> None:
        _edit(folder, "2-of-3", _nested)
        assert _merge(folder).code == 1
        assert "levels deep" in (folder / "merged" / "results.json").read_text()

    def test_hostile_report_text_runs_no_workflow_command(self, folder: Path) -> None:
        """An artifact of a fork may contain any text; it is escaped like evaluator output."""
        hostile = (
            "\n::error::forged\n##[set-output name=passed]true\r::set-output name=x::y\x1b[31m"
        )

        def poison(report: Any) -> None:
            for result in report["results"]:
                result["place"]["file"] = result["evaluator"] = result["criterion"] = hostile
                result["reason"], result["status"] = hostile, "errored"
            report["problems"].append(
                {"severity": "warning", "message": hostile, "hint": hostile, "place": None}
            )

        _edit(folder, "2-of-3", poison)
        command = folder / "command"
        environ = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(command)}
        arguments = ["merge", "out", "--verbose"]
        ran = run_agentci(arguments, cwd=folder, environ=environ)
        assert ran.code == 1
        assert {each.name for each in commands_in(ran.out)} <= {"error", "warning", "notice"}
        assert not any(line.startswith("::error::forged") for line in ran.out.splitlines())
        assert read_output_file(command.read_text())["verdict"] == "failed"
        for name in ("results.json", "junit.xml", "summary.md", "report.html", "comment.md"):
            assert commands_in((folder / "agentci-results" / name).read_text()) == []


class TestAction:
    def _step(self, folder: Path, **inputs: str) -> tuple[int, Mapping[str, str], str]:
        output = folder / "output"
        output.write_text("")
        environ = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)}
        session = make_session(folder, environ)
        declared = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
        values = {name: str(each["default"]) for name, each in declared.items()}
        unset = {name: "" for name, value in values.items() if "${{" in value}
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        code = run_action(values | unset | given, session, {})
        return code, read_output_file(output.read_text()), session.out.getvalue()  # type: ignore[attr-defined]

    def test_auto_shard_comes_from_job_matrix(self, folder: Path) -> None:
        for job in range(3):
            self._step(
                folder, config="evals", shard="auto", matrix_job=f"{job}/3", output_dir=f"o/{job}"
            )
            shard = _report(folder, f"o/{job}")["shard"]
            assert (shard["index"], shard["total"]) == (job + 1, 3)
        code, outputs, _ = self._step(folder, merge="o\n", output_dir="merged")
        assert (code, outputs["verdict"], outputs["checks"]) == (1, "failed", str(CHECKS))

    def test_verdict_of_shard_is_partial(self, folder: Path) -> None:
        code, outputs, log = self._step(folder, config="evals", shard="1/1", fail_on="never")
        assert (code, outputs["passed"], outputs["verdict"]) == (0, "false", "partial")
        assert "::error" not in log

    def test_auto_shard_without_matrix_is_rejected(self, folder: Path) -> None:
        code, outputs, log = self._step(folder, config="evals", shard="auto", matrix_job="/")
        assert (code, outputs["verdict"]) == (2, "invalid")
        assert "found no matrix" in log

    def test_matrix_is_ignored_without_auto_shard(self, folder: Path) -> None:
        self._step(folder, config="evals", matrix_job="0/2")
        assert _report(folder, "agentci-results")["shard"] is None

    def test_outputs_are_set_when_shards_are_missing(self, folder: Path) -> None:
        _run(folder, "1/2")
        code, outputs, log = self._step(folder, merge="out")
        assert (code, outputs["passed"], outputs["verdict"]) == (2, "false", "invalid")
        assert "::error" in log
        assert "shard 2 of 2 is missing" in log

    def test_merge_with_config_or_shard_is_rejected(self, folder: Path) -> None:
        code, outputs, log = self._step(folder, merge="out", config="evals", shard="1/2")
        assert (code, outputs["verdict"]) == (2, "invalid")
        assert "config has no effect with merge" in log
        assert "shard has no effect with merge" in log
