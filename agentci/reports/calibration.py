"""Agreement of evaluators with human labels, as text and as JSON."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import json_text
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, format_number
from agentci.gate.agreement import Calibration, ConfusionMatrix, Proportion
from agentci.model.json import Json, JsonObject

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
    without = f", {found.unscored:,} more without a verdict" if found.unscored else ""
    lines = [
        f"{escape_for_log_line(found.evaluator)}: {cases} with a label{without}",
        f"{'':16}{'judge: pass':>13}{'judge: fail':>13}",
        f"  {'human: pass':14}{confusion.true_passes:>13,}{confusion.false_fails:>13,}",
        f"  {'human: fail':14}{confusion.false_passes:>13,}{confusion.true_fails:>13,}",
        f"  agreement     {_format_rate(confusion.agreement)}",
        f"  kappa         {kappa}",
        f"  passes found  {_format_rate(confusion.true_pass_rate)}",
        f"  fails found   {_format_rate(confusion.true_fail_rate)}",
    ]
    if found.flips.value is not None:
        pairs = format_count(found.flips.whole, "pair")
        lines.append(f"  flips         {_format_percent(found.flips.value)} of {pairs} of verdicts")
    return [*lines, *(f"  note: {each}" for each in _list_notes(confusion))]


def _list_notes(confusion: ConfusionMatrix) -> list[str]:
    """List what limits the value of a calibration."""
    advice = []
    if confusion.agreement.whole < MIN_CASES or confusion.true_fail_rate.whole < MIN_FAILED_CASES:
        advice.append(
            f"fewer than {MIN_CASES} cases, or than {MIN_FAILED_CASES} that people failed, say"
            " little"
        )
    if confusion.kappa is None:
        advice.append("where both said one and the same of all cases, there is no kappa")
    elif confusion.kappa < SUBSTANTIAL_KAPPA:
        advice.append(f"below a kappa of {SUBSTANTIAL_KAPPA} an evaluator should not hold a gate")
    return advice


def _format_rate(rate: Proportion) -> str:
    if rate.value is None or rate.interval is None:
        return "-"
    low, high = map(_format_percent, rate.interval)
    return f"{_format_percent(rate.value)} ({low} to {high})"


def _format_percent(share: float) -> str:
    return f"{format_number(100 * share, 1)}%"


def render_json(found: Sequence[Calibration]) -> str:
    """Render the calibrations as one line of JSON."""
    told: list[Json] = [
        {
            "evaluator": each.evaluator,
            "cases": each.confusion.agreement.whole,
            "unjudged": each.unscored,
            "confusion": {
                "right_passes": each.confusion.true_passes,
                "wrong_fails": each.confusion.false_fails,
                "wrong_passes": each.confusion.false_passes,
                "right_fails": each.confusion.true_fails,
            },
            "kappa": each.confusion.kappa,
            "agreement": _rate_to_json(each.confusion.agreement),
            "passes_found": _rate_to_json(each.confusion.true_pass_rate),
            "fails_found": _rate_to_json(each.confusion.true_fail_rate),
            "flips": _rate_to_json(each.flips),
        }
        for each in found
    ]
    return f"{json_text.dumps(told)}\n"


def _rate_to_json(rate: Proportion) -> JsonObject:
    interval: Json = None if rate.interval is None else list(rate.interval)
    return {"part": rate.part, "whole": rate.whole, "value": rate.value, "interval": interval}
