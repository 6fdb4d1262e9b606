"""What a service is asked to grade, and what it graded: values, to be compared."""

from dataclasses import dataclass

from agentci.model.json import JsonObject
from agentci.model.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalsService:
    """A server of OpenAI's Evals API.

    Attributes:
        base_url: what its paths begin with, ``/openai/v1`` included.
        key_variable: name of the environment variable with the key; empty where none is needed.
    """

    base_url: str
    key_variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedService:
    """A service that has to be able to grade before anything is judged.

    Attributes:
        name: of the evaluator, for messages.
        place: where a config names the service.
    """

    service: EvalsService
    name: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRemotely:
    """Have a service grade.

    Attributes:
        name: of the run, at the service.
        criterion: the grader, as the API writes it.
        items: what is graded, each with the same members.
        timeout_seconds: from the first request to the last grade.
    """

    service: EvalsService
    name: str
    criterion: JsonObject
    items: tuple[JsonObject, ...]
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteGrade:
    """What a service says of one item.

    Attributes:
        score: on the scale of the grader.
        details: in the words of the service.
    """

    score: float
    passed: bool
    details: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteGrades:
    """The grades of all items, in their order."""

    grades: tuple[RemoteGrade, ...]
