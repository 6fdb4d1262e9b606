"""What AgentV's evaluators read of a case and its run, and what they find.

A score passes at 0.8 and is borderline from 0.6.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final, Protocol

from msgspec import Struct, field

from agentci._util.text.javascript import stringify_json
from agentci.evaluators.evaluator import Definition, Facts, extract_judgement
from agentci.model.case import AgentvCase, Case, Expectation
from agentci.model.program import RequiredProgram
from agentci.model.requests import ConstantJudgement, EvaluatorIdentity, Judgement, Response
from agentci.model.trace import Transcript
from agentci.model.values import Json, JsonObject, replace

ASSISTANT = "assistant"


def extract_question(agentv_case: AgentvCase) -> str:
    """Join the texts of all input messages of any role, without files.

    AgentV's reference describes this as the "first user message", but its code joins all messages.
    """
    texts = (text.strip() for each in agentv_case.input_messages for text in _extract_texts(each))
    return " ".join(text for text in texts if text)


def extract_reference_answer(agentv_case: AgentvCase) -> str:
    """Return the content of the last expected message of any role, or else its tool calls."""
    if not agentv_case.expected_messages:
        return ""
    last = agentv_case.expected_messages[-1]
    content = last.get("content")
    answer = last.get("tool_calls") if content is None else content
    return "" if answer is None else _format_content(answer, indent=2)


def extract_candidate_answer(transcript: Transcript) -> str:
    """Return the last assistant message with content; messages without content may follow it."""
    return _format_content(find_last_content(transcript), indent=None)


def find_last_content(transcript: Transcript) -> Json:
    """Return the content of that message as recorded, or an empty text."""
    if transcript.answer is not None:
        return transcript.answer
    contents = (
        message.content
        for message in reversed(transcript.messages)
        if message.role == ASSISTANT and message.content is not None
    )
    return next(contents, "")


def _extract_texts(message: JsonObject) -> Iterator[str]:
    match message.get("content"):
        case str(text):
            yield text
        case list(parts):
            yield from (text for part in parts for text in _extract_part_text(part))
        case Mapping() as content:
            yield stringify_json(content, indent=2)
        case _:
            return


def _extract_part_text(part: Json) -> Iterator[str]:
    if isinstance(part, Mapping) and part.get("type") != "file":
        text = part.get("value")
        if isinstance(text, str):
            yield text


def _format_content(content: Json, *, indent: int | None) -> str:
    return content if isinstance(content, str) else stringify_json(content, indent=indent)


UNLABELED_ROLES = frozenset({"system", "user"})


def format_agent_prompt(agentv_case: AgentvCase) -> str:
    """Format the agent's prompt: a single message as its text, several under their roles.

    Files are named, not copied: ``{FILES}`` gives their paths.
    """
    messages = [
        (str(each["role"]), [*_format_message_texts(each, agentv_case)])
        for each in agentv_case.input_messages
    ]
    visible = [(role, texts) for role, texts in messages if texts]
    if len(visible) == 1 and visible[0][0] in UNLABELED_ROLES:
        prompt = "\n\n".join(visible[0][1])
    else:
        blocks = (f"@[{role.capitalize()}]:\n" + "\n".join(texts) for role, texts in visible)
        prompt = "\n\n".join(blocks)
    return prompt or extract_question(agentv_case)


def make_prompt_messages(agentv_case: AgentvCase) -> tuple[tuple[str, str], ...]:
    """The prompt as AgentV 4 records it: a role and a text for each message.

    Files are named by their absolute paths. Without an answer in it, a single message is from the
    user.
    """
    messages = [
        (str(each.get("role")), [*_format_prompt_parts(each, agentv_case)])
        for each in agentv_case.input_messages
    ]
    visible = [texts for _, texts in messages if any(map(str.strip, texts))]
    if len(visible) <= 1 and not any(role in (ASSISTANT, "tool") for role, _ in messages):
        stripped = (text.strip() for texts in visible for text in texts)
        return (("user", "\n\n".join(text for text in stripped if text)),)
    opening = [*takewhile(lambda each: each[0] == "system", messages)]
    blocks = ["\n".join(texts) for _, texts in opening if texts]
    prompt = [("system", "\n\n".join(blocks))] if blocks else []
    for role, texts in messages[len(opening) :]:
        label = [f"@[{role.capitalize()}]:"] if role in ("system", "tool") else []
        if label or texts:
            prompt.append((ASSISTANT if label else role, "\n".join([*label, *texts])))
    return tuple(prompt)


def iterate_messages_with_files(agentv_case: AgentvCase) -> Iterator[JsonObject]:
    """Yield the input messages; parts that name a file get its path and its text."""
    for message in agentv_case.input_messages:
        parts = message.get("content")
        if isinstance(parts, list):
            yield {**message, "content": [_complete_file_part(each, agentv_case) for each in parts]}
        else:
            yield message


def _complete_file_part(part: Json, agentv_case: AgentvCase) -> Json:
    named = _get_file_name(part) if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or named is None or named not in agentv_case.input_paths:
        return part
    found = {
        "text": agentv_case.input_texts[named],
        "resolved_path": agentv_case.input_paths[named],
    }
    return {**part, "path": named.lstrip("/\\"), **found}


def _format_prompt_parts(message: JsonObject, agentv_case: AgentvCase) -> Iterator[str]:
    for part in _list_content_parts(message):
        named = _get_file_name(part)
        if named is not None:
            yield f'<file: path="{agentv_case.input_paths.get(named, named)}">'
        elif isinstance(text := part.get("value"), str) and text:
            yield text


def iterate_prompt_segments(agentv_case: AgentvCase) -> Iterator[JsonObject]:
    """Yield the parts of all messages in order, with the text of files and without guidelines."""
    for part in (
        each for message in agentv_case.input_messages for each in _list_content_parts(message)
    ):
        named = _get_file_name(part)
        if named is None:
            yield part
        elif named in agentv_case.input_texts:
            yield {"type": "file", "path": named, "text": agentv_case.input_texts[named]}


def _format_message_texts(message: JsonObject, agentv_case: AgentvCase) -> Iterator[str]:
    for part in _list_content_parts(message):
        named = _get_file_name(part)
        if named is not None:
            is_guideline = agentv_case.guideline_files and named not in agentv_case.input_texts
            yield f"<Attached: {named}>" if is_guideline else f'<file: path="{named}">'
        elif isinstance(text := part.get("value"), str) and text.strip():
            yield text.strip()


def _list_content_parts(message: JsonObject) -> Iterator[JsonObject]:
    content: Json = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
    elif content is not None:
        text = content if isinstance(content, str) else stringify_json(content, indent=2)
        yield {"type": "text", "value": text}


def _get_file_name(part: JsonObject) -> str | None:
    named = part.get("value")
    return named if part.get("type") == "file" and isinstance(named, str) else None


PASS_SCORE: Final = 0.8
BORDERLINE_SCORE: Final = 0.6
FAILED_BY_VERDICT: Final = "failed by the verdict of its aggregator"


class Finding(Struct, frozen=True, kw_only=True):
    """The result of an evaluator before it is compared with a threshold.

    Attributes:
        score: 0 to 1.
        reason: a remark about the score itself.
        fails: whether the finding fails at any score.
        verdict: the verdict of a composite's aggregator, which decides instead of the score; a
            threshold of the entry itself must be reached as well. None if the score decides.
        is_partial: whether something was not evaluated, which always prevents a pass.
    """

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    details: JsonObject = field(default_factory=dict)
    reason: str | None = None
    fails: bool = False
    verdict: bool | None = None
    is_partial: bool = False


class PassThreshold(Struct, frozen=True, kw_only=True):
    """What a finding must reach.

    Attributes:
        score: the lowest passing score.
        negated: whether the finding is inverted first.
        is_own: whether the entry itself sets the score.
    """

    score: float
    negated: bool = False
    is_own: bool = False


def make_agentv_judgement(finding: Finding, threshold: PassThreshold) -> Judgement:
    """Compare a finding with its threshold."""
    if threshold.negated:
        finding = replace(
            finding,
            score=1 - finding.score,
            hits=finding.misses,
            misses=finding.hits,
            fails=False,
            verdict=None if finding.verdict is None else not finding.verdict,
            reason=None if finding.fails and not finding.is_partial else finding.reason,
        )
    reaches = finding.score >= threshold.score
    accepted = reaches if finding.verdict is None or threshold.is_own else finding.verdict
    falls_short = finding.fails or finding.is_partial or finding.verdict is False
    passed = accepted and not falls_short
    reason = finding.reason or (None if passed else _describe_failure(finding, threshold.score))
    return Judgement(
        score=finding.score,
        passed=passed,
        reason=reason,
        hits=finding.hits,
        misses=finding.misses,
        reasoning=finding.reasoning,
        details=finding.details,
    )


def format_verdict(score: float) -> str:
    """Return AgentV's verdict for a score."""
    if score >= PASS_SCORE:
        return "pass"
    return "borderline" if score >= BORDERLINE_SCORE else "fail"


