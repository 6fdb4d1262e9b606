"""Checks URLs: https for all hosts, http only for this machine (tests and mirrors)."""

import ipaddress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

import requests

from agentci._util.text import escape, truncate
from agentci.errors import PermanentFetchError

MAX_SHOWN: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
REDIRECT_HINT: Final = "use the final URL, if you trust it"
_HINT: Final = "write it as https://HOST/PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """A checked URL.

    Attributes:
        url: as ``requests`` sends it, so that the checked host is the one connected to.
        shown: for messages; without user name, password and query, which may be secrets.
        origin: scheme, host and port that receive a request and its headers.
    """

    url: str = field(repr=False)
    shown: str
    origin: tuple[str, str, int]

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine."""
        return _is_loopback(self.host)

    @property
    def host(self) -> str:
        """The host name or IP address."""
        return self.origin[1]


def parse_address(url: str, *, unencrypted: bool = False) -> HttpAddress:
    """Parse and check a URL.

    Args:
        unencrypted: whether http is allowed for other machines, too.

    Raises:
        PermanentFetchError: it is not a URL, or not allowed.
    """
    prepared = requests.PreparedRequest()
    try:
        prepared.prepare_url(url, None)
        parts = urlsplit(prepared.url or "")
        port = parts.port
    except ValueError as error:
        raise PermanentFetchError(f"{_redact_url(url)} is not a URL", hint=_HINT) from error
    scheme, host = parts.scheme, parts.hostname or ""
    if scheme not in _PORTS or not host:
        raise PermanentFetchError(f"{_redact_url(url)} is not an http(s) URL", hint=_HINT)
    if scheme == "http" and not (unencrypted or _is_loopback(host)):
        raise PermanentFetchError(
            f"{_format_address(scheme, host, port, parts.path)} is not encrypted",
            hint="use https; http is allowed only for this machine (localhost, 127.0.0.1)",
        )
    return HttpAddress(
        url=parts._replace(fragment="").geturl(),
        shown=_format_address(scheme, host, port, parts.path),
        origin=(scheme, host, _PORTS[scheme] if port is None else port),
    )


def parse_base_url(url: str, *, unencrypted: bool = False) -> HttpAddress:
    """Parse the base URL of an API, to which paths are appended.

    Raises:
        PermanentFetchError: as for ``parse_address``, or it has further parts, which may be
            secrets.
    """
    address = parse_address(url, unencrypted=unencrypted)
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise PermanentFetchError(
            f"{address.shown} must not contain a user, password, query or fragment",
            hint="remove it; `api_key_env` names the variable with the key",
        )
    return address


def resolve_redirect(address: HttpAddress, location: str) -> HttpAddress:
    """Return the target of a redirect.

    Raises:
        PermanentFetchError: the target is not allowed.
    """
    try:
        target = parse_address(urljoin(address.url, _decode_location(location)))
    except (PermanentFetchError, ValueError) as error:
        reason = error if isinstance(error, PermanentFetchError) else "the target is not a URL"
        raise PermanentFetchError(
            f"{address.shown} redirects to a URL that is not allowed: {reason}", hint=REDIRECT_HINT
        ) from error
    if address.origin[0] == "https" != target.origin[0]:
        raise PermanentFetchError(
            f"{address.shown} redirects from https to {target.shown}, which is not encrypted",
            hint=REDIRECT_HINT,
        )
    return target


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _decode_location(location: str) -> str:
    """Decode a header that was read as Latin-1, since URLs are UTF-8 if not ASCII."""
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def _format_address(scheme: str, host: str, port: int | None, path: str) -> str:
    name = f"[{host}]" if ":" in host else host
    server = name if port is None else f"{name}:{port}"
    return truncate.short(escape.flatten_line(f"{scheme}://{server}{path}"), MAX_SHOWN)


def _redact_url(url: str) -> str:
    """Return what may be shown of an unparsed URL, whose secrets may be anywhere."""
    if any(mark in url for mark in "@?#"):
        return "the address"
    return truncate.short(escape.flatten_line(url), MAX_SHOWN)
