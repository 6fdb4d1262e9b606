"""Read configs from disk into suites, and find the files that they name."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    decode_utf8,
    is_file,
    is_folder,
    limit_input,
    read_file,
    resolve_path,
)
from agentci.config.discovery import (
    CONFIG_NAMES,
    find_configs,
    find_matching_paths,
    is_eval_file,
    make_eval_set_error,
    may_be_case_file,
)
from agentci.config.overrides import Overrides, find_only_option_problems
from agentci.config.settings import Settings
from agentci.config.suite import Suite, make_case_suite, make_metric_suite, read_suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import YamlDocument, read_tree, read_yaml
from agentci.config.yaml_nodes import plain_data
from agentci.errors import InputError, PermanentFetchError
from agentci.evaluators.checks.names import CASE_PREFIX
from agentci.evaluators.evaluator import collect_needs
from agentci.execution.runtimes import find_unsupported_reason
from agentci.model.case import EvalSet
from agentci.model.judges import RequiredJudge
from agentci.model.program import REQUIREMENTS_NAME, LocalProgram, RemoteProgram
from agentci.model.requests import RequiredService, RequiredVariables
from agentci.model.values import COMMAND_LINE, Json, Place, Problem, replace
from agentci.recordings.adk_eval_set import is_test_file
from agentci.remote.programs import Sources
from agentci.runner.load_eval_sets import NamedEvalSet, load_checked_eval_sets
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.evaluators.evaluator_type import EvaluatorType, TextFile


MAX_TEXT_BYTES = 1024**2
MAX_NAMES = 5
# A folder with one of these is a project; its requirements.txt is not for evaluators only.
PROJECT_NAMES = ("pyproject.toml", "setup.py", ".git")


class FileLocator:
    """Finds the files that one config names.

    Attributes:
        executors: names of the executors that evaluators can use.
        folder: the config's folder.
        located: the files that it found.
        notices: notes about files found so far.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        *,
        sources: Sources,
        executors: Collection[str],
        variables: ConfigVariables,
    ) -> None:
        self.executors = executors
        self.folder = str(resolve_path(folder))
        self._folder = folder
        # A config from elsewhere was named on the command line: its own repository is trusted.
        self._workspace = workspace.extend(folder)
        self._sources = sources
        self._variables = variables
        self._has_fallen_back = False
        self.located: dict[Path, None] = {}
        self.notices: list[Problem] = []

    def type_named(self, name: str) -> "EvaluatorType[Any] | None":
        """See ``ProgramResolver``."""
        from agentci._util import plugins  # noqa: PLC0415 (most runs do not need it)
        from agentci.evaluators import evaluator_type  # noqa: PLC0415 (loads pydantic)
        from agentci.evaluators.registry import ENTRY_POINT_GROUP  # noqa: PLC0415 (likewise)

        found = plugins.load_plugin(ENTRY_POINT_GROUP, name)
        if found is None:
            return None
        if not evaluator_type.is_evaluator_type(found):
            raise plugins.make_plugin_error(ENTRY_POINT_GROUP, name, expected="an EvaluatorType")
        package = plugins.find_plugin_package(ENTRY_POINT_GROUP, name)
        return evaluator_type.wrap_plugin_type(found, title=f"the type `{name}` of {package}")

    def find(self, named: str, place: Place) -> LocalProgram:
        """See ``ProgramResolver``."""
        path = self.locate(named, place).path
        if reason := find_unsupported_reason(path):
            raise InputError.from_message(reason, place=place)
        home = None if self._workspace.home is None else str(self._workspace.home)
        if path.suffix != ".py" or not is_file(path.parent / REQUIREMENTS_NAME):
            return LocalProgram(path=str(path), home=home)
        if self._is_project(path.parent):
            self.notices.append(
                Problem(
                    message=f"the {REQUIREMENTS_NAME} next to {named} is not installed:"
                    " it belongs to the whole project",
                    place=place,
                    hint="move evaluators that need packages into a folder of their own",
                    severity="note",
                )
            )
            return LocalProgram(path=str(path), home=home)
        requirements = self._workspace.resolve(path.parent / REQUIREMENTS_NAME, place=place)
        return LocalProgram(path=str(path), requirements=str(requirements), home=home)

    def read(self, named: str, place: Place) -> "TextFile":
        """See ``ProgramResolver``."""
        from agentci.evaluators.evaluator_type import TextFile  # noqa: PLC0415 (loads pydantic)

        path = self.locate(named, place)
        name = self._workspace.display_path(path.path)
        data = read_file(path, name=name, limit_bytes=MAX_TEXT_BYTES, place=place)
        return TextFile(name=name, text=decode_utf8(data, file=name))

    def read_variable(self, named: str, place: Place) -> str:
        """See ``ProgramResolver``."""
        if refusal := self._variables.explain_refusal(named):
            message, hint = refusal
            raise InputError.from_message(message, place=place, hint=hint)
        return self._variables.get(named)

    def complete(self, program: RemoteProgram, place_of: Callable[[str], Place]) -> RemoteProgram:
        """See ``ProgramResolver``."""
        if program.is_local and program.repository:
            place = place_of("repo")
            paths = self.matches(program.repository, place)
            if not paths or not is_folder(paths[0].path):
                message = f"folder {program.repository} not found"
                raise InputError.from_message(
                    message, place=place, hint="`repo` is relative to this config"
                )
            folder = paths[0].path
            program = replace(program, repository=self._workspace.display_path(folder))
        field = "source"
        try:
            source = self._sources.get(program.source)
            field = "ref"
            return source.complete(program)
        except PermanentFetchError as error:
            message, place = str(error), place_of(field)
            raise InputError.from_message(message, place=place, hint=error.hint) from None

    def _is_project(self, folder: Path) -> bool:
        """Whether ``folder`` is the root of a project, whose requirements are not evaluators'."""
        is_root = folder in (self._workspace.root, self._workspace.home)
        return is_root or any((folder / name).exists() for name in PROJECT_NAMES)

    def locate(self, named: str, place: Place) -> ResolvedPath:
        """The file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or is outside the workspace.
        """
        paths = self.matches(named, place)
        if not paths:
            raise InputError.from_message(
                f"{named} does not exist",
                place=place,
                hint="paths are relative to the config's folder or the working directory",
            )
        if is_folder(paths[0].path):
            message = f"{named} is a folder, not a file"
            raise InputError.from_message(message, place=place, hint="name the file")
        if not is_file(paths[0].path):
            message = f"{named} is not a regular file, or is a broken link"
            raise InputError.from_message(message, place=place)
        self.located[paths[0].path] = None
        return paths[0]

    def matches(
        self, pattern: str, place: Place, *, folders: list[Path] | None = None
    ) -> tuple[ResolvedPath, ...]:
        """The paths that match ``pattern``, relative to the config or the working directory.

        The latter is for configs written for agentevals, which resolves paths there.

        Args:
            folders: as for ``find_matching_paths``.

        Raises:
            InputError: one of them is outside the workspace.
        """
        paths = find_matching_paths(self._folder, pattern, folders=folders)
        if not paths and (paths := find_matching_paths(self._workspace.cwd, pattern)):
            self._note_fallback(pattern, place)
        return tuple(self._workspace.resolve(path, named=pattern, place=place) for path in paths)

    def _note_fallback(self, named: str, place: Place) -> None:
        """Note, once per config, that it depends on the working directory."""
        if not self._has_fallen_back:
            self._has_fallen_back = True
            self.notices.append(
                Problem(
                    message=f"{named} was found in the working directory, not next to the config",
                    place=place,
                    hint="paths in a config are relative to its folder",
                    severity="note",
                )
            )


