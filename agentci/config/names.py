"""Names of metrics and evaluators that are given, beside those that there are."""

from collections.abc import Iterator, Sequence

from agentci.metrics.registry import METRICS, NOT_YET
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.text.names import did_you_mean, one_of, quoted


def metric_problem(name: str, place: Place | None = None) -> Problem | None:
    """Why there is no built-in metric ``name``, None where there is one."""
    if name in METRICS:
        return None
    if name in NOT_YET:
        message = f"the metric {name!r} is not run by this version of agentci"
        return Problem(message=message, place=place, hint=NOT_YET[name])
    return Problem(
        message=f"there is no built-in metric {quoted(name)}",
        place=place,
        hint=did_you_mean(name, [*METRICS, *NOT_YET]) or f"known here: {', '.join(METRICS)}",
    )


def option_problems(metrics: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the metrics of the command line."""
    for metric in dict.fromkeys(metrics):
        if (problem := metric_problem(metric)) is not None:
            yield problem
        if metrics.count(metric) > 1:
            yield Problem(message=f"--metric {metric} is given twice", hint="give it once")


def selection_problems(only: Sequence[str], names: Sequence[str]) -> Iterator[Problem]:
    """Names of evaluators to run alone that none of ``names``, of all there are, is equal to."""
    for name in dict.fromkeys(only):
        if name not in names:
            yield Problem(
                message=f"there is no evaluator {quoted(name)} to run alone (--only)",
                hint=did_you_mean(name, names) or f"there is {one_of(names)}",
            )
