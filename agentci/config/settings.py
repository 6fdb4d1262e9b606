"""Parse and check the options of one run, given as text."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from agentci._util.text.suggest import join_with_or, suggest_name
from agentci.config.options import OPTIONS
from agentci.config.variables import RESERVED_HINT, is_name, is_name_pattern, is_reserved
from agentci.errors import InputError, PermanentFetchError
from agentci.model.result import AUTO_SHARD, MAX_SHARDS, Shard, parse_shard
from agentci.model.values import (
    CALL_SCOPES,
    COMMENT_MODES,
    CONTENT_LIMITS,
    DISPLAY_MODES,
    FAIL_ON_CHOICES,
    GROUP_BY_CHOICES,
    JUNIT_FORMATS,
    MATCH_TYPES,
    OPTIONAL_FORMATS,
    CallScope,
    CommentMode,
    ContentLimit,
    FailOn,
    GroupBy,
    JUnitFormat,
    MatchType,
    OptionalFormat,
    Problem,
)

MAX_JOBS = 256
PERCENT: Final = 100
_URL: Final = re.compile(r"https?://[\w.:-]+(/[\w.~%!$&'*+,;=:@/?-]*)?", re.ASCII)
# A value of `baseline`: the base commit and its results are found automatically.
PULL_REQUEST_BASE: Final = "base"


class FetchSettings(Struct, frozen=True, kw_only=True):
    """How remote evaluators and packages are fetched.

    Attributes:
        cache_dir: the folder as given by the user; empty for the default.
        locked: use only what is in the lock file.
        offline: make no network requests.
        no_cache: do not read from the cache.
    """

    cache_dir: str = ""
    locked: bool = False
    offline: bool = False
    no_cache: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """The checked options of one run; None means that the config decides."""

    configs: tuple[str, ...]
    traces: tuple[str, ...]
    results: tuple[str, ...]
    metrics: tuple[str, ...]
    group_by: GroupBy | None
    eval_sets: tuple[str, ...]
    trace_format: str | None
    threshold: float | None
    trajectory_match_type: MatchType | None
    judge_model: str
    only: tuple[str, ...]
    cases: tuple[str, ...]
    tags: tuple[str, ...]
    output_dir: str
    jobs: int | None
    shard: Shard | None
    baseline: str
    baseline_artifact: str
    fetch_settings: FetchSettings
    fail_on: FailOn
    annotations: bool
    summary: bool
    evaluator_io: CallScope
    content: ContentLimit
    junit_dialect: JUnitFormat
    formats: tuple[OptionalFormat, ...]
    emit_otel: str
    commenting: CommentMode
    check_run: str
    comment_template: str
    report_url: str
    matrix: str
    plan: bool
    quiet: bool
    verbose: bool
    opens_report: bool


def parse_settings(configs: Sequence[str], values: Mapping[str, Sequence[str]]) -> Settings:
    """Parse and check the options.

    Args:
        configs: files, folders and globs of configs.
        values: texts by option name; empty texts count as not given.

    Raises:
        InputError: one problem for every invalid value.
    """
    given = _OptionReader(values)
    settings = Settings(
        configs=tuple(configs),
        traces=given.texts("traces"),
        results=given.texts("results"),
        metrics=given.texts("metric"),
        group_by=given.choice("group-by", GROUP_BY_CHOICES),
        eval_sets=given.texts("eval-set"),
        trace_format=given.text("trace-format") or None,
        threshold=given.number("threshold", _parse_share, "a number from 0 to 1"),
        trajectory_match_type=given.choice("trajectory-match-type", MATCH_TYPES),
        judge_model=given.text("judge-model"),
        only=given.texts("only"),
        cases=given.texts("case"),
        tags=given.texts("tag"),
        output_dir=given.text("output-dir"),
        jobs=given.number("jobs", _parse_jobs, f"a whole number from 1 to {MAX_JOBS}"),
        shard=given.shard(),
        baseline=given.text("baseline"),
        baseline_artifact=given.text("baseline-artifact"),
        fetch_settings=given.fetch_settings(),
        fail_on=given.choice("fail-on", FAIL_ON_CHOICES) or "failed",
        annotations=given.choice("annotations", DISPLAY_MODES) != "none",
        summary=given.choice("summary", DISPLAY_MODES) != "none",
        evaluator_io=given.choice("evaluator-io", CALL_SCOPES) or "failed",
        content=given.choice("content", CONTENT_LIMITS) or "budget",
        junit_dialect=given.choice("junit-dialect", JUNIT_FORMATS) or "common",
        formats=given.several_choices("formats", tuple(OPTIONAL_FORMATS)),
        emit_otel=given.otlp_endpoint(),
        commenting=given.choice("comment", COMMENT_MODES) or "never",
        check_run=given.text("check-run"),
        comment_template=given.text("comment-template"),
        report_url=given.report_url(),
        matrix=given.text("matrix"),
        plan=given.switch("plan"),
        quiet=given.switch("quiet"),
        verbose=given.switch("verbose"),
        opens_report=given.switch("open"),
    )
    if settings.baseline and (settings.cases or settings.tags):
        message = "--case and --tag cannot be combined with --baseline, which compares all cases"
        given.problems.append(Problem(message=message, hint="remove one of them"))
    if given.problems:
        raise InputError(given.problems)
    return settings


def parse_env_allow(values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Parse and check the names and patterns of variables, by option name; empty for the default.

    Raises:
        InputError: one problem for every invalid name.
    """
    names = _OptionReader(values).texts("env-allow")
    problems = [
        Problem(
            message=f"env-allow must be names of variables, one per line, not {name!r}",
            hint="use letters, digits, `_`, and `*` for any characters",
        )
        for name in names
        if not is_name_pattern(name)
    ]
    problems += [
        Problem(message=f"env-allow cannot contain {name}", hint=RESERVED_HINT)
        for name in names
        if is_reserved(name)
    ]
    if problems:
        raise InputError(problems)
    return names


