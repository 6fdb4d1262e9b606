"""Stands in for the network where none is to be used."""

from collections.abc import Mapping
from typing import NoReturn

from agentci.errors import OfflineError


class NoHttp:
    """Gets nothing: whoever asks is told that it is not there."""

    def get(
        self, url: str, *, limit_bytes: int, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        """Refuse.

        Raises:
            OfflineError: always.
        """
        del url, limit_bytes, headers
        raise OfflineError("it would have to be asked for, and we are offline")
