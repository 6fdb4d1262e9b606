"""Bodies of requests and answers: JSON as services of models speak it."""

import json
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentci._util.text import escape, truncate
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject

MAX_SHOWN: Final = 200

JSON_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}


class GarbledError(Exception):
    """A success whose body is no JSON; another try may do better."""


class Wire(BaseModel):
    """Part of an answer, of which we take what we know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


W = TypeVar("W", bound=Wire)


def body_of(value: JsonObject) -> bytes:
    """The body of a request: compact, in UTF-8, members in their order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escape.encodable(text).encode()


def parse(kind: type[W], content: bytes) -> W:
    """Take the body of an answer apart.

    Raises:
        GarbledError: it is no JSON.
        EvaluatorError: it is not what the API says.
    """
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise GarbledError from None
        where = ".".join(map(str, first["loc"])) or "the answer"
        said = truncate.short(escape.plain_line(f"{where}: {first['msg']}"), MAX_SHOWN)
        raise EvaluatorError(
            f"the judge's service does not speak the API of its provider ({said}):"
            " see base_url and provider"
        ) from None
