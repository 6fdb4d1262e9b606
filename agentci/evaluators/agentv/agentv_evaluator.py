"""What every evaluator of an eval file is, and what its entry cannot say of itself."""

from collections.abc import Callable
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from agentci.evaluators.agentv.entry_fields import JudgeEntry
from agentci.evaluators.agentv.judge_templates import TemplateReader
from agentci.evaluators.agentv.payload import Wire
from agentci.evaluators.agentv.verdict import Standard, bar_of
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.judge_config import Judges
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.place import Place
from agentci.model.requests import Task

E = TypeVar("E", bound=JudgeEntry)

# Files of AgentV 4 list `tests`; some rules are others in them.
Era: TypeAlias = Literal["seed", "v4"]


class Judge(Evaluator, Protocol):
    """An evaluator that always has something to judge, so that others can be made of it."""

    def ask(self, case: Case) -> Task:
        """Say what has to be done to judge ``case``."""
        ...


class Surroundings(Struct, frozen=True, kw_only=True):
    """What an entry cannot say of itself.

    Attributes:
        place: the entry in its file.
        place_of: the value of one of its fields; the entry where it has none of that name.
        era: of the file.
        line: the score that passes, where the entry names none.
        wire: in which words cases are told, where the entry does not say.
        folder: absolute path of the folder that an entry names, of the file's where it names
            none; raises InputError where there is none, or it is out of bounds.
        home: absolute path of the repository that the file is from, where that is not the
            workspace.
        judges: who judges, for those that ask models.
        templates: reads what judges are asked by.
        members: the evaluators that the entry lists in turn.
    """

    place: Place
    place_of: Callable[[str], Place]
    era: Era
    line: float
    wire: Wire
    folder: Callable[[str | None], str]
    home: str | None
    judges: Judges
    templates: TemplateReader
    members: tuple[Judge, ...] = ()


class JudgeType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and what becomes of them.

    Attributes:
        entry: its fields; from it come the JSON Schema and the messages.
        build: makes the evaluator; raises InputError where its surroundings do.
        also: other names of the type.
        has_members: whether its entries list evaluators in turn.
    """

    entry: type[E]
    build: Callable[[E, Surroundings], Judge]
    also: tuple[str, ...] = ()
    has_members: bool = False


AnyJudgeType: TypeAlias = JudgeType[Any]


def standard_of(entry: JudgeEntry, surroundings: Surroundings) -> Standard:
    """What an evaluator has to reach."""
    line = surroundings.line if isinstance(entry.required, bool) else entry.required
    return Standard(line=line if entry.min_score is None else entry.min_score, negated=entry.negate)


def identity_of(entry: JudgeEntry, surroundings: Surroundings) -> Identity:
    """What reports show of an evaluator."""
    line = standard_of(entry, surroundings).line
    return Identity(
        name=entry.name,
        type=entry.type,
        bar=bar_of(line),
        threshold=line,
        required=entry.required is not False,
        place=surroundings.place,
        weight=entry.weight,
        repetition=entry.repetition,
    )
