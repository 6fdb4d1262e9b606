"""Build evaluators and a gate from a config that may still have errors."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.checks import CheckItem, list_check_items
from agentci.config.entries import (
    MergedEntry,
    find_evaluator_types,
    find_gates_without_limit,
    find_thresholds_of_zero,
    find_unused_thresholds,
    merge_entries,
)
from agentci.config.models import EvalConfig, GateSpec, ThresholdSpec
from agentci.config.overrides import Overrides, ProgramResolver, find_metric_option_problems
from agentci.config.schema import EvaluatorTypes
from agentci.config.validate import (
    check_config,
    format_model_error,
    read_part,
    sort_problems,
)
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentevals.code import SandboxedEntry
from agentci.evaluators.checks.names import CASE_PREFIX
from agentci.evaluators.evaluator import ComparableEvaluator, is_comparable
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.fields import (
    REPEAT_BY_HAS_NO_EFFECT,
    REPEAT_BY_HINT,
    Entry,
    check_repeat_by,
)
from agentci.evaluators.judge_config import JudgeSettings, MissingJudgeError, SharedJudgeSpec
from agentci.model.gate import POOLED, GatePolicy, GateThresholds, RegressionThresholds
from agentci.model.requests import DOCKER_EXECUTOR, EvaluatorIdentity
from agentci.model.values import Json, Problem, replace


class BuildResult(Struct, frozen=True, kw_only=True):
    """The evaluators and problems of a config.

    Attributes:
        config: None if the top level is invalid.
        names: the names of all evaluators, including those that were not built.
        evaluators: the evaluators that could be built.
        problems: errors, warnings and notes.
    """

    config: EvalConfig | None
    names: tuple[str, ...]
    evaluators: tuple[ComparableEvaluator, ...]
    problems: tuple[Problem, ...]


def build_evaluators(
    document: YamlDocument, overrides: Overrides, programs: ProgramResolver
) -> BuildResult:
    """Build as many evaluators of a config as possible.

    Args:
        overrides: which evaluators to build, and the values to replace.
        programs: finds the programs that the config names.

    Raises:
        InputError: a plugin provides a broken evaluator type.
    """
    types = find_evaluator_types(document, programs)
    config, found = check_config(document, types)
    problems = [*found, *find_metric_option_problems(overrides.metrics)]
    entries = merge_entries(document, types, overrides)
    problems += _find_unused_repeat_by(document, entries)
    names = [entry.name for entry in entries]
    gate = GateSpec() if config is None else config.gate
    judge = document.data.get("judge")
    judges = JudgeSettings(
        budget_id=document.file,
        folder=programs.folder,
        shared=_read_shared_judge(judge) if config is None else config.judge,
        model=overrides.judge_model,
    )
    evaluators: list[ComparableEvaluator] = []
    for entry in entries:
        if entry.name in (overrides.only or names):
            evaluators += _build_entry(
                entry,
                types,
                gate,
                judges,
                programs,
                problems,
                has_valid_judge=judge is None or judges.shared is not None,
            )
    items = list_check_items(document)
    names += [item.name for item in items]
    for item in items:
        if item.name in (overrides.only or names):
            evaluators += _build_check(item, document, programs, config, problems)
    # After an error, the built-in metrics may be unknown.
    if all(one.severity != "error" for one in problems):
        problems += find_unused_thresholds(document, entries, overrides)
        problems += find_thresholds_of_zero(entries)
        problems += find_gates_without_limit(gate, document)
    return BuildResult(
        config=config,
        names=tuple(names),
        evaluators=tuple(evaluators),
        problems=sort_problems(problems),
    )


def make_gate_policy(
    gate: GateSpec, names: Sequence[str], *, has_results: bool = False
) -> GatePolicy:
    """Make the gate policy for the evaluators ``names``, without thresholds of other evaluators.

    Args:
        has_results: whether the config has results of other tools, whose metrics may have any name.
    """
    overall = gate.model_dump(include=set(ThresholdSpec.model_fields))
    shared = {**overall, **dict.fromkeys(POOLED)}
    same = {*GatePolicy.__struct_fields__} & {*GateSpec.model_fields} - {"evaluators"}
    return GatePolicy(
        overall=GateThresholds(**overall),
        evaluators={
            name: GateThresholds(**{**shared, **spec.model_dump(exclude_unset=True)})
            for name, spec in gate.evaluators.items()
            if name in names or has_results or name.startswith(CASE_PREFIX)
        },
        regression=_make_regression_thresholds(gate),
        source=gate.policy,
        **gate.model_dump(include=same),
    )


def _make_regression_thresholds(gate: GateSpec) -> RegressionThresholds | None:
    if gate.max_regression is None:
        return None
    return RegressionThresholds(
        max_drop=gate.max_regression,
        confidence=gate.regression_confidence,
        mode=gate.regression_mode,
        fail_on=tuple(gate.fail_on_regression),
    )


def _read_shared_judge(section: Json) -> SharedJudgeSpec | None:
    """The `judge` section of a config whose other parts may be invalid."""
    try:
        return SharedJudgeSpec.model_validate(section)
    except ValidationError:
        return None


def _find_unused_repeat_by(
    document: YamlDocument, entries: Sequence[MergedEntry]
) -> Iterator[Problem]:
    """Report a `repeat_by` in `defaults` if no evaluator sets `repeat`."""
    at = ("defaults", "repeat_by")
    if document.value(at) is not None and not any("repeat" in entry.data for entry in entries):
        yield Problem(
            message=REPEAT_BY_HAS_NO_EFFECT, place=document.place_of(at), hint=REPEAT_BY_HINT
        )


def _build_entry(  # noqa: PLR0913 (all parts of the config that an entry may use)
    entry: MergedEntry,
    types: EvaluatorTypes,
    gate: GateSpec,
    judges: JudgeSettings,
    programs: ProgramResolver,
    problems: list[Problem],
    *,
    has_valid_judge: bool,
) -> Iterator[ComparableEvaluator]:
    """Build the evaluator of an entry, or add its problems, unless ``check_config`` has them."""
    try:
        yield _build_evaluator(entry, types, gate, judges, programs)
    except MissingJudgeError as error:
        # An invalid `judge` section is reported at its own position instead.
        if has_valid_judge:
            problems += error.problems
    except InputError as error:
        # A broken plugin does not know which entry uses it.
        problems += [replace(one, place=one.place or entry.place) for one in error.problems]
    except ValidationError as error:
        problems += _find_defaults_conflicts(entry, error, problems)
        problems += _find_program_problems(entry, programs)


def _build_evaluator(
    entry: MergedEntry,
    types: EvaluatorTypes,
    gate: GateSpec,
    judges: JudgeSettings,
    programs: ProgramResolver,
) -> ComparableEvaluator:
    kind = types[entry.type]
    if problem := _executor_problem(entry, programs) or _image_problem(entry, kind.entry):
        raise InputError([problem])
    context = EvaluatorContext(
        place=entry.place,
        find_place=entry.place_of,
        locate=lambda named, field="path": programs.find(named, entry.place_of(field)),
        read=lambda named, field: programs.read(named, entry.place_of(field)),
        complete=lambda program: programs.complete(program, entry.place_of),
        judges=judges,
        turn_mismatch_fails=_find_turn_mismatch_policy(gate, entry.name) == "fail",
    )
    read = kind.entry.model_validate(entry.data)
    check_repeat_by(read, of=entry.place, at=entry.place_of("repeat_by"))
    evaluator = kind.build(read, context)
    if not is_comparable(evaluator):
        raise TypeError(f"the type {entry.type} builds an evaluator without `read_expectation`")
    if problem := _repeat_by_mean_problem(entry, evaluator.identity):
        raise InputError([problem])
    return evaluator


def _build_check(
    item: CheckItem,
    document: YamlDocument,
    programs: ProgramResolver,
    config: EvalConfig | None,
    problems: list[Problem],
) -> Iterator[ComparableEvaluator]:
    """Build the evaluator of a check, unless ``check_config`` reports its problems."""
    from agentci.config.check_entries import (  # noqa: PLC0415 (only for configs with checks)
        build_check_evaluator,
        find_zero_thresholds,
        read_check_entry,
    )

    entry, known = read_check_entry(item, document, read_part)
    if entry is not None and not known:
        prices = {} if config is None else config.prices
        try:
            check = build_check_evaluator(
                item, entry, document, programs.read, programs.read_variable, prices
            )
        except InputError as error:
            problems += error.problems
            return
        problems += find_zero_thresholds(item, check, document)
        yield check


def _executor_problem(entry: MergedEntry, programs: ProgramResolver) -> Problem | None:
    executor = entry.data.get("executor")
    if not isinstance(executor, str) or executor in programs.executors:
        return None
    return Problem(
        message=f"unknown executor {quote_name(executor)}",
        place=entry.place_of("executor"),
        hint=suggest_name(executor, [*programs.executors])
        or f"known executors: {', '.join(programs.executors)}",
    )


def _image_problem(entry: MergedEntry, model: type[Entry]) -> Problem | None:
    if not issubclass(model, SandboxedEntry):
        return None
    in_image, image = entry.data.get("executor") == DOCKER_EXECUTOR, entry.data.get("image")
    if in_image and image is None:
        return Problem(
            message=f"`executor: {DOCKER_EXECUTOR}` needs an `image` to run the program in",
            place=entry.place_of("executor"),
            hint="add `image:`, such as `image: python:3.12-slim`",
        )
    # An image from `defaults` is meant for entries that run in images, and ignored for others.
    is_own = entry.place_of("image") != entry.place
    if not in_image and image is not None and is_own:
        return Problem(
            message=f"`image` requires `executor: {DOCKER_EXECUTOR}`",
            place=entry.place_of("image"),
            hint=f"add `executor: {DOCKER_EXECUTOR}`, or remove `image`",
        )
    return None


def _repeat_by_mean_problem(entry: MergedEntry, identity: EvaluatorIdentity) -> Problem | None:
    repetition = identity.repetition
    if (
        repetition.times == 1
        or repetition.aggregation == "majority"
        or identity.threshold is not None
    ):
        return None
    return Problem(
        message="`repeat_by: mean` needs a score and a threshold; this evaluator has none",
        place=entry.place_of("repeat_by"),
        hint="use `repeat_by: majority`",
    )


def _find_turn_mismatch_policy(gate: GateSpec, name: str) -> str:
    spec = gate.evaluators.get(name, gate)
    return (spec if "on_turn_mismatch" in spec.model_fields_set else gate).on_turn_mismatch


def _find_program_problems(entry: MergedEntry, programs: ProgramResolver) -> tuple[Problem, ...]:
    """Report problems with the program of an entry that cannot be built for other reasons."""
    path = entry.data.get("path")
    try:
        if isinstance(path, str) and path:
            programs.find(path, entry.place_of("path"))
    except InputError as error:
        return error.problems
    return ()


def _find_defaults_conflicts(
    entry: MergedEntry, error: ValidationError, known: Iterable[Problem]
) -> list[Problem]:
    """Report values of ``defaults`` that make an entry invalid, if there was no error before."""
    if any(problem.severity == "error" for problem in known):
        return []
    name = quote_name(entry.name)
    return [
        Problem(
            message=f"`defaults.{each['loc'][0]}` is invalid for evaluator {name}: "
            f"{format_model_error(each)}"
            if each["loc"]
            else f"evaluator {name} conflicts with `defaults`: {format_model_error(each)}",
            place=entry.place,
        )
        for each in error.errors(include_url=False)
    ]
