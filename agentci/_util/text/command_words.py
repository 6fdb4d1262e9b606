"""Words of command lines."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

# Words within an argument, such as those of `sh -c "python check.py"`.
_WORD: Final = re.compile(r"[\w./+~-]+")


def split_words(command_line: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of a command line and the words within them, each once."""
    yield from dict.fromkeys(word for part in command_line for word in (part, *_WORD.findall(part)))
