"""``agentci evaluator list``: the evaluators that there are, wherever they are kept."""

import os
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final

from msgspec import to_builtins

from agentci._util.files import say
from agentci._util.parallel import side_by_side
from agentci._util.text import truncate
from agentci._util.text.escape import one_line
from agentci._util.text.format import count
from agentci._util.text.strict_json import dumps
from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.errors import AgentciError, FetchError, InputError
from agentci.evaluators.metrics.registry import ASKING, HOSTED, METRICS, NOT_YET
from agentci.model.program import Listing
from agentci.model.values import replace
from agentci.remote.sources.registry import GROUP, SOURCES
from agentci.runner.services import World

ALL: Final = "all"
BUILTIN: Final = "builtin"
GITHUB: Final = "github"
# Tells programs which metrics are known, and not run by this version.
NOT_RUN: Final = "not-run"
# And those that need a `judge`.
ASKS_A_MODEL: Final = "asks-a-model"
# And those that need Vertex AI, and the extra adk.
NEEDS_VERTEX: Final = "needs-vertex-ai"

HEADINGS: Final = ("NAME", "SOURCE", "LANGUAGE", "DESCRIPTION", "REF")
# Of a terminal that does not say it.
USUAL_WIDTH: Final = 80


def show_catalogue(source: str, world: World, *, as_json: bool) -> int:
    """Print what ``source`` offers, or all sources together, by source and name.

    Of all sources, one that cannot be asked keeps none of the others from being shown.

    Raises:
        InputError: there is no such source, or it cannot be asked.
    """
    found = _everything(world) if source == ALL else _of_one(source, world)
    listings = sorted(found, key=lambda each: (each.source, each.name, each.ref))
    world.out.write(_json(listings) if as_json else _text(listings, _width(world)))
    return 0


def _everything(world: World) -> list[Listing]:
    found = list(_metrics())
    for offered in side_by_side(lambda name: _offered(name, world), _sources()):
        if isinstance(offered, str):
            say(f"{one_line(f'warning: {offered}')}\n", world.err)
        else:
            found += offered
    return found


def _offered(source: str, world: World) -> Sequence[Listing] | str:
    """What a source offers, or why that is not known."""
    try:
        return _catalogue(source, world)
    except FetchError as error:
        return _unknown(source, error) + (f" ({error.hint})" if error.hint else "")
    except AgentciError as error:
        return _unknown(source, error)


def _of_one(source: str, world: World) -> Sequence[Listing]:
    if source == BUILTIN:
        return _metrics()
    sources = _sources()
    if source not in sources:
        known = [ALL, BUILTIN, *sources]
        raise InputError.of(
            f"there is no source {quoted(source)} of evaluators",
            hint=did_you_mean(source, known) or f"there is {one_of(known)}",
        )
    try:
        return _catalogue(source, world)
    except FetchError as error:
        raise InputError.of(_unknown(source, error), hint=error.hint) from None


def _unknown(source: str, error: AgentciError) -> str:
    return f"the evaluators of {source} cannot be listed: {error}"


def _sources() -> list[str]:
    """All names of sources, those of packages included that do not work."""
    theirs = entry_points(group=GROUP).names - {ALL, BUILTIN, *SOURCES}
    return [*SOURCES, *sorted(theirs)]


def _catalogue(source: str, world: World) -> Sequence[Listing]:
    listings = world.sources.named(source).catalogue()
    return [replace(each, source=source) for each in listings]


def _metrics() -> Sequence[Listing]:
    # A metric is a module, whose first line says what it measures.
    ours = {name: (metric.__doc__ or "").partition("\n")[0] for name, metric in METRICS.items()}
    return [
        *(_metric(name, f"{text} Computed here.") for name, text in ours.items()),
        *(
            _metric(name, f"{text} Asks a model (`judge`).", ASKS_A_MODEL)
            for name, text in ASKING.items()
        ),
        *(
            _metric(name, f"{metric.purpose} Needs Vertex AI and the extra adk.", NEEDS_VERTEX)
            for name, metric in HOSTED.items()
        ),
        *(_metric(name, f"Not run: {why}.", NOT_RUN) for name, why in NOT_YET.items()),
    ]


def _metric(name: str, description: str, *tags: str) -> Listing:
    return Listing(name=name, source=BUILTIN, ref=name, description=description, tags=tags)


def _json(listings: Sequence[Listing]) -> str:
    """A list, one evaluator a line."""
    lines = ",\n".join(f"  {dumps(to_builtins(each))}" for each in listings)
    return f"[\n{lines}\n]\n" if listings else "[]\n"


def _text(listings: Sequence[Listing], width: int | None) -> str:
    table = _table([HEADINGS, *map(_row, listings)], width) if listings else ""
    return f"{table}{_example(listings)}{count(len(listings), 'evaluator')}\n"


def _row(listing: Listing) -> tuple[str, ...]:
    cells = (*(listing.name, listing.source, listing.language, listing.description), listing.ref)
    return tuple(one_line(cell) or "-" for cell in cells)


def _table(rows: Sequence[Sequence[str]], width: int | None) -> str:
    """The rows under one another; their ends are cut off where there is a ``width``."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    cut = (line if width is None else truncate.short(line, width) for line in lines)
    return "".join(f"{line}\n" for line in cut)


def _example(listings: Sequence[Listing]) -> str:
    """How the first of the community's evaluators is used, where there is one."""
    listing = next((each for each in listings if each.source == GITHUB), None)
    if listing is None:
        return ""
    import yaml  # noqa: PLC0415 (slow to load)

    entry = {"name": listing.name, "type": "remote", "ref": listing.ref}
    text = yaml.safe_dump(
        entry, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return f"\nTo use one, add it to the `evaluators:` of a config:\n  - {one_line(text)}\n\n"


def _width(world: World) -> int | None:
    """Characters of a line on the terminal; None where the output is no terminal."""
    if not world.out.isatty():
        return None
    return os.get_terminal_size(world.out.fileno()).columns or USUAL_WIDTH
