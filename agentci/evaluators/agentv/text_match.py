"""The assertions of AgentV 4 about the text of an answer: they hold, or they do not."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci.evaluators.agentv.helpers import candidate_answer_of
from agentci.evaluators.agentv.verdict import Finding
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript
from agentci.recordings.telemetry.json_input import loads

FLAGS: Final[Mapping[str, re.RegexFlag]] = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
    "y": re.NOFLAG,
}


class TextMatch(Struct, frozen=True, kw_only=True):
    """The rule.

    Attributes:
        kind: the type of the evaluator: ``contains``, ``icontains_any``, ``starts_with``, ...
        values: what is looked for; one, but for ``_any`` and ``_all``.
    """

    kind: str
    values: tuple[str, ...]

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        answer = candidate_answer_of(transcript)
        if self.kind == "is_json":
            holds = _is_json(answer)
            return _finding(
                "Output is valid JSON" if holds else "Output is not valid JSON", holds=holds
            )
        fold = self.kind.startswith("i")
        kind = self.kind.removeprefix("i")
        seen = [value for value in self.values if _found(kind, value, answer, fold=fold)]
        if kind == "contains_any":
            return _finding(_any(self.values, seen, _NOTE[fold]), holds=bool(seen))
        if kind == "contains_all":
            return _finding(
                _all(self.values, seen, _NOTE[fold]), holds=len(seen) == len(self.values)
            )
        verb = _VERBS[kind][0 if seen else 1]
        return _finding(f"Output {verb} {_quoted(self.values)}{_NOTE[fold]}", holds=bool(seen))


class RegexMatch(Struct, frozen=True, kw_only=True):
    """The rule of ``regex``; ``shown`` and ``flags`` are as they were written."""

    pattern: re.Pattern[str]
    shown: str
    flags: str

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        holds = self.pattern.search(candidate_answer_of(transcript)) is not None
        note = f" (flags: {self.flags})" if self.flags else ""
        verb = "matches" if holds else "does not match"
        return _finding(f"Output {verb} pattern /{self.shown}/{self.flags}{note}", holds=holds)


def regex_of(pattern: str, flags: str) -> re.Pattern[str]:
    """A pattern in JavaScript's syntax, as far as Python's is the same.

    Raises:
        ValueError: it is none.
    """
    unknown = [flag for flag in flags if flag not in FLAGS]
    if unknown:
        raise ValueError(f"there is no flag {unknown[0]!r} of regular expressions")
    chosen = re.NOFLAG
    for flag in flags:
        chosen |= FLAGS[flag]
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), chosen)
    except re.error as error:
        raise ValueError(f"the regular expression is broken: {error}") from None


def _finding(line: str, *, holds: bool) -> Finding:
    return Finding(
        score=1.0 if holds else 0.0,
        hits=(line,) if holds else (),
        misses=() if holds else (line,),
    )


def _found(kind: str, value: str, answer: str, *, fold: bool) -> bool:
    if fold:
        value, answer = value.lower(), answer.lower()
    return _TESTS.get(kind, _contains)(answer, value)


def _contains(answer: str, value: str) -> bool:
    return value in answer


def _any(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    if seen:
        return f"Output contains {_quoted(seen[:1])}{note}"
    return f"Output does not contain any of: {_quoted(values)}{note}"


def _all(values: Sequence[str], seen: Sequence[str], note: str) -> str:
    missing = [value for value in values if value not in seen]
    if missing:
        return f"Output missing{note}: {_quoted(missing)}"
    return f"Output contains all {len(values)} expected strings{note}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _is_json(answer: str) -> bool:
    try:
        loads(answer)
    except ValueError:
        return False
    return True


_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
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
_NOTE: Final = ("", " (case-insensitive)")
