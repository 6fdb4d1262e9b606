"""The command-line parser of all commands, and its error messages."""

import argparse
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.suggest import join_with_or, suggest_name
from agentci.config.options import DEFAULT_RECORDING, OPTIONS, REPORT_OPTIONS, Option
from agentci.model.values import PROBLEM_FORMATS, replace
from agentci.version import __version__

EXIT_USAGE: Final = 2
HELP: Final = "help"
CONFIG_HINT: Final = "name configs without an option, traces with --traces"
COMMAND_HINT: Final = "write `--` before the command, as in `agentci record -- python agent.py`"
EXTRA_ARGUMENT_HINT: Final = "put a glob in quotes, and an option before each value"


def parse_arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> Mapping[str, Any]:
    """Parse the command line.

    Raises:
        SystemExit: help was requested, or an argument is not recognised (code 2).
    """
    known, unknown = parser.parse_known_args(words)
    if unknown:
        message = _explain_unknown(parser, words, unknown, vars(known))
        parser.exit(EXIT_USAGE, _format_usage_error(message))
    return vars(known)


# What argparse writes about the value of an argument.
_ARGUMENT_ERROR: Final = re.compile(r"argument (\S+): (.*)", re.DOTALL)
_INVALID_CHOICE: Final = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
_NO_VALUE: Final = "expected one argument"
MAX_NAMED_CHOICES: Final = 5
_FILE_SUFFIX: Final = re.compile("[-_]?files?$")


class _Parser(argparse.ArgumentParser):
    """A parser that prints an error as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        text, hint = message, f"try `{self.prog} --help`"
        if found := _ARGUMENT_ERROR.fullmatch(message):
            name, text = found.groups()
            if choice := _INVALID_CHOICE.fullmatch(text):
                text, hint = _explain_choice(name, choice[1], choice[2], hint)
            else:
                text = f"{name} needs a value" if text == _NO_VALUE else f"{name} {text}"
        self.exit(EXIT_USAGE, _format_usage_error(f"{text}; {hint}"))


def _explain_choice(name: str, given: str, choices: str, hint: str) -> tuple[str, str]:
    """Return the message about an unknown value of an argument, and what to do."""
    names = re.findall(r"[\w-]+", choices)
    hint = suggest_name(given, names) or hint
    if not name.isupper():
        return f"{name} must be {join_with_or(names)}, not '{given}'", hint
    if len(names) <= MAX_NAMED_CHOICES and "did you mean" not in hint:
        hint = f"choose {join_with_or(names)}"
    return f"unknown {name.lower()} `{given}`", hint


def _format_usage_error(message: str) -> str:
    return f"error: {escape_for_log_line(message)}\n"


def _explain_unknown(
    parser: argparse.ArgumentParser,
    words: Sequence[str],
    unknown: Sequence[str],
    options: Mapping[str, object],
) -> str:
    word, command = unknown[0], options["command"]
    if not word.startswith("-"):
        before = itertools.takewhile(lambda each: each != word, words)
        has_options = any(each.startswith("-") for each in before)
        hint = EXTRA_ARGUMENT_HINT if has_options else f"try `agentci {command} --help`"
        return f"unexpected argument `{word}`; {hint}"
    name = word.partition("=")[0]
    hint = f"try `agentci {command} --help`"
    if name in ("--config", "-c") and "traces" in options:
        hint = CONFIG_HINT
    elif meant := _suggest_option(name, _list_options(parser, words)):
        hint = meant
    elif command == "record" and "--" not in words:
        hint = COMMAND_HINT
    return f"unknown option `{name}`; {hint}"


def _suggest_option(name: str, known: Sequence[str]) -> str | None:
    """Suggest the option that is probably meant: for ``--case-file`` one for files, ``--cases``."""
    stem = _FILE_SUFFIX.sub("", name)
    plural = f"{stem}s"
    return suggest_name(plural if stem != name and plural in known else name, known)


def _list_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the options of the command that the words name."""
    actions = list_actions(parser)
    for action in actions:
        if isinstance(action.choices, dict):
            named = next((word for word in words if word in action.choices), None)
            if named is not None:
                return _list_options(action.choices[named], words)
    return [name for action in actions for name in action.option_strings if name.startswith("--")]


def list_actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """Return the options and arguments of a parser."""
    return parser._actions  # noqa: SLF001 (argparse has no public list of them)


