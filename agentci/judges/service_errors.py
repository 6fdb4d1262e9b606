"""Parses error responses of model services, and formats them without keys."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from agentci._util.http.interface import HttpResponse
from agentci._util.text import escape, truncate
from agentci._util.text.secrets import redact
from agentci.model.json import Json, JsonObject
from agentci.model.judges import ModelSettings

# Of an answer; what is longer is no message.
MAX_MESSAGE: Final = 2000

PAYMENT_REQUIRED: Final = 402
BAD_REQUEST: Final = 400
# Waiting does not mend these, though they come as 429 or 400.
OUT_OF_CREDIT_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
    }
)
OUT_OF_CREDIT_TEXT: Final = "credit balance is too low"
CONTENT_FILTER_CODE: Final = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiErrorDetails:
    """A refusal.

    Attributes:
        codes: every name that it has for its kind.
        param: of the request, that it is about.
        message: in words; may quote what was sent, the key included.
    """

    status: int
    codes: frozenset[str]
    param: str
    message: str = field(repr=False)

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the money is at its end, so that no further question would be answered."""
        return (
            self.status == PAYMENT_REQUIRED
            or not OUT_OF_CREDIT_CODES.isdisjoint(self.codes)
            or OUT_OF_CREDIT_TEXT in self.message.lower()
        )

    @property
    def is_content_filtered(self) -> bool:
        """Whether a filter kept the question from the model."""
        return self.status == BAD_REQUEST and CONTENT_FILTER_CODE in self.codes


def parse_api_error(status: int, content: bytes) -> ApiErrorDetails:
    """Read the body of an answer that is no success; any bytes will do."""
    try:
        document: Json = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    parts = tuple(_find_error_objects(document))
    return ApiErrorDetails(
        status=status,
        codes=frozenset(_find_texts(parts, "code", "type", "status")),
        param=next(_find_texts(parts, "param"), ""),
        message=next(_find_texts(parts, "message", "detail", "error"), "")[:MAX_MESSAGE],
    )


def _find_error_objects(document: Json) -> Iterator[JsonObject]:
    """The objects that may speak of the error, the innermost first."""
    if isinstance(document, list):
        document = document[0] if document else None
    if isinstance(document, Mapping):
        if isinstance(error := document.get("error"), Mapping):
            yield error
        yield document


def _find_texts(parts: tuple[JsonObject, ...], *names: str) -> Iterator[str]:
    for part in parts:
        for name in names:
            if isinstance(value := part.get(name), str) and value:
                yield value


MAX_MESSAGE_SHOWN: Final = 300
MAX_ID: Final = 80
UNAUTHORIZED: Final = frozenset({401, 403})
REDIRECTS: Final = range(300, 400)
NOT_FOUND: Final = 404
GONE: Final = 410
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "apim-request-id")


def format_api_error_with_advice(
    complaint: ApiErrorDetails, response: HttpResponse, settings: ModelSettings, key: str
) -> str:
    """What a service answered to a question, and what to do."""
    said = format_api_error(complaint, response, key)
    return f"the judge's service {said}: {_advise(complaint, settings)}"


def format_api_error(complaint: ApiErrorDetails, response: HttpResponse, key: str) -> str:
    """What a service answered, as the end of a sentence about it."""
    said = f"answered {complaint.status}"
    # A service may quote the key that it did not like, or a part of it.
    if complaint.message and complaint.status not in UNAUTHORIZED:
        said += f" ({truncate.short(_hide_key(complaint.message, key), MAX_MESSAGE_SHOWN)})"
    if request_id := _find_request_id(response, key):
        said += f", request {request_id}"
    return said


def _advise(complaint: ApiErrorDetails, settings: ModelSettings) -> str:
    status = complaint.status
    key = settings.key_variable
    if complaint.is_out_of_credit:
        return f"there is no credit left for the key in {key}" if key else "there is no credit left"
    if status in UNAUTHORIZED:
        return _advise_on_key(settings)
    if status in REDIRECTS:
        return "it redirects, which is not followed with a key and texts; correct base_url"
    if status in {NOT_FOUND, GONE}:
        return f"see whether it has {settings.model}, and whether base_url is right"
    return "correct the settings of the judge"


def _advise_on_key(settings: ModelSettings) -> str:
    key = settings.key_variable
    if settings.federation is not None:
        return f"see whether the account that `auth` stands for may use {settings.model}"
    if not key:
        return "name the environment variable that holds its key"
    return f"see whether the key in {key} is the right one, and may use {settings.model}"


def _find_request_id(response: HttpResponse, key: str) -> str:
    said = next(
        (response.headers[name] for name in REQUEST_ID_HEADERS if name in response.headers), ""
    )
    return truncate.short(_hide_key(said, key), MAX_ID)


def _hide_key(text: str, key: str) -> str:
    line = escape.escape_for_log_line(text)
    return redact(line, (key,)) if key else line
