"""How far evaluators agree with people: for people and for programs."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import strict_json
from agentci._util.text.escape import one_line
from agentci._util.text.format import count, number
from agentci.gate.agreement import Calibration, Confusion, Rate
from agentci.model.json import Json, JsonObject

# Fewer say too little; by common practice.
ENOUGH_CASES: Final = 50
ENOUGH_FAILS: Final = 15
SUBSTANTIAL: Final = 0.6


def render_text(found: Sequence[Calibration]) -> str:
    """For people: a table an evaluator, and what it comes to."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in found)


def _lines(found: Calibration) -> list[str]:
    confusion = found.confusion
    kappa = "-" if confusion.kappa is None else number(confusion.kappa)
    cases = count(confusion.agreed.whole, "case")
    without = f", {found.unjudged:,} more without a verdict" if found.unjudged else ""
    lines = [
        f"{one_line(found.evaluator)}: {cases} with a label{without}",
        f"{'':16}{'judge: pass':>13}{'judge: fail':>13}",
        f"  {'human: pass':14}{confusion.right_passes:>13,}{confusion.wrong_fails:>13,}",
        f"  {'human: fail':14}{confusion.wrong_passes:>13,}{confusion.right_fails:>13,}",
        f"  agreement     {_share(confusion.agreed)}",
        f"  kappa         {kappa}",
        f"  passes found  {_share(confusion.passed)}",
        f"  fails found   {_share(confusion.failed)}",
    ]
    if found.flips.value is not None:
        pairs = count(found.flips.whole, "pair")
        lines.append(f"  flips         {_percent(found.flips.value)} of {pairs} of verdicts")
    return [*lines, *(f"  note: {each}" for each in _advice(confusion))]


def _advice(confusion: Confusion) -> list[str]:
    """What keeps a calibration from meaning much."""
    advice = []
    if confusion.agreed.whole < ENOUGH_CASES or confusion.failed.whole < ENOUGH_FAILS:
        advice.append(
            f"fewer than {ENOUGH_CASES} cases, or than {ENOUGH_FAILS} that people failed, say"
            " little"
        )
    if confusion.kappa is None:
        advice.append("where both said one and the same of all cases, there is no kappa")
    elif confusion.kappa < SUBSTANTIAL:
        advice.append(f"below a kappa of {SUBSTANTIAL} an evaluator should not hold a gate")
    return advice


def _share(rate: Rate) -> str:
    if rate.value is None or rate.interval is None:
        return "-"
    low, high = map(_percent, rate.interval)
    return f"{_percent(rate.value)} ({low} to {high})"


def _percent(share: float) -> str:
    return f"{number(100 * share, 1)}%"


def render_json(found: Sequence[Calibration]) -> str:
    """The same for programs, in one line."""
    told: list[Json] = [
        {
            "evaluator": each.evaluator,
            "cases": each.confusion.agreed.whole,
            "unjudged": each.unjudged,
            "confusion": {
                "right_passes": each.confusion.right_passes,
                "wrong_fails": each.confusion.wrong_fails,
                "wrong_passes": each.confusion.wrong_passes,
                "right_fails": each.confusion.right_fails,
            },
            "kappa": each.confusion.kappa,
            "agreement": _rate(each.confusion.agreed),
            "passes_found": _rate(each.confusion.passed),
            "fails_found": _rate(each.confusion.failed),
            "flips": _rate(each.flips),
        }
        for each in found
    ]
    return f"{strict_json.dumps(told)}\n"


def _rate(rate: Rate) -> JsonObject:
    interval: Json = None if rate.interval is None else list(rate.interval)
    return {"part": rate.part, "whole": rate.whole, "value": rate.value, "interval": interval}