# Options of ``run`` that other commands have, too.
EVALUATION_OPTIONS: Final = (
    *("traces", "group-by", "eval-set", "trace-format", "threshold", "trajectory-match-type"),
    *("judge-model", "only", "case", "tag", "env-allow", "evaluator-cache", "jobs"),
    *("locked", "offline", "no-cache", "cache-dir", "quiet"),
)
FETCH_OPTIONS: Final = ("offline", "no-cache", "cache-dir")
# Options that change a plan.
PLAN_OPTIONS: Final = (
    *(
        "traces",
        "results",
        "metric",
        "group-by",
        "eval-set",
        "trace-format",
        "judge-model",
        "only",
        "case",
        "tag",
        "shard",
    ),
    *("env-allow", "allow-agents", "evaluator-cache", "offline"),
)

MAX_REPEATS: Final = 99
MAX_RECORD_JOBS: Final = 64

SCHEMAS: Final = ("config", "cases", "evalfile", "results", "lock")
EXIT_CODES: Final = (
    "Exit codes: 0 passed, 1 failed, 2 invalid config or input, 3 an evaluator could not evaluate, "
    "70 a bug of agentci, 129, 130 or 143 interrupted."
)


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """Make the parser of the command line.

    Args:
        command: the only command to add; all are added if there is no such command.
    """
    top = _Parser(
        prog="agentci",
        description="Evaluate recorded runs of an LLM agent and gate changes on the results.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"agentci {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    adding = {
        "run": _add_run,
        "plan": _add_plan,
        "init": _add_init,
        "record": _add_record,
        "accept": _add_accept,
        "calibrate": _add_calibrate,
        "merge": _add_merge,
        "comment": _add_comment,
        "compare": _add_compare,
        "validate": _add_validate,
        "show": _add_show,
        "schema": _add_schema,
        "lock": _add_lock,
        "evaluator": _add_evaluator,
        "cache": _add_cache,
        "completion": _add_completion,
        HELP: _add_help,
    }
    for add in [adding[command]] if command in adding else dict.fromkeys(adding.values()):
        add(commands)
    return top


# A mapping of names to parsers, whose class has no public name.
_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001


def _add_run(commands: _Commands) -> None:
    run = _add_command(commands, "run", "evaluate recorded runs, write reports and decide")
    _add_config_arguments(run)
    for option in OPTIONS:
        if not option.input_only:
            _add_option(run, option)


def _add_plan(commands: _Commands) -> None:
    plan = _add_command(commands, "plan", "show which checks would run (dry run)")
    plan.epilog = "The other options of `run` are accepted and have no effect."
    _add_config_arguments(plan)
    for option in OPTIONS:
        if not option.input_only:
            _add_option(plan, option, is_shown=option.name in PLAN_OPTIONS)


def _add_record(commands: _Commands) -> None:
    record = _add_command(commands, "record", "run an agent and record it as traces")
    record.epilog = (
        "The agent is not sandboxed. Its model calls pass through a proxy on this machine. Exit "
        "codes: 0 recorded, 1 the command failed, 2 invalid input, 3 a case has no complete run."
    )
    record.usage = "agentci record [OPTIONS] -- COMMAND..."
    record.add_argument(
        "program",
        nargs="*",
        metavar="COMMAND",
        help="command that runs the agent; {input} stands for the input of a case",
    )
    record.add_argument(
        "--out",
        metavar="FILE",
        default=DEFAULT_RECORDING,
        help=f"file for the traces. Default: {DEFAULT_RECORDING}.",
    )
    record.add_argument(
        "--cases",
        action="append",
        default=[],
        metavar="FILE",
        help="cases with id and input, as JSON Lines or YAML, or an ADK eval set. May be given "
        "several times.",
    )
    record.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="ID",
        help="record only this case (may be given several times); without --cases, the id of the "
        "recorded case",
    )
    record.add_argument(
        "--jobs",
        dest="record-jobs",
        type=_parse_jobs,
        default=1,
        metavar="N",
        help="number of cases to record in parallel. Default: 1.",
    )
    record.add_argument(
        "--timeout",
        default="",
        metavar="TIME",
        help="stop a case that runs longer: `30s`, `5m` or a number of seconds; `none` for no "
        "limit. Default: 5m, without --cases 1h.",
    )
    record.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="REGEX",
        help="regular expression for text to replace by *** in the recording, in addition to keys",
    )
    record.add_argument(
        "--answer",
        choices=("model", "stdout"),
        metavar="model|stdout",
        help="what the answer of a case is: the model's, or what the command prints to stdout. "
        "Default: what it prints if that is exactly the model's answer, or was recorded before; "
        "else the model's, with a warning if the command prints another.",
    )
    record.add_argument(
        "--no-injection",
        action="store_true",
        help="do not inject telemetry into Python and Node.js programs",
    )
    record.add_argument(
        "--requests",
        default="",
        metavar="DIR",
        help="folder with requests and responses for --replay. Default: OUT with .requests.",
    )
    record.add_argument(
        "--replay",
        nargs="?",
        const="strict",
        choices=("strict", "fallback"),
        metavar="strict|fallback",
        help="answer requests from an earlier recording, without a key; `fallback` asks the model "
        "if a response is missing",
    )


