"""HTML elements: text is escaped, unless it is HTML already."""

from agentci._util.text import escape


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str | float | None) -> Markup:
    """Make an element.

    Args:
        name: of the element.
        content: text, which is escaped, or elements.
        attributes: ``_`` in a name becomes ``-``, a trailing one is removed; None omits an
            attribute.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{''.join(map(escape_text, content))}</{name}>")


def join_markup(*content: str) -> Markup:
    """Concatenate text and elements; text is escaped."""
    return Markup("".join(map(escape_text, content)))


def escape_text(value: str) -> Markup:
    """Escape text for element content and quoted attributes.

    GitHub workflow commands (``::``, ``##[``) are written as character references, so that a page
    printed to a log runs no command.
    """
    if isinstance(value, Markup):
        return value
    written = escape.remove_control(value)
    for special, reference in _REFERENCES.items():
        written = written.replace(special, reference)
    return Markup(written)


_REFERENCES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
    "::": "&#58;:",
    "##[": "##&#91;",
}
