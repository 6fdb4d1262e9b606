"""Checks of texts: what answers, tool arguments and results contain."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.json_text import decode_strict_json
from agentci._util.text.patterns import compile_pattern
from agentci._util.text.safe_schema import SafeSchema
from agentci.errors import EvaluatorError
from agentci.evaluators.checks.check import (
    NO_ANSWER,
    CheckFinding,
    check_complete,
    collect_texts,
    make_finding,
)
from agentci.model.case import Case
from agentci.model.values import Json

MAX_SHOWN: Final = 60
MAX_SCHEMA_PROBLEMS: Final = 5


class TextTest(Struct, frozen=True, kw_only=True):
    """One text or pattern that is looked for.

    Attributes:
        verb: what is wrong without it: "does not contain".
    """

    written: str
    verb: str
    holds: Callable[[str], bool]

    @property
    def quoted(self) -> str:
        """The text, quoted and truncated."""
        return repr(truncate.short(self.written, MAX_SHOWN))


def make_text_tests(
    kind: str, written: Sequence[str], *, ignore_case: bool
) -> tuple[TextTest, ...]:
    """Make the tests of ``contains``, ``starts_with`` or ``equals``."""
    return tuple(_make_text_test(kind, each, ignore_case=ignore_case) for each in written)


def _make_text_test(kind: str, written: str, *, ignore_case: bool) -> TextTest:
    def fold(text: str) -> str:
        return text.casefold() if ignore_case else text

    expected = fold(written)
    holds: Mapping[str, Callable[[str], bool]] = {
        "contain": lambda text: expected in fold(text),
        "start with": lambda text: fold(text).startswith(expected),
        "equal": lambda text: fold(text) == expected,
    }
    return TextTest(written=written, verb=kind, holds=holds[kind])


def make_pattern_tests(written: Sequence[str], *, full: bool) -> tuple[TextTest, ...]:
    """Make the tests of ``matches``.

    Raises:
        ValueError: a pattern is not RE2.
    """
    tests: list[TextTest] = []
    for each in written:
        pattern = compile_pattern(each)
        holds = (
            pattern.matches_whole
            if full
            else lambda text, own=pattern: own.search(text) is not None
        )
        tests.append(TextTest(written=each, verb="match", holds=holds))
    return tuple(tests)


class PresentTexts(Struct, frozen=True, kw_only=True):
    """Texts that must be there.

    Attributes:
        needs: ``all`` of them, ``any`` of them, or a ``share``, which is the score.
    """

    tests: tuple[TextTest, ...]
    of: str
    needs: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, self.of)
        if self.of == "answer" and not texts.texts:
            return make_finding(NO_ANSWER)
        found = [any(test.holds(text) for text in texts.texts) for test in self.tests]
        misses = tuple(
            f"{_name_source(self.of)} does not {test.verb} {test.quoted}"
            for test, is_found in zip(self.tests, found, strict=True)
            if not is_found
        )
        is_met = any(found) if self.needs == "any" else all(found)
        if not is_met and texts.missing:
            raise EvaluatorError(f"{misses[0]}, but {texts.missing}")
        if self.needs == "share":
            return CheckFinding(score=sum(found) / len(found), misses=misses)
        return make_finding(*(() if is_met else misses))


class AbsentTexts(Struct, frozen=True, kw_only=True):
    """Texts that must not be there."""

    tests: tuple[TextTest, ...]
    of: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, self.of)
        misses = dict.fromkeys(
            f"{place} {_VERBS[test.verb]} {test.quoted}"
            for place, text in texts
            for test in self.tests
            if test.holds(text)
        )
        check_complete(texts, is_failed=bool(misses))
        return make_finding(*misses)


_VERBS: Final = {"contain": "contains", "match": "matches"}


def _name_source(of: str) -> str:
    return {"answer": "the answer", "answers": "no answer", "all": "the run"}.get(
        of, f"no {of[:-1]}"
    )


class LengthLimits(Struct, frozen=True, kw_only=True):
    """How long the answer may be.

    Attributes:
        unit: ``word`` or ``character``.
        limits: ``max`` and ``min``.
    """

    unit: str
    limits: Mapping[str, float]

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, "answer")
        if not texts.texts:
            raise EvaluatorError(NO_ANSWER)
        text = texts.texts[-1]
        length = len(text.split()) if self.unit == "word" else len(text)
        line = f"the answer has {format_count(length, self.unit)}"
        most, least = self.limits.get("max"), self.limits.get("min")
        if most is not None and length > most:
            return make_finding(f"{line}, more than {most:,.0f}")
        if least is not None and length < least:
            return make_finding(f"{line}, fewer than {least:,.0f}")
        return make_finding(hits=(line,))


class JsonAnswer(Struct, frozen=True, kw_only=True):
    """The answer must be JSON.

    Attributes:
        schema: None for any JSON.
        fence: whether a fenced code block around it is allowed, refused or required.
    """

    schema: SafeSchema | None
    fence: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, "answer").texts
        if not texts:
            return make_finding(NO_ANSWER)
        text = texts[-1].strip()
        fenced = _FENCE.fullmatch(text)
        if self.fence == ("refuse" if fenced else "require"):
            is_not = "" if fenced else "not "
            return make_finding(f"the answer is {is_not}in a fenced code block")
        try:
            value = decode_strict_json(fenced[1] if fenced else text)
        except ValueError as error:
            return make_finding(f"the answer is not JSON: {error}")
        return make_finding(*self._find_problems(value))

    def _find_problems(self, value: Json) -> tuple[str, ...]:
        if self.schema is None:
            return ()
        try:
            return self.schema.find_problems(value, MAX_SCHEMA_PROBLEMS)
        except ValueError as error:
            raise EvaluatorError(f"{error}") from None


_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)
