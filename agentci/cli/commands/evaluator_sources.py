"""``agentci evaluator list`` and ``fetch``: list the evaluators of all sources, and fetch them."""

import os
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final, TextIO

from msgspec import to_builtins

from agentci._util.files import write_to_stream
from agentci._util.parallel import parallel_map
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci._util.text.json_text import dumps
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.settings import FetchSettings
from agentci.errors import AgentciError, FetchError, InputError
from agentci.evaluators.metrics.registry import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from agentci.model.program import CatalogEntry, RemoteProgram
from agentci.model.values import Problem, replace
from agentci.remote.fetch import FetchedProgram, FetchOptions, fetch_program
from agentci.remote.sources.registry import GROUP, SOURCES
from agentci.runner.services import Services

ALL_SOURCES: Final = "all"
BUILTIN_SOURCE: Final = "builtin"
GITHUB_SOURCE: Final = "github"
# Tags of metrics, for programs: unsupported here, needs a `judge`, needs Vertex AI and extra adk.
NOT_RUN_TAG: Final = "not-supported"
ASKS_MODEL_TAG: Final = "needs-judge"
NEEDS_VERTEX_TAG: Final = "needs-vertex-ai"

HEADINGS: Final = ("NAME", "SOURCE", "LANGUAGE", "DESCRIPTION", "REF")
# Used if the terminal does not report its width.
DEFAULT_WIDTH: Final = 80


def list_evaluators(source: str, services: Services, out: TextIO, *, as_json: bool) -> int:
    """Print the evaluators of ``source``, or of all sources, by source and name.

    With all sources, one that cannot be read is only a warning.

    Raises:
        InputError: there is no such source, or it cannot be read.
    """
    found = _list_all_sources(services) if source == ALL_SOURCES else _list_source(source, services)
    listings = sorted(found, key=lambda each: (each.source, each.name, each.ref))
    out.write(
        _format_json(listings) if as_json else _format_text(listings, _find_terminal_width(out))
    )
    return 0


def _list_all_sources(services: Services) -> list[CatalogEntry]:
    found = list(_list_metrics())
    for offered in parallel_map(
        lambda name: _list_source_or_error(name, services), _list_source_names()
    ):
        if isinstance(offered, str):
            write_to_stream(f"{escape_for_log_line(f'warning: {offered}')}\n", services.err)
        else:
            found += offered
    return found


def _list_source_or_error(source: str, services: Services) -> Sequence[CatalogEntry] | str:
    """Return the evaluators of a source, or why they cannot be listed."""
    try:
        return _read_catalogue(source, services)
    except FetchError as error:
        return _format_source_error(source, error) + (f" ({error.hint})" if error.hint else "")
    except AgentciError as error:
        return _format_source_error(source, error)


def _list_source(source: str, services: Services) -> Sequence[CatalogEntry]:
    if source == BUILTIN_SOURCE:
        return _list_metrics()
    sources = _list_source_names()
    if source not in sources:
        known = [ALL_SOURCES, BUILTIN_SOURCE, *sources]
        raise InputError.from_message(
            f"unknown source {quote_name(source)}",
            hint=suggest_name(source, known) or f"choose {join_with_or(known)}",
        )
    try:
        return _read_catalogue(source, services)
    except FetchError as error:
        message = _format_source_error(source, error)
        raise InputError.from_message(message, hint=error.hint) from None


def _format_source_error(source: str, error: AgentciError) -> str:
    return f"cannot list the evaluators of {source}: {error}"


def _list_source_names() -> list[str]:
    """List the names of all sources, including broken ones of other packages."""
    plugins = entry_points(group=GROUP).names - {ALL_SOURCES, BUILTIN_SOURCE, *SOURCES}
    return [*SOURCES, *sorted(plugins)]


def _read_catalogue(source: str, services: Services) -> Sequence[CatalogEntry]:
    listings = services.sources.get(source).catalogue()
    return [replace(each, source=source) for each in listings]


