"""``agentci evaluator list`` lists the evaluators of every source."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.evaluators.metrics import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from tests.cli.commands.terminals import shown_on_terminal
from tests.helpers.support import Ran, run_agentci
from tests.remote.sources.fake_github import FakeGitHub, rate_limited

REPOSITORY = "agentevals-dev/evaluators"
FIELDS = ["name", "source", "ref", "description", "language", "tags", "author"]
INDEX = """\
evaluators:
  - {name: words, path: evaluators/words/words.js, language: javascript, description: Few words.}
  - name: tone
    path: evaluators/tone/tone.py
    language: python
    description: Friendly in every turn.
    tags: [style, fast]
    author: us
"""
HOSTILE = r"""
evaluators:
  - {name: "::error::forged", path: a/a.py, description: "\e[2Jx\e]0;title\a \r::error::y"}
  - {name: "##[error]forged, b: }", path: b/b.py, language: "\u202Epy", author: "::add-mask::a"}
"""
PACKAGE = """\
from agentci.errors import UnreachableError
from agentci.model.program import CatalogEntry


class Shelf:
    def __init__(self, surroundings):
        pass

    def catalogue(self):
        return [CatalogEntry(name="q", source="builtin", ref="shelf/q")]


class Broken(Shelf):
    def catalogue(self):
        raise KeyError("oh")
