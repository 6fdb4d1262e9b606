"""What services say when they refuse, whichever of their many ways they say it in."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from agentci.model.json import Json, JsonObject

# Of an answer; what is longer is no message.
MAX_MESSAGE: Final = 2000

PAYMENT_REQUIRED: Final = 402
BAD_REQUEST: Final = 400
# Waiting does not mend these, though they come as 429 or 400.
SPENT: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "enforced_spend_limit_reached",
    }
)
SPENT_WORDS: Final = "credit balance is too low"
WITHHELD: Final = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
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
    def is_spent(self) -> bool:
        """Whether the money is at its end, so that no further question would be answered."""
        return (
            self.status == PAYMENT_REQUIRED
            or not SPENT.isdisjoint(self.codes)
            or SPENT_WORDS in self.message.lower()
        )

    @property
    def is_withheld(self) -> bool:
        """Whether a filter kept the question from the model."""
        return self.status == BAD_REQUEST and WITHHELD in self.codes


def complaint_of(status: int, content: bytes) -> Complaint:
    """Read the body of an answer that is no success; any bytes will do."""
    try:
        document: Json = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    parts = tuple(_parts(document))
    return Complaint(
        status=status,
        codes=frozenset(_texts(parts, "code", "type", "status")),
        param=next(_texts(parts, "param"), ""),
        message=next(_texts(parts, "message", "detail", "error"), "")[:MAX_MESSAGE],
    )


def _parts(document: Json) -> Iterator[JsonObject]:
    """The objects that may speak of the error, the innermost first."""
    if isinstance(document, list):
        document = document[0] if document else None
    if isinstance(document, Mapping):
        if isinstance(error := document.get("error"), Mapping):
            yield error
        yield document


def _texts(parts: tuple[JsonObject, ...], *names: str) -> Iterator[str]:
    for part in parts:
        for name in names:
            if isinstance(value := part.get(name), str) and value:
                yield value
