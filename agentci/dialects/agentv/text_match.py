"""The assertions of AgentV 4 about the text of an answer: they hold, or they do not."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agentci.dialects.agentv.derived import candidate_answer_of
from agentci.dialects.agentv.verdict import Finding
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript
from agentci.telemetry.foreign import loads
from agentci.text.javascript import stringify

FLAGS: Final[Mapping[str, re.RegexFlag]] = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
    "y": re.NOFLAG,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
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
        fold = self.kind.startswith("i") and self.kind != "is_json"
        values = tuple(value.lower() if fold else value for value in self.values)
        holds = TESTS[self.kind.removeprefix("i") if fold else self.kind](
            answer.lower() if fold else answer, values
        )
        line = f"Output {_VERBS[_plain(self.kind)][0 if holds else 1]}{self._told()}"
        return Finding(
            score=1.0 if holds else 0.0,
            hits=(line,) if holds else (),
            misses=() if holds else (line,),
        )

    def _told(self) -> str:
        if not self.values:
            return ""
        listed = self.kind.endswith(("_any", "_all"))
        return f" {stringify(list(self.values)) if listed else stringify(self.values[0])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexMatch:
    """The rule of ``regex``; ``shown`` is the pattern as it was written."""

    pattern: re.Pattern[str]
    shown: str

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        holds = self.pattern.search(candidate_answer_of(transcript)) is not None
        line = f"Output {'matches' if holds else 'does not match'} regex {self.shown}"
        return Finding(
            score=1.0 if holds else 0.0,
            hits=(line,) if holds else (),
            misses=() if holds else (line,),
        )


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


def _is_json(answer: str, _: tuple[str, ...]) -> bool:
    try:
        loads(answer)
    except ValueError:
        return False
    return True


def _plain(kind: str) -> str:
    return "contains" if "contains" in kind else kind


TESTS: Final[Mapping[str, Callable[[str, tuple[str, ...]], bool]]] = {
    "contains": lambda answer, values: values[0] in answer,
    "contains_any": lambda answer, values: any(value in answer for value in values),
    "contains_all": lambda answer, values: all(value in answer for value in values),
    "starts_with": lambda answer, values: answer.strip().startswith(values[0].strip()),
    "ends_with": lambda answer, values: answer.strip().endswith(values[0].strip()),
    "equals": lambda answer, values: answer.strip() == values[0].strip(),
    "is_json": _is_json,
}

_VERBS: Final = {
    "contains": ("contains", "does not contain"),
    "starts_with": ("starts with", "does not start with"),
    "ends_with": ("ends with", "does not end with"),
    "equals": ("equals", "does not equal"),
    "is_json": ("is valid JSON", "is not valid JSON"),
}
