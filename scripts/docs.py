"""Writes the generated parts of action.yml and docs/ from the code and the schema.

``python -m scripts.docs`` writes; ``--check`` only lists stale files (exit 1).
"""

import json
import re
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

from agentci.cli.arguments import make_parser
from agentci.config.options import OPTIONS, Option
from agentci.recordings.exports import EXPORT_FORMATS
from agentci.recordings.telemetry.conventions.registry import CONVENTIONS
from agentci.recordings.transcripts.formats import TRANSCRIPT_FORMATS
from scripts.config_reference import (
    checks_reference,
    config_reference,
    graders_reference,
    list_choices,
)
from scripts.framework_sections import framework_sections, frameworks_list

ROOT = Path(__file__).parent.parent
CONFIG_HELP = "Configs: files, folders or globs; default: all that are found."


def main(arguments: list[str]) -> int:
    """Write stale files, or with ``--check`` only list them."""
    stale = [
        path
        for path, text in generated().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `make docs`")
        return 1 if stale else 0
    texts = generated()
    for path in stale:
        path.write_text(texts[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def generated() -> Mapping[Path, str]:
    """Return the up-to-date text of every file with generated parts."""
    action = _replaced(ROOT / "action.yml", {"inputs": action_inputs}, comment="# {}")
    outputs = yaml.safe_load(action)["outputs"]
    lists = {
        "inputs": inputs_list,
        "outputs": lambda: outputs_list(outputs),
        "commands": commands_list,
    }
    schema = json.loads((ROOT / "schemas/config.schema.json").read_text("utf-8"))
    reference = {"reference": lambda: config_reference(schema)}
    return {
        ROOT / "action.yml": action,
        ROOT / "docs/action.md": _replaced(ROOT / "docs/action.md", lists),
        ROOT / "docs/configuration.md": _replaced(ROOT / "docs/configuration.md", reference),
        ROOT / "docs/checks.md": _replaced(
            ROOT / "docs/checks.md", {"checks": lambda: checks_reference(schema)}
        ),
        ROOT / "docs/openai-graders.md": _replaced(
            ROOT / "docs/openai-graders.md", {"graders": lambda: graders_reference(schema)}
        ),
        ROOT / "docs/traces.md": _replaced(
            ROOT / "docs/traces.md",
            {"conventions": conventions_list, "exports": exports_list},
        ),
        ROOT / "docs/transcripts.md": _replaced(
            ROOT / "docs/transcripts.md", {"formats": transcript_formats}
        ),
        ROOT / "docs/frameworks.md": _replaced(
            ROOT / "docs/frameworks.md",
            {"frameworks": frameworks_list, "set-ups": framework_sections},
        ),
    }


def action_inputs() -> str:
    """Return the ``inputs`` of the action: all options that are not only for the command line."""
    lines = ["inputs:", *_input("config", f"{CONFIG_HELP} One per line.", "")]
    for option in _options():
        more = " One per line." if option.repeats else ""
        lines += _input(option.name, f"{option.help}{more}", _default(option))
    return "\n".join(lines)


def inputs_list() -> str:
    """Return the inputs that users set as a Markdown list; a default of `false` is left out."""
    lines = [f"- `config` (list): {CONFIG_HELP}"]
    for option in _options():
        if option.help.endswith("do not set it."):
            continue
        default = _default(option)
        facts = [
            "list" if option.repeats else "",
            list_choices(option.choices, default),
            f"default `{default}`" if default not in ("", "false", *option.choices) else "",
        ]
        shown = ", ".join(filter(None, facts))
        lines.append(f"- `{option.name}`{f' ({shown})' if shown else ''}: {option.help}")
    return "\n".join(lines)


def outputs_list(outputs: Mapping[str, Mapping[str, str]]) -> str:
    """Return the outputs, as in action.yml, as a Markdown list; similar ones share a line."""
    lines: dict[str, list[str]] = {}
    for name, output in outputs.items():
        path = re.fullmatch("Path of `[^`]+`(, .+)", output["description"])
        text = f"Paths of these reports{path[1]}" if path else output["description"]
        text = re.sub(r"Number of checks that \w+\.", "Number of these checks.", text)
        lines.setdefault(text, []).append(f"`{name}`")
    return "\n".join(f"- {', '.join(names)}: {text}" for text, names in lines.items())


def commands_list() -> str:
    """Return the commands of the command line, with the actions of each, as a Markdown list."""
    lines = []
    for name, purpose, parser in _list_commands(make_parser()):
        actions = "/".join(action for action, _, _ in _list_commands(parser))
        lines.append(f"- `{name}{f' {actions}' if actions else ''}`: {purpose}")
    return "\n".join(lines)


def _list_commands(parser: ArgumentParser) -> Iterator[tuple[str, str, ArgumentParser]]:
    """Yield name, purpose and parser of each command of a parser."""
    for action in parser._actions:  # noqa: SLF001 (argparse has no other way to list them)
        if isinstance(action, _SubParsersAction):
            for each in action._choices_actions:  # noqa: SLF001 (as above)
                yield each.dest, each.help or "", action.choices[each.dest]


def transcript_formats() -> str:
    """Return the formats of transcripts as a Markdown list."""
    lines = []
    for each in TRANSCRIPT_FORMATS.values():
        notes = "; ".join(
            filter(None, (each.title, "" if each.has_prompt else "*no prompt*", each.note))
        )
        lines.append(f"- `{each.name}`: {notes}")
    return "\n".join(lines)


def exports_list() -> str:
    """Return the exports of platforms that are read as a Markdown list."""
    return "\n".join(f"- `{each.name}`: {each.title}" for each in EXPORT_FORMATS.values())


def conventions_list() -> str:
    """Return the conventions of telemetry that are read, as Markdown text."""
    conventions = sorted(CONVENTIONS, key=lambda one: one.title.lower())
    titles = (f"{one.title}{'*' * one.in_agentevals}" for one in conventions)
    return f"{', '.join(titles)}. (*: all that agentevals 0.11.0 reads)"


def _options() -> list[Option]:
    return [option for option in OPTIONS if not option.cli_only]


def _input(name: str, description: str, default: str) -> list[str]:
    return [
        f"  {name}:",
        f"    description: {json.dumps(description, ensure_ascii=False)}",
        f'    default: "{default}"',
    ]


def _default(option: Option) -> str:
    return "false" if option.is_switch else option.default


def _replaced(
    path: Path, parts: Mapping[str, Callable[[], str]], comment: str = "<!-- {} -->"
) -> str:
    """Return the text of ``path`` with the part between each pair of marks replaced."""
    text = path.read_text("utf-8")
    for name, render in parts.items():
        start = comment.format(f"{name}: written by `make docs`")
        end = comment.format(f"end of {name}")
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{path.relative_to(ROOT)} lacks the marks of {name!r}")
        text = f"{before}{start}\n{render()}\n{end}{after}"
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
