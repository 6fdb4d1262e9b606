"""The command-line parser of all commands, and its error messages."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from agentci._util.text.suggest import suggest_name
from agentci.config.options import OPTIONS, REPORT_OPTIONS, Option
from agentci.model.choices import PROBLEM_FORMATS
from agentci.model.values import replace
from agentci.version import __version__

CONFIG_HINT: Final = "configs are named without an option, recordings with --traces"
EXTRA_ARGUMENT_HINT: Final = "put a glob in quotes, and an option before each value"


def parse_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> Mapping[str, Any]:
    """What ``words`` say.

    Raises:
        SystemExit: help was asked for, or there is a word that says nothing (code 2).
    """
    known, unknown = parser.parse_known_args(words)
    if unknown:
        hint = _find_argument_hint(unknown[0], vars(known))
        parser.error(f"unrecognized arguments: {' '.join(unknown)} ({hint})")
    return vars(known)


def _find_argument_hint(word: str, options: Mapping[str, object]) -> str:
    if not word.startswith("-"):
        return EXTRA_ARGUMENT_HINT
    name = word.partition("=")[0]
    if name in ("--config", "-c") and "traces" in options:
        return CONFIG_HINT
    names = [f"--{option.name}" for option in OPTIONS if option.name in options]
    more = f"`agentci {options['command']} --help` lists the options"
    return suggest_name(name, names) or more


# Options of a run that other commands have, too.
EVALUATION_OPTIONS: Final = (
    *("traces", "group-by", "eval-set", "trace-format", "threshold", "trajectory-match-type"),
    *("judge-model", "only", "jobs", "locked", "offline", "no-cache", "cache-dir", "quiet"),
)
FETCH_OPTIONS: Final = ("offline", "no-cache", "cache-dir")
# Those that change what a run would do, as far as a plan tells it.
PLAN_OPTIONS: Final = (
    *("traces", "metric", "group-by", "eval-set", "trace-format", "judge-model", "only", "shard"),
    "offline",
)

MAX_REPEATS: Final = 99

SCHEMAS: Final = ("config", "evalfile", "results", "lock")
EXIT_CODES: Final = (
    "Exit codes: 0 gate open, 1 gate shut, 2 wrong input, 3 could not be judged, "
    "70 a bug of agentci, 129, 130 or 143 interrupted."
)


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of the command line.

    Args:
        command: the only one that it has to know; one that there is not stands for all of them.
    """
    top = argparse.ArgumentParser(
        prog="agentci",
        description="Judge recorded runs of an LLM agent, and say whether it still does its job.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"agentci {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    adding = {
        "run": _add_run,
        "plan": _add_plan,
        "calibrate": _add_calibrate,
        "merge": _add_merge,
        "comment": _add_comment,
        "compare": _add_compare,
        "validate": _add_validate,
        "schema": _add_schema,
        "lock": _add_lock,
        "evaluator": _add_evaluator,
        "cache": _add_cache,
    }
    for add in [adding[command]] if command in adding else dict.fromkeys(adding.values()):
        add(commands)
    return top


# A mapping of names to parsers, whose class has no public name.
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001


def _add_run(commands: _Commands) -> None:
    run = _add_command(commands, "run", "judge recordings, write reports, decide")
    _add_config_arguments(run)
    for option in OPTIONS:
        if not option.input_only:
            _add_option(run, option)


def _add_plan(commands: _Commands) -> None:
    plan = _add_command(commands, "plan", "say what `run` would judge, and judge nothing")
    plan.epilog = "The other options of `run` may be given, too, and have no effect."
    _add_config_arguments(plan)
    for option in OPTIONS:
        if not option.input_only:
            _add_option(plan, option, is_told=option.name in PLAN_OPTIONS)


def _add_calibrate(commands: _Commands) -> None:
    calibrate = _add_command(commands, "calibrate", "hold evaluators against what people said")
    _add_config_arguments(calibrate)
    calibrate.add_argument(
        "--labels",
        required=True,
        metavar="FILE",
        help='what people said, a line a case: {"case": "c1", "human": "pass"}',
    )
    calibrate.add_argument(
        "--repeats",
        type=_parse_repeats,
        default=1,
        metavar="N",
        help="how often each case is judged, to see how often verdicts change. Default: 1.",
    )
    calibrate.add_argument("--json", action="store_true", help="for programs")
    _add_options(calibrate, EVALUATION_OPTIONS)


def _parse_repeats(text: str) -> int:
    if text not in map(str, range(1, MAX_REPEATS + 1)):
        message = f"must be a whole number from 1 to {MAX_REPEATS}, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _add_merge(commands: _Commands) -> None:
    merge = _add_command(commands, "merge", "make one report and one decision of several")
    merge.add_argument(
        "report",
        nargs="+",
        metavar="REPORT",
        help="results.json of a shard or a whole run, a folder of them or a glob",
    )
    _add_options(merge, REPORT_OPTIONS)


def _add_comment(commands: _Commands) -> None:
    comment = _add_command(commands, "comment", "tell a pull request what another run came to")
    comment.add_argument("report", metavar="REPORT", help="its results.json, or the folder")
    for option in OPTIONS:
        if option.name == "comment":  # whoever gives the command wants one
            _add_option(comment, replace(option, default="always"))
    _add_options(comment, ("check-run", "quiet"))


def _add_compare(commands: _Commands) -> None:
    compare = _add_command(commands, "compare", "show what became of each evaluator's checks")
    for name in ("base", "head"):
        compare.add_argument(name, metavar=name.upper(), help="results.json, or its folder")


def _add_validate(commands: _Commands) -> None:
    validate = _add_command(commands, "validate", "check configs, and run nothing")
    _add_config_arguments(validate)
    validate.add_argument("--format", choices=PROBLEM_FORMATS, default="text")


def _add_schema(commands: _Commands) -> None:
    schema = _add_command(commands, "schema", "print a JSON Schema")
    schema.add_argument("name", nargs="?", choices=SCHEMAS, default="config")


def _add_lock(commands: _Commands) -> None:
    lock = _add_command(commands, "lock", "pin evaluators from elsewhere in agentci.lock")
    _add_config_arguments(lock)
    either = lock.add_mutually_exclusive_group()
    either.add_argument(
        "--check", action="store_true", help="only say whether the lock is up to date (else exit 2)"
    )
    either.add_argument(
        "--upgrade",
        action="append",
        nargs="?",
        const="",
        metavar="NAME",
        help="take the newest commit and packages, of one evaluator or of all",
    )
    _add_options(lock, FETCH_OPTIONS)


def _add_evaluator(commands: _Commands) -> None:
    purpose = "find, make, try and fetch evaluators"
    actions = _add_command(commands, "evaluator", purpose).add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    listed = _add_command(actions, "list", "list the evaluators that there are")
    listed.add_argument(
        "--source", default="all", metavar="NAME", help="builtin, github, ... Default: all."
    )
    listed.add_argument("--json", action="store_true", help="for programs")
    init = _add_command(actions, "init", "make a new evaluator to start from")
    init.add_argument("name", metavar="NAME", help="its name; .py, .js or .ts says the language")
    init.add_argument("--runtime", metavar="py|js|ts", help="the language. Default: py.")
    init.add_argument("--dir", default=".", metavar="DIR", help="where its folder is made")
    trial = _add_command(actions, "run", "run one evaluator on one recording, and show everything")
    trial.add_argument("path", metavar="PATH", help="its program")
    trial.add_argument("--trace", required=True, metavar="FILE", help="a recording")
    trial.add_argument("--eval-set", metavar="FILE", help="golden cases")
    trial.add_argument("--config", metavar="JSON", default="{}", help="its `config`")
    trial.add_argument("--threshold", metavar="X", help="the score to reach. Default: 0.5.")
    trial.add_argument("--timeout", metavar="SECONDS", help="Default: 30.")
    fetch = _add_command(actions, "fetch", "put remote evaluators into the cache")
    fetch.add_argument("ref", nargs="+", metavar="REF", help="as in a config")
    fetch.add_argument("--source", default="github", metavar="NAME")
    fetch.add_argument("--repo", default="", metavar="OWNER/NAME")
    either = fetch.add_mutually_exclusive_group()
    either.add_argument("--branch", default="", metavar="NAME")
    either.add_argument("--rev", default="", metavar="COMMIT")
    fetch.add_argument("--sha256", default="", metavar="DIGEST")
    _add_options(fetch, FETCH_OPTIONS)


def _add_cache(commands: _Commands) -> None:
    purpose = "look after what was fetched"
    actions = _add_command(commands, "cache", purpose).add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    for name, purpose in (
        ("dir", "say where it is"),
        ("list", "say what it holds"),
        ("verify", "check every byte of it"),
        ("clean", "empty it"),
    ):
        action = _add_command(actions, name, purpose)
        _add_options(action, ("cache-dir",))
        if name == "list":
            action.add_argument("--json", action="store_true", help="for programs")


def _add_command(commands: _Commands, name: str, purpose: str) -> argparse.ArgumentParser:
    sentence = f"{purpose[0].upper()}{purpose[1:]}."
    return commands.add_parser(name, help=purpose, description=sentence, allow_abbrev=False)


def _add_config_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "config",
        nargs="*",
        metavar="CONFIG",
        help="file, folder or glob; by default the configs below the working directory",
    )


def _add_options(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    for option in OPTIONS:
        if option.name in names:
            _add_option(command, option)


def _add_option(command: argparse.ArgumentParser, option: Option, *, is_told: bool = True) -> None:
    default = f" Default: {option.default}." if option.default else ""
    more = " May be given several times." if option.repeats else ""
    told = f"{option.help}{default}{more}".replace("`", "").replace("%", "%%")
    text = told if is_told else argparse.SUPPRESS
    if option.is_switch:
        command.add_argument(f"--{option.name}", dest=option.name, action="store_true", help=text)
        return
    command.add_argument(
        f"--{option.name}",
        dest=option.name,
        action="append",
        metavar=option.metavar or "|".join(option.choices),
        help=text,
    )
