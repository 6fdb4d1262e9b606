"""Finds cases whose command does not read their inputs, so that all send the same request."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentci.model.values import Json
from agentci.record.exchanges import Exchange
from agentci.record.replay import make_request_key
from agentci.record.request_file import RecordedRequest


class AskedInput(Struct, frozen=True, kw_only=True):
    """Whether and how the input of a case reached the model.

    Attributes:
        input: of the case.
        first_request: digest of the first request to the model, without ids.
        is_sent: whether a request contains the input.
    """

    input: str
    first_request: str
    is_sent: bool


def find_asked_input(given: str | None, exchanges: Sequence[Exchange]) -> AskedInput | None:
    """Return how an input reached the model; None without an input or a model call."""
    text = _normalize(given or "")
    if not text or not exchanges:
        return None
    first = min(exchanges, key=lambda each: each.started)
    bodies = (first.body, *(each.body for each in exchanges))
    return AskedInput(
        input=text,
        first_request=make_request_key(
            RecordedRequest(method=first.method, path=first.path, body=first.body, response={})
        ),
        is_sent=any(text in _normalize(each) for body in bodies for each in _list_texts(body)),
    )


def _list_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _list_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_texts(each)


def _normalize(text: str) -> str:
    return " ".join(text.split())


class InputWatch:
    """Decides whether all cases of a recording may have ignored their inputs.

    An input may be the name of a file or be rewritten, so a request without it proves nothing. But
    if the first requests of all cases are equal although the inputs differ, it was ignored.
    """

    def __init__(self) -> None:
        self._inputs: set[str] = set()
        self._first_requests: set[str] = set()

    def add(self, asked: AskedInput) -> None:
        """Add a case that has ended."""
        self._inputs.add(asked.input)
        self._first_requests.add(asked.first_request)

    @property
    def has_difference(self) -> bool:
        """Whether the first requests of two cases differ."""
        return len(self._first_requests) > 1

    @property
    def are_ignored(self) -> bool:
        """Whether the first requests of all cases are equal, although their inputs differ."""
        return len(self._inputs) > 1 and not self.has_difference
