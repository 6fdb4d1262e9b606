"""The reference of configs as Markdown, from their JSON Schema."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
# Key, value, default, description.
Row: TypeAlias = tuple[str, str, str, str]
# Longer lists of choices are on a page that the description names.
MOST_CHOICES = 15

KINDS = {
    "array": "list",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "object": "mapping",
    "string": "",  # most keys
}
# Of judges, whose mappings are None where they are left out, and so stand among other kinds.
JUDGES = {"judge": "SharedJudgeSpec", "judge.auth": "AuthSpec", "judge.price": "PriceSpec"}


def config_reference(schema: Schema) -> str:
    """Write a section per mapping; rows that several evaluator types share are listed once.

    Checks and graders are on pages of their own.
    """
    definitions = schema["$defs"]
    types = {
        definitions[name]["properties"]["type"]["const"]: definitions[name]
        for each in schema["properties"]["evaluators"]["items"]["oneOf"]
        if (name := _named(each["$ref"]))
    }
    users: dict[Row, list[str]] = {}
    for name, part in types.items():
        for row in _rows(part, definitions):
            users.setdefault(row, []).append(name)
    sections = [_section("Top level", "", _rows(schema, definitions))]
    shared = {row: names for row, names in users.items() if len(names) > 1}
    sections.append(_shared_section("Fields of several evaluator types", shared, len(types)))
    for name, part in types.items():
        own = [row for row in _rows(part, definitions) if row not in shared]
        sections.append(_section(f"`type: {name}`", part["description"], own))
    mappings = {"gate": _named(schema["properties"]["gate"]["$ref"]), **JUDGES}
    for path, name in mappings.items():
        # The top level already describes its own keys.
        description = "" if path in schema["properties"] else definitions[name]["description"]
        rows = _rows(definitions[name], definitions)
        sections.append(_section(f"`{path}`", description, rows))
    return "\n\n".join(sections)


def checks_reference(schema: Schema) -> str:
    """List the checks with their values, then the options of their long form."""
    definitions = schema["$defs"]
    _, _, *long = schema["properties"]["checks"]["items"]["anyOf"]
    lines: list[str] = []
    users: dict[Row, list[str]] = {}
    for each in long:
        part = definitions[_named(each["$ref"])]
        names = _list_choices(part["properties"]["check"])
        shown = ", ".join(f"`{name}`" for name in names)
        meaning = part["description"].replace(
            "see agentci's docs/checks.md", "see [below](#trajectory)"
        )
        value = part["properties"]["value"]["description"].rstrip(".")
        kind = value if value[:2].isupper() else value[0].lower() + value[1:]
        lines.append(f"- {shown} ({kind}): {meaning}")
        for row in _rows(part, definitions):
            if row[0] not in ("`check`", "`value`"):
                users.setdefault(row, []).append(names[0])
    listed = "\n".join(lines)
    return f"{listed}\n\n{_shared_section('Options of the long form', users, len(long))}"


def list_choices(choices: Iterable[str], default: str = "") -> str:
    """List choices as code, the default in bold type."""
    return "/".join(f"**`{each}`**" if each == default else f"`{each}`" for each in choices)


def _list_choices(part: Schema) -> Sequence[str]:
    return part.get("enum") or [part["const"]]


def graders_reference(schema: Schema) -> str:
    """Write a section per grader of ``type: openai_eval``; shared rows are listed once, last."""
    definitions = schema["$defs"]
    graders = {
        name: definitions[_named(reference)]
        for name, reference in _grader_mapping(definitions).items()
    }
    rows = {name: list(_rows(part, definitions)) for name, part in graders.items()}
    users: dict[Row, list[str]] = {}
    for name, own in rows.items():
        for row in own:
            users.setdefault(row, []).append(name)
    shared = {row: names for row, names in users.items() if len(names) > 1}
    sections = [
        _section(
            f"`{name}`",
            part["description"],
            [row for row in rows[name] if row not in shared],
            "###",
        )
        for name, part in graders.items()
    ]
    title = "Fields of several graders"
    return "\n\n".join([*sections, _shared_section(title, shared, len(graders), "###")])


def _grader_mapping(definitions: Schema) -> Mapping[str, str]:
    """Return the graders by type, with references to their definitions."""
    [mapping] = (
        grader["discriminator"]["mapping"]
        for part in definitions.values()
        if part.get("properties", {}).get("type", {}).get("const") == "openai_eval"
        and (grader := part["properties"]["grader"])
    )
    found: Mapping[str, str] = mapping
    return found


def _section(title: str, description: str, rows: Iterable[Row], level: str = "##") -> str:
    head = f"{level} {title}\n{description}".rstrip("\n")
    return f"{head}\n\n" + "\n".join(map(_format_row, rows))


def _shared_section(
    title: str, shared: Mapping[Row, Sequence[str]], types: int, level: str = "##"
) -> str:
    """List rows of several types, grouped by these types."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row, names in shared.items():
        groups.setdefault(tuple(names), []).append(row)
    text = f"{level} {title}\n"
    for names, rows in groups.items():
        listed = "All types" if len(names) == types else ", ".join(f"`{each}`" for each in names)
        text += f"\n{listed}:\n\n" + "\n".join(map(_format_row, rows)) + "\n"
    return text.rstrip("\n")