def clamp_score(score: float) -> float:
    """Limit a score to 0 to 1; a non-finite score becomes 0."""
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0


def _describe_failure(finding: Finding, pass_score: float) -> str | None:
    if finding.verdict is False:
        return FAILED_BY_VERDICT
    if finding.score < BORDERLINE_SCORE:
        return None
    return f"borderline: at least {BORDERLINE_SCORE:g}, but below the threshold {pass_score:g}"


class ScoringRule(Protocol):
    """How a recorded run is scored; a frozen value."""

    def read_expectation(self, agentv_case: AgentvCase, /) -> Facts:
        """Return all that ``evaluate`` uses of the case, and no more."""

    def evaluate(self, agentv_case: AgentvCase, transcript: Transcript, /) -> Finding:
        """Score ``transcript``, a run of ``agentv_case``."""


class RuleEvaluator(Struct, frozen=True, kw_only=True):
    """An evaluator that scores by a rule.

    Attributes:
        definition: see ``ComparableEvaluator``.
    """

    identity: EvaluatorIdentity
    definition: Definition
    rule: ScoringRule
    threshold: PassThreshold

    @property
    def needs(self) -> tuple[RequiredProgram, ...]:
        """No prerequisites."""
        return ()

    def read_expectation(self, expectation: Expectation) -> Facts:
        """Return what the rule reads of the case."""
        return self.rule.read_expectation(get_agentv_case(expectation))

    def ask(self, case: Case) -> ConstantJudgement:
        """Evaluate immediately."""
        return ConstantJudgement(
            judgement=make_agentv_judgement(
                self.rule.evaluate(*get_recorded_run(case)), self.threshold
            )
        )

    def read(self, response: Response) -> Judgement:
        """Return the judgement."""
        return extract_judgement(response)


def get_agentv_case(expectation: Expectation) -> AgentvCase:
    """Return the AgentV case of an expectation from an eval file."""
    if expectation.agentv_case is None:
        raise TypeError("the expectation is not from an eval file")
    return expectation.agentv_case


def get_recorded_run(case: Case) -> tuple[AgentvCase, Transcript]:
    """Return the AgentV case and the transcript of a case from an eval file."""
    if case.agentv_case is None or case.transcript is None:
        raise TypeError(f"case {case.id} is not from an eval file")
    return case.agentv_case, case.transcript
