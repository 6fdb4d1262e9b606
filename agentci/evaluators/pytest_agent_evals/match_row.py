"""Which row of a dataset a recording is of, and what becomes of rows that no recording is of."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci._util.text.suggest import quote_name
from agentci.evaluators.agentevals.match_eval_case import EvalCaseIndex, EvalCaseMatcher
from agentci.model.case import Case, Dataset, DatasetRow, EvalCase
from agentci.model.problem import Problem
from agentci.model.trace import Trace, Turn
from agentci.model.values import replace

NO_RECORDING: Final = "no recording is of this row"
NO_RESPONSE: Final = "the row has no `response`, and there are no recordings to look for one in"


class RowMatcher:
    """The rows of a dataset, each of which is judged whatever was recorded.

    A recording is of the row whose id it names as its eval case, else of the row whose query it
    begins with, where there is one such row.

    Attributes:
        problems: what is worth knowing about the recordings that were paired.
    """

    def __init__(self, dataset: Dataset, *, carries_runs: bool) -> None:
        """Begin.

        Args:
            carries_runs: there are no recordings beside it.
        """
        self._rows = {row.id: row for row in dataset.rows}
        self._index = EvalCaseIndex(map(_make_row_case, self._rows.values()), are_alone=False)
        self._lack = NO_RESPONSE if carries_runs else NO_RECORDING
        self.problems: list[Problem] = []

    def cases(self, traces: Iterable[Trace], matching: EvalCaseMatcher) -> Iterator[Case]:
        """A case for each recording, and one for each row that none of them is of."""
        left = dict(self._rows)
        for trace in traces:
            found = self._index.find(trace)
            if isinstance(found, EvalCase):
                left.pop(found.id, None)
                yield matching.make_case(trace, self._rows[found.id])
            else:
                self.problems.append(_make_unmatched_problem(trace))
                yield matching.make_case(trace)
        for row in left.values():
            case = matching.make_case(make_row_trace(row), row)
            yield case if row.turn else replace(case, missing_run_reason=self._lack)


def _make_row_case(row: DatasetRow) -> EvalCase:
    """A row, as far as recordings are told by it."""
    return EvalCase(id=row.id, turns=(Turn(id="", user_text=row.query),), place=row.place)


def make_row_trace(row: DatasetRow) -> Trace:
    """What the agent did, as a recording of one turn, or of none."""
    turns = (row.turn,) if row.turn else ()
    return Trace(id=row.id, key=row.id, turns=turns, place=row.place)


def _make_unmatched_problem(trace: Trace) -> Problem:
    asked = f" ({quote_name(trace.turns[0].user_text)})" if trace.turns else ""
    return Problem(
        message=f"a recording is of no row of the dataset{asked}",
        place=trace.place,
        hint="it begins with the query of a row, or names its id as its eval case",
        severity="warning",
    )
