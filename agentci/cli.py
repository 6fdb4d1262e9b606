"""The command line."""

import argparse
import os
from collections.abc import Mapping, Sequence

from agentci.engines.world import World
from agentci.model.choices import PROBLEM_FORMATS
from agentci.options import OPTIONS, Option
from agentci.process import run_guarded
from agentci.settings import Settings, settings_of
from agentci.version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name and return the process's exit code."""
    return run_guarded(lambda world: carry_out(arguments, world), os.environ)


def carry_out(arguments: Sequence[str] | None, world: World) -> int:
    """Run a command in ``world``; it is imported here, so that each loads only what it needs.

    Raises:
        InputError: the input cannot be used.
        SystemExit: help was asked for, or the usage is wrong (code 2).
    """
    options = vars(_parser().parse_args(arguments))
    match options["command"]:
        case "run":
            from agentci.commands.run import run

            return run(_settings(options), world)
        case "plan":
            from agentci.commands.plan import show_plan

            return show_plan(_settings(options), world)
        case "validate":
            from agentci.commands.validate import validate

            form = next(form for form in PROBLEM_FORMATS if form == options["format"])
            return validate(_texts(options["config"]), form, world)
        case _:
            from agentci.commands.schema import show_schema

            return show_schema(str(options["name"]), world)


def _settings(options: Mapping[str, object]) -> Settings:
    values = {option.name: _texts(options[option.name]) for option in OPTIONS}
    return settings_of(_texts(options["config"]), values)


def _texts(given: object) -> tuple[str, ...]:
    """What argparse collected, as texts: a list, a switch, or nothing."""
    if isinstance(given, list):
        return tuple(map(str, given))
    return ("true",) if given else ()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentci",
        description="Judge recorded runs of an LLM agent, and say whether it still does its job.",
        epilog="Exit codes: 0 gate open, 1 gate shut, 2 wrong input, 3 could not be judged, "
        "70 a bug of agentci, 130 or 143 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"agentci {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in (
        ("run", "judge recordings, write reports, decide"),
        ("plan", "say what `run` would judge, and judge nothing"),
    ):
        command = commands.add_parser(
            name, help=purpose, description=f"{purpose.capitalize()}.", allow_abbrev=False
        )
        _add_configs(command)
        for option in OPTIONS:
            _add(command, option)
    validate = commands.add_parser("validate", help="check configs, and run nothing")
    _add_configs(validate)
    validate.add_argument("--format", choices=PROBLEM_FORMATS, default="text")
    schema = commands.add_parser("schema", help="print a JSON Schema")
    schema.add_argument("name", nargs="?", choices=("config", "results"), default="config")
    return parser


def _add_configs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "config",
        nargs="*",
        metavar="CONFIG",
        help="file, folder or glob; by default the configs below the working directory",
    )


def _add(command: argparse.ArgumentParser, option: Option) -> None:
    text = option.help.replace("`", "").replace("%", "%%")
    if option.metavar is None and not option.choices:
        command.add_argument(f"--{option.name}", dest=option.name, action="store_true", help=text)
        return
    metavar = option.metavar or "|".join(option.choices)
    default = f" Default: {option.default}." if option.default else ""
    more = " May be given several times." if option.repeats else ""
    command.add_argument(
        f"--{option.name}",
        dest=option.name,
        action="append",
        metavar=metavar,
        help=f"{text}{default}{more}",
    )
