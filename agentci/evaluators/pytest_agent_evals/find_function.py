"""Whether a file can have the function that a config names, without running it."""

import re
from typing import Final

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.errors import InputError
from agentci.evaluators.context import TextFile
from agentci.model.place import Place

_DEFINED: Final = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_ALL_OF_OTHERS: Final = re.compile(r"^[ \t]*from\b.*\bimport[ \t]*\*", re.MULTILINE)


def check_function(file: TextFile, name: str, place: Place) -> None:
    """See whether ``file`` so much as mentions ``name``: it may be imported, or made in any way.

    Raises:
        InputError: it does not, and so cannot have it.
    """
    if re.search(rf"\b{name}\b", file.text) or _ALL_OF_OTHERS.search(file.text):
        return
    known = _DEFINED.findall(file.text)
    raise InputError.of(
        f"{file.name} defines no function {quoted(name)}",
        place=place,
        hint=did_you_mean(name, known) or (f"there is {one_of(known)}" if known else None),
    )