def _list_metrics() -> Sequence[CatalogEntry]:
    # The first line of a metric module's docstring is its description.
    local = {name: (metric.__doc__ or "").partition("\n")[0] for name, metric in METRICS.items()}
    return [
        *(_make_metric_listing(name, f"{text} Computed locally.") for name, text in local.items()),
        *(
            _make_metric_listing(name, f"{text} Needs a judge model (`judge`).", ASKS_MODEL_TAG)
            for name, text in JUDGED_METRIC_PURPOSES.items()
        ),
        *(
            _make_metric_listing(
                name, f"{metric.purpose} Needs Vertex AI and the extra adk.", NEEDS_VERTEX_TAG
            )
            for name, metric in HOSTED_METRICS.items()
        ),
        *(
            _make_metric_listing(name, f"Not supported: {why}.", NOT_RUN_TAG)
            for name, why in UNSUPPORTED_METRICS.items()
        ),
    ]


def _make_metric_listing(name: str, description: str, *tags: str) -> CatalogEntry:
    return CatalogEntry(
        name=name, source=BUILTIN_SOURCE, ref=name, description=description, tags=tags
    )


def _format_json(listings: Sequence[CatalogEntry]) -> str:
    """Format a JSON list with one evaluator per line."""
    lines = ",\n".join(f"  {dumps(to_builtins(each))}" for each in listings)
    return f"[\n{lines}\n]\n" if listings else "[]\n"


def _format_text(listings: Sequence[CatalogEntry], width: int | None) -> str:
    table = _format_table([HEADINGS, *map(_format_row, listings)], width) if listings else ""
    return f"{table}{_format_example(listings)}{format_count(len(listings), 'evaluator')}\n"


def _format_row(listing: CatalogEntry) -> tuple[str, ...]:
    cells = (*(listing.name, listing.source, listing.language, listing.description), listing.ref)
    return tuple(escape_for_log_line(cell) or "-" for cell in cells)


def _format_table(rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Format aligned rows, truncated to ``width`` characters if given."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    cut = (line if width is None else truncate.short(line, width) for line in lines)
    return "".join(f"{line}\n" for line in cut)


def _format_example(listings: Sequence[CatalogEntry]) -> str:
    """Show how to use the first community evaluator, if there is one."""
    listing = next((each for each in listings if each.source == GITHUB_SOURCE), None)
    if listing is None:
        return ""
    import yaml  # noqa: PLC0415 (slow to load)

    entry = {"name": listing.name, "type": "remote", "ref": listing.ref}
    text = yaml.safe_dump(
        entry, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return (
        "\nTo use one, add it to the `evaluators:` of a config:\n  - "
        f"{escape_for_log_line(text)}\n\n"
    )


def _find_terminal_width(out: TextIO) -> int | None:
    """Return the terminal's width in characters; None if the output is not a terminal."""
    if not out.isatty():
        return None
    return os.get_terminal_size(out.fileno()).columns or DEFAULT_WIDTH


def fetch_evaluators(
    programs: Sequence[RemoteProgram], *, access: FetchSettings, services: Services, out: TextIO
) -> int:
    """Fetch ``programs`` and print the path and the pin of each.

    Raises:
        InputError: some cannot be fetched; the others are in the cache.
    """
    from agentci.runner.prepare_programs import (  # noqa: PLC0415 (loads the planning of a run)
        load_lock,
        make_fetch_options,
    )

    fetch_options = make_fetch_options(access, services, lock=load_lock(services))
    outcomes = parallel_map(lambda each: _fetch_program(each, fetch_options), programs)
    for outcome in outcomes:
        if not isinstance(outcome, Problem):
            write_to_stream(_format_fetched(outcome), out)
    problems = [each for each in outcomes if isinstance(each, Problem)]
    if problems:
        raise InputError(problems)
    return 0


def _fetch_program(program: RemoteProgram, options: FetchOptions) -> FetchedProgram | Problem:
    try:
        fetched = fetch_program(options.sources.get(program.source).complete(program), options)
    except FetchError as error:
        return Problem(message=str(error), hint=error.hint)
    # A run works without the cache; here filling it is the purpose.
    return Problem(message=fetched.notices[0]) if fetched.notices else fetched


def _format_fetched(fetched: FetchedProgram) -> str:
    facts = {"commit": fetched.commit, "pin": fetched.pin, "path": fetched.cached.path}
    lines = [f"  {name}: {escape_for_log_line(str(fact))}" for name, fact in facts.items() if fact]
    return "".join(f"{line}\n" for line in (escape_for_log_line(fetched.program.ref), *lines))
