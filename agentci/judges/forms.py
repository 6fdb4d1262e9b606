"""The form of a verdict: as a JSON Schema, and in words for models that take none."""

from typing import Final

from agentci.model.json import JsonObject
from agentci.model.judging import Form
from agentci.text.words import number

# Of the schema, where an API wants one.
NAME: Final = "verdict"


def schema_of(form: Form) -> JsonObject:
    """A schema that every service takes: all members required, no bounds, none beside them.

    The reason comes first, so that a model argues before it rates.
    """
    return {
        "type": "object",
        "properties": {
            form.reason_name: {"type": "string"},
            form.value_name: {"type": form.kind},
        },
        "required": [form.reason_name, form.value_name],
        "additionalProperties": False,
    }


def contract_of(form: Form) -> str:
    """The same in words, with the bounds."""
    value = (
        "true or false"
        if form.kind == "boolean"
        else f"a number from {number(form.low)} to {number(form.high)}"
    )
    return (
        "Reply with one JSON object and nothing else:"
        f' {{"{form.reason_name}": "your reasons, in a few sentences",'
        f' "{form.value_name}": {value}}}'
    )
