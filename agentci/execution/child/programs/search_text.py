"""Search a text for a regular expression.

Runs as a program, because an expression can take years. Stdin is ``{"pattern", "flags", "text"}``,
with the number of Python's flags. Stdout is ``{"found"}``. If the search takes too long or too much
memory, the exit code is 1, and the reason is on stderr.
"""

import json
import re
import signal
import sys
from typing import Final

# Far above what a realistic expression needs.
SEARCH_SECONDS: Final = 5.0


def main() -> int:
    """Search the text from stdin, and return the exit code."""
    request = json.load(sys.stdin.buffer)
    signal.signal(signal.SIGVTALRM, _end_search)
    signal.setitimer(signal.ITIMER_VIRTUAL, SEARCH_SECONDS)
    try:
        found = re.compile(request["pattern"], request["flags"]).search(request["text"])
    except TimeoutError:
        sys.stderr.write(f"the search takes more than {SEARCH_SECONDS:g} s of processor time\n")
        return 1
    except MemoryError:
        sys.stderr.write("the search takes too much memory\n")
        return 1
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    json.dump({"found": found is not None}, sys.stdout)
    return 0


def _end_search(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    sys.exit(main())
