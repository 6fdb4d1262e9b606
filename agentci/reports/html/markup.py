"""HTML in which foreign text can be nothing but text: whatever is not ``Markup`` is escaped."""

from agentci._util.text import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        name: of the element.
        content: text, or elements.
        attributes: ``_`` stands for ``-``, one at the end for nothing; None leaves one out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{''.join(map(escape_text, content))}</{name}>")


def join_markup(*content: str) -> Markup:
    """Text and elements one after the other."""
    return Markup("".join(map(escape_text, content)))


def escape_text(value: str) -> Markup:
    """Escape text for content and quoted attributes alike.

    What would be a command of a workflow is written with references to characters, so that a page
    that is printed to a log commands nothing.
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
