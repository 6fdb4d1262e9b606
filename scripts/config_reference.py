"""The reference of configs as Markdown, from their JSON Schema."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

KINDS = {
    "array": "list",
    "boolean": "`true` · `false`",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "string": "string",
}
# Of judges, whose mappings are None where they are left out, and so stand among other kinds.
JUDGES = {"judge": "SharedJudgeSpec", "judge.auth": "AuthSpec", "judge.price": "PriceSpec"}
HEAD = "| key | value | default | what it does |\n| --- | --- | --- | --- |"


def config_reference(schema: Schema) -> str:
    """A section for the top level, for each type of evaluator and for every other mapping."""
    definitions = schema["$defs"]
    types = [_named(each["$ref"]) for each in schema["properties"]["evaluators"]["items"]["oneOf"]]
    gate = _named(schema["properties"]["gate"]["$ref"])
    sections = [("Top level", schema)]
    for name in types:
        type_name = definitions[name]["properties"]["type"]["const"]
        sections.append((f"Evaluators of `type: {type_name}`", definitions[name]))
        grader = definitions[name]["properties"].get("grader", {})
        sections += [
            (f"`grader` of `type: {each}`", definitions[_named(reference)])
            for each, reference in grader.get("discriminator", {}).get("mapping", {}).items()
        ]
    sections.append(("`gate`", definitions[gate]))
    sections += [(f"`{path}`", definitions[name]) for path, name in JUDGES.items()]
    return "\n\n".join(_section(title, part, definitions) for title, part in sections)


def _section(title: str, part: Schema, definitions: Schema) -> str:
    rows = "\n".join(_rows(part, definitions))
    return f"## {title}\n{part['description']}\n\n{HEAD}\n{rows}"


def _rows(part: Schema, definitions: Schema) -> Iterator[str]:
    required = part.get("required", [])
    for key, value in part["properties"].items():
        snake = re.sub(r"(?<=[a-z])([A-Z])", lambda upper: f"_{upper[0].lower()}", key)
        if key != snake and snake in part["properties"]:
            continue  # the same field, spelt as agentevals also does
        cells = (
            f"`{key}`{' (required)' if key in required else ''}",
            _kind(value),
            _default(value),
            value.get("description") or _referred(value, definitions).get("description", ""),
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(part: Schema) -> str:
    """What a value may be, in words."""
    if "anyOf" in part:
        given = [each for each in part["anyOf"] if each.get("type") != "null"]
        shown = [*filter(_is_shown, given)] or given
        return " or ".join(dict.fromkeys(map(_kind, shown)))
    if "discriminator" in part:
        return KINDS["object"]
    if "enum" in part or "const" in part:
        return " · ".join(f"`{value}`" for value in part.get("enum", [part.get("const")]))
    if "maximum" in part:
        return f"{KINDS[part['type']]}, {part['minimum']} to {_shown(part['maximum'])}"
    return KINDS.get(part.get("type", "object" if "$ref" in part else ""), "anything")


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def _is_shown(kind: Schema) -> bool:
    """A spelling in lower case is not worth a word beside the names."""
    return "pattern" not in kind


def _default(part: Schema) -> str:
    if part.get("default") in (None, [], {}):
        return ""
    return f"`{json.dumps(part['default'])}`".replace('"', "")


def _referred(part: Schema, definitions: Schema) -> Schema:
    return definitions[_named(part["$ref"])] if "$ref" in part else {}


def _named(reference: str) -> str:
    return reference.rpartition("/")[2]
