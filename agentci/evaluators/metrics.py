"""Metrics: shared code, those that are computed here, and tables of all.

A metric consists of pure functions over turns. Words of ``response_match_score`` are counted as in
Google ADK 2: scripts without spaces are split into characters, words of other alphabets are kept
whole, and English words are stemmed.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from reprlib import Repr
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text.change import quote_pair, shorten_pair
from agentci._util.text.format import format_criterion
from agentci.errors import EvaluatorError
from agentci.evaluators.changed_facts import (
    describe_changed_facts,
    describe_changed_names,
    describe_changed_words,
)
from agentci.evaluators.evaluator import Definition, check_tool_calls_recorded, define_repeat
from agentci.evaluators.similarity import f_measure, stem
from agentci.model.requests import (
    CHANGED_FACTS,
    CHANGED_WORDS,
    EvaluatorIdentity,
    Judgement,
    MetricResult,
)
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject, Place, TurnScore, replace

NO_EXPECTED_TURNS: Final = "the eval case has no turns"
NO_EXPECTED_ANSWER: Final = "the eval case has no expected answer"


class HostedMetric(Struct, frozen=True, kw_only=True):
    """A metric of ADK 2.13, as documented by its evaluator.

    Attributes:
        purpose: what it measures, in one sentence.
        needs_expected: whether it compares each turn with an expected turn.
        scores_conversation: whether it scores the whole conversation rather than each turn.
        lowest, highest: the ends of its scale.
    """

    purpose: str
    needs_expected: bool = False
    scores_conversation: bool = False
    lowest: float = 0.0
    highest: float = 1.0

    def normalize(self, score: float) -> float:
        """Convert a score to 0 to 1; a score outside the scale stays outside."""
        return (score - self.lowest) / (self.highest - self.lowest)

    def to_scale(self, share: float) -> float:
        """Convert 0 to 1 to a score on the metric's scale."""
        return self.lowest + share * (self.highest - self.lowest)


def describe_turn_mismatch(pairs: int, counts: JsonObject) -> str | None:
    """Describe the turns without a partner; None if all have one.

    Args:
        pairs: number of paired turns, which are the first ones.
        counts: the unpaired turns, from ``count_unpaired_turns``.
    """
    missing, unexpected = (
        count if isinstance(count := counts.get(key), int) else 0
        for key in ("missing_turns", "unexpected_turns")
    )
    unpaired = missing + unexpected
    if not unpaired:
        return None
    total = pairs + unpaired
    return (
        f"{_format_turns(pairs + 1, total).capitalize()} of {total}"
        f" {'is' if unpaired == 1 else 'are'} {'missing' if missing else 'unexpected'};"
        f" only {_format_turns(1, pairs)} {'was' if pairs == 1 else 'were'} scored"
    )


def _format_turns(first: int, last: int) -> str:
    return f"turn {first}" if first == last else f"turns {first} to {last}"


class Metric(Struct, frozen=True, kw_only=True):
    """A score of recorded turns against expected turns, computed by pure functions.

    Attributes:
        purpose: what it scores, in one sentence.
        read_expected: returns all that ``measure`` uses of the expected turns, and no more.
        measure: compares the recorded turns with the expected ones, paired by index, with the
            options of the entry; unpaired turns are only counted. It raises ``EvaluatorError`` if
            there is no pair to compare, or an option is invalid.
        needs_expected: whether it compares with expected turns, and so cannot run without them.
        explain_missing: says why nothing can be compared with the expected turns; empty if
            something can.
    """

    purpose: str
    read_expected: Callable[[Sequence[Turn]], Json]
    measure: Callable[[Sequence[Turn], Sequence[Turn], JsonObject], MetricResult]
    needs_expected: bool = True
    explain_missing: Callable[[Sequence[Turn]], str] = lambda _expected: ""


