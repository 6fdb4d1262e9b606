"""What a score has to reach."""

from typing import Final

from agentci.model.identity import Identity

DEFAULT_THRESHOLD: Final = 0.5


def threshold_of(identity: Identity) -> float:
    """The threshold of an evaluator, that of agentevals where it has none."""
    return DEFAULT_THRESHOLD if identity.threshold is None else identity.threshold


def bar_of(threshold: float) -> str:
    """What has to be reached, in words."""
    return f"at least {threshold:g}"