def _add_init(commands: _Commands) -> None:
    init = _add_command(commands, "init", "write a config and a workflow for this repository")
    init.epilog = (
        "If there are traces, they are evaluated once. Existing files are not changed, except for "
        "a line in .gitignore."
    )
    init.add_argument("--yes", action="store_true", help="do not ask; use what is found")


def _add_accept(commands: _Commands) -> None:
    accept = _add_command(commands, "accept", "write eval cases from recorded runs")
    accept.epilog = (
        "Without CASE or --all, it shows the changes and asks, which needs a terminal. "
        "Exit code 1: no run, or not every named one, can be an eval case. "
        "See agentci's docs/eval-cases.md."
    )
    accept.add_argument("case", nargs="*", metavar="CASE", help="id of a case; may contain * and ?")
    for name, text in (
        ("all", "accept all cases"),
        ("update", "also write eval cases whose calls or answers changed"),
        ("no-answers", "write no answers"),
    ):
        accept.add_argument(f"--{name}", dest=name, action="store_true", help=text)
    accept.add_argument(
        "--arguments",
        choices=("exact", "keys", "none"),
        default="exact",
        help="how arguments are compared. Default: exact.",
    )
    accept.add_argument(
        "--trace",
        "--traces",
        dest="traces",
        action="append",
        metavar="GLOB",
        help="recorded runs. Default: those of the config.",
    )
    accept.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="config. Default: those that are found.",
    )
    accept.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="REGEX",
        help="regular expression for text to keep out of eval cases, in addition to keys",
    )
    _add_options(accept, ("eval-set", "group-by", "trace-format"))


def _parse_jobs(text: str) -> int:
    if text not in map(str, range(1, MAX_RECORD_JOBS + 1)):
        message = f"must be a whole number from 1 to {MAX_RECORD_JOBS}, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _add_calibrate(commands: _Commands) -> None:
    calibrate = _add_command(commands, "calibrate", "compare evaluators with human labels")
    _add_config_arguments(calibrate)
    calibrate.add_argument(
        "--labels",
        required=True,
        metavar="FILE",
        help='human labels, one case per line: {"case": "c1", "human": "pass"}',
    )
    calibrate.add_argument(
        "--repeats",
        type=_parse_repeats,
        default=1,
        metavar="N",
        help="runs of each check, to measure how often its verdict changes. Default: 1.",
    )
    calibrate.add_argument("--json", action="store_true", help="print JSON")
    _add_options(calibrate, EVALUATION_OPTIONS)


def _parse_repeats(text: str) -> int:
    if text not in map(str, range(1, MAX_REPEATS + 1)):
        message = f"must be a whole number from 1 to {MAX_REPEATS}, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _add_merge(commands: _Commands) -> None:
    merge = _add_command(commands, "merge", "merge reports into one report and one decision")
    merge.add_argument(
        "report",
        nargs="+",
        metavar="REPORT",
        help="results.json of a shard or a whole run, a folder or a glob; or result files of other "
        "tools",
    )
    _add_options(merge, REPORT_OPTIONS)


def _add_comment(commands: _Commands) -> None:
    comment = _add_command(
        commands, "comment", "post the results of another run as a pull request comment"
    )
    comment.add_argument("report", metavar="REPORT", help="results.json of that run, or its folder")
    for option in OPTIONS:
        if option.name == "comment":  # the command is there to comment
            _add_option(comment, replace(option, default="always"))
    _add_options(comment, ("check-run", "comment-template", "report-url", "quiet"))


def _add_compare(commands: _Commands) -> None:
    compare = _add_command(commands, "compare", "compare two reports, evaluator by evaluator")
    for name in ("base", "head"):
        compare.add_argument(
            name,
            metavar=name.upper(),
            help="results.json or its folder, or a result file of another tool",
        )


def _add_validate(commands: _Commands) -> None:
    validate = _add_command(commands, "validate", "check configs without running anything")
    _add_config_arguments(validate)
    validate.add_argument("--format", choices=PROBLEM_FORMATS, default="text")
    _add_options(validate, ("eval-set", "env-allow", "evaluator-cache", "judge-model"))


def _add_show(commands: _Commands) -> None:
    show = _add_command(
        commands, "show", "show what agentci reads of a trace, transcript, eval set or results.json"
    )
    show.epilog = (
        "Shows the cases with their turns, tool calls, results, tokens and duration, what recorded "
        "them, and what is missing or not read."
    )
    show.add_argument("file", metavar="FILE", help="the file")
    show.add_argument("--json", action="store_true", help="print JSON, see agentci's docs/show.md")
    _add_options(show, ("group-by", "trace-format", "eval-set"))


