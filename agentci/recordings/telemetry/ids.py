"""Names that recordings give to sessions, conversations and golden cases."""

from collections.abc import Iterable, Mapping
from typing import Final

from agentci.model.json import Json

MAX_NAME_CHARS: Final = 256


def first_name(sources: Iterable[Mapping[str, Json]], attribute: str) -> str | None:
    """The first value that may be a name: text or a number, printable and not too long."""
    texts = (_text(source[attribute]) for source in sources if attribute in source)
    usable = (text for text in texts if text.isprintable() and len(text) <= MAX_NAME_CHARS)
    return next(filter(None, usable), None)


def _text(value: Json) -> str:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value).strip() if usable else ""
