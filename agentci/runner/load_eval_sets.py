"""Reads the eval sets of a config, and joins them into one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.text.suggest import quote_name
from agentci._util.workspace import ResolvedPath, Workspace, limit_input, read_file
from agentci.config.discovery import is_case_file
from agentci.errors import InputError
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.model.case import EvalCase, EvalSet
from agentci.model.values import Place, Problem, replace
from agentci.recordings.registry import is_recording

if TYPE_CHECKING:
    from agentci.evaluators.checks.check import CheckEvaluator
    from agentci.evaluators.fields import TokenPriceSpec

MAX_EVAL_SET_BYTES: Final = 64 * 1024**2


class NamedEvalSet(Struct, frozen=True, kw_only=True):
    """A file with eval cases, and where it is named."""

    path: ResolvedPath
    place: Place


def load_eval_set_file(file: NamedEvalSet, workspace: Workspace) -> EvalSet:
    """Read one eval set.

    Raises:
        InputError: with all of its errors.
    """
    return _load_file(file, workspace, {})[0]


def load_eval_sets(files: Sequence[NamedEvalSet], workspace: Workspace) -> EvalSet | None:
    """Read eval sets, and join them into one; None if there are none.

    Raises:
        InputError: with all errors of the eval sets; or two of their cases have the same id.
    """
    return _load(files, workspace, {})[0]


def load_checked_eval_sets(
    files: Sequence[NamedEvalSet], workspace: Workspace, prices: "Mapping[str, TokenPriceSpec]"
) -> tuple[EvalSet | None, tuple[ComparableEvaluator, ...]]:
    """Read eval sets as ``load_eval_sets``, and the evaluators of the checks of their cases.

    Args:
        prices: of models, by their patterns.
    """
    eval_set, checks = _load(files, workspace, prices)
    if not checks:
        return eval_set, ()
    from agentci.config.case_file import make_case_evaluators  # noqa: PLC0415 (many runs have none)

    return eval_set, make_case_evaluators(checks)


def _load(
    files: Sequence[NamedEvalSet], workspace: Workspace, prices: "Mapping[str, TokenPriceSpec]"
) -> "tuple[EvalSet | None, Mapping[str, Mapping[str, CheckEvaluator]]]":
    eval_sets: list[EvalSet] = []
    checks: dict[str, dict[str, CheckEvaluator]] = {}
    problems: list[Problem] = []
    for each in {file.path.path: file for file in files}.values():
        try:
            eval_set, own = _load_file(each, workspace, prices)
        except InputError as error:
            problems += error.problems
            continue
        eval_sets.append(eval_set)
        for name, by_case in own.items():
            checks.setdefault(name, {}).update(by_case)
    if problems:
        raise InputError(problems)
    return join_eval_sets(eval_sets), checks


def join_eval_sets(eval_sets: Sequence[EvalSet]) -> EvalSet | None:
    """Make one eval set of several, with the id and place of the first; None if there are none.

    Raises:
        InputError: cases of different files have the same id.
    """
    if problems := _find_repeated_ids(eval_sets):
        raise InputError(problems)
    if not eval_sets:
        return None
    cases = tuple(case for eval_set in eval_sets for case in eval_set.cases)
    return replace(eval_sets[0], cases=cases)


def _load_file(
    file: NamedEvalSet, workspace: Workspace, prices: "Mapping[str, TokenPriceSpec]"
) -> "tuple[EvalSet, Mapping[str, Mapping[str, CheckEvaluator]]]":
    from agentci.recordings.adk_eval_set import read_eval_set  # noqa: PLC0415 (many runs have none)

    name = workspace.display_path(file.path.path)
    with limit_input(name):
        data = read_file(file.path, name=name, limit_bytes=MAX_EVAL_SET_BYTES, place=file.place)
        if is_case_file(name):
            from agentci.config.case_file import read_case_file  # noqa: PLC0415 (likewise)

            read = read_case_file(data, file=name, prices=prices)
            return read.eval_set, read.checks
        try:
            return read_eval_set(data, file=name), {}
        except InputError:
            if is_recording(data):
                message = "the file is a trace, not an eval set"
                hint = "name it under `traces:`, or pass it with --traces"
                raise InputError.from_message(message, place=Place(file=name), hint=hint) from None
            raise


def _find_repeated_ids(eval_sets: Sequence[EvalSet]) -> list[Problem]:
    """Find ids of cases in several files; those within one file are errors of the file."""
    first: dict[str, EvalCase] = {}
    problems: list[Problem] = []
    for case in (case for eval_set in eval_sets for case in eval_set.cases):
        known = first.setdefault(case.id, case)
        if known.place.file != case.place.file:
            message = f"the id {quote_name(case.id)} is already used in {known.place.file}"
            hint = "rename one of them, or use a config for each eval set"
            problems.append(Problem(message=message, place=case.place, hint=hint))
    return problems