MAX_CONFIG_BYTES = 1024**2


class LoadedSuite(Struct, frozen=True, kw_only=True):
    """A suite, and the locator of the files that its config names.

    Attributes:
        eval_set: the eval set, if it was read with the config because it may have checks.
    """

    suite: Suite
    locator: FileLocator
    eval_set: EvalSet | None = None

    @property
    def notices(self) -> tuple[Problem, ...]:
        """Warnings and notes about the config, from what was loaded so far."""
        return (*self.suite.notices, *self.locator.notices)


def move_suite(loaded: LoadedSuite, workspace: Workspace, services: Services) -> LoadedSuite:
    """The suite, with its files at the same paths of another workspace.

    Raises:
        InputError: the config is outside the run's workspace.
    """
    folder = Path(loaded.locator.folder)
    if not folder.is_relative_to(services.workspace.root):
        message = f"{loaded.suite.file} is outside the workspace"
        raise InputError.from_message(message, place=loaded.suite.place)
    moved = workspace.root / folder.relative_to(services.workspace.root)
    locator = FileLocator(
        moved,
        workspace,
        sources=services.sources,
        executors=services.executors,
        variables=services.variables,
    )
    return replace(loaded, locator=locator)


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
            raise InputError([replace(each, hint="pass --trace FILE") for each in missing])
        locator = make_locator(services.workspace.cwd, services)
        return LoadedSuite(suite=make_case_suite(), locator=locator)
    from agentci.config.suite import read_inputs  # noqa: PLC0415 (few commands need it)

    document = _read_document(paths[0], services)
    locator = make_locator(paths[0].parent, services)
    return LoadedSuite(suite=read_inputs(document), locator=locator)


