"""Assertions about the response: its text (contains, equals, regex, ...), its JSON fields.

``field_accuracy`` compares dates in UTC: ISO 8601, English month names, and ``a/b/2026`` or
``a-b-2026``, month first unless the formats or a number above 12 show that the day comes first.
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Final, Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import Field, model_validator

from agentci._util.child_programs import SEARCH_PATH
from agentci._util.text.javascript import (
    equal_json,
    find_at_path,
    format_js_fixed,
    format_js_number,
    get_javascript_type,
    stringify_json,
)
from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError
from agentci.evaluators.agentv.agentv_evaluator import (
    AgentvContext,
    AgentvEntry,
    NonNegative,
    define_agentv_entry,
    make_agentv_identity,
    make_pass_threshold,
)
from agentci.evaluators.agentv.findings import (
    ASSISTANT,
    Finding,
    PassThreshold,
    extract_candidate_answer,
    get_recorded_run,
    make_agentv_judgement,
)
from agentci.evaluators.evaluator import Definition, Facts, check_response
from agentci.evaluators.fields import StrictModel, Text, optional
from agentci.evaluators.program_output import format_log_tail, parse_output
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.program import LocalProgram
from agentci.model.requests import (
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Response,
    RunProgram,
)
from agentci.model.trace import Transcript
from agentci.model.values import Json
from agentci.recordings.telemetry.json_input import parse_nested_json

FLAGS: Final[Mapping[str, re.RegexFlag]] = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
    "y": re.NOFLAG,
}


class TextMatch(Struct, frozen=True, kw_only=True):
    """The rule of all text assertions except ``regex``.

    Attributes:
        kind: the evaluator's type: ``contains``, ``icontains_any``, ``starts_with``, ...
        values: the texts to look for: several for ``*_any`` and ``*_all``, none for ``is_json``,
            else one.
    """

    kind: str
    values: tuple[str, ...]

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        answer = extract_candidate_answer(transcript)
        if self.kind == "is_json":
            holds = _is_json(answer)
            return _make_match_finding(
                "Output is valid JSON" if holds else "Output is not valid JSON", holds=holds
            )
        fold = self.kind.startswith("i")
        kind = self.kind.removeprefix("i")
        seen = [value for value in self.values if _matches(kind, value, answer, fold=fold)]
        if kind == "contains_any":
            return _make_match_finding(
                _describe_any(self.values, seen, _CASE_NOTES[fold]), holds=bool(seen)
            )
        if kind == "contains_all":
            return _make_match_finding(
                _describe_all(self.values, seen, _CASE_NOTES[fold]),
                holds=len(seen) == len(self.values),
            )
        verb = _VERBS[kind][0 if seen else 1]
        return _make_match_finding(
            f"Output {verb} {_quote_all(self.values)}{_CASE_NOTES[fold]}", holds=bool(seen)
        )


# Wall time, which a loaded machine stretches; the program itself limits its processor time.
SEARCH_SECONDS: Final = 60
SEARCH_MB: Final = 1024


class RegexEvaluator(Struct, frozen=True, kw_only=True):
    """The ``regex`` evaluator.

    Attributes:
        definition: see ``ComparableEvaluator``.
        pattern: the pattern in Python's syntax.
        flag_bits: the flags as Python's number.
        shown, flags: the pattern and the flags as written.
    """

    identity: EvaluatorIdentity
    definition: Definition
    pattern: str
    flag_bits: int
    shown: str
    flags: str
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """No prerequisites."""
        return ()

    def read_expectation(self, _: Expectation) -> None:
        """Read nothing of the case."""

    def ask(self, case: Case) -> RunProgram:
        """Search the answer in a child program, because some expressions take years."""
        answer = extract_candidate_answer(get_recorded_run(case)[1])
        return RunProgram(
            program=LocalProgram(path=SEARCH_PATH),
            stdin=dumps_compact({"pattern": self.pattern, "flags": self.flag_bits, "text": answer}),
            timeout_seconds=SEARCH_SECONDS,
            timeout_hint="simplify the pattern",
            network=False,
            memory_mb=SEARCH_MB,
            # It is ours, and its response depends only on stdin.
            cached=True,
        )

    def read(self, response: Response) -> Judgement:
        """Make a judgement from whether the pattern was found.

        Raises:
            EvaluatorError: the search took too long or too much memory.
        """
        holds = self._parse_found(check_response(response, ProgramOutput))
        note = f" (flags: {self.flags})" if self.flags else ""
        verb = "matches" if holds else "does not match"
        finding = _make_match_finding(
            f"Output {verb} pattern /{self.shown}/{self.flags}{note}", holds=holds
        )
        return make_agentv_judgement(finding, self.threshold)

    def _parse_found(self, response: ProgramOutput) -> bool:
        match parse_output(response.stdout) if response.exit_code == 0 else {}:
            case {"found": bool(found)}:
                return found
            case _:
                reason = format_log_tail(response.stderr) or "the search printed no result"
                raise EvaluatorError(f"Evaluator `{self.identity.name}`: {reason}")


def parse_regex(pattern: str, flags: str) -> tuple[str, int]:
    """Convert a pattern in the syntax that JavaScript and Python share to Python's, and its flags.

    Raises:
        ValueError: the pattern or a flag is invalid.
    """
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise ValueError(f"unknown flag of the regular expression: {unknown[0]!r}")
    chosen = re.NOFLAG
    for flag in flags:
        chosen |= FLAGS[flag]
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they would be printed with this file's name
            re.compile(translated, chosen)
    except RecursionError:
        raise ValueError("invalid regular expression: nested too deeply") from None
    except (re.error, OverflowError) as error:
        raise ValueError(f"invalid regular expression: {error}") from None
    return translated, int(chosen)


def _make_match_finding(line: str, *, holds: bool) -> Finding:
    return Finding(
        score=1.0 if holds else 0.0, hits=(line,) if holds else (), misses=() if holds else (line,)
    )


def _matches(kind: str, value: str, answer: str, *, fold: bool) -> bool:
    if fold:
        value, answer = value.lower(), answer.lower()
    return _OPERATORS.get(kind, _contains)(answer, value)


def _contains(answer: str, value: str) -> bool:
    return value in answer


def _describe_any(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    if seen:
        return f"Output contains {_quote_all(seen[:1])}{note}"
    return f"Output does not contain any of: {_quote_all(values)}{note}"


def _describe_all(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    missing = [value for value in values if value not in seen]
    if missing:
        return f"Output missing{note}: {_quote_all(missing)}"
    return f"Output contains all {len(values)} expected strings{note}"


def _quote_all(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _is_json(answer: str) -> bool:
    try:
        parse_nested_json(answer)
    except ValueError:
        return False
    return True


_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": lambda answer, value: answer.strip().startswith(value.strip()),
    "ends_with": lambda answer, value: answer.strip().endswith(value.strip()),
    "equals": lambda answer, value: answer.strip() == value.strip(),
}
_VERBS: Final = {
    "contains": ("contains", "does not contain"),
    "starts_with": ("starts with", "does not start with"),
    "ends_with": ("ends with", "does not end with"),
    "equals": ("equals", "does not equal"),
}
_CASE_NOTES: Final = ("", " (case-insensitive)")


class TextEntry(AgentvEntry):
    """Checks whether the response contains, starts with, ends with or equals a text."""

    type: Literal["contains", "icontains", "starts_with", "ends_with", "equals"] = Field(
        description="Checks the answer against a text."
    )
    value: str = Field(description="The text.")


class TextsEntry(AgentvEntry):
    """Checks whether the response contains any or all of several texts."""

    type: Literal["contains_any", "contains_all", "icontains_any", "icontains_all"] = Field(
        description="Checks whether the answer contains any or all of several texts."
    )
    value: Annotated[list[str], Field(min_length=1)] = Field(description="The texts.")


class RegexEntry(AgentvEntry):
    """Checks whether the response matches a regular expression."""

    type: Literal["regex"] = Field(
        description="Checks whether the answer matches a regular expression."
    )
    value: str = Field(description="The regular expression, without slashes.")
    flags: str = optional("Flags of the expression, such as `i`.", default="")

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        parse_regex(self.value, self.flags)
        return self


class IsJsonEntry(AgentvEntry):
    """Checks whether the response is valid JSON."""

    type: Literal["is_json"] = Field(description="Checks whether the answer is valid JSON.")


def make_text_match(entry: TextEntry | TextsEntry | IsJsonEntry, _: AgentvContext) -> TextMatch:
    """Make the rule."""
    value = () if isinstance(entry, IsJsonEntry) else entry.value
    return TextMatch(kind=entry.type, values=(value,) if isinstance(value, str) else tuple(value))


def build_regex(entry: RegexEntry, context: AgentvContext) -> RegexEvaluator:
    """Make the evaluator."""
    pattern, flag_bits = parse_regex(entry.value, entry.flags)
    return RegexEvaluator(
        identity=make_agentv_identity(entry, context),
        definition=define_agentv_entry(entry, context),
        pattern=pattern,
        flag_bits=flag_bits,
        shown=entry.value,
        flags=entry.flags,
        threshold=make_pass_threshold(entry, context),
    )


MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MIN_MONTH_LETTERS: Final = 3
MAX_MONTH: Final = 12

_PARTIAL: Final = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})[- ]([A-Za-z]+)\.?[- ](\d{4})")
_MONTH_FIRST: Final = re.compile(r"([A-Za-z]+)\.? (\d{1,2}),? (\d{4})")
_NUMBERS: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")


def parse_day(text: str, formats: Sequence[str]) -> date | None:
    """Parse a date; return None if ``text`` is not one.

    Args:
        formats: formats such as ``MM/DD/YYYY``; the text decides what they leave open.
    """
    text = text.strip()
    return _parse_iso_day(text) or _parse_named_month(text) or _parse_numeric_day(text, formats)


def _parse_iso_day(text: str) -> date | None:
    if found := _PARTIAL.fullmatch(text):
        return _make_date(int(found[1]), int(found[2] or 1), 1)
    try:
        at = datetime.fromisoformat(text)
        return at.date() if at.tzinfo is None else at.astimezone(UTC).date()
    except (ValueError, OverflowError):  # in UTC, it may be before year 1 or after year 9999
        return None


def _parse_named_month(text: str) -> date | None:
    if found := _DAY_FIRST.fullmatch(text):
        day, name, year = found.groups()
    elif found := _MONTH_FIRST.fullmatch(text):
        name, day, year = found.groups()
    else:
        return None
    meant = [i for i, month in enumerate(MONTHS, 1) if month.startswith(name.lower())]
    if len(name) < MIN_MONTH_LETTERS or len(meant) != 1:
        return None
    return _make_date(int(year), meant[0], int(day))


def _parse_numeric_day(text: str, formats: Sequence[str]) -> date | None:
    found = _NUMBERS.fullmatch(text)
    if found is None:
        return None
    first, second, year = map(int, found.groups())
    leads = {each.strip().upper()[:1] for each in formats} & {"D", "M"}
    day_leads = first > MAX_MONTH if len(leads) != 1 else leads == {"D"}
    return _make_date(year, second, first) if day_leads else _make_date(year, first, second)


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


FieldMatch: TypeAlias = Literal["exact", "numeric_tolerance", "date"]
Aggregation: TypeAlias = Literal["weighted_average", "all_or_nothing"]

MAX_SHOWN_LINES: Final = 4

_FENCE: Final = re.compile(r"```(?:json\n?)?")
_LEADING_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


class FieldRule(Struct, frozen=True, kw_only=True):
    """How one field is compared; ``path`` is a path such as ``items[0].price``."""

    path: str
    match: FieldMatch
    required: bool
    weight: float
    tolerance: float
    relative: bool
    formats: tuple[str, ...]


class FieldAccuracy(Struct, frozen=True, kw_only=True):
    """The ``field_accuracy`` rule.

    Attributes:
        expected_name: the name of the expected messages in the report.
        shows_all: whether all lines are reported; AgentV 1 and 2 report at most four hits and four
            misses.
    """

    fields: tuple[FieldRule, ...]
    aggregation: Aggregation
    expected_name: str
    shows_all: bool

    def read_expectation(self, agentv_case: AgentvCase) -> Facts:
        """Return the expected values of the fields; None without expected data."""
        expected = _find_expected(agentv_case)
        if expected is None:
            return None
        return [find_at_path(expected, rule.path) for rule in self.fields]

    def evaluate(self, agentv_case: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        candidate = extract_json(extract_candidate_answer(transcript))
        if candidate is None:
            return Finding(
                score=0.0,
                misses=("Failed to parse candidate answer as JSON",),
                reasoning="Candidate answer is not valid JSON",
            )
        expected = _find_expected(agentv_case)
        if expected is None:
            return Finding(
                score=0.0,
                misses=(f"No expected data found in {self.expected_name}",),
                reasoning=f"Could not extract expected data from {self.expected_name}",
            )
        return self._compare([_compare_field(rule, candidate, expected) for rule in self.fields])

    def _compare(self, found: list["_FieldResult"]) -> Finding:
        hits = [each.line for each in found if each.fits]
        misses = [each.line for each in found if not each.fits]
        total = sum(each.weight for each in found)
        score = sum(each.weight for each in found if each.fits) / total if total else 0.0
        if self.aggregation == "all_or_nothing":
            score = 0.0 if misses else 1.0
        most = None if self.shows_all else MAX_SHOWN_LINES
        return Finding(
            score=score,
            hits=tuple(hits[:most]),
            misses=tuple(misses[:most]),
            reasoning=f"{len(hits)}/{len(found)} fields matched",
        )


class _FieldResult(Struct, frozen=True, kw_only=True):
    fits: bool
    line: str
    weight: float


def extract_json(text: str) -> Json:
    """Parse the JSON object in a response, ignoring fences and prose; None if there is none."""
    bare = _FENCE.sub("", text).strip()
    start, end = bare.find("{"), bare.rfind("}")
    try:
        return parse_nested_json(bare[start : end + 1] if 0 <= start < end else bare)
    except ValueError:
        return None


def _find_expected(agentv_case: AgentvCase) -> Json:
    """Return the data of the last expected assistant message that has any."""
    for message in reversed(agentv_case.expected_messages):
        if message.get("role") != ASSISTANT:
            continue
        content = message.get("content")
        found = extract_json(content) if isinstance(content, str) else content
        if isinstance(found, Mapping | list):
            return found
    return None


def _compare_field(rule: FieldRule, candidate: Json, expected: Json) -> _FieldResult:
    path, weight = rule.path, rule.weight
    is_expected, expected_value = find_at_path(expected, path)
    if not is_expected:
        return _FieldResult(fits=True, line=f"{path}: no expected value", weight=weight)
    is_given, value = find_at_path(candidate, path)
    if is_given:
        fits, remark = _COMPARE[rule.match](rule, value, expected_value)
        return _FieldResult(fits=fits, line=f"{path}{remark and f' ({remark})'}", weight=weight)
    if rule.required:
        return _FieldResult(fits=False, line=f"{path} (required, missing)", weight=weight)
    return _FieldResult(fits=True, line=f"{path}: optional field missing", weight=0.0)


def _compare_exactly(_: FieldRule, value: Json, expected: Json) -> tuple[bool, str]:
    if equal_json(value, expected):
        return True, ""
    got, expected_type = get_javascript_type(value), get_javascript_type(expected)
    if got != expected_type:
        return False, f"type mismatch: got {got}, expected {expected_type}"
    return False, "value mismatch"


def _compare_numbers(rule: FieldRule, value: Json, expected: Json) -> tuple[bool, str]:
    number, target = _parse_number(value), _parse_number(expected)
    if number is None or target is None:
        return False, "non-numeric value"
    if not (math.isfinite(number) and math.isfinite(target)):
        return False, "invalid numeric value"
    difference = abs(number - target)
    shown = format_js_fixed(difference, 2)
    if rule.relative and target:
        difference /= abs(target)
    if difference <= rule.tolerance:
        return True, f"within tolerance: diff={shown}"
    return False, f"outside tolerance: diff={shown}, tolerance={format_js_number(rule.tolerance)}"


def _compare_dates(rule: FieldRule, value: Json, expected: Json) -> tuple[bool, str]:
    day, expected_day = (parse_day(_format_text(each), rule.formats) for each in (value, expected))
    if day is None:
        return False, "unparseable candidate date"
    if expected_day is None:
        return False, "unparseable expected date"
    if day == expected_day:
        return True, ""
    return False, f"date mismatch: got {day.isoformat()}, expected {expected_day.isoformat()}"


_COMPARE: Final = {
    "exact": _compare_exactly,
    "numeric_tolerance": _compare_numbers,
    "date": _compare_dates,
}


def _parse_number(value: Json) -> float | None:
    """Return a number, or the number at the start of a text."""
    if isinstance(value, str):
        found = _LEADING_NUMBER.match(value)
        return None if found is None else float(found[1])
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _format_text(value: Json) -> str:
    return value if isinstance(value, str) else stringify_json(value)


class FieldSpec(StrictModel):
    """One field of the response."""

    path: Text = Field(description="Path of the field, such as `invoice.items[0].price`.")
    match: FieldMatch = Field(description="How it is compared: exact, numeric_tolerance or date.")
    required: bool = optional("Whether a missing field is a miss.", default=True)
    weight: NonNegative = optional("Weight in the score.", default=1.0)
    tolerance: NonNegative = optional("Largest allowed difference of a number.", default=0.0)
    relative: bool = optional(
        "Whether the tolerance is a share of the expected number.", default=False
    )
    formats: list[Text] = optional(
        "Date formats, such as DD/MM/YYYY, which tell whether the day or the month comes first.",
        default=[],
    )


class FieldAccuracyEntry(AgentvEntry):
    """A JSON response, compared field by field."""

    type: Literal["field_accuracy"] = Field(
        description="Compares an answer in JSON with the expected one, field by field."
    )
    fields: Annotated[list[FieldSpec], Field(min_length=1)] = Field(
        description="The fields to compare."
    )
    aggregation: Aggregation = optional(
        "How the scores of the fields are combined.", default="weighted_average"
    )


def make_field_accuracy(entry: FieldAccuracyEntry, context: AgentvContext) -> FieldAccuracy:
    """Make the rule."""
    is_v4 = context.version == "v4"
    return FieldAccuracy(
        fields=tuple(
            FieldRule(**{**spec.model_dump(), "formats": tuple(spec.formats)})
            for spec in entry.fields
        ),
        aggregation=entry.aggregation,
        expected_name="expected_output" if is_v4 else "expected_messages",
        shows_all=is_v4,
    )
