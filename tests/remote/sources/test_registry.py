"""The registry of built-in sources and source plugins."""

from pathlib import Path

import pytest

from agentci._util.http import HttpGetter
from agentci.errors import InputError
from agentci.model.program import RemoteProgram
from agentci.remote.sources.registry import SOURCES, find_source_factory, list_source_factories
from agentci.remote.sources.source import Source, SourceContext

PACKAGE = """\
from agentci.model.values import replace

from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot


class Shelf:
    def __init__(self, context):
        self.context = context

    def complete(self, program):
        return replace(program, repository="shelf")

    def resolve(self, program):
        return "1"

    def pin(self, program, commit):
        return None

    def fetch(self, program, commit, *, paths):
        return ProgramSnapshot(entry="q.py", files={"q.py": ProgramFile(content=b"1")})

    def catalogue(self):
        return [CatalogEntry(name="q", source="shelf", ref="q")]


WRONG = 7
"""


@pytest.fixture
def context(http: HttpGetter, tmp_path: Path) -> SourceContext:
    return SourceContext(http=http, workspace=tmp_path)


def install(folder: Path, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "agentci_shelf.py").write_text(PACKAGE)
    info = folder / "agentci_shelf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentci-shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agentci.sources]\n{points}\n")
    monkeypatch.syspath_prepend(str(folder))


class TestBuiltInSources:
    def test_built_in_sources_are_listed(self) -> None:
        assert list(list_source_factories()) == list(SOURCES) == ["github", "url", "local"]

    @pytest.mark.parametrize("name", SOURCES)
    def test_built_in_source_implements_protocol(self, name: str, context: SourceContext) -> None:
        make = find_source_factory(name)
        assert make is not None
        source: Source = make(context)
        assert {"complete", "resolve", "pin", "fetch", "catalogue"} <= set(dir(source))

    def test_creating_sources_sends_no_request(self, context: SourceContext) -> None:
        for make in SOURCES.values():
            make(context)

    def test_unknown_source_has_no_factory(self) -> None:
        assert find_source_factory("shelf") is None


class TestPluginSources:
    def test_plugin_source_is_found_by_entry_point(
        self, tmp_path: Path, context: SourceContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, "shelf = agentci_shelf:Shelf", monkeypatch)
        make = find_source_factory("shelf")
        assert make is not None
        source = make(context)
        assert source.complete(RemoteProgram(source="shelf", ref="q")).repository == "shelf"
        assert list(list_source_factories()) == [*SOURCES, "shelf"]

    def test_plugin_does_not_replace_built_in_source(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, "github = agentci_shelf:Shelf", monkeypatch)
        assert find_source_factory("github") is SOURCES["github"]
        assert list_source_factories() == SOURCES

    def test_plugin_that_is_not_callable_is_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, "shelf = agentci_shelf:WRONG", monkeypatch)
        for find in (lambda: find_source_factory("shelf"), list_source_factories):
            with pytest.raises(InputError) as error:
                find()
            assert error.value.problems[0].message == (
                "the package agentci-shelf provides 'shelf' for agentci.sources,"
                " which is not a function that returns a source"
            )
