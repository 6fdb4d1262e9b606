"""Keys that do not belong where they stand, and where they do belong."""

from collections.abc import Sequence
from typing import Final

from agentci.config.schema import OWN_FIELDS, Types
from agentci.text.names import did_you_mean, one_of

# Keys at the top of configs that agentevals reads, or once read.
_MOVED: Final = {
    "metrics": "list each metric below `evaluators:`, as `- {name: NAME, type: builtin}`",
    "custom_evaluators": "move its entries below `evaluators:`, each with its `type`",
    "judge": "this version has no evaluators that ask a language model",
    "max_concurrent_traces": "give --jobs to `agentci run` instead",
    "max_concurrent_evals": "give --jobs to `agentci run` instead",
}


def unknown_key_hint(
    key: str, path: tuple[str | int, ...], known: Sequence[str], types: Types
) -> str | None:
    """Where a key belongs that the mapping at ``path`` does not know, or what it was meant to be.

    Args:
        known: the keys that the mapping does know.
    """
    if not path and key in _MOVED:
        return _MOVED[key]
    field = key.replace("-", "_")
    owners = [name for name, each in types.items() if field in each.entry.model_fields]
    close = did_you_mean(key, known)
    if close is None and owners and not path:
        return "it belongs to an entry of `evaluators`, or to `defaults` for all of them"
    if close is None and owners and path[0] == "evaluators":
        return f"only evaluators of type {one_of(owners)} have it"
    if path == ("defaults",) and field in OWN_FIELDS:
        return "every evaluator needs its own"
    return close or f"known here: {', '.join(name for name in known if name.islower())}"
