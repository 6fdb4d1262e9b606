"""Shards: parts of a run that are judged apart, and merged before anything is decided."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

MAX_SHARDS: Final = 256

# For the shard that a job's place in its matrix says.
AUTO_SHARD: Final = "auto"

_FRACTION: Final = re.compile("([0-9]{1,3})/([0-9]{1,3})")


class Shard(Struct, frozen=True, kw_only=True):
    """One of ``total`` parts of a run; ``index`` is counted from 1."""

    index: int
    total: int

    def contains(self, check: str) -> bool:
        """Whether the check of this id falls into it.

        The id is a digest, so that the parts are about equal, and a new check moves no other.
        """
        return int(check, 16) % self.total == self.index - 1

    def __str__(self) -> str:
        return f"shard {self.index} of {self.total}"


class ShardInfo(Struct, frozen=True, kw_only=True):
    """What the report of a shard is a part of.

    Attributes:
        plan_digest: a digest of the whole; shards that do not share it are not of one run.
        checks: the ids of all checks of the whole, in its order.
        shard_keys: what says in the place of a check's id to which shard it belongs, by that id:
            checks that need the same run of an agent go together.
    """

    shard: Shard
    plan_digest: str
    checks: tuple[str, ...]
    shard_keys: Mapping[str, str] = field(default_factory=dict)

    def contains(self, check: str) -> bool:
        """Whether the check of this id falls into the shard."""
        return self.shard.contains(self.shard_keys.get(check, check))


def parse_shard(text: str, *, matrix_job: str = "") -> Shard:
    """Read ``2/5``, or ``auto``.

    Args:
        text: as a user gives it.
        matrix_job: for ``auto``: a job's place in its matrix, counted from 0, and the jobs in it.

    Raises:
        ValueError: it is no shard.
    """
    automatic = text.casefold() == AUTO_SHARD
    fraction = _FRACTION.fullmatch(matrix_job if automatic else text)
    if fraction is None:
        raise ValueError(text)
    index, total = int(fraction[1]) + automatic, int(fraction[2])
    if not 1 <= index <= total <= MAX_SHARDS:
        raise ValueError(text)
    return Shard(index=index, total=total)
