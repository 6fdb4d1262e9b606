"""Results too large to be kept: a run has thousands of them, in memory and in its reports."""

from collections.abc import Sequence
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import count
from agentci._util.text.strict_json import readable
from agentci.evaluators.agentevals.eval_result import EvalResult
from agentci.model.json import Json
from agentci.model.values import replace

MAX_KEPT_BYTES: Final = 256 * 1024
MAX_LINES: Final = 100
MAX_LINE: Final = 1_000
MAX_TURN_SCORES: Final = 10_000

LEFT_OUT: Final = "left_out"


def without_excess(result: EvalResult, *, size: int, shown: Sequence[str]) -> EvalResult:
    """A result as it is, or its verdict and the beginnings of what people read of it.

    Args:
        result: of a program.
        size: how many bytes it was printed in.
        shown: names of the details that reports show.
    """
    if size <= MAX_KEPT_BYTES:
        return result
    note = f"the result has {count(size, 'byte')}; details of more than {MAX_KEPT_BYTES:,} are cut"
    details = {name: _beginning(told) for name in shown if (told := result.details.get(name))}
    return replace(
        result,
        turn_scores=result.turn_scores[:MAX_TURN_SCORES],
        details={**details, LEFT_OUT: note},
    )


def _beginning(value: Json) -> Json:
    if isinstance(value, list):
        lines = [_line(item) for item in value[:MAX_LINES]]
        more = len(value) - len(lines)
        return [*lines, f"\N{HORIZONTAL ELLIPSIS} and {more:,} more"] if more else [*lines]
    return _line(value)


def _line(value: Json) -> str:
    return truncate.characters(value if isinstance(value, str) else readable(value), MAX_LINE)