def parse_allow_agents(values: Mapping[str, Sequence[str]]) -> bool:
    """Parse whether agents of eval files may run outside the sandbox, by option name.

    Raises:
        InputError: the value is neither true nor false.
    """
    given = _OptionReader(values)
    allowed = given.switch("allow-agents")
    if given.problems:
        raise InputError(given.problems)
    return allowed


def parse_evaluator_caches(values: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Parse the folders that entries may open to programs: by variable, the path as given.

    Raises:
        InputError: one problem for every invalid value.
    """
    found: dict[str, str] = {}
    problems = []
    for text in _OptionReader(values).texts("evaluator-cache"):
        name, _, folder = (part.strip() for part in text.partition("="))
        if not is_name(name) or not folder:
            message = f"evaluator-cache must be NAME=DIR, one per line, not {text!r}"
            hint = "NAME is the variable in which programs find the folder, such as HF_HUB_CACHE"
            problems.append(Problem(message=message, hint=hint))
        elif found.setdefault(name, folder) != folder:
            message = f"evaluator-cache has two folders for {name}: {found[name]} and {folder}"
            problems.append(Problem(message=message, hint="remove one of them"))
    if problems:
        raise InputError(problems)
    return found


def parse_fetch_settings(values: Mapping[str, Sequence[str]]) -> FetchSettings:
    """Parse and check only the fetch options, by option name as in ``parse_settings``.

    Raises:
        InputError: one problem for every invalid value.
    """
    given = _OptionReader(values)
    access = given.fetch_settings()
    if given.problems:
        raise InputError(given.problems)
    return access


ChoiceT = TypeVar("ChoiceT", bound=str)
NumberT = TypeVar("NumberT", int, float)

_OPTION_DEFAULTS = {option.name: option.default for option in OPTIONS}


class _OptionReader:
    """Reads option values; an invalid value adds a problem and counts as not given."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self.problems: list[Problem] = []
        self._values = values

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(text.strip() for text in self._values.get(name, ()) if text.strip())

    def text(self, name: str) -> str:
        """The last value given, or else the default."""
        return self.texts(name)[-1] if self.texts(name) else _OPTION_DEFAULTS[name]

    def several_choices(self, name: str, choices: Sequence[ChoiceT]) -> tuple[ChoiceT, ...]:
        """The matching choices of an option that may be given several times, each once."""
        found = (self._match(name, text, choices) for text in self.texts(name))
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def choice(self, name: str, choices: Sequence[ChoiceT]) -> ChoiceT | None:
        """The matching choice, ignoring case; hyphens and underscores are equivalent."""
        return self._match(name, self.text(name), choices)

    def _match(self, name: str, text: str, choices: Sequence[ChoiceT]) -> ChoiceT | None:
        normalized = text.casefold().replace("-", "_")
        found = next((each for each in choices if each.casefold() == normalized), None)
        if text and found is None:
            message = f"--{name} must be {join_with_or(choices)}, not {text!r}"
            self.problems.append(Problem(message=message, hint=suggest_name(text, choices)))
        return found

    def switch(self, name: str) -> bool:
        """Whether the option is on; an action input states it as `true` or `false`."""
        text = self.text(name).casefold()
        if text not in ("", "true", "false"):
            self.problems.append(Problem(message=f"{name} must be true or false, not {text!r}"))
        return text == "true"

    def fetch_settings(self) -> FetchSettings:
        """Read the options of ``FetchSettings``."""
        access = FetchSettings(
            cache_dir=self.text("cache-dir"),
            locked=self.switch("locked"),
            offline=self.switch("offline"),
            no_cache=self.switch("no-cache"),
        )
        if access.offline and access.no_cache:
            self.problems.append(
                Problem(
                    message="--offline cannot be combined with --no-cache: it uses the cache",
                    hint="remove one of them",
                )
            )
        return access

    def otlp_endpoint(self) -> str:
        """The checked URL; empty if none is given."""
        url = self.text("emit-otel")
        if not url:
            return ""
        from agentci._util.http_transport import parse_address  # noqa: PLC0415 (slow to import)

        if self.switch("offline"):
            message = "--offline cannot be combined with --emit-otel: it sends to the network"
            self.problems.append(Problem(message=message, hint="remove one of them"))
        try:
            parse_address(url)
        except PermanentFetchError as error:
            self.problems.append(Problem(message=f"--emit-otel: {error}", hint=error.hint))
        return url

    def report_url(self) -> str:
        """The checked URL, which Markdown can contain as it is; empty if none is given."""
        url = self.text("report-url")
        if url and not _URL.fullmatch(url):
            message = f"--report-url must be an http or https URL without a fragment, not {url!r}"
            hint = "escape spaces, quotes and brackets, such as %20 for a space"
            self.problems.append(Problem(message=message, hint=hint))
        return url

    def shard(self) -> Shard | None:
        """The shard of the checks to run; None for all checks."""
        text = self.text("shard")
        try:
            return parse_shard(text, matrix_job=self.text("matrix-job")) if text else None
        except ValueError:
            message = f"--shard must be I/N, with I from 1 to N and N to {MAX_SHARDS}, not {text!r}"
            hint = None
            if text.casefold() == AUTO_SHARD:
                message = f"--shard {AUTO_SHARD} found no matrix of a workflow"
                hint = "use it in the action, in a job with `strategy: matrix`, or give I/N"
            self.problems.append(Problem(message=message, hint=hint))
            return None

    def number(self, name: str, read: Callable[[str], NumberT], expected: str) -> NumberT | None:
        """Parse a number with ``read``, which raises ValueError for an invalid one."""
        text = self.text(name)
        try:
            return read(text) if text else None
        except ValueError:
            message = f"--{name} must be {expected}, not {text!r}"
            hint = _suggest_share(text) if name == "threshold" else None
            self.problems.append(Problem(message=message, hint=hint))
            return None


def _parse_share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _suggest_share(text: str) -> str | None:
    """Suggest a share instead of a percentage; None if the text is not a percentage."""
    percents = text.removesuffix("%").rstrip()
    if not re.fullmatch("[0-9]{1,3}", percents) or int(percents) > PERCENT:
        return None
    return f"write {int(percents) / PERCENT:g} for {percents} percent"


def _parse_jobs(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MAX_JOBS:
        raise ValueError(text)
    return value
