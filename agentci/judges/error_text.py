"""What judges and their services say, in words that may be shown: on one line, without keys."""

from typing import Final

from agentci._util.http.document import Response
from agentci._util.text import escape, truncate
from agentci._util.text.secrets import without
from agentci.judges.api_errors import Complaint
from agentci.model.judging import ModelSettings

MAX_SAID: Final = 300
MAX_ID: Final = 80
UNAUTHORIZED: Final = frozenset({401, 403})
REDIRECTS: Final = range(300, 400)
NOT_FOUND: Final = 404
GONE: Final = 410
REQUEST_IDS: Final = ("x-request-id", "request-id", "apim-request-id")


def refusal_words(
    complaint: Complaint, response: Response, settings: ModelSettings, key: str
) -> str:
    """What a service answered to a question, and what to do."""
    said = answer_words(complaint, response, key)
    return f"the judge's service {said}: {_way_out(complaint, settings)}"


def answer_words(complaint: Complaint, response: Response, key: str) -> str:
    """What a service answered, as the end of a sentence about it."""
    said = f"answered {complaint.status}"
    # A service may quote the key that it did not like, or a part of it.
    if complaint.message and complaint.status not in UNAUTHORIZED:
        said += f" ({truncate.short(_without(complaint.message, key), MAX_SAID)})"
    if request_id := _request_id(response, key):
        said += f", request {request_id}"
    return said


def _way_out(complaint: Complaint, settings: ModelSettings) -> str:
    status = complaint.status
    key = settings.key_variable
    if complaint.is_spent:
        return f"there is no credit left for the key in {key}" if key else "there is no credit left"
    if status in UNAUTHORIZED:
        return _unauthorized(settings)
    if status in REDIRECTS:
        return "it redirects, which is not followed with a key and texts; correct base_url"
    if status in {NOT_FOUND, GONE}:
        return f"see whether it has {settings.model}, and whether base_url is right"
    return "correct the settings of the judge"


def _unauthorized(settings: ModelSettings) -> str:
    key = settings.key_variable
    if settings.federation is not None:
        return f"see whether the account that `auth` stands for may use {settings.model}"
    if not key:
        return "name the environment variable that holds its key"
    return f"see whether the key in {key} is the right one, and may use {settings.model}"


def _request_id(response: Response, key: str) -> str:
    said = next((response.headers[name] for name in REQUEST_IDS if name in response.headers), "")
    return truncate.short(_without(said, key), MAX_ID)


def _without(text: str, key: str) -> str:
    line = escape.one_line(text)
    return without(line, (key,)) if key else line
