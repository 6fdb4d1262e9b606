"""How several samples judged one thing, in words."""

from collections import Counter

from agentci._util.text.format import number
from agentci.model.ruling import Ruling


def votes_on(name: str, ruling: Ruling) -> str | None:
    """``2 of 3 passed``, or all marks in order; None where a model was asked once."""
    values = [each.marks[name].value for each in ruling.verdicts if name in each.marks]
    asked = len(ruling.verdicts) + len(ruling.failures)
    if asked == 1:
        return None
    if all(isinstance(value, bool) for value in values):
        said = f"{values.count(True)} of {len(values)} passed"
    elif all(isinstance(value, str) for value in values):
        said = ", ".join(f"{label} {times}" for label, times in Counter(values).most_common())
    else:
        said = ", ".join(number(value) for value in sorted(map(float, values)))
    failed = asked - len(values)
    return f"{said}; {failed} without a verdict" if failed else said
