"""The command line."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from agentci.cli.arguments import HELP, make_parser, parse_arguments
from agentci.cli.session import (
    Session,
    allow_caches,
    allow_variables,
    restrict_agents,
    run_in_process,
)
from agentci.config.options import OPTIONS
from agentci.config.settings import (
    FetchSettings,
    Settings,
    parse_allow_agents,
    parse_env_allow,
    parse_evaluator_caches,
    parse_fetch_settings,
    parse_settings,
)
from agentci.errors import InputError
from agentci.model.values import PROBLEM_FORMATS, Problem

WATCH_OPTION: Final = "--watch"
Options: TypeAlias = Mapping[str, object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name and return the process's exit code."""
    return run_in_process(lambda session: run_command(arguments, session), os.environ)


def run_command(arguments: Sequence[str] | None, session: Session) -> int:
    """Run one command; it is imported here, so that each command loads only what it needs.

    Raises:
        InputError: the input is invalid.
        SystemExit: help was requested, or the usage is wrong (code 2).
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] == HELP:
        words = [*words[1:], "--help"]
    options = parse_arguments(make_parser(next(iter(words), "")), words)
    given = _list_given_options(options)
    session = allow_variables(session, parse_env_allow(given))
    session = restrict_agents(session, allowed=parse_allow_agents(given))
    session = allow_caches(session, parse_evaluator_caches(given))
    if options.get("watch"):
        from agentci.cli.watch import run_again_on_changes

        again = [word for word in words if word != WATCH_OPTION]
        return run_again_on_changes(again, os.environ, _parse_run_settings(options), session)
    return COMMANDS[options["command"]](options, session)


def _run(options: Options, session: Session) -> int:
    from agentci.cli.commands.run import run

    return run(_parse_run_settings(options), session)


def _plan(options: Options, session: Session) -> int:
    from agentci.cli.commands.run import show_plan

    return show_plan(_parse_run_settings(options), session.services, session.out)


def _calibrate(options: Options, session: Session) -> int:
    from agentci.cli.commands.calibrate import calibrate

    return calibrate(
        _parse_run_settings(options),
        _get_text(options, "labels"),
        session,
        repeats=int(_get_text(options, "repeats")),
        as_json=bool(options["json"]),
    )


def _merge(options: Options, session: Session) -> int:
    from agentci.cli.commands.reports import merge

    return merge(
        _get_texts(options["report"]), parse_settings((), _list_given_options(options)), session
    )


def _comment(options: Options, session: Session) -> int:
    from agentci.cli.commands.reports import post_report_comment

    values = {"comment": ("always",)} | {k: v for k, v in _list_given_options(options).items() if v}
    return post_report_comment(_get_text(options, "report"), parse_settings((), values), session)


def _compare(options: Options, session: Session) -> int:
    from agentci.cli.commands.reports import show_comparison

    return show_comparison(
        _get_text(options, "base"),
        _get_text(options, "head"),
        session.services.workspace,
        session.out,
    )


def _validate(options: Options, session: Session) -> int:
    from agentci.cli.commands.validate import validate_configs

    form = next(form for form in PROBLEM_FORMATS if form == options["format"])
    eval_sets, models = (_get_texts(options.get(name)) for name in ("eval-set", "judge-model"))
    return validate_configs(
        _get_texts(options["config"]),
        form,
        session.services,
        session.out,
        eval_sets=eval_sets,
        judge_model=models[-1] if models else "",
    )


def _show(options: Options, session: Session) -> int:
    from agentci.cli.commands.show import ShowOptions, show_file

    settings = parse_settings((), _list_given_options(options))
    return show_file(
        _get_text(options, "file"),
        ShowOptions(
            trace_format=settings.trace_format or "auto",
            group_by=settings.group_by or "auto",
            eval_sets=settings.eval_sets,
            as_json=bool(options["json"]),
        ),
        session,
    )


def _schema(options: Options, session: Session) -> int:
    from agentci.cli.commands.validate import print_schema

    return print_schema(_get_text(options, "name"), session.out)


def _lock(options: Options, session: Session) -> int:
    from agentci.cli.commands.lock import check_lock, lock_configs

    configs = _get_texts(options["config"])
    if options["check"]:
        return check_lock(configs, session)
    names = options["upgrade"]
    upgrade = None if names is None else _get_texts(names)
    return lock_configs(
        configs,
        upgrade=upgrade,
        access=_parse_fetch_options(options),
        services=session.services,
        out=session.out,
    )


def _cache(options: Options, session: Session) -> int:
    from agentci.cli.commands import cache
    from agentci.runner.prepare import find_cache_folder

    folder = find_cache_folder(_parse_fetch_options(options), session.services)
    match options["action"]:
        case "dir":
            return cache.print_cache_folder(folder, session.out)
        case "list":
            return cache.list_cache_entries(folder, session.out, as_json=bool(options["json"]))
        case "verify":
            return cache.verify_cache(folder, session.out)
        case _:
            return cache.clean_cache(folder, session.out)


def _evaluator(options: Options, session: Session) -> int:
    return _EVALUATOR_ACTIONS[_get_text(options, "action")](options, session)


def _evaluator_list(options: Options, session: Session) -> int:
    from agentci.cli.commands.evaluators import list_evaluators

    return list_evaluators(
        _get_text(options, "source"), session.services, session.out, as_json=bool(options["json"])
    )


def _evaluator_init(options: Options, session: Session) -> int:
    from agentci.cli.commands.evaluators import init_evaluator

    runtime = options["runtime"]
    return init_evaluator(
        _get_text(options, "name"),
        runtime=None if runtime is None else str(runtime),
        folder=_get_text(options, "dir"),
        workspace=session.services.workspace,
        out=session.out,
    )


def _evaluator_run(options: Options, session: Session) -> int:
    from agentci.cli.commands.evaluator_run import EvaluatorRunOptions, run_evaluator

    trial = EvaluatorRunOptions.parse(
        {name: str(given) for name, given in options.items() if given is not None}
    )
    return run_evaluator(trial, session)


def _evaluator_fetch(options: Options, session: Session) -> int:
    from agentci.cli.commands.evaluators import fetch_evaluators
    from agentci.model.program import RemoteProgram

    programs = [
        RemoteProgram(
            source=_get_text(options, "source"),
            repository=_get_text(options, "repo"),
            revision=_get_text(options, "rev") or _get_text(options, "branch"),
            ref=ref,
            sha256=_get_text(options, "sha256"),
        )
        for ref in _get_texts(options["ref"])
    ]
    return fetch_evaluators(
        programs, access=_parse_fetch_options(options), services=session.services, out=session.out
    )


def _record(options: Options, session: Session) -> int:
    from agentci.cli.commands.record import RecordOptions, record_agent
    from agentci.record.printed_answer import ANSWER_SOURCES
    from agentci.record.replay import REPLAY_MODES

    given = RecordOptions(
        command=_get_texts(options["program"]),
        out=_get_text(options, "out"),
        cases=_get_texts(options["cases"]),
        case_ids=_get_texts(options["case"]),
        jobs=int(_get_text(options, "record-jobs")),
        redact=_get_texts(options["redact"]),
        requests=_get_text(options, "requests"),
        is_injected=not options["no_injection"],
        timeout=_get_text(options, "timeout"),
        answer=next((each for each in ANSWER_SOURCES if each == options["answer"]), None),
        replay=next((mode for mode in REPLAY_MODES if mode == options["replay"]), None),
    )
    return record_agent(given, os.environ, session)


def _init(options: Options, session: Session) -> int:
    from agentci.cli.commands.init import init_project

    return init_project(None if options["yes"] else _find_prompt(session), session)


def _find_prompt(session: Session) -> Callable[[str], str] | None:
    """Return what asks a question; None without a terminal."""
    return _ask if sys.stdin.isatty() and session.out.isatty() else None


def _ask(question: str) -> str:
    try:
        return input(question)
    except EOFError:  # Ctrl-D ends the command as Ctrl-C does
        signal.raise_signal(signal.SIGINT)
        return ""


def _accept(options: Options, session: Session) -> int:
    from agentci.cli.commands.accept import ARGUMENT_CHOICES, AcceptCommand, accept_cases

    command = AcceptCommand(
        names=_get_texts(options["case"]),
        every=bool(options["all"]),
        update=bool(options["update"]),
        arguments=next(each for each in ARGUMENT_CHOICES if each == options["arguments"]),
        has_answers=not options["no-answers"],
        redact=_get_texts(options["redact"]),
        ask=_find_prompt(session),
    )
    settings = parse_settings(_get_texts(options["config"]), _list_given_options(options))
    return accept_cases(command, settings, session)


def _completion(options: Options, session: Session) -> int:
    from agentci.cli.commands.completion import print_completion

    return print_completion(_get_text(options, "shell"), session.out)


COMMANDS: Final[Mapping[str, Callable[[Options, Session], int]]] = {
    "run": _run,
    "plan": _plan,
    "init": _init,
    "record": _record,
    "accept": _accept,
    "calibrate": _calibrate,
    "merge": _merge,
    "comment": _comment,
    "compare": _compare,
    "validate": _validate,
    "show": _show,
    "schema": _schema,
    "lock": _lock,
    "cache": _cache,
    "evaluator": _evaluator,
    "completion": _completion,
}
_EVALUATOR_ACTIONS: Final[Mapping[str, Callable[[Options, Session], int]]] = {
    "list": _evaluator_list,
    "init": _evaluator_init,
    "run": _evaluator_run,
    "fetch": _evaluator_fetch,
}


def _parse_run_settings(options: Options) -> Settings:
    return parse_settings(_get_texts(options["config"]), _list_given_options(options))


def _parse_fetch_options(options: Options) -> FetchSettings:
    """Parse the options for remote evaluators that the command has."""
    return parse_fetch_settings(_list_given_options(options))


def _list_given_options(options: Options) -> Mapping[str, Sequence[str]]:
    """Return the values of the options of ``run`` that the command has.

    Raises:
        InputError: a value is empty, as that of a variable that is not set: without it, the option
            would have no effect.
    """
    names = [option.name for option in OPTIONS if option.name in options]
    found = {name: _get_texts(options[name]) for name in names}
    problems = [
        Problem(message=f"--{name} is empty", hint="give it a value, or leave the option out")
        for name, values in found.items()
        if not all(map(str.strip, values))
    ]
    if problems:
        raise InputError(problems)
    return found


def _get_text(options: Options, name: str) -> str:
    return str(options[name])


def _get_texts(value: object) -> tuple[str, ...]:
    """Convert argparse's value of an option, a list, a switch or None, to texts."""
    if isinstance(value, list):
        return tuple(map(str, value))
    return ("true",) if value else ()
