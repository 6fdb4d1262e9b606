"""The command line."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from agentci.cli.arguments import parser
from agentci.cli.process import run_guarded
from agentci.cli.usage_errors import understood
from agentci.config.options import OPTIONS
from agentci.config.settings import Access, Settings, access_of, settings_of
from agentci.model.choices import PROBLEM_FORMATS
from agentci.runner.services import World

Options: TypeAlias = Mapping[str, object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name and return the process's exit code."""
    return run_guarded(lambda world: carry_out(arguments, world), os.environ)


def carry_out(arguments: Sequence[str] | None, world: World) -> int:
    """Run a command in ``world``; it is imported here, so that each loads only what it needs.

    Raises:
        InputError: the input cannot be used.
        SystemExit: help was asked for, or the usage is wrong (code 2).
    """
    words = sys.argv[1:] if arguments is None else arguments
    options = understood(parser(next(iter(words), "")), words)
    return COMMANDS[options["command"]](options, world)


def _run(options: Options, world: World) -> int:
    from agentci.cli.commands.run import run

    return run(_settings(options), world)


def _plan(options: Options, world: World) -> int:
    from agentci.cli.commands.plan import show_plan

    return show_plan(_settings(options), world)


def _calibrate(options: Options, world: World) -> int:
    from agentci.cli.commands.calibrate import calibrate

    return calibrate(
        _settings(options),
        _text(options, "labels"),
        world,
        repeats=int(_text(options, "repeats")),
        as_json=bool(options["json"]),
    )


def _merge(options: Options, world: World) -> int:
    from agentci.cli.commands.merge import merge

    return merge(_texts(options["report"]), settings_of((), _given(options)), world)


def _comment(options: Options, world: World) -> int:
    from agentci.cli.commands.comment import comment

    given = {"comment": ("always",)} | {k: v for k, v in _given(options).items() if v}
    return comment(_text(options, "report"), settings_of((), given), world)


def _compare(options: Options, world: World) -> int:
    from agentci.cli.commands.compare import show_comparison

    return show_comparison(_text(options, "base"), _text(options, "head"), world)


def _validate(options: Options, world: World) -> int:
    from agentci.cli.commands.validate import validate

    form = next(form for form in PROBLEM_FORMATS if form == options["format"])
    return validate(_texts(options["config"]), form, world)


def _schema(options: Options, world: World) -> int:
    from agentci.cli.commands.schema import show_schema

    return show_schema(_text(options, "name"), world)


def _lock(options: Options, world: World) -> int:
    from agentci.cli.commands.lock import lock
    from agentci.cli.commands.lock_check import check_lock

    configs = _texts(options["config"])
    if options["check"]:
        return check_lock(configs, world)
    names = options["upgrade"]
    upgrade = None if names is None else _texts(names)
    return lock(configs, upgrade=upgrade, access=_access(options), world=world)


def _cache(options: Options, world: World) -> int:
    from agentci.cli.commands import cache
    from agentci.runner.prepare_programs import cache_folder

    folder = cache_folder(_access(options), world)
    match options["action"]:
        case "dir":
            return cache.show_folder(folder, world)
        case "list":
            return cache.list_entries(folder, world, as_json=bool(options["json"]))
        case "verify":
            return cache.verify(folder, world)
        case _:
            return cache.clean(folder, world)


def _evaluator(options: Options, world: World) -> int:
    return _EVALUATOR_ACTIONS[_text(options, "action")](options, world)


def _evaluator_list(options: Options, world: World) -> int:
    from agentci.cli.commands.evaluator.list import show_catalogue

    return show_catalogue(_text(options, "source"), world, as_json=bool(options["json"]))


def _evaluator_init(options: Options, world: World) -> int:
    from agentci.cli.commands.evaluator.init import init

    runtime = options["runtime"]
    return init(
        _text(options, "name"),
        runtime=None if runtime is None else str(runtime),
        folder=_text(options, "dir"),
        world=world,
    )


def _evaluator_run(options: Options, world: World) -> int:
    from agentci.cli.commands.evaluator.run_one import Trial, show_trial

    trial = Trial.of({name: str(given) for name, given in options.items() if given is not None})
    return show_trial(trial, world)


def _evaluator_fetch(options: Options, world: World) -> int:
    from agentci.cli.commands.evaluator.fetch import fetch_all
    from agentci.model.program import RemoteProgram

    programs = [
        RemoteProgram(
            source=_text(options, "source"),
            repository=_text(options, "repo"),
            revision=_text(options, "rev") or _text(options, "branch"),
            ref=ref,
            sha256=_text(options, "sha256"),
        )
        for ref in _texts(options["ref"])
    ]
    return fetch_all(programs, access=_access(options), world=world)


COMMANDS: Final[Mapping[str, Callable[[Options, World], int]]] = {
    "run": _run,
    "plan": _plan,
    "calibrate": _calibrate,
    "merge": _merge,
    "comment": _comment,
    "compare": _compare,
    "validate": _validate,
    "schema": _schema,
    "lock": _lock,
    "cache": _cache,
    "evaluator": _evaluator,
}
_EVALUATOR_ACTIONS: Final[Mapping[str, Callable[[Options, World], int]]] = {
    "list": _evaluator_list,
    "init": _evaluator_init,
    "run": _evaluator_run,
    "fetch": _evaluator_fetch,
}


def _settings(options: Options) -> Settings:
    return settings_of(_texts(options["config"]), _given(options))


def _access(options: Options) -> Access:
    """The rules for what is kept elsewhere, as far as the command has options for them."""
    return access_of(_given(options))


def _given(options: Options) -> Mapping[str, Sequence[str]]:
    """The options of a run, as far as the command has them."""
    names = [option.name for option in OPTIONS if option.name in options]
    return {name: _texts(options[name]) for name in names}


def _text(options: Options, name: str) -> str:
    return str(options[name])


def _texts(given: object) -> tuple[str, ...]:
    """What argparse collected, as texts: a list, a switch, or nothing."""
    if isinstance(given, list):
        return tuple(map(str, given))
    return ("true",) if given else ()