def _add_schema(commands: _Commands) -> None:
    schema = _add_command(commands, "schema", "print a JSON Schema")
    schema.add_argument("name", nargs="?", choices=SCHEMAS, default="config")


def _add_lock(commands: _Commands) -> None:
    lock = _add_command(commands, "lock", "pin remote evaluators in agentci.lock")
    _add_config_arguments(lock)
    either = lock.add_mutually_exclusive_group()
    either.add_argument(
        "--check",
        action="store_true",
        help="only check whether the lock is up to date (exit 2 if not)",
    )
    either.add_argument(
        "--upgrade",
        action="append",
        nargs="?",
        const="",
        metavar="NAME",
        help="update to the newest commit and packages, for one evaluator or all",
    )
    _add_options(lock, FETCH_OPTIONS)


def _add_evaluator(commands: _Commands) -> None:
    purpose = "list, create, run and fetch evaluators"
    actions = _add_command(commands, "evaluator", purpose).add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    listed = _add_command(actions, "list", "list available evaluators")
    listed.add_argument(
        "--source", default="all", metavar="NAME", help="builtin, github, ... Default: all."
    )
    listed.add_argument("--json", action="store_true", help="print JSON")
    init = _add_command(actions, "init", "create a new evaluator from a template")
    init.add_argument(
        "name", metavar="NAME", help="name of the evaluator; .py, .js or .ts selects the language"
    )
    init.add_argument("--runtime", metavar="py|js|ts", help="language. Default: py.")
    init.add_argument("--dir", default=".", metavar="DIR", help="folder to create it in")
    trial = _add_command(
        actions, "run", "run one evaluator on recorded runs and show its input and output"
    )
    trial.add_argument(
        "path", metavar="PATH", help="program, grader (FILE.py:FUNCTION) or file of a prompt"
    )
    for name, metavar, text in (
        ("trace", "FILE", "trace file"),
        ("dataset", "FILE", "dataset in JSON Lines; without --trace its rows hold the responses"),
        ("eval-set", "FILE", "eval set"),
        ("config", "JSON", "`config` of a program"),
        ("threshold", "X", "score that passes. Default: 0.5; a prompt requires it."),
        ("timeout", "TIME", "`30s`, `5m` or a number of seconds. Default: 30s, of a grader 2m."),
        ("judge-model", "NAME", "judge model of a prompt, PROVIDER/MODEL"),
        ("judge", "JSON", "`judge` of a prompt, as in a config"),
    ):
        trial.add_argument(f"--{name}", metavar=metavar, help=text)
    _add_options(trial, ("evaluator-cache",))
    fetch = _add_command(actions, "fetch", "download remote evaluators into the cache")
    fetch.add_argument("ref", nargs="+", metavar="REF", help="`ref` as in a config")
    fetch.add_argument("--source", default="github", metavar="NAME")
    fetch.add_argument("--repo", default="", metavar="OWNER/NAME")
    either = fetch.add_mutually_exclusive_group()
    either.add_argument("--branch", default="", metavar="NAME")
    either.add_argument("--rev", default="", metavar="COMMIT")
    fetch.add_argument("--sha256", default="", metavar="DIGEST")
    _add_options(fetch, FETCH_OPTIONS)


def _add_cache(commands: _Commands) -> None:
    purpose = "inspect and clean the cache"
    actions = _add_command(commands, "cache", purpose).add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    for name, purpose in (
        ("dir", "print the path of the cache"),
        ("list", "list the contents of the cache"),
        ("verify", "verify the contents of the cache"),
        ("clean", "empty the cache"),
    ):
        action = _add_command(actions, name, purpose)
        _add_options(action, ("cache-dir",))
        if name == "list":
            action.add_argument("--json", action="store_true", help="print JSON")


def _add_completion(commands: _Commands) -> None:
    completion = _add_command(commands, "completion", "print a script for completion in a shell")
    completion.epilog = (
        "In ~/.bashrc: source <(agentci completion bash). In ~/.zshrc, after compinit: "
        "source <(agentci completion zsh). For fish: "
        "agentci completion fish > ~/.config/fish/completions/agentci.fish"
    )
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )


def _add_help(commands: _Commands) -> None:
    shown = _add_command(commands, HELP, "show the help of a command")
    shown.add_argument("words", nargs="*", metavar="COMMAND", help="default: all commands")


def _add_command(commands: _Commands, name: str, purpose: str) -> _Parser:
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


def _add_option(command: argparse.ArgumentParser, option: Option, *, is_shown: bool = True) -> None:
    default = f" Default: {option.default}." if option.default else ""
    repeats = " May be given several times." if option.repeats else ""
    text = f"{option.help}{default}{repeats}".replace("`", "").replace("%", "%%")
    if not is_shown:
        text = argparse.SUPPRESS
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
