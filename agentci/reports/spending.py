"""What models cost, in one line for people."""

from collections.abc import Sequence

from agentci._util.text.format import count, number
from agentci.model.spending import Charge, Spending

# Of a dollar: a question costs hundredths of a cent.
DIGITS = 4


def spending_line(spending: Sequence[Spending]) -> str:
    """What the judges of all configs cost together; empty where there are none."""
    if not spending:
        return ""
    priced = all(each.priced for each in spending)
    spent = sum((each.spent for each in spending), Charge())
    saved = sum((each.saved for each in spending), Charge())
    line = f"Judges: {_in_words(spent, priced=priced)}"
    return (
        f"{line}; recorded replies saved {_in_words(saved, priced=priced)}" if saved.calls else line
    )


def _in_words(charge: Charge, *, priced: bool) -> str:
    usd = f", ${number(charge.usd, DIGITS)}" if priced else ""
    return f"{count(charge.calls, 'call')}, {count(charge.tokens, 'token')}{usd}"
