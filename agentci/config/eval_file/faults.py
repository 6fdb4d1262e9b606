"""What is wrong with a part of an eval file that its model does not accept."""

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentci.config.schema_words import Schema
from agentci.config.violations import breaches
from agentci.config.yaml_document import YamlDocument
from agentci.model.problem import Problem
from agentci.text.names import one_of, quoted

Path = tuple[str | int, ...]


def faults(
    error: ValidationError, schema: Schema, document: YamlDocument, *, at: Path, noun: str
) -> Sequence[Problem]:
    """The breaches of the ``schema`` of the part, else what the model knows beyond it.

    Args:
        at: where the part is.
        noun: what it is: ``case``.
    """
    found = breaches(document, schema, at=at, noun=noun)
    return found or [
        Problem(message=_said(each), place=document.place_of((*at, *each["loc"])))
        for each in error.errors(include_url=False, include_input=False)
    ]


def _said(error: ErrorDetails) -> str:
    """A message of a model; for a part of several types, which there are."""
    match error["type"]:
        case "union_tag_invalid":
            names = error["ctx"]["expected_tags"].replace("'", "").split(", ")
            known = [name for name in names if "-" not in name]
            return f"type must be {one_of(known)}, not {quoted(error['ctx']['tag'])}"
        case "union_tag_not_found":
            return f"{error['loc'][-1]} has no 'type'"
        case _:
            return error["msg"].removeprefix("Value error, ")
