"""``agentci evaluator list``: all that there is to judge by, whatever the indexes say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.evaluators.metrics.registry import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from tests.cli.commands.evaluator.terminals import shown_on_terminal
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


class TestTheTable:
    def test_has_all_evaluators_by_source_and_name(
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

    def test_says_what_each_is_for(self, tmp_path: Path, github: FakeGitHub) -> None:
        ran = listed(tmp_path, github, "--source", "github")
        _, tone, words, *_ = ran.out.splitlines()
        assert tone == "tone   github  python      Friendly in every turn.  evaluators/tone/tone.py"
        assert words.split(None, 3)[3] == "Few words.               evaluators/words/words.js"

    def test_says_what_each_metric_needs(self, tmp_path: Path, github: FakeGitHub) -> None:
        rows = listed(tmp_path, github, "--source", "builtin").out.splitlines()
        for names, needs in (
            (METRICS, "Computed locally."),
            (JUDGED_METRIC_PURPOSES, "Needs a judge model (`judge`)."),
            (HOSTED_METRICS, "Needs Vertex AI and the extra adk."),
            (UNSUPPORTED_METRICS, "Not supported: "),
        ):
            assert {row.split()[0] for row in rows if needs in row} == {*names}

    def test_says_which_metrics_are_not_run_and_why(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        rows = listed(tmp_path, github, "--source", "builtin").out.splitlines()
        found = {row.split()[0]: row for row in rows}
        for name, why in UNSUPPORTED_METRICS.items():
            assert f"Not supported: {why}." in found[name]
        assert not [name for name in METRICS if "Not run" in found[name]]
        assert github.count() == 0

    def test_is_followed_by_an_entry_to_paste_into_a_config(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        ran = listed(tmp_path, github)
        (line,) = [line for line in ran.out.splitlines() if line.startswith("  - ")]
        assert line == "  - {name: tone, type: remote, ref: evaluators/tone/tone.py}"
        (tmp_path / "agentci.yaml").write_text(f"traces: t.json\nevaluators:\n{line}\n")
        ran = run_agentci(["validate"], cwd=tmp_path, environ=hosts(github))
        assert (ran.code, github.count()) == (0, 1)

    def test_has_no_entry_where_there_is_nothing_to_fetch(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        assert "type: remote" not in listed(tmp_path, github, "--source", "builtin").out

    def test_of_a_source_without_any_is_a_number(self, tmp_path: Path, github: FakeGitHub) -> None:
        ran = listed(tmp_path, github, "--source", "url")
        assert (ran.code, ran.out) == (0, "0 evaluators\n")

    def test_counts_a_single_one(self, tmp_path: Path, github: FakeGitHub) -> None:
        (tmp_path / "index.yaml").write_text("evaluators: [{name: own, path: own/own.py}]")
        assert listed(tmp_path, github, "--source", "local").out.endswith("\n1 evaluator\n")


class TestOnATerminal:
    @pytest.mark.parametrize("columns", [40, 72, 300])
    def test_lines_end_where_it_ends(
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

    def test_that_does_not_say_how_wide_it_is_they_have_80_columns(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        arguments = ["evaluator", "list", "--source", "builtin"]
        out = shown_on_terminal(arguments, cwd=tmp_path, columns=0, environ=hosts(github))
        assert max(map(len, out.splitlines())) == 80

    def test_nothing_is_obeyed(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        out = shown_on_terminal(["evaluator", "list"], cwd=tmp_path, environ=hosts(github))
        assert out.replace("\n", "").isprintable()


class TestJson:
    def test_has_all_that_is_known(self, tmp_path: Path, github: FakeGitHub) -> None:
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

    def test_is_the_same_every_time(self, tmp_path: Path, github: FakeGitHub) -> None:
        once, again = (listed(tmp_path, github, "--json") for _ in range(2))
        assert once.out == again.out

    def test_marks_the_metrics_that_are_not_run(self, tmp_path: Path, github: FakeGitHub) -> None:
        found = as_json(tmp_path, github, "--source", "builtin")
        assert {each["name"] for each in found if each["tags"] == ["not-supported"]} == set(
            UNSUPPORTED_METRICS
        )
        assert {each["name"] for each in found if each["tags"] == []} == set(METRICS)
        hosted = {each["name"] for each in found if each["tags"] == ["needs-vertex-ai"]}
        assert hosted == set(HOSTED_METRICS)
        assert all(each["description"] for each in found)

    def test_of_nothing_is_an_empty_list(self, tmp_path: Path, github: FakeGitHub) -> None:
        assert as_json(tmp_path, github, "--source", "local") == []


class TestASourceThatCannotBeAsked:
    def test_hides_none_of_the_others(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.answers["raw"] = rate_limited
        (tmp_path / "index.yaml").write_text("evaluators: [{name: own, path: own/own.py}]")
        ran = listed(tmp_path, github)
        assert ran.code == 0
        assert "own   " in ran.out
        assert "warning: cannot list the evaluators of github: " in ran.err
        assert "GITHUB_TOKEN" in ran.err
        assert "type: remote" not in ran.out

    def test_leaves_json_as_it_is(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.answers["raw"] = rate_limited
        assert {each["source"] for each in as_json(tmp_path, github)} == {"builtin"}

    def test_is_an_error_where_it_was_asked_for(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.answers["raw"] = rate_limited
        ran = listed(tmp_path, github, "--source", "github")
        (problem,) = ran.problems
        assert (ran.code, ran.out) == (2, "")
        assert problem.message.startswith("cannot list the evaluators of github: ")
        assert "GITHUB_TOKEN" in str(problem.hint)

    @pytest.mark.parametrize("index", [None, "evaluators: 1", "[", b"\xff\xfe"])
    def test_may_have_no_index_that_can_be_read(
        self, tmp_path: Path, github: FakeGitHub, index: str | bytes | None
    ) -> None:
        github.publish(REPOSITORY, {} if index is None else {"index.yaml": index})
        assert listed(tmp_path, github).code == 0
        ran = listed(tmp_path, github, "--source", "github")
        (problem,) = ran.problems
        assert f"index.yaml of {REPOSITORY} (main)" in problem.message

    def test_may_be_a_folder_with_a_broken_index(self, tmp_path: Path, github: FakeGitHub) -> None:
        (tmp_path / "index.yaml").mkdir()
        assert listed(tmp_path, github, "--source", "local").code == 0
        (tmp_path / "index.yaml").rmdir()
        (tmp_path / "index.yaml").write_text("evaluators: 7")
        ran = listed(tmp_path, github)
        assert "warning: cannot list the evaluators of local: index.yaml" in ran.err


class TestAnUnknownSource:
    def test_is_told_with_the_one_that_was_meant(self, tmp_path: Path, github: FakeGitHub) -> None:
        ran = listed(tmp_path, github, "--source", "gitbuh")
        (problem,) = ran.problems
        assert (ran.code, problem.hint) == (2, "did you mean 'github'?")

    def test_is_told_with_those_that_there_are(self, tmp_path: Path, github: FakeGitHub) -> None:
        (problem,) = listed(tmp_path, github, "--source", "xyz").problems
        assert problem.message == "unknown source 'xyz'"
        assert problem.hint == "choose all, builtin, github, url or local"


class TestSourcesOfOtherPackages:
    def test_are_listed_under_the_names_that_configs_use(
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
    def test_that_do_not_work_hide_none_of_the_others(
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


class TestAHostileIndex:
    @pytest.mark.parametrize("arguments", [(), ("--json",)])
    def test_commands_no_runner(
        self, tmp_path: Path, github: FakeGitHub, arguments: tuple[str, ...]
    ) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        out = listed(tmp_path, github, *arguments).out
        assert not [line for line in out.splitlines() if line.lstrip().startswith("::")]
        assert "##[" not in out
        assert out.replace("\n", "").isprintable()

    def test_is_listed_nevertheless(self, tmp_path: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, {"index.yaml": HOSTILE})
        names = [each["name"] for each in as_json(tmp_path, github, "--source", "github")]
        assert names == ["##[error]forged, b: }", "::error::forged"]

    def test_makes_no_other_entry_than_a_plain_one(
        self, tmp_path: Path, github: FakeGitHub
    ) -> None:
        index = """evaluators: [{name: "x}, {type: code, path: y.py", path: a/a.py}]"""
        github.publish(REPOSITORY, {"index.yaml": index})
        out = listed(tmp_path, github, "--source", "github").out
        (line,) = [line for line in out.splitlines() if line.startswith("  - ")]
        (entry,) = yaml.safe_load(line)
        assert entry == {"name": "x}, {type: code, path: y.py", "type": "remote", "ref": "a/a.py"}