def pair_turns(actual: Sequence[Turn], expected: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Pair recorded and expected turns by index, up to the end of the shorter list.

    Raises:
        EvaluatorError: if one of the lists is empty.
    """
    if not actual:
        raise EvaluatorError("no turns found in the recorded run")
    if not expected:
        raise EvaluatorError(NO_EXPECTED_TURNS)
    return list(zip(actual, expected, strict=False))


# Pairs of tool calls compared in one check; such a comparison takes at most some seconds.
MAX_COMPARED_CALLS: Final = 1_000_000


def check_comparison_count(actual: int, expected: int) -> None:
    """Check that comparing each recorded with each expected tool call takes seconds, not hours.

    Raises:
        EvaluatorError: there are too many of both.
    """
    if actual * expected > MAX_COMPARED_CALLS:
        raise EvaluatorError(
            f"{actual:,} recorded tool calls cannot be compared with {expected:,} expected ones;"
            f" the product of both numbers is limited to {MAX_COMPARED_CALLS:,}"
        )


def mean(scores: Sequence[float]) -> float:
    """Average in the order of the turns, so that the float is the same everywhere."""
    return sum(scores) / len(scores)


def count_unpaired_turns(actual: Sequence[Turn], expected: Sequence[Turn]) -> dict[str, int]:
    """Count the turns without a partner; empty if there are none."""
    if len(actual) == len(expected):
        return {}
    return {
        "missing_turns": max(0, len(expected) - len(actual)),
        "unexpected_turns": max(0, len(actual) - len(expected)),
    }


def make_metric_identity(
    metric: str, *, place: Place, threshold: float | None, required: bool, needs_expected: bool
) -> EvaluatorIdentity:
    """Make the identity of a metric; without a threshold it has agentevals' default."""
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    return EvaluatorIdentity(
        name=metric,
        type="builtin",
        criterion=format_criterion(threshold),
        threshold=threshold,
        required=required,
        place=place,
        needs_expected=needs_expected,
    )


def define_metric(
    identity: EvaluatorIdentity, *, turn_mismatch_fails: bool, turn_score: TurnScore
) -> Definition:
    """Define a metric without options of its own; its name says what it computes."""
    mismatch: Definition = {"on_turn_mismatch": "fail" if turn_mismatch_fails else "warn"}
    return {
        "type": identity.type,
        "name": identity.name,
        "threshold": identity.threshold,
        **({} if turn_score == "mean" else {"turn_score": turn_score}),
        **(mismatch if identity.needs_expected else {}),
        **define_repeat(identity),
    }


def make_metric_judgement(
    measured: MetricResult,
    identity: EvaluatorIdentity,
    *,
    turn_mismatch_fails: bool,
    turn_score: TurnScore,
) -> Judgement:
    """Judge a result by its score and by the number of turns.

    Args:
        turn_score: whether the score is the mean over turns, or that of the lowest.
        turn_mismatch_fails: whether missing or unexpected turns fail a case regardless of its
            score, which covers only paired turns. (agentevals passes such cases.)
    """
    pairs = len(measured.turn_scores)
    mismatch = describe_turn_mismatch(pairs, measured.details) if turn_mismatch_fails else None
    scores = [each for each in measured.turn_scores if each is not None]
    score = min(scores) if turn_score == "min" and scores else measured.score
    by_score = score >= get_threshold(identity)
    return Judgement(
        score=score,
        passed=by_score and mismatch is None,
        reason=mismatch if by_score else None,
        turn_scores=measured.turn_scores,
        # Missing turns often follow from what went wrong in an earlier one.
        misses=measured.misses if by_score or mismatch is None else (*measured.misses, mismatch),
        details=measured.details,
    )


DEFAULT_THRESHOLD: Final = 0.5


def get_threshold(identity: EvaluatorIdentity) -> float:
    """Return the threshold of an evaluator; agentevals' default if it has none."""
    return DEFAULT_THRESHOLD if identity.threshold is None else identity.threshold


TOOL_TRAJECTORY: Final = "tool_trajectory_avg_score"

SHOWN_CALL_CHARACTERS: Final = 120


def read_expected_calls(expected: Sequence[Turn]) -> list[Json]:
    """Return names and arguments of the expected calls; ids are not compared."""
    return [[[call.name, call.args] for call in turn.tool_calls] for turn in expected]


def drop_arguments(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return turns whose tool calls all have no arguments, to compare only names."""
    return tuple(
        replace(turn, tool_calls=tuple(replace(call, args={}) for call in turn.tool_calls))
        for turn in turns
    )


def measure_tool_trajectory(
    actual: Sequence[Turn], expected: Sequence[Turn], options: JsonObject
) -> MetricResult:
    """Score each turn 1 or 0.

    The option ``match_type`` is a ``MatchType`` in any case; the default is EXACT.
    """
    match_type = read_match_type(options)
    compared = [_compare(*turns, match_type) for turns in pair_turns(actual, expected)]
    scores = tuple(float(each.is_match) for each in compared)
    return MetricResult(
        score=mean(scores),
        turn_scores=scores,
        misses=tuple(
            f"turn {number}: {each.miss}"
            for number, each in enumerate(compared, start=1)
            if not each.is_match
        ),
        details={
            "comparisons": [each.as_json for each in compared],
            **count_unpaired_turns(actual, expected),
        },
    )


class _Comparison(Struct, frozen=True, kw_only=True):
    """The recorded and the expected calls of one turn."""

    turn_id: str
    actual: tuple[ToolCall, ...]
    expected: tuple[ToolCall, ...]
    order: str
    is_match: bool

    @property
    def miss(self) -> str:
        """Describe the expected and the recorded calls."""
        sides = shorten_pair(
            _format_calls(self.expected), _format_calls(self.actual), SHOWN_CALL_CHARACTERS
        )
        return f"expected {sides[0]}{self.order}, got {sides[1]}"

    @property
    def as_json(self) -> JsonObject:
        """Format the comparison as agentevals' reports do."""
        return {
            "invocation_id": self.turn_id,
            "expected": [{"name": call.name, "args": call.args} for call in self.expected],
            "actual": [{"name": call.name, "args": call.args} for call in self.actual],
            "matched": self.is_match,
        }


def read_match_type(options: JsonObject) -> str:
    """Return the option ``match_type`` in upper case, or the default.

    Raises:
        EvaluatorError: it is unknown.
    """
    match_type = str(options.get("match_type") or "EXACT").upper()
    if match_type not in MATCHERS:
        known = ", ".join(MATCHERS)
        raise EvaluatorError(f"unknown match type `{match_type}`; it must be one of {known}")
    return match_type


def _compare(actual: Turn, expected: Turn, match_type: str) -> _Comparison:
    """Compare the calls of two turns.

    Recorded arguments other than an object are wrapped; those that were not recorded are not
    certain to equal anything. Expected calls stay unchanged: missing arguments there equal no
    recorded call, as in agentevals 0.11.0.

    Raises:
        EvaluatorError: it depends on calls or arguments that were not recorded.
    """
    check_tool_calls_recorded([actual])
    made = tuple(ToolCall(name=call.name, args=call.named_args) for call in actual.tool_calls)
    matches, order = MATCHERS[match_type]
    is_match = matches(actual.tool_calls, expected.tool_calls, _are_equal)
    if not is_match and matches(actual.tool_calls, expected.tool_calls, _may_be_equal):
        unknown = next(call.name for call in actual.tool_calls if call.args is None)
        raise EvaluatorError(
            f"the arguments of {unknown} were not recorded; turn on content capture in the "
            "instrumentation of the tools"
        )
    return _Comparison(
        turn_id=actual.id,
        actual=made,
        expected=expected.tool_calls,
        order=order if len(expected.tool_calls) > 1 else "",
        is_match=is_match,
    )


Equality: TypeAlias = Callable[[ToolCall, ToolCall], bool]


def _match_exactly(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    return len(made) == len(expected) and all(map(are_equal, made, expected))


def _match_in_order(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    rest = iter(made)
    return all(any(are_equal(call, each) for call in rest) for each in expected)


def _match_in_any_order(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    check_comparison_count(len(made), len(expected))
    rest = list(made)
    for each in expected:
        found = next((i for i, call in enumerate(rest) if are_equal(call, each)), None)
        if found is None:
            return False
        del rest[found]
    return True


def _are_equal(actual: ToolCall, expected: ToolCall) -> bool:
    """Compare as Python does: ``1 == 1.0 == True``; key order and ids are ignored."""
    return (
        actual.args is not None
        and actual.name == expected.name
        and actual.named_args == expected.args
    )


def _may_be_equal(actual: ToolCall, expected: ToolCall) -> bool:
    """Compare, where arguments that were not recorded may have been any."""
    if actual.args is None:
        return actual.name == expected.name and expected.args is not None
    return _are_equal(actual, expected)


Matcher: TypeAlias = Callable[[Sequence[ToolCall], Sequence[ToolCall], Equality], bool]

# The function for each match type, and what it adds to the message of a miss.
MATCHERS: Mapping[str, tuple[Matcher, str]] = {
    "EXACT": (_match_exactly, ""),
    "IN_ORDER": (_match_in_order, " in this order"),
    "ANY_ORDER": (_match_in_any_order, " in any order"),
}


def _format_calls(tool_calls: Sequence[ToolCall]) -> str:
    return ", ".join(map(_format_call, tool_calls)) or "no tool call"


def _format_call(call: ToolCall) -> str:
    """Format a call as code: ``get_weather(city='Paris')``."""
    if not isinstance(call.args, Mapping):
        return f"{call.name}(without `args`, which matches no call)"
    arguments = (f"{key}={SHORT_REPR.repr(value)}" for key, value in call.args.items())
    return f"{call.name}({', '.join(arguments)})"


SHORT_REPR = Repr()
SHORT_REPR.maxlevel = 3
SHORT_REPR.maxstring = SHORT_REPR.maxother = 60


RESPONSE_MATCH: Final = "response_match_score"

SHOWN_CHARACTERS: Final = 100
MIN_STEMMED_LENGTH: Final = 4  # characters; shorter words are not stemmed

# Han, Hiragana and Katakana, Hangul: every character is a word.
SYLLABLES: Final = (range(0x4E00, 0xA000), range(0x3040, 0x3100), range(0xAC00, 0xD7B0))
# Thai and Lao, Khmer, Myanmar: every character starts a word, except combining marks.
UNSPACED: Final = (range(0x0E00, 0x0F00), range(0x1780, 0x1800), range(0x1000, 0x10A0))


def explain_missing_response(expected: Sequence[Turn]) -> str:
    """Say that no turn has an expected response; empty if one has."""
    return "" if any(turn.answer_parts for turn in expected) else NO_EXPECTED_ANSWER


def read_expected_responses(expected: Sequence[Turn]) -> list[Json]:
    """Return the expected responses."""
    return ["\n".join(turn.answer_parts) for turn in expected]


def measure_response_match(
    actual: Sequence[Turn], expected: Sequence[Turn], _options: JsonObject
) -> MetricResult:
    """Score each response against the expected one; turns without one are left out.

    The parts of an expected response are joined by line breaks, those of a recorded response
    without a separator, as in agentevals 0.11.0.

    Raises:
        EvaluatorError: no turn was recorded for which a response is expected.
    """
    pairs = pair_turns(actual, expected)
    texts = {
        number: (turn.final_text or "", "\n".join(expected_turn.answer_parts))
        for number, (turn, expected_turn) in enumerate(pairs, start=1)
        if expected_turn.answer_parts
    }
    if not texts:
        raise EvaluatorError("no turn was recorded for which an answer is expected")
    scores = {number: rouge_1(*each) for number, each in texts.items()}
    changed: dict[str, list[str]] = {}
    for number, each in texts.items():
        facts = describe_changed_facts(*each) or describe_changed_names(*each)
        if shown := facts or describe_changed_words(*each):
            turn = f"turn {number}: " if len(pairs) > 1 else ""
            changed.setdefault(CHANGED_FACTS if facts else CHANGED_WORDS, []).append(turn + shown)
    return MetricResult(
        score=mean([*scores.values()]),
        turn_scores=tuple(scores.get(number) for number in range(1, len(pairs) + 1)),
        misses=tuple(
            "turn {}: expected {}, got {} ({:.2f})".format(
                number, *quote_pair(reference, text, SHOWN_CHARACTERS), scores[number]
            )
            for number, (text, reference) in sorted(texts.items(), key=lambda turn: scores[turn[0]])
            if scores[number] < 1
        ),
        details={
            **count_unpaired_turns(actual, expected),
            **changed,
        },
    )


def rouge_1(candidate: str, reference: str) -> float:
    """Compute ROUGE-1 of two texts, 0 to 1."""
    found, expected = Counter(split_words(candidate)), Counter(split_words(reference))
    return f_measure((found & expected).total(), found.total(), expected.total())


def split_words(text: str) -> list[str]:
    """Split a text into the words that are compared."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return [
        stem(word) if len(word) >= MIN_STEMMED_LENGTH and word.isascii() else word
        for word in plain.translate(SPACING).split()
    ]


class _SpacingTable(dict[int, str]):
    """A cached mapping of characters to their replacements, for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        spaced = self[code] = _space_character(code)
        return spaced


SPACING: Final = _SpacingTable()


def _space_character(code: int) -> str:
    """Add spaces around a character of a script without spaces.

    A character that is not part of a word becomes a space.
    """
    character = chr(code)
    is_mark = unicodedata.category(character).startswith("M")
    if any(code in block for block in SYLLABLES):
        return f" {character} "
    if is_mark:
        return character
    if any(code in block for block in UNSPACED):
        return f" {character}"
    return character if character.isalnum() else " "


# The metrics that are computed here.
METRICS: Final[Mapping[str, Metric]] = {
    TOOL_TRAJECTORY: Metric(
        purpose="Scores whether the agent called the expected tools with the expected arguments.",
        read_expected=read_expected_calls,
        measure=measure_tool_trajectory,
    ),
    RESPONSE_MATCH: Metric(
        purpose="Scores word overlap between response and expected response: the F-measure of "
        "ROUGE-1.",
        read_expected=read_expected_responses,
        measure=measure_response_match,
        explain_missing=explain_missing_response,
    ),
}

# Metrics scored by a judge model, and their purpose. They are in ``judged_metrics``, which is
# slow to load.
JUDGED_METRIC_PURPOSES: Final[Mapping[str, str]] = {
    "final_response_match_v2": "Whether the final answer matches the expected one in meaning.",
    "rubric_based_final_response_quality_v1": "Share of rubrics that the final answer fulfils.",
    "rubric_based_tool_use_quality_v1": "Share of rubrics that the tool calls fulfil.",
    "hallucinations_v1": "Share of the final answer that the tool results support.",
}

# Metrics that Google's ADK computes through Vertex AI.
HOSTED_METRICS: Final[Mapping[str, HostedMetric]] = {
    "response_evaluation_score": HostedMetric(
        purpose="Coherence of the final answer.", needs_expected=True, lowest=1.0, highest=5.0
    ),
    "safety_v1": HostedMetric(purpose="Whether the final answer is harmless."),
    "multi_turn_task_success_v1": HostedMetric(
        purpose="Whether the conversation achieved the user's goal.", scores_conversation=True
    ),
    "multi_turn_trajectory_quality_v1": HostedMetric(
        purpose="Quality of the steps of the conversation.", scores_conversation=True
    ),
    "multi_turn_tool_use_quality_v1": HostedMetric(
        purpose="Quality of the tool calls of the conversation.", scores_conversation=True
    ),
}
INSTALL_ADK: Final = 'pip install "google-adk[eval]>=2.13"'

UNRUNNABLE: Final = "agentevals 0.11.0 cannot run it either"

# Metrics of agentevals that this version does not run, and the reason.
UNSUPPORTED_METRICS: Final[Mapping[str, str]] = {
    "rubric_based_multi_turn_trajectory_quality_v1": UNRUNNABLE,
    "per_turn_user_simulator_quality_v1": UNRUNNABLE,
    "tool_call_count_v1": UNRUNNABLE,
    "inference_call_count_v1": UNRUNNABLE,
    "token_usage_v1": UNRUNNABLE,
    "invocation_duration_v1": UNRUNNABLE,
}
