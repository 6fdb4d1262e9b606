"""What went wrong between us and a server, in words."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final

from requests.exceptions import ConnectTimeout, InvalidSchema, InvalidURL, ProxyError
from urllib3.exceptions import LocationValueError, NewConnectionError

from agentci._util.http.addresses import Address
from agentci._util.http.limits import Limits
from agentci._util.http.retries import NETWORK_HINT, PassingError
from agentci._util.text import escape, truncate
from agentci._util.text.format import number
from agentci.errors import FetchError, RefusedError, UnreachableError

TLS_HINT: Final = (
    "does a company's proxy stand between?"
    " then name the file of its certificates in REQUESTS_CA_BUNDLE"
)
PROXY_HINT: Final = "see HTTPS_PROXY and NO_PROXY"
NAME_HINT: Final = "see whether the name is right, and whether this machine has a network"
MAX_REASON: Final = 200


def failure_of(
    error: Exception, who: str, address: Address, limits: Limits
) -> FetchError | PassingError:
    """What an error of requests, of urllib3 or of a socket means for whoever wants the document.

    Args:
        who: failed; the start of the sentence.
    """
    causes = tuple(_causes(error))
    return _lasting(causes, address) or _passing(causes, who, limits)


def _lasting(causes: tuple[BaseException, ...], address: Address) -> FetchError | None:
    """What would be the same another time."""
    for cause in causes:
        match cause:
            # The other side hung up in the middle: that is a broken connection as any other.
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                pass
            case ssl.SSLError():
                reason = f"{address.shown} cannot be trusted: TLS failed ({_reason(cause)})"
                return UnreachableError(reason, hint=TLS_HINT)
            case InvalidSchema() | InvalidURL():  # of the proxy: ours was looked at before
                reason = f"{address.shown} is behind a proxy whose address is not understood"
                return UnreachableError(reason, hint=PROXY_HINT)
            case LocationValueError():
                return RefusedError(f"{address.shown} is not a URL", hint=NAME_HINT)
            case _:
                pass
    return None


def _passing(causes: tuple[BaseException, ...], who: str, limits: Limits) -> PassingError:
    """What may be better another time; the most telling of the causes says what it was."""
    for kind, said, hint in (
        (ProxyError, "could not be reached through the proxy", PROXY_HINT),
        (socket.gaierror, "has a name that was not found", NAME_HINT),
        (ConnectionRefusedError, "refused the connection", NETWORK_HINT),
        (ConnectTimeout, _silent("let nobody in", limits.connect_seconds), NETWORK_HINT),
        (NewConnectionError, "could not be connected to", NETWORK_HINT),
        (TimeoutError, _silent("sent nothing", limits.silence_seconds), NETWORK_HINT),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return PassingError(f"{who} {said}", hint=hint, arrived=kind is TimeoutError)
    return PassingError(f"{who} broke off its answer", hint=NETWORK_HINT)


def _silent(said: str, seconds: float) -> str:
    return f"{said} for {number(seconds)} s"


def _reason(error: ssl.SSLError) -> str:
    """What OpenSSL says, without the line of its source that says it."""
    said = getattr(error, "verify_message", None) or (error.reason or "").replace("_", " ").lower()
    return truncate.short(escape.plain_line(said or "no reason given"), MAX_REASON)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all that are inside: each library wraps in a way of its own."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inside = (cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args)
        waiting += [each for each in inside if isinstance(each, BaseException)]
