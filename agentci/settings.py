"""The options of a run: one table, from which flags, inputs and documents are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from agentci.errors import InputError
from agentci.model.policy import FailOn
from agentci.model.problem import Problem

MAX_JOBS = 256
MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of ``agentci run``: ``--NAME`` on the command line, input ``NAME`` of the action.

    Attributes:
        metavar: what its value is; None makes it a switch.
        choices: the only values there are; compared without regard to case.
        default: the value as a user would write it; "" leaves the choice to the config.
        repeats: may be given several times; as an input one value a line.
        cli_only: makes no sense as an input of the action.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    default: str = ""
    repeats: bool = False
    cli_only: bool = False


OPTIONS: tuple[Option, ...] = (
    Option(
        name="traces",
        metavar="GLOB",
        repeats=True,
        help="Recordings to judge, from the working directory; replaces `traces` of configs.",
    ),
    Option(
        name="metric",
        metavar="NAME",
        repeats=True,
        help="Built-in metric to judge by, without a config or added to it.",
    ),
    Option(
        name="group-by",
        choices=("auto", "trace", "conversation"),
        help="Whether a case is one trace or all traces of a conversation.",
    ),
    Option(
        name="eval-set", metavar="FILE", help="Golden eval set; replaces `eval_set` of configs."
    ),
    Option(
        name="trace-format",
        metavar="FORMAT",
        help="Format of the recordings: `auto`, `jaeger-json` or `otlp-json`.",
    ),
    Option(
        name="threshold",
        metavar="X",
        help="Score from 0 to 1 that built-in metrics have to reach; replaces theirs.",
    ),
    Option(
        name="trajectory-match-type",
        choices=MATCH_TYPES,
        help="How `tool_trajectory_avg_score` compares tool calls; replaces that of configs.",
    ),
    Option(
        name="only",
        metavar="NAME",
        repeats=True,
        help="Evaluator to run; all others are left out.",
    ),
    Option(
        name="output-dir",
        metavar="DIR",
        default="agentci-results",
        help="Folder for `results.json`, `junit.xml` and `summary.md`.",
    ),
    Option(
        name="jobs",
        metavar="N",
        help="Checks judged at the same time; by default as many as there are processors.",
    ),
    Option(
        name="fail-on",
        choices=("never", "error", "failed"),
        default="failed",
        help="What shuts the gate: nothing, only checks that could not be judged, or both.",
    ),
    Option(
        name="annotations",
        choices=("auto", "none"),
        default="auto",
        help="Whether findings are shown on their lines in the pull request.",
    ),
    Option(
        name="summary",
        choices=("auto", "none"),
        default="auto",
        help="Whether the summary is shown on the page of the workflow run.",
    ),
    Option(
        name="junit-dialect",
        choices=("common", "jenkins"),
        default="common",
        help="Which consumers `junit.xml` is written for.",
    ),
    Option(name="plan", cli_only=True, help="Say what would be judged, and judge nothing."),
    Option(name="quiet", cli_only=True, help="Print the verdict alone."),
    Option(name="verbose", cli_only=True, help="Print every check."),
)


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