def _format_row(row: Row) -> str:
    key, kind, default, description = row
    facts = ", ".join(filter(None, (kind, default and f"default {default}")))
    linked = re.sub(r"(?:\bagentci's )?\bdocs/(([a-z-]+)\.md)", r"[\2](\1)", description)
    return f"- {key}{f' ({facts})' if facts else ''}: {linked}"


def _rows(part: Schema, definitions: Schema) -> Iterator[Row]:
    required = part.get("required", [])
    for key, value in part["properties"].items():
        snake = re.sub(r"(?<=[a-z])([A-Z])", lambda upper: f"_{upper[0].lower()}", key)
        if (
            key == "type"
            or value.get("deprecated")
            or (key != snake and snake in part["properties"])
        ):
            continue  # named in the title; without effect; a camelCase spelling of the same field
        yield (
            f"`{key}`",
            ", ".join(filter(None, (_kind(value), "required" if key in required else ""))),
            _default(value),
            value.get("description") or _referred(value, definitions).get("description", ""),
        )


def _kind(part: Schema) -> str:
    """Describe the values that a key may have."""
    if "anyOf" in part:
        given = [each for each in part["anyOf"] if each.get("type") != "null"]
        shown = [*filter(_is_shown, given)] or given
        kinds = dict.fromkeys(map(_kind, shown))
        return " or ".join(kind or "text" for kind in kinds) if len(kinds) > 1 else "".join(kinds)
    if "discriminator" in part:
        return KINDS["object"]
    if choices := part.get("enum") or [part[key] for key in ("const",) if key in part]:
        listed = list_choices(map(str, choices), str(part.get("default", "")))
        return listed if len(choices) <= MOST_CHOICES else ""
    if "maximum" in part:
        return f"{part['minimum']}-{_shown(part['maximum'])}"
    kind = KINDS.get(part.get("type", "object" if "$ref" in part else ""), "anything")
    return "" if kind == KINDS["boolean"] and _default(part) else kind


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def _is_shown(kind: Schema) -> bool:
    """Whether to list a kind: a pattern for lower-case spellings is left out."""
    return "pattern" not in kind


def _default(part: Schema) -> str:
    """Return the default as code; that of booleans is false, that of choices is in their list."""
    default = part.get("default")
    if default is False or default in (None, [], {}) or {"const", "enum"} & part.keys():
        return ""
    return f"`{json.dumps(part['default'])}`".replace('"', "")


def _referred(part: Schema, definitions: Schema) -> Schema:
    return definitions[_named(part["$ref"])] if "$ref" in part else {}


def _named(reference: str) -> str:
    return reference.rpartition("/")[2]
