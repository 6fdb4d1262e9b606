"""How suites and test cases of JUnit's XML are called: GitLab drops the second of two of a name."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from agentci._util.text import escape, truncate
from agentci.model.result import Result
from agentci.reports.locations import file_name

MAX_ATTRIBUTE = 1_000


def classnames(configs: Sequence[str]) -> dict[str, str]:
    """Dotted names by config, each its own."""
    names: dict[str, str] = {}
    for config in configs:
        path = re.sub(r"\.ya?ml$", "", file_name(config))
        parts = (part(each) for each in path.split("/") if each.strip("."))
        name = ".".join(parts) or "agentci"
        while name in names.values():
            name += "_"
        names[config] = name
    return names


def part(text: str) -> str:
    """A part of a dotted name."""
    return re.sub(r"[.\s]", "_", attribute(text))


def case_name(result: Result, taken: Counter[str]) -> str:
    """The name of a test case, with a number where an earlier one of the suite looks the same.

    Ids may differ in what cannot be seen, or in what is cut out of long ones.
    """
    angle = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    name = attribute(f"{result.case.id} {angle} {result.evaluator.name}")
    taken[name] += 1
    return name if taken[name] == 1 else f"{name} ({taken[name]})"


# Cases and evaluators have names and bars, which come up with every check of theirs.
@lru_cache(maxsize=1024)
def attribute(text: str) -> str:
    """Text of any origin and length in an attribute."""
    return escape.one_line(escape.xml(truncate.middle(text, MAX_ATTRIBUTE)))
