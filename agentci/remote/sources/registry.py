"""Registry of the sources that a config can name; a new one is a module and an entry here.

Plugins add sources as entry points of the group ``agentci.sources``: the name is the ``source:`` in
configs, the object a :data:`SourceFactory`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from agentci._util.parallel import OncePerKey
from agentci._util.plugins import (
    find_plugin_package,
    load_all_plugins,
    load_plugin,
    make_plugin_error,
)
from agentci.errors import AgentciError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.remote.sources.source import Source, SourceContext, SourceFactory
from agentci.remote.sources.validation import SizeBudget, make_snapshot

T = TypeVar("T")


class SourcePlugin:
    """A source of a plugin, created on first use and checked for valid results.

    Args:
        title: name of the source in messages.
    """

    def __init__(self, make: SourceFactory, context: SourceContext, *, title: str) -> None:
        self._make = make
        self._context = context
        self._title = title
        self._source: OncePerKey[str, object] = OncePerKey()

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """See :class:`Source`."""
        return self._ask("complete", RemoteProgram, program)

    def resolve(self, program: RemoteProgram) -> str:
        """See :class:`Source`."""
        return self._ask("resolve", str, program)

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """See :class:`Source`."""
        answer = self._call("pin", program, commit)
        return None if answer is None else self._check_type(answer, str, "pin")

    def fetch(
        self, program: RemoteProgram, commit: str, *, paths: Sequence[str]
    ) -> ProgramSnapshot:
        """See :class:`Source`; size limits and rules for file names apply to the result."""
        snapshot = self._ask("fetch", ProgramSnapshot, program, commit, paths=paths)
        budget = SizeBudget()
        for path, file in snapshot.files.items():
            if type(path) is not str or type(file) is not ProgramFile:
                raise self._make_error("`fetch` returned a file that is not a `ProgramFile`")
            budget.add(path, len(file.content))
        if snapshot.entry not in snapshot.files:
            raise self._make_error("`fetch` returned files without the program")
        return make_snapshot(snapshot.entry, snapshot.files)

    def catalogue(self) -> Sequence[CatalogEntry]:
        """See :class:`Source`."""
        listings = self._call("catalogue")
        if not isinstance(listings, Sequence) or not all(
            type(each) is CatalogEntry for each in listings
        ):
            raise self._make_error(
                "`catalogue` returned something other than a sequence of `CatalogEntry`"
            )
        return listings

    def _ask(self, method: str, expected: type[T], *given: Any, **named: Any) -> T:
        return self._check_type(self._call(method, *given, **named), expected, method)

    def _call(self, method: str, *given: Any, **named: Any) -> object:
        try:
            source = self._source.get_or_compute("", lambda: self._make(self._context))
            answer: object = getattr(source, method)(*given, **named)
        except AgentciError:
            raise
        except Exception as error:
            raise self._make_error(f"{type(error).__name__}: {error}") from error
        return answer

    def _check_type(self, answer: object, expected: type[T], method: str) -> T:
        if not isinstance(answer, expected):
            raise self._make_error(
                f"`{method}` returned `{type(answer).__name__}`, expected `{expected.__name__}`"
            )
        return answer

    def _make_error(self, what: str) -> UnreachableError:
        message = f"{self._title} failed: {what}"
        return UnreachableError(message, hint="report it to the authors of that package")


GROUP: Final = "agentci.sources"


def _github(context: SourceContext) -> Source:
    from agentci.remote.sources.github import GitHubSource

    return GitHubSource(context)


def _url(context: SourceContext) -> Source:
    from agentci.remote.sources.url import UrlSource

    return UrlSource(context)


def _local(context: SourceContext) -> Source:
    from agentci.remote.sources.local import LocalSource

    return LocalSource(context)


# Imported on use: most configs need one source.
SOURCES: Final[Mapping[str, SourceFactory]] = {"github": _github, "url": _url, "local": _local}


def find_source_factory(name: str) -> SourceFactory | None:
    """Return the factory of the source ``name``, built-in before plugin; None if there is none.

    Raises:
        InputError: the plugin that provides it is broken.
    """
    ours = SOURCES.get(name)
    if ours is not None:
        return ours
    found = load_plugin(GROUP, name)
    return None if found is None else _check_factory(name, found)


def list_source_factories() -> Mapping[str, SourceFactory]:
    """Return all source factories by name: built-in ones, then those of plugins.

    Raises:
        InputError: a plugin is broken.
    """
    theirs = {name: _check_factory(name, found) for name, found in load_all_plugins(GROUP).items()}
    return {**SOURCES, **{name: make for name, make in theirs.items() if name not in SOURCES}}


def _check_factory(name: str, found: object) -> SourceFactory:
    if not callable(found):
        raise make_plugin_error(GROUP, name, expected="a function that returns a source")

    title = f"the source {name!r} of {find_plugin_package(GROUP, name)}"
    return partial(SourcePlugin, cast(SourceFactory, found), title=title)
