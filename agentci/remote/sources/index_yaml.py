"""Parse ``index.yaml``, the index of evaluators in the community's format."""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Final

from agentci._util.text import truncate
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError, PermanentFetchError
from agentci.model.json import Json
from agentci.model.program import CatalogEntry

INDEX_NAME: Final = "index.yaml"
MAX_INDEX_BYTES: Final = 1024**2

# Limits of one entry, so that a table of evaluators stays readable.
MAX_TEXT: Final = 500
MAX_TAGS: Final = 20

_FORMAT_HINT: Final = "it needs `evaluators:`, a list of entries with `name` and `path`"


def parse_index(
    content: bytes, *, name: str, source: str, is_usable: Callable[[str], bool]
) -> tuple[CatalogEntry, ...]:
    """Parse an index; entries keep their order.

    Entries that no config could refer to are skipped, so that a broken entry does not hide others.

    Args:
        name: of the index in messages.
        source: name of the source that the entries belong to.
        is_usable: whether the source accepts a path.

    Raises:
        PermanentFetchError: if it is not an index or has only broken entries.
    """
    entries = _read_entries(content, name)
    listings = tuple(_parse_listings(entries, source, is_usable))
    if entries and not listings:
        raise PermanentFetchError(f"{name} has no entry with a valid `path`", hint=_FORMAT_HINT)
    return listings


def _read_entries(content: bytes, name: str) -> list[Json]:
    if len(content) > MAX_INDEX_BYTES:
        raise PermanentFetchError(f"{name} is larger than {MAX_INDEX_BYTES // 1024**2} MiB")
    try:
        data = read_yaml(content, file=INDEX_NAME).data
    except InputError as error:
        problem = error.problems[0]
        line = "" if problem.place is None else f" on line {problem.place.line}"
        message = f"{name} cannot be read: {problem.message}{line}"
        raise PermanentFetchError(message, hint=_FORMAT_HINT) from None
    entries = data.get("evaluators")
    if not isinstance(entries, list):
        raise PermanentFetchError(f"{name} has no `evaluators` list", hint=_FORMAT_HINT)
    return entries


def _parse_listings(
    entries: list[Json], source: str, is_usable: Callable[[str], bool]
) -> Iterator[CatalogEntry]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        path = entry.get("path")
        if isinstance(path, str) and is_usable(path):
            yield CatalogEntry(
                name=_clean_text(entry.get("name")) or PurePosixPath(path).stem,
                source=source,
                ref=path,
                description=_clean_text(entry.get("description")),
                language=_clean_text(entry.get("language")),
                tags=_clean_texts(entry.get("tags")),
                author=_clean_text(entry.get("author")),
            )


def _clean_text(value: Json) -> str:
    """Convert an untrusted value to one line of printable text; "" if it is not text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    line = " ".join(str(value).split())
    return truncate.short("".join(each for each in line if each.isprintable()), MAX_TEXT)


def _clean_texts(value: Json) -> tuple[str, ...]:
    texts = map(_clean_text, value[:MAX_TAGS]) if isinstance(value, list) else ()
    return tuple(filter(None, texts))
