"""The calibration report: agreement of evaluators with human labels, and its notes."""

import json

import pytest

from agentci.cli.commands.calibrate import render_json, render_text
from agentci.gate.statistics import Calibration, ConfusionMatrix, Proportion

RELIABLE = ConfusionMatrix(true_passes=1000, false_fails=2, false_passes=1, true_fails=30)


def of(confusion: ConfusionMatrix, **others: Proportion) -> Calibration:
    flips = others.get("flips", Proportion(part=0, whole=0))
    return Calibration(evaluator="tone", confusion=confusion, without_result=0, flips=flips)


def test_reliable_evaluator_has_no_notes() -> None:
    text = render_text([of(RELIABLE, flips=Proportion(part=1, whole=1))])
    assert text == (
        "tone: 1,033 cases with a label\n"
        "                  evaluator: pass  evaluator: fail\n"
        "  human: pass               1,000                2\n"
        "  human: fail                   1               30\n"
        "  agreement     99.7% (99.2% to 100%)\n"
        "  kappa         0.951\n"
        "  passes found  99.8% (99.4% to 100%)\n"
        "  fails found   96.8% (85.3% to 100%)\n"
        "  flips         100% of 1 pair of repeats\n"
    )


@pytest.mark.parametrize(
    ("confusion", "notes"),
    [
        (ConfusionMatrix(true_passes=100, true_fails=14), ["too few labels"]),
        (ConfusionMatrix(true_passes=20, true_fails=20), ["too few labels"]),
        (ConfusionMatrix(true_passes=30, false_passes=15, true_fails=15), ["kappa is below 0.6"]),
        (ConfusionMatrix(true_passes=100), ["too few labels", "kappa is undefined"]),
    ],
)
def test_unreliable_figures_have_notes(confusion: ConfusionMatrix, notes: list[str]) -> None:
    lines = [line for line in render_text([of(confusion)]).splitlines() if "note: " in line]
    assert len(lines) == len(notes)
    for line, note in zip(lines, notes, strict=True):
        assert line.startswith(f"  note: {note}")


def test_each_evaluator_has_its_own_section() -> None:
    assert render_text([of(RELIABLE), of(RELIABLE)]).count("\n\ntone: 1,033 cases") == 1


def test_evaluator_name_cannot_inject_workflow_command() -> None:
    found = Calibration(
        evaluator="a\n::error::b",
        confusion=RELIABLE,
        without_result=3,
        flips=Proportion(part=0, whole=0),
    )
    assert "\n::error::" not in render_text([found])
    assert json.loads(render_json([found]))[0]["evaluator"] == "a\n::error::b"
