"""What a user asked of one run: options given as text, checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from agentci.errors import InputError
from agentci.model.policy import FailOn
from agentci.model.problem import Problem
from agentci.options import OPTIONS, Option

MAX_JOBS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked of one run, checked; None where the config decides."""

    configs: tuple[str, ...]
    traces: tuple[str, ...]
    metrics: tuple[str, ...]
    group_by: Literal["auto", "trace", "conversation"] | None
    eval_set: str | None
    trace_format: str | None
    threshold: float | None
    trajectory_match_type: str | None
    only: tuple[str, ...]
    output_dir: str
    jobs: int | None
    fail_on: FailOn
    annotations: bool
    summary: bool
    junit_dialect: Literal["common", "jenkins"]
    plan: bool
    quiet: bool
    verbose: bool


def settings_of(configs: Sequence[str], values: Mapping[str, Sequence[str]]) -> Settings:
    """Check what was given as text.

    Args:
        configs: files, folders and globs of configs.
        values: texts by option name; empty texts count as not given.

    Raises:
        InputError: one problem for every value that cannot be used.
    """
    problems: list[Problem] = []

    def one(name: str) -> str:
        option = _OPTION[name]
        given = [text.strip() for text in values.get(name, ()) if text.strip()]
        text = given[-1] if given else option.default
        return _checked(option, text, problems)

    def many(name: str) -> tuple[str, ...]:
        return tuple(text.strip() for text in values.get(name, ()) if text.strip())

    settings = Settings(
        configs=tuple(configs),
        traces=many("traces"),
        metrics=many("metric"),
        group_by=cast('Literal["auto", "trace", "conversation"] | None', one("group-by") or None),
        eval_set=one("eval-set") or None,
        trace_format=one("trace-format") or None,
        threshold=_number(
            "threshold", one("threshold"), _fraction, "a number from 0 to 1", problems
        ),
        trajectory_match_type=one("trajectory-match-type") or None,
        only=many("only"),
        output_dir=one("output-dir"),
        jobs=_number("jobs", one("jobs"), _positive, "a whole number from 1 to 256", problems),
        fail_on=cast("FailOn", one("fail-on")),
        annotations=one("annotations") == "auto",
        summary=one("summary") == "auto",
        junit_dialect=cast('Literal["common", "jenkins"]', one("junit-dialect")),
        plan=bool(many("plan")),
        quiet=bool(many("quiet")),
        verbose=bool(many("verbose")),
    )
    if problems:
        raise InputError(problems)
    return settings


N = TypeVar("N", int, float)

_OPTION = {option.name: option for option in OPTIONS}


def _checked(option: Option, text: str, problems: list[Problem]) -> str:
    """``text`` as the table of choices spells it."""
    if not text or not option.choices:
        return text
    for choice in option.choices:
        if choice.casefold() == text.casefold().replace("-", "_") or choice == text:
            return choice
    problems.append(
        Problem(
            message=f"--{option.name} cannot be {text!r}",
            hint=f"use one of {', '.join(option.choices)}",
        )
    )
    return option.default


def _number(
    name: str, text: str, read: Callable[[str], N], wanted: str, problems: list[Problem]
) -> N | None:
    if not text:
        return None
    try:
        return read(text)
    except ValueError:
        problems.append(Problem(message=f"--{name} must be {wanted}, not {text!r}"))
        return None


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MAX_JOBS:
        raise ValueError(text)
    return value
