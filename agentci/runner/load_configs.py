"""Read configs from disk into suites."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.workspace import (
    Workspace,
    is_file,
    limit_input,
    read_file,
    read_start,
    resolve_path,
)
from agentci.config.discovery import (
    CONFIG_NAMES,
    DEFAULT_EVAL_SET,
    find_configs,
    is_eval_file,
    make_eval_set_error,
    may_be_case_file,
)
from agentci.config.overrides import Overrides, find_only_option_problems
from agentci.config.settings import Settings
from agentci.config.suite import Suite, make_case_suite, make_metric_suite, read_suite
from agentci.config.yaml_document import YamlDocument, read_tree, read_yaml
from agentci.config.yaml_nodes import plain_data
from agentci.errors import InputError
from agentci.evaluators.checks.names import CASE_PREFIX
from agentci.evaluators.evaluator import collect_needs
from agentci.model.judges import RequiredJudge
from agentci.model.requests import RequiredService, RequiredVariables
from agentci.model.values import COMMAND_LINE, Json, Place, Problem, replace
from agentci.runner.load_eval_sets import load_checked_eval_sets
from agentci.runner.services import Services
from agentci.runner.suite_files import (
    FileLocator,
    LoadedSuite,
    find_eval_set_readers,
    find_eval_sets,
    make_locator,
)

MAX_NAMES = 5
MAX_CONFIG_BYTES = 1024**2
# What is read of a file to see whether it has eval cases.
MAX_START_BYTES = 64 * 1024


def load_suites(settings: Settings, services: Services) -> tuple[LoadedSuite, ...]:
    """Read the configs that ``settings`` name, or make one of ``--metric`` without a config.

    Raises:
        InputError: with the errors of all configs.
    """
    overrides = make_overrides(settings)
    if (settings.metrics or settings.results) and not settings.configs:
        locator = make_locator(services.workspace.cwd, services)
        locator.notices += _warn_unused_configs(services.workspace)
        suite = make_metric_suite(overrides, settings.results)
        loaded = _add_case_checks(
            LoadedSuite(suite=suite, locator=locator), overrides, services.workspace
        )
        return _select_suites([loaded], settings.only)
    suites: list[LoadedSuite] = []
    paths, missing = find_configs(settings.configs, services.workspace)
    if not paths and not settings.configs and any(map(may_be_case_file, settings.eval_sets)):
        locator = make_locator(services.workspace.cwd, services)
        loaded = LoadedSuite(suite=make_case_suite(), locator=locator)
        suites.append(_add_case_checks(loaded, overrides, services.workspace))
        missing = ()
    problems = [*missing]
    for path in paths:
        try:
            suites.append(load_suite(path, overrides, services))
        except InputError as error:
            problems += error.problems
    for loaded in suites:
        problems += find_refused_variables(loaded.suite, services)
    if problems:
        raise InputError(problems)
    return _select_cases(
        _select_suites(_replace_results(suites, settings.results), settings.only), settings
    )


def _select_cases(suites: tuple[LoadedSuite, ...], settings: Settings) -> tuple[LoadedSuite, ...]:
    """The suites that may have a case to check; only eval files have tags.

    Raises:
        InputError: no suite has one.
    """
    if settings.tags:
        suites = tuple(loaded for loaded in suites if loaded.suite.eval_cases is not None)
    if not suites and (settings.cases or settings.tags):
        raise make_no_case_error(settings)
    return suites


def make_no_case_error(settings: Settings, known: Sequence[str] = ()) -> InputError:
    """The error that ``--case`` and ``--tag`` select nothing.

    Args:
        known: ids of the cases.
    """
    suggested = (suggest_name(each, known) for each in settings.cases)
    given = [
        *(f"--case {each}" for each in settings.cases),
        *(f"--tag {each}" for each in settings.tags),
    ]
    return InputError.from_message(
        f"no case to check matches {' '.join(given)}",
        place=COMMAND_LINE,
        hint=next(filter(None, suggested), "`agentci plan` lists the cases"),
    )


def load_input_suite(settings: Settings, services: Services) -> LoadedSuite:
    """Read only what a config says about recorded runs and eval cases, which need not exist yet.

    Without a config, the command line names both.

    Raises:
        InputError: the config is invalid, or neither names recorded runs.
    """
    paths, missing = find_configs(settings.configs, services.workspace)
    if not paths:
        if not settings.traces:
            hint = None if settings.configs else "pass --trace FILE"
            raise InputError([replace(each, hint=hint or each.hint) for each in missing])
        locator = make_locator(services.workspace.cwd, services)
        return LoadedSuite(suite=make_case_suite(), locator=locator)
    from agentci.config.suite import read_inputs  # noqa: PLC0415 (few commands need it)

    document = _read_document(paths[0], services)
    locator = make_locator(paths[0].parent, services)
    return LoadedSuite(suite=read_inputs(document), locator=locator)


def read_input_suites(settings: Settings, services: Services) -> Iterator[LoadedSuite]:
    """Yield what the configs say about recorded runs and eval cases; invalid ones are left out."""
    return _read_input_suites(find_configs(settings.configs, services.workspace)[0], services)


def _read_input_suites(paths: Iterable[Path], services: Services) -> Iterator[LoadedSuite]:
    from agentci.config.suite import read_inputs  # noqa: PLC0415 (few commands need it)

    for path in paths:
        with suppress(InputError):
            suite = read_inputs(_read_document(path, services))
            yield LoadedSuite(suite=suite, locator=make_locator(path.parent, services))


def find_unread_eval_set(
    loaded: LoadedSuite, suites: Iterable[LoadedSuite], services: Services
) -> str:
    """Return the eval set at the default place of a config without any, if no config reads it.

    Other places are not searched: a file there may be for a run with other configs.

    Args:
        suites: the configs of the run; those beside ``loaded`` with a default name are looked at,
            too.

    Returns:
        The path as the config would name it; empty without such a file.
    """
    suite, folder = loaded.suite, Path(loaded.locator.folder)
    evaluates_runs = suite.evaluators and suite.eval_cases is None
    path = resolve_path(folder / DEFAULT_EVAL_SET)
    if suite.file == COMMAND_LINE.file or suite.eval_sets or not evaluates_runs:
        return ""
    if not re.search(r"^eval_cases:", _read_start(path, services.workspace), re.MULTILINE):
        return ""
    beside = (folder / each for each in CONFIG_NAMES if is_file(folder / each))
    readers = find_eval_set_readers(
        [*suites, *_read_input_suites(beside, services)], services.workspace
    )
    return "" if path in readers else DEFAULT_EVAL_SET


def _read_start(path: Path, workspace: Workspace) -> str:
    """Read the first lines of a file; empty without one that may be read."""
    if is_file(path):
        with suppress(InputError, OSError):
            data = read_start(workspace.resolve_given(path), MAX_START_BYTES)
            return data.decode("utf-8", "replace")
    return ""


def _replace_results(suites: Sequence[LoadedSuite], given: Sequence[str]) -> Sequence[LoadedSuite]:
    """Return the suites with the results of the command line.

    They replace those of the configs that have any, else they belong to the first config.
    """
    if not given or not suites:
        return suites
    owners = [each.suite.file for each in suites if each.suite.results] or [suites[0].suite.file]
    return tuple(
        replace(each, suite=replace(each.suite, given_results=tuple(given)))
        if each.suite.file in owners
        else each
        for each in suites
    )


def make_overrides(settings: Settings) -> Overrides:
    """Select the options that take precedence over configs."""
    return Overrides(
        metrics=settings.metrics,
        threshold=settings.threshold,
        trajectory_match_type=settings.trajectory_match_type,
        judge_model=settings.judge_model,
        only=settings.only,
        cases=settings.cases,
        tags=settings.tags,
        eval_sets=settings.eval_sets,
    )


def find_refused_variables(suite: Suite, services: Services) -> Iterator[Problem]:
    """Find the variables that a config names but may not use; its texts were checked before.

    The values of the others are secrets from here on, so that no check shows that of another one.
    """
    variables = services.variables
    named = dict.fromkeys(_list_named_variables(suite))
    for name, owner, place in named:
        if refusal := variables.explain_refusal(name):
            message, hint = refusal
            yield Problem(message=f"{owner}: {message}", place=place, hint=hint)
        variables.get(name)
    for need in collect_needs(suite.evaluators, RequiredVariables):
        for name in need.cache_dirs:
            if name not in services.evaluator_caches:
                yield Problem(
                    message=f"evaluator `{need.name}`: {name} is not in evaluator-cache",
                    place=need.place,
                    hint=f"add {name}=DIR to the workflow's evaluator-cache input if programs may "
                    "read that folder",
                )


def _list_named_variables(suite: Suite) -> Iterator[tuple[str, str, Place]]:
    """The name of each variable, what asks for it, and where."""
    for need in collect_needs(suite.evaluators, RequiredVariables):
        yield from ((name, f"evaluator `{need.name}`", need.place) for name in need.names)
    for service in collect_needs(suite.evaluators, RequiredService):
        if name := service.service.key_variable:
            yield name, f"evaluator `{service.name}`", service.place
    if suite.agent is not None:
        place = suite.agent.place
        yield from ((name, "the agent of `target`", place) for name in suite.agent.variables)
    if judges := collect_needs(suite.evaluators, RequiredJudge):
        from agentci.evaluators.judge_config import uses_default_key  # noqa: PLC0415 (loads pydantic)

        for judge in judges:
            settings = judge.judge.settings
            if settings.key_variable and not uses_default_key(settings):
                yield settings.key_variable, f"evaluator `{judge.name}`", judge.place


def _warn_unused_configs(workspace: Workspace) -> Iterator[Problem]:
    """Warn about configs that a run without ``--metric`` and ``--results`` would use."""
    for name in CONFIG_NAMES:
        if is_file(workspace.cwd / name):
            yield Problem(
                message=f"{name} is not used: --metric and --results without a config evaluate "
                "nothing else",
                hint=f"name {name} on the command line to run both",
                severity="warning",
            )


def _select_suites(suites: Sequence[LoadedSuite], only: Sequence[str]) -> tuple[LoadedSuite, ...]:
    """The suites that have an evaluator to run; each name in ``only`` must match one."""
    names = [name for loaded in suites for name in loaded.suite.names]
    if any(loaded.suite.has_results for loaded in suites):
        # The names of metrics in results of other tools are known once these are read.
        return tuple(suites)
    if problems := tuple(find_only_option_problems(only, names)):
        raise InputError(problems)
    kept = tuple(loaded for loaded in suites if loaded.suite.evaluators)
    left = [name for name in dict.fromkeys(names) if only and name not in only]
    if kept and left:
        shown = ", ".join(truncate.truncate_list([f"`{name}`" for name in left], MAX_NAMES))
        message = f"--only leaves out {format_count(len(left), 'evaluator')}: {shown}"
        note = Problem(message=message, place=COMMAND_LINE, severity="note")
        kept[0].locator.notices.append(note)
    return kept


def load_suite(path: Path, overrides: Overrides, services: Services) -> LoadedSuite:
    """Read one config.

    Raises:
        InputError: with all of its errors.
    """
    with limit_input(services.workspace.display_path(path)):
        return _load_suite(path, overrides, services)


def _load_suite(path: Path, overrides: Overrides, services: Services) -> LoadedSuite:
    document = _read_document(path, services)
    locator = make_locator(path.parent, services)
    if is_eval_file(document):
        # Imported late: eval configs do not need these modules, and they are slow to import.
        from agentci.config.agentv.eval_file import read_eval_file  # noqa: PLC0415
        from agentci.config.agentv.files import WorkspaceFileResolver  # noqa: PLC0415

        files = WorkspaceFileResolver(path.parent, services.workspace)
        suite = read_eval_file(document, overrides, files, variables=services.variables)
        return LoadedSuite(suite=suite, locator=locator)
    try:
        suite = read_suite(document, overrides, locator)
    except InputError as error:
        raise InputError([*error.problems, *_find_missing_files(document, locator)]) from None
    loaded = LoadedSuite(suite=suite, locator=locator)
    return _add_case_checks(loaded, overrides, services.workspace)


def _add_case_checks(
    loaded: LoadedSuite, overrides: Overrides, workspace: Workspace
) -> LoadedSuite:
    """Read eval sets, at least one in agentci's own format, and add the checks of their cases.

    Raises:
        InputError: an eval set is invalid; or neither a case nor the config has a check.
    """
    suite = loaded.suite
    if not any(map(may_be_case_file, overrides.eval_sets or suite.eval_sets)):
        _report_unknown_thresholds(loaded, overrides)
        return loaded
    files = find_eval_sets(loaded, workspace, given=overrides.eval_sets)
    eval_set, evaluators = load_checked_eval_sets(files, workspace, suite.prices)
    if not (suite.names or evaluators or suite.has_results):
        message = "neither the config nor an eval case has a check"
        hint = "add `checks:` to the config, or `calls:` to the eval cases"
        raise InputError.from_message(message, place=suite.place, hint=hint)
    names = [each.identity.name for each in evaluators]
    kept = [each for each in evaluators if each.identity.name in (overrides.only or names)]
    suite = replace(suite, evaluators=(*suite.evaluators, *kept), names=(*suite.names, *names))
    loaded = replace(loaded, suite=suite, eval_set=eval_set)
    _report_unknown_thresholds(loaded, overrides)
    return loaded


def _report_unknown_thresholds(loaded: LoadedSuite, overrides: Overrides) -> None:
    """Report thresholds of checks that no eval case has; a warning if other cases were given.

    Raises:
        InputError: the eval cases are those of the config.
    """
    suite = loaded.suite
    problems = [
        Problem(
            message=f"`gate.evaluators` names {quote_name(name)}, a check that no eval case has",
            place=suite.place_of("gate"),
            hint=suggest_name(name, suite.names) or f"known evaluators: {', '.join(suite.names)}",
            severity="warning" if overrides.eval_sets else "error",
        )
        for name in (() if suite.has_results else suite.gate.evaluators)
        if name.startswith(CASE_PREFIX) and name not in suite.names
    ]
    if problems and not overrides.eval_sets:
        raise InputError(problems)
    loaded.locator.notices += problems


def _read_document(path: Path, services: Services) -> YamlDocument:
    """A config or eval file; one in JSON Lines together with its sidecar file."""
    if path.suffix != ".jsonl":
        return _read_yaml_file(path, services)
    from agentci.config.agentv.external_files import read_jsonl  # noqa: PLC0415 (likewise)
    from agentci.config.agentv.files import (  # noqa: PLC0415 (likewise)
        MAX_ATTACHMENT_BYTES,
        find_sidecar,
    )

    sidecar = find_sidecar(path)
    return read_jsonl(
        _read_config_file(path, services, limit_bytes=MAX_ATTACHMENT_BYTES),
        file=services.workspace.display_path(path),
        sidecar=None if sidecar is None else _read_yaml_file(sidecar, services),
    )


def _read_yaml_file(path: Path, services: Services) -> YamlDocument:
    data, name = _read_config_file(path, services), services.workspace.display_path(path)
    try:
        return read_yaml(data, file=name)
    except InputError:
        from agentci.recordings.adk_eval_set import is_test_file  # noqa: PLC0415 (only for errors)

        if is_test_file(_read_list(data, name)):
            raise make_eval_set_error(name) from None
        raise


def _read_list(data: bytes, name: str) -> Json:
    """Read a file whose top level is a list; None if it is not."""
    with suppress(InputError):
        return plain_data(read_tree(data, file=name)[0])
    return None


def _read_config_file(
    path: Path, services: Services, *, limit_bytes: int = MAX_CONFIG_BYTES
) -> bytes:
    name = services.workspace.display_path(path)
    return read_file(services.workspace.resolve_given(path), name=name, limit_bytes=limit_bytes)


def _find_missing_files(document: YamlDocument, locator: FileLocator) -> Iterator[Problem]:
    """Report missing files of a config that already has errors, so that all appear at once."""
    for key in ("eval_set", "dataset"):
        written = document.data.get(key)
        for named in written if isinstance(written, list) else [written]:
            try:
                if isinstance(named, str):
                    locator.locate(named, document.place_of((key,)))
            except InputError as error:
                yield from error.problems
