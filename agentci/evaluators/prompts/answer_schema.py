"""The form of a verdict: as a JSON Schema, and as text for models that take no schema."""

from typing import Final

from agentci._util.text.format import format_number
from agentci.model.json import Json, JsonObject
from agentci.model.judges import ChecklistSchema, ScoreSchema, VerdictSchema

# Name of the schema, for APIs that require one.
SCHEMA_NAME: Final = "verdict"

# Members of a checklist and of its items; the names are AgentV's.
CHECKS: Final = "checks"
ID: Final = "id"
SATISFIED: Final = "satisfied"
SCORE: Final = "score"
LABEL: Final = "label"
REASONING: Final = "reasoning"
OVERALL: Final = "overall_reasoning"
_TEXT: Final[JsonObject] = {"type": "string"}


def make_answer_schema(form: VerdictSchema) -> JsonObject:
    """Make a schema that every service accepts: all members required, no others, no bounds.

    Reasons come first, so that a model argues before it rates.
    """
    return (
        _make_checklist_schema(form)
        if isinstance(form, ChecklistSchema)
        else _make_form_schema(form)
    )


def describe_answer_format(form: VerdictSchema) -> str:
    """Describe the schema as text, including bounds."""
    shape = _describe_checklist(form) if isinstance(form, ChecklistSchema) else _describe_form(form)
    return f"Respond with one JSON object and nothing else: {shape}"


def get_mark_field(form: ChecklistSchema) -> str:
    """Return the name of the member that holds an item's mark."""
    names = {"boolean": SATISFIED, "number": SCORE, "label": LABEL}
    return names[form.kind]


def _make_form_schema(form: ScoreSchema) -> JsonObject:
    value = _make_label_schema(form) if form.kind == "label" else {"type": form.kind}
    notes: JsonObject = {name: {"type": "array", "items": _TEXT} for name in form.notes}
    return _make_object_schema({form.reason_name: _TEXT, **notes, form.value_name: value})


def _make_checklist_schema(form: ChecklistSchema) -> JsonObject:
    name: JsonObject = {"type": "string", "enum": list(form.names)}
    kind = "boolean" if form.kind == "boolean" else "integer"
    mark = _make_label_schema(form) if form.kind == "label" else {"type": kind}
    item = _make_object_schema({ID: name, REASONING: _TEXT, get_mark_field(form): mark})
    return _make_object_schema({CHECKS: {"type": "array", "items": item}, OVERALL: _TEXT})


def _make_label_schema(form: VerdictSchema) -> JsonObject:
    return {"type": "string", "enum": list(form.labels)}


def _make_object_schema(properties: JsonObject) -> JsonObject:
    required: Json = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _describe_form(form: ScoreSchema) -> str:
    notes = "".join(f' "{name}": [up to 4 short strings],' for name in form.notes)
    return (
        f'{{"{form.reason_name}": "your reasoning in a few sentences",{notes}'
        f' "{form.value_name}": {_describe_value(form)}}}'
    )


def _describe_checklist(form: ChecklistSchema) -> str:
    return (
        f'{{"{CHECKS}": [for each item {{"{ID}": its id, "{REASONING}": "your reasoning in one'
        f' sentence", "{get_mark_field(form)}": {_describe_value(form)}}}],'
        f' "{OVERALL}": "a summary in one sentence"}}'
    )


def _describe_value(form: VerdictSchema) -> str:
    match form.kind:
        case "boolean":
            return "true or false"
        case "label":
            return "one of " + ", ".join(f'"{label}"' for label in form.labels)
        case _ if isinstance(form, ScoreSchema) and not form.is_bounded:
            return "a number"
        case _:
            noun = "whole number" if isinstance(form, ChecklistSchema) else "number"
            return f"a {noun} from {format_number(form.low)} to {format_number(form.high)}"
