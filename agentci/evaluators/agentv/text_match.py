"""AgentV 4 assertions about the response text: contains, equals, regex, is_json, ..."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from msgspec import Struct
from pydantic import Field, model_validator

from agentci.evaluators.agentv.agentv_evaluator import AgentvContext, AgentvEntry
from agentci.evaluators.agentv.case_texts import extract_candidate_answer
from agentci.evaluators.agentv.findings import Finding
from agentci.model.case import AgentvCase
from agentci.model.trace import Transcript
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

    def evaluate(self, agentv_case: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        del agentv_case
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


class RegexMatch(Struct, frozen=True, kw_only=True):
    """The ``regex`` rule; ``shown`` and ``flags`` are the pattern and flags as written."""

    pattern: re.Pattern[str]
    shown: str
    flags: str

    def evaluate(self, agentv_case: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        del agentv_case
        holds = self.pattern.search(extract_candidate_answer(transcript)) is not None
        note = f" (flags: {self.flags})" if self.flags else ""
        verb = "matches" if holds else "does not match"
        return _make_match_finding(
            f"Output {verb} pattern /{self.shown}/{self.flags}{note}", holds=holds
        )


def compile_regex(pattern: str, flags: str) -> re.Pattern[str]:
    """Compile a pattern in the syntax that JavaScript and Python share.

    Raises:
        ValueError: the pattern or a flag is invalid.
    """
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise ValueError(f"unknown flag of the regular expression: {unknown[0]!r}")
    chosen = re.NOFLAG
    for flag in flags:
        chosen |= FLAGS[flag]
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), chosen)
    except re.error as error:
        raise ValueError(f"invalid regular expression: {error}") from None


def _make_match_finding(line: str, *, holds: bool) -> Finding:
    return Finding(
        score=1.0 if holds else 0.0,
        hits=(line,) if holds else (),
        misses=() if holds else (line,),
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
    flags: str = Field(default="", description="Flags of the expression, such as `i`.")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        compile_regex(self.value, self.flags)
        return self


class IsJsonEntry(AgentvEntry):
    """Checks whether the response is valid JSON."""

    type: Literal["is_json"] = Field(description="Checks whether the answer is valid JSON.")


def make_text_match(entry: TextEntry, _: AgentvContext) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=(entry.value,))


def make_texts_match(entry: TextsEntry, _: AgentvContext) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=tuple(entry.value))


def make_regex_match(entry: RegexEntry, _: AgentvContext) -> RegexMatch:
    """Make the rule."""
    pattern = compile_regex(entry.value, entry.flags)
    return RegexMatch(pattern=pattern, shown=entry.value, flags=entry.flags)


def make_json_match(entry: IsJsonEntry, _: AgentvContext) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=())
