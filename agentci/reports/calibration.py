"""Agreement of evaluators with human labels, as text and as JSON."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import json_text
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, format_number
from agentci.gate.statistics import Calibration, ConfusionMatrix, Proportion
from agentci.model.values import Json, JsonObject

# Below these minimums an estimate is too uncertain; by common practice.
MIN_CASES: Final = 50
MIN_FAILED_CASES: Final = 15
SUBSTANTIAL_KAPPA: Final = 0.6


def render_text(found: Sequence[Calibration]) -> str:
    """Render a table per evaluator, with rates and notes."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in found)


def _lines(found: Calibration) -> list[str]:
    confusion = found.confusion
    kappa = "-" if confusion.kappa is None else format_number(confusion.kappa)
    cases = format_count(confusion.agreement.whole, "case")
    without = f", {found.without_result:,} more without a result" if found.without_result else ""
    lines = [
        f"{escape_for_log_line(found.evaluator)}: {cases} with a label{without}",
        f"{'':16}{'evaluator: pass':>17}{'evaluator: fail':>17}",
        f"  {'human: pass':14}{confusion.true_passes:>17,}{confusion.false_fails:>17,}",
        f"  {'human: fail':14}{confusion.false_passes:>17,}{confusion.true_fails:>17,}",
        f"  agreement     {_format_rate(confusion.agreement)}",
        f"  kappa         {kappa}",
        f"  passes found  {_format_rate(confusion.true_pass_rate)}",
        f"  fails found   {_format_rate(confusion.true_fail_rate)}",
    ]
    if found.flips.value is not None:
        pairs = format_count(found.flips.whole, "pair")
        lines.append(f"  flips         {_format_percent(found.flips.value)} of {pairs} of repeats")
    return [*lines, *(f"  note: {each}" for each in _list_notes(confusion))]


def _list_notes(confusion: ConfusionMatrix) -> list[str]:
    """List what limits the value of a calibration."""
    notes = []
    cases, fails = confusion.agreement.whole, confusion.true_fail_rate.whole
    if cases < MIN_CASES or fails < MIN_FAILED_CASES:
        notes.append(
            f"too few labels for a reliable estimate: {format_count(cases, 'case')}, {fails:,} of "
            f"them labelled fail; use at least {MIN_CASES} cases and {MIN_FAILED_CASES} fails"
        )
    if confusion.kappa is None:
        notes.append("kappa is undefined: it needs labels or results of both kinds")
    elif confusion.kappa < SUBSTANTIAL_KAPPA:
        notes.append(f"kappa is below {SUBSTANTIAL_KAPPA}; do not let this evaluator fail the gate")
    return notes


def _format_rate(rate: Proportion) -> str:
    if rate.value is None:
        return "-"
    if rate.interval is None:
        return _format_percent(rate.value)
    low, high = map(_format_percent, rate.interval)
    return f"{_format_percent(rate.value)} ({low} to {high})"


def _format_percent(share: float) -> str:
    return f"{format_number(100 * share, 1)}%"


def render_json(found: Sequence[Calibration]) -> str:
    """Render the calibrations as one line of JSON."""
    calibrations: list[Json] = [
        {
            "evaluator": each.evaluator,
            "cases": each.confusion.agreement.whole,
            "without_result": each.without_result,
            "confusion": {
                "true_passes": each.confusion.true_passes,
                "false_fails": each.confusion.false_fails,
                "false_passes": each.confusion.false_passes,
                "true_fails": each.confusion.true_fails,
            },
            "kappa": each.confusion.kappa,
            "agreement": _rate_to_json(each.confusion.agreement),
            "true_pass_rate": _rate_to_json(each.confusion.true_pass_rate),
            "true_fail_rate": _rate_to_json(each.confusion.true_fail_rate),
            "flip_rate": _rate_to_json(each.flips),
        }
        for each in found
    ]
    return f"{json_text.dumps(calibrations)}\n"


def _rate_to_json(rate: Proportion) -> JsonObject:
    interval: Json = None if rate.interval is None else list(rate.interval)
    return {"part": rate.part, "whole": rate.whole, "value": rate.value, "interval": interval}
