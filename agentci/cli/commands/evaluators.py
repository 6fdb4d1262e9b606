"""``agentci evaluator list|fetch|init``: list and fetch remote evaluators, make a new one."""

import builtins
import keyword
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct, to_builtins

from agentci._util.files import give_to_owner, make_folder, write_to_stream
from agentci._util.parallel import parallel_map
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log, escape_for_log_line
from agentci._util.text.format import format_count
from agentci._util.text.json_text import dumps
from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci._util.workspace import Workspace
from agentci.config.settings import FetchSettings
from agentci.errors import AgentciError, FetchError, InputError
from agentci.evaluators.metrics import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from agentci.model.program import CatalogEntry, RemoteProgram
from agentci.model.values import COMMAND_LINE, Problem, replace
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
    local = {name: metric.purpose for name, metric in METRICS.items()}
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
    from agentci.runner.prepare import (  # noqa: PLC0415 (loads the planning of a run)
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


# Stands for the name of the function in the template in Python.
FUNCTION_PLACEHOLDER: Final = "FUNCTION"
MANIFEST_NAME: Final = "evaluator.yaml"
MAX_NAME_LENGTH: Final = 100


class EvaluatorLanguage(Struct, frozen=True, kw_only=True):
    """A language that has a template."""

    name: str
    short_name: str

    @property
    def extension(self) -> str:
        """The extension of its files, such as ``.py``."""
        return f".{self.short_name}"

    @property
    def template(self) -> str:
        """The program of a new evaluator."""
        name = f"templates/evaluator{self.extension}.txt"
        return resources.files(__package__).joinpath(name).read_text("utf-8")


LANGUAGES: Final = (
    EvaluatorLanguage(name="python", short_name="py"),
    EvaluatorLanguage(name="javascript", short_name="js"),
    EvaluatorLanguage(name="typescript", short_name="ts"),
)

# A file or function with such a name would shadow something that evaluators need.
RESERVED_NAMES: Final = frozenset(
    {
        *(*dir(builtins), *sys.stdlib_module_names, *keyword.kwlist),
        *("agentci", "evaluator", "EvalInput", "EvalResult"),
        *("agentevals_evaluator_sdk", "pydantic"),
    }
)


def init_evaluator(
    name: str, *, runtime: str | None, folder: str, workspace: Workspace, out: TextIO
) -> int:
    """Create ``folder/NAME`` with a program and its manifest, and print the next steps.

    Args:
        name: of the evaluator; an extension selects the language.
        runtime: the language, by name or extension; default: Python.
        folder: relative to the working directory; created if missing.

    Raises:
        InputError: the name is invalid, a file exists, or writing failed.
    """
    stem, language = _parse_name(name, runtime)
    _check_name(stem, language)
    named = Path(folder, stem)
    home = workspace.resolve_given(named, place=COMMAND_LINE).path
    program = f"{stem}{language.extension}"
    text = language.template.replace(FUNCTION_PLACEHOLDER, stem.replace("-", "_"))
    files = {program: text, MANIFEST_NAME: _format_manifest(stem, language)}
    _write_new_files(home, files, workspace)
    shown = Path(os.path.relpath(workspace.cwd / named, workspace.cwd))
    out.write(escape_for_log(_format_next_steps(stem, shown, program)))
    return 0


def _parse_name(name: str, runtime: str | None) -> tuple[str, EvaluatorLanguage]:
    stem, extension = os.path.splitext(name)  # noqa: PTH122 (a path would swallow dots and slashes)
    if not extension:
        return stem, LANGUAGES[0] if runtime is None else _find_language(runtime)
    language = next((each for each in LANGUAGES if each.extension == extension.lower()), None)
    if language is None:
        extensions = join_with_or([each.extension for each in LANGUAGES])
        message = (
            f"{quote_name(name)} has the extension {quote_name(extension)}; known: {extensions}"
        )
        hint = "remove it; for other languages see agentci's docs/writing-evaluators.md"
        raise InputError.from_message(message, hint=hint)
    if runtime is not None and _find_language(runtime) is not language:
        message = f"{quote_name(name)} is {language.name}, but --runtime is {quote_name(runtime)}"
        raise InputError.from_message(message, hint="remove one of the two")
    return stem, language


def _find_language(runtime: str) -> EvaluatorLanguage:
    for language in LANGUAGES:
        if runtime.lower() in (language.short_name, language.name):
            return language
    known = join_with_or([each.short_name for each in LANGUAGES])
    raise InputError.from_message(
        f"unknown --runtime {quote_name(runtime)}",
        hint=f"choose {known}; for other languages see agentci's docs/writing-evaluators.md",
    )


def _check_name(stem: str, language: EvaluatorLanguage) -> None:
    """Check that the name is valid for a file, a folder, a remote evaluator and a function."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem):
        message = (
            f"invalid evaluator name {quote_name(stem)}: it must start with a letter (a to z) and"
            " contain only letters, digits, _ and -"
        )
        where = ", and set its folder with --dir" if "/" in stem else ""
        raise InputError.from_message(message, hint=f"try {quote_name(_suggest_name(stem))}{where}")
    if len(stem) > MAX_NAME_LENGTH:
        message = f"the name {quote_name(stem)} has {len(stem)} characters"
        raise InputError.from_message(message, hint=f"use at most {MAX_NAME_LENGTH}")
    if language.name == "python" and stem.replace("-", "_") in RESERVED_NAMES:
        message = f"invalid evaluator name {quote_name(stem)}: the name is reserved in Python"
        raise InputError.from_message(message, hint=f"try {quote_name(f'{stem}_check')}")


def _suggest_name(stem: str) -> str:
    letters = unicodedata.normalize("NFKD", stem.rpartition("/")[2]).encode("ascii", "ignore")
    return re.sub(r"[^A-Za-z0-9]+", "_", letters.decode()).strip("_0123456789") or "my_evaluator"


def _format_manifest(stem: str, language: EvaluatorLanguage) -> str:
    return _dump_yaml(
        {
            "name": stem,
            "description": "Every turn has an answer.",
            "language": language.name,
            "entrypoint": f"{stem}{language.extension}",
            "tags": [],
            "author": "",
        }
    )


def _write_new_files(home: Path, files: Mapping[str, str], workspace: Workspace) -> None:
    """Write all files; existing files are never overwritten."""
    try:
        taken = [
            workspace.display_path(path)
            for path in map(home.joinpath, files)
            if os.path.lexists(path)
        ]
        if taken:
            hint = "choose another name"
            raise InputError(
                [Problem(message=f"{path} already exists", hint=hint) for path in taken]
            )
        make_folder(home, workspace.root)
        for name, text in files.items():
            with (home / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            give_to_owner(home / name, workspace.root)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"cannot write to {workspace.display_path(home)}: {reason}"
        raise InputError.from_message(message, hint="choose another folder with --dir") from None


def _format_next_steps(stem: str, home: Path, program: str) -> str:
    path = home / program
    entry = {"name": stem, "type": "code", "path": f"./{path}", "threshold": 1.0}
    run = f"agentci evaluator run {shlex.quote(str(path))} --trace TRACE"
    return f"""\
Created {path} and {home / MANIFEST_NAME}

Next:
1. Write your rule in {program}, and describe it in {MANIFEST_NAME}.
2. Try it on a trace:

   {run}

3. Add it to your config; the path is relative to the config:

{_dump_yaml({"evaluators": [{**entry, "config": {"min_length": 1}}]})}"""


def _dump_yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 (slow to load)

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text
