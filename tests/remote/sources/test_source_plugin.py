"""Source plugins, including those that break the protocol of sources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from agentci._util.http import HttpGetter
from agentci.errors import FetchError, PermanentFetchError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.remote.sources.registry import SourcePlugin
from agentci.remote.sources.source import MAX_FILES, SourceContext, SourceFactory

PROGRAM = RemoteProgram(source="shelf", ref="q")
FILE = ProgramFile(content=b"1")
GOOD = ProgramSnapshot(entry="q.py", files={"q.py": FILE})


class Shelf:
    """A source whose methods return or raise the given ``answers``."""

    def __init__(self, **answers: object) -> None:
        self.made = 0
        self._answers = answers

    def __call__(self, _: SourceContext) -> "Shelf":
        self.made += 1
        return self

    def __getattr__(self, method: str) -> Callable[..., object]:
        answer = self._answers[method]
        if isinstance(answer, Exception):
            raise answer
        return lambda *_given, **_named: answer


@pytest.fixture
def source_of(http: HttpGetter, tmp_path: Path) -> Callable[[object], SourcePlugin]:
    def make(shelf: object) -> SourcePlugin:
        context = SourceContext(http=http, workspace=tmp_path)
        return SourcePlugin(cast(SourceFactory, shelf), context, title="the source 'shelf'")

    return make


SourceOf = Callable[[object], SourcePlugin]


def fetched(*files: str) -> ProgramSnapshot:
    return ProgramSnapshot(entry="q.py", files=dict.fromkeys(("q.py", *files), FILE))


class TestSourcePlugin:
    def test_plugin_results_are_returned_unchanged(self, source_of: SourceOf) -> None:
        listing = CatalogEntry(name="q", source="shelf", ref="q")
        answers: dict[str, Any] = {
            "complete": PROGRAM,
            "resolve": "1",
            "pin": "rev: 1",
            "fetch": GOOD,
            "catalogue": [listing],
        }
        source = source_of(Shelf(**answers))
        assert source.complete(PROGRAM) == PROGRAM
        assert source.resolve(PROGRAM) == "1"
        assert source.pin(PROGRAM, "1") == "rev: 1"
        assert source.fetch(PROGRAM, "1", paths=()) == GOOD
        assert source.catalogue() == [listing]

    def test_plugin_may_return_no_pin(self, source_of: SourceOf) -> None:
        assert source_of(Shelf(pin=None)).pin(PROGRAM, "1") is None

    def test_plugin_is_created_once_on_first_use(self, source_of: SourceOf) -> None:
        shelf = Shelf(resolve="1")
        source = source_of(shelf)
        assert shelf.made == 0
        source.resolve(PROGRAM)
        source.resolve(PROGRAM)
        assert shelf.made == 1

    def test_fetch_error_of_plugin_is_raised_unchanged(self, source_of: SourceOf) -> None:
        with pytest.raises(PermanentFetchError, match=r"^not here$"):
            source_of(Shelf(resolve=PermanentFetchError("not here"))).resolve(PROGRAM)

    @pytest.mark.parametrize(
        ("answer", "what"),
        [
            (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0"),
            (7, "`resolve` returned `int`, expected `str`"),
        ],
    )
    def test_failure_of_plugin_names_the_plugin(
        self, source_of: SourceOf, answer: object, what: str
    ) -> None:
        with pytest.raises(UnreachableError) as error:
            source_of(Shelf(resolve=answer)).resolve(PROGRAM)
        assert str(error.value) == f"the source 'shelf' failed: {what}"
        assert error.value.hint == "report it to the authors of that package"

    def test_failure_to_create_plugin_names_the_plugin(self, source_of: SourceOf) -> None:
        with pytest.raises(UnreachableError, match="failed: TypeError: "):
            source_of(lambda: None).resolve(PROGRAM)

    @pytest.mark.parametrize(
        ("snapshot", "message"),
        [
            (None, "`fetch` returned `NoneType`, expected `ProgramSnapshot`"),
            (ProgramSnapshot(entry="q.py", files={}), "`fetch` returned files without the program"),
            (
                ProgramSnapshot(entry="q", files=cast(Any, {"q": b"1"})),
                "`fetch` returned a file that is not a `ProgramFile`",
            ),
            (fetched("../evil"), "the file name '../evil' leaves its folder"),
            (fetched("/etc/x"), "the file name '/etc/x' is absolute"),
            (fetched(*map(str, range(MAX_FILES))), "contains more than 200 files"),
            (
                ProgramSnapshot(entry="q", files={"q": ProgramFile(content=b"")}),
                "the program 'q' is empty",
            ),
        ],
    )
    def test_invalid_snapshot_of_plugin_is_rejected(
        self, source_of: SourceOf, snapshot: ProgramSnapshot | None, message: str
    ) -> None:
        with pytest.raises(FetchError) as error:
            source_of(Shelf(fetch=snapshot)).fetch(PROGRAM, "1", paths=())
        assert message in str(error.value)

    @pytest.mark.parametrize("catalogue", [7, [7]])
    def test_invalid_catalogue_of_plugin_is_rejected(
        self, source_of: SourceOf, catalogue: object
    ) -> None:
        with pytest.raises(
            UnreachableError, match="`catalogue` returned something other than a sequence"
        ):
            source_of(Shelf(catalogue=catalogue)).catalogue()
