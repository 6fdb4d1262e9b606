"""The interface of AgentV's evaluators, the base of their entries, and their build context."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import ConfigDict, Field

from agentci.evaluators.agentv.findings import PassThreshold, format_pass_score
from agentci.evaluators.agentv.judge_templates import TemplateReader
from agentci.evaluators.agentv.payload import PayloadFormat
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.fields import Name, Share, StrictModel
from agentci.evaluators.judge_config import JudgeSettings, JudgeSpec
from agentci.model.case import Case
from agentci.model.judgement import NO_REPETITION, EvaluatorIdentity, Repetition
from agentci.model.judges import RequiredJudge
from agentci.model.problem import Place
from agentci.model.requests import Task

NonNegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT_WEIGHT: Final = 1.0


def leave_out_of_required(*names: str) -> Any:
    """A JSON Schema that does not ask for fields that are filled in where they are missing."""

    def leave(schema: dict[str, Any]) -> None:
        schema["required"] = [each for each in schema.get("required", ()) if each not in names]

    return leave


class AgentvEntry(StrictModel):
    """What the entries of all evaluators share."""

    model_config = ConfigDict(json_schema_extra=leave_out_of_required("name"))

    name: Name = Field(
        description="Name of the evaluator in reports. In files with `tests` it may be left out."
    )
    type: str
    weight: NonNegative = Field(
        default=DEFAULT_WEIGHT, description="How much its score counts in the score of its case."
    )
    required: bool | Share = Field(
        default=True,
        description="Whether it can shut the gate; with `false` it is advisory and only warns. "
        "A number is the score that it has to reach.",
    )
    min_score: Share | None = Field(
        default=None, description="Score that it has to reach to pass; by default 0.8."
    )
    negate: bool = Field(
        default=False, description="Whether what it looks for must not be: the score is turned."
    )

    @property
    def repetition(self) -> Repetition:
        """Once, save in types that may say something else each time."""
        return NO_REPETITION


E = TypeVar("E", bound=AgentvEntry)

# Files of AgentV 4 list `tests`; some rules are others in them.
AgentvVersion: TypeAlias = Literal["seed", "v4"]


class AgentvEvaluator(Evaluator, Protocol):
    """An evaluator that always has something to judge, so that others can be made of it."""

    def ask(self, case: Case) -> Task:
        """Say what has to be done to judge ``case``."""
        ...


class AgentvContext(Struct, frozen=True, kw_only=True):
    """What an entry cannot say of itself.

    Attributes:
        place: the entry in its file.
        find_place: the value of one of its fields; the entry where it has none of that name.
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
    find_place: Callable[[str], Place]
    version: AgentvVersion
    pass_score: float
    wire: PayloadFormat
    folder: Callable[[str | None], str]
    home: str | None
    judges: JudgeSettings
    templates: TemplateReader
    members: tuple[AgentvEvaluator, ...] = ()


class AgentvEvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read, and what becomes of them.

    Attributes:
        entry: its fields; from it come the JSON Schema and the messages.
        build: makes the evaluator; raises InputError where its surroundings do.
        aliases: other names of the type.
        has_members: whether its entries list evaluators in turn.
    """

    entry: type[E]
    build: Callable[[E, AgentvContext], AgentvEvaluator]
    aliases: tuple[str, ...] = ()
    has_members: bool = False


AnyAgentvEvaluatorType: TypeAlias = AgentvEvaluatorType[Any]


def make_pass_threshold(entry: AgentvEntry, surroundings: AgentvContext) -> PassThreshold:
    """What an evaluator has to reach."""
    line = surroundings.pass_score if isinstance(entry.required, bool) else entry.required
    return PassThreshold(
        score=line if entry.min_score is None else entry.min_score, negated=entry.negate
    )


def make_agentv_identity(entry: AgentvEntry, surroundings: AgentvContext) -> EvaluatorIdentity:
    """What reports show of an evaluator."""
    line = make_pass_threshold(entry, surroundings).score
    return EvaluatorIdentity(
        name=entry.name,
        type=entry.type,
        requirement=format_pass_score(line),
        threshold=line,
        required=entry.required is not False,
        place=surroundings.place,
        weight=entry.weight,
        repetition=entry.repetition,
    )


def make_wanted_panel(
    name: str, own: JudgeSpec | None, surroundings: AgentvContext
) -> RequiredJudge:
    """The panel of the evaluator ``name``.

    Args:
        own: what its entry says.

    Raises:
        InputError: nobody said who judges.
    """
    place = surroundings.find_place("type" if own is None else "judge")
    return RequiredJudge(judge=surroundings.judges.panel(own, place), name=name, place=place)
