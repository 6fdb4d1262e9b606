"""Evaluators and a gate out of a config that may still have errors."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.config.defaults import Merged, idle_thresholds, merge
from agentci.config.entry_types import types_in
from agentci.config.models import BarSpec, EvalConfig, GateSpec
from agentci.config.overrides import Overrides, Programs, added_metric_problems
from agentci.config.schema import Types
from agentci.config.validate import complaints, in_order
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentevals.entries import ProcessEntry
from agentci.evaluators.context import Surroundings
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.fields import Entry
from agentci.evaluators.judge_config import Judges, NobodyJudgesError, SharedJudgeSpec
from agentci.evaluators.repeat import ONE_ANSWER, SAY_HOW_OFTEN, check_repeat_by
from agentci.model.comparison import RegressionBar
from agentci.model.identity import Identity
from agentci.model.json import Json
from agentci.model.policy import Bar, GatePolicy
from agentci.model.problem import Problem
from agentci.model.requests import DOCKER
from agentci.model.values import replace


class Building(Struct, frozen=True, kw_only=True):
    """What came of a config.

    Attributes:
        config: None where the top level is not as it should be.
        names: of all evaluators, also of those that were not to be built.
        evaluators: those that could be built.
        problems: what is wrong, and what is worth knowing.
    """

    config: EvalConfig | None
    names: tuple[str, ...]
    evaluators: tuple[Evaluator, ...]
    problems: tuple[Problem, ...]


def build(document: YamlDocument, overrides: Overrides, programs: Programs) -> Building:
    """Build all evaluators of a config, as far as it goes.

    Args:
        overrides: which evaluators are built, and what is different about them.
        programs: knows those that the config names.

    Raises:
        InputError: another package brings a type of evaluators that is broken.
    """
    types = types_in(document, programs)
    problems = [*complaints(document, types), *added_metric_problems(overrides.metrics)]
    config = _config(document)
    entries = merge(document, types, overrides)
    problems += _idle_repeat_by(document, entries)
    names = [entry.name for entry in entries]
    gate = GateSpec() if config is None else config.gate
    said = document.data.get("judge")
    judges = Judges(
        payer=document.file,
        folder=programs.folder,
        shared=_shared_judge(said) if config is None else config.judge,
        model=overrides.judge_model,
    )
    evaluators: list[Evaluator] = []
    for entry in entries:
        if entry.name in (overrides.only or names):
            try:
                evaluators.append(_evaluator(entry, types, gate, judges, programs))
            except NobodyJudgesError as error:
                # A judge that is there, and wrong, is a problem where it stands.
                if said is None or judges.shared is not None:
                    problems += error.problems
            except InputError as error:
                # A package that is broken does not know who makes use of it.
                problems += [
                    replace(each, place=each.place or entry.place) for each in error.problems
                ]
            except ValidationError as error:
                problems += _misfit(entry, error, problems)
                problems += _lost_program(entry, programs)
    # Where there are errors, it may not be known which ones are built-in.
    if all(each.severity != "error" for each in problems):
        problems += idle_thresholds(document, entries, overrides)
    return Building(
        config=config,
        names=tuple(names),
        evaluators=tuple(evaluators),
        problems=in_order(problems),
    )


def gate_policy(gate: GateSpec, names: Sequence[str]) -> GatePolicy:
    """The gate over the evaluators ``names``; bars of others, which do not run, are left out."""
    overall = gate.model_dump(include=set(BarSpec.model_fields))
    shared = {**overall, "min_pass_rate": None, "min_score": None}
    return GatePolicy(
        overall=Bar(**overall),
        evaluators={
            name: Bar(**{**shared, **bar.model_dump(exclude_unset=True)})
            for name, bar in gate.evaluators.items()
            if name in names
        },
        regression=_regression_bar(gate),
    )


def _regression_bar(gate: GateSpec) -> RegressionBar | None:
    if gate.max_regression is None:
        return None
    return RegressionBar(
        max_drop=gate.max_regression,
        confidence=gate.regression_confidence,
        shuts=tuple(gate.regression_shuts),
    )


def _shared_judge(said: Json) -> SharedJudgeSpec | None:
    """The judge of a config whose other parts may be wrong."""
    try:
        return SharedJudgeSpec.model_validate(said)
    except ValidationError:
        return None


def _idle_repeat_by(document: YamlDocument, entries: Sequence[Merged]) -> Iterator[Problem]:
    """`repeat_by` for all of a config, where no evaluator is asked several times."""
    at = ("defaults", "repeat_by")
    if document.value(at) is not None and not any("repeat" in entry.data for entry in entries):
        yield Problem(message=ONE_ANSWER, place=document.place_of(at), hint=SAY_HOW_OFTEN)


def _config(document: YamlDocument) -> EvalConfig | None:
    try:
        return EvalConfig.model_validate(document.data)
    except ValidationError:
        return None


def _evaluator(
    entry: Merged, types: Types, gate: GateSpec, judges: Judges, programs: Programs
) -> Evaluator:
    kind = types[entry.type]
    if problem := _executor_problem(entry, programs) or _image_problem(entry, kind.entry):
        raise InputError([problem])
    surroundings = Surroundings(
        place=entry.place,
        place_of=entry.place_of,
        locate=lambda named, field="path": programs.find(named, entry.place_of(field)),
        read=lambda named, field: programs.read(named, entry.place_of(field)),
        complete=lambda program: programs.complete(program, entry.place_of),
        judges=judges,
        turn_mismatch_fails=_on_turn_mismatch(gate, entry.name) == "fail",
    )
    read = kind.entry.model_validate(entry.data)
    check_repeat_by(read, of=entry.place, at=entry.place_of("repeat_by"))
    evaluator = kind.build(read, surroundings)
    if problem := _mean_problem(entry, evaluator.identity):
        raise InputError([problem])
    return evaluator


def _executor_problem(entry: Merged, programs: Programs) -> Problem | None:
    executor = entry.data.get("executor")
    if not isinstance(executor, str) or executor in programs.executors:
        return None
    return Problem(
        message=f"there is no executor {quoted(executor)}",
        place=entry.place_of("executor"),
        hint=did_you_mean(executor, [*programs.executors])
        or f"there is {one_of([*programs.executors])}",
    )


def _image_problem(entry: Merged, model: type[Entry]) -> Problem | None:
    if not issubclass(model, ProcessEntry):
        return None
    in_image, image = entry.data.get("executor") == DOCKER, entry.data.get("image")
    if in_image and image is None:
        return Problem(
            message=f"`executor: {DOCKER}` needs an image that the program runs in",
            place=entry.place_of("executor"),
            hint="add `image:`, such as `image: python:3.12-slim`",
        )
    # What `defaults` name is for those that run in images, without a word about the others.
    is_own = entry.place_of("image") != entry.place
    if not in_image and image is not None and is_own:
        return Problem(
            message=f"`image` is for `executor: {DOCKER}`",
            place=entry.place_of("image"),
            hint=f"add `executor: {DOCKER}`, or leave the image out",
        )
    return None


def _mean_problem(entry: Merged, identity: Identity) -> Problem | None:
    repetition = identity.repetition
    if repetition.times == 1 or repetition.by == "majority" or identity.threshold is not None:
        return None
    return Problem(
        message="`repeat_by: mean` needs a score and a threshold, and here is none",
        place=entry.place_of("repeat_by"),
        hint="use `repeat_by: majority`",
    )


def _on_turn_mismatch(gate: GateSpec, name: str) -> str:
    bar = gate.evaluators.get(name, gate)
    return (bar if "on_turn_mismatch" in bar.model_fields_set else gate).on_turn_mismatch


def _lost_program(entry: Merged, programs: Programs) -> tuple[Problem, ...]:
    """Say what is wrong with the program of an entry that cannot be built for other reasons."""
    path = entry.data.get("path")
    try:
        if isinstance(path, str) and path:
            programs.find(path, entry.place_of("path"))
    except InputError as error:
        return error.problems
    return ()


def _misfit(entry: Merged, error: ValidationError, known: Iterable[Problem]) -> list[Problem]:
    """Say what ``defaults`` break in an entry, unless it was broken before."""
    if any(problem.severity == "error" for problem in known):
        return []
    return [
        Problem(
            message=f"{entry.name!r} does not go together with `defaults`: {each['msg']}",
            place=entry.place,
        )
        for each in error.errors(include_url=False)
    ]
