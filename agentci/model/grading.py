"""What a service is asked to grade, and what it graded: values, to be compared."""

from msgspec import Struct

from agentci.model.json import JsonObject
from agentci.model.place import Place


class EvalsService(Struct, frozen=True, kw_only=True):
    """A server of OpenAI's Evals API.

    Attributes:
        base_url: what its paths begin with, ``/openai/v1`` included.
        key_variable: name of the environment variable with the key; empty where none is needed.
    """

    base_url: str
    key_variable: str = ""


class WantedService(Struct, frozen=True, kw_only=True):
    """A service that has to be able to grade before anything is judged.

    Attributes:
        name: of the evaluator, for messages.
        place: where a config names the service.
    """

    service: EvalsService
    name: str
    place: Place


class GradeRemotely(Struct, frozen=True, kw_only=True):
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


class RemoteGrade(Struct, frozen=True, kw_only=True):
    """What a service says of one item.

    Attributes:
        score: on the scale of the grader.
        details: in the words of the service.
    """

    score: float
    passed: bool
    details: JsonObject


class RemoteGrades(Struct, frozen=True, kw_only=True):
    """The grades of all items, in their order."""

    grades: tuple[RemoteGrade, ...]
