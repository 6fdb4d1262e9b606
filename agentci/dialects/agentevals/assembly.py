"""Built-in evaluators from what configs and options say of them.

Apart from the entries of configs, so that a run without a config does not load what reads those.
"""

from agentci.dialects.agentevals.builtin import DEFAULT_THRESHOLD, BuiltinEvaluator
from agentci.dialects.base import Identity
from agentci.model.place import Place


def assemble_builtin(
    metric: str,
    *,
    place: Place,
    threshold: float | None = None,
    match_type: str | None = None,
    required: bool = True,
    turn_mismatch_fails: bool = True,
) -> BuiltinEvaluator:
    """The evaluator that judges by ``metric``; None stands for agentevals' defaults."""
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    return BuiltinEvaluator(
        identity=Identity(
            name=metric,
            type="builtin",
            bar=bar_of(threshold),
            threshold=threshold,
            required=required,
            place=place,
        ),
        metric=metric,
        options={} if match_type is None else {"match_type": match_type},
        turn_mismatch_fails=turn_mismatch_fails,
    )


def bar_of(threshold: float) -> str:
    """What has to be reached, in words."""
    return f"at least {threshold:g}"