"""


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.publish(REPOSITORY, {"index.yaml": INDEX})
        yield server


def hosts(github: FakeGitHub) -> dict[str, str]:
    return {"AGENTCI_GITHUB_API_URL": github.api, "AGENTCI_GITHUB_RAW_URL": github.raw}


def listed(folder: Path, github: FakeGitHub, *arguments: str, **environ: str) -> Ran:
    environment = {**hosts(github), **environ}
    return run_agentci(["evaluator", "list", *arguments], cwd=folder, environ=environment)


def as_json(folder: Path, github: FakeGitHub, *arguments: str) -> list[dict[str, Any]]:
    ran = listed(folder, github, "--json", *arguments)
    assert ran.code == 0
    found: list[dict[str, Any]] = json.loads(ran.out)
    return found


def install(folder: Path, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agentci_listed.py").write_text(PACKAGE)
    info = folder / "agentci_listed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentci-listed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agentci.sources]\n{points}\n")
    monkeypatch.syspath_prepend(str(folder))


class TestTable:
    def test_table_lists_evaluators_by_source_and_name(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        (tmp_path / "index.yaml").write_text("evaluators: [{name: own, path: own/own.py}]")
        ran = listed(tmp_path, github)
        heading, *rows = ran.out.split("\n\n")[0].splitlines()
        cells = [row.split(None, 2)[:2] for row in rows]
        assert heading.split() == ["NAME", "SOURCE", "LANGUAGE", "DESCRIPTION", "REF"]
        assert (ran.code, ran.err) == (0, "")
        assert cells == [
            *(
                [name, "builtin"]
                for name in sorted(
                    {*METRICS, *JUDGED_METRIC_PURPOSES, *HOSTED_METRICS, *UNSUPPORTED_METRICS}
                )
            ),
            *(["tone", "github"], ["words", "github"], ["own", "local"]),
        ]
        assert ran.out.endswith(f"\n{len(rows)} evaluators\n")

    def test_descriptions_and_references_are_shown(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        ran = listed(tmp_path, github, "--source", "github")
        _, tone, words, *_ = ran.out.splitlines()
        assert tone == "tone   github  python      Friendly in every turn.  evaluators/tone/tone.py"
        assert words.split(None, 3)[3] == "Few words.               evaluators/words/words.js"

    def test_metric_requirements_are_shown(self, tmp_path: Path, github: FakeGitHub) -> None:
        rows = listed(tmp_path, github, "--source", "builtin").out.splitlines()
        for names, needs in (
            (METRICS, "Computed locally."),
            (JUDGED_METRIC_PURPOSES, "Needs a judge model (`judge`)."),
            (HOSTED_METRICS, "Needs Vertex AI and the extra adk."),
            (UNSUPPORTED_METRICS, "Not supported: "),
        ):
            assert {row.split()[0] for row in rows if needs in row} == {*names}

    def test_unsupported_metrics_show_reason(self, tmp_path: Path, github: FakeGitHub) -> None:
        rows = listed(tmp_path, github, "--source", "builtin").out.splitlines()
        found = {row.split()[0]: row for row in rows}
        for name, why in UNSUPPORTED_METRICS.items():
            assert f"Not supported: {why}." in found[name]
        assert not [name for name in METRICS if "Not run" in found[name]]
        assert github.count() == 0

    def test_suggested_config_entry_validates(self, tmp_path: Path, github: FakeGitHub) -> None:
        ran = listed(tmp_path, github)
        (line,) = [line for line in ran.out.splitlines() if line.startswith("  - ")]
        assert line == "  - {name: tone, type: remote, ref: evaluators/tone/tone.py}"
        (tmp_path / "agentci.yaml").write_text(f"traces: t.json\nevaluators:\n{line}\n")
        ran = run_agentci(["validate"], cwd=tmp_path, environ=hosts(github))
        assert (ran.code, github.count()) == (0, 1)

    def test_builtin_list_suggests_no_config_entry(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        assert "type: remote" not in listed(tmp_path, github, "--source", "builtin").out

    def test_empty_source_prints_zero_count(self, tmp_path: Path, github: FakeGitHub) -> None:
        ran = listed(tmp_path, github, "--source", "url")
        assert (ran.code, ran.out) == (0, "0 evaluators\n")

    def test_single_evaluator_uses_singular(self, tmp_path: Path, github: FakeGitHub) -> None:
        (tmp_path / "index.yaml").write_text("evaluators: [{name: own, path: own/own.py}]")
        assert listed(tmp_path, github, "--source", "local").out.endswith("\n1 evaluator\n")


class TestTerminal:
    @pytest.mark.parametrize("columns", [40, 72, 300])
    def test_table_fits_terminal_width(
        self, tmp_path: Path, github: FakeGitHub, columns: int
    ) -> None:
        out = shown_on_terminal(
            ["evaluator", "list"], cwd=tmp_path, columns=columns, environ=hosts(github)
        )
        table, entry, _ = out.split("\n\n")
        lengths = {len(line) for line in table.splitlines()}
        assert max(lengths) <= columns
        assert ("…" in table) == (columns < 300)
        assert entry.endswith("{name: tone, type: remote, ref: evaluators/tone/tone.py}")

    def test_unknown_terminal_width_defaults_to_80_columns(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        arguments = ["evaluator", "list", "--source", "builtin"]
        out = shown_on_terminal(arguments, cwd=tmp_path, columns=0, environ=hosts(github))
        assert max(map(len, out.splitlines())) == 80

    def test_control_characters_are_not_sent_to_terminal(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        out = shown_on_terminal(["evaluator", "list"], cwd=tmp_path, environ=hosts(github))
        assert out.replace("\n", "").isprintable()


class TestJson:
    def test_json_has_all_fields(self, tmp_path: Path, github: FakeGitHub) -> None:
        tone, words = as_json(tmp_path, github, "--source", "github")
        assert list(tone) == list(words) == FIELDS
        assert tone == {
            "name": "tone",
            "source": "github",
            "ref": "evaluators/tone/tone.py",
            "description": "Friendly in every turn.",
            "language": "python",
            "tags": ["style", "fast"],
            "author": "us",
        }

    def test_json_output_is_deterministic(self, tmp_path: Path, github: FakeGitHub) -> None:
        once, again = (listed(tmp_path, github, "--json") for _ in range(2))
        assert once.out == again.out

    def test_json_tags_metrics_that_cannot_run_locally(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        found = as_json(tmp_path, github, "--source", "builtin")
        assert {each["name"] for each in found if each["tags"] == ["not-supported"]} == set(
            UNSUPPORTED_METRICS
        )
        assert {each["name"] for each in found if each["tags"] == []} == set(METRICS)
        hosted = {each["name"] for each in found if each["tags"] == ["needs-vertex-ai"]}
        assert hosted == set(HOSTED_METRICS)
        assert all(each["description"] for each in found)

    def test_empty_source_is_an_empty_json_list(self, tmp_path: Path, github: FakeGitHub) -> None:
        assert as_json(tmp_path, github, "--source", "local") == []


class TestFailingSource:
    def test_failing_source_does_not_hide_other_sources(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        github.answers["raw"] = rate_limited
        (tmp_path / "index.yaml").write_text("evaluators: [{name: own, path: own/own.py}]")
        ran = listed(tmp_path, github)
        assert ran.code == 0
        assert "own   " in ran.out
        assert "warning: cannot list the evaluators of github: " in ran.err
        assert "GITHUB_TOKEN" in ran.err
        assert "type: remote" not in ran.out

    def test_failing_source_does_not_break_json(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.answers["raw"] = rate_limited
        assert {each["source"] for each in as_json(tmp_path, github)} == {"builtin"}

    def test_requested_failing_source_is_an_error(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.answers["raw"] = rate_limited
        ran = listed(tmp_path, github, "--source", "github")
        (problem,) = ran.problems
        assert (ran.code, ran.out) == (2, "")
        assert problem.message.startswith("cannot list the evaluators of github: ")
        assert "GITHUB_TOKEN" in str(problem.hint)

    @pytest.mark.parametrize("index", [None, "evaluators: 1", "[", b"\xff\xfe"])
    def test_unreadable_index_fails_only_requested_source(
        self, tmp_path: Path, github: FakeGitHub, index: str | bytes | None
    ) -> None:
        github.publish(REPOSITORY, {} if index is None else {"index.yaml": index})
        assert listed(tmp_path, github).code == 0
        ran = listed(tmp_path, github, "--source", "github")
        (problem,) = ran.problems
        assert f"index.yaml of {REPOSITORY} (main)" in problem.message

    def test_broken_local_index_is_a_warning(self, tmp_path: Path, github: FakeGitHub) -> None:
        (tmp_path / "index.yaml").mkdir()
        assert listed(tmp_path, github, "--source", "local").code == 0
        (tmp_path / "index.yaml").rmdir()
        (tmp_path / "index.yaml").write_text("evaluators: 7")
        ran = listed(tmp_path, github)
        assert "warning: cannot list the evaluators of local: index.yaml" in ran.err


class TestUnknownSource:
    def test_unknown_source_error_suggests_closest_name(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        ran = listed(tmp_path, github, "--source", "gitbuh")
        (problem,) = ran.problems
        assert (ran.code, problem.hint) == (2, "did you mean 'github'?")

    def test_unknown_source_error_lists_sources(self, tmp_path: Path, github: FakeGitHub) -> None:
        (problem,) = listed(tmp_path, github, "--source", "xyz").problems
        assert problem.message == "unknown source 'xyz'"
        assert problem.hint == "choose all, builtin, github, url or local"


class TestPluginSources:
    def test_plugin_source_is_listed_under_config_name(
        self, tmp_path: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, "shelf = agentci_listed:Shelf", monkeypatch)
        (found,) = as_json(tmp_path, github, "--source", "shelf")
        assert (found["name"], found["source"], found["ref"]) == ("q", "shelf", "shelf/q")
        assert "\nq   " in listed(tmp_path, github).out

    @pytest.mark.parametrize(
        ("point", "why"),
        [
            ("agentci_listed:Broken", "failed: KeyError"),
            ("agentci_listed:gone", "cannot be loaded"),
        ],
    )
    def test_broken_plugin_does_not_hide_other_sources(
        self,
        tmp_path: Path,
        github: FakeGitHub,
        monkeypatch: pytest.MonkeyPatch,
        point: str,
        why: str,
    ) -> None:
        points = f"broken = {point}\nshelf = agentci_listed:Shelf"
        install(tmp_path, points, monkeypatch)
        ran = listed(tmp_path, github)
        assert ran.code == 0
        assert "\nq   " in ran.out
        assert "warning: cannot list the evaluators of broken: " in ran.err
        assert why in ran.err
        ran = listed(tmp_path, github, "--source", "broken")
        assert ran.code == 2
        assert why in str(ran.problems[0])


class TestHostileIndex:
    @pytest.mark.parametrize("arguments", [(), ("--json",)])
    def test_hostile_index_cannot_inject_workflow_commands(
        self, tmp_path: Path, github: FakeGitHub, arguments: tuple[str, ...]
    ) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        out = listed(tmp_path, github, *arguments).out
        assert not [line for line in out.splitlines() if line.lstrip().startswith("::")]
        assert "##[" not in out
        assert out.replace("\n", "").isprintable()

    def test_hostile_names_are_listed(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        names = [each["name"] for each in as_json(tmp_path, github, "--source", "github")]
        assert names == ["##[error]forged, b: }", "::error::forged"]

    def test_hostile_name_cannot_change_suggested_entry(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        index = """evaluators: [{name: "x}, {type: code, path: y.py", path: a/a.py}]"""
        github.publish(REPOSITORY, {"index.yaml": index})
        out = listed(tmp_path, github, "--source", "github").out
        (line,) = [line for line in out.splitlines() if line.startswith("  - ")]
        (entry,) = yaml.safe_load(line)
        assert entry == {"name": "x}, {type: code, path: y.py", "type": "remote", "ref": "a/a.py"}
