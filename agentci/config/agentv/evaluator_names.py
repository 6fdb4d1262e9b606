"""Names of evaluators, also of those that AgentV 4 lets go without."""

from collections.abc import Collection
from itertools import count
from typing import Final

from agentci.evaluators.agentv.agentv_evaluator import Era
from agentci.model.json import Json, JsonObject

MAX_PATTERN: Final = 30


def name_of(entry: JsonObject, *, era: Era, taken: Collection[str]) -> str | None:
    """The name of an entry that has a type; None where it has to have one and has none.

    Args:
        taken: names in the same list, which a name that is made up stays clear of.
    """
    given = entry.get("name")
    if isinstance(given, str) and given.strip():
        return given
    if era == "seed" or given is not None:
        return None
    return unused(_made_up(entry, str(entry["type"]).replace("_", "-")), taken)


def unused(name: str, taken: Collection[str]) -> str:
    """``name``, with a number behind it where it is among those that are ``taken``."""
    numbered = (f"{name}-{number}" for number in count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _made_up(entry: JsonObject, kind: str) -> str:
    value: Json = entry.get("value")
    if isinstance(value, list):
        return f"{kind}-{len(value)}"
    if isinstance(value, str):
        return f"{kind}-{value[:MAX_PATTERN]}" if kind == "regex" else f"{kind}-{value}"
    return kind
