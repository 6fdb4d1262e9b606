"""The baseline's turns, taken back from a content to which they were added."""

from typing import Any

import pytest

from agentci.model.result import CallContent, RunContent, TurnContent
from agentci.reports.content_baseline import add_baseline, restore_baseline


def _run(*turns: TurnContent) -> RunContent:
    return RunContent(turns=turns)


def _turn(answer: str | None, **given: Any) -> TurnContent:
    return TurnContent(user="x", answer=answer, **given)


CALL = CallContent(name="f", arguments={"a": 1}, result="r", ms=3.0)
OTHER = CallContent(name="f", arguments={"a": 2})


@pytest.mark.parametrize(
    ("now", "before"),
    [
        pytest.param(_run(_turn("a", calls=(CALL,))), _run(_turn("a", calls=(CALL,))), id="same"),
        pytest.param(_run(_turn("a")), _run(_turn("b", latency_ms=9.0)), id="answer"),
        pytest.param(_run(_turn("a", calls=(CALL,))), _run(_turn("a", calls=(OTHER,))), id="call"),
        pytest.param(_run(_turn("a"), _turn("b")), _run(_turn("a")), id="more turns"),
        pytest.param(_run(_turn("a")), _run(_turn("a"), _turn("b")), id="fewer turns"),
        pytest.param(_run(_turn("a")), _run(_turn("b", cut={"answer": 7})), id="shortened"),
        pytest.param(
            _run(_turn("a"), _turn(None, missing=True)), _run(_turn("a"), _turn("b")), id="missing"
        ),
        pytest.param(_run(_turn("a")), _run(), id="no turns"),
    ],
)
def test_restored_baseline_compares_as_the_original(now: RunContent, before: RunContent) -> None:
    shown = add_baseline(now, before)
    restored = restore_baseline(shown)
    assert [turn.answer for turn in restored.turns] == [turn.answer for turn in before.turns]
    assert add_baseline(now, restored) == shown
