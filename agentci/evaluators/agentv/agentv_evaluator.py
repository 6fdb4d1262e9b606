"""The interface of AgentV's evaluators, the base of their entries, and their build context."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import ConfigDict, Field

from agentci._util.text.format import format_criterion
from agentci.evaluators.agentv.findings import PassThreshold
from agentci.evaluators.agentv.judge_templates import TemplateReader
from agentci.evaluators.agentv.payload import PayloadFormat
from agentci.evaluators.evaluator import ComparableEvaluator, Definition, Facts, define_entry
from agentci.evaluators.fields import Name, Share, StrictModel, optional
from agentci.evaluators.judge_config import JudgeSettings, JudgeSpec, TargetJudgeSpec
from agentci.model.case import Case
from agentci.model.judges import RequiredJudge
from agentci.model.requests import NO_REPETITION, EvaluatorIdentity, Repetition, Task
from agentci.model.values import Place

NonNegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT_WEIGHT: Final = 1.0


def leave_out_of_required(*names: str) -> Any:
    """Make a JSON Schema hook that marks fields with a filled-in default as optional."""

    def leave(schema: dict[str, Any]) -> None:
        schema["required"] = [each for each in schema.get("required", ()) if each not in names]

    return leave


class AgentvEntry(StrictModel):
    """Fields shared by the entries of all evaluators."""

    model_config = ConfigDict(json_schema_extra=leave_out_of_required("name"))

    name: Name = Field(
        description="Name of the evaluator in reports; optional in files with `tests`."
    )
    type: str
    weight: NonNegative = optional(
        "Weight of its score in the score of the case.", default=DEFAULT_WEIGHT
    )
    required: bool | Share = optional(
        "Whether it can fail the gate; if `false`, it only warns. A number is the "
        "threshold of the score.",
        default=True,
    )
    min_score: Share | None = optional("Threshold of the score; by default 0.8.")
    negate: bool = optional(
        "Whether the result is inverted: the score becomes 1 - score, and hits and "
        "misses are swapped.",
        default=False,
    )

    @property
    def repetition(self) -> Repetition:
        """No repetition, except in types whose results can vary."""
        return NO_REPETITION


E = TypeVar("E", bound=AgentvEntry)

# AgentV 4 files list `tests`; some rules differ in them.
AgentvVersion: TypeAlias = Literal["seed", "v4"]


class AgentvEvaluator(ComparableEvaluator, Protocol):
    """An evaluator that never skips a case, so that a composite can combine it."""

    def ask(self, case: Case) -> Task:
        """Return what has to be done to evaluate ``case``."""


class AgentvContext(Struct, frozen=True, kw_only=True):
    """What an evaluator needs besides its entry.

    Attributes:
        place: the entry in its file.
        find_place: returns the place of one of the entry's fields, or of the entry if the field is
            not there.
        version: the AgentV version of the file.
        pass_score: the passing score, if the entry sets none.
        wire: the payload format, if the entry sets none.
        folder: returns the absolute path of the folder that an entry names, or of the file's folder
            if it names none; raises InputError if the folder is missing or outside the allowed
            folders.
        home: absolute path of the repository of the file, if that is not the workspace.
        judges: the judge models.
        find_target: returns the judge of a target in AgentV's list, by its name and where the entry
            names it; raises InputError if there is none.
        templates: reads the templates of judge prompts.
        members: the evaluators that the entry lists.
    """

    place: Place
    find_place: Callable[[str], Place]
    version: AgentvVersion
    pass_score: float
    wire: PayloadFormat
    folder: Callable[[str | None], str]
    home: str | None
    judges: JudgeSettings
    find_target: Callable[[str, Place], TargetJudgeSpec]
    templates: TemplateReader
    members: tuple[AgentvEvaluator, ...] = ()


class AgentvEvaluatorType(Struct, Generic[E], frozen=True, kw_only=True):
    """How entries of one type are read and built.

    Attributes:
        entry: the entry's model, which defines the JSON Schema and the error messages.
        build: makes the evaluator; raises InputError if the context does.
        aliases: other names of the type.
        has_members: whether its entries list evaluators.
    """

    entry: type[E]
    build: Callable[[E, AgentvContext], AgentvEvaluator]
    aliases: tuple[str, ...] = ()
    has_members: bool = False


AnyAgentvEvaluatorType: TypeAlias = AgentvEvaluatorType[Any]


def make_pass_threshold(entry: AgentvEntry, context: AgentvContext) -> PassThreshold:
    """Return the threshold of an entry's evaluator."""
    own = entry.min_score
    if own is None and not isinstance(entry.required, bool):
        own = entry.required
    return PassThreshold(
        score=context.pass_score if own is None else own,
        negated=entry.negate,
        is_own=own is not None,
    )


def make_agentv_identity(entry: AgentvEntry, context: AgentvContext) -> EvaluatorIdentity:
    """Return how reports identify an evaluator."""
    pass_score = make_pass_threshold(entry, context).score
    return EvaluatorIdentity(
        name=entry.name,
        type=entry.type,
        criterion=format_criterion(pass_score),
        threshold=pass_score,
        required=entry.required is not False,
        place=context.place,
        weight=entry.weight,
        repetition=entry.repetition,
    )


def define_agentv_entry(
    entry: AgentvEntry, context: AgentvContext, **resolved: Facts
) -> Definition:
    """Define an evaluator by its entry, with the threshold that applies to it.

    Args:
        resolved: as in ``define_entry``.
    """
    threshold = make_pass_threshold(entry, context).score
    given = define_entry(entry, **{"min_score": threshold, **resolved})
    return {key: value for key, value in given.items() if key != "weight"}


def make_required_judge(
    name: str, own: JudgeSpec | None, context: AgentvContext, *, target: str | None = None
) -> RequiredJudge:
    """Return the judge model of the evaluator ``name``.

    Args:
        own: the entry's own ``judge``.
        target: a target in AgentV's list; used if there is no ``own`` and no ``--judge-model``.

    Raises:
        InputError: no judge model is configured.
    """
    if own is None and target and not context.judges.model:
        place = context.find_place("target")
        return context.judges.require(context.find_target(target, place), name=name, place=place)
    place = context.find_place("type" if own is None else "judge")
    return context.judges.require(own, name=name, place=place)