def find_eval_set_readers(settings: Settings, services: Services) -> dict[Path, str]:
    """Return the first config that reads each eval set, by the path of the eval set.

    Invalid configs are left out.
    """
    from agentci.config.suite import read_inputs  # noqa: PLC0415 (few commands need it)

    readers: dict[Path, str] = {}
    for path in find_configs(settings.configs, services.workspace)[0]:
        with suppress(InputError):
            suite = read_inputs(_read_document(path, services))
            loaded = LoadedSuite(suite=suite, locator=make_locator(path.parent, services))
            for each in find_eval_sets(loaded, services.workspace):
                readers.setdefault(each.path.path, suite.file)
    return readers


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


def find_eval_sets(
    loaded: LoadedSuite, workspace: Workspace, *, given: Sequence[str] = ()
) -> tuple[NamedEvalSet, ...]:
    """Find the eval sets of a config.

    Args:
        given: paths and globs of ``--eval-set``, which replace those of the config.

    Raises:
        InputError: one does not exist, or is outside the workspace.
    """
    if given:
        return find_given_eval_sets(given, workspace)
    place = loaded.suite.place_of("eval_set")
    return tuple(
        NamedEvalSet(path=path, place=place)
        for named in loaded.suite.eval_sets
        for path in loaded.locator.matches(named, place) or (loaded.locator.locate(named, place),)
    )


def find_given_eval_sets(given: Sequence[str], workspace: Workspace) -> tuple[NamedEvalSet, ...]:
    """Find the eval sets of ``--eval-set``; errors as for ``find_eval_sets``."""
    found = {named: find_matching_paths(workspace.cwd, named) for named in given}
    for named, paths in found.items():
        if not paths and "*" in named:
            raise InputError.from_message(
                f"no eval set matches {named}", place=COMMAND_LINE, hint="check the glob"
            )
    return tuple(
        NamedEvalSet(
            path=workspace.resolve_given(path, named=named, place=COMMAND_LINE),
            place=COMMAND_LINE,
        )
        for named, paths in found.items()
        for path in paths or (Path(named),)
    )


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


def make_locator(folder: Path, services: Services) -> FileLocator:
    """Make the locator of a config in ``folder``."""
    return FileLocator(
        folder,
        services.workspace,
        sources=services.sources,
        executors=services.executors,
        variables=services.variables,
    )


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
