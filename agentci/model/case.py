"""What is put before an evaluator: a recorded run beside what was expected of it."""

from msgspec import Struct

from agentci.model.dataset import Row
from agentci.model.place import Place
from agentci.model.rubric import Rubric
from agentci.model.sample import Sample
from agentci.model.trace import Trace, Turn
from agentci.model.transcript import Transcript


class Golden(Struct, frozen=True, kw_only=True):
    """A golden case: the turns that a good agent would take.

    Attributes:
        rubrics: what the answer to each turn has to fulfil; those of the whole case included.
    """

    id: str
    turns: tuple[Turn, ...]
    place: Place
    rubrics: tuple[tuple[Rubric, ...], ...] = ()


class GoldenSet(Struct, frozen=True, kw_only=True):
    """The golden cases of one eval set file, in its order; those without turns included."""

    id: str
    cases: tuple[Golden, ...]
    place: Place


class Case(Struct, frozen=True, kw_only=True):
    """A recorded run and, where one was found, its golden case.

    Attributes:
        id: unique in a run; the golden case's id where there is one (it stays the same when the
            agent is recorded anew), else the trace's or the conversation's.
        no_golden_because: why ``golden`` is None ("no matching eval case").
        sample, transcript: the case of an eval file, and its run message by message; None where
            cases come from recordings.
        no_run_because: why there is nothing to judge, where that is known; its checks are errored.
        row: of the dataset, that the agent was asked by; None where there is none.
    """

    id: str
    trace: Trace
    golden: Golden | None = None
    no_golden_because: str | None = None
    sample: Sample | None = None
    transcript: Transcript | None = None
    no_run_because: str | None = None
    row: Row | None = None


class Exchange(Struct, frozen=True, kw_only=True):
    """What reports quote of a turn; ``answered`` is None where the agent gave no answer."""

    asked: str
    answered: str | None


class Synopsis(Struct, frozen=True, kw_only=True):
    """What reports show of a case: all that is kept of it, since there may be very many.

    Attributes:
        id, trace, golden: the ids of the case, of its trace and of its golden case.
        group: what it shares with cases that are no others: a golden case, the row of a dataset, a
            conversation; else its own id.
        no_golden_because, no_run_because: as in ``Case``.
        recording: where it was recorded.
        dialogue: one a turn.
        warnings: what had to be guessed or dropped while it was read.
        performance: latency, tokens and counts in JSON, on one line.
    """

    id: str
    trace: str
    group: str
    golden: str | None = None
    no_golden_because: str | None = None
    no_run_because: str | None = None
    recording: Place
    dialogue: tuple[Exchange, ...] = ()
    warnings: tuple[str, ...] = ()
    performance: str | None = None
