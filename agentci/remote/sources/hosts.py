"""Whom an address leads to: who gets a token, and who is named in messages."""

from urllib.parse import urlsplit


def host_of(address: str) -> str:
    """The host of an address with its port, as it is written; empty where nobody can tell."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def shown_host(address: str) -> str:
    """The host without the name and the password that an address may hold."""
    return host_of(address).rpartition("@")[2]
