"""The sources that a config can name: a new one is a file and a line here.

Packages of others add theirs as entry points of the group ``agentci.sources``: the name is the
``source:`` in configs, the object a :data:`MakeSource`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, cast

from agentci._util.plugins import all_of, misfit, named, package_of
from agentci.remote.sources.source import MakeSource, Source, Surroundings

GROUP: Final = "agentci.sources"


def _github(surroundings: Surroundings) -> Source:
    from agentci.remote.sources.github import GitHubSource

    return GitHubSource(surroundings)


def _url(surroundings: Surroundings) -> Source:
    from agentci.remote.sources.url import UrlSource

    return UrlSource(surroundings)


def _local(surroundings: Surroundings) -> Source:
    from agentci.remote.sources.local import LocalSource

    return LocalSource(surroundings)


# Each loads its own file: most configs name one of them.
SOURCES: Final[Mapping[str, MakeSource]] = {"github": _github, "url": _url, "local": _local}


def source_named(name: str) -> MakeSource | None:
    """What makes the source ``name``, ours before another package's; None where there is none.

    Raises:
        InputError: a package brings it that is broken.
    """
    ours = SOURCES.get(name)
    if ours is not None:
        return ours
    found = named(GROUP, name)
    return None if found is None else _checked(name, found)


def all_sources() -> Mapping[str, MakeSource]:
    """Every source that there is, by name: ours, then those of other packages.

    Raises:
        InputError: as above, for any of them.
    """
    theirs = {name: _checked(name, found) for name, found in all_of(GROUP).items()}
    return {**SOURCES, **{name: make for name, make in theirs.items() if name not in SOURCES}}


def _checked(name: str, found: object) -> MakeSource:
    if not callable(found):
        raise misfit(GROUP, name, wanted="something that makes a source")
    from agentci.remote.sources.source_plugin import ForeignSource

    title = f"the source {name!r} of {package_of(GROUP, name)}"
    return partial(ForeignSource, cast(MakeSource, found), title=title)
