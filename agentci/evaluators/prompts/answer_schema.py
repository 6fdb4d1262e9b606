"""The form of a verdict: as a JSON Schema, and in words for models that take none."""

from typing import Final

from agentci._util.text.format import number
from agentci.model.json import Json, JsonObject
from agentci.model.judging import AnyForm, Checklist, Form

# Of the schema, where an API wants one.
NAME: Final = "verdict"

# The members of a checklist, and of its items; AgentV's names.
CHECKS: Final = "checks"
ID: Final = "id"
SATISFIED: Final = "satisfied"
SCORE: Final = "score"
LABEL: Final = "label"
REASONING: Final = "reasoning"
OVERALL: Final = "overall_reasoning"
_TEXT: Final[JsonObject] = {"type": "string"}


def schema_of(form: AnyForm) -> JsonObject:
    """A schema that every service takes: all members required, no bounds, none beside them.

    Reasons come first, so that a model argues before it rates.
    """
    return _of_checklist(form) if isinstance(form, Checklist) else _of_one(form)


def contract_of(form: AnyForm) -> str:
    """The same in words, with the bounds."""
    shape = _checklist_in_words(form) if isinstance(form, Checklist) else _one_in_words(form)
    return f"Reply with one JSON object and nothing else: {shape}"


def mark_name(form: Checklist) -> str:
    """The member of an item that is its mark."""
    names = {"boolean": SATISFIED, "number": SCORE, "label": LABEL}
    return names[form.kind]


def _of_one(form: Form) -> JsonObject:
    value = _label(form) if form.kind == "label" else {"type": form.kind}
    notes: JsonObject = {name: {"type": "array", "items": _TEXT} for name in form.notes}
    return _object({form.reason_name: _TEXT, **notes, form.value_name: value})


def _of_checklist(form: Checklist) -> JsonObject:
    name: JsonObject = {"type": "string", "enum": list(form.names)}
    kind = "boolean" if form.kind == "boolean" else "integer"
    mark = _label(form) if form.kind == "label" else {"type": kind}
    item = _object({ID: name, REASONING: _TEXT, mark_name(form): mark})
    return _object({CHECKS: {"type": "array", "items": item}, OVERALL: _TEXT})


def _label(form: AnyForm) -> JsonObject:
    return {"type": "string", "enum": list(form.labels)}


def _object(properties: JsonObject) -> JsonObject:
    required: Json = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _one_in_words(form: Form) -> str:
    notes = "".join(f' "{name}": [up to 4 short texts],' for name in form.notes)
    return (
        f'{{"{form.reason_name}": "your reasons, in a few sentences",{notes}'
        f' "{form.value_name}": {_value_in_words(form)}}}'
    )


def _checklist_in_words(form: Checklist) -> str:
    return (
        f'{{"{CHECKS}": [for each of them {{"{ID}": its id, "{REASONING}": "your reasons, in a'
        f' sentence", "{mark_name(form)}": {_value_in_words(form)}}}],'
        f' "{OVERALL}": "what they come to, in a sentence"}}'
    )


def _value_in_words(form: AnyForm) -> str:
    match form.kind:
        case "boolean":
            return "true or false"
        case "label":
            return "one of " + ", ".join(f'"{label}"' for label in form.labels)
        case _ if isinstance(form, Form) and not form.is_bounded:
            return "a number"
        case _:
            noun = "whole number" if isinstance(form, Checklist) else "number"
            return f"a {noun} from {number(form.low)} to {number(form.high)}"
