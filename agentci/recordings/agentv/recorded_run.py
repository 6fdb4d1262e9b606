"""One recorded run of an agent, and readers for the fields that run formats share."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci.model.json import Json, JsonObject
from agentci.model.problem import Place
from agentci.model.trace import TokenUsage, Transcript
from agentci.recordings.trace_format import DocumentFormatError

ID_KEYS = ("id", "test_id", "eval_id", "case_id")
UNSAFE_IN_PROMPT_ID: Final = re.compile(r"[^A-Za-z0-9_.-]+")
MAX_PROMPT_ID: Final = 48


class RecordedRun(Struct, frozen=True, kw_only=True):
    """One recorded run.

    Attributes:
        case_id: the case that the run names; None if it names none.
        attempt: index of the run among the runs of its case, from 0; None if not recorded.
        question: the user's question, if it can identify the case.
        leaves_out_question: the format of the recording does not hold the question.
        is_session: an imported session of an agent, whose id is not that of a case.
        warnings: what was dropped while reading.
        not_captured: as in ``Trace``.
    """

    case_id: str | None
    transcript: Transcript
    place: Place
    attempt: int | None = None
    question: str | None = None
    leaves_out_question: bool = False
    is_session: bool = False
    warnings: tuple[str, ...] = ()
    not_captured: str = ""


def find_case_id(row: JsonObject) -> str | None:
    """Return the case id in ``row``, under any of AgentV's spellings."""
    ids = (row.get(key) for key in ID_KEYS)
    return next((each for each in ids if isinstance(each, str) and each), None)


def make_prompt_case_id(case_id: str, prompt_id: str) -> str:
    """AgentV's id of a case for one of several prompts."""
    safe = UNSAFE_IN_PROMPT_ID.sub("-", prompt_id.strip()).strip("-")[:MAX_PROMPT_ID]
    return f"{case_id}__prompt_{safe}"


def read_attempt(row: JsonObject) -> int | None:
    """Return the index of the run among the runs of its case; None if not recorded.

    Raises:
        DocumentFormatError: if it is not an integer from 0.
    """
    attempt = row.get("attempt")
    if attempt is None or (type(attempt) is int and attempt >= 0):
        return attempt
    raise DocumentFormatError("`attempt` is not a whole number from 0")


class RunMetrics(Struct, frozen=True, kw_only=True):
    """Tokens, cost and duration of a run; None for what was not recorded."""

    token_usage: TokenUsage | None
    cost_usd: float | None
    duration_ms: float | None
    warnings: tuple[str, ...]


def read_run_metrics(row: JsonObject, *, prefix: str = "") -> RunMetrics:
    """Read the metrics in ``row``; negative values count as not recorded, as in AgentV.

    Args:
        prefix: start of the keys, such as ``transcript_``.

    Raises:
        DocumentFormatError: if a metric is not a number.
    """
    warnings: list[str] = []

    def amount(key: str) -> float | None:
        value = row.get(f"{prefix}{key}")
        number = read_number(value, f"{prefix}{key}")
        if number is not None and number < 0:
            warnings.append(f"`{prefix}{key}` is negative ({number:g}) and was ignored")
            return None
        return number

    return RunMetrics(
        token_usage=_read_token_usage(row.get(f"{prefix}token_usage")),
        cost_usd=amount("cost_usd"),
        duration_ms=amount("duration_ms"),
        warnings=tuple(warnings),
    )


def read_number(value: Json, name: str) -> float | None:
    """Return a number; None if there is none.

    Raises:
        DocumentFormatError: if the value is not a number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DocumentFormatError(f"`{name}` is not a number")
    return value


def read_optional_text(value: Json, name: str) -> str | None:
    """Return a text; None if there is none.

    Raises:
        DocumentFormatError: if the value is not text.
    """
    if value is None or isinstance(value, str):
        return value
    raise DocumentFormatError(f"`{name}` is not text")


def read_objects(value: Json, name: str) -> Iterator[JsonObject]:
    """Iterate over a list of objects.

    Raises:
        DocumentFormatError: if the value is not a list of objects.
    """
    if not isinstance(value, list):
        raise DocumentFormatError(f"`{name}` is not a list")
    for each in value:
        if not isinstance(each, dict):
            raise DocumentFormatError(f"an item of `{name}` is not an object")
        yield each


def _read_token_usage(value: Json) -> TokenUsage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise DocumentFormatError("`token_usage` is not an object")
    counts = {
        name: read_number(value.get(name), f"token_usage.{name}")
        for name in ("input", "output", "cached")
    }
    given, produced = counts["input"], counts["output"]
    if given is None or produced is None:
        raise DocumentFormatError("`token_usage` needs `input` and `output`")
    return TokenUsage(input=given, output=produced, cached=counts["cached"])
