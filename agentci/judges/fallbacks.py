"""How a service is asked again that did not understand a parameter."""

from typing import Final

from agentci.judges.api_errors import Complaint
from agentci.judges.provider import CapName, Format, Way
from agentci.model.values import replace

MISUNDERSTOOD: Final = frozenset({400, 404, 422})
FORMAT_NAMES: Final = (
    *("response_format", "json_schema", "output_config", "output_format", "text.format"),
    *("responsejsonschema", "response_json_schema", "responsemimetype", "response_mime_type"),
)
# A limit that is too large is no reason to call it by another name.
UNSUPPORTED_WORDS: Final = ("unsupported", "not supported", "unrecognized", "unknown", "extra")


def lesser(way: Way, complaint: Complaint, formats: tuple[Format, ...]) -> Way | None:
    """The next way after one that a service complained of; None where there is none.

    Each step can be taken once, so that there is an end to them.

    Args:
        formats: those of the provider, the strictest first.
    """
    if complaint.status not in MISUNDERSTOOD:
        return None
    said = " ".join((complaint.param, complaint.message, *sorted(complaint.codes))).lower()
    steps = (_without_effort(way, said), _without_temperature(way, said))
    later = (_with_other_cap(way, said), _with_next_format(way, said, formats))
    return next((step for step in (*steps, *later) if step is not None), None)


def _without_effort(way: Way, said: str) -> Way | None:
    return replace(way, sends_effort=False) if way.sends_effort and "effort" in said else None


def _without_temperature(way: Way, said: str) -> Way | None:
    if way.sends_temperature and "temperature" in said:
        return replace(way, sends_temperature=False)
    return None


def _with_other_cap(way: Way, said: str) -> Way | None:
    if way.has_other_cap or way.cap_name not in said:
        return None
    if not any(word in said for word in UNSUPPORTED_WORDS):
        return None
    other: CapName = "max_tokens" if way.cap_name != "max_tokens" else "max_completion_tokens"
    return replace(way, cap_name=other, has_other_cap=True)


def _with_next_format(way: Way, said: str, formats: tuple[Format, ...]) -> Way | None:
    left = formats[formats.index(way.format) + 1 :]
    if left and any(name in said for name in FORMAT_NAMES):
        return replace(way, format=left[0])
    return None
