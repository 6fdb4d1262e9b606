"""Shards: parts of a run that are evaluated separately and merged before the gate decision."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

MAX_SHARDS: Final = 256

# Selects the shard by the job's index in its matrix.
AUTO_SHARD: Final = "auto"

_FRACTION: Final = re.compile("([0-9]{1,3})/([0-9]{1,3})")


class Shard(Struct, frozen=True, kw_only=True):
    """One of ``total`` parts of a run; ``index`` is counted from 1."""

    index: int
    total: int

    def contains(self, check: str) -> bool:
        """Whether the check with this id belongs to the shard.

        The id is a digest: shards are about equal in size, and a new check moves no other check.
        """
        return int(check, 16) % self.total == self.index - 1

    def __str__(self) -> str:
        return f"shard {self.index} of {self.total}"


class ShardInfo(Struct, frozen=True, kw_only=True):
    """Which part of a whole run a report covers.

    Attributes:
        plan_digest: digest of the whole run; only shards with the same digest can be merged.
        checks: ids of all checks of the whole run, in order.
        shard_keys: by check id, the id that selects the shard in its place; checks that need the
            same run of an agent share one.
    """

    shard: Shard
    plan_digest: str
    checks: tuple[str, ...]
    shard_keys: Mapping[str, str] = field(default_factory=dict)

    def contains(self, check: str) -> bool:
        """Whether the check with this id belongs to the shard."""
        return self.shard.contains(self.shard_keys.get(check, check))


def parse_shard(text: str, *, matrix_job: str = "") -> Shard:
    """Parse ``2/5`` or ``auto``.

    Args:
        text: as given by the user.
        matrix_job: for ``auto``: "index/count" of the job in its matrix, the index from 0.

    Raises:
        ValueError: the text is not a valid shard.
    """
    automatic = text.casefold() == AUTO_SHARD
    fraction = _FRACTION.fullmatch(matrix_job if automatic else text)
    if fraction is None:
        raise ValueError(text)
    index, total = int(fraction[1]) + automatic, int(fraction[2])
    if not 1 <= index <= total <= MAX_SHARDS:
        raise ValueError(text)
    return Shard(index=index, total=total)
